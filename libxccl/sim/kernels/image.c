/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernels as the simulation's runtimes load them: libxccl-direct-<runtime>.so of its folder. */
#define XK_SIMULATED
#include "kernels/collectives.cu"
#include "kernels/local.cu"

#include <stdio.h>
#include <stdlib.h>

/* XCCL_SIM_NUMBERS: whoever goes further has not joined anew. */
static void check_number(uint32_t number)
{
    if ((xs_config()->numbers > 0) && (number > (uint32_t)xs_config()->numbers)) {
        fprintf(stderr, "simulated accelerator: an operation has number %u of %d\n", number,
                xs_config()->numbers);
        abort();
    }
}

#define RUN_WITH(name, arguments_of)                                                               \
    static void run_##name(const void *arguments, const unsigned block[2], const unsigned grid[2]) \
    {                                                                                              \
        blockIdx = (struct xk_index){block[0], block[1]};                                          \
        gridDim = (struct xk_index){grid[0], grid[1]};                                             \
        xk_##name(*(const struct xk_##arguments_of *)arguments);                                   \
    }
#define RUN(name) RUN_WITH(name, name)
RUN(batch)
RUN(pack)
RUN_WITH(pack_listed, listed)
RUN(linger)
RUN_WITH(attend, linger)
RUN(exchange)
RUN_WITH(short, exchange)
RUN(mapped)
RUN(rounds)
RUN(enqueued)
RUN(await)
#undef RUN
#undef RUN_WITH

static void run_numbered_exchange(const void *arguments, const unsigned block[2],
                                  const unsigned grid[2])
{
    check_number(((const struct xk_exchange *)arguments)->number);
    run_exchange(arguments, block, grid);
}

static void run_numbered_short(const void *arguments, const unsigned block[2],
                               const unsigned grid[2])
{
    check_number(((const struct xk_exchange *)arguments)->number);
    run_short(arguments, block, grid);
}

static void run_numbered_mapped(const void *arguments, const unsigned block[2],
                                const unsigned grid[2])
{
    check_number(((const struct xk_mapped *)arguments)->work.number);
    run_mapped(arguments, block, grid);
}

static void run_numbered_rounds(const void *arguments, const unsigned block[2],
                                const unsigned grid[2])
{
    check_number(((const struct xk_rounds *)arguments)->number);
    run_rounds(arguments, block, grid);
}

static bool always(const void *arguments)
{
    (void)arguments;
    return true;
}

static bool if_it_meets(const void *arguments)
{
    return ((const struct xk_mapped *)arguments)->work.meets != 0;
}

static const struct xs_kernel local[] = {
    {"xk_batch", sizeof(struct xk_batch), run_batch, false, NULL},
    {"xk_pack", sizeof(struct xk_pack), run_pack, false, NULL},
    {"xk_pack_listed", sizeof(struct xk_listed), run_pack_listed, false, NULL},
    {"xk_linger", sizeof(struct xk_linger), run_linger, true, always},
    {"xk_await", sizeof(struct xk_await), run_await, false, always},
    {NULL, 0, NULL, false, NULL},
};
static const struct xs_kernel collectives[] = {
    {"xk_attend", sizeof(struct xk_linger), run_attend, true, always},
    {"xk_exchange", sizeof(struct xk_exchange), run_numbered_exchange, false, always},
    {"xk_short", sizeof(struct xk_exchange), run_numbered_short, false, always},
    {"xk_mapped", sizeof(struct xk_mapped), run_numbered_mapped, false, if_it_meets},
    {"xk_rounds", sizeof(struct xk_rounds), run_numbered_rounds, true, always},
    {"xk_enqueued", sizeof(struct xk_enqueued), run_enqueued, false, always},
    {NULL, 0, NULL, false, NULL},
};
static const struct xs_image local_image = {XS_IMAGE_MAGIC, local},
                             collectives_image = {XS_IMAGE_MAGIC, collectives};

XS_API extern struct xk_image xccl_direct_image;
struct xk_image               xccl_direct_image = {XK_VERSION, 0, &local_image, &collectives_image};

__attribute__((constructor)) static void read_numbers(void)
{
    xccl_direct_image.last = (uint32_t)xs_config()->numbers;
}
