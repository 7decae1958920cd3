/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Preloaded into ranks of MPICH by the tests: a rank that waits sleeps for a moment now and then,
 * and one that has left waits for the others to do so.
 *
 * MPICH's builds for UCX poll without ever yielding the core (4.0.2 of Debian has no call that
 * would). Ranks that share cores, with each other or with another job, then wait for time slices of
 * those that only poll: tests take up to ten times as long. This can go when MPICH yields.
 *
 * In MPI_Finalize a rank of 4.0.2 disconnects from the others, and then reads from its launcher
 * until all have done so. Over TCP they need its answer for that, which it gives only while it
 * polls: one job of ten never ends. So this read polls. It can go with MPICH 4.0. Only that
 * thread's: one of UCX's own reads while the worker is destroyed.
 */
#include <dlfcn.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>

enum { POLLS_BEFORE = 200, POLLS_BETWEEN = 50 };

unsigned ucp_worker_progress(void *worker);
void    *ucp_disconnect_nb(void *endpoint);
void     ucp_worker_destroy(void *worker);

static void         *polled; /* atomic: the worker; NULL: there is none */
static __thread bool leaving;

typedef unsigned progress_fn(void *worker);

/* Python loads MPI where only its own modules see it, and UCX with it: not behind this library. */
static void *find(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);

    if (found == NULL) {
        void *ucp = dlopen("libucp.so.0", RTLD_LAZY | RTLD_NOLOAD);
        found = (ucp != NULL) ? dlsym(ucp, name) : NULL;
    }
    return found;
}

unsigned ucp_worker_progress(void *worker)
{
    static progress_fn *progress;
    static __thread int polls; /* in a row, without success */

    progress_fn *real = __atomic_load_n(&progress, __ATOMIC_RELAXED);
    if (real == NULL) {
        real = (progress_fn *)find("ucp_worker_progress");
        __atomic_store_n(&progress, real, __ATOMIC_RELAXED);
    }
    __atomic_store_n(&polled, worker, __ATOMIC_RELAXED);
    unsigned done = real(worker);
    polls = (done > 0) ? 0 : polls + 1;
    if (polls > POLLS_BEFORE) {
        const struct timespec moment = {.tv_nsec = 1000};
        nanosleep(&moment, NULL);
        polls -= POLLS_BETWEEN;
    }
    return done;
}

void *ucp_disconnect_nb(void *endpoint)
{
    void *(*real)(void *) = (void *(*)(void *))find("ucp_disconnect_nb");

    leaving = true;
    return real(endpoint);
}

void ucp_worker_destroy(void *worker)
{
    void (*real)(void *) = (void (*)(void *))find("ucp_worker_destroy");

    __atomic_store_n(&polled, NULL, __ATOMIC_RELAXED);
    real(worker);
}

ssize_t read(int fd, void *buffer, size_t bytes)
{
    static ssize_t (*real)(int, void *, size_t); /* atomic */
    struct pollfd file = {.fd = fd, .events = POLLIN};
    void         *worker = NULL;

    if (__atomic_load_n(&real, __ATOMIC_RELAXED) == NULL) {
        __atomic_store_n(&real, (ssize_t(*)(int, void *, size_t))find("read"), __ATOMIC_RELAXED);
    }
    if (leaving) {
        worker = __atomic_load_n(&polled, __ATOMIC_RELAXED);
    }
    while ((worker != NULL) && (poll(&file, 1, 1) == 0)) {
        ucp_worker_progress(worker);
    }
    return real(fd, buffer, bytes);
}
