/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/pending.h"

#include <pthread.h>

/* Held for a few instructions only, and never while MPI is called. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct xm_op   *first; /* atomic */
static struct xm_op   *last;
static uint64_t        claims;

static const void *turn; /* atomic: the thread that has it, or NULL */

/* Its address says which thread. How many are claimed: 0, but in a handler and after its jump. */
static __thread unsigned own_claims;
static __thread uint64_t awaited; /* claims that others of its calls have ended */

bool xm_pending_any(void)
{
    return __atomic_load_n(&first, __ATOMIC_ACQUIRE) != NULL;
}

void xm_pending_add(struct xm_op *op)
{
    pthread_mutex_lock(&lock);
    op->next = NULL;
    op->previous = last;
    if (last != NULL) {
        last->next = op;
    } else {
        __atomic_store_n(&first, op, __ATOMIC_RELEASE);
    }
    last = op;
    pthread_mutex_unlock(&lock);
}

bool xm_pending_on(const struct xm_comm *xm)
{
    pthread_mutex_lock(&lock);
    const struct xm_op *op = first;
    while ((op != NULL) && (op->comm != xm)) {
        op = op->next;
    }
    pthread_mutex_unlock(&lock);
    return op != NULL;
}

/* ---- with the lock ---- */

static void take_out(struct xm_op *op)
{
    if (op->previous != NULL) {
        op->previous->next = op->next;
    } else {
        __atomic_store_n(&first, op->next, __ATOMIC_RELEASE);
    }
    if (op->next != NULL) {
        op->next->previous = op->previous;
    } else {
        last = op->previous;
    }
}

static bool is_own(const struct xm_op *op)
{
    return __atomic_load_n(&op->claimer, __ATOMIC_RELAXED) == &own_claims;
}

static void give_back(struct xm_op *op)
{
    __atomic_store_n(&op->claimer, NULL, __ATOMIC_RELAXED);
    own_claims -= (own_claims > 0);
}

/* The code went to the handler, and with it out of the call. */
static void give_back_failed(struct xm_op *op)
{
    give_back(op);
    awaited++;
    if (op->code == MPI_SUCCESS) {
        op->code = MPI_ERR_OTHER;
    }
}

/* The first from here on. A call of this thread that was further down its stack has been left. */
static bool claim_from(struct xm_op *op, struct xm_claim *claim)
{
    while ((op != NULL) && (op->claimer != NULL)) {
        if (is_own(op) && ((uintptr_t)claim->frame >= (uintptr_t)op->claim_frame)) {
            give_back_failed(op);
            break;
        }
        op = op->next;
    }
    claim->op = op;
    if (op != NULL) {
        claim->number = ++claims;
        claim->awaited = awaited;
        op->claim = claim->number;
        op->claim_frame = claim->frame;
        __atomic_store_n(&op->claimer, &own_claims, __ATOMIC_RELAXED);
        own_claims++;
    }
    return op != NULL;
}

/* ---- claims ---- */

bool xm_pending_claim_first(struct xm_claim *claim)
{
    pthread_mutex_lock(&lock);
    bool found = claim_from(first, claim);
    pthread_mutex_unlock(&lock);
    return found;
}

bool xm_pending_claim_next(struct xm_claim *claim, bool over, bool stop)
{
    struct xm_op *op = claim->op;

    pthread_mutex_lock(&lock);
    struct xm_op *next = op->next;
    give_back(op);
    if (over) {
        take_out(op);
    }
    bool found = !stop && claim_from(next, claim);
    pthread_mutex_unlock(&lock);
    return found;
}

bool xm_pending_is_claimed(const struct xm_claim *claim)
{
    if (claim->awaited == awaited) {
        return true;
    }
    pthread_mutex_lock(&lock);
    const struct xm_op *op = first;
    while ((op != NULL) && ((op != claim->op) || (op->claim != claim->number) || !is_own(op))) {
        op = op->next;
    }
    pthread_mutex_unlock(&lock);
    return op != NULL;
}

void xm_pending_await(const struct xm_op *op, const struct xm_comm *comm)
{
    if ((own_claims == 0) || ((op != NULL) && !is_own(op))) {
        return;
    }
    pthread_mutex_lock(&lock);
    for (struct xm_op *o = first; o != NULL; o = o->next) {
        bool meant = (op != NULL) ? (o == op) : ((comm == NULL) || (o->comm == comm));
        if (meant && is_own(o)) {
            give_back_failed(o);
        }
    }
    pthread_mutex_unlock(&lock);
}

bool xm_pending_has_claims(void)
{
    return own_claims != 0;
}

bool xm_pending_take_turn(void)
{
    const void *nobody = NULL;

    return __atomic_compare_exchange_n(&turn, &nobody, &own_claims, false, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED) ||
           (nobody == &own_claims);
}

void xm_pending_end_turn(void)
{
    if (__atomic_load_n(&turn, __ATOMIC_RELAXED) == &own_claims) {
        __atomic_store_n(&turn, NULL, __ATOMIC_RELEASE);
    }
}
