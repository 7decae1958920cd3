/* SPDX-License-Identifier: BSD-3-Clause */
/* Modules and kernels. */
#include "rocm/hip.h"

int hipModuleLoadData(void **module, const void *image)
{
    struct xs_ctx *ctx;
    int            res = (module == NULL) ? XS_INVALID_VALUE : xs_hip_ctx(&ctx);

    if (res == XS_OK) {
        res = (int)xs_image_check(image);
    }
    if (res == XS_OK) {
        *module = (void *)(uintptr_t)image;
    }
    return xs_hip_result(res);
}

int hipModuleLoad(void **module, const char *file)
{
    (void)module;
    (void)file;
    return xs_hip_result(XS_NOT_SUPPORTED);
}

int hipModuleUnload(void *module)
{
    return xs_hip_result((module == NULL) ? XS_INVALID_HANDLE : XS_OK);
}

int hipModuleGetFunction(void **function, void *module, const char *name)
{
    if ((function == NULL) || (module == NULL) || (name == NULL)) {
        return xs_hip_result(XS_INVALID_VALUE);
    }
    return xs_hip_result((int)xs_image_kernel(module, name, (const struct xs_kernel **)function));
}

int hipModuleLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                          unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                          hipStream_t handle, void **arguments, void **extra)
{
    const unsigned    grid[2] = {grid_x, grid_y};
    struct xs_stream *stream;
    int               res;

    (void)shared;
    if ((function == NULL) || (arguments == NULL) || (extra != NULL) || (grid_z != 1) ||
        (block_y != 1) || (block_z != 1)) {
        return xs_hip_result(XS_INVALID_VALUE);
    }
    res = xs_hip_stream(handle, &stream);
    if (res == XS_OK) {
        res = (int)xs_launch(stream, function, grid, block_x, arguments[0]);
    }
    return xs_hip_result(res);
}
