/* SPDX-License-Identifier: BSD-3-Clause */
/* An enqueued collective, from its arguments to the way that carries it. */
#include "streams/collective.h"
#include "base/log.h"
#include "base/params.h"
#include "calls/facts.h"
#include "calls/observed.h"
#include "paths/direct.h"
#include "streams/carry.h"
#include "streams/staged.h"

/* COPY: the only rank's data, to itself. */
enum way { STAGED, CCL, DIRECT, COPY, NOTHING };

static int check_buffer(const struct xm_buffer *b, MPI_Comm comm)
{
    char none[1] = {0};
    int  position = 0;

    return (b->used && b->layout.derived) ? xm_pmpi.Pack(none, 0, b->type, none, 0, &position, comm)
                                          : MPI_SUCCESS;
}

/*
 * A type that was not committed is refused before anything is enqueued; on a communicator whose
 * error handler returns.
 */
static int check(const struct xm_enqueued *e)
{
    int code = check_buffer(&e->op.buffers.send, e->sc->inner);

    return (code == MPI_SUCCESS) ? check_buffer(&e->op.buffers.recv, e->sc->inner) : code;
}

/* Of a communicator of one rank, which needs no other thread for it if it can be packed. */
static enum way choose_alone(struct xm_enqueued *e)
{
    const struct xm_op *op = &e->op;
    enum xm_coll        coll = op->call.coll;

    if ((coll == XM_BARRIER) || (coll == XM_BCAST) || (coll == XM_EXSCAN) || op->buffers.in_place) {
        return NOTHING;
    }
    (void)xm_facts_local(&e->op);
    if (op->facts.bytes == 0) {
        return NOTHING;
    }
    bool same = (op->buffers.send.bytes == op->buffers.recv.bytes); /* else MPI says so */
    return (same && xm_carry_can_pack(e)) ? COPY : STAGED;
}

/* Which ways there are, by facts equal on all ranks. */
static enum way choose(struct xm_enqueued *e, const struct xm_rules *rules)
{
    struct xm_op *op = &e->op;
    unsigned      available = (1u << XM_PATH_MPI) | (1u << XM_PATH_STAGED);

    op->facts.coll = op->call.coll;
    op->facts.nranks = op->comm->size;
    if (op->comm->size == 1) {
        return choose_alone(e);
    }
    if (op->call.coll == XM_BARRIER) {
        op->direct_what = XK_NO_REDUCTION;
        return (e->sc->counter != NULL) ? DIRECT : STAGED;
    }
    bool on_device = xm_facts_local(op);
    if (op->facts.bytes == 0) {
        return NOTHING;
    }
    if (!on_device || (xc_params()->memory == XC_MEMORY_MIXED)) { /* as others that do not wait */
        return STAGED;
    }
    op->facts.obstacle = xm_facts_obstacle(op);
    if (op->facts.obstacle == NULL) {
        const char *vendor = xm_facts_vendor_obstacle(op), *direct = xm_direct_obstacle(op);
        bool        ready = (xm_comm_state_now(op->comm) == XM_COMM_READY);
        available |= (unsigned)(ready && (vendor == NULL)) << XM_PATH_CCL;
        available |= (unsigned)((e->sc->counter != NULL) && (direct == NULL) && (op->rounds == 0) &&
                                !op->mapped)
                     << XM_PATH_DIRECT;
    }
    struct xm_choice choice = xm_decide(rules, available, &op->facts);
    xc_trace("enqueued %s of %llu bytes on %d ranks: %s (%s)", xm_coll_name(op->call.coll),
             (unsigned long long)op->facts.bytes, op->comm->size, xm_path_name(choice.path),
             (choice.reason != NULL) ? choice.reason : "");
    if (__builtin_expect(xm_observing, 0)) {
        xm_seen_choice(op, rules, &choice, available);
    }
    return (choice.path == XM_PATH_DIRECT) ? DIRECT : (choice.path == XM_PATH_CCL) ? CCL : STAGED;
}

static const char *name_of(enum way way)
{
    static const char *const names[] = {
        [STAGED] = "mpi-staged", [CCL] = "ccl", [DIRECT] = "direct", [COPY] = "self"};

    return names[way];
}

static xcclResult_t carry(const struct xm_enqueue *q, struct xm_enqueued *e, enum way way)
{
    if (__builtin_expect(xm_observing, 0)) {
        xm_seen_enqueued(&e->op, name_of(way));
    }
    if (way == STAGED) {
        xm_set_last_path(name_of(way));
        return xm_staged_collective(e);
    }
    if (way != COPY) {
        __atomic_add_fetch(&e->sc->carried, 1, __ATOMIC_RELAXED);
    }
    xm_carry_pack(e);
    xm_set_last_path(name_of(way));
    xcclResult_t res = (way == DIRECT) ? xm_carry_direct(e)
                       : (way == COPY) ? xm_carry_copy(e)
                                       : xm_carry_ccl(q, e);
    return (res == xcclSuccess) ? xm_carry_unpack(e) : res;
}

/* The call as it goes to the communicator that enqueued collectives have for themselves. */
static void read_call(struct xm_enqueued *e, enum xm_coll coll, bool large, const long *args)
{
    struct xm_call *call = &e->op.call;

    xm_call_read(xm_function_of(coll, XM_BLOCKING, large), 0, args, call);
    call->form = XM_NONBLOCKING;
    call->function = xm_function_of(coll, XM_NONBLOCKING, large);
    call->comm = e->sc->inner;
    call->args[xm_signatures[coll].comm] = (long)(intptr_t)e->sc->inner;
}

/* False: MPI is to say what is wrong with *refused_p, when the call has ended. */
static bool serve(struct xm_enqueue *q, struct xm_enqueued *e, struct xm_call *refused_p)
{
    struct xm_comm       *xm = e->sc->xm;
    const struct xm_place place = {xm->rank, xm->size, xm->size, false};

    xm_buffer_forget();
    if (!xm_buffers_of(&e->op.call, &place, &e->op.buffers)) {
        *refused_p = e->op.call;
        refused_p->form = XM_BLOCKING;
        refused_p->comm = e->sc->comm;
        refused_p->args[xm_signatures[refused_p->coll].comm] = (long)(intptr_t)e->sc->comm;
        q->code = MPI_ERR_OTHER;
        xm_enqueued_free(e);
        return false;
    }
    q->code = check(e);
    if (q->code != MPI_SUCCESS) {
        xm_enqueued_free(e);
        return true;
    }
    const struct xm_rules *rules;
    if (xm_rules_of(xm, &rules) != xcclSuccess) {
        xm_enqueued_free(e);
        xm_enqueue_fail(q, xcclSystemError);
        return true;
    }
    enum way way = choose(e, rules);
    if (way == NOTHING) {
        xm_enqueued_free(e);
        return true;
    }
    xcclResult_t res = carry(q, e, way), missed = e->op.missed;
    if (missed != xcclSuccess) {
        missed = xc_fail(missed, "%s", e->op.detail); /* here, before it may be freed */
    }
    if (res == xcclSuccess) {
        res = xm_enqueued_keep(q, e);
    } else {
        xm_enqueued_failed(e);
    }
    res = (res == xcclSuccess) ? missed : res;
    if (res != xcclSuccess) {
        xm_enqueue_fail(q, res);
    }
    return true;
}

int xm_enqueue_collective(enum xm_function function, enum xm_coll coll, bool large,
                          const long *args)
{
    MPI_Comm               comm = (MPI_Comm)(intptr_t)args[xm_signatures[coll].comm];
    struct xm_stream_comm *sc = xm_stream_comm_of(comm);
    struct xm_enqueue      q;
    struct xm_call         refused;
    bool                   served = true;

    if (sc->without >= 0) {
        xcclResult_t res = xc_fail(xcclInvalidUsage,
                                   "%s: rank %d has attached no device stream to this communicator",
                                   xm_mpi_function_name(function), sc->without);
        return xm_raise(sc->comm, res, xc_last_detail());
    }
    int code = xm_enqueue_begin(sc, &q);
    if (code != MPI_SUCCESS) {
        return code;
    }
    struct xm_enqueued *e = xm_enqueued_new(&q);
    if (e == NULL) {
        xm_enqueue_fail(&q, xcclSystemError);
    } else {
        read_call(e, coll, large, args);
        served = serve(&q, e, &refused);
    }
    xm_enqueue_leave(&q);
    return served ? xm_enqueue_tell(&q) : xm_call_mpi(&refused);
}
