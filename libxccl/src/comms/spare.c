/* SPDX-License-Identifier: BSD-3-Clause */
#include "comms/spare.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int             kept = -1;  /* what the spare one is a duplicate of */
static int             spare = -1; /* -1: something is open in its place */
static int             spent = -1; /* that */

void xm_spare_keep(int fd)
{
    kept = fd;
    spare = fcntl(fd, F_DUPFD_CLOEXEC, fd);
}

int xm_spare_open(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC);

    if ((fd >= 0) || (errno != EMFILE)) {
        return fd;
    }
    pthread_mutex_lock(&lock);
    if (spare >= 0) {
        close(spare);
        fd = spent = open(path, flags | O_CLOEXEC);
        spare = (fd < 0) ? fcntl(kept, F_DUPFD_CLOEXEC, kept) : -1;
    }
    pthread_mutex_unlock(&lock);
    return fd;
}

/* In one step, so that the program does not get the number in between. */
void xm_spare_close(int fd)
{
    pthread_mutex_lock(&lock);
    if ((fd == spent) && (dup3(kept, fd, O_CLOEXEC) == fd)) {
        spare = fd;
        spent = -1;
    } else {
        close(fd);
    }
    pthread_mutex_unlock(&lock);
}
