/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/handles.h"

#include <pthread.h>
#include <stdlib.h>

#include "data/arrays.h"
#include "data/types.h"

/* What the program has freed and an operation needs. */
struct freed {
    bool          is_op;
    MPI_Op        op;
    MPI_Datatype  type;
    struct freed *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct xm_op   *first, *last; /* in the order of their calls */
static struct freed   *freed;
static int             number; /* atomic: of the operations */

bool xm_handles_any(void)
{
    return __atomic_load_n(&number, __ATOMIC_ACQUIRE) > 0;
}

static bool has_type(const MPI_Datatype *types, const struct xm_buffer *buffer, MPI_Datatype type)
{
    for (int i = 0; (types != NULL) && (i < buffer->blocks); i++) {
        if (types[i] == type) {
            return true;
        }
    }
    return false;
}

static bool needs_type(const struct xm_op *op, MPI_Datatype type)
{
    const struct xm_call *call = &op->call;

    return (call->sendtype == type) || (call->recvtype == type) ||
           has_type(call->sendtypes, &op->buffers.send, type) ||
           has_type(call->recvtypes, &op->buffers.recv, type);
}

static bool needs(const struct xm_op *op, const struct freed *f)
{
    return f->is_op ? (op->call.op == f->op) : needs_type(op, f->type);
}

static bool needed(const struct freed *f)
{
    for (const struct xm_op *op = first; op != NULL; op = op->handles_next) {
        if (needs(op, f)) {
            return true;
        }
    }
    return false;
}

/* Not of memory: then it is freed at once, as the program wants. */
static bool keep(struct freed what)
{
    bool kept = false;

    pthread_mutex_lock(&lock);
    if (needed(&what)) {
        struct freed *f = malloc(sizeof(*f));
        if (f != NULL) {
            *f = what;
            f->next = freed;
            freed = f;
            kept = true;
        }
    }
    pthread_mutex_unlock(&lock);
    return kept;
}

bool xm_handles_keep_op(MPI_Op op)
{
    return keep((struct freed){.is_op = true, .op = op});
}

bool xm_handles_keep_type(MPI_Datatype type)
{
    return keep((struct freed){.type = type});
}

/* MPI's own are never freed, and most programs use nothing else. */
static bool has_own(const struct xm_buffer *buffer)
{
    return (buffer->types != NULL) || buffer->layout.derived;
}

bool xm_handles_keep(struct xm_op *op)
{
    bool named = (op->call.op == 0) || (xm_op_name(op->call.op) != NULL);

    if (!xm_arrays_keep(&op->call, &op->buffers, op->comm->size)) {
        return false;
    }
    if (named && !has_own(&op->buffers.send) && !has_own(&op->buffers.recv)) {
        return true;
    }
    pthread_mutex_lock(&lock);
    op->keeps_handles = true;
    op->handles_next = NULL;
    *((last != NULL) ? &last->handles_next : &first) = op;
    last = op;
    __atomic_add_fetch(&number, 1, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
    return true;
}

static void take_out(struct xm_op *op)
{
    struct xm_op *before = NULL;

    for (struct xm_op *o = first; o != op; o = o->handles_next) {
        before = o;
    }
    *((before != NULL) ? &before->handles_next : &first) = op->handles_next;
    last = (last == op) ? before : last;
}

/* What it was the last one to need. */
static struct freed *take_freed(const struct xm_op *op)
{
    struct freed *taken = NULL;

    for (struct freed **at = &freed; *at != NULL;) {
        struct freed *f = *at;
        if (needs(op, f) && !needed(f)) {
            *at = f->next;
            f->next = taken;
            taken = f;
        } else {
            at = &f->next;
        }
    }
    return taken;
}

void xm_handles_let_go(struct xm_op *op)
{
    if (!op->keeps_handles) {
        return;
    }
    pthread_mutex_lock(&lock);
    op->keeps_handles = false;
    take_out(op);
    __atomic_sub_fetch(&number, 1, __ATOMIC_RELEASE);
    struct freed *f = take_freed(op);
    pthread_mutex_unlock(&lock);
    while (f != NULL) {
        struct freed *next = f->next;
        (void)(f->is_op ? xm_pmpi.Op_free(&f->op) : xm_pmpi.Type_free(&f->type));
        free(f);
        f = next;
    }
}
