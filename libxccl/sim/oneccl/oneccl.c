/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * oneCCL's C API as its plugin for host memory serves it: collectives on ordinary memory that
 * return when the result is there, no messages, no groups, no average.
 */
#include <stdlib.h>
#include <string.h>

#include "ccl/ccl.h"

enum {
    ONECCL_SUCCESS = 0,
    ONECCL_ERROR = 1,
    ONECCL_SYSTEM_ERROR = 2,
    ONECCL_INTERNAL_ERROR = 3,
    ONECCL_INVALID_ARGUMENT = 4,
    ONECCL_INVALID_USAGE = 5,
    ONECCL_IN_PROGRESS = 6,
    ONECCL_FAILURE_CPU = 8,
    ONECCL_PLUGIN_EXCEPTION = 11,
    ONECCL_NOT_IMPLEMENTED = 12,
};
enum { ONECCL_VERSION = 20220100, ONECCL_NUM_TYPES = 10, ONECCL_AVG = 4, ID_BYTES = 4096 };

typedef struct {
    char data[ID_BYTES];
} onecclUniqueId;

XS_API int         onecclGetVersion(int *version);
XS_API int         onecclExtractVersionComponents(int code, int *major, int *minor, int *patch);
XS_API int         onecclGetUniqueId(onecclUniqueId *id);
XS_API const char *onecclGetErrorString(int result);
XS_API const char *onecclGetLastError(struct xs_comm *comm);
XS_API int onecclCommInitRank(struct xs_comm **comm, size_t nranks, onecclUniqueId id, int rank);
XS_API int onecclCommInitRankConfig(struct xs_comm **comm, size_t nranks, onecclUniqueId id,
                                    int rank, const void *config);
XS_API int onecclCommSplit(struct xs_comm *comm, int color, int key, struct xs_comm **newcomm,
                           void *config);
XS_API int onecclCommFinalize(struct xs_comm *comm);
XS_API int onecclCommDestroy(struct xs_comm *comm);
XS_API int onecclCommAbort(struct xs_comm *comm);
XS_API int onecclCommCount(const struct xs_comm *comm, int *count);
XS_API int onecclCommUserRank(const struct xs_comm *comm, int *rank);
XS_API int onecclCommDevice(const struct xs_comm *comm, int *device);
XS_API int onecclSetDevice(uint32_t index);
XS_API int onecclMemAlloc(void **ptr, size_t size);
XS_API int onecclMemFree(void *ptr);
XS_API int onecclRedOpCreatePreMulSum(int *op, void *scalar, int type, int residence,
                                      struct xs_comm *comm);
XS_API int onecclRedOpDestroy(int op, struct xs_comm *comm);
XS_API int onecclAllReduce(void *send, void *recv, size_t count, int type, int op,
                           struct xs_comm *comm, void *queue);
XS_API int onecclReduce(const void *send, void *recv, size_t count, int type, int op, int root,
                        struct xs_comm *comm, void *queue);
XS_API int onecclReduceScatter(const void *send, void *recv, size_t recvcount, int type, int op,
                               struct xs_comm *comm, void *queue);
XS_API int onecclBroadcast(const void *send, void *recv, size_t count, int type, int root,
                           struct xs_comm *comm, void *queue);
XS_API int onecclAllGather(const void *send, void *recv, size_t sendcount, int type,
                           struct xs_comm *comm, void *queue);
XS_API int onecclAllToAll(const void *send, void *recv, size_t count, int type,
                          struct xs_comm *comm, void *queue);
XS_API int onecclSend(const void *send, size_t count, int type, int peer, struct xs_comm *comm,
                      void *queue);
XS_API int onecclRecv(void *recv, size_t count, int type, int peer, struct xs_comm *comm,
                      void *queue);
XS_API int onecclGroupStart(void);
XS_API int onecclGroupEnd(void);

static int result_of(enum xs_result res)
{
    static const int results[] = {
        [XS_SUCCESS] = ONECCL_SUCCESS,
        [XS_DEVICE_ERROR] = ONECCL_FAILURE_CPU,
        [XS_SYSTEM_ERROR] = ONECCL_SYSTEM_ERROR,
        [XS_INTERNAL_ERROR] = ONECCL_INTERNAL_ERROR,
        [XS_INVALID_ARGUMENT] = ONECCL_INVALID_ARGUMENT,
        [XS_INVALID_USAGE] = ONECCL_INVALID_USAGE,
        [XS_REMOTE_ERROR] = ONECCL_ERROR,
        [XS_IN_PROGRESS] = ONECCL_IN_PROGRESS,
    };

    return results[res];
}

static int exception(const char *call, const char *text)
{
    (void)xs_problem(XS_INTERNAL_ERROR, "[%s] caught std::exception: %s", call, text);
    return ONECCL_PLUGIN_EXCEPTION;
}

static int not_implemented(const char *call)
{
    (void)xs_problem(XS_INTERNAL_ERROR, "Plugin does not implement %s", call);
    return ONECCL_NOT_IMPLEMENTED;
}

/* Without a SYCL device only the plugin for host memory starts, and only when it is asked for. */
static int start(void)
{
    const char *plugin = getenv("CCL_PLUGIN");

    if ((plugin == NULL) || (strcasestr(plugin, "legacy_cpu") == NULL)) {
        (void)xs_problem(XS_INTERNAL_ERROR, "oneCCL could not be initialized! Could not load any "
                                            "plugin. Please rerun with `CCL_LOG_LEVEL=info`.");
        return ONECCL_ERROR;
    }
    return ONECCL_SUCCESS;
}

int onecclGetVersion(int *version)
{
    int res = start();

    if (res == ONECCL_SUCCESS) {
        *version = (xs_config()->library == XS_ONECCL) ? xs_config()->ccl_version : ONECCL_VERSION;
    }
    return res;
}

int onecclExtractVersionComponents(int code, int *major, int *minor, int *patch)
{
    *major = code / 10000;
    *minor = code / 100 % 100;
    *patch = code % 100;
    return ONECCL_SUCCESS;
}

const char *onecclGetErrorString(int result)
{
    static const char *const texts[] = {
        "Success",
        "Generic error",
        "System error",
        "Internal error",
        "Invalid argument",
        "Invalid usage",
        "In progress",
        "GPU failure",
        "CPU failure",
        "CPU allocation failure",
        "GPU allocation failure",
        "Exception in a plugin",
        "Not implemented",
    };

    return ((result >= 0) && ((size_t)result < sizeof(texts) / sizeof(texts[0]))) ? texts[result]
                                                                                  : "Unknown";
}

const char *onecclGetLastError(struct xs_comm *comm)
{
    (void)comm;
    return xs_last_problem();
}

/* The context whose streams carry this process's collectives. */
static int enter(void)
{
    struct xs_ctx *ctx;
    int            res = start();

    if ((res != ONECCL_SUCCESS) || (xs_ctx_current() != NULL)) {
        return res;
    }
    if ((xs_init(XS_HOST) != XS_OK) ||
        (xs_primary_retain(xs_config()->rank % xs_config()->devices, &ctx) != XS_OK) ||
        (xs_ctx_set(ctx) != XS_OK)) {
        return exception("init", "the simulation does not offer oneCCL: XCCL_SIM is not oneccl:N");
    }
    return ONECCL_SUCCESS;
}

int onecclGetUniqueId(onecclUniqueId *id)
{
    struct xs_id made;
    int          res = enter();

    if (res == ONECCL_SUCCESS) {
        res = result_of(xs_comm_id(&made));
    }
    if (res == ONECCL_SUCCESS) {
        memset(id, 0, sizeof(*id));
        memcpy(id->data, &made, sizeof(made));
    }
    return res;
}

/* Of an id that was cut on its way the end is not zero, or its begin not ours. */
int onecclCommInitRank(struct xs_comm **comm, size_t nranks, onecclUniqueId id, int rank)
{
    struct xs_id made;
    int          res = enter();

    for (size_t i = sizeof(made); i < sizeof(id.data); i++) {
        if ((res == ONECCL_SUCCESS) && (id.data[i] != 0)) {
            return exception("onecclCommInitRank", "the unique id is damaged");
        }
    }
    if ((res == ONECCL_SUCCESS) && (nranks > XS_MAX_RANKS)) {
        return exception("onecclCommInitRank", "too many ranks");
    }
    memcpy(&made, id.data, sizeof(made));
    return (res != ONECCL_SUCCESS) ? res
                                   : result_of(xs_comm_init(comm, (int)nranks, &made, rank, true));
}

/* The head of onecclConfig_t. */
struct config {
    size_t   size;
    unsigned magic;
};

int onecclCommInitRankConfig(struct xs_comm **comm, size_t nranks, onecclUniqueId id, int rank,
                             const void *config)
{
    const struct config *head = config;

    if ((head != NULL) && ((head->magic != 0xcafebeefU) || (head->size != 56))) {
        return exception("onecclCommInitRankConfig", "config was not initialised");
    }
    return onecclCommInitRank(comm, nranks, id, rank);
}

int onecclCommSplit(struct xs_comm *comm, int color, int key, struct xs_comm **newcomm,
                    void *config)
{
    (void)config;
    return xs_comm_valid(comm) ? result_of(xs_comm_split(comm, color, key, 1, newcomm))
                               : ONECCL_INVALID_ARGUMENT;
}

int onecclCommFinalize(struct xs_comm *comm)
{
    return xs_comm_valid(comm) ? result_of(xs_comm_finalize(comm)) : ONECCL_INVALID_ARGUMENT;
}

int onecclCommDestroy(struct xs_comm *comm)
{
    return xs_comm_valid(comm) ? result_of(xs_comm_destroy(comm)) : ONECCL_INVALID_ARGUMENT;
}

int onecclCommAbort(struct xs_comm *comm)
{
    (void)comm;
    return not_implemented("onecclCommAbort");
}

int onecclCommCount(const struct xs_comm *comm, int *count)
{
    if (!xs_comm_valid(comm)) {
        return ONECCL_INVALID_ARGUMENT;
    }
    *count = comm->nranks;
    return ONECCL_SUCCESS;
}

int onecclCommUserRank(const struct xs_comm *comm, int *rank)
{
    if (!xs_comm_valid(comm)) {
        return ONECCL_INVALID_ARGUMENT;
    }
    *rank = comm->rank;
    return ONECCL_SUCCESS;
}

int onecclCommDevice(const struct xs_comm *comm, int *device)
{
    (void)comm;
    (void)device;
    return not_implemented("onecclCommDevice");
}

int onecclSetDevice(uint32_t index)
{
    (void)index;
    return not_implemented("onecclSetDevice");
}

int onecclMemAlloc(void **ptr, size_t size)
{
    (void)ptr;
    (void)size;
    return not_implemented("onecclMemAlloc");
}

int onecclMemFree(void *ptr)
{
    (void)ptr;
    return not_implemented("onecclMemFree");
}

int onecclRedOpCreatePreMulSum(int *op, void *scalar, int type, int residence, struct xs_comm *comm)
{
    (void)op;
    (void)scalar;
    (void)type;
    (void)residence;
    (void)comm;
    return not_implemented("onecclRedOpCreatePreMulSum");
}

int onecclRedOpDestroy(int op, struct xs_comm *comm)
{
    (void)op;
    (void)comm;
    return not_implemented("onecclRedOpDestroy");
}

/* Enqueue on the context's default stream and wait: there are no queues here. */
static int run(const char *call, struct xs_task *task, int type, void *queue)
{
    struct xs_stream *stream;

    task->type = type;
    if ((type < 0) || (type >= ONECCL_NUM_TYPES)) {
        return exception(call, "Unsupported onecclDataType_t value");
    }
    if ((task->op < 0) || (task->op >= ONECCL_AVG)) {
        return exception(call, "Unsupported onecclRedOp_t value");
    }
    if (queue != NULL) {
        return exception(call, "there is no queue on host memory");
    }
    int res = result_of(xs_call(task, NULL));
    if ((res == ONECCL_SUCCESS) && (xs_stream_get(task->comm->ctx, NULL, &stream) == XS_OK)) {
        xs_stream_sync(stream);
    }
    return res;
}

int onecclAllReduce(void *send, void *recv, size_t count, int type, int op, struct xs_comm *comm,
                    void *queue)
{
    struct xs_task task = {
        .coll = XS_ALLREDUCE, .comm = comm, .send = send, .recv = recv, .count = count, .op = op};

    return run("onecclAllReduce", &task, type, queue);
}

int onecclReduce(const void *send, void *recv, size_t count, int type, int op, int root,
                 struct xs_comm *comm, void *queue)
{
    struct xs_task task = {.coll = XS_REDUCE,
                           .comm = comm,
                           .send = send,
                           .recv = recv,
                           .count = count,
                           .op = op,
                           .root = root};

    return run("onecclReduce", &task, type, queue);
}

int onecclReduceScatter(const void *send, void *recv, size_t recvcount, int type, int op,
                        struct xs_comm *comm, void *queue)
{
    struct xs_task task = {.coll = XS_REDUCE_SCATTER,
                           .comm = comm,
                           .send = send,
                           .recv = recv,
                           .count = recvcount,
                           .op = op};

    return run("onecclReduceScatter", &task, type, queue);
}

int onecclBroadcast(const void *send, void *recv, size_t count, int type, int root,
                    struct xs_comm *comm, void *queue)
{
    struct xs_task task = {.coll = XS_BROADCAST,
                           .comm = comm,
                           .send = send,
                           .recv = recv,
                           .count = count,
                           .root = root};

    return run("onecclBroadcast", &task, type, queue);
}

int onecclAllGather(const void *send, void *recv, size_t sendcount, int type, struct xs_comm *comm,
                    void *queue)
{
    struct xs_task task = {
        .coll = XS_ALLGATHER, .comm = comm, .send = send, .recv = recv, .count = sendcount};

    return run("onecclAllGather", &task, type, queue);
}

int onecclAllToAll(const void *send, void *recv, size_t count, int type, struct xs_comm *comm,
                   void *queue)
{
    struct xs_task task = {
        .coll = XS_ALLTOALL, .comm = comm, .send = send, .recv = recv, .count = count};

    return run("onecclAllToAll", &task, type, queue);
}

/* The real ones wait for ever here. */
int onecclSend(const void *send, size_t count, int type, int peer, struct xs_comm *comm,
               void *queue)
{
    (void)send;
    (void)count;
    (void)type;
    (void)peer;
    (void)comm;
    (void)queue;
    return exception("onecclSend", "the simulation has no messages on host memory");
}

int onecclRecv(void *recv, size_t count, int type, int peer, struct xs_comm *comm, void *queue)
{
    (void)recv;
    (void)count;
    (void)type;
    (void)peer;
    (void)comm;
    (void)queue;
    return exception("onecclRecv", "the simulation has no messages on host memory");
}

int onecclGroupStart(void)
{
    return exception("onecclGroupStart", "No device of requested type available.");
}

int onecclGroupEnd(void)
{
    return exception("onecclGroupEnd", "No device of requested type available.");
}
