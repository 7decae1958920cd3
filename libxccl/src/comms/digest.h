/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What many ranks say of themselves, in words that one MPI_Iallreduce combines: enough where they
 * are alike, as they nearly always are. To gather what each of them says would take some hundred
 * bytes of each, and with Open MPI a message from each rank to every other (docs/develop/scale.md).
 */
#ifndef XM_COMMS_DIGEST_H
#define XM_COMMS_DIGEST_H

#include <stdbool.h>
#include <stdint.h>

/* From so many ranks on; fewer may be on one node, and need each other's addresses then. */
enum { XM_DIGEST_RANKS = 65 };

enum { XM_DIGEST_NODES = 1 << 15 };

/* A number, and what is no bit of it: the bits of two unlike numbers are in both. */
struct xm_digest_number {
    uint64_t ones, zeros;
};

/* Words for MPI_BOR. All zeros: nothing is said. */
struct xm_digest {
    struct xm_digest_number variables, like, idle, arithmetic, machine, node;
    uint64_t                cost;                        /* a bit: cost_us, rounded up */
    uint64_t                order_id, rank_and_number;   /* of the first rank */
    uint64_t                spawned;                     /* the same */
    uint64_t                nodes[XM_DIGEST_NODES / 64]; /* a bit for each, or for several */
};
enum { XM_DIGEST_WORDS = sizeof(struct xm_digest) / sizeof(uint64_t) };

/* What a rank says. */
struct xm_digest_facts {
    uint64_t variables, like; /* digests of what has to be equal */
    bool     odd;             /* it cannot be: this rank has something to tell */
    uint64_t idle, arithmetic, machine, node, cost_us;
    uint64_t order_id; /* and this: of the first rank */
    int      world_rank, number;
    uint32_t spawned;
};

/* What all say. */
struct xm_digest_said {
    /* Else each has to say all: they are not alike, or on one node, or containers of a machine. */
    bool     enough;
    bool     variables_differ, arithmetic_differs;
    uint64_t idle; /* 0: they differ */
    uint64_t cost_us;
    uint64_t order_id;
    int      world_rank, number;
    uint32_t spawned;
    /*
     * Estimates that are equal on all ranks; exact where each node has as many ranks, or where no
     * two nodes share a bit, which is seldom up to a hundred.
     */
    int nodes, per_node_least, per_node_most;
};

/* first: is it the communicator's first rank? */
void xm_digest_fill(struct xm_digest *digest, const struct xm_digest_facts *facts, bool first);
/* The variables alone. */
void xm_digest_fill_variables(struct xm_digest *digest, uint64_t variables);
void xm_digest_read(const struct xm_digest *all, int nranks, struct xm_digest_said *said);

#endif
