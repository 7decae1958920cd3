/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/ring.h"

#include <sched.h>

/* A version is a record's number, how often it was changed, and in the last bit: being written. */
enum { CHANGE = 2, PER_NUMBER = 1 << 12 };

static uint64_t number_of(uint64_t version)
{
    return version / PER_NUMBER;
}

/* Only whoever set the last bit writes the words. False: the record is older than another there. */
static bool enter(uint64_t *version, uint64_t least)
{
    uint64_t seen = __atomic_load_n(version, __ATOMIC_RELAXED);

    for (;;) {
        if (number_of(seen) > least) {
            return false;
        }
        if ((seen & 1) != 0) {
            sched_yield();
            seen = __atomic_load_n(version, __ATOMIC_RELAXED);
        } else if (__atomic_compare_exchange_n(version, &seen, seen | 1, false, __ATOMIC_ACQUIRE,
                                               __ATOMIC_RELAXED)) {
            return true;
        }
    }
}

/* Whoever reads any of these words sees the bit too. (ThreadSanitizer knows no fences.) */
static void store(uint64_t *to, const uint64_t *from, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        __atomic_store_n(&to[i], from[i], __ATOMIC_RELEASE);
    }
}

uint64_t xm_ring_add(struct xm_ring *ring, const uint64_t words[XM_RING_WORDS])
{
    uint64_t number = __atomic_add_fetch(&ring->added, 1, __ATOMIC_RELAXED);
    size_t   at = number % XM_RING_RECORDS;

    if (enter(&ring->slots[at].version, number)) {
        store(ring->slots[at].words, words, XM_RING_WORDS);
        __atomic_store_n(&ring->slots[at].version, number * PER_NUMBER, __ATOMIC_RELEASE);
    }
    return number;
}

void xm_ring_change(struct xm_ring *ring, uint64_t number, size_t first, const uint64_t *words,
                    size_t count)
{
    size_t    at = number % XM_RING_RECORDS;
    uint64_t *version = &ring->slots[at].version;

    /* The number is there unless its place was taken: this thread, or one before it, added it. */
    if ((number > 0) && enter(version, number)) {
        uint64_t entered = __atomic_load_n(version, __ATOMIC_RELAXED) - 1;
        store(&ring->slots[at].words[first], words, count);
        __atomic_store_n(version, entered + CHANGE, __ATOMIC_RELEASE);
    }
}

bool xm_ring_read(const struct xm_ring *ring, uint64_t number, uint64_t words[XM_RING_WORDS])
{
    size_t   at = number % XM_RING_RECORDS;
    uint64_t version = __atomic_load_n(&ring->slots[at].version, __ATOMIC_ACQUIRE);

    if ((number == 0) || (number_of(version) != number) || ((version & 1) != 0)) {
        return false;
    }
    for (size_t i = 0; i < XM_RING_WORDS; i++) {
        words[i] = __atomic_load_n(&ring->slots[at].words[i], __ATOMIC_ACQUIRE);
    }
    return __atomic_load_n(&ring->slots[at].version, __ATOMIC_RELAXED) == version;
}

uint64_t xm_ring_last(const struct xm_ring *ring)
{
    return __atomic_load_n(&ring->added, __ATOMIC_ACQUIRE);
}
