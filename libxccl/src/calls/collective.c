/* SPDX-License-Identifier: BSD-3-Clause */
/* A collective from its arguments to its path: the interposer's main flow. */
#include <pthread.h>
#include <stdio.h>

#include "base/log.h"
#include "base/params.h"
#include "calls/calls.h"
#include "calls/choice.h"
#include "calls/facts.h"
#include "calls/observed.h"
#include "calls/pairwise.h"
#include "comms/agree.h"
#include "comms/node.h"
#include "comms/suspicion.h"
#include "ops/record.h"
#include "transfers/rendezvous.h"

struct xm_config xm_config;

static __thread const char *last_path = "host";

const char *xm_last_path(void)
{
    return last_path;
}

void xm_set_last_path(const char *path)
{
    last_path = path;
}

/* Host memory by the address alone? MPI_IN_PLACE is the address of nothing in both families. */
static bool surely_host(const void *buf)
{
    return xc_mem_surely_host(buf) || (buf == MPI_IN_PLACE);
}

/* No page is shared between host and device memory, so one answer serves a whole page. */
static bool same_page(const void *a, const void *b)
{
    return ((uintptr_t)a >> 12) == ((uintptr_t)b >> 12);
}

static bool both_host(const struct xc_device_ops *dev, const void *a, const void *b)
{
    bool a_is_host = surely_host(a), b_is_host = surely_host(b);

    if (a_is_host && b_is_host) {
        return true;
    }
    /* Each question costs the driver some 80 ns, more for host memory; an answer is kept. */
    if (!a_is_host && (xm_buffer_ask(dev, a).kind != XC_MEM_HOST)) {
        return false;
    }
    return b_is_host || (!a_is_host && same_page(a, b)) ||
           (xm_buffer_ask(dev, b).kind == XC_MEM_HOST);
}

/*
 * Displacements, and the bounds of derived types, may lead from an address in one kind of memory to
 * data in another: then only the whole call tells.
 */
static bool data_is_at_buffer(const struct xm_signature *s, const long *args)
{
    enum xm_nature nature;
    MPI_Count      size;

    for (int i = 0; s->kinds[i] != '\0'; i++) {
        char kind = s->kinds[i];
        if ((kind == 'd') || (kind == 'D') || (kind == 'a') || (kind == 'U')) {
            return false;
        }
        if (((kind == 't') || (kind == 'u')) &&
            !xm_type_named((MPI_Datatype)(intptr_t)args[i], &nature, &size)) {
            return false;
        }
    }
    return true;
}

/*
 * Where devices could be used, a call on host memory is counted, and where they are, announced: a
 * rank that passes device memory in the same call would wait for this one, and can then say why.
 * False: it is not plain, since other ranks may have to see it.
 */
static bool announce(enum xm_coll coll, bool blocking, MPI_Comm comm, bool uses_device)
{
    struct xm_comm *xm;

    if (comm == XM_HANDLE(MPI_COMM_NULL)) {
        return true;
    }
    if (xm_comm_get(comm, &xm) != xcclSuccess) {
        xm_suspicion_give_up();
        return true;
    }
    if (!blocking && xm_facts_may_be_shown(xm, coll)) {
        xm_comm_unuse(xm);
        return false;
    }
    /* Counted before what is agreed on counts, as in a call that is served (leave_to_mpi()). */
    xm_comm_call(xm, xm_coll_on_device(coll) ? XM_ON_HOST : XM_ON_ANY, coll);
    if (blocking) {
        xm_comm_settle(xm);
    }
    if (uses_device) {
        xm_suspicion_say_busy(xm, coll);
    }
    xm_comm_unuse(xm);
    return true;
}

/* Not plain, and its buffers are still to be asked for. */
static bool not_asked(void)
{
    xm_buffer_forget();
    return false;
}

static bool is_plain(enum xm_function function, const long *args)
{
    enum xm_coll               coll = xm_function_coll(function);
    enum xm_form               form = xm_function_form(function);
    const struct xm_signature *s = &xm_signatures[coll];
    bool counted = xm_coll_needs_agreement(coll) || (xc_params()->memory == XC_MEMORY_MIXED);
    const struct xc_device_ops *dev = xc_device_active();

    if (dev != NULL) {
        xm_rendezvous_announce(dev); /* the others may send before this rank has a message */
    }
    /* In a blocking one a rank does not know what the others pass: calls are counted. */
    if (xm_config.check || (form == XM_PERSISTENT) || (counted && (form == XM_BLOCKING)) ||
        (xm_mpi_functions[function] == NULL)) {
        return not_asked();
    }
    if (dev != NULL) {
        const void *send = (s->sendbuf >= 0) ? (const void *)args[s->sendbuf] : MPI_IN_PLACE;
        const void *recv = (s->recvbuf >= 0) ? (const void *)args[s->recvbuf] : MPI_IN_PLACE;
        /* NULL is no answer: it may be MPI_BOTTOM, with the addresses in the datatype. */
        if ((send == NULL) || (recv == NULL)) {
            return not_asked();
        }
        if (!both_host(dev, send, recv)) {
            return false;
        }
        if (!data_is_at_buffer(s, args)) {
            return not_asked();
        }
    }
    if (((dev != NULL) || xm_suspicion_counts() || xm_node_slots_in_use()) &&
        !announce(coll, form == XM_BLOCKING, (MPI_Comm)(intptr_t)args[s->comm],
                  (dev != NULL) || xm_node_slots_in_use())) {
        return not_asked();
    }
    last_path = "host";
    return true;
}

bool xm_call_is_plain(enum xm_function function, const long *args)
{
    enum xm_coll coll = xm_function_coll(function);
    bool         blocking = (xm_function_form(function) == XM_BLOCKING);
    MPI_Comm     comm = (MPI_Comm)(intptr_t)args[xm_signatures[coll].comm];

    if (!xm_coll_is_pairwise(coll) || (comm == XM_HANDLE(MPI_COMM_NULL))) {
        return is_plain(function, args);
    }
    if (!xm_pairwise_are_mpis(comm, coll, blocking)) {
        return not_asked();
    }
    return is_plain(function, args);
}

int xm_call_plain(enum xm_function function, int profiling, const long *args)
{
    int          code = (int)xm_mpi_forward(function, profiling, args);
    enum xm_coll coll = xm_function_coll(function);

    /* What MPI refuses on this rank alone is no call of the others. */
    if (xm_coll_is_pairwise(coll) && (code == MPI_SUCCESS)) {
        xm_pairwise_count((MPI_Comm)(intptr_t)args[xm_signatures[coll].comm], coll,
                          xm_function_form(function) == XM_BLOCKING);
    }
    return code;
}

/* Is all of the data in memory whose copies are synchronous from here on? */
static bool is_ordered(const struct xm_op *op, const struct xm_buffer *buffer)
{
    if (!buffer->used || (buffer->mem.kind == XC_MEM_HOST) || buffer->mem.synchronous) {
        return true;
    }
    if (buffer->mem.kind == XC_MEM_DEVICE) {
        /* What was given before may still be on its way, this once. */
        op->dev->mem_make_synchronous(buffer->buf + buffer->low);
    }
    return false;
}

static void take_path(struct xm_op *op, const struct xm_path *path)
{
    op->path = path;
    if ((path != &xm_path_mpi) && !path->unheard) { /* messages see to it themselves */
        bool send = is_ordered(op, &op->buffers.send), recv = is_ordered(op, &op->buffers.recv);
        op->ordered = send && recv;
    }
}

int xm_collective_carry(struct xm_op *op, const struct xm_path *path)
{
    take_path(op, path);
    last_path = path->name;
    if (__builtin_expect(xm_observing, 0)) {
        xm_seen_op(op, path->name, path != &xm_path_mpi);
    }
    if (op->call.form == XM_BLOCKING) {
        return xm_op_run(op, &last_path);
    }
    if ((path == &xm_path_mpi) && !xm_call_makes_arrays(&op->call)) {
        /* MPI's own request serves as it is. */
        int code =
            xm_call_mpi_start(&op->call, op->call.sendbuf, op->call.recvbuf, op->call.request);
        if (op->record != 0) {
            xm_record_agreed(op);
            xm_record_state(op->record, (code == MPI_SUCCESS) ? "done" : "failed");
        }
        xm_op_free(op);
        return code;
    }
    return xm_op_launch(op, op->call.request);
}

static int raise(struct xm_op *op, xcclResult_t res, const char *text)
{
    char copy[512];

    snprintf(copy, sizeof(copy), "%s", text);
    MPI_Comm comm = op->call.comm;
    if (op->record == 0) { /* the ranks asked each other something before it was counted */
        op->record = xm_record_begin(op, XM_COUNTED_SOON);
    }
    xm_record_state(op->record, "failed");
    xm_records_failed(res, copy);
    xm_op_free(op);
    return xm_raise(comm, res, copy);
}

static int leave_to_mpi(struct xm_op *op, const struct xm_path *path)
{
    bool blocking = (op->call.form == XM_BLOCKING) && !op->invalid;
    bool says =
        blocking && (op->dev != NULL) && xm_coll_on_device(op->call.coll) && !xm_touches_device(op);

    if (blocking) {
        xm_comm_settle(op->comm);
    }
    if (says) { /* as announce() does */
        xm_suspicion_say_busy(op->comm, op->call.coll);
    }
    int code = xm_collective_carry(op, path);
    if (says) {
        xm_board_idle();
    }
    if (path == &xm_path_mpi) {
        last_path = "host";
    }
    return code;
}

void xm_collective_place(const struct xm_op *op, struct xm_place *place)
{
    *place = (struct xm_place){op->comm->rank, op->comm->size, op->comm->size, op->comm->inter};
    if (place->inter) {
        xm_pmpi.Comm_remote_size(op->call.comm, &place->partners);
    }
}

/* In its place among the calls of the communicator: is it on device memory of all ranks? */
static xcclResult_t count(struct xm_op *op)
{
    bool symmetric = xm_coll_on_device(op->call.coll) && !xm_coll_needs_agreement(op->call.coll) &&
                     (xc_params()->memory == XC_MEMORY_SAME) && !op->invalid && !op->comm->inter;
    enum xm_call_memory on_host = symmetric ? XM_ON_HOST : XM_ON_ANY;

    op->symmetric = symmetric && xm_facts_local(op);
    op->number = xm_comm_call(op->comm, op->symmetric ? XM_ON_DEVICE : on_host, op->call.coll);
    op->place = op->comm->calls;
    if (op->invalid) {
        /* MPI says what is wrong with it; the others may be waiting to agree. */
        op->buffers.send.used = op->buffers.recv.used = false;
    }
    xcclResult_t res = xm_facts_of(op, &op->concerns_device);
    op->concerns_device = op->concerns_device && !op->invalid;
    op->comm->device_calls += op->concerns_device;
    return res;
}

/* op->code: MPI refuses it. */
static xcclResult_t choose_in_place(struct xm_op *op, const struct xm_path **path_p)
{
    xcclResult_t res = count(op);

    if (res != xcclSuccess) {
        return res;
    }
    if (op->concerns_device) {
        return xm_collective_choose(op, path_p);
    }
    if (xm_coll_is_pairwise(op->call.coll)) {
        return xm_pairwise_choose(op, path_p);
    }
    *path_p = xm_collective_path_to_mpi(op, false);
    return xcclSuccess;
}

static xcclResult_t choose(struct xm_op *op, const struct xm_path **path_p)
{
    if (!xm_collective_takes_turns(op)) {
        return choose_in_place(op, path_p);
    }
    pthread_mutex_lock(&op->comm->alone);
    xcclResult_t res = choose_in_place(op, path_p);
    pthread_mutex_unlock(&op->comm->alone);
    bool packs = (*path_p != NULL) && (*path_p != &xm_path_mpi) && (*path_p != &xm_path_staged);
    if ((res == xcclSuccess) && packs) {
        op->code = xm_collective_check_types(op);
    }
    return res;
}

static int serve(const struct xm_call *call, struct xm_op *op)
{
    const struct xm_path *path = NULL;
    struct xm_place       place;

    op->call = *call;
    op->call.rooms = op->rooms;
    op->dev = xc_device_active();
    xm_collective_place(op, &place);
    bool valid = xm_buffers_of(&op->call, &place, &op->buffers);
    if (xm_config.check && (call->form == XM_BLOCKING)) {
        xcclResult_t res = xm_check_call(op, valid);
        if (res != xcclSuccess) {
            xm_suspicion_give_up(); /* another rank may have counted it */
            return raise(op, res, xc_last_detail());
        }
    }
    op->invalid = !valid;
    xcclResult_t res = choose(op, &path);
    if (res != xcclSuccess) {
        return raise(op, res, xc_last_detail());
    }
    if (op->code != MPI_SUCCESS) {
        int code = op->code;
        xm_record_state(op->record, "failed");
        xm_op_free(op);
        return code;
    }
    return op->concerns_device ? xm_collective_carry(op, path) : leave_to_mpi(op, path);
}

/* Nothing is known of the communicator, so MPI gets the buffers as they are. */
static int leave_unknown_to_mpi(const struct xm_call *call)
{
    const struct xc_device_ops *dev = xc_device_active();
    const struct xm_signature  *s = &xm_signatures[call->coll];
    const void                 *send = (s->sendbuf >= 0) ? call->sendbuf : MPI_IN_PLACE;
    const void                 *recv = (s->recvbuf >= 0) ? call->recvbuf : MPI_IN_PLACE;

    if ((dev == NULL) || xm_mpi_gpu_aware(dev->name) || both_host(dev, send, recv)) {
        return xm_call_mpi(call);
    }
    char text[512];
    snprintf(text, sizeof(text), "device memory cannot be passed to %s here: %s",
             xm_coll_name(call->coll), xc_last_detail());
    return xm_raise(call->comm, xcclUnsupported, text);
}

int xm_collective_run(const struct xm_call *call)
{
    struct xm_comm *xm;

    last_path = "host";
    if (call->comm == XM_HANDLE(MPI_COMM_NULL)) {
        return xm_call_mpi(call);
    }
    if (xm_config.faulty || (xm_comm_get(call->comm, &xm) != xcclSuccess)) {
        xm_suspicion_give_up(); /* it is not counted */
        return xm_config.faulty ? xm_call_mpi(call) : leave_unknown_to_mpi(call);
    }
    struct xm_op *op = xm_op_new();
    if (op == NULL) {
        xm_suspicion_give_up();
        xm_comm_unuse(xm);
        return xm_raise(call->comm, xcclSystemError, "out of memory for an operation");
    }
    op->comm = xm;
    return serve(call, op);
}

int xm_collective(enum xm_function function, int profiling, const long *args)
{
    struct xm_call call;

    xm_call_read(function, profiling, args, &call);
    return (call.form == XM_PERSISTENT) ? xm_collective_init(&call) : xm_collective_run(&call);
}
