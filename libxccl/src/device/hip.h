/* SPDX-License-Identifier: BSD-3-Clause */
/* The runtime's functions that HIP's files share, and what these files have of each other. */
#ifndef XC_DEVICE_HIP_H
#define XC_DEVICE_HIP_H

#include "device/device.h"

/* The names that are not ours are those of the runtime's own header. */
enum { HIP_SUCCESS = 0 };

typedef int hipError_t;
typedef struct {
    char reserved[64];
} hipIpcMemHandle_t;

struct xc_hip_pointer_attributes; /* in hip_memory.c */

#define XC_HIP_FUNCTIONS(X)                                                                        \
    X(init, "hipInit", (unsigned))                                                                 \
    X(runtime_version, "hipRuntimeGetVersion", (int *))                                            \
    X(device_count, "hipGetDeviceCount", (int *))                                                  \
    X(device_get, "hipGetDevice", (int *))                                                         \
    X(device_set, "hipSetDevice", (int))                                                           \
    X(device_name, "hipDeviceGetName", (char *, int, int))                                         \
    X(device_uuid, "hipDeviceGetUuid", (unsigned char *, int))                                     \
    X(device_bus_id, "hipDeviceGetPCIBusId", (char *, int, int))                                   \
    X(device_attribute, "hipDeviceGetAttribute", (int *, int, int))                                \
    X(pointer_attributes, "hipPointerGetAttributes",                                               \
      (struct xc_hip_pointer_attributes *, const void *))                                          \
    X(pointer_attribute, "hipPointerGetAttribute", (void *, int, void *))                          \
    X(peek_error, "hipPeekAtLastError", (void))                                                    \
    X(take_error, "hipGetLastError", (void))                                                       \
    X(stream_create, "hipStreamCreateWithFlags", (void **, unsigned))                              \
    X(stream_priorities, "hipDeviceGetStreamPriorityRange", (int *, int *))                        \
    X(stream_create_first, "hipStreamCreateWithPriority", (void **, unsigned, int))                \
    X(stream_destroy, "hipStreamDestroy", (void *))                                                \
    X(stream_query, "hipStreamQuery", (void *))                                                    \
    X(stream_sync, "hipStreamSynchronize", (void *))                                               \
    X(stream_captures, "hipStreamIsCapturing", (void *, int *))                                    \
    X(exchange_mode, "hipThreadExchangeStreamCaptureMode", (int *))                                \
    X(stream_wait, "hipStreamWaitEvent", (void *, void *, unsigned))                               \
    X(event_create, "hipEventCreateWithFlags", (void **, unsigned))                                \
    X(event_destroy, "hipEventDestroy", (void *))                                                  \
    X(event_record, "hipEventRecord", (void *, void *))                                            \
    X(event_query, "hipEventQuery", (void *))                                                      \
    X(copy_async, "hipMemcpyAsync", (void *, const void *, size_t, int, void *))                   \
    X(copy_2d_async, "hipMemcpy2DAsync",                                                           \
      (void *, size_t, const void *, size_t, size_t, size_t, int, void *))                         \
    X(set_async, "hipMemsetAsync", (void *, int, size_t, void *))                                  \
    X(mem_alloc, "hipMalloc", (void **, size_t))                                                   \
    X(mem_free, "hipFree", (void *))                                                               \
    X(host_alloc, "hipHostMalloc", (void **, size_t, unsigned))                                    \
    X(host_free, "hipHostFree", (void *))                                                          \
    X(mem_range, "hipMemGetAddressRange", (void **, size_t *, void *))                             \
    X(ipc_export, "hipIpcGetMemHandle", (hipIpcMemHandle_t *, void *))                             \
    X(ipc_open, "hipIpcOpenMemHandle", (void **, hipIpcMemHandle_t, unsigned))                     \
    X(ipc_close, "hipIpcCloseMemHandle", (void *))                                                 \
    X(module_load, "hipModuleLoadData", (void **, const void *))                                   \
    X(module_function, "hipModuleGetFunction", (void **, void *, const char *))                    \
    X(launch, "hipModuleLaunchKernel",                                                             \
      (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,       \
       void **, void **))

struct xc_hip_runtime {
#define FIELD(name, symbol, args) hipError_t(*name) args;
    XC_HIP_FUNCTIONS(FIELD)
#undef FIELD
};

/* hip.c */
extern struct xc_hip_runtime xc_hip; /* filled once the library is loaded */

/* The failure of a call, with the runtime's text for it. */
xcclResult_t xc_hip_failed(hipError_t res, const char *what);

#define XC_HIP_CHECK(call, what)                                                                   \
    do {                                                                                           \
        hipError_t check_res = (call);                                                             \
        if (check_res != HIP_SUCCESS) {                                                            \
            return xc_hip_failed(check_res, what);                                                 \
        }                                                                                          \
    } while (0)

/* What is called between these two touches nothing that is captured. */
int  xc_hip_relax(void);
void xc_hip_restore(int mode);

/* XC_HIP_CHECK() of a call that a capture may forbid. */
#define XC_HIP_CHECK_RELAXED(call, what)                                                           \
    do {                                                                                           \
        int        check_mode = xc_hip_relax();                                                    \
        hipError_t relaxed_res = (call);                                                           \
        xc_hip_restore(check_mode);                                                                \
        XC_HIP_CHECK(relaxed_res, what);                                                           \
    } while (0)

/* hip_memory.c */
/* What not every release has; once xc_hip is filled, and before anything else is called. */
void xc_hip_memory_open(const char *const *sonames);

/* Of a stream that was made, and of one that is to be destroyed: see hip_signs.h. */
void xc_hip_give_sign_to(xcclStream_t stream);
void xc_hip_take_sign_from(xcclStream_t stream);

unsigned           xc_hip_resets(int device, bool look);
struct xc_mem_info xc_hip_mem_query(const void *ptr);
bool               xc_hip_mem_make_synchronous(const void *ptr);
xcclResult_t       xc_hip_mem_alloc(void **ptr_p, size_t bytes);
xcclResult_t       xc_hip_mem_alloc_shared(void **ptr_p, size_t bytes);
xcclResult_t       xc_hip_mem_free(void *ptr);
xcclResult_t       xc_hip_host_alloc(void **ptr_p, size_t bytes);
xcclResult_t       xc_hip_host_free(void *ptr);
size_t             xc_hip_mem_left(const void *ptr);
xcclResult_t       xc_hip_ipc_export(const void *ptr, struct xc_ipc *ipc_p);
xcclResult_t       xc_hip_ipc_open(const struct xc_ipc *ipc, void **base_p);
xcclResult_t       xc_hip_ipc_close(void *base);
bool               xc_hip_mem_reachable(const void *ptr);

#endif
