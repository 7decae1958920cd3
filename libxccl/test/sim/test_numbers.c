/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The numbers of the simulation's ABI, checked when this file is compiled: against what is written
 * here, and where the vendors' headers are on the include path against those too.
 */
#include <stddef.h>

#include "ccl/ccl.h"
#include "core/core.h"

#if defined(XT_CUDA_HEADER) && __has_include(<cuda.h>)
#include <cuda.h>
#define SAME_CUDA(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)
SAME_CUDA(XS_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE);
SAME_CUDA(XS_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
SAME_CUDA(XS_NOT_INITIALIZED, CUDA_ERROR_NOT_INITIALIZED);
SAME_CUDA(XS_NO_DEVICE, CUDA_ERROR_NO_DEVICE);
SAME_CUDA(XS_INVALID_DEVICE, CUDA_ERROR_INVALID_DEVICE);
SAME_CUDA(XS_INVALID_CONTEXT, CUDA_ERROR_INVALID_CONTEXT);
SAME_CUDA(XS_MAP_FAILED, CUDA_ERROR_MAP_FAILED);
SAME_CUDA(XS_ALREADY_MAPPED, CUDA_ERROR_ALREADY_MAPPED);
SAME_CUDA(XS_OPERATING_SYSTEM, CUDA_ERROR_OPERATING_SYSTEM);
SAME_CUDA(XS_INVALID_HANDLE, CUDA_ERROR_INVALID_HANDLE);
SAME_CUDA(XS_NOT_FOUND, CUDA_ERROR_NOT_FOUND);
SAME_CUDA(XS_NOT_READY, CUDA_ERROR_NOT_READY);
SAME_CUDA(XS_PEER_ACCESS_ALREADY_ENABLED, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
SAME_CUDA(XS_PEER_ACCESS_NOT_ENABLED, CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
SAME_CUDA(XS_CONTEXT_IS_DESTROYED, CUDA_ERROR_CONTEXT_IS_DESTROYED);
SAME_CUDA(XS_HOST_ALREADY_REGISTERED, CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
SAME_CUDA(XS_HOST_NOT_REGISTERED, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
SAME_CUDA(XS_NOT_SUPPORTED, CUDA_ERROR_NOT_SUPPORTED);
SAME_CUDA(XS_SYSTEM_NOT_READY, CUDA_ERROR_SYSTEM_NOT_READY);
SAME_CUDA(XS_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
SAME_CUDA(2, CU_EVENT_DISABLE_TIMING);
SAME_CUDA(4, CU_EVENT_INTERPROCESS);
SAME_CUDA(0, CU_STREAM_WAIT_VALUE_GEQ);
SAME_CUDA(3, CU_STREAM_WAIT_VALUE_NOR);
SAME_CUDA(1, CU_MEMORYTYPE_HOST);
SAME_CUDA(2, CU_MEMORYTYPE_DEVICE);
SAME_CUDA(8, CU_POINTER_ATTRIBUTE_IS_MANAGED);
SAME_CUDA(17, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE);
SAME_CUDA(33, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID);
SAME_CUDA(75, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME_CUDA(64, CU_IPC_HANDLE_SIZE);
SAME_CUDA(8, sizeof(CUdeviceptr));
#endif

#if defined(XT_HIP_HEADER) && __has_include(<hip/hip_runtime_api.h>)
#define __HIP_PLATFORM_AMD__ 1
#include <hip/hip_runtime_api.h>
#define SAME_HIP(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)
SAME_HIP(XS_INVALID_VALUE, hipErrorInvalidValue);
SAME_HIP(XS_OUT_OF_MEMORY, hipErrorOutOfMemory);
SAME_HIP(XS_NOT_INITIALIZED, hipErrorNotInitialized);
SAME_HIP(XS_NO_DEVICE, hipErrorNoDevice);
SAME_HIP(XS_INVALID_DEVICE, hipErrorInvalidDevice);
SAME_HIP(XS_INVALID_CONTEXT, hipErrorInvalidContext);
SAME_HIP(XS_MAP_FAILED, hipErrorMapFailed);
SAME_HIP(XS_OPERATING_SYSTEM, hipErrorOperatingSystem);
SAME_HIP(XS_INVALID_HANDLE, hipErrorInvalidHandle);
SAME_HIP(XS_NOT_FOUND, hipErrorNotFound);
SAME_HIP(XS_NOT_READY, hipErrorNotReady);
SAME_HIP(XS_PEER_ACCESS_ALREADY_ENABLED, hipErrorPeerAccessAlreadyEnabled);
SAME_HIP(XS_PEER_ACCESS_NOT_ENABLED, hipErrorPeerAccessNotEnabled);
SAME_HIP(XS_CONTEXT_IS_DESTROYED, hipErrorContextIsDestroyed);
SAME_HIP(XS_HOST_ALREADY_REGISTERED, hipErrorHostMemoryAlreadyRegistered);
SAME_HIP(XS_HOST_NOT_REGISTERED, hipErrorHostMemoryNotRegistered);
SAME_HIP(XS_NOT_SUPPORTED, hipErrorNotSupported);
SAME_HIP(21, hipErrorInvalidMemcpyDirection);
SAME_HIP(XS_STREAM_NON_BLOCKING, hipStreamNonBlocking);
SAME_HIP(3, hipStreamWaitValueNor);
SAME_HIP(67, hipDeviceAttributePciBusId);
SAME_HIP(87, hipDeviceAttributeWarpSize);
SAME_HIP(10013, hipDeviceAttributeCanUseStreamWaitValue);
SAME_HIP(32, sizeof(hipPointerAttribute_t));
SAME_HIP(24, offsetof(hipPointerAttribute_t, isManaged));
#endif

/* nccl.h, of NCCL 2.28 and RCCL 2.22 alike */
_Static_assert(XS_REMOTE_ERROR == 6, "ncclRemoteError");
_Static_assert(XS_IN_PROGRESS == 7, "ncclInProgress");
_Static_assert(XS_FLOAT16 == 6, "ncclFloat16");
_Static_assert(XS_FLOAT32 == 7, "ncclFloat32");
_Static_assert(XS_FLOAT64 == 8, "ncclFloat64");
_Static_assert(XS_BFLOAT16 == 9, "ncclBfloat16");
_Static_assert(XS_FLOAT8E4M3 == 10, "ncclFloat8e4m3");
_Static_assert(XS_NUM_TYPES == 12, "ncclNumTypes");
_Static_assert((XS_SUM == 0) && (XS_PROD == 1) && (XS_MAX == 2) && (XS_MIN == 3), "ncclRedOp_t");
_Static_assert((XS_AVG == 4) && (XS_NUM_OPS == 5), "ncclRedOp_t");
_Static_assert(XS_ID_BYTES == 128, "NCCL_UNIQUE_ID_BYTES");

/* cuda.h and hip_runtime_api.h */
_Static_assert((XS_NOT_READY == 600) && (XS_NOT_SUPPORTED == 801), "common errors");
_Static_assert((XS_INVALID_HANDLE == 400) && (XS_INVALID_CONTEXT == 201), "common errors");

int main(void)
{
    return 0; /* the compiler has done the work */
}
