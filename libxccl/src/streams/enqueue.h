/* SPDX-License-Identifier: BSD-3-Clause */
/* What all enqueued operations share. */
#ifndef XM_STREAMS_ENQUEUE_H
#define XM_STREAMS_ENQUEUE_H

#include "streams/stream_comm.h"

/* An operation that needs something until it is over. */
struct xm_enqueued {
    struct xm_op           op; /* a message has its buffer in the place of a collective's */
    struct xm_stream_comm *sc;
    struct xm_enqueued    *next; /* held or captured */
    bool                   captured;
    bool                   stays; /* it holds something until its event has happened */
    bool                   spare; /* it goes back to the communicator */
    void                  *event;
    /* op.missed: why this rank's own data has no part in it. It takes part all the same, since the
     * streams of the others would wait for it for ever, and then the call is an error here. */
    bool misleads; /* and others have received something else */

    /* Staged: MPI's part. */
    int (*post)(struct xm_enqueued *e); /* sets request; returns MPI's code */
    void               *room;           /* pinned: two words, then the spans */
    uint32_t           *word;           /* not 0 when MPI's part is over; [1]: runner.h */
    MPI_Request         request;
    uint64_t            number; /* by which ranks tell of a miss, of each launch anew */
    struct xm_enqueued *queued; /* next of the runner's */

    /* A message. */
    bool        message, receives;
    int         peer, tag;
    MPI_Request handle; /* the program's, of those that have one */
    bool        over;   /* with the runner's lock: saved is what MPI said */
    MPI_Status  saved;
    MPI_Status *status; /* the program's, or NULL */
};

/* A call on the communicator's stream, from xm_enqueue_begin() to xm_enqueue_leave(). */
struct xm_enqueue {
    struct xm_stream_comm *sc;
    bool                   capturing;
    bool                   late; /* an operation enqueued before has failed */
    int                    mode;
    void                  *saved;
    /* How the call ends. Told when nothing is left to do: an error handler need not return. */
    MPI_Comm     comm;
    int          code;    /* MPI's */
    xcclResult_t failure; /* of ours; xcclSuccess: MPI's */
    char         detail[sizeof(((struct xm_stream_comm *)0)->failure) + 64];
};
/* With the device entered, and free to allocate in a capture. A failure is raised. */
int xm_enqueue_begin(struct xm_stream_comm *sc, struct xm_enqueue *q);
/* A failure of ours, with xc_last_detail(): xm_enqueue_tell() raises it. */
void xm_enqueue_fail(struct xm_enqueue *q, xcclResult_t res);
/*
 * An operation enqueued before may have failed, and this call has not: then it has that failure.
 * The call is carried out all the same, since other ranks may wait for it.
 */
void xm_enqueue_leave(struct xm_enqueue *q);
/* The call's code, through the communicator's error handler; the last thing that a call does. */
int xm_enqueue_tell(const struct xm_enqueue *q);
/* A new one for this call; NULL: out of memory, and the communicator's spare one is in use. */
struct xm_enqueued *xm_enqueued_new(const struct xm_enqueue *q);
void                xm_enqueued_free(struct xm_enqueued *e);
/* It could not be enqueued. What may be on the stream in part stays until the process ends. */
void xm_enqueued_failed(struct xm_enqueued *e);
/* All of it is on the stream: keep what it holds as long as it is needed. */
xcclResult_t xm_enqueued_keep(const struct xm_enqueue *q, struct xm_enqueued *e);
/* Free what is not needed any more; all: wait for it. */
void xm_stream_comm_reap(struct xm_stream_comm *sc, bool all);
/* Wait until the oldest operation that holds something is over, and free it. */
xcclResult_t xm_stream_comm_wait_oldest(struct xm_stream_comm *sc);

#endif
