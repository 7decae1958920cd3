/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory as HIP tells of it, gives it and lets other processes map it. */
#include <string.h>

#include "base/log.h"
#include "device/hip.h"
#include "device/hip_signs.h"
#include "device/symbols.h"

/* Numbers of hip_runtime_api.h. */
enum {
    HIP_HOST_MALLOC_PORTABLE = 1,
    HIP_HOST_MALLOC_MAPPED = 2,
    HIP_HOST_MALLOC_COHERENT = 0x40000000,
    HIP_MALLOC_FINE_GRAINED = 1,
    HIP_MALLOC_UNCACHED = 3,
    HIP_POINTER_ATTRIBUTE_BUFFER_ID = 7,
    HIP_IPC_MEM_LAZY_ENABLE_PEER_ACCESS = 1,
    HIP_FIRST_VERSION_6 = 60000000,
};

/* The same layout in every release; the meaning of `type` changed with ROCm 6. */
struct xc_hip_pointer_attributes {
    int      type;
    int      device;
    void    *device_pointer;
    void    *host_pointer;
    int      is_managed;
    unsigned flags;
};

static bool old_memory_types; /* numbering before ROCm 6 */

/* In the order of a stream, and so without waiting for others. */
static struct {
    hipError_t (*alloc)(void **, size_t, void *);
    hipError_t (*free)(void *, void *);
} pool;
static const struct xc_symbol pool_symbols[] = {
    {"hipMallocAsync", offsetof(__typeof__(pool), alloc)},
    {"hipFreeAsync", offsetof(__typeof__(pool), free)},
};

/* For what other devices write to meanwhile. */
static struct {
    hipError_t (*alloc)(void **, size_t, unsigned);
} shared;
static const struct xc_symbol shared_symbol[] = {{"hipExtMallocWithFlags", 0}};

void xc_hip_memory_open(const char *const *sonames)
{
    const char *unused;
    int         version = 0;

    if (!xc_symbols_open(sonames, true, pool_symbols,
                         sizeof(pool_symbols) / sizeof(pool_symbols[0]), &pool, &unused)) {
        pool.alloc = NULL;
    }
    if (!xc_symbols_open(sonames, true, shared_symbol, 1, &shared, &unused)) {
        shared.alloc = NULL;
    }
    if (xc_hip.runtime_version(&version) == HIP_SUCCESS) {
        old_memory_types = (version < HIP_FIRST_VERSION_6);
    }
}

static unsigned id_of(void *ptr)
{
    unsigned long long id = 0; /* HIP sets 32 bits of it */
    hipError_t         before = xc_hip.peek_error();

    if (xc_hip.pointer_attribute(&id, HIP_POINTER_ATTRIBUTE_BUFFER_ID, ptr) != HIP_SUCCESS) {
        if (before == HIP_SUCCESS) {
            xc_hip.take_error();
        }
        return 0;
    }
    return (unsigned)id;
}

unsigned xc_hip_resets(int device, bool look)
{
    return xc_hip_sign_resets(device, look ? id_of : NULL);
}

/* New memory of ours, on the device entered. */
static bool make_sign(void *ptr, xcclStream_t stream)
{
    int device;

    return (xc_hip.device_get(&device) == HIP_SUCCESS) &&
           xc_hip_sign_add(device, ptr, id_of(ptr), stream);
}

/* A stream may be all that there is of ours. */
void xc_hip_give_sign_to(xcclStream_t stream)
{
    void *ptr = NULL;

    if (pool.alloc == NULL) {
        return;
    }
    int mode = xc_hip_relax();
    if (pool.alloc(&ptr, 1, stream) != HIP_SUCCESS) {
        xc_hip.take_error();
    } else if (!make_sign(ptr, stream)) {
        pool.free(ptr, stream);
    }
    xc_hip_restore(mode);
}

void xc_hip_take_sign_from(xcclStream_t stream)
{
    void *ptr = xc_hip_sign_take(stream);

    if ((ptr != NULL) && (pool.free(ptr, stream) != HIP_SUCCESS)) {
        xc_hip.take_error();
    }
}

struct xc_mem_info xc_hip_mem_query(const void *ptr)
{
    struct xc_hip_pointer_attributes attr = {0};
    struct xc_mem_info               info = {.kind = XC_MEM_HOST, .device = -1};
    hipError_t                       before = xc_hip.peek_error();

    if (xc_hip.pointer_attributes(&attr, ptr) != HIP_SUCCESS) {
        if (before == HIP_SUCCESS) {
            xc_hip.take_error(); /* host memory that HIP does not know is an error to it */
        }
        return info;
    }
    int device_type = old_memory_types ? 1 : 2;
    if (attr.is_managed != 0) {
        info.kind = XC_MEM_MANAGED;
        info.device = attr.device;
    } else if (attr.type == device_type) {
        info.kind = XC_MEM_DEVICE;
        info.device = attr.device;
        xc_hip_resets(attr.device, true); /* before anything of ours there is used for it */
    }
    return info;
}

/* ROCm has no such flag that holds for every kind of memory. */
bool xc_hip_mem_make_synchronous(const void *ptr)
{
    (void)ptr;
    return false;
}

xcclResult_t xc_hip_mem_alloc(void **ptr_p, size_t bytes)
{
    XC_HIP_CHECK_RELAXED(xc_hip.mem_alloc(ptr_p, bytes), "hipMalloc");
    make_sign(*ptr_p, NULL);
    return xcclSuccess;
}

/*
 * What hipMalloc gives is coarse-grained: a kernel that runs may never see what another device has
 * written there since. Uncached memory is what ROCm's own libraries take; older releases know the
 * fine-grained one alone, and some cannot export the other.
 */
static bool alloc_shared(void **ptr_p, size_t bytes, unsigned flags)
{
    hipIpcMemHandle_t handle;

    if (shared.alloc(ptr_p, bytes, flags) == HIP_SUCCESS) {
        if (xc_hip.ipc_export(&handle, *ptr_p) == HIP_SUCCESS) {
            return true;
        }
        xc_hip.mem_free(*ptr_p);
    }
    xc_hip.take_error();
    return false;
}

xcclResult_t xc_hip_mem_alloc_shared(void **ptr_p, size_t bytes)
{
    bool made = false;

    if (shared.alloc != NULL) {
        int mode = xc_hip_relax();
        made = alloc_shared(ptr_p, bytes, HIP_MALLOC_UNCACHED) ||
               alloc_shared(ptr_p, bytes, HIP_MALLOC_FINE_GRAINED);
        xc_hip_restore(mode);
    }
    if (made) {
        make_sign(*ptr_p, NULL);
        return xcclSuccess;
    }
    return xc_fail(xcclUnhandledDeviceError,
                   "HIP gives no %zu bytes that several devices may use at the same time", bytes);
}

xcclResult_t xc_hip_mem_free(void *ptr)
{
    xc_hip_sign_remove(ptr);
    XC_HIP_CHECK_RELAXED(xc_hip.mem_free(ptr), "hipFree");
    return xcclSuccess;
}

xcclResult_t xc_hip_host_alloc(void **ptr_p, size_t bytes)
{
    /* Portable alone is coarse-grained: what host and kernel write while it runs might not be seen.
     */
    unsigned flags = HIP_HOST_MALLOC_PORTABLE | HIP_HOST_MALLOC_MAPPED | HIP_HOST_MALLOC_COHERENT;

    XC_HIP_CHECK_RELAXED(xc_hip.host_alloc(ptr_p, bytes, flags), "hipHostMalloc");
    make_sign(*ptr_p, NULL);
    return xcclSuccess;
}

xcclResult_t xc_hip_host_free(void *ptr)
{
    xc_hip_sign_remove(ptr);
    XC_HIP_CHECK_RELAXED(xc_hip.host_free(ptr), "hipHostFree");
    return xcclSuccess;
}

size_t xc_hip_mem_left(const void *ptr)
{
    void  *base;
    size_t bytes;

    return (xc_hip.mem_range(&base, &bytes, (void *)(uintptr_t)ptr) == HIP_SUCCESS)
               ? (size_t)((uintptr_t)base + bytes - (uintptr_t)ptr)
               : 0;
}

/* Handles come again with an address. Where HIP does not number allocations, nothing is shared. */
xcclResult_t xc_hip_ipc_export(const void *ptr, struct xc_ipc *ipc_p)
{
    enum { REFUSED = 16 };
    /* Numbers of memory that the runtime did not export, as of pools: it is not asked again. */
    static __thread unsigned long long refused[REFUSED];
    struct xc_ipc                      made;
    unsigned long long                 id = 0; /* HIP sets 32 bits of it */
    hipIpcMemHandle_t                  handle;
    void                              *base;
    size_t                             bytes;

    XC_HIP_CHECK(
        xc_hip.pointer_attribute(&id, HIP_POINTER_ATTRIBUTE_BUFFER_ID, (void *)(uintptr_t)ptr),
        "hipPointerGetAttribute");
    if ((id != 0) && (refused[id % REFUSED] == id)) {
        return xc_fail(xcclUnsupported, "memory that HIP has refused to share before");
    }
    XC_HIP_CHECK(xc_hip.mem_range(&base, &bytes, (void *)(uintptr_t)ptr), "hipMemGetAddressRange");
    int        mode = xc_hip_relax();
    hipError_t res = xc_hip.ipc_export(&handle, base);
    xc_hip_restore(mode);
    refused[id % REFUSED] = (res != HIP_SUCCESS) ? id : 0;
    XC_HIP_CHECK(res, "hipIpcGetMemHandle");
    memcpy(made.handle, handle.reserved, sizeof(made.handle));
    made.id = id;
    made.base = (uint64_t)(uintptr_t)base;
    made.bytes = bytes;
    *ipc_p = made;
    return xcclSuccess;
}

xcclResult_t xc_hip_ipc_open(const struct xc_ipc *ipc, void **base_p)
{
    hipIpcMemHandle_t handle;
    void             *base = NULL;

    memcpy(handle.reserved, ipc->handle, sizeof(handle.reserved));
    XC_HIP_CHECK_RELAXED(xc_hip.ipc_open(&base, handle, HIP_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
                         "hipIpcOpenMemHandle");
    *base_p = base;
    return xcclSuccess;
}

xcclResult_t xc_hip_ipc_close(void *base)
{
    XC_HIP_CHECK_RELAXED(xc_hip.ipc_close(base), "hipIpcCloseMemHandle");
    return xcclSuccess;
}

bool xc_hip_mem_reachable(const void *ptr)
{
    struct xc_hip_pointer_attributes attributes = {.type = 0};
    hipError_t                       before = xc_hip.peek_error();

    if (xc_hip.pointer_attributes(&attributes, ptr) != HIP_SUCCESS) {
        if (before == HIP_SUCCESS) {
            xc_hip.take_error();
        }
        return false;
    }
    return attributes.device_pointer == ptr;
}
