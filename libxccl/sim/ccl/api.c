/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The entry points that NCCL and RCCL have in common, with nccl.h's types spelt as what they are in
 * the ABI. Compiled once into each of the two libraries.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "ccl/api.h"
#include "core/graph.h"

static const char *const texts[] = {
    "no error",
    "unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
    "unhandled system error (run with NCCL_DEBUG=INFO for details)",
    "internal error - please report this issue to the NCCL developers",
    "invalid argument (run with NCCL_DEBUG=WARN for details)",
    "invalid usage (run with NCCL_DEBUG=WARN for details)",
    "remote process exited or there was a network error",
    "NCCL operation in progress",
};

int ncclGetVersion(int *version)
{
    if (version == NULL) {
        return XS_INVALID_ARGUMENT;
    }
    *version = xs_config()->ccl_version;
    return XS_SUCCESS;
}

const char *ncclGetErrorString(int result)
{
    size_t count = sizeof(texts) / sizeof(texts[0]);

    return ((result >= 0) && ((size_t)result < count)) ? texts[result] : "unknown result code";
}

const char *ncclGetLastError(struct xs_comm *comm)
{
    (void)comm;
    return xs_last_problem();
}

int ncclGetUniqueId(ncclUniqueId *id)
{
    struct xs_id made;

    if (id == NULL) {
        return xs_problem(XS_INVALID_ARGUMENT, "GetUniqueId : out argument is NULL");
    }
    enum xs_result res = xs_comm_id(&made);
    if (res == XS_SUCCESS) {
        memset(id, 0, sizeof(*id));
        memcpy(id, &made, sizeof(made));
    }
    return res;
}

/* The head that every version of ncclConfig_t has; what follows does not matter here. */
struct config {
    size_t   size;
    unsigned magic;
    unsigned version;
    int      blocking;
};

/* Since when INT_MIN says that the program leaves a field open. */
#define UNDEFINED_SINCE 21700

/* *blocking_p: -1 where the program left it open. */
static enum xs_result read_config(const struct config *config, int *blocking_p)
{
    *blocking_p = -1;
    if (config == NULL) {
        return XS_SUCCESS;
    }
    if ((config->magic != 0xcafebeefU) || (config->size < sizeof(*config))) {
        return xs_problem(XS_INVALID_ARGUMENT,
                          "ncclConfig_t argument not initialized via NCCL_CONFIG_INITIALIZER");
    }
    if ((config->blocking != INT_MIN) || (xs_config()->ccl_version < UNDEFINED_SINCE)) {
        if ((config->blocking != 0) && (config->blocking != 1)) {
            return xs_problem(XS_INVALID_ARGUMENT, "Invalid config blocking attribute value %d",
                              config->blocking);
        }
        *blocking_p = config->blocking;
    }
    return XS_SUCCESS;
}

/* It allocates and waits, which a capture of the program's may forbid to the thread. */
static enum xs_result refuse_captures(void)
{
    enum xs_error error = xs_capture_guard();

    return (error == XS_OK) ? XS_SUCCESS
                            : xs_problem(XS_DEVICE_ERROR,
                                         "Cuda failure %d 'operation not permitted when stream is "
                                         "capturing'",
                                         (int)error);
}

int ncclCommInitRankConfig(struct xs_comm **comm, int nranks, ncclUniqueId id, int rank,
                           void *config)
{
    struct xs_id   made;
    int            blocking;
    enum xs_result res = read_config(config, &blocking);

    if (res != XS_SUCCESS) {
        return res;
    }
    if (comm == NULL) {
        return xs_problem(XS_INVALID_ARGUMENT, "CommInitRank : newcomm argument is NULL");
    }
    res = refuse_captures();
    if (res != XS_SUCCESS) {
        return res;
    }
    memcpy(&made, &id, sizeof(made));
    return xs_comm_init(comm, nranks, &made, rank, blocking != 0);
}

int ncclCommInitRank(struct xs_comm **comm, int nranks, ncclUniqueId id, int rank)
{
    return ncclCommInitRankConfig(comm, nranks, id, rank, NULL);
}

int ncclCommInitAll(struct xs_comm **comms, int ndev, const int *devlist)
{
    if (comms == NULL) {
        return xs_problem(XS_INVALID_ARGUMENT, "CommInitAll : comms argument is NULL");
    }
    return xs_comm_init_all(comms, ndev, devlist);
}

static enum xs_result check_comm(const struct xs_comm *comm, const void *out)
{
    if (!xs_comm_valid(comm)) {
        return xs_problem(XS_INVALID_ARGUMENT, "comm argument is not a communicator");
    }
    return (out == NULL) ? xs_problem(XS_INVALID_ARGUMENT, "output argument is NULL") : XS_SUCCESS;
}

static enum xs_result check_ready(const struct xs_comm *comm, const void *out)
{
    enum xs_result res = check_comm(comm, out);

    return (res != XS_SUCCESS) ? res : xs_comm_ready(comm);
}

int ncclCommSplit(struct xs_comm *comm, int color, int key, struct xs_comm **newcomm, void *config)
{
    int            blocking = -1;
    enum xs_result res = check_comm(comm, newcomm);

    if (res == XS_SUCCESS) {
        res = read_config(config, &blocking);
    }
    if ((config != NULL) && (blocking < 0)) {
        blocking = 1; /* only without a configuration is the parent's kept */
    }
    return (res != XS_SUCCESS) ? res : xs_comm_split(comm, color, key, blocking, newcomm);
}

int ncclCommFinalize(struct xs_comm *comm)
{
    enum xs_result res = check_comm(comm, comm);

    return (res != XS_SUCCESS) ? res : xs_comm_finalize(comm);
}

static bool is_mscclpp(void)
{
    return xs_config()->library == XS_MSCCLPP;
}

/* NULL is fine for both, as in NCCL. */
int ncclCommDestroy(struct xs_comm *comm)
{
    enum xs_result res = (comm == NULL) ? XS_SUCCESS : check_comm(comm, comm);

    if ((comm != NULL) && (res == XS_SUCCESS)) {
        res = refuse_captures();
    }
    return ((comm == NULL) || (res != XS_SUCCESS)) ? res : xs_comm_destroy(comm);
}

int ncclCommAbort(struct xs_comm *comm)
{
    enum xs_result res = (comm == NULL) ? XS_SUCCESS : check_comm(comm, comm);

    if (is_mscclpp()) {
        return XS_SUCCESS; /* a function without a body, in 0.9.0 */
    }
    if ((comm != NULL) && (res == XS_SUCCESS)) {
        res = refuse_captures();
    }
    return ((comm == NULL) || (res != XS_SUCCESS)) ? res : xs_comm_abort(comm);
}

int ncclCommGetAsyncError(struct xs_comm *comm, int *async_error)
{
    enum xs_result res = check_comm(comm, async_error);

    return (res != XS_SUCCESS) ? res : xs_comm_async_error(comm, async_error);
}

int ncclCommCount(const struct xs_comm *comm, int *count)
{
    enum xs_result res = check_ready(comm, count);

    if (res == XS_SUCCESS) {
        *count = comm->nranks;
    }
    return res;
}

int ncclCommUserRank(const struct xs_comm *comm, int *rank)
{
    enum xs_result res = check_ready(comm, rank);

    if (res == XS_SUCCESS) {
        *rank = comm->rank;
    }
    return res;
}

int ncclCommCuDevice(const struct xs_comm *comm, int *device)
{
    enum xs_result res = check_ready(comm, device);

    if (res == XS_SUCCESS) {
        *device = is_mscclpp() ? comm->rank : comm->device; /* so it says in 0.9.0 */
    }
    return res;
}

int ncclCommRegister(const struct xs_comm *comm, void *buff, size_t size, void **handle)
{
    enum xs_result res = check_comm(comm, handle);

    if (is_mscclpp()) {
        return xs_problem(XS_INTERNAL_ERROR, "ncclCommRegister is currently unavailable");
    }
    return (res != XS_SUCCESS)
               ? res
               : xs_comm_register((struct xs_comm *)(uintptr_t)comm, buff, size, handle);
}

int ncclCommDeregister(const struct xs_comm *comm, void *handle)
{
    enum xs_result res = check_comm(comm, comm);

    return (res != XS_SUCCESS) ? res
                               : xs_comm_deregister((struct xs_comm *)(uintptr_t)comm, handle);
}

int ncclMemAlloc(void **ptr, size_t size)
{
    struct xs_ctx *ctx = xs_ctx_current();

    if ((ptr == NULL) || (size == 0)) {
        return xs_problem(XS_INVALID_ARGUMENT, "ncclMemAlloc : needs a pointer and a size");
    }
    if ((ctx == NULL) || (xs_ccl_alloc(ctx, size, ptr) != XS_OK)) {
        return xs_problem(XS_DEVICE_ERROR, "ncclMemAlloc : no %zu bytes on the current device",
                          size);
    }
    return XS_SUCCESS;
}

int ncclMemFree(void *ptr)
{
    if ((ptr != NULL) && (xs_ccl_free(ptr) != XS_OK)) {
        return xs_problem(XS_DEVICE_ERROR, "ncclMemFree : %p was not allocated", ptr);
    }
    return XS_SUCCESS;
}

int ncclRedOpCreatePreMulSum(int *op, void *scalar, int datatype, int residence,
                             struct xs_comm *comm)
{
    enum xs_result res = check_comm(comm, op);

    if ((res == XS_SUCCESS) && (scalar == NULL)) {
        res = xs_problem(XS_INVALID_ARGUMENT, "ncclRedOpCreatePreMulSum : scalar is NULL");
    }
    return (res != XS_SUCCESS) ? res : xs_comm_op_create(comm, scalar, datatype, residence, op);
}

int ncclRedOpDestroy(int op, struct xs_comm *comm)
{
    enum xs_result res = check_comm(comm, comm);

    return (res != XS_SUCCESS) ? res : xs_comm_op_destroy(comm, op);
}

int ncclAllReduce(const void *sendbuff, void *recvbuff, size_t count, int datatype, int op,
                  struct xs_comm *comm, void *stream)
{
    struct xs_task task = {.coll = XS_ALLREDUCE,
                           .comm = comm,
                           .send = sendbuff,
                           .recv = recvbuff,
                           .count = count,
                           .type = datatype,
                           .op = op};

    return xs_call(&task, stream);
}

int ncclReduce(const void *sendbuff, void *recvbuff, size_t count, int datatype, int op, int root,
               struct xs_comm *comm, void *stream)
{
    struct xs_task task = {.coll = XS_REDUCE,
                           .comm = comm,
                           .send = sendbuff,
                           .recv = recvbuff,
                           .count = count,
                           .type = datatype,
                           .op = op,
                           .root = root};

    return xs_call(&task, stream);
}

int ncclReduceScatter(const void *sendbuff, void *recvbuff, size_t recvcount, int datatype, int op,
                      struct xs_comm *comm, void *stream)
{
    struct xs_task task = {.coll = XS_REDUCE_SCATTER,
                           .comm = comm,
                           .send = sendbuff,
                           .recv = recvbuff,
                           .count = recvcount,
                           .type = datatype,
                           .op = op};

    return xs_call(&task, stream);
}

int ncclBroadcast(const void *sendbuff, void *recvbuff, size_t count, int datatype, int root,
                  struct xs_comm *comm, void *stream)
{
    struct xs_task task = {.coll = XS_BROADCAST,
                           .comm = comm,
                           .send = sendbuff,
                           .recv = recvbuff,
                           .count = count,
                           .type = datatype,
                           .root = root};

    return xs_call(&task, stream);
}

int ncclBcast(void *buff, size_t count, int datatype, int root, struct xs_comm *comm, void *stream)
{
    return ncclBroadcast(buff, buff, count, datatype, root, comm, stream);
}

int ncclAllGather(const void *sendbuff, void *recvbuff, size_t sendcount, int datatype,
                  struct xs_comm *comm, void *stream)
{
    struct xs_task task = {.coll = XS_ALLGATHER,
                           .comm = comm,
                           .send = sendbuff,
                           .recv = recvbuff,
                           .count = sendcount,
                           .type = datatype};

    return xs_call(&task, stream);
}

int ncclGather(const void *sendbuff, void *recvbuff, size_t count, int datatype, int root,
               struct xs_comm *comm, void *stream)
{
    struct xs_task task = {.coll = XS_GATHER,
                           .comm = comm,
                           .send = sendbuff,
                           .recv = recvbuff,
                           .count = count,
                           .type = datatype,
                           .root = root};

    return xs_call(&task, stream);
}

int ncclScatter(const void *sendbuff, void *recvbuff, size_t count, int datatype, int root,
                struct xs_comm *comm, void *stream)
{
    struct xs_task task = {.coll = XS_SCATTER,
                           .comm = comm,
                           .send = sendbuff,
                           .recv = recvbuff,
                           .count = count,
                           .type = datatype,
                           .root = root};

    return xs_call(&task, stream);
}

int xs_api_alltoall(const void *sendbuff, void *recvbuff, size_t count, int datatype,
                    struct xs_comm *comm, void *stream)
{
    struct xs_task task = {.coll = XS_ALLTOALL,
                           .comm = comm,
                           .send = sendbuff,
                           .recv = recvbuff,
                           .count = count,
                           .type = datatype};

    return xs_call(&task, stream);
}

int ncclSend(const void *sendbuff, size_t count, int datatype, int peer, struct xs_comm *comm,
             void *stream)
{
    struct xs_task task = {.coll = XS_SEND,
                           .comm = comm,
                           .send = sendbuff,
                           .count = count,
                           .type = datatype,
                           .root = peer};

    return xs_call(&task, stream);
}

int ncclRecv(void *recvbuff, size_t count, int datatype, int peer, struct xs_comm *comm,
             void *stream)
{
    struct xs_task task = {.coll = XS_RECV,
                           .comm = comm,
                           .recv = recvbuff,
                           .count = count,
                           .type = datatype,
                           .root = peer};

    return xs_call(&task, stream);
}

int ncclGroupStart(void)
{
    return xs_group_start();
}

int ncclGroupEnd(void)
{
    return xs_group_end();
}
