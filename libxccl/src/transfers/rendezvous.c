/* SPDX-License-Identifier: BSD-3-Clause */
#include "transfers/rendezvous.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/params.h"
#include "comms/wait.h"
#include "comms/worker.h"
#include "data/flatten.h"
#include "data/kernels.h"
#include "transfers/fetch.h"
#include "transfers/kept.h"
#include "transfers/landing.h"
#include "transfers/left.h"
#include "transfers/offer.h"
#include "transfers/pieces.h"
#include "transfers/pipeline.h"
#include "transfers/push.h"
#include "transfers/shape.h"
#include "transfers/staging.h"
#include "transfers/transfer.h"
#include "transfers/watcher.h"

/*
 * XCCL_RENDEZVOUS=auto. To look for a message in a non-blocking receive costs a fraction of a
 * microsecond, which a program without devices shall not pay for short ones. So this process looks
 * from CAREFUL_BYTES until a device is in use; and from then on from the size of a descriptor,
 * unless a receive of a size in between has been passed over: a message might match that one. Many
 * programs begin such receives of a few bytes before they use a device: then it looks from
 * MIDDLE_BYTES.
 */
enum { LEAST_BYTES = XM_DESCRIPTOR_BYTES, MIDDLE_BYTES = 256, CAREFUL_BYTES = 4096 };
enum { PASSED_SHORT = 1, PASSED_MIDDLE = 2 };
static uint64_t looks_from, least; /* atomic; 0: none looks */
static int      passed_over; /* atomic: receives of at least `least` that were not looked at */
static bool     announced;   /* atomic */
static bool     came_staged; /* atomic: the last large message did */
static MPI_Comm self;        /* for bytes that MPI is to unpack */
static int      watched;     /* atomic, enum xm_watched */

uint64_t xm_rendezvous_looks_from(void)
{
    return __atomic_load_n(&looks_from, __ATOMIC_RELAXED);
}

uint64_t xm_rendezvous_least(void)
{
    return least;
}

/* Either the thread that announces this process sees passed_over, or this one sees looks_from. */
bool xm_rendezvous_looks_at(uint64_t bytes)
{
    uint64_t from = __atomic_load_n(&looks_from, __ATOMIC_RELAXED);

    if ((from == 0) || (bytes < least) || (bytes >= from)) {
        return (from > 0) && (bytes >= from);
    }
    int which = (bytes < MIDDLE_BYTES) ? PASSED_SHORT : PASSED_MIDDLE;
    if ((__atomic_load_n(&passed_over, __ATOMIC_RELAXED) & which) == 0) {
        __atomic_fetch_or(&passed_over, which, __ATOMIC_SEQ_CST);
    }
    return bytes >= __atomic_load_n(&looks_from, __ATOMIC_SEQ_CST);
}

static void announce(const struct xc_device_ops *dev)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

    pthread_mutex_lock(&lock);
    if (!__atomic_load_n(&announced, __ATOMIC_RELAXED)) {
        uint64_t careful = looks_from;
        __atomic_store_n(&looks_from, least, __ATOMIC_SEQ_CST);
        int passed = __atomic_load_n(&passed_over, __ATOMIC_SEQ_CST);
        if (passed != 0) {
            uint64_t middle = ((passed & PASSED_MIDDLE) != 0) ? careful : MIDDLE_BYTES;
            __atomic_store_n(&looks_from, middle, __ATOMIC_SEQ_CST);
        }
        xm_mailbox_announce(dev, looks_from);
        __atomic_store_n(&announced, true, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
}

void xm_rendezvous_announce(const struct xc_device_ops *dev)
{
    if (!__atomic_load_n(&announced, __ATOMIC_ACQUIRE) && (xm_rendezvous_looks_from() > 0)) {
        announce(dev);
    }
}

void xm_rendezvous_init(void)
{
    int level = MPI_THREAD_SINGLE;

    self = XM_HANDLE(MPI_COMM_NULL);
    /* With sessions alone there is no world to find the ranks of a node by. */
    if (!xm_mpi_has_world()) {
        return;
    }
    if ((xc_params()->p2p != XC_P2P_AUTO) || xm_mpi_gpu_aware("cuda") || xm_mpi_gpu_aware("rocm") ||
        !xc_device_possible() || (xm_board_own() == NULL)) {
        return;
    }
    if (xm_mpi_make_self(&self)) { /* errors are raised on the program's communicator */
        bool automatic = (xc_params()->rendezvous < 0);
        least = automatic ? LEAST_BYTES : (uint64_t)xc_params()->rendezvous;
        looks_from = automatic ? CAREFUL_BYTES : least;
    }
    xm_pmpi.Query_thread(&level);
    bool threads = (level == MPI_THREAD_MULTIPLE);
    if (looks_from > 0) {
        __atomic_store_n(&watched, threads ? XM_WATCHED_ALL : XM_WATCHED_NONBLOCKING,
                         __ATOMIC_RELEASE);
    }
}

MPI_Comm xm_rendezvous_self(void)
{
    return self;
}

const int *xm_rendezvous_watched(void)
{
    return &watched;
}

void xm_rendezvous_finalize(void)
{
    if (looks_from > 0) {
        xm_kept_end();
        xm_mailbox_close();
        xm_offers_left(true);
        xm_watcher_end();
        xm_pipeline_end();
        xm_mappings_close();
        xm_pmpi.Comm_free(&self);
        __atomic_store_n(&watched, XM_WATCHED_NONE, __ATOMIC_RELEASE);
        looks_from = 0;
    } else {
        xm_pipeline_end();
    }
}

/* As FNV-1a, of all words that come before the check itself; the shift lets high bits reach low. */
uint64_t xm_descriptor_check(const struct xm_descriptor *d)
{
    uint64_t hash = XC_HASH_BEGIN, word;

    _Static_assert(offsetof(struct xm_descriptor, check) % sizeof(word) == 0, "whole words");
    for (size_t i = 0; i < offsetof(struct xm_descriptor, check); i += sizeof(word)) {
        memcpy(&word, (const char *)d + i, sizeof(word));
        hash = xc_hash_word(hash, word);
        hash ^= hash >> 32;
    }
    return hash;
}

/*
 * Any thread may find it; the program's reports it. The first one stays: in MPI_Sendrecv the other
 * direction may go well afterwards.
 */
void xm_rendezvous_fail(struct xm_rendezvous *r, xcclResult_t res)
{
    if ((res != xcclSuccess) && (r->failed == xcclSuccess)) {
        r->failed = res;
        snprintf(r->detail, sizeof(r->detail), "%s", xc_last_detail());
    }
}

const char *xm_rendezvous_path_out(const struct xm_rendezvous *r)
{
    return !r->offered ? "mpi-staged" : r->in_pieces ? "pipelined" : "fetched";
}

const char *xm_rendezvous_path_in(const struct xm_rendezvous *r)
{
    return r->came_in_pieces ? "pipelined" : "fetched";
}

static bool enter(struct xm_rendezvous *r)
{
    return __atomic_exchange_n(&r->busy, 1, __ATOMIC_ACQUIRE) == 0;
}

/* The watcher may be at it, for microseconds; or longer, where this thread has taken its core. */
static void enter_soon(struct xm_rendezvous *r)
{
    enum { SPINS = 200 };

    for (int i = 0; !enter(r); i++) {
        if (i >= SPINS) {
            sched_yield();
        }
    }
}

static void leave(struct xm_rendezvous *r)
{
    __atomic_store_n(&r->busy, 0, __ATOMIC_RELEASE);
}

/* A message that nobody has come to yet, most of the time: known without keeping others out. */
static bool is_unanswered(const struct xm_rendezvous *r)
{
    if (!__atomic_load_n(&r->offered, __ATOMIC_RELAXED) || r->in_pieces) {
        return false;
    }
    enum xm_offer_state state = xm_offer_state(xm_offer_own(r->slot));
    return (state == XM_OFFER_OPEN) || (state == XM_OFFER_TAKEN);
}

static bool advance(struct xm_transfer *t)
{
    bool fetched = xm_fetch_advance(t);
    bool sent =
        !t->rendezvous.offered || (t->rendezvous.in_pieces ? xm_pieces_send(&t->rendezvous)
                                                           : xm_offer_advance(&t->rendezvous));

    return fetched && sent;
}

bool xm_rendezvous_advance(struct xm_transfer *t)
{
    struct xm_rendezvous *r = &t->rendezvous;

    if ((!r->looks && is_unanswered(r) && !xm_offer_is_lost(r) && !xm_offer_is_late(r)) ||
        !enter(r)) {
        return false;
    }
    bool over = advance(t);
    leave(r);
    return over;
}

void xm_rendezvous_cancel(struct xm_transfer *t)
{
    struct xm_rendezvous *r = &t->rendezvous;

    enter_soon(r);
    if (r->offered && !r->in_pieces) {
        xm_offer_leave(r);
    }
    leave(r);
}

/* The descriptor is complete in memory: take it. */
static bool take(struct xm_transfer *t, const struct xm_descriptor *d)
{
    struct xm_rendezvous *r = &t->rendezvous;

    if (xm_pipeline_take(d)) {
        r->got = *d;
        xm_pieces_receive(t);
        return true;
    }
    if (!xm_descriptor_is_open(d, &r->offer)) {
        return false;
    }
    bool taken = xm_offer_move(r->offer, d->number, XM_OFFER_OPEN, XM_OFFER_TAKEN);
    bool left = !taken && xm_offer_move(r->offer, d->number, XM_OFFER_LEFT, XM_OFFER_SERVED);
    if (taken || left) {
        r->got = *d;
        r->from = r->offer->source;
        xm_fetch_start(t, left);
    }
    return taken || left;
}

bool xm_descriptor_is_magic(uint64_t first)
{
    return (first == XM_DESCRIPTOR_MAGIC) || (first == XM_PIPELINE_MAGIC);
}

uint64_t xm_rendezvous_bytes(const struct xm_rendezvous *r)
{
    if (!r->offered) {
        return r->awaits ? (uint64_t)r->receive.bytes : 0;
    }
    return r->in_pieces ? r->out.bytes : xm_offer_own(r->slot)->source.bytes;
}

/*
 * What the program posts next may decide how a long message is copied: it is left for as long as
 * that is under way, as far as this thread knows. The watcher comes again in its time.
 */
static bool is_left(struct xm_rendezvous *r, const struct xm_descriptor *d)
{
    bool first = xm_is_worker() && !r->seen;

    r->seen = true;
    return (first || xm_watch_is_posting()) && !xm_offers_any_long() &&
           xm_descriptor_is_open(d, &r->offer) && xm_push_depends(r->offer->source.bytes);
}

static bool may_have_come(const struct xm_rendezvous *r)
{
    return r->looks && (__atomic_load_n(&r->fetch, __ATOMIC_RELAXED) == XM_FETCH_NONE);
}

static void glance(struct xm_transfer *t)
{
    struct xm_rendezvous *r = &t->rendezvous;
    struct xm_descriptor  d;

    if (may_have_come(r)) {
        xm_landing_read_head(r, &d.magic, sizeof(d.magic));
        if (xm_descriptor_is_magic(d.magic)) {
            xm_landing_read_head(r, &d, sizeof(d));
            r->early = xm_landing_is_in_place(t);
            if (!is_left(r, &d)) {
                take(t, &d);
            }
        }
    }
}

/* Whoever takes a descriptor says so before its message comes over it. */
bool xm_rendezvous_is_untouched(const struct xm_transfer *t)
{
    const struct xm_rendezvous *r = &t->rendezvous;
    uint64_t                    first;

    memcpy(&first, r->receive.buf, sizeof(first));
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return !xm_descriptor_is_magic(first) &&
           (__atomic_load_n(&r->fetch, __ATOMIC_RELAXED) == XM_FETCH_NONE);
}

void xm_rendezvous_glance(struct xm_transfer *t)
{
    if (may_have_come(&t->rendezvous) && enter(&t->rendezvous)) {
        glance(t);
        leave(&t->rendezvous);
    }
}

bool xm_rendezvous_hold(struct xm_transfer *t)
{
    return enter(&t->rendezvous);
}

void xm_rendezvous_look(struct xm_transfer *const *held, int count)
{
    enum xm_collect around = xm_kernel_copies_collected(); /* where a copy of that is waited for */

    xm_kernel_copies_collect((count > XM_FEW_TRANSFERS) ? XM_COLLECT_MANY : XM_COLLECT_FEW);
    for (int i = 0; i < count; i++) {
        glance(held[i]);
    }
    xm_kernel_copies_collect(around);
    for (int i = 0; i < count; i++) {
        advance(held[i]);
        leave(&held[i]->rendezvous);
    }
}

void xm_rendezvous_let_go(const struct xm_transfer *t)
{
    while (__atomic_load_n(&t->rendezvous.busy, __ATOMIC_ACQUIRE)) {
        sched_yield();
    }
}

bool xm_rendezvous_is_likely(const struct xm_transfer *t, int argument)
{
    const struct xm_rendezvous *r = &t->rendezvous;

    if ((t->form == 'P') && (t->kinds[argument] == 's')) {
        return xm_rendezvous_will_offer(t);
    }
    return r->looks && (argument == r->argument) && (t->kinds[argument] == 'r') &&
           (r->receive.bytes >= XM_LAZY_BYTES) && !__atomic_load_n(&came_staged, __ATOMIC_RELAXED);
}

/* A descriptor, but its process cannot be reached: an error, and not a message of its bytes. */
static bool give_up(struct xm_rendezvous *r, const struct xm_descriptor *d)
{
    int why;

    if (!xm_descriptor_is_hidden(d, &why)) {
        return false;
    }
    xm_rendezvous_fail(r, xc_fail(xcclSystemError,
                                  "a message from device memory of process %d cannot be fetched: "
                                  "its shared memory cannot be opened (%s); set XCCL_P2P=staged",
                                  d->pid, strerror(why)));
    xm_mailbox_lose(d->nonce, d->number);
    r->came = XM_DESCRIPTOR_BYTES;
    r->fetch = XM_FETCH_OVER;
    return true;
}

bool xm_rendezvous_received(struct xm_transfer *t, MPI_Count bytes)
{
    struct xm_rendezvous *r = &t->rendezvous;
    struct xm_descriptor  d;

    if (!r->looks || ((bytes != XM_DESCRIPTOR_BYTES) && (bytes != XM_WHOLE))) {
        if (bytes >= XM_LAZY_BYTES) {
            __atomic_store_n(&came_staged, true, __ATOMIC_RELAXED);
        }
        return false;
    }
    enter_soon(r);
    bool taken = (r->fetch != XM_FETCH_NONE);
    if (!taken) {
        xm_landing_read_head(r, &d, sizeof(d));
        r->early = false;
        /* The system may have lacked files, or memory, for a moment: it can be opened by now. */
        taken = take(t, &d) || give_up(r, &d) || take(t, &d);
    } else {
        xm_landing_put_head(r);
    }
    if (taken) {
        __atomic_store_n(&came_staged, false, __ATOMIC_RELAXED);
    }
    leave(r);
    return taken;
}

bool xm_rendezvous_land(struct xm_transfer *t, MPI_Count bytes)
{
    struct xm_rendezvous *r = &t->rendezvous;

    if ((xm_kernel_copies_collected() == XM_COLLECT_NONE) || (xc_params()->gdrcopy > 0)) {
        return false;
    }
    enter_soon(r);
    bool lands = (r->fetch == XM_FETCH_NONE) && xm_transfer_land(t, bytes, &r->by_kernel);
    if (lands) {
        __atomic_store_n(&r->fetch, XM_FETCH_LANDING, __ATOMIC_RELEASE);
    }
    leave(r);
    return lands;
}

void xm_rendezvous_wait(struct xm_transfer *t)
{
    struct xm_wait wait = xm_wait_begin("for the other rank of a message from device memory");

    xm_kernel_copies_collect(XM_COLLECT_NONE); /* MPI's handler may have left what did */
    while (!xm_rendezvous_advance(t)) {
        xm_mailbox_looked();
        if (xm_wait_step(&wait) == XM_WAIT_EXPIRED) {
            xm_rendezvous_fail(
                &t->rendezvous,
                xc_fail(xcclTimeout,
                        "the %s of a message from device memory did not %s it "
                        "within %ld s (XCCL_TIMEOUT)",
                        (t->rendezvous.fetch == XM_FETCH_PIECES) ? "sender" : "receiver",
                        (t->rendezvous.fetch == XM_FETCH_PIECES) ? "send" : "fetch",
                        xc_params()->timeout));
            return;
        }
    }
}

void xm_rendezvous_rest(struct xm_transfer *t)
{
    struct xm_rendezvous *r = &t->rendezvous;

    if (r->packs && !r->offered) {
        xm_scratch_end(&r->scratch);
        r->packs = false;
    }
}

void xm_rendezvous_close(struct xm_transfer *t)
{
    struct xm_rendezvous *r = &t->rendezvous;

    xm_unwatch(t);
    if (r->offered && r->in_pieces) {
        xm_pieces_drop(r, true);
    }
    free(r->landing);
    r->landing = NULL;
    if (r->many != 0) {
        xm_type_forget(r->many);
        r->many = 0;
    }
    /* The program may receive where this was, and a descriptor that is still open would be read. */
    r->out.magic = 0;
    if (r->keeps) {
        xm_type_forget(r->receive.type);
        r->keeps = r->receive.layout.held = false;
    }
    if (r->holds) {
        xm_flat_put(r->flat);
        xm_buffer_let_type_go(&r->receive);
        r->holds = false;
    }
    xm_rendezvous_rest(t);
}
