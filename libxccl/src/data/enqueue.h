/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies between a buffer and other memory, enqueued on a stream: no more of them than needed. */
#ifndef XM_DATA_ENQUEUE_H
#define XM_DATA_ENQUEUE_H

#include "data/buffer.h"
#include "data/pools.h"

/* Where copies of one call run, and what they may use. The device is entered. */
struct xm_copier {
    const struct xm_call       *call;
    const struct xc_device_ops *dev;
    xcclStream_t                stream;
    struct xm_scratch          *scratch;
    MPI_Comm                    comm; /* that MPI packs with; 0: the call's */
};

static inline MPI_Comm xm_copier_comm(const struct xm_copier *copier)
{
    return (copier->comm != 0) ? copier->comm : copier->call->comm;
}

/* A buffer, and memory that its data comes from or goes to. */
struct xm_lane {
    const struct xm_copier *copier;
    const struct xm_buffer *buffer;
    char                   *other;
    bool                    span; /* other has the buffer's shape from buffer->low on; or packed */
    bool                    out;  /* to the buffer, or from it */
};

/* Copy all data of the buffer, and no other byte: neither holes nor gaps. */
xcclResult_t xm_enqueue(const struct xm_lane *lane);

/*
 * The same for the first `bytes` bytes of a single block in the order of its type; negative: for
 * all. Only where it is xm_ordered().
 */
xcclResult_t xm_enqueue_bytes(const struct xm_lane *lane, MPI_Count bytes);

/* The same for the first bytes of the buffer's first element. Likewise. */
xcclResult_t xm_enqueue_head(const struct xm_lane *lane, size_t bytes);

/*
 * The same as xm_enqueue(), but by the kernel that lingers on the device, and waited for. False:
 * nothing was done; it is for data with holes, of a type with few runs or with a list. The
 * program's own work on the memory is over. elsewhere: others than this device are to see what is
 * written. Where it goes to the buffer, that is xm_ordered().
 */
bool xm_move_quickly(const struct xm_lane *lane, bool elsewhere);

struct xm_cost {
    size_t calls;  /* of the device's runtime */
    size_t rows;   /* stretches in all of them */
    bool   kernel; /* does one gather or scatter them, so that their number costs nothing? */
};

/* What that takes; false if a block's type was not taken apart: then only MPI packs it. */
bool xm_enqueue_cost(const struct xm_lane *lane, struct xm_cost *cost_p);

/* Do copies in any order leave what MPI_Unpack leaves? Not where a type names bytes twice. */
bool xm_ordered(const struct xm_call *call, const struct xm_buffer *buffer);

#endif
