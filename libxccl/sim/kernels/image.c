/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernels as the simulation's runtimes load them: libxccl-direct-<runtime>.so of its folder. */
#define XK_SIMULATED
#include "kernels/kernels.cu"

#define RUN(name)                                                                                  \
    static void run_##name(const void *arguments, const unsigned block[2], const unsigned grid[2]) \
    {                                                                                              \
        blockIdx = (struct xk_index){block[0], block[1]};                                          \
        gridDim = (struct xk_index){grid[0], grid[1]};                                             \
        xk_##name(*(const struct xk_##name *)arguments);                                           \
    }
RUN(copy)
RUN(pack)
RUN(linger)
RUN(exchange)
RUN(mapped)
#undef RUN

static const struct xs_kernel kernels[] = {
    {"xk_copy", sizeof(struct xk_copy), run_copy, false},
    {"xk_pack", sizeof(struct xk_pack), run_pack, false},
    {"xk_linger", sizeof(struct xk_linger), run_linger, true},
    {"xk_exchange", sizeof(struct xk_exchange), run_exchange, false},
    {"xk_mapped", sizeof(struct xk_mapped), run_mapped, false},
    {NULL, 0, NULL, false},
};
static const struct xs_image image = {XS_IMAGE_MAGIC, kernels};

XS_API const struct xk_image xccl_direct_image = {XK_VERSION, 0, &image};
