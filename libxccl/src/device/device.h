/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device runtimes (CUDA driver API, HIP, Synapse) behind one ops table.
 *
 * Nothing here starts a runtime: a runtime counts as active only once the program itself loaded and
 * initialised it. All functions are thread-safe. Device numbers are the runtime's own.
 */
#ifndef XC_DEVICE_DEVICE_H
#define XC_DEVICE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"

enum xc_mem_kind {
    XC_MEM_HOST,    /* ordinary, pinned or registered host memory */
    XC_MEM_DEVICE,  /* memory of one device: the host must not touch it */
    XC_MEM_MANAGED, /* migrates between host and device; both may touch it */
};

struct xc_mem_info {
    enum xc_mem_kind kind;
    int              device; /* owner; -1 for host memory */
    /*
     * The runtime's own copies and fills of this memory are over when they return, so nothing that
     * the default stream was given before can still be writing it.
     */
    bool     synchronous;
    uint64_t allocation; /* its number, as of mem_allocation, if that tells it; or 0 */
};

#define XC_DEVICE_UUID_BYTES 16

/* Device memory as another process of the node can map it. */
struct xc_ipc {
    unsigned char handle[64]; /* of the whole allocation */
    uint64_t      base, bytes;
    uint64_t id; /* the allocation's own, where the runtime numbers them: addresses come again */
};

/* Device memory as it was allocated. */
struct xc_allocation {
    uint64_t base, bytes;
    uint64_t id; /* its own: addresses come again */
};

struct xc_device_ops {
    const char *name; /* "cuda", "rocm", "hpu": as in tuning tables */

    /* Has this process loaded and initialised the runtime? Cheap; never initialises. */
    bool (*active)(void);
    /* Kind of the memory at ptr. Only called when active. Any failure means host memory. */
    struct xc_mem_info (*mem_query)(const void *ptr);
    /* Bytes from ptr to the end of its allocation; 0: not known, or host memory. */
    size_t (*mem_left)(const void *ptr);
    /*
     * The allocation of device memory at ptr; false: other processes cannot map it (pools), or its
     * addresses may come to mean other memory while it lives (virtual memory management). NULL
     * where the runtime does not tell one from the next.
     */
    bool (*mem_allocation)(const void *ptr, struct xc_allocation *allocation_p);
    /* Make the allocation at ptr synchronous, from the next copy on; false: it cannot be. */
    bool (*mem_make_synchronous)(const void *ptr);

    /*
     * How often the program was found to have reset a device (cudaDeviceReset): each time all
     * streams, events, memory, modules and mappings that this process had there were gone. Not even
     * their handles may be used. look: ask the runtime; else only what is known. What holds such a
     * thing remembers the number of when it was made. NULL: no device can be reset.
     */
    unsigned (*resets)(int device, bool look);

    xcclResult_t (*count)(int *count_p);
    xcclResult_t (*current)(int *device_p); /* of the calling thread; -1: none is */
    /* Make device current for this thread until leave(saved). It finds out about a reset. */
    xcclResult_t (*enter)(int device, void **saved_p);
    void (*leave)(void *saved);
    /*
     * While the program captures a stream, runtimes take some calls of its thread, or of any
     * thread, for mistakes: they fail, and the capture is lost. Let this thread make them until
     * restore(what was returned). Functions here do so themselves. NULL: nothing is captured.
     */
    int (*relax)(void);
    void (*restore)(int mode);
    xcclResult_t (*name_of)(int device, char *buf, size_t len);
    xcclResult_t (*uuid_of)(int device, unsigned char uuid[XC_DEVICE_UUID_BYTES]);
    xcclResult_t (*bus_id_of)(int device, char *buf, size_t len); /* "0000:18:00.0" */
    xcclResult_t (*multiprocessors_of)(int device, int *count_p);
    /* Do kernels of several processes run on it at once (MPS)? NULL: it gives them turns. */
    bool (*runs_processes_at_once)(int device);
    /*
     * Does the process crash if it touches managed memory while a kernel runs there (WSL, Jetson)?
     * NULL: no.
     */
    bool (*managed_is_exclusive)(int device);

    /* Work on the device entered. Streams are non-blocking towards the default stream. */
    xcclResult_t (*stream_create)(xcclStream_t *stream_p);
    /* Its kernels begin before those of other streams where there is no room for all. */
    xcclResult_t (*stream_create_urgent)(xcclStream_t *stream_p);
    xcclResult_t (*stream_destroy)(xcclStream_t stream);
    xcclResult_t (*stream_query)(xcclStream_t stream); /* xcclInProgress while busy */
    xcclResult_t (*stream_sync)(xcclStream_t stream);
    /*
     * Let stream wait for what the default stream was given so far. A copy from pageable memory may
     * return before its data has arrived, and what a program takes for done after cudaMemcpy must
     * be so for us. Not by a stream that blocks towards the default one: the program's next copy
     * would wait for our work, and with it for another rank that waits in a copy itself.
     */
    xcclResult_t (*stream_after_default)(xcclStream_t stream);
    xcclResult_t (*event_create)(void **event_p);
    xcclResult_t (*event_destroy)(void *event);
    xcclResult_t (*event_record)(void *event, xcclStream_t stream);
    xcclResult_t (*event_query)(void *event); /* xcclInProgress while pending */
    xcclResult_t (*copy_async)(void *dst, const void *src, size_t bytes, xcclStream_t stream);
    /* height rows of width bytes; the pitches are at least that. As many calls as it takes. */
    xcclResult_t (*copy_2d_async)(void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
                                  size_t width, size_t height, xcclStream_t stream);
    xcclResult_t (*set_async)(void *dst, int byte, size_t bytes, xcclStream_t stream);
    xcclResult_t (*mem_alloc)(void **ptr_p, size_t bytes);
    /* For what kernels here look at while other devices write to it; it can be exported. NULL: any
     * memory is good for that. */
    xcclResult_t (*mem_alloc_shared)(void **ptr_p, size_t bytes);
    xcclResult_t (*mem_free)(void *ptr);
    xcclResult_t (*host_alloc)(void **ptr_p, size_t bytes); /* pinned */
    xcclResult_t (*host_free)(void *ptr);
    /* Pin memory of the process's own, which copies and kernels reach at its address. NULL: nobody
     * has tried that with this runtime. */
    xcclResult_t (*host_pin)(void *ptr, size_t bytes);
    xcclResult_t (*host_unpin)(void *ptr);
    /* Fails for memory that cannot be shared: of pools, of virtual memory management. */
    xcclResult_t (*ipc_export)(const void *ptr, struct xc_ipc *ipc_p);
    /* Map another process's allocation for the device entered. */
    /* xcclInProgress: something that was freed at its place is still mapped, and to be closed. */
    xcclResult_t (*ipc_open)(const struct xc_ipc *ipc, void **base_p);
    xcclResult_t (*ipc_close)(void *base);
    /* Does that also serve allocations on devices that this process does not see? */
    bool ipc_opens_unseen;
    /* May kernels touch this address: of a device, managed, pinned or registered? */
    bool (*mem_reachable)(const void *ptr);
    /* An image that the runtime's compiler made; fails where it has nothing for this device. */
    xcclResult_t (*module_load)(void **module_p, const void *image);
    xcclResult_t (*module_function)(void **function_p, void *module, const char *name);
    /* Blocks of so many threads that an idle device has room for. NULL: it is not known. */
    xcclResult_t (*blocks_at_once)(int device, void *function, unsigned threads, int *count_p);
    /* grid: blocks along x and y. arguments: the one structure that the kernel takes. */
    xcclResult_t (*launch)(void *function, const unsigned grid[2], unsigned threads,
                           const void *arguments, xcclStream_t stream);
    /*
     * A kernel that waits itself for what its stream has before it, at XK_AFTER_THE_STREAM(), may
     * be launched early: it is on the device then when that ends. NULL, false: it does not wait.
     */
    bool (*waits_itself)(void *function);
    xcclResult_t (*launch_early)(void *function, const unsigned grid[2], unsigned threads,
                                 const void *arguments, xcclStream_t stream);
    /*
     * A kernel to be launched again and again on a stream, each time when the last is over: faster
     * than by launch(), but to make it may take a while. arguments: any, of so many bytes; bytes 0:
     * no next launch is told of. NULL: there is no such way.
     */
    xcclResult_t (*repeat_create)(void **repeat_p, void *function, const void *arguments,
                                  size_t bytes, xcclStream_t stream);
    /* next: what the next launch will most likely have, on the same grid; or NULL. */
    xcclResult_t (*repeat_launch)(void *repeat, const unsigned grid[2], unsigned threads,
                                  const void *arguments, const void *next);
    void (*repeat_destroy)(void *repeat);
};

/* The runtime active in this process, or NULL. CUDA is asked before HIP, HIP before Synapse. */
XC_SHARED const struct xc_device_ops *xc_device_active(void);

/*
 * Could this process come to use a device: is there a device node, a runtime loaded, or one in the
 * folders where it would be found? Takes a millisecond; nothing is loaded.
 */
XC_SHARED bool xc_device_possible(void);
/* And one of this runtime: "cuda" or "rocm". */
XC_SHARED bool xc_device_possible_of(const char *runtime);

/* Its resets(), or 0. */
static inline unsigned xc_device_resets(const struct xc_device_ops *dev, int device, bool look)
{
    return (dev->resets != NULL) ? dev->resets(device, look) : 0;
}

/* relax() and restore() of any device, around calls of a vendor's library. */
static inline int xc_device_relax(const struct xc_device_ops *dev)
{
    return (dev->relax != NULL) ? dev->relax() : 0;
}

static inline void xc_device_restore(const struct xc_device_ops *dev, int mode)
{
    if (dev->restore != NULL) {
        dev->restore(mode);
    }
}

/*
 * enter(), to free or to destroy what was made after so many resets. False: it is gone already;
 * then a device that is not in use any more is left alone.
 */
static inline bool xc_device_enter_kept(const struct xc_device_ops *dev, int device,
                                        unsigned resets, void **saved_p)
{
    return (xc_device_resets(dev, device, true) == resets) &&
           (dev->enter(device, saved_p) == xcclSuccess);
}

/* By name, active or not; NULL if unknown. For tools that start a runtime on purpose. */
const struct xc_device_ops *xc_device_by_name(const char *name);

/*
 * Load and initialise a runtime on purpose (xccl-perf, xccl-info; never the interposer).
 * name: "cuda", "rocm", "hpu" or "auto" (the first of CUDA and ROCm that has a device).
 */
xcclResult_t xc_device_start(const char *name, const struct xc_device_ops **ops_p);

/* Kind of the memory at ptr, in any process, with or without an active runtime. */
XC_SHARED struct xc_mem_info xc_mem_query(const void *ptr);

/*
 * Is ptr certainly ordinary host memory by its address alone: NULL, this thread's stack, or the
 * program's heap? A few nanoseconds; false means "ask xc_mem_query()".
 */
XC_SHARED bool xc_mem_surely_host(const void *ptr);

#endif
