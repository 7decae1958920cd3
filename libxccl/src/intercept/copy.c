/* SPDX-License-Identifier: BSD-3-Clause */
#include "intercept/copy.h"

#include "base/log.h"
#include "intercept/complete.h"

/* MPI_Pack counts in int: larger blocks go in pieces of this many bytes at most. */
enum { PACK_BYTES = 1 << 30 };

/* A stretch of a plain side: blocks that follow each other without a gap are one. */
struct stretch {
    int      next;   /* first block not looked at yet */
    MPI_Aint offset; /* from the buffer */
    size_t   packed; /* from the beginning of the packed data */
    size_t   bytes;
};

static bool next_stretch(const struct xm_call *call, const struct xm_side *side, struct stretch *s)
{
    s->packed += s->bytes;
    s->bytes = 0;
    for (; s->next < side->blocks; s->next++) {
        size_t   bytes = (size_t)(xm_block_count(call, side, s->next) * side->layout.size);
        MPI_Aint offset = xm_block_offset(call, side, s->next);
        if (bytes == 0) {
            continue;
        }
        if (s->bytes == 0) {
            s->offset = offset;
        } else if (offset != s->offset + (MPI_Aint)s->bytes) {
            return true;
        }
        s->bytes += bytes;
    }
    return s->bytes > 0;
}

static xcclResult_t complete(const struct xm_copier *copier)
{
    return xm_complete(copier->dev, copier->stream, NULL);
}

/* MPI_Pack or MPI_Unpack all blocks between base (as the buffer) and packed, both host memory. */
static xcclResult_t convert(const struct xm_copier *copier, const struct xm_side *side, char *base,
                            char *packed, bool pack)
{
    MPI_Count piece = PACK_BYTES / side->layout.size;
    size_t    at = 0;

    if (piece == 0) {
        return xc_fail(xcclUnsupported, "a datatype of more than %d bytes cannot be packed",
                       PACK_BYTES);
    }
    for (int i = 0; i < side->blocks; i++) {
        MPI_Count left = xm_block_count(copier->call, side, i);
        char     *from = base + xm_block_offset(copier->call, side, i);
        while (left > 0) {
            int n = (int)((left < piece) ? left : piece);
            int bytes = (int)(n * side->layout.size);
            int position = 0;
            int res = pack ? xm_pmpi.Pack(from, n, side->type, packed + at, bytes, &position,
                                          copier->call->comm)
                           : xm_pmpi.Unpack(packed + at, bytes, &position, from, n, side->type,
                                            copier->call->comm);
            if ((res != MPI_SUCCESS) || (position != bytes)) {
                return xc_fail(xcclInternalError, "%s failed on a buffer in device memory",
                               pack ? "MPI_Pack" : "MPI_Unpack");
            }
            at += (size_t)bytes;
            from += n * side->layout.extent;
            left -= n;
        }
    }
    return xcclSuccess;
}

/* The side's whole span in host memory that MPI may touch: itself, or a copy. */
static xcclResult_t host_span(const struct xm_copier *copier, const struct xm_side *side,
                              char **span_p)
{
    void *span;

    if (side->mem.kind != XC_MEM_DEVICE) {
        *span_p = side->buf + side->low;
        return xcclSuccess;
    }
    size_t       bytes = (size_t)(side->high - side->low);
    xcclResult_t res = xm_scratch_take(copier->scratch, XM_POOL_HOST, bytes, &span);
    if (res == xcclSuccess) {
        res = copier->dev->copy_async(span, side->buf + side->low, bytes, copier->stream);
    }
    if (res == xcclSuccess) {
        res = complete(copier);
    }
    if (res == xcclSuccess) {
        *span_p = span;
    }
    return res;
}

static xcclResult_t pack_derived(const struct xm_copier *copier, const struct xm_side *side,
                                 void *packed)
{
    void *host;
    char *span;

    xcclResult_t res = xm_scratch_take(copier->scratch, XM_POOL_HOST, (size_t)side->bytes, &host);
    if (res == xcclSuccess) {
        res = host_span(copier, side, &span);
    }
    if (res == xcclSuccess) {
        res = convert(copier, side, span - side->low, host, true);
    }
    if (res == xcclSuccess) {
        res = copier->dev->copy_async(packed, host, (size_t)side->bytes, copier->stream);
    }
    return res;
}

static xcclResult_t unpack_derived(const struct xm_copier *copier, const struct xm_side *side,
                                   const void *packed)
{
    void *host;
    char *span;

    xcclResult_t res = xm_scratch_take(copier->scratch, XM_POOL_HOST, (size_t)side->bytes, &host);
    if (res == xcclSuccess) {
        res = copier->dev->copy_async(host, packed, (size_t)side->bytes, copier->stream);
    }
    if (res == xcclSuccess) {
        res = host_span(copier, side, &span);
    }
    if (res == xcclSuccess) {
        res = complete(copier);
    }
    if (res == xcclSuccess) {
        res = convert(copier, side, span - side->low, host, false);
    }
    if ((res == xcclSuccess) && (side->mem.kind == XC_MEM_DEVICE)) {
        res = copier->dev->copy_async(side->buf + side->low, span, (size_t)(side->high - side->low),
                                      copier->stream);
    }
    return res;
}

xcclResult_t xm_pack(const struct xm_copier *copier, const struct xm_side *side, void *packed)
{
    struct stretch s = {0};

    if (!side->layout.plain) {
        return pack_derived(copier, side, packed);
    }
    while (next_stretch(copier->call, side, &s)) {
        xcclResult_t res = copier->dev->copy_async((char *)packed + s.packed, side->buf + s.offset,
                                                   s.bytes, copier->stream);
        if (res != xcclSuccess) {
            return res;
        }
    }
    return xcclSuccess;
}

xcclResult_t xm_unpack(const struct xm_copier *copier, const struct xm_side *side,
                       const void *packed)
{
    struct stretch s = {0};

    if (!side->layout.plain) {
        return unpack_derived(copier, side, packed);
    }
    while (next_stretch(copier->call, side, &s)) {
        xcclResult_t res = copier->dev->copy_async(
            side->buf + s.offset, (const char *)packed + s.packed, s.bytes, copier->stream);
        if (res != xcclSuccess) {
            return res;
        }
    }
    return xcclSuccess;
}

/* A plain side is copied block by block: what lies between belongs to others. */
static xcclResult_t stage(const struct xm_copier *copier, const struct xm_side *side, char *span,
                          bool in)
{
    struct stretch s = {0};

    if (!side->layout.plain) {
        size_t bytes = (size_t)(side->high - side->low);
        char  *buf = side->buf + side->low;
        return copier->dev->copy_async(in ? span : buf, in ? buf : span, bytes, copier->stream);
    }
    while (next_stretch(copier->call, side, &s)) {
        char        *host = span + (s.offset - side->low);
        char        *device = side->buf + s.offset;
        xcclResult_t res = copier->dev->copy_async(in ? host : device, in ? device : host, s.bytes,
                                                   copier->stream);
        if (res != xcclSuccess) {
            return res;
        }
    }
    return xcclSuccess;
}

xcclResult_t xm_stage_in(const struct xm_copier *copier, const struct xm_side *side, char *span)
{
    /* A buffer that is only written needs its old bytes just where the type has holes. */
    return (side->in || !side->layout.plain) ? stage(copier, side, span, true) : xcclSuccess;
}

xcclResult_t xm_stage_out(const struct xm_copier *copier, const struct xm_side *side, char *span)
{
    return side->out ? stage(copier, side, span, false) : xcclSuccess;
}
