/* SPDX-License-Identifier: BSD-3-Clause */
#include "comms/comm.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/log.h"
#include "comms/agree.h"
#include "comms/derived.h"
#include "comms/edges.h"
#include "comms/orphans.h"
#include "comms/setting.h"
#include "comms/suspicion.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int             keyval = MPI_KEYVAL_INVALID;
static struct xm_comm *all;
static bool            finalized;                            /* atomic */
static pthread_mutex_t breaking = PTHREAD_MUTEX_INITIALIZER; /* of vendor and reason */
static unsigned        generation; /* atomic: counts communicators freed */

/* The communicator of this thread's last call: most programs use few. */
static __thread struct {
    MPI_Comm        comm;
    unsigned        generation;
    struct xm_comm *xm;
} last;

/* Those that this thread is freeing, the last one first: a delete callback may free another one. */
static __thread const struct xm_freeing *freeing;

static void unlink_comm(struct xm_comm *xm)
{
    if (xm->previous != NULL) {
        xm->previous->next = xm->next;
    } else {
        all = xm->next;
    }
    if (xm->next != NULL) {
        xm->next->previous = xm->previous;
    }
}

void xm_comm_use(struct xm_comm *xm)
{
    __atomic_add_fetch(&xm->users, 1, __ATOMIC_RELAXED);
}

/*
 * Which ranks look at this one's slot? Once they have agreed that they have them all, all of them.
 * Before, at the first rank's alone, each that has come to know where it is: if this rank does not
 * know whether they have, it takes it that they do.
 */
static bool is_read_by_all(const struct xm_comm *xm)
{
    return xm->slots_agreed || ((xm->rank == 0) && (xm->neighbours || !xm->placed));
}

void xm_comm_leave_slots(struct xm_comm *xm)
{
    if (xm->slots != NULL) {
        xm_slots_leave(xm->slots, xm->slots_agreed);
        xm_slots_close(xm->slots);
    } else if (xm->first != NULL) {
        __atomic_add_fetch(&xm->first->left, 1, __ATOMIC_ACQ_REL);
    }
    xm_board_give(xm->slot, is_read_by_all(xm) ? xm->size : 0);
    xm->slots = NULL;
    xm->first = NULL;
    xm->slot = -1;
    xm->placed = xm->neighbours = xm->one_node = xm->slots_agreed = false;
}

void xm_comm_unuse(struct xm_comm *xm)
{
    if (__atomic_sub_fetch(&xm->users, 1, __ATOMIC_ACQ_REL) > 0) {
        return;
    }
    xm_comm_forget(xm);
    if (xm->vendor != NULL) {
        xm_vendor_release(xm->vendor);
    }
    if (xm->direct != NULL) {
        xm_comm_join->leave(xm);
    }
    xm_comm_leave_slots(xm);
    for (int i = 0; i < XM_PAIRS_KINDS; i++) {
        xm_edges_free(xm->pairs[i].edges);
    }
    pthread_mutex_destroy(&xm->alone);
    free(xm);
}

/* MPI calls this where the communicator is freed, by whichever call. */
static int on_comm_free(MPI_Comm comm, int key, void *value, void *extra)
{
    struct xm_comm *xm = value;

    (void)comm;
    (void)key;
    (void)extra;
    __atomic_add_fetch(&generation, 1, __ATOMIC_ACQ_REL);
    pthread_mutex_lock(&lock);
    unlink_comm(xm);
    pthread_mutex_unlock(&lock);
    xm->freed = true;
    xm_comm_unuse(xm);
    return MPI_SUCCESS;
}

/* A duplicate starts anew: it is another communicator to the vendor's library. */
int xm_comm_not_copied(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag)
{
    (void)comm;
    (void)key;
    (void)extra;
    (void)in;
    (void)out;
    *flag = 0;
    return MPI_SUCCESS;
}

/* Other threads see the key when it is whole: MPI counts up in place to find a free one. */
static xcclResult_t make_keyval(void)
{
    int made = MPI_KEYVAL_INVALID;
    int res = MPI_SUCCESS;

    pthread_mutex_lock(&lock);
    if (keyval == MPI_KEYVAL_INVALID) {
        res = xm_pmpi.Comm_create_keyval(xm_comm_not_copied, on_comm_free, &made, NULL);
        if (res == MPI_SUCCESS) {
            __atomic_store_n(&keyval, made, __ATOMIC_RELEASE);
        }
    }
    pthread_mutex_unlock(&lock);
    return (res == MPI_SUCCESS) ? xcclSuccess
                                : xc_fail(xcclInternalError, "MPI_Comm_create_keyval failed");
}

/* Of the world ranks; 0: not all of them have one. */
static uint64_t number_group(const struct xm_comm *xm)
{
    uint64_t hash = XC_HASH_BEGIN;
    int     *ranks = xm->inter ? NULL : xm_world_ranks(xm->comm, xm->size);

    if (ranks == NULL) {
        return 0;
    }
    for (int i = 0; i < xm->size; i++) {
        hash = xc_hash_word(hash, (uint64_t)ranks[i]);
    }
    free(ranks);
    return hash;
}

/* The parts of a split communicator have one origin, and no rank in common. */
static uint64_t derived_identity(const struct xm_comm *xm)
{
    uint64_t origin = (xm->group != 0) ? xm_derived_origin(xm->comm) : 0;

    return (origin != 0) ? xc_hash_word(xc_hash_word(XC_HASH_BEGIN, origin), xm->group) : 0;
}

uint64_t xm_comm_call(struct xm_comm *xm, enum xm_call_memory memory, enum xm_coll coll)
{
    xm->calls++;
    if (memory == XM_ON_HOST) {
        xm_suspicion_say_host(xm, coll);
    }
    if (!xm->slots_agreed) {
        return 0;
    }
    xm_slots_call(xm->slots, memory, coll);
    return xm->slots->calls;
}

/* An error handler that is called in a start may start another request. */
static void make_lock(pthread_mutex_t *made)
{
    pthread_mutexattr_t attr;

    pthread_mutexattr_init(&attr);
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(made, &attr);
    pthread_mutexattr_destroy(&attr);
}

/* MPICH's whose ranks are threads: a process has several, and their group those of processes. */
static bool is_of_threads(MPI_Comm comm)
{
    typedef int test(MPI_Comm, int *);
    test       *is = (test *)xm_mpi_symbol("PMPIX_Comm_test_threadcomm");
    int         flag = 0;

    return (is != NULL) && (is(comm, &flag) == MPI_SUCCESS) && flag;
}

static xcclResult_t comm_new(MPI_Comm comm, struct xm_comm **xm_p)
{
    int             inter;
    struct xm_comm *xm = calloc(1, sizeof(*xm));

    if (is_of_threads(comm)) {
        free(xm);
        return xc_fail(xcclUnsupported, "the ranks of the communicator are threads");
    }
    if (xm == NULL) {
        return xc_fail(xcclSystemError, "out of memory for a communicator");
    }
    xm->comm = comm;
    xm->users = 1;
    xm->slot = -1;
    if ((xm_pmpi.Comm_rank(comm, &xm->rank) != MPI_SUCCESS) ||
        (xm_pmpi.Comm_size(comm, &xm->size) != MPI_SUCCESS) ||
        (xm_pmpi.Comm_test_inter(comm, &inter) != MPI_SUCCESS)) {
        free(xm);
        return xc_fail(xcclInvalidArgument, "not a valid MPI communicator");
    }
    xm->inter = (inter != 0);
    xm_setting_begin(&xm->setting, xm->size);
    if ((comm == XM_HANDLE(MPI_COMM_WORLD)) && (xm_mpi_spawned() != 0)) {
        snprintf(xm->id, sizeof(xm->id), "world.%08" PRIx32, xm_mpi_spawned());
    } else {
        snprintf(xm->id, sizeof(xm->id), "%s",
                 (comm == XM_HANDLE(MPI_COMM_WORLD)) ? "world" : "unknown");
    }
    xm->group = number_group(xm);
    if (comm == XM_HANDLE(MPI_COMM_WORLD)) {
        xm->identity = xc_hash_word(XC_HASH_BEGIN, xm_mpi_spawned());
    } else {
        xm->identity = derived_identity(xm);
    }
    make_lock(&xm->alone);
    *xm_p = xm;
    return xcclSuccess;
}

static xcclResult_t attach(MPI_Comm comm, struct xm_comm *xm)
{
    /* Listed before MPI knows it: from then on MPI may free it. */
    pthread_mutex_lock(&lock);
    xm->next = all;
    if (all != NULL) {
        all->previous = xm;
    }
    all = xm;
    pthread_mutex_unlock(&lock);
    if (xm_pmpi.Comm_set_attr(comm, keyval, xm) == MPI_SUCCESS) {
        return xcclSuccess;
    }
    pthread_mutex_lock(&lock);
    unlink_comm(xm);
    pthread_mutex_unlock(&lock);
    return xc_fail(xcclInternalError, "MPI_Comm_set_attr failed");
}

bool xm_comms_finalized(void)
{
    return __atomic_load_n(&finalized, __ATOMIC_ACQUIRE);
}

static bool is_freeing(MPI_Comm comm)
{
    const struct xm_freeing *f = freeing;

    while ((f != NULL) && (f->comm != comm)) {
        f = f->outer;
    }
    return f != NULL;
}

static xcclResult_t make_entry(MPI_Comm comm, struct xm_comm **xm_p)
{
    struct xm_comm *xm = NULL;
    xcclResult_t    res = comm_new(comm, &xm);

    if (res != xcclSuccess) {
        return res;
    }
    if (xm_comms_finalized() || is_freeing(comm)) {
        xm->state = XM_COMM_FAILED;
        xm->quiet = true; /* nothing would be kept of what its ranks agree on */
        snprintf(xm->reason, sizeof(xm->reason), "the communicator is being freed");
        *xm_p = xm; /* its only user is the call */
        return xcclSuccess;
    }
    res = attach(comm, xm);
    if (res != xcclSuccess) {
        pthread_mutex_destroy(&xm->alone);
        free(xm);
        return res;
    }
    xm_comm_use(xm);
    *xm_p = xm;
    return xcclSuccess;
}

xcclResult_t xm_comm_get(MPI_Comm comm, struct xm_comm **xm_p)
{
    void    *value;
    int      found = 0;
    unsigned now = __atomic_load_n(&generation, __ATOMIC_ACQUIRE);

    if ((last.xm != NULL) && (last.comm == comm) && (last.generation == now)) {
        xm_comm_use(last.xm);
        *xm_p = last.xm;
        return xcclSuccess;
    }
    if (__atomic_load_n(&keyval, __ATOMIC_ACQUIRE) == MPI_KEYVAL_INVALID) {
        xcclResult_t res = make_keyval();
        if (res != xcclSuccess) {
            return res;
        }
    }
    if (xm_pmpi.Comm_get_attr(comm, keyval, &value, &found) != MPI_SUCCESS) {
        return xc_fail(xcclInvalidArgument, "not a valid MPI communicator");
    }
    if (!found) {
        return make_entry(comm, xm_p);
    }
    last.comm = comm;
    last.generation = now;
    last.xm = value;
    xm_comm_use(value);
    *xm_p = value;
    return xcclSuccess;
}

struct xm_comm *xm_comm_known(MPI_Comm comm)
{
    void *value = NULL;
    int   found = 0;
    int   key = __atomic_load_n(&keyval, __ATOMIC_ACQUIRE);

    if ((comm == XM_HANDLE(MPI_COMM_NULL)) || (key == MPI_KEYVAL_INVALID) ||
        (xm_pmpi.Comm_get_attr(comm, key, &value, &found) != MPI_SUCCESS) || !found) {
        return NULL;
    }
    xm_comm_use(value);
    return value;
}

void xm_comms_forget_rules(void)
{
    pthread_mutex_lock(&lock);
    for (struct xm_comm *xm = all; xm != NULL; xm = xm->next) {
        __atomic_store_n(&xm->rules, NULL, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
}

void xm_comm_freeing(struct xm_freeing *frame, MPI_Comm comm)
{
    *frame = (struct xm_freeing){comm, freeing};
    freeing = frame;
}

void xm_comm_freed(const struct xm_freeing *frame)
{
    freeing = frame->outer;
}

void xm_comm_break(struct xm_comm *xm, const char *reason)
{
    pthread_mutex_lock(&breaking);
    struct xm_vendor *vendor = xm->vendor;
    xm->vendor = NULL;
    if (!xm->broken) {
        snprintf(xm->reason, sizeof(xm->reason), "%s", reason);
        __atomic_store_n(&xm->broken, true, __ATOMIC_RELEASE);
    }
    if (xm->slots_agreed) {
        xm_slots_break(xm->slots, reason);
    }
    pthread_mutex_unlock(&breaking);
    if (vendor != NULL) {
        xm_vendor_break(vendor);
        xm_vendor_release(vendor); /* aborted on a thread when its last operation lets go */
    }
}

void xm_comm_enter(struct xm_comm *xm, enum xm_comm_state state, const char *reason)
{
    pthread_mutex_lock(&breaking);
    if ((reason != NULL) && !xm->broken) {
        snprintf(xm->reason, sizeof(xm->reason), "%s", reason);
    }
    __atomic_store_n(&xm->state, state, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&breaking);
}

bool xm_comm_is_broken(const struct xm_comm *xm)
{
    return __atomic_load_n(&xm->broken, __ATOMIC_ACQUIRE);
}

enum xm_comm_state xm_comm_state_now(const struct xm_comm *xm)
{
    return __atomic_load_n(&xm->state, __ATOMIC_ACQUIRE);
}

void xm_comm_keep_vendor(struct xm_comm *xm, struct xm_vendor *vendor)
{
    pthread_mutex_lock(&breaking);
    bool broken = xm->broken;
    xm->vendor = broken ? NULL : vendor;
    pthread_mutex_unlock(&breaking);
    if (broken) {
        xm_vendor_break(vendor);
        xm_vendor_release(vendor);
    }
}

struct xm_vendor *xm_comm_hold_vendor(struct xm_comm *xm)
{
    pthread_mutex_lock(&breaking);
    struct xm_vendor *vendor = xm->vendor;
    if (vendor != NULL) {
        xm_vendor_hold(vendor);
    }
    pthread_mutex_unlock(&breaking);
    return vendor;
}

static void shut(struct xm_comm *xm)
{
    struct xm_vendor *vendor = xm->vendor;

    xm_comm_forget(xm);
    xm_edges_let_go(xm);
    xm->vendor = NULL;
    xm_comm_enter(xm, XM_COMM_FAILED, "MPI is being finalised");
    if (vendor != NULL) {
        xm_vendor_release(vendor);
    }
}

/* Without the lock: MPI may free a communicator while an agreement is looked after. */
static struct xm_comm *next_to_shut(void)
{
    pthread_mutex_lock(&lock);
    struct xm_comm *xm = all;
    while ((xm != NULL) && xm->shut) {
        xm = xm->next;
    }
    if (xm != NULL) {
        xm->shut = true;
        xm_comm_use(xm);
    }
    pthread_mutex_unlock(&lock);
    return xm;
}

void xm_comms_shut(void)
{
    struct xm_comm *xm;

    while ((xm = next_to_shut()) != NULL) {
        shut(xm);
        xm_comm_unuse(xm);
    }
    xm_orphans_finalize();
    xm_vendors_end();
}

/* Collectives in callbacks that MPI_Finalize calls later are staged. */
void xm_comms_finalize(void)
{
    __atomic_store_n(&finalized, true, __ATOMIC_RELEASE);
    xm_comms_shut();
}

void xm_comms_forget(void)
{
    pthread_mutex_lock(&lock);
    __atomic_store_n(&keyval, MPI_KEYVAL_INVALID, __ATOMIC_RELEASE);
    __atomic_add_fetch(&generation, 1, __ATOMIC_ACQ_REL);
    pthread_mutex_unlock(&lock);
}
