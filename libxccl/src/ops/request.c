/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests. That of an operation is a generalised request of MPI's, so every function of MPI's
 * takes it, mixed with MPI's own; all that is added here is that operations progress while the
 * program waits.
 *
 * MPI has no generalised persistent requests. So a persistent one is known to the program by a
 * persistent request of MPI's that is never started (a send), and each time it is started it has an
 * operation's request behind it, which takes its place in the calls that wait and test.
 *
 * That of a transfer is MPI's own. In calls that wait and test it is hidden until its data is where
 * it belongs; then MPI completes it, with its own status. Of many, MPI may complete a short one
 * first: then the call that did so brings its data to where it belongs. To look at each would take
 * far longer than MPI's own call does. What is known of each request is in entries.c.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "comms/wait.h"
#include "ops/entry.h"
#include "transfers/kept.h"
#include "transfers/staging.h"
#include "transfers/watcher.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void remove_entry(MPI_Request handle)
{
    xm_entry_free(xm_entry_take_out(handle));
}

/* ---- an operation's ---- */

/* Those that failed, of the call of this thread that is to tell of them. */
static __thread struct xm_op *failed;
static __thread bool          listening;

static void note_failed(struct xm_op *op)
{
    const struct xm_op *known = listening ? failed : op;

    while ((known != NULL) && (known != op)) {
        known = known->next;
    }
    if (known == NULL) {
        __atomic_add_fetch(&op->holders, 1, __ATOMIC_RELAXED);
        op->next = failed;
        failed = op;
    }
}

static int query_operation(void *extra, MPI_Status *status)
{
    struct xm_op *op = extra;

    xm_pmpi.Status_set_elements(status, XM_HANDLE(MPI_BYTE), 0);
    xm_pmpi.Status_set_cancelled(status, 0);
    status->MPI_SOURCE = MPI_UNDEFINED;
    status->MPI_TAG = MPI_UNDEFINED;
    if (op->code != MPI_SUCCESS) {
        note_failed(op);
    }
    return MPI_SUCCESS;
}

/* The program's request and the thread that completes it both hold the operation. */
static void let_go(struct xm_op *op)
{
    if (__atomic_sub_fetch(&op->holders, 1, __ATOMIC_ACQ_REL) == 0) {
        xm_op_free(op);
    }
}

void xm_request_told(struct xm_op *op)
{
    let_go(op);
}

struct xm_op *xm_requests_failed(void)
{
    struct xm_op *op = failed;

    listening = false;
    if (op != NULL) {
        failed = op->next;
    }
    return op;
}

void xm_requests_listen(void)
{
    struct xm_op *op;

    while ((op = xm_requests_failed()) != NULL) { /* of a call that a handler has left */
        let_go(op);
    }
    listening = true;
}

/* Those that nobody holds. MPI calls this in its own functions, and MPICH takes no others then. */
static struct xm_op *released; /* atomic */

static int release(void *extra)
{
    struct xm_op *op = extra;

    remove_entry(op->request);
    if (__atomic_sub_fetch(&op->holders, 1, __ATOMIC_ACQ_REL) == 0) {
        pthread_mutex_lock(&lock);
        op->next = released;
        __atomic_store_n(&released, op, __ATOMIC_RELEASE);
        pthread_mutex_unlock(&lock);
    }
    return MPI_SUCCESS;
}

static void free_released(void)
{
    if (__atomic_load_n(&released, __ATOMIC_ACQUIRE) == NULL) {
        return;
    }
    pthread_mutex_lock(&lock);
    struct xm_op *op = released;
    __atomic_store_n(&released, NULL, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&lock);
    while (op != NULL) {
        struct xm_op *next = op->next;
        xm_op_free(op);
        op = next;
    }
}

/* MPI has no cancelling of collectives. */
static int cancel(void *extra, int complete)
{
    (void)extra;
    (void)complete;
    return MPI_SUCCESS;
}

xcclResult_t xm_request_make(struct xm_op *op)
{
    struct xm_entry *e = xm_entry_new();

    if ((e == NULL) || (xm_pmpi.Grequest_start(query_operation, release, cancel, op,
                                               &op->request) != MPI_SUCCESS)) {
        xm_entry_free(e);
        return xc_fail(xcclSystemError, "out of memory for a request");
    }
    e->handle = op->request;
    e->op = op;
    op->holders = 2;
    xm_entry_add(e);
    return xcclSuccess;
}

/*
 * A thread that waits goes on to MPI once it sees done, and MPICH's MPI_Waitall aborts on a
 * generalised request that is not complete yet. So done comes last, when another thread may have
 * tested the request and freed it.
 */
void xm_request_complete(struct xm_op *op)
{
    xm_pmpi.Grequest_complete(op->request);
    __atomic_store_n(&op->done, 1, __ATOMIC_RELEASE);
    let_go(op);
}

void xm_request_drop(struct xm_op *op)
{
    MPI_Request request = op->request;

    xm_request_complete(op);
    xm_pmpi.Request_free(&request);
}

/* Where threads take messages out of MPI's queue: see kept.c. */
static int begin_receive(const struct xm_transfer *t)
{
    int slot = -1;

    if (xm_kept_has_threads() && xm_transfer_receives(t->function)) {
        slot = xm_kept_register(xm_transfer_comm(t), (int)t->args[3], (int)t->args[4]);
        if (slot < 0) {
            xm_kept_enter();
        }
    }
    return slot;
}

static void end_receive(int slot)
{
    if (slot >= 0) {
        xm_kept_unregister(slot);
    }
    xm_kept_leave();
}

static int start_transfer(struct xm_entry *e, MPI_Request *request, int profiling)
{
    const long          args[] = {(long)request};
    struct xm_transfer *t = e->transfer;
    int                 code;

    xm_transfer_ask_again(t);
    if (t->rendezvous.looks && (xm_rendezvous_expect(t) != xcclSuccess)) {
        return xm_transfer_raise(t, xcclSystemError, xc_last_detail());
    }
    int slot = begin_receive(t);
    if (!xm_transfer_start_instead(t, &code)) {
        xcclResult_t res = xm_transfer_copy_in(t);
        if (res != xcclSuccess) {
            end_receive(slot);
            return xm_transfer_raise(t, res, xc_last_detail());
        }
        code = (int)xm_mpi_forward(XM_FN_MPI_Start, profiling, args);
    }
    end_receive(slot);
    t->started = (code == MPI_SUCCESS);
    t->done = !t->started;
    t->over = t->cancelled = false;
    t->wrong = MPI_SUCCESS;
    xm_entry_follow(e, *request);
    if (t->num_parts > 0) {
        xm_transfer_last_path = xm_rendezvous_path_out(&t->rendezvous);
    }
    if ((t->rendezvous.awaits || t->rendezvous.offered) && !t->done) {
        xm_watch(t);
    }
    return code;
}

/* MPI_Pready and its kin: what is ready goes to where MPI takes it from. */
static int ready(enum xm_function function, int profiling, const long *args, MPI_Request handle)
{
    struct xm_entry *e = xm_entry_find(handle);
    xcclResult_t     res = xcclSuccess;

    if ((e != NULL) && (e->transfer != NULL)) {
        const int *list = (const int *)args[1];
        switch (function) {
        case XM_FN_MPI_Pready:
            res = xm_transfer_partitions_in(e->transfer, (int)args[0], (int)args[0]);
            break;
        case XM_FN_MPI_Pready_range:
            res = xm_transfer_partitions_in(e->transfer, (int)args[0], (int)args[1]);
            break;
        default:
            for (int i = 0; (i < (int)args[0]) && (res == xcclSuccess); i++) {
                res = xm_transfer_partitions_in(e->transfer, list[i], list[i]);
            }
            break;
        }
    }
    return (res == xcclSuccess) ? (int)xm_mpi_forward(function, profiling, args)
                                : xm_transfer_raise(e->transfer, res, xc_last_detail());
}

/* (request, partition, flag) */
static int arrived(int profiling, const long *args)
{
    struct xm_entry *e = xm_entry_find((MPI_Request)(intptr_t)args[0]);
    int              code = (int)xm_mpi_forward(XM_FN_MPI_Parrived, profiling, args);

    if ((code == MPI_SUCCESS) && (e != NULL) && (e->transfer != NULL) && *(const int *)args[2]) {
        xcclResult_t res = xm_transfer_partition_out(e->transfer, (int)args[1]);
        if (res != xcclSuccess) {
            return xm_transfer_raise(e->transfer, res, xc_last_detail());
        }
    }
    return code;
}

static int start_one(MPI_Request *request, int profiling)
{
    struct xm_entry *e = xm_entry_find(*request);
    const long       args[] = {(long)request};

    if ((e != NULL) && (e->transfer != NULL)) {
        return start_transfer(e, request, profiling);
    }
    if ((e == NULL) || !xm_entry_is_persistent(e)) {
        return (int)xm_mpi_forward(XM_FN_MPI_Start, profiling, args);
    }
    if (e->inner != XM_HANDLE(MPI_REQUEST_NULL)) {
        xc_error("MPI_Start: the persistent request is active; complete it first");
        xm_pmpi.Comm_call_errhandler(e->call.comm, MPI_ERR_REQUEST);
        return MPI_ERR_REQUEST;
    }
    return e->start(&e->call, &e->held, &e->inner);
}

/*
 * Of a message that was matched already, or sent so that its receiver fetches it, nothing can be
 * cancelled; and MPI knows another request than the program's. But its end is local from here on.
 */
static int cancel_request(int profiling, const long *args)
{
    struct xm_entry *e = xm_entry_find(*(MPI_Request *)args[0]);

    if ((e != NULL) && (e->transfer != NULL)) {
        e->transfer->cancelled = true;
        xm_rendezvous_cancel(e->transfer);
        if (e->transfer->instead) {
            return MPI_SUCCESS;
        }
    }
    return (int)xm_mpi_forward(XM_FN_MPI_Cancel, profiling, args);
}

static int start_all(int count, MPI_Request requests[], int profiling)
{
    int code = MPI_SUCCESS;

    for (int i = 0; (i < count) && (code == MPI_SUCCESS); i++) {
        code = start_one(&requests[i], profiling);
    }
    return code;
}

/* Those whose requests were freed before they were over: their data is still to come. Atomic. */
static struct xm_transfer *orphans;

/* Threads that have some of them in hand; and this one, whose error handler may call MPI. */
static int          looking;
static __thread int looking_here;

void xm_entry_forget(struct xm_entry *e)
{
    struct xm_transfer *t = e->transfer;

    remove_entry(e->handle);
    xm_transfer_discard(t);
}

/* No call completes its request, in which MPI would say what went wrong. */
static void report_freed(const struct xm_transfer *t)
{
    if (t->generalised && (t->wrong != MPI_SUCCESS)) {
        xm_pmpi.Comm_call_errhandler(XM_HANDLE(MPI_COMM_WORLD), t->wrong);
    }
}

/* The end of one that was cancelled needs no other rank, and then the buffer is the program's. */
static bool is_over(struct xm_transfer *t)
{
    enum { MOST_POLLS = 1000 };
    bool over = xm_transfer_poll(t);

    for (int i = 0; !over && t->cancelled && (i < MOST_POLLS); i++) {
        over = xm_transfer_poll(t);
    }
    return over;
}

static int free_transfer(struct xm_entry *e, MPI_Request *request, int profiling, const long *args)
{
    struct xm_transfer *t = e->transfer;

    if (is_over(t)) {
        report_freed(t);
        xm_entry_forget(e);
        return (int)xm_mpi_forward(XM_FN_MPI_Request_free, profiling, args);
    }
    *request = XM_HANDLE(MPI_REQUEST_NULL);
    pthread_mutex_lock(&lock);
    t->next = orphans;
    __atomic_store_n(&orphans, t, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
    return MPI_SUCCESS;
}

/* The program may have learnt by the call that ends here that a message came: its copy is waited
 * for, which takes microseconds. */
static bool poll_orphan(struct xm_transfer *t)
{
    struct xm_wait wait = xm_wait_begin("for a copy between devices");

    while (!xm_transfer_poll(t)) {
        enum xm_fetch fetch = __atomic_load_n(&t->rendezvous.fetch, __ATOMIC_RELAXED);
        if (((fetch != XM_FETCH_PUSHED) && (fetch != XM_FETCH_MAPPING) &&
             (fetch != XM_FETCH_COPYING) && (fetch != XM_FETCH_REFUSED) &&
             (fetch != XM_FETCH_PIECES) && (fetch != XM_FETCH_LANDING)) ||
            (xm_wait_step(&wait) == XM_WAIT_EXPIRED)) {
            return false;
        }
    }
    return true;
}

void xm_requests_progress(void)
{
    free_released();
    if (__atomic_load_n(&orphans, __ATOMIC_ACQUIRE) == NULL) {
        return;
    }
    pthread_mutex_lock(&lock);
    struct xm_transfer *left = orphans;
    __atomic_store_n(&orphans, NULL, __ATOMIC_RELAXED);
    looking++;
    pthread_mutex_unlock(&lock);
    looking_here++;
    while (left != NULL) {
        struct xm_transfer *t = left;
        left = t->next;
        if (poll_orphan(t)) {
            MPI_Request request = t->request;
            report_freed(t);
            remove_entry(request);
            xm_transfer_discard(t);
            xm_pmpi.Request_free(&request);
            continue;
        }
        pthread_mutex_lock(&lock);
        t->next = orphans;
        __atomic_store_n(&orphans, t, __ATOMIC_RELEASE);
        pthread_mutex_unlock(&lock);
    }
    looking_here--;
    pthread_mutex_lock(&lock);
    looking--;
    pthread_mutex_unlock(&lock);
}

static bool has_orphans(MPI_Comm comm)
{
    pthread_mutex_lock(&lock);
    const struct xm_transfer *t = orphans;
    while ((t != NULL) && !xm_transfer_may_be_on(t, comm)) {
        t = t->next;
    }
    bool any = (t != NULL) || (looking > looking_here);
    pthread_mutex_unlock(&lock);
    return any;
}

void xm_requests_comm_disconnecting(MPI_Comm comm)
{
    struct xm_wait wait = xm_wait_begin("for messages whose requests were freed");

    while (has_orphans(comm) && (xm_wait_step(&wait) != XM_WAIT_EXPIRED)) {
        xm_requests_progress();
    }
}

void xm_requests_finalize(void)
{
    struct xm_wait wait = xm_wait_begin("for messages whose requests were freed");

    while ((__atomic_load_n(&orphans, __ATOMIC_ACQUIRE) != NULL) &&
           (xm_wait_step(&wait) != XM_WAIT_EXPIRED)) {
        xm_requests_progress();
    }
}

static int free_request(MPI_Request *request, int profiling, const long *args)
{
    struct xm_entry *e = xm_entry_find(*request);

    if ((e != NULL) && (e->transfer != NULL)) {
        return free_transfer(e, request, profiling, args);
    }
    if ((e != NULL) && xm_entry_is_persistent(e)) {
        xm_persistent_free(e);
        remove_entry(*request);
    }
    return (int)xm_mpi_forward(XM_FN_MPI_Request_free, profiling, args);
}

int xm_request_call(enum xm_function function, int profiling, const long *args)
{
    MPI_Request one;

    xm_requests_progress();
    switch (function) {
    case XM_FN_MPI_Start:
        return start_one((MPI_Request *)args[0], profiling);
    case XM_FN_MPI_Startall:
        return start_all((int)args[0], (MPI_Request *)args[1], profiling);
    case XM_FN_MPI_Pready:
        return ready(function, profiling, args, (MPI_Request)(intptr_t)args[1]);
    case XM_FN_MPI_Pready_range:
    case XM_FN_MPI_Pready_list:
        return ready(function, profiling, args, (MPI_Request)(intptr_t)args[2]);
    case XM_FN_MPI_Parrived:
        return arrived(profiling, args);
    case XM_FN_MPI_Cancel:
        return cancel_request(profiling, args);
    case XM_FN_MPI_Request_free:
        return free_request((MPI_Request *)args[0], profiling, args);
    case XM_FN_MPI_Request_get_status_any:
    case XM_FN_MPI_Request_get_status_all:
    case XM_FN_MPI_Request_get_status_some:
        return xm_get_statuses(function, args);
    case XM_FN_MPIX_Request_is_complete:
        return xm_is_complete(profiling, (MPI_Request)(intptr_t)args[0]);
    case XM_FN_MPI_Request_get_status:
        one = (MPI_Request)(intptr_t)args[0];
        return xm_wait_or_test(function, profiling, args, 1, &one);
    case XM_FN_MPI_Wait:
    case XM_FN_MPI_Test:
        return xm_wait_or_test(function, profiling, args, 1, (MPI_Request *)args[0]);
    default:
        return xm_wait_or_test(function, profiling, args, (int)args[0], (MPI_Request *)args[1]);
    }
}
