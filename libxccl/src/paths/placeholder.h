/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Host memory for MPI where there is none for the data: what is written there is lost, and what is
 * read there means nothing. It takes place in the address space, and next to no memory.
 */
#ifndef XM_PATHS_PLACEHOLDER_H
#define XM_PATHS_PLACEHOLDER_H

#include <stddef.h>

#include "base/log.h"

struct xm_placeholder;

/* At least `bytes`, added to the list. */
xcclResult_t xm_placeholder_take(struct xm_placeholder **list, size_t bytes, void **ptr_p);
/* Free all of the list. */
void xm_placeholder_free(struct xm_placeholder **list);

#endif
