/* SPDX-License-Identifier: BSD-3-Clause */
/* xccl-info: facts are collected once, then printed as text or as JSON. */
#ifndef XCCL_INFO_INFO_H
#define XCCL_INFO_INFO_H

#include <stdbool.h>
#include <stddef.h>

#include "backends/backend.h"
#include "base/params.h"
#include "tables/tables.h"
#include "vendor/vendor.h"

enum { INFO_MAX_FAMILIES = 3, INFO_MAX_RUNTIMES = 3, INFO_MAX_DEVICES = 64, INFO_MAX_SIMS = 8 };

/* An MPI family: what was built for it. */
struct info_mpi {
    char family[16];
    char built_with[32];               /* version of the mpi.h that it was built with */
    char interposer[1100], perf[1100]; /* "" where missing */
};

struct info_device {
    char name[128], bus_id[32], uuid[40];
};

struct info_runtime {
    const char        *name;                    /* "cuda" */
    char               library[64], path[1024]; /* "" if none was found */
    bool               started;
    char               why[512]; /* why it could not be started */
    int                count;
    struct info_device devices[INFO_MAX_DEVICES];
    char               kernels[1100], kernels_why[256]; /* the plugin, or why there is none */
};

/* A vendor library: found, or why not. */
struct info_ccl {
    const struct xc_vendor_row *row;
    bool                        found;
    char                        path[1024], found_by[64], version_text[16], why[1024];
    int                         version;
};

struct info {
    char                prefix[1024], libxccl[1100], preload[1100]; /* "" where missing */
    char                sim[INFO_MAX_SIMS][1100];
    int                 nmpi;
    struct info_mpi     mpi[INFO_MAX_FAMILIES];
    struct info_runtime runtimes[INFO_MAX_RUNTIMES];
    size_t              nccls;
    struct info_ccl     ccls[XC_NUM_ROWS];
    /* The one that this environment selects; NULL with the reason. */
    const struct xc_backend_ops *backend;
    const struct xc_library     *library;
    char                         backend_why[1024];
    const char                  *tune; /* XCCL_TUNE or NULL */
    const struct xm_tables      *tables;
    char                         fault[1024];   /* of the configuration, "" if none */
    char                         unknown[1024]; /* variables that nobody reads, "" if none */
    char missing[2048]; /* parts, and what variables name, that are not there; "" if none */
};

/* install.c: the flavours of the simulation; NULL-terminated. */
extern const char *const info_flavours[];

/* collect.c; with_devices starts the device runtimes, with_ccl opens vendor libraries. */
void info_collect(struct info *info, bool with_ccl, bool with_devices);
/* install.c */
void info_collect_install(struct info *info);
/* What the direct path has on a runtime, once the installation is known. */
void info_find_kernels(const struct info *info, struct info_runtime *runtime);
/* missing.c; after the library has been looked for, if it is */
void info_find_missing(struct info *info);
/* short.c */
void info_print_short(const struct info *info, bool with_devices);
/* Why info->library is NULL, in one sentence. */
const char *info_why_no_library(const struct info *info);
/* text.c */
void info_print_long(const struct info *info, bool with_devices);
void info_print_config(void);
void info_print_link(const struct info *info);
/* json.c */
void info_print_json(const struct info *info, bool with_devices);

/* Does this library have the type or operation, as far as its version tells? */
bool info_ccl_has_type(const struct info_ccl *ccl, int type);
bool info_ccl_has_op(const struct info_ccl *ccl, int op);

#endif
