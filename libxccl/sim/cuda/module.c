/* SPDX-License-Identifier: BSD-3-Clause */
/* Modules and kernels. */
#include "cuda/driver.h"

int cuModuleLoadData(void **module, const void *image)
{
    CU_NEED_CTX(ctx);
    enum xs_error res = (module == NULL) ? XS_INVALID_VALUE : xs_image_check(image);
    if (res == XS_OK) {
        *module = (void *)(uintptr_t)image;
    }
    return (int)res;
}

int cuModuleLoadDataEx(void **module, const void *image, unsigned count, int *options,
                       void **values)
{
    (void)count;
    (void)options;
    (void)values;
    return cuModuleLoadData(module, image);
}

int cuModuleLoad(void **module, const char *file)
{
    (void)module;
    (void)file;
    CU_NEED_INIT;
    return XS_NOT_SUPPORTED;
}

int cuModuleUnload(void *module)
{
    CU_NEED_CTX(ctx);
    return (module == NULL) ? XS_INVALID_HANDLE : XS_OK;
}

int cuModuleGetFunction(void **function, void *module, const char *name)
{
    CU_NEED_CTX(ctx);
    if ((function == NULL) || (module == NULL) || (name == NULL)) {
        return XS_INVALID_VALUE;
    }
    return (int)xs_image_kernel(module, name, (const struct xs_kernel **)function);
}

int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *function, int threads,
                                                size_t shared)
{
    (void)shared;
    CU_NEED_CTX(ctx);
    if ((blocks == NULL) || (function == NULL) || (threads < 1)) {
        return XS_INVALID_VALUE;
    }
    *blocks = (threads <= 1024) ? 1 : 0;
    return XS_OK;
}

int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                   CUstream handle, void **arguments, void **extra)
{
    const unsigned    grid[2] = {grid_x, grid_y};
    struct xs_stream *stream;

    (void)shared;
    CU_NEED_CTX(ctx);
    if ((function == NULL) || (arguments == NULL) || (extra != NULL) || (grid_z != 1) ||
        (block_y != 1) || (block_z != 1)) {
        return XS_INVALID_VALUE;
    }
    enum xs_error res = xs_stream_get(ctx, handle, &stream);
    return (res != XS_OK) ? (int)res
                          : (int)xs_launch(stream, function, grid, block_x, arguments[0]);
}
