/* SPDX-License-Identifier: BSD-3-Clause */
/* What many ranks say of themselves, combined as MPI_Iallreduce with MPI_BOR does. */
#include <string.h>

#include "check.h"
#include "comms/digest.h"

/* A layout: `nodes` nodes of `each` ranks, the last `less` ones of which have one rank less. */
struct layout {
    int nodes, each, less;
};

static struct xm_digest_facts facts_of(int node)
{
    /* Numbers of hosts, as alike as they may be: counted upwards. */
    return (struct xm_digest_facts){.variables = 11,
                                    .like = 22,
                                    .arithmetic = 33,
                                    .machine = 1000 + (uint64_t)node,
                                    .node = 5000 + (uint64_t)node,
                                    .cost_us = 0,
                                    .order_id = 77,
                                    .world_rank = 3,
                                    .number = 4,
                                    .spawned = 0xabcdef01};
}

static void combine(struct xm_digest *all, const struct xm_digest *one)
{
    uint64_t       *to = (uint64_t *)all;
    const uint64_t *from = (const uint64_t *)one;

    for (int i = 0; i < XM_DIGEST_WORDS; i++) {
        to[i] |= from[i];
    }
}

/* change: what rank `odd` says differently; NULL: nothing. */
static int say(const struct layout *l, int odd, void (*change)(struct xm_digest_facts *),
               struct xm_digest_said *said)
{
    struct xm_digest all = {.cost = 0}, one;
    int              rank = 0;

    for (int node = 0; node < l->nodes; node++) {
        int here = l->each - (node >= l->nodes - l->less);
        for (int i = 0; i < here; i++, rank++) {
            struct xm_digest_facts facts = facts_of(node);
            facts.world_rank += rank;
            facts.order_id += (uint64_t)rank;
            if ((rank == odd) && (change != NULL)) {
                change(&facts);
            }
            xm_digest_fill(&one, &facts, rank == 0);
            combine(&all, &one);
        }
    }
    xm_digest_read(&all, rank, said);
    return rank;
}

/* All alike: what the first rank says of itself, and the nodes. */
static void test_alike(void)
{
    static const struct layout layouts[] = {{2, 64, 0},   {17, 4, 0},   {20, 4, 0},   {100, 1, 0},
                                            {250, 4, 0},  {1250, 8, 0}, {2500, 4, 0}, {10000, 1, 0},
                                            {600, 12, 0}, {78, 128, 0}};
    struct xm_digest_said      said;

    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
        const struct layout *l = &layouts[i];
        int                  ranks = say(l, -1, NULL, &said);
        CHECK(said.enough && !said.variables_differ && !said.arithmetic_differs, "%d", ranks);
        CHECK((said.world_rank == 3) && (said.number == 4) && (said.spawned == 0xabcdef01) &&
                  (said.order_id == 77),
              "the first rank of %d", ranks);
        CHECK((said.nodes == l->nodes) && (said.per_node_least == l->each) &&
                  (said.per_node_most == l->each),
              "%d nodes of %d to %d ranks for %d of %d", said.nodes, said.per_node_least,
              said.per_node_most, l->nodes, l->each);
    }
}

/* Nodes of unlike numbers of ranks: about so many. */
static void test_unlike_nodes(void)
{
    static const struct layout layouts[] = {{17, 4, 1}, {250, 4, 100}, {2500, 4, 1}, {5000, 2, 77}};
    struct xm_digest_said      said;

    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
        const struct layout *l = &layouts[i];
        int                  ranks = say(l, -1, NULL, &said);
        int off = (said.nodes > l->nodes) ? said.nodes - l->nodes : l->nodes - said.nodes;
        CHECK(said.enough && (off * 50 <= l->nodes), "%d nodes for %d of %d ranks", said.nodes,
              l->nodes, ranks);
        CHECK((said.per_node_most >= said.per_node_least) && (said.per_node_most <= l->each + 1),
              "%d to %d ranks", said.per_node_least, said.per_node_most);
    }
}

static void other_variables(struct xm_digest_facts *f)
{
    f->variables ^= 1;
}

static void other_library(struct xm_digest_facts *f)
{
    f->like = 0;
}

static void something_to_tell(struct xm_digest_facts *f)
{
    f->odd = true;
}

static void other_arithmetic(struct xm_digest_facts *f)
{
    f->arithmetic++;
}

static void dear(struct xm_digest_facts *f)
{
    f->cost_us = 1400000;
}

static void has_idle(struct xm_digest_facts *f)
{
    f->idle = 99;
}

/* One rank of many that is unlike the others, wherever it is. */
static void test_unlike(void)
{
    const struct layout   l = {30, 4, 0};
    struct xm_digest_said said;

    for (int odd = 0; odd < 120; odd += 17) {
        say(&l, odd, other_variables, &said);
        CHECK(!said.enough && said.variables_differ, "variables of %d", odd);
        say(&l, odd, other_library, &said);
        CHECK(!said.enough && !said.variables_differ, "library of %d", odd);
        say(&l, odd, something_to_tell, &said);
        CHECK(!said.enough && !said.variables_differ, "result of %d", odd);
        say(&l, odd, other_arithmetic, &said);
        CHECK(said.enough && said.arithmetic_differs, "arithmetic of %d", odd);
        say(&l, odd, dear, &said);
        CHECK(said.enough && (said.cost_us >= 1400000) && (said.cost_us < 2800000), "%llu us",
              (unsigned long long)said.cost_us);
        say(&l, odd, has_idle, &said);
        CHECK(said.enough && (said.idle == 0), "what only rank %d has", odd);
    }
}

/* On one node, or in containers of one machine, each has to say where it is. */
static void test_one_node(void)
{
    const struct layout    l = {1, 100, 0};
    struct xm_digest       all = {.cost = 0}, one;
    struct xm_digest_said  said;
    struct xm_digest_facts facts;

    say(&l, -1, NULL, &said);
    CHECK(!said.enough && (said.nodes == 1), "%d nodes", said.nodes);
    for (int i = 0; i < 100; i++) {
        facts = facts_of(i);
        facts.machine = 5;
        facts.idle = 42;
        xm_digest_fill(&one, &facts, i == 0);
        combine(&all, &one);
    }
    xm_digest_read(&all, 100, &said);
    CHECK(!said.enough && (said.idle == 42), "containers");
}

/* A rank that says its variables alone: nothing else is judged by it. */
static void test_variables(void)
{
    struct xm_digest       all, one;
    struct xm_digest_said  said;
    struct xm_digest_facts facts = facts_of(1);

    xm_digest_fill_variables(&all, 11);
    xm_digest_fill(&one, &facts, true);
    combine(&all, &one);
    facts = facts_of(2);
    xm_digest_fill(&one, &facts, false);
    combine(&all, &one);
    xm_digest_read(&all, 3, &said);
    CHECK(said.enough, "alike");
    xm_digest_fill_variables(&one, 12);
    combine(&all, &one);
    xm_digest_read(&all, 4, &said);
    CHECK(said.variables_differ && !said.enough, "other variables");
}

int main(void)
{
    CHECK(XM_DIGEST_WORDS * 8 < 65536, "Open MPI sends more along a ring");
    test_alike();
    test_unlike_nodes();
    test_unlike();
    test_one_node();
    test_variables();
    return xt_done("digests of many ranks");
}
