/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that xccl writes: logs, profiles, records of operations. */
#ifndef XC_BASE_FILES_H
#define XC_BASE_FILES_H

#include <stdbool.h>

#include "base/log.h"

/*
 * Open a file for writing, at its end or anew; -1 with errno. A new one is its owner's alone. A new
 * one in place of an old one is no file that somebody else prepared: a link is replaced, not
 * followed. Nothing is waited for, as a FIFO without a reader would have it. For signal handlers,
 * too.
 */
XC_SHARED int xc_file_open(const char *path, bool append);

#endif
