/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages, files, windows and packing on memory that MPI cannot reach: each form of call. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/params.h"
#include "calls/begun.h"
#include "calls/calls.h"
#include "calls/observed.h"
#include "calls/packing.h"
#include "calls/reduce_local.h"
#include "calls/replace.h"
#include "ops/inside.h"
#include "ops/request.h"
#include "transfers/access.h"
#include "transfers/attached.h"
#include "transfers/kept.h"
#include "transfers/push.h"
#include "transfers/staging.h"
#include "transfers/watcher.h"

const char *xm_last_message_path(void)
{
    return xm_transfer_last_path;
}

/* What the call held is lost: the device may still be using it. */
static int raise(const struct xm_transfer *t, xcclResult_t res)
{
    char text[512];

    snprintf(text, sizeof(text), "%s", xc_last_detail());
    return xm_transfer_raise(t, res, text);
}

/* The same before MPI has the call: nobody gets what it offers. */
static int refuse_unmade(struct xm_transfer *t, int profiling, xcclResult_t res)
{
    char text[512];

    snprintf(text, sizeof(text), "%s", xc_last_detail());
    xm_rendezvous_take_back(t);
    xm_file_come_with_nothing(t, profiling);
    return xm_transfer_raise(t, res, text);
}

/* What can be fetched stays where it is; the rest is staged. */
static xcclResult_t prepare(struct xm_transfer *t)
{
    bool         offered = xm_rendezvous_offer(t);
    xcclResult_t res = xm_transfer_open(t);

    if (offered || (t->num_parts > 0)) {
        xm_transfer_last_path = xm_rendezvous_path_out(&t->rendezvous);
    }
    if (res == xcclSuccess) {
        res = xm_transfer_copy_in(t);
    }
    return (res == xcclSuccess) ? xm_rendezvous_pack_replaced(t) : res;
}

/* The call with host memory for buffers, and a status whether or not the program wants one. */
static int call_with_status(struct xm_transfer *t, int profiling, MPI_Status *own,
                            MPI_Count *bytes_p)
{
    int         at = xm_transfer_argument(t->function, 'S');
    MPI_Status *status = own;

    *bytes_p = XM_WHOLE;
    if (at < 0) {
        int result = (int)xm_mpi_forward(t->function, profiling, t->args);
        if (t->packed != NULL) {
            *bytes_p = (t->function == XM_FN_MPI_Pack) ? t->packed->narrow : t->packed->wide;
        }
        return result;
    }
    if ((MPI_Status *)t->args[at] != MPI_STATUS_IGNORE) {
        status = (MPI_Status *)t->args[at];
    }
    t->args[at] = (long)status;
    int code = (int)xm_mpi_forward(t->function, profiling, t->args);
    if (code == MPI_SUCCESS) {
        *bytes_p = xm_transfer_bytes(status);
    }
    return code;
}

/* What MPI's status says of a descriptor is to be said of the message. */
static int finish_fetch(struct xm_transfer *t)
{
    const struct xm_rendezvous *r = &t->rendezvous;
    int                         at = xm_transfer_argument(t->function, 'S');

    if (r->failed != xcclSuccess) {
        return xm_transfer_raise(t, r->failed, r->detail);
    }
    if (at < 0) {
        return MPI_SUCCESS;
    }
    MPI_Status *status = (MPI_Status *)t->args[at];
    if (r->kept) {
        status->MPI_SOURCE = r->source;
        status->MPI_TAG = r->tag;
    }
    if (r->fetch != XM_FETCH_OVER) {
        return MPI_SUCCESS;
    }
    xm_transfer_last_path = xm_rendezvous_path_in(r);
    xm_pmpi.Status_set_elements_x(status, XM_HANDLE(MPI_BYTE), r->came);
    if (r->code != MPI_SUCCESS) {
        xm_pmpi.Comm_call_errhandler(xm_transfer_comm(t), r->code);
    }
    return r->code;
}

/*
 * What is received may have to come before MPI sends all that it has to, or the other way round:
 * one may have to move while the program is in MPI for the other. An offer that the receiver cannot
 * map needs its sender, too.
 */
static bool has_both_ways(const struct xm_transfer *t)
{
    const struct xm_rendezvous *r = &t->rendezvous;
    bool sends = (strpbrk(t->kinds, "sb") != NULL), receives = (strchr(t->kinds, 'r') != NULL);

    return (t->form == 'B') && ((r->awaits && sends) || (r->offered && receives));
}

/* A message that this process has sent to itself (kept.c) fails on a communicator of ours. */
static int fail_kept(struct xm_transfer *t, int code)
{
    const struct xm_rendezvous *r = &t->rendezvous;
    MPI_Status *status = (MPI_Status *)t->args[xm_transfer_argument(t->function, 'S')];

    status->MPI_SOURCE = r->source;
    status->MPI_TAG = r->tag;
    /* MPICH calls the world's handler for every matched message. */
    if (XM_OPENMPI || (r->comm != XM_HANDLE(MPI_COMM_WORLD))) {
        xm_pmpi.Comm_call_errhandler(r->comm, code);
    }
    return code;
}

/*
 * A program's error handler may leave MPI's function by longjmp(). From a call that is watched it
 * must not, for that would leave the watcher with memory of a stack that is gone: it is kept from
 * MPI until the call is over here. With several threads another one may be in a call on the same
 * communicator, whose errors are the handler's as well; and there MPICH does not survive a jump.
 */
static MPI_Errhandler put_handler_off(const struct xm_transfer *t)
{
    MPI_Comm       comm = xm_transfer_comm(t);
    MPI_Errhandler handler = XM_HANDLE(MPI_ERRORS_RETURN);

    if (xm_kept_has_threads() || (comm == XM_HANDLE(MPI_COMM_NULL)) ||
        (xm_pmpi.Comm_get_errhandler(comm, &handler) != MPI_SUCCESS)) {
        return XM_HANDLE(MPI_ERRORS_RETURN);
    }
    if ((handler == XM_HANDLE(MPI_ERRORS_RETURN)) || (handler == XM_HANDLE(MPI_ERRORS_ARE_FATAL))) {
        xm_pmpi.Errhandler_free(&handler); /* Open MPI counts those who ask for it */
        return XM_HANDLE(MPI_ERRORS_RETURN);
    }
    xm_pmpi.Comm_set_errhandler(comm, XM_HANDLE(MPI_ERRORS_RETURN));
    return handler;
}

static void put_handler_back(MPI_Comm comm, MPI_Errhandler *handler)
{
    xm_pmpi.Comm_set_errhandler(comm, *handler);
    xm_pmpi.Errhandler_free(handler);
}

/* What is sent goes all the same: its receiver may have met the descriptor. */
static int fail_to_receive(struct xm_transfer *t, xcclResult_t res)
{
    char text[512];

    snprintf(text, sizeof(text), "%s", xc_last_detail());
    xm_rendezvous_wait(t);
    xm_unwatch(t);
    t->rendezvous.out.magic = 0;
    return xm_transfer_raise(t, res, text);
}

/* From where MPI's call has ended. */
static int complete(struct xm_transfer *t, int code, MPI_Count bytes)
{
    xcclResult_t res;

    if ((code != MPI_SUCCESS) && xm_transfer_has_sent(t, code)) {
        xm_rendezvous_wait(t);
    } else if (code != MPI_SUCCESS) {
        xm_rendezvous_withdraw(t);
        code = t->rendezvous.resent ? fail_kept(t, code) : code;
    } else if (!xm_rendezvous_received(t, bytes) && (t->rendezvous.landing == NULL)) {
        res = xm_transfer_copy_out(t, bytes);
        if (res != xcclSuccess) {
            return fail_to_receive(t, res);
        }
    }
    if (code == MPI_SUCCESS) {
        xm_rendezvous_wait(t);
        res = xm_rendezvous_unpack(t, bytes);
        code = (res == xcclSuccess) ? finish_fetch(t) : raise(t, res);
    }
    xm_transfer_close(t);
    return code;
}

static int carry_out(struct xm_transfer *t, int profiling)
{
    MPI_Count  bytes;
    MPI_Status status;
    int        code = call_with_status(t, profiling, &status, &bytes);

    return complete(t, code, bytes);
}

static int carry_out_watched(struct xm_transfer *t, int profiling)
{
    MPI_Comm       comm = xm_transfer_comm(t);
    MPI_Errhandler handler = put_handler_off(t);

    xm_watch(t);
    int code = carry_out(t, profiling);
    if (handler != XM_HANDLE(MPI_ERRORS_RETURN)) {
        put_handler_back(comm, &handler);
        if (code != MPI_SUCCESS) {
            xm_pmpi.Comm_call_errhandler(comm, code);
        }
    }
    return code;
}

static int blocking(struct xm_transfer *t, int profiling)
{
    xcclResult_t res = prepare(t);

    if (res != xcclSuccess) {
        return refuse_unmade(t, profiling, res);
    }
    return has_both_ways(t) ? carry_out_watched(t, profiling) : carry_out(t, profiling);
}

/*
 * One of many messages to be received: a look later on serves all of them. Or one to the device:
 * who fetches it here keeps the other rank waiting for what the program sends next.
 */
static bool is_for_later(const struct xm_transfer *t)
{
    bool receive = (t->function == XM_FN_MPI_Irecv) || (t->function == XM_FN_MPI_Irecv_c);
    bool many = (xm_watched_receives() > 0);
    bool device = (t->rendezvous.receive.mem.kind == XC_MEM_DEVICE);

    return receive && t->rendezvous.awaits && ((int)t->args[3] != MPI_PROC_NULL) &&
           (many || device || xm_push_depends((uint64_t)t->rendezvous.receive.bytes));
}

/*
 * Is it over already, so that nothing is left to do? Then MPI may have given it the handle of other
 * requests, too: it must not be kept. A message that is fetched takes longer, and of files only
 * MPI_Test says so.
 */
static bool is_over_at_once(struct xm_transfer *t)
{
    return (t->form != 'P') && !t->rendezvous.offered && !is_for_later(t) &&
           (xm_transfer_argument(t->function, 'h') < 0) && xm_transfer_poll(t) &&
           (t->rendezvous.fetch == XM_FETCH_NONE) && !t->rendezvous.kept &&
           (t->wrong == MPI_SUCCESS);
}

/* With host memory, and for a non-blocking one the data, in place. */
static int make_request(struct xm_transfer *t, int profiling)
{
    int          at = xm_transfer_argument(t->function, 'q');
    MPI_Request *request = (MPI_Request *)t->args[at];
    bool         persistent = (t->form == 'P');

    t->done = persistent; /* until it is started; from the next line on other threads may set it */
    int code = xm_transfer_post(t, profiling);
    if (code != MPI_SUCCESS) {
        xm_rendezvous_withdraw(t);
        xm_transfer_discard(t);
        return code;
    }
    *request = t->request;
    uint64_t bytes = xm_rendezvous_bytes(&t->rendezvous);
    if (is_over_at_once(t)) {
        xm_transfer_discard(t);
        return code;
    }
    if (!__atomic_load_n(&t->done, __ATOMIC_ACQUIRE) &&
        (t->rendezvous.awaits || t->rendezvous.offered)) {
        xm_watch(t);
        xm_watch_posted(bytes);
    }
    return xm_request_keep(t);
}

static int with_request(struct xm_transfer *t, int profiling)
{
    struct xm_transfer *kept = xm_transfer_keep(t);

    if (kept == NULL) {
        return refuse_unmade(t, profiling, xcclSystemError);
    }
    xcclResult_t res = (kept->form == 'P') ? xm_transfer_open(kept) : prepare(kept);
    if (__builtin_expect(xm_observing, 0) && (kept->form == 'N')) {
        xm_seen_transfer(kept);
    }
    return (res == xcclSuccess) ? make_request(kept, profiling)
                                : refuse_unmade(kept, profiling, res);
}

static int begin(struct xm_transfer *t, int profiling)
{
    struct xm_transfer *kept = xm_transfer_keep(t);

    if (kept == NULL) {
        return refuse_unmade(t, profiling, xcclSystemError);
    }
    xcclResult_t res = prepare(kept);
    if (res != xcclSuccess) {
        return refuse_unmade(kept, profiling, res);
    }
    int code = (int)xm_mpi_forward(kept->function, profiling, kept->args);
    if (code != MPI_SUCCESS) {
        xm_transfer_discard(kept);
        return code;
    }
    xm_begun_add(kept);
    return code;
}

/* Accesses that other threads begin meanwhile are not synchronised by this call. */
static int synchronise(enum xm_function function, int profiling, const long *args)
{
    int      at = xm_transfer_argument(function, 'k');
    int      rank = (at < 0) ? -1 : (int)args[at];
    long     window = args[xm_transfer_argument(function, 'w')];
    uint64_t most = xm_access_last();
    int      code = xm_window_call(function, profiling, args);

    if ((code != MPI_SUCCESS) || ((at >= 0) && (rank == MPI_PROC_NULL))) {
        return code; /* of nobody: no access is over by that */
    }
    xcclResult_t res = xm_begun_deliver(window, rank, most);
    return (res == xcclSuccess)
               ? code
               : xm_raise_on_window((MPI_Win)(intptr_t)window, res, xc_last_detail());
}

static int end_split(enum xm_function function, int profiling, const long *args)
{
    struct xm_transfer *t = xm_begun_take_split(args[xm_transfer_argument(function, 'h')]);
    struct xm_transfer  call = {.function = function};
    MPI_Count           bytes;
    MPI_Status          status;

    if (t == NULL) {
        return (int)xm_mpi_forward(function, profiling, args);
    }
    memcpy(call.args, args, sizeof(long) * (size_t)xm_mpi_arguments(function));
    call.args[xm_transfer_argument(function, t->parts[0].buffer.out ? 'r' : 's')] =
        t->args[t->parts[0].argument];
    int code = call_with_status(&call, profiling, &status, &bytes);
    if (code == MPI_SUCCESS) {
        xcclResult_t res = xm_transfer_copy_out(t, bytes);
        if (res != xcclSuccess) {
            return raise(t, res);
        }
    }
    xm_begun_end(t);
    return code;
}

/* Memory that others are to reach. */
static int refuse(const struct xm_transfer *t)
{
    return xm_transfer_raise(t, xcclUnsupported,
                             "the memory of a dynamic window is a device's, and this MPI is not "
                             "GPU-aware; use host memory, or a GPU-aware MPI");
}

static int refuse_scattered(struct xm_transfer *t, int profiling)
{
    xm_transfer_close(t);
    xm_file_come_with_nothing(t, profiling);
    return xm_transfer_raise(
        t, xcclUnsupported,
        "the datatype has absolute addresses in memory of several kinds, of the "
        "host and of devices, and this MPI is not GPU-aware; pass each by itself");
}

static MPI_Count position_at(const void *position, bool narrow)
{
    if (position == NULL) {
        return -1;
    }
    return narrow ? *(const int *)position : *(const MPI_Count *)position;
}

/* Not every MPI says what is wrong with it, and it cannot have device memory. */
static int refuse_position(enum xm_function function, int profiling, const long *args)
{
    struct xm_transfer t;
    char               text[160];

    if (xm_config.faulty || !xm_transfer_read(&t, function, args)) {
        return (int)xm_mpi_forward(function, profiling, args);
    }
    MPI_Comm comm = xm_transfer_comm(&t);
    xm_transfer_close(&t);
    snprintf(text, sizeof(text),
             "%s: the position lies outside of the packed buffer; begin with 0, and pass what the "
             "last call gave",
             xm_mpi_function_name(function));
    return xm_raise(comm, xcclInvalidArgument, text);
}

/* room: bytes of the packed buffer, which begins here at the position. */
static int pack_or_unpack(struct xm_transfer *t, int profiling, MPI_Count room, bool narrow,
                          union xm_position *moved)
{
    MPI_Count bytes;

    if (!xm_pack_on_device(t, room, &bytes)) {
        return blocking(t, profiling);
    }
    if (narrow) {
        moved->narrow = (int)bytes;
    } else {
        moved->wide = bytes;
    }
    xm_transfer_close(t);
    return MPI_SUCCESS;
}

/*
 * MPI_Pack and MPI_Pack_external write from the position on alone. The rest of the buffer may be
 * another thread's to pack into, or a message's that is received: MPI is given what lies behind the
 * position as a buffer of its own, and the program gets those bytes that were packed.
 */
static int pack(enum xm_function function, int profiling, const long *args)
{
    bool               narrow = (function == XM_FN_MPI_Pack);
    int                at = xm_transfer_argument(function, 'r');
    void              *position = (void *)args[at + 2];
    MPI_Count          room = narrow ? (int)args[at + 1] : (MPI_Count)args[at + 1];
    MPI_Count          first = position_at(position, narrow);
    union xm_position  packed = {.wide = 0};
    long               behind[XM_MAX_ARGUMENTS];
    struct xm_transfer t;

    if ((first < 0) || (first > room)) {
        return refuse_position(function, profiling, args);
    }
    memcpy(behind, args, sizeof(long) * (size_t)xm_mpi_arguments(function));
    behind[at] = args[at] + (long)first;
    behind[at + 1] = (long)(room - first);
    behind[at + 2] = (long)&packed;
    if (xm_config.faulty || !xm_transfer_read(&t, function, behind)) {
        return (int)xm_mpi_forward(function, profiling, args);
    }
    if (t.scattered) {
        return refuse_scattered(&t, profiling);
    }
    t.packed = &packed;
    int code = pack_or_unpack(&t, profiling, room - first, narrow, &packed);
    if ((code == MPI_SUCCESS) && narrow) {
        *(int *)position += packed.narrow;
    } else if (code == MPI_SUCCESS) {
        *(MPI_Count *)position += packed.wide;
    }
    return code;
}

/*
 * MPI_Unpack and MPI_Unpack_external read some bytes from the position on, of a buffer that may
 * hold much more: MPI is given no other ones, so that no other ones are copied to the host.
 */
static int unpack(enum xm_function function, int profiling, const long *args)
{
    bool               narrow = (function == XM_FN_MPI_Unpack);
    int                at = xm_transfer_argument(function, 's');
    void              *position = (void *)args[at + 2];
    MPI_Count          end = narrow ? (int)args[at + 1] : (MPI_Count)args[at + 1];
    MPI_Count          first = position_at(position, narrow);
    bool               inside = (first >= 0) && (first < end); /* else MPI is to say so */
    union xm_position  taken = {.wide = 0};
    long               behind[XM_MAX_ARGUMENTS];
    struct xm_transfer t;

    memcpy(behind, args, sizeof(long) * (size_t)xm_mpi_arguments(function));
    if (inside) {
        behind[at] = args[at] + (long)first;
        behind[at + 1] = (long)xm_transfer_most_unpacked(function, args, end - first);
        behind[at + 2] = (long)&taken;
    }
    if (xm_config.faulty || !xm_transfer_read(&t, function, behind)) {
        return (int)xm_mpi_forward(function, profiling, args);
    }
    if (t.scattered) {
        return refuse_scattered(&t, profiling);
    }
    int code = inside ? pack_or_unpack(&t, profiling, end - first, narrow, &taken)
                      : blocking(&t, profiling);
    if (inside && (code == MPI_SUCCESS) && narrow) {
        *(int *)position += taken.narrow;
    } else if (inside && (code == MPI_SUCCESS)) {
        *(MPI_Count *)position += taken.wide;
    }
    return code;
}

/* MPI_Recv has brought what looks like a descriptor, into host memory. */
static int receive_offered(const long *args)
{
    struct xm_transfer t;

    if (!xm_transfer_read(&t, XM_FN_MPI_Recv, args)) {
        return MPI_SUCCESS;
    }
    xcclResult_t res = prepare(&t);
    return (res == xcclSuccess) ? complete(&t, MPI_SUCCESS, XM_DESCRIPTOR_BYTES) : raise(&t, res);
}

/* Most messages to host memory come from there: they cost no more than a look at what came. */
static int receive_looked(int profiling, const long *args)
{
    enum { BUFFER = 0, SOURCE = 3, STATUS = 6, NUM = 7 };
    MPI_Status own;
    uint64_t   first;
    long       with_status[NUM];

    if ((int)args[SOURCE] == MPI_PROC_NULL) { /* there may be no memory behind its buffer */
        return (int)xm_mpi_forward(XM_FN_MPI_Recv, profiling, args);
    }
    xm_buffer_forget(); /* until then it may be used for something else */
    memcpy(with_status, args, sizeof(with_status));
    if ((MPI_Status *)args[STATUS] == MPI_STATUS_IGNORE) {
        with_status[STATUS] = (long)&own;
    }
    int code = (int)xm_mpi_forward(XM_FN_MPI_Recv, profiling, with_status);
    if (code != MPI_SUCCESS) {
        return code;
    }
    memcpy(&first, (const void *)args[BUFFER], sizeof(first));
    if (!xm_descriptor_is_magic(first) ||
        (xm_transfer_bytes((const MPI_Status *)with_status[STATUS]) != XM_DESCRIPTOR_BYTES)) {
        return code;
    }
    return receive_offered(with_status);
}

int xm_transfer_receive_kept(enum xm_function function, const long *args,
                             const struct xm_rendezvous *from, struct xm_companion *companion)
{
    struct xm_transfer t;

    xm_transfer_read(&t, function, args);
    t.companion = companion;
    t.rendezvous.kept = true;
    t.rendezvous.source = from->source;
    t.rendezvous.tag = from->tag;
    t.rendezvous.comm = from->comm;
    t.rendezvous.resent = from->resent;
    return (t.form == 'B') ? blocking(&t, 1) : with_request(&t, 1);
}

static int serve(enum xm_function function, int profiling, const long *args)
{
    struct xm_transfer t;
    int                code;

    xm_requests_progress();
    if (xm_transfer_form(function) == 'E') {
        return end_split(function, profiling, args);
    }
    if (xm_transfer_form(function) == 'Y') {
        return synchronise(function, profiling, args);
    }
    if (xm_transfer_form(function) == 'Z') {
        return xm_window_create(function, profiling, args);
    }
    if (xm_transfer_form(function) == 'Q') {
        return xm_kept_probe(function, profiling, args);
    }
    if (xm_transfer_packs(function)) {
        return pack(function, profiling, args);
    }
    if (xm_transfer_unpacks(function)) {
        return unpack(function, profiling, args);
    }
    if (xm_kept_any() && xm_transfer_receives(function) && xm_kept_call(function, args, &code)) {
        return code;
    }
    if (xm_config.faulty || !xm_transfer_read(&t, function, args)) {
        return (int)xm_mpi_forward(function, profiling, args);
    }
    if (t.scattered) {
        return refuse_scattered(&t, profiling);
    }
    xcclResult_t res;
    if (xm_reduce_on_device(&t, &res)) {
        if (res != xcclSuccess) {
            return raise(&t, res);
        }
        xm_transfer_close(&t);
        return MPI_SUCCESS;
    }
    switch (t.form) {
    case 'A':
        return xm_attached_attach(&t, profiling, args);
    case 'R':
        return refuse(&t);
    case 'B':
        xm_inside_enter(function, args);
        code = blocking(&t, profiling);
        xm_inside_leave();
        return code;
    case 'O':
    case 'W':
        return begin(&t, profiling);
    default:
        return with_request(&t, profiling);
    }
}

/* Longer ones, from device memory, are better fetched as soon as they come. */
static bool is_simple(const long *args)
{
    enum { MOST_BYTES = 16 << 10 };
    enum xm_nature nature;
    MPI_Count      size;

    return !xm_observing && xm_type_named((MPI_Datatype)(intptr_t)args[2], &nature, &size) &&
           ((int)args[1] * size <= MOST_BYTES);
}

/* The same of MPI_Irecv: a thread looks, too. MPI_PROC_NULL's requests are no one's own. */
static int receive_looked_later(int profiling, const long *args)
{
    if ((int)args[3] == MPI_PROC_NULL) {
        return (int)xm_mpi_forward(XM_FN_MPI_Irecv, profiling, args);
    }
    if (!is_simple(args)) {
        return serve(XM_FN_MPI_Irecv, profiling, args);
    }
    xm_buffer_forget(); /* it may be used for something else before it is asked again */
    int code = (int)xm_mpi_forward(XM_FN_MPI_Irecv, profiling, args);
    return (code == MPI_SUCCESS) ? xm_request_keep_simple(args) : code;
}

/* Of a function that makes or synchronises a window. */
static bool window_call_is_plain(enum xm_function function)
{
    bool begun_any = xm_begun_any() || xm_accesses_any();

    return (xm_transfer_form(function) != 'Z') && !begun_any && !xm_windows_any();
}

static enum xm_way way_of(enum xm_function function, const long *args)
{
    if (xm_transfer_form(function) >= 'Y') {
        return window_call_is_plain(function) ? XM_WAY_PLAIN : XM_WAY_OURS;
    }
    return xm_transfer_way(function, args);
}

int xm_transfer_call(enum xm_function function, int profiling, const long *args)
{
    enum xm_way way = xm_config.faulty ? XM_WAY_PLAIN : way_of(function, args);

    switch (way) {
    case XM_WAY_PLAIN:
        return (int)xm_mpi_forward(function, profiling, args);
    case XM_WAY_LOOKED:
        return (function == XM_FN_MPI_Recv) ? receive_looked(profiling, args)
                                            : receive_looked_later(profiling, args);
    default:
        return serve(function, profiling, args);
    }
}

int xm_message_call(enum xm_function function, int profiling, const long *args)
{
    int code;

    if (xm_replace_apart(function, profiling, args, &code)) {
        return code;
    }
    return (xm_kept_has_threads() && xm_receive_matches(function, args))
               ? xm_receive_among_threads(function, profiling, args)
               : xm_transfer_call(function, profiling, args);
}
