/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The part of the CUDA driver API that the simulation offers, with cuda.h's types spelt as what
 * they are in the ABI: CUresult and CUdevice are int, CUdeviceptr is uintptr_t.
 */
#ifndef XS_CUDA_DRIVER_H
#define XS_CUDA_DRIVER_H

#include "core/core.h"

typedef uintptr_t        CUdeviceptr;
typedef struct xs_ctx   *CUcontext;
typedef void            *CUstream;
typedef struct xs_event *CUevent;
typedef struct xs_graph *CUgraph;
typedef struct xs_exec  *CUgraphExec;
typedef struct {
    char bytes[16];
} CUuuid;
typedef struct {
    unsigned char reserved[64];
} CUipcMemHandle;

/* CUDA_MEMCPY2D_v2. */
enum { CU_MEMORYTYPE_HOST = 1, CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_ARRAY, CU_MEMORYTYPE_UNIFIED };
typedef struct {
    size_t      srcXInBytes;
    size_t      srcY;
    unsigned    srcMemoryType;
    const void *srcHost;
    CUdeviceptr srcDevice;
    void       *srcArray;
    size_t      srcPitch;
    size_t      dstXInBytes;
    size_t      dstY;
    unsigned    dstMemoryType;
    void       *dstHost;
    CUdeviceptr dstDevice;
    void       *dstArray;
    size_t      dstPitch;
    size_t      WidthInBytes;
    size_t      Height;
} CUDA_MEMCPY2D;

/* CUDA_KERNEL_NODE_PARAMS_v2. */
typedef struct {
    void    *func;
    unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
    void   **kernelParams;
    void   **extra;
    void    *kern;
    void    *ctx;
} CUDA_KERNEL_NODE_PARAMS;

/* CUfunction_attribute and CUlaunchAttributeID: those that are known here. */
enum {
    CU_FUNC_ATTRIBUTE_PTX_VERSION = 5,
    CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 6
};
typedef struct {
    int  id;
    char pad[4];
    union {
        int  programmaticStreamSerializationAllowed;
        char all[64];
    } value;
} CUlaunchAttribute;
typedef struct {
    unsigned           gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ;
    unsigned           sharedMemBytes;
    CUstream           hStream;
    CUlaunchAttribute *attrs;
    unsigned           numAttrs;
} CUlaunchConfig;

/* Every function's first line: the driver must have been initialised. */
#define CU_NEED_INIT                                                                               \
    do {                                                                                           \
        if (!xs_initialised()) {                                                                   \
            return XS_NOT_INITIALIZED;                                                             \
        }                                                                                          \
    } while (0)
/* ... and this thread must have a context. */
#define CU_NEED_CTX(ctx)                                                                           \
    CU_NEED_INIT;                                                                                  \
    struct xs_ctx *ctx = xs_ctx_current();                                                         \
    do {                                                                                           \
        if (!xs_ctx_valid(ctx)) {                                                                  \
            return (ctx == NULL) ? XS_INVALID_CONTEXT : XS_CONTEXT_IS_DESTROYED;                   \
        }                                                                                          \
    } while (0)

/* driver.c */
XS_API int cuInit(unsigned flags);
XS_API int cuDriverGetVersion(int *version);
XS_API int cuDeviceGet(int *device, int ordinal);
XS_API int cuDeviceGetCount(int *count);
XS_API int cuDeviceGetName(char *name, int len, int device);
XS_API int cuDeviceGetUuid(CUuuid *uuid, int device);
XS_API int cuDeviceGetUuid_v2(CUuuid *uuid, int device);
XS_API int cuDeviceTotalMem_v2(size_t *bytes, int device);
XS_API int cuDeviceGetAttribute(int *value, int attribute, int device);
XS_API int cuDeviceGetPCIBusId(char *id, int len, int device);
XS_API int cuDeviceGetByPCIBusId(int *device, const char *id);
XS_API int cuDeviceComputeCapability(int *major, int *minor, int device);
XS_API int cuDeviceCanAccessPeer(int *can, int device, int peer);
XS_API int cuDeviceGetP2PAttribute(int *value, int attribute, int from, int to);
XS_API int cuGetErrorName(int error, const char **text);
XS_API int cuGetErrorString(int error, const char **text);

/* context.c */
XS_API int cuDevicePrimaryCtxRetain(CUcontext *ctx, int device);
XS_API int cuDevicePrimaryCtxRelease_v2(int device);
XS_API int cuDevicePrimaryCtxRelease(int device);
XS_API int cuDevicePrimaryCtxReset_v2(int device);
XS_API int cuDevicePrimaryCtxReset(int device);
XS_API int cuDevicePrimaryCtxSetFlags_v2(int device, unsigned flags);
XS_API int cuDevicePrimaryCtxSetFlags(int device, unsigned flags);
XS_API int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active);
XS_API int cuCtxCreate_v2(CUcontext *ctx, unsigned flags, int device);
XS_API int cuCtxCreate_v3(CUcontext *ctx, void *affinity, int count, unsigned flags, int device);
XS_API int cuCtxCreate_v4(CUcontext *ctx, void *params, unsigned flags, int device);
XS_API int cuCtxDestroy_v2(CUcontext ctx);
XS_API int cuCtxPushCurrent_v2(CUcontext ctx);
XS_API int cuCtxPopCurrent_v2(CUcontext *ctx);
XS_API int cuCtxSetCurrent(CUcontext ctx);
XS_API int cuCtxGetCurrent(CUcontext *ctx);
XS_API int cuCtxGetDevice(int *device);
XS_API int cuCtxGetFlags(unsigned *flags);
XS_API int cuCtxGetId(CUcontext ctx, unsigned long long *id);
XS_API int cuCtxGetApiVersion(CUcontext ctx, unsigned *version);
XS_API int cuCtxGetStreamPriorityRange(int *least, int *greatest);
XS_API int cuCtxSynchronize(void);
XS_API int cuCtxEnablePeerAccess(CUcontext peer, unsigned flags);
XS_API int cuCtxDisablePeerAccess(CUcontext peer);

/* memory.c */
XS_API int cuMemGetInfo_v2(size_t *free_bytes, size_t *total);
XS_API int cuMemAlloc_v2(CUdeviceptr *ptr, size_t bytes);
XS_API int cuMemFree_v2(CUdeviceptr ptr);
XS_API int cuMemAllocAsync(CUdeviceptr *ptr, size_t bytes, CUstream stream);
XS_API int cuMemFreeAsync(CUdeviceptr ptr, CUstream stream);
XS_API int cuMemAllocManaged(CUdeviceptr *ptr, size_t bytes, unsigned flags);
XS_API int cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr ptr);
XS_API int cuMemAllocHost_v2(void **ptr, size_t bytes);
XS_API int cuMemHostAlloc(void **ptr, size_t bytes, unsigned flags);
XS_API int cuMemFreeHost(void *ptr);
XS_API int cuMemHostGetDevicePointer_v2(CUdeviceptr *device, void *host, unsigned flags);
XS_API int cuMemHostGetFlags(unsigned *flags, void *ptr);
XS_API int cuMemHostRegister_v2(void *ptr, size_t bytes, unsigned flags);
XS_API int cuMemHostUnregister(void *ptr);
XS_API int cuPointerGetAttribute(void *data, int attribute, CUdeviceptr ptr);
XS_API int cuPointerGetAttributes(unsigned count, int *attributes, void **data, CUdeviceptr ptr);
XS_API int cuPointerSetAttribute(const void *value, int attribute, CUdeviceptr ptr);
XS_API int cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr ptr);
XS_API int cuIpcOpenMemHandle_v2(CUdeviceptr *ptr, CUipcMemHandle handle, unsigned flags);
XS_API int cuIpcCloseMemHandle(CUdeviceptr ptr);

/* virtual.c */
typedef unsigned long long CUmemGenericAllocationHandle;
XS_API int cuMemGetAllocationGranularity(size_t *bytes, const struct xs_allocation_prop *prop,
                                         int option);
XS_API int cuMemAddressReserve(CUdeviceptr *ptr, size_t bytes, size_t alignment, CUdeviceptr wish,
                               unsigned long long flags);
XS_API int cuMemAddressFree(CUdeviceptr ptr, size_t bytes);
XS_API int cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
                       const struct xs_allocation_prop *prop, unsigned long long flags);
XS_API int cuMemRelease(CUmemGenericAllocationHandle handle);
XS_API int cuMemMap(CUdeviceptr ptr, size_t bytes, size_t offset,
                    CUmemGenericAllocationHandle handle, unsigned long long flags);
XS_API int cuMemUnmap(CUdeviceptr ptr, size_t bytes);
XS_API int cuMemSetAccess(CUdeviceptr ptr, size_t bytes, const struct xs_access_desc *descs,
                          size_t count);
XS_API int cuMemGetAccess(unsigned long long *flags, const struct xs_location *location,
                          CUdeviceptr ptr);
XS_API int cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *ptr);
XS_API int cuMemGetAllocationPropertiesFromHandle(struct xs_allocation_prop   *prop,
                                                  CUmemGenericAllocationHandle handle);
XS_API int cuMemExportToShareableHandle(void *shareable, CUmemGenericAllocationHandle handle,
                                        int type, unsigned long long flags);
XS_API int cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *shareable,
                                          int type);

/* copy.c */
XS_API int cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t bytes);
XS_API int cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream);
XS_API int cuMemcpyHtoD_v2(CUdeviceptr dst, const void *src, size_t bytes);
XS_API int cuMemcpyHtoD_v2_ptds(CUdeviceptr dst, const void *src, size_t bytes);
XS_API int cuMemcpyDtoH_v2_ptds(void *dst, CUdeviceptr src, size_t bytes);
XS_API int cuMemcpyDtoH_v2(void *dst, CUdeviceptr src, size_t bytes);
XS_API int cuMemcpyDtoD_v2(CUdeviceptr dst, CUdeviceptr src, size_t bytes);
XS_API int cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t bytes, CUstream stream);
XS_API int cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t bytes, CUstream stream);
XS_API int cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream);
XS_API int cuMemcpyPeer(CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx,
                        size_t bytes);
XS_API int cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx,
                             size_t bytes, CUstream stream);
XS_API int cuMemcpy2D_v2(const CUDA_MEMCPY2D *copy);
XS_API int cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *copy);
XS_API int cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *copy, CUstream stream);
XS_API int cuMemsetD8_v2(CUdeviceptr dst, unsigned char value, size_t count);
XS_API int cuMemsetD16_v2(CUdeviceptr dst, unsigned short value, size_t count);
XS_API int cuMemsetD32_v2(CUdeviceptr dst, unsigned value, size_t count);
XS_API int cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t count, CUstream stream);
XS_API int cuMemsetD16Async(CUdeviceptr dst, unsigned short value, size_t count, CUstream stream);
XS_API int cuMemsetD32Async(CUdeviceptr dst, unsigned value, size_t count, CUstream stream);

/* stream.c */
XS_API int cuStreamCreate(CUstream *stream, unsigned flags);
XS_API int cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority);
XS_API int cuStreamDestroy_v2(CUstream stream);
XS_API int cuStreamQuery(CUstream stream);
XS_API int cuStreamSynchronize(CUstream stream);
XS_API int cuStreamGetFlags(CUstream stream, unsigned *flags);
XS_API int cuStreamGetPriority(CUstream stream, int *priority);
XS_API int cuStreamGetId(CUstream stream, unsigned long long *id);
XS_API int cuStreamGetCtx(CUstream stream, CUcontext *ctx);
XS_API int cuStreamGetDevice(CUstream stream, int *device);
XS_API int cuStreamIsCapturing(CUstream stream, int *status);
XS_API int cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags);
XS_API int cuStreamAddCallback(CUstream stream, void (*fn)(CUstream, int, void *), void *data,
                               unsigned flags);
XS_API int cuLaunchHostFunc(CUstream stream, void (*fn)(void *), void *data);
XS_API int cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr ptr, uint32_t value, unsigned flags);
XS_API int cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr ptr, uint32_t value,
                                   unsigned flags);
XS_API int cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr ptr, uint64_t value, unsigned flags);
XS_API int cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr ptr, uint64_t value,
                                   unsigned flags);
XS_API int cuEventCreate(CUevent *event, unsigned flags);
XS_API int cuEventDestroy_v2(CUevent event);
XS_API int cuEventRecord(CUevent event, CUstream stream);
XS_API int cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags);
XS_API int cuEventQuery(CUevent event);
XS_API int cuEventSynchronize(CUevent event);
XS_API int cuEventElapsedTime(float *ms, CUevent from, CUevent to);
XS_API int cuEventElapsedTime_v2(float *ms, CUevent from, CUevent to);

/* graph.c */
XS_API int cuStreamBeginCapture_v2(CUstream stream, int mode);
XS_API int cuStreamEndCapture(CUstream stream, CUgraph *graph);
XS_API int cuThreadExchangeStreamCaptureMode(int *mode);
XS_API int cuGraphCreate(CUgraph *graph, unsigned flags);
/* dependencies: kernels follow each other in the order of these calls anyway. */
XS_API int cuGraphAddKernelNode_v2(void **node, CUgraph graph, void *const *dependencies,
                                   size_t count, const CUDA_KERNEL_NODE_PARAMS *params);
XS_API int cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, void *node,
                                             const CUDA_KERNEL_NODE_PARAMS *params);
XS_API int cuGraphUpload(CUgraphExec exec, CUstream stream);
XS_API int cuGraphGetNodes(CUgraph graph, void **nodes, size_t *count);
XS_API int cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags);
XS_API int cuGraphLaunch(CUgraphExec exec, CUstream stream);
XS_API int cuGraphExecDestroy(CUgraphExec exec);
XS_API int cuGraphDestroy(CUgraph graph);

/* proc.c */
XS_API int cuGetProcAddress(const char *symbol, void **fn, int version, uint64_t flags);
XS_API int cuGetProcAddress_v2(const char *symbol, void **fn, int version, uint64_t flags,
                               int *status);

/* module.c; of code only what was made for the simulation runs here */
XS_API int cuModuleLoad(void **module, const char *file);
XS_API int cuModuleLoadData(void **module, const void *image);
XS_API int cuModuleLoadDataEx(void **module, const void *image, unsigned count, int *options,
                              void **values);
XS_API int cuModuleUnload(void *module);
XS_API int cuModuleGetFunction(void **function, void *module, const char *name);
XS_API int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *function, int threads,
                                                       size_t shared);
XS_API int cuFuncGetAttribute(int *value, int attribute, void *function);
XS_API int cuLaunchKernelEx(const CUlaunchConfig *config, void *function, void **arguments,
                            void **extra);
XS_API int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                          unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                          CUstream stream, void **arguments, void **extra);

#endif
