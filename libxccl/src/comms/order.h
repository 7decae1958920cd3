/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The order of operations of different communicators on one device.
 *
 * A device may run kernels one after the other (CUDA_DEVICE_MAX_CONNECTIONS=1, or when it is full).
 * Then two ranks that enqueue operations of two communicators in different orders wait for each
 * other for ever; and MPI allows different orders, with threads and non-blocking calls. So where a
 * process uses several vendor communicators, an operation is enqueued only when all its ranks have
 * come to it, and in an order that all devices share: whoever first sees an operation complete
 * takes the locks of all its ranks' queues, in the order of their processes, and appends it to
 * each; each process enqueues in the order of its queue, one operation after the other.
 *
 * A process with one vendor communicator enqueues at once, and an operation that it started so may
 * still wait for other ranks when a second communicator appears. Where the device surely has one
 * queue, operations that others may overtake therefore wait for their turn from the start.
 *
 * Within one node only: between nodes operations rely on running side by side, as the vendor's
 * library does itself.
 */
#ifndef XM_COMMS_ORDER_H
#define XM_COMMS_ORDER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct xm_slots;

enum { XM_QUEUE_ENTRIES = 1024 };

/* On the board of each process. */
struct xm_queue {
    pthread_mutex_t lock;  /* of all processes of the node */
    uint64_t        end;   /* entries appended */
    uint64_t        begin; /* entries taken, by the process itself */
    struct {
        uint64_t communicator; /* id of the vendor communicator */
        uint64_t number;       /* of the operation on it */
    } entries[XM_QUEUE_ENTRIES];
};

void xm_queue_init(struct xm_queue *queue);

/* An operation that waits for its turn. Both functions are called from whatever thread. */
struct xm_turn {
    struct xm_slots *slots;
    uint64_t         communicator, number;
    bool (*come)(struct xm_turn *turn); /* before others see it; false: ask again. NULL: nothing */
    bool (*go)(struct xm_turn *turn);   /* enqueue it; false: ask again, before any other */
    struct xm_turn *next;
    uint64_t        through;  /* what has come with it: itself, and others that failed behind it */
    bool            attended; /* its call looks after it until it goes: no thread has to */
};

/*
 * Is an operation to wait for its turn? blocking: nothing else of its thread runs meanwhile.
 *
 * By default (XCCL_LAUNCH=met) those do during which the program may wait for its whole device, as
 * cudaFree() does, before it does what another rank needs to come: non-blocking ones, and all where
 * several threads may call MPI. Then it waits for nothing but operations that all ranks have come
 * to. These end, whatever else waits for the device: of all of them on the node the first in the
 * common order has been launched by each rank, or waits for earlier ones alone, which are over.
 */
bool xm_order_wanted(const struct xm_slots *slots, bool blocking);
/*
 * The same for kernels of our own: they leave room for others, so they wait only where the device
 * has one queue, or behind operations that wait already.
 */
bool xm_order_wanted_direct(const struct xm_slots *slots, bool blocking);
/* Do even blocking ones of this communicator, on all its ranks, whatever else is under way? */
bool xm_order_always(const struct xm_slots *slots);

/*
 * From now on, kernels of several processes wait for each other on one device: they take turns as
 * on a device with one queue.
 */
void xm_order_share(void);

/*
 * Say that this rank has come to operation number of a communicator. turn: to be enqueued when its
 * turn comes; NULL: the caller does it at once, as xm_order_wanted() told it.
 */
void xm_order_arrive(struct xm_slots *slots, uint64_t number, struct xm_turn *turn);

/* Have all ranks come to it? */
bool xm_order_all_came(const struct xm_slots *slots, uint64_t number);

/*
 * Is a blocking call to begin behind those that wait? Where they are all its communicator's own,
 * since they need none of this rank's calls but those before; and where one of these has not come.
 * own: behind any of its own, although others wait, too. It is never to wait for others.
 */
bool xm_order_behind(const struct xm_slots *slots, bool own);

/* It failed meanwhile. False: its turn has come, and go was called or is about to be. */
bool xm_order_withdraw(struct xm_turn *turn);

/* The operation whose turn came is on its stream: the next may go. */
void xm_order_enqueued(void);
/*
 * From go(), instead: the next may go once this is over. That is asked until it is so, by whatever
 * thread, since the program may be in a call that lets no operation progress.
 */
void xm_order_enqueued_until(bool (*over)(void));
/* Is it over, and does none wait for its turn? */
bool xm_order_idle(void);

/* Let those go whose turn has come. Never waits; called while waiting, and by a thread. */
void xm_order_poll(void);
/*
 * For one operation that waits: of many that do, the first in the list looks after all of them, or
 * else each look at all would be at the square of their number.
 */
void xm_order_poll_for(const struct xm_turn *turn, bool blocking);

#endif
