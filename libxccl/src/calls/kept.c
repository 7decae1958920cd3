/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receives whose message is kept (transfers/kept.c), each by way of MPI_Mrecv or MPI_Imrecv. Only
 * after a probe that met a descriptor.
 */
#include <stdint.h>
#include <stdlib.h>

#include "calls/calls.h"
#include "ops/request.h"
#include "transfers/kept.h"
#include "transfers/landing.h"

/* Where a function that receives has what, and what it sends before. */
struct shape {
    enum xm_function function;
    bool             large, nonblocking, sends, replaces;
    int              receive, source, tag; /* arguments: buffer, source, tag */
};

/* name, non-blocking, sends, replaces, receive, source, tag */
static const struct shape shapes[] = {
#define BOTH(name, nonblocking, sends, replaces, receive, source, tag)                             \
    {XM_FN_MPI_##name, false, nonblocking, sends, replaces, receive, source, tag},                 \
    {                                                                                              \
        XM_FN_MPI_##name##_c, true, nonblocking, sends, replaces, receive, source, tag             \
    }
    BOTH(Recv, false, false, false, 0, 3, 4),
    BOTH(Irecv, true, false, false, 0, 3, 4),
    BOTH(Sendrecv, false, true, false, 5, 8, 9),
    BOTH(Isendrecv, true, true, false, 5, 8, 9),
    BOTH(Sendrecv_replace, false, true, true, 0, 5, 6),
    BOTH(Isendrecv_replace, true, true, true, 0, 5, 6),
#undef BOTH
};

static const struct shape *shape_of(enum xm_function function)
{
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        if (shapes[i].function == function) {
            return &shapes[i];
        }
    }
    return NULL;
}

static int call(enum xm_function function, const long *args)
{
    return xm_transfer_call(function, 1, args);
}

/* What is to be replaced: elements, and the bytes of one as they are sent. */
struct replaced {
    MPI_Datatype type;
    MPI_Count    count, size, lb, extent;
};

static bool read_replaced(const struct shape *s, const long *args, struct replaced *r)
{
    r->type = (MPI_Datatype)(intptr_t)args[2];
    r->count = s->large ? (MPI_Count)args[1] : (int)args[1];
    return (r->count >= 0) && (xm_pmpi.Type_size_x(r->type, &r->size) == MPI_SUCCESS) &&
           (xm_pmpi.Type_get_extent_x(r->type, &r->lb, &r->extent) == MPI_SUCCESS);
}

/* MPI_Pack counts in int: it is called for pieces. */
static int pack(const struct replaced *r, const char *from, char *to, MPI_Comm comm)
{
    enum { PIECE = 1 << 30 };
    MPI_Count most = ((r->size > 0) && (r->size < PIECE)) ? PIECE / r->size : 1;
    int       code = MPI_SUCCESS;

    for (MPI_Count done = 0; (done < r->count) && (code == MPI_SUCCESS);) {
        MPI_Count  n = (r->count - done < most) ? r->count - done : most;
        int        position = 0;
        const long args[] = {(long)(from + done * r->extent),
                             (long)n,
                             (long)r->type,
                             (long)(to + done * r->size),
                             (long)(n * r->size),
                             (long)&position,
                             (long)comm};
        code = call(XM_FN_MPI_Pack, args);
        done += n;
    }
    return code;
}

/* The program's handler may not come back. */
static int refuse_copy(MPI_Comm comm, xcclResult_t res, const char *text)
{
    xm_kept_leave();
    return xm_raise(comm, res, text);
}

/* What is replaced is sent from a copy, which lives until the request is over. */
static int make_copy(const struct shape *s, const long *args, MPI_Comm comm, char **copy_p)
{
    struct replaced r;

    if (!read_replaced(s, args, &r)) {
        return refuse_copy(comm, xcclInvalidArgument,
                           "the count or the datatype of what is to be replaced is invalid");
    }
    if (r.size > INT32_MAX) {
        return refuse_copy(comm, xcclUnsupported,
                           "one element of the datatype has more bytes than MPI_Pack counts; use a "
                           "smaller one, and more of it");
    }
    *copy_p = malloc((size_t)(r.count * r.size) + 1);
    if (*copy_p == NULL) {
        return refuse_copy(comm, xcclSystemError, "out of memory for what is to be replaced");
    }
    return pack(&r, (const char *)args[0], *copy_p, comm);
}

static int send_copy(const struct shape *s, const long *args, MPI_Comm comm, const char *copy,
                     MPI_Request *request)
{
    struct replaced r;
    MPI_Datatype    type = XM_HANDLE(MPI_PACKED);

    read_replaced(s, args, &r);
    MPI_Count bytes = r.count * r.size;
    bool      many = (bytes > INT32_MAX);
    if (many) {
        type = xm_bytes_as_one((size_t)bytes);
    }
    if (type == 0) {
        return xm_raise(comm, xcclSystemError, "MPI has no datatype of so many bytes");
    }
    int code =
        xm_pmpi.Isend(copy, many ? 1 : (int)bytes, type, (int)args[3], (int)args[4], comm, request);
    if (many) {
        xm_pmpi.Type_free(&type);
    }
    return code;
}

/* What the function sends: begun here. *copy_p: what is replaced, or NULL; the caller frees it. */
static int send(const struct shape *s, const long *args, MPI_Comm comm, char **copy_p,
                MPI_Request *request)
{
    const long isend[] = {args[0], args[1], args[2], args[3], args[4], (long)comm, (long)request};

    if (s->replaces) {
        int code = (*copy_p == NULL) ? make_copy(s, args, comm, copy_p) : MPI_SUCCESS;
        return (code == MPI_SUCCESS) ? send_copy(s, args, comm, *copy_p, request) : code;
    }
    return call(s->large ? XM_FN_MPI_Isend_c : XM_FN_MPI_Isend, isend);
}

/* What MPI_Isendrecv sends, beside the request of what it receives. */
struct sent {
    struct xm_companion companion; /* first */
    MPI_Request         request;
    char               *copy;
    bool                asking;
};

/* To ask may look after other requests, and so after the one that this belongs to. */
static bool is_sent(struct xm_companion *c, int *code_p)
{
    struct sent *sent = (struct sent *)c;
    int          flag = 0;
    const long   test[] = {(long)&sent->request, (long)&flag, (long)MPI_STATUS_IGNORE};

    if (sent->asking) {
        return false;
    }
    sent->asking = true;
    *code_p = xm_request_call(XM_FN_MPI_Test, 1, test);
    sent->asking = false;
    return (*code_p != MPI_SUCCESS) || flag;
}

static void leave_sent(struct xm_companion *c)
{
    struct sent *sent = (struct sent *)c;
    const long   request[] = {(long)&sent->request};

    if (sent->request == XM_HANDLE(MPI_REQUEST_NULL)) {
        free(sent->copy);
    } else { /* the copy stays: nobody says when it was sent */
        xm_request_call(XM_FN_MPI_Request_free, 1, request);
    }
    free(sent);
}

static int send_and_receive_later(const struct shape *s, const long *args, MPI_Comm comm,
                                  MPI_Message *message, const struct xm_rendezvous *from,
                                  char *copy)
{
    enum xm_function imrecv = s->large ? XM_FN_MPI_Imrecv_c : XM_FN_MPI_Imrecv;
    struct sent     *sent = malloc(sizeof(*sent));

    if (sent == NULL) {
        free(copy);
        return xm_raise(comm, xcclSystemError, "out of memory for a request");
    }
    *sent = (struct sent){{is_sent, leave_sent}, XM_HANDLE(MPI_REQUEST_NULL), copy, false};
    int code = send(s, args, comm, &sent->copy, &sent->request);
    if (code != MPI_SUCCESS) {
        free(sent->copy);
        free(sent);
        return code;
    }
    const long receive[] = {args[s->receive], args[s->receive + 1], args[s->receive + 2],
                            (long)message, args[xm_mpi_arguments(s->function) - 1]};
    return xm_transfer_receive_kept(imrecv, receive, from, &sent->companion);
}

/* The message is there, so receiving it waits for nobody. */
static int send_and_receive(const struct shape *s, const long *args, MPI_Comm comm,
                            MPI_Message *message, const struct xm_rendezvous *from, char *copy)
{
    enum xm_function mrecv = s->large ? XM_FN_MPI_Mrecv_c : XM_FN_MPI_Mrecv;
    MPI_Request      request = XM_HANDLE(MPI_REQUEST_NULL);

    int code = send(s, args, comm, &copy, &request);
    if (code != MPI_SUCCESS) {
        free(copy);
        return code;
    }
    const long receive[] = {args[s->receive], args[s->receive + 1], args[s->receive + 2],
                            (long)message, args[xm_mpi_arguments(s->function) - 1]};
    code = xm_transfer_receive_kept(mrecv, receive, from, NULL);
    const long wait[] = {(long)&request, (long)MPI_STATUS_IGNORE};
    int        sent = xm_request_call(XM_FN_MPI_Wait, 1, wait);
    free(copy);
    return (code == MPI_SUCCESS) ? sent : code;
}

static enum xm_function matched_form(const struct shape *s)
{
    if (s->nonblocking) {
        return s->large ? XM_FN_MPI_Imrecv_c : XM_FN_MPI_Imrecv;
    }
    return s->large ? XM_FN_MPI_Mrecv_c : XM_FN_MPI_Mrecv;
}

bool xm_kept_call(enum xm_function function, const long *args, int *code_p)
{
    const struct shape  *s = shape_of(function);
    struct xm_rendezvous from;
    MPI_Message          message;

    if (s == NULL) {
        /* MPI_Mrecv and its kin: (buffer, count, type, message, ...) */
        bool matched =
            (xm_transfer_form(function) != 'P') && xm_kept_matched(*(MPI_Message *)args[3], &from);
        *code_p = matched ? xm_transfer_receive_kept(function, args, &from, NULL) : MPI_SUCCESS;
        return matched;
    }
    MPI_Comm comm = (MPI_Comm)(intptr_t)args[xm_transfer_argument(function, 'c')];
    char    *copy = NULL;
    if (s->replaces && xm_kept_has(comm, (int)args[s->source], (int)args[s->tag])) {
        *code_p = make_copy(s, args, comm, &copy);
        if (*code_p != MPI_SUCCESS) { /* the message stays for another receive */
            free(copy);
            return true;
        }
    }
    if (!xm_kept_match(comm, (int)args[s->source], (int)args[s->tag], &message, &from)) {
        free(copy);
        return false;
    }
    xm_kept_leave();
    if (s->sends) {
        *code_p = s->nonblocking ? send_and_receive_later(s, args, comm, &message, &from, copy)
                                 : send_and_receive(s, args, comm, &message, &from, copy);
        return true;
    }
    const long receive[] = {args[0], args[1], args[2], (long)&message, args[6]};
    *code_p = xm_transfer_receive_kept(matched_form(s), receive, &from, NULL);
    return true;
}

/* MPI says what is wrong with the arguments, if anything is, before its message comes. */
static int check(const struct shape *s, const long *args, MPI_Comm comm)
{
    MPI_Request none;
    const long  irecv[] = {args[s->receive], args[s->receive + 1], args[s->receive + 2],
                           MPI_PROC_NULL,    args[s->tag],         (long)comm,
                           (long)&none};

    int code = (int)xm_mpi_forward(s->large ? XM_FN_MPI_Irecv_c : XM_FN_MPI_Irecv, 1, irecv);
    return (code == MPI_SUCCESS) ? xm_pmpi.Wait(&none, MPI_STATUS_IGNORE) : code;
}

/* Its message is matched first, and received then: no thread can take it in between. */
static int by_threads(const struct shape *s, const long *args, MPI_Comm comm)
{
    MPI_Message message;
    MPI_Request sent = XM_HANDLE(MPI_REQUEST_NULL);
    char       *copy = NULL;

    int code = check(s, args, comm);
    if ((code == MPI_SUCCESS) && s->sends) {
        code = send(s, args, comm, &copy, &sent);
    }
    if (code == MPI_SUCCESS) {
        const long mprobe[] = {args[s->source], args[s->tag], (long)comm, (long)&message,
                               (long)MPI_STATUS_IGNORE};
        code = xm_kept_probe(XM_FN_MPI_Mprobe, 1, mprobe);
    }
    if (code == MPI_SUCCESS) {
        const long mrecv[] = {args[s->receive], args[s->receive + 1], args[s->receive + 2],
                              (long)&message, args[xm_mpi_arguments(s->function) - 1]};
        code = call(s->large ? XM_FN_MPI_Mrecv_c : XM_FN_MPI_Mrecv, mrecv);
    }
    const long wait[] = {(long)&sent, (long)MPI_STATUS_IGNORE};
    int        gone = s->sends ? xm_request_call(XM_FN_MPI_Wait, 1, wait) : MPI_SUCCESS;
    free(copy);
    return (code == MPI_SUCCESS) ? gone : code;
}

bool xm_receive_matches(enum xm_function function, const long *args)
{
    const struct shape *s = shape_of(function);

    return (s != NULL) && ((int)args[s->source] != MPI_PROC_NULL);
}

int xm_receive_among_threads(enum xm_function function, int profiling, const long *args)
{
    const struct shape *s = shape_of(function);
    MPI_Comm            comm = (MPI_Comm)(intptr_t)args[xm_transfer_argument(function, 'c')];
    int                 slot = xm_kept_register(comm, (int)args[s->source], (int)args[s->tag]);
    int                 code;

    if (slot >= 0) {
        code = xm_transfer_call(function, profiling, args);
        xm_kept_unregister(slot);
    } else if (!s->nonblocking) {
        code = by_threads(s, args, comm);
    } else {
        xm_kept_enter();
        code = xm_transfer_call(function, profiling, args);
        xm_kept_leave();
    }
    return code;
}
