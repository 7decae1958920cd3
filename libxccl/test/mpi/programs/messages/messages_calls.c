/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls that send and receive messages, in every form. */
#include <sched.h>

#include "messages.h"

typedef int send_fn(const void *, int, MPI_Datatype, int, int, MPI_Comm);
typedef int isend_fn(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);

static send_fn *const  sends[MG_MODES] = {MPI_Send, MPI_Bsend, MPI_Ssend, MPI_Rsend};
static isend_fn *const isends[MG_MODES] = {MPI_Isend, MPI_Ibsend, MPI_Issend, MPI_Irsend};
static isend_fn *const inits[MG_MODES] = {MPI_Send_init, MPI_Bsend_init, MPI_Ssend_init,
                                          MPI_Rsend_init};

static MPI_Comm comm_of(const struct mg_worker *w, const struct mg_side *side)
{
    return w->comms[side->message.slot].comm;
}

static void *address(const struct mg_side *side)
{
    return side->memory + side->origin;
}

static void start(struct mg_worker *w, struct mg_side *side)
{
    if (!side->batched) {
        MPI_Start(&w->requests[side->slot]);
        side->active = true;
    }
}

/* Start what was left for one call: MPI says nothing about the order among them. */
void mg_start_batched(struct mg_worker *w, bool sending)
{
    MPI_Request     requests[MG_SIDES];
    struct mg_side *sides[MG_SIDES];
    int             num = 0;

    for (int i = 0; i < w->num_sides; i++) {
        struct mg_side *side = &w->sides[i];
        if (side->batched && (side->sends == sending)) {
            sides[num] = side;
            requests[num++] = w->requests[side->slot];
        }
    }
    MPI_Startall(num, requests);
    for (int i = 0; i < num; i++) {
        w->requests[sides[i]->slot] = requests[i]; /* Open MPI may give it another handle */
        sides[i]->active = true;
    }
}

static void free_request(struct mg_worker *w, struct mg_side *side)
{
    int slot = side->slot;

    MPI_Request_free(&w->requests[slot]);
    mg_expect(w, side, w->requests[slot] == MPI_REQUEST_NULL,
              "MPI_Request_free left the request as it was");
    w->requests[slot] = MPI_REQUEST_NULL;
    w->owners[slot] = NULL;
    side->slot = -1;
    side->active = false;
}

void mg_send(struct mg_worker *w, struct mg_side *side)
{
    const struct mg_message *m = &side->message;
    MPI_Request              request;

    if (side->form == MG_BLOCKING) {
        sends[side->mode](address(side), side->count, side->type->handle, m->dest, m->tag,
                          comm_of(w, side));
        mg_done(w, side, NULL);
        return;
    }
    if (side->form == MG_NONBLOCKING) {
        isends[side->mode](address(side), side->count, side->type->handle, m->dest, m->tag,
                           comm_of(w, side), &request);
        mg_keep(w, side, request);
        side->active = true;
    } else {
        if (side->slot < 0) {
            inits[side->mode](address(side), side->count, side->type->handle, m->dest, m->tag,
                              comm_of(w, side), &request);
            mg_keep(w, side, request);
        }
        start(w, side);
    }
    if (side->frees && ((side->form == MG_NONBLOCKING) || (w->pass == w->round.passes - 1))) {
        free_request(w, side);
    }
}

MPI_Status *mg_status_or_none(struct mg_worker *w, const struct mg_side *side, MPI_Status *status)
{
    bool needed = (side->message.wild == MG_ANY);

    return (needed || (rx_below(&w->own, 3) > 0)) ? status : MPI_STATUS_IGNORE;
}

static void check_probed(struct mg_worker *w, const struct mg_side *side, const MPI_Status *status)
{
    if (side->message.wild != MG_ANY) {
        mg_status_check(w, side, status, mg_expected(side));
    }
}

/* What was found is received by its own source and tag. */
static void receive_probed(struct mg_worker *w, struct mg_side *side)
{
    MPI_Comm    comm = comm_of(w, side);
    MPI_Status  found, status;
    MPI_Request request;
    int         flag = 0;

    if (side->form == MG_PROBED) {
        MPI_Probe(side->source, side->tag, comm, &found);
        check_probed(w, side, &found);
        MPI_Status *wanted = mg_status_or_none(w, side, &status);
        MPI_Recv(address(side), side->count, side->type->handle, found.MPI_SOURCE, found.MPI_TAG,
                 comm, wanted);
        mg_done(w, side, (wanted == &status) ? &status : NULL);
        return;
    }
    for (;;) {
        MPI_Iprobe(side->source, side->tag, comm, &flag, &found);
        if (flag) {
            break;
        }
        sched_yield();
    }
    check_probed(w, side, &found);
    MPI_Irecv(address(side), side->count, side->type->handle, found.MPI_SOURCE, found.MPI_TAG, comm,
              &request);
    mg_keep(w, side, request);
    side->active = true;
}

static void receive_matched(struct mg_worker *w, struct mg_side *side)
{
    MPI_Comm    comm = comm_of(w, side);
    MPI_Status  found, status;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Request request;
    int         flag = 0;

    if (side->form == MG_MPROBED) {
        MPI_Mprobe(side->source, side->tag, comm, &message, &found);
        check_probed(w, side, &found);
        MPI_Status *wanted = mg_status_or_none(w, side, &status);
        MPI_Mrecv(address(side), side->count, side->type->handle, &message, wanted);
        mg_done(w, side, (wanted == &status) ? &status : NULL);
    } else {
        for (;;) {
            MPI_Improbe(side->source, side->tag, comm, &flag, &message, &found);
            if (flag) {
                break;
            }
            sched_yield();
        }
        check_probed(w, side, &found);
        MPI_Imrecv(address(side), side->count, side->type->handle, &message, &request);
        mg_keep(w, side, request);
        side->active = true;
    }
    mg_expect(w, side, message == MPI_MESSAGE_NULL, "the message is not null when it is received");
}

static void receive_blocking(struct mg_worker *w, struct mg_side *side)
{
    MPI_Status  status;
    MPI_Status *wanted = mg_status_or_none(w, side, &status);

    MPI_Recv(address(side), side->count, side->type->handle, side->source, side->tag,
             comm_of(w, side), wanted);
    mg_done(w, side, (wanted == &status) ? &status : NULL);
}

/* Nobody sends what is cancelled. */
static void cancel(struct mg_worker *w, struct mg_side *side)
{
    MPI_Cancel(&w->requests[side->slot]);
    if (side->frees) {
        free_request(w, side);
    }
}

void mg_receive(struct mg_worker *w, struct mg_side *side)
{
    MPI_Request request;

    switch (side->form) {
    case MG_BLOCKING:
        receive_blocking(w, side);
        return;
    case MG_PROBED:
    case MG_IPROBED:
        receive_probed(w, side);
        return;
    case MG_MPROBED:
    case MG_IMPROBED:
        receive_matched(w, side);
        return;
    case MG_NONBLOCKING:
        MPI_Irecv(address(side), side->count, side->type->handle, side->source, side->tag,
                  comm_of(w, side), &request);
        mg_keep(w, side, request);
        side->active = true;
        break;
    default:
        if (side->slot < 0) {
            MPI_Recv_init(address(side), side->count, side->type->handle, side->source, side->tag,
                          comm_of(w, side), &request);
            mg_keep(w, side, request);
        }
        start(w, side);
        break;
    }
    if (side->message.kind == MG_CANCELLED) {
        cancel(w, side);
    }
}

/* ---- both at once ---- */

static void exchange_blocking(struct mg_worker *w, struct mg_side *recv)
{
    const struct mg_side *send = recv->pair;
    int                   dest = send->message.dest, tag = send->message.tag;
    MPI_Comm              comm = comm_of(w, recv);
    MPI_Status            status;
    MPI_Status           *wanted = mg_status_or_none(w, recv, &status);

    if (recv->form == MG_REPLACED) {
        MPI_Sendrecv_replace(address(recv), recv->count, recv->type->handle, dest, tag,
                             recv->source, recv->tag, comm, wanted);
    } else {
        MPI_Sendrecv(address(send), send->count, send->type->handle, dest, tag, address(recv),
                     recv->count, recv->type->handle, recv->source, recv->tag, comm, wanted);
    }
    mg_done(w, recv, (wanted == &status) ? &status : NULL);
}

/*
 * In MPICH 4.0.2, 4.2.0 and 4.2.1 these leave the status empty, and crash with UCX. In 4.3.2 and
 * 5.0.2 it is that of another call.
 */
#if (MPI_VERSION >= 4) && !defined(MPICH_NUMVERSION) && !defined(XCCL_MPI_STANDARD_ABI)
bool mg_has_isendrecv(void)
{
    return true;
}

static void exchange_later(struct mg_worker *w, struct mg_side *recv)
{
    const struct mg_side *send = recv->pair;
    int                   dest = send->message.dest, tag = send->message.tag;
    MPI_Comm              comm = comm_of(w, recv);
    MPI_Request           request;

    if (recv->form == MG_REPLACED) {
        MPI_Isendrecv_replace(address(recv), recv->count, recv->type->handle, dest, tag,
                              recv->source, recv->tag, comm, &request);
    } else {
        MPI_Isendrecv(address(send), send->count, send->type->handle, dest, tag, address(recv),
                      recv->count, recv->type->handle, recv->source, recv->tag, comm, &request);
    }
    mg_keep(w, recv, request);
    recv->active = true;
}
#else
bool mg_has_isendrecv(void)
{
    return false;
}

static void exchange_later(struct mg_worker *w, struct mg_side *recv)
{
    exchange_blocking(w, recv);
}
#endif

void mg_exchange(struct mg_worker *w, struct mg_side *recv)
{
    recv->returns ? exchange_later(w, recv) : exchange_blocking(w, recv);
}
