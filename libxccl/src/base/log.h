/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages to stderr or XCCL_LOG_FILE, and the per-thread detail of the last failure. */
#ifndef XC_BASE_LOG_H
#define XC_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>

#include <xccl/xccl.h>

/*
 * Functions that the interposer's family libraries share with libxccl.so, so that there is one set
 * of parameters, one log and one device state in a process. Not public: their symbol version says
 * so (libxccl.map), and they change without notice.
 */
#ifndef XC_SHARED /* nothing in what the dispatcher has of its own */
#define XC_SHARED __attribute__((visibility("default")))
#endif

enum xc_log_level { XC_LOG_NONE, XC_LOG_ERROR, XC_LOG_WARN, XC_LOG_INFO, XC_LOG_TRACE };

/* Level in force; read through xc_log_enabled() only. */
XC_SHARED extern int xc_log_threshold;

static inline bool xc_log_enabled(enum xc_log_level level)
{
    return (int)level <= __atomic_load_n(&xc_log_threshold, __ATOMIC_RELAXED);
}

/* Set level and file from the parameters; called once, by xc_params_load(). */
void xc_log_setup(enum xc_log_level level, const char *file);

/*
 * Before the parameters are read, in a tool with a copy of this code: libxccl.so in the same
 * process warns of a file that cannot be opened.
 */
void xc_log_leave_warning(void);

/* Rank shown in front of each line; -1 (the default) shows none. */
XC_SHARED void xc_log_set_rank(int rank);

/* Print one line. The newline is added. */
XC_SHARED void xc_log(enum xc_log_level level, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Print one line as it is, whatever the level: what the user has asked for. */
XC_SHARED void xc_log_line(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The name of a file with %h for the host's name, %p for the process's number. */
XC_SHARED void xc_expand_file_name(const char *pattern, char *out, size_t len);

#define xc_error(...) xc_log(XC_LOG_ERROR, __VA_ARGS__)
#define xc_warn(...) xc_log(XC_LOG_WARN, __VA_ARGS__)
#define xc_info(...)                                                                               \
    do {                                                                                           \
        if (xc_log_enabled(XC_LOG_INFO)) {                                                         \
            xc_log(XC_LOG_INFO, __VA_ARGS__);                                                      \
        }                                                                                          \
    } while (0)
#define xc_trace(...)                                                                              \
    do {                                                                                           \
        if (xc_log_enabled(XC_LOG_TRACE)) {                                                        \
            xc_log(XC_LOG_TRACE, __VA_ARGS__);                                                     \
        }                                                                                          \
    } while (0)

/*
 * The way every failure begins: keep "cause; remedy" as the calling thread's last-error detail, log
 * it at level info, and return the code. Callers above only pass the code on. It is the caller
 * at the top (a tool, the interposer's one warning) that shows the detail to a person.
 */
XC_SHARED xcclResult_t xc_fail(xcclResult_t code, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Detail of the calling thread's last failure, "" if none; valid until its next failure. */
XC_SHARED const char *xc_last_detail(void);

/* The detail is a copy of what xc_last_detail() gave before: what failed since was made good. */
void xc_restore_detail(const char *text);

#endif
