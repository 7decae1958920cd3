/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/copy.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "comms/wait.h"

/* MPI_Pack counts in int: larger blocks go in pieces of this many bytes at most. */
enum { PACK_BYTES = 1 << 30 };

/* A stretch of data without holes; stretches that follow each other are one. */
struct stretch {
    MPI_Aint offset; /* from the buffer */
    size_t   packed; /* from the beginning of the packed data */
    size_t   bytes;
};

/* Something is done with each stretch of a buffer in turn. */
struct visit {
    const struct xm_copier *copier;
    const struct xm_buffer *buffer;
    xcclResult_t (*each)(const struct visit *visit, const struct stretch *stretch);
    char          *other; /* the packed data, or the span in host memory */
    struct stretch now;   /* not handed out yet: the next one may follow it */
};

static xcclResult_t flush(struct visit *v)
{
    xcclResult_t res = (v->now.bytes > 0) ? v->each(v, &v->now) : xcclSuccess;

    v->now.packed += v->now.bytes;
    v->now.bytes = 0;
    return res;
}

static xcclResult_t add(struct visit *v, MPI_Aint offset, size_t bytes)
{
    xcclResult_t res = xcclSuccess;

    if ((v->now.bytes > 0) && (offset != v->now.offset + (MPI_Aint)v->now.bytes)) {
        res = flush(v);
    }
    if (v->now.bytes == 0) {
        v->now.offset = offset;
    }
    v->now.bytes += bytes;
    return res;
}

/*
 * Which bytes of one element are data: those that MPI_Unpack writes. That holds for any type,
 * however it was made. mask: true_extent bytes, from the element's true lower bound.
 */
static xcclResult_t find_data(const struct xm_copier *copier, const struct xm_block *block,
                              char **mask_p)
{
    size_t extent = (size_t)block->layout->true_extent, size = (size_t)block->layout->size;
    char  *mask = calloc(extent, 1);
    char  *ones = malloc(size);
    int    position = 0;
    int    res = MPI_ERR_OTHER;

    if ((mask != NULL) && (ones != NULL) && (size <= PACK_BYTES)) {
        memset(ones, 0xff, size);
        res = xm_pmpi.Unpack(ones, (int)size, &position, mask - block->layout->true_lb, 1,
                             block->type, copier->call->comm);
    }
    free(ones);
    if (res != MPI_SUCCESS) {
        free(mask);
        return xc_fail(xcclSystemError, "out of memory for a datatype of %zu bytes", extent);
    }
    *mask_p = mask;
    return xcclSuccess;
}

static xcclResult_t visit_element(struct visit *v, const char *mask, size_t extent, MPI_Aint at)
{
    xcclResult_t res = xcclSuccess;

    for (size_t i = 0; (i < extent) && (res == xcclSuccess);) {
        const char *end = memchr(mask + i, (mask[i] == 0) ? -1 : 0, extent - i);
        size_t      to = (end != NULL) ? (size_t)(end - mask) : extent;
        if (mask[i] != 0) {
            res = add(v, at + (MPI_Aint)i, to - i);
        }
        i = to;
    }
    return res;
}

static xcclResult_t visit_derived(struct visit *v, const struct xm_block *block)
{
    const struct xm_layout *l = block->layout;
    char                   *mask = NULL;
    xcclResult_t            res = find_data(v->copier, block, &mask);

    if (res != xcclSuccess) {
        return res;
    }
    for (MPI_Count i = 0; (i < block->count) && (res == xcclSuccess); i++) {
        res = visit_element(v, mask, (size_t)l->true_extent,
                            block->offset + (MPI_Aint)(i * l->extent + l->true_lb));
    }
    free(mask);
    return res;
}

/* Every stretch of data, in the order of the blocks. */
static xcclResult_t visit_data(struct visit *v)
{
    xcclResult_t res = xcclSuccess;

    for (int i = 0; (i < v->buffer->blocks) && (res == xcclSuccess); i++) {
        struct xm_block block = xm_block_at(v->copier->call, v->buffer, i);
        if ((block.count == 0) || (block.layout->size == 0)) {
            continue;
        }
        res = block.layout->plain ? add(v, block.offset, (size_t)(block.count * block.layout->size))
                                  : visit_derived(v, &block);
    }
    xcclResult_t last = flush(v);
    return (res != xcclSuccess) ? res : last;
}

static xcclResult_t each_to_packed(const struct visit *v, const struct stretch *s)
{
    return v->copier->dev->copy_async(v->other + s->packed, v->buffer->buf + s->offset, s->bytes,
                                      v->copier->stream);
}

static xcclResult_t each_from_packed(const struct visit *v, const struct stretch *s)
{
    return v->copier->dev->copy_async(v->buffer->buf + s->offset, v->other + s->packed, s->bytes,
                                      v->copier->stream);
}

static xcclResult_t each_to_span(const struct visit *v, const struct stretch *s)
{
    return v->copier->dev->copy_async(v->other + (s->offset - v->buffer->low),
                                      v->buffer->buf + s->offset, s->bytes, v->copier->stream);
}

static xcclResult_t each_from_span(const struct visit *v, const struct stretch *s)
{
    return v->copier->dev->copy_async(v->buffer->buf + s->offset,
                                      v->other + (s->offset - v->buffer->low), s->bytes,
                                      v->copier->stream);
}

/* MPI_Pack or MPI_Unpack all blocks between base (as the buffer) and packed, both host memory. */
static xcclResult_t convert(const struct xm_copier *copier, const struct xm_buffer *buffer,
                            char *base, char *packed, bool pack)
{
    size_t at = 0;

    for (int i = 0; i < buffer->blocks; i++) {
        struct xm_block block = xm_block_at(copier->call, buffer, i);
        MPI_Count piece = (block.layout->size > 0) ? PACK_BYTES / block.layout->size : block.count;
        char     *from = base + block.offset;
        if (piece == 0) {
            return xc_fail(xcclUnsupported, "a datatype of more than %d bytes cannot be packed",
                           PACK_BYTES);
        }
        for (MPI_Count left = block.count; left > 0;) {
            int n = (int)((left < piece) ? left : piece);
            int bytes = (int)(n * block.layout->size);
            int position = 0;
            int res = pack ? xm_pmpi.Pack(from, n, block.type, packed + at, bytes, &position,
                                          copier->call->comm)
                           : xm_pmpi.Unpack(packed + at, bytes, &position, from, n, block.type,
                                            copier->call->comm);
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
        *span_p = buffer->buf + buffer->low;
        return xcclSuccess;
    }
    xcclResult_t res = xm_scratch_take(copier->scratch, XM_POOL_HOST, bytes, &span);
    if (res != xcclSuccess) {
        return res;
    }
    /* Holes are read along with the data: one copy is faster than many, and harms nobody. */
    res = copier->dev->copy_async(span, buffer->buf + buffer->low, bytes, copier->stream);
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

xcclResult_t xm_pack(const struct xm_copier *copier, const struct xm_buffer *buffer, void *packed)
{
    struct visit v = {.copier = copier, .buffer = buffer, .each = each_to_packed, .other = packed};

    return buffer->plain ? visit_data(&v) : pack_derived(copier, buffer, packed);
}

/*
 * Stretch by stretch: a type that permutes its data would be unpacked wrongly, so MPI unpacks
 * derived types in host memory, and from there each stretch goes to where it belongs.
 */
static xcclResult_t unpack_derived(const struct xm_copier *copier, const struct xm_buffer *buffer,
                                   const void *packed)
{
    size_t       bytes = (size_t)buffer->bytes;
    void        *host, *span;
    struct visit v = {.copier = copier, .buffer = buffer, .each = each_from_span};

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
    res =
        xm_scratch_take(copier->scratch, XM_POOL_HOST, (size_t)(buffer->high - buffer->low), &span);
    if (res != xcclSuccess) {
        return res;
    }
    res = convert(copier, buffer, (char *)span - buffer->low, host, false);
    if (res != xcclSuccess) {
        return res;
    }
    v.other = span;
    return visit_data(&v);
}

xcclResult_t xm_unpack(const struct xm_copier *copier, const struct xm_buffer *buffer,
                       const void *packed)
{
    struct visit v = {.copier = copier,
                      .buffer = buffer,
                      .each = each_from_packed,
                      .other = (char *)(uintptr_t)packed};

    return buffer->plain ? visit_data(&v) : unpack_derived(copier, buffer, packed);
}

xcclResult_t xm_stage_in(const struct xm_copier *copier, const struct xm_buffer *buffer, char *span)
{
    struct visit v = {.copier = copier, .buffer = buffer, .each = each_to_span, .other = span};

    if (!buffer->in) {
        return xcclSuccess;
    }
    if (buffer->plain) {
        return visit_data(&v);
    }
    return copier->dev->copy_async(span, buffer->buf + buffer->low,
                                   (size_t)(buffer->high - buffer->low), copier->stream);
}

xcclResult_t xm_stage_out(const struct xm_copier *copier, const struct xm_buffer *buffer,
                          char *span)
{
    struct visit v = {.copier = copier, .buffer = buffer, .each = each_from_span, .other = span};

    return buffer->out ? visit_data(&v) : xcclSuccess;
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
    struct visit            v = {.copier = copier, .buffer = &one, .each = each_from_span};

    one.buf += offset;
    one.count = 1;
    one.bytes = l->size;
    one.low = (MPI_Aint)l->true_lb;
    one.high = one.low + (MPI_Aint)l->true_extent;
    xm_scratch_begin(&scratch, copier->dev, copier->scratch->device);
    xcclResult_t res = xm_scratch_take(&scratch, XM_POOL_HOST, (size_t)l->true_extent, &kept);
    if (res == xcclSuccess) {
        res = xm_scratch_take(&scratch, XM_POOL_HOST, 2 * (size_t)l->size, &packed);
    }
    if (res == xcclSuccess) {
        res = copier->dev->copy_async(kept, one.buf + one.low, (size_t)l->true_extent,
                                      copier->stream);
    }
    if (res == xcclSuccess) {
        res = xm_stream_wait(copier->dev, copier->stream);
    }
    if (res == xcclSuccess) {
        res =
            merge_element(copier, &one, span - buffer->low + offset + one.low, kept, packed, bytes);
    }
    if (res == xcclSuccess) {
        v.other = kept;
        res = visit_data(&v);
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
    struct visit     v = {.copier = copier, .buffer = &part, .each = each_from_span, .other = span};

    if ((bytes < 0) || (bytes >= buffer->bytes)) {
        return xm_stage_out(copier, buffer, span);
    }
    if (buffer->plain) {
        return copier->dev->copy_async(buffer->buf + buffer->low, span, (size_t)bytes,
                                       copier->stream);
    }
    part.count = bytes / buffer->layout.size;
    xcclResult_t res = visit_data(&v);
    if ((res == xcclSuccess) && (bytes % buffer->layout.size != 0)) {
        res = element_out(copier, buffer, span, part.count, (size_t)(bytes % buffer->layout.size));
    }
    return res;
}
