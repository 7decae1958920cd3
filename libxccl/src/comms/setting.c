/* SPDX-License-Identifier: BSD-3-Clause */
/* What the ranks of a communicator have in common, from what each says on its card. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/params.h"
#include "comms/agreement.h"
#include "vendor/vendor.h"

uint64_t (*xm_comm_tables)(void);

void xm_setting_fill(const struct xc_device_ops *dev, int device, struct xm_setting_card *card)
{
    bool vendor = (xc_params()->ccl != XC_CCL_NONE);

    memset(card, 0, sizeof(*card));
    if ((dev != NULL) && (device >= 0) &&
        (dev->name_of(device, card->gpu, sizeof(card->gpu)) != xcclSuccess)) {
        card->gpu[0] = '\0';
    }
    card->tables = (xm_comm_tables != NULL) ? xm_comm_tables() : 0;
    card->fabric = vendor && xc_vendor_fabric();
    card->gpu_aware = (dev != NULL) && xm_mpi_gpu_aware(dev->name);
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* Nodes, and the least and the largest number of ranks on one. Sorts hosts. */
static void count_nodes(uint64_t *hosts, int size, struct xm_setting *s)
{
    int begin = 0;

    qsort(hosts, (size_t)size, sizeof(*hosts), compare);
    s->nodes = 0;
    s->per_node_least = size;
    s->per_node_most = 0;
    for (int i = 1; i <= size; i++) {
        if ((i < size) && (hosts[i] == hosts[begin])) {
            continue;
        }
        int here = i - begin;
        s->nodes++;
        s->per_node_least = (here < s->per_node_least) ? here : s->per_node_least;
        s->per_node_most = (here > s->per_node_most) ? here : s->per_node_most;
        begin = i;
    }
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
                      const struct xm_setting_card *(*card_of)(const void *cards, int rank),
                      const void *cards)
{
    const struct xm_setting_card *first = card_of(cards, 0);
    struct xm_setting            *s = &xm->setting;

    xm_setting_begin(s, xm->size);
    s->fabric = s->gpu_aware = s->one_tables = true;
    snprintf(s->gpu, sizeof(s->gpu), "%s", first->gpu);
    for (int i = 0; i < xm->size; i++) {
        const struct xm_setting_card *card = card_of(cards, i);
        s->fabric = s->fabric && card->fabric;
        s->gpu_aware = s->gpu_aware && card->gpu_aware;
        if (strncmp(card->gpu, first->gpu, sizeof(card->gpu)) != 0) {
            s->gpu[0] = '\0';
        }
        if (s->one_tables && (card->tables != first->tables)) {
            s->one_tables = false;
            tables_differ(xm, i);
        }
    }
    count_nodes(hosts, xm->size, s);
    xm->rules = NULL; /* those of before the agreement */
}
