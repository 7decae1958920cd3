/* SPDX-License-Identifier: BSD-3-Clause */
#include "entries/session.h"

#include "comms/comm.h"
#include "comms/derived.h"
#include "comms/keyvals.h"
#include "comms/mailbox.h"
#include "comms/packing.h"
#include "comms/vendor_comm.h"
#include "comms/wait.h"
#include "data/buffer.h"
#include "data/flatten.h"
#include "ops/freed.h"
#include "ops/op.h"
#include "ops/record.h"
#include "ops/request.h"
#include "streams/streams.h"
#include "transfers/pipeline.h"

static int open_sessions; /* atomic */

/* All that needs MPI, and would not be there any more when it begins anew. */
static void let_go(void)
{
    xm_streams_finalize();
    xm_ops_finalize();
    xm_requests_finalize();
    xm_freed_finalize();
    xm_comms_shut();
    xm_vendors_finalize();
    xm_buffers_free_types();
    xm_flat_finalize();
    xm_progress_finalize();
}

static void forget(void)
{
    xm_comms_forget();
    xm_derived_forget();
    xm_keyvals_forget();
    xm_errors_forget();
}

int xm_session_init(int profiling, const long *args, bool started)
{
    xm_mailbox_take_no_more();
    xm_pipeline_send_no_more();
    xm_records_before_mpi();
    int res = (int)xm_mpi_forward(XM_FN_MPI_Session_init, profiling, args);
    if (res != MPI_SUCCESS) {
        return res;
    }
    xm_records_mpi_began();
    bool first = (__atomic_fetch_add(&open_sessions, 1, __ATOMIC_ACQ_REL) == 0);
    if (first) {
        xm_packing_sessions_began();
    }
    if (first && started && !xm_mpi_has_world()) {
        xm_flat_begin();
        xm_progress_init();
    }
    return res;
}

/* Was it the last one? One that was opened past us, by MPI's own function, counts for nothing. */
static bool end_one(void)
{
    int open = __atomic_load_n(&open_sessions, __ATOMIC_ACQUIRE);

    while ((open > 0) && !__atomic_compare_exchange_n(&open_sessions, &open, open - 1, false,
                                                      __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {}
    return open == 1;
}

int xm_session_finalize(int profiling, const long *args, bool started)
{
    bool last = end_one();
    bool ends = last && !xm_mpi_has_world();

    if (ends && started) {
        let_go();
    }
    if (last) {
        xm_packing_sessions_end();
    }
    int res = (int)xm_mpi_forward(XM_FN_MPI_Session_finalize, profiling, args);
    if (ends && (res == MPI_SUCCESS)) {
        forget();
    }
    return res;
}

bool xm_session_any(void)
{
    return __atomic_load_n(&open_sessions, __ATOMIC_ACQUIRE) > 0;
}

void xm_session_world_ended(void)
{
    if (!xm_session_any()) {
        forget();
    }
}
