/* SPDX-License-Identifier: BSD-3-Clause */
/* An operation, which is one call on its way, and the paths that can carry it. */
#ifndef XM_PATHS_PATH_H
#define XM_PATHS_PATH_H

#include "base/attended.h"
#include "comms/comm.h"
#include "comms/order.h"
#include "data/copy.h"
#include "data/kernels.h"
#include "data/outstanding.h"
#include "data/reduction.h"
#include "decide/decide.h"

struct xm_path;
struct xm_direct;
struct xm_standing;
struct xm_placeholder;

/* A buffer as a path on the device takes it: packed or plain memory of that device. */
struct xm_usable {
    const struct xm_buffer *buffer;
    char                   *ptr;    /* device memory */
    bool                    packed; /* ptr is a packed copy of the buffer, */
    bool                    filled; /* and the copy has been enqueued */
    size_t                 *counts; /* of each block, in bytes; NULL where there is one block */
    size_t                 *displs; /* of each block, in bytes from ptr */
};

/* One of the streams that share the pieces of a pipeline; event NULL: it is not in use. */
enum { XM_PIPES = 2 };
struct xm_pipe {
    xcclStream_t            stream;
    void                   *event;
    struct xm_kernel_series series;
};

/* substitute.h; made: there is one. */
struct xm_substitute {
    bool         made;
    MPI_Datatype type;
    MPI_Op       op;
};

/* LAUNCHED: enqueued, or failed with result. LOST: it failed while a thread was launching it. */
enum xm_launched { XM_LAUNCH_WAITS, XM_LAUNCHED, XM_LAUNCH_LOST };

struct xm_op {
    struct xm_call              call;
    struct xm_comm             *comm; /* NULL: of no communicator (reduce_local) */
    struct xm_buffers           buffers;
    struct xm_facts             facts;
    uint64_t                    largest_bytes; /* of any block, where ranks have been asked */
    struct xm_reduction         reduction;     /* valid for reductions, unless: */
    const char                 *no_reduction;  /* why they are MPI's alone (a static text) */
    const struct xc_device_ops *dev;           /* runtime of this rank; NULL if none is active */
    int                         device;        /* that the operation runs on; -1: none */
    bool                        ordered; /* nothing can be left of the default stream's copies */
    bool                        blocking;
    bool                        waits;   /* on the device for others: counted as outstanding */
    bool                        entered; /* the device is current until the end: no need to ask */
    uint64_t                    number;  /* on the communicator's slots; 0: there are none */
    uint64_t look_at_ns;      /* when it is looked for ranks that never come; 0: not yet */
    uint64_t place;           /* among all calls of the communicator */
    bool     symmetric;       /* all ranks are to pass a device's memory to it */
    bool     invalid;         /* MPI is to refuse an argument of this rank's */
    bool     vector;          /* one of the communicator's vector_calls */
    bool     pairwise;        /* one of its calls of some pairs, which MPI or messages carry */
    bool     concerns_device; /* of all ranks alike */
    bool     counts_later;    /* the ranks show their counts when all have come; and have so: */
    bool     counts_shown;

    /* ops/handles.c: while it has not begun. */
    struct xm_op *handles_next;
    bool          keeps_handles;

    /* How it is carried. */
    const struct xm_path *path;
    enum {
        XM_STAGE_NEW,
        XM_STAGE_MEET, /* until all have shown their buffers */
        XM_STAGE_COME, /* until all have come, on a device that they share */
        XM_STAGE_WORK,
        XM_STAGE_PART,
        XM_STAGE_COPY,
        XM_STAGE_OVER
    } stage;
    struct xm_scratch   scratch;
    struct xm_copier    copier;
    void               *event; /* what is waited for on the device; NULL: all that the stream has */
    MPI_Request         inner; /* staged: MPI's own request */
    void               *rooms[XM_MAX_ROOMS];       /* of call */
    char               *send_span, *recv_span;     /* staged: host memory of each buffer */
    void               *send_arrays, *recv_arrays; /* and arguments of MPI's, if that is bytes */
    struct xm_standing *standing;  /* staged: what to start instead, or NULL (staged.h) */
    xcclResult_t        missed;    /* staged: why MPI has been called without this rank's data */
    bool                no_memory; /* staged: nor with memory for it, but with these: */
    struct xm_placeholder *placeholders; /* NULL: none, or those of the persistent request */
    struct xm_substitute   substitute;   /* likewise */

    /* messages (calls/pairwise.c) */
    MPI_Request *requests; /* of each edge; NULL: nothing has begun */
    MPI_Status  *statuses;
    int          num_requests;

    /* ccl and direct */
    void            *saved;  /* what was current before, of one that is entered */
    int              home;   /* device that it runs on */
    xcclStream_t     stream; /* and where */
    struct xm_turn   turn;   /* with several communicators in the process */
    struct xm_usable send, recv;
    uint64_t         broken_ns; /* when it was first seen that another rank gave up; or 0 */

    /* direct */
    struct xm_direct     *direct;
    uint64_t              block_bytes; /* what goes from one rank to another, at most */
    uint32_t              direct_what; /* reduction, or XK_NO_REDUCTION */
    uint32_t              rounds;      /* that it takes; 0: it is one exchange, or mapped */
    uint32_t              instead; /* of a mapped one that is not blocking: as rounds, if need be */
    uint32_t              number_there;    /* of the operation, or of its last round */
    bool                  told;            /* a kernel that lingers does it */
    bool                  again;           /* it has left instead: another is to be launched */
    bool                  keeps_turn;      /* of the order, until it is known which */
    bool                  mapped;          /* on the ranks' own buffers: shown as number `show` */
    uint64_t              show;            /* 0: not yet */
    bool                  meets;           /* the kernels do, and not the hosts */
    bool                  rested;          /* what came before it on the device is over */
    bool                  by_copies;       /* copy engines do it, and what is under way: */
    void                 *pushed;          /* the event of what goes to the other rank, or NULL */
    struct xm_kernel_copy kept;            /* and what stays here */
    struct xm_pipe        pipes[XM_PIPES]; /* and what is fetched, added and brought */
    bool                  hidden;          /* this rank's buffers are not shown */
    bool                  pinned;          /* it relies on what is mapped */
    bool                  said_mapped;     /* whether this rank has mapped all, and */
    bool                  all_mapped;      /* so have all ranks */
    uint64_t              unmaps_ns;       /* since then something is to be unmapped first; or 0 */
    const char           *obstacle;   /* why this path does not carry it (a static text), or NULL */
    bool                  in_trouble; /* a checked sum may have left its range, on some rank */
    const struct xm_path *otherwise;  /* if so, or if the buffers cannot be mapped */
    char                 *apart; /* a result that may not be written over its input yet, or NULL */
    size_t                apart_bytes;

    /* ccl */
    struct xm_vendor *vendor;
    struct xm_launch  launch;
    bool              may_block, in_turn;
    int               launched; /* atomic, enum xm_launched */
    bool              lost;     /* that is LOST: what it holds stays held */
    bool              taken;    /* from the direct path, whose path it has */
    unsigned          polls;

    /* How it ended. */
    xcclResult_t result;
    int          code;   /* MPI's, for the program */
    bool         raised; /* of one with a request: a handler has had that code */

    /* ops/ */
    struct xm_op      *next, *previous;
    const void        *claimer; /* atomic: the thread that progresses it, or NULL (pending.h) */
    const void        *claim_frame;
    uint64_t           claim;
    uint64_t           record;   /* number, for the history; 0: none */
    MPI_Request        request;  /* the program's */
    int                done;     /* atomic: MPI knows that it is over */
    int                holders;  /* atomic: of this object, once it has a request */
    struct xc_attended attended; /* for XCCL_TIMEOUT, of one that is not waited for */

    int      observed;    /* row of the profile + 1, of one with a request; 0: not counted */
    uint64_t observed_ns; /* when it started */

    char detail[512]; /* of a failure; last, since it is not cleared */
};

/*
 * A way to carry operations. start: what has to be done in the order of the calls; afterwards
 * progress is called until it returns something else than xcclInProgress. It never waits for other
 * ranks. A failed one leaves op->detail. release: give back what the operation holds, after it
 * ended; failed: the device may still use its memory, which is lost rather than used again.
 */
struct xm_path {
    const char *name; /* "ccl": as xccl_mpi_last_path() and messages say it */
    xcclResult_t (*start)(struct xm_op *op);
    xcclResult_t (*progress)(struct xm_op *op);
    void (*release)(struct xm_op *op, bool failed);
    bool unheard; /* no handler has heard of the MPI code that it ends with */
};

/* It is about to be enqueued, and is over. */
static inline void xm_op_waits(struct xm_op *op)
{
    if (!op->waits) {
        xm_outstanding_begin();
        op->waits = true;
    }
}

static inline void xm_op_waits_no_more(struct xm_op *op)
{
    if (op->waits) {
        op->waits = false;
        xm_outstanding_end();
    }
}

extern const struct xm_path xm_path_mpi;    /* MPI takes the buffers as they are */
extern const struct xm_path xm_path_staged; /* MPI, on copies in host memory */
extern const struct xm_path xm_path_ccl;    /* the vendor's library */
extern const struct xm_path xm_path_direct; /* kernels of our own */
extern const struct xm_path xm_path_self;   /* a copy on the device, of the only rank */

/* Keep xc_last_detail() of a failure; returns it. */
xcclResult_t xm_op_fail(struct xm_op *op, xcclResult_t res);
/* Of one that waits for other ranks: has one on this node given up the communicator? It is not told
 * by the vendor's library either. xcclInProgress: go on. */
xcclResult_t xm_op_look_for_broken(struct xm_op *op);

#endif
