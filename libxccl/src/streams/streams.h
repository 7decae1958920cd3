/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stream-ordered calls (include/xccl/mpix.h): streams of the program's attached to communicators,
 * and operations enqueued on them.
 *
 * An operation of a communicator goes to its stream by one of three ways: a kernel of our own, the
 * vendor's call, or copies around a wait for MPI, which a thread calls meanwhile. None of them
 * waits on the host, so all can be captured into a graph; what a captured operation needs is kept
 * until its communicator is freed.
 */
#ifndef XM_STREAMS_STREAMS_H
#define XM_STREAMS_STREAMS_H

#include <pthread.h>

#include "calls/calls.h"
#include "device/streams.h"
#include "direct/direct.h"

/* MPICH's MPIX_Stream is an int as well, and its null handle has this value. */
enum { XM_STREAM_NULL = 0x3c000000 };

/* A stream object. One without a device belongs to the host, and nothing is enqueued on it. */
struct xm_stream {
    int                         users; /* the program's handle, and communicators */
    const struct xc_device_ops *dev;
    const struct xc_stream_ops *ops;
    int                         device;
    xcclStream_t                handle;
};

struct xm_enqueued;

/* What a communicator with a stream has beyond others. */
struct xm_stream_comm {
    MPI_Comm               comm;
    MPI_Comm               inner; /* of the same ranks, for enqueued collectives alone */
    struct xm_comm        *xm;    /* of inner */
    struct xm_stream      *stream;
    int                    handle;  /* the stream's, for the program */
    int                    without; /* a rank that has attached no device stream, or -1 */
    bool                   threads; /* MPI may be called from the thread of staged operations */
    struct xk_counter     *counter; /* of the direct path; NULL: there is none */
    uint32_t               last;    /* number before 1, and */
    uint32_t               sweep;   /* as in xk_enqueued */
    pthread_mutex_t        lock;    /* of the following */
    struct xm_enqueued    *held, **held_end; /* under way, in the order of the stream */
    struct xm_enqueued    *captured;
    int                    failed; /* MPI's code of an enqueued operation that failed, until told */
    char                   failure[256];
    struct xm_stream_comm *next;
};

/* An operation that needs something until it is over. */
struct xm_enqueued {
    struct xm_op           op; /* a message has its buffer in the place of a collective's */
    struct xm_stream_comm *sc;
    struct xm_enqueued    *next; /* held or captured */
    bool                   captured;
    bool                   stays; /* it holds something until its event has happened */
    void                  *event;

    /* Staged: MPI's part. */
    int (*post)(struct xm_enqueued *e); /* sets request; returns MPI's code */
    void               *room;           /* pinned: the word, then the spans */
    uint32_t           *word;           /* not 0 when MPI's part is over */
    MPI_Request         request;
    MPI_Datatype        types[2]; /* duplicates, as the program may free its own */
    int                 num_types;
    struct xm_enqueued *queued; /* next of the runner's */

    /* A message. */
    bool        message, receives;
    int         peer, tag;
    MPI_Request handle; /* the program's, of those that have one */
    bool        over;   /* with the runner's lock: saved is what MPI said */
    MPI_Status  saved;
    MPI_Status *status; /* the program's, or NULL */
};

/* ---- objects.c ---- */

/* The program's handle of a stream of ours; NULL: it is none. Not counted as a use. */
struct xm_stream *xm_stream_of(int handle);
void              xm_stream_use(struct xm_stream *stream);
void              xm_stream_unuse(struct xm_stream *stream);
int               xm_info_set_hex(const long *args);
int               xm_stream_create(const long *args);
int               xm_stream_free(const long *args);

/* ---- stream_comm.c ---- */

struct xm_stream_comm *xm_stream_comm_of(MPI_Comm comm); /* NULL: it has no stream of ours */
int                    xm_stream_comm_create(MPI_Comm comm, int handle, MPI_Comm *comm_p);
/* Before MPI frees it: its enqueued work is over. Returns MPI's code. */
int xm_stream_comm_freeing(MPI_Comm comm);

/* ---- enqueue.c: what all operations share ---- */

/* A call on the communicator's stream, from xm_enqueue_begin() to xm_enqueue_end(). */
struct xm_enqueue {
    struct xm_stream_comm *sc;
    bool                   capturing;
    int                    mode;
    void                  *saved;
};
/* With the device entered, and free to allocate in a capture. A failure is raised. */
int  xm_enqueue_begin(struct xm_stream_comm *sc, struct xm_enqueue *q);
void xm_enqueue_end(const struct xm_enqueue *q);
/* A new one for this call; NULL: out of memory. */
struct xm_enqueued *xm_enqueued_new(const struct xm_enqueue *q);
void                xm_enqueued_free(struct xm_enqueued *e);
/* All of it is on the stream: keep what it holds as long as it is needed. */
xcclResult_t xm_enqueued_keep(const struct xm_enqueue *q, struct xm_enqueued *e);
/* Free what is not needed any more; all: wait for it. */
void xm_stream_comm_reap(struct xm_stream_comm *sc, bool all);
/* Wait until the oldest operation that holds something is over, and free it. */
xcclResult_t xm_stream_comm_wait_oldest(struct xm_stream_comm *sc);
/* A failure of ours through the communicator's error handler. */
int xm_enqueue_raise(const struct xm_stream_comm *sc, xcclResult_t res);

/* ---- collective.c, carry.c ---- */

int          xm_enqueue_collective(enum xm_coll coll, bool large, const long *args);
xcclResult_t xm_carry_direct(struct xm_enqueued *e);
xcclResult_t xm_carry_ccl(const struct xm_enqueue *q, struct xm_enqueued *e);
/* Make buffers usable on the stream; and back. */
xcclResult_t xm_carry_pack(struct xm_enqueued *e);
xcclResult_t xm_carry_unpack(struct xm_enqueued *e);

/* ---- staged.c ---- */

/* Is it possible at all? A failure says why not. */
xcclResult_t xm_staged_possible(const struct xm_stream_comm *sc);
/* Pinned memory, a type of its own for each that is derived, and the copy of what is sent. */
xcclResult_t xm_staged_prepare(struct xm_enqueued *e);
xcclResult_t xm_staged_start(struct xm_enqueued *e);  /* in stream order: MPI's part begins */
xcclResult_t xm_staged_finish(struct xm_enqueued *e); /* wait for its end, copy what was received */
xcclResult_t xm_staged_collective(struct xm_enqueued *e);

/* ---- runner.c: the thread that calls MPI ---- */

xcclResult_t xm_runner_start(void);
void         xm_runner_stop(void);
/* Begin MPI's part, after those handed over before; from any thread, never waits. */
void xm_runner_hand_over(struct xm_enqueued *e);
/* Where the status of a message goes, now or when it is over. */
void xm_runner_status(struct xm_enqueued *e, MPI_Status *status);

/* ---- message.c ---- */

int xm_enqueue_message(enum xm_function function, const long *args);
/* Of MPIX_Wait_enqueue; the request is the program's no more. */
int  xm_enqueue_wait(MPI_Request *request, MPI_Status *status);
bool xm_enqueue_has_request(MPI_Request request);

/* ---- calls.c ---- */

void xm_streams_init(void);
/* In MPI_Finalize: enqueued work is over, and no more can come. */
void xm_streams_finalize(void);
long xm_stream_call(enum xm_function function, int profiling, const long *args);

#endif
