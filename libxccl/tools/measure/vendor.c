/* SPDX-License-Identifier: BSD-3-Clause */
/* The vendor's library in the place of MPI: what a program gets that calls NCCL or RCCL itself. */
#include <stdlib.h>
#include <string.h>

#include "backends/backend.h"
#include "measure/measure.h"

struct perf_vendor {
    const struct xc_backend_ops *ops;
    void                        *comm;
    xcclDataType_t               type;
    xcclRedOp_t                  op;
    size_t                      *counts; /* sendcounts, sdispls, recvcounts, rdispls: nranks each */
};

/* None of the libraries has scan and exscan. */
enum { NUM_COLLS = PERF_SCAN };

static const enum xc_coll colls[NUM_COLLS] = {
    [PERF_ALLREDUCE] = XC_ALLREDUCE,
    [PERF_BCAST] = XC_BROADCAST,
    [PERF_REDUCE] = XC_REDUCE,
    [PERF_REDUCE_SCATTER] = XC_REDUCE_SCATTER,
    [PERF_REDUCE_SCATTER_BLOCK] = XC_REDUCE_SCATTER,
    [PERF_ALLGATHER] = XC_ALLGATHER,
    [PERF_ALLGATHERV] = XC_ALLGATHERV,
    [PERF_ALLTOALL] = XC_ALLTOALL,
    [PERF_ALLTOALLV] = XC_ALLTOALLV,
    [PERF_GATHER] = XC_GATHER,
    [PERF_GATHERV] = XC_GATHERV,
    [PERF_SCATTER] = XC_SCATTER,
    [PERF_SCATTERV] = XC_SCATTERV,
};

static bool find_type(const struct perf_run *run, struct perf_vendor *v)
{
    static const struct {
        const char    *name;
        xcclDataType_t type;
    } types[] = {
        {"int8", xcclInt8},     {"uint8", xcclUint8},    {"int32", xcclInt32},
        {"uint32", xcclUint32}, {"int64", xcclInt64},    {"uint64", xcclUint64},
        {"float", xcclFloat32}, {"double", xcclFloat64},
    };

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (strcmp(types[i].name, run->type->name) == 0) {
            v->type = types[i].type;
            return true;
        }
    }
    return false;
}

static bool find_op(const struct perf_run *run, struct perf_vendor *v)
{
    static const xcclRedOp_t ops[] = {
        [PERF_SUM] = xcclSum, [PERF_PROD] = xcclProd, [PERF_MAX] = xcclMax, [PERF_MIN] = xcclMin};

    if ((size_t)run->op->id >= sizeof(ops) / sizeof(ops[0])) {
        return false;
    }
    v->op = ops[run->op->id];
    return true;
}

/* The first collective that was asked for and that the library has not, or NULL. */
static const char *unsupported(const struct perf_run *run, const struct perf_vendor *v)
{
    for (int i = 0; i < PERF_NUM_COLLS; i++) {
        bool asked = (run->opt.tests & (1U << i)) != 0;
        if (asked && ((i >= NUM_COLLS) || !v->ops->supports(colls[i], v->type, v->op))) {
            return perf_test_name((enum perf_test)i);
        }
    }
    return NULL;
}

static bool join(const struct perf_run *run, struct perf_vendor *v, const struct xc_library *lib)
{
    char *id = calloc(1, lib->id_bytes);
    bool  made = id != NULL;

    if (made && (run->rank == 0)) {
        made = v->ops->get_unique_id(id) == xcclSuccess;
    }
    if (perf_agree(run, made)) {
        struct xc_comm_args args = {.nranks = run->nranks, .rank = run->rank, .id = id};
        PMPI_Bcast(id, (int)lib->id_bytes, MPI_BYTE, 0, run->comm);
        made = v->ops->comm_create(&args, &v->comm) == xcclSuccess;
    }
    free(id);
    return made && (v->comm != NULL);
}

static bool start(struct perf_run *run, struct perf_vendor *v)
{
    const struct xc_library *lib;
    const char              *without;

    bool found = xc_backend_get(&v->ops, &lib) == xcclSuccess;
    if (!perf_agree(run, found)) {
        if (!found) {
            fprintf(stderr, "%s: --vendor: rank %d: %s\n", run->tool, run->rank, xc_last_detail());
        }
        return false;
    }
    if (!find_type(run, v) || !find_op(run, v)) {
        if (run->all_rank == 0) {
            fprintf(stderr, "%s: --vendor: %s has no %s of %s\n", run->tool, lib->name,
                    run->op->name, run->type->name);
        }
        return false;
    }
    without = unsupported(run, v);
    if (without != NULL) {
        if (run->all_rank == 0) {
            fprintf(stderr, "%s: --vendor: %s has no %s of %s with %s\n", run->tool, lib->name,
                    without, run->type->name, run->op->name);
        }
        return false;
    }
    if (!join(run, v, lib)) {
        fprintf(stderr, "%s: --vendor: rank %d: no communicator of %s: %s\n", run->tool, run->rank,
                lib->name, xc_last_detail());
        return false;
    }
    return true;
}

bool perf_vendor_start(struct perf_run *run)
{
    struct perf_vendor *v = calloc(1, sizeof(*v));
    size_t             *counts = calloc(4 * (size_t)run->nranks, sizeof(*counts));

    if (!perf_agree(run, (v != NULL) && (counts != NULL))) {
        fprintf(stderr, "%s: out of memory on rank %d\n", run->tool, run->rank);
        free(v);
        free(counts);
        return false;
    }
    v->counts = counts;
    run->vendor = v;
    return start(run, v);
}

void perf_vendor_stop(struct perf_run *run)
{
    if (run->vendor == NULL) {
        return;
    }
    if (run->vendor->comm != NULL) {
        (void)run->vendor->ops->comm_destroy(run->vendor->comm);
    }
    free(run->vendor->counts);
    free(run->vendor);
    run->vendor = NULL;
}

static const size_t *widen(const struct perf_run *run, const int *from, int place)
{
    size_t *to = run->vendor->counts + (size_t)place * (size_t)run->nranks;

    for (int i = 0; i < run->nranks; i++) {
        to[i] = (size_t)from[i];
    }
    return to;
}

int perf_vendor_call(const struct perf_run *run, const struct perf_case *pc)
{
    const struct perf_vendor *v = run->vendor;
    struct xc_coll_args       args = {
              .coll = colls[pc->test],
              .sendbuff = (pc->test == PERF_BCAST) ? pc->recvbuf : pc->sendbuf,
              .recvbuff = pc->recvbuf,
              .count = pc->count,
              .datatype = v->type,
              .op = v->op,
              .root = run->opt.root,
              .stream = run->stream,
    };

    if (pc->count == 0) {
        return MPI_SUCCESS; /* the vendor's libraries differ in what they make of nothing */
    }
    switch (pc->test) {
    case PERF_ALLGATHERV:
    case PERF_GATHERV:
        args.count = (size_t)pc->sendcounts[0];
        args.recvcounts = widen(run, pc->recvcounts, 2);
        args.rdispls = widen(run, pc->rdispls, 3);
        break;
    case PERF_SCATTERV:
        args.count = (size_t)pc->recvcounts[0];
        args.sendcounts = widen(run, pc->sendcounts, 0);
        args.sdispls = widen(run, pc->sdispls, 1);
        break;
    case PERF_ALLTOALLV:
        args.sendcounts = widen(run, pc->sendcounts, 0);
        args.sdispls = widen(run, pc->sdispls, 1);
        args.recvcounts = widen(run, pc->recvcounts, 2);
        args.rdispls = widen(run, pc->rdispls, 3);
        break;
    default:
        break;
    }
    if ((v->ops->collective(&args, v->comm, run->nranks, run->rank) != xcclSuccess) ||
        (run->dev->stream_sync(run->stream) != xcclSuccess)) {
        fprintf(stderr, "%s: --vendor: rank %d: %s\n", run->tool, run->rank, xc_last_detail());
        return MPI_ERR_OTHER;
    }
    return MPI_SUCCESS;
}
