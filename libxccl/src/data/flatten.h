/* SPDX-License-Identifier: BSD-3-Clause */
/* Datatypes taken apart: from their constructors to runs of bytes. */
#ifndef XM_DATA_FLATTEN_H
#define XM_DATA_FLATTEN_H

#include "data/runs.h"
#include "mpi/mpi.h"

/* Of the first bytes of an element, where they lie: what a message begins with is found by them. */
enum { XM_HEAD_BYTES = 80, XM_ELEMENTS_DIFFER = -1 };
struct xm_piece {
    ptrdiff_t offset;
    size_t    packed, bytes;
};

struct xm_list;

/* One element of a type. Belongs to all that hold it, and stays when the type is freed. */
struct xm_flat {
    int            users; /* atomic */
    bool           usable;
    MPI_Count      element;   /* bytes of each named one, or XM_ELEMENTS_DIFFER */
    bool           disjoint;  /* certainly no byte twice: the order of writing does not matter */
    ptrdiff_t      low, high; /* of the bytes of data */
    struct xm_runs runs;
    size_t         stretches; /* in all runs */

    struct xm_piece *head;
    size_t           pieces;

    struct xm_list *lists; /* on devices: data/lists.h */
};

/*
 * What type consists of, or NULL: of MPI_Type_create_darray, of types whose runs are too many, and
 * where MPI says something else than its constructors. Kept as an attribute of the datatype, so
 * that it is worked out once. The caller gives it back.
 */
const struct xm_flat *xm_flat_get(MPI_Datatype type);
/* Another user of it; NULL is none. */
const struct xm_flat *xm_flat_hold(const struct xm_flat *flat);
void                  xm_flat_put(const struct xm_flat *flat);

/* MPI begins anew. */
void xm_flat_begin(void);
/* Before MPI_Finalize. Types are taken apart later too, and no attribute is left to. */
void xm_flat_finalize(void);

#endif
