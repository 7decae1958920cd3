/* SPDX-License-Identifier: BSD-3-Clause */
/* Every XCCL_* variable: one row of params.c each, read once, checked strictly. */
#ifndef XC_BASE_PARAMS_H
#define XC_BASE_PARAMS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/log.h"

/* In the order of XCCL_CCL's values; those between auto and none are rows of vendor/rows.c. */
enum xc_ccl {
    XC_CCL_AUTO,
    XC_CCL_NCCL,
    XC_CCL_RCCL,
    XC_CCL_MSCCL,
    XC_CCL_MSCCLPP,
    XC_CCL_ONECCL,
    XC_CCL_HCCL,
    XC_CCL_NONE,
};
enum xc_tristate { XC_AUTO, XC_YES, XC_NO };
enum xc_route { XC_ROUTE_XCCL, XC_ROUTE_MPI, XC_ROUTE_UCC, XC_ROUTE_UCC_CCL };

enum xc_memory { XC_MEMORY_SAME, XC_MEMORY_MIXED };
enum xc_create { XC_CREATE_AUTO, XC_CREATE_FIRST };
enum xc_launching { XC_LAUNCH_NOW, XC_LAUNCH_MET };
enum xc_p2p { XC_P2P_AUTO, XC_P2P_STAGED, XC_P2P_MPI };
enum xc_threads { XC_THREADS_PROGRAM, XC_THREADS_MULTIPLE };
enum xc_p2p_push { XC_P2P_PUSH_AUTO, XC_P2P_PUSH_ON, XC_P2P_PUSH_OFF };

enum xc_ccl_native { XC_CCL_NATIVE_AUTO, XC_CCL_NATIVE_OFF };
enum xc_windows { XC_WINDOWS_REFUSE, XC_WINDOWS_SEPARATE };
enum xc_gpu_query { XC_GPU_QUERY_AUTO, XC_GPU_QUERY_MPI };

enum xc_ranges { XC_RANGES_AUTO, XC_RANGES_OFF };

enum xc_direct { XC_DIRECT_AUTO, XC_DIRECT_ON, XC_DIRECT_OFF };

struct xc_params {
    int         ccl;            /* enum xc_ccl */
    const char *ccl_library;    /* path or NULL */
    int         ccl_native;     /* enum xc_ccl_native */
    int         route;          /* enum xc_route */
    const char *tune;           /* text of XCCL_TUNE or NULL */
    const char *table;          /* XCCL_TABLE or NULL */
    const char *site;           /* XCCL_SITE or NULL */
    int         log;            /* enum xc_log_level */
    const char *log_file;       /* NULL: stderr; %h host, %p pid */
    int         check;          /* bool */
    int         memory;         /* enum xc_memory */
    int         comm_create;    /* enum xc_create */
    int         launch;         /* enum xc_launching */
    long        comm_pool;      /* idle vendor communicators kept */
    long        scratch;        /* MiB of device memory that one collective may take */
    long        staging;        /* MiB of pinned host memory that copies may take */
    long        timeout;        /* seconds; 0: never */
    int         profile;        /* bool */
    const char *profile_file;   /* what the profile is written to as JSON, or NULL; %h, %p */
    int         ranges;         /* enum xc_ranges */
    const char *dump_dir;       /* where the last operations are written, or NULL */
    int         p2p;            /* enum xc_p2p */
    int         p2p_push;       /* enum xc_p2p_push */
    long        rendezvous;     /* bytes; -1: auto */
    int         threads;        /* enum xc_threads */
    long        pipeline;       /* bytes; 0: off, -1: auto */
    long        pipeline_piece; /* bytes */
    int         windows;        /* enum xc_windows */
    int         gpu_query;      /* enum xc_gpu_query */
    int         direct;         /* enum xc_direct */
    long        direct_linger;  /* us; 0: off, -1: auto */
    long        direct_memory;  /* MiB */
    long        direct_copies;  /* bytes */
    long        direct_turns;   /* bytes */
    long        gdrcopy;        /* copies of a page until it is mapped; 0: never */
    int         mpi_gpu_aware;  /* enum xc_tristate */
    long        local_device;   /* the program is to use it; -1: nothing is said */
};

/*
 * Parameters in force. The first call reads the environment; a bad one keeps its default here, and
 * xc_params_error() tells. Never NULL, thread-safe.
 */
XC_SHARED const struct xc_params *xc_params(void);

/*
 * The first fault of the environment (a value that is not allowed) as a sentence that names the
 * variable and what is allowed, or NULL when all is well.
 */
XC_SHARED const char *xc_params_error(void);

/*
 * Names that begin with XCCL_ and belong to nobody, each with what was most likely meant, as a text
 * for a warning; NULL if there are none.
 */
const char *xc_params_unknown(void);
/* Warn of them, the first time that this is called in a process; here: not another rank does. */
XC_SHARED void xc_params_warn(bool here);

/* One row for listings (xccl-info -c, docs). */
struct xc_param_row {
    const char *name;     /* "XCCL_TIMEOUT" */
    const char *allowed;  /* "auto|yes|no", "seconds, 0 to 86400", "path", ... */
    const char *fallback; /* default as text */
    const char *meaning;  /* one sentence */
    const char *read_by;  /* "libxccl", "libxccl-mpi", "xccl-run", "simulation", ... */
};
const struct xc_param_row *xc_param_rows(size_t *count_p);

/* Value in force of row i as text; *from_env_p says whether the environment set it. */
const char *xc_param_value(size_t i, bool *from_env_p);

/* A number as in struct xc_params as a value of the variable: "8", or one of its words. */
XC_SHARED void xc_param_text(const char *name, long number, char *buf, size_t len);

#endif
