/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * oneCCL through its C API. It hands each call to a plugin: one for SYCL devices, where the stream
 * is a pointer to the program's sycl::queue, and one for host memory, which has no queues, returns
 * when the result is there, and has no messages between ranks that could go in a group.
 */
#include "backends/oneccl.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/composed.h"
#include "backends/library.h"
#include "vendor/vendor.h"

/* The library in use; written once by load() before any other call. */
static struct {
    const struct xc_vendor_row *row;
    struct xc_oneccl_fns        fns;
    int                         version;
    bool                        on_host;
} in_use;

static const xcclResult_t results[XC_ONECCL_NUM_RESULTS] = {
    [XC_ONECCL_SUCCESS] = xcclSuccess,
    [XC_ONECCL_ERROR] = xcclInternalError,
    [XC_ONECCL_SYSTEM_ERROR] = xcclSystemError,
    [XC_ONECCL_INTERNAL_ERROR] = xcclInternalError,
    [XC_ONECCL_INVALID_ARGUMENT] = xcclInvalidArgument,
    [XC_ONECCL_INVALID_USAGE] = xcclInvalidUsage,
    [XC_ONECCL_IN_PROGRESS] = xcclInProgress,
    [XC_ONECCL_FAILURE_GPU] = xcclUnhandledDeviceError,
    [XC_ONECCL_FAILURE_CPU] = xcclSystemError,
    [XC_ONECCL_ALLOC_FAILURE_CPU] = xcclSystemError,
    [XC_ONECCL_ALLOC_FAILURE_GPU] = xcclUnhandledDeviceError,
    [XC_ONECCL_PLUGIN_EXCEPTION] = xcclInternalError,
    [XC_ONECCL_NOT_IMPLEMENTED] = xcclUnsupported,
};

static const char *last_error(void)
{
    const char *text = in_use.fns.get_last_error(NULL);

    return (text != NULL) ? text : "";
}

static xcclResult_t fail(int rc, const char *call)
{
    xcclResult_t result = ((unsigned)rc < XC_ONECCL_NUM_RESULTS) ? results[rc] : xcclInternalError;
    const char  *text = last_error();

    if (result == xcclInProgress) {
        return result; /* a state, not a failure */
    }
    return xc_fail(result, "oneccl: %s failed: %s%s%s; CCL_LOG_LEVEL=info shows more", call,
                   in_use.fns.get_error_string(rc), (text[0] != '\0') ? ": " : "", text);
}

static inline xcclResult_t done(int rc, const char *call)
{
    return (rc == XC_ONECCL_SUCCESS) ? xcclSuccess : fail(rc, call);
}

static bool supports_type(xcclDataType_t type)
{
    return xc_vendor_has_type(in_use.row, in_use.version, type);
}

/* On host memory there are no groups: messages would wait for each other in a circle. */
static bool needs_messages(enum xc_coll coll)
{
    return (coll == XC_SEND) || (coll == XC_RECV) || (coll == XC_ALLTOALLV) ||
           (coll == XC_GATHER) || (coll == XC_GATHERV) || (coll == XC_SCATTER) ||
           (coll == XC_SCATTERV);
}

static bool supports(enum xc_coll coll, xcclDataType_t type, xcclRedOp_t op)
{
    if (!supports_type(type) || (in_use.on_host && needs_messages(coll))) {
        return false;
    }
    if (!xc_coll_reduces(coll)) {
        return true;
    }
    return ((unsigned)op < xcclNumOps) ? (in_use.version >= in_use.row->op_since[op])
                                       : !in_use.on_host;
}

static bool native(enum xc_coll coll)
{
    return !xc_composed_forced(coll) && ((coll == XC_ALLTOALL) || !xc_composed_can(coll));
}

static xcclResult_t get_unique_id(char *id)
{
    xc_oneccl_id_t vendor_id = {{0}};
    int            rc = in_use.fns.get_unique_id(&vendor_id);

    if (rc == XC_ONECCL_SUCCESS) {
        memcpy(id, vendor_id.data, sizeof(vendor_id.data));
    }
    return done(rc, "onecclGetUniqueId");
}

static xc_oneccl_config_t config_of(const xcclConfig_t *config)
{
    return (xc_oneccl_config_t){
        .size = sizeof(xc_oneccl_config_t),
        .magic = XC_ONECCL_CONFIG_MAGIC,
        .version = (unsigned)in_use.version,
        .blocking = config->blocking,
        .cgaClusterSize = config->cgaClusterSize,
        .minCTAs = config->minCTAs,
        .maxCTAs = config->maxCTAs,
        .netName = config->netName,
        .splitShare = config->splitShare,
        .multiThreaded = INT_MIN,
    };
}

static xcclResult_t comm_create(const struct xc_comm_args *args, void **comm_p)
{
    xc_oneccl_id_t id;
    size_t         nranks = (size_t)args->nranks;

    memcpy(id.data, args->id, sizeof(id.data));
    if (args->config == NULL) {
        return done(in_use.fns.comm_init_rank(comm_p, nranks, id, args->rank),
                    "onecclCommInitRank");
    }
    xc_oneccl_config_t config = config_of(args->config);
    return done(in_use.fns.comm_init_rank_config(comm_p, nranks, id, args->rank, &config),
                "onecclCommInitRankConfig");
}

static xcclResult_t comm_split(void *comm, int color, int key, const xcclConfig_t *config,
                               void **newcomm_p)
{
    xc_oneccl_config_t vendor_config;

    if (config != NULL) {
        vendor_config = config_of(config);
    }
    return done(in_use.fns.comm_split(comm, color, key, newcomm_p,
                                      (config != NULL) ? &vendor_config : NULL),
                "onecclCommSplit");
}

static xcclResult_t comm_info(void *comm, int *nranks_p, int *rank_p, int *device_p)
{
    int nranks, rank, device = -1;
    int rc = in_use.fns.comm_count(comm, &nranks);

    if (rc != XC_ONECCL_SUCCESS) {
        return fail(rc, "onecclCommCount");
    }
    rc = in_use.fns.comm_user_rank(comm, &rank);
    if (rc != XC_ONECCL_SUCCESS) {
        return fail(rc, "onecclCommUserRank");
    }
    if (!in_use.on_host) { /* there it logs an error */
        rc = in_use.fns.comm_device(comm, &device);
        if (rc != XC_ONECCL_SUCCESS) {
            return fail(rc, "onecclCommDevice");
        }
    }
    *nranks_p = nranks;
    *rank_p = rank;
    *device_p = device;
    return xcclSuccess;
}

/* It declares onecclCommGetAsyncError and does not have it. */
static xcclResult_t comm_async_error(void *comm, xcclResult_t *error_p)
{
    (void)comm;
    *error_p = xcclSuccess;
    return xcclSuccess;
}

static xcclResult_t comm_finalize(void *comm)
{
    return done(in_use.fns.comm_finalize(comm), "onecclCommFinalize");
}

static xcclResult_t comm_destroy(void *comm)
{
    return done(in_use.fns.comm_destroy(comm), "onecclCommDestroy");
}

/* Destroying it instead could wait for ranks that are gone. */
static xcclResult_t comm_abort(void *comm)
{
    (void)comm;
    return xc_fail(xcclUnsupported,
                   "oneccl: communicators cannot be aborted; this one is left as it is, end the "
                   "process");
}

static xcclResult_t run_native(const struct xc_coll_args *a, void *comm)
{
    const struct xc_oneccl_fns *f = &in_use.fns;
    int                         type = (int)a->datatype, op = (int)a->op; /* the same numbers */
    void                       *queue = in_use.on_host ? NULL : a->stream;

    switch (a->coll) {
    case XC_ALLREDUCE:
        return done(f->all_reduce(a->sendbuff, a->recvbuff, a->count, type, op, comm, queue),
                    "onecclAllReduce");
    case XC_BROADCAST:
        return done(f->broadcast(a->sendbuff, a->recvbuff, a->count, type, a->root, comm, queue),
                    "onecclBroadcast");
    case XC_REDUCE:
        return done(f->reduce(a->sendbuff, a->recvbuff, a->count, type, op, a->root, comm, queue),
                    "onecclReduce");
    case XC_REDUCE_SCATTER:
        return done(f->reduce_scatter(a->sendbuff, a->recvbuff, a->count, type, op, comm, queue),
                    "onecclReduceScatter");
    case XC_ALLGATHER:
        return done(f->all_gather(a->sendbuff, a->recvbuff, a->count, type, comm, queue),
                    "onecclAllGather");
    case XC_ALLTOALL:
        return done(f->all_to_all(a->sendbuff, a->recvbuff, a->count, type, comm, queue),
                    "onecclAllToAll");
    case XC_SEND:
        return done(f->send(a->sendbuff, a->count, type, a->root, comm, queue), "onecclSend");
    default:
        return done(f->recv(a->recvbuff, a->count, type, a->root, comm, queue), "onecclRecv");
    }
}

static xcclResult_t group_start(void)
{
    if (in_use.on_host) {
        return xc_fail(xcclUnsupported, "oneccl: its plugin for host memory has no group calls; "
                                        "issue collectives one by one");
    }
    return done(in_use.fns.group_start(), "onecclGroupStart");
}

static xcclResult_t group_end(void)
{
    return done(in_use.fns.group_end(), "onecclGroupEnd");
}

static xcclResult_t no_group(void)
{
    return xcclSuccess;
}

static xcclResult_t collective(const struct xc_coll_args *args, void *comm, int nranks, int rank);

/* On host memory the broadcasts of an allgatherv follow each other without a group. */
static const struct xc_backend_ops ungrouped = {
    .collective = collective, .group_start = no_group, .group_end = no_group};

static xcclResult_t collective(const struct xc_coll_args *args, void *comm, int nranks, int rank)
{
    if (native(args->coll)) {
        return run_native(args, comm);
    }
    return xc_composed_run(in_use.on_host ? &ungrouped : &xc_backend_oneccl, args, comm, nranks,
                           rank);
}

static xcclResult_t redop_create(xcclRedOp_t *op_p, void *scalar, xcclDataType_t type,
                                 xcclScalarResidence_t residence, void *comm)
{
    int op = 0;

    if (in_use.on_host) {
        return xc_fail(xcclUnsupported,
                       "oneccl: its plugin for host memory has no operations of one's own");
    }
    int rc = in_use.fns.red_op_create_pre_mul_sum(&op, scalar, (int)type, (int)residence, comm);
    if (rc == XC_ONECCL_SUCCESS) {
        *op_p = (xcclRedOp_t)op;
    }
    return done(rc, "onecclRedOpCreatePreMulSum");
}

static xcclResult_t redop_destroy(xcclRedOp_t op, void *comm)
{
    return done(in_use.fns.red_op_destroy((int)op, comm), "onecclRedOpDestroy");
}

static xcclResult_t mem_alloc(void **ptr_p, size_t bytes)
{
    if (!in_use.on_host) {
        return done(in_use.fns.mem_alloc(ptr_p, bytes), "onecclMemAlloc");
    }
    *ptr_p = malloc(bytes);
    return (*ptr_p != NULL)
               ? xcclSuccess
               : xc_fail(xcclSystemError, "oneccl: no %zu bytes of host memory", bytes);
}

static xcclResult_t mem_free(void *ptr)
{
    if (!in_use.on_host) {
        return done(in_use.fns.mem_free(ptr), "onecclMemFree");
    }
    free(ptr);
    return xcclSuccess;
}

static xcclResult_t load(const char *path, bool exactly, struct xc_library *lib_p)
{
    struct xc_oneccl_lib lib;
    xcclResult_t         rc = xc_oneccl_open(path, &lib);

    (void)exactly;
    if (rc != xcclSuccess) {
        return rc;
    }
    in_use.row = lib.row;
    in_use.fns = lib.fns;
    in_use.version = lib.version;
    in_use.on_host = xc_oneccl_on_host();
    xc_library_describe(lib.row, &lib.file, lib.version, lib_p);
    if (in_use.on_host) {
        lib_p->device = "host";
    }
    return xcclSuccess;
}

const struct xc_backend_ops xc_backend_oneccl = {
    .name = "oneccl",
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
    .mem_alloc = mem_alloc,
    .mem_free = mem_free,
};
