/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes that were started beside one: by the same parent, or by shells of the same parent. */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "comms/relatives.h"

enum { CHILDREN = 3, MOST = 64 };

struct met {
    int n;
    int pids[MOST];
};

static void meet(void *arg, const char *pid)
{
    struct met *met = arg;

    if (met->n < MOST) {
        met->pids[met->n++] = atoi(pid);
    }
}

static bool has_met(const struct met *met, pid_t pid)
{
    bool found = false;

    for (int i = 0; i < met->n; i++) {
        found = found || (met->pids[i] == pid);
    }
    return found;
}

/* What a new child of this process meets; its own number is *pid_p. */
static void ask(int generations, struct met *met, pid_t *pid_p)
{
    int ends[2];

    memset(met, 0, sizeof(*met));
    CHECK(pipe(ends) == 0, "a pipe");
    *pid_p = fork();
    if (*pid_p == 0) {
        xm_relatives_each(generations, meet, met);
        ssize_t written = write(ends[1], met, sizeof(*met));
        _exit(written == (ssize_t)sizeof(*met) ? 0 : 1);
    }
    close(ends[1]);
    CHECK(read(ends[0], met, sizeof(*met)) == (ssize_t)sizeof(*met), "its answer");
    close(ends[0]);
    waitpid(*pid_p, NULL, 0);
}

/* A shell between, whose only child asks. */
static void ask_below(struct met *met)
{
    int ends[2];

    memset(met, 0, sizeof(*met));
    CHECK(pipe(ends) == 0, "a pipe");
    pid_t shell = fork();
    if (shell == 0) {
        pid_t own;
        ask(2, met, &own);
        ssize_t written = write(ends[1], met, sizeof(*met));
        _exit(written == (ssize_t)sizeof(*met) ? 0 : 1);
    }
    close(ends[1]);
    CHECK(read(ends[0], met, sizeof(*met)) == (ssize_t)sizeof(*met), "its answer");
    close(ends[0]);
    waitpid(shell, NULL, 0);
}

/* Waits until it is killed; with a child of its own that does, too: that one's number. */
static pid_t start(bool below)
{
    int   ends[2];
    pid_t last = 0;

    CHECK(pipe(ends) == 0, "a pipe");
    pid_t pid = fork();
    if (pid == 0) {
        last = below ? fork() : 0;
        if (last != 0) {
            ssize_t written = write(ends[1], &last, sizeof(last));
            (void)written;
        }
        close(ends[1]);
        pause();
        _exit(0);
    }
    close(ends[1]);
    if (below) {
        CHECK(read(ends[0], &last, sizeof(last)) == (ssize_t)sizeof(last), "a number");
    }
    close(ends[0]);
    return below ? last : pid;
}

int main(void)
{
    struct met met;
    pid_t      siblings[CHILDREN], cousins[CHILDREN], own;

    if (access("/proc/thread-self/children", R_OK) != 0) {
        fprintf(stderr, "this kernel does not list children: nothing is tried\n");
        return 77;
    }
    setpgid(0, 0);
    for (int i = 0; i < CHILDREN; i++) {
        siblings[i] = start(false);
        cousins[i] = start(true);
    }
    ask(1, &met, &own);
    CHECK(has_met(&met, own), "itself is among them");
    for (int i = 0; i < CHILDREN; i++) {
        CHECK(has_met(&met, siblings[i]), "sibling %d", i);
        CHECK(!has_met(&met, cousins[i]), "cousin %d is none", i);
    }
    ask_below(&met);
    for (int i = 0; i < CHILDREN; i++) {
        CHECK(has_met(&met, cousins[i]), "cousin %d", i);
        CHECK(!has_met(&met, siblings[i]), "sibling %d is of the generation before", i);
    }
    signal(SIGTERM, SIG_IGN);
    kill(0, SIGTERM);
    while (wait(NULL) > 0) {}
    return xt_done("relatives");
}
