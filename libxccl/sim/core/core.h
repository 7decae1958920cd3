/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The simulated accelerator's core: what the driver and the collective library of both flavours
 * share in one process. The error numbers are those that CUDA and HIP have in common.
 */
#ifndef XS_CORE_CORE_H
#define XS_CORE_CORE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define XS_API __attribute__((visibility("default")))

enum xs_error {
    XS_OK = 0,
    XS_INVALID_VALUE = 1,
    XS_OUT_OF_MEMORY = 2,
    XS_NOT_INITIALIZED = 3,
    XS_NO_DEVICE = 100,
    XS_INVALID_DEVICE = 101,
    XS_INVALID_CONTEXT = 201,
    XS_MAP_FAILED = 205,
    XS_ALREADY_MAPPED = 208,
    XS_NO_BINARY_FOR_GPU = 209,
    XS_OPERATING_SYSTEM = 304,
    XS_INVALID_HANDLE = 400,
    XS_NOT_FOUND = 500,
    XS_NOT_READY = 600,
    XS_ILLEGAL_ADDRESS = 700,
    XS_PEER_ACCESS_ALREADY_ENABLED = 704,
    XS_PEER_ACCESS_NOT_ENABLED = 705,
    XS_CONTEXT_IS_DESTROYED = 709,
    XS_HOST_ALREADY_REGISTERED = 712,
    XS_HOST_NOT_REGISTERED = 713,
    XS_NOT_SUPPORTED = 801,
    XS_SYSTEM_NOT_READY = 802,
    XS_CAPTURE_UNSUPPORTED = 900,
    XS_CAPTURE_INVALIDATED = 901,
    XS_CAPTURE_UNMATCHED = 903,
    XS_CAPTURE_ISOLATION = 905,
    XS_CAPTURE_IMPLICIT = 906,
    XS_CAPTURED_EVENT = 907,
    XS_CAPTURE_WRONG_THREAD = 908,
};

/* ---- config.c: the XCCL_SIM* variables, read once ---- */

enum xs_flavour { XS_NONE, XS_CUDA, XS_ROCM, XS_HOST, XS_HPU };
/* The collective library; several stand on one driver. */
enum xs_library { XS_NCCL, XS_RCCL, XS_MSCCL, XS_MSCCLPP, XS_ONECCL, XS_HCCL };
#define XS_MAX_DEVICES 64

struct xs_config {
    enum xs_flavour flavour;
    enum xs_library library;
    int             devices;                  /* visible ones */
    int             physical[XS_MAX_DEVICES]; /* number on the node of each visible one */
    uint64_t        memory;                   /* bytes a device */
    int             rank;                     /* of this process in its job; 0 outside of one */
    int             size;
    int             nodes;
    int             node;           /* of this process */
    const char     *proc;           /* where the processes of all ranks are seen */
    int             ccl_version;    /* to report: the flavour's own, or what was asked for */
    bool            uuid;           /* devices have one; of ROCm */
    int             hip_major;      /* ROCm release whose ABI libamdhip64 speaks */
    bool            destroy_waits;  /* destroying a communicator waits for the node's ranks */
    bool            abort_told;     /* to the node's other ranks */
    int             abort_ms;       /* what it waits for them, at most */
    bool            connect_blocks; /* the first use of an algorithm or peer waits for the others */
    int             connect_ms;     /* what creating a communicator takes */
    int             destroy_ms;     /* what destroying one takes, before it frees its memory */
    int             launch_us;      /* most that an operation's launch takes */
    bool            launch_blocks;  /* and it ends when the kernel does */
    int             numbers;     /* operations of the direct path are numbered up to this; 0: far */
    bool            serial;      /* collectives of one device run one after the other */
    bool            alloc_waits; /* allocating waits for the context's work */
    bool            free_admits; /* what waits to free something lets others enqueue meanwhile */
    bool            gdrcopy;     /* its driver is there */
    bool            exclusive;   /* the host may not touch managed memory while a kernel runs */
    const char     *mps;         /* folder of those that share devices at once; NULL: none do */
    bool            early; /* synchronous fills and small copies may return before they are done */
};

/* Never NULL. */
XS_API const struct xs_config *xs_config(void);

/* First fault of the variables as a sentence, or NULL. It is printed once by whoever starts first.
 */
XS_API const char *xs_config_error(void);

/* ---- places.c: XCCL_SIM_MPS ---- */

/* Blocks of all processes' kernels that a device has room for. */
enum { XS_PLACES = 32 };

/* Room for a kernel's blocks; without XCCL_SIM_MPS there always is. Waits for it. */
void xs_places_take(int device, unsigned blocks);
void xs_places_give(int device, unsigned blocks);

/* ---- log.c ---- */

enum xs_level { XS_LOG_NONE, XS_LOG_WARN, XS_LOG_INFO };
XS_API void xs_log(enum xs_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- live.c ---- */

/* A mapping is of another process's memory, a pin of GDRCopy. */
enum xs_live {
    XS_LIVE_EVENT,
    XS_LIVE_STREAM,
    XS_LIVE_GRAPH,
    XS_LIVE_ALLOCATION,
    XS_LIVE_MAPPING,
    XS_LIVE_PIN,
    XS_NUM_LIVE
};

/* One more, or one less, of them. */
XS_API void xs_live(enum xs_live what, int change);

/* ---- fault.c: XCCL_SIM_FAIL ---- */

enum xs_fault {
    XS_FAULT_LOAD,      /* the collective library cannot be opened */
    XS_FAULT_SYMBOL,    /* it lacks one symbol */
    XS_FAULT_INIT,      /* communicator creation fails; the others see a remote error */
    XS_FAULT_INIT_LONE, /* it fails before the others hear of it: they wait */
    XS_FAULT_INIT_HANG,
    XS_FAULT_OP,    /* the call returns an error */
    XS_FAULT_ASYNC, /* the operation completes, and the communicator has an asynchronous error */
    XS_FAULT_HANG,  /* the operation never completes */
    XS_FAULT_KILL,  /* the process kills itself in the middle of the operation */
    XS_FAULT_IPC,   /* another process's memory cannot be mapped */
    XS_FAULT_ALLOC, /* device memory is exhausted */
    XS_FAULT_COPY,  /* an asynchronous copy is refused */
    XS_FAULT_GRAPH, /* a graph cannot be launched */
    XS_FAULT_PIN,   /* GDRCopy cannot pin memory */
    XS_FAULT_CALL,  /* a function of the host is refused */
    XS_FAULT_CRASH, /* a kernel of the program has used an illegal address */
};

/*
 * Does this occurrence fail, on this rank? what: the name of the operation or NULL. Each call that
 * matches a rule by kind, name and rank counts one occurrence.
 */
XS_API bool xs_fault(enum xs_fault kind, const char *what);
/*
 * What calls for work, memory, streams and events say once a kernel has crashed; XS_OK before. On
 * ROCm it does not return then: its runtime ends the process. Each call of it is an occurrence.
 */
XS_API enum xs_error xs_crashed(void);
/* Names of the symbols to hide on this rank: the i-th, or NULL. */
XS_API const char *xs_fault_symbol(size_t i);
/* Parse; a sentence naming the token, or NULL. Called once, by config.c. */
const char *xs_fault_setup(const char *text, int rank);

/* ---- elf.c ---- */

/* Make dlsym() and relocations not find name in the object that contains address. */
XS_API bool xs_symbol_hide(const void *address, const char *name);

/* ---- share.c: reaching another process's memory through /proc, leaving nothing behind ---- */

/* A place in a shareable file of some process. */
struct xs_place {
    int32_t  pid;
    int32_t  fd;
    uint64_t start; /* when pid was started: tells it from a later process of the same number */
    uint64_t offset;
};

/* This process's number, as the other ranks see it. */
XS_API int xs_process_number(void);
/* Start time of a process; 0 when it is gone (or a zombie). */
XS_API uint64_t xs_process_start(int pid);
/* A descriptor out of the way of the program's, without a name in any file system; -1: failed. */
XS_API int xs_file_create(const char *label, uint64_t size);
/* Another process's descriptor, opened here; -1: it is gone, or closed to this one (EACCES). */
XS_API int xs_file_open(int pid, uint64_t start, int fd);
/* Address here of the file that holds place; mapped once, kept until the process ends. */
XS_API unsigned char *xs_place_map(const struct xs_place *place);

/* ---- memory.c ---- */

enum xs_kind { XS_MEM_HOST, XS_MEM_REGISTERED, XS_MEM_DEVICE, XS_MEM_MANAGED };

struct xs_ctx;
struct xs_stream;
struct xs_reservation;
struct xs_backing; /* physical memory */

struct xs_range {
    uintptr_t       base; /* as the program sees it */
    size_t          size;
    enum xs_kind    kind;
    bool            imported;    /* another process's, opened by an IPC handle */
    bool            sync_memops; /* synchronous calls that touch it have done their work */
    unsigned        flags;       /* of the allocation, for the program to ask back */
    int             device;      /* where it was allocated */
    uint64_t        id;          /* never used again in this process */
    struct xs_ctx  *ctx;
    unsigned char  *alias;  /* where the simulation may touch it */
    struct xs_place place;  /* of base; pid 0: not shareable (registered memory) */
    uint64_t        origin; /* imported: id where it was allocated */
    const uint64_t *lives;  /* imported: atomic; this is not the origin any more once it is freed */
    uint32_t        block;  /* of a device: which block of memory lies at its base */
    /* Of virtual memory management, one mapping: the addresses that it lies in, else NULL. */
    struct xs_reservation *reservation;
    struct xs_backing     *backing; /* of a mapping: its memory */
    uint64_t               access;  /* of a mapping: devices that may touch it */
};

/* As the runtimes' allocations, which wait for the context's work where XCCL_SIM_ALLOC=wait. */
XS_API enum xs_error xs_mem_alloc(struct xs_ctx *ctx, enum xs_kind kind, size_t bytes,
                                  unsigned flags, void **ptr_p);
/* The same, never waiting: for allocations in the order of a stream, with XS_MEM_POOL in flags. */
#define XS_MEM_POOL (1U << 31)
XS_API enum xs_error xs_mem_take(struct xs_ctx *ctx, enum xs_kind kind, size_t bytes,
                                 unsigned flags, void **ptr_p);
/* Set sync_memops of the device memory that ptr lies in; memory from a pool cannot have it. */
XS_API enum xs_error xs_mem_sync_memops(const void *ptr, bool on);
/*
 * kind: XS_MEM_DEVICE frees device and managed memory, XS_MEM_HOST pinned memory. Freeing waits for
 * the work of the memory's context first, as both runtimes do; releasing does not.
 */
XS_API enum xs_error xs_mem_release(void *ptr, enum xs_kind kind);
/* In the order of a stream; not what may lie there after a reset. */
XS_API enum xs_error xs_mem_release_async(struct xs_stream *stream, const struct xs_range *range);
XS_API enum xs_error xs_mem_free(void *ptr, enum xs_kind kind);
XS_API enum xs_error xs_mem_register(struct xs_ctx *ctx, void *ptr, size_t bytes, unsigned flags);
XS_API enum xs_error xs_mem_unregister(void *ptr);
XS_API bool          xs_mem_find(const void *ptr, struct xs_range *range_p);
/* The largest id of a range so far. */
XS_API uint64_t xs_mem_newest(void);
/* The addresses that all memory of a device lies in. */
XS_API enum xs_error xs_mem_arena(int device, uintptr_t *base_p, size_t *bytes_p);
XS_API void          xs_mem_info(int device, size_t *free_p, size_t *total_p);
XS_API enum xs_error xs_ipc_export(const void *ptr, unsigned char handle[64]);
XS_API enum xs_error xs_ipc_import(struct xs_ctx *ctx, const unsigned char handle[64],
                                   void **ptr_p);
XS_API enum xs_error xs_ipc_close(void *ptr);
/* Everything that ctx allocated. */
void xs_mem_free_all(struct xs_ctx *ctx);

/*
 * Where the simulation may touch [ptr, ptr + bytes): the alias of known memory, ptr itself of
 * memory that is not known, NULL where the range leaves its allocation, or is of another process
 * that has freed it. It may cross from one mapping of a reservation to the next.
 */
XS_API void *xs_mem_touch(const void *ptr, size_t bytes, struct xs_range *range_p);
/*
 * Make what xs_mem_touch() returned zero by giving its pages back, which costs nothing until they
 * are used: so a large workspace does. False: it is too short for that, or not of this process.
 */
bool xs_mem_clear(void *alias, size_t bytes);
/* May kernels of ctx touch it? */
XS_API bool xs_mem_reaches(const struct xs_range *range, const struct xs_ctx *ctx);

/* ---- virtual.c: addresses, memory and access to it, each by itself ---- */

/* Of both runtimes. */
enum { XS_ALLOCATION_PINNED = 1, XS_LOCATION_DEVICE = 1, XS_HANDLE_POSIX_FD = 1 };
enum { XS_ACCESS_NONE = 0, XS_ACCESS_READ = 1, XS_ACCESS_READ_WRITE = 3 };
#define XS_GRANULARITY ((size_t)2 << 20)

/* CUmemLocation, CUmemAllocationProp and CUmemAccessDesc; HIP's are the same. */
struct xs_location {
    int type;
    int id;
};
struct xs_allocation_prop {
    int                type;
    int                handle_types;
    struct xs_location location;
    void              *win32;
    struct {
        unsigned char  compression;
        unsigned char  rdma;
        unsigned short usage;
        unsigned char  reserved[4];
    } flags;
};
struct xs_access_desc {
    struct xs_location location;
    int                flags;
};

XS_API enum xs_error xs_virtual_granularity(const struct xs_allocation_prop *prop, int option,
                                            size_t *bytes_p);
XS_API enum xs_error xs_virtual_reserve(size_t bytes, size_t alignment, void **ptr_p);
XS_API enum xs_error xs_virtual_unreserve(void *ptr, size_t bytes);
XS_API enum xs_error xs_virtual_create(size_t bytes, const struct xs_allocation_prop *prop,
                                       struct xs_backing **backing_p);
XS_API enum xs_error xs_virtual_release(struct xs_backing *backing);
XS_API enum xs_error xs_virtual_map(void *ptr, size_t bytes, size_t offset,
                                    struct xs_backing *backing);
XS_API enum xs_error xs_virtual_unmap(void *ptr, size_t bytes);
XS_API enum xs_error xs_virtual_set_access(void *ptr, size_t bytes,
                                           const struct xs_access_desc *descs, size_t count);
XS_API enum xs_error xs_virtual_get_access(const void *ptr, const struct xs_location *location,
                                           unsigned long long *flags_p);
XS_API enum xs_error xs_virtual_retain(const void *ptr, struct xs_backing **backing_p);
XS_API enum xs_error xs_virtual_properties(struct xs_backing         *backing,
                                           struct xs_allocation_prop *prop_p);
XS_API enum xs_error xs_virtual_export(struct xs_backing *backing, int handle_type, int *fd_p);
XS_API enum xs_error xs_virtual_import(int fd, int handle_type, struct xs_backing **backing_p);
/* The addresses that a mapping lies in, and handle types of its memory. */
XS_API void xs_virtual_describe(const struct xs_range *range, uintptr_t *base_p, size_t *bytes_p,
                                int *handle_types_p);

/* ---- context.c: devices and contexts ---- */

/* The handle of a thread's default stream, here one for all threads. */
#define XS_STREAM_PER_THREAD ((void *)2)

struct xs_ctx {
    uint32_t          magic;
    int               device;
    bool              primary;
    int               users; /* primary: times retained */
    unsigned          flags;
    uint64_t          id;
    uint64_t          peers;   /* devices whose memory it may touch */
    pthread_mutex_t   order;   /* makes enqueueing on several streams one step */
    struct xs_stream *streams; /* all that are not destroyed */
    struct xs_stream *legacy;  /* the default stream, made at first use */
    struct xs_stream *shared;  /* what CU_STREAM_PER_THREAD names, made at first use */
    struct xs_ctx    *next;
};

/* Sets initialised once; fails where there is no device of this flavour. */
XS_API enum xs_error xs_init(enum xs_flavour flavour);
XS_API bool          xs_initialised(void);
/* HIP starts at any call and uses the first device's primary context by itself. */
XS_API enum xs_error xs_init_implicit(void);

XS_API enum xs_error xs_primary_retain(int device, struct xs_ctx **ctx_p);
XS_API enum xs_error xs_primary_release(int device);
XS_API enum xs_error xs_primary_reset(int device);
XS_API enum xs_error xs_primary_state(int device, unsigned *flags_p, int *active_p);
XS_API enum xs_error xs_primary_flags(int device, unsigned flags);
XS_API enum xs_error xs_ctx_create(int device, unsigned flags, struct xs_ctx **ctx_p);
XS_API enum xs_error xs_ctx_destroy(struct xs_ctx *ctx);
XS_API bool          xs_ctx_valid(const struct xs_ctx *ctx);
/* Also a primary one that was reset: it may be current. */
XS_API bool           xs_ctx_known(const struct xs_ctx *ctx);
XS_API struct xs_ctx *xs_ctx_current(void); /* NULL: none */
XS_API enum xs_error  xs_ctx_push(struct xs_ctx *ctx);
XS_API enum xs_error  xs_ctx_pop(struct xs_ctx **ctx_p);
XS_API enum xs_error  xs_ctx_set(struct xs_ctx *ctx); /* NULL: none */
XS_API enum xs_error  xs_ctx_sync(struct xs_ctx *ctx);
/*
 * Wait for the context's work, and let no thread enqueue any, nor make anything in the device's
 * contexts, until the end (XCCL_SIM_FREE). Those call xs_ctx_pass() first, with no lock held that
 * a stream's work takes.
 */
XS_API void          xs_ctx_sync_alone(struct xs_ctx *ctx);
XS_API void          xs_ctx_sync_alone_end(const struct xs_ctx *ctx);
XS_API void          xs_ctx_pass(const struct xs_ctx *ctx);
XS_API enum xs_error xs_peer_enable(struct xs_ctx *ctx, int device, bool enable);
XS_API bool          xs_peer_enabled(const struct xs_ctx *ctx, int device);

XS_API void xs_device_uuid(int device, unsigned char uuid[16]);
/* "0000:18:00.0"; bus numbers are the same on every pretend node. */
XS_API void xs_device_bus_id(int device, char *buf, size_t len);
XS_API int  xs_device_bus(int device);
XS_API void xs_device_name(int device, char *buf, size_t len);

/* ---- stream.c, event.c ---- */

enum { XS_STREAM_NON_BLOCKING = 1 };

struct xs_event;

/* Work of a stream: run on its thread, in order. It frees arg. */
typedef void xs_work_fn(void *arg);
/* What a graph runs, which is many times: another arg, allocated like it. */
typedef void *xs_copy_fn(const void *arg);
XS_API void  *xs_copy_flat(const void *arg); /* of an allocation that holds no other */

XS_API enum xs_error xs_stream_create(struct xs_ctx *ctx, unsigned flags, int priority,
                                      struct xs_stream **stream_p);
XS_API enum xs_error xs_stream_destroy(struct xs_stream *stream);
/* The stream that a program's handle names: NULL, 1 and 2 are default streams of ctx. */
XS_API enum xs_error xs_stream_get(struct xs_ctx *ctx, void *handle, struct xs_stream **stream_p);
/* copy: of work that may be captured, or NULL. */
XS_API enum xs_error xs_stream_enqueue(struct xs_stream *stream, xs_work_fn *work, xs_copy_fn *copy,
                                       void *arg);
XS_API void          xs_stream_pass(struct xs_stream *stream); /* xs_ctx_pass() */
XS_API bool          xs_stream_idle(struct xs_stream *stream);
XS_API bool          xs_stream_done(struct xs_stream *stream);
XS_API void          xs_stream_sync(struct xs_stream *stream);
XS_API struct xs_ctx *xs_stream_ctx(const struct xs_stream *stream);
XS_API unsigned       xs_stream_flags(const struct xs_stream *stream);
XS_API int            xs_stream_priority(const struct xs_stream *stream);
XS_API uint64_t       xs_stream_id(const struct xs_stream *stream);
/* Order stream behind what other has now. */
XS_API enum xs_error xs_stream_follow(struct xs_stream *stream, struct xs_stream *other);
void                 xs_stream_shut(struct xs_stream *stream);
/* Its context is gone: its handle stays known, and is never given out again. */
void xs_stream_orphan(struct xs_stream *stream);

XS_API enum xs_error xs_event_create(struct xs_ctx *ctx, unsigned flags, struct xs_event **event_p);
/* All of a context that goes. */
void xs_events_orphan(const struct xs_ctx *ctx);
/*
 * What a handle of a context that is gone is answered. Where the context is there anew CUDA's
 * driver touches memory that is not: the process ends.
 */
enum xs_error        xs_orphan_used(const struct xs_ctx *ctx, const char *what);
XS_API enum xs_error xs_event_destroy(struct xs_event *event);
XS_API enum xs_error xs_event_record(struct xs_event *event, struct xs_stream *stream);
XS_API enum xs_error xs_event_query(struct xs_event *event);
XS_API enum xs_error xs_event_sync(struct xs_event *event);
XS_API enum xs_error xs_event_elapsed(struct xs_event *from, struct xs_event *to, float *ms_p);
XS_API enum xs_error xs_event_wait(struct xs_stream *stream, struct xs_event *event);

/* ---- copy.c: what the runtimes' memory calls do, waiting as long as those wait ---- */

XS_API enum xs_error xs_copy(struct xs_ctx *ctx, void *handle, void *dst, const void *src,
                             size_t bytes);
XS_API enum xs_error xs_copy_async(struct xs_stream *stream, void *dst, const void *src,
                                   size_t bytes);
/* Rows of `width` bytes; more than XS_MAX_PITCH bytes between two of them are an invalid value. */
#define XS_MAX_PITCH ((size_t)0x7fffffff)
struct xs_copy_2d {
    void       *dst;
    size_t      dst_pitch;
    const void *src;
    size_t      src_pitch;
    size_t      width;
    size_t      height;
};
XS_API enum xs_error xs_copy_2d(struct xs_ctx *ctx, const struct xs_copy_2d *what);
XS_API enum xs_error xs_copy_2d_async(struct xs_stream *stream, const struct xs_copy_2d *what);
/* width: bytes of value, 1, 2 or 4. */
XS_API enum xs_error xs_fill(struct xs_ctx *ctx, void *dst, uint32_t value, unsigned width,
                             size_t count);
XS_API enum xs_error xs_fill_async(struct xs_stream *stream, void *dst, uint32_t value,
                                   unsigned width, size_t count);
XS_API enum xs_error xs_call_async(struct xs_stream *stream, void (*fn)(void *), void *arg);
/* condition: 0 at least, 1 equal, 2 and, 3 nor, as both runtimes number them. */
XS_API enum xs_error xs_wait_value(struct xs_stream *stream, const void *ptr, uint64_t value,
                                   unsigned width, unsigned condition);
XS_API enum xs_error xs_write_value(struct xs_stream *stream, void *ptr, uint64_t value,
                                    unsigned width);

/* ---- kernel.c: modules of functions that streams run ---- */

struct xs_kernel {
    const char *name;
    size_t      bytes; /* of the one structure that it takes */
    void (*run)(const void *arguments, const unsigned block[2], const unsigned grid[2]);
    bool together; /* its blocks wait for each other, which a device with room for all allows */
    bool (*waits)(const void *arguments); /* for other kernels; NULL: never */
};

#define XS_IMAGE_MAGIC "XCCLSIM"
struct xs_image {
    char                    magic[8];
    const struct xs_kernel *kernels; /* ends with one without a name */
};

XS_API enum xs_error xs_image_check(const void *image);
XS_API enum xs_error xs_image_kernel(const void *image, const char *name,
                                     const struct xs_kernel **kernel_p);
/* XCCL_SIM_LAUNCH_US, in the calling thread. */
XS_API void xs_launch_takes_time(void);
/* Behind each launch: where it blocks, wait for the kernel's end. */
XS_API void          xs_launched(struct xs_stream *stream);
XS_API enum xs_error xs_launch(struct xs_stream *stream, const struct xs_kernel *kernel,
                               const unsigned grid[2], unsigned threads, const void *arguments);
/* It waits itself for what the stream has before it. */
XS_API enum xs_error xs_launch_early(struct xs_stream *stream, const struct xs_kernel *kernel,
                                     const unsigned grid[2], unsigned threads,
                                     const void *arguments);
/* For kernels: where they may touch memory, which ends the process if a device could not. */
XS_API uint64_t xs_kernel_place(uint64_t address, uint64_t bytes);
/* The same of memory that a kernel looks at while other devices write to it. */
XS_API uint64_t    xs_kernel_place_shared(uint64_t address, uint64_t bytes);
XS_API void        xs_kernel_misaligned(uint64_t address, uint64_t bytes);
static inline void xs_kernel_aligned(uint64_t address, uint64_t bytes)
{
    if ((address & (bytes - 1)) != 0) {
        xs_kernel_misaligned(address, bytes);
    }
}
/* The kernel waits for what its stream has before it, which one launched early has to. */
XS_API void     xs_kernel_waits(void);
XS_API uint64_t xs_kernel_now_ns(void);
XS_API void     xs_kernel_pause(void);

/* ---- text ---- */

XS_API const char *xs_error_text(int error);

#endif
