/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which buffers all ranks have mapped still, as all can tell by what they show: a rank says how
 * many mappings it has lost, and of its own buffers how many the others had lost when they had
 * these mapped. Where both agree nothing has to be mapped, which may take long or fail.
 */
#include <pthread.h>
#include <string.h>

#include "data/mappings.h"
#include "paths/direct.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of what is held */

static uint32_t num_held(const struct xm_direct *d)
{
    return (d->num_held < XM_DIRECT_HELD) ? d->num_held : XM_DIRECT_HELD;
}

static const struct xm_direct_held *find(const struct xm_direct *d, const struct xc_ipc *ipc)
{
    for (uint32_t i = 0; i < num_held(d); i++) {
        if (memcmp(&d->held[i].ipc, ipc, sizeof(*ipc)) == 0) {
            return &d->held[i];
        }
    }
    return NULL;
}

void xm_direct_pin(struct xm_op *op, uint32_t *losses_p)
{
    *losses_p = xm_mappings_pin();
    op->pinned = true;
}

void xm_direct_unpin(struct xm_op *op)
{
    if (op->pinned) {
        xm_mappings_unpin();
        op->pinned = false;
    }
}

void xm_direct_show_held(struct xm_op *op, struct xm_show *show)
{
    const struct xm_direct_held *first = NULL;

    xm_direct_pin(op, &show->losses);
    show->known = XM_NOTHING;
    pthread_mutex_lock(&lock);
    for (int i = 0; (i < 2) && (show->known != XM_UNKNOWN); i++) {
        if (show->buffers[i].state != XM_SHOWN_USABLE) {
            continue;
        }
        const struct xm_direct_held *h = find(op->direct, &show->buffers[i].ipc);
        bool                         same = (h != NULL) &&
                    ((first == NULL) || (memcmp(first->losses, h->losses, sizeof(h->losses)) == 0));
        show->known = same ? XM_KNOWN : XM_UNKNOWN;
        first = h;
    }
    if (show->known == XM_KNOWN) {
        memcpy(show->held, first->losses, sizeof(show->held));
    }
    pthread_mutex_unlock(&lock);
}

bool xm_direct_all_held(const struct xm_op *op, const struct xm_show *const *shown)
{
    for (int i = 0; i < op->comm->size; i++) {
        if (shown[i]->known == XM_UNKNOWN) {
            return false;
        }
        for (int k = 0; (shown[i]->known == XM_KNOWN) && (k < op->comm->size); k++) {
            if ((k != i) && (shown[i]->held[k] != shown[k]->losses)) {
                return false;
            }
        }
    }
    return true;
}

static void keep(struct xm_direct *d, const struct xc_ipc *ipc,
                 const uint32_t losses[XM_SLOT_RANKS])
{
    struct xm_direct_held *h = NULL;

    for (uint32_t i = 0; (i < num_held(d)) && (h == NULL); i++) {
        h = (d->held[i].ipc.base == ipc->base) ? &d->held[i] : NULL;
    }
    if (h == NULL) {
        h = &d->held[d->num_held++ % XM_DIRECT_HELD];
    }
    h->ipc = *ipc;
    memcpy(h->losses, losses, sizeof(h->losses));
}

void xm_direct_keep_held(const struct xm_op *op, const struct xm_show *own,
                         const uint32_t losses[XM_SLOT_RANKS])
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < 2; i++) {
        if (own->buffers[i].state == XM_SHOWN_USABLE) {
            keep(op->direct, &own->buffers[i].ipc, losses);
        }
    }
    pthread_mutex_unlock(&lock);
}
