/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives of a single rank, whose data goes to itself. */
#ifndef XM_PATHS_SELF_H
#define XM_PATHS_SELF_H

#include "paths/path.h"

/*
 * Why xm_path_self cannot carry a collective on device memory, or NULL. A static text. Its buffers
 * and its device are known.
 */
const char *xm_self_obstacle(const struct xm_op *op);

#endif
