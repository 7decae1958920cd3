/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tuning tables: text, parsed once.
 *
 * Rows are `coll:bytes:mem:ranks:path`, one on a line or several joined by '#'; the first that
 * matches wins.
 *   coll   allreduce, bcast, ... or * for all
 *   bytes  lo-hi, from lo and below hi; sizes take k, m, g (powers of 1024) and inf; or *
 *   mem    cuda, rocm, cuda_managed, rocm_managed, hpu, or *
 *   ranks  lo-hi, both included, or one number, or *
 *   path   mpi, ccl, direct, staged
 * What "bytes" counts: allreduce, bcast, reduce: the vector; reduce_scatter(_block): what a rank
 * receives (on average); allgather(v), gather(v), scatter(v): a rank's part (on average);
 * alltoall(v): what goes from one rank to another (on average); all others: the vector, or a rank's
 * part.
 *
 * Blank lines, and lines that begin with '#' and a blank, say nothing. In a file, lines
 * `key = value` stand before the rows: who measured the table, and for which communicators it is
 * (head.c has the keys).
 */
#ifndef XM_DECIDE_TABLE_H
#define XM_DECIDE_TABLE_H

#include "base/setting.h"
#include "decide/decide.h"

#define XM_INF UINT64_MAX

struct xm_row {
    uint32_t        colls;                 /* a bit per enum xm_coll */
    uint32_t        mems;                  /* a bit per enum xm_mem */
    uint64_t        bytes_low, bytes_high; /* [low, high), XM_INF has no end */
    uint64_t        ranks_low, ranks_high; /* both included */
    enum xm_path_id path;
    int             line;
    char           *text; /* "XCCL_TUNE allreduce:0-64k:cuda:2-8:ccl" */
};

struct xm_range {
    uint64_t low, high; /* both included; XM_INF has no end */
};

enum xm_network { XM_NETWORK_ANY, XM_NETWORK_TCP, XM_NETWORK_FABRIC };
enum xm_awareness { XM_AWARENESS_ANY, XM_AWARENESS_STAGED, XM_AWARENESS_AWARE };

/* What the head of a file says; texts are "" where it says nothing. */
struct xm_head {
    char title[160];
    char measured[16]; /* "2026-11-22" or "nobody" */
    char where[256];
    char gpu_model[96], driver[64], library[64], mpi_library[128]; /* that it was measured with */
    char raw[512]; /* files with what was measured */
    /* It is asked where all of these hold. */
    char              gpu[512]; /* patterns of models, separated by commas */
    struct xm_range   ranks, nodes, per_node;
    char              ccl[16];
    struct xm_range   ccl_version; /* of xm_version_number() */
    enum xm_network   network;
    enum xm_awareness mpi;
};

struct xm_table {
    char          *source;
    struct xm_head head;
    size_t         count;
    struct xm_row *rows;
};

/*
 * Parse text. On failure the detail names the source, the line (where text has several), the column
 * (both from 1), the part that is wrong and what is allowed there; nothing is written.
 * source: what to call the table in messages ("XCCL_TUNE"). file: text has a head, in which
 * `measured` has to stand.
 */
xcclResult_t xm_table_parse(const char *source, const char *text, bool file,
                            struct xm_table **table_p);
void         xm_table_free(struct xm_table *table);

/* The rows in force where no table has a better one. */
const char *xm_table_builtin(void);

/*
 * Is the table asked on such a communicator? If not, why says which condition fails, and by what.
 */
bool xm_table_applies(const struct xm_table *table, const struct xm_setting *setting, char *why,
                      size_t len);

/* A number that orders versions: as xc_nccl_version_text() reads them. */
uint64_t xm_version_number(int version);

/* What a row says to a call. */
enum xm_verdict {
    XM_ROW_MATCHES,
    XM_ROW_OTHER_COLL,
    XM_ROW_OTHER_MEM,
    XM_ROW_OTHER_BYTES,
    XM_ROW_OTHER_RANKS,
    XM_ROW_NO_PATH, /* it matches, but its path is not available */
};
enum xm_verdict xm_row_verdict(const struct xm_row *row, unsigned available,
                               const struct xm_facts *facts);

#endif
