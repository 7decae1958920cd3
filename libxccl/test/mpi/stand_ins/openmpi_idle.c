/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Preloaded into ranks of Open MPI by the tests: a rank that waits sleeps for a moment now and
 * then.
 *
 * Told to yield (mpi_yield_when_idle), Open MPI calls sched_yield() after every poll that finds
 * nothing. Since Linux 6.6 that gives the core away for no more than a moment: a rank that waits
 * has its full share of it, and more of them than cores take half of the machine from those that
 * work.
 */
#include <sched.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { IN_A_ROW_NS = 30 * 1000, YIELDS_BEFORE = 20 };

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

int sched_yield(void)
{
    static __thread uint64_t last;
    static __thread unsigned in_a_row;

    in_a_row = (now_ns() - last < IN_A_ROW_NS) ? in_a_row + 1 : 0;
    if (in_a_row > YIELDS_BEFORE) {
        const struct timespec moment = {.tv_nsec = 1000};
        nanosleep(&moment, NULL);
        last = now_ns();
        return 0;
    }
    last = now_ns();
    return (int)syscall(SYS_sched_yield);
}
