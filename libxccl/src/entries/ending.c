/* SPDX-License-Identifier: BSD-3-Clause */
#include "entries/ending.h"

#include "base/params.h"
#include "calls/observed.h"
#include "comms/comm.h"
#include "comms/vendor_comm.h"
#include "comms/wait.h"
#include "comms/worker.h"
#include "data/buffer.h"
#include "data/flatten.h"
#include "data/gdrcopy.h"
#include "data/kernels.h"
#include "data/lists.h"
#include "data/pools.h"
#include "entries/session.h"
#include "ops/freed.h"
#include "ops/op.h"
#include "ops/request.h"
#include "streams/streams.h"
#include "tables/tables.h"
#include "transfers/rendezvous.h"
#include "transfers/watcher.h"

static bool last_is_ours; /* MPI calls on_self_deleted() after all callbacks of the program */
static bool messages_ended;

/* Not before the program's callbacks: a descriptor may be what they receive. */
static void end_messages(void)
{
    if (messages_ended) {
        return;
    }
    messages_ended = true;
    xm_requests_finalize();
    xm_rendezvous_finalize();
    xm_observe_finalize();
    xm_buffers_free_types();
    xm_flat_finalize();
    xm_progress_finalize();
}

static int on_self_deleted(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm;
    (void)key;
    (void)value;
    (void)extra;
    if (last_is_ours && !messages_ended) {
        xm_vendors_finalize();
        end_messages();
    }
    return MPI_SUCCESS;
}

/*
 * MPI deletes the attribute last that was set first. Messages in pieces need threads that call MPI,
 * which MPICH does not allow any more when it deletes attributes.
 */
void xm_ending_prepare(void)
{
    int key = MPI_KEYVAL_INVALID;

    if ((xc_params()->threads == XC_THREADS_MULTIPLE) ||
        (xm_pmpi.Comm_create_keyval(xm_comm_not_copied, on_self_deleted, &key, NULL) !=
         MPI_SUCCESS)) {
        return;
    }
    last_is_ours = xm_pmpi.Comm_set_attr(XM_HANDLE(MPI_COMM_SELF), key, NULL) == MPI_SUCCESS;
    xm_pmpi.Comm_free_keyval(&key); /* it lives as long as the attribute */
}

/*
 * Here and not in a destructor: the vendor's library and the driver must still be alive. The
 * program's callbacks may use communicators: staging goes on, and so do messages. While an MPI-4
 * session is open, MPI may call them later, and then MPI_COMM_WORLD is no more.
 */
static void end_before_mpi(void)
{
    xm_streams_finalize();
    xm_ops_finalize();
    xm_freed_finalize();
    if (!last_is_ours || xm_session_any()) {
        end_messages();
    }
    xm_watcher_end(); /* it may call MPI */
    xm_comms_finalize();
    if (messages_ended) { /* else after the callbacks, in which another rank may wait for this one
                           */
        xm_vendors_finalize();
    }
}

/*
 * Communicators of an MPI-4 session may be in use for longer, by other threads, too: then memory
 * and kernels are left to the end of the process.
 */
static void end_after_mpi(void)
{
    if (messages_ended && !xm_session_any()) {
        xm_kernels_finalize();
        xm_lists_finalize();
        xm_gdrcopy_finalize();
        xm_memory_finalize();
        xm_workers_finalize();
        xm_tables_end();
        xm_comms_forget_rules();
    }
}

int xm_ending_finalize(int profiling, const long *args, bool started)
{
    if (started) {
        end_before_mpi();
    }
    int res = (int)xm_mpi_forward(XM_FN_MPI_Finalize, profiling, args);
    if (res != MPI_SUCCESS) {
        return res;
    }
    xm_session_world_ended();
    if (started) {
        end_after_mpi();
    }
    return res;
}
