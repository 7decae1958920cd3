/* SPDX-License-Identifier: BSD-3-Clause */
/* What the ranks of a communicator have in common, from what each says of itself. */
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/params.h"
#include "comms/setting.h"
#include "vendor/vendor.h"

uint64_t (*xm_comm_tables)(void);

void xm_setting_fill(const struct xc_device_ops *dev, int device, struct xm_peer_setting *mine)
{
    bool vendor = (xc_params()->ccl != XC_CCL_NONE);

    memset(mine, 0, sizeof(*mine));
    if ((dev != NULL) && (device >= 0) &&
        (dev->name_of(device, mine->gpu, sizeof(mine->gpu)) != xcclSuccess)) {
        mine->gpu[0] = '\0';
    }
    mine->tables = (xm_comm_tables != NULL) ? xm_comm_tables() : 0;
    mine->fabric = vendor && xc_vendor_fabric();
    mine->gpu_aware = (dev != NULL) && xm_mpi_gpu_aware(dev->name);
}

/* The built-in rows serve; they need no agreement. */
static void tables_differ(const struct xm_comm *xm, int rank)
{
    static bool warned; /* atomic */

    if ((xm->rank == 0) && !__atomic_exchange_n(&warned, true, __ATOMIC_ACQ_REL)) {
        xc_warn("tuning tables on rank %d differ from those on rank 0, so the built-in rows serve; "
                "install the same share/xccl on all nodes, and pass the same XCCL_TABLE and "
                "XCCL_SITE to all ranks",
                rank);
    }
}

void xm_setting_begin(struct xm_setting *s, int nranks)
{
    *s = (struct xm_setting){.nranks = nranks};
}

void xm_setting_agree(struct xm_comm *xm, uint64_t *hosts,
                      const struct xm_peer_setting *(*setting_of)(const void *all, int rank),
                      const void *all)
{
    const struct xm_peer_setting *first = setting_of(all, 0);
    struct xm_setting            *s = &xm->setting;

    xm_setting_begin(s, xm->size);
    s->fabric = s->gpu_aware = s->one_tables = true;
    snprintf(s->gpu, sizeof(s->gpu), "%s", first->gpu);
    for (int i = 0; i < xm->size; i++) {
        const struct xm_peer_setting *peer = setting_of(all, i);
        s->fabric = s->fabric && peer->fabric;
        s->gpu_aware = s->gpu_aware && peer->gpu_aware;
        if (strncmp(peer->gpu, first->gpu, sizeof(peer->gpu)) != 0) {
            s->gpu[0] = '\0';
        }
        if (s->one_tables && (peer->tables != first->tables)) {
            s->one_tables = false;
            tables_differ(xm, i);
        }
    }
    xc_setting_count_nodes(s, hosts);
    __atomic_store_n(&xm->rules, NULL, __ATOMIC_RELEASE); /* those of before the agreement */
}

void xm_setting_alike(struct xm_comm *xm, const struct xm_peer_setting *mine, int nodes,
                      int per_node_least, int per_node_most)
{
    struct xm_setting *s = &xm->setting;

    xm_setting_begin(s, xm->size);
    s->one_tables = true;
    s->fabric = (mine->fabric != 0);
    s->gpu_aware = (mine->gpu_aware != 0);
    snprintf(s->gpu, sizeof(s->gpu), "%s", mine->gpu);
    s->nodes = nodes;
    s->per_node_least = per_node_least;
    s->per_node_most = per_node_most;
    __atomic_store_n(&xm->rules, NULL, __ATOMIC_RELEASE); /* those of before the agreement */
}

uint64_t xm_setting_hash(const struct xm_peer_setting *of)
{
    uint64_t hash = xc_hash_text(XC_HASH_BEGIN, of->gpu);

    hash = xc_hash_word(hash, of->tables);
    return xc_hash_word(hash, ((uint64_t)(of->fabric != 0) << 1) | (of->gpu_aware != 0));
}
