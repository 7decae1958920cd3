/* SPDX-License-Identifier: BSD-3-Clause */
#include "comms/packing.h"

#include <pthread.h>

#include "base/log.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool            sessions; /* atomic */
static bool            tried;    /* atomic: since the first one was opened */
static MPI_Comm        own;
static long            session; /* an MPI_Session: an MPI below MPI-4 has no such type */

/* A function that not every MPI has; false: it failed, or is not there. */
static bool call(const char *name, int n, const long *args)
{
    xm_function_t function;

    *(void **)&function = xm_mpi_symbol(name);
    return (function != NULL) && ((int)xm_invoke(function, n, args) == MPI_SUCCESS);
}

static bool make_comm(MPI_Comm *comm_p)
{
    const long returns = (long)XM_HANDLE(MPI_ERRORS_RETURN),
               no_info = (long)XM_HANDLE(MPI_INFO_NULL);
    MPI_Group  group;
    const long of_group[] = {session, (long)"mpi://SELF", (long)&group};

    if (!call("PMPI_Group_from_session_pset", 3, of_group)) {
        return false;
    }
    const long of_comm[] = {(long)group, (long)"xccl-packing", no_info, returns, (long)comm_p};
    bool       made = call("PMPI_Comm_create_from_group", 5, of_comm);
    xm_pmpi.Group_free(&group);
    return made;
}

static void make(void)
{
    const long of_session[] = {(long)XM_HANDLE(MPI_INFO_NULL), (long)XM_HANDLE(MPI_ERRORS_RETURN),
                               (long)&session};

    own = XM_HANDLE(MPI_COMM_SELF);
    session = 0;
    if (!call("PMPI_Session_init", 3, of_session)) {
        xc_info("no session for MPI_Pack: MPI_COMM_SELF is used");
        return;
    }
    if (!make_comm(&own)) {
        const long end[] = {(long)&session};
        xc_info("no communicator of a session for MPI_Pack: MPI_COMM_SELF is used");
        call("PMPI_Session_finalize", 1, end);
        own = XM_HANDLE(MPI_COMM_SELF);
    }
}

MPI_Comm xm_packing_comm(void)
{
    if (!__atomic_load_n(&sessions, __ATOMIC_ACQUIRE)) {
        return XM_HANDLE(MPI_COMM_SELF);
    }
    if (!__atomic_load_n(&tried, __ATOMIC_ACQUIRE)) {
        pthread_mutex_lock(&lock);
        if (!tried) {
            make();
            __atomic_store_n(&tried, true, __ATOMIC_RELEASE);
        }
        pthread_mutex_unlock(&lock);
    }
    return own;
}

void xm_packing_sessions_began(void)
{
    __atomic_store_n(&sessions, true, __ATOMIC_RELEASE);
}

void xm_packing_sessions_end(void)
{
    const long end[] = {(long)&session};

    pthread_mutex_lock(&lock);
    if (tried && (own != XM_HANDLE(MPI_COMM_SELF))) {
        xm_pmpi.Comm_free(&own);
        call("PMPI_Session_finalize", 1, end);
    }
    __atomic_store_n(&tried, false, __ATOMIC_RELEASE);
    __atomic_store_n(&sessions, false, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
}
