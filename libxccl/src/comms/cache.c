/* SPDX-License-Identifier: BSD-3-Clause */
#include "comms/comms.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int             keyval = MPI_KEYVAL_INVALID;
static struct xm_comm *all;
static bool            warned;

static void release_device_parts(struct xm_comm *xm)
{
    void *saved;

    if (xm->dev == NULL) {
        return;
    }
    if (xm->dev->enter(xm->device, &saved) != xcclSuccess) {
        xc_warn("a communicator was not freed: %s", xc_last_detail());
        return;
    }
    if (xm->xcomm != NULL) {
        xcclCommDestroy(xm->xcomm);
        xm->xcomm = NULL;
    }
    /* Work that never completes would block the destruction of its stream. */
    if ((xm->stream != NULL) && (xm->state != XM_COMM_BROKEN)) {
        xm->dev->stream_destroy(xm->stream);
        xm->stream = NULL;
    }
    xm->dev->leave(saved);
}

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

/* MPI calls this where the communicator is freed, by whichever call. */
static int on_comm_free(MPI_Comm comm, int key, void *value, void *extra)
{
    struct xm_comm *xm = value;

    (void)comm;
    (void)key;
    (void)extra;
    pthread_mutex_lock(&lock);
    unlink_comm(xm);
    pthread_mutex_unlock(&lock);
    release_device_parts(xm);
    free(xm);
    return MPI_SUCCESS;
}

/* A duplicate starts anew: it is another communicator to the vendor's library. */
static int on_comm_copy(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag)
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
        res = xm_pmpi.Comm_create_keyval(on_comm_copy, on_comm_free, &made, NULL);
        if (res == MPI_SUCCESS) {
            __atomic_store_n(&keyval, made, __ATOMIC_RELEASE);
        }
    }
    pthread_mutex_unlock(&lock);
    return (res == MPI_SUCCESS) ? xcclSuccess
                                : xc_fail(xcclInternalError, "MPI_Comm_create_keyval failed");
}

static xcclResult_t make_entry(MPI_Comm comm, struct xm_comm **xm_p)
{
    int             inter;
    struct xm_comm *xm = calloc(1, sizeof(*xm));

    if (xm == NULL) {
        return xc_fail(xcclSystemError, "out of memory for a communicator");
    }
    xm->comm = comm;
    xm->may_use_device = -1;
    if ((xm_pmpi.Comm_rank(comm, &xm->rank) != MPI_SUCCESS) ||
        (xm_pmpi.Comm_size(comm, &xm->size) != MPI_SUCCESS) ||
        (xm_pmpi.Comm_test_inter(comm, &inter) != MPI_SUCCESS)) {
        free(xm);
        return xc_fail(xcclInvalidArgument, "not a valid MPI communicator");
    }
    xm->inter = (inter != 0);
    /* Listed before MPI knows it: from then on MPI may free it. */
    pthread_mutex_lock(&lock);
    xm->next = all;
    if (all != NULL) {
        all->previous = xm;
    }
    all = xm;
    pthread_mutex_unlock(&lock);
    if (xm_pmpi.Comm_set_attr(comm, keyval, xm) != MPI_SUCCESS) {
        pthread_mutex_lock(&lock);
        unlink_comm(xm);
        pthread_mutex_unlock(&lock);
        free(xm);
        return xc_fail(xcclInternalError, "MPI_Comm_set_attr failed");
    }
    *xm_p = xm;
    return xcclSuccess;
}

xcclResult_t xm_comm_get(MPI_Comm comm, struct xm_comm **xm_p)
{
    void *value;
    int   found = 0;

    if (__atomic_load_n(&keyval, __ATOMIC_ACQUIRE) == MPI_KEYVAL_INVALID) {
        xcclResult_t res = make_keyval();
        if (res != xcclSuccess) {
            return res;
        }
    }
    if (xm_pmpi.Comm_get_attr(comm, keyval, &value, &found) != MPI_SUCCESS) {
        return xc_fail(xcclInvalidArgument, "not a valid MPI communicator");
    }
    if (found) {
        *xm_p = value;
        return xcclSuccess;
    }
    return make_entry(comm, xm_p);
}

void xm_comm_prepare(struct xm_comm *xm, const struct xc_device_ops *dev, int device)
{
    if (xm->state != XM_COMM_UNTRIED) {
        return;
    }
    if (xm_comm_create(xm->comm, dev, device, &xm->xcomm) == xcclSuccess) {
        xm->dev = dev;
        xm->device = device;
        xm->state = XM_COMM_READY;
        return;
    }
    snprintf(xm->reason, sizeof(xm->reason), "%s", xc_last_detail());
    xm->state = XM_COMM_FAILED;
    if (xm->rank == 0) {
        pthread_mutex_lock(&lock);
        bool first = !warned;
        warned = true;
        pthread_mutex_unlock(&lock);
        xc_log(first ? XC_LOG_WARN : XC_LOG_INFO,
               "all %d ranks leave collectives on device memory to MPI: %s", xm->size, xm->reason);
    }
}

bool xm_comm_may_use_device(struct xm_comm *xm)
{
    int mine, any = 1;

    if (xm->may_use_device < 0) {
        mine = xc_device_possible();
        /* If MPI cannot even do this, its own call will tell the program. */
        if (xm_pmpi.Allreduce(&mine, &any, 1, XM_HANDLE(MPI_INT), XM_HANDLE(MPI_MAX), xm->comm) !=
            MPI_SUCCESS) {
            any = 0;
        }
        xm->may_use_device = any;
    }
    return xm->may_use_device != 0;
}

void xm_comm_begin(struct xm_comm *xm, const char *coll, uint64_t bytes)
{
    uint64_t             number = ++xm->operations;
    struct xm_operation *op = &xm->history[number % XM_HISTORY];

    op->coll = coll;
    op->bytes = bytes;
    op->number = number;
    op->done = false;
}

void xm_comm_end(struct xm_comm *xm)
{
    xm->history[xm->operations % XM_HISTORY].done = true;
}

void xm_comm_history(const struct xm_comm *xm, char *buf, size_t len)
{
    size_t n = 0;

    buf[0] = '\0';
    for (uint64_t i = 0; (i < XM_HISTORY) && (i < xm->operations) && (n < len); i++) {
        const struct xm_operation *op = &xm->history[(xm->operations - i) % XM_HISTORY];
        n += (size_t)snprintf(buf + n, len - n, "%s#%llu %s of %llu bytes%s", (i > 0) ? ", " : "",
                              (unsigned long long)op->number, op->coll,
                              (unsigned long long)op->bytes, op->done ? "" : " (not completed)");
    }
}

void xm_comm_break(struct xm_comm *xm, const char *reason)
{
    void *saved;

    snprintf(xm->reason, sizeof(xm->reason), "%s", reason);
    xm->state = XM_COMM_BROKEN;
    if ((xm->xcomm != NULL) && (xm->dev->enter(xm->device, &saved) == xcclSuccess)) {
        xcclCommAbort(xm->xcomm);
        xm->xcomm = NULL;
        xm->dev->leave(saved);
    }
}

void xm_comms_finalize(void)
{
    /* Deleting the attribute calls on_comm_free(), which takes the entry off the list. */
    while (all != NULL) {
        struct xm_comm *before = all;
        if ((xm_pmpi.Comm_delete_attr(all->comm, keyval) != MPI_SUCCESS) || (all == before)) {
            xc_info("a communicator was left to the end of the process");
            break;
        }
    }
    if (keyval != MPI_KEYVAL_INVALID) {
        xm_pmpi.Comm_free_keyval(&keyval);
    }
}
