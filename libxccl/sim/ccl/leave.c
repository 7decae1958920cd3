/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Giving up a communicator. As in NCCL, destroy and abort return only when the node's other ranks
 * have called destroy, abort or finalize of it too: they share memory that nobody may free before.
 * Waiting ends early where it would never end: a rank died, the communicator failed, or it is an
 * abort and the others have had their time.
 */
#include <stdlib.h>
#include <time.h>

#include "ccl/ccl.h"

/* A destroy or abort that waits for its group's end. */
struct leaving {
    struct xs_comm *comm;
    bool            abort;
};

/* Until its operations are over, or never will be. */
static void drain(struct xs_comm *comm)
{
    struct timespec until;

    pthread_mutex_lock(&comm->lock);
    while ((comm->turn < comm->issued) &&
           (__atomic_load_n(&comm->async, __ATOMIC_ACQUIRE) == XS_SUCCESS)) {
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 50 * 1000 * 1000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&comm->changed, &comm->lock, &until);
    }
    pthread_mutex_unlock(&comm->lock);
}

/* On its way out it waits for what is outstanding, unless the communicator never waits. */
static enum xs_result run_finalize(void *arg)
{
    struct xs_comm *comm = arg;

    if (comm->blocking) {
        drain(comm);
    }
    xs_tell_leaving(comm);
    xs_comm_unuse(comm);
    return XS_SUCCESS;
}

enum xs_result xs_comm_finalize(struct xs_comm *comm)
{
    enum xs_result res = xs_comm_ready(comm);

    if (res != XS_SUCCESS) {
        return res;
    }
    if (comm->finalized) {
        return xs_problem(XS_INVALID_ARGUMENT, "the communicator was finalized before");
    }
    comm->finalized = true;
    __atomic_add_fetch(&comm->users, 1, __ATOMIC_RELAXED); /* another thread may abort it */
    return xs_group_add_job(run_finalize, comm, NULL);
}

/* End what runs; what has not begun is skipped when its stream comes to it. */
static void stop(struct xs_comm *comm)
{
    bool made = (__atomic_load_n(&comm->state, __ATOMIC_ACQUIRE) == XS_SUCCESS);

    __atomic_store_n(&comm->aborted, 1, __ATOMIC_RELEASE);
    if (made) { /* one that is still being made looks by itself, after each nap */
        xs_wake(&comm->region->device.turn);
        xs_wake(&comm->region->host.turn);
        xs_ring_bell(comm, comm->rank);
    }
    xs_serial_wake();
    pthread_mutex_lock(&comm->lock);
    pthread_cond_broadcast(&comm->changed);
    while (comm->running) {
        pthread_cond_wait(&comm->changed, &comm->lock);
    }
    pthread_mutex_unlock(&comm->lock);
}

static bool healthy(const struct xs_comm *comm)
{
    return __atomic_load_n(&comm->async, __ATOMIC_ACQUIRE) == XS_SUCCESS;
}

/* Wait for the node's ranks, as long as a rank that is leaving can expect them. */
static void wait_for_node(struct xs_comm *comm, bool broken)
{
    uint32_t *bell = &comm->region->slots[comm->rank].bell;
    uint64_t  begin = xs_now_ms();

    for (;;) {
        uint32_t heard = __atomic_load_n(bell, __ATOMIC_ACQUIRE);

        if (xs_node_left(comm) || (!broken && !healthy(comm)) ||
            (broken && (xs_now_ms() - begin >= (uint64_t)xs_config()->abort_ms))) {
            return;
        }
        xs_nap(comm, bell, heard);
    }
}

static void join_maker(struct xs_comm *comm)
{
    if (comm->making) {
        pthread_join(comm->maker, NULL);
        comm->making = false;
    }
}

/* A real library closes connections and ends threads first. */
static void take_time(void)
{
    int                   ms = xs_config()->destroy_ms;
    const struct timespec time = {ms / 1000, (long)(ms % 1000) * 1000000};

    if (ms > 0) {
        nanosleep(&time, NULL);
    }
}

static enum xs_result leave(struct xs_comm *comm, bool abort)
{
    bool made;

    if (!xs_ctx_valid(comm->ctx) || (comm->ctx->id != comm->ctx_id)) {
        /* It frees streams and memory of its own, which are gone. */
        xs_orphan_used(comm->ctx, "a communicator");
        return xs_problem(XS_DEVICE_ERROR, "the communicator's device was reset");
    }

    if (!abort) {
        join_maker(comm);
    }
    if (!abort && (comm->state == XS_SUCCESS)) {
        drain(comm);
    }
    bool broken = abort || !healthy(comm);
    if (broken) {
        stop(comm);
    }
    join_maker(comm);
    made = (comm->state == XS_SUCCESS);
    __atomic_store_n(&comm->magic, 0, __ATOMIC_RELEASE); /* another thread may call with it */
    if (comm->region != NULL) {
        __atomic_store_n(&comm->region->slots[comm->rank].life, broken ? XS_ABORTED : XS_LEFT,
                         __ATOMIC_RELEASE);
    }
    if (made) {
        xs_tell_leaving(comm);
    }
    if (made && xs_config()->destroy_waits) {
        wait_for_node(comm, broken);
    }
    if (made && !broken) { /* it frees device memory of its own */
        take_time();
        xs_ctx_sync_alone(comm->ctx);
        xs_ctx_sync_alone_end(comm->ctx);
    }
    if (made) {
        xs_log(XS_LOG_INFO, "comm %p rank %d nranks %d device %d node %d - %s COMPLETE",
               (void *)comm, comm->rank, comm->nranks, comm->device, xs_config()->node,
               abort ? "Abort" : "Destroy");
    }
    xs_comm_unuse(comm);
    return XS_SUCCESS;
}

static enum xs_result run_leave(void *arg)
{
    struct leaving leaving = *(struct leaving *)arg;

    free(arg);
    return leave(leaving.comm, leaving.abort);
}

/* In a group, communicators go at its end and together, so in any order. */
static enum xs_result leave_in_group(struct xs_comm *comm, bool abort)
{
    struct leaving *leaving = malloc(sizeof(*leaving));

    if (leaving == NULL) {
        return xs_problem(XS_SYSTEM_ERROR, "out of host memory");
    }
    *leaving = (struct leaving){comm, abort};
    return xs_group_add_job(run_leave, leaving, NULL);
}

/* One that is not ready is refused, and stays. */
enum xs_result xs_comm_destroy(struct xs_comm *comm)
{
    if ((__atomic_load_n(&comm->state, __ATOMIC_ACQUIRE) == XS_IN_PROGRESS) ||
        (__atomic_load_n(&comm->splitting, __ATOMIC_ACQUIRE) != 0)) {
        return xs_comm_ready(comm);
    }
    return leave_in_group(comm, false);
}

enum xs_result xs_comm_abort(struct xs_comm *comm)
{
    return leave_in_group(comm, true);
}
