/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines on stderr, in the shape of the vendors' own: host:pid:tid [rank] SIM WARN text. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/core.h"

static enum xs_level threshold = XS_LOG_NONE;

/* Silent unless asked, as the vendors' libraries are; their own switch works too. */
__attribute__((constructor)) static void read_level(void)
{
    const char *text = getenv("XCCL_SIM_LOG");

    if (text == NULL) {
        text = getenv("NCCL_DEBUG");
    }
    if (text == NULL) {
        return;
    }
    if (strcasecmp(text, "warn") == 0) {
        threshold = XS_LOG_WARN;
    } else if ((strcasecmp(text, "info") == 0) || (strcasecmp(text, "trace") == 0)) {
        threshold = XS_LOG_INFO;
    }
}

void xs_log(enum xs_level level, const char *fmt, ...)
{
    char    text[1024];
    char    host[64] = "?";
    va_list args;

    if (level > threshold) {
        return;
    }
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    gethostname(host, sizeof(host) - 1);
    fprintf(stderr, "%s:%d:%ld [%d] SIM %s %s\n", host, (int)getpid(), syscall(SYS_gettid),
            xs_config()->rank, (level == XS_LOG_WARN) ? "WARN" : "INFO", text);
}
