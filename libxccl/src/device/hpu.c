/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Intel Gaudi through the Synapse API, as its public headers describe it; nobody has run this on a
 * Gaudi. What is different there: a process acquires one device and holds it; there is no default
 * stream, no memory that the host may touch, and no handle for another process's memory; no call
 * says what an address is, but all memory of a device lies in one range; and the host's memory has
 * to be mapped before the device reaches it.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/log.h"
#include "device/runtimes.h"
#include "device/symbols.h"

/* Numbers of synapse_common_types.h. */
enum {
    SYN_SUCCESS = 0,
    SYN_DEVICE_ALREADY_ACQUIRED = 20,
    SYN_BUSY = 22,
    HOST_TO_DRAM = 0,
    DRAM_TO_HOST = 1,
    DRAM_TO_DRAM = 2,
    MAX_DEVICES = 16, /* of one host */
    NAME_BYTES = 256,
};

/* The same in every release that has synDeviceGetInfoV2. */
struct syn_device_info {
    uint64_t sram_base;
    uint64_t dram_base;
    uint32_t sram_bytes;
    uint64_t dram_bytes;
    uint64_t tpc_mask;
    uint8_t  dram_enabled;
    uint32_t device_id;
    uint32_t fd;
    int      device_type;
    uint8_t  device_index;
    uint64_t hbm_base;
    uint64_t reserved[8]; /* should a release append to it */
};

#define SYN_FUNCTIONS(X)                                                                           \
    X(initialize, "synInitialize", (void))                                                         \
    X(device_acquire, "synDeviceAcquire", (uint32_t *, const char *))                              \
    X(device_info, "synDeviceGetInfoV2", (uint32_t, struct syn_device_info *))                     \
    X(device_name, "synDeviceGetName", (char *, int, uint32_t))                                    \
    X(device_bus_id, "synDeviceGetPCIBusId", (char *, int, uint32_t))                              \
    X(stream_create, "synStreamCreateGeneric", (void **, uint32_t, uint32_t))                      \
    X(stream_destroy, "synStreamDestroy", (void *))                                                \
    X(stream_query, "synStreamQuery", (void *))                                                    \
    X(stream_sync, "synStreamSynchronize", (void *))                                               \
    X(event_create, "synEventCreate", (void **, uint32_t, uint32_t))                               \
    X(event_destroy, "synEventDestroy", (void *))                                                  \
    X(event_record, "synEventRecord", (void *, void *))                                            \
    X(event_query, "synEventQuery", (void *))                                                      \
    X(copy_async, "synMemCopyAsync", (void *, uint64_t, uint64_t, uint64_t, int))                  \
    X(set_async, "synMemsetD8Async", (uint64_t, unsigned char, size_t, void *))                    \
    X(mem_alloc, "synDeviceMalloc", (uint32_t, uint64_t, uint64_t, uint32_t, uint64_t *))          \
    X(mem_free, "synDeviceFree", (uint32_t, uint64_t, uint32_t))                                   \
    X(host_alloc, "synHostMalloc", (uint32_t, uint64_t, uint32_t, void **))                        \
    X(host_free, "synHostFree", (uint32_t, const void *, uint32_t))                                \
    X(host_map, "synHostMap", (uint32_t, uint64_t, const void *))                                  \
    X(host_unmap, "synHostUnmap", (uint32_t, const void *))

typedef int synStatus;

static struct {
#define FIELD(name, symbol, args) synStatus(*name) args;
    SYN_FUNCTIONS(FIELD)
#undef FIELD
} syn;

static const struct xc_symbol symbols[] = {
#define ROW(name, symbol, args) {symbol, offsetof(__typeof__(syn), name)},
    SYN_FUNCTIONS(ROW)
#undef ROW
};
static const char *const sonames[] = {"libSynapse.so", NULL};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool            loaded;   /* atomic */
static bool            acquired; /* atomic; the rest is written before */
static uint32_t        the_device;
static uint64_t        dram_base, dram_bytes;

/* Host memory that this file allocated, and that is mapped therefore. */
struct mapped {
    struct mapped *next;
    const char    *base;
    size_t         bytes;
};
static struct mapped *mappings;

static xcclResult_t failed(synStatus res, const char *what)
{
    return xc_fail(xcclUnhandledDeviceError, "%s failed (synStatus %d)", what, (int)res);
}

#define CHECK(call, what)                                                                          \
    do {                                                                                           \
        synStatus check_res = (call);                                                              \
        if (check_res != SYN_SUCCESS) {                                                            \
            return failed(check_res, what);                                                        \
        }                                                                                          \
    } while (0)

/* With the lock held. */
static bool open_library(bool only_loaded, const char **missing_p)
{
    if (!__atomic_load_n(&loaded, __ATOMIC_ACQUIRE) &&
        xc_symbols_open(sonames, only_loaded, symbols, sizeof(symbols) / sizeof(symbols[0]), &syn,
                        missing_p)) {
        __atomic_store_n(&loaded, true, __ATOMIC_RELEASE);
    }
    return __atomic_load_n(&loaded, __ATOMIC_ACQUIRE);
}

/* With the lock held: which device has the program acquired? Others are not known to it. */
static bool find_device(void)
{
    for (uint32_t i = 0; i < MAX_DEVICES; i++) {
        struct syn_device_info info = {.dram_bytes = 0};
        if ((syn.device_info(i, &info) == SYN_SUCCESS) && (info.dram_bytes > 0)) {
            the_device = i;
            dram_base = info.dram_base;
            dram_bytes = info.dram_bytes;
            __atomic_store_n(&acquired, true, __ATOMIC_RELEASE);
            return true;
        }
    }
    return false;
}

/* The library may be there long before the program acquires a device. */
static bool hpu_active(void)
{
    static unsigned long long seen_generation; /* atomic */
    const char               *missing = NULL;

    if (__atomic_load_n(&acquired, __ATOMIC_ACQUIRE)) {
        return true;
    }
    unsigned long long generation = xc_symbols_generation();
    if (!__atomic_load_n(&loaded, __ATOMIC_ACQUIRE) &&
        (generation == __atomic_load_n(&seen_generation, __ATOMIC_ACQUIRE))) {
        return false;
    }
    pthread_mutex_lock(&lock);
    bool found = open_library(true, &missing);
    if (!found) {
        if (missing != NULL) {
            xc_warn("libSynapse.so lacks %s: Gaudi memory is not recognised", missing);
        }
        __atomic_store_n(&seen_generation, generation, __ATOMIC_RELEASE);
    }
    found = found && find_device();
    pthread_mutex_unlock(&lock);
    return found;
}

bool xc_hpu_loaded(void)
{
    return __atomic_load_n(&loaded, __ATOMIC_ACQUIRE);
}

xcclResult_t xc_hpu_start(void)
{
    const char *missing = NULL;
    uint32_t    device;

    pthread_mutex_lock(&lock);
    bool found = open_library(false, &missing);
    pthread_mutex_unlock(&lock);
    if (!found) {
        return xc_fail(xcclLibraryNotFound, "libSynapse.so %s%s",
                       (missing != NULL) ? "lacks " : "was not found: no Gaudi software here",
                       (missing != NULL) ? missing : "");
    }
    (void)syn.initialize(); /* a program that did it already gets an error that means nothing */
    synStatus res = syn.device_acquire(&device, NULL);
    if ((res != SYN_SUCCESS) && (res != SYN_DEVICE_ALREADY_ACQUIRED)) {
        return failed(res, "synDeviceAcquire");
    }
    return hpu_active() ? xcclSuccess
                        : xc_fail(xcclUnhandledDeviceError, "Synapse names no acquired device");
}

static bool on_device(const void *ptr)
{
    return (uint64_t)(uintptr_t)ptr - dram_base < dram_bytes;
}

static struct xc_mem_info hpu_mem_query(const void *ptr)
{
    return on_device(ptr) ? (struct xc_mem_info){.kind = XC_MEM_DEVICE, .device = (int)the_device}
                          : (struct xc_mem_info){.kind = XC_MEM_HOST, .device = -1};
}

static bool hpu_mem_make_synchronous(const void *ptr)
{
    (void)ptr;
    return false;
}

static xcclResult_t hpu_count(int *count_p)
{
    *count_p = (int)the_device + 1; /* only what the process has acquired has a number */
    return xcclSuccess;
}

static xcclResult_t hpu_current(int *device_p)
{
    *device_p = (int)the_device;
    return xcclSuccess;
}

static xcclResult_t hpu_enter(int device, void **saved_p)
{
    *saved_p = NULL;
    return (device == (int)the_device)
               ? xcclSuccess
               : xc_fail(xcclInvalidArgument, "device %d was not acquired by this process", device);
}

static void hpu_leave(void *saved)
{
    (void)saved;
}

static xcclResult_t hpu_name_of(int device, char *buf, size_t len)
{
    CHECK(syn.device_name(buf, (int)len, (uint32_t)device), "synDeviceGetName");
    return xcclSuccess;
}

static xcclResult_t hpu_bus_id_of(int device, char *buf, size_t len)
{
    char id[NAME_BYTES];

    CHECK(syn.device_bus_id(id, sizeof(id), (uint32_t)device), "synDeviceGetPCIBusId");
    snprintf(buf, len, "%s", id);
    return xcclSuccess;
}

/* Synapse has none: the host and the place on its bus tell one device from all others. */
static xcclResult_t hpu_uuid_of(int device, unsigned char uuid[XC_DEVICE_UUID_BYTES])
{
    char         bus[NAME_BYTES], host[NAME_BYTES] = "";
    uint64_t     place = 0;
    xcclResult_t res = hpu_bus_id_of(device, bus, sizeof(bus));

    if (res != xcclSuccess) {
        return res;
    }
    (void)gethostname(host, sizeof(host) - 1);
    uint64_t hash = xc_hash_text(XC_HASH_BEGIN, host);
    for (const char *p = bus; *p != '\0'; p++) {
        place = place * 31 + (unsigned char)*p;
    }
    memcpy(uuid, &hash, sizeof(hash));
    memcpy(uuid + sizeof(hash), &place, sizeof(place));
    return xcclSuccess;
}

static xcclResult_t not_there(const char *what)
{
    return xc_fail(xcclUnsupported, "Gaudi has no %s", what);
}

static xcclResult_t hpu_multiprocessors_of(int device, int *count_p)
{
    (void)device;
    (void)count_p;
    return not_there("kernels of xccl's");
}

static xcclResult_t hpu_stream_create(xcclStream_t *stream_p)
{
    CHECK(syn.stream_create(stream_p, the_device, 0), "synStreamCreateGeneric");
    return xcclSuccess;
}

static xcclResult_t hpu_stream_destroy(xcclStream_t stream)
{
    CHECK(syn.stream_destroy(stream), "synStreamDestroy");
    return xcclSuccess;
}

static xcclResult_t query_result(synStatus res, const char *what)
{
    if (res == SYN_BUSY) {
        return xcclInProgress;
    }
    CHECK(res, what);
    return xcclSuccess;
}

static xcclResult_t hpu_stream_query(xcclStream_t stream)
{
    return query_result(syn.stream_query(stream), "work on a stream");
}

static xcclResult_t hpu_stream_sync(xcclStream_t stream)
{
    CHECK(syn.stream_sync(stream), "work on a stream");
    return xcclSuccess;
}

/* There is no default stream. */
static xcclResult_t hpu_stream_after_default(xcclStream_t stream)
{
    (void)stream;
    return xcclSuccess;
}

static xcclResult_t hpu_event_create(void **event_p)
{
    CHECK(syn.event_create(event_p, the_device, 0), "synEventCreate");
    return xcclSuccess;
}

static xcclResult_t hpu_event_destroy(void *event)
{
    CHECK(syn.event_destroy(event), "synEventDestroy");
    return xcclSuccess;
}

static xcclResult_t hpu_event_record(void *event, xcclStream_t stream)
{
    CHECK(syn.event_record(event, stream), "synEventRecord");
    return xcclSuccess;
}

static xcclResult_t hpu_event_query(void *event)
{
    return query_result(syn.event_query(event), "work before an event");
}

static bool is_mapped(const void *ptr, size_t bytes)
{
    const char *p = ptr;
    bool        found = false;

    pthread_mutex_lock(&lock);
    for (const struct mapped *m = mappings; (m != NULL) && !found; m = m->next) {
        found =
            (p >= m->base) && (bytes <= m->bytes) && (p - m->base <= (ptrdiff_t)(m->bytes - bytes));
    }
    pthread_mutex_unlock(&lock);
    return found;
}

static xcclResult_t copy(void *dst, const void *src, size_t bytes, int direction,
                         xcclStream_t stream)
{
    CHECK(syn.copy_async(stream, (uint64_t)(uintptr_t)src, bytes, (uint64_t)(uintptr_t)dst,
                         direction),
          "synMemCopyAsync");
    return xcclSuccess;
}

/*
 * Memory of the program's own is mapped for the one copy, which waits until it is done: another
 * thread may map the same page meanwhile. The pools' memory is mapped from the beginning.
 */
static xcclResult_t hpu_copy_async(void *dst, const void *src, size_t bytes, xcclStream_t stream)
{
    bool        to_device = on_device(dst), from_device = on_device(src);
    const void *host = to_device ? src : dst;

    if (bytes == 0) {
        return xcclSuccess;
    }
    if (to_device && from_device) {
        return copy(dst, src, bytes, DRAM_TO_DRAM, stream);
    }
    if (!to_device && !from_device) {
        return xc_fail(xcclInvalidArgument, "a copy on a Gaudi's stream has no side on the device");
    }
    int direction = to_device ? HOST_TO_DRAM : DRAM_TO_HOST;
    if (is_mapped(host, bytes)) {
        return copy(dst, src, bytes, direction, stream);
    }
    CHECK(syn.host_map(the_device, bytes, host), "synHostMap");
    xcclResult_t res = copy(dst, src, bytes, direction, stream);
    xcclResult_t end = hpu_stream_sync(stream);
    (void)syn.host_unmap(the_device, host);
    return (res != xcclSuccess) ? res : end;
}

/* Row by row: its call for several copies takes the same rows one by one. */
static xcclResult_t hpu_copy_2d_async(void *dst, size_t dst_pitch, const void *src,
                                      size_t src_pitch, size_t width, size_t height,
                                      xcclStream_t stream)
{
    xcclResult_t res = xcclSuccess;

    for (size_t i = 0; (i < height) && (res == xcclSuccess); i++) {
        res = hpu_copy_async((char *)dst + i * dst_pitch, (const char *)src + i * src_pitch, width,
                             stream);
    }
    return res;
}

static xcclResult_t hpu_set_async(void *dst, int byte, size_t bytes, xcclStream_t stream)
{
    CHECK(syn.set_async((uint64_t)(uintptr_t)dst, (unsigned char)byte, bytes, stream),
          "synMemsetD8Async");
    return xcclSuccess;
}

static xcclResult_t hpu_mem_alloc(void **ptr_p, size_t bytes)
{
    uint64_t address;

    CHECK(syn.mem_alloc(the_device, bytes, 0, 0, &address), "synDeviceMalloc");
    *ptr_p = (void *)(uintptr_t)address;
    return xcclSuccess;
}

static xcclResult_t hpu_mem_free(void *ptr)
{
    CHECK(syn.mem_free(the_device, (uint64_t)(uintptr_t)ptr, 0), "synDeviceFree");
    return xcclSuccess;
}

static xcclResult_t hpu_host_alloc(void **ptr_p, size_t bytes)
{
    struct mapped *m = malloc(sizeof(*m));
    void          *ptr;

    if (m == NULL) {
        return xc_fail(xcclSystemError, "out of host memory");
    }
    synStatus res = syn.host_alloc(the_device, bytes, 0, &ptr);
    if (res != SYN_SUCCESS) {
        free(m);
        return failed(res, "synHostMalloc");
    }
    *m = (struct mapped){.base = ptr, .bytes = bytes};
    pthread_mutex_lock(&lock);
    m->next = mappings;
    mappings = m;
    pthread_mutex_unlock(&lock);
    *ptr_p = ptr;
    return xcclSuccess;
}

static xcclResult_t hpu_host_free(void *ptr)
{
    struct mapped *gone = NULL;

    pthread_mutex_lock(&lock);
    for (struct mapped **link = &mappings; (*link != NULL) && (gone == NULL);) {
        if ((*link)->base == (const char *)ptr) {
            gone = *link;
            *link = gone->next;
        } else {
            link = &(*link)->next;
        }
    }
    pthread_mutex_unlock(&lock);
    free(gone);
    CHECK(syn.host_free(the_device, ptr, 0), "synHostFree");
    return xcclSuccess;
}

static size_t hpu_mem_left(const void *ptr)
{
    (void)ptr;
    return 0;
}

static xcclResult_t hpu_ipc_export(const void *ptr, struct xc_ipc *ipc_p)
{
    (void)ptr;
    (void)ipc_p;
    return not_there("memory that processes share");
}

static xcclResult_t hpu_ipc_open(const struct xc_ipc *ipc, void **base_p)
{
    (void)ipc;
    (void)base_p;
    return not_there("memory that processes share");
}

static xcclResult_t hpu_ipc_close(void *base)
{
    (void)base;
    return not_there("memory that processes share");
}

static xcclResult_t hpu_module_load(void **module_p, const void *image)
{
    (void)module_p;
    (void)image;
    return not_there("kernels of xccl's");
}

static xcclResult_t hpu_module_function(void **function_p, void *module, const char *name)
{
    (void)function_p;
    (void)module;
    (void)name;
    return not_there("kernels of xccl's");
}

static xcclResult_t hpu_launch(void *function, const unsigned grid[2], unsigned threads,
                               const void *arguments, xcclStream_t stream)
{
    (void)function;
    (void)grid;
    (void)threads;
    (void)arguments;
    (void)stream;
    return not_there("kernels of xccl's");
}

const struct xc_device_ops xc_hpu_ops = {
    .name = "hpu",
    .active = hpu_active,
    .mem_query = hpu_mem_query,
    .mem_make_synchronous = hpu_mem_make_synchronous,
    .count = hpu_count,
    .current = hpu_current,
    .enter = hpu_enter,
    .leave = hpu_leave,
    .name_of = hpu_name_of,
    .uuid_of = hpu_uuid_of,
    .bus_id_of = hpu_bus_id_of,
    .multiprocessors_of = hpu_multiprocessors_of,
    .stream_create = hpu_stream_create,
    .stream_create_urgent = hpu_stream_create,
    .stream_destroy = hpu_stream_destroy,
    .stream_query = hpu_stream_query,
    .stream_sync = hpu_stream_sync,
    .stream_after_default = hpu_stream_after_default,
    .event_create = hpu_event_create,
    .event_destroy = hpu_event_destroy,
    .event_record = hpu_event_record,
    .event_query = hpu_event_query,
    .copy_async = hpu_copy_async,
    .copy_2d_async = hpu_copy_2d_async,
    .set_async = hpu_set_async,
    .mem_alloc = hpu_mem_alloc,
    .mem_free = hpu_mem_free,
    .host_alloc = hpu_host_alloc,
    .host_free = hpu_host_free,
    .mem_left = hpu_mem_left,
    .ipc_export = hpu_ipc_export,
    .ipc_open = hpu_ipc_open,
    .ipc_close = hpu_ipc_close,
    .mem_reachable = on_device,
    .module_load = hpu_module_load,
    .module_function = hpu_module_function,
    .launch = hpu_launch,
};
