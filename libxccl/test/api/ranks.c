/* SPDX-License-Identifier: BSD-3-Clause */
#include "ranks.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef XT_SLOWDOWN
#define XT_SLOWDOWN 1 /* how much more time an emulator takes */
#endif

struct xt_shared *xt_shared;

void xt_ranks_open(void)
{
    xt_shared =
        mmap(NULL, sizeof(*xt_shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (xt_shared == MAP_FAILED) {
        perror("mmap");
        exit(2);
    }
}

static void become(struct xt_rank *self, int rank, int pipes[][2])
{
    self->rank = rank;
    self->read_fd = (rank == 0) ? -1 : pipes[rank][0];
    for (int r = 1; r < self->nranks; r++) {
        self->write_fds[r] = pipes[r][1];
        if (rank != 0) {
            close(pipes[r][1]); /* so that the end of rank 0 is seen */
        }
        if (r != rank) {
            close(pipes[r][0]);
        }
    }
}

static bool collect(const pid_t *pids, int nranks)
{
    bool ok = true;

    for (int left = nranks; left > 0; left--) {
        int   status = 0;
        pid_t pid = wait(&status);
        if ((pid > 0) && (status == 0)) {
            continue;
        }
        for (int r = 0; r < nranks; r++) {
            if (pids[r] == pid) {
                fprintf(stderr, "rank %d of %d ended with status %#x\n", r, nranks, status);
            } else if (ok) {
                kill(pids[r], SIGKILL); /* it may wait for the one that is gone */
            }
        }
        ok = false;
    }
    return ok;
}

bool xt_run(int nranks, int seconds, int (*body)(const struct xt_rank *self))
{
    int            pipes[16][2];
    pid_t          pids[16];
    struct xt_rank self = {.nranks = nranks};

    for (int r = 1; r < nranks; r++) {
        if (pipe(pipes[r]) != 0) {
            perror("pipe");
            exit(2);
        }
    }
    fflush(NULL);
    for (int r = 0; r < nranks; r++) {
        pids[r] = fork();
        if (pids[r] == 0) {
            char text[16];
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            alarm((unsigned)seconds * XT_SLOWDOWN);
            snprintf(text, sizeof(text), "%d", r);
            setenv("XCCL_SIM_RANK", text, 1);
            snprintf(text, sizeof(text), "%d", nranks);
            setenv("XCCL_SIM_SIZE", text, 1);
            become(&self, r, pipes);
            exit(body(&self));
        }
    }
    for (int r = 1; r < nranks; r++) {
        close(pipes[r][0]);
        close(pipes[r][1]);
    }
    return collect(pids, nranks);
}

static void move_all(int fd, char *bytes, size_t len, bool out)
{
    while (len > 0) {
        ssize_t n = out ? write(fd, bytes, len) : read(fd, bytes, len);
        if (n <= 0) {
            fprintf(stderr, "rank 0 and another rank lost each other\n");
            exit(3);
        }
        bytes += n;
        len -= (size_t)n;
    }
}

void xt_share(const struct xt_rank *self, void *bytes, size_t len)
{
    if (self->rank != 0) {
        move_all(self->read_fd, bytes, len, false);
        return;
    }
    for (int r = 1; r < self->nranks; r++) {
        move_all(self->write_fds[r], bytes, len, true);
    }
}

static void need(xcclResult_t rc, const char *what)
{
    if (rc != xcclSuccess) {
        fprintf(stderr, "%s: %s: %s\n", what, xcclGetErrorString(rc), xcclGetLastError(NULL));
        exit(3);
    }
}

xcclComm_t xt_comm(const struct xt_rank *self)
{
    xcclUniqueId id;
    xcclComm_t   comm = NULL;

    if (self->rank == 0) {
        need(xcclGetUniqueId(&id), "xcclGetUniqueId");
    }
    xt_share(self, &id, sizeof(id));
    need(xcclCommInitRank(&comm, self->nranks, id, self->rank), "xcclCommInitRank");
    return comm;
}
