/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the ranks of a communicator have in common: agreed on once, and then equal on all of them.
 * The tuning tables that are asked are chosen by it.
 */
#ifndef XC_BASE_SETTING_H
#define XC_BASE_SETTING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"

struct xm_setting {
    int  nranks;
    int  nodes;                         /* 0: not agreed on */
    int  per_node_least, per_node_most; /* ranks on a node */
    char gpu[96];                       /* model of every rank's device; "": they differ */
    char ccl[16];                       /* "nccl", "" if no rank may use one */
    int  ccl_version;                   /* as the library says it: 22803 */
    bool fabric;     /* has the vendor's library a network other than TCP on every rank? */
    bool gpu_aware;  /* does every rank's MPI take device memory? */
    bool one_tables; /* have all ranks read the same tables? */
};

/*
 * Fill in the nodes of nranks ranks, and the least and the largest number of them on one. hosts: a
 * number of each rank's node; they are sorted.
 */
XC_SHARED void xc_setting_count_nodes(struct xm_setting *setting, uint64_t *hosts);

#endif
