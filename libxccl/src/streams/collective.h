/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XM_STREAMS_COLLECTIVE_H
#define XM_STREAMS_COLLECTIVE_H

#include "calls/calls.h"

int xm_enqueue_collective(enum xm_function function, enum xm_coll coll, bool large,
                          const long *args);

#endif
