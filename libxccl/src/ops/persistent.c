/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests of persistent collectives, and what they need until they are freed. The program may free
 * its communicator, its operation and its datatypes long before. Of most datatypes the request has
 * its own. The communicator, the operation, and the datatype that an operation is told, are freed
 * with the last request that needs them; or later, where enqueued calls need them (handles.h).
 */
#include "ops/persistent.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "comms/comm.h"
#include "ops/entry.h"
#include "ops/freed.h"
#include "ops/handles.h"
#include "paths/staged.h"

static pthread_mutex_t  lock = PTHREAD_MUTEX_INITIALIZER;
static struct xm_entry *all;
static int              count; /* atomic */
static int              apart; /* atomic: with communicators of their own */

/* What MPI may still read stays: after a start that was given up. */
static void free_arguments(struct xm_held *held)
{
    if ((held->standing != NULL) && held->standing->lost) {
        return;
    }
    for (int side = 0; side < 2; side++) {
        for (int i = 0; i < held->length[side]; i++) {
            if (held->own[side][i]) {
                xm_pmpi.Type_free(&held->types[side][i]);
            }
        }
        free(held->types[side]);
        free(held->own[side]);
        held->length[side] = 0;
    }
    free(held->arrays);
}

void xm_held_free(struct xm_held *held)
{
    free_arguments(held);
    if (held->comm != XM_HANDLE(MPI_COMM_NULL)) {
        xm_freed_free(&held->comm, 1, false); /* a tool does not know it */
    }
    xm_standing_free(held->standing);
}

int xm_request_persistent(const struct xm_call *call, struct xm_held *held,
                          xm_persistent_start *start)
{
    struct xm_entry *e = xm_entry_new();

    if (e == NULL) {
        xm_held_free(held);
        return xm_raise(call->comm, xcclSystemError, "out of memory for a request");
    }
    /* To a rank: when one to nobody is freed, MPICH 4.0 forgets persistent collectives. */
    int code = xm_pmpi.Send_init(NULL, 0, XM_HANDLE(MPI_BYTE), 0, 0, call->comm, &e->handle);
    if (code != MPI_SUCCESS) {
        xm_held_free(held);
        xm_entry_free(e);
        return code;
    }
    e->call = *call;
    e->held = *held;
    e->start = start;
    e->inner = XM_HANDLE(MPI_REQUEST_NULL);
    pthread_mutex_lock(&lock);
    e->beside = all;
    all = e;
    pthread_mutex_unlock(&lock);
    __atomic_add_fetch(&count, 1, __ATOMIC_RELEASE);
    __atomic_add_fetch(&apart, (held->comm != XM_HANDLE(MPI_COMM_NULL)), __ATOMIC_RELAXED);
    xm_entry_add(e);
    *call->request = e->handle;
    return MPI_SUCCESS;
}

int xm_persistent_requests(void)
{
    return __atomic_load_n(&count, __ATOMIC_ACQUIRE);
}

int xm_persistent_apart(void)
{
    return __atomic_load_n(&apart, __ATOMIC_RELAXED);
}

/*
 * Open MPI 4.1 does not know whose the requests of collectives are, and raises their errors on
 * MPI_COMM_WORLD; from Open MPI 5 on they are raised on the communicator, as MPICH does.
 */
static __thread bool raised;

static void note(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    (void)code;
    raised = true;
}

int xm_persistent_hush(MPI_Comm comm)
{
    MPI_Errhandler handler;

    if (!XM_OPENMPI) { /* a call of MPICH 4.3 says that it went well, once a handler has heard */
        return xm_pmpi.Comm_set_errhandler(comm, XM_HANDLE(MPI_ERRORS_RETURN));
    }
    int code = xm_pmpi.Comm_create_errhandler(note, &handler);
    if (code == MPI_SUCCESS) {
        code = xm_pmpi.Comm_set_errhandler(comm, handler);
        xm_pmpi.Errhandler_free(&handler);
    }
    return code;
}

void xm_persistent_listen(void)
{
    raised = false;
}

bool xm_persistent_is_unheard(void)
{
    return !XM_OPENMPI || raised;
}

MPI_Comm xm_persistent_comm_of(MPI_Comm comm)
{
    MPI_Comm found = comm;

    pthread_mutex_lock(&lock);
    for (const struct xm_entry *e = all; (e != NULL) && (found == comm); e = e->beside) {
        if (e->held.comm == comm) {
            found = e->call.comm;
        }
    }
    pthread_mutex_unlock(&lock);
    return found;
}

static bool reduces(const struct xm_entry *e)
{
    return strchr(xm_signatures[e->call.coll].kinds, 'o') != NULL;
}

static bool uses_op(const struct xm_entry *e, MPI_Op op)
{
    return reduces(e) && (e->call.op == op);
}

static bool uses_type(const struct xm_entry *e, MPI_Datatype type)
{
    return reduces(e) && (e->call.sendtype == type);
}

bool xm_persistent_keeps_comm(MPI_Comm comm)
{
    bool found = false;

    pthread_mutex_lock(&lock);
    for (struct xm_entry *e = all; e != NULL; e = e->beside) {
        if (e->call.comm == comm) {
            e->frees_comm = found = true;
        }
    }
    pthread_mutex_unlock(&lock);
    return found;
}

bool xm_persistent_keeps_op(MPI_Op op)
{
    bool found = false;

    pthread_mutex_lock(&lock);
    for (struct xm_entry *e = all; e != NULL; e = e->beside) {
        if (uses_op(e, op)) {
            e->frees_op = found = true;
        }
    }
    pthread_mutex_unlock(&lock);
    return found;
}

bool xm_persistent_keeps_type(MPI_Datatype type)
{
    bool found = false;

    pthread_mutex_lock(&lock);
    for (struct xm_entry *e = all; e != NULL; e = e->beside) {
        if (uses_type(e, type)) {
            e->frees_type = found = true;
        }
    }
    pthread_mutex_unlock(&lock);
    return found;
}

/* Take it out of the list; what no other one needs any more stays said of it. */
static void leave(struct xm_entry *gone)
{
    struct xm_entry **at = &all;

    pthread_mutex_lock(&lock);
    while (*at != gone) {
        at = &(*at)->beside;
    }
    *at = gone->beside;
    for (struct xm_entry *e = all; e != NULL; e = e->beside) {
        gone->frees_comm = gone->frees_comm && (e->call.comm != gone->call.comm);
        gone->frees_op = gone->frees_op && !uses_op(e, gone->call.op);
        gone->frees_type = gone->frees_type && !uses_type(e, gone->call.sendtype);
    }
    pthread_mutex_unlock(&lock);
    __atomic_sub_fetch(&count, 1, __ATOMIC_RELEASE);
}

void xm_persistent_free(struct xm_entry *e)
{
    MPI_Comm comm = e->call.comm;

    if (e->inner != XM_HANDLE(MPI_REQUEST_NULL)) {
        xm_pmpi.Request_free(&e->inner);
    }
    leave(e);
    __atomic_sub_fetch(&apart, (e->held.comm != XM_HANDLE(MPI_COMM_NULL)), __ATOMIC_RELAXED);
    xm_held_free(&e->held);
    if (e->frees_op && !xm_handles_keep_op(e->call.op)) {
        xm_pmpi.Op_free(&e->call.op);
    }
    if (e->frees_type && !xm_handles_keep_type(e->call.sendtype)) {
        xm_pmpi.Type_free(&e->call.sendtype);
    }
    if (e->frees_comm) {
        xm_freed_free(&comm, 0, false);
    }
}
