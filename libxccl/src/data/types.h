/* SPDX-License-Identifier: BSD-3-Clause */
/* What a datatype looks like in memory. */
#ifndef XM_DATA_TYPES_H
#define XM_DATA_TYPES_H

#include <stdbool.h>
#include <stddef.h>

#include "mpi/mpi.h"

struct xm_flat;

/* How the elements of a type lie in memory. */
struct xm_layout {
    MPI_Count size;                 /* bytes of data */
    MPI_Count lb, extent;           /* step from one element to the next */
    MPI_Count true_lb, true_extent; /* what an element really touches */
    bool      derived;
    /* Taken apart, of a buffer in device memory that is not plain; NULL: not possible. Held. */
    const struct xm_flat *flat;
    bool                  held; /* instead: a buffer has a reference of its own to the type */
    bool plain;                 /* count elements are count * size bytes, in order, without holes */
};

/* False if type is no valid datatype; then MPI is to complain. */
bool xm_layout_of(MPI_Datatype type, struct xm_layout *layout_p);

/* What kind of number a predefined type is. */
enum xm_nature { XM_OTHER, XM_CHARACTER, XM_SIGNED, XM_UNSIGNED, XM_REAL, XM_COMPLEX, XM_HOLES };

/* A predefined type that this MPI has, or false. size in bytes. */
bool xm_type_named(MPI_Datatype type, enum xm_nature *nature_p, MPI_Count *size_p);

/* "MPI_FLOAT"; "derived", or NULL for no type. A static text. */
const char *xm_type_name(MPI_Datatype type);

/* The i-th of the predefined types that this MPI has, or false past the last. */
bool xm_type_at(int i, MPI_Datatype *type_p);

/* Once, after xm_mpi_open(). */
void xm_types_init(void);

/* NULL: it is the program's own, or none. */
const char *xm_op_name(MPI_Op op);

#endif
