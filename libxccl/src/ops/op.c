/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/op.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "base/params.h"
#include "comms/cause.h"
#include "comms/creation.h"
#include "comms/edges.h"
#include "comms/wait.h"
#include "data/arrays.h"
#include "observe/profile.h"
#include "ops/freed.h"
#include "ops/missing.h"
#include "ops/pending.h"
#include "ops/persistent.h"
#include "ops/record.h"
#include "ops/request.h"

enum { MAX_IDLE = 64 };

/* About 20 us on a GPU: small collectives are over by then. */
enum { QUIET_POLLS = 128 };

static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static struct xm_op   *idle;
static int             num_idle;

/* A thread's last one: most programs have one at a time. */
static __thread struct xm_op *mine;
static __thread bool          gives_back; /* when the thread ends */
static pthread_once_t         once = PTHREAD_ONCE_INIT;
static pthread_key_t          at_thread_end;

static void put_into_pool(struct xm_op *op)
{
    pthread_mutex_lock(&pool_lock);
    bool keep = (num_idle < MAX_IDLE);
    if (keep) {
        op->next = idle;
        idle = op;
        num_idle++;
    }
    pthread_mutex_unlock(&pool_lock);
    if (!keep) {
        free(op);
    }
}

static void give_back(void *unused)
{
    (void)unused;
    gives_back = false; /* another destructor may call MPI */
    if (mine != NULL) {
        put_into_pool(mine);
        mine = NULL;
    }
}

static void make_key(void)
{
    if (pthread_key_create(&at_thread_end, give_back) != 0) {
        at_thread_end = (pthread_key_t)-1; /* refused below: it is lost with the thread */
    }
}

static void keep_for_thread(struct xm_op *op)
{
    mine = op;
    if (!gives_back) {
        gives_back = true;
        pthread_once(&once, make_key);
        pthread_setspecific(at_thread_end, &mine); /* not NULL, or nothing is called */
    }
}

struct xm_op *xm_op_new(void)
{
    struct xm_op *op = mine;

    mine = NULL;
    if (op == NULL) {
        pthread_mutex_lock(&pool_lock);
        op = idle;
        if (op != NULL) {
            idle = op->next;
            num_idle--;
        }
        pthread_mutex_unlock(&pool_lock);
    }
    if (op == NULL) {
        op = malloc(sizeof(*op));
    }
    if (op != NULL) {
        memset(op, 0, offsetof(struct xm_op, detail));
        op->detail[0] = '\0';
    }
    return op;
}

void xm_op_free(struct xm_op *op)
{
    struct xm_comm *comm = op->comm;

    if (op->lost) {
        return;
    }
    xm_buffers_free(&op->buffers);
    for (int i = 0; op->call.large && (i < XM_MAX_ROOMS); i++) {
        free(op->rooms[i]);
    }
    if (mine == NULL) {
        keep_for_thread(op);
    } else {
        put_into_pool(op);
    }
    if (comm != NULL) {
        xm_comm_unuse(comm);
    }
}

/* The text of a failure, with what came before it. */
static void write_failure(const struct xm_op *op, char *text, size_t len)
{
    char history[512];

    if (op->comm == NULL) {
        snprintf(text, len, "%s", op->detail);
        return;
    }
    xm_record_history(op->comm, history, sizeof(history));
    snprintf(text, len, "%s; last operations of rank %d: %s", op->detail, op->comm->rank, history);
}

/*
 * A failure after something was enqueued breaks the communicator: other ranks may have begun. The
 * error is the program's before anything is aborted, which takes its time.
 */
static void end_failed(struct xm_op *op, xcclResult_t res)
{
    xm_record_state(op->record, "failed");
    if ((op->comm != NULL) && ((op->path == &xm_path_ccl) || (op->path == &xm_path_direct))) {
        xm_comm_break(op->comm, op->detail);
    }
    xm_records_failed(res, op->detail);
    op->result = res;
}

/*
 * The ranks count those calls alike, to ask each other in the same one: so it counts as well where
 * this rank's copies failed, as long as MPI has carried it. MPI may refuse it on this rank alone.
 */
static void count_vector(struct xm_op *op, xcclResult_t res)
{
    bool called = (res == xcclSuccess) || (op->stage != XM_STAGE_NEW);

    if (op->vector && called && (op->code == MPI_SUCCESS)) {
        op->comm->vector_calls++;
    }
    if (op->pairwise && called && (op->code == MPI_SUCCESS)) {
        xm_edges_count(op->comm, xm_pairs_of(op->call.coll), op->call.form == XM_BLOCKING);
    }
}

static void end(struct xm_op *op, xcclResult_t res)
{
    count_vector(op, res);
    if (res != xcclSuccess) {
        end_failed(op, res);
    } else {
        xm_record_state(op->record, (op->code == MPI_SUCCESS) ? "done" : "failed");
        op->result = xcclSuccess;
    }
    op->stage = XM_STAGE_OVER;
}

MPI_Comm xm_op_comm_to_raise_on(const struct xm_op *op)
{
    bool usable = (op->comm != NULL) && !op->comm->freed;

    return usable ? op->comm->comm : XM_HANDLE(MPI_COMM_WORLD);
}

xcclResult_t xm_op_look_for_broken(struct xm_op *op)
{
    if ((op->comm == NULL) ||
        (xm_look_for_broken(op->comm, false, &op->broken_ns) == xcclSuccess)) {
        return xcclInProgress;
    }
    return xm_op_fail(op, xcclRemoteError);
}

static xcclResult_t wait_for(struct xm_op *op)
{
    struct xm_wait wait = xm_wait_begin("for a collective on device memory");
    xcclResult_t   res;

    wait.describe = xm_missing_describe;
    wait.arg = op;
    bool on_device =
        (op->path == &xm_path_ccl) || (op->path == &xm_path_direct) || (op->path == &xm_path_self);
    wait.quiet = on_device ? QUIET_POLLS : 0;
    while ((res = op->path->progress(op)) == xcclInProgress) {
        enum xm_wait_verdict verdict = xm_wait_step(&wait);
        if (verdict == XM_WAIT_EXPIRED) {
            return xm_missing_expired(op);
        }
        if (verdict == XM_WAIT_LOOK) {
            xm_ops_progress();
            xcclResult_t found = xm_missing_look(op, xm_now_ns());
            if (found != xcclInProgress) {
                return found;
            }
        }
    }
    return res;
}

/*
 * It may have been recorded before its ranks agreed on a path. Of calls on host memory there is no
 * record: most are plain, and never come here.
 */
static void record(struct xm_op *op)
{
    if (op->record != 0) {
        xm_record_agreed(op);
    } else if (op->concerns_device) {
        op->record = xm_record_begin(op, XM_COUNTED);
    } else if ((op->path != &xm_path_mpi) || xm_on_device(&op->buffers.send) ||
               xm_on_device(&op->buffers.recv)) {
        op->record = xm_record_begin(op, XM_COUNTED_NEVER);
    }
}

int xm_op_run(struct xm_op *op, const char **path_p)
{
    char text[1100];
    int  code;

    op->blocking = true;
    record(op);
    xcclResult_t res = op->path->start(op);
    if (res == xcclSuccess) {
        xm_record_state(op->record, xm_waiting);
        res = wait_for(op);
    }
    end(op, res);
    code = op->code;
    if (res != xcclSuccess) {
        write_failure(op, text, sizeof(text));
        code = xm_raise(xm_op_comm_to_raise_on(op), res, text);
    }
    MPI_Comm comm = xm_op_comm_to_raise_on(op);
    bool     unheard = op->path->unheard && (res == xcclSuccess) && (code != MPI_SUCCESS);
    op->path->release(op, res != xcclSuccess);
    *path_p = op->path->name;
    xm_op_free(op);
    if (unheard) {
        xm_pmpi.Comm_call_errhandler(comm, code);
    }
    return code;
}

/* Has the handler heard that MPI's own request failed, with the communicator that MPI knows? */
static bool mpi_has_raised(const struct xm_op *op)
{
    if ((op->code == MPI_SUCCESS) || (op->comm == NULL)) {
        return op->code != MPI_SUCCESS;
    }
    if (op->path->unheard) {
        return false;
    }
    bool apart = (xm_persistent_comm_of(op->comm->comm) != op->comm->comm);

    return !apart || !xm_persistent_is_unheard();
}

/* The request is to tell the program. A failure reaches it there, as MPI's own would. */
static void finish(struct xm_op *op, xcclResult_t res)
{
    char text[1100];

    end(op, res);
    op->raised = mpi_has_raised(op);
    if (res != xcclSuccess) {
        op->raised = false;
        write_failure(op, text, sizeof(text));
        xc_error("%s", text);
        op->code = xm_error_code(res, text);
    }
    op->path->release(op, res != xcclSuccess);
    if (op->observed != 0) {
        xm_profile_completed(op->observed - 1, xm_now_ns() - op->observed_ns);
    }
}

int xm_op_launch(struct xm_op *op, MPI_Request *request)
{
    char text[1100];

    op->blocking = false;
    xcclResult_t res = xcclSuccess;
    if (!xm_arrays_keep(&op->call, &op->buffers, op->comm->size)) {
        res = xc_fail(xcclSystemError, "out of memory for the arrays of a call");
    }
    if (res == xcclSuccess) {
        res = xm_request_make(op); /* first: what has begun needs one */
    }
    if (res != xcclSuccess) {
        MPI_Comm comm = xm_op_comm_to_raise_on(op);
        xm_op_free(op);
        return xm_raise(comm, res, xc_last_detail());
    }
    record(op);
    res = op->path->start(op);
    if ((res != xcclSuccess) || (op->code != MPI_SUCCESS)) {
        int code = op->code;
        end(op, res);
        if (res != xcclSuccess) {
            write_failure(op, text, sizeof(text));
            code = xm_raise(xm_op_comm_to_raise_on(op), res, text);
        }
        MPI_Comm comm = xm_op_comm_to_raise_on(op);
        bool     unheard = op->path->unheard && (res == xcclSuccess);
        op->path->release(op, res != xcclSuccess); /* where MPI refused it, nothing has begun */
        xm_request_drop(op);
        if (unheard) {
            xm_pmpi.Comm_call_errhandler(comm, code);
        }
        return code;
    }
    xm_record_state(op->record, xm_waiting);
    *request = op->request;
    xm_pending_add(op);
    return MPI_SUCCESS;
}

/* MPI tests its own requests in these, and may call the program's error handler. */
static bool may_call_handler(const struct xm_op *op)
{
    return (op->path == &xm_path_staged) || (op->path == &xm_path_mpi) || op->path->unheard;
}

/* MPI may call one in this as well: then another call of this thread may have ended the operation,
 * or another thread have taken its turn. */
static bool advance_comm(const struct xm_claim *claim)
{
    struct xm_comm *comm = claim->op->comm;

    if ((comm == NULL) || !xm_creation_is_under_way(comm)) {
        return true;
    }
    xm_pending_end_turn();
    xm_comm_advance(comm);
    return xm_pending_is_claimed(claim) && xm_pending_take_turn();
}

static xcclResult_t progress_claimed(const struct xm_claim *claim)
{
    struct xm_op *op = claim->op;

    if (!advance_comm(claim)) {
        return xcclInProgress;
    }
    if (may_call_handler(op)) {
        xm_persistent_listen();
        xm_pending_end_turn();
    }
    return op->path->progress(op);
}

/* Cheap: every poll of a request asks for it. */
static uint64_t about_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static bool is_over(struct xm_op *op, xcclResult_t res, uint64_t about)
{
    const uint64_t limit = (uint64_t)xc_params()->timeout * 1000000000u;

    if (res == xcclInProgress) {
        res = xm_missing_look(op, about);
    }
    if ((res == xcclInProgress) && (limit != 0) &&
        (xc_attended_at(&op->attended, xm_now_ns()) > limit)) {
        res = xm_missing_expired(op);
    }
    if (res == xcclInProgress) {
        return false;
    }
    finish(op, res);
    return true;
}

void xm_ops_progress(void)
{
    struct xm_claim claim = {.frame = __builtin_frame_address(0)};

    xm_requests_progress();
    xm_freed_progress();
    /* One thread at a time is enough; and MPI allows no two to test one request. */
    if (!xm_pending_any() || !xm_pending_take_turn()) {
        return;
    }
    uint64_t about = about_now();
    bool     found = xm_pending_claim_first(&claim);
    while (found) {
        struct xm_op *op = claim.op;
        xcclResult_t  res = progress_claimed(&claim);
        if (!xm_pending_is_claimed(&claim)) {
            break;
        }
        bool over = is_over(op, res, about);
        found = xm_pending_claim_next(&claim, over, !xm_pending_take_turn());
        if (over) {
            xm_request_complete(op);
        }
    }
    xm_pending_end_turn();
}

void xm_ops_wait(const struct xm_comm *xm)
{
    struct xm_wait wait = xm_wait_begin("for operations of a communicator that is disconnected");

    xm_pending_await(NULL, xm);
    while (xm_pending_on(xm) && (xm_wait_step(&wait) != XM_WAIT_EXPIRED)) {
        xm_ops_progress();
    }
}

void xm_ops_finalize(void)
{
    struct xm_wait wait = xm_wait_begin("for operations whose requests were never completed");

    xm_pending_await(NULL, NULL);
    while (xm_pending_any() && (xm_wait_step(&wait) != XM_WAIT_EXPIRED)) {
        xm_ops_progress();
    }
}
