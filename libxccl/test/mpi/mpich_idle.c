/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Preloaded into ranks of MPICH by the tests: a rank that waits sleeps for a moment now and then.
 *
 * MPICH's builds for UCX poll without ever yielding the core (4.0.2 of Debian has no call that
 * would). Ranks that share cores, with each other or with another job, then wait for time slices of
 * those that only poll: tests take up to ten times as long. This can go when MPICH yields.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <time.h>

enum { POLLS_BEFORE = 200, POLLS_BETWEEN = 50 };

unsigned ucp_worker_progress(void *worker);

typedef unsigned progress_fn(void *worker);

/* Python loads MPI where only its own modules see it, and UCX with it: not behind this library. */
static progress_fn *find_progress(void)
{
    void *found = dlsym(RTLD_NEXT, "ucp_worker_progress");

    if (found == NULL) {
        void *ucp = dlopen("libucp.so.0", RTLD_LAZY | RTLD_NOLOAD);
        found = (ucp != NULL) ? dlsym(ucp, "ucp_worker_progress") : NULL;
    }
    return (progress_fn *)found;
}

unsigned ucp_worker_progress(void *worker)
{
    static progress_fn *progress;
    static __thread int polls; /* in a row, without success */

    progress_fn *real = __atomic_load_n(&progress, __ATOMIC_RELAXED);
    if (real == NULL) {
        real = find_progress();
        __atomic_store_n(&progress, real, __ATOMIC_RELAXED);
    }
    unsigned done = real(worker);
    polls = (done > 0) ? 0 : polls + 1;
    if (polls > POLLS_BEFORE) {
        const struct timespec moment = {.tv_nsec = 1000};
        nanosleep(&moment, NULL);
        polls -= POLLS_BETWEEN;
    }
    return done;
}
