/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of the direct path. */
#ifndef XM_PATHS_DIRECT_H
#define XM_PATHS_DIRECT_H

#include "direct/direct.h"
#include "paths/buffers.h"

/* direct_calls.c: what the ranks have to do. */

/* Why the direct path does not carry a call whose facts are known (a static text), or NULL. */
const char *xm_direct_obstacle(struct xm_op *op);
/* That ranks share a device without MPS, and what takes turns there is too slow for it; or NULL. */
const char *xm_direct_turns(const struct xm_op *op);

/* The form of a collective, and the bytes of a block, once its buffers are usable. */
struct xm_direct_form {
    enum xk_form form;
    uint32_t     root, what;
    uint64_t     bytes;
    uint64_t     in, out;
    bool         uneven; /* blocks of different sizes: as xm_direct_span() says */
};
/* May it turn out that MPI has to do it over? */
static inline bool xm_direct_is_checked(const struct xm_op *op)
{
    return XK_OP_OF(op->direct_what) == XK_SUM_CHECKED;
}
/* Of a reduction, what this rank gets. */
uint64_t xm_direct_result_bytes(const struct xm_op *op);
/* Would it be written over inputs of this rank that are still to be sent? */
bool           xm_direct_overwrites(const struct xm_op *op);
void           xm_direct_form_of(const struct xm_op *op, struct xm_direct_form *form_p);
struct xk_span xm_direct_span(const struct xm_op *op, const struct xm_direct_form *form, int other);

/* direct_exchange.c: tell a kernel that lingers, or enqueue one. Everything is packed. */
xcclResult_t xm_direct_exchange(struct xm_op *op, bool told); /* false: enqueue one */
/* Is the result written to memory that is not the device's own? */
bool xm_direct_elsewhere(const struct xm_op *op);
/* Of a call whose buffers the kernels may use where they are. */
bool xm_direct_may_tell(const struct xm_op *op);
/* Does a large blocking call wait until nothing comes before it on the device? */
bool xm_direct_rests(const struct xm_op *op);
/* A command, but for what is said of the communicator. */
bool xm_direct_tell(struct xm_op *op, uint32_t values[XK_ALL_WORDS]);
void xm_direct_word(uint32_t *values, int low, uint64_t value);

/* direct_rounds.c: blocks that are too long for that, piece by piece. */
/* 0: it is too long for that as well. The same on all ranks. */
uint32_t     xm_direct_rounds_of(const struct xm_op *op);
xcclResult_t xm_direct_rounds(struct xm_op *op);

/* direct_held.c: which buffers all ranks have mapped already. */
/* Of what this rank shows; until xm_direct_unpin() it loses none that others may have. */
void xm_direct_show_held(struct xm_op *op, struct xm_show *show);
void xm_direct_pin(struct xm_op *op, uint32_t *losses_p);
void xm_direct_unpin(struct xm_op *op);
/* By what all show, so the same on all ranks. */
bool xm_direct_all_held(const struct xm_op *op, const struct xm_show *const *shown);
/* All have mapped what this rank has shown, and had lost so many mappings by then. */
void xm_direct_keep_held(const struct xm_op *op, const struct xm_show *own,
                         const uint32_t losses[XM_SLOT_RANKS]);

/* direct_later.c: of op->counts_later. */
/* How many numbers such an operation has. */
uint32_t xm_direct_later_numbers(const struct xm_direct *d);
/* As xm_direct_mapped(), but xcclUnsupported: it is to be exchanged, maybe in rounds. */
xcclResult_t xm_direct_later(struct xm_op *op);

/* direct_mapped.c: show this rank's buffers; then, once all have, enqueue it. */
/* xcclInProgress: there is no room for that yet. */
xcclResult_t xm_direct_show(struct xm_op *op);
/*
 * xcclInProgress: not all have, or not all have mapped it. xcclUnsupported: some rank's memory
 * cannot be mapped, or not soon.
 */
xcclResult_t xm_direct_mapped(struct xm_op *op, bool told); /* as xm_direct_exchange() */

/* direct_copies.c: what is planned, by copy engines instead of a kernel. */
bool xm_direct_copies_well(const struct xm_op *op, const struct xk_work *m);
/* stay: a bit for each target that is this rank's own. */
xcclResult_t xm_direct_copy(struct xm_op *op, const struct xk_work *m, uint32_t stay);
xcclResult_t xm_direct_query_copies(struct xm_op *op);

/* direct_pipeline.c: a reduction, by copy engines and kernels. */
bool xm_direct_pipelines_well(const struct xm_op *op, const struct xk_work *m);
/* xcclUnsupported: there is not the memory for it, and nothing was done. */
xcclResult_t xm_direct_pipeline(struct xm_op *op, const struct xk_work *m);
xcclResult_t xm_direct_query_pipeline(struct xm_op *op);

#endif
