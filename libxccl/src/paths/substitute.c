/* SPDX-License-Identifier: BSD-3-Clause */
#include "paths/substitute.h"

#include <limits.h>
#include <string.h>

#include "paths/placeholder.h"

bool xm_substitute_for(const struct xm_op *op)
{
    const struct xm_buffers *b = &op->buffers;

    return (strchr(xm_signatures[op->call.coll].kinds, 'o') != NULL) &&
           (xm_op_name(op->call.op) == NULL) &&
           ((b->send.used && b->send.layout.derived) || (b->recv.used && b->recv.layout.derived));
}

/* The result is nobody's. */
static void leave_alone(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)in;
    (void)inout;
    (void)count;
    (void)type;
}

/* MPI chooses its algorithm by the size of an element, and by whether the operator commutes. */
static int make(struct xm_substitute *s, const struct xm_call *call, MPI_Count size)
{
    int commutes = 0;
    int code = xm_pmpi.Op_commutative(call->op, &commutes);

    if (code == MPI_SUCCESS) {
        code = xm_pmpi.Op_create(leave_alone, commutes, &s->op);
    }
    if (code != MPI_SUCCESS) {
        return code;
    }
    code = xm_pmpi.Type_contiguous((int)size, XM_HANDLE(MPI_BYTE), &s->type);
    if (code == MPI_SUCCESS) {
        code = xm_pmpi.Type_commit(&s->type);
        if (code != MPI_SUCCESS) {
            xm_pmpi.Type_free(&s->type);
        }
    }
    if (code != MPI_SUCCESS) {
        xm_pmpi.Op_free(&s->op);
    }
    return code;
}

static void put(struct xm_call *call, const struct xm_substitute *s)
{
    const char *kinds = xm_signatures[call->coll].kinds;

    for (int i = 0; kinds[i] != '\0'; i++) {
        call->args[i] = (kinds[i] == 't')   ? (long)(intptr_t)s->type
                        : (kinds[i] == 'o') ? (long)(intptr_t)s->op
                                            : call->args[i];
    }
}

static xcclResult_t take(struct xm_op *op, const struct xm_buffer *b, char **span_p)
{
    void        *span = NULL;
    xcclResult_t res =
        b->used ? xm_placeholder_take(&op->placeholders, (size_t)b->bytes, &span) : xcclSuccess;

    *span_p = span;
    return res;
}

xcclResult_t xm_substitute_take(struct xm_op *op, struct xm_call *call)
{
    struct xm_buffers *b = &op->buffers;
    MPI_Count          size = b->send.used ? b->send.layout.size : b->recv.layout.size;

    xcclResult_t res = take(op, &b->send, &op->send_span);
    if (res == xcclSuccess) {
        res = take(op, &b->recv, &op->recv_span);
    }
    if (res != xcclSuccess) {
        return res;
    }
    if ((size > INT_MAX) || (make(&op->substitute, call, size) != MPI_SUCCESS)) {
        return xc_fail(xcclInternalError, "MPI made no datatype or operation for a rank that has "
                                          "no data");
    }
    op->substitute.made = true;
    put(call, &op->substitute);
    return xcclSuccess;
}

void xm_substitute_free(struct xm_substitute *substitute)
{
    if (substitute->made) {
        substitute->made = false;
        xm_pmpi.Op_free(&substitute->op);
        xm_pmpi.Type_free(&substitute->type);
    }
}
