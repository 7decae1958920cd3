/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Is a copy over? The driver takes more than a microsecond for an answer, so where many are under
 * way it is not asked for each of them in every round.
 */
#include "transfers/question.h"

#include "comms/wait.h"
#include "transfers/transfer.h"

/* So long takes one question; so few are asked for in every round. H200. */
enum { QUESTION_NS = 1250, FEW = 2 };

static int pending; /* atomic: copies by engines, to here or from here */

void xm_question_begin(struct xm_rendezvous *r)
{
    r->asked_ns = 0;
    __atomic_add_fetch(&pending, 1, __ATOMIC_RELAXED);
}

xcclResult_t xm_question_ask(struct xm_rendezvous *r, const struct xc_device_ops *dev, void *event)
{
    int n = __atomic_load_n(&pending, __ATOMIC_RELAXED);

    if (n > FEW) {
        uint64_t now = xm_now_ns();
        if (now - r->asked_ns < (uint64_t)n * QUESTION_NS) {
            return xcclInProgress;
        }
        r->asked_ns = now;
    }
    xcclResult_t res = dev->event_query(event);
    if (res != xcclInProgress) {
        __atomic_sub_fetch(&pending, 1, __ATOMIC_RELAXED);
    }
    return res;
}
