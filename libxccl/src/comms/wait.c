/* SPDX-License-Identifier: BSD-3-Clause */
#include "comms/wait.h"

#include <sched.h>
#include <time.h>

#include "base/params.h"
#include "comms/mpi.h"

/*
 * The short end decides latency, the long end how much a waiting rank takes from others on its
 * core: pure polling first, then the core is offered at each poll, then short naps.
 */
enum {
    POLLS_A_PROGRESS = 8,
    POLLS_BEFORE_CLOCK = 64,
    YIELD_AFTER_NS = 50 * 1000,
    NAP_AFTER_NS = 20 * 1000 * 1000,
    NAP_NS = 50 * 1000,
    POLLS_A_LOOK = 1024,
};

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

struct xm_wait xm_wait_begin(void)
{
    struct xm_wait wait = {0, 0, 0, (uint64_t)xc_params()->timeout * 1000000000u};

    return wait;
}

static void progress(void)
{
    int flag;

    /* Any call would do; this one matches nothing of the program's. */
    xm_pmpi.Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, XM_HANDLE(MPI_COMM_SELF), &flag, MPI_STATUS_IGNORE);
}

enum xm_wait_verdict xm_wait_step(struct xm_wait *wait)
{
    wait->polls++;
    if ((wait->polls % POLLS_A_PROGRESS) == 0) {
        progress();
    }
    if (wait->polls < POLLS_BEFORE_CLOCK) {
        return XM_WAIT_ON;
    }
    wait->now = now_ns();
    if (wait->begun == 0) {
        wait->begun = wait->now;
    }
    uint64_t elapsed = wait->now - wait->begun;
    if ((wait->limit != 0) && (elapsed > wait->limit)) {
        return XM_WAIT_EXPIRED;
    }
    if (elapsed > NAP_AFTER_NS) {
        struct timespec nap = {0, NAP_NS};
        progress();
        nanosleep(&nap, NULL);
        return ((wait->polls % (POLLS_A_LOOK / 64)) == 0) ? XM_WAIT_LOOK : XM_WAIT_ON;
    }
    if (elapsed > YIELD_AFTER_NS) {
        sched_yield();
    }
    return ((wait->polls % POLLS_A_LOOK) == 0) ? XM_WAIT_LOOK : XM_WAIT_ON;
}

uint64_t xm_wait_elapsed_ms(const struct xm_wait *wait)
{
    return (wait->begun == 0) ? 0 : (now_ns() - wait->begun) / 1000000u;
}
