/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that xccl writes: logs, profiles, records of operations. */
#ifndef XC_BASE_FILES_H
#define XC_BASE_FILES_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/log.h"

/*
 * Open a file for writing, at its end or anew; -1 with errno. A new one is its owner's alone. A new
 * one in place of an old one is no file that somebody else prepared: a link is replaced, not
 * followed. Nothing is waited for, as a FIFO without a reader would have it. For signal handlers,
 * too.
 */
XC_SHARED int xc_file_open(const char *path, bool append);

/*
 * ftruncate() of shared memory to so many bytes. Beyond the limit of the process (ulimit -f) that
 * one would end it by SIGXFSZ.
 */
static inline int xc_file_lengthen(int fd, off_t bytes)
{
    struct rlimit limit;

    if ((getrlimit(RLIMIT_FSIZE, &limit) == 0) && ((rlim_t)bytes > limit.rlim_cur)) {
        errno = EFBIG;
        return -1;
    }
    return ftruncate(fd, bytes);
}

/*
 * The same file by a number that the program does not come upon: a program may have closed its
 * standard ones, and what gets their numbers gets what it prints. fd may be -1.
 */
static inline int xc_file_aside(int fd)
{
    enum { ASIDE = 64, BEHIND_STANDARD = 3 };
    int moved = -1;

    if ((fd >= 0) && (fd < ASIDE)) {
        moved = fcntl(fd, F_DUPFD_CLOEXEC, ASIDE);
    }
    if ((moved < 0) && (fd >= 0) && (fd < BEHIND_STANDARD)) { /* it may not have so many */
        moved = fcntl(fd, F_DUPFD_CLOEXEC, BEHIND_STANDARD);
    }
    if (moved < 0) {
        return fd;
    }
    close(fd);
    return moved;
}

#endif
