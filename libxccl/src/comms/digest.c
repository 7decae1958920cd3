/* SPDX-License-Identifier: BSD-3-Clause */
#include "comms/digest.h"

#include <stdlib.h>
#include <string.h>

static struct xm_digest_number number_of(uint64_t value)
{
    return (struct xm_digest_number){value, ~value};
}

static bool differ(const struct xm_digest_number *n)
{
    return (n->ones & n->zeros) != 0;
}

/* Bits that depend on all of the number's: those of hosts may be alike in most. */
static uint64_t mixed(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* In steps of a factor of 2: the least that is not below it. */
static uint64_t cost_bit(uint64_t us)
{
    int bit = 0;

    while ((bit < 63) && ((UINT64_C(1) << bit) < us)) {
        bit++;
    }
    return UINT64_C(1) << bit;
}

static uint64_t greatest_cost(uint64_t bits)
{
    return (bits == 0) ? 0 : UINT64_C(1) << (63 - __builtin_clzll((unsigned long long)bits));
}

void xm_digest_fill_variables(struct xm_digest *d, uint64_t variables)
{
    memset(d, 0, sizeof(*d));
    d->variables = number_of(variables);
}

void xm_digest_fill(struct xm_digest *d, const struct xm_digest_facts *facts, bool first)
{
    uint64_t bit = mixed(facts->node) % XM_DIGEST_NODES;

    xm_digest_fill_variables(d, facts->variables);
    d->like =
        facts->odd ? (struct xm_digest_number){UINT64_MAX, UINT64_MAX} : number_of(facts->like);
    d->idle = number_of(facts->idle);
    d->arithmetic = number_of(facts->arithmetic);
    d->machine = number_of(facts->machine);
    d->node = number_of(facts->node);
    d->cost = (facts->cost_us > 0) ? cost_bit(facts->cost_us) : 0;
    d->nodes[bit / 64] = UINT64_C(1) << (bit % 64);
    if (first) {
        d->order_id = facts->order_id;
        d->rank_and_number =
            ((uint64_t)(uint32_t)facts->world_rank << 32) | (uint32_t)facts->number;
        d->spawned = facts->spawned;
    }
}

/*
 * Of n nodes that take a bit of m each, n - i meet a free one when i are taken: on average it takes
 * m / (m - i) nodes to take one more.
 */
static int estimate_nodes(const struct xm_digest *all)
{
    double nodes = 0.0;
    int    taken = 0;

    for (int i = 0; i < XM_DIGEST_NODES / 64; i++) {
        taken += __builtin_popcountll((unsigned long long)all->nodes[i]);
    }
    for (int i = 0; i < taken; i++) {
        nodes += (double)XM_DIGEST_NODES / (double)(XM_DIGEST_NODES - i);
    }
    return (int)(nodes + 0.5);
}

static void count_nodes(const struct xm_digest *all, int nranks, struct xm_digest_said *said)
{
    int nodes = estimate_nodes(all);

    int least = differ(&all->node) ? 2 : 1;
    nodes = (nodes < least) ? least : (nodes > nranks) ? nranks : nodes;
    /* As many on each, most likely, if that number is as near as the estimate is good: it is off
     * by one part in 256, on average. */
    int each = (nranks + nodes / 2) / nodes;
    if ((nranks % each == 0) && (abs(nranks / each - nodes) <= nodes / 64)) {
        nodes = nranks / each;
    }
    said->nodes = nodes;
    said->per_node_least = nranks / nodes;
    said->per_node_most = (nranks + nodes - 1) / nodes;
}

void xm_digest_read(const struct xm_digest *all, int nranks, struct xm_digest_said *said)
{
    bool apart = differ(&all->machine) && differ(&all->node);

    memset(said, 0, sizeof(*said));
    said->variables_differ = differ(&all->variables);
    said->enough = !said->variables_differ && !differ(&all->like) && apart;
    said->arithmetic_differs = differ(&all->arithmetic);
    said->idle = differ(&all->idle) ? 0 : all->idle.ones;
    said->cost_us = greatest_cost(all->cost);
    said->order_id = all->order_id;
    said->world_rank = (int)(uint32_t)(all->rank_and_number >> 32);
    said->number = (int)(uint32_t)all->rank_and_number;
    said->spawned = (uint32_t)all->spawned;
    count_nodes(all, nranks, said);
}
