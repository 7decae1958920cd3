/* SPDX-License-Identifier: BSD-3-Clause */
/* The driver's functions that CUDA's files share, and what these files have of each other. */
#ifndef XC_DEVICE_CUDA_H
#define XC_DEVICE_CUDA_H

#include "device/device.h"

/* The names that are not ours are those of the driver's own header. */
enum { CUDA_SUCCESS = 0 };

typedef int       CUresult;
typedef int       CUdevice;
typedef void     *CUcontext;
typedef uintptr_t CUdeviceptr;
typedef void     *CUstream;
typedef void     *CUevent;
typedef struct {
    unsigned char reserved[64];
} CUipcMemHandle;

struct xc_cuda_copy_2d; /* in cuda.c */

/* result, function, symbol, arguments */
#define XC_CUDA_FUNCTIONS(X)                                                                       \
    X(init, "cuInit", (unsigned))                                                                  \
    X(device_count, "cuDeviceGetCount", (int *))                                                   \
    X(device_get, "cuDeviceGet", (CUdevice *, int))                                                \
    X(primary_retain, "cuDevicePrimaryCtxRetain", (CUcontext *, CUdevice))                         \
    X(primary_state, "cuDevicePrimaryCtxGetState", (CUdevice, unsigned *, int *))                  \
    X(ctx_get, "cuCtxGetCurrent", (CUcontext *))                                                   \
    X(ctx_device, "cuCtxGetDevice", (CUdevice *))                                                  \
    X(ctx_push, "cuCtxPushCurrent_v2", (CUcontext))                                                \
    X(ctx_pop, "cuCtxPopCurrent_v2", (CUcontext *))                                                \
    X(pointer_attributes, "cuPointerGetAttributes", (unsigned, int *, void **, CUdeviceptr))       \
    X(pointer_set, "cuPointerSetAttribute", (const void *, int, CUdeviceptr))                      \
    X(stream_create, "cuStreamCreate", (CUstream *, unsigned))                                     \
    X(stream_priorities, "cuCtxGetStreamPriorityRange", (int *, int *))                            \
    X(stream_create_first, "cuStreamCreateWithPriority", (CUstream *, unsigned, int))              \
    X(stream_destroy, "cuStreamDestroy_v2", (CUstream))                                            \
    X(stream_query, "cuStreamQuery", (CUstream))                                                   \
    X(stream_sync, "cuStreamSynchronize", (CUstream))                                              \
    X(stream_captures, "cuStreamIsCapturing", (CUstream, int *))                                   \
    X(exchange_mode, "cuThreadExchangeStreamCaptureMode", (int *))                                 \
    X(stream_wait, "cuStreamWaitEvent", (CUstream, CUevent, unsigned))                             \
    X(event_create, "cuEventCreate", (CUevent *, unsigned))                                        \
    X(event_destroy, "cuEventDestroy_v2", (CUevent))                                               \
    X(event_record, "cuEventRecord", (CUevent, CUstream))                                          \
    X(event_query, "cuEventQuery", (CUevent))                                                      \
    X(copy_async, "cuMemcpyAsync", (CUdeviceptr, CUdeviceptr, size_t, CUstream))                   \
    X(copy_2d_async, "cuMemcpy2DAsync_v2", (const struct xc_cuda_copy_2d *, CUstream))             \
    X(set_async, "cuMemsetD8Async", (CUdeviceptr, unsigned char, size_t, CUstream))                \
    X(mem_alloc, "cuMemAlloc_v2", (CUdeviceptr *, size_t))                                         \
    X(mem_free, "cuMemFree_v2", (CUdeviceptr))                                                     \
    X(host_alloc, "cuMemHostAlloc", (void **, size_t, unsigned))                                   \
    X(host_free, "cuMemFreeHost", (void *))                                                        \
    X(host_pin, "cuMemHostRegister_v2", (void *, size_t, unsigned))                                \
    X(host_unpin, "cuMemHostUnregister", (void *))                                                 \
    X(mem_range, "cuMemGetAddressRange_v2", (CUdeviceptr *, size_t *, CUdeviceptr))                \
    X(ipc_export, "cuIpcGetMemHandle", (CUipcMemHandle *, CUdeviceptr))                            \
    X(ipc_open, "cuIpcOpenMemHandle_v2", (CUdeviceptr *, CUipcMemHandle, unsigned))                \
    X(ipc_close, "cuIpcCloseMemHandle", (CUdeviceptr))                                             \
    X(module_load, "cuModuleLoadData", (void **, const void *))                                    \
    X(module_function, "cuModuleGetFunction", (void **, void *, const char *))                     \
    X(launch, "cuLaunchKernel",                                                                    \
      (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,     \
       void **, void **))                                                                          \
    X(error_string, "cuGetErrorString", (CUresult, const char **))

struct xc_cuda_driver {
#define FIELD(name, symbol, args) CUresult(*name) args;
    XC_CUDA_FUNCTIONS(FIELD)
#undef FIELD
};

/* cuda.c */
extern struct xc_cuda_driver xc_cuda; /* filled once the library is loaded */

/* The failure of a call, with the driver's text for it. */
xcclResult_t xc_cuda_failed(CUresult res, const char *what);

#define XC_CUDA_CHECK(call, what)                                                                  \
    do {                                                                                           \
        CUresult check_res = (call);                                                               \
        if (check_res != CUDA_SUCCESS) {                                                           \
            return xc_cuda_failed(check_res, what);                                                \
        }                                                                                          \
    } while (0)

/* What is called between these two touches nothing that is captured. */
int  xc_cuda_relax(void);
void xc_cuda_restore(int mode);

/* XC_CUDA_CHECK() of a call that a capture may forbid. */
#define XC_CUDA_CHECK_RELAXED(call, what)                                                          \
    do {                                                                                           \
        int      check_mode = xc_cuda_relax();                                                     \
        CUresult relaxed_res = (call);                                                             \
        xc_cuda_restore(check_mode);                                                               \
        XC_CUDA_CHECK(relaxed_res, what);                                                          \
    } while (0)

unsigned xc_cuda_resets(int device, bool look);

/* cuda_memory.c */
struct xc_mem_info xc_cuda_mem_query(const void *ptr);
bool               xc_cuda_mem_make_synchronous(const void *ptr);
xcclResult_t       xc_cuda_mem_alloc(void **ptr_p, size_t bytes);
xcclResult_t       xc_cuda_mem_free(void *ptr);
xcclResult_t       xc_cuda_host_alloc(void **ptr_p, size_t bytes);
xcclResult_t       xc_cuda_host_free(void *ptr);
size_t             xc_cuda_mem_left(const void *ptr);
bool               xc_cuda_mem_allocation(const void *ptr, struct xc_allocation *allocation_p);
xcclResult_t       xc_cuda_ipc_export(const void *ptr, struct xc_ipc *ipc_p);
xcclResult_t       xc_cuda_ipc_open(const struct xc_ipc *ipc, void **base_p);
xcclResult_t       xc_cuda_ipc_close(void *base);
bool               xc_cuda_mem_reachable(const void *ptr);
xcclResult_t       xc_cuda_host_unpin(void *ptr);
xcclResult_t       xc_cuda_host_pin(void *ptr, size_t bytes);

/* cuda_early.c */
bool         xc_cuda_waits_itself(void *function);
xcclResult_t xc_cuda_launch_early(void *function, const unsigned grid[2], unsigned threads,
                                  const void *arguments, xcclStream_t stream);

/* cuda_repeat.c */
xcclResult_t xc_cuda_repeat_create(void **repeat_p, void *function, const void *arguments,
                                   size_t bytes, xcclStream_t stream);
xcclResult_t xc_cuda_repeat_launch(void *repeat, const unsigned grid[2], unsigned threads,
                                   const void *arguments, const void *next);
void         xc_cuda_repeat_destroy(void *repeat);

/* cuda_names.c */
xcclResult_t xc_cuda_name_of(int device, char *buf, size_t len);
xcclResult_t xc_cuda_uuid_of(int device, unsigned char uuid[XC_DEVICE_UUID_BYTES]);
xcclResult_t xc_cuda_bus_id_of(int device, char *buf, size_t len);

/* cuda_room.c */
xcclResult_t xc_cuda_multiprocessors_of(int device, int *count_p);
bool         xc_cuda_runs_processes_at_once(int device);
bool         xc_cuda_managed_is_exclusive(int device);
xcclResult_t xc_cuda_blocks_at_once(int device, void *function, unsigned threads, int *count_p);

#endif
