/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which path serves a call. Pure functions: no MPI, no device, no environment, no file.
 *
 * Tables (table.h) are text. Those whose conditions hold for a communicator are made into rules
 * once for its number of ranks; a call looks at the few rules of its collective.
 */
#ifndef XM_DECIDE_DECIDE_H
#define XM_DECIDE_DECIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <xccl/xccl.h>

#include "base/collectives.h"

enum xm_mem {
    XM_MEM_CUDA,
    XM_MEM_ROCM,
    XM_MEM_CUDA_MANAGED,
    XM_MEM_ROCM_MANAGED,
    XM_MEM_HPU,
    XM_NUM_MEMS
};

/* STAGED: MPI on copies in host memory, also where it takes device memory; as MPI where it does
 * not. */
enum xm_path_id { XM_PATH_MPI, XM_PATH_CCL, XM_PATH_DIRECT, XM_PATH_STAGED, XM_NUM_PATHS };

const char *xm_mem_name(enum xm_mem mem);
const char *xm_path_name(enum xm_path_id path);

/* What is known of a call, the same on every rank of its communicator. */
struct xm_facts {
    enum xm_coll coll;
    enum xm_mem  mem;
    uint64_t     bytes;
    int          nranks;
    const char  *obstacle; /* why only MPI can serve it ("user-defined operation"), or NULL */
};

struct xm_choice {
    enum xm_path_id path;
    const char     *reason; /* static or a row's text: valid as long as its table */
    bool            by_row; /* a row says so */
};

struct xm_table;
struct xm_rules; /* immutable */

/*
 * The rows of these tables that can match a communicator of nranks, in their order. The tables have
 * to live as long.
 */
xcclResult_t xm_rules_make(const struct xm_table *const *tables, size_t count, int nranks,
                           struct xm_rules **rules_p);
void         xm_rules_free(struct xm_rules *rules);

/* The first rule that matches and whose path is in available (a bit per path); MPI if none does. */
struct xm_choice xm_decide(const struct xm_rules *rules, unsigned available,
                           const struct xm_facts *facts);

/* Is it that path whatever the bytes, but none? */
bool xm_decides_always(const struct xm_rules *rules, unsigned available,
                       const struct xm_facts *facts, enum xm_path_id path);

/* 0 for no bytes, else 1 + the power of two that the size begins at: for "logged once" masks. */
int xm_size_class(uint64_t bytes);
/* "1 KiB to 2 KiB": the sizes of a class. */
void xm_size_class_text(int size_class, char *buf, size_t len);

#endif
