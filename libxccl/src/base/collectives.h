/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The collectives of MPI 4.1: names and argument kinds, once. Every entry point, every call back
 * to MPI and every name in a table or a message is made from these rows.
 */
#ifndef XC_BASE_COLLECTIVES_H
#define XC_BASE_COLLECTIVES_H

#include <stdbool.h>

/*
 * X(name, with a small first letter, in capitals; number of arguments of the blocking, the
 * non-blocking and the persistent form; the kind of each argument of the blocking form)
 *
 *   s r  send and receive buffer           n m  their counts
 *   N M  arrays of counts                  d D  arrays of displacements, int (MPI_Aint in _c)
 *   a A  displacements, always MPI_Aint    t u  types        U V  arrays of types
 *   o operation   x root   c communicator
 *
 * Behind these the non-blocking form has a request, the persistent one an info and a request. The
 * form with large counts (_c) has the same arguments.
 */
#define XM_COLLECTIVES_WITH_COUNTS(X)                                                              \
    X(Allreduce, allreduce, ALLREDUCE, 6, 7, 8, "srntoc")                                          \
    X(Bcast, bcast, BCAST, 5, 6, 7, "rmuxc")                                                       \
    X(Reduce, reduce, REDUCE, 7, 8, 9, "srntoxc")                                                  \
    X(Reduce_scatter, reduce_scatter, REDUCE_SCATTER, 6, 7, 8, "srMtoc")                           \
    X(Reduce_scatter_block, reduce_scatter_block, REDUCE_SCATTER_BLOCK, 6, 7, 8, "srmtoc")         \
    X(Allgather, allgather, ALLGATHER, 7, 8, 9, "sntrmuc")                                         \
    X(Allgatherv, allgatherv, ALLGATHERV, 8, 9, 10, "sntrMDuc")                                    \
    X(Alltoall, alltoall, ALLTOALL, 7, 8, 9, "sntrmuc")                                            \
    X(Alltoallv, alltoallv, ALLTOALLV, 9, 10, 11, "sNdtrMDuc")                                     \
    X(Gather, gather, GATHER, 8, 9, 10, "sntrmuxc")                                                \
    X(Gatherv, gatherv, GATHERV, 9, 10, 11, "sntrMDuxc")                                           \
    X(Scatter, scatter, SCATTER, 8, 9, 10, "sntrmuxc")                                             \
    X(Scatterv, scatterv, SCATTERV, 9, 10, 11, "sNdtrmuxc")                                        \
    X(Alltoallw, alltoallw, ALLTOALLW, 9, 10, 11, "sNdUrMDVc")                                     \
    X(Scan, scan, SCAN, 6, 7, 8, "srntoc")                                                         \
    X(Exscan, exscan, EXSCAN, 6, 7, 8, "srntoc")                                                   \
    X(Neighbor_allgather, neighbor_allgather, NEIGHBOR_ALLGATHER, 7, 8, 9, "sntrmuc")              \
    X(Neighbor_allgatherv, neighbor_allgatherv, NEIGHBOR_ALLGATHERV, 8, 9, 10, "sntrMDuc")         \
    X(Neighbor_alltoall, neighbor_alltoall, NEIGHBOR_ALLTOALL, 7, 8, 9, "sntrmuc")                 \
    X(Neighbor_alltoallv, neighbor_alltoallv, NEIGHBOR_ALLTOALLV, 9, 10, 11, "sNdtrMDuc")          \
    X(Neighbor_alltoallw, neighbor_alltoallw, NEIGHBOR_ALLTOALLW, 9, 10, 11, "sNaUrMAVc")

/* All of them: the barrier has no counts, and so no second function with large ones. */
#define XM_COLLECTIVES(X) XM_COLLECTIVES_WITH_COUNTS(X) X(Barrier, barrier, BARRIER, 1, 2, 3, "c")

enum xm_coll {
#define XM_COLL_ID(name, small, capitals, n, ni, np, kinds) XM_##capitals,
    XM_COLLECTIVES(XM_COLL_ID)
#undef XM_COLL_ID
        XM_NUM_COLLS
};

/* Does it move data along the edges of a topology? */
static inline bool xm_coll_has_neighbors(enum xm_coll coll)
{
    return (coll >= XM_NEIGHBOR_ALLGATHER) && (coll <= XM_NEIGHBOR_ALLTOALLW);
}

/* Is it messages between pairs of ranks, of whose length and type each pair alone knows? */
static inline bool xm_coll_is_pairwise(enum xm_coll coll)
{
    return xm_coll_has_neighbors(coll) || (coll == XM_ALLTOALLW);
}

/* "allreduce": as in tuning tables and messages; by enum xm_coll. */
static inline const char *const *xm_coll_names(void)
{
    static const char *const names[XM_NUM_COLLS] = {
#define XM_COLL_NAME(name, small, capitals, n, ni, np, kinds) #small,
        XM_COLLECTIVES(XM_COLL_NAME)
#undef XM_COLL_NAME
    };

    return names;
}

static inline const char *xm_coll_name(enum xm_coll coll)
{
    return xm_coll_names()[coll];
}

/* Can another path than MPI's carry it, on device memory? */
static inline bool xm_coll_on_device(enum xm_coll coll)
{
    return (coll < XM_ALLTOALLW) || (coll == XM_SCAN) || (coll == XM_EXSCAN);
}

/* The same on a communicator of one rank. */
static inline bool xm_coll_alone_on_device(enum xm_coll coll)
{
    return xm_coll_on_device(coll) || (coll == XM_ALLTOALLW);
}

#endif
