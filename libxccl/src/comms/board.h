/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The board: memory of each process that the others on its node can read. On it a rank says without
 * waiting what it is about to do, and ranks agree within a microsecond.
 */
#ifndef XM_COMMS_BOARD_H
#define XM_COMMS_BOARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/collectives.h"
#include "device/device.h"

enum { XM_BOARD_TERMS = 6, XM_BOARD_CALLS = 16 };

/* What memory a call was made with; XM_ON_ANY: its ranks need not agree on that. */
enum xm_board_memory { XM_ON_ANY, XM_ON_HOST, XM_ON_DEVICE };

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
    uint64_t number; /* written first, as XM_BOARD_REPLACED, and last */
    uint32_t memory, coll;
};
#define XM_BOARD_REPLACED UINT64_MAX

/* One communicator's place on the board of one of its ranks. */
struct xm_slot {
    /* Call number n at n % XM_BOARD_CALLS. */
    struct xm_seen_call calls[XM_BOARD_CALLS];
    /* Agreement number n at n % 2: two are enough, since nobody begins n + 2 before all ended n. */
    struct {
        uint64_t number; /* atomic */
        int64_t  terms[XM_BOARD_TERMS];
    } agreements[2];
    /* The buffers, in and out, of a call that the ranks serve on each other's memory. As above. */
    struct {
        uint64_t        number; /* atomic */
        struct xm_shown buffers[2];
    } shows[2];
    uint64_t ended;   /* atomic: the last of these calls whose work this rank has seen done: twice
                       * its number, and 1 more if it has to be done over */
    uint64_t arrived; /* atomic: operations of the vendor's path that this rank has come to */
    uint64_t direct;  /* atomic: the last of these that it enqueued without waiting for its turn */
    uint64_t ordered; /* atomic, first rank's: those that have their place in every queue */
} __attribute__((aligned(64)));

/* How another process finds it. */
struct xm_board_address {
    uint64_t host;          /* this boot of this machine */
    uint64_t nonce;         /* of the process */
    int32_t  pid, fd, slot; /* slot -1: none */
};

/* The board of a process, as seen by this one. */
struct xm_board;

struct xm_mailbox;

/* This process's own; NULL: it cannot have one. */
struct xm_board *xm_board_own(void);
/* That of another process of this node, mapped once and kept; NULL: it cannot be reached. */
struct xm_board *xm_board_open(const struct xm_board_address *address);
void xm_board_address_of(const struct xm_board *board, struct xm_board_address *address_p);
struct xm_mailbox *xm_board_mailbox(struct xm_board *board);

/* Each process of this MPI_COMM_WORLD on this node that has a board, but this one. Milliseconds. */
typedef void xm_board_seen(void *arg, int world_rank, const struct xm_board_address *address);
void         xm_board_each(xm_board_seen *seen, void *arg);

/* A communicator's slots, in rank order. */
struct xm_seats {
    int               count, rank;
    struct xm_slot   *mine;
    struct xm_slot  **slots;  /* of each rank */
    struct xm_board **boards; /* of each rank */
    uint64_t          calls, agreements, shows;
};

/* Take a slot for a communicator and say where it is; without a board the address says so. */
void xm_board_take(struct xm_board_address *address);
void xm_board_give(int slot);

/* The slots of ranks that are all on this node; NULL if one cannot be reached. */
struct xm_seats *xm_seats_open(const struct xm_board_address *addresses, int count, int rank);
void             xm_seats_close(struct xm_seats *seats);

/* Say that call number seats->calls + 1 comes, and count it. */
void xm_seats_call(struct xm_seats *seats, enum xm_board_memory memory, enum xm_coll coll);

/* Sum up terms over the ranks; they wait for each other, and MPI progresses meanwhile. */
bool xm_seats_sum(struct xm_seats *seats, const int64_t *mine, int64_t *sum);

/* Show this rank's buffers, as call number seats->shows + 1, and count it. */
uint64_t xm_seats_show(struct xm_seats *seats, const struct xm_shown buffers[2]);
/* Those of a rank in that call; NULL: it has not come there. */
const struct xm_shown *xm_seats_shown(const struct xm_seats *seats, uint64_t number, int rank);
/*
 * Say that this rank's part of that call is done, and whether it has to be done over; and have all
 * said so? Then *trouble_p is set if it has to be for any.
 */
void xm_seats_end(struct xm_seats *seats, uint64_t number, bool trouble);
bool xm_seats_ended(const struct xm_seats *seats, uint64_t number, bool *trouble_p);

/*
 * A rank that made this call with host memory, or on another collective, while this one made it
 * with a device's; -1: none that is known of.
 */
int xm_seats_mismatch(const struct xm_seats *seats, uint64_t call, enum xm_coll coll,
                      enum xm_coll *other_p);

/* The first rank that has not made this call; -1: all have. */
int xm_seats_absent(const struct xm_seats *seats, uint64_t call);

/*
 * What this process does on host memory, for ranks of a communicator that have not agreed on
 * anything yet and wait for it: group is equal on all ranks, number counts its calls.
 */
void xm_board_busy(uint64_t group, uint64_t number, enum xm_coll coll);
void xm_board_idle(void);
/* A process of this job that is busy so since a while, for a second look: its world rank, or -1. */
int xm_board_find_busy(uint64_t group, uint64_t number, enum xm_coll *coll_p);

#endif
