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

/* As of a device of compute capability 9.0, and of a function compiled for it. */
int cuFuncGetAttribute(int *value, int attribute, void *function)
{
    CU_NEED_CTX(ctx);
    if ((value == NULL) || (function == NULL)) {
        return XS_INVALID_VALUE;
    }
    *value = 90;
    return (attribute == CU_FUNC_ATTRIBUTE_PTX_VERSION) ? XS_OK : XS_NOT_SUPPORTED;
}

static int launch(const CUlaunchConfig *config, void *function, void **arguments, void **extra,
                  enum xs_error (*with)(struct xs_stream *, const struct xs_kernel *,
                                        const unsigned[2], unsigned, const void *))
{
    const unsigned    grid[2] = {config->gridDimX, config->gridDimY};
    struct xs_stream *stream;

    CU_NEED_CTX(ctx);
    if ((function == NULL) || (arguments == NULL) || (extra != NULL) || (config->gridDimZ != 1) ||
        (config->blockDimY != 1) || (config->blockDimZ != 1)) {
        return XS_INVALID_VALUE;
    }
    enum xs_error res = xs_stream_get(ctx, config->hStream, &stream);
    return (res != XS_OK) ? (int)res
                          : (int)with(stream, function, grid, config->blockDimX, arguments[0]);
}

int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                   CUstream stream, void **arguments, void **extra)
{
    const CUlaunchConfig config = {.gridDimX = grid_x,
                                   .gridDimY = grid_y,
                                   .gridDimZ = grid_z,
                                   .blockDimX = block_x,
                                   .blockDimY = block_y,
                                   .blockDimZ = block_z,
                                   .sharedMemBytes = shared,
                                   .hStream = stream};

    return launch(&config, function, arguments, extra, xs_launch);
}

int cuLaunchKernelEx(const CUlaunchConfig *config, void *function, void **arguments, void **extra)
{
    bool early = false;

    if ((config == NULL) || ((config->attrs == NULL) && (config->numAttrs != 0))) {
        return XS_INVALID_VALUE;
    }
    for (unsigned i = 0; i < config->numAttrs; i++) {
        if (config->attrs[i].id != CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION) {
            return XS_NOT_SUPPORTED;
        }
        early = (config->attrs[i].value.programmaticStreamSerializationAllowed != 0);
    }
    return launch(config, function, arguments, extra, early ? xs_launch_early : xs_launch);
}
