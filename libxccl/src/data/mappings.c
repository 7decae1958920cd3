/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "comms/mailbox.h"
#include "data/mappings.h"
#include "data/outstanding.h"

/* More are not kept: each holds memory of another process that this one may have freed. */
enum { MAX_MAPPINGS = 256 };
/* Of CUDA's small allocations. */
enum { BLOCK = 2 << 20 };

struct mapping {
    struct xm_alone_job         job; /* first: of its end */
    const struct xc_device_ops *dev;
    int                         device; /* that it is mapped for */
    uint64_t                    nonce;  /* of the process */
    unsigned                    resets; /* of the device before */
    struct xc_ipc               ipc;
    void                       *base;
    struct mapping             *next; /* used longer ago; or being unmapped as well */
};

static pthread_mutex_t  lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t held = PTHREAD_RWLOCK_INITIALIZER; /* taken before the other one */
static struct mapping  *mappings;
static int              num_mappings;
static struct mapping  *going; /* on a thread that unmaps them */
static int              pins;
static uint32_t         losses; /* of mappings, ever */
/* The last one in whose place something was: what lay near has gone then. */
static struct {
    uint64_t      nonce;
    struct xc_ipc ipc;
} hindered;

static bool holds(const struct xc_ipc *ipc, uint64_t at)
{
    return (at >= ipc->base) && (at - ipc->base < ipc->bytes);
}

xcclResult_t xm_export(const struct xc_device_ops *dev, const void *ptr, uint64_t known,
                       struct xc_ipc *ipc_p)
{
    enum { KEPT = 16 };
    static __thread struct xc_ipc kept[KEPT];
    struct xc_allocation          a;
    const struct xc_ipc          *same = &kept[known % KEPT];

    if ((known != 0) && (same->id == known) && holds(same, (uint64_t)(uintptr_t)ptr)) {
        *ipc_p = *same;
        return xcclSuccess;
    }
    if (dev->mem_allocation == NULL) {
        return dev->ipc_export(ptr, ipc_p);
    }
    if (!dev->mem_allocation(ptr, &a)) { /* the driver would refuse it, and take longer for that */
        return xc_fail(xcclUnsupported,
                       "memory of a pool, or that the program maps itself, cannot be shared");
    }
    struct xc_ipc *k = &kept[a.id % KEPT];
    if ((k->id == a.id) && (k->base == a.base) && (k->bytes == a.bytes)) {
        *ipc_p = *k;
        return xcclSuccess;
    }
    xcclResult_t res = dev->ipc_export(ptr, ipc_p);
    if ((res == xcclSuccess) && (ipc_p->id == a.id)) { /* nobody has freed it in between */
        *k = *ipc_p;
    }
    return res;
}

static void close_mapping(const struct mapping *m)
{
    void *saved;

    if (xc_device_enter_kept(m->dev, m->device, m->resets, &saved)) {
        m->dev->ipc_close(m->base);
        m->dev->leave(saved);
    }
}

/* Who has looked it up enqueues what uses it before it goes. */
static void wait_for_users(struct xm_alone_job *unused)
{
    (void)unused;
    pthread_rwlock_wrlock(&held);
    pthread_rwlock_unlock(&held);
}

static void unmap(struct xm_alone_job *job)
{
    struct mapping  *m = (struct mapping *)job;
    struct mapping **at = &going;

    close_mapping(m);
    pthread_mutex_lock(&lock);
    while (*at != m) {
        at = &(*at)->next;
    }
    *at = m->next;
    pthread_mutex_unlock(&lock);
    free(m);
}

static struct mapping *take_out(struct mapping **at)
{
    struct mapping *m = *at;

    *at = m->next;
    num_mappings--;
    losses++;
    return m;
}

/* On a thread. Without one it stays mapped, which costs addresses. */
static void drop(struct mapping **at)
{
    struct mapping *m = take_out(at);

    m->job = (struct xm_alone_job){.prepare = wait_for_users, .run = unmap};
    m->next = going;
    going = m;
    if (xm_alone_start(&m->job) != xcclSuccess) {
        going = m->next;
        free(m);
    }
}

static bool is_of(const struct mapping *m, uint64_t nonce, const struct xc_device_ops *dev)
{
    return (m->nonce == nonce) && (m->dev == dev);
}

/* May they lie in one block? Memory is had in blocks, and mapped as such. */
static bool share_a_block(const struct xc_ipc *a, const struct xc_ipc *b)
{
    uint64_t a_end = a->base + a->bytes, b_end = b->base + b->bytes;

    return (a->base / BLOCK <= (b_end - 1) / BLOCK) && (b->base / BLOCK <= (a_end - 1) / BLOCK);
}

static bool any_going(uint64_t nonce, const struct xc_device_ops *dev)
{
    bool found = false;

    for (const struct mapping *m = going; (m != NULL) && !found; m = m->next) {
        found = is_of(m, nonce, dev);
    }
    return found;
}

/*
 * The driver says that something is mapped where this would be: its process has freed that, so
 * nothing uses it any more. If the nearest ones are not it, all of the process go: also where there
 * are near ones again, which the same call uses beside this. False: none was there.
 */
static bool drop_stale(uint64_t nonce, const struct xc_ipc *ipc, const struct xc_device_ops *dev)
{
    bool dropped = false;
    bool again =
        (hindered.nonce == nonce) && (memcmp(&hindered.ipc, ipc, sizeof(hindered.ipc)) == 0);

    hindered.nonce = nonce;
    hindered.ipc = *ipc;
    for (int near = again ? 0 : 1; (near >= 0) && !dropped; near--) {
        for (struct mapping **at = &mappings; *at != NULL;) {
            if (is_of(*at, nonce, dev) && (!near || share_a_block(&(*at)->ipc, ipc))) {
                drop(at);
                dropped = true;
            } else {
                at = &(*at)->next;
            }
        }
    }
    return dropped;
}

/* With the lock held; the mapping becomes the first. What was freed at this address goes. */
static struct mapping *find(uint64_t nonce, const struct xc_ipc *ipc,
                            const struct xc_device_ops *dev, int device)
{
    unsigned resets = xc_device_resets(dev, device, false);

    for (struct mapping **at = &mappings; *at != NULL;) {
        struct mapping *m = *at;
        if ((m->dev == dev) && (m->device == device) && (m->resets != resets)) {
            free(take_out(at)); /* a reset of the device has unmapped it */
            continue;
        }
        if (!is_of(m, nonce, dev) || (m->device != device) || (m->ipc.base != ipc->base)) {
            at = &m->next;
            continue;
        }
        if (memcmp(&m->ipc, ipc, sizeof(m->ipc)) != 0) {
            drop(at);
            return NULL;
        }
        *at = m->next;
        m->next = mappings;
        mappings = m;
        return m;
    }
    return NULL;
}

/* The driver's copies from a mapping that goes were over when their receives were. */
static void make_room(void)
{
    while ((num_mappings >= MAX_MAPPINGS) && (pins == 0)) {
        struct mapping **at = &mappings;
        while ((*at)->next != NULL) {
            at = &(*at)->next;
        }
        drop(at);
    }
}

static xcclResult_t make(uint64_t nonce, const struct xc_ipc *ipc, const struct xc_device_ops *dev,
                         int device, struct mapping **mapping_p)
{
    struct mapping *m = malloc(sizeof(*m)); /* first: to unmap it again might wait */
    void           *base;

    if (m == NULL) {
        return xc_fail(xcclSystemError, "out of memory");
    }
    xm_mailbox_maps(true);
    xcclResult_t res = dev->ipc_open(ipc, &base);
    xm_mailbox_maps(false);
    if (res != xcclSuccess) {
        free(m);
        return ((res != xcclInProgress) || (pins > 0) || drop_stale(nonce, ipc, dev))
                   ? res
                   : xc_fail(xcclUnhandledCudaError,
                             "memory of another process cannot be mapped: something else is mapped "
                             "at its place");
    }
    make_room();
    *m = (struct mapping){.dev = dev,
                          .device = device,
                          .nonce = nonce,
                          .resets = xc_device_resets(dev, device, false),
                          .ipc = *ipc,
                          .base = base,
                          .next = mappings};
    mappings = m;
    num_mappings++;
    *mapping_p = m;
    return xcclSuccess;
}

xcclResult_t xm_mapping_of(uint64_t nonce, const struct xc_ipc *ipc,
                           const struct xc_device_ops *dev, int device, char **base_p)
{
    xcclResult_t res = xcclSuccess;

    pthread_mutex_lock(&lock);
    struct mapping *m = find(nonce, ipc, dev, device);
    if ((m == NULL) && any_going(nonce, dev)) {
        res = xcclInProgress; /* most likely that is where it would be */
    } else if (m == NULL) {
        res = make(nonce, ipc, dev, device, &m);
    }
    if (res == xcclSuccess) {
        *base_p = m->base;
    }
    pthread_mutex_unlock(&lock);
    return res;
}

uint32_t xm_mappings_pin(void)
{
    pthread_mutex_lock(&lock);
    uint32_t until_now = losses;
    pins++;
    pthread_mutex_unlock(&lock);
    return until_now;
}

void xm_mappings_unpin(void)
{
    pthread_mutex_lock(&lock);
    pins--;
    pthread_mutex_unlock(&lock);
}

bool xm_mappings_make_way(const struct xc_device_ops *dev, const struct xc_ipc *ipc)
{
    bool found = false;

    pthread_mutex_lock(&lock);
    for (struct mapping **at = &mappings; *at != NULL;) {
        bool there = ((*at)->dev == dev) && share_a_block(&(*at)->ipc, ipc);
        found = found || there;
        if (there && (pins == 0)) {
            drop(at);
        } else {
            at = &(*at)->next;
        }
    }
    for (const struct mapping *m = going; (m != NULL) && !found; m = m->next) {
        found = (m->dev == dev) && share_a_block(&m->ipc, ipc);
    }
    pthread_mutex_unlock(&lock);
    return found;
}

void xm_mappings_hold(void)
{
    pthread_rwlock_rdlock(&held);
}

void xm_mappings_let_go(void)
{
    pthread_rwlock_unlock(&held);
}

void xm_mappings_close(void)
{
    pthread_mutex_lock(&lock);
    while (mappings != NULL) {
        struct mapping *m = take_out(&mappings);
        close_mapping(m);
        free(m);
    }
    pthread_mutex_unlock(&lock);
}
