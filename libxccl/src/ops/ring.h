/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The last records of the process. Any thread adds and changes them, and any thread or a signal
 * handler reads them meanwhile: it gets a whole record or none. No lock: a handler may have
 * interrupted the thread that would hold it.
 */
#ifndef XM_OPS_RING_H
#define XM_OPS_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { XM_RING_RECORDS = 256, XM_RING_WORDS = 32 };

struct xm_ring {
    uint64_t added;
    struct {
        uint64_t version; /* of number, changes and whether it is being written: see ring.c */
        uint64_t words[XM_RING_WORDS];
    } slots[XM_RING_RECORDS];
};

/* The number of the record, from 1; it takes the place of the oldest one. */
uint64_t xm_ring_add(struct xm_ring *ring, const uint64_t words[XM_RING_WORDS]);
/* Some words of a record, unless its place was taken. By one thread at a time for each number. */
void xm_ring_change(struct xm_ring *ring, uint64_t number, size_t first, const uint64_t *words,
                    size_t count);
/* False: its place was taken, or it is being written. */
bool xm_ring_read(const struct xm_ring *ring, uint64_t number, uint64_t words[XM_RING_WORDS]);
/* The last number given; 0: none yet. */
uint64_t xm_ring_last(const struct xm_ring *ring);

#endif
