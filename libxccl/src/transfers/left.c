/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Cancel makes the end of a send independent of its receiver: MPI takes the message back, or it
 * is received some time. A descriptor cannot be taken back: behind the receive that has it others
 * may have later messages. So the bytes are left in a file, and the send is over.
 */
#include "transfers/left.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "comms/wait.h"
#include "transfers/offer.h"
#include "transfers/rendezvous.h"

struct left {
    int          slot, peer, file;
    struct left *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct left    *all; /* atomic */

void xm_offer_leave(struct xm_rendezvous *r)
{
    struct xm_offer *offer = xm_offer_own(r->slot);
    struct left     *l = malloc(sizeof(*l));

    if ((l == NULL) || (xm_offer_state(offer) != XM_OFFER_OPEN) ||
        (xm_offer_to_file(r, &l->file) != xcclSuccess)) {
        free(l);
        return;
    }
    l->slot = r->slot;
    l->peer = r->peer;
    offer->fd = l->file;
    if (!xm_offer_move(offer, r->number, XM_OFFER_OPEN, XM_OFFER_LEFT)) {
        close(l->file); /* it is being fetched */
        free(l);
        return;
    }
    __atomic_store_n(&r->offered, false, __ATOMIC_RELEASE);
    pthread_mutex_lock(&lock);
    l->next = all;
    __atomic_store_n(&all, l, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
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
            close(l->file);
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
    struct xm_wait wait = xm_wait_begin("for the receivers of messages that were cancelled");
    do {
        reap(last);
    } while (last && (__atomic_load_n(&all, __ATOMIC_ACQUIRE) != NULL) &&
             (xm_wait_step(&wait) != XM_WAIT_EXPIRED));
}
