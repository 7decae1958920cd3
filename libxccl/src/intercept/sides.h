/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory that a call reads and writes on this rank. */
#ifndef XM_INTERCEPT_SIDES_H
#define XM_INTERCEPT_SIDES_H

#include "intercept/call.h"
#include "intercept/types.h"

/*
 * One buffer: blocks of elements of one type. Block i has `count` elements, or counts[i], and
 * begins at displs[i] elements (in extents of the type), or at the buffer.
 */
struct xm_side {
    bool               used; /* does this rank read or write it, with any data at all? */
    bool               in;   /* read */
    bool               out;  /* written */
    char              *buf;
    MPI_Datatype       type;
    struct xm_layout   layout;
    int                blocks;
    MPI_Count          count;
    const void        *counts; /* arrays as in the call, NULL for a single block */
    const void        *displs;
    MPI_Count          elements;  /* of all blocks */
    MPI_Count          bytes;     /* of data, packed */
    MPI_Aint           low, high; /* span touched, in bytes from buf: [low, high) */
    struct xc_mem_info mem;
};

struct xm_sides {
    const struct xm_call *call;
    struct xm_side        send;
    struct xm_side        recv;
    bool                  in_place; /* MPI_IN_PLACE was given on this rank */
};

/*
 * Work out both sides of call on this rank. False if an argument is one that MPI must refuse
 * (negative count, null type, root out of range, ...): then MPI gets the call and says so.
 */
bool xm_sides_of(const struct xm_call *call, const struct xm_comm *xm, struct xm_sides *sides_p);

MPI_Count xm_block_count(const struct xm_call *call, const struct xm_side *side, int i);
/* Byte offset of block i from the buffer. */
MPI_Aint xm_block_offset(const struct xm_call *call, const struct xm_side *side, int i);

#endif
