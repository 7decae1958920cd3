/* SPDX-License-Identifier: BSD-3-Clause */
/* Communicators: made, divided, asked, freed. */
#include "api/comm.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "api/group.h"
#include "api/unique_id.h"
#include "base/log.h"
#include "device/device.h"

/*
 * Freed communicators are kept for a while: so the use of one that was destroyed is an error and
 * not a read of freed memory, a thread that is inside a call while another one aborts comes out
 * whole, and what the vendor writes late (see comm_create in backend.h) hurts nobody.
 */
enum { NUM_RETIRED = 256 };
static struct xcclComm *retired[NUM_RETIRED];
static size_t           next_retired;
static pthread_mutex_t  retired_lock = PTHREAD_MUTEX_INITIALIZER;

static void comm_release(xcclComm_t comm)
{
    while ((comm != NULL) && (atomic_fetch_sub(&comm->users, 1) == 1)) {
        xcclComm_t parent = comm->parent;
        free(comm);
        comm = parent;
    }
}

static void comm_retire(xcclComm_t comm)
{
    atomic_store(&comm->magic, XC_COMM_DEAD);
    pthread_mutex_lock(&retired_lock);
    struct xcclComm *oldest = retired[next_retired];
    retired[next_retired] = comm;
    next_retired = (next_retired + 1) % NUM_RETIRED;
    pthread_mutex_unlock(&retired_lock);
    comm_release(oldest);
}

/* Asked once a communicator was made: some runtimes choose their device only then. */
static int current_device(const struct xc_library *lib)
{
    const struct xc_device_ops *device = xc_device_by_name(lib->device);
    int                         number = -1;

    if ((device == NULL) || !device->active() || (device->current(&number) != xcclSuccess)) {
        return -1;
    }
    return number;
}

static xcclResult_t comm_new(const struct xc_backend_ops *ops, const struct xc_library *lib,
                             int nranks, int rank, xcclComm_t *comm_p)
{
    xcclComm_t comm = calloc(1, sizeof(*comm));

    if (comm == NULL) {
        return xc_fail(xcclSystemError, "no memory for a communicator; the host is out of it");
    }
    comm->ops = ops;
    comm->lib = lib;
    comm->rank = rank;
    comm->device = -1;
    atomic_init(&comm->nranks, nranks);
    atomic_init(&comm->users, 1);
    atomic_init(&comm->splitting, false);
    atomic_init(&comm->magic, XC_COMM_LIVE);
    *comm_p = comm;
    return xcclSuccess;
}

static xcclResult_t check_alive(xcclComm_t comm, const char *call)
{
    if (comm == NULL) {
        return xc_fail(xcclInvalidArgument,
                       "%s: comm is NULL; make one with xcclCommInitRank first", call);
    }
    unsigned magic = atomic_load_explicit(&comm->magic, memory_order_relaxed);
    if (magic == XC_COMM_DEAD) {
        return xc_fail(xcclInvalidArgument,
                       "%s: comm was destroyed or aborted before; do not use it after that", call);
    }
    if (magic != XC_COMM_LIVE) {
        return xc_fail(xcclInvalidArgument,
                       "%s: comm is no communicator of xccl; pass what xcclCommInitRank gave",
                       call);
    }
    return xcclSuccess;
}

/* After a split. Of threads that all ask first, one writes. */
static xcclResult_t learn_size(xcclComm_t comm)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    int                    nranks;
    int                    rank;
    int                    device;
    xcclResult_t           rc = comm->ops->comm_info(comm->vendor, &nranks, &rank, &device);

    pthread_mutex_lock(&lock);
    if ((rc == xcclSuccess) && (atomic_load(&comm->nranks) == 0)) {
        comm->rank = rank;
        atomic_store_explicit(&comm->nranks, nranks, memory_order_release);
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

/*
 * What the split that makes comm has come to; xcclInProgress: it has not ended. NCCL tells that of
 * the parent alone, and gives the new communicator last. In a group nothing has begun yet.
 */
static xcclResult_t split_state(xcclComm_t comm)
{
    xcclComm_t   parent = comm->parent;
    xcclResult_t state = xcclSuccess;
    xcclResult_t rc = xcclSuccess;

    if (!atomic_load(&comm->splitting)) {
        return xcclSuccess;
    }
    if (atomic_load(&parent->magic) == XC_COMM_LIVE) {
        rc = parent->ops->comm_async_error(parent->vendor, &state);
    }
    if ((rc == xcclSuccess) && (state == xcclSuccess) &&
        (__atomic_load_n(&comm->vendor, __ATOMIC_ACQUIRE) != NULL)) {
        atomic_store(&comm->splitting, false);
    }
    return (rc != xcclSuccess) ? rc : state;
}

/* Of a communicator that does not block, made or split: may the vendor not be asked yet? */
static bool is_under_way(xcclComm_t comm)
{
    xcclResult_t state = split_state(comm);
    void        *vendor = __atomic_load_n(&comm->vendor, __ATOMIC_ACQUIRE);

    if ((state == xcclSuccess) && (vendor != NULL) &&
        (comm->ops->comm_async_error(vendor, &state) != xcclSuccess)) {
        return false;
    }
    return state == xcclInProgress;
}

static xcclResult_t not_ready(xcclResult_t result, const char *call)
{
    return xc_fail(result, "%s: comm is not ready yet; poll xcclCommGetAsyncError until it is",
                   call);
}

xcclResult_t xc_comm_check_slowly(xcclComm_t comm, const char *call)
{
    xcclResult_t rc = check_alive(comm, call);

    if (rc != xcclSuccess) {
        return rc;
    }
    rc = split_state(comm);
    if (rc == xcclInProgress) {
        return not_ready(xcclInvalidUsage, call);
    }
    if (rc != xcclSuccess) {
        return xc_fail(rc, "%s: comm was not made: the split failed on this or another rank", call);
    }
    if (__atomic_load_n(&comm->vendor, __ATOMIC_ACQUIRE) == NULL) {
        return xc_fail(xcclInvalidUsage,
                       "%s: comm is not there yet: it was made in a group that has not ended, or "
                       "that failed",
                       call);
    }
    return (atomic_load(&comm->nranks) > 0) ? xcclSuccess : learn_size(comm);
}

xcclResult_t xc_comm_check(xcclComm_t comm, const char *call)
{
    return xc_comm_is_usual(comm) ? xcclSuccess : xc_comm_check_slowly(comm, call);
}

xcclResult_t xcclGetUniqueId(xcclUniqueId *id_p)
{
    const struct xc_backend_ops *ops;
    const struct xc_library     *lib;
    xcclUniqueId                 id = {{0}};

    if (id_p == NULL) {
        return xc_fail(xcclInvalidArgument,
                       "xcclGetUniqueId: id_p is NULL; pass the address of an xcclUniqueId");
    }
    xcclResult_t rc = xc_backend_get(&ops, &lib);
    if (rc == xcclSuccess) {
        rc = ops->get_unique_id(xc_id_payload(&id));
    }
    if (rc == xcclSuccess) {
        xc_id_seal(&id, lib);
        *id_p = id;
    }
    return rc;
}

/* comm goes to the caller if the call that made it went well. */
static xcclResult_t hand_out(xcclComm_t comm, xcclResult_t rc, xcclComm_t *comm_p)
{
    bool ok = (rc == xcclSuccess) || (rc == xcclInProgress);

    if (comm == NULL) {
        return rc; /* it was refused before it was made */
    }
    if (ok) {
        *comm_p = comm;
    } else {
        comm_retire(comm);
    }
    return rc;
}

static xcclResult_t check_config(const xcclConfig_t *config, const char *call)
{
    if ((config != NULL) &&
        ((config->magic != XCCL_API_MAGIC) || (config->size < sizeof(xcclConfig_t)))) {
        return xc_fail(xcclInvalidArgument,
                       "%s: config was not set up; begin with XCCL_CONFIG_INITIALIZER", call);
    }
    return xcclSuccess;
}

static xcclResult_t check_init(const xcclComm_t *comm_p, int nranks, int rank,
                               const xcclConfig_t *config)
{
    if (comm_p == NULL) {
        return xc_fail(xcclInvalidArgument,
                       "xcclCommInitRank: comm_p is NULL; pass the address of an xcclComm_t");
    }
    if (nranks < 1) {
        return xc_fail(xcclInvalidArgument, "xcclCommInitRank: nranks is %d, it must be at least 1",
                       nranks);
    }
    if ((rank < 0) || (rank >= nranks)) {
        return xc_fail(xcclInvalidArgument, "xcclCommInitRank: rank is %d, it must be 0 to %d",
                       rank, nranks - 1);
    }
    return check_config(config, "xcclCommInitRankConfig");
}

static xcclResult_t init_rank(xcclComm_t *comm_p, int nranks, xcclUniqueId *id, int rank,
                              xcclConfig_t *config)
{
    const struct xc_backend_ops *ops;
    const struct xc_library     *lib;
    xcclComm_t                   comm = NULL;
    xcclResult_t                 rc = check_init(comm_p, nranks, rank, config);

    if (rc == xcclSuccess) {
        rc = xc_backend_get(&ops, &lib);
    }
    if (rc == xcclSuccess) {
        rc = xc_id_check(id, lib, rank);
    }
    if (rc == xcclSuccess) {
        rc = comm_new(ops, lib, nranks, rank, &comm);
    }
    if (rc == xcclSuccess) {
        struct xc_comm_args args = {nranks, rank, xc_id_payload(id), config};
        rc = ops->comm_create(&args, &comm->vendor);
    }
    if (rc == xcclSuccess) {
        comm->device = current_device(lib);
    }
    return hand_out(comm, rc, comm_p);
}

xcclResult_t xcclCommInitRankConfig(xcclComm_t *comm_p, int nranks, xcclUniqueId id, int rank,
                                    xcclConfig_t *config)
{
    return xc_group_note(init_rank(comm_p, nranks, &id, rank, config), NULL, NULL);
}

xcclResult_t xcclCommInitRank(xcclComm_t *comm_p, int nranks, xcclUniqueId id, int rank)
{
    return xc_group_note(init_rank(comm_p, nranks, &id, rank, NULL), NULL, NULL);
}

static xcclResult_t check_split(xcclComm_t comm, int color, const xcclComm_t *newcomm_p,
                                const xcclConfig_t *config)
{
    xcclResult_t rc = xc_comm_check(comm, "xcclCommSplit");

    if (rc == xcclSuccess) {
        rc = check_config(config, "xcclCommSplit");
    }
    if ((rc == xcclSuccess) && (newcomm_p == NULL)) {
        rc = xc_fail(xcclInvalidArgument,
                     "xcclCommSplit: newcomm_p is NULL; pass the address of an xcclComm_t");
    }
    if ((rc == xcclSuccess) && (color < 0) && (color != XCCL_SPLIT_NOCOLOR)) {
        rc = xc_fail(xcclInvalidArgument,
                     "xcclCommSplit: color is %d, it must be XCCL_SPLIT_NOCOLOR or not negative",
                     color);
    }
    return rc;
}

/* Nothing comes of it, but the vendor may write that after any time: in a place that stays. */
static xcclResult_t split_without_part(xcclComm_t comm, int key, xcclComm_t *newcomm_p,
                                       xcclConfig_t *config)
{
    static void *none;
    xcclResult_t rc = comm->ops->comm_split(comm->vendor, XCCL_SPLIT_NOCOLOR, key, config, &none);

    if ((rc == xcclSuccess) || (rc == xcclInProgress)) {
        *newcomm_p = NULL;
    }
    return rc;
}

static xcclResult_t split(xcclComm_t comm, int color, int key, xcclComm_t *newcomm_p,
                          xcclConfig_t *config)
{
    xcclComm_t   child = NULL;
    xcclResult_t rc = check_split(comm, color, newcomm_p, config);

    if ((rc == xcclSuccess) && (color == XCCL_SPLIT_NOCOLOR)) {
        return split_without_part(comm, key, newcomm_p, config);
    }
    if (rc == xcclSuccess) {
        rc = comm_new(comm->ops, comm->lib, 0, 0, &child);
    }
    if (rc == xcclSuccess) {
        child->device = comm->device;
        child->parent = comm;
        atomic_fetch_add(&comm->users, 1);
        atomic_store(&child->splitting, true);
        rc = comm->ops->comm_split(comm->vendor, color, key, config, &child->vendor);
    }
    if (rc == xcclSuccess) {
        (void)split_state(child); /* what becomes of the parent later says nothing of this split */
    }
    return hand_out(child, rc, newcomm_p);
}

xcclResult_t xcclCommSplit(xcclComm_t comm, int color, int key, xcclComm_t *newcomm_p,
                           xcclConfig_t *config)
{
    return xc_group_note(split(comm, color, key, newcomm_p, config), comm, NULL);
}

static xcclResult_t check_query(xcclComm_t comm, const void *out, const char *call)
{
    xcclResult_t rc = check_alive(comm, call);

    if ((rc == xcclSuccess) && (split_state(comm) == xcclInProgress)) {
        return not_ready(xcclInProgress, call);
    }
    if (rc == xcclSuccess) {
        rc = xc_comm_check(comm, call);
    }
    if ((rc == xcclSuccess) && (out == NULL)) {
        rc = xc_fail(xcclInvalidArgument, "%s: the output is NULL; pass the address of a variable",
                     call);
    }
    return rc;
}

xcclResult_t xcclCommCount(xcclComm_t comm, int *count_p)
{
    xcclResult_t rc = check_query(comm, count_p, "xcclCommCount");

    if (rc == xcclSuccess) {
        *count_p = atomic_load(&comm->nranks);
    }
    return rc;
}

xcclResult_t xcclCommUserRank(xcclComm_t comm, int *rank_p)
{
    xcclResult_t rc = check_query(comm, rank_p, "xcclCommUserRank");

    if (rc == xcclSuccess) {
        *rank_p = comm->rank;
    }
    return rc;
}

xcclResult_t xcclCommDevice(xcclComm_t comm, int *device_p)
{
    int          nranks;
    int          rank;
    int          device;
    xcclResult_t rc = check_query(comm, device_p, "xcclCommDevice");

    if (rc == xcclSuccess) {
        rc = comm->ops->comm_info(comm->vendor, &nranks, &rank, &device);
    }
    if (rc == xcclSuccess) {
        *device_p = (device >= 0) ? device : comm->device;
    }
    return rc;
}

xcclResult_t xcclCommCuDevice(xcclComm_t comm, int *device_p)
{
    return xcclCommDevice(comm, device_p);
}

xcclResult_t xcclCommGetAsyncError(xcclComm_t comm, xcclResult_t *error_p)
{
    xcclResult_t rc = check_alive(comm, "xcclCommGetAsyncError");

    if ((rc == xcclSuccess) && (error_p == NULL)) {
        rc = xc_fail(xcclInvalidArgument,
                     "xcclCommGetAsyncError: error_p is NULL; pass the address of an xcclResult_t");
    }
    if (rc != xcclSuccess) {
        return rc;
    }
    xcclResult_t state = split_state(comm);
    void        *vendor = __atomic_load_n(&comm->vendor, __ATOMIC_ACQUIRE);
    if ((state == xcclSuccess) && (vendor != NULL)) {
        return comm->ops->comm_async_error(vendor, error_p);
    }
    /* The group that makes it has not ended; or it never will be made. */
    *error_p = (state == xcclSuccess) ? xcclInProgress : state;
    return xcclSuccess;
}

xcclResult_t xcclCommFinalize(xcclComm_t comm)
{
    xcclResult_t rc = xc_comm_check(comm, "xcclCommFinalize");

    if (rc == xcclSuccess) {
        rc = comm->ops->comm_finalize(comm->vendor);
    }
    return xc_group_note(rc, NULL, NULL);
}

/*
 * Of several threads that want to end comm, one may. The vendor refuses to destroy what is not
 * ready; it would be lost, as would be what a split has yet to give.
 */
static xcclResult_t end(xcclComm_t comm, const char *call, bool abort)
{
    unsigned expected = XC_COMM_LIVE;

    if (comm == NULL) {
        return xcclSuccess;
    }
    if ((atomic_load(&comm->magic) == XC_COMM_LIVE) &&
        (abort ? (split_state(comm) == xcclInProgress) : is_under_way(comm))) {
        return not_ready(xcclInvalidUsage, call);
    }
    if (!atomic_compare_exchange_strong(&comm->magic, &expected, XC_COMM_DEAD)) {
        return check_alive(comm, call);
    }
    xcclResult_t rc = xcclSuccess;
    void        *vendor = __atomic_load_n(&comm->vendor, __ATOMIC_ACQUIRE);
    xc_group_forget(comm);
    if (vendor != NULL) {
        rc = abort ? comm->ops->comm_abort(vendor) : comm->ops->comm_destroy(vendor);
    }
    comm_retire(comm);
    return rc;
}

xcclResult_t xcclCommDestroy(xcclComm_t comm)
{
    return xc_group_note(end(comm, "xcclCommDestroy", false), NULL, NULL);
}

xcclResult_t xcclCommAbort(xcclComm_t comm)
{
    return xc_group_note(end(comm, "xcclCommAbort", true), NULL, NULL);
}
