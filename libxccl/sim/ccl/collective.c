/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives, on the stream's thread: every rank posts what it was called with and where its
 * buffers are, waits for all, moves its share straight from memory to memory, and waits for all.
 * Shares are cut so that an element that one rank overwrites is read by that rank alone: every
 * in-place form works.
 */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "ccl/ccl.h"

unsigned char *xs_reach(struct xs_comm *comm, int rank, const struct xs_place *place)
{
    unsigned char *file = xs_place_map(place);

    if (file == NULL) {
        xs_comm_fail(comm, XS_REMOTE_ERROR, "the memory of rank %d cannot be reached: it is gone",
                     rank);
        return NULL;
    }
    return file + place->offset;
}

static bool reduces(int coll)
{
    return (coll == XS_ALLREDUCE) || (coll == XS_REDUCE) || (coll == XS_REDUCE_SCATTER);
}

/* Where data is only moved, bytes count, whatever type each rank gave them. */
static bool agree(const struct xs_post *a, const struct xs_post *b)
{
    if ((a->coll != b->coll) || (a->root != b->root)) {
        return false;
    }
    if (!reduces(a->coll)) {
        return a->count * xs_type_bytes(a->type) == b->count * xs_type_bytes(b->type);
    }
    int op_a = (a->op < XS_NUM_OPS) ? a->op : XS_NUM_OPS;
    int op_b = (b->op < XS_NUM_OPS) ? b->op : XS_NUM_OPS;
    return (a->count == b->count) && (a->type == b->type) && (op_a == op_b);
}

static bool compare_posts(struct xs_comm *comm)
{
    const struct xs_post *first = &comm->region->slots[0].post;

    for (int i = 1; i < comm->nranks; i++) {
        const struct xs_post *other = &comm->region->slots[i].post;

        if (agree(first, other)) {
            continue;
        }
        xs_comm_fail(
            comm, XS_INVALID_USAGE,
            "Mismatched collective %llu detected : rank 0 called %s (count %llu type %d op "
            "%d root %d), rank %d called %s (count %llu type %d op %d root %d)",
            (unsigned long long)first->number, xs_coll_name((enum xs_coll)first->coll),
            (unsigned long long)first->count, first->type, first->op, first->root, i,
            xs_coll_name((enum xs_coll)other->coll), (unsigned long long)other->count, other->type,
            other->op, other->root);
        return false;
    }
    return true;
}

static void fill_scalar(const struct xs_task *task, struct xs_post *post)
{
    const struct xs_user_op *op;

    if (!reduces(task->coll) || (task->op < XS_NUM_OPS)) {
        return;
    }
    op = &task->comm->ops[task->op - XS_NUM_OPS];
    memcpy(post->scalar, op->from_device ? op->address : op->scalar, xs_type_bytes(task->type));
}

static void post(const struct xs_task *task)
{
    struct xs_comm *comm = task->comm;
    bool            rooted = (task->coll == XS_BROADCAST) || (task->coll == XS_REDUCE) ||
                  (task->coll == XS_GATHER) || (task->coll == XS_SCATTER);
    struct xs_post mine = {.coll = (int32_t)task->coll,
                           .type = task->type,
                           .op = task->op,
                           .root = rooted ? task->root : 0,
                           .count = task->count,
                           .number = ++comm->posted,
                           .send = task->send_place,
                           .recv = task->recv_place};

    fill_scalar(task, &mine);
    comm->region->slots[comm->rank].post = mine;
}

/* Elements of the share of rank when count are cut among all: [*first_p, *first_p + result). */
static size_t share(size_t count, int nranks, int rank, size_t *first_p)
{
    const size_t grain = 64; /* shares do not meet in a cache line, but for the smallest counts */
    size_t       each = (count + (size_t)nranks - 1) / (size_t)nranks;

    each = (each + grain - 1) / grain * grain;
    size_t first = each * (size_t)rank;
    if (first >= count) {
        *first_p = count;
        return 0;
    }
    *first_p = first;
    return (count - first < each) ? count - first : each;
}

/* Reduce this rank's share, and put it where the collective wants it. */
static bool run_reduction(struct xs_task *task)
{
    struct xs_comm      *comm = task->comm;
    const unsigned char *from[XS_MAX_RANKS];
    const unsigned char *scalars[XS_MAX_RANKS];
    unsigned char       *targets[XS_MAX_RANKS];
    int                  target_count = 0;
    size_t               total = task->count;
    size_t               first = (size_t)comm->rank * task->count;
    size_t               count = task->count;
    size_t               size = xs_type_bytes(task->type);

    if (task->coll != XS_REDUCE_SCATTER) {
        count = share(total, comm->nranks, comm->rank, &first);
    }
    for (int i = 0; i < comm->nranks; i++) {
        const struct xs_post *peer = &comm->region->slots[i].post;

        from[i] = xs_reach(comm, i, &peer->send);
        scalars[i] = peer->scalar;
        if (from[i] == NULL) {
            return false;
        }
        bool wants = (task->coll == XS_ALLREDUCE) ||
                     ((task->coll == XS_REDUCE) && (i == task->root)) ||
                     ((task->coll == XS_REDUCE_SCATTER) && (i == comm->rank));
        if (!wants) {
            continue;
        }
        targets[target_count] = xs_reach(comm, i, &peer->recv);
        if (targets[target_count] == NULL) {
            return false;
        }
        if (task->coll != XS_REDUCE_SCATTER) {
            targets[target_count] += first * size;
        }
        target_count++;
    }
    struct xs_reduction red = {task->type, task->op, comm->nranks, from,
                               (task->op >= XS_NUM_OPS) ? scalars : NULL};
    xs_reduce(&red, first, count, targets, target_count);
    return true;
}

static void move(unsigned char *to, const unsigned char *from, size_t bytes)
{
    if (to != from) {
        memmove(to, from, bytes);
    }
}

/* Copy what this rank is to receive from rank i, or for gather what it is to send. */
static bool run_movement(struct xs_task *task)
{
    struct xs_comm       *comm = task->comm;
    const struct xs_slot *slots = comm->region->slots;
    const struct xs_post *mine = &slots[comm->rank].post;
    size_t                bytes = task->count * xs_type_bytes(task->type);
    size_t                me = (size_t)comm->rank;
    bool                  rooted = (task->coll != XS_ALLGATHER) && (task->coll != XS_ALLTOALL);

    for (int step = 0; step < comm->nranks; step++) {
        /* Each rank begins with itself, so that not all read from the same one. */
        int                   i = rooted ? task->root : (comm->rank + step) % comm->nranks;
        const struct xs_post *peer = &slots[i].post;
        bool                  gathers = (task->coll == XS_GATHER);
        unsigned char        *to = xs_reach(comm, i, gathers ? &peer->recv : &mine->recv);
        unsigned char        *from = xs_reach(comm, i, gathers ? &mine->send : &peer->send);

        if ((to == NULL) || (from == NULL)) {
            return false;
        }
        if (gathers) {
            to += me * bytes;
        } else if (!rooted) {
            to += (size_t)i * bytes;
        }
        if ((task->coll == XS_SCATTER) || (task->coll == XS_ALLTOALL)) {
            from += me * bytes;
        }
        move(to, from, bytes);
        if (rooted) {
            break;
        }
    }
    return true;
}

bool xs_run_collective(struct xs_task *task)
{
    struct xs_comm *comm = task->comm;

    post(task);
    if (!xs_barrier(comm, &comm->region->device)) {
        return false;
    }
    if (task->kill) {
        kill(getpid(), SIGKILL);
    }
    bool good = !task->hang && compare_posts(comm);
    if (good) {
        good = reduces(task->coll) ? run_reduction(task) : run_movement(task);
    }
    if (!good) {
        xs_park(comm);
        return false;
    }
    return xs_barrier(comm, &comm->region->device);
}
