/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Making a vendor communicator while the ranks go on: id and devices are exchanged by non-blocking
 * collectives, and a thread joins.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/params.h"
#include "comms/cause.h"
#include "comms/creation.h"
#include "comms/digest.h"
#include "comms/guarded.h"
#include "comms/orphans.h"
#include "comms/wait.h"

/* NCCL_MULTI_RANK_GPU_ENABLE came with this one: it may share a device, so it decides itself. */
enum { NCCL_MULTI_RANK_VERSION = 23003 };

/*
 * What making a communicator costs until one was made: 4 H200s, NCCL 2.28.3: 1.0 s at the first
 * collective and 0.4 s to destroy.
 */
const double    xm_creation_first_guess_us = 1.4e6;
static uint64_t measured_us; /* atomic: the longest making so far; 0: none */

/* Of many ranks it is only asked whether all have a device: two on one the library refuses itself.
 */
struct where {
    int           has_device; /* many ranks: the first rank that has none, or their number */
    unsigned char uuid[XC_DEVICE_UUID_BYTES];
};

static bool are_many(int size)
{
    return size >= XM_DIGEST_RANKS;
}

struct id_message {
    int result;
    union {
        xcclUniqueId id;
        char         cause[400]; /* where there is none */
    };
};

/*
 * An id that no rank has joined by; NULL: none. For one that nobody joins by, the vendor's library
 * keeps a thread and sockets to the end of the process: so it is kept for the next communicator.
 */
static struct id_message *spare_id; /* atomic */

static void take_id(struct id_message *message)
{
    struct id_message *spare = __atomic_exchange_n(&spare_id, NULL, __ATOMIC_ACQ_REL);

    if (spare != NULL) {
        *message = *spare;
        free(spare);
    } else {
        message->result = (int)xcclGetUniqueId(&message->id);
        if (message->result != (int)xcclSuccess) {
            snprintf(message->cause, sizeof(message->cause), "%s", xc_last_detail());
        }
    }
}

void xm_creation_unused(struct xm_comm *xm)
{
    const struct xm_creation *c = xm->creation;
    struct id_message        *spare = c->has_id ? malloc(sizeof(*spare)) : NULL;

    if (spare != NULL) {
        *spare = *c->message;
        free(__atomic_exchange_n(&spare_id, spare, __ATOMIC_ACQ_REL));
    }
}

uint64_t xm_creation_measured_us(void)
{
    return __atomic_load_n(&measured_us, __ATOMIC_RELAXED);
}

/*
 * Held while a creation is looked at or ends: a thread that progresses all operations looks at
 * those of communicators that other threads are calling on. Not while MPI is called.
 */
static pthread_mutex_t advancing = PTHREAD_MUTEX_INITIALIZER;

static __thread char this_thread; /* by its address */

static void let_go(struct xm_creation *c)
{
    if (c->job != NULL) {
        xm_vendor_abandon(c->job);
    }
    if (c->vendor != NULL) {
        if (c->made) {
            xm_vendor_break(c->vendor); /* others may have none, and destroying waits for them */
        }
        xm_vendor_release(c->vendor);
    }
    xm_orphans_add(c->id_request, c->message, NULL);
    xm_orphans_add(c->where_request, c->all, NULL);
    xm_orphans_sweep();
    free(c);
}

void xm_creation_end(struct xm_comm *xm)
{
    pthread_mutex_lock(&advancing);
    struct xm_creation *c = xm->creation;
    bool                tested = (c != NULL) && (c->tester != NULL);
    __atomic_store_n(&xm->creation, NULL, __ATOMIC_RELEASE);
    if (tested) {
        c->ended = true;
    }
    pthread_mutex_unlock(&advancing);
    if ((c != NULL) && !tested) {
        let_go(c);
    }
}

/* GONE: it has ended meanwhile. */
enum exchange { EXCHANGE_ON, EXCHANGE_OVER, EXCHANGE_FAILED, EXCHANGE_GONE };

static enum exchange test(struct xm_creation *c)
{
    MPI_Request *requests[] = {&c->id_request, &c->where_request};
    int          over = 1;

    for (int i = 0; (i < 2) && over; i++) {
        over = 0;
        if (xm_pmpi.Test(requests[i], &over, MPI_STATUS_IGNORE) != MPI_SUCCESS) {
            return EXCHANGE_FAILED;
        }
    }
    return over ? EXCHANGE_OVER : EXCHANGE_ON;
}

/*
 * With the lock, which is open meanwhile: MPI may call the program's error handler, which may free
 * communicators, or leave by longjmp(). Whoever comes here again in the thread that tests is in
 * such a handler, or behind its jump: so the exchange has failed.
 */
static enum exchange look_at_exchange(struct xm_creation *c)
{
    if (c->tester != NULL) {
        return (c->tester == &this_thread) ? EXCHANGE_FAILED : EXCHANGE_ON;
    }
    c->tester = &this_thread;
    pthread_mutex_unlock(&advancing);
    enum exchange found = test(c);
    pthread_mutex_lock(&advancing);
    c->tester = NULL;
    if (!c->ended) {
        return found;
    }
    pthread_mutex_unlock(&advancing);
    let_go(c);
    pthread_mutex_lock(&advancing);
    return EXCHANGE_GONE;
}

bool xm_creation_exchanges(struct xm_comm *xm)
{
    pthread_mutex_lock(&advancing);
    bool on = (xm->creation != NULL) && (look_at_exchange(xm->creation) == EXCHANGE_ON);
    pthread_mutex_unlock(&advancing);
    return on;
}

void xm_creation_wait(struct xm_comm *xm)
{
    struct xm_wait wait = xm_wait_begin("for the other ranks to free a communicator");

    while (xm_creation_exchanges(xm) && (xm_wait_step(&wait) != XM_WAIT_EXPIRED)) {}
}

/* Once vendor and detail are there: the communicator's threads look without a lock. */
static void conclude(struct xm_creation *c, enum xm_outcome outcome, xcclResult_t result)
{
    c->result = result;
    __atomic_store_n(&c->outcome, outcome, __ATOMIC_RELEASE);
}

enum xm_outcome xm_creation_outcome(const struct xm_creation *c)
{
    return __atomic_load_n(&c->outcome, __ATOMIC_ACQUIRE);
}

/* size: all have one. */
static int first_without_device(const struct xm_creation *c, int size)
{
    int i = are_many(size) ? c->all[0].has_device : 0;

    while (!are_many(size) && (i < size) && c->all[i].has_device) {
        i++;
    }
    return i;
}

/* Both ends of a pair hear of the same devices: the same verdict on every rank. */
static void judge_devices(struct xm_creation *c, int size)
{
    const char *name;
    int         version = 0;

    int without = first_without_device(c, size);
    if (without < size) {
        snprintf(c->detail, sizeof(c->detail),
                 "rank %d: no device is in use; the buffers of this rank are empty and no device "
                 "was made current",
                 without);
        conclude(c, XM_RETRY, xcclInvalidUsage); /* it may have some next time */
        return;
    }
    if (are_many(size)) {
        return;
    }
    if ((xcclGetBackend(&name, &version) == xcclSuccess) && (version >= NCCL_MULTI_RANK_VERSION)) {
        return;
    }
    for (int i = 1; i < size; i++) {
        for (int j = 0; j < i; j++) {
            if (memcmp(c->all[i].uuid, c->all[j].uuid, XC_DEVICE_UUID_BYTES) == 0) {
                snprintf(c->detail, sizeof(c->detail),
                         "ranks %d and %d use the same device; give each rank a device of its own "
                         "(cudaSetDevice or hipSetDevice with the local rank, or xccl-run)",
                         j, i);
                conclude(c, XM_REFUSED, xcclInvalidUsage);
                return;
            }
        }
    }
}

static void begin_join(struct xm_comm *xm)
{
    struct xm_creation *c = xm->creation;
    xcclResult_t        res = (xcclResult_t)c->message->result;

    judge_devices(c, xm->size);
    if (c->outcome != XM_PENDING) {
        return;
    }
    if (res != xcclSuccess) {
        xc_fail(res, "rank 0 got no unique id from the vendor's library: %s", c->message->cause);
    } else {
        res = xm_vendor_begin(c->dev, c->device, xm->size, xm->rank, &c->message->id, &c->job);
    }
    if (res != xcclSuccess) {
        snprintf(c->detail, sizeof(c->detail), "%s", xc_last_detail());
        conclude(c, XM_FAILED, res);
    }
}

static void advance_exchange(struct xm_comm *xm, struct xm_creation *c)
{
    enum exchange found = look_at_exchange(c);

    if ((found == EXCHANGE_ON) || (found == EXCHANGE_GONE) || (c->outcome != XM_PENDING)) {
        return;
    }
    if (found == EXCHANGE_OVER) {
        begin_join(xm);
    } else {
        snprintf(c->detail, sizeof(c->detail), "MPI failed to exchange the ranks' devices");
        conclude(c, XM_FAILED, xcclInternalError);
    }
}

static void advance(struct xm_comm *xm, struct xm_creation *c)
{
    if (c->outcome != XM_PENDING) {
        return;
    }
    if (c->job == NULL) {
        advance_exchange(xm, c);
        return;
    }
    if (!xm_vendor_ended(c->job)) {
        return;
    }
    uint64_t     us = (c->job->ended - c->job->begun) / 1000;
    xcclResult_t res = xm_vendor_take(c->job, &c->vendor);
    c->job = NULL;
    c->made = (res == xcclSuccess);
    snprintf(c->detail, sizeof(c->detail), "%s", xc_last_detail());
    conclude(c, (res == xcclSuccess) ? XM_DONE : XM_FAILED, res);
    if (us > __atomic_load_n(&measured_us, __ATOMIC_RELAXED)) {
        __atomic_store_n(&measured_us, us, __ATOMIC_RELAXED);
    }
}

bool xm_creation_is_under_way(const struct xm_comm *xm)
{
    return __atomic_load_n(&xm->creation, __ATOMIC_ACQUIRE) != NULL;
}

void xm_comm_advance(struct xm_comm *xm)
{
    if (!xm_creation_is_under_way(xm)) {
        return;
    }
    xm_comm_use(xm); /* an error handler may end the operation that keeps it */
    pthread_mutex_lock(&advancing);
    if (xm->creation != NULL) {
        advance(xm, xm->creation);
    }
    pthread_mutex_unlock(&advancing);
    xm_comm_unuse(xm);
}

void xm_creation_give_up(struct xm_comm *xm, xcclResult_t result, const char *why)
{
    pthread_mutex_lock(&advancing);
    if (xm->creation->outcome == XM_PENDING) {
        snprintf(xm->creation->detail, sizeof(xm->creation->detail), "%s", why);
        conclude(xm->creation, XM_FAILED, result);
    }
    pthread_mutex_unlock(&advancing);
}

static void free_creation(struct xm_creation *c)
{
    if (c != NULL) {
        xm_guarded_free(c->message);
        xm_guarded_free(c->all);
        free(c);
    }
}

static struct xm_creation *new_creation(int size)
{
    struct xm_creation *c = calloc(1, sizeof(*c));

    if (c == NULL) {
        return NULL;
    }
    c->id_request = c->where_request = XM_HANDLE(MPI_REQUEST_NULL);
    c->message = xm_guarded_alloc(sizeof(*c->message));
    size_t others = are_many(size) ? 1 : (size_t)size; /* and this rank's own at the end */
    c->all = xm_guarded_alloc((others + 1) * sizeof(*c->all));
    if ((c->message == NULL) || (c->all == NULL)) {
        free_creation(c);
        return NULL;
    }
    c->mine = &c->all[others];
    return c;
}

static int exchange_where(struct xm_comm *xm, struct xm_creation *c)
{
    int bytes = (int)sizeof(struct where);

    if (are_many(xm->size)) {
        c->mine->has_device = c->mine->has_device ? xm->size : xm->rank;
        return xm_pmpi.Iallreduce(&c->mine->has_device, &c->all[0].has_device, 1,
                                  XM_HANDLE(MPI_INT), XM_HANDLE(MPI_MIN), xm->comm,
                                  &c->where_request);
    }
    return xm_pmpi.Iallgather(c->mine, bytes, XM_HANDLE(MPI_BYTE), c->all, bytes,
                              XM_HANDLE(MPI_BYTE), xm->comm, &c->where_request);
}

/* The exchange is posted on every rank, or the communicator could not go on. */
xcclResult_t xm_creation_begin(struct xm_comm *xm, const struct xc_device_ops *dev, int device)
{
    struct xm_creation *c = new_creation(xm->size);

    if (c == NULL) {
        return xc_fail(xcclSystemError, "out of memory for %d ranks", xm->size);
    }
    c->dev = dev;
    c->device = device;
    c->outcome = XM_PENDING;
    if (xm->rank == 0) {
        take_id(c->message);
        c->has_id = (c->message->result == (int)xcclSuccess);
    }
    c->mine->has_device =
        (dev != NULL) && (device >= 0) && (dev->uuid_of(device, c->mine->uuid) == xcclSuccess);
    if ((xm_pmpi.Ibcast(c->message, (int)sizeof(*c->message), XM_HANDLE(MPI_BYTE), 0, xm->comm,
                        &c->id_request) != MPI_SUCCESS) ||
        (exchange_where(xm, c) != MPI_SUCCESS)) {
        return xm_agreement_failed("MPI's exchange of devices"); /* it may write into c */
    }
    xm_comm_enter(xm, XM_COMM_CREATING, NULL);
    xm->create_begun = xm->device_calls;
    xm->next_checkin = xm->device_calls + 1;
    __atomic_store_n(&xm->creation, c, __ATOMIC_RELEASE);
    return xcclSuccess;
}

void xm_comm_saved(struct xm_comm *xm, double us, const struct xc_device_ops *dev, int device)
{
    if ((xm_comm_state_now(xm) != XM_COMM_KNOWN) || xm->quiet) {
        return;
    }
    xm->saved_us += us;
    if ((xm->saved_us >= 0) && (xm_creation_begin(xm, dev, device) != xcclSuccess)) {
        xc_warn("no vendor communicator: %s", xc_last_detail());
    }
}

/*
 * The program's threads may use two communicators of the same ranks at once; then the ranks that
 * lost the race say so in the status that follows.
 */
void xm_creation_reuse(struct xm_comm *xm, uint64_t id)
{
    struct xm_creation *c = new_creation(0);

    if (c == NULL) {
        return;
    }
    c->vendor = xm_vendor_reuse(id);
    c->outcome = (c->vendor != NULL) ? XM_DONE : XM_RETRY;
    c->result = (c->vendor != NULL) ? xcclSuccess : xcclInvalidUsage;
    xm_comm_enter(xm, XM_COMM_CREATING, NULL);
    xm->create_begun = xm->device_calls;
    xm->next_checkin = xm->device_calls;
    __atomic_store_n(&xm->creation, c, __ATOMIC_RELEASE);
}
