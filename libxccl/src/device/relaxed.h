/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The capture mode of a thread. While the program captures a stream, CUDA and HIP take some calls
 * of its thread, or of any thread, for mistakes: they fail, and the capture is lost. Ours touch
 * nothing that is captured, and are made in the relaxed mode. A change of mode costs a good part of
 * what the question does whether a stream is done, and such questions are asked in a row: while a
 * device is entered there is one change, by the first call that needs it, and one back at the end.
 */
#ifndef XC_DEVICE_RELAXED_H
#define XC_DEVICE_RELAXED_H

#include <stdbool.h>

enum { XC_MODE_RELAXED = 2 }; /* of both runtimes */

/* A thread's; zero at first. */
struct xc_relaxed {
    unsigned entered; /* times */
    bool     changed; /* since it entered */
    int      before;
};

/* Set the mode of this thread; returns the one before. */
typedef int xc_exchange_mode_fn(int mode);

/* Returns what xc_relax_end() takes. */
static inline int xc_relax(struct xc_relaxed *r, xc_exchange_mode_fn *exchange)
{
    if (r->changed) {
        return XC_MODE_RELAXED;
    }
    int before = exchange(XC_MODE_RELAXED);
    if ((r->entered == 0) || (before == XC_MODE_RELAXED)) {
        return before;
    }
    r->changed = true;
    r->before = before;
    return XC_MODE_RELAXED;
}

static inline void xc_relax_end(int before, xc_exchange_mode_fn *exchange)
{
    if (before != XC_MODE_RELAXED) {
        (void)exchange(before);
    }
}

static inline void xc_relax_enter(struct xc_relaxed *r)
{
    r->entered++;
}

static inline void xc_relax_leave(struct xc_relaxed *r, xc_exchange_mode_fn *exchange)
{
    if ((--r->entered == 0) && r->changed) {
        r->changed = false;
        (void)exchange(r->before);
    }
}

#endif
