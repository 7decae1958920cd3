/* SPDX-License-Identifier: BSD-3-Clause */
/* Which machine a process runs on. */
#ifndef XC_BASE_MACHINE_H
#define XC_BASE_MACHINE_H

#include <stdint.h>

#include "base/log.h"

/*
 * A number of this machine since it was started: the same in all of its processes, containers too,
 * and as good as never that of another.
 */
XC_SHARED uint64_t xc_machine_number(void);

#endif
