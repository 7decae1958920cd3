/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The functions of MPI 4.1 that look at several requests and complete none, and MPICH's look at
 * one: by a look at each, so an MPI without them has them too.
 */
#include "ops/entry.h"

static int look(MPI_Request request, int *flag, MPI_Status *status)
{
    const long args[] = {(long)request, (long)flag, (long)status};

    return xm_request_call(XM_FN_MPI_Request_get_status, 1, args);
}

/* One of xccl's that is not started. */
static bool is_at_rest(MPI_Request request)
{
    const struct xm_entry    *e = xm_entry_find(request);
    const struct xm_transfer *t = (e != NULL) ? e->transfer : NULL;

    if ((e == NULL) || (e->op != NULL)) {
        return false;
    }
    return (t != NULL) ? (t->form == 'P') && !t->started && !t->ended
                       : xm_entry_is_persistent(e) && (e->inner == XM_HANDLE(MPI_REQUEST_NULL));
}

/*
 * One that is not active counts for nothing, and a look at it alone says that it is over. Of MPI's
 * own its function tells which they are, or else their empty status.
 */
static int look_if_active(MPI_Request request, bool *active_p, int *flag, MPI_Status *status)
{
    MPI_Status own;
    int        code, index = 0;

    *flag = 0;
    *active_p = false;
    if (request == XM_HANDLE(MPI_REQUEST_NULL)) {
        return MPI_SUCCESS;
    }
    if (xm_entries_any(1, &request)) {
        *active_p = !is_at_rest(request);
        return *active_p ? look(request, flag, status) : MPI_SUCCESS;
    }
    if (xm_mpi_functions[XM_FN_MPI_Request_get_status_any] != NULL) {
        const long args[] = {1, (long)&request, (long)&index, (long)flag, (long)status};
        code = (int)xm_mpi_forward(XM_FN_MPI_Request_get_status_any, 1, args);
        *active_p = (code != MPI_SUCCESS) || !*flag || (index != MPI_UNDEFINED);
    } else {
        MPI_Status *said = (status != MPI_STATUS_IGNORE) ? status : &own;
        said->MPI_SOURCE = said->MPI_TAG = MPI_UNDEFINED; /* of a send MPICH 4.0 leaves them */
        code = look(request, flag, said);
        *active_p = (code != MPI_SUCCESS) || !*flag || (said->MPI_SOURCE != MPI_ANY_SOURCE) ||
                    (said->MPI_TAG != MPI_ANY_TAG);
    }
    *flag = *flag && *active_p;
    return code;
}

/* What a look at each of several said. MPI has called the handlers of those that failed. */
struct looks {
    MPI_Status *statuses;
    int         count;
    bool        failed;
};

static MPI_Status *next_status(const struct looks *l)
{
    return (l->statuses != MPI_STATUSES_IGNORE) ? &l->statuses[l->count] : MPI_STATUS_IGNORE;
}

/* The codes are said once any has failed: until then MPI_ERROR is left as it is. */
static void note(struct looks *l, int code)
{
    bool first = !l->failed && (code != MPI_SUCCESS);

    l->failed = l->failed || first;
    if (l->failed && (l->statuses != MPI_STATUSES_IGNORE)) {
        for (int i = 0; first && (i < l->count); i++) {
            l->statuses[i].MPI_ERROR = MPI_SUCCESS;
        }
        l->statuses[l->count].MPI_ERROR = code;
    }
    l->count++;
}

/* (count, requests, flag, statuses) */
static int look_at_all(int count, const MPI_Request *requests, int *flag, MPI_Status *statuses)
{
    struct looks l = {.statuses = statuses};

    *flag = 1;
    while ((l.count < count) && *flag) {
        int code = look(requests[l.count], flag, next_status(&l));
        *flag = *flag || (code != MPI_SUCCESS);
        note(&l, code);
    }
    return (*flag && l.failed) ? MPI_ERR_IN_STATUS : MPI_SUCCESS;
}

/* (count, requests, index, flag, status) */
static int look_at_any(int count, const MPI_Request *requests, int *index, int *flag,
                       MPI_Status *status)
{
    bool any = false;

    *index = MPI_UNDEFINED;
    *flag = 0;
    for (int i = 0; i < count; i++) {
        bool active;
        int  code = look_if_active(requests[i], &active, flag, status);
        if ((code != MPI_SUCCESS) || *flag) {
            *index = i;
            return code;
        }
        any = any || active;
    }
    if (any) {
        return MPI_SUCCESS;
    }
    if (status != MPI_STATUS_IGNORE) {
        status->MPI_ERROR = MPI_SUCCESS; /* of an empty one; Open MPI leaves it in the look */
    }
    return look(XM_HANDLE(MPI_REQUEST_NULL), flag, status);
}

/* (count, requests, outcount, indices, statuses) */
static int look_at_some(int count, const MPI_Request *requests, int *outcount, int *indices,
                        MPI_Status *statuses)
{
    struct looks l = {.statuses = statuses};
    bool         any = false;

    for (int i = 0; i < count; i++) {
        bool active;
        int  flag;
        int  code = look_if_active(requests[i], &active, &flag, next_status(&l));
        any = any || active;
        if (flag || (code != MPI_SUCCESS)) {
            indices[l.count] = i;
            note(&l, code);
        }
    }
    *outcount = any ? l.count : MPI_UNDEFINED;
    return l.failed ? MPI_ERR_IN_STATUS : MPI_SUCCESS;
}

int xm_get_statuses(enum xm_function function, const long *args)
{
    int                count = (int)args[0];
    const MPI_Request *requests = (const MPI_Request *)args[1];

    switch (function) {
    case XM_FN_MPI_Request_get_status_all:
        return look_at_all(count, requests, (int *)args[2], (MPI_Status *)args[3]);
    case XM_FN_MPI_Request_get_status_any:
        return look_at_any(count, requests, (int *)args[2], (int *)args[3], (MPI_Status *)args[4]);
    default:
        return look_at_some(count, requests, (int *)args[2], (int *)args[3], (MPI_Status *)args[4]);
    }
}

int xm_is_complete(int profiling, MPI_Request request)
{
    const enum xm_function function = XM_FN_MPIX_Request_is_complete;
    const long             args[] = {(long)request};
    int                    flag = 0;

    if ((xm_mpi_functions[function] != NULL) && !xm_entries_any(1, &request)) {
        return (int)xm_mpi_forward(function, profiling, args);
    }
    return (look(request, &flag, MPI_STATUS_IGNORE) != MPI_SUCCESS) || flag;
}
