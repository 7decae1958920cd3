/* SPDX-License-Identifier: BSD-3-Clause */
#include "observe/ranges.h"

#include "base/params.h"

static bool nvtx, roctx;

bool xm_ranges_open(void)
{
    if (xc_params()->ranges == XC_RANGES_AUTO) {
        nvtx = xm_nvtx_open();
        roctx = xm_roctx_open();
    }
    return nvtx || roctx;
}

void xm_range_push(const char *name)
{
    if (nvtx) {
        xm_nvtx_push(name);
    }
    if (roctx) {
        xm_roctx_push(name);
    }
}

void xm_range_pop(void)
{
    if (roctx) {
        xm_roctx_pop();
    }
    if (nvtx) {
        xm_nvtx_pop();
    }
}
