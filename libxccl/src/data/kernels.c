/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/kernels.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/params.h"
#include "comms/wait.h"
#include "data/kernel_state.h"

enum { MAX_DEVICES = 64 };
/* Each of them holds a multiprocessor while it lingers: many are at most a quarter of a device. */
enum { FEW_BLOCKS = 4, MANY_BLOCKS = 32, COPY_BLOCKS = 16, SHARE = 4 };
/* Enough for a GPU of today. */
enum { PACK_BLOCKS = 512, PACK_UNITS = 256, LISTED_BLOCKS = 4096 };

/* Device memory of the counters of copies, of the relays, and of xk_enqueued's first launch. */
#define DEVICE_BYTES                                                                               \
    (XM_KERNEL_SLOTS * sizeof(uint32_t) + 2 * sizeof(struct xk_relay) + sizeof(struct xk_counter))

enum state { NONE, LOADING, READY, FAILED };

struct load_job {
    struct xm_job      job;
    struct xm_kernels *kernels;
    bool               local; /* or those for collectives */
};

static pthread_mutex_t   lock = PTHREAD_MUTEX_INITIALIZER;
static struct xm_kernels all[MAX_DEVICES];
static int               count; /* atomic */

static const char *plugin_of(const struct xc_device_ops *dev)
{
    if (strcmp(dev->name, "cuda") == 0) {
        return "libxccl-direct-cuda.so";
    }
    /* Of the other devices there are none: nobody finds such a file. */
    return (strcmp(dev->name, "rocm") == 0) ? "libxccl-direct-hip.so" : "libxccl-direct-hpu.so";
}

/* The simulation's is on the search path, the real one lies where this library lies. */
static void *open_plugin(const char *name)
{
    Dl_info info;
    char    path[4096];
    void   *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);

    if ((handle != NULL) || (dladdr(&count, &info) == 0) || (info.dli_fname == NULL)) {
        return handle;
    }
    const char *slash = strrchr(info.dli_fname, '/');
    if (slash == NULL) {
        return NULL;
    }
    snprintf(path, sizeof(path), "%.*s/%s", (int)(slash - info.dli_fname), info.dli_fname, name);
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

static xcclResult_t find_image(const char *name, const struct xk_image **image_p)
{
    void *handle = open_plugin(name);

    if (handle == NULL) {
        return xc_fail(xcclLibraryNotFound, "%s is not installed", name);
    }
    const struct xk_image *found = dlsym(handle, XK_IMAGE_SYMBOL);
    if ((found == NULL) || (found->version != XK_VERSION)) {
        dlclose(handle);
        return xc_fail(xcclLibraryNotFound, "%s is of another version of xccl; install it again",
                       name);
    }
    *image_p = found; /* the plugin stays */
    return xcclSuccess;
}

struct function {
    void      **function_p;
    const char *name;
};

static xcclResult_t load_functions(struct xm_kernels *k, const void *image,
                                   const struct function *functions, size_t number)
{
    void        *module = NULL;
    xcclResult_t res = k->dev->module_load(&module, image);

    for (size_t i = 0; (res == xcclSuccess) && (i < number); i++) {
        res = k->dev->module_function(functions[i].function_p, module, functions[i].name);
    }
    return res;
}

/* ---- those for one rank alone ---- */

static xcclResult_t load_local_functions(struct xm_kernels *k)
{
    const struct function  functions[] = {{&k->copies, "xk_batch"},
                                          {&k->pack, "xk_pack"},
                                          {&k->listed, "xk_pack_listed"},
                                          {&k->linger, "xk_linger"},
                                          {&k->await, "xk_await"}};
    const struct xk_image *image = NULL;

    xcclResult_t res = find_image(plugin_of(k->dev), &image);
    if (res != xcclSuccess) {
        return res;
    }
    k->last = (image->last != 0) ? image->last : XK_LAST_NUMBER;
    return load_functions(k, image->local, functions, sizeof(functions) / sizeof(functions[0]));
}

/* To linger for calls that have work for them; the same on equal devices. */
static unsigned many_blocks(const struct xm_kernels *k)
{
    int processors = 0;

    if (k->shares || (k->dev->multiprocessors_of(k->device, &processors) != xcclSuccess) ||
        (processors < SHARE * FEW_BLOCKS)) {
        return FEW_BLOCKS;
    }
    return (processors / SHARE < MANY_BLOCKS) ? (unsigned)(processors / SHARE) : MANY_BLOCKS;
}

/* More do not make a copy over NVLink faster. */
static unsigned copy_blocks(const struct xm_kernels *k)
{
    unsigned many = many_blocks(k);

    return (many < COPY_BLOCKS) ? many : COPY_BLOCKS;
}

static xcclResult_t load_memory(struct xm_kernels *k)
{
    const struct xc_device_ops *dev = k->dev;
    xcclResult_t                res = xcclSuccess;
    void                       *shared = NULL, *finished = NULL;

    for (int i = 0; (res == xcclSuccess) && (i < XM_KERNEL_STREAMS); i++) {
        res = dev->stream_create_urgent(&k->streams[i]);
    }
    if (res == xcclSuccess) {
        res = dev->host_alloc(&shared, sizeof(*k->shared));
        k->shared = shared;
    }
    if (res == xcclSuccess) {
        res = dev->mem_alloc(&finished, DEVICE_BYTES);
        k->finished = finished;
        k->relays =
            (struct xk_relay *)(void *)((char *)finished + XM_KERNEL_SLOTS * sizeof(uint32_t));
    }
    if (res == xcclSuccess) {
        memset(k->shared, 0, sizeof(*k->shared));
        res = dev->set_async(finished, 0, DEVICE_BYTES, k->streams[0]);
    }
    return res;
}

/* A kernel's first launch may load it, and that may wait: so it is done here, with nothing to do.
 */
static xcclResult_t launch_local_once(struct xm_kernels *k)
{
    const unsigned   one[2] = {1, 1};
    struct xk_batch  copies = {{{.finished = k->finished, .done = k->shared->idle, .blocks = 1}}};
    struct xk_pack   pack = {.count = 0};
    struct xk_listed listed = {.unit = 1};

    xcclResult_t res = k->dev->launch(k->copies, one, XM_KERNEL_THREADS, &copies, k->streams[0]);
    if (res == xcclSuccess) {
        res = k->dev->launch(k->pack, one, PACK_UNITS, &pack, k->streams[0]);
    }
    if (res == xcclSuccess) {
        res = k->dev->launch(k->listed, one, PACK_UNITS, &listed, k->streams[0]);
    }
    if (res == xcclSuccess) {
        res = xm_kernel_await(k, k->shared->idle, 0, k->streams[0]);
    }
    if (res == xcclSuccess) {
        res = xm_linger_once(&k->lingering);
    }
    return (res == xcclSuccess) ? k->dev->stream_sync(k->streams[0]) : res;
}

/* None lingers behind a call where the program could not touch its managed memory meanwhile. */
static void set_lingering(const struct xm_kernels *k, struct xm_lingering *l)
{
    if ((k->dev->managed_is_exclusive != NULL) && k->dev->managed_is_exclusive(k->device)) {
        l->idle_ns = 0;
    }
}

/* loaded_p: when the functions were there. */
static xcclResult_t load_local(struct xm_kernels *k, uint64_t *loaded_p)
{
    xcclResult_t res = load_local_functions(k);

    *loaded_p = xm_now_ns();
    k->shares =
        (k->dev->runs_processes_at_once != NULL) && k->dev->runs_processes_at_once(k->device);
    if (res == xcclSuccess) {
        res = load_memory(k);
    }
    if (res == xcclSuccess) {
        res = xm_lingering_init(&k->lingering, k->dev, k->linger, &k->shared->post, k->relays, 1,
                                copy_blocks(k), k->last);
        set_lingering(k, &k->lingering);
    }
    return (res == xcclSuccess) ? launch_local_once(k) : res;
}

/* ---- those for collectives ---- */

static xcclResult_t load_collective_functions(struct xm_kernels *k)
{
    const struct function  functions[] = {{&k->attend, "xk_attend"}, {&k->exchange, "xk_exchange"},
                                          {&k->brief, "xk_short"},   {&k->mapped, "xk_mapped"},
                                          {&k->rounds, "xk_rounds"}, {&k->enqueued, "xk_enqueued"}};
    const struct xk_image *image = NULL;

    xcclResult_t res = find_image(plugin_of(k->dev), &image);
    if (res == xcclSuccess) {
        res = load_functions(k, image->collectives, functions,
                             sizeof(functions) / sizeof(functions[0]));
    }
    k->early =
        (res == xcclSuccess) && (k->dev->waits_itself != NULL) && k->dev->waits_itself(k->enqueued);
    return res;
}

static xcclResult_t launch_enqueued_once(struct xm_kernels *k, const struct xk_ranks *alone)
{
    struct xk_enqueued what = {.exchange = {.ranks = *alone, .what = XK_NO_REDUCTION},
                               .counter = (struct xk_counter *)(void *)(k->relays + 2)};

    return xm_kernel_enqueued(k, &what, 1, k->streams[0]);
}

static xcclResult_t launch_collectives_once(struct xm_kernels *k)
{
    const unsigned one[2] = {1, 1};
    /* A communicator of one rank, and no data: nobody is written to or waited for. */
    const struct xk_ranks alone = {.size = 0, .abort = (uint64_t)(uintptr_t)k->shared->idle};
    struct xk_exchange    exchange = {
           .ranks = alone, .what = XK_NO_REDUCTION, .finished = k->finished, .done = k->shared->idle};
    struct xk_mapped mapped = {.ranks = alone, .finished = k->finished, .done = k->shared->idle};
    struct xk_rounds rounds = {.ranks = alone,
                               .number = 1,
                               .what = XK_NO_REDUCTION,
                               .finished = k->finished,
                               .done = k->shared->idle};

    const struct xm_kernel_queue queue = {.stream = k->streams[0]};
    xcclResult_t                 res =
        k->dev->launch(k->exchange, one, XM_KERNEL_THREADS, &exchange, k->streams[0]);
    if (res == xcclSuccess) {
        res = xm_kernel_exchange(k, &exchange, 1, &queue, false);
    }
    if (res == xcclSuccess) {
        res = xm_kernel_mapped(k, &mapped, 1, &queue, false);
    }
    if (res == xcclSuccess) {
        res = xm_kernel_rounds(k, &rounds, 1, &queue);
    }
    if (res == xcclSuccess) {
        res = launch_enqueued_once(k, &alone);
    }
    if (res == xcclSuccess) {
        res = xm_linger_once(&k->attendant);
    }
    return (res == xcclSuccess) ? k->dev->stream_sync(k->streams[0]) : res;
}

/* By the kernel that takes the most room. */
static xcclResult_t measure_room(struct xm_kernels *k)
{
    void *const functions[] = {k->exchange, k->brief, k->mapped, k->rounds, k->attend};
    int         blocks = 0;

    for (size_t i = 0; k->shares && (i < sizeof(functions) / sizeof(functions[0])); i++) {
        xcclResult_t res =
            k->dev->blocks_at_once(k->device, functions[i], XM_KERNEL_THREADS, &blocks);
        if (res != xcclSuccess) {
            return res;
        }
        k->room = ((i == 0) || ((unsigned)blocks < k->room)) ? (unsigned)blocks : k->room;
    }
    return xcclSuccess;
}

static xcclResult_t load_collectives(struct xm_kernels *k, uint64_t *loaded_p)
{
    xcclResult_t res = load_collective_functions(k);

    *loaded_p = xm_now_ns();
    if (res == xcclSuccess) {
        res = measure_room(k);
    }
    if (res == xcclSuccess) {
        res = xm_lingering_init(&k->attendant, k->dev, k->attend, &k->shared->attended,
                                k->relays + 1, FEW_BLOCKS, many_blocks(k), k->last);
        set_lingering(k, &k->attendant);
    }
    return (res == xcclSuccess) ? launch_collectives_once(k) : res;
}

/* ---- loading, by a thread ---- */

static void load(struct xm_job *base)
{
    struct load_job   *job = (struct load_job *)base;
    struct xm_kernels *k = job->kernels;
    bool               local = job->local;
    void              *saved;
    uint64_t           begun = xm_now_ns(), loaded = begun;
    /* Those for collectives use what the others have made. */
    bool         lost = !local && (xc_device_resets(k->dev, k->device, true) != k->resets);
    xcclResult_t res = lost ? xc_fail(xcclUnhandledDeviceError, "the device was reset meanwhile")
                            : k->dev->enter(k->device, &saved);

    free(job);
    if (res == xcclSuccess) {
        res = local ? load_local(k, &loaded) : load_collectives(k, &loaded);
        k->dev->leave(saved);
    }
    if (res != xcclSuccess) {
        xc_info("device %d: %s: %s", k->device,
                local ? "copies by the runtime alone" : "no kernels for collectives",
                xc_last_detail());
    } else {
        xc_info("device %d: kernels for %s are ready after %.1f ms, of which %.1f to load them",
                k->device, local ? "copies" : "collectives", (double)(xm_now_ns() - begun) / 1e6,
                (double)(loaded - begun) / 1e6);
    }
    __atomic_store_n(local ? &k->state : &k->collectives, (res == xcclSuccess) ? READY : FAILED,
                     __ATOMIC_RELEASE);
}

/* Those of before a reset are gone with all that they had. */
static struct xm_kernels *find(const struct xc_device_ops *dev, int device)
{
    unsigned resets = xc_device_resets(dev, device, false);

    for (int i = 0; i < __atomic_load_n(&count, __ATOMIC_ACQUIRE); i++) {
        if ((all[i].dev == dev) && (all[i].device == device) && (all[i].resets == resets)) {
            return &all[i];
        }
    }
    return NULL;
}

/* With the lock. */
static void start(struct xm_kernels *k, bool local)
{
    int             *state_p = local ? &k->state : &k->collectives;
    struct load_job *job = calloc(1, sizeof(*job));

    __atomic_store_n(state_p, LOADING, __ATOMIC_RELEASE);
    if (job != NULL) {
        *job =
            (struct load_job){.job = {.run = load, .settles = true}, .kernels = k, .local = local};
    }
    if ((job == NULL) || (xm_worker_start(&job->job) != xcclSuccess)) {
        free(job);
        __atomic_store_n(state_p, FAILED, __ATOMIC_RELEASE);
    }
}

static void begin_loading(const struct xc_device_ops *dev, int device)
{
    pthread_mutex_lock(&lock);
    if ((find(dev, device) == NULL) && (count < MAX_DEVICES)) {
        struct xm_kernels *k = &all[count];
        *k = (struct xm_kernels){
            .dev = dev, .device = device, .resets = xc_device_resets(dev, device, false)};
        start(k, true);
        __atomic_store_n(&count, count + 1, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
}

struct xm_kernels *xm_kernels_of(const struct xc_device_ops *dev, int device)
{
    if (xc_params()->direct == XC_DIRECT_OFF) {
        return NULL;
    }
    struct xm_kernels *k = find(dev, device);
    if (k != NULL) {
        return (__atomic_load_n(&k->state, __ATOMIC_ACQUIRE) == READY) ? k : NULL;
    }
    begin_loading(dev, device);
    return NULL;
}

struct xm_kernels *xm_collective_kernels_of(const struct xc_device_ops *dev, int device)
{
    struct xm_kernels *k = xm_kernels_of(dev, device);
    int state = (k != NULL) ? __atomic_load_n(&k->collectives, __ATOMIC_ACQUIRE) : LOADING;

    if (state == NONE) {
        pthread_mutex_lock(&lock);
        if (k->collectives == NONE) {
            start(k, false);
        }
        pthread_mutex_unlock(&lock);
    }
    return (state == READY) ? k : NULL;
}

bool xm_kernels_failed(const struct xc_device_ops *dev, int device)
{
    const struct xm_kernels *k = find(dev, device);

    if (k != NULL) {
        return __atomic_load_n(&k->state, __ATOMIC_ACQUIRE) == FAILED;
    }
    /* After so many resets there is no room for more. */
    return (xc_params()->direct == XC_DIRECT_OFF) ||
           (__atomic_load_n(&count, __ATOMIC_ACQUIRE) == MAX_DEVICES);
}

bool xm_collective_kernels_failed(const struct xc_device_ops *dev, int device)
{
    const struct xm_kernels *k = find(dev, device);

    return xm_kernels_failed(dev, device) ||
           ((k != NULL) && (__atomic_load_n(&k->collectives, __ATOMIC_ACQUIRE) == FAILED));
}

/* ---- the direct path ---- */

static void repeat(struct xm_kernels *k, void *function, const void *arguments, size_t bytes,
                   xcclStream_t stream, void **repeat_p)
{
    *repeat_p = NULL;
    if ((k->dev->repeat_create != NULL) &&
        (k->dev->repeat_create(repeat_p, function, arguments, bytes, stream) != xcclSuccess)) {
        xc_info("kernels are launched one by one: %s", xc_last_detail());
        *repeat_p = NULL;
    }
}

xcclResult_t xm_kernel_queue_create(struct xm_kernels *k, struct xm_kernel_queue *q)
{
    static const struct xk_exchange exchange;
    static const struct xk_mapped   mapped;
    xcclResult_t                    res = k->dev->stream_create_urgent(&q->stream);

    if (res == xcclSuccess) {
        repeat(k, k->exchange, &exchange, 0, q->stream, &q->exchange);
        repeat(k, k->brief, &exchange, sizeof(exchange), q->stream, &q->brief);
        repeat(k, k->mapped, &mapped, 0, q->stream, &q->mapped);
    }
    return res;
}

void xm_kernel_queue_destroy(struct xm_kernels *k, struct xm_kernel_queue *q)
{
    if (q->exchange != NULL) {
        k->dev->repeat_destroy(q->exchange);
    }
    if (q->brief != NULL) {
        k->dev->repeat_destroy(q->brief);
    }
    if (q->mapped != NULL) {
        k->dev->repeat_destroy(q->mapped);
    }
    k->dev->stream_destroy(q->stream);
}

/* To set what is launched again may wait until it is over, and that may wait for other ranks. */
static xcclResult_t launch(struct xm_kernels *k, void *function, void *repeat, unsigned blocks,
                           const void *what, const void *next, xcclStream_t stream)
{
    const unsigned grid[2] = {blocks, 1};

    if ((repeat != NULL) &&
        (k->dev->repeat_launch(repeat, grid, XM_KERNEL_THREADS, what, next) == xcclSuccess)) {
        return xcclSuccess;
    }
    return k->dev->launch(function, grid, XM_KERNEL_THREADS, what, stream);
}

/* Programs call the same on the same buffers: then only the number differs. */
static xcclResult_t launch_short(struct xm_kernels *k, const struct xk_exchange *what,
                                 unsigned blocks, void *repeat, xcclStream_t stream)
{
    struct xk_exchange next = *what;

    next.number++;
    return launch(k, k->brief, repeat, blocks, what, &next, stream);
}

xcclResult_t xm_kernel_exchange(struct xm_kernels *k, const struct xk_exchange *what,
                                unsigned blocks, const struct xm_kernel_queue *q, bool alone)
{
    if (xk_is_short(what->ranks.size, what->most, blocks)) {
        return launch_short(k, what, blocks, alone ? q->brief : NULL, q->stream);
    }
    return launch(k, k->exchange, alone ? q->exchange : NULL, blocks, what, NULL, q->stream);
}

xcclResult_t xm_kernel_mapped(struct xm_kernels *k, const struct xk_mapped *what, unsigned blocks,
                              const struct xm_kernel_queue *q, bool alone)
{
    return launch(k, k->mapped, alone ? q->mapped : NULL, blocks, what, NULL, q->stream);
}

xcclResult_t xm_kernel_rounds(struct xm_kernels *k, const struct xk_rounds *what, unsigned blocks,
                              const struct xm_kernel_queue *q)
{
    return launch(k, k->rounds, NULL, blocks, what, NULL, q->stream);
}

xcclResult_t xm_kernel_enqueued(struct xm_kernels *k, const struct xk_enqueued *what,
                                unsigned blocks, xcclStream_t stream)
{
    const unsigned grid[2] = {blocks, 1};

    return (k->early ? k->dev->launch_early : k->dev->launch)(k->enqueued, grid, XM_KERNEL_THREADS,
                                                              what, stream);
}

xcclResult_t xm_kernel_await(struct xm_kernels *k, const uint32_t *word, uint32_t least,
                             xcclStream_t stream)
{
    const unsigned        one[2] = {1, 1};
    const struct xk_await what = {.word = word, .least = least};

    return k->dev->launch(k->await, one, 1, &what, stream);
}

unsigned xm_kernels_room(const struct xm_kernels *k)
{
    return k->room;
}

uint32_t xm_kernels_last_number(const struct xm_kernels *k)
{
    return k->last;
}

struct xm_lingering *xm_kernels_attendant(struct xm_kernels *k)
{
    return &k->attendant;
}

xcclResult_t xm_kernel_pack(struct xm_kernels *k, const struct xk_pack *what, xcclStream_t stream)
{
    unsigned long long most = 1;
    unsigned           y = (what->count < 32768) ? what->count : 32768;

    for (unsigned i = 0; (what->runs == NULL) && (i < what->count); i++) {
        unsigned long long units = what->few[i].bytes / what->few[i].unit * what->few[i].stretches;
        most = (units > most) ? units : most;
    }
    if (what->runs != NULL) {
        most = PACK_UNITS; /* many runs: each of them is short */
    }
    unsigned long long blocks = (most + PACK_UNITS - 1) / PACK_UNITS;
    const unsigned     grid[2] = {(unsigned)((blocks < PACK_BLOCKS) ? blocks : PACK_BLOCKS), y};
    return k->dev->launch(k->pack, grid, PACK_UNITS, what, stream);
}

xcclResult_t xm_kernel_pack_listed(struct xm_kernels *k, const struct xk_listed *what,
                                   xcclStream_t stream)
{
    unsigned long long blocks = (what->total / what->unit + PACK_UNITS - 1) / PACK_UNITS;
    const unsigned     grid[2] = {(unsigned)((blocks < LISTED_BLOCKS) ? blocks : LISTED_BLOCKS), 1};

    return k->dev->launch(k->listed, grid, PACK_UNITS, what, stream);
}

bool xm_quick_copy(struct xm_kernels *k, enum xm_quick way, void *to, const void *from,
                   size_t bytes)
{
    size_t most = (way == XM_QUICK_FETCH_WIDE) ? XM_QUICK_WIDE_BYTES
                  : (way == XM_QUICK_FETCH)    ? XM_QUICK_FETCH_BYTES
                                               : XM_QUICK_BYTES;

    return (bytes <= most) && xm_linger_copy(&k->lingering, way, to, from, (uint32_t)bytes);
}

bool xm_kernels_linger(struct xm_kernels *k)
{
    return xm_linger_is_there(&k->lingering);
}

bool xm_quick_pack(struct xm_kernels *k, const struct xk_pack *what, bool elsewhere)
{
    uint64_t units = 0;

    for (uint32_t i = 0; (what->runs == NULL) && (i < what->count); i++) {
        units += what->few[i].bytes / what->few[i].unit * what->few[i].stretches;
    }
    return (what->runs == NULL) && (units <= XM_QUICK_UNITS) &&
           xm_linger_pack(&k->lingering, what, elsewhere);
}

bool xm_quick_pack_listed(struct xm_kernels *k, const struct xk_listed *what, bool elsewhere)
{
    return (what->total / what->unit <= XM_QUICK_UNITS) &&
           xm_linger_pack_listed(&k->lingering, what, elsewhere);
}

/* What is still being loaded is left to the end of the process, with all that it uses. */
static bool may_end(const struct xm_kernels *k)
{
    return (__atomic_load_n(&k->state, __ATOMIC_ACQUIRE) == READY) &&
           (__atomic_load_n(&k->collectives, __ATOMIC_ACQUIRE) != LOADING);
}

void xm_kernels_finalize(void)
{
    void *saved;

    for (int i = 0; i < __atomic_load_n(&count, __ATOMIC_ACQUIRE); i++) {
        struct xm_kernels *k = &all[i];
        if (!may_end(k) || !xc_device_enter_kept(k->dev, k->device, k->resets, &saved)) {
            continue;
        }
        xm_lingering_end(&k->lingering);
        if (k->collectives == READY) {
            xm_lingering_end(&k->attendant);
        }
        for (int s = 0; s < XM_KERNEL_STREAMS; s++) {
            k->dev->stream_sync(k->streams[s]);
            k->dev->stream_destroy(k->streams[s]);
        }
        k->dev->mem_free(k->finished);
        k->dev->host_free(k->shared);
        k->dev->leave(saved);
        __atomic_store_n(&k->state, FAILED, __ATOMIC_RELEASE);
    }
}
