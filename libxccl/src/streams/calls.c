/* SPDX-License-Identifier: BSD-3-Clause */
/* From a function's arguments to what serves it; what is not of ours goes to MPI, if it has it. */
#include "base/log.h"
#include "comms/wait.h"
#include "ops/op.h"
#include "streams/collective.h"
#include "streams/message.h"
#include "streams/stream_comm.h"
#include "streams/streams.h"
#include "transfers/rendezvous.h"

static int not_ours(enum xm_function function, int profiling, const long *args)
{
    static const struct xm_function_row rows[XM_NUM_FUNCTIONS] = {XM_FUNCTION_ROWS};

    if (xm_mpi_functions[function] != NULL) {
        return (int)xm_mpi_forward(function, profiling, args);
    }
    xcclResult_t res = xc_fail(xcclInvalidArgument,
                               "%s: not a communicator of MPIX_Stream_comm_create, or stream of "
                               "MPIX_Stream_create",
                               rows[function].name + 1);
    return xm_raise(XM_HANDLE(MPI_COMM_WORLD), res, xc_last_detail());
}

static MPI_Comm comm_at(const long *args, int i)
{
    return (MPI_Comm)(intptr_t)args[i];
}

/* A communicator of one stream of ours is what MPIX_Stream_comm_create makes. */
static int get_stream(int profiling, const long *args)
{
    const struct xm_stream_comm *sc = xm_stream_comm_of(comm_at(args, 0));

    if (sc == NULL) {
        if (xm_mpi_functions[XM_FN_MPIX_Comm_get_stream] != NULL) {
            return (int)xm_mpi_forward(XM_FN_MPIX_Comm_get_stream, profiling, args);
        }
        *(int *)args[2] = XM_STREAM_NULL;
        return MPI_SUCCESS;
    }
    *(int *)args[2] = ((int)args[1] == 0) ? sc->handle : (int)XM_STREAM_NULL;
    return MPI_SUCCESS;
}

/* Of a stream of ours a thread makes progress in any case; but a program may wait for others so. */
static int progress(enum xm_function function, int profiling, const long *args)
{
    if (function == XM_FN_MPIX_Stream_progress) {
        xm_ops_progress();
        xm_progress_all();
    }
    if (xm_stream_of((int)args[0]) != NULL) {
        return MPI_SUCCESS;
    }
    if (((int)args[0] == XM_STREAM_NULL) && (xm_mpi_functions[function] == NULL)) {
        return MPI_SUCCESS;
    }
    return not_ours(function, profiling, args);
}

/* Has any rank a stream of ours? Where MPI has streams too, a rank without one cannot know. */
static int agree_ours(MPI_Comm comm, bool *ours)
{
    int mine = *ours, any = mine, inter = 0;
    int code = xm_pmpi.Comm_test_inter(comm, &inter);

    if ((code == MPI_SUCCESS) && !inter) {
        code = xm_pmpi.Allreduce(&mine, &any, 1, XM_HANDLE(MPI_INT), XM_HANDLE(MPI_MAX), comm);
    }
    *ours = (any != 0);
    return code;
}

static int create_comm(int profiling, const long *args)
{
    int  handle = (int)args[1], code = MPI_SUCCESS;
    bool ours = (xm_stream_of(handle) != NULL);

    if (xm_mpi_functions[XM_FN_MPIX_Stream_comm_create] == NULL) {
        ours = ours || (handle == XM_STREAM_NULL);
    } else {
        code = agree_ours(comm_at(args, 0), &ours);
    }
    if (code != MPI_SUCCESS) {
        return code;
    }
    return ours ? xm_stream_comm_create(comm_at(args, 0), handle, (MPI_Comm *)args[2])
                : not_ours(XM_FN_MPIX_Stream_comm_create, profiling, args);
}

/* The ranks that have a device stream may be some of them alone: all go the same way. */
static int create_multiplex(int profiling, const long *args)
{
    const int *handles = (const int *)args[2];
    MPI_Comm   comm = comm_at(args, 0);
    int        count = (int)args[1], handle = (count == 1) ? handles[0] : (int)XM_STREAM_NULL;
    bool       several = false, ours = false;

    for (int i = 0; i < count; i++) {
        ours = ours || (xm_stream_of(handles[i]) != NULL);
    }
    several = ours && (count > 1);
    int code = agree_ours(comm, &ours);
    if ((code == MPI_SUCCESS) && ours) {
        code = agree_ours(comm, &several);
    }
    if (code != MPI_SUCCESS) {
        return code;
    }
    if (several) {
        return xm_raise(comm, xcclUnsupported,
                        "MPIX_Stream_comm_create_multiplex: a device stream goes to a "
                        "communicator of its own; use MPIX_Stream_comm_create");
    }
    return ours ? xm_stream_comm_create(comm, handle, (MPI_Comm *)args[3])
                : not_ours(XM_FN_MPIX_Stream_comm_create_multiplex, profiling, args);
}

static int wait_all(const long *args)
{
    MPI_Request *requests = (MPI_Request *)args[1];
    MPI_Status  *statuses = (MPI_Status *)args[2];
    int          first = MPI_SUCCESS;

    for (int i = 0; i < (int)args[0]; i++) {
        int code =
            xm_enqueue_wait(XM_FN_MPIX_Waitall_enqueue, &requests[i],
                            (statuses == MPI_STATUSES_IGNORE) ? MPI_STATUS_IGNORE : &statuses[i]);
        first = (first == MPI_SUCCESS) ? code : first;
    }
    return first;
}

/* Which communicator it is of; its place in the arguments. */
static int comm_place(enum xm_function function)
{
    switch (function) {
#define XM_COLL(name, capitals, n)                                                                 \
    case XM_FN_MPIX_##name##_enqueue:                                                              \
    case XM_FN_MPIX_##name##_enqueue_c:                                                            \
        return (n) - 1;
        XM_ENQUEUED_COLLECTIVES(XM_COLL)
#undef XM_COLL
    case XM_FN_MPIX_Barrier_enqueue:
        return 0;
    default:
        return 5;
    }
}

static int enqueue(enum xm_function function, const long *args)
{
    switch (function) {
#define XM_COLL(name, capitals, n)                                                                 \
    case XM_FN_MPIX_##name##_enqueue:                                                              \
        return xm_enqueue_collective(function, XM_##capitals, false, args);                        \
    case XM_FN_MPIX_##name##_enqueue_c:                                                            \
        return xm_enqueue_collective(function, XM_##capitals, true, args);
        XM_ENQUEUED_COLLECTIVES(XM_COLL)
#undef XM_COLL
    case XM_FN_MPIX_Barrier_enqueue:
        return xm_enqueue_collective(function, XM_BARRIER, false, args);
    default:
        return xm_enqueue_message(function, args);
    }
}

/* Requests of MPICH's streams are not ours. */
static int wait_call(enum xm_function function, int profiling, const long *args)
{
    bool               one = (function == XM_FN_MPIX_Wait_enqueue);
    const MPI_Request *requests = (const MPI_Request *)args[one ? 0 : 1];
    bool               theirs = false;

    for (int i = 0; i < (one ? 1 : (int)args[0]); i++) {
        theirs = theirs || ((requests[i] != XM_HANDLE(MPI_REQUEST_NULL)) &&
                            !xm_enqueue_has_request(requests[i]));
    }
    if (theirs && (xm_mpi_functions[function] != NULL)) {
        return (int)xm_mpi_forward(function, profiling, args);
    }
    return (function == XM_FN_MPIX_Wait_enqueue)
               ? xm_enqueue_wait(function, (MPI_Request *)args[0], (MPI_Status *)args[1])
               : wait_all(args);
}

static int free_stream(const long *args)
{
    const struct xm_stream *stream = xm_stream_of(*(const int *)args[0]);

    if (stream != NULL) {
        xm_stream_comms_let_go(stream); /* the program may destroy the device's stream next */
    }
    return xm_stream_free(args);
}

long xm_stream_call(enum xm_function function, int profiling, const long *args)
{
    switch (function) {
    case XM_FN_MPIX_Info_set_hex:
        return (xm_mpi_functions[function] != NULL) ? xm_mpi_forward(function, profiling, args)
                                                    : xm_info_set_hex(args);
    case XM_FN_MPIX_Stream_create:
        return xm_stream_create(args);
    case XM_FN_MPIX_Stream_free:
        return free_stream(args);
    case XM_FN_MPIX_Stream_comm_create:
        return create_comm(profiling, args);
    case XM_FN_MPIX_Stream_comm_create_multiplex:
        return create_multiplex(profiling, args);
    case XM_FN_MPIX_Comm_get_stream:
        return get_stream(profiling, args);
    case XM_FN_MPIX_Stream_progress:
    case XM_FN_MPIX_Start_progress_thread:
    case XM_FN_MPIX_Stop_progress_thread:
        return progress(function, profiling, args);
    case XM_FN_MPIX_Wait_enqueue:
    case XM_FN_MPIX_Waitall_enqueue:
        return wait_call(function, profiling, args);
    default:
        return (xm_stream_comm_of(comm_at(args, comm_place(function))) == NULL)
                   ? not_ours(function, profiling, args)
                   : enqueue(function, args);
    }
}

static bool has_stream(MPI_Comm comm)
{
    return xm_stream_comm_of(comm) != NULL;
}

void xm_streams_init(void)
{
    xm_rendezvous_excludes = has_stream;
}
