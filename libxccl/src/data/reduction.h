/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI's reductions in the vendors' terms, where both mean the same to the last bit. */
#ifndef XM_DATA_REDUCTION_H
#define XM_DATA_REDUCTION_H

#include <stdbool.h>
#include <stddef.h>

#include "mpi/mpi.h"

/* What reducing elements of a type means to a vendor's library. */
struct xm_reduction {
    xcclDataType_t type;
    xcclRedOp_t    op;
    size_t         factor;  /* xccl elements in one MPI element: 2 for a complex sum */
    bool           integer; /* found by a look at this rank's MPI */
};

/*
 * Translate type and op. Returns NULL on success, else why the pair needs MPI, as a static text
 * ("user-defined operation, or one that the vendors' libraries lack").
 */
const char *xm_reduction_of(MPI_Datatype type, MPI_Op op, struct xm_reduction *reduction_p);

#endif
