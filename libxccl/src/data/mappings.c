/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "comms/worker.h"
#include "data/mappings.h"

/* More are not kept: each holds memory of another process that this one may have freed. */
enum { MAX_MAPPINGS = 256 };

struct mapping {
    struct xm_job               job; /* first: of its end */
    const struct xc_device_ops *dev;
    int                         device; /* that it is mapped for */
    uint64_t                    nonce;  /* of the process */
    struct xc_ipc               ipc;
    void                       *base;
    struct mapping             *next; /* used longer ago */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct mapping *mappings;
static int             num_mappings;

/* It waits for all kernels of the device, and those may wait for what this rank does next. */
static void unmap(struct xm_job *job)
{
    struct mapping *m = (struct mapping *)job;
    void           *saved;

    if (m->dev->enter(m->device, &saved) == xcclSuccess) {
        m->dev->ipc_close(m->base);
        m->dev->leave(saved);
    }
    free(m);
}

static struct mapping *take_out(struct mapping **at)
{
    struct mapping *m = *at;

    *at = m->next;
    num_mappings--;
    return m;
}

/* On a thread. Without one it stays mapped, which costs addresses. */
static void drop(struct mapping **at)
{
    struct mapping *m = take_out(at);

    m->job = (struct xm_job){.run = unmap};
    if (xm_worker_start(&m->job) != xcclSuccess) {
        free(m);
    }
}

/* With the lock held; the mapping becomes the first. What was freed at this address goes. */
static struct mapping *find(uint64_t nonce, const struct xc_ipc *ipc,
                            const struct xc_device_ops *dev, int device)
{
    for (struct mapping **at = &mappings; *at != NULL; at = &(*at)->next) {
        struct mapping *m = *at;
        if ((m->nonce != nonce) || (m->ipc.base != ipc->base) || (m->device != device) ||
            (m->dev != dev)) {
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
    struct mapping **at = &mappings;

    if (num_mappings < MAX_MAPPINGS) {
        return;
    }
    while ((*at)->next != NULL) {
        at = &(*at)->next;
    }
    drop(at);
}

static xcclResult_t make(uint64_t nonce, const struct xc_ipc *ipc, const struct xc_device_ops *dev,
                         int device, struct mapping **mapping_p)
{
    void        *base;
    xcclResult_t res = dev->ipc_open(ipc, &base);

    if (res != xcclSuccess) {
        return res;
    }
    struct mapping *m = malloc(sizeof(*m));
    if (m == NULL) {
        dev->ipc_close(base);
        return xc_fail(xcclSystemError, "out of memory");
    }
    make_room();
    *m = (struct mapping){
        .dev = dev, .device = device, .nonce = nonce, .ipc = *ipc, .base = base, .next = mappings};
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
    if (m == NULL) {
        res = make(nonce, ipc, dev, device, &m);
    }
    if (res == xcclSuccess) {
        *base_p = m->base;
    }
    pthread_mutex_unlock(&lock);
    return res;
}

void xm_mappings_close(void)
{
    pthread_mutex_lock(&lock);
    while (mappings != NULL) {
        unmap(&take_out(&mappings)->job);
    }
    pthread_mutex_unlock(&lock);
}
