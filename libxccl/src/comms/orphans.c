/* SPDX-License-Identifier: BSD-3-Clause */
#include "comms/orphans.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "comms/guarded.h"
#include "comms/wait.h"

/* What MPI_Finalize waits for agreements under way, whose other ranks come to it as well. */
static const uint64_t finalize_ns = 20000000000u;

/*
 * Agreements of communicators that are gone: the other ranks have posted their part, or will, so
 * they end; until then the memory is MPI's. At the latest in MPI_Finalize.
 */
struct orphan {
    MPI_Request    request;
    void          *memory[2];
    struct orphan *next;
};
static struct orphan  *orphans;
static pthread_mutex_t orphans_lock = PTHREAD_MUTEX_INITIALIZER;

static void free_orphan(struct orphan *o)
{
    xm_guarded_free(o->memory[0]);
    xm_guarded_free(o->memory[1]);
    free(o);
}

void xm_orphans_add(MPI_Request request, void *first, void *second)
{
    struct orphan *o = malloc(sizeof(*o));

    if (o == NULL) {
        return; /* the memory stays */
    }
    *o = (struct orphan){request, {first, second}, NULL};
    pthread_mutex_lock(&orphans_lock);
    o->next = orphans;
    orphans = o;
    pthread_mutex_unlock(&orphans_lock);
}

/* True if none is left. */
static bool sweep(void)
{
    int over;

    pthread_mutex_lock(&orphans_lock);
    for (struct orphan **at = &orphans; *at != NULL;) {
        struct orphan *o = *at;
        over = 1;
        xm_pmpi.Test(&o->request, &over, MPI_STATUS_IGNORE);
        if (over) {
            *at = o->next;
            free_orphan(o);
        } else {
            at = &o->next;
        }
    }
    bool none = (orphans == NULL);
    pthread_mutex_unlock(&orphans_lock);
    return none;
}

void xm_orphans_sweep(void)
{
    sweep();
}

void xm_orphans_finalize(void)
{
    struct xm_wait wait = xm_wait_begin("for agreements of communicators that are gone");
    uint64_t       begun = xm_now_ns();

    wait.limit = 0;
    while (!sweep() && (xm_now_ns() - begun < finalize_ns)) {
        xm_wait_step(&wait);
    }
}
