/* SPDX-License-Identifier: BSD-3-Clause */
#include "intercept/facts.h"

#include <string.h>

#include "base/log.h"
#include "base/params.h"

bool xm_coll_needs_agreement(enum xm_coll coll)
{
    return (coll == XM_ALLTOALLV) || (coll == XM_GATHERV) || (coll == XM_SCATTERV);
}

static bool is_reduction(enum xm_coll coll)
{
    return (coll == XM_ALLREDUCE) || (coll == XM_REDUCE) || (coll == XM_REDUCE_SCATTER) ||
           (coll == XM_REDUCE_SCATTER_BLOCK);
}

static enum xm_mem mem_of(const struct xc_device_ops *dev, enum xc_mem_kind kind)
{
    bool cuda = (strcmp(dev->name, "cuda") == 0);

    if (kind == XC_MEM_MANAGED) {
        return cuda ? XM_MEM_CUDA_MANAGED : XM_MEM_ROCM_MANAGED;
    }
    return cuda ? XM_MEM_CUDA : XM_MEM_ROCM;
}

/*
 * The side whose kind of memory decides: one that every rank has, so that no rank decides by a
 * buffer that means nothing to the others.
 */
static const struct xm_side *deciding_side(const struct xm_sides *sides)
{
    switch (sides->call->coll) {
    case XM_ALLGATHER:
    case XM_ALLGATHERV:
    case XM_ALLTOALL:
    case XM_ALLREDUCE:
        return &sides->recv;
    case XM_SCATTER:
        return sides->in_place ? &sides->send : &sides->recv;
    case XM_BCAST:
        return sides->send.used ? &sides->send : &sides->recv;
    default:
        return sides->in_place ? &sides->recv : &sides->send;
    }
}

/* As decide.h defines the bytes of each collective. */
static uint64_t bytes_of(const struct xm_sides *sides, const struct xm_side *decides, int size)
{
    uint64_t bytes = (uint64_t)decides->bytes;

    switch (sides->call->coll) {
    case XM_ALLREDUCE:
    case XM_BCAST:
    case XM_REDUCE:
        return bytes;
    case XM_GATHER:
    case XM_SCATTER:
        return sides->in_place ? bytes / (uint64_t)size : bytes;
    default:
        return bytes / (uint64_t)size;
    }
}

static int device_of(const struct xm_sides *sides, const struct xc_device_ops *dev)
{
    const struct xm_side *both[] = {deciding_side(sides), &sides->send, &sides->recv};
    int                   device = -1;

    for (int i = 0; i < 3; i++) {
        if (both[i]->used && (both[i]->mem.device >= 0)) {
            return both[i]->mem.device;
        }
    }
    if ((dev == NULL) || (dev->current(&device) != xcclSuccess)) {
        return -1;
    }
    return device;
}

/* One rank's part of an agreement; added up over the ranks. */
enum { ON_DEVICE, ON_ROCM, ON_MANAGED, ON_HOST, BYTES, NUM_TERMS };

/* Does either side lie in this kind of memory? */
static bool any_side_in(const struct xm_sides *sides, enum xc_mem_kind kind)
{
    return (sides->send.used && (sides->send.mem.kind == kind)) ||
           (sides->recv.used && (sides->recv.mem.kind == kind));
}

static bool touches_device(const struct xm_sides *sides)
{
    return any_side_in(sides, XC_MEM_DEVICE) || any_side_in(sides, XC_MEM_MANAGED);
}

static xcclResult_t agree(const struct xm_sides *sides, struct xm_comm *xm,
                          const struct xc_device_ops *dev, int64_t sum[NUM_TERMS])
{
    int64_t mine[NUM_TERMS] = {0};
    bool    device = touches_device(sides);

    mine[ON_DEVICE] = device;
    mine[ON_ROCM] = device && (mem_of(dev, XC_MEM_DEVICE) == XM_MEM_ROCM);
    mine[ON_MANAGED] = device && !any_side_in(sides, XC_MEM_DEVICE);
    mine[ON_HOST] = !device && (sides->send.used || sides->recv.used);
    /* Every byte is counted once, where it arrives or, at the root alone, where it leaves. */
    mine[BYTES] = (sides->call->coll == XM_SCATTERV) ? sides->send.bytes : sides->recv.bytes;
    if (xm_pmpi.Allreduce(mine, sum, NUM_TERMS, XM_HANDLE(MPI_INT64_T), XM_HANDLE(MPI_SUM),
                          xm->comm) != MPI_SUCCESS) {
        return xc_fail(xcclInternalError, "MPI_Allreduce failed while ranks agreed on a path");
    }
    return xcclSuccess;
}

static xcclResult_t agreed_facts(const struct xm_sides *sides, struct xm_comm *xm,
                                 struct xm_view *view)
{
    int64_t sum[NUM_TERMS];

    if (xm->inter || (xm->size == 1)) {
        /* Nobody to ask, or not to be asked: only what to stage is of interest. */
        view->on_device = touches_device(sides);
        view->facts.bytes = (uint64_t)(sides->send.bytes + sides->recv.bytes);
        return xcclSuccess;
    }
    if (!xm_comm_may_use_device(xm)) {
        return xcclSuccess;
    }
    xcclResult_t res = agree(sides, xm, view->dev, sum);
    if (res != xcclSuccess) {
        return res;
    }
    uint64_t parts = (uint64_t)xm->size;
    view->on_device = (sum[ON_DEVICE] > 0);
    if (sum[ON_MANAGED] == sum[ON_DEVICE]) {
        view->facts.mem = (sum[ON_ROCM] > 0) ? XM_MEM_ROCM_MANAGED : XM_MEM_CUDA_MANAGED;
    } else {
        view->facts.mem = (sum[ON_ROCM] > 0) ? XM_MEM_ROCM : XM_MEM_CUDA;
    }
    view->facts.bytes =
        (uint64_t)sum[BYTES] / ((sides->call->coll == XM_ALLTOALLV) ? parts * parts : parts);
    if ((sum[BYTES] > 0) && (view->facts.bytes == 0)) {
        view->facts.bytes = 1; /* little data is not no data */
    }
    if (view->on_device && (sum[ON_HOST] > 0)) {
        view->facts.obstacle = "some ranks pass host memory";
    }
    return xcclSuccess;
}

xcclResult_t xm_facts_of(const struct xm_sides *sides, struct xm_comm *xm, struct xm_view *view_p)
{
    const struct xm_call *call = sides->call;
    const struct xm_side *decides = deciding_side(sides);
    xcclResult_t          res = xcclSuccess;

    memset(view_p, 0, sizeof(*view_p));
    view_p->facts.coll = call->coll;
    view_p->facts.nranks = xm->size;
    view_p->dev = xc_device_active();
    if (xm_coll_needs_agreement(call->coll)) {
        res = agreed_facts(sides, xm, view_p);
    } else {
        view_p->on_device = decides->used && (decides->mem.kind != XC_MEM_HOST);
        view_p->facts.bytes = bytes_of(sides, decides, xm->size);
        if (decides->used && (view_p->facts.bytes == 0)) {
            view_p->facts.bytes = 1;
        }
    }
    if ((res != xcclSuccess) || !view_p->on_device) {
        return res;
    }
    view_p->device = device_of(sides, view_p->dev);
    if (!xm_coll_needs_agreement(call->coll)) {
        view_p->facts.mem = mem_of(view_p->dev, decides->mem.kind);
    }
    if (xm->inter) {
        view_p->facts.obstacle = "intercommunicator";
    } else if (view_p->facts.bytes == 0) {
        view_p->facts.obstacle = "no data";
    } else if (xc_params()->route != XC_ROUTE_XCCL) {
        view_p->facts.obstacle = "XCCL_ROUTE is not xccl";
    } else if (xc_params()->ccl == XC_CCL_NONE) {
        view_p->facts.obstacle = "XCCL_CCL=none";
    } else if (is_reduction(call->coll) && (view_p->facts.obstacle == NULL)) {
        view_p->facts.obstacle = xm_reduction_of(call->sendtype, call->op, &view_p->reduction);
    }
    return xcclSuccess;
}
