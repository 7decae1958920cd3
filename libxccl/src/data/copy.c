/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/copy.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "comms/wait.h"
#include "data/gdrcopy.h"
#include "data/kernels.h"

/* MPI_Pack counts in int: larger blocks go in pieces of this many bytes at most. */
enum { PACK_BYTES = 1 << 30 };

/*
 * A call of the device's runtime takes about as long as this many bytes on their way to the host; a
 * row of a copy in two dimensions counts as ROW_BYTES at least. Estimates, not measurements.
 */
enum { CALL_BYTES = 64 << 10, ROW_BYTES = 512, FEW_CALLS = 64 };

static struct xm_lane lane_of(const struct xm_copier *copier, const struct xm_buffer *buffer,
                              char *other)
{
    return (struct xm_lane){.copier = copier, .buffer = buffer, .other = other};
}

static size_t span_of(const struct xm_buffer *buffer)
{
    return (size_t)(buffer->high - buffer->low);
}

/* Between two devices single copies are certain to work; those of rows are not. */
static bool on_this_device(const struct xm_copier *copier, const struct xm_buffer *buffer)
{
    return (buffer->mem.kind == XC_MEM_DEVICE) && (buffer->mem.device == copier->scratch->device);
}

/* MPI_Pack or MPI_Unpack all blocks between base (as the buffer) and packed, both host memory. */
static xcclResult_t convert(const struct xm_copier *copier, const struct xm_buffer *buffer,
                            char *base, char *packed, bool pack)
{
    size_t at = 0;

    for (int i = 0; i < buffer->blocks; i++) {
        struct xm_block block = xm_block_at(copier->call, buffer, i);
        MPI_Count       piece = (block.layout->size > 0) ? PACK_BYTES / block.layout->size : 0;
        char           *from = base + block.offset;
        if (block.layout->size == 0) {
            continue;
        }
        if (piece == 0) {
            return xc_fail(
                xcclUnsupported,
                "a datatype of more than %d bytes cannot be packed; use a smaller one, and more of it",
                PACK_BYTES);
        }
        for (MPI_Count left = block.count; left > 0;) {
            int n = (int)((left < piece) ? left : piece);
            int bytes = (int)(n * block.layout->size);
            int position = 0;
            int res = pack ? xm_pmpi.Pack(from, n, block.type, packed + at, bytes, &position,
                                          xm_copier_comm(copier))
                           : xm_pmpi.Unpack(packed + at, bytes, &position, from, n, block.type,
                                            xm_copier_comm(copier));
            if ((res != MPI_SUCCESS) || (position != bytes)) {
                return xc_fail(xcclInternalError, "%s failed on a buffer in device memory",
                               pack ? "MPI_Pack" : "MPI_Unpack");
            }
            at += (size_t)bytes;
            from += n * block.layout->extent;
            left -= n;
        }
    }
    return xcclSuccess;
}

/* The whole span of a buffer in host memory that MPI may touch: itself, or a copy. */
static xcclResult_t host_span(const struct xm_copier *copier, const struct xm_buffer *buffer,
                              char **span_p)
{
    size_t bytes = (size_t)(buffer->high - buffer->low);
    void  *span;

    if (buffer->mem.kind != XC_MEM_DEVICE) {
        *span_p = xm_buffer_at(buffer, buffer->low);
        return xcclSuccess;
    }
    xcclResult_t res = xm_scratch_take(copier->scratch, XM_POOL_HOST, bytes, &span);
    if (res != xcclSuccess) {
        return res;
    }
    /* Holes are read along with the data: one copy is faster than many, and harms nobody. */
    res = copier->dev->copy_async(span, xm_buffer_at(buffer, buffer->low), bytes, copier->stream);
    if (res != xcclSuccess) {
        return res;
    }
    *span_p = span;
    return xm_stream_wait(copier->dev, copier->stream);
}

static xcclResult_t pack_derived(const struct xm_copier *copier, const struct xm_buffer *buffer,
                                 void *packed)
{
    void *host;
    char *span;

    xcclResult_t res = xm_scratch_take(copier->scratch, XM_POOL_HOST, (size_t)buffer->bytes, &host);
    if (res != xcclSuccess) {
        return res;
    }
    res = host_span(copier, buffer, &span);
    if (res != xcclSuccess) {
        return res;
    }
    res = convert(copier, buffer, span - buffer->low, host, true);
    if (res != xcclSuccess) {
        return res;
    }
    return copier->dev->copy_async(packed, host, (size_t)buffer->bytes, copier->stream);
}

/* Not over the host: all of the span would go there, and the data come back. */
static bool packs_on_device(const struct xm_lane *lane)
{
    const struct xm_buffer *b = lane->buffer;
    struct xm_cost          cost;

    if (b->absolute) { /* what lies between is nobody's, or another's */
        return true;
    }
    return on_this_device(lane->copier, b) && xm_enqueue_cost(lane, &cost) &&
           (cost.calls <= FEW_CALLS + (span_of(b) + (size_t)b->bytes) / CALL_BYTES);
}

xcclResult_t xm_pack(const struct xm_copier *copier, const struct xm_buffer *buffer, void *packed)
{
    struct xm_lane lane = lane_of(copier, buffer, packed);

    return (buffer->plain || packs_on_device(&lane)) ? xm_enqueue(&lane)
                                                     : pack_derived(copier, buffer, packed);
}

/*
 * Stretch by stretch: a type that permutes its data would be unpacked wrongly, so MPI unpacks
 * derived types in host memory, and from there each stretch goes to where it belongs.
 */
static xcclResult_t unpack_derived(const struct xm_copier *copier, const struct xm_buffer *buffer,
                                   const void *packed)
{
    size_t bytes = (size_t)buffer->bytes;
    void  *host, *span;

    xcclResult_t res = xm_scratch_take(copier->scratch, XM_POOL_HOST, bytes, &host);
    if (res != xcclSuccess) {
        return res;
    }
    res = copier->dev->copy_async(host, packed, bytes, copier->stream);
    if (res != xcclSuccess) {
        return res;
    }
    res = xm_stream_wait(copier->dev, copier->stream);
    if (res != xcclSuccess) {
        return res;
    }
    if (buffer->mem.kind != XC_MEM_DEVICE) {
        return convert(copier, buffer, buffer->buf, host, false);
    }
    res = xm_scratch_take(copier->scratch, XM_POOL_HOST, span_of(buffer), &span);
    if (res != xcclSuccess) {
        return res;
    }
    res = convert(copier, buffer, (char *)span - buffer->low, host, false);
    if (res != xcclSuccess) {
        return res;
    }
    return xm_stage_out(copier, buffer, span);
}

/*
 * Over the host each stretch comes back by a call of its own too, so that way must save some. It
 * does where a type permutes what lies side by side.
 */
static bool unpacks_on_device(const struct xm_lane *lane)
{
    const struct xm_buffer *b = lane->buffer;
    struct xm_lane          back = *lane;
    struct xm_cost          cost, other;

    if (b->absolute) {
        return true;
    }
    back.span = true;
    return on_this_device(lane->copier, b) && xm_ordered(lane->copier->call, b) &&
           xm_enqueue_cost(lane, &cost) &&
           ((cost.calls <= FEW_CALLS + 2 * (size_t)b->bytes / CALL_BYTES) ||
            (xm_enqueue_cost(&back, &other) && (cost.calls / 2 <= other.calls)));
}

xcclResult_t xm_unpack(const struct xm_copier *copier, const struct xm_buffer *buffer,
                       const void *packed)
{
    struct xm_lane lane = lane_of(copier, buffer, (char *)(uintptr_t)packed);

    lane.out = true;
    return (buffer->plain || unpacks_on_device(&lane)) ? xm_enqueue(&lane)
                                                       : unpack_derived(copier, buffer, packed);
}

bool xm_packs_well(const struct xm_copier *copier, const struct xm_buffer *buffer, bool out)
{
    struct xm_lane lane = lane_of(copier, buffer, NULL);

    lane.out = out;
    return out ? unpacks_on_device(&lane) : packs_on_device(&lane);
}

/* Or holes and all: one copy is faster than many, and harms nobody. */
static bool data_only(const struct xm_lane *lane)
{
    const struct xm_buffer *b = lane->buffer;
    struct xm_cost          cost;

    if (b->plain) {
        return true;
    }
    if (!xm_enqueue_cost(lane, &cost) || (cost.rows == 0)) {
        return false;
    }
    if (cost.kernel) {
        /* Over the bus single stretches go at half the speed of one copy. */
        return cost.calls * CALL_BYTES + 2 * (size_t)b->bytes < span_of(b);
    }
    size_t row = (size_t)b->bytes / cost.rows;
    return cost.calls * CALL_BYTES + cost.rows * ((row < ROW_BYTES) ? ROW_BYTES : row) < span_of(b);
}

xcclResult_t xm_stage_in(const struct xm_copier *copier, const struct xm_buffer *buffer, char *span)
{
    struct xm_lane lane = lane_of(copier, buffer, span);

    lane.span = true;
    if (!buffer->in) {
        return xcclSuccess;
    }
    return data_only(&lane) ? xm_enqueue(&lane)
                            : copier->dev->copy_async(span, xm_buffer_at(buffer, buffer->low),
                                                      span_of(buffer), copier->stream);
}

xcclResult_t xm_stage_out(const struct xm_copier *copier, const struct xm_buffer *buffer,
                          char *span)
{
    struct xm_lane lane = lane_of(copier, buffer, span);

    lane.span = lane.out = true;
    return buffer->out ? xm_enqueue(&lane) : xcclSuccess;
}

static bool is_quick(const struct xm_buffer *b, MPI_Count bytes)
{
    return b->plain && (span_of(b) == (size_t)b->bytes) && (bytes <= XM_QUICK_BYTES) &&
           (b->mem.kind == XC_MEM_DEVICE);
}

static bool stage_quickly(const struct xm_copier *copier, const struct xm_buffer *b, char *span,
                          MPI_Count bytes, bool out)
{
    char *mine = xm_buffer_at(b, b->low);

    if (!is_quick(b, bytes)) {
        return false;
    }
    int device = b->mem.device;
    if (out ? xm_gdrcopy_in(copier->dev, device, mine, span, (size_t)bytes)
            : xm_gdrcopy_out(copier->dev, device, span, mine, (size_t)bytes)) {
        return true;
    }
    struct xm_kernels *k = xm_kernels_of(copier->dev, device);
    return (k != NULL) && copier->dev->mem_reachable(span) &&
           xm_quick_copy(k, out ? XM_QUICK_IN : XM_QUICK_OUT, out ? mine : span, out ? span : mine,
                         (size_t)bytes);
}

bool xm_stage_in_quickly(const struct xm_copier *copier, const struct xm_buffer *buffer, char *span)
{
    return stage_quickly(copier, buffer, span, buffer->bytes, false);
}

static MPI_Count bytes_of(const struct xm_buffer *b, MPI_Count bytes)
{
    return ((bytes < 0) || (bytes > b->bytes)) ? b->bytes : bytes;
}

bool xm_stage_out_quickly(const struct xm_copier *copier, const struct xm_buffer *buffer,
                          char *span, MPI_Count bytes)
{
    return stage_quickly(copier, buffer, span, bytes_of(buffer, bytes), true);
}

bool xm_stage_out_start(const struct xm_copier *copier, const struct xm_buffer *buffer, char *span,
                        MPI_Count bytes, struct xm_kernel_copy *copy)
{
    int device = buffer->mem.device;

    bytes = bytes_of(buffer, bytes);
    if ((bytes == 0) || !is_quick(buffer, bytes)) {
        return false;
    }
    struct xm_kernels *k = xm_kernels_of(copier->dev, device);
    if ((k == NULL) || !xm_kernels_linger(k) || !copier->dev->mem_reachable(span)) {
        return false;
    }
    xm_kernel_copies_wait();
    return xm_kernel_copy_start(k, xm_buffer_at(buffer, buffer->low), span, (size_t)bytes, copy);
}

/* The element as it is, with the first bytes of its data taken from `from`; on host memory. */
static xcclResult_t merge_element(const struct xm_copier *copier, const struct xm_buffer *one,
                                  char *from, char *kept, char *packed, size_t bytes)
{
    size_t       size = (size_t)one->bytes;
    xcclResult_t res = convert(copier, one, kept - one->low, packed, true);

    if (res == xcclSuccess) {
        res = convert(copier, one, from - one->low, packed + size, true);
    }
    if (res == xcclSuccess) {
        memcpy(packed, packed + size, bytes);
        res = convert(copier, one, kept - one->low, packed, false);
    }
    return res;
}

/* A part of a derived type's element arrived: the rest keeps what it has. */
static xcclResult_t element_out(const struct xm_copier *copier, const struct xm_buffer *buffer,
                                char *span, MPI_Count index, size_t bytes)
{
    const struct xm_layout *l = &buffer->layout;
    MPI_Aint                offset = (MPI_Aint)(index * l->extent);
    struct xm_buffer        one = *buffer;
    struct xm_scratch       scratch;
    void                   *kept, *packed;

    one.buf += offset;
    one.count = 1;
    one.bytes = l->size;
    one.low = (MPI_Aint)l->true_lb;
    one.high = one.low + (MPI_Aint)l->true_extent;
    span += offset + one.low - buffer->low;
    if (xm_ordered(copier->call, &one)) {
        struct xm_lane lane = lane_of(copier, &one, span);
        lane.span = lane.out = true;
        return xm_enqueue_head(&lane, bytes);
    }
    xm_scratch_begin(&scratch, copier->dev, copier->scratch->device);
    xcclResult_t res = xm_scratch_take(&scratch, XM_POOL_HOST, (size_t)l->true_extent, &kept);
    if (res == xcclSuccess) {
        res = xm_scratch_take(&scratch, XM_POOL_HOST, 2 * (size_t)l->size, &packed);
    }
    if (res == xcclSuccess) {
        res = copier->dev->copy_async(kept, xm_buffer_at(&one, one.low), (size_t)l->true_extent,
                                      copier->stream);
    }
    if (res == xcclSuccess) {
        res = xm_stream_wait(copier->dev, copier->stream);
    }
    if (res == xcclSuccess) {
        res = merge_element(copier, &one, span, kept, packed, bytes);
    }
    if (res == xcclSuccess) {
        res = xm_stage_out(copier, &one, kept);
    }
    if (res == xcclSuccess) {
        res = xm_stream_wait(copier->dev, copier->stream);
    }
    if (res == xcclSuccess) {
        xm_scratch_end(&scratch);
    }
    return res;
}

xcclResult_t xm_stage_out_bytes(const struct xm_copier *copier, const struct xm_buffer *buffer,
                                char *span, MPI_Count bytes)
{
    struct xm_buffer part = *buffer;

    if ((bytes < 0) || (bytes >= buffer->bytes)) {
        return xm_stage_out(copier, buffer, span);
    }
    if (buffer->plain) {
        return copier->dev->copy_async(xm_buffer_at(buffer, buffer->low), span, (size_t)bytes,
                                       copier->stream);
    }
    part.count = bytes / buffer->layout.size;
    xcclResult_t res = xm_stage_out(copier, &part, span);
    if ((res == xcclSuccess) && (bytes % buffer->layout.size != 0)) {
        res = element_out(copier, buffer, span, part.count, (size_t)(bytes % buffer->layout.size));
    }
    return res;
}

xcclResult_t xm_after_program(const struct xc_device_ops *dev, const struct xm_buffer *a,
                              const struct xm_buffer *b, xcclStream_t stream)
{
    if (a->mem.synchronous && b->mem.synchronous) {
        return xcclSuccess;
    }
    dev->mem_make_synchronous(a->buf + a->low);
    dev->mem_make_synchronous(b->buf + b->low);
    return dev->stream_after_default(stream);
}
