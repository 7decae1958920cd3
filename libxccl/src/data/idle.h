/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blocks of memory that no call holds, by pool and size, so that one is found at once however many
 * there are: a window of messages leaves hundreds. Its user (data/pools.c) holds a lock.
 */
#ifndef XM_DATA_IDLE_H
#define XM_DATA_IDLE_H

#include <stdint.h>

#include "data/pools.h"

struct xm_block_of_memory {
    const struct xc_device_ops *dev;
    int                         device;
    enum xm_pool                pool;
    size_t                      bytes;
    void                       *ptr;
    bool                        mapped;   /* by data/pages.h, and pinned if it is not: */
    bool                        pageable; /* there was no pinned memory */
    unsigned                    resets;   /* of the device before it was made */

    uint64_t                   since;           /* a later one is larger */
    uint64_t                   when_ms;         /* it became idle, by the user's clock */
    struct xm_block_of_memory *older, *younger; /* of one pool and size class; for the user's lists
                                                   when it is not idle */
};

/* Is it memory of the driver's, or pinned by it, which a reset of the device takes along? */
bool xm_block_is_drivers(const struct xm_block_of_memory *b);

/* It is idle from now on, which is b->when_ms. */
void xm_idle_add(struct xm_block_of_memory *b);
/*
 * One of at least `bytes` bytes and at most `most`, of these the smallest or, within a power of
 * two, the one that was used last; NULL: there is none. With `pinned` none that is pageable. What a
 * reset of the device took along (`resets` is how many there were) is never given: see
 * xm_idle_take_lost().
 */
struct xm_block_of_memory *xm_idle_take(const struct xc_device_ops *dev, int device,
                                        unsigned resets, enum xm_pool pool, size_t bytes,
                                        size_t most, bool pinned);
/* One that a reset of its device took along; NULL: none. Looks at all of them. */
struct xm_block_of_memory *xm_idle_take_lost(const struct xc_device_ops *dev, int device,
                                             unsigned resets);
/* The one of the pool that has been idle for longest; NULL: none. */
struct xm_block_of_memory *xm_idle_take_oldest(enum xm_pool pool);
/* That one, which stays. */
const struct xm_block_of_memory *xm_idle_oldest(enum xm_pool pool);
/* Bytes of the pool that are idle. */
size_t xm_idle_bytes(enum xm_pool pool);

#endif
