/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * NCCL, RCCL, MSCCL and MSCCL++: one API, one file. What differs between them is a row of
 * vendor/rows.c; what differs between versions is asked of the library (is the symbol there?).
 */
#include <stdio.h>
#include <string.h>

#include "backends/backend.h"
#include "backends/composed.h"
#include "backends/library.h"
#include "backends/ncclfamily.h"
#include "base/log.h"
#include "vendor/vendor.h"

/* The library in use; written once by load() before any other call. */
static struct {
    const struct xc_vendor_row  *row;
    const struct xc_backend_ops *ops;
    struct xc_nccl_fns           fns;
    int                          version;
} in_use;

static const xcclResult_t results[XC_NCCL_NUM_RESULTS] = {
    [XC_NCCL_SUCCESS] = xcclSuccess,
    [XC_NCCL_UNHANDLED_CUDA_ERROR] = xcclUnhandledCudaError,
    [XC_NCCL_SYSTEM_ERROR] = xcclSystemError,
    [XC_NCCL_INTERNAL_ERROR] = xcclInternalError,
    [XC_NCCL_INVALID_ARGUMENT] = xcclInvalidArgument,
    [XC_NCCL_INVALID_USAGE] = xcclInvalidUsage,
    [XC_NCCL_REMOTE_ERROR] = xcclRemoteError,
    [XC_NCCL_IN_PROGRESS] = xcclInProgress,
    [XC_NCCL_TIMEOUT] = xcclTimeout,
};

static const int types[xcclNumTypes] = {
    [xcclInt8] = 0,    [xcclUint8] = 1,    [xcclInt32] = 2,       [xcclUint32] = 3,
    [xcclInt64] = 4,   [xcclUint64] = 5,   [xcclFloat16] = 6,     [xcclFloat32] = 7,
    [xcclFloat64] = 8, [xcclBfloat16] = 9, [xcclFloat8e4m3] = 10, [xcclFloat8e5m2] = 11,
};

static const int ops[xcclNumOps] = {
    [xcclSum] = 0, [xcclProd] = 1, [xcclMax] = 2, [xcclMin] = 3, [xcclAvg] = 4,
};

xcclResult_t xc_nccl_result(int rc)
{
    return ((unsigned)rc < XC_NCCL_NUM_RESULTS) ? results[rc] : xcclInternalError;
}

/* Values from xcclNumOps on were made by the vendor and are its own. */
static int vendor_op(xcclRedOp_t op)
{
    return ((unsigned)op < xcclNumOps) ? ops[op] : (int)op;
}

static const char *family_last_error(void)
{
    /* The family keeps one text a process and ignores the communicator, which may be gone. */
    const char *text = (in_use.fns.get_last_error != NULL) ? in_use.fns.get_last_error(NULL) : NULL;
    return (text != NULL) ? text : "";
}

static xcclResult_t fail(int rc, const char *call)
{
    const char *text = family_last_error();

    if (rc == XC_NCCL_IN_PROGRESS) {
        return xcclInProgress; /* a state, not a failure */
    }
    return xc_fail(xc_nccl_result(rc), "%s: %s failed: %s%s%s; NCCL_DEBUG=WARN shows more",
                   in_use.row->name, call, in_use.fns.get_error_string(rc),
                   (text[0] != '\0') ? ": " : "", text);
}

static inline xcclResult_t done(int rc, const char *call)
{
    return (rc == XC_NCCL_SUCCESS) ? xcclSuccess : fail(rc, call);
}

static xcclResult_t lacks(const char *what, const char *since)
{
    char version[16];

    return xc_fail(xcclUnsupported, "%s %s has no %s (NCCL has from %s); use a newer library",
                   in_use.row->name, xc_nccl_version_text(in_use.version, version, sizeof(version)),
                   what, since);
}

static bool family_supports_type(xcclDataType_t type)
{
    return xc_vendor_has_type(in_use.row, in_use.version, type);
}

static bool family_supports(enum xc_coll coll, xcclDataType_t type, xcclRedOp_t op)
{
    if (!family_supports_type(type)) {
        return false;
    }
    if (!xc_coll_reduces(coll)) {
        return true;
    }
    return ((unsigned)op < xcclNumOps) ? (in_use.version >= in_use.row->op_since[op])
                                       : (in_use.fns.red_op_create_pre_mul_sum != NULL);
}

static bool family_native(enum xc_coll coll)
{
    if (xc_composed_forced(coll)) {
        return false;
    }
    switch (coll) {
    case XC_ALLTOALL:
        return in_use.fns.all_to_all != NULL;
    case XC_ALLTOALLV:
        return in_use.fns.all_to_allv != NULL;
    case XC_GATHER:
        return in_use.fns.gather != NULL;
    case XC_SCATTER:
        return in_use.fns.scatter != NULL;
    default:
        return !xc_composed_can(coll);
    }
}

static xcclResult_t family_get_unique_id(char *id)
{
    xc_nccl_id_t vendor_id;
    int          rc = in_use.fns.get_unique_id(&vendor_id);

    if (rc == XC_NCCL_SUCCESS) {
        memcpy(id, vendor_id.internal, sizeof(vendor_id.internal));
    }
    return done(rc, "ncclGetUniqueId");
}

/* NCCL_CONFIG_UNDEF_INT came with 2.17: before, blocking is 0 or 1, and 1 is the default. */
static int blocking_of(const xcclConfig_t *config, int version)
{
    bool open = (config->blocking == XCCL_CONFIG_UNDEF_INT) && (version < 21700);

    return open ? 1 : config->blocking;
}

/*
 * The vendor's configuration, in the oldest layout that has every field set. Fields that the
 * library's version has not are left out.
 */
void xc_nccl_config(const xcclConfig_t *config, int version, xc_nccl_config_t *out)
{
    *out = (xc_nccl_config_t){
        .size = XC_NCCL_CONFIG_2_14_SIZE,
        .magic = XC_NCCL_CONFIG_MAGIC,
        .version = 21400,
        .blocking = blocking_of(config, version),
        .cgaClusterSize = XCCL_CONFIG_UNDEF_INT,
        .minCTAs = XCCL_CONFIG_UNDEF_INT,
        .maxCTAs = XCCL_CONFIG_UNDEF_INT,
        .netName = XCCL_CONFIG_UNDEF_PTR,
        .splitShare = XCCL_CONFIG_UNDEF_INT,
    };
    bool has_2_17 = (config->cgaClusterSize != XCCL_CONFIG_UNDEF_INT) ||
                    (config->minCTAs != XCCL_CONFIG_UNDEF_INT) ||
                    (config->maxCTAs != XCCL_CONFIG_UNDEF_INT) ||
                    (config->netName != XCCL_CONFIG_UNDEF_PTR);
    bool has_2_18 = (config->splitShare != XCCL_CONFIG_UNDEF_INT);

    if (((has_2_17 || has_2_18) && (version < 21700)) || (has_2_18 && (version < 21800))) {
        xc_info("configuration fields that version %d of the library lacks are ignored", version);
    }
    if ((has_2_17 || has_2_18) && (version >= 21700)) {
        out->size = XC_NCCL_CONFIG_2_17_SIZE;
        out->version = 21700;
        out->cgaClusterSize = config->cgaClusterSize;
        out->minCTAs = config->minCTAs;
        out->maxCTAs = config->maxCTAs;
        out->netName = config->netName;
    }
    if (has_2_18 && (version >= 21800)) {
        out->size = XC_NCCL_CONFIG_2_18_SIZE;
        out->version = 21800;
        out->splitShare = config->splitShare;
    }
}

static xcclResult_t family_comm_create(const struct xc_comm_args *args, void **comm_p)
{
    xc_nccl_id_t     id;
    xc_nccl_config_t config;

    memcpy(id.internal, args->id, sizeof(id.internal));
    if ((args->config == NULL) || (in_use.fns.comm_init_rank_config == NULL)) {
        return done(in_use.fns.comm_init_rank(comm_p, args->nranks, id, args->rank),
                    "ncclCommInitRank");
    }
    xc_nccl_config(args->config, in_use.version, &config);
    return done(in_use.fns.comm_init_rank_config(comm_p, args->nranks, id, args->rank, &config),
                "ncclCommInitRankConfig");
}

static xcclResult_t family_comm_split(void *comm, int color, int key, const xcclConfig_t *config,
                                      void **newcomm_p)
{
    xc_nccl_config_t vendor_config;
    int              async = XC_NCCL_SUCCESS;

    if (in_use.fns.comm_split == NULL) {
        return lacks("ncclCommSplit", "2.18");
    }
    if (config != NULL) {
        xc_nccl_config(config, in_use.version, &vendor_config);
    }
    int rc = in_use.fns.comm_split(comm, color, key, newcomm_p,
                                   (config != NULL) ? &vendor_config : NULL);
    /* Of a communicator that does not block it succeeds before it has ended: comm says so. */
    if ((rc == XC_NCCL_SUCCESS) &&
        (in_use.fns.comm_get_async_error(comm, &async) == XC_NCCL_SUCCESS) &&
        (async == XC_NCCL_IN_PROGRESS)) {
        return xcclInProgress;
    }
    return done(rc, "ncclCommSplit");
}

static xcclResult_t family_comm_info(void *comm, int *nranks_p, int *rank_p, int *device_p)
{
    int nranks;
    int rank;
    int device = -1;
    int rc = in_use.fns.comm_count(comm, &nranks);

    if (rc != XC_NCCL_SUCCESS) {
        return fail(rc, "ncclCommCount");
    }
    rc = in_use.fns.comm_user_rank(comm, &rank);
    if (rc != XC_NCCL_SUCCESS) {
        return fail(rc, "ncclCommUserRank");
    }
    if (in_use.fns.comm_cu_device != NULL) {
        rc = in_use.fns.comm_cu_device(comm, &device);
    }
    if (rc != XC_NCCL_SUCCESS) {
        return fail(rc, "ncclCommCuDevice");
    }
    *nranks_p = nranks;
    *rank_p = rank;
    *device_p = device;
    return xcclSuccess;
}

static xcclResult_t family_comm_async_error(void *comm, xcclResult_t *error_p)
{
    int async = XC_NCCL_SUCCESS;
    int rc = in_use.fns.comm_get_async_error(comm, &async);

    if (rc != XC_NCCL_SUCCESS) {
        return fail(rc, "ncclCommGetAsyncError");
    }
    *error_p = xc_nccl_result(async);
    return xcclSuccess;
}

static xcclResult_t family_comm_finalize(void *comm)
{
    if (in_use.fns.comm_finalize == NULL) {
        return xcclSuccess; /* before 2.14 ncclCommDestroy does it all */
    }
    return done(in_use.fns.comm_finalize(comm), "ncclCommFinalize");
}

static xcclResult_t family_comm_destroy(void *comm)
{
    return done(in_use.fns.comm_destroy(comm), "ncclCommDestroy");
}

static xcclResult_t family_comm_abort(void *comm)
{
    if (in_use.fns.comm_abort == NULL) {
        return xc_fail(xcclUnsupported,
                       "%s: communicators cannot be aborted; this one is left as it is, end the "
                       "process",
                       in_use.row->name);
    }
    return done(in_use.fns.comm_abort(comm), "ncclCommAbort");
}

static xcclResult_t run_allreduce(const struct xc_coll_args *a, int type, void *comm)
{
    return done(in_use.fns.all_reduce(a->sendbuff, a->recvbuff, a->count, type, vendor_op(a->op),
                                      comm, a->stream),
                "ncclAllReduce");
}

static xcclResult_t run_broadcast(const struct xc_coll_args *a, int type, void *comm)
{
    return done(
        in_use.fns.broadcast(a->sendbuff, a->recvbuff, a->count, type, a->root, comm, a->stream),
        "ncclBroadcast");
}

static xcclResult_t run_reduce(const struct xc_coll_args *a, int type, void *comm)
{
    return done(in_use.fns.reduce(a->sendbuff, a->recvbuff, a->count, type, vendor_op(a->op),
                                  a->root, comm, a->stream),
                "ncclReduce");
}

static xcclResult_t run_reduce_scatter(const struct xc_coll_args *a, int type, void *comm)
{
    return done(in_use.fns.reduce_scatter(a->sendbuff, a->recvbuff, a->count, type,
                                          vendor_op(a->op), comm, a->stream),
                "ncclReduceScatter");
}

static xcclResult_t run_allgather(const struct xc_coll_args *a, int type, void *comm)
{
    return done(in_use.fns.all_gather(a->sendbuff, a->recvbuff, a->count, type, comm, a->stream),
                "ncclAllGather");
}

static xcclResult_t run_alltoall(const struct xc_coll_args *a, int type, void *comm)
{
    return done(in_use.fns.all_to_all(a->sendbuff, a->recvbuff, a->count, type, comm, a->stream),
                "ncclAlltoAll");
}

static xcclResult_t run_alltoallv(const struct xc_coll_args *a, int type, void *comm)
{
    return done(in_use.fns.all_to_allv(a->sendbuff, a->sendcounts, a->sdispls, a->recvbuff,
                                       a->recvcounts, a->rdispls, type, comm, a->stream),
                "ncclAllToAllv");
}

static xcclResult_t run_gather(const struct xc_coll_args *a, int type, void *comm)
{
    return done(
        in_use.fns.gather(a->sendbuff, a->recvbuff, a->count, type, a->root, comm, a->stream),
        "ncclGather");
}

static xcclResult_t run_scatter(const struct xc_coll_args *a, int type, void *comm)
{
    return done(
        in_use.fns.scatter(a->sendbuff, a->recvbuff, a->count, type, a->root, comm, a->stream),
        "ncclScatter");
}

static xcclResult_t run_send(const struct xc_coll_args *a, int type, void *comm)
{
    return done(in_use.fns.send(a->sendbuff, a->count, type, a->root, comm, a->stream), "ncclSend");
}

static xcclResult_t run_recv(const struct xc_coll_args *a, int type, void *comm)
{
    return done(in_use.fns.recv(a->recvbuff, a->count, type, a->root, comm, a->stream), "ncclRecv");
}

static xcclResult_t (*const run[XC_NUM_COLLS])(const struct xc_coll_args *a, int type,
                                               void *comm) = {
    [XC_ALLREDUCE] = run_allreduce, [XC_BROADCAST] = run_broadcast,
    [XC_REDUCE] = run_reduce,       [XC_REDUCE_SCATTER] = run_reduce_scatter,
    [XC_ALLGATHER] = run_allgather, [XC_ALLTOALL] = run_alltoall,
    [XC_ALLTOALLV] = run_alltoallv, [XC_GATHER] = run_gather,
    [XC_SCATTER] = run_scatter,     [XC_SEND] = run_send,
    [XC_RECV] = run_recv,
};

static xcclResult_t family_collective(const struct xc_coll_args *args, void *comm, int nranks,
                                      int rank)
{
    if (!family_native(args->coll)) {
        return xc_composed_run(in_use.ops, args, comm, nranks, rank);
    }
    xcclResult_t rc = run[args->coll](args, types[args->datatype], comm);
    if ((rc == xcclInvalidArgument) && xc_coll_reduces(args->coll) &&
        ((args->datatype == xcclFloat8e4m3) || (args->datatype == xcclFloat8e5m2))) {
        /* NCCL reduces float8 only on devices of compute capability 9.0, which it alone knows. */
        return xcclUnsupported;
    }
    return rc;
}

static xcclResult_t family_redop_create(xcclRedOp_t *op_p, void *scalar, xcclDataType_t type,
                                        xcclScalarResidence_t residence, void *comm)
{
    int op = 0;

    if (in_use.fns.red_op_create_pre_mul_sum == NULL) {
        return lacks("ncclRedOpCreatePreMulSum", "2.11");
    }
    int rc = in_use.fns.red_op_create_pre_mul_sum(&op, scalar, types[type], (int)residence, comm);
    if (rc == XC_NCCL_SUCCESS) {
        *op_p = (xcclRedOp_t)op;
    }
    return done(rc, "ncclRedOpCreatePreMulSum");
}

static xcclResult_t family_redop_destroy(xcclRedOp_t op, void *comm)
{
    if (in_use.fns.red_op_destroy == NULL) {
        return lacks("ncclRedOpDestroy", "2.11");
    }
    return done(in_use.fns.red_op_destroy((int)op, comm), "ncclRedOpDestroy");
}

static xcclResult_t family_group_start(void)
{
    return done(in_use.fns.group_start(), "ncclGroupStart");
}

static xcclResult_t family_group_end(void)
{
    return done(in_use.fns.group_end(), "ncclGroupEnd");
}

/* A root that no communicator has is the first thing that every version looks at. */
static void family_group_spoil(void *comm, xcclStream_t stream)
{
    (void)in_use.fns.broadcast(NULL, NULL, 1, types[xcclInt8], -1, comm, stream);
}

/* Both or neither, so that memory is always freed by whoever gave it. */
static bool has_mem_alloc(void)
{
    return (in_use.fns.mem_alloc != NULL) && (in_use.fns.mem_free != NULL);
}

static xcclResult_t family_mem_alloc(void **ptr_p, size_t bytes)
{
    return has_mem_alloc() ? done(in_use.fns.mem_alloc(ptr_p, bytes), "ncclMemAlloc")
                           : xc_library_mem_alloc(in_use.row, ptr_p, bytes);
}

static xcclResult_t family_mem_free(void *ptr)
{
    return has_mem_alloc() ? done(in_use.fns.mem_free(ptr), "ncclMemFree")
                           : xc_library_mem_free(in_use.row, ptr);
}

static xcclResult_t family_window_register(void *comm, void *buff, size_t bytes, int flags,
                                           void **win_p)
{
    if ((in_use.fns.window_register == NULL) || (in_use.fns.window_deregister == NULL)) {
        return lacks("ncclCommWindowRegister", "2.27");
    }
    return done(in_use.fns.window_register(comm, buff, bytes, win_p, flags),
                "ncclCommWindowRegister");
}

static xcclResult_t family_window_deregister(void *comm, void *win)
{
    if (in_use.fns.window_deregister == NULL) {
        return lacks("ncclCommWindowDeregister", "2.27");
    }
    return done(in_use.fns.window_deregister(comm, win), "ncclCommWindowDeregister");
}

static const struct xc_backend_ops *const tables[] = {
    [XC_ROW_NCCL] = &xc_backend_nccl,
    [XC_ROW_RCCL] = &xc_backend_rccl,
    [XC_ROW_MSCCL] = &xc_backend_msccl,
    [XC_ROW_MSCCLPP] = &xc_backend_mscclpp,
};

static xcclResult_t load(size_t row_index, const char *path, bool exactly, struct xc_library *lib_p)
{
    const struct xc_vendor_row *rows = xc_vendor_rows();
    struct xc_nccl_lib          lib;
    xcclResult_t                rc = xc_nccl_open(&rows[row_index], path, exactly, &lib);

    if (rc != xcclSuccess) {
        return rc;
    }
    in_use.row = lib.row;
    in_use.ops = tables[lib.row - rows];
    in_use.fns = lib.fns;
    in_use.version = lib.version;
    xc_library_describe(lib.row, &lib.file, lib.version, lib_p);
    return xcclSuccess;
}

/* Tables that differ in name and row. */
#define FAMILY(NAME, ROW)                                                                          \
    static xcclResult_t NAME##_load(const char *path, bool exactly, struct xc_library *lib_p)      \
    {                                                                                              \
        return load(ROW, path, exactly, lib_p);                                                    \
    }                                                                                              \
    const struct xc_backend_ops xc_backend_##NAME = {                                              \
        .name = #NAME,                                                                             \
        .load = NAME##_load,                                                                       \
        .supports_type = family_supports_type,                                                     \
        .supports = family_supports,                                                               \
        .native = family_native,                                                                   \
        .get_unique_id = family_get_unique_id,                                                     \
        .comm_create = family_comm_create,                                                         \
        .comm_split = family_comm_split,                                                           \
        .comm_info = family_comm_info,                                                             \
        .comm_async_error = family_comm_async_error,                                               \
        .comm_finalize = family_comm_finalize,                                                     \
        .comm_destroy = family_comm_destroy,                                                       \
        .comm_abort = family_comm_abort,                                                           \
        .last_error = family_last_error,                                                           \
        .collective = family_collective,                                                           \
        .redop_create = family_redop_create,                                                       \
        .redop_destroy = family_redop_destroy,                                                     \
        .group_start = family_group_start,                                                         \
        .group_end = family_group_end,                                                             \
        .group_spoil = family_group_spoil,                                                         \
        .mem_alloc = family_mem_alloc,                                                             \
        .mem_free = family_mem_free,                                                               \
        .window_register = family_window_register,                                                 \
        .window_deregister = family_window_deregister,                                             \
    };

FAMILY(nccl, XC_ROW_NCCL)
FAMILY(rccl, XC_ROW_RCCL)
FAMILY(msccl, XC_ROW_MSCCL)
FAMILY(mscclpp, XC_ROW_MSCCLPP)
