/* SPDX-License-Identifier: BSD-3-Clause */
/* Device memory of another process, by the CUDA driver API. */
#include "driver_abi.h"
#include "ranks.h"

static void start(int device)
{
    CUcontext ctx;

    CHECK_EQ(cuInit(0), CUDA_SUCCESS);
    CHECK_EQ(cuDevicePrimaryCtxRetain(&ctx, device), CUDA_SUCCESS);
    CHECK_EQ(cuCtxSetCurrent(ctx), CUDA_SUCCESS);
}

static void ipc(const struct world *world)
{
    CUipcMemHandle handle;
    CUdeviceptr    ptr;
    int            value = 17;

    start(world->rank);
    if (world->rank == 0) {
        CHECK_EQ(cuMemAlloc_v2(&ptr, 300), CUDA_SUCCESS); /* so that the next begins in a page */
        CHECK_EQ(cuMemAlloc_v2(&ptr, 300), CUDA_SUCCESS);
        CHECK_EQ(cuIpcGetMemHandle(&handle, ptr), CUDA_SUCCESS);
        CHECK_EQ(cuMemcpyHtoD_v2(ptr + 296, &value, 4), CUDA_SUCCESS);
    }
    share_bytes(world, &handle, sizeof(handle));
    if (world->rank == 1) {
        CHECK_EQ(cuIpcOpenMemHandle_v2(&ptr, handle, 1), CUDA_SUCCESS);
        CHECK_EQ(cuMemcpyDtoH_v2(&value, ptr + 296, 4), CUDA_SUCCESS);
        CHECK_EQ(value, 17);
        value = 18;
        CHECK_EQ(cuMemcpyHtoD_v2(ptr, &value, 4), CUDA_SUCCESS);
        CHECK_EQ(cuMemcpyHtoD_v2(ptr + 297, &value, 4), CUDA_ERROR_INVALID_VALUE);
        CHECK_EQ(cuIpcCloseMemHandle(ptr), CUDA_SUCCESS);
        CHECK_EQ(cuMemcpyHtoD_v2(ptr, &value, 4), CUDA_ERROR_INVALID_VALUE);
    }
    meet(world);
    if (world->rank == 0) {
        CHECK_EQ(cuMemcpyDtoH_v2(&value, ptr, 4), CUDA_SUCCESS);
        CHECK_EQ(value, 18);
        CHECK_EQ(cuIpcOpenMemHandle_v2(&ptr, handle, 1), CUDA_ERROR_INVALID_CONTEXT);
    }
}

/* Memory of a pool has no such handle, as on an H200 (driver 13.0). */
static void ipc_pool(const struct world *world)
{
    CUipcMemHandle handle;
    CUdeviceptr    ptr, plain;
    unsigned       capable = 2;

    start(world->rank);
    CHECK_EQ(cuMemAllocAsync(&ptr, 300, NULL), CUDA_SUCCESS);
    CHECK_EQ(cuMemAlloc_v2(&plain, 300), CUDA_SUCCESS);
    CHECK_EQ(cuIpcGetMemHandle(&handle, ptr), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuPointerGetAttribute(&capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, ptr),
             CUDA_SUCCESS);
    CHECK_EQ(capable, 0);
    CHECK_EQ(
        cuPointerGetAttribute(&capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, plain),
        CUDA_SUCCESS);
    CHECK_EQ(capable, 1);
    CHECK_EQ(cuIpcGetMemHandle(&handle, plain), CUDA_SUCCESS);
}

/*
 * What was freed stays mapped until it is closed, and keeps new memory at its place away. It does
 * not show what is there now.
 */
static void ipc_again(const struct world *world)
{
    CUipcMemHandle handle;
    CUdeviceptr    ptr[2], opened[2];

    start(world->rank);
    if (world->rank == 0) {
        CHECK_EQ(cuMemAlloc_v2(&ptr[0], 4096), CUDA_SUCCESS);
        CHECK_EQ(cuMemAlloc_v2(&ptr[1], 4096), CUDA_SUCCESS);
    }
    for (int i = 0; i < 2; i++) {
        if (world->rank == 0) {
            CHECK_EQ(cuIpcGetMemHandle(&handle, ptr[i]), CUDA_SUCCESS);
        }
        share_bytes(world, &handle, sizeof(handle));
        if (world->rank == 1) {
            CHECK_EQ(cuIpcOpenMemHandle_v2(&opened[i], handle, 1), CUDA_SUCCESS);
        }
    }
    meet(world);
    if (world->rank == 0) {
        CHECK_EQ(cuMemFree_v2(ptr[0]), CUDA_SUCCESS);
        CHECK_EQ(cuMemFree_v2(ptr[1]), CUDA_SUCCESS);
        CHECK_EQ(cuMemAlloc_v2(&ptr[0], 4096), CUDA_SUCCESS);
        CHECK_EQ(cuIpcGetMemHandle(&handle, ptr[0]), CUDA_SUCCESS);
    }
    share_bytes(world, &handle, sizeof(handle));
    if (world->rank == 1) {
        CUdeviceptr again;
        int         value = 0;
        CHECK_EQ(cuIpcOpenMemHandle_v2(&again, handle, 1), CUDA_ERROR_ALREADY_MAPPED);
        CHECK_EQ(cuMemcpyDtoH_v2(&value, opened[0], 4), CUDA_ERROR_INVALID_VALUE);
        CHECK_EQ(cuIpcCloseMemHandle(opened[0]), CUDA_SUCCESS);
        /* The other one lay in the same block. */
        CHECK_EQ(cuIpcOpenMemHandle_v2(&again, handle, 1), CUDA_ERROR_ALREADY_MAPPED);
        CHECK_EQ(cuIpcCloseMemHandle(opened[1]), CUDA_SUCCESS);
        CHECK_EQ(cuIpcOpenMemHandle_v2(&again, handle, 1), CUDA_SUCCESS);
    }
    meet(world);
}

int main(int argc, char **argv)
{
    const struct test_case cases[] = {
        {"ipc", ipc, 2, "cuda:2", NULL, NULL, -1},
        {"ipc_pool", ipc_pool, 1, "cuda:1", NULL, NULL, -1},
        {"ipc_again", ipc_again, 2, "cuda:2", NULL, NULL, -1},
    };

    return run_cases(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
