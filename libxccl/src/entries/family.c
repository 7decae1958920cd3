/* SPDX-License-Identifier: BSD-3-Clause */
/* What libxccl-mpi.so opens for this MPI family: start, end, and every call of a function. */
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include <xccl/xccl_mpi.h>

#include "base/launch.h"
#include "base/log.h"
#include "base/params.h"
#include "calls/calls.h"
#include "calls/observed.h"
#include "calls/obstacles.h"
#include "calls/pairwise.h"
#include "comms/agree.h"
#include "comms/derived.h"
#include "comms/keyvals.h"
#include "comms/peer_info.h"
#include "comms/setting.h"
#include "comms/wait.h"
#include "data/flatten.h"
#include "data/gdrcopy.h"
#include "data/kernel_reduction.h"
#include "direct/direct.h"
#include "entries/announce.h"
#include "entries/asked.h"
#include "entries/ending.h"
#include "entries/entries.h"
#include "entries/session.h"
#include "entries/spawn.h"
#include "ops/fortran_request.h"
#include "ops/freed.h"
#include "ops/handles.h"
#include "ops/inside.h"
#include "ops/persistent.h"
#include "ops/record.h"
#include "ops/request.h"
#include "streams/stream_comm.h"
#include "streams/streams.h"
#include "tables/tables.h"
#include "transfers/attached.h"
#include "transfers/datarep.h"
#include "transfers/kept.h"
#include "transfers/pipeline.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool            started;   /* atomic */
static bool            has_world; /* with the lock */

/* The path of this library, which leads to the rest of the installation. */
static const char *own_file(void)
{
    Dl_info info;

    return (dladdr((void *)&started, &info) != 0) ? info.dli_fname : NULL;
}

/* Is there an MPI_COMM_WORLD? Sessions do without, and a program may call MPI_Init after those. */
static bool meet_world(int *rank_p)
{
    int initialized = 0;

    if ((xm_pmpi.Initialized(&initialized) != MPI_SUCCESS) || !initialized ||
        (xm_pmpi.Comm_rank(XM_HANDLE(MPI_COMM_WORLD), rank_p) != MPI_SUCCESS)) {
        return false;
    }
    xc_log_set_rank(*rank_p);
    xm_mpi_ask_spawned();
    xm_records_init();
    return true;
}

static void begin_world(void)
{
    xm_ending_prepare();
    xm_announce();
    xm_observe_begin();
}

/* With MPI initialised. A fault of the environment is kept for MPI_Init to report. */
static void start(void)
{
    const struct xc_params *params = xc_params();
    int                     rank = 0;

    has_world = meet_world(&rank);
    if (!has_world) {
        xm_records_init(); /* a session's ranks may have to be asked what they wait in, too */
    }
    xc_params_warn(has_world ? (rank == 0) : xc_first_of_node());
    xm_call_init();
    xm_types_init();
    xm_transfers_init();
    xm_progress_init();
    xm_rendezvous_init();
    xm_direct_init();
    xm_streams_init();
    xm_comm_arithmetic = xm_kernel_reduction_arithmetic;
    xm_comm_tables = xm_tables_digest;
    xm_config.check = (params->check != 0);
    if (xc_params_error() != NULL) {
        xc_fail(xcclInvalidArgument, "%s", xc_params_error());
        xm_config.faulty = true;
    } else if (xm_tables_begin(own_file()) != xcclSuccess) {
        xm_config.faulty = true;
    }
    if (has_world) {
        begin_world();
    }
}

/*
 * A wrong setting is mostly that of all ranks: rank 0 says so, and the job ends. The others give it
 * the time for that, and say it themselves where they are still there then: where rank 0's settings
 * are right, or errors end no job.
 */
static int raise_fault(xcclResult_t res)
{
    const struct timespec patience = {2, 0};
    int                   rank = 0;

    if (xm_mpi_has_world() &&
        (xm_pmpi.Comm_rank(XM_HANDLE(MPI_COMM_WORLD), &rank) == MPI_SUCCESS) && (rank > 0)) {
        nanosleep(&patience, NULL);
    }
    return xm_raise(XM_HANDLE(MPI_COMM_WORLD), res, xc_last_detail());
}

/*
 * A program may have found MPI's own MPI_Init, and with sessions there is none: so any call that
 * carries data may be the first. One that comes before MPI is initialised goes to MPI, which
 * objects.
 */
static void start_once(bool report, bool data)
{
    int initialized = 0, finalized = 0;

    if ((xm_pmpi.Initialized(&initialized) != MPI_SUCCESS) || (!initialized && !data) ||
        (xm_pmpi.Finalized(&finalized) != MPI_SUCCESS) || finalized) {
        return;
    }
    pthread_mutex_lock(&lock);
    bool first = !__atomic_load_n(&started, __ATOMIC_ACQUIRE);
    if (first) {
        start();
        __atomic_store_n(&started, true, __ATOMIC_RELEASE);
    } else if (initialized && !has_world) {
        int rank;
        has_world = meet_world(&rank);
        if (has_world) {
            begin_world();
        }
    }
    pthread_mutex_unlock(&lock);
    if (first && xm_config.faulty && !report) {
        raise_fault(xcclInvalidArgument);
    }
}

static bool is_started(bool data)
{
    if (__builtin_expect(!__atomic_load_n(&started, __ATOMIC_ACQUIRE), 0)) {
        start_once(false, data);
    }
    return __atomic_load_n(&started, __ATOMIC_RELAXED);
}

static int after_init(int res)
{
    if (res != MPI_SUCCESS) {
        return res;
    }
    xm_records_mpi_began();
    start_once(true, false);
    if (xm_config.faulty) {
        return raise_fault(xcclInvalidArgument);
    }
    xcclResult_t agreed =
        (xc_params()->threads == XC_THREADS_MULTIPLE) ? xm_pipeline_agree() : xcclSuccess;
    return (agreed == xcclSuccess) ? res : raise_fault(agreed);
}

/* MPI_Init or MPI_Init_thread: (argc, argv), and (required, provided). */
static int init(enum xm_function function, int profiling, const long *args)
{
    int  provided;
    bool has_place = (function == XM_FN_MPI_Init_thread);
    long more[] = {args[0], args[1], MPI_THREAD_MULTIPLE, (long)&provided};

    xm_records_before_mpi();
    if (xc_params()->threads != XC_THREADS_MULTIPLE) {
        return after_init((int)xm_mpi_forward(function, profiling, args));
    }
    more[3] = has_place ? args[3] : more[3];
    return after_init((int)xm_mpi_forward(XM_FN_MPI_Init_thread, profiling, more));
}

static int free_comm(enum xm_function function, int profiling, const long *args)
{
    MPI_Comm *comm = (MPI_Comm *)args[0];

    if ((comm == NULL) || !__atomic_load_n(&started, __ATOMIC_ACQUIRE)) {
        return (int)xm_mpi_forward(function, profiling, args);
    }
    bool freed = (function == XM_FN_MPI_Comm_free), kept = false;
    int  res = xm_stream_comm_freeing(*comm, freed ? &kept : NULL);
    if (res != MPI_SUCCESS) {
        return res;
    }
    xm_requests_comm_freeing(*comm);
    if (kept || (freed && xm_persistent_keeps_comm(*comm))) {
        *comm = XM_HANDLE(MPI_COMM_NULL);
        return MPI_SUCCESS;
    }
    if (freed) {
        return xm_freed_free(comm, profiling, true);
    }
    xm_requests_comm_disconnecting(*comm);
    struct xm_comm *xm = xm_comm_known(*comm);
    if (xm != NULL) {
        xm_ops_wait(xm);
        xm_comm_end_agreements(xm);
        xm_comm_unuse(xm);
    }
    return xm_freed_now(function, comm, profiling);
}

/* The later steps of Open MPI's mix up with other non-blocking collectives on the communicator. */
static int duplicate(enum xm_function function, int profiling, const long *args)
{
    struct xm_comm *xm;
    MPI_Comm        comm = (MPI_Comm)(intptr_t)args[0];

    if (xm_mpi_is_openmpi() && is_started(true) && (comm != XM_HANDLE(MPI_COMM_NULL)) &&
        (xm_comm_get(comm, &xm) == xcclSuccess)) {
        xm->quiet = true;
        xm_comm_unuse(xm);
    }
    if (xm_mpi_functions[function] != NULL) {
        return (int)xm_mpi_forward(function, profiling, args);
    }
    /* Open MPI 4.1 has none with hints, which an MPI may ignore; mpi4py finds ours by its name. */
    const long without_info[] = {args[0], args[2], args[3]};
    return (int)xm_mpi_forward(XM_FN_MPI_Comm_idup, profiling, without_info);
}

static bool makes_topology(enum xm_function function)
{
    return (function == XM_FN_MPI_Cart_create) || (function == XM_FN_MPI_Graph_create) ||
           (function == XM_FN_MPI_Dist_graph_create) ||
           (function == XM_FN_MPI_Dist_graph_create_adjacent);
}

/* Of all calls that make communicators, those by which ranks can tell what they make. */
static int derive(enum xm_function function, int profiling, const long *args)
{
    bool topology = makes_topology(function); /* then its ranks ask each other something */

    if (!is_started(topology)) {
        return (int)xm_mpi_forward(function, profiling, args);
    }
    int code = xm_derived_make(function, profiling, args);
    if ((code == MPI_SUCCESS) && topology) {
        MPI_Comm made = *(const MPI_Comm *)args[xm_mpi_arguments(function) - 1];
        if (made != XM_HANDLE(MPI_COMM_NULL)) {
            xm_pairwise_made(made);
        }
    }
    return code;
}

/* The standard ABI has no MPI_Keyval_create, which does the same as the other. */
static enum xm_function of_mpi(enum xm_function function, enum xm_function same)
{
    return (xm_mpi_functions[function] != NULL) ? function : same;
}

static int create_keyval(enum xm_function function, int profiling, const long *args)
{
    int code = (int)xm_mpi_forward(function, profiling, args);

    if (code == MPI_SUCCESS) {
        xm_keyval_created(*(const int *)args[2]);
    }
    return code;
}

static int free_keyval(enum xm_function function, int profiling, const long *args)
{
    if (args[0] != 0) {
        xm_keyval_freed(*(const int *)args[0]);
    }
    return (int)xm_mpi_forward(function, profiling, args);
}

static int free_op(int profiling, const long *args)
{
    MPI_Op *op = (MPI_Op *)args[0];

    if ((op != NULL) && (((xm_persistent_requests() > 0) && xm_persistent_keeps_op(*op)) ||
                         (xm_handles_any() && xm_handles_keep_op(*op)))) {
        *op = XM_HANDLE(MPI_OP_NULL);
        return MPI_SUCCESS;
    }
    return (int)xm_mpi_forward(XM_FN_MPI_Op_free, profiling, args);
}

static int free_type(int profiling, const long *args)
{
    MPI_Datatype *type = (MPI_Datatype *)args[0];

    if ((type != NULL) && (((xm_persistent_requests() > 0) && xm_persistent_keeps_type(*type)) ||
                           (xm_handles_any() && xm_handles_keep_type(*type)))) {
        *type = XM_HANDLE(MPI_DATATYPE_NULL);
        return MPI_SUCCESS;
    }
    return (int)xm_mpi_forward(XM_FN_MPI_Type_free, profiling, args);
}

/* Functions on requests concern us only while the program holds one of ours, or MPI has none. */
static int request_function(enum xm_function function, int profiling, const long *args)
{
    if (__builtin_expect((xm_requests_live() == 0) && (xm_mpi_functions[function] != NULL), 1)) {
        return (int)xm_mpi_forward(function, profiling, args);
    }
    bool waits = (function >= XM_FN_MPI_Wait) && (function <= XM_FN_MPI_Waitsome);
    if (waits) {
        xm_inside_enter(function, args);
    }
    int res = xm_request_call(function, profiling, args);
    if (waits) {
        xm_inside_leave();
    }
    xm_requests_progress();
    xm_settle();
    return res;
}

/* Before MPI_Init, or after MPI_Finalize. */
static long without_start(enum xm_function function, int profiling, const long *args)
{
    return (xm_mpi_functions[function] != NULL) ? xm_mpi_forward(function, profiling, args)
                                                : MPI_ERR_OTHER;
}

/*
 * MPI's beginning, or a session's begin or end. An MPI library may do one by another, which comes
 * here too where it calls that by its name: it is part of the first. As in xm_mpi_is_forwarded(),
 * an error handler may have left it by longjmp().
 */
static int begin_or_end(enum xm_function function, int profiling, const long *args)
{
    static __thread const void *within; /* the frame of the first, while that goes on */
    const void                 *frame = __builtin_frame_address(0);
    bool                        ours = __atomic_load_n(&started, __ATOMIC_ACQUIRE);
    int                         res;

    if (xm_mpi_functions[function] == NULL) {
        return MPI_ERR_OTHER;
    }
    if ((uintptr_t)frame < (uintptr_t)within) {
        return (int)xm_mpi_forward(function, profiling, args);
    }
    within = frame;
    if (function == XM_FN_MPI_Session_init) {
        res = xm_session_init(profiling, args, ours);
    } else if (function == XM_FN_MPI_Session_finalize) {
        res = xm_session_finalize(profiling, args, ours);
    } else {
        res = init(function, profiling, args);
    }
    within = NULL;
    return res;
}

static int transfers_function(enum xm_function function, int profiling, const long *args)
{
    switch (function) {
    case XM_FN_MPI_Win_post:
    case XM_FN_MPI_Win_wait:
    case XM_FN_MPI_Win_test:
    case XM_FN_MPI_Win_lock:
    case XM_FN_MPI_Win_lock_all:
    case XM_FN_MPI_Win_sync:
    case XM_FN_MPI_Win_free:
    case XM_FN_MPI_Win_get_attr:
        return xm_window_call(function, profiling, args);
    case XM_FN_MPI_Buffer_detach:
    case XM_FN_MPI_Buffer_detach_c:
        return xm_attached_detach(function, profiling, args);
    case XM_FN_MPI_File_set_view:
        return xm_datarep_set_view(profiling, args);
    default:
        return request_function(function, profiling, args);
    }
}

static int other_function(enum xm_function function, int profiling, const long *args)
{
    switch (function) {
    case XM_FN_MPI_Init:
    case XM_FN_MPI_Init_thread:
    case XM_FN_MPI_Session_init:
    case XM_FN_MPI_Session_finalize:
        return begin_or_end(function, profiling, args);
    case XM_FN_MPI_Finalize:
        return xm_ending_finalize(profiling, args, __atomic_load_n(&started, __ATOMIC_ACQUIRE));
    case XM_FN_MPI_Comm_spawn:
    case XM_FN_MPI_Comm_spawn_multiple:
        return xm_spawn(function, profiling, args);
    case XM_FN_MPI_Comm_free:
    case XM_FN_MPI_Comm_disconnect:
        return free_comm(function, profiling, args);
    case XM_FN_MPI_Comm_create_keyval:
    case XM_FN_MPI_Keyval_create:
        return create_keyval(of_mpi(function, XM_FN_MPI_Comm_create_keyval), profiling, args);
    case XM_FN_MPI_Comm_free_keyval:
    case XM_FN_MPI_Keyval_free:
        return free_keyval(of_mpi(function, XM_FN_MPI_Comm_free_keyval), profiling, args);
    case XM_FN_MPI_Comm_get_info:
    case XM_FN_MPI_Session_get_info:
    case XM_FN_MPI_Win_get_info:
    case XM_FN_MPI_File_get_info:
        return xm_asked_info(function, profiling, args);
    case XM_FN_MPI_Comm_dup:
    case XM_FN_MPI_Comm_dup_with_info:
    case XM_FN_MPI_Comm_split:
    case XM_FN_MPI_Comm_split_type:
    case XM_FN_MPI_Comm_create:
    case XM_FN_MPI_Cart_create:
    case XM_FN_MPI_Cart_sub:
    case XM_FN_MPI_Graph_create:
    case XM_FN_MPI_Dist_graph_create:
    case XM_FN_MPI_Dist_graph_create_adjacent:
        return derive(function, profiling, args);
    case XM_FN_MPI_Comm_idup:
    case XM_FN_MPI_Comm_idup_with_info:
        return duplicate(function, profiling, args);
    case XM_FN_MPI_Op_free:
        return free_op(profiling, args);
    case XM_FN_MPI_Request_c2f:
        return (int)xm_fortran_request_c2f(profiling, args);
    case XM_FN_MPI_Type_free:
        return free_type(profiling, args);
    default:
        return transfers_function(function, profiling, args);
    }
}

static long transfer(enum xm_function function, int profiling, const long *args);

/*
 * Programs find our functions whatever MPI has: mpi4py's wheels look for each by its name. MPI_Pack
 * and MPI_Unpack keep their place in an int there.
 */
static long missing_transfer(enum xm_function function, int profiling, const long *args)
{
    enum xm_function narrow;
    long             changed[XM_MAX_ARGUMENTS];
    int at = (function == XM_FN_MPI_Pack_c) ? 5 : (function == XM_FN_MPI_Unpack_c) ? 2 : -1;

    if (!xm_transfer_narrow(function, args, &narrow)) {
        return xm_raise(XM_HANDLE(MPI_COMM_WORLD), xcclUnsupported, xc_last_detail());
    }
    memcpy(changed, args, sizeof(long) * (size_t)xm_mpi_arguments(function));
    if (at < 0) {
        return transfer(narrow, profiling, changed);
    }
    MPI_Count *position = (MPI_Count *)args[at];
    int        place = (int)*position;
    changed[at] = (long)&place;
    long res = transfer(narrow, profiling, changed);
    *position = place;
    return res;
}

static long transfer(enum xm_function function, int profiling, const long *args)
{
    if (__builtin_expect(xm_mpi_functions[function] == NULL, 0)) {
        return missing_transfer(function, profiling, args);
    }
    bool threads = xm_kept_has_threads() && xm_receive_matches(function, args);
    long res = (threads || is_started(true)) ? xm_message_call(function, profiling, args)
                                             : xm_mpi_forward(function, profiling, args);
    if (!threads) {
        xm_settle();
    }
    xm_requests_progress(); /* this may have been the word that a freed receive is over */
    return res;
}

static long settled(long res)
{
    xm_settle();
    return res;
}

static long serve(enum xm_function function, int profiling, const long *args)
{
    if (__builtin_expect(xm_mpi_is_forwarded(), 0)) {
        return xm_mpi_go_on(function, args);
    }
    if (xm_is_stream_function(function)) {
        return is_started(false) ? settled(xm_stream_call(function, profiling, args))
                                 : without_start(function, profiling, args);
    }
    if (xm_is_transfer(function)) {
        return transfer(function, profiling, args);
    }
    if ((int)function >= XM_NUM_COLLECTIVE_FUNCTIONS) {
        return other_function(function, profiling, args);
    }
    if (!is_started(true)) {
        return xm_mpi_forward(function, profiling, args);
    }
    if (xm_call_is_plain(function, args)) {
        int res = xm_call_plain(function, profiling, args);
        xm_board_idle();
        return res;
    }
    return settled(xm_collective(function, profiling, args));
}

static int comm_init_mpi(void **comm_p, long handle)
{
    const struct xc_device_ops *dev;
    int                         device = -1, inter = 0;
    MPI_Comm                    comm = (MPI_Comm)(intptr_t)handle;

    if (comm_p == NULL) {
        return xc_fail(xcclInvalidArgument,
                       "xcclCommInitMPI: comm_p is NULL; pass the address of an xcclComm_t");
    }
    if (!is_started(false) || xm_comms_finalized()) {
        return xc_fail(xcclInvalidUsage,
                       "xcclCommInitMPI: MPI is not initialised, or its end has begun; call it "
                       "between MPI_Init and MPI_Finalize");
    }
    if (comm == XM_HANDLE(MPI_COMM_NULL)) {
        return xc_fail(xcclInvalidArgument,
                       "xcclCommInitMPI: mpi_comm is MPI_COMM_NULL; ranks that are not in the "
                       "communicator do not call it");
    }
    if ((xm_pmpi.Comm_test_inter(comm, &inter) != MPI_SUCCESS) || inter) {
        return xc_fail(
            xcclInvalidArgument,
            "xcclCommInitMPI: not an intracommunicator; make one with MPI_Intercomm_merge");
    }
    dev = xc_device_active();
    if (dev != NULL) {
        dev->current(&device);
    }
    return xm_comm_create(comm, dev, device, (xcclComm_t *)comm_p);
}

static long observed(enum xm_function function, int profiling, const long *args)
{
    return xm_observe(function, profiling, args, serve);
}

static long followed(enum xm_function function, int profiling, const long *args)
{
    return xm_inside_follow(function, profiling, args, xm_observing ? observed : serve);
}

XCCL_EXPORT extern struct xm_family xccl_mpi_family;

static int tune(const char *text)
{
    if (!is_started(false) || xm_config.faulty || xm_comms_finalized()) {
        return xc_fail(
            xcclInvalidUsage,
            "xcclTuneMPI: MPI is not initialised, or its end has begun; call it between MPI_Init and MPI_Finalize");
    }
    xcclResult_t res = xm_tables_tune(text);
    if (res == xcclSuccess) {
        xm_comms_forget_rules();
    }
    return res;
}

static int open_mpi(void *libmpi, void (*const next[XM_NUM_FUNCTIONS])(void))
{
    if (xm_mpi_open(libmpi, next) != xcclSuccess) {
        xc_params(); /* sets the log up */
        xc_warn("calls go to MPI alone: %s", xc_last_detail());
        return 1;
    }
    /* Calls that nobody observes pay nothing for it: another function serves those that are. */
    if (xm_observe_open()) {
        xccl_mpi_family.call = observed;
        xccl_mpi_family.observes = 1;
    }
    if (xm_inside_is_asked_for()) {
        xccl_mpi_family.call = followed;
        xccl_mpi_family.observes = 1;
    }
    return 0;
}

struct xm_family xccl_mpi_family = {
    .abi = XM_FAMILY_ABI,
    .name = XM_FAMILY_NAME,
    .open = open_mpi,
    .call = serve,
    .comm_init_mpi = comm_init_mpi,
    .tune = tune,
    .serves = xm_asked_of,
    .last_path = xm_last_path,
    .last_message_path = xm_last_message_path,
    .last_obstacle = xm_last_obstacle,
    .anchor = xc_anchor_place,
    .watched = xm_rendezvous_watched,
    .is_plain_receive = xm_transfer_is_plain_receive,
    .stand_in_for_fortran = XM_OPENMPI ? xm_fortran_request_put : NULL,
};
