/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The edges along which a communicator's pairwise collectives move data (calls/pairwise.h): those
 * of its topology, or from every rank to every rank; and the communicator on which messages of ours
 * go along them.
 */
#ifndef XM_COMMS_EDGES_H
#define XM_COMMS_EDGES_H

#include "comms/comm.h"

struct xm_edges {
    MPI_Comm comm;   /* of the same ranks in the same order; MPI_COMM_NULL: it has gone */
    bool     owned;  /* it was made for this */
    bool     broken; /* a call ended by a time-out, and messages of it may still come */
    bool     grid;   /* two edges may lead to one rank, in opposite directions: tags differ */
    int      in, out;
    int     *sources; /* a rank or MPI_PROC_NULL each, in the order of the blocks */
    int     *targets;
};

/* Which edges those of a collective are. */
static inline enum xm_pairs xm_pairs_of(enum xm_coll coll)
{
    return xm_coll_has_neighbors(coll) ? XM_PAIRS_NEAR : XM_PAIRS_ALL;
}

/* Those of a communicator; NULL: it has no topology, or there is no memory. */
struct xm_edges *xm_edges_find(const struct xm_comm *xm, enum xm_pairs pairs);
void             xm_edges_free(struct xm_edges *edges);

/* Is there room for another communicator of ours in this process? */
bool xm_edges_have_room(void);
/* Ours from here on: messages go on `messages`. owned: it goes with the program's communicator. */
void xm_edges_take(struct xm_comm *xm, enum xm_pairs pairs, struct xm_edges *edges,
                   MPI_Comm messages, bool owned);

/* Are messages to carry them? */
bool xm_edges_are_ours(const struct xm_comm *xm, enum xm_pairs pairs);
/* Is it MPI that carries the next call, and does no rank ask the others? blocking: the call is. */
bool xm_edges_are_mpis(const struct xm_comm *xm, enum xm_pairs pairs, bool blocking);
/* It has been made. */
void xm_edges_count(struct xm_comm *xm, enum xm_pairs pairs, bool blocking);

/* The communicator has been freed, or MPI ends, and nothing of it is under way. */
void xm_edges_let_go(struct xm_comm *xm);

#endif
