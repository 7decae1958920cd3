/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The part of the Synapse API and of HCCL that the simulation offers, with their types spelt as
 * what they are in the ABI. One library exports both.
 */
#ifndef XS_HPU_SYNAPSE_H
#define XS_HPU_SYNAPSE_H

#include "ccl/ccl.h"

/* synStatus */
enum {
    SYN_SUCCESS = 0,
    SYN_INVALID_ARGUMENT = 1,
    SYN_OUT_OF_DEVICE_MEMORY = 4,
    SYN_NO_DEVICE_FOUND = 8,
    SYN_UNSUPPORTED = 18,
    SYN_DEVICE_ALREADY_ACQUIRED = 20,
    SYN_BUSY = 22,
    SYN_FAIL = 26,
    SYN_UNINITIALIZED = 28,
    SYN_MAPPING_NOT_FOUND = 34,
};

/* synDmaDir */
enum { HOST_TO_DRAM, DRAM_TO_HOST, DRAM_TO_DRAM };

typedef struct {
    uint64_t sramBaseAddress;
    uint64_t dramBaseAddress;
    uint32_t sramSize;
    uint64_t dramSize;
    uint64_t tpcEnabledMask;
    uint8_t  dramEnabled;
    uint32_t deviceId;
    uint32_t fd;
    int      deviceType;
    uint8_t  deviceIndex;
    uint64_t globalHbmBaseAddress;
} synDeviceInfoV2;

/* The device that this process has acquired, current for this thread; NULL: none. */
struct xs_ctx *xs_hpu_enter(void);
/* A stream of the program's; there is no default one. */
int xs_hpu_stream(void *handle, struct xs_stream **stream_p);

XS_API int synInitialize(void);
XS_API int synDestroy(void);
XS_API int synDriverGetVersion(char *version, int len);
XS_API int synDeviceGetCount(uint32_t *count);
XS_API int synDeviceAcquire(uint32_t *device, const char *bus);
XS_API int synDeviceAcquireByModuleId(uint32_t *device, uint32_t module);
XS_API int synDeviceAcquireByDeviceType(uint32_t *device, int type);
XS_API int synDeviceRelease(uint32_t device);
XS_API int synDeviceSynchronize(uint32_t device);
XS_API int synDeviceGetName(char *name, int len, uint32_t device);
XS_API int synDeviceGetPCIBusId(char *bus, int len, uint32_t device);
XS_API int synDeviceGetInfoV2(uint32_t device, synDeviceInfoV2 *info);
XS_API int synDeviceGetMemoryInfo(uint32_t device, uint64_t *free_bytes, uint64_t *total);
XS_API int synStreamCreateGeneric(void **stream, uint32_t device, uint32_t flags);
XS_API int synStreamDestroy(void *stream);
XS_API int synStreamWaitEvent(void *stream, struct xs_event *event, uint32_t flags);
XS_API int synStreamSynchronize(void *stream);
XS_API int synStreamQuery(void *stream);
XS_API int synEventCreate(struct xs_event **event, uint32_t device, uint32_t flags);
XS_API int synEventDestroy(struct xs_event *event);
XS_API int synEventRecord(struct xs_event *event, void *stream);
XS_API int synEventQuery(struct xs_event *event);
XS_API int synEventSynchronize(struct xs_event *event);
XS_API int synMemCopyAsync(void *stream, uint64_t src, uint64_t size, uint64_t dst, int direction);
XS_API int synMemCopyAsyncMultiple(void *stream, const uint64_t *src, const uint64_t *size,
                                   const uint64_t *dst, int direction, uint64_t copies);
XS_API int synMemsetD8Async(uint64_t dst, unsigned char value, size_t count, void *stream);
XS_API int synMemsetD16Async(uint64_t dst, uint16_t value, size_t count, void *stream);
XS_API int synMemsetD32Async(uint64_t dst, uint32_t value, size_t count, void *stream);
XS_API int synHostMalloc(uint32_t device, uint64_t size, uint32_t flags, void **buffer);
XS_API int synHostFree(uint32_t device, const void *buffer, uint32_t flags);
XS_API int synHostMap(uint32_t device, uint64_t size, const void *buffer);
XS_API int synHostUnmap(uint32_t device, const void *buffer);
XS_API int synDeviceMalloc(uint32_t device, uint64_t size, uint64_t wanted, uint32_t flags,
                           uint64_t *buffer);
XS_API int synDeviceFree(uint32_t device, uint64_t buffer, uint32_t flags);

#endif
