/* SPDX-License-Identifier: BSD-3-Clause */
/* The driver and its devices. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "cuda/driver.h"

#define DRIVER_VERSION 13000

int cuInit(unsigned flags)
{
    return (flags != 0) ? XS_INVALID_VALUE : (int)xs_init(XS_CUDA);
}

/* The only call that works before cuInit(). */
int cuDriverGetVersion(int *version)
{
    if (version == NULL) {
        return XS_INVALID_VALUE;
    }
    *version = DRIVER_VERSION;
    return XS_OK;
}

static int check_device(int device, const void *out)
{
    CU_NEED_INIT;
    if (out == NULL) {
        return XS_INVALID_VALUE;
    }
    return ((device < 0) || (device >= xs_config()->devices)) ? XS_INVALID_DEVICE : XS_OK;
}

int cuDeviceGet(int *device, int ordinal)
{
    int res = check_device(ordinal, device);

    if (res == XS_OK) {
        *device = ordinal;
    }
    return res;
}

int cuDeviceGetCount(int *count)
{
    CU_NEED_INIT;
    if (count == NULL) {
        return XS_INVALID_VALUE;
    }
    *count = xs_config()->devices;
    return XS_OK;
}

int cuDeviceGetName(char *name, int len, int device)
{
    int res = check_device(device, name);

    if ((res == XS_OK) && (len > 0)) {
        xs_device_name(device, name, (size_t)len);
    }
    return res;
}

int cuDeviceGetUuid_v2(CUuuid *uuid, int device)
{
    int res = check_device(device, uuid);

    if (res == XS_OK) {
        xs_device_uuid(device, (unsigned char *)uuid->bytes);
    }
    return res;
}

int cuDeviceGetUuid(CUuuid *uuid, int device)
{
    return cuDeviceGetUuid_v2(uuid, device);
}

int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    int res = check_device(device, bytes);

    if (res == XS_OK) {
        *bytes = xs_config()->memory;
    }
    return res;
}

/* Numbers of CUdevice_attribute; a device of a recent kind without kernels. */
static const struct {
    int attribute;
    int value;
} attributes[] = {
    {1, 1024},       /* MAX_THREADS_PER_BLOCK */
    {2, 1024},       /* MAX_BLOCK_DIM_X */
    {3, 1024},       /* MAX_BLOCK_DIM_Y */
    {4, 64},         /* MAX_BLOCK_DIM_Z */
    {5, 0x7fffffff}, /* MAX_GRID_DIM_X */
    {6, 65535},      /* MAX_GRID_DIM_Y */
    {7, 65535},      /* MAX_GRID_DIM_Z */
    {8, 49152},      /* MAX_SHARED_MEMORY_PER_BLOCK */
    {10, 32},        /* WARP_SIZE */
    {11, INT32_MAX}, /* MAX_PITCH */
    {12, 65536},     /* MAX_REGISTERS_PER_BLOCK */
    {13, 1000000},   /* CLOCK_RATE */
    {15, 1},         /* GPU_OVERLAP */
    {16, XS_PLACES}, /* MULTIPROCESSOR_COUNT: each has room for a block */
    {18, 0},         /* INTEGRATED */
    {19, 1},         /* CAN_MAP_HOST_MEMORY */
    {20, 0},         /* COMPUTE_MODE */
    {31, 1},         /* CONCURRENT_KERNELS */
    {34, 0},         /* PCI_DEVICE_ID */
    {36, 1000000},   /* MEMORY_CLOCK_RATE */
    {37, 128},       /* GLOBAL_MEMORY_BUS_WIDTH */
    {38, 1048576},   /* L2_CACHE_SIZE */
    {39, 2048},      /* MAX_THREADS_PER_MULTIPROCESSOR */
    {40, 2},         /* ASYNC_ENGINE_COUNT */
    {41, 1},         /* UNIFIED_ADDRESSING */
    {50, 0},         /* PCI_DOMAIN_ID */
    {75, 9},         /* COMPUTE_CAPABILITY_MAJOR */
    {76, 0},         /* COMPUTE_CAPABILITY_MINOR */
    {78, 1},         /* STREAM_PRIORITIES_SUPPORTED */
    {83, 1},         /* MANAGED_MEMORY */
    {88, 0},         /* PAGEABLE_MEMORY_ACCESS */
    {91, 1},         /* CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM */
    {92, 1},         /* CAN_USE_STREAM_MEM_OPS_V1 */
    {99, 1},         /* HOST_REGISTER_SUPPORTED */
    {122, 1},        /* CAN_USE_64_BIT_STREAM_MEM_OPS */
    {123, 1},        /* CAN_USE_STREAM_WAIT_VALUE_NOR */
    {131, -1},       /* NUMA_ID */
};

#define ATTRIBUTE_PCI_BUS_ID 33
#define ATTRIBUTE_CONCURRENT_MANAGED_ACCESS 89
#define ATTRIBUTE_MPS_ENABLED 133
#define ATTRIBUTE_LAST 141

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    int res = check_device(device, value);

    if (res != XS_OK) {
        return res;
    }
    if ((attribute < 1) || (attribute > ATTRIBUTE_LAST)) {
        return XS_INVALID_VALUE;
    }
    *value = (attribute == ATTRIBUTE_PCI_BUS_ID) ? xs_device_bus(device) : 0;
    if (attribute == ATTRIBUTE_MPS_ENABLED) {
        *value = (xs_config()->mps != NULL);
    }
    if (attribute == ATTRIBUTE_CONCURRENT_MANAGED_ACCESS) {
        *value = !xs_config()->exclusive;
    }
    for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++) {
        if (attributes[i].attribute == attribute) {
            *value = attributes[i].value;
        }
    }
    return XS_OK;
}

int cuDeviceGetPCIBusId(char *id, int len, int device)
{
    int res = check_device(device, id);

    if (res != XS_OK) {
        return res;
    }
    if (len < 13) {
        return XS_INVALID_VALUE;
    }
    xs_device_bus_id(device, id, (size_t)len);
    return XS_OK;
}

int cuDeviceGetByPCIBusId(int *device, const char *id)
{
    char mine[16];

    CU_NEED_INIT;
    if ((device == NULL) || (id == NULL)) {
        return XS_INVALID_VALUE;
    }
    for (int i = 0; i < xs_config()->devices; i++) {
        xs_device_bus_id(i, mine, sizeof(mine));
        if (strcasecmp(mine, id) == 0) {
            *device = i;
            return XS_OK;
        }
    }
    return XS_INVALID_DEVICE;
}

int cuDeviceComputeCapability(int *major, int *minor, int device)
{
    int res = cuDeviceGetAttribute(major, 75, device);

    return (res != XS_OK) ? res : cuDeviceGetAttribute(minor, 76, device);
}

int cuDeviceCanAccessPeer(int *can, int device, int peer)
{
    int res = check_device(device, can);

    if (res == XS_OK) {
        res = check_device(peer, can);
    }
    if (res == XS_OK) {
        *can = (device != peer);
    }
    return res;
}

/* 1 rank, 2 access, 3 native atomics, 4 arrays */
int cuDeviceGetP2PAttribute(int *value, int attribute, int from, int to)
{
    int can;
    int res = cuDeviceCanAccessPeer(&can, from, to);

    if (res != XS_OK) {
        return res;
    }
    if ((value == NULL) || (attribute < 1) || (attribute > 5) || !can) {
        return XS_INVALID_VALUE;
    }
    *value = (attribute == 2) || (attribute == 3);
    return XS_OK;
}

static const struct {
    int         error;
    const char *name;
} names[] = {
    {XS_OK, "CUDA_SUCCESS"},
    {XS_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
    {XS_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
    {XS_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED"},
    {XS_NO_DEVICE, "CUDA_ERROR_NO_DEVICE"},
    {XS_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE"},
    {XS_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT"},
    {XS_MAP_FAILED, "CUDA_ERROR_MAP_FAILED"},
    {XS_ALREADY_MAPPED, "CUDA_ERROR_ALREADY_MAPPED"},
    {XS_OPERATING_SYSTEM, "CUDA_ERROR_OPERATING_SYSTEM"},
    {XS_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE"},
    {XS_NOT_FOUND, "CUDA_ERROR_NOT_FOUND"},
    {XS_NOT_READY, "CUDA_ERROR_NOT_READY"},
    {XS_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS"},
    {XS_PEER_ACCESS_ALREADY_ENABLED, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED"},
    {XS_PEER_ACCESS_NOT_ENABLED, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED"},
    {XS_CONTEXT_IS_DESTROYED, "CUDA_ERROR_CONTEXT_IS_DESTROYED"},
    {XS_HOST_ALREADY_REGISTERED, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED"},
    {XS_HOST_NOT_REGISTERED, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED"},
    {XS_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED"},
    {XS_SYSTEM_NOT_READY, "CUDA_ERROR_SYSTEM_NOT_READY"},
};

int cuGetErrorName(int error, const char **text)
{
    if (text == NULL) {
        return XS_INVALID_VALUE;
    }
    *text = NULL;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (names[i].error == error) {
            *text = names[i].name;
        }
    }
    return (*text == NULL) ? XS_INVALID_VALUE : XS_OK;
}

int cuGetErrorString(int error, const char **text)
{
    if (text == NULL) {
        return XS_INVALID_VALUE;
    }
    *text = xs_error_text(error);
    return (*text == NULL) ? XS_INVALID_VALUE : XS_OK;
}
