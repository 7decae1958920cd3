/* SPDX-License-Identifier: BSD-3-Clause */
#include "comms/suspicion.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/log.h"
#include "comms/wait.h"

/* Between two looks; for a call that another rank may come to much later, ever longer. */
static const uint64_t look_ns = 300000000u;
static const uint64_t first_pause_ns = 300000000u, last_pause_ns = 10000000000u;

enum { COLL_BITS = 8, COLL_MASK = (1 << COLL_BITS) - 1 };
_Static_assert((int)XM_NUM_COLLS < (int)COLL_MASK, "one and one more fit");

static bool given_up; /* atomic */

void xm_suspicion_give_up(void)
{
    __atomic_store_n(&given_up, true, __ATOMIC_RELAXED);
}

bool xm_suspicion_counts(void)
{
    static int answer = -1; /* atomic */
    int        known = __atomic_load_n(&answer, __ATOMIC_RELAXED);

    if (__builtin_expect(known < 0, 0)) {
        known = xc_device_possible();
        if (!known) { /* if it uses one all the same, it has not counted what came before */
            xm_suspicion_give_up();
        }
        __atomic_store_n(&answer, known, __ATOMIC_RELAXED);
    }
    return known != 0;
}

uint64_t xm_suspicion_call(uint64_t number, enum xm_coll coll)
{
    return (number << COLL_BITS) | ((uint64_t)coll + 1);
}

uint64_t xm_suspicion_number(uint64_t call)
{
    return call >> COLL_BITS;
}

static enum xm_coll coll_of(uint64_t call)
{
    return (enum xm_coll)((call & COLL_MASK) - 1);
}

/* Where it is known, and calls are counted as by the others; else 0. */
static uint64_t identity_of(const struct xm_comm *xm)
{
    bool unlike = __atomic_load_n(&given_up, __ATOMIC_RELAXED);

    return unlike ? 0 : __atomic_load_n(&xm->identity, __ATOMIC_RELAXED);
}

/* Of no other communicator: 0 where that is not known. */
static uint64_t number_of(const struct xm_comm *xm, uint64_t call)
{
    uint64_t identity = identity_of(xm);

    if (identity == 0) {
        return 0;
    }
    uint64_t number = xc_hash_word(xc_hash_word(XC_HASH_BEGIN, identity), call);
    return (number != 0) ? number : 1;
}

void xm_suspicion_say_host(const struct xm_comm *xm, enum xm_coll coll)
{
    uint64_t number = number_of(xm, xm_suspicion_call(xm->calls, coll));

    if ((number != 0) && (xm_board_is_made() || (xc_device_active() != NULL))) {
        xm_board_say_host(number);
    }
}

void xm_suspicion_say_busy(const struct xm_comm *xm, enum xm_coll coll)
{
    uint64_t identity = identity_of(xm);

    if (identity != 0) {
        xm_board_busy(identity, xm->calls, coll);
    }
}

xcclResult_t xm_suspicion_mixed(int rank, int mine, const char *of, enum xm_coll coll)
{
    return xc_fail(xcclInvalidUsage,
                   "rank %d%s passes host memory (or memory that it has freed) to %s, and rank %d "
                   "device memory in the same call; pass the same kind of memory on all ranks, or "
                   "set XCCL_MEMORY=mixed on all of them",
                   rank, of, xm_coll_name(coll), mine);
}

static xcclResult_t mixed(int rank, enum xm_coll coll)
{
    int mine = -1;

    xm_pmpi.Comm_rank(XM_HANDLE(MPI_COMM_WORLD), &mine);
    return xm_suspicion_mixed(rank, mine, " of MPI_COMM_WORLD", coll);
}

static int find_host(const struct xm_comm *xm, uint64_t call)
{
    uint64_t number = (call != 0) ? number_of(xm, call) : 0;

    return (number != 0) ? xm_board_find_host(number) : -1;
}

/* What was found holds for all operations that wait for this call. */
static int hunt(struct xm_comm *xm, uint64_t call, uint64_t now)
{
    struct xm_hunt *h = &xm->hunt;

    if (h->call != call) {
        *h = (struct xm_hunt){.call = call, .rank = -1, .next = h->next};
    }
    if ((h->rank < 0) && (now >= h->next)) {
        h->pause = (h->pause == 0) ? first_pause_ns : 2 * h->pause;
        h->pause = (h->pause < last_pause_ns) ? h->pause : last_pause_ns;
        h->next = now + h->pause;
        h->rank = find_host(xm, call);
    }
    return h->rank;
}

xcclResult_t xm_suspicion_find_host(struct xm_comm *xm, uint64_t call, uint64_t now)
{
    static pthread_mutex_t hunting = PTHREAD_MUTEX_INITIALIZER;

    if (pthread_mutex_trylock(&hunting) != 0) {
        return xcclSuccess; /* the next time */
    }
    int rank = hunt(xm, call, now);
    pthread_mutex_unlock(&hunting);
    return (rank < 0) ? xcclSuccess : mixed(rank, coll_of(call));
}

xcclResult_t xm_suspicion_find_asked(const struct xm_comm *xm)
{
    uint64_t asked = __atomic_load_n(&xm->asked, __ATOMIC_ACQUIRE);
    int      rank = find_host(xm, asked);

    return (rank < 0) ? xcclSuccess : mixed(rank, coll_of(asked));
}

/*
 * A rank that passes host memory never comes to an agreement: it is in MPI, in the collective of
 * the same number. Named when seen so twice, some time apart.
 */
static xcclResult_t look_for_mixed(const struct xm_comm *xm, struct xm_suspicion *s)
{
    enum xm_coll coll = XM_NUM_COLLS;
    uint64_t     identity = identity_of(xm);

    /* By its ranks alone it is not known: one may be in a call of the same number of a duplicate
     * that this one has not used yet. */
    if ((identity == 0) || (xm->asks_for == NULL)) {
        return xcclSuccess;
    }
    int rank = xm_board_find_busy(identity, xm->calls, &coll);
    rank = ((rank >= 0) && (strcmp(xm_coll_name(coll), xm->asks_for) == 0)) ? rank : -1;
    if ((rank < 0) || (rank != s->rank)) {
        s->rank = rank;
        return xcclSuccess;
    }
    return mixed(rank, coll);
}

static const struct xm_variables *variables_of(const void *all, int rank)
{
    return &((const struct xm_variables *)all)[rank];
}

/* One that runs with other variables does not ask what this one asks, or at another time. */
static xcclResult_t look_for_unlike(const struct xm_comm *xm)
{
    xcclResult_t         res = xcclSuccess;
    int                 *ranks = xm_world_ranks(xm->comm, xm->size);
    struct xm_variables *all = calloc((size_t)xm->size, sizeof(*all));

    if ((ranks != NULL) && (all != NULL)) {
        xm_board_variables(ranks, xm->size, all);
        res = xm_variables_judge(variables_of, all, ranks, xm->size);
    }
    free(all);
    free(ranks);
    return res;
}

xcclResult_t xm_suspicion_look(const struct xm_comm *xm, bool whole, struct xm_suspicion *s)
{
    uint64_t     now = xm_now_ns();
    xcclResult_t res = xcclSuccess;

    if (s->begun == 0) {
        s->begun = s->last = now;
    }
    if (now - s->last < look_ns) {
        return xcclSuccess;
    }
    s->last = now;
    if (whole && !xm->compared) {
        res = look_for_unlike(xm);
    }
    if (res == xcclSuccess) {
        res = xm_suspicion_find_asked(xm);
    }
    return ((res == xcclSuccess) && whole) ? look_for_mixed(xm, s) : res;
}
