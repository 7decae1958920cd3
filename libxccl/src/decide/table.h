/* SPDX-License-Identifier: BSD-3-Clause */
/* A parsed tuning table; only decide/ looks inside. */
#ifndef XM_DECIDE_TABLE_H
#define XM_DECIDE_TABLE_H

#include "decide/decide.h"

#define XM_INF UINT64_MAX

struct xm_token {
    uint32_t        colls;                 /* a bit per enum xm_coll */
    uint32_t        mems;                  /* a bit per enum xm_mem */
    uint64_t        bytes_low, bytes_high; /* [low, high), XM_INF has no end */
    uint64_t        ranks_low, ranks_high; /* both included */
    enum xm_path_id path;
    char           *text; /* "XCCL_TUNE allreduce:0-64k:cuda:2-8:ccl" */
};

struct xm_table {
    size_t          count;
    struct xm_token tokens[];
};

#endif
