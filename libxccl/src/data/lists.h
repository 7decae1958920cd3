/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The stretches of irregular datatypes, listed in the memory of a device: an index that a mesh's
 * halo is gathered by has as many runs as entries. A list is made when the type is first packed or
 * unpacked there, and stays with the type; all of them take at most XCCL_SCRATCH.
 */
#ifndef XM_DATA_LISTS_H
#define XM_DATA_LISTS_H

#include "data/enqueue.h"
#include "kernels/kernels.h"

struct xm_flat;
struct xm_list;

/* Has the type more runs than a launch takes along, and not too many stretches for a list? */
bool xm_is_listed(const struct xm_flat *flat);
/*
 * Set what describes an element of the type, with the scratch's device entered. What is enqueued on
 * the copier's stream behind this may read it. False: there is no memory for it.
 */
bool xm_list_find(const struct xm_copier *copier, const struct xm_flat *flat,
                  struct xk_listed *what);

/* The same where that is there already, and no stream has to be waited for. */
bool xm_list_there(const struct xm_copier *copier, const struct xm_flat *flat,
                   struct xk_listed *what);

/* With the type that they belong to. */
void xm_lists_free(struct xm_list *lists);
/* In MPI_Finalize, before the memory goes: types may stay. */
void xm_lists_finalize(void);

#endif
