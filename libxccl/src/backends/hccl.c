/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * HCCL, the library of Intel Gaudi. Its operations are not NCCL's: minimum and maximum stand the
 * other way round, and a product or an average is carried out as a sum without a word, so neither
 * is passed on. Nor are elements of one or eight bytes, which it refuses.
 */
#include "backends/hccl.h"

#include <stdio.h>
#include <string.h>

#include "backends/composed.h"
#include "backends/library.h"
#include "vendor/vendor.h"

/* The library in use; written once by load() before any other call. */
static struct {
    const struct xc_vendor_row *row;
    struct xc_hccl_fns          fns;
    int                         version;
} in_use;

static const xcclResult_t results[XC_HCCL_NUM_RESULTS] = {
    [XC_HCCL_SUCCESS] = xcclSuccess,
    [XC_HCCL_NO_DEVICE_FOUND] = xcclUnhandledDeviceError,
    [XC_HCCL_UNSUPPORTED] = xcclUnsupported,
    [XC_HCCL_OUT_OF_MEMORY] = xcclSystemError,
    [XC_HCCL_UNHANDLED_SYNAPSE_ERROR] = xcclUnhandledDeviceError,
    [XC_HCCL_SYSTEM_ERROR] = xcclSystemError,
    [XC_HCCL_INTERNAL_ERROR] = xcclInternalError,
    [XC_HCCL_INVALID_ARGUMENT] = xcclInvalidArgument,
    [XC_HCCL_INVALID_USAGE] = xcclInvalidUsage,
    [XC_HCCL_SOCKET_ERROR] = xcclRemoteError,
    [XC_HCCL_LIBFABRIC_ERROR] = xcclRemoteError,
    [XC_HCCL_TRY_AGAIN] = xcclSystemError,
    [XC_HCCL_BUSY] = xcclInProgress,
    [13] = xcclInternalError,
    [XC_HCCL_STREAM_ERROR] = xcclUnhandledDeviceError,
    [XC_HCCL_SYNAPSE_TERMINATED] = xcclUnhandledDeviceError,
    [XC_HCCL_PORT_DOWN] = xcclRemoteError,
};

/* Those that it has; supports() lets no other through. */
static const int ops[xcclNumOps] = {
    [xcclSum] = XC_HCCL_SUM, [xcclMin] = XC_HCCL_MIN, [xcclMax] = XC_HCCL_MAX};

static xcclResult_t result_of(int rc)
{
    return ((unsigned)rc < XC_HCCL_NUM_RESULTS) ? results[rc] : xcclInternalError;
}

static const char *last_error(void)
{
    const char *text = (in_use.fns.get_last_error != NULL) ? in_use.fns.get_last_error() : NULL;

    return (text != NULL) ? text : "";
}

static xcclResult_t fail(int rc, const char *call)
{
    const char *text = last_error();

    if (rc == XC_HCCL_BUSY) {
        return xcclInProgress; /* a state, not a failure */
    }
    return xc_fail(result_of(rc),
                   "hccl: %s failed: %s%s%s; ENABLE_CONSOLE=true LOG_LEVEL_HCL=1 "
                   "shows more",
                   call, in_use.fns.get_error_string(rc), (text[0] != '\0') ? ": " : "", text);
}

static inline xcclResult_t done(int rc, const char *call)
{
    return (rc == XC_HCCL_SUCCESS) ? xcclSuccess : fail(rc, call);
}

static bool supports_type(xcclDataType_t type)
{
    return xc_vendor_has_type(in_use.row, in_use.version, type);
}

static bool supports(enum xc_coll coll, xcclDataType_t type, xcclRedOp_t op)
{
    if (!supports_type(type) || !xc_coll_reduces(coll)) {
        return supports_type(type);
    }
    return ((in_use.row->only_moved & (1u << type)) == 0) && ((unsigned)op < xcclNumOps) &&
           (in_use.version >= in_use.row->op_since[op]);
}

static bool native(enum xc_coll coll)
{
    return !xc_composed_forced(coll) && ((coll == XC_ALLTOALL) || !xc_composed_can(coll));
}

static xcclResult_t get_unique_id(char *id)
{
    xc_hccl_id_t vendor_id = {.length = 0};
    int          rc = in_use.fns.get_unique_id(&vendor_id);

    if (rc == XC_HCCL_SUCCESS) {
        memcpy(id, &vendor_id, sizeof(vendor_id));
    }
    return done(rc, "hcclGetUniqueId");
}

/* It has no configuration: what is set in one is ignored. */
static xcclResult_t comm_create(const struct xc_comm_args *args, void **comm_p)
{
    xc_hccl_id_t id;

    memcpy(&id, args->id, sizeof(id));
    return done(in_use.fns.comm_init_rank(comm_p, args->nranks, id, args->rank),
                "hcclCommInitRank");
}

static xcclResult_t comm_split(void *comm, int color, int key, const xcclConfig_t *config,
                               void **newcomm_p)
{
    (void)comm;
    (void)color;
    (void)key;
    (void)config;
    (void)newcomm_p;
    return xc_fail(xcclUnsupported, "hccl: communicators cannot be split; make a new one of the "
                                    "ranks with xcclCommInitRank");
}

static xcclResult_t comm_info(void *comm, int *nranks_p, int *rank_p, int *device_p)
{
    int nranks, rank, device;
    int rc = in_use.fns.comm_count(comm, &nranks);

    if (rc != XC_HCCL_SUCCESS) {
        return fail(rc, "hcclCommCount");
    }
    rc = in_use.fns.comm_user_rank(comm, &rank);
    if (rc != XC_HCCL_SUCCESS) {
        return fail(rc, "hcclCommUserRank");
    }
    rc = in_use.fns.comm_syn_device(comm, &device);
    if (rc != XC_HCCL_SUCCESS) {
        return fail(rc, "hcclCommSynDevice");
    }
    *nranks_p = nranks;
    *rank_p = rank;
    *device_p = device;
    return xcclSuccess;
}

static xcclResult_t comm_async_error(void *comm, xcclResult_t *error_p)
{
    int async = XC_HCCL_SUCCESS;
    int rc = in_use.fns.comm_get_async_error(comm, &async);

    if (rc != XC_HCCL_SUCCESS) {
        return fail(rc, "hcclCommGetAsyncError");
    }
    *error_p = result_of(async);
    return xcclSuccess;
}

static xcclResult_t comm_finalize(void *comm)
{
    return (in_use.fns.comm_finalize != NULL)
               ? done(in_use.fns.comm_finalize(comm), "hcclCommFinalize")
               : xcclSuccess;
}

static xcclResult_t comm_destroy(void *comm)
{
    return done(in_use.fns.comm_destroy(comm), "hcclCommDestroy");
}

/* hcclCommAbort is hcclCommDestroy, which waits for what never comes. */
static xcclResult_t comm_abort(void *comm)
{
    (void)comm;
    return xc_fail(xcclUnsupported, "hccl: communicators cannot be aborted; this one is left as it "
                                    "is, end the process");
}

static xcclResult_t run_native(const struct xc_coll_args *a, void *comm, int nranks, int rank)
{
    const struct xc_hccl_fns *f = &in_use.fns;
    int                       type = (int)a->datatype; /* the same numbers */
    int                       op = xc_coll_reduces(a->coll) ? ops[a->op] : 0;
    /* It wants an address in device memory even where a broadcast reads nothing. */
    const void *source = (rank == a->root) ? a->sendbuff : a->recvbuff;
    /* An alltoall's count is of all blocks; who checked the arguments has seen that it fits. */
    size_t all = a->count * (size_t)nranks;

    if (a->stream == NULL) {
        return xc_fail(xcclInvalidArgument,
                       "hccl: the stream is NULL, and a Gaudi has no default one; make one with "
                       "synStreamCreateGeneric");
    }
    switch (a->coll) {
    case XC_ALLREDUCE:
        return done(f->all_reduce(a->sendbuff, a->recvbuff, a->count, type, op, comm, a->stream),
                    "hcclAllReduce");
    case XC_BROADCAST:
        return done(f->broadcast(source, a->recvbuff, a->count, type, a->root, comm, a->stream),
                    "hcclBroadcast");
    case XC_REDUCE:
        return done(
            f->reduce(a->sendbuff, a->recvbuff, a->count, type, op, a->root, comm, a->stream),
            "hcclReduce");
    case XC_REDUCE_SCATTER:
        return done(
            f->reduce_scatter(a->sendbuff, a->recvbuff, a->count, type, op, comm, a->stream),
            "hcclReduceScatter");
    case XC_ALLGATHER:
        return done(f->all_gather(a->sendbuff, a->recvbuff, a->count, type, comm, a->stream),
                    "hcclAllGather");
    case XC_ALLTOALL:
        return done(f->all_to_all(a->sendbuff, a->recvbuff, all, type, comm, a->stream),
                    "hcclAlltoAll");
    case XC_SEND:
        return done(f->send(a->sendbuff, a->count, type, a->root, comm, a->stream), "hcclSend");
    default:
        return done(f->recv(a->recvbuff, a->count, type, a->root, comm, a->stream), "hcclRecv");
    }
}

static xcclResult_t collective(const struct xc_coll_args *args, void *comm, int nranks, int rank)
{
    return native(args->coll) ? run_native(args, comm, nranks, rank)
                              : xc_composed_run(&xc_backend_hccl, args, comm, nranks, rank);
}

static xcclResult_t redop_create(xcclRedOp_t *op_p, void *scalar, xcclDataType_t type,
                                 xcclScalarResidence_t residence, void *comm)
{
    (void)op_p;
    (void)scalar;
    (void)type;
    (void)residence;
    (void)comm;
    return xc_fail(xcclUnsupported, "hccl: there are no operations of one's own");
}

static xcclResult_t redop_destroy(xcclRedOp_t op, void *comm)
{
    (void)comm;
    return xc_fail(xcclInvalidArgument, "hccl: there is no operation %d", (int)op);
}

static xcclResult_t group_start(void)
{
    return done(in_use.fns.group_start(), "hcclGroupStart");
}

static xcclResult_t group_end(void)
{
    return done(in_use.fns.group_end(), "hcclGroupEnd");
}

static void group_spoil(void *comm, xcclStream_t stream)
{
    (void)in_use.fns.broadcast(NULL, NULL, 1, (int)xcclFloat32, -1, comm, stream);
}

static xcclResult_t mem_alloc(void **ptr_p, size_t bytes)
{
    return xc_library_mem_alloc(in_use.row, ptr_p, bytes);
}

static xcclResult_t mem_free(void *ptr)
{
    return xc_library_mem_free(in_use.row, ptr);
}

static xcclResult_t load(const char *path, bool exactly, struct xc_library *lib_p)
{
    struct xc_hccl_lib lib;
    xcclResult_t       rc = xc_hccl_open(path, &lib);

    (void)exactly;
    if (rc != xcclSuccess) {
        return rc;
    }
    in_use.row = lib.row;
    in_use.fns = lib.fns;
    in_use.version = lib.version;
    xc_library_describe(lib.row, &lib.file, lib.version, lib_p);
    return xcclSuccess;
}

const struct xc_backend_ops xc_backend_hccl = {
    .name = "hccl",
    .load = load,
    .supports_type = supports_type,
    .supports = supports,
    .native = native,
    .get_unique_id = get_unique_id,
    .comm_create = comm_create,
    .comm_split = comm_split,
    .comm_info = comm_info,
    .comm_async_error = comm_async_error,
    .comm_finalize = comm_finalize,
    .comm_destroy = comm_destroy,
    .comm_abort = comm_abort,
    .last_error = last_error,
    .collective = collective,
    .redop_create = redop_create,
    .redop_destroy = redop_destroy,
    .group_start = group_start,
    .group_end = group_end,
    .group_spoil = group_spoil,
    .mem_alloc = mem_alloc,
    .mem_free = mem_free,
};
