/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Cancel makes the end of a send independent of its receiver: MPI takes the message back, or it
 * is received some time. A descriptor cannot be taken back: behind the receive that has it others
 * may have later messages. So the bytes are left in a file, and the send is over. Short ones, which
 * are left without that, share one file, with room for as many as can be offered: there may be no
 * other file to be had when they are late.
 */
#include "transfers/left.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/files.h"
#include "base/log.h"
#include "comms/wait.h"
#include "comms/worker.h"
#include "transfers/offer.h"
#include "transfers/rendezvous.h"

/* More than any MPI takes at once in shared memory: Open MPI 4 KiB, MPICH with UCX 8 KiB. */
enum { FEW_BYTES = 16 << 10 };
enum { LATE_NS = 5 * 1000 * 1000, POLLS_PER_LOOK = 64 };
/* So few every MPI takes at once, and ranks that run ahead of their receivers count on that. */
enum { SHORT_BYTES = 4096, SHORT_LATE_NS = 30 * 1000 };
enum { ROOM_BYTES = XM_OFFERS * FEW_BYTES }; /* only what was written to takes memory */
/* Messages that are staged after one that was late; twice as many after the next, until none is. */
enum { FIRST_STAGED = 16, MOST_DOUBLINGS = 10 };

struct left {
    int          slot, peer, file; /* file: -1, if it is in the room */
    struct left *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct left    *all;            /* atomic */
static int             to_be_staged;   /* atomic */
static unsigned        times_too_late; /* atomic */

static pthread_mutex_t room_lock = PTHREAD_MUTEX_INITIALIZER;
static char           *room; /* atomic; NULL: not there yet */
static int             room_file;

bool xm_offers_have_room(void)
{
    if (__atomic_load_n(&room, __ATOMIC_ACQUIRE) != NULL) {
        return true;
    }
    pthread_mutex_lock(&room_lock);
    int file = (room == NULL) ? xc_file_aside(memfd_create(XM_OFFER_FILES "s", MFD_CLOEXEC)) : -1;
    if (file >= 0) {
        void *at = MAP_FAILED;
        if (xc_file_lengthen(file, ROOM_BYTES) == 0) {
            at = mmap(NULL, ROOM_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        }
        if (at != MAP_FAILED) {
            room_file = file;
            __atomic_store_n(&room, at, __ATOMIC_RELEASE);
        } else {
            close(file);
        }
    }
    bool there = (room != NULL);
    pthread_mutex_unlock(&room_lock);
    return there;
}

/* *l, *offer: where the bytes are. */
static bool put(const struct xm_rendezvous *r, struct left *l, struct xm_offer *offer)
{
    if ((offer->source.bytes > FEW_BYTES) || !xm_offers_have_room()) {
        offer->at_in_file = 0;
        bool good = (xm_offer_to_file(r, &l->file) == xcclSuccess);
        offer->fd = l->file;
        return good;
    }
    l->file = -1;
    offer->fd = room_file;
    offer->at_in_file = (uint64_t)r->slot * FEW_BYTES;
    return xm_offer_copy_to(r, room + offer->at_in_file) == xcclSuccess;
}

static void close_file(const struct left *l)
{
    if (l->file >= 0) {
        close(l->file);
    }
}

static void leave(struct xm_rendezvous *r)
{
    struct xm_offer *offer = xm_offer_own(r->slot);
    struct left     *l = malloc(sizeof(*l));
    uint64_t         bytes = offer->source.bytes;

    if ((l == NULL) || (xm_offer_state(offer) != XM_OFFER_OPEN) || !put(r, l, offer)) {
        free(l);
        return;
    }
    l->slot = r->slot;
    l->peer = r->peer;
    if (!xm_offer_move(offer, r->number, XM_OFFER_OPEN, XM_OFFER_LEFT)) {
        close_file(l); /* it is being fetched */
        free(l);
        return;
    }
    xc_trace("a message of %llu bytes is left to its receiver", (unsigned long long)bytes);
    __atomic_store_n(&r->offered, false, __ATOMIC_RELEASE);
    pthread_mutex_lock(&lock);
    l->next = all;
    __atomic_store_n(&all, l, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
}

bool xm_offer_may_leave(enum xm_function function, uint64_t bytes)
{
    switch (function) {
    case XM_FN_MPI_Ssend:
    case XM_FN_MPI_Ssend_c:
    case XM_FN_MPI_Issend:
    case XM_FN_MPI_Issend_c:
    case XM_FN_MPI_Ssend_init:
    case XM_FN_MPI_Ssend_init_c:
        return false; /* their end says that the receive has begun */
    default:
        return bytes <= FEW_BYTES;
    }
}

bool xm_offers_come_late(uint64_t bytes)
{
    if ((bytes > FEW_BYTES) || (__atomic_load_n(&to_be_staged, __ATOMIC_RELAXED) <= 0)) {
        return false;
    }
    __atomic_sub_fetch(&to_be_staged, 1, __ATOMIC_RELAXED);
    return true;
}

/* Short ones one by one: their receiver may come meanwhile, and takes less time than a file. */
static bool is_out_of_patience(const struct xm_rendezvous *r, uint64_t since, uint64_t now)
{
    static uint64_t last; /* atomic */

    if (xm_offer_own(r->slot)->source.bytes >= SHORT_BYTES) {
        return now - since > LATE_NS;
    }
    uint64_t before = __atomic_load_n(&last, __ATOMIC_RELAXED);
    uint64_t begun = (since > before) ? since : before;
    if ((now < begun) || (now - begun <= SHORT_LATE_NS)) {
        return false;
    }
    __atomic_store_n(&last, now, __ATOMIC_RELAXED);
    return true;
}

/* The watcher waits for none. */
bool xm_offer_is_late(struct xm_rendezvous *r)
{
    if (!r->may_leave || xm_is_worker() ||
        ((__atomic_load_n(&r->polls, __ATOMIC_RELAXED) % POLLS_PER_LOOK) != 0)) {
        return false;
    }
    uint64_t now = xm_now_ns(), since = __atomic_load_n(&r->waits_ns, __ATOMIC_RELAXED);
    if ((since == 0) || xm_mailbox_is_mapping(r->peer)) {
        __atomic_store_n(&r->waits_ns, now, __ATOMIC_RELAXED);
    } else if (is_out_of_patience(r, since, now)) {
        __atomic_store_n(&r->late, true, __ATOMIC_RELAXED);
    }
    return __atomic_load_n(&r->late, __ATOMIC_RELAXED);
}

static void stage_for_a_while(void)
{
    if (__atomic_load_n(&to_be_staged, __ATOMIC_RELAXED) <= 0) { /* else they began together */
        unsigned times = __atomic_load_n(&times_too_late, __ATOMIC_RELAXED);
        __atomic_store_n(&to_be_staged, FIRST_STAGED << times, __ATOMIC_RELAXED);
        times += (times < MOST_DOUBLINGS);
        __atomic_store_n(&times_too_late, times, __ATOMIC_RELAXED);
    }
}

void xm_offer_leave_late(struct xm_rendezvous *r)
{
    __atomic_store_n(&r->late, false, __ATOMIC_RELAXED);
    leave(r);
    if (!r->offered) {
        stage_for_a_while();
    }
}

void xm_offer_came_in_time(const struct xm_rendezvous *r)
{
    if (r->may_leave && (__atomic_load_n(&times_too_late, __ATOMIC_RELAXED) > 0)) {
        __atomic_store_n(&times_too_late, 0, __ATOMIC_RELAXED);
    }
}

void xm_offer_leave(struct xm_rendezvous *r)
{
    leave(r);
}

/* Was it received? Or will it never be: last. */
static bool is_over(const struct left *l, bool last)
{
    return (xm_offer_state(xm_offer_own(l->slot)) == XM_OFFER_DONE) ||
           (last && xm_mailbox_is_closed(l->peer));
}

static void reap(bool last)
{
    pthread_mutex_lock(&lock);
    struct left *kept = NULL;
    for (struct left *l = all, *next; l != NULL; l = next) {
        next = l->next;
        if (is_over(l, last)) {
            xm_offer_give(l->slot);
            close_file(l);
            free(l);
        } else {
            l->next = kept;
            kept = l;
        }
    }
    __atomic_store_n(&all, kept, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
}

void xm_offers_left(bool last)
{
    if (__atomic_load_n(&all, __ATOMIC_ACQUIRE) == NULL) {
        return;
    }
    struct xm_wait wait = xm_wait_begin("for the receivers of messages whose sends have ended");
    do {
        reap(last);
    } while (last && (__atomic_load_n(&all, __ATOMIC_ACQUIRE) != NULL) &&
             (xm_wait_step(&wait) != XM_WAIT_EXPIRED));
}
