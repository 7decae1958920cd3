/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * HCCL's names and numbers: minimum and maximum stand the other way round, an id has a length, a
 * product or an average is carried out as a sum, and abort is destroy.
 */
#include <string.h>

#include "hpu/synapse.h"

/* hcclResult_t */
enum {
    HCCL_SUCCESS = 0,
    HCCL_NO_DEVICE_FOUND = 1,
    HCCL_UNSUPPORTED = 2,
    HCCL_UNHANDLED_SYNAPSE_ERROR = 4,
    HCCL_SYSTEM_ERROR = 5,
    HCCL_INTERNAL_ERROR = 6,
    HCCL_INVALID_ARGUMENT = 7,
    HCCL_INVALID_USAGE = 8,
    HCCL_SOCKET_ERROR = 9,
    HCCL_BUSY = 12,
};

enum { HCCL_SUM, HCCL_PROD, HCCL_MIN, HCCL_MAX, HCCL_AVG, HCCL_NUM_OPS, ID_BYTES = 1024 };

typedef struct {
    uint8_t internal[ID_BYTES];
    size_t  length;
} hcclUniqueId;
_Static_assert(sizeof(hcclUniqueId) == 1032, "hcclUniqueId");

XS_API int         hcclGetVersion(int *version);
XS_API int         hcclGetUniqueId(hcclUniqueId *id);
XS_API int         hcclCommInitRank(void **comm, int nranks, hcclUniqueId id, int rank);
XS_API int         hcclCommInitAll(void **comms, int devices, const int *list);
XS_API int         hcclCommFinalize(void *comm);
XS_API int         hcclCommDestroy(void *comm);
XS_API int         hcclCommAbort(void *comm);
XS_API const char *hcclGetErrorString(int result);
XS_API const char *hcclGetLastErrorMessage(void);
XS_API int         hcclCommGetAsyncError(void *comm, int *error);
XS_API const char *hcclCommGetAsyncErrorMessage(void *comm);
XS_API int         hcclCommCount(void *comm, int *count);
XS_API int         hcclCommSynDevice(void *comm, int *device);
XS_API int         hcclCommUserRank(void *comm, int *rank);
XS_API int hcclReduce(const void *send, void *recv, size_t count, int type, int op, int root,
                      void *comm, void *stream);
XS_API int hcclBcast(void *buff, size_t count, int type, int root, void *comm, void *stream);
XS_API int hcclBroadcast(const void *send, void *recv, size_t count, int type, int root, void *comm,
                         void *stream);
XS_API int hcclAllReduce(const void *send, void *recv, size_t count, int type, int op, void *comm,
                         void *stream);
XS_API int hcclReduceScatter(const void *send, void *recv, size_t recvcount, int type, int op,
                             void *comm, void *stream);
XS_API int hcclAllGather(const void *send, void *recv, size_t sendcount, int type, void *comm,
                         void *stream);
XS_API int hcclAlltoAll(const void *send, void *recv, size_t count, int type, void *comm,
                        void *stream);
XS_API int hcclBarrier(void *comm, void *stream);
XS_API int hcclSend(const void *send, size_t count, int type, int peer, void *comm, void *stream);
XS_API int hcclRecv(void *recv, size_t count, int type, int peer, void *comm, void *stream);
XS_API int hcclGroupStart(void);
XS_API int hcclGroupEnd(void);

static int result_of(enum xs_result res)
{
    static const int results[] = {
        [XS_SUCCESS] = HCCL_SUCCESS,
        [XS_DEVICE_ERROR] = HCCL_UNHANDLED_SYNAPSE_ERROR,
        [XS_SYSTEM_ERROR] = HCCL_SYSTEM_ERROR,
        [XS_INTERNAL_ERROR] = HCCL_INTERNAL_ERROR,
        [XS_INVALID_ARGUMENT] = HCCL_INVALID_ARGUMENT,
        [XS_INVALID_USAGE] = HCCL_INVALID_USAGE,
        [XS_REMOTE_ERROR] = HCCL_SOCKET_ERROR,
        [XS_IN_PROGRESS] = HCCL_BUSY,
    };

    return results[res];
}

static int invalid(const char *what)
{
    return result_of(xs_problem(XS_INVALID_ARGUMENT, "Invalid argument '%s'", what));
}

int hcclGetVersion(int *version)
{
    *version = xs_config()->ccl_version;
    return HCCL_SUCCESS;
}

const char *hcclGetErrorString(int result)
{
    static const char *const texts[] = {
        "no error",      "no device found", "unsupported",     "out of memory",
        "synapse error", "system error",    "internal error",  "invalid argument",
        "invalid usage", "socket error",    "libfabric error", "try again",
        "busy",
    };

    return ((result >= 0) && ((size_t)result < sizeof(texts) / sizeof(texts[0]))) ? texts[result]
                                                                                  : "unknown";
}

const char *hcclGetLastErrorMessage(void)
{
    const char *text = xs_last_problem();

    return (text[0] != '\0') ? text : NULL;
}

const char *hcclCommGetAsyncErrorMessage(void *comm)
{
    (void)comm;
    return hcclGetLastErrorMessage();
}

int hcclGetUniqueId(hcclUniqueId *id)
{
    struct xs_id made;

    if (xs_hpu_enter() == NULL) {
        return HCCL_NO_DEVICE_FOUND;
    }
    int res = result_of(xs_comm_id(&made));
    if (res == HCCL_SUCCESS) {
        memset(id, 0, sizeof(*id));
        memcpy(id->internal, &made, sizeof(made));
        id->length = sizeof(made);
    }
    return res;
}

int hcclCommInitRank(void **comm, int nranks, hcclUniqueId id, int rank)
{
    struct xs_id made;

    if (xs_hpu_enter() == NULL) {
        return HCCL_NO_DEVICE_FOUND;
    }
    if (id.length != sizeof(made)) {
        return invalid("commId");
    }
    memcpy(&made, id.internal, sizeof(made));
    return result_of(xs_comm_init((struct xs_comm **)comm, nranks, &made, rank, true));
}

int hcclCommInitAll(void **comms, int devices, const int *list)
{
    (void)comms;
    (void)devices;
    (void)list;
    return result_of(xs_problem(XS_INVALID_USAGE, "hcclCommInitAll not implemented!"));
}

int hcclCommFinalize(void *comm)
{
    return xs_comm_valid(comm) ? result_of(xs_comm_finalize(comm)) : invalid("comm");
}

int hcclCommDestroy(void *comm)
{
    return xs_comm_valid(comm) ? result_of(xs_comm_destroy(comm)) : invalid("comm");
}

int hcclCommAbort(void *comm)
{
    return hcclCommDestroy(comm);
}

int hcclCommGetAsyncError(void *comm, int *error)
{
    int code = XS_SUCCESS;

    if (!xs_comm_valid(comm)) {
        return invalid("comm");
    }
    int res = result_of(xs_comm_async_error(comm, &code));
    *error = result_of((enum xs_result)code);
    return res;
}

int hcclCommCount(void *comm, int *count)
{
    if (!xs_comm_valid(comm)) {
        return invalid("comm");
    }
    *count = ((struct xs_comm *)comm)->nranks;
    return HCCL_SUCCESS;
}

int hcclCommUserRank(void *comm, int *rank)
{
    if (!xs_comm_valid(comm)) {
        return invalid("comm");
    }
    *rank = ((struct xs_comm *)comm)->rank;
    return HCCL_SUCCESS;
}

int hcclCommSynDevice(void *comm, int *device)
{
    if (!xs_comm_valid(comm)) {
        return invalid("comm");
    }
    *device = 0; /* a process has one */
    return HCCL_SUCCESS;
}

/* It looks for both on every rank, whether the call reads or writes there or not. */
static bool has_addresses(const struct xs_task *task)
{
    struct xs_range range;
    bool            sends = (task->coll != XS_RECV);
    bool            receives =
        (task->coll != XS_SEND) && ((task->coll != XS_REDUCE) || (task->comm->rank == task->root));

    return (!sends || xs_mem_find(task->send, &range)) &&
           (!receives || xs_mem_find(task->recv, &range));
}

static int run(struct xs_task *task, void *stream)
{
    int type = task->type;

    (void)xs_hpu_enter();
    if (!xs_comm_valid(task->comm)) {
        return invalid("commHandle': 'Invalid HCCL communicator handle.");
    }
    if (!has_addresses(task)) {
        return result_of(xs_group_fail(xs_problem(
            XS_INVALID_ARGUMENT, "Invalid argument 'addr': 'Invalid address', send %p, recv %p",
            task->send, task->recv)));
    }
    if ((type != XS_FLOAT32) && (type != XS_BFLOAT16) && (type != XS_FLOAT16) &&
        (type != XS_INT32) && (type != XS_UINT32)) {
        return invalid("datatype': 'Invalid or unsupported data type");
    }
    if (stream == NULL) {
        return invalid("stream_handle': 'Invalid stream.");
    }
    return result_of(xs_call(task, stream));
}

static int run_reduction(struct xs_task *task, int op, void *stream)
{
    static const int ops[HCCL_NUM_OPS] = {
        [HCCL_SUM] = XS_SUM, [HCCL_PROD] = XS_SUM, [HCCL_MIN] = XS_MIN,
        [HCCL_MAX] = XS_MAX, [HCCL_AVG] = XS_SUM,
    };

    if ((op < 0) || (op >= HCCL_NUM_OPS)) {
        return invalid("reduceOp");
    }
    task->op = ops[op];
    return run(task, stream);
}

int hcclReduce(const void *send, void *recv, size_t count, int type, int op, int root, void *comm,
               void *stream)
{
    struct xs_task task = {.coll = XS_REDUCE,
                           .comm = comm,
                           .send = send,
                           .recv = recv,
                           .count = count,
                           .type = type,
                           .root = root};

    return run_reduction(&task, op, stream);
}

int hcclAllReduce(const void *send, void *recv, size_t count, int type, int op, void *comm,
                  void *stream)
{
    struct xs_task task = {.coll = XS_ALLREDUCE,
                           .comm = comm,
                           .send = send,
                           .recv = recv,
                           .count = count,
                           .type = type};

    return run_reduction(&task, op, stream);
}

int hcclReduceScatter(const void *send, void *recv, size_t recvcount, int type, int op, void *comm,
                      void *stream)
{
    struct xs_task task = {.coll = XS_REDUCE_SCATTER,
                           .comm = comm,
                           .send = send,
                           .recv = recv,
                           .count = recvcount,
                           .type = type};

    return run_reduction(&task, op, stream);
}

int hcclBroadcast(const void *send, void *recv, size_t count, int type, int root, void *comm,
                  void *stream)
{
    struct xs_task task = {.coll = XS_BROADCAST,
                           .comm = comm,
                           .send = send,
                           .recv = recv,
                           .count = count,
                           .type = type,
                           .root = root};

    return run(&task, stream);
}

int hcclBcast(void *buff, size_t count, int type, int root, void *comm, void *stream)
{
    return hcclBroadcast(buff, buff, count, type, root, comm, stream);
}

int hcclAllGather(const void *send, void *recv, size_t sendcount, int type, void *comm,
                  void *stream)
{
    struct xs_task task = {.coll = XS_ALLGATHER,
                           .comm = comm,
                           .send = send,
                           .recv = recv,
                           .count = sendcount,
                           .type = type};

    return run(&task, stream);
}

/* count is of the whole buffer. */
int hcclAlltoAll(const void *send, void *recv, size_t count, int type, void *comm, void *stream)
{
    struct xs_task task = {
        .coll = XS_ALLTOALL, .comm = comm, .send = send, .recv = recv, .type = type};

    if (!xs_comm_valid(comm)) {
        return invalid("commHandle': 'Invalid HCCL communicator handle.");
    }
    size_t nranks = (size_t)task.comm->nranks;
    if (count % nranks != 0) {
        return invalid("count': 'hcclAlltoAll count should equally divide by number of ranks");
    }
    task.count = count / nranks;
    return run(&task, stream);
}

int hcclBarrier(void *comm, void *stream)
{
    (void)comm;
    (void)stream;
    return HCCL_UNSUPPORTED;
}

int hcclSend(const void *send, size_t count, int type, int peer, void *comm, void *stream)
{
    struct xs_task task = {
        .coll = XS_SEND, .comm = comm, .send = send, .count = count, .type = type, .root = peer};

    return run(&task, stream);
}

int hcclRecv(void *recv, size_t count, int type, int peer, void *comm, void *stream)
{
    struct xs_task task = {
        .coll = XS_RECV, .comm = comm, .recv = recv, .count = count, .type = type, .root = peer};

    return run(&task, stream);
}

int hcclGroupStart(void)
{
    return result_of(xs_group_start());
}

int hcclGroupEnd(void)
{
    return result_of(xs_group_end());
}
