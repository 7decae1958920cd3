/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Accesses to windows that fetch something and have a request. What synchronises the window
 * completes them as well: then the program has their data, whenever it completes the requests.
 */
#include "transfers/access.h"

#include <pthread.h>
#include <string.h>

#include "base/log.h"
#include "comms/wait.h"
#include "data/types.h"
#include "transfers/staging.h"
#include "transfers/transfer.h"

/* Held while one of them is looked at: another thread may be completing its request. */
static pthread_mutex_t     lock = PTHREAD_MUTEX_INITIALIZER;
static struct xm_transfer *accesses;
static int                 number; /* atomic */
static uint64_t            last;   /* atomic */

uint64_t xm_access_next(void)
{
    return __atomic_add_fetch(&last, 1, __ATOMIC_ACQ_REL);
}

uint64_t xm_access_last(void)
{
    return __atomic_load_n(&last, __ATOMIC_ACQUIRE);
}

/*
 * MPICH 4.0 completes the request of an MPI_Rget before the data has come if a type has holes, here
 * or at the target. Without the flush host memory would be given back that MPI is yet to write to.
 * Until MPICH 5.0, which has the standard ABI.
 */
static bool completes_early(const struct xm_transfer *t)
{
    bool           gets = (t->function == XM_FN_MPI_Rget) || (t->function == XM_FN_MPI_Rget_c);
    enum xm_nature nature;
    MPI_Count      size;

    if (XM_OPENMPI || XM_STANDARD_ABI || !gets) {
        return false;
    }
    return !t->parts[0].buffer.plain ||
           !xm_type_named((MPI_Datatype)(intptr_t)t->args[6], &nature, &size) ||
           (nature == XM_HOLES);
}

void xm_access_begin(struct xm_transfer *t)
{
    if (completes_early(t)) {
        const long flush[] = {t->args[3], t->args[7]};
        xm_mpi_forward(XM_FN_MPI_Win_flush_local, 1, flush);
    }
    for (int i = 0; (i < t->num_parts) && !t->access; i++) {
        t->access = t->parts[i].buffer.out && (strchr(t->kinds, 'w') != NULL);
    }
    if (t->access) {
        pthread_mutex_lock(&lock);
        t->number = xm_access_next();
        t->beside = accesses;
        accesses = t;
        __atomic_add_fetch(&number, 1, __ATOMIC_RELEASE);
        pthread_mutex_unlock(&lock);
    }
}

void xm_access_end(struct xm_transfer *t)
{
    struct xm_transfer **at = &accesses;

    if (!t->access) {
        return;
    }
    pthread_mutex_lock(&lock);
    while ((*at != NULL) && (*at != t)) {
        at = &(*at)->beside;
    }
    if (*at == t) {
        *at = t->beside;
        __atomic_sub_fetch(&number, 1, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
}

bool xm_accesses_any(void)
{
    return __atomic_load_n(&number, __ATOMIC_ACQUIRE) > 0;
}

bool xm_access_poll(struct xm_transfer *t, bool (*poll)(struct xm_transfer *t))
{
    pthread_mutex_lock(&lock);
    bool done = poll(t);
    pthread_mutex_unlock(&lock);
    return done;
}

/* MPI's handle may be an int, and fill half of a long. */
bool xm_access_is(const struct xm_transfer *t, long window, int rank)
{
    int  at = xm_transfer_argument(t->function, 'w');
    bool same = (at >= 0) && ((MPI_Win)(intptr_t)t->args[at] == (MPI_Win)(intptr_t)window);

    return same && ((rank < 0) || ((int)t->args[xm_transfer_argument(t->function, 'k')] == rank));
}

/* With the lock held. False: a look at its request has begun a copy, which is under way still. */
static bool bring(struct xm_transfer *t, xcclResult_t *res_p)
{
    const struct xm_rendezvous *r = &t->rendezvous;

    if (!t->over) {
        *res_p = xm_transfer_copy_out(t, XM_WHOLE);
        t->bytes = XM_WHOLE;
        t->over = true;
    } else if (!xm_rendezvous_advance(t)) {
        return false;
    } else if (r->failed != xcclSuccess) {
        *res_p = xc_fail(r->failed, "%s", r->detail);
    }
    __atomic_store_n(&t->done, true, __ATOMIC_RELEASE);
    return true;
}

/* *left_p: some are to be looked at again. */
static xcclResult_t bring_all(long window, int rank, uint64_t most, bool *left_p)
{
    xcclResult_t res = xcclSuccess;

    *left_p = false;
    pthread_mutex_lock(&lock);
    for (struct xm_transfer *t = accesses; (t != NULL) && (res == xcclSuccess); t = t->beside) {
        if (!t->done && (t->number <= most) && xm_access_is(t, window, rank)) {
            *left_p = !bring(t, &res) || *left_p;
        }
    }
    pthread_mutex_unlock(&lock);
    return res;
}

/* Without the lock in between: the thread that has begun a copy may need it before it launches. */
xcclResult_t xm_accesses_synchronised(long window, int rank, uint64_t most)
{
    struct xm_wait wait = xm_wait_begin_for_ever("for a copy of what an access has fetched");
    bool           left = false;

    xm_kernel_copies_collect(XM_COLLECT_NONE); /* MPI's handler may have left what did */
    xcclResult_t res = bring_all(window, rank, most, &left);
    while ((res == xcclSuccess) && left) {
        xm_wait_step(&wait);
        res = bring_all(window, rank, most, &left);
    }
    return res;
}
