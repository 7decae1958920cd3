/* SPDX-License-Identifier: BSD-3-Clause */
/* The two sides of a call as a vendor's library takes them: packed or plain memory of its device.
 */
#ifndef XM_INTERCEPT_PORTS_H
#define XM_INTERCEPT_PORTS_H

#include "intercept/copy.h"
#include "intercept/facts.h"

struct xm_port {
    const struct xm_side *side;
    char                 *ptr;    /* device memory */
    bool                  packed; /* ptr is a packed copy of the side */
    size_t               *counts; /* of each block, in bytes; NULL where there is one block */
    size_t               *displs;
};

/* A call on its way through the vendor's library. The device is entered. */
struct xm_run {
    const struct xm_call  *call;
    const struct xm_sides *sides;
    const struct xm_view  *view;
    struct xm_comm        *xm;
    struct xm_scratch      scratch;
    struct xm_copier       copier;
    struct xm_port         send, recv;
};

/* Enqueue what makes both sides usable: a side that lies elsewhere or has holes is copied. */
xcclResult_t xm_ports_open(struct xm_run *run);
/* Enqueue the way back of copies that were written. */
xcclResult_t xm_ports_close(struct xm_run *run);
void         xm_ports_free(struct xm_run *run);

/* Enqueue the collective itself between open and close (enqueue.c). */
xcclResult_t xm_enqueue(struct xm_run *run);
xcclResult_t xm_enqueue_allgatherv(struct xm_run *run); /* allgatherv.c */

#endif
