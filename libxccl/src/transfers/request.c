/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Transfers that have a request. It is MPI's own, so MPI cancels it, counts it and reports its
 * errors; here it is only looked at. Except of files: a look moves nothing in MPICH, and a test
 * takes the request away, so the program gets a generalised one there.
 */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "transfers/transfer.h"

static bool is_file(const struct xm_transfer *t)
{
    return strchr(t->kinds, 'h') != NULL;
}

static int query(void *extra, MPI_Status *status)
{
    const struct xm_transfer *t = extra;

    xm_pmpi.Status_set_elements_x(status, XM_HANDLE(MPI_BYTE), t->bytes);
    xm_pmpi.Status_set_cancelled(status, 0);
    status->MPI_SOURCE = MPI_UNDEFINED;
    status->MPI_TAG = MPI_UNDEFINED;
    return t->code;
}

static int release(void *extra)
{
    free(extra);
    return MPI_SUCCESS;
}

static int cancel(void *extra, int complete)
{
    (void)extra;
    (void)complete;
    return MPI_SUCCESS;
}

int xm_transfer_post(struct xm_transfer *t, int profiling)
{
    int at = xm_transfer_argument(t->function, 'q');
    int code = MPI_SUCCESS;

    t->inner = XM_HANDLE(MPI_REQUEST_NULL);
    if (is_file(t)) {
        code = xm_pmpi.Grequest_start(query, release, cancel, t, &t->request);
        t->args[at] = (long)&t->inner;
    } else {
        t->args[at] = (long)&t->request;
    }
    if (code != MPI_SUCCESS) {
        return code;
    }
    return (int)xm_mpi_forward(t->function, profiling, t->args);
}

void xm_transfer_discard(struct xm_transfer *t)
{
    MPI_Request request = t->request;

    xm_transfer_close(t);
    if (!is_file(t) || (request == XM_HANDLE(MPI_REQUEST_NULL))) {
        free(t);
    } else if (!t->done) { /* it was not begun */
        xm_pmpi.Grequest_complete(request);
        xm_pmpi.Request_free(&request);
    }
}

MPI_Count xm_transfer_bytes(const MPI_Status *status)
{
    MPI_Count bytes = 0;

    if (xm_pmpi.Get_elements_x((MPI_Status *)(uintptr_t)status, XM_HANDLE(MPI_BYTE), &bytes) !=
        MPI_SUCCESS) {
        return 0;
    }
    return (bytes > 0) ? bytes : 0;
}

static int look(struct xm_transfer *t, int *flag, MPI_Status *status)
{
    if (is_file(t)) {
        return xm_pmpi.Test(&t->inner, flag, status);
    }
    return xm_pmpi.Request_get_status(t->request, flag, status);
}

/* Files set no more of a status than the number of bytes, and windows nothing. */
static MPI_Count bytes_of(const struct xm_transfer *t, const MPI_Status *status)
{
    int cancelled = 0;

    if (!is_file(t) && ((xm_pmpi.Test_cancelled(status, &cancelled) != MPI_SUCCESS) || cancelled)) {
        return 0;
    }
    return xm_transfer_bytes(status);
}

bool xm_transfer_poll(struct xm_transfer *t)
{
    MPI_Status status;
    int        flag = 0;

    if (t->done) {
        return true;
    }
    /* Not MPI_Test: the request stays, for the call that the program makes to complete it. */
    t->code = look(t, &flag, &status);
    if ((t->code == MPI_SUCCESS) && !flag) {
        return false;
    }
    t->done = true;
    if (t->code == MPI_SUCCESS) {
        bool all = t->whole || (strchr(t->kinds, 'w') != NULL);
        t->bytes = all ? XM_WHOLE : bytes_of(t, &status);
        xcclResult_t res = xm_transfer_copy_out(t, t->bytes);
        if (res != xcclSuccess) {
            xm_raise(XM_HANDLE(MPI_COMM_WORLD), res, xc_last_detail());
        }
    }
    if (is_file(t)) {
        xm_pmpi.Grequest_complete(t->request);
    }
    return true;
}
