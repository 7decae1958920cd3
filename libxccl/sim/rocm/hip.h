/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The part of the HIP runtime API that the simulation offers, with its types spelt as what they are
 * in the ABI. HIP starts at any call and uses device 0 until told otherwise.
 */
#ifndef XS_ROCM_HIP_H
#define XS_ROCM_HIP_H

#include "core/core.h"

enum { HIP_INVALID_PITCH_VALUE = 12, HIP_INVALID_MEMCPY_DIRECTION = 21 };

typedef struct xs_event *hipEvent_t;
typedef struct xs_graph *hipGraph_t;
typedef struct xs_exec  *hipGraphExec_t;
typedef void            *hipStream_t;
typedef struct {
    unsigned char reserved[64];
} hipIpcMemHandle_t;
/* The first field was called memoryType, and numbered otherwise, before ROCm 6. */
typedef struct {
    int      type;
    int      device;
    void    *devicePointer;
    void    *hostPointer;
    int      isManaged;
    unsigned allocationFlags;
} hipPointerAttribute_t;

/* Keep res as the thread's last error, unless all is well. */
int xs_hip_result(int res);
/* The context that calls of this thread work on. */
int xs_hip_ctx(struct xs_ctx **ctx_p);
int xs_hip_stream(hipStream_t handle, struct xs_stream **stream_p);

/* device.c */
XS_API int         hipInit(unsigned flags);
XS_API int         hipDriverGetVersion(int *version);
XS_API int         hipRuntimeGetVersion(int *version);
XS_API int         hipGetDeviceCount(int *count);
XS_API int         hipGetDevice(int *device);
XS_API int         hipSetDevice(int device);
XS_API int         hipDeviceGet(int *device, int ordinal);
XS_API int         hipDeviceGetName(char *name, int len, int device);
XS_API int         hipDeviceGetUuid(unsigned char *uuid, int device);
XS_API int         hipDeviceGetPCIBusId(char *id, int len, int device);
XS_API int         hipDeviceGetByPCIBusId(int *device, const char *id);
XS_API int         hipDeviceGetAttribute(int *value, int attribute, int device);
XS_API int         hipDeviceTotalMem(size_t *bytes, int device);
XS_API int         hipDeviceSynchronize(void);
XS_API int         hipDeviceReset(void);
XS_API int         hipSetDeviceFlags(unsigned flags);
XS_API int         hipDeviceCanAccessPeer(int *can, int device, int peer);
XS_API int         hipDeviceEnablePeerAccess(int peer, unsigned flags);
XS_API int         hipDeviceDisablePeerAccess(int peer);
XS_API int         hipDeviceGetStreamPriorityRange(int *least, int *greatest);
XS_API int         hipDevicePrimaryCtxGetState(int device, unsigned *flags, int *active);
XS_API int         hipGetLastError(void);
XS_API int         hipPeekAtLastError(void);
XS_API const char *hipGetErrorName(int error);
XS_API const char *hipGetErrorString(int error);

/* memory.c */
XS_API int hipMalloc(void **ptr, size_t bytes);
XS_API int hipExtMallocWithFlags(void **ptr, size_t bytes, unsigned flags);
XS_API int hipMallocManaged(void **ptr, size_t bytes, unsigned flags);
XS_API int hipMallocAsync(void **ptr, size_t bytes, hipStream_t stream);
XS_API int hipFree(void *ptr);
XS_API int hipFreeAsync(void *ptr, hipStream_t stream);
XS_API int hipHostMalloc(void **ptr, size_t bytes, unsigned flags);
XS_API int hipHostFree(void *ptr);
XS_API int hipHostRegister(void *ptr, size_t bytes, unsigned flags);
XS_API int hipHostUnregister(void *ptr);
XS_API int hipHostGetDevicePointer(void **device, void *host, unsigned flags);
XS_API int hipHostGetFlags(unsigned *flags, void *ptr);
XS_API int hipMemGetInfo(size_t *free_bytes, size_t *total);
XS_API int hipMemGetAddressRange(void **base, size_t *size, void *ptr);
XS_API int hipPointerGetAttributes(hipPointerAttribute_t *attributes, const void *ptr);
XS_API int hipPointerGetAttribute(void *data, int attribute, void *ptr);
XS_API int hipIpcGetMemHandle(hipIpcMemHandle_t *handle, void *ptr);
XS_API int hipIpcOpenMemHandle(void **ptr, hipIpcMemHandle_t handle, unsigned flags);
XS_API int hipIpcCloseMemHandle(void *ptr);
XS_API int hipMemcpy(void *dst, const void *src, size_t bytes, int kind);
XS_API int hipMemcpy_spt(void *dst, const void *src, size_t bytes, int kind);
XS_API int hipMemcpyAsync(void *dst, const void *src, size_t bytes, int kind, hipStream_t stream);
XS_API int hipMemcpy2D(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
                       size_t height, int kind);
XS_API int hipMemcpy2DAsync(void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
                            size_t width, size_t height, int kind, hipStream_t stream);
XS_API int hipMemcpyWithStream(void *dst, const void *src, size_t bytes, int kind,
                               hipStream_t stream);
XS_API int hipMemcpyHtoD(void *dst, const void *src, size_t bytes);
XS_API int hipMemcpyDtoH(void *dst, const void *src, size_t bytes);
XS_API int hipMemcpyDtoD(void *dst, const void *src, size_t bytes);
XS_API int hipMemcpyHtoDAsync(void *dst, const void *src, size_t bytes, hipStream_t stream);
XS_API int hipMemcpyDtoHAsync(void *dst, const void *src, size_t bytes, hipStream_t stream);
XS_API int hipMemcpyDtoDAsync(void *dst, const void *src, size_t bytes, hipStream_t stream);
XS_API int hipMemcpyPeer(void *dst, int dst_device, const void *src, int src_device, size_t bytes);
XS_API int hipMemcpyPeerAsync(void *dst, int dst_device, const void *src, int src_device,
                              size_t bytes, hipStream_t stream);
XS_API int hipMemset(void *dst, int value, size_t bytes);
XS_API int hipMemsetD8(void *dst, unsigned char value, size_t count);
XS_API int hipMemsetD32(void *dst, int value, size_t count);
XS_API int hipMemsetAsync(void *dst, int value, size_t bytes, hipStream_t stream);
XS_API int hipMemsetD8Async(void *dst, unsigned char value, size_t count, hipStream_t stream);
XS_API int hipMemsetD32Async(void *dst, int value, size_t count, hipStream_t stream);

/* virtual.c */
typedef struct xs_backing *hipMemGenericAllocationHandle_t;
XS_API int hipMemGetAllocationGranularity(size_t *bytes, const struct xs_allocation_prop *prop,
                                          int option);
XS_API int hipMemAddressReserve(void **ptr, size_t bytes, size_t alignment, void *wish,
                                unsigned long long flags);
XS_API int hipMemAddressFree(void *ptr, size_t bytes);
XS_API int hipMemCreate(hipMemGenericAllocationHandle_t *handle, size_t bytes,
                        const struct xs_allocation_prop *prop, unsigned long long flags);
XS_API int hipMemRelease(hipMemGenericAllocationHandle_t handle);
XS_API int hipMemMap(void *ptr, size_t bytes, size_t offset, hipMemGenericAllocationHandle_t handle,
                     unsigned long long flags);
XS_API int hipMemUnmap(void *ptr, size_t bytes);
XS_API int hipMemSetAccess(void *ptr, size_t bytes, const struct xs_access_desc *descs,
                           size_t count);
XS_API int hipMemGetAccess(unsigned long long *flags, const struct xs_location *location,
                           void *ptr);
XS_API int hipMemRetainAllocationHandle(hipMemGenericAllocationHandle_t *handle, void *ptr);
XS_API int hipMemGetAllocationPropertiesFromHandle(struct xs_allocation_prop      *prop,
                                                   hipMemGenericAllocationHandle_t handle);
XS_API int hipMemExportToShareableHandle(void *shareable, hipMemGenericAllocationHandle_t handle,
                                         int type, unsigned long long flags);
XS_API int hipMemImportFromShareableHandle(hipMemGenericAllocationHandle_t *handle, void *shareable,
                                           int type);

/* stream.c */
XS_API int hipStreamCreate(hipStream_t *stream);
XS_API int hipStreamCreateWithFlags(hipStream_t *stream, unsigned flags);
XS_API int hipStreamCreateWithPriority(hipStream_t *stream, unsigned flags, int priority);
XS_API int hipStreamDestroy(hipStream_t stream);
XS_API int hipStreamQuery(hipStream_t stream);
XS_API int hipStreamSynchronize(hipStream_t stream);
XS_API int hipStreamGetFlags(hipStream_t stream, unsigned *flags);
XS_API int hipStreamGetPriority(hipStream_t stream, int *priority);
XS_API int hipStreamGetDevice(hipStream_t stream, int *device);
XS_API int hipStreamIsCapturing(hipStream_t stream, int *status);
XS_API int hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned flags);
XS_API int hipStreamAddCallback(hipStream_t stream, void (*fn)(hipStream_t, int, void *),
                                void *data, unsigned flags);
XS_API int hipLaunchHostFunc(hipStream_t stream, void (*fn)(void *), void *data);
XS_API int hipStreamWaitValue32(hipStream_t stream, void *ptr, uint32_t value, unsigned flags,
                                uint32_t mask);
XS_API int hipStreamWriteValue32(hipStream_t stream, void *ptr, uint32_t value, unsigned flags);
XS_API int hipEventCreate(hipEvent_t *event);
XS_API int hipEventCreateWithFlags(hipEvent_t *event, unsigned flags);
XS_API int hipEventDestroy(hipEvent_t event);
XS_API int hipEventRecord(hipEvent_t event, hipStream_t stream);
XS_API int hipEventQuery(hipEvent_t event);
XS_API int hipEventSynchronize(hipEvent_t event);
XS_API int hipEventElapsedTime(float *ms, hipEvent_t from, hipEvent_t to);

/* graph.c */
XS_API int hipStreamBeginCapture(hipStream_t stream, int mode);
XS_API int hipStreamEndCapture(hipStream_t stream, hipGraph_t *graph);
XS_API int hipThreadExchangeStreamCaptureMode(int *mode);
XS_API int hipGraphInstantiate(hipGraphExec_t *exec, hipGraph_t graph, void **node, char *log,
                               size_t log_bytes);
XS_API int hipGraphLaunch(hipGraphExec_t exec, hipStream_t stream);
XS_API int hipGraphExecDestroy(hipGraphExec_t exec);
XS_API int hipGraphDestroy(hipGraph_t graph);

/* module.c; of code only what was made for the simulation runs here */
XS_API int hipModuleLoad(void **module, const char *file);
XS_API int hipModuleLoadData(void **module, const void *image);
XS_API int hipModuleUnload(void *module);
XS_API int hipModuleGetFunction(void **function, void *module, const char *name);
XS_API int hipModuleLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                 unsigned block_x, unsigned block_y, unsigned block_z,
                                 unsigned shared, hipStream_t stream, void **arguments,
                                 void **extra);

#endif
