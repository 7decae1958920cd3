/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * XCCL_SIM_MPS: kernels of several processes run on a device at the same time, as long as there is
 * room for their blocks. A kernel whose blocks find none waits until others end, as on a device
 * that is full: kernels that wait for it in turn then wait for ever.
 *
 * What each process has on the device is in a file of the folder, which all of them map.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "core/core.h"

enum { MOST_PROCESSES = 64 };

struct tenant {
    int      pid; /* 0: nobody */
    unsigned blocks[XS_MAX_DEVICES];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct tenant  *all; /* of all processes, under the file's lock */
static struct tenant  *mine;
static int             file = -1;

static void give_up(const char *what)
{
    fprintf(stderr, "simulated accelerator: XCCL_SIM_MPS=%s: %s: %s\n", xs_config()->mps, what,
            strerror(errno));
    abort();
}

static void open_file(void)
{
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/places", xs_config()->mps);
    file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if ((file < 0) || (ftruncate(file, MOST_PROCESSES * sizeof(*all)) != 0)) {
        give_up("no file in this folder");
    }
    all = mmap(NULL, MOST_PROCESSES * sizeof(*all), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (all == MAP_FAILED) {
        give_up("mmap");
    }
}

/* With the file's lock. Who was killed has nothing on the device any more. */
static unsigned blocks_on(int device)
{
    unsigned sum = 0;

    for (int i = 0; i < MOST_PROCESSES; i++) {
        if ((all[i].pid != 0) && (kill(all[i].pid, 0) != 0) && (errno == ESRCH)) {
            memset(&all[i], 0, sizeof(all[i]));
        }
        sum += all[i].blocks[device];
        if ((mine == NULL) && (all[i].pid == 0)) {
            mine = &all[i];
            mine->pid = getpid();
        }
    }
    return sum;
}

static void begin(void)
{
    pthread_mutex_lock(&lock);
    if (all == NULL) {
        open_file();
    }
    while (flock(file, LOCK_EX) != 0) {
        if (errno != EINTR) {
            give_up("flock");
        }
    }
}

static void end(void)
{
    flock(file, LOCK_UN);
    pthread_mutex_unlock(&lock);
}

void xs_places_take(int device, unsigned blocks)
{
    const struct timespec nap = {0, 20000};
    bool                  taken = (xs_config()->mps == NULL);

    while (!taken) {
        begin();
        taken = (blocks_on(device) + blocks <= XS_PLACES) && (mine != NULL);
        if (taken) {
            mine->blocks[device] += blocks;
        }
        end();
        if (!taken) {
            nanosleep(&nap, NULL);
        }
    }
}

void xs_places_give(int device, unsigned blocks)
{
    if (xs_config()->mps != NULL) {
        begin();
        mine->blocks[device] -= blocks;
        end();
    }
}
