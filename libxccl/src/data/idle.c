/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/idle.h"

enum { CLASSES = 64 }; /* of sizes: powers of two, rounded down */

/* Of blocks of one pool and class, by the time that they have been idle. */
static struct line {
    struct xm_block_of_memory *oldest, *youngest;
} lines[XM_NUM_POOLS][CLASSES];

static size_t   idle_bytes[XM_NUM_POOLS];
static uint64_t now; /* grows with each block that is added */

static int class_of(size_t bytes)
{
    return (bytes > 0) ? CLASSES - 1 - __builtin_clzll((unsigned long long)bytes) : 0;
}

bool xm_block_is_drivers(const struct xm_block_of_memory *b)
{
    return (b->pool != XM_POOL_LAZY) && !b->pageable;
}

size_t xm_idle_bytes(enum xm_pool pool)
{
    return idle_bytes[pool];
}

void xm_idle_add(struct xm_block_of_memory *b)
{
    struct line *line = &lines[b->pool][class_of(b->bytes)];

    b->since = ++now;
    b->younger = NULL;
    b->older = line->youngest;
    *((b->older != NULL) ? &b->older->younger : &line->oldest) = b;
    line->youngest = b;
    idle_bytes[b->pool] += b->bytes;
}

static struct xm_block_of_memory *take(struct xm_block_of_memory *b)
{
    struct line *line = &lines[b->pool][class_of(b->bytes)];

    *((b->older != NULL) ? &b->older->younger : &line->oldest) = b->younger;
    *((b->younger != NULL) ? &b->younger->older : &line->youngest) = b->older;
    b->older = b->younger = NULL;
    idle_bytes[b->pool] -= b->bytes;
    return b;
}

static bool is_lost(const struct xm_block_of_memory *b, const struct xc_device_ops *dev, int device,
                    unsigned resets)
{
    return (b->dev == dev) && (b->device == device) && xm_block_is_drivers(b) &&
           (b->resets != resets);
}

struct xm_block_of_memory *xm_idle_take(const struct xc_device_ops *dev, int device,
                                        unsigned resets, enum xm_pool pool, size_t bytes,
                                        size_t most, bool pinned)
{
    for (int level = class_of(bytes); level <= class_of(most); level++) {
        struct xm_block_of_memory *b = lines[pool][level].youngest;
        for (; b != NULL; b = b->older) {
            if ((b->dev == dev) && (b->device == device) && (b->bytes >= bytes) &&
                (b->bytes <= most) && !(pinned && b->pageable) &&
                !is_lost(b, dev, device, resets)) {
                return take(b);
            }
        }
    }
    return NULL;
}

struct xm_block_of_memory *xm_idle_take_lost(const struct xc_device_ops *dev, int device,
                                             unsigned resets)
{
    for (int i = 0; i < XM_NUM_POOLS * CLASSES; i++) {
        struct xm_block_of_memory *b = lines[i / CLASSES][i % CLASSES].youngest;
        for (; b != NULL; b = b->older) {
            if (is_lost(b, dev, device, resets)) {
                return take(b);
            }
        }
    }
    return NULL;
}

static struct xm_block_of_memory *oldest_of(enum xm_pool pool)
{
    struct xm_block_of_memory *oldest = NULL;

    for (int level = 0; level < CLASSES; level++) {
        struct xm_block_of_memory *b = lines[pool][level].oldest;
        oldest = ((b != NULL) && ((oldest == NULL) || (b->since < oldest->since))) ? b : oldest;
    }
    return oldest;
}

const struct xm_block_of_memory *xm_idle_oldest(enum xm_pool pool)
{
    return oldest_of(pool);
}

struct xm_block_of_memory *xm_idle_take_oldest(enum xm_pool pool)
{
    struct xm_block_of_memory *oldest = oldest_of(pool);

    return (oldest != NULL) ? take(oldest) : NULL;
}
