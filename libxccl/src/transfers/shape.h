/* SPDX-License-Identifier: BSD-3-Clause */
/* The first bytes of a buffer in host memory, in the order of its type. */
#ifndef XM_TRANSFERS_SHAPE_H
#define XM_TRANSFERS_SHAPE_H

#include "transfers/rendezvous.h"

void xm_shape_gather(const struct xm_rendezvous *r, char *packed, size_t bytes);
void xm_shape_scatter(const struct xm_rendezvous *r, const char *packed, size_t bytes);

#endif
