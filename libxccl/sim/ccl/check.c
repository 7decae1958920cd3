/* SPDX-License-Identifier: BSD-3-Clause */
/* What a call is refused for: its arguments, and memory that the device cannot reach. */
#include "ccl/ccl.h"

size_t xs_type_bytes(int type)
{
    static const size_t bytes[XS_NUM_TYPES] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};

    return ((type >= 0) && (type < XS_NUM_TYPES)) ? bytes[type] : 0;
}

const char *xs_coll_name(enum xs_coll coll)
{
    static const char *const names[] = {"allreduce", "bcast",    "reduce", "reduce_scatter",
                                        "allgather", "alltoall", "gather", "scatter",
                                        "send",      "recv"};

    return names[coll];
}

/* Blocks of count elements that the call reads (or writes) on this rank. */
static size_t send_blocks(const struct xs_task *task)
{
    size_t nranks = (size_t)task->comm->nranks;
    bool   root = (task->comm->rank == task->root);

    switch (task->coll) {
    case XS_BROADCAST:
        return root ? 1 : 0;
    case XS_SCATTER:
        return root ? nranks : 0;
    case XS_REDUCE_SCATTER:
    case XS_ALLTOALL:
        return nranks;
    case XS_RECV:
        return 0;
    default:
        return 1;
    }
}

static size_t recv_blocks(const struct xs_task *task)
{
    size_t nranks = (size_t)task->comm->nranks;
    bool   root = (task->comm->rank == task->root);

    switch (task->coll) {
    case XS_REDUCE:
        return root ? 1 : 0;
    case XS_GATHER:
        return root ? nranks : 0;
    case XS_ALLGATHER:
    case XS_ALLTOALL:
        return nranks;
    case XS_SEND:
        return 0;
    default:
        return 1;
    }
}

size_t xs_send_bytes(const struct xs_task *task)
{
    return send_blocks(task) * task->count * xs_type_bytes(task->type);
}

size_t xs_recv_bytes(const struct xs_task *task)
{
    return recv_blocks(task) * task->count * xs_type_bytes(task->type);
}

static bool reduces(enum xs_coll coll)
{
    return (coll == XS_ALLREDUCE) || (coll == XS_REDUCE) || (coll == XS_REDUCE_SCATTER);
}

static bool good_op(const struct xs_task *task)
{
    int i = task->op - XS_NUM_OPS;

    if (!reduces(task->coll) || ((task->op >= 0) && (i < 0))) {
        return true;
    }
    return (i >= 0) && (i < XS_MAX_USER_OPS) && task->comm->ops[i].used &&
           (task->comm->ops[i].type == task->type);
}

/* Where the simulation finds [ptr, ptr + bytes), and how other processes do. */
static enum xs_result find_memory(const struct xs_task *task, const char *which, const void *ptr,
                                  size_t bytes, void **at_p, struct xs_place *place_p)
{
    const struct xs_comm *comm = task->comm;
    const char           *name = xs_coll_name(task->coll);
    struct xs_range       range;

    *at_p = NULL;
    *place_p = (struct xs_place){0, 0, 0, 0};
    if (bytes == 0) {
        return XS_SUCCESS;
    }
    bool found = (ptr != NULL) && xs_mem_find(ptr, &range);
    if (!found && (ptr != NULL) && (xs_config()->flavour == XS_HOST)) {
        *at_p =
            (void *)(uintptr_t)ptr; /* others reach it through a stand-in, as registered memory */
        return XS_SUCCESS;
    }
    if (!found) {
        return xs_problem(XS_INVALID_ARGUMENT,
                          "%s : %s %p is not a valid pointer: the device "
                          "cannot reach it",
                          name, which, ptr);
    }
    if (!xs_mem_reaches(&range, comm->ctx)) {
        return xs_problem(XS_INVALID_ARGUMENT,
                          "%s : %s allocated on device %d mismatchs with NCCL device %d", name,
                          which, range.device, comm->device);
    }
    *at_p = xs_mem_touch(ptr, bytes, &range);
    if (*at_p == NULL) {
        return xs_problem(XS_INVALID_ARGUMENT,
                          "%s : %s %p: %zu bytes go beyond the end of its allocation of %zu", name,
                          which, ptr, bytes, range.size);
    }
    *place_p = range.place;
    place_p->offset += (uintptr_t)ptr - range.base;
    return XS_SUCCESS;
}

/* Registered memory lies in no file that others can map: a pinned block stands in for it. */
static enum xs_result make_bounce(const struct xs_task *task, size_t bytes, void **bounce_p,
                                  struct xs_place *place_p)
{
    struct xs_range range;

    if ((bytes == 0) || (place_p->pid != 0)) {
        return XS_SUCCESS;
    }
    if ((xs_mem_take(task->comm->ctx, XS_MEM_HOST, bytes, 0, bounce_p) != XS_OK) ||
        !xs_mem_find(*bounce_p, &range)) {
        return xs_problem(XS_SYSTEM_ERROR, "no room to stage %zu bytes of registered memory",
                          bytes);
    }
    *place_p = range.place;
    return XS_SUCCESS;
}

enum xs_result xs_check(struct xs_task *task)
{
    const struct xs_comm *comm = task->comm;
    const char           *name = xs_coll_name(task->coll);
    size_t                size = xs_type_bytes(task->type);
    size_t                total;
    enum xs_result        res;

    if (size == 0) {
        return xs_problem(XS_INVALID_ARGUMENT, "%s : invalid type %d", name, task->type);
    }
    if (!good_op(task)) {
        return xs_problem(XS_INVALID_ARGUMENT, "%s : invalid reduction operation %d", name,
                          task->op);
    }
    if ((task->root < 0) || (task->root >= comm->nranks)) {
        return xs_problem(XS_INVALID_ARGUMENT,
                          "%s : invalid root or peer %d (it should be in the "
                          "0..%d range)",
                          name, task->root, comm->nranks - 1);
    }
    if (__builtin_mul_overflow(task->count, size * (size_t)comm->nranks, &total)) {
        return xs_problem(XS_INVALID_ARGUMENT, "%s : count %zu is too large", name, task->count);
    }
    res = xs_check_limits(task);
    if (res != XS_SUCCESS) {
        return res;
    }
    res = find_memory(task, "sendbuff", task->send, xs_send_bytes(task), &task->send_at,
                      &task->send_place);
    if (res == XS_SUCCESS) {
        res = find_memory(task, "recvbuff", task->recv, xs_recv_bytes(task), &task->recv_at,
                          &task->recv_place);
    }
    if (res == XS_SUCCESS) {
        res = make_bounce(task, xs_send_bytes(task), &task->bounce_send, &task->send_place);
    }
    if (res == XS_SUCCESS) {
        res = make_bounce(task, xs_recv_bytes(task), &task->bounce_recv, &task->recv_place);
    }
    return res;
}
