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
static struct orphan  *orphans, *last_orphan;
static int             num_orphans; /* in the list */
static pthread_mutex_t orphans_lock = PTHREAD_MUTEX_INITIALIZER;

static void free_orphan(struct orphan *o)
{
    xm_guarded_free(o->memory[0]);
    xm_guarded_free(o->memory[1]);
    free(o);
}

static void put_last(struct orphan *o)
{
    o->next = NULL;
    pthread_mutex_lock(&orphans_lock);
    if (last_orphan != NULL) {
        last_orphan->next = o;
    } else {
        orphans = o;
    }
    last_orphan = o;
    num_orphans++;
    pthread_mutex_unlock(&orphans_lock);
}

static struct orphan *take_first(void)
{
    pthread_mutex_lock(&orphans_lock);
    struct orphan *o = orphans;
    if (o != NULL) {
        orphans = o->next;
        last_orphan = (orphans != NULL) ? last_orphan : NULL;
        num_orphans--;
    }
    pthread_mutex_unlock(&orphans_lock);
    return o;
}

static int count_all(void)
{
    pthread_mutex_lock(&orphans_lock);
    int count = num_orphans;
    pthread_mutex_unlock(&orphans_lock);
    return count;
}

void xm_orphans_add(MPI_Request request, void *first, void *second)
{
    struct orphan *o = malloc(sizeof(*o));

    if (o == NULL) {
        return; /* the memory stays */
    }
    *o = (struct orphan){request, {first, second}, NULL};
    put_last(o);
}

/*
 * True if none is left. MPI may call the program's error handler, which may free a communicator, or
 * leave by longjmp(): so the one that is tested is in no list, and no lock is held.
 */
static bool sweep(void)
{
    struct orphan *o;

    for (int count = count_all(); (count > 0) && ((o = take_first()) != NULL); count--) {
        int over = 0;
        if (xm_pmpi.Test(&o->request, &over, MPI_STATUS_IGNORE) != MPI_SUCCESS) {
            free(o); /* MPI may still write to the memory, which stays */
        } else if (over) {
            free_orphan(o);
        } else {
            put_last(o);
        }
    }
    return count_all() == 0;
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
