/* SPDX-License-Identifier: BSD-3-Clause */
#include "comms/vendor_comm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/params.h"
#include "comms/wait.h"

/* What MPI_Finalize waits for the destruction, which needs the other ranks of the node. */
static const uint64_t finalize_ns = 20000000000u;
/* And the program's first stream: they may come to the destruction after that. */
static const uint64_t settle_ns = 2000000000u;
/* Making one takes a second; or for ever, where another rank did not begin to. */
static const uint64_t making_ns = 5000000000u;

static pthread_mutex_t   pool_lock = PTHREAD_MUTEX_INITIALIZER;
static struct xm_vendor *pool; /* newest first */
static int               pooled;
static struct xm_vendor *deferred;   /* to be destroyed, */
static int               streams;    /* when these are none */
static int               in_use;     /* atomic */
static int               destroying; /* atomic: threads at it, or about to be */
static int               aborting;   /* atomic: the same of those that are broken */
static int               making;     /* atomic: the same */

/* The unique id is random: its hash is as good as unique, and equal on all ranks. */
static uint64_t number_of(const xcclUniqueId *id)
{
    uint64_t hash = xc_hash_bytes(XC_HASH_BEGIN, id, sizeof(*id));

    return (hash != 0) ? hash : 1;
}

static struct xm_vendor *vendor_new(const struct xm_vendor_job *job, xcclComm_t xcomm)
{
    struct xm_vendor *v = calloc(1, sizeof(*v));

    if (v == NULL) {
        return NULL;
    }
    v->peers = calloc((size_t)job->nranks, 1);
    if (v->peers == NULL) {
        free(v);
        return NULL;
    }
    pthread_mutex_init(&v->lock, NULL);
    v->queue_end = &v->queue;
    v->xcomm = xcomm;
    v->dev = job->dev;
    v->device = job->device;
    v->resets = xc_device_resets(job->dev, job->device, false);
    v->id = number_of(&job->id);
    v->nranks = job->nranks;
    v->rank = job->rank;
    v->users = 1;
    __atomic_add_fetch(&in_use, 1, __ATOMIC_RELAXED);
    return v;
}

static void vendor_free(struct xm_vendor *v)
{
    pthread_mutex_destroy(&v->lock);
    while (v->kinds != NULL) {
        struct xm_vendor_kind *kind = v->kinds;
        v->kinds = kind->next;
        free(kind);
    }
    free(v->world_ranks);
    free(v->peers);
    free(v);
}

static xcclResult_t make(struct xm_vendor_job *job)
{
    xcclComm_t   xcomm = NULL;
    void        *saved;
    xcclResult_t res = job->dev->enter(job->device, &saved);

    if (res != xcclSuccess) {
        return res;
    }
    int mode = xc_device_relax(job->dev);
    res = xcclCommInitRank(&xcomm, job->nranks, job->id, job->rank);
    xc_device_restore(job->dev, mode);
    if (res != xcclSuccess) {
        goto leave;
    }
    job->vendor = vendor_new(job, xcomm);
    if (job->vendor == NULL) {
        res = xc_fail(xcclSystemError, "out of memory for a communicator");
        goto abort_comm;
    }
    res = job->dev->stream_create(&job->vendor->stream);
    if (res != xcclSuccess) {
        goto free_vendor;
    }
    goto leave;
free_vendor:
    __atomic_sub_fetch(&in_use, 1, __ATOMIC_RELAXED);
    vendor_free(job->vendor);
    job->vendor = NULL;
abort_comm:
    xcclCommAbort(xcomm);
leave:
    job->dev->leave(saved);
    return res;
}

enum { KEPT, LEFT, OVER }; /* values of abandoned */

static void run_make(struct xm_job *base)
{
    struct xm_vendor_job *job = (struct xm_vendor_job *)base;

    job->begun = xm_now_ns();
    job->result = make(job);
    job->ended = xm_now_ns();
    snprintf(job->detail, sizeof(job->detail), "%s", xc_last_detail());
    int kept = KEPT;
    if (!__atomic_compare_exchange_n(&job->abandoned, &kept, OVER, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE)) {
        if (job->vendor != NULL) {
            xm_vendor_break(job->vendor);
            xm_vendor_release(job->vendor);
        }
        free(job);
    }
    __atomic_sub_fetch(&making, 1, __ATOMIC_ACQ_REL);
}

xcclResult_t xm_vendor_begin(const struct xc_device_ops *dev, int device, int nranks, int rank,
                             const xcclUniqueId *id, struct xm_vendor_job **job_p)
{
    struct xm_vendor_job *job = calloc(1, sizeof(*job));

    if (job == NULL) {
        return xc_fail(xcclSystemError, "out of memory for a communicator");
    }
    job->job.run = run_make;
    job->dev = dev;
    job->device = device;
    job->nranks = nranks;
    job->rank = rank;
    job->id = *id;
    __atomic_add_fetch(&making, 1, __ATOMIC_ACQ_REL);
    xcclResult_t res = xm_worker_start(&job->job);
    if (res != xcclSuccess) {
        __atomic_sub_fetch(&making, 1, __ATOMIC_ACQ_REL);
        free(job);
        return res;
    }
    *job_p = job;
    return xcclSuccess;
}

bool xm_vendor_ended(struct xm_vendor_job *job)
{
    return __atomic_load_n(&job->abandoned, __ATOMIC_ACQUIRE) == OVER;
}

xcclResult_t xm_vendor_take(struct xm_vendor_job *job, struct xm_vendor **vendor_p)
{
    xcclResult_t res = job->result;

    if (res == xcclSuccess) {
        *vendor_p = job->vendor;
    } else {
        xc_fail(res, "%s", job->detail);
    }
    free(job);
    return res;
}

void xm_vendor_abandon(struct xm_vendor_job *job)
{
    struct xm_vendor *vendor;
    int               kept = KEPT;

    if (!__atomic_compare_exchange_n(&job->abandoned, &kept, LEFT, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE) &&
        (xm_vendor_take(job, &vendor) == xcclSuccess)) {
        xm_vendor_break(vendor);
        xm_vendor_release(vendor);
    }
}

/* Until the queue is empty. */
static void run_launches(struct xm_job *base)
{
    struct xm_vendor *v = (struct xm_vendor *)((char *)base - offsetof(struct xm_vendor, launcher));
    void             *saved;
    bool              entered = (v->dev->enter(v->device, &saved) == xcclSuccess);

    for (;;) {
        pthread_mutex_lock(&v->lock);
        struct xm_launch *launch = v->queue;
        if (launch == NULL) {
            v->launching = false;
        } else {
            v->queue = launch->next;
            if (v->queue == NULL) {
                v->queue_end = &v->queue;
            }
        }
        pthread_mutex_unlock(&v->lock);
        if (launch == NULL) {
            break;
        }
        launch->run(launch); /* which may be gone when this returns */
    }
    if (entered) {
        v->dev->leave(saved);
    }
    xm_vendor_release(v);
}

void xm_vendor_launch(struct xm_vendor *v, struct xm_launch *launch, bool may_block)
{
    bool start = false;

    pthread_mutex_lock(&v->lock);
    if (!may_block && !v->launching) {
        /* Without the lock: the program orders the calls of its threads on one communicator. */
        pthread_mutex_unlock(&v->lock);
        launch->run(launch);
        return;
    }
    launch->next = NULL;
    *v->queue_end = launch;
    v->queue_end = &launch->next;
    if (!v->launching) {
        v->launching = start = true;
    }
    pthread_mutex_unlock(&v->lock);
    if (start) {
        xm_vendor_hold(v);
        v->launcher.run = run_launches;
        if (xm_worker_start(&v->launcher) != xcclSuccess) {
            run_launches(&v->launcher); /* rather here than not at all */
        }
    }
}

bool xm_vendor_withdraw(struct xm_vendor *v, const struct xm_launch *launch)
{
    struct xm_launch **at = &v->queue;

    pthread_mutex_lock(&v->lock);
    while ((*at != NULL) && (*at != launch)) {
        at = &(*at)->next;
    }
    bool found = (*at != NULL);
    if (found) {
        *at = launch->next;
        if (*at == NULL) {
            v->queue_end = at;
        }
    }
    pthread_mutex_unlock(&v->lock);
    return found;
}

struct destruction {
    struct xm_job     job;
    struct xm_vendor *vendor;
    bool              abort;
};

static void run_destroy(struct xm_job *base)
{
    struct destruction *d = (struct destruction *)base;
    struct xm_vendor   *v = d->vendor;
    void               *saved;

    if (xc_device_enter_kept(v->dev, v->device, v->resets, &saved)) {
        if (v->xcomm != NULL) {
            int mode = xc_device_relax(v->dev);
            d->abort ? xcclCommAbort(v->xcomm) : xcclCommDestroy(v->xcomm);
            xc_device_restore(v->dev, mode);
        }
        /* Work that never completes would block the destruction of its stream. */
        if ((v->stream != NULL) && !d->abort) {
            v->dev->stream_destroy(v->stream);
        }
        v->dev->leave(saved);
    }
    vendor_free(v);
    __atomic_sub_fetch(d->abort ? &aborting : &destroying, 1, __ATOMIC_ACQ_REL);
    free(d);
}

/* The caller has counted it, with the lock that tells whether there are streams. */
static void destroy(struct xm_vendor *v)
{
    struct destruction *d = calloc(1, sizeof(*d));

    if (d == NULL) {
        __atomic_sub_fetch(v->broken ? &aborting : &destroying, 1, __ATOMIC_ACQ_REL);
        return; /* left to the end of the process */
    }
    d->job.run = run_destroy;
    d->vendor = v;
    d->abort = v->broken;
    if (xm_worker_start(&d->job) != xcclSuccess) {
        __atomic_sub_fetch(d->abort ? &aborting : &destroying, 1, __ATOMIC_ACQ_REL);
        free(d);
    }
}

static void count(const struct xm_vendor *v)
{
    __atomic_add_fetch(v->broken ? &aborting : &destroying, 1, __ATOMIC_ACQ_REL);
}

/*
 * To destroy it may wait for the device, and let nothing be enqueued meanwhile. So it waits until
 * no stream of the program's can have a kernel that waits for another rank, which waits for what
 * this one has yet to enqueue; and may be used again until then. What is under way already is
 * waited for before there is such a stream. What is broken is not held back: the job ends soon.
 */
static void destroy_later(struct xm_vendor *v)
{
    pthread_mutex_lock(&pool_lock);
    bool now = v->broken || (streams == 0);
    if (now) {
        count(v);
    } else {
        v->next = deferred;
        deferred = v;
    }
    pthread_mutex_unlock(&pool_lock);
    if (now) {
        destroy(v);
    }
}

static void destroy_deferred(void)
{
    pthread_mutex_lock(&pool_lock);
    struct xm_vendor *list = deferred;
    deferred = NULL;
    for (const struct xm_vendor *v = list; v != NULL; v = v->next) {
        count(v);
    }
    pthread_mutex_unlock(&pool_lock);
    for (struct xm_vendor *v = list, *next; v != NULL; v = next) {
        next = v->next;
        destroy(v);
    }
}

/* Returns whether threads of this kind are still at it. */
static bool wait_until_none(const int *threads, uint64_t most_ns)
{
    struct xm_wait wait = xm_wait_begin_for_ever("for threads in the vendor's library");
    uint64_t       begun = xm_now_ns();

    while ((__atomic_load_n(threads, __ATOMIC_ACQUIRE) > 0) && (xm_now_ns() - begun < most_ns)) {
        xm_wait_step(&wait);
    }
    return __atomic_load_n(threads, __ATOMIC_ACQUIRE) > 0;
}

void xm_vendors_beside_streams(int more)
{
    pthread_mutex_lock(&pool_lock);
    int now = (streams += more);
    pthread_mutex_unlock(&pool_lock);
    if (now == 0) {
        destroy_deferred();
    } else if (more > 0) {
        wait_until_none(&destroying, settle_ns);
    }
}

int xm_vendors_in_use(void)
{
    return __atomic_load_n(&in_use, __ATOMIC_RELAXED);
}

void xm_vendor_hold(struct xm_vendor *v)
{
    __atomic_add_fetch(&v->users, 1, __ATOMIC_RELAXED);
}

void xm_vendor_release(struct xm_vendor *v)
{
    struct xm_vendor *evicted = NULL;

    if (__atomic_sub_fetch(&v->users, 1, __ATOMIC_ACQ_REL) > 0) {
        return;
    }
    __atomic_sub_fetch(&in_use, 1, __ATOMIC_RELAXED);
    long most = xc_params()->comm_pool;
    if (v->broken || (v->world_ranks == NULL) || (most == 0)) {
        destroy_later(v);
        return;
    }
    pthread_mutex_lock(&pool_lock);
    v->next = pool;
    pool = v;
    if (++pooled > most) {
        struct xm_vendor **oldest = &pool;
        while ((*oldest)->next != NULL) {
            oldest = &(*oldest)->next;
        }
        evicted = *oldest;
        *oldest = NULL;
        pooled--;
    }
    pthread_mutex_unlock(&pool_lock);
    if (evicted != NULL) {
        destroy_later(evicted);
    }
}

void xm_vendor_break(struct xm_vendor *v)
{
    __atomic_store_n(&v->broken, true, __ATOMIC_RELAXED);
}

bool xm_vendor_lost(const struct xm_vendor *v)
{
    return xc_device_resets(v->dev, v->device, true) != v->resets;
}

/* With the lock. */
static uint64_t idle_in(const struct xm_vendor *list, const struct xc_device_ops *dev, int device,
                        const int *world_ranks, int nranks)
{
    for (const struct xm_vendor *v = list; v != NULL; v = v->next) {
        if ((v->nranks == nranks) && (v->dev == dev) && (v->device == device) &&
            (v->world_ranks != NULL) && !xm_vendor_lost(v) &&
            (memcmp(v->world_ranks, world_ranks, (size_t)nranks * sizeof(int)) == 0)) {
            return v->id;
        }
    }
    return 0;
}

uint64_t xm_vendor_idle(const struct xc_device_ops *dev, int device, const int *world_ranks,
                        int nranks)
{
    if (world_ranks == NULL) {
        return 0;
    }
    pthread_mutex_lock(&pool_lock);
    uint64_t id = idle_in(pool, dev, device, world_ranks, nranks);
    if (id == 0) {
        id = idle_in(deferred, dev, device, world_ranks, nranks);
    }
    pthread_mutex_unlock(&pool_lock);
    return id;
}

/* With the lock: out of the list, or NULL. */
static struct xm_vendor *take_out(struct xm_vendor **list, uint64_t id)
{
    for (struct xm_vendor **at = list; *at != NULL; at = &(*at)->next) {
        struct xm_vendor *found = *at;
        if (found->id == id) {
            *at = found->next;
            return found;
        }
    }
    return NULL;
}

struct xm_vendor *xm_vendor_reuse(uint64_t id)
{
    pthread_mutex_lock(&pool_lock);
    struct xm_vendor *found = take_out(&pool, id);
    if (found != NULL) {
        pooled--;
    } else {
        found = take_out(&deferred, id);
    }
    if (found != NULL) {
        found->users = 1;
        __atomic_add_fetch(&in_use, 1, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&pool_lock);
    return found;
}

int *xm_world_ranks(MPI_Comm comm, int size)
{
    MPI_Group mine = XM_HANDLE(MPI_GROUP_NULL), world = XM_HANDLE(MPI_GROUP_NULL);
    int      *from = malloc((size_t)size * sizeof(*from));
    int      *to = malloc((size_t)size * sizeof(*to));
    bool      good = false;

    /* With sessions alone there is no world to number the ranks by. */
    if ((from == NULL) || (to == NULL) || !xm_mpi_has_world() ||
        (xm_pmpi.Comm_group(comm, &mine) != MPI_SUCCESS)) {
        goto free_arrays;
    }
    if (xm_pmpi.Comm_group(XM_HANDLE(MPI_COMM_WORLD), &world) != MPI_SUCCESS) {
        goto free_group;
    }
    for (int i = 0; i < size; i++) {
        from[i] = i;
    }
    good = (xm_pmpi.Group_translate_ranks(mine, size, from, world, to) == MPI_SUCCESS);
    for (int i = 0; good && (i < size); i++) {
        good = (to[i] != MPI_UNDEFINED);
    }
    xm_pmpi.Group_free(&world);
free_group:
    xm_pmpi.Group_free(&mine);
free_arrays:
    free(from);
    if (!good) {
        free(to);
        to = NULL;
    }
    return to;
}

void xm_vendors_end(void)
{
    for (;;) {
        pthread_mutex_lock(&pool_lock);
        struct xm_vendor *v = pool;
        if (v != NULL) {
            pool = v->next;
            pooled--;
        }
        pthread_mutex_unlock(&pool_lock);
        if (v == NULL) {
            break;
        }
        count(v);
        destroy(v);
    }
    destroy_deferred();
}

void xm_vendors_finalize(void)
{
    /* The vendor's library crashes if the process ends while it makes a communicator. */
    bool left = wait_until_none(&making, making_ns);

    left = wait_until_none(&destroying, finalize_ns) || left;
    left = wait_until_none(&aborting, finalize_ns) || left;
    if (left) {
        xc_info("a communicator of the vendor's library was left to the end of the process");
    }
}
