/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waiting is progress: whoever polls for something outside MPI lets MPI progress between the polls,
 * because a rank that waits here may owe another one the rest of a message it began before.
 */
#ifndef XM_COMMS_WAIT_H
#define XM_COMMS_WAIT_H

#include <stdbool.h>
#include <stdint.h>

struct xm_wait {
    uint64_t polls;
    uint64_t begun; /* ns; 0 until the clock was needed */
    uint64_t now;   /* ns, as last read */
    uint64_t limit; /* ns; 0: none */
};

/* Begin a wait of at most XCCL_TIMEOUT. */
struct xm_wait xm_wait_begin(void);

enum xm_wait_verdict {
    XM_WAIT_ON,     /* poll again */
    XM_WAIT_LOOK,   /* the same, and now and then a costly check is in order */
    XM_WAIT_EXPIRED /* the time limit has passed */
};

/* Between two polls: progress MPI, yield or nap when it takes long, watch the clock. */
enum xm_wait_verdict xm_wait_step(struct xm_wait *wait);

/* Milliseconds waited so far. */
uint64_t xm_wait_elapsed_ms(const struct xm_wait *wait);

#endif
