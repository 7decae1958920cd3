/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which path serves a call. Pure functions: no MPI, no device, no environment.
 *
 * A table is text: `coll:bytes:mem:ranks:path` tokens joined by '#'; the first that matches wins.
 *   coll   allreduce, bcast, ... or * for all
 *   bytes  lo-hi, from lo and below hi; sizes take k, m, g (powers of 1024) and inf; or *
 *   mem    cuda, rocm, cuda_managed, rocm_managed, or *
 *   ranks  lo-hi, both included, or one number, or *
 *   path   mpi, ccl, direct
 * What "bytes" counts: allreduce, bcast, reduce: the vector; reduce_scatter(_block): what a rank
 * receives (on average); allgather(v), gather(v), scatter(v): a rank's part (on average);
 * alltoall(v): what goes from one rank to another (on average); all others: the vector, or a rank's
 * part.
 */
#ifndef XM_DECIDE_DECIDE_H
#define XM_DECIDE_DECIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <xccl/xccl.h>

#include "base/collectives.h"

enum xm_mem { XM_MEM_CUDA, XM_MEM_ROCM, XM_MEM_CUDA_MANAGED, XM_MEM_ROCM_MANAGED, XM_NUM_MEMS };

enum xm_path_id { XM_PATH_MPI, XM_PATH_CCL, XM_PATH_DIRECT, XM_NUM_PATHS };

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
    const char     *reason; /* static or the table's text: valid as long as the table */
};

struct xm_table; /* immutable once parsed */

/*
 * Parse text. On failure the detail names the table, the token and its column (from 1), and what is
 * allowed there.
 * source: what to call the table in messages ("XCCL_TUNE").
 */
xcclResult_t xm_table_parse(const char *source, const char *text, struct xm_table **table_p);
void         xm_table_free(struct xm_table *table);

/* The table in force where nothing better is known; its first line says who measured it. */
const char *xm_table_builtin(void);

/*
 * The path of a call: the first token that matches in tune, then in table (either may be NULL),
 * whose path is in available (a bit per path). MPI if none does.
 */
struct xm_choice xm_decide(const struct xm_table *tune, const struct xm_table *table,
                           unsigned available, const struct xm_facts *facts);

/* 0 for no bytes, else 1 + the power of two that the size begins at: for "logged once" masks. */
int xm_size_class(uint64_t bytes);
/* "1 KiB to 2 KiB": the sizes of a class. */
void xm_size_class_text(int size_class, char *buf, size_t len);

#endif
