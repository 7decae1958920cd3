/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One collective call made twice: by PMPI on host copies, which is the reference, and by MPI on the
 * memory under test. All bytes of both buffers are compared, those that nobody may touch too.
 */
#ifndef MT_COLLS_H
#define MT_COLLS_H

#include "memory.h"
#include "types.h"

enum mt_coll {
    MT_ALLREDUCE,
    MT_BCAST,
    MT_REDUCE,
    MT_REDUCE_SCATTER,
    MT_REDUCE_SCATTER_BLOCK,
    MT_ALLGATHER,
    MT_ALLGATHERV,
    MT_ALLTOALL,
    MT_ALLTOALLV,
    MT_GATHER,
    MT_GATHERV,
    MT_SCATTER,
    MT_SCATTERV,
    MT_NUM_COLLS
};

#define MT_REDUCTIONS                                                                              \
    ((1u << MT_ALLREDUCE) | (1u << MT_REDUCE) | (1u << MT_REDUCE_SCATTER) |                        \
     (1u << MT_REDUCE_SCATTER_BLOCK))
#define MT_ROOTED                                                                                  \
    ((1u << MT_BCAST) | (1u << MT_REDUCE) | (1u << MT_GATHER) | (1u << MT_GATHERV) |               \
     (1u << MT_SCATTER) | (1u << MT_SCATTERV))
/* With an MPI_IN_PLACE of their own; bcast has a single buffer anyhow. */
#define MT_IN_PLACE (((1u << MT_NUM_COLLS) - 1) & ~(1u << MT_BCAST))

struct mt_case {
    enum mt_coll          coll;
    MPI_Comm              comm;
    int                   root; /* on an intercommunicator also MPI_ROOT and MPI_PROC_NULL */
    const struct mt_type *element;
    MPI_Datatype          sendtype;
    MPI_Datatype          recvtype;
    int                   sendper; /* how many sendtypes make one unit */
    int                   recvper;
    int                   units; /* of the call, or of the block for one rank */
    MPI_Op                op;
    bool                  in_place;
    bool                  large; /* the _c form */
    enum mt_where         sendwhere;
    enum mt_where         recvwhere;
    int                   shift; /* bytes that the buffers begin after an allocation */
};

/* A case of a predefined type and MPI_SUM, or MPI_BOR for the types without a sum. */
struct mt_case mt_case_make(enum mt_coll coll, MPI_Comm comm, const struct mt_type *type,
                            int units);

/* Make the call both ways. Counts it, and prints the first few failures with the whole case. */
void mt_run(const struct mt_case *c);

const char *mt_coll_name(enum mt_coll coll);
bool        mt_has_large(void);

/* Sum over all ranks, printed by rank 0; the exit status of the program. */
int mt_report(void);

/* Count a check that is no call of mt_run(). */
void mt_check(bool good, const char *what);

#endif
