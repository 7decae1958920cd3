/* SPDX-License-Identifier: BSD-3-Clause */
/* What a communicator with a stream has beyond others. */
#ifndef XM_STREAMS_STREAM_COMM_H
#define XM_STREAMS_STREAM_COMM_H

#include <pthread.h>

#include "calls/calls.h"
#include "data/outstanding.h"
#include "direct/direct.h"
#include "streams/objects.h"

struct xm_enqueued;

/* In the numbers by which ranks tell of a miss: of a collective that MPI does not carry. */
#define XM_MISS_CARRIED ((uint64_t)1 << 46)

struct xm_stream_comm {
    MPI_Comm            comm;
    MPI_Comm            inner; /* of the same ranks, for enqueued collectives alone */
    struct xm_comm     *xm;    /* of inner */
    struct xm_stream   *stream;
    int                 handle;  /* the stream's, for the program */
    int                 without; /* a rank that has attached no device stream, or -1 */
    bool                threads; /* MPI may be called from the thread of staged operations */
    struct xm_scratch   reserve; /* of operations that get no pinned memory, one after the other: */
    uint32_t           *word;    /* NULL: nobody waits for this rank */
    uint64_t            begun;   /* staged collectives, by that thread: equal on all ranks */
    uint64_t            carried; /* atomic: others, by the program's calls; equal on all ranks */
    uint64_t            looked;  /* atomic: so many misses were said when they were all looked at */
    struct xm_enqueued *spare;   /* atomic: for a call that gets no memory; NULL: one has it */
    struct xk_counter  *counter; /* of the direct path; NULL: there is none */
    bool                soiled;  /* data lies in its memory, where numbers of others may come */
    uint32_t            last;    /* number before 1, and */
    uint32_t            sweep;   /* as in xk_enqueued */
    struct xm_outstanding_stream tracked;
    int                          open;    /* atomic: requests that were not waited for yet */
    bool                         freed;   /* by the program; the list's lock */
    bool                         leaving; /* a thread is about to destroy it; the same */
    pthread_t                    leaver;  /* which one */
    pthread_mutex_t              lock;    /* of the following */
    struct xm_miss {
        uint64_t call;
        int      rank;
    } known[XM_SLOT_MISSES];              /* misses, in their places on the slots */
    struct xm_enqueued *held, **held_end; /* under way, in the order of the stream */
    struct xm_enqueued *captured;
    /* The enqueued operation that failed last, until told; failed is atomic, too. */
    int                    failed;    /* MPI's code */
    xcclResult_t           failed_as; /* a failure of ours; xcclSuccess: MPI's */
    char                   failure[640];
    struct xm_stream_comm *next, *kept; /* of all, and of those that a thread fails to destroy */
};

struct xm_stream_comm *xm_stream_comm_of(MPI_Comm comm); /* NULL: it has no stream of ours */
int                    xm_stream_comm_create(MPI_Comm comm, int handle, MPI_Comm *comm_p);
/*
 * Before MPI frees it: its enqueued work is over. Returns MPI's code. *kept_p: MPI frees it later,
 * since requests on it are open. Where that is no choice, as in MPI_Comm_disconnect, kept_p is NULL
 * and it is an error.
 */
int xm_stream_comm_freeing(MPI_Comm comm, bool *kept_p);
/* Free those that were kept and have no open request now: of a stream, or all whose stream is idle.
 */
void xm_stream_comms_let_go(const struct xm_stream *stream);
/* Device memory of this rank's own, as long as a block of the direct path: for data that nobody
 * wants. */
char *xm_stream_comm_soil(struct xm_stream_comm *sc);
/* A rank of the node may have had no data for a call: that is a failure of the call here, too. */
void xm_stream_comm_look_for_misled(struct xm_stream_comm *sc);
/* What the next call on the communicator tells. why: of a failure of ours. */
void xm_stream_comm_failed(struct xm_stream_comm *sc, int code, xcclResult_t ours, const char *what,
                           const char *why);

#endif
