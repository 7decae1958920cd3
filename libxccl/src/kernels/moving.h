/* SPDX-License-Identifier: BSD-3-Clause */
/* Moving bytes. */
#ifndef XK_KERNELS_MOVING_H
#define XK_KERNELS_MOVING_H

#include "kernels/kernels.h"
#include "kernels/portable.h"
/* Once those are known. */
#include "kernels/numbers.h"

enum { XK_MOVES = 4 }; /* loads on their way at once: the distance to the other device is long */

/* Aligned units of 16 bytes. */
XK_DEVICE void move_units(uint64_t to, uint64_t from, uint64_t units, uint64_t thread,
                          uint64_t threads)
{
    uint64_t i = thread;

    for (; i + (XK_MOVES - 1) * threads < units; i += XK_MOVES * threads) {
        struct xk_16 v[XK_MOVES];
        XK_UNROLL
        for (uint32_t k = 0; k < XK_MOVES; k++) {
            v[k] = load_16((const void *)(from + 16 * (i + k * threads)));
        }
        XK_UNROLL
        for (uint32_t k = 0; k < XK_MOVES; k++) {
            store_16(to + 16 * (i + k * threads), v[k]);
        }
    }
    for (; i < units; i += threads) {
        store_16(to + 16 * i, load_16((const void *)(from + 16 * i)));
    }
}

/* 8 bytes from any address, out of the aligned words that hold them. */
XK_DEVICE uint64_t joined(uint64_t low, uint64_t high, uint32_t shift)
{
    return (shift == 0) ? low : low >> shift | high << (64 - shift);
}

/* Words of 8 bytes, aligned where they go. Where they come from they may lie anyhow. */
XK_DEVICE void move_words(uint64_t to, uint64_t from, uint64_t words, uint64_t thread,
                          uint64_t threads)
{
    uint32_t        shift = (uint32_t)(from & 7) * 8;
    const uint64_t *source = (const uint64_t *)(from - (from & 7));
    uint64_t        i = thread;

    for (; i + (XK_MOVES - 1) * threads < words; i += XK_MOVES * threads) {
        uint64_t low[XK_MOVES], high[XK_MOVES];
        XK_UNROLL
        for (uint32_t k = 0; k < XK_MOVES; k++) {
            low[k] = load_8(&source[i + k * threads]);
            high[k] = (shift != 0) ? load_8(&source[i + k * threads + 1]) : 0;
        }
        XK_UNROLL
        for (uint32_t k = 0; k < XK_MOVES; k++) {
            ((uint64_t *)to)[i + k * threads] = joined(low[k], high[k], shift);
        }
    }
    for (; i < words; i += threads) {
        uint64_t high = (shift != 0) ? load_8(&source[i + 1]) : 0;
        ((uint64_t *)to)[i] = joined(load_8(&source[i]), high, shift);
    }
}

/* Addresses that are not both aligned: units or words, between bytes at either end. */
XK_APART void move_odd(uint64_t to, uint64_t from, uint64_t bytes, uint64_t thread,
                       uint64_t threads)
{
    uint32_t alike = (((to ^ from) & 15) == 0), size = alike ? 16 : 8;
    uint64_t head = (size - (to & (size - 1))) & (size - 1), body = 0;

    if (bytes >= head + 3 * size) {
        body = (bytes - head) / size;
    }
    if ((body > 0) && alike) {
        move_units(to + head, from + head, body, thread, threads);
    } else if (body > 0) {
        /* A word is made of two, which are not to begin before the source, nor to end behind it. */
        uint64_t early = (((from + head) & 7) > head);
        head += early * size;
        body -= early + 1;
        move_words(to + head, from + head, body, thread, threads);
    }
    for (uint64_t i = thread; i < bytes - body * size; i += threads) {
        uint64_t at = (i < head) ? i : i + body * size;
        move_unit(to + at, from + at, 1);
    }
}

/* Bytes of a command: this thread's part of what `threads` of them share. */
XK_DEVICE void move_bytes(uint64_t to, uint64_t from, uint64_t bytes, uint64_t thread,
                          uint64_t threads)
{
    if (((to | from) & 15) != 0) {
        move_odd(to, from, bytes, thread, threads);
        return;
    }
    move_units(to, from, bytes / 16, thread, threads);
    for (uint64_t i = bytes / 16 * 16 + thread; i < bytes; i += threads) {
        move_unit(to + i, from + i, 1);
    }
}

/* Where stretch number i of a run lies. */
XK_DEVICE void place_of(const struct xk_run *r, uint64_t i, int64_t *offset_p, uint64_t *packed_p)
{
    int64_t  offset = r->offset;
    uint64_t packed = r->packed;

    for (uint32_t l = 0; l < r->levels; l++) {
        uint64_t count = r->level[l].count, step, rest;
        if ((i >> 32) == 0 && (count >> 32) == 0) { /* far cheaper */
            rest = (uint32_t)i / (uint32_t)count;
            step = (uint32_t)i - (uint32_t)rest * (uint32_t)count;
        } else {
            rest = i / count;
            step = i - rest * count;
        }
        i = rest;
        offset += r->level[l].stride * (int64_t)step;
        packed += r->level[l].packed * step;
    }
    *offset_p = offset;
    *packed_p = packed;
}

/* An integer division of 64 bits takes far longer than one of 32. */
XK_DEVICE uint64_t quotient(uint64_t a, uint64_t b)
{
    return (((a | b) >> 32) == 0) ? (uint32_t)a / (uint32_t)b : a / b;
}

/*
 * A run between memory and packed data; this thread's part of what `threads` of them share. The
 * loop stays short: a kernel that lingers may have to fetch its instructions anew for each command.
 */
XK_DEVICE void move_run(const struct xk_run *r, uint64_t memory, uint64_t packed, uint32_t out,
                        uint64_t thread, uint64_t threads)
{
    uint64_t units = r->bytes / r->unit, total = units * r->stretches;

    for (uint64_t i = thread; i < total; i += threads) {
        uint64_t stretch, within, place;
        int64_t  offset;
        if (units == 1) {
            stretch = i;
            within = 0;
        } else if ((total >> 32) == 0) {
            stretch = (uint32_t)i / (uint32_t)units;
            within = (i - stretch * units) * r->unit;
        } else {
            stretch = i / units;
            within = (i - stretch * units) * r->unit;
        }
        place_of(r, stretch, &offset, &place);
        uint64_t mine = XK_PLACE(memory + (uint64_t)offset + within, r->unit);
        uint64_t other = XK_PLACE(packed + place + within, r->unit);
        if (out != 0) {
            move_unit(mine, other, r->unit);
        } else {
            move_unit(other, mine, r->unit);
        }
    }
}

/* The piece of an element that has byte `at` of its packed data. No list is read by way of a cache:
 * a kernel that lingers may have read another one there. */
XK_DEVICE int64_t listed_offset(const struct xk_listed *a, uint64_t at)
{
    if (a->same != 0) {
        const uint64_t *offsets = (const uint64_t *)XK_PLACE(a->list, a->pieces * sizeof(int64_t));
        uint64_t        n = quotient(at, a->same);
        return (int64_t)(load_8(&offsets[n]) + (at - n * a->same));
    }
    /* Of each piece its offset, and where it begins in the packed data. */
    const uint64_t *pieces =
        (const uint64_t *)XK_PLACE(a->list, a->pieces * sizeof(struct xk_piece));
    const uint32_t *tile = (const uint32_t *)XK_PLACE(
        a->list + a->pieces * sizeof(struct xk_piece) + at / XK_TILE_BYTES * sizeof(uint32_t),
        2 * sizeof(uint32_t));
    uint32_t low = load_4(&tile[0]), high = load_4(&tile[1]);
    while (low < high) {
        uint32_t middle = (low + high + 1) / 2;
        if (load_8(&pieces[2 * middle + 1]) <= at) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return (int64_t)(load_8(&pieces[2 * low]) + (at - load_8(&pieces[2 * low + 1])));
}

XK_APART void move_listed(const struct xk_listed *a, uint64_t thread, uint64_t threads)
{
    uint64_t units = a->total / a->unit;

    for (uint64_t i = thread; i < units; i += threads) {
        uint64_t at = i * a->unit;
        uint64_t element = (a->total > a->size) ? quotient(at, a->size) : 0;
        int64_t  offset = listed_offset(a, at - element * a->size) + (int64_t)element * a->extent;
        uint64_t mine = XK_PLACE(a->memory + (uint64_t)offset, a->unit);
        uint64_t other = XK_PLACE(a->packed + ((a->span != 0) ? (uint64_t)offset : at), a->unit);
        if (a->out != 0) {
            move_unit(mine, other, a->unit);
        } else {
            move_unit(other, mine, a->unit);
        }
    }
}

#if defined(XK_SIMULATED)
XK_DEVICE void place_work(struct xk_work *a)
{
    for (uint32_t k = 0; k < a->sources; k++) {
        a->from[k] = XK_PLACE(a->from[k], (a->targets == 0) ? a->lengths[k] : a->bytes);
    }
    for (uint32_t k = 0; k < ((a->targets == 0) ? a->sources : a->targets); k++) {
        a->to[k] = XK_PLACE(a->to[k], (a->targets == 0) ? a->lengths[k] : a->bytes);
    }
}
#endif

#endif
