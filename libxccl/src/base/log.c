/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/log.h"

#include "base/files.h"
#include "base/launch.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int xc_log_threshold = XC_LOG_WARN;

static FILE           *log_stream; /* NULL: stderr */
static int             log_rank = -1;
static bool            others_warn;
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;

static __thread char last_detail[1024];

static const char *const level_names[] = {"", "error", "warning", "info", "trace"};

void xc_expand_file_name(const char *pattern, char *out, size_t len)
{
    size_t n = 0;

    for (const char *p = pattern; (*p != '\0') && (n + 1 < len); p++) {
        if ((p[0] == '%') && (p[1] == 'p')) {
            n += (size_t)snprintf(out + n, len - n, "%ld", (long)getpid());
            p++;
        } else if ((p[0] == '%') && (p[1] == 'h')) {
            char host[256] = "";
            gethostname(host, sizeof(host) - 1);
            n += (size_t)snprintf(out + n, len - n, "%s", host);
            p++;
        } else {
            out[n++] = *p;
        }
        if (n >= len) {
            n = len - 1;
        }
    }
    out[n] = '\0';
}

void xc_log_leave_warning(void)
{
    others_warn = true;
}

void xc_log_setup(enum xc_log_level level, const char *file)
{
    char path[PATH_MAX];

    __atomic_store_n(&xc_log_threshold, (int)level, __ATOMIC_RELAXED);
    if (file == NULL) {
        return;
    }
    xc_expand_file_name(file, path, sizeof(path));
    int   fd = xc_file_aside(xc_file_open(path, true));
    FILE *stream = (fd >= 0) ? fdopen(fd, "a") : NULL;
    if (stream == NULL) {
        const char *cause = strerror(errno);
        if (fd >= 0) {
            close(fd);
        }
        if (!others_warn && xc_first_of_node()) {
            xc_warn("XCCL_LOG_FILE: cannot open %.900s (%s); messages go to stderr", path, cause);
        }
        return;
    }
    setvbuf(stream, NULL, _IOLBF, 0);
    pthread_mutex_lock(&log_lock);
    log_stream = stream; /* kept to the end of the process: others may be writing */
    pthread_mutex_unlock(&log_lock);
}

void xc_log_set_rank(int rank)
{
    log_rank = rank;
}

/*
 * Where a pipe is full, a signal ends the write; fwrite() would give up, and the line be lost. A
 * stream of the program's own may have no file.
 */
static bool write_line(FILE *stream, const char *line, int n)
{
    int fd = fileno(stream);

    if (fd < 0) {
        return (fwrite(line, 1, (size_t)n, stream) == (size_t)n) && (fflush(stream) == 0);
    }
    fflush(stream); /* what the program has left in it */
    while (n > 0) {
        ssize_t written = write(fd, line, (size_t)n);
        if (written > 0) {
            line += written;
            n -= (int)written;
        } else if ((written == 0) || (errno != EINTR)) {
            return false;
        }
    }
    return true;
}

/* As where the disk is full: an error is not to be lost, and each message would try again. */
static void give_up_file(void)
{
    const char *cause = strerror(errno);

    log_stream = NULL;
    if (!others_warn && xc_first_of_node()) {
        fprintf(stderr,
                "xccl warning: XCCL_LOG_FILE: cannot be written (%s); messages go to stderr\n",
                cause);
    }
}

/* One write a line, so that the lines of many ranks on one terminal do not mix. */
static void put(const char *line, int n)
{
    pthread_mutex_lock(&log_lock);
    if ((log_stream != NULL) && !write_line(log_stream, line, n)) {
        give_up_file();
    }
    if (log_stream == NULL) {
        (void)write_line(stderr, line, n);
    }
    pthread_mutex_unlock(&log_lock);
}

static void emit(enum xc_log_level level, const char *text)
{
    char line[1400];
    int  n;

    if (log_rank >= 0) {
        n = snprintf(line, sizeof(line), "xccl[%d] %s: %s\n", log_rank, level_names[level], text);
    } else {
        n = snprintf(line, sizeof(line), "xccl %s: %s\n", level_names[level], text);
    }
    if (n >= (int)sizeof(line)) {
        n = (int)sizeof(line) - 1;
        line[n - 1] = '\n';
    }
    put(line, n);
}

void xc_log_line(const char *fmt, ...)
{
    char    line[1400];
    va_list ap;

    va_start(ap, fmt);
    int n = vsnprintf(line, sizeof(line) - 1, fmt, ap);
    va_end(ap);
    n = (n > (int)sizeof(line) - 2) ? (int)sizeof(line) - 2 : n;
    while ((n > 0) && (line[n - 1] == ' ')) {
        n--; /* of a table's last column */
    }
    line[n] = '\n';
    put(line, n + 1);
}

void xc_log(enum xc_log_level level, const char *fmt, ...)
{
    char    text[1200];
    va_list ap;

    if ((level == XC_LOG_NONE) || !xc_log_enabled(level)) {
        return;
    }
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    emit(level, text);
}

xcclResult_t xc_fail(xcclResult_t code, const char *fmt, ...)
{
    /* Through a second buffer: fmt's arguments may point into the detail kept so far. */
    char    text[sizeof(last_detail)];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    memcpy(last_detail, text, sizeof(last_detail));
    xc_info("%s", last_detail);
    return code;
}

void xc_restore_detail(const char *text)
{
    snprintf(last_detail, sizeof(last_detail), "%s", text);
}

const char *xc_last_detail(void)
{
    return last_detail;
}
