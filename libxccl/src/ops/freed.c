/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/freed.h"

#include <pthread.h>
#include <stdlib.h>

#include "comms/agree.h"
#include "comms/edges.h"
#include "comms/keyvals.h"
#include "comms/wait.h"
#include "ops/op.h"
#include "ops/pending.h"
#include "transfers/rendezvous.h"

struct freed {
    MPI_Comm        comm;
    struct xm_comm *xm;
    int             profiling; /* by the name that the program used */
    struct freed   *next;
};

/* Most are ready by then. With some that were not, this rank is ahead, and so most are not. */
static const uint64_t patience_ns = 20000000u, patience_ahead_ns = 200000u;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct freed   *all; /* atomic */

static bool is_ready(struct xm_comm *xm)
{
    return !xm_pending_on(xm) && xm_comm_agreements_over(xm);
}

static bool is_ready_soon(struct xm_comm *xm, bool together)
{
    struct xm_wait wait = xm_wait_begin("for operations of a communicator that is freed");
    bool           ready;

    xm_pending_await(NULL, xm);
    /* The other ranks may be in the program's delete callback already, and wait for this one. */
    if (!together || !xm_keyvals_on(xm->comm) || xm_comm_has_given_up(xm)) {
        bool ahead = (__atomic_load_n(&all, __ATOMIC_ACQUIRE) != NULL);
        wait.limit = ahead ? patience_ahead_ns : patience_ns;
    }
    while (!(ready = is_ready(xm)) && (xm_wait_step(&wait) != XM_WAIT_EXPIRED)) {
        xm_ops_progress();
    }
    return ready;
}

int xm_freed_now(enum xm_function function, MPI_Comm *comm, int profiling)
{
    const long        args[] = {(long)comm};
    struct xm_comm   *xm = xm_comm_known(*comm);
    struct xm_freeing frame;

    /* First: once MPI has freed it, another thread may be given its handle. */
    xm_rendezvous_comm_freed();
    xm_comm_freeing(&frame, *comm);
    int code = (int)xm_mpi_forward(function, profiling, args);
    xm_comm_freed(&frame);
    if ((xm != NULL) && (code == MPI_SUCCESS)) { /* callbacks of the program have had it as well */
        xm_edges_let_go(xm);
    }
    if (xm != NULL) {
        xm_comm_unuse(xm);
    }
    return code;
}

static void keep(struct freed *f)
{
    pthread_mutex_lock(&lock);
    f->next = all;
    __atomic_store_n(&all, f, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
}

/* Behind those that were freed since: the newest one is the first. */
static void keep_behind(struct freed *list)
{
    pthread_mutex_lock(&lock);
    struct freed **at = &all;
    while (*at != NULL) {
        at = &(*at)->next;
    }
    __atomic_store_n(at, list, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
}

int xm_freed_free(MPI_Comm *comm, int profiling, bool together)
{
    struct xm_comm *xm = xm_comm_known(*comm);
    struct freed   *f = NULL;

    xm_freed_progress();
    if ((xm != NULL) && !is_ready_soon(xm, together)) {
        f = malloc(sizeof(*f));
    }
    if (f == NULL) {
        if (xm != NULL) {
            xm_comm_unuse(xm);
        }
        return xm_freed_now(XM_FN_MPI_Comm_free, comm, profiling);
    }
    *f = (struct freed){*comm, xm, profiling, NULL};
    keep(f);
    *comm = XM_HANDLE(MPI_COMM_NULL);
    return MPI_SUCCESS;
}

static struct freed *take_all(void)
{
    pthread_mutex_lock(&lock);
    struct freed *list = all;
    __atomic_store_n(&all, NULL, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
    return list;
}

/* Without the lock: the program's delete callbacks may call MPI, and so may error handlers. */
static void free_taken(struct freed *f)
{
    xm_comm_unuse(f->xm);
    xm_freed_now(XM_FN_MPI_Comm_free, &f->comm, f->profiling);
    free(f);
}

void xm_freed_progress(void)
{
    static __thread bool inside;

    if ((__atomic_load_n(&all, __ATOMIC_ACQUIRE) == NULL) || inside) {
        return;
    }
    inside = true;
    struct freed *left = NULL, **end = &left;
    for (struct freed *f = take_all(), *next; f != NULL; f = next) {
        next = f->next;
        if (is_ready(f->xm)) {
            free_taken(f);
        } else {
            f->next = NULL;
            *end = f;
            end = &f->next;
        }
    }
    keep_behind(left);
    inside = false;
}

void xm_freed_finalize(void)
{
    struct freed *list;

    while ((list = take_all()) != NULL) { /* callbacks may free more */
        for (struct freed *f = list, *next; f != NULL; f = next) {
            next = f->next;
            if (xm_comm_end_agreements(f->xm)) {
                free_taken(f);
            } else { /* MPI still uses it, and ends it as its own end comes */
                free(f);
            }
        }
    }
}
