/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Request_get_status() of MPICH 4.2 to 5.0 completes a persistent request. What is called to
 * complete it then finds it inactive: there is no status, and MPI_Waitsome() does not see it. All
 * this can go when nobody uses these.
 */
#include "transfers/look.h"

#include <stdlib.h>

#include "base/log.h"

struct ended {
    MPI_Status status;
    int        code;
};

static int query(void *extra, MPI_Status *status)
{
    const struct ended *ended = extra;
    int                 error = status->MPI_ERROR; /* not for this function to set */

    *status = ended->status; /* MPICH 4.3's MPI_Waitsome() has an error from there alone */
    status->MPI_ERROR = (ended->code != MPI_SUCCESS) ? ended->code : error;
    return ended->code;
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

static void stand_in(const MPI_Status *status, int code, MPI_Request *request_p)
{
    struct ended *ended = malloc(sizeof(*ended));

    if (ended == NULL) {
        xc_error("out of memory for the status of a persistent request");
        return;
    }
    *ended = (struct ended){*status, code};
    if (xm_pmpi.Grequest_start(query, release, cancel, ended, request_p) == MPI_SUCCESS) {
        xm_pmpi.Grequest_complete(*request_p);
    }
}

static bool is_empty(const MPI_Status *status)
{
    return (status->MPI_SOURCE == MPI_ANY_SOURCE) && (status->MPI_TAG == MPI_ANY_TAG);
}

/* Of a request that is not active any longer the status is empty. */
static bool is_inactive(MPI_Request request)
{
    MPI_Status status;
    int        flag = 0;

    status.MPI_SOURCE = status.MPI_TAG = MPI_UNDEFINED; /* of a send MPI leaves them */
    return (xm_pmpi.Request_get_status(request, &flag, &status) == MPI_SUCCESS) && flag &&
           is_empty(&status);
}

/* MPICH 4.0 would call the handler of MPI_COMM_WORLD once more for an error that it has said. */
static bool is_inactive_in_silence(MPI_Request request)
{
    MPI_Comm       world = XM_HANDLE(MPI_COMM_WORLD);
    MPI_Errhandler handler;

    if (!xm_mpi_has_world() || (xm_pmpi.Comm_get_errhandler(world, &handler) != MPI_SUCCESS)) {
        return is_inactive(request);
    }
    xm_pmpi.Comm_set_errhandler(world, XM_HANDLE(MPI_ERRORS_RETURN));
    bool inactive = is_inactive(request);
    xm_pmpi.Comm_set_errhandler(world, handler);
    xm_pmpi.Errhandler_free(&handler);
    return inactive;
}

/* Has the look that said this completed the request? MPI is asked until it is known. */
static bool has_completed(MPI_Request request, const MPI_Status *said, int code)
{
    enum { UNKNOWN, NEVER, ALWAYS };
    static int habit; /* atomic */
    int        known = __atomic_load_n(&habit, __ATOMIC_RELAXED);

    if ((known == UNKNOWN) && !is_empty(said)) {
        bool inactive =
            (code == MPI_SUCCESS) ? is_inactive(request) : is_inactive_in_silence(request);
        known = inactive ? ALWAYS : NEVER;
        __atomic_store_n(&habit, known, __ATOMIC_RELAXED);
    }
    return known == ALWAYS;
}

int xm_look_at_persistent(MPI_Request request, int *flag, MPI_Status *status,
                          MPI_Request *stand_in_p)
{
    status->MPI_SOURCE = status->MPI_TAG = MPI_UNDEFINED;
    int code = xm_pmpi.Request_get_status(request, flag, status);

    if (((code != MPI_SUCCESS) || *flag) && has_completed(request, status, code)) {
        stand_in(status, code, stand_in_p);
    }
    return code;
}
