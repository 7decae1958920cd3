/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A persistent request of MPI's on host memory that stands for buffers of a device. An operation of
 * xm_path_staged that has one copies to that memory, starts the request, and copies back.
 */
#ifndef XM_PATHS_STAGED_H
#define XM_PATHS_STAGED_H

#include "paths/path.h"

struct xm_standing {
    MPI_Request       request;
    struct xm_scratch scratch;                   /* holds the memory of the spans */
    char             *send_span, *recv_span;     /* as those of an operation */
    void             *send_arrays, *recv_arrays; /* likewise */
    uint64_t          number, starts; /* on its communicator, and of it: equal on all ranks */
    bool              lost; /* a start was given up, and MPI may still be at work on the memory */

    /* This rank had no memory for its data, or could not enter its device: MPI's request is on
     * placeholders. Each start fails. */
    xcclResult_t           missed;
    struct xm_placeholder *placeholders;
    struct xm_substitute   substitute;
    char                   missed_detail[256]; /* why */
};

/*
 * Make one for the persistent call of op, whose buffers and device are known. *code_p: MPI's, where
 * it refuses the call; then there is none.
 */
xcclResult_t xm_standing_make(struct xm_op *op, struct xm_standing **standing_p, int *code_p);
void         xm_standing_free(struct xm_standing *standing); /* NULL too */

#endif
