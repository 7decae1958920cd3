/* SPDX-License-Identifier: BSD-3-Clause */
/* What stands behind an xcclComm_t, and the checks that all calls on one begin with. */
#ifndef XC_API_COMM_H
#define XC_API_COMM_H

#include <stdatomic.h>
#include <stdbool.h>

#include "backends/backend.h"
#include <xccl/xccl.h>

struct xcclComm {
    atomic_uint                  magic;
    int                          rank;
    atomic_int                   nranks; /* 0: not known yet (a split that has not ended) */
    int                          device; /* current where it was made; -1: none was */
    const struct xc_backend_ops *ops;
    const struct xc_library     *lib;
    void                        *vendor; /* NULL: not made yet (a group or split has not ended) */
    atomic_uint                  users;  /* itself, and what was split from it */
    xcclComm_t                   parent; /* that it was split from, or NULL */
    atomic_bool                  splitting; /* that may not have ended: the parent knows */
};

/* Is comm a live communicator whose vendor's part is there and whose size is known? */
xcclResult_t xc_comm_check(xcclComm_t comm, const char *call);

/* The longer way of xc_comm_check(), for whoever has seen that something is not as usual. */
xcclResult_t xc_comm_check_slowly(xcclComm_t comm, const char *call);

#define XC_COMM_LIVE 0x7863636cU
#define XC_COMM_DEAD 0xdeadc033U

/* One comparison each for what is nearly always so. rank is there once nranks is. */
static inline bool xc_comm_is_usual(xcclComm_t comm)
{
    return (comm != NULL) &&
           (atomic_load_explicit(&comm->magic, memory_order_relaxed) == XC_COMM_LIVE) &&
           (atomic_load_explicit(&comm->nranks, memory_order_acquire) > 0) &&
           (__atomic_load_n(&comm->vendor, __ATOMIC_RELAXED) != NULL);
}

#endif
