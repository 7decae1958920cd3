/* SPDX-License-Identifier: BSD-3-Clause */
/* The thirteen collectives behind one signature. */
#ifndef MT_CALLS_H
#define MT_CALLS_H

#include "colls.h"

enum { MT_MAX_RANKS = 64 };

/* Everything that one call passes; arrays have a count for each rank. */
struct mt_args {
    const void  *send;
    void        *recv; /* bcast's buffer too */
    MPI_Count    sendcount;
    MPI_Count    recvcount;
    MPI_Count    sendcounts[MT_MAX_RANKS];
    MPI_Count    senddispls[MT_MAX_RANKS];
    MPI_Count    recvcounts[MT_MAX_RANKS];
    MPI_Count    recvdispls[MT_MAX_RANKS];
    MPI_Datatype sendtype;
    MPI_Datatype recvtype;
    MPI_Op       op;
    int          root;
    MPI_Comm     comm;
};

/* Through PMPI_* (the reference) or MPI_* (what is tested); returns MPI's error code. */
int mt_call(enum mt_coll coll, bool reference, bool large, const struct mt_args *a);

#endif
