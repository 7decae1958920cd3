/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The functions of MPI 4.1 that look at several requests and complete none: by a look at each, so
 * an MPI without them has them too.
 */
#include "ops/entry.h"

static int look(MPI_Request request, int *flag, MPI_Status *status)
{
    const long args[] = {(long)request, (long)flag, (long)status};

    return xm_request_call(XM_FN_MPI_Request_get_status, 1, args);
}

/* (count, requests, flag, statuses) */
static int look_at_all(int count, const MPI_Request *requests, int *flag, MPI_Status *statuses)
{
    int code = MPI_SUCCESS;

    *flag = 1;
    for (int i = 0; (i < count) && *flag && (code == MPI_SUCCESS); i++) {
        MPI_Status *status = (statuses != MPI_STATUSES_IGNORE) ? &statuses[i] : MPI_STATUS_IGNORE;
        code = look(requests[i], flag, status);
    }
    return code;
}

/* (count, requests, index, flag, status) */
static int look_at_any(int count, const MPI_Request *requests, int *index, int *flag,
                       MPI_Status *status)
{
    MPI_Request null = XM_HANDLE(MPI_REQUEST_NULL);
    bool        active = false;

    *index = MPI_UNDEFINED;
    *flag = 0;
    for (int i = 0; i < count; i++) {
        if (requests[i] == null) {
            continue;
        }
        active = true;
        int code = look(requests[i], flag, status);
        if ((code != MPI_SUCCESS) || *flag) {
            *index = i;
            return code;
        }
    }
    return active ? MPI_SUCCESS : look(null, flag, status);
}

/* (count, requests, outcount, indices, statuses) */
static int look_at_some(int count, const MPI_Request *requests, int *outcount, int *indices,
                        MPI_Status *statuses)
{
    bool active = false;
    int  found = 0;

    for (int i = 0; i < count; i++) {
        int         flag = 0;
        MPI_Status *status =
            (statuses != MPI_STATUSES_IGNORE) ? &statuses[found] : MPI_STATUS_IGNORE;
        if (requests[i] == XM_HANDLE(MPI_REQUEST_NULL)) {
            continue;
        }
        active = true;
        int code = look(requests[i], &flag, status);
        if (code != MPI_SUCCESS) {
            return code;
        }
        if (flag) {
            indices[found++] = i;
        }
    }
    *outcount = active ? found : MPI_UNDEFINED;
    return MPI_SUCCESS;
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
