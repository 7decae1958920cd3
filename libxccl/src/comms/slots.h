/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A communicator's slots on the boards of its ranks, which are all on one node: in its own a rank
 * writes what it does, and it reads those of the others.
 */
#ifndef XM_COMMS_SLOTS_H
#define XM_COMMS_SLOTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/collectives.h"
#include "comms/board.h"
#include "device/device.h"

enum { XM_SLOT_TERMS = 7, XM_SLOT_CALLS = 16, XM_SLOT_SHOWS = 8, XM_SLOT_MISSES = 8 };
enum { XM_SLOT_RANKS = 8 }; /* most that serve a call on each other's memory */
enum { XM_SLOT_WHY = 160 };

/* What memory a call was made with; XM_ON_ANY: its ranks need not agree on that. */
enum xm_call_memory { XM_ON_ANY, XM_ON_HOST, XM_ON_DEVICE };

/* A buffer as other processes can map it. */
struct xm_shown {
    uint64_t      nonce; /* of the process */
    uint64_t      offset, bytes;
    struct xc_ipc ipc;
    uint32_t      state; /* enum xm_shown_state */
    uint32_t      ready; /* nothing of this rank's that the device still does comes before */
};
/* NOT: it cannot be mapped. ODD: it lies so that kernels do not take it, this time. */
enum xm_shown_state { XM_SHOWN_NOT, XM_SHOWN_ODD, XM_SHOWN_USABLE, XM_SHOWN_NONE };

/* A call that a rank has come to. All atomic: later ones replace it while others read. */
struct xm_seen_call {
    uint64_t number; /* written first, as XM_SLOT_REPLACED, and last */
    uint32_t memory, coll;
};
#define XM_SLOT_REPLACED UINT64_MAX

/* Have all others had this rank's buffers mapped before? NOTHING: it shows none. */
enum xm_known { XM_UNKNOWN, XM_KNOWN, XM_NOTHING };

/* What a rank shows for one call. */
struct xm_show {
    struct xm_shown buffers[2];          /* in and out */
    uint32_t        losses;              /* mappings that this rank has lost, ever */
    uint32_t        known;               /* enum xm_known */
    uint32_t        held[XM_SLOT_RANKS]; /* and each rank, when it had KNOWN ones mapped */
    /* Where its block of each rank lies in the buffer that others use, and how long it is: of
     * collectives whose ranks have counts of their own. Bytes. */
    uint64_t at[XM_SLOT_RANKS], length[XM_SLOT_RANKS];
    uint32_t on_device; /* some of this rank's data is memory of a device */
};

/* One communicator's place on the board of one of its ranks. */
struct xm_slot {
    /* Call number n at n % XM_SLOT_CALLS. */
    struct xm_seen_call calls[XM_SLOT_CALLS];
    /* Agreement number n at n % 2: two are enough, since nobody begins n + 2 before all ended n. */
    struct {
        uint64_t number; /* atomic */
        int64_t  terms[XM_SLOT_TERMS];
    } agreements[2];
    /* Of a call that the ranks serve on each other's memory: number n at n % XM_SLOT_SHOWS. */
    struct {
        uint64_t       number; /* atomic */
        struct xm_show show;
    } shows[XM_SLOT_SHOWS];
    /* And whether this rank has mapped what it takes, and will not lose it before the call. */
    struct {
        uint64_t number; /* atomic */
        uint32_t mapped, losses;
    } maps[XM_SLOT_SHOWS];
    uint64_t read;    /* atomic: up to there this rank has looked at all of them */
    uint64_t ended;   /* atomic: the last of these calls whose work this rank has seen done: twice
                       * its number, and 1 more if it has to be done over */
    uint64_t arrived; /* atomic: operations of the vendor's path that this rank has come to */
    uint64_t direct;  /* atomic: the last of these that it enqueued without waiting for its turn */
    uint64_t ordered; /* atomic, first rank's: those that have their place in every queue */
    uint64_t cutovers[2]; /* atomic, first rank's: cutover.h */
    uint64_t vectors[2];  /* atomic, first rank's: vectors.h */
    uint64_t misses;      /* atomic, first rank's: counts those of xm_slots_say_missed() */
    uint64_t missed[XM_SLOT_MISSES]; /* atomic, first rank's: the last of them */
    uint64_t said;                   /* atomic, first rank's: how many have been written there */
    uint64_t broken;                 /* atomic, first rank's: 1 + who gave up first, or 0 */
    char     why[XM_SLOT_WHY];       /* this rank gave up; written before broken, and once */
    uint64_t left;                   /* atomic: ranks that will not look at this slot again */
} __attribute__((aligned(64)));

/* A communicator's slots, in rank order. */
struct xm_slots {
    int               count, rank;
    bool              threads; /* may several of some rank call MPI at once? */
    struct xm_slot   *mine;
    struct xm_slot  **of;     /* of each rank */
    struct xm_board **boards; /* of each rank */
    uint64_t          calls, agreements, shows;
    bool              looked[XM_SLOT_SHOWS]; /* at those of call n: at n % XM_SLOT_SHOWS */
    /* order.c: the first operation that has not come yet, or 0; and the last that is to come. */
    uint64_t coming, last_coming;
};

/* The slots of ranks that are all on this node; NULL if one cannot be reached. */
struct xm_slots *xm_slots_open(const struct xm_board_address *addresses, int count, int rank);
void             xm_slots_close(struct xm_slots *slots);
/*
 * This rank will not look at any of them again; before they are closed. agreed: all ranks have
 * them. If not, only the first rank's waits for that: another's may be of another communicator by
 * now.
 */
void xm_slots_leave(struct xm_slots *slots, bool agreed);

/* Say that call number slots->calls + 1 comes, and count it. */
void xm_slots_call(struct xm_slots *slots, enum xm_call_memory memory, enum xm_coll coll);

/*
 * Sum up terms over the ranks, but of the last one take the largest; they wait for each other, and
 * MPI progresses meanwhile. A rank that has not come within XCCL_TIMEOUT, or -1.
 */
int xm_slots_agree(struct xm_slots *slots, const int64_t *mine, int64_t *all);

/* Is there room to show more? Not while a rank has still to look at what was shown there before. */
bool xm_slots_may_show(const struct xm_slots *slots);
/* Then: show this rank's buffers, as call number slots->shows + 1, and count it. */
uint64_t xm_slots_show(struct xm_slots *slots, const struct xm_show *show);
/* What a rank shows in that call; NULL: it has not come there. */
const struct xm_show *xm_slots_shown(const struct xm_slots *slots, uint64_t number, int rank);
/* Say, once, whether this rank has mapped what all show in that call. */
void xm_slots_say_mapped(struct xm_slots *slots, uint64_t number, bool mapped, uint32_t losses);
/* False: not all have said. *all_p: all have it. */
bool xm_slots_mapped(const struct xm_slots *slots, uint64_t number, bool *all_p,
                     uint32_t losses[XM_SLOT_RANKS]);
/* This rank looks at those of that call no more. In any order, by any thread. */
void xm_slots_read(struct xm_slots *slots, uint64_t number);
/*
 * Say that this rank's part of that call is done, and whether it has to be done over; and have all
 * said so? Then *trouble_p is set if it has to be for any.
 */
void xm_slots_end(struct xm_slots *slots, uint64_t number, bool trouble);
bool xm_slots_ended(const struct xm_slots *slots, uint64_t number, bool *trouble_p);

/*
 * A rank that made this call with host memory, or on another collective, while this one made it
 * with a device's; -1: none that is known of.
 */
int xm_slots_mismatch(const struct xm_slots *slots, uint64_t call, enum xm_coll coll,
                      enum xm_coll *other_p);

/*
 * Say that this rank takes part in this call without its data, before it does; and a rank that has
 * said so, or -1.
 */
void xm_slots_say_missed(struct xm_slots *slots, uint64_t call);
int  xm_slots_missed(const struct xm_slots *slots, uint64_t call);
/* How often it was said; and the i-th of the last XM_SLOT_MISSES, or -1: the rank, and its call. */
uint64_t xm_slots_misses(const struct xm_slots *slots);
int      xm_slots_miss(const struct xm_slots *slots, int i, uint64_t *call_p);

/*
 * Say that this rank completes no call of the communicator any more, and why; one thread at a time.
 * And the first that said so, with its reason, or -1.
 */
void xm_slots_break(struct xm_slots *slots, const char *why);
int  xm_slots_broken(const struct xm_slots *slots, const char **why_p);

/* The first rank, from this one on, that has not made this call; -1: all have. */
int xm_slots_absent(const struct xm_slots *slots, uint64_t call, int from);

#endif
