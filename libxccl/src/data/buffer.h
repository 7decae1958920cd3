/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory that a call reads and writes on this rank. */
#ifndef XM_DATA_BUFFER_H
#define XM_DATA_BUFFER_H

#include "data/runs.h"
#include "data/types.h"
#include "device/device.h"
#include "mpi/call.h"

/* Where a communicator's ranks stand, as far as buffers depend on it. */
struct xm_place {
    int  rank, size;
    int  partners; /* ranks that an all-to-all or rooted collective exchanges blocks with */
    bool inter;
};

/* One block: count elements of a type at an offset in bytes. */
struct xm_block {
    MPI_Count               count;
    MPI_Aint                offset;
    MPI_Datatype            type;
    const struct xm_layout *layout;
};

/*
 * One buffer: blocks of elements. Block i has `count` elements, or counts[i], and begins at
 * displs[i] extents of the type (alltoallw: bytes), or at the buffer.
 */
struct xm_buffer {
    bool                used; /* does this rank read or write it, with any data at all? */
    bool                in;   /* read */
    bool                out;  /* written */
    char               *buf;
    MPI_Datatype        type;
    struct xm_layout    layout;
    const MPI_Datatype *types;   /* of each block, or NULL: alltoallw */
    MPI_Datatype       *own;     /* these, of a buffer that was taken apart */
    struct xm_layout   *layouts; /* of each block, with types */
    int                 blocks;
    MPI_Count           count;
    const void         *counts; /* arrays as in the call, NULL for a single block */
    const void         *displs;
    MPI_Count           elements;  /* of all blocks */
    MPI_Count           bytes;     /* of data, packed */
    bool                plain;     /* every block's layout is */
    MPI_Aint            low, high; /* span touched, in bytes from buf: [low, high) */
    struct xc_mem_info  mem;
    bool                absolute; /* addresses in types or displacements: of any allocations */
    bool                mixed;    /* and of several kinds of memory, or of several devices */
};

struct xm_buffers {
    struct xm_buffer send;
    struct xm_buffer recv;
    bool             in_place; /* MPI_IN_PLACE was given on this rank */
    void            *arrays;   /* of the call, kept by data/arrays.h; NULL: not kept */
};

/*
 * Work out both buffers of call on this rank. False if an argument is one that MPI must refuse
 * (negative count, null type, root out of range, ...): then MPI gets the call and says so.
 */
bool xm_buffers_of(const struct xm_call *call, const struct xm_place *place,
                   struct xm_buffers *buffers_p);
/* A single buffer of count elements, for calls that are no collectives. xm_buffer_free() later. */
bool xm_buffer_single(struct xm_buffer *buffer, const void *buf, MPI_Count count,
                      MPI_Datatype type);
/*
 * Of a persistent request, at its start: the program may have put other memory at the address since
 * it was asked for, and a copy may have made it synchronous.
 */
void xm_buffer_ask_again(struct xm_buffer *buffer);
void xm_buffers_free(struct xm_buffers *buffers);
void xm_buffer_free(struct xm_buffer *buffer);
/*
 * A reference of the buffer's own to the type of its single block: the program may free the type as
 * soon as a call has returned, while its data is still on the way.
 */
void xm_buffer_hold_type(struct xm_buffer *buffer);
void xm_buffer_let_type_go(struct xm_buffer *buffer);
/* What copies by the device need of its type. Of device memory that is known from the beginning. */
void xm_buffer_take_apart(struct xm_buffer *buffer);
/* A type of ours that nobody needs: one of the next calls frees it. */
void xm_type_forget(MPI_Datatype type);
/* Free the references that were let go. In MPI_Finalize, and now and then. */
void xm_buffers_free_types(void);
/* Some elements of a buffer with one block. It lives as long as that one, and is not freed. */
void xm_buffer_part(const struct xm_buffer *all, MPI_Count first, MPI_Count count,
                    struct xm_buffer *part_p);

/*
 * The kind of memory at ptr. The answer is kept for the next look of this thread at the same
 * address, which is that of the same call.
 */
struct xc_mem_info xm_buffer_ask(const struct xc_device_ops *dev, const void *ptr);
/*
 * A call that does not ask: an answer that is left from an earlier one is not for it. Memory may
 * have been freed and allocated since.
 */
void xm_buffer_forget(void);

struct xm_block xm_block_at(const struct xm_call *call, const struct xm_buffer *buffer, int i);
/* Run number i of its type, which was taken apart, for all elements of the block. */
struct xm_run xm_block_run(const struct xm_block *block, size_t i);

/* A place in it; the buffer itself may be MPI_BOTTOM, which no pointer may be counted from. */
static inline char *xm_buffer_at(const struct xm_buffer *buffer, MPI_Aint offset)
{
    return (char *)((uintptr_t)buffer->buf + (uintptr_t)offset);
}

/* Device memory, which MPI and the host must not touch? */
static inline bool xm_on_device(const struct xm_buffer *buffer)
{
    return buffer->used && (buffer->mem.kind == XC_MEM_DEVICE);
}

#endif
