/* SPDX-License-Identifier: BSD-3-Clause */
/* What is known of the requests that the program holds. */
#ifndef XM_OPS_ENTRY_H
#define XM_OPS_ENTRY_H

#include "ops/op.h"
#include "ops/persistent.h"
#include "ops/request.h"

/*
 * Which transfers a call lets MPI complete before they are looked at, those up to a value; and
 * which one of them is. Simple: xm_transfer_read_looked(); short: xm_transfer_is_mpi_first().
 */
enum xm_first { XM_FIRST_NONE, XM_FIRST_SIMPLE, XM_FIRST_SHORT };

/* Arguments of MPI_Irecv; of them, the communicator. The last is the request. */
enum { XM_SIMPLE_ARGS = 7, XM_SIMPLE_COMM = 5 };

/* What is known of a request that the program holds: an operation's, a transfer's, a receive that
 * is nothing more (entries.c), or, of a persistent collective, none of these. */
struct xm_entry {
    MPI_Request         handle;
    struct xm_entry    *next;
    enum xm_first       first;
    bool                completing; /* in a call in which MPI may: the handle may be another's */
    struct xm_op       *op;
    struct xm_transfer *transfer; /* atomic: a simple receive may become one */
    /* Of a receive that is nothing more: */
    bool             comm_gone; /* the program has freed its communicator */
    long             args[XM_SIMPLE_ARGS];
    struct xm_entry *before, *after;
    /* Of a persistent collective; cleared with that alone: */
    struct xm_call       call;
    xm_persistent_start *start;
    MPI_Request          inner;      /* of the operation started last, or MPI_REQUEST_NULL */
    struct xm_held       held;       /* of the call, freed with it */
    bool                 frees_comm; /* the program has freed the communicator of the call */
    bool                 frees_op, frees_type;
    struct xm_entry     *beside; /* the next persistent collective */
};

static inline bool xm_entry_is_persistent(const struct xm_entry *e)
{
    return (e->first == XM_FIRST_NONE) && (e->op == NULL) && (e->transfer == NULL);
}

static inline bool xm_entry_is_first(const struct xm_entry *e, enum xm_first most)
{
    return (e->first != XM_FIRST_NONE) && (e->first <= most);
}

/* Empty; NULL: out of memory. */
struct xm_entry *xm_entry_new(void);
void             xm_entry_free(struct xm_entry *e);

void xm_entry_add(struct xm_entry *e);
/* NULL: it is none of ours. A simple receive is a transfer from here on. */
struct xm_entry *xm_entry_find(MPI_Request handle);
/* NULL: it is none of ours. It stays what it is. */
struct xm_entry *xm_entry_peek(MPI_Request handle);
/* Is there one of any of these? */
bool xm_entries_any(int count, const MPI_Request *handles);
/* Those of several; nobody else finds those from here on that MPI may complete first. */
void xm_entries_find(int count, const MPI_Request *handles, enum xm_first first,
                     struct xm_entry **entries);
/* MPI has not completed them: they are found again. */
void xm_entries_found_again(int count, struct xm_entry *const *entries);
/* Of a transfer whose request MPI has completed. */
void xm_entry_end(struct xm_entry *e);
/* While MPI may complete a request its handle may become another thread's: out, and back. */
struct xm_entry *xm_entry_take_out(MPI_Request handle);
void             xm_entry_put_back(struct xm_entry *e);
/* A transfer that is over; its request is MPI's alone from here on. */
void xm_entry_forget(struct xm_entry *e);

/*
 * A message to a simple receive has come as a descriptor. May more do so, to some of several? Then
 * their senders may wait for one after the other, which takes long if this process waits in MPI.
 */
void xm_entries_are_offered(void);
bool xm_entries_may_be_offered(void);

/* Number of requests that MPI is not always to see: transfers and persistent collectives. */
int xm_entries_hidden(void);
/* Are all of them simple receives, in a program without threads? */
bool xm_entries_are_simple(void);
/* That of a simple receive, as it is, or NULL. */
struct xm_entry *xm_entry_of_simple(MPI_Request handle);
/* Are there any but those of transfers and simple receives? */
bool xm_entries_of_more(void);
/* MPI has completed a simple receive, with this code. True: that was all of it, and it is gone. */
bool xm_entry_end_simply(struct xm_entry *e, int code);
/* A persistent transfer has another handle from here on. */
void xm_entry_follow(struct xm_entry *e, MPI_Request handle);

/* ---- waits.c ---- */

/* Serve a function that waits for or tests these requests of the program's. */
int xm_wait_or_test(enum xm_function function, int profiling, const long *args, int count,
                    MPI_Request *requests);
/*
 * MPI_Testall of requests of ours, inside an operation that is being moved: no other operation is,
 * since its error might be one that the program's handler leaves by longjmp().
 */
int xm_test_alone(int count, MPI_Request *requests, int *flag, MPI_Status *statuses);

/* ---- statuses.c ---- */

/* MPI_Request_get_status_any, _all and _some of MPI 4.1, whether MPI has them or not. */
int xm_get_statuses(enum xm_function function, const long *args);
/* MPIX_Request_is_complete of MPICH 4.3, likewise: 1 or 0. */
int xm_is_complete(int profiling, MPI_Request request);

#endif
