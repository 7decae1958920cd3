/* SPDX-License-Identifier: BSD-3-Clause */
/* What xccl keeps on each MPI communicator, made at its first call and freed with it. */
#ifndef XM_COMMS_COMM_H
#define XM_COMMS_COMM_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/setting.h"
#include "comms/slots.h"
#include "comms/vendor_comm.h"
#include "device/device.h"
#include "mpi/mpi.h"

/* What the ranks have agreed on. */
enum xm_comm_state {
    XM_COMM_NEW,      /* no collective on device memory yet */
    XM_COMM_KNOWN,    /* the ranks know of each other what they have (agree.c) */
    XM_COMM_CREATING, /* a vendor communicator is being made */
    XM_COMM_READY,
    XM_COMM_FAILED, /* agreed by all ranks: the vendor's path is not offered */
};

/* Which pairs of ranks a collective has messages between: edges.h. */
enum xm_pairs { XM_PAIRS_NEAR, XM_PAIRS_ALL, XM_PAIRS_KINDS };

/* A non-blocking agreement under way; see agree.c. */
struct xm_checkin {
    enum {
        XM_CHECKIN_NONE,
        XM_CHECKIN_VARIABLES,
        XM_CHECKIN_PEER_INFO,
        XM_CHECKIN_STATUS,
        XM_CHECKIN_JOIN
    } kind;
    bool        digest;   /* VARIABLES and PEER_INFO: by words of all ranks together (digest.h) */
    bool        given_up; /* a wait for it ended early: some rank has broken the communicator */
    MPI_Request request;
    void       *mine;
    void       *all;
};

/* For a rank that passed host memory to a call (suspicion.h). */
struct xm_hunt {
    uint64_t call;
    uint64_t next, pause; /* ns: when it is looked for again */
    int      rank;        /* -1: none so far */
};

struct xm_comm {
    MPI_Comm comm;
    int      rank;
    int      size;
    bool     inter;
    char id[32]; /* "world", "world.5af3107a" where it was spawned, or equal on all ranks once they
                    have agreed */
    bool freed;  /* the program has freed it: only operations under way still use it */
    bool shut;   /* by MPI_Finalize */
    int  users;  /* atomic: MPI's attribute, and operations */

    /* Calls so far, counted alike on all ranks. */
    uint64_t calls;    /* all collectives, in processes that use a device */
    uint64_t group;    /* equal on the ranks of the same processes in the same order */
    uint64_t identity; /* atomic: equal on all ranks, of no other communicator; 0: not known */
    uint64_t derived;  /* communicators that were made of it: derived.h */
    uint64_t persistent_calls; /* persistent collectives that were agreed on */
    uint64_t device_calls;     /* collectives whose memory is a device's by MPI's own symmetry */
    uint64_t vector_calls;     /* gatherv, scatterv, alltoallv */
    bool     vector_on_device; /* has this rank brought device memory to them? */
    bool     tracked;          /* has it seen device memory? equal on all ranks */
    /* Non-blocking ones, since the ranks have slots: vectors.h. */
    struct {
        uint64_t changes; /* odd: kernels have them */
        uint64_t calls;   /* since the last change */
        bool     said;    /* by this rank, that it knows of the next one */
        unsigned on_host; /* atomic: the last ones, on host memory of all ranks */
    } vectors;

    enum xm_comm_state  state;           /* atomic: any thread may ask for it */
    bool                broken;          /* atomic: see xm_comm_break() */
    char                reason[640];     /* of FAILED, or why broken; a message and paths fit */
    xcclResult_t        failure;         /* of the rank that reason names, on all ranks */
    bool                integers_differ; /* the ranks' MPIs reduce integers differently */
    bool                compared;        /* all ranks run with the same variables */
    bool                asks_all;        /* many ranks, of which each has to say all */
    struct xm_checkin   checkin;
    uint64_t            agreement;       /* its number; all of a communicator's are counted */
    uint64_t            agreement_begun; /* operation in which it was posted */
    bool                said_to_know;    /* by this rank, that it knows the result: cutover.h */
    const char         *asks_for;        /* the collective in which ranks agree; NULL: none */
    uint64_t            asks_in;         /* its number, also where it is not counted yet */
    uint64_t            asks_call;       /* the call in which: xm_suspicion_call(); 0: in none */
    uint64_t            asked;           /* atomic: that of the agreement under way, or 0 */
    struct xm_hunt      hunt;
    uint64_t            next_checkin; /* operation that asks again whether the making is over */
    uint64_t            create_begun; /* operation at which it began */
    struct xm_creation *creation;     /* of CREATING (creation.h) */
    double              saved_us;     /* what the vendor's path would have saved so far */
    struct xm_vendor   *vendor;       /* of READY */

    struct xm_setting      setting; /* what tuning tables are chosen by */
    const struct xm_rules *rules; /* atomic: any thread may change the tables; in force here; NULL:
                                     to be asked for (calls/facts.c) */

    /* The direct path (agree.h), joined by all ranks at once. */
    enum { XM_DIRECT_UNKNOWN, XM_DIRECT_JOINED, XM_DIRECT_NEVER } direct_state;
    struct xm_direct *direct;
    bool              direct_full; /* there was no room the last time */
    bool              doubled;    /* some ranks share a device, and kernels of our own serve them */
    uint64_t          next_join;  /* operation that asks again */
    uint64_t          join_begun; /* operation at which it asked first, or again after leaving */
    uint64_t          saving_us;  /* of the operation that asks, by this rank's data */
    uint64_t          worth_us;   /* the greatest of the ranks' */
    char              direct_reason[160];

    /* The ranks' slots on their boards, where all are on one node (slots.h); else NULL. */
    struct xm_slots *slots;
    struct xm_slot  *first;         /* the first rank's, where this rank has not got them all */
    bool             placed;        /* it is known whether all are on one node */
    bool             neighbours;    /* they are, and all have a slot */
    bool             one_node;      /* all are, but have not agreed on that yet (node.h) */
    bool             slots_agreed;  /* all ranks have them all */
    int              slot;          /* own one, or -1 */
    uint64_t         ordered_calls; /* operations that others may have to wait for: order.h */
    uint64_t         order_id;      /* equal on all ranks, and of no other communicator */

    /* Persistent collectives: could any rank use a device? Else they are MPI's. Agreed on once. */
    enum { XM_PERSISTENT_UNKNOWN, XM_PERSISTENT_OURS, XM_PERSISTENT_MPIS } persistent;

    /* Of its neighbourhood collectives, and of MPI_Alltoallw: calls/pairwise.h. */
    struct {
        struct xm_edges *edges;     /* NULL: MPI carries them */
        uint64_t         calls;     /* of those that block, meanwhile */
        bool             on_device; /* has this rank brought device memory to them? */
    } pairs[XM_PAIRS_KINDS];

    /* Of one rank, whose persistent requests have no communicators of their own: threads may start
     * any of these at the same time, and one after the other chooses a path. */
    pthread_mutex_t alone;

    /* Of a persistent request: when one start is completed, all ranks have come to it. */
    bool lockstep;
    /* Of such a request whose ranks have counts of their own: what they agreed on (calls/facts.c).
     */
    struct {
        bool     known, on_device;
        int      mem; /* enum xm_mem */
        uint64_t bytes, largest;
    } starts;

    /* Nothing is agreed on: MPI duplicates it or did, or its ranks have unlike memory. */
    bool quiet;

    struct xm_comm *next; /* all of the process, for xm_comms_finalize() */
    struct xm_comm *previous;
};

/*
 * What is kept for comm; made at the first call (local). Not for MPI_COMM_NULL. While the
 * communicator is being freed (in a delete callback of the program's) nothing can be kept on it:
 * then *xm_p lives until xm_comm_unuse() only.
 */
xcclResult_t xm_comm_get(MPI_Comm comm, struct xm_comm **xm_p);
/* The same if there is any, else NULL. */
struct xm_comm *xm_comm_known(MPI_Comm comm);
void            xm_comm_use(struct xm_comm *xm);
void            xm_comm_unuse(struct xm_comm *xm);
/* The end of what it has on the boards of its ranks' processes. */
void xm_comm_leave_slots(struct xm_comm *xm);

/*
 * Around MPI_Comm_free and MPI_Comm_disconnect: attributes set in between would stay for ever. The
 * frame is the caller's; a delete callback may free another communicator in between.
 */
struct xm_freeing {
    MPI_Comm                 comm;
    const struct xm_freeing *outer;
};
void xm_comm_freeing(struct xm_freeing *frame, MPI_Comm comm);
void xm_comm_freed(const struct xm_freeing *frame);

/*
 * Say on the board that a collective comes, and count it. memory: what this rank passes. Returns
 * its number on the communicator's slots, 0 where there are none.
 */
uint64_t xm_comm_call(struct xm_comm *xm, enum xm_call_memory memory, enum xm_coll coll);

/* The copy function of an attribute that duplicates do not have, as MPI_COMM_NULL_COPY_FN: that is
 * a symbol of MPI's, and we are linked to none. */
int xm_comm_not_copied(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag);

/* Other rules are in force: each communicator asks for its own anew. */
void xm_comms_forget_rules(void);

/*
 * Give up an operation that will not complete: from here on the communicator is broken on this
 * rank, and its operations on a device return errors. The other ranks of a node are told. They may
 * not have failed, and go on to agree with this one: so it takes part in agreements as before.
 */
void               xm_comm_break(struct xm_comm *xm, const char *reason);
bool               xm_comm_is_broken(const struct xm_comm *xm);
enum xm_comm_state xm_comm_state_now(const struct xm_comm *xm);
/* The next one, as the ranks have agreed, with its reason or NULL; why it is broken stays. */
void xm_comm_enter(struct xm_comm *xm, enum xm_comm_state state, const char *reason);
/* The vendor communicator that all ranks have from now on; one that is broken lets go of it. */
void xm_comm_keep_vendor(struct xm_comm *xm, struct xm_vendor *vendor);
/* That of a READY one, to be released; NULL: another thread broke the communicator. */
struct xm_vendor *xm_comm_hold_vendor(struct xm_comm *xm);

/* In MPI_Finalize, before PMPI's: no vendor communicator is used from here on. */
void xm_comms_finalize(void);
/* Before the last session of MPI's ends: those that are left are used no more. */
void xm_comms_shut(void);
/* MPI has ended with its last session, and our attribute's key with it. */
void xm_comms_forget(void);
/* Is MPI_Finalize under way, or over? */
bool xm_comms_finalized(void);

#endif
