/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/files.h"

#include <fcntl.h>
#include <unistd.h>

int xc_file_open(const char *path, bool append)
{
    int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;

    if (!append) {
        unlink(path); /* where it cannot go, the next line says why */
    }
    int fd = open(path, flags | (append ? O_APPEND : O_EXCL | O_NOFOLLOW), 0600);
    if (fd >= 0) {
        fcntl(fd, F_SETFL, append ? O_APPEND : 0); /* from here on a full pipe is waited for */
    }
    return fd;
}
