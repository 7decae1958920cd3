/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A file descriptor that is kept for files of other processes, which are opened for a moment: the
 * program may have used up all that it may have.
 */
#ifndef XM_COMMS_SPARE_H
#define XM_COMMS_SPARE_H

/* Keep one: a duplicate of fd. Once. */
void xm_spare_keep(int fd);
/* As open(), with O_CLOEXEC. xm_spare_close() soon. */
int  xm_spare_open(const char *path, int flags);
void xm_spare_close(int fd);

#endif
