/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Does nothing move, so that who waits may nap? What is waited for may be a transfer that MPI moves
 * by polls alone, a few KiB in each: 256 MiB took 7 s where a nap followed every poll. A poll that
 * moves something takes longer than one that does not, so there is no nap while their times differ.
 * Both ends may nap: each polls for longer than a nap takes before it does, so that it sees what
 * the other one sends after its own.
 */
#ifndef XC_BASE_CALM_H
#define XC_BASE_CALM_H

#include <stdbool.h>
#include <stdint.h>

enum {
    XC_CALM_NS = 150 * 1000, /* of polls before a nap; */
    XC_CALM_NAPS = 100,      /* after so many naps in a row so few: */
    XC_CALM_FEW_NS = 10 * 1000,
    XC_CALM_MOVES_NS = 1500, /* by so much polls that move nothing may differ */
};

struct xc_calm {
    uint64_t begun_ns;    /* of the polls that are looked at together; 0: none yet */
    uint64_t last_ns;     /* end of the last one */
    uint64_t least, most; /* ns that one of them took */
    unsigned naps;        /* in a row */
};

/* After a poll: true if it is time for a nap. Begins with all zeros. */
static inline bool xc_is_calm(struct xc_calm *c, uint64_t now)
{
    uint64_t took = now - c->last_ns;
    bool     first = (c->begun_ns == 0);

    c->last_ns = now;
    if (first) { /* the nap before it is no part of a poll */
        c->begun_ns = now;
        c->least = UINT64_MAX;
        c->most = 0;
        return false;
    }
    c->least = (took < c->least) ? took : c->least;
    c->most = (took > c->most) ? took : c->most;
    if (c->most - c->least > XC_CALM_MOVES_NS) {
        c->begun_ns = 0;
        c->naps = 0;
        return false;
    }
    if (now - c->begun_ns < ((c->naps < XC_CALM_NAPS) ? XC_CALM_NS : XC_CALM_FEW_NS)) {
        return false;
    }
    c->begun_ns = 0;
    c->naps++;
    return true;
}

#endif
