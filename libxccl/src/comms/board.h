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
#include "comms/variables.h"

/* How another process finds it. */
struct xm_board_address {
    uint64_t machine;       /* since it was started; containers on it have the same */
    uint64_t node;          /* what of it sees the same processes: a container, or all of it */
    uint64_t nonce;         /* of the process */
    int32_t  pid, fd, slot; /* slot -1: none */
};

/* The board of a process, as seen by this one. */
struct xm_board;

struct xm_mailbox; /* mailbox.h */
struct xm_queue;   /* order.h */
struct xm_slot;    /* slots.h */

/* This process's own; NULL: it cannot have one. */
struct xm_board *xm_board_own(void);
/*
 * That of another process of this node, mapped once and kept. NULL, with errno: it cannot be
 * reached, or is not there (ENOENT).
 */
struct xm_board *xm_board_open(const struct xm_board_address *address);
void xm_board_address_of(const struct xm_board *board, struct xm_board_address *address_p);
/* May several threads of that process call MPI at once? */
bool               xm_board_threads(const struct xm_board *board);
int                xm_board_pid(const struct xm_board *board);
struct xm_mailbox *xm_board_mailbox(struct xm_board *board);
struct xm_queue   *xm_board_queue(struct xm_board *board);
/* NULL: it has none of this number. */
struct xm_slot *xm_board_slot(struct xm_board *board, int slot);

/* Each process of this MPI_COMM_WORLD on this node that has a board, but this one. Milliseconds. */
typedef void xm_board_seen(void *arg, int world_rank, const struct xm_board_address *address);
void         xm_board_each(xm_board_seen *seen, void *arg);
/* Those among its relatives alone (relatives.h), in less time. */
void xm_board_each_relative(int generations, xm_board_seen *seen, void *arg);

/* The variables of these ranks of MPI_COMM_WORLD, as far as they are on this node. Milliseconds. */
void xm_board_variables(const int *world_ranks, int n, struct xm_variables *all_p);

/* Where this process is: the machine and the node of its address. */
void xm_board_place(struct xm_board_address *address);
/* Take a slot for a communicator and say where it is; without a board the address says so. */
void xm_board_take(struct xm_board_address *address);
/* readers: it is taken again when so many ranks have left it (slots.h). */
void xm_board_give(int slot, int readers);

/*
 * What this process does on host memory, for ranks of a communicator that have not agreed on
 * anything yet and wait for it: what names it is equal on all ranks, number counts its calls.
 */
void xm_board_busy(uint64_t communicator, uint64_t number, enum xm_coll coll);
void xm_board_idle(void);
/* A process of this job that is busy so since a while, for a second look: its world rank, or -1. */
int xm_board_find_busy(uint64_t communicator, uint64_t number, enum xm_coll *coll_p);
/* Has this process one? Else whoever says something makes it. */
bool xm_board_is_made(void);
/*
 * Say that it makes a call on host memory, by a number that no other call has; the last 64 are
 * there to be found. And a process of this job that has said so: its world rank, or -1.
 */
void xm_board_say_host(uint64_t call);
int  xm_board_find_host(uint64_t call);

#endif
