/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels: functions of C that a stream runs, block by block. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/graph.h"

/* Blocks of a grid that run at once; of others one after the other, as where a device is full. */
enum { MOST_TOGETHER = 32 };

struct launch {
    const struct xs_kernel *kernel;
    const struct xs_ctx    *ctx;
    unsigned                grid[2];
    bool                    early;
    uint64_t                place;       /* in the device's only queue */
    char                    arguments[]; /* copied: the caller's are gone when it runs */
};

static __thread const struct launch *running;
static __thread bool                 waited; /* the block has, for what its stream has before it */

/* XCCL_SIM_SERIAL: kernels of a device run in the order of their launches. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t  changed = PTHREAD_COND_INITIALIZER;
static uint64_t        launched[XS_MAX_DEVICES], ended[XS_MAX_DEVICES];

enum xs_error xs_image_check(const void *image)
{
    static const char magic[] = XS_IMAGE_MAGIC;

    /* What a real device's compiler made is no binary for this one. */
    return ((image != NULL) && (strncmp(image, magic, sizeof(magic)) == 0)) ? XS_OK
                                                                            : XS_NO_BINARY_FOR_GPU;
}

enum xs_error xs_image_kernel(const void *image, const char *name,
                              const struct xs_kernel **kernel_p)
{
    for (const struct xs_kernel *k = ((const struct xs_image *)image)->kernels; k->name != NULL;
         k++) {
        if (strcmp(k->name, name) == 0) {
            *kernel_p = k;
            return XS_OK;
        }
    }
    return XS_NOT_FOUND;
}

/* One block of a kernel whose blocks run side by side. */
struct block {
    struct launch *launch;
    unsigned       at[2];
    pthread_t      thread;
    bool           begun;
};

/*
 * Launched early it begins when all before it is over, as a device may have it too. But on a device
 * without this nothing else makes it wait.
 */
static void carry_out(struct launch *l, const unsigned block[2])
{
    running = l;
    waited = false;
    l->kernel->run(l->arguments, block, l->grid);
    if (l->early && !waited) {
        fprintf(stderr,
                "simulated accelerator: kernel %s was launched early and did not wait for what its "
                "stream had before it\n",
                l->kernel->name);
        abort();
    }
    running = NULL;
}

static void *run_block(void *arg)
{
    const struct block *b = arg;

    carry_out(b->launch, b->at);
    return NULL;
}

static void run_together(struct launch *l)
{
    struct block blocks[MOST_TOGETHER] = {{NULL, {0, 0}, 0, false}};
    unsigned     n = l->grid[0];

    for (unsigned i = 1; i < n; i++) {
        blocks[i] = (struct block){l, {i, 0}, 0, false};
        blocks[i].begun = (pthread_create(&blocks[i].thread, NULL, run_block, &blocks[i]) == 0);
        if (!blocks[i].begun) {
            fprintf(stderr, "simulated accelerator: no thread for a block of a kernel\n");
            abort();
        }
    }
    blocks[0] = (struct block){l, {0, 0}, 0, false};
    run_block(&blocks[0]);
    for (unsigned i = 1; i < n; i++) {
        pthread_join(blocks[i].thread, NULL);
    }
}

static void wait_for_place(const struct launch *l)
{
    pthread_mutex_lock(&lock);
    while (ended[l->ctx->device] != l->place) {
        pthread_cond_wait(&changed, &lock);
    }
    pthread_mutex_unlock(&lock);
}

static void leave_place(const struct launch *l)
{
    pthread_mutex_lock(&lock);
    ended[l->ctx->device]++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void run_in_turn(struct launch *l)
{
    for (unsigned y = 0; y < l->grid[1]; y++) {
        for (unsigned x = 0; x < l->grid[0]; x++) {
            carry_out(l, (const unsigned[2]){x, y});
        }
    }
}

/* Blocks that wait for nobody come and go one by one. */
static unsigned places_for(const struct launch *l)
{
    if ((l->kernel->waits == NULL) || !l->kernel->waits(l->arguments)) {
        return 1;
    }
    return (l->grid[0] < XS_PLACES) ? l->grid[0] : XS_PLACES;
}

static void run(void *arg)
{
    struct launch *l = arg;
    unsigned       blocks = places_for(l);

    if (xs_config()->serial) {
        wait_for_place(l);
    }
    xs_places_take(l->ctx->device, blocks);
    if (l->kernel->together && (l->grid[0] <= MOST_TOGETHER) && (l->grid[1] == 1)) {
        run_together(l);
    } else {
        run_in_turn(l);
    }
    xs_places_give(l->ctx->device, blocks);
    if (xs_config()->serial) {
        leave_place(l);
    }
    free(l);
}

/* Of a graph, which is launched now. */
static void *copy_launch(const void *arg)
{
    struct launch *l = xs_copy_flat(arg);

    if ((l != NULL) && xs_config()->serial) {
        pthread_mutex_lock(&lock);
        l->place = launched[l->ctx->device]++;
        pthread_mutex_unlock(&lock);
    }
    return l;
}

/* In one step: streams and the device's queue get the same order. */
static enum xs_error enqueue(struct xs_stream *stream, struct launch *l)
{
    if (!xs_config()->serial || (xs_stream_capture(stream) != NULL)) {
        return xs_stream_enqueue(stream, run, copy_launch, l);
    }
    pthread_mutex_lock(&lock);
    l->place = launched[l->ctx->device];
    enum xs_error res = xs_stream_enqueue(stream, run, copy_launch, l);
    launched[l->ctx->device] += (res == XS_OK);
    pthread_mutex_unlock(&lock);
    return res;
}

static enum xs_error make(const struct xs_ctx *ctx, const struct xs_kernel *kernel,
                          const unsigned grid[2], unsigned threads, const void *arguments,
                          struct launch **launch_p)
{
    if ((grid[0] == 0) || (grid[1] == 0) || (grid[1] > 65535) || (threads == 0) ||
        (threads > 1024)) {
        return XS_INVALID_VALUE;
    }
    struct launch *l = malloc(sizeof(*l) + kernel->bytes);
    if (l == NULL) {
        return XS_OUT_OF_MEMORY;
    }
    l->kernel = kernel;
    l->ctx = ctx;
    l->grid[0] = grid[0];
    l->grid[1] = grid[1];
    l->early = false;
    memcpy(l->arguments, arguments, kernel->bytes);
    *launch_p = l;
    return XS_OK;
}

/*
 * A launch takes a different time on each rank: in threads that launch on two streams at once, the
 * order is anyone's guess. XCCL_SIM_LAUNCH_US makes that the rule instead of the exception.
 */
void xs_launch_takes_time(void)
{
    static uint64_t launches;
    int             most = xs_config()->launch_us;

    if (most > 0) {
        uint64_t              n = __atomic_add_fetch(&launches, 1, __ATOMIC_RELAXED);
        uint64_t              hash = (n * 64 + (uint64_t)xs_config()->rank) * 0x9e3779b97f4a7c15u;
        int                   us = (int)((hash >> 32) % ((uint64_t)most + 1));
        const struct timespec time = {us / 1000000, (long)(us % 1000000) * 1000};
        nanosleep(&time, NULL);
    }
}

void xs_launched(struct xs_stream *stream)
{
    if (xs_config()->launch_blocks && (xs_stream_capture(stream) == NULL)) {
        xs_stream_sync(stream);
    }
}

static enum xs_error launch(struct xs_stream *stream, const struct xs_kernel *kernel,
                            const unsigned grid[2], unsigned threads, const void *arguments,
                            bool early)
{
    struct launch *l = NULL;
    enum xs_error  res = make(xs_stream_ctx(stream), kernel, grid, threads, arguments, &l);

    if (res == XS_OK) {
        l->early = early;
        xs_launch_takes_time();
        xs_stream_pass(stream);
        res = enqueue(stream, l);
    }
    if (res == XS_OK) {
        xs_launched(stream);
    } else {
        free(l);
    }
    return res;
}

enum xs_error xs_launch(struct xs_stream *stream, const struct xs_kernel *kernel,
                        const unsigned grid[2], unsigned threads, const void *arguments)
{
    return launch(stream, kernel, grid, threads, arguments, false);
}

enum xs_error xs_launch_early(struct xs_stream *stream, const struct xs_kernel *kernel,
                              const unsigned grid[2], unsigned threads, const void *arguments)
{
    return launch(stream, kernel, grid, threads, arguments, true);
}

enum xs_error xs_graph_add_kernel(struct xs_graph *graph, void **node_p, const struct xs_ctx *ctx,
                                  const struct xs_kernel *kernel, const unsigned grid[2],
                                  unsigned threads, const void *arguments)
{
    struct launch *l = NULL;
    enum xs_error  res = make(ctx, kernel, grid, threads, arguments, &l);

    if (res == XS_OK) {
        res = xs_graph_add(graph, run, copy_launch, l, node_p);
    }
    if (res != XS_OK) {
        free(l);
    }
    return res;
}

enum xs_error xs_exec_set_kernel(struct xs_exec *exec, const void *node, const struct xs_ctx *ctx,
                                 const struct xs_kernel *kernel, const unsigned grid[2],
                                 unsigned threads, const void *arguments)
{
    struct launch *l = NULL;
    enum xs_error  res = make(ctx, kernel, grid, threads, arguments, &l);

    if (res == XS_OK) {
        res = xs_exec_set(exec, node, l);
    }
    if (res != XS_OK) {
        free(l);
    }
    return res;
}

/* Ordinary memory is out of a kernel's reach; so is memory of a device that is no peer. */
uint64_t xs_kernel_place(uint64_t address, uint64_t bytes)
{
    struct xs_range range;

    if (bytes == 0) {
        return address;
    }
    void *place = xs_mem_touch((const void *)(uintptr_t)address, bytes, &range);
    bool  reached = (place != NULL) && (range.base != 0) && xs_mem_reaches(&range, running->ctx);
    if (!reached) {
        fprintf(
            stderr,
            "simulated accelerator: kernel %s touches %#llx, %llu bytes: an illegal memory access (error 700)\n",
            running->kernel->name, (unsigned long long)address, (unsigned long long)bytes);
        abort();
    }
    return (uint64_t)(uintptr_t)place;
}

/* By the flags of ROCm's allocations; pinned memory is fine-grained without any. */
static bool is_coarse(const struct xs_range *range)
{
    enum {
        FINE_GRAINED = 1, /* also in the flags of uncached memory */
        HOST_MAPPED = 2,
        HOST_NUMA_USER = 0x20000000,
        HOST_COHERENT = 0x40000000,
    };
    unsigned fine = HOST_MAPPED | HOST_NUMA_USER | HOST_COHERENT;

    return ((range->kind == XS_MEM_DEVICE) && ((range->flags & FINE_GRAINED) == 0)) ||
           ((range->kind == XS_MEM_HOST) && (range->flags != 0) && ((range->flags & fine) == 0));
}

/*
 * Where ROCm's memory is coarse-grained, a kernel may never see what others have written, nor they
 * what it has before its end.
 */
uint64_t xs_kernel_place_shared(uint64_t address, uint64_t bytes)
{
    struct xs_range range;

    if ((xs_config()->flavour == XS_ROCM) &&
        xs_mem_find((const void *)(uintptr_t)address, &range) && !range.imported &&
        is_coarse(&range)) {
        fprintf(stderr,
                "simulated accelerator: kernel %s shares coarse-grained memory at %#llx with the "
                "host or other devices while it runs\n",
                running->kernel->name, (unsigned long long)address);
        abort();
    }
    return xs_kernel_place(address, bytes);
}

void xs_kernel_misaligned(uint64_t address, uint64_t bytes)
{
    fprintf(stderr,
            "simulated accelerator: kernel %s touches %llu bytes at %#llx: misaligned address "
            "(error 716)\n",
            running->kernel->name, (unsigned long long)bytes, (unsigned long long)address);
    abort();
}

void xs_kernel_waits(void)
{
    waited = true;
}

uint64_t xs_kernel_now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/*
 * A device has cores to spare for a kernel that polls; this machine may not. So it naps, for a part
 * of the time in which a thread has done nothing else: the blocks of a kernel would keep each other
 * from the cores.
 */
void xs_kernel_pause(void)
{
    enum { LEAST_NS = 5000, MOST_NS = 1000000, BUSY_NS = 20000, PART = 8 };
    static __thread uint64_t last_ns, since_ns;
    uint64_t                 now = xs_kernel_now_ns();

    since_ns = (now - last_ns > BUSY_NS) ? now : since_ns;
    uint64_t              part = (now - since_ns) / PART;
    const struct timespec nap = {0, (part < LEAST_NS)  ? LEAST_NS
                                    : (part < MOST_NS) ? (long)part
                                                       : MOST_NS};
    nanosleep(&nap, NULL);
    last_ns = xs_kernel_now_ns();
}
