/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Does nothing move, so that who waits may nap? What is waited for may be a transfer that MPI moves
 * by polls alone, a few KiB in each: 256 MiB took 7 s where a nap followed every poll. A poll that
 * moves something takes longer than one that does not, so there is no nap while their times differ.
 * Both ends may nap: each polls for longer than a nap takes before it does, so that it sees what
 * the other one sends after its own. A thread that shares its core naps soon: the others may be who
 * it waits for, and what its polls take says little there.
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
    XC_CALM_SHARED = 2,      /* so many times as long as they took: other threads want the core */
};

struct xc_calm {
    uint64_t used_ns, at_ns;       /* at the end of the last poll: processor and clock; 0: none */
    uint64_t polled_ns, passed_ns; /* of the polls that are looked at together */
    uint64_t least, most;          /* ns of the processor that one of them took */
    unsigned naps;                 /* in a row */
};

/*
 * After a poll, with the time that this thread has used the processor so far, and the time: is it
 * time for a nap? Begins with all zeros.
 */
static inline bool xc_is_calm(struct xc_calm *c, uint64_t used_ns, uint64_t at_ns)
{
    struct xc_calm last = *c;

    c->used_ns = used_ns;
    c->at_ns = at_ns;
    if (last.at_ns == 0) { /* the nap before it is no part of a poll */
        return false;
    }
    uint64_t took = used_ns - last.used_ns;
    c->least = ((c->polled_ns == 0) || (took < c->least)) ? took : c->least;
    c->most = (took > c->most) ? took : c->most;
    c->polled_ns += took;
    c->passed_ns += at_ns - last.at_ns;
    bool shared = (c->passed_ns > XC_CALM_SHARED * c->polled_ns + XC_CALM_FEW_NS);
    if (!shared && (c->most - c->least > XC_CALM_MOVES_NS)) {
        *c = (struct xc_calm){.used_ns = used_ns, .at_ns = at_ns};
        return false;
    }
    bool few = shared || (c->naps >= XC_CALM_NAPS);
    if (c->polled_ns < (few ? XC_CALM_FEW_NS : XC_CALM_NS)) {
        return false;
    }
    *c = (struct xc_calm){.naps = c->naps + 1};
    return true;
}

#endif
