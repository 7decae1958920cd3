/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections, made late as NCCL makes them: the first use of an algorithm on a communicator waits,
 * in the calling thread, for all ranks to use it, and the first send to a rank for that rank's
 * receive. What one group needs is connected together, so its order does not matter. Who calls this
 * while it owes another rank something else hangs, as it does on a GPU.
 */
#include "ccl/ccl.h"

#define SMALL_BYTES ((size_t)64 << 10)
#define SENDER 1U
#define RECEIVER 2U

/* Calls fn for each link that task needs, a sender and a receiver; stops at false. */
static bool each_link(const struct xs_task *task, bool (*fn)(struct xs_comm *, int from, int to))
{
    struct xs_comm *comm = task->comm;
    int             me = comm->rank;
    bool            all = (task->coll == XS_ALLTOALL);
    bool            collects = all || (task->coll == XS_GATHER) || (task->coll == XS_RECV);
    bool            spreads = all || (task->coll == XS_SCATTER) || (task->coll == XS_SEND);
    bool            message = (task->coll == XS_SEND) || (task->coll == XS_RECV);
    bool            good = true;

    for (int peer = 0; good && (peer < comm->nranks); peer++) {
        /* A message is between this rank and task's peer, a gather between root and each other. */
        bool centre = all || (message ? (peer == task->root) : (me == task->root));
        bool other = !message && !all && (peer == task->root);

        if (peer == me) {
            continue;
        }
        if ((collects && centre) || (spreads && other)) {
            good = fn(comm, peer, me);
        }
        if (good && ((spreads && centre) || (collects && other))) {
            good = fn(comm, me, peer);
        }
    }
    return good;
}

/* Number of the algorithm that task uses; -1: it is made of sends and receives. */
static int algorithm(const struct xs_task *task)
{
    static const int numbers[] = {
        [XS_ALLREDUCE] = 0,      [XS_BROADCAST] = 1, [XS_REDUCE] = 2,  [XS_ALLGATHER] = 3,
        [XS_REDUCE_SCATTER] = 4, [XS_ALLTOALL] = -1, [XS_GATHER] = -1, [XS_SCATTER] = -1,
        [XS_SEND] = -1,          [XS_RECV] = -1};
    bool large = task->count * xs_type_bytes(task->type) > SMALL_BYTES;
    int  number = numbers[task->coll];

    return (number < 0) ? -1 : 2 * number + (large ? 1 : 0);
}

static bool ask_link(struct xs_comm *comm, int from, int to)
{
    bool     sends = (from == comm->rank);
    uint32_t mine = sends ? SENDER : RECEIVER;
    uint32_t before = __atomic_fetch_or(xs_region_link(comm, from, to), mine, __ATOMIC_ACQ_REL);

    if ((before & mine) == 0) {
        xs_ring_bell(comm, sends ? to : from);
    }
    return true;
}

static bool has_link(struct xs_comm *comm, int from, int to)
{
    return __atomic_load_n(xs_region_link(comm, from, to), __ATOMIC_ACQUIRE) == (SENDER | RECEIVER);
}

static void ask_algorithm(struct xs_comm *comm, int number)
{
    uint32_t bit = (uint32_t)1 << number;

    if ((__atomic_fetch_or(&comm->algorithms, bit, __ATOMIC_ACQ_REL) & bit) != 0) {
        return;
    }
    if (__atomic_add_fetch(&comm->region->algorithms[number], 1, __ATOMIC_ACQ_REL) ==
        (uint32_t)comm->nranks) {
        for (int i = 0; i < comm->nranks; i++) {
            xs_ring_bell(comm, i);
        }
    }
}

static bool connected(const struct xs_task *task)
{
    const struct xs_comm *comm = task->comm;
    int                   number = algorithm(task);

    if (number < 0) {
        return each_link(task, has_link);
    }
    return __atomic_load_n(&comm->region->algorithms[number], __ATOMIC_ACQUIRE) ==
           (uint32_t)comm->nranks;
}

static void ask(const struct xs_task *task)
{
    int number = algorithm(task);

    if (number < 0) {
        (void)each_link(task, ask_link);
    } else {
        ask_algorithm(task->comm, number);
    }
}

static enum xs_result wait_for(const struct xs_task *task)
{
    struct xs_comm *comm = task->comm;
    const char     *name = xs_coll_name(task->coll);
    uint32_t       *bell = &comm->region->slots[comm->rank].bell;

    for (;;) {
        uint32_t heard = __atomic_load_n(bell, __ATOMIC_ACQUIRE);

        if (connected(task)) {
            return XS_SUCCESS;
        }
        if (!xs_wait(comm, bell, heard)) {
            return xs_problem(XS_INTERNAL_ERROR,
                              "%s : rank %d was aborted while it connected to the others", name,
                              comm->rank);
        }
        uint32_t error = __atomic_load_n(&comm->async, __ATOMIC_ACQUIRE);
        if (error != XS_SUCCESS) {
            return xs_problem((enum xs_result)error,
                              "%s : rank %d cannot connect to the others any more", name,
                              comm->rank);
        }
    }
}

enum xs_result xs_connect(const struct xs_task *tasks)
{
    enum xs_result res = XS_SUCCESS;

    if (!xs_config()->connect_blocks) {
        return XS_SUCCESS;
    }
    /* Another thread may abort a communicator meanwhile: it stays until this one has noticed. */
    for (const struct xs_task *t = tasks; t != NULL; t = t->next) {
        __atomic_add_fetch(&t->comm->users, 1, __ATOMIC_RELAXED);
        ask(t);
    }
    for (const struct xs_task *t = tasks; (t != NULL) && (res == XS_SUCCESS); t = t->next) {
        res = wait_for(t);
    }
    for (const struct xs_task *t = tasks; t != NULL; t = t->next) {
        xs_comm_unuse(t->comm);
    }
    return res;
}
