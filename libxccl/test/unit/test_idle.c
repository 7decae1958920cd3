/* SPDX-License-Identifier: BSD-3-Clause */
/* Which idle block is given, and that finding it takes no look at those of other sizes. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "data/idle.h"

static const struct xc_device_ops device = {.name = "none"}, another = {.name = "another"};

static struct xm_block_of_memory *block(enum xm_pool pool, size_t bytes)
{
    struct xm_block_of_memory *b = calloc(1, sizeof(*b));

    b->dev = &device;
    b->pool = pool;
    b->bytes = bytes;
    return b;
}

static struct xm_block_of_memory *take(size_t bytes, size_t most)
{
    return xm_idle_take(&device, 0, 0, XM_POOL_HOST, bytes, most, false);
}

/* Of a size class the youngest, of classes the least; and of a class only what is large enough. */
static void test_choice(void)
{
    struct xm_block_of_memory *old = block(XM_POOL_HOST, 4096), *young = block(XM_POOL_HOST, 4096);
    struct xm_block_of_memory *large = block(XM_POOL_HOST, 16384), *odd = block(XM_POOL_HOST, 5000);

    xm_idle_add(large);
    xm_idle_add(old);
    xm_idle_add(young);
    xm_idle_add(odd);
    CHECK(xm_idle_bytes(XM_POOL_HOST) == 4096 * 2 + 16384 + 5000, "%zu bytes",
          xm_idle_bytes(XM_POOL_HOST));
    CHECK(take(4097, 8191) == odd, "the one of its class that is large enough");
    CHECK(take(5001, 8191) == NULL, "none is");
    CHECK(take(100, 65536) == young, "the youngest of the least class");
    CHECK(take(100, 65536) == old, "then the older one");
    CHECK(take(100, 8192) == NULL, "the last one is too large");
    CHECK(take(100, 65536) == large, "or is not");
    CHECK(xm_idle_bytes(XM_POOL_HOST) == 0, "%zu bytes", xm_idle_bytes(XM_POOL_HOST));
    free(old);
    free(young);
    free(large);
    free(odd);
}

/* Of another device, runtime or pool, or pageable where that will not do. */
static void test_others(void)
{
    struct xm_block_of_memory *b = block(XM_POOL_HOST, 4096);

    b->pageable = true;
    xm_idle_add(b);
    CHECK(xm_idle_take(&another, 0, 0, XM_POOL_HOST, 1, 65536, false) == NULL, "runtime");
    CHECK(xm_idle_take(&device, 1, 0, XM_POOL_HOST, 1, 65536, false) == NULL, "device");
    CHECK(xm_idle_take(&device, 0, 0, XM_POOL_DEVICE, 1, 65536, false) == NULL, "pool");
    CHECK(xm_idle_take(&device, 0, 0, XM_POOL_HOST, 1, 65536, true) == NULL, "pageable");
    CHECK(xm_idle_take(&device, 0, 3, XM_POOL_HOST, 1, 65536, false) == b,
          "what is not the driver's outlives a reset");
    free(b);
}

/* What a reset took along is not given, and is found whatever its size. */
static void test_lost(void)
{
    struct xm_block_of_memory *small = block(XM_POOL_DEVICE, 65536);
    struct xm_block_of_memory *large = block(XM_POOL_HOST, 1 << 20);
    struct xm_block_of_memory *fresh = block(XM_POOL_HOST, 1 << 20);
    struct xm_block_of_memory *lazy = block(XM_POOL_LAZY, 65536);

    fresh->resets = 1;
    xm_idle_add(small);
    xm_idle_add(fresh);
    xm_idle_add(large);
    xm_idle_add(lazy);
    CHECK(xm_idle_take(&device, 0, 1, XM_POOL_DEVICE, 65536, 65536, false) == NULL, "lost");
    CHECK(xm_idle_take(&device, 0, 1, XM_POOL_HOST, 1 << 20, 1 << 20, false) == fresh, "not lost");
    struct xm_block_of_memory *a = xm_idle_take_lost(&device, 0, 1);
    struct xm_block_of_memory *b = xm_idle_take_lost(&device, 0, 1);
    CHECK(((a == small) && (b == large)) || ((a == large) && (b == small)), "both are found");
    CHECK(xm_idle_take_lost(&device, 0, 1) == NULL, "and no more");
    CHECK(xm_idle_take_oldest(XM_POOL_LAZY) == lazy, "memory of the process is left");
    free(small);
    free(large);
    free(fresh);
    free(lazy);
}

/* The oldest of all sizes makes room first. */
static void test_oldest(void)
{
    static const size_t sizes[] = {1 << 20, 4096, 65536, 4096, 1 << 20};
    enum { COUNT = sizeof(sizes) / sizeof(sizes[0]) };
    struct xm_block_of_memory *all[COUNT];

    for (int i = 0; i < COUNT; i++) {
        all[i] = block(XM_POOL_DEVICE, sizes[i]);
        xm_idle_add(all[i]);
    }
    for (int i = 0; i < COUNT; i++) {
        CHECK(xm_idle_take_oldest(XM_POOL_DEVICE) == all[i], "number %d", i);
        free(all[i]);
    }
    CHECK(xm_idle_take_oldest(XM_POOL_DEVICE) == NULL, "none is left");
}

/*
 * Blocks of other sizes are not looked at: here looking at one would be a crash. A window of
 * messages leaves hundreds, and the next window has each of them searched.
 */
static void test_few_looks(void)
{
    enum { MANY = 300 };
    struct xm_block_of_memory *b = block(XM_POOL_HOST, 4096), *ends[2];
    static unsigned char       hidden[sizeof(*b)];
    size_t                     links = offsetof(struct xm_block_of_memory, older);

    xm_idle_add(b);
    for (int i = 0; i < 2; i++) {
        ends[i] = block(XM_POOL_HOST, 65536);
        xm_idle_add(ends[i]);
    }
    memcpy(hidden, ends[1], sizeof(hidden));
    memset((char *)ends[1] + links, 0xee, sizeof(hidden) - links); /* no address that can be read */
    for (int i = 0; i < MANY; i++) {
        CHECK(take(4096, 65535) == b, "found");
        xm_idle_add(b);
    }
    memcpy(ends[1], hidden, sizeof(hidden));
    CHECK((take(4096, 4096) == b) && (take(65536, 65536) == ends[1]) &&
              (take(65536, 65536) == ends[0]),
          "all are given");
    free(b);
    free(ends[0]);
    free(ends[1]);
}

int main(void)
{
    test_choice();
    test_others();
    test_lost();
    test_oldest();
    test_few_looks();
    return xt_done("idle blocks of memory");
}
