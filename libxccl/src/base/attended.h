/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long something was watched: what lies between two looks counts as one second at most. So a
 * process that was suspended, or a program that computed between two tests of a request, does not
 * run into XCCL_TIMEOUT for time in which nobody could have seen an end.
 */
#ifndef XC_BASE_ATTENDED_H
#define XC_BASE_ATTENDED_H

#include <stdint.h>

struct xc_attended {
    uint64_t looked; /* ns of the clock; 0: never */
    uint64_t ns;
};

/* Look at a time of the clock, in ns; returns the time attended, in ns. */
static inline uint64_t xc_attended_at(struct xc_attended *attended, uint64_t now)
{
    const uint64_t most = 1000000000u;

    if (attended->looked != 0) {
        uint64_t since = now - attended->looked;
        attended->ns += (since < most) ? since : most;
    }
    attended->looked = now;
    return attended->ns;
}

#endif
