/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations under way whose requests the program holds, in the order of their start. MPI may call
 * the program's error handler while one is progressed; the handler may call MPI, or leave by
 * longjmp(). So no lock is held then, but the operation is claimed by the thread.
 */
#ifndef XM_OPS_PENDING_H
#define XM_OPS_PENDING_H

#include "paths/path.h"

/* What a call has claimed: of the thread, and from where on its stack. */
struct xm_claim {
    struct xm_op *op;
    uint64_t      number, awaited;
    const void   *frame;
};

bool xm_pending_any(void);
void xm_pending_add(struct xm_op *op);
bool xm_pending_on(const struct xm_comm *xm);

/* Claim the first that nobody has claimed; false: there is none. With claim->frame. */
bool xm_pending_claim_first(struct xm_claim *claim);
/* Give it back, or over: take it out; and claim the next one, unless stop. */
bool xm_pending_claim_next(struct xm_claim *claim, bool over, bool stop);
/* Is it claimed still? Else this thread has waited for it in an error handler, and it may be gone.
 */
bool xm_pending_is_claimed(const struct xm_claim *claim);

/*
 * This thread waits for one, or, NULL, for those of a communicator, or, NULL, for all. Of those
 * that it has claimed MPI has called the error handler, which has left the call, or waits itself:
 * they have failed.
 */
void xm_pending_await(const struct xm_op *op, const struct xm_comm *comm);
/* Has this thread claimed any? */
bool xm_pending_has_claims(void);

/*
 * One thread at a time progresses those in which MPI calls no handler: they are to go in order.
 * False: another one does.
 */
bool xm_pending_take_turn(void);
void xm_pending_end_turn(void);

#endif
