/* SPDX-License-Identifier: BSD-3-Clause */
#include "direct/arena.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/log.h"
#include "base/params.h"
#include "comms/wait.h"
#include "comms/worker.h"
#include "data/mappings.h"
#include "data/outstanding.h"

enum { MAX_ARENAS = 16, UNIT = 64 << 10, MAX_IDLE_QUEUES = 16 };
/* The driver maps whole blocks. */
enum { BLOCK = 2 << 20 };

enum { MOST_REFUSALS = 40 };
/* The first unit holds the counters of the kernels' blocks. */
_Static_assert(XM_ARENA_WORDS * sizeof(uint32_t) <= UNIT, "counters fit");

/* Kernels are loaded in this time, or not at all. */
static const uint64_t load_ns = 30000000000u;

struct opened {
    uint64_t key;
    char    *base;
    int      users;
    uint64_t there, bytes; /* where it is in its process */
};

struct xm_arena {
    const struct xc_device_ops *dev;
    int                         device;
    unsigned                    resets; /* of the device before it was made */
    int                         state;  /* enum xm_arena_state, atomic */
    struct xm_job               job;
    char                        reason[256];
    struct xm_kernels          *kernels;
    char                       *base;
    size_t                      bytes;
    struct xc_ipc               ipc;
    uint64_t                    key;
    struct xm_arena_words      *words; /* pinned */

    pthread_mutex_t        lock; /* of the following */
    size_t                 used;
    bool                  *taken; /* of each unit */
    uint32_t              *last;  /* number of the last operation in each unit */
    bool                   words_taken[XM_ARENA_WORDS];
    struct xm_kernel_queue queues[MAX_IDLE_QUEUES];
    int                    num_queues;
    struct opened          opened[XM_ARENA_OPENED];
    int                    num_opened;
    int                    num_clearing; /* workspaces that are cleared, and free then */
    bool                   opening;
    unsigned               refusals;   /* of memory of others that could not be mapped */
    uint64_t               turns_away; /* so many communicators, before it is tried again */
};

struct open_job {
    struct xm_job        job;
    struct xm_arena     *arena;
    int                  count;
    struct xm_arena_peer peers[XM_ARENA_OPENED];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct xm_arena arenas[MAX_ARENAS];
static int             count; /* atomic */

static xcclResult_t wait_for_kernels(struct xm_arena *a)
{
    const struct timespec nap = {0, 1000 * 1000};
    uint64_t              begun = xm_now_ns();

    while ((a->kernels = xm_collective_kernels_of(a->dev, a->device)) == NULL) {
        if (xm_collective_kernels_failed(a->dev, a->device)) {
            return xc_fail(xcclLibraryNotFound, "there are no kernels for this device");
        }
        if (xm_now_ns() - begun > load_ns) {
            return xc_fail(xcclTimeout, "kernels were not loaded in time");
        }
        nanosleep(&nap, NULL);
    }
    return xcclSuccess;
}

static xcclResult_t clear(struct xm_arena *a)
{
    struct xm_kernel_queue q;
    xcclResult_t           res = xm_kernel_queue_create(a->kernels, &q);

    if (res != xcclSuccess) {
        return res;
    }
    res = a->dev->set_async(a->base, 0, a->bytes, q.stream);
    if (res == xcclSuccess) {
        res = a->dev->stream_sync(q.stream);
    }
    a->queues[a->num_queues++] = q;
    return res;
}

static xcclResult_t allocate(struct xm_arena *a)
{
    size_t units;
    void  *base = NULL, *words = NULL;

    a->bytes = (size_t)xc_params()->direct_memory << 20;
    units = a->bytes / UNIT;
    a->taken = calloc(units, sizeof(*a->taken));
    a->last = calloc(units, sizeof(*a->last));
    if ((a->taken == NULL) || (a->last == NULL) ||
        (getrandom(&a->key, sizeof(a->key), 0) != (ssize_t)sizeof(a->key))) {
        return xc_fail(xcclSystemError, "out of memory");
    }
    a->taken[0] = true;
    a->used = UNIT;
    xcclResult_t res = (a->dev->mem_alloc_shared != NULL)
                           ? a->dev->mem_alloc_shared(&base, a->bytes)
                           : a->dev->mem_alloc(&base, a->bytes);
    if (res == xcclSuccess) {
        a->base = base;
        res = a->dev->host_alloc(&words, XM_ARENA_WORDS * sizeof(*a->words));
    }
    if (res == xcclSuccess) {
        memset(words, 0, XM_ARENA_WORDS * sizeof(*a->words));
        a->words = words;
        res = clear(a);
    }
    return (res == xcclSuccess) ? a->dev->ipc_export(a->base, &a->ipc) : res;
}

/* With the device entered: what nobody can map is of no use. */
static void free_all(struct xm_arena *a)
{
    while (a->num_queues > 0) {
        xm_kernel_queue_destroy(a->kernels, &a->queues[--a->num_queues]);
    }
    if (a->words != NULL) {
        a->dev->host_free(a->words);
    }
    if (a->base != NULL) {
        a->dev->mem_free(a->base);
    }
    free(a->taken);
    free(a->last);
}

static void make(struct xm_job *job)
{
    struct xm_arena *a = (struct xm_arena *)((char *)job - offsetof(struct xm_arena, job));
    void            *saved;
    xcclResult_t     res = wait_for_kernels(a);

    if (res == xcclSuccess) {
        res = a->dev->enter(a->device, &saved);
    }
    if (res == xcclSuccess) {
        res = allocate(a);
        if (res != xcclSuccess) {
            snprintf(a->reason, sizeof(a->reason), "%s", xc_last_detail());
            free_all(a);
        }
        a->dev->leave(saved);
    } else {
        snprintf(a->reason, sizeof(a->reason), "%s", xc_last_detail());
    }
    __atomic_store_n(&a->state, (res == xcclSuccess) ? XM_ARENA_READY : XM_ARENA_NEVER,
                     __ATOMIC_RELEASE);
}

/* One of before a reset is gone. */
static struct xm_arena *find(const struct xc_device_ops *dev, int device)
{
    unsigned resets = xc_device_resets(dev, device, false);

    for (int i = 0; i < __atomic_load_n(&count, __ATOMIC_ACQUIRE); i++) {
        if ((arenas[i].dev == dev) && (arenas[i].device == device) &&
            (arenas[i].resets == resets)) {
            return &arenas[i];
        }
    }
    return NULL;
}

struct xm_arena *xm_arena_of(const struct xc_device_ops *dev, int device)
{
    struct xm_arena *a = find(dev, device);

    if (a != NULL) {
        return a;
    }
    pthread_mutex_lock(&lock);
    a = find(dev, device);
    if ((a == NULL) && (count < MAX_ARENAS)) {
        a = &arenas[count];
        *a = (struct xm_arena){.dev = dev,
                               .device = device,
                               .resets = xc_device_resets(dev, device, false),
                               .state = XM_ARENA_LATER};
        pthread_mutex_init(&a->lock, NULL);
        a->job = (struct xm_job){.run = make, .settles = true};
        if (xm_worker_start(&a->job) != xcclSuccess) {
            snprintf(a->reason, sizeof(a->reason), "%s", xc_last_detail());
            a->state = XM_ARENA_NEVER;
        }
        __atomic_store_n(&count, count + 1, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
    return a;
}

enum xm_arena_state xm_arena_state(const struct xm_arena *a)
{
    return (enum xm_arena_state)__atomic_load_n(&a->state, __ATOMIC_ACQUIRE);
}

const char *xm_arena_reason(const struct xm_arena *a)
{
    return a->reason;
}

struct xm_kernels *xm_arena_kernels(const struct xm_arena *a)
{
    return a->kernels;
}

const struct xc_ipc *xm_arena_ipc(const struct xm_arena *a)
{
    return &a->ipc;
}

bool xm_arena_lost(const struct xm_arena *a)
{
    return xc_device_resets(a->dev, a->device, true) != a->resets;
}

char *xm_arena_base(const struct xm_arena *a)
{
    return a->base;
}

uint64_t xm_arena_key(const struct xm_arena *a)
{
    return a->key;
}

/* ---- workspaces ---- */

static size_t units_of(size_t bytes)
{
    return (bytes + UNIT - 1) / UNIT;
}

enum xm_arena_room xm_arena_take(struct xm_arena *a, size_t bytes, uint64_t *offset_p,
                                 uint32_t *first_p)
{
    size_t all = a->bytes / UNIT, n = units_of(bytes), run = 0;
    bool   found = false;

    pthread_mutex_lock(&a->lock);
    enum xm_arena_room without = (a->num_clearing > 0) ? XM_ARENA_ROOM_SOON : XM_ARENA_NO_ROOM;
    for (size_t i = 0; (i < all) && !found; i++) {
        run = a->taken[i] ? 0 : run + 1;
        if (run == n) {
            size_t   begin = i + 1 - n;
            uint32_t last = 0;
            for (size_t u = begin; u <= i; u++) {
                a->taken[u] = true;
                last = (a->last[u] > last) ? a->last[u] : last;
            }
            a->used += n * UNIT;
            *offset_p = begin * UNIT;
            *first_p = last + 1;
            found = true;
        }
    }
    pthread_mutex_unlock(&a->lock);
    return found ? XM_ARENA_ROOM : without;
}

static void count_clearing(struct xm_arena *a, int by)
{
    pthread_mutex_lock(&a->lock);
    a->num_clearing += by;
    pthread_mutex_unlock(&a->lock);
}

/* Numbers have come far: with the memory cleared they begin anew. */
struct clear_job {
    struct xm_job    job;
    struct xm_arena *arena;
    uint64_t         offset;
    size_t           bytes;
};

static void clear_and_give(struct xm_job *job)
{
    struct clear_job      *j = (struct clear_job *)job;
    struct xm_arena       *a = j->arena;
    struct xm_kernel_queue q;
    void                  *saved;
    xcclResult_t           res = xcclInternalError;

    if (xc_device_enter_kept(a->dev, a->device, a->resets, &saved)) {
        res = xm_arena_take_queue(a, &q);
        if (res == xcclSuccess) {
            res = a->dev->set_async(a->base + j->offset, 0, j->bytes, q.stream);
            if (res == xcclSuccess) {
                res = a->dev->stream_sync(q.stream);
            }
            xm_arena_give_queue(a, &q);
        }
        a->dev->leave(saved);
    }
    if (res == xcclSuccess) {
        xm_arena_give(a, j->offset, j->bytes, 0);
    } /* else it stays taken */
    count_clearing(a, -1);
    free(j);
}

static bool clear_first(struct xm_arena *a, uint64_t offset, size_t bytes)
{
    struct clear_job *j = calloc(1, sizeof(*j));

    if (j == NULL) {
        return false;
    }
    *j = (struct clear_job){{.run = clear_and_give, .settles = true}, a, offset, bytes};
    count_clearing(a, 1);
    if (xm_worker_start(&j->job) != xcclSuccess) {
        count_clearing(a, -1);
        free(j);
        return false;
    }
    return true;
}

void xm_arena_give(struct xm_arena *a, uint64_t offset, size_t bytes, uint32_t last)
{
    size_t begin = offset / UNIT, n = units_of(bytes);

    if ((last > xm_kernels_last_number(a->kernels) / 2) && clear_first(a, offset, bytes)) {
        return;
    }
    pthread_mutex_lock(&a->lock);
    for (size_t u = begin; u < begin + n; u++) {
        a->taken[u] = false;
        a->last[u] = last;
    }
    a->used -= n * UNIT;
    pthread_mutex_unlock(&a->lock);
}

int xm_arena_take_words(struct xm_arena *a)
{
    int found = -1;

    pthread_mutex_lock(&a->lock);
    for (int i = 0; (i < XM_ARENA_WORDS) && (found < 0); i++) {
        if (!a->words_taken[i]) {
            a->words_taken[i] = true;
            memset(&a->words[i], 0, sizeof(a->words[i]));
            found = i;
        }
    }
    pthread_mutex_unlock(&a->lock);
    return found;
}

void xm_arena_give_words(struct xm_arena *a, int at)
{
    pthread_mutex_lock(&a->lock);
    a->words_taken[at] = false;
    pthread_mutex_unlock(&a->lock);
}

struct xm_arena_words *xm_arena_words(struct xm_arena *a, int at)
{
    return &a->words[at];
}

uint32_t *xm_arena_finished(struct xm_arena *a, int at)
{
    return (uint32_t *)(void *)a->base + at;
}

/* ---- queues ---- */

xcclResult_t xm_arena_take_queue(struct xm_arena *a, struct xm_kernel_queue *q)
{
    pthread_mutex_lock(&a->lock);
    bool found = (a->num_queues > 0);
    if (found) {
        *q = a->queues[--a->num_queues];
    }
    pthread_mutex_unlock(&a->lock);
    return found ? xcclSuccess : xm_kernel_queue_create(a->kernels, q);
}

void xm_arena_give_queue(struct xm_arena *a, struct xm_kernel_queue *q)
{
    void *saved;

    pthread_mutex_lock(&a->lock);
    bool keep = (a->num_queues < MAX_IDLE_QUEUES);
    if (keep) {
        a->queues[a->num_queues++] = *q;
    }
    pthread_mutex_unlock(&a->lock);
    if (!keep && xc_device_enter_kept(a->dev, a->device, a->resets, &saved)) {
        xm_kernel_queue_destroy(a->kernels, q);
        a->dev->leave(saved);
    }
}

/* ---- the arenas of others ---- */

static char *find_opened(const struct xm_arena *a, uint64_t key)
{
    for (int i = 0; i < a->num_opened; i++) {
        if (a->opened[i].key == key) {
            return a->opened[i].base;
        }
    }
    return NULL;
}

char *xm_arena_opened(struct xm_arena *a, uint64_t key)
{
    pthread_mutex_lock(&a->lock);
    char *base = (key == a->key) ? a->base : find_opened(a, key);
    pthread_mutex_unlock(&a->lock);
    return base;
}

int xm_arena_list_opened(struct xm_arena *a, uint64_t keys[XM_ARENA_OPENED])
{
    pthread_mutex_lock(&a->lock);
    int n = a->num_opened;
    for (int i = 0; i < n; i++) {
        keys[i] = a->opened[i].key;
        a->opened[i].users++;
    }
    pthread_mutex_unlock(&a->lock);
    return n;
}

void xm_arena_let_go(struct xm_arena *a, uint64_t key)
{
    pthread_mutex_lock(&a->lock);
    for (int i = 0; i < a->num_opened; i++) {
        a->opened[i].users -= (a->opened[i].key == key);
    }
    pthread_mutex_unlock(&a->lock);
}

static bool is_wanted(const struct open_job *j, uint64_t key)
{
    bool wanted = false;

    for (int i = 0; i < j->count; i++) {
        wanted = wanted || (j->peers[i].key == key);
    }
    return wanted;
}

static bool share_a_block(const struct opened *o, const struct xc_ipc *ipc)
{
    return (o->there / BLOCK <= (ipc->base + ipc->bytes - 1) / BLOCK) &&
           (ipc->base / BLOCK <= (o->there + o->bytes - 1) / BLOCK);
}

/* Of those that nobody uses, the one that was mapped first; in_place_of: if it lies there, or NULL.
 */
static bool close_idle(struct xm_arena *a, const struct open_job *j,
                       const struct xc_ipc *in_place_of)
{
    char *base = NULL;

    pthread_mutex_lock(&a->lock);
    for (int i = 0; (i < a->num_opened) && (base == NULL); i++) {
        const struct opened *o = &a->opened[i];
        if ((o->users == 0) && !is_wanted(j, o->key) &&
            ((in_place_of == NULL) || share_a_block(o, in_place_of))) {
            base = o->base;
            a->num_opened--;
            memmove(&a->opened[i], &a->opened[i + 1],
                    (size_t)(a->num_opened - i) * sizeof(a->opened[0]));
        }
    }
    pthread_mutex_unlock(&a->lock);
    if (base != NULL) {
        xm_alone_begin();
        a->dev->ipc_close(base);
        xm_alone_end();
    }
    return base != NULL;
}

/* The first one's process may have ended. */
static bool make_room(struct xm_arena *a, const struct open_job *j)
{
    pthread_mutex_lock(&a->lock);
    bool room = (a->num_opened < XM_ARENA_OPENED);
    pthread_mutex_unlock(&a->lock);
    return room || close_idle(a, j, NULL);
}

static bool is_in_use_there(struct xm_arena *a, const struct xc_ipc *ipc)
{
    bool found = false;

    pthread_mutex_lock(&a->lock);
    for (int i = 0; i < a->num_opened; i++) {
        found = found || ((a->opened[i].users > 0) && share_a_block(&a->opened[i], ipc));
    }
    pthread_mutex_unlock(&a->lock);
    return found;
}

/*
 * In its place may be an arena of before the process reset its device, or of one that has ended. In
 * use: by a communicator that is to be freed, or one that is about to ask for others.
 */
static xcclResult_t open_in_place(struct xm_arena *a, const struct open_job *j,
                                  const struct xc_ipc *ipc, void **base_p)
{
    xcclResult_t res = a->dev->ipc_open(ipc, base_p);

    while ((res == xcclInProgress) && close_idle(a, j, ipc)) {
        res = a->dev->ipc_open(ipc, base_p);
    }
    if ((res != xcclInProgress) || is_in_use_there(a, ipc) || xm_mappings_make_way(a->dev, ipc)) {
        return res;
    }
    res = a->dev->ipc_open(ipc, base_p); /* it may have gone in between */
    return (res != xcclInProgress)
               ? res
               : xc_fail(xcclUnhandledCudaError, "something that another process has freed is "
                                                 "still mapped at the place of its workspace");
}

static xcclResult_t open_one(struct xm_arena *a, const struct open_job *j,
                             const struct xm_arena_peer *peer)
{
    void *base;

    if (xm_arena_opened(a, peer->key) != NULL) {
        return xcclSuccess;
    }
    if (!make_room(a, j)) {
        return xcclInProgress; /* once a communicator is freed */
    }
    xcclResult_t res = open_in_place(a, j, &peer->ipc, &base);
    if (res != xcclSuccess) {
        return res;
    }
    pthread_mutex_lock(&a->lock); /* nobody else adds one */
    a->opened[a->num_opened++] =
        (struct opened){peer->key, base, 0, peer->ipc.base, peer->ipc.bytes};
    pthread_mutex_unlock(&a->lock);
    return xcclSuccess;
}

static void open_all(struct xm_job *job)
{
    struct open_job *j = (struct open_job *)job;
    struct xm_arena *a = j->arena;
    void            *saved;
    xcclResult_t     res = a->dev->enter(a->device, &saved);

    if (res == xcclSuccess) {
        for (int i = 0; (res == xcclSuccess) && (i < j->count); i++) {
            res = open_one(a, j, &j->peers[i]);
        }
        a->dev->leave(saved);
    }
    bool refused = (res != xcclSuccess) && (res != xcclInProgress); /* else the ranks join later */
    if (refused) {
        xc_info("device %d: no direct path: %s", a->device, xc_last_detail());
    }
    pthread_mutex_lock(&a->lock);
    a->opening = false;
    if (refused) {
        a->refusals += (a->refusals < MOST_REFUSALS);
        a->turns_away = UINT64_C(1) << (a->refusals - 1);
    }
    pthread_mutex_unlock(&a->lock);
    free(j);
}

bool xm_arena_open(struct xm_arena *a, const struct xm_arena_peer *peers, int n)
{
    struct open_job *j = calloc(1, sizeof(*j));

    pthread_mutex_lock(&a->lock);
    bool start = (j != NULL) && !a->opening && (n <= XM_ARENA_OPENED);
    a->opening = a->opening || start;
    pthread_mutex_unlock(&a->lock);
    if (!start) {
        free(j);
        return false;
    }
    j->job = (struct xm_job){.run = open_all, .settles = true};
    j->arena = a;
    j->count = n;
    memcpy(j->peers, peers, (size_t)n * sizeof(*peers));
    if (xm_worker_start(&j->job) != xcclSuccess) {
        pthread_mutex_lock(&a->lock);
        a->opening = false;
        pthread_mutex_unlock(&a->lock);
        free(j);
        return false;
    }
    return true;
}

bool xm_arena_turns_away(struct xm_arena *a)
{
    pthread_mutex_lock(&a->lock);
    bool away = (a->turns_away > 0);
    a->turns_away -= away;
    pthread_mutex_unlock(&a->lock);
    return away;
}

size_t xm_arena_bytes(const struct xm_arena *a)
{
    return a->bytes;
}

size_t xm_arena_used(const struct xm_arena *a)
{
    return a->used;
}
