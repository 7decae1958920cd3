/* SPDX-License-Identifier: BSD-3-Clause */
/* What a process has made and not destroyed when it ends: said with XCCL_SIM_LOG=info. */
#include "core/core.h"

static int live[XS_NUM_LIVE]; /* atomic */

void xs_live(enum xs_live what, int change)
{
    __atomic_add_fetch(&live[what], change, __ATOMIC_RELAXED);
}

static int count(enum xs_live what)
{
    return __atomic_load_n(&live[what], __ATOMIC_RELAXED);
}

__attribute__((destructor)) static void tell(void)
{
    xs_log(XS_LOG_INFO,
           "left: %d events, %d streams, %d graphs, %d allocations, %d mappings, %d pins",
           count(XS_LIVE_EVENT), count(XS_LIVE_STREAM), count(XS_LIVE_GRAPH),
           count(XS_LIVE_ALLOCATION), count(XS_LIVE_MAPPING), count(XS_LIVE_PIN));
}
