/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends and receives of a group, on the stream's thread. A sender posts where its bytes are in the
 * ring towards the receiver; the receiver copies them and says so. All pairs progress together; in
 * each pair messages are matched in order.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ccl/ccl.h"

/* Tasks with one peer in one direction, in order. */
struct queue {
    struct xs_task **tasks;
    size_t           count;
    size_t           posted; /* sends: in the ring */
    size_t           done;
};

struct traffic {
    struct xs_comm  *comm;
    struct queue    *sends; /* a peer each */
    struct queue    *recvs;
    struct xs_task **room; /* what the queues point into */
    size_t           left;
    bool             refused;
};

static bool sort_tasks(struct traffic *traffic, struct xs_task *tasks)
{
    size_t nranks = (size_t)traffic->comm->nranks;
    size_t total = 0;
    size_t at = 0;

    for (struct xs_task *t = tasks; t != NULL; t = t->next) {
        total++;
    }
    traffic->sends = calloc(nranks, sizeof(*traffic->sends));
    traffic->recvs = calloc(nranks, sizeof(*traffic->recvs));
    traffic->room = calloc(total, sizeof(struct xs_task *));
    traffic->left = total;
    if ((traffic->sends == NULL) || (traffic->recvs == NULL) || (traffic->room == NULL)) {
        return false;
    }
    for (struct xs_task *t = tasks; t != NULL; t = t->next) {
        struct queue *queues = (t->coll == XS_SEND) ? traffic->sends : traffic->recvs;

        queues[t->root].count++;
    }
    for (size_t i = 0; i < 2 * nranks; i++) {
        struct queue *queue = (i < nranks) ? &traffic->sends[i] : &traffic->recvs[i - nranks];

        queue->tasks = traffic->room + at;
        at += queue->count;
        queue->count = 0;
    }
    for (struct xs_task *t = tasks; t != NULL; t = t->next) {
        struct queue *queues = (t->coll == XS_SEND) ? traffic->sends : traffic->recvs;
        struct queue *queue = &queues[t->root];

        queue->tasks[queue->count++] = t;
    }
    return true;
}

static void sort_free(struct traffic *traffic)
{
    free(traffic->sends);
    free(traffic->recvs);
    free(traffic->room);
}

static size_t task_bytes(const struct xs_task *task)
{
    return task->count * xs_type_bytes(task->type);
}

/* Post what fits, and collect what the peer took. */
static bool push(struct traffic *traffic, int peer)
{
    struct xs_comm    *comm = traffic->comm;
    struct queue      *queue = &traffic->sends[peer];
    struct xs_message *ring;
    bool               progress = false;

    if (queue->done == queue->count) {
        return false;
    }
    ring = xs_region_ring(comm, comm->rank, peer);
    while (queue->done < queue->posted) {
        uint64_t           oldest = comm->sent[peer] - (queue->posted - queue->done);
        struct xs_message *message = &ring[oldest % XS_RING];
        uint32_t           state = __atomic_load_n(&message->state, __ATOMIC_ACQUIRE);

        if (state == XS_MESSAGE_POSTED) {
            break;
        }
        traffic->refused = traffic->refused || (state == XS_MESSAGE_REFUSED);
        __atomic_store_n(&message->state, XS_MESSAGE_NONE, __ATOMIC_RELEASE);
        queue->done++;
        traffic->left--;
        progress = true;
    }
    while ((queue->posted < queue->count) && (queue->posted - queue->done < XS_RING)) {
        const struct xs_task *task = queue->tasks[queue->posted];
        struct xs_message    *message = &ring[comm->sent[peer] % XS_RING];

        message->bytes = task_bytes(task);
        message->place = task->send_place;
        __atomic_store_n(&message->state, XS_MESSAGE_POSTED, __ATOMIC_RELEASE);
        comm->sent[peer]++;
        queue->posted++;
        progress = true;
        xs_ring_bell(comm, peer);
    }
    return progress;
}

static bool receive(struct xs_comm *comm, int peer, const struct xs_message *message,
                    const struct xs_task *task)
{
    size_t bytes = task_bytes(task);

    if (message->bytes != bytes) {
        xs_comm_fail(comm, XS_INVALID_USAGE,
                     "Mismatched send and recv : rank %d sends %llu bytes, rank %d receives %zu",
                     peer, (unsigned long long)message->bytes, comm->rank, bytes);
        return false;
    }
    if (bytes > 0) {
        const unsigned char *from = xs_reach(comm, peer, &message->place);
        unsigned char       *to = xs_reach(comm, comm->rank, &task->recv_place);

        if ((from == NULL) || (to == NULL)) {
            return false;
        }
        memmove(to, from, bytes);
    }
    return true;
}

static bool pull(struct traffic *traffic, int peer)
{
    struct xs_comm *comm = traffic->comm;
    struct queue   *queue = &traffic->recvs[peer];
    bool            progress = false;

    while ((queue->done < queue->count) && !traffic->refused) {
        struct xs_message *message =
            &xs_region_ring(comm, peer, comm->rank)[comm->received[peer] % XS_RING];

        if (__atomic_load_n(&message->state, __ATOMIC_ACQUIRE) != XS_MESSAGE_POSTED) {
            break;
        }
        bool good = receive(comm, peer, message, queue->tasks[queue->done]);
        comm->received[peer]++;
        queue->done++;
        traffic->left--;
        traffic->refused = !good;
        __atomic_store_n(&message->state, good ? XS_MESSAGE_TAKEN : XS_MESSAGE_REFUSED,
                         __ATOMIC_RELEASE);
        xs_ring_bell(comm, peer);
        progress = true;
    }
    return progress;
}

static bool run(struct traffic *traffic)
{
    struct xs_comm *comm = traffic->comm;
    uint32_t       *bell = &comm->region->slots[comm->rank].bell;

    while ((traffic->left > 0) && !traffic->refused) {
        uint32_t heard = __atomic_load_n(bell, __ATOMIC_ACQUIRE);
        bool     progress = false;

        for (int i = 0; i < comm->nranks; i++) {
            int peer = (comm->rank + i) % comm->nranks;

            progress = push(traffic, peer) || progress;
            progress = pull(traffic, peer) || progress;
        }
        if (!progress && !xs_wait(comm, bell, heard)) {
            return false;
        }
    }
    if (traffic->refused) {
        xs_comm_fail(comm, XS_INVALID_USAGE,
                     "Mismatched send and recv : a peer of rank %d expected other bytes",
                     comm->rank);
        xs_park(comm);
        return false;
    }
    return true;
}

bool xs_run_messages(struct xs_task *tasks)
{
    struct traffic traffic = {.comm = tasks->comm};
    bool           good = true;

    for (struct xs_task *t = tasks; t != NULL; t = t->next) {
        if (t->kill) {
            kill(getpid(), SIGKILL);
        }
        good = good && !t->hang;
    }
    if (!good) {
        xs_park(tasks->comm);
        return false;
    }
    good = sort_tasks(&traffic, tasks);
    if (good) {
        good = run(&traffic);
    } else {
        xs_comm_fail(tasks->comm, XS_SYSTEM_ERROR, "out of host memory");
        xs_park(tasks->comm);
    }
    sort_free(&traffic);
    return good;
}
