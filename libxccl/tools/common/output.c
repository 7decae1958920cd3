/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/output.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *tool_name;

static void check(void)
{
    errno = 0; /* an earlier write may have failed, and its reason is gone then */
    if ((fflush(stdout) != 0) || ferror(stdout)) {
        fprintf(stderr, "%s: the output: %s\n", tool_name,
                (errno != 0) ? strerror(errno) : "not all of it could be written");
        _exit(1);
    }
}

void output_watch(const char *tool)
{
    tool_name = tool;
    (void)atexit(check);
}
