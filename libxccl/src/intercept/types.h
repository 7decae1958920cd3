/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI's predefined types and operations in xccl's terms, and what a derived type looks like. */
#ifndef XM_INTERCEPT_TYPES_H
#define XM_INTERCEPT_TYPES_H

#include <stdbool.h>
#include <stddef.h>

#include "comms/mpi.h"

/* How the elements of a type lie in memory. */
struct xm_layout {
    MPI_Count size;                 /* bytes of data */
    MPI_Count lb, extent;           /* step from one element to the next */
    MPI_Count true_lb, true_extent; /* what an element really touches */
    bool      derived;
    bool      plain; /* count elements are count * size bytes, in order, without holes */
};

/* False if type is no valid datatype; then MPI is to complain. */
bool xm_layout_of(MPI_Datatype type, struct xm_layout *layout_p);

/* What reducing elements of a type means to a vendor's library. */
struct xm_reduction {
    xcclDataType_t type;
    xcclRedOp_t    op;
    size_t         factor; /* xccl elements in one MPI element: 2 for a complex sum */
};

/*
 * Translate type and op. Returns NULL on success, else why the pair needs MPI, as a static text
 * ("user-defined operation or one that no vendor has").
 */
const char *xm_reduction_of(MPI_Datatype type, MPI_Op op, struct xm_reduction *reduction_p);

/* Once, after xm_mpi_open(). */
void xm_types_init(void);

#endif
