/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Transfers that have a request. It is MPI's own, so MPI cancels it, counts it and reports its
 * errors; here it is only looked at. Except of files, where a look moves nothing in MPICH, and of
 * sends whose message the receiver fetches: there a test takes MPI's request away, and the program
 * has a generalised one.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "comms/wait.h"
#include "observe/profile.h"
#include "transfers/access.h"
#include "transfers/kept.h"
#include "transfers/look.h"
#include "transfers/staging.h"
#include "transfers/transfer.h"
#include "transfers/watcher.h"

/* Messages of so many bytes at most are fetched in the call in which MPI has completed them. */
enum { MOST_MPI_FIRST = 1 << 20 };

__thread const char *xm_transfer_last_path = "mpi";

static bool is_file(const struct xm_transfer *t)
{
    return strchr(t->kinds, 'h') != NULL;
}

static int query(void *extra, MPI_Status *status)
{
    const struct xm_transfer   *t = extra;
    const struct xm_rendezvous *r = &t->rendezvous;
    bool                        fetched = (r->fetch == XM_FETCH_OVER);
    MPI_Count                   bytes = fetched ? r->came : t->bytes;

    xm_pmpi.Status_set_elements_x(status, XM_HANDLE(MPI_BYTE), (bytes > 0) ? bytes : 0);
    xm_pmpi.Status_set_cancelled(status, 0);
    status->MPI_SOURCE = r->source;
    status->MPI_TAG = r->tag;
    if (t->wrong != MPI_SUCCESS) {
        return t->wrong;
    }
    return (fetched && (r->code != MPI_SUCCESS)) ? r->code : t->code;
}

/* Programs begin and end many: the allocator takes as long as the rest of a call. */
enum { MOST_SPARE = 256 };
static pthread_mutex_t     spares_lock = PTHREAD_MUTEX_INITIALIZER;
static struct xm_transfer *spares;
static int                 num_spares;

struct xm_transfer *xm_transfer_new(void)
{
    pthread_mutex_lock(&spares_lock);
    struct xm_transfer *kept = spares;
    if (kept != NULL) {
        spares = kept->next;
        num_spares--;
    }
    pthread_mutex_unlock(&spares_lock);
    if (kept == NULL) {
        kept = malloc(sizeof(*kept));
    }
    if (kept == NULL) {
        xc_fail(xcclSystemError, "out of memory for a request");
    }
    return kept;
}

struct xm_transfer *xm_transfer_keep(const struct xm_transfer *t)
{
    struct xm_transfer *kept = xm_transfer_new();

    if (kept == NULL) {
        return NULL;
    }
    memcpy(kept, t, offsetof(struct xm_transfer, rendezvous.out));
    memcpy(kept->parts, t->parts, (size_t)t->num_parts * sizeof(t->parts[0]));
    return kept;
}

static void give(struct xm_transfer *t)
{
    pthread_mutex_lock(&spares_lock);
    bool keep = (num_spares < MOST_SPARE);
    if (keep) {
        t->next = spares;
        spares = t;
        num_spares++;
    }
    pthread_mutex_unlock(&spares_lock);
    if (!keep) {
        free(t);
    }
}

static int release(void *extra)
{
    give(extra);
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
    /* MPI may be ready with a descriptor at once, and then gives all such sends one handle. */
    t->generalised = is_file(t) || t->rendezvous.offered;
    if (t->generalised) {
        t->rendezvous.source = t->rendezvous.tag = MPI_UNDEFINED;
        code = xm_pmpi.Grequest_start(query, release, cancel, t, &t->request);
        t->args[at] = (long)&t->inner;
    } else {
        t->args[at] = (long)&t->request;
    }
    if (code != MPI_SUCCESS) {
        return code;
    }
    code = (int)xm_mpi_forward(t->function, profiling, t->args);
    if (code == MPI_SUCCESS) {
        xm_access_begin(t);
    }
    return code;
}

void xm_transfer_discard(struct xm_transfer *t)
{
    MPI_Request request = t->request;

    if (t->observed != 0) {
        xm_profile_completed(t->observed - 1, xm_now_ns() - t->observed_ns);
    }
    xm_access_end(t);
    xm_transfer_close(t);
    if (t->companion != NULL) {
        t->companion->leave(t->companion);
    }
    if (t->instead && (t->inner != XM_HANDLE(MPI_REQUEST_NULL))) {
        xm_pmpi.Request_free(&t->inner); /* the program freed its own before it was over */
    }
    if (!t->generalised || (request == XM_HANDLE(MPI_REQUEST_NULL))) {
        give(t);
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
    if (t->generalised || t->instead) {
        return xm_pmpi.Test(&t->inner, flag, status);
    }
    if (t->form != 'P') {
        return xm_pmpi.Request_get_status(t->request, flag, status);
    }
    MPI_Request stand_in = XM_HANDLE(MPI_REQUEST_NULL);
    int         code = xm_look_at_persistent(t->request, flag, status, &stand_in);
    if (stand_in != XM_HANDLE(MPI_REQUEST_NULL)) {
        t->inner = stand_in;
        t->ended = t->instead = true;
    }
    return code;
}

static bool was_cancelled(const MPI_Status *status)
{
    int cancelled = 0;

    return (xm_pmpi.Test_cancelled(status, &cancelled) != MPI_SUCCESS) || cancelled;
}

/* Files set no more of a status than the number of bytes, and windows nothing. */
static MPI_Count bytes_of(const struct xm_transfer *t, const MPI_Status *status)
{
    return (!is_file(t) && was_cancelled(status)) ? 0 : xm_transfer_bytes(status);
}

/*
 * The data is not where it belongs: the call that completes the request returns this. Of a
 * generalised one MPI asks for it then, and calls the handler.
 */
static void fail(struct xm_transfer *t, xcclResult_t res, const char *text)
{
    if (t->generalised) {
        xc_error("%s", text);
        t->wrong = xm_error_code(res, text);
    } else {
        t->wrong = xm_transfer_raise(t, res, text);
    }
}

/* MPI is ready with it: the data goes to where it belongs, or is fetched from here on. */
static void receive(struct xm_transfer *t, const MPI_Status *status)
{
    bool all = t->whole || (strchr(t->kinds, 'w') != NULL);

    if ((strpbrk(t->kinds, "rb") == NULL) && !is_file(t)) {
        return; /* it was sent: MPICH leaves the count of such a status as it was */
    }
    t->bytes = all ? XM_WHOLE : bytes_of(t, status);
    if (t->generalised && !t->rendezvous.kept && !is_file(t)) {
        t->rendezvous.source = status->MPI_SOURCE;
        t->rendezvous.tag = status->MPI_TAG;
    }
    if (xm_rendezvous_received(t, t->bytes)) {
        return;
    }
    if (t->rendezvous.landing != NULL) {
        return; /* it is unpacked at the end */
    }
    if (xm_rendezvous_land(t, t->bytes)) {
        return;
    }
    xcclResult_t res = xm_transfer_copy_out(t, t->bytes);
    if (res != xcclSuccess) {
        fail(t, res, xc_last_detail());
    }
}

static void report(struct xm_transfer *t)
{
    if (t->rendezvous.failed != xcclSuccess) {
        fail(t, t->rendezvous.failed, t->rendezvous.detail);
    }
}

/*
 * Of a receive whose message comes as a descriptor, memory says that it is there, and from then on
 * MPI has nothing to say until it is fetched. Among many, MPI is asked for the others in turn.
 */
static bool needs_look(struct xm_transfer *t)
{
    struct xm_rendezvous *r = &t->rendezvous;

    if (!r->looks || !r->watched || t->cancelled) {
        return true;
    }
    if (__atomic_load_n(&r->fetch, __ATOMIC_RELAXED) != XM_FETCH_NONE) {
        return xm_rendezvous_advance(t);
    }
    return (++t->polls % xm_watch_pause()) == 0;
}

bool xm_transfer_has_sent(const struct xm_transfer *t, int code)
{
    int class = MPI_SUCCESS;

    xm_pmpi.Error_class(code, &class);
    return t->rendezvous.offered && xm_transfer_receives(t->function) &&
           (class == MPI_ERR_TRUNCATE);
}

/* Of MPI_Isendrecv the receive may have failed alone: then the offer is waited for. */
static void end_in_mpi(struct xm_transfer *t, int code, const MPI_Status *status)
{
    t->code = code;
    t->over = true;
    if (code == MPI_SUCCESS) {
        receive(t, status);
    } else if (!xm_transfer_has_sent(t, code)) {
        xm_rendezvous_withdraw(t);
    }
}

/* What the copies of this start needed; where one failed, the device may still use it. */
static void rest(struct xm_transfer *t)
{
    bool good = (t->wrong == MPI_SUCCESS) && (t->rendezvous.failed == xcclSuccess);

    xm_rendezvous_rest(t);
    for (int i = 0; good && (i < t->num_parts); i++) {
        if (t->parts[i].open) {
            xm_scratch_trim(&t->parts[i].scratch, 1); /* the first is the span, for all starts */
        }
    }
}

/* Nothing of it is under way any more. */
static void finish(struct xm_transfer *t)
{
    if (t->rendezvous.fetch == XM_FETCH_OVER) {
        xm_transfer_last_path = xm_rendezvous_path_in(&t->rendezvous);
    }
    if (t->instead && !t->ended) {
        /* The program's request was not started: this one stands for it where it is waited for. */
        xm_pmpi.Irecv(NULL, 0, XM_HANDLE(MPI_BYTE), MPI_PROC_NULL, 0, XM_HANDLE(MPI_COMM_WORLD),
                      &t->inner);
    }
    xm_unwatch(t);
    if ((t->code == MPI_SUCCESS) && (xm_rendezvous_unpack(t, t->bytes) != xcclSuccess)) {
        fail(t, xcclInternalError, xc_last_detail());
    }
    if (t->form == 'P') {
        rest(t);
    }
    report(t);
    if (t->generalised) {
        xm_pmpi.Grequest_complete(t->request);
    }
    __atomic_store_n(&t->done, true, __ATOMIC_RELEASE);
}

/* Its error is that of the request, unless this has one of its own. */
static bool is_companion_over(struct xm_transfer *t)
{
    int  code = MPI_SUCCESS;
    bool over = (t->companion == NULL) || t->companion->over(t->companion, &code);

    if (over && (t->wrong == MPI_SUCCESS)) {
        t->wrong = code;
    }
    return over;
}

static bool poll(struct xm_transfer *t)
{
    MPI_Status status;
    int        flag = 0;

    if (__atomic_load_n(&t->done, __ATOMIC_ACQUIRE)) {
        return true;
    }
    if (!t->over && !needs_look(t)) {
        return false;
    }
    if (!t->over) {
        /* Not MPI_Test: the request stays, for the call that the program makes to complete it. */
        t->code = look(t, &flag, &status);
        if ((t->code == MPI_SUCCESS) && !flag) {
            return false;
        }
        end_in_mpi(t, t->code, &status);
    }
    if (!xm_rendezvous_advance(t) || !is_companion_over(t)) {
        return false;
    }
    finish(t);
    return true;
}

bool xm_transfer_poll(struct xm_transfer *t)
{
    return t->access ? xm_access_poll(t, poll) : poll(t);
}

bool xm_transfer_is_mpi_first(const struct xm_transfer *t)
{
    bool message = (strpbrk(t->kinds, "wh") == NULL);
    bool large = t->rendezvous.looks && (t->rendezvous.receive.bytes > MOST_MPI_FIRST);

    return (t->form == 'N') && message && !t->generalised && !t->access && !large &&
           (t->companion == NULL);
}

bool xm_transfer_is_over_simply(const struct xm_transfer *t)
{
    return t->simple && !t->over && xm_rendezvous_is_untouched(t);
}

void xm_transfer_completed(struct xm_transfer *t, int code, const MPI_Status *status)
{
    if (!t->done && !t->over) {
        end_in_mpi(t, code, status);
    }
}

void xm_transfer_finish(struct xm_transfer *t)
{
    struct xm_wait wait = xm_wait_begin_for_ever("for a copy of a message that has come");

    if (t->done) {
        return;
    }
    xm_kernel_copies_collect(XM_COLLECT_NONE);
    while (!xm_rendezvous_advance(t)) {
        xm_mailbox_looked();
        xm_wait_step(&wait);
    }
    finish(t);
}

bool xm_transfer_poll_among_threads(struct xm_transfer *t)
{
    if (__atomic_load_n(&t->done, __ATOMIC_ACQUIRE)) {
        return true;
    }
    if (__atomic_exchange_n(&t->polled, true, __ATOMIC_ACQUIRE)) {
        return false;
    }
    bool done = xm_transfer_poll(t);
    __atomic_store_n(&t->polled, false, __ATOMIC_RELEASE);
    return done;
}

void xm_transfer_ask_again(struct xm_transfer *t)
{
    for (int i = 0; i < t->num_parts; i++) {
        xm_buffer_ask_again(&t->parts[i].buffer);
        if (t->rendezvous.looks && (t->parts[i].argument == t->rendezvous.argument)) {
            t->rendezvous.receive.mem = t->parts[i].buffer.mem;
        }
    }
}

/* Start a persistent receive whose message is kept. */
static bool start_kept(struct xm_transfer *t, int *code_p)
{
    bool             large = (t->function == XM_FN_MPI_Recv_init_c);
    enum xm_function function = large ? XM_FN_MPI_Imrecv_c : XM_FN_MPI_Imrecv;
    MPI_Message      message;

    t->rendezvous.kept = false;
    /* Of a communicator that the program has freed, too: MPI keeps it, and its handle, for this. */
    if (!xm_kept_any() || ((t->function != XM_FN_MPI_Recv_init) && !large) ||
        !xm_kept_match(xm_transfer_comm(t), (int)t->args[3], (int)t->args[4], &message,
                       &t->rendezvous)) {
        return false;
    }
    const long args[] = {t->args[0], t->args[1], t->args[2], (long)&message, (long)&t->inner};
    *code_p = (int)xm_mpi_forward(function, 1, args);
    return true;
}

/* The function that a start of a persistent send does the same as. */
static enum xm_function started_once(enum xm_function function)
{
    switch (function) {
    case XM_FN_MPI_Ssend_init:
    case XM_FN_MPI_Ssend_init_c:
        return XM_FN_MPI_Issend;
    case XM_FN_MPI_Rsend_init:
    case XM_FN_MPI_Rsend_init_c:
        return XM_FN_MPI_Irsend;
    default:
        return XM_FN_MPI_Isend;
    }
}

/* Send a descriptor to where this start of a persistent send would send its message. */
static bool start_offered(struct xm_transfer *t, int *code_p)
{
    if (!xm_rendezvous_offer_start(t)) {
        return false;
    }
    const long args[] = {(long)&t->rendezvous.out,
                         XM_DESCRIPTOR_BYTES,
                         (long)XM_HANDLE(MPI_BYTE),
                         t->args[3],
                         t->args[4],
                         t->args[5],
                         (long)&t->inner};
    *code_p = (int)xm_mpi_forward(started_once(t->function), 1, args);
    if (*code_p != MPI_SUCCESS) {
        xm_rendezvous_withdraw(t);
        xm_rendezvous_rest(t);
    }
    return true;
}

bool xm_transfer_start_instead(struct xm_transfer *t, int *code_p)
{
    t->ended = false;
    t->instead = start_kept(t, code_p) || start_offered(t, code_p);
    return t->instead;
}
