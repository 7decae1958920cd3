/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The direct path of one communicator: its ranks are on one node, and every device reaches the
 * workspaces of the others. Joining takes one exchange of what the ranks have (comms/agree.h), and
 * no vendor library.
 *
 * Ranks may share a device under MPS, which runs their kernels at the same time. Kernels that wait
 * for each other must all find room then: so they have few blocks, each process enqueues one of
 * them at a time, and only when all ranks have come.
 *
 * Without MPS the device gives the processes turns, and a kernel that waits for another rank's
 * holds its turn to the end. There the hosts meet instead, and only large calls are worth their
 * turns.
 */
#ifndef XM_DIRECT_DIRECT_H
#define XM_DIRECT_DIRECT_H

#include "comms/comm.h"
#include "data/kernels.h"
#include "direct/arena.h"

/* A buffer that all other ranks had mapped, each when it had lost so many mappings. */
struct xm_direct_held {
    struct xc_ipc ipc;
    uint32_t      losses[XK_MAX_RANKS];
};
enum { XM_DIRECT_HELD = 16 };

struct xm_direct {
    struct xm_arena            *arena;
    struct xm_kernels          *kernels;
    const struct xc_device_ops *dev;
    int                         device;
    uint32_t                    size;                  /* ranks of the communicator */
    uint64_t                    used[XM_ARENA_OPENED]; /* arenas of others, while it may use them */
    int                         num_used;
    uint64_t                    offset; /* of the workspace in the arena */
    int                         at;     /* of its words */
    struct xm_arena_words      *words;
    uint32_t                   *finished;
    struct xm_kernel_queue      queue;                /* its stream is NULL: it has none */
    uint32_t                    serial;               /* of no other communicator of this process */
    uint32_t                    number;               /* of the last operation */
    uint32_t                    last;                 /* and of the last one that there can be */
    struct xm_direct_held       held[XM_DIRECT_HELD]; /* the last ones; paths/direct_held.c */
    uint32_t                    num_held;             /* ever */
    uint32_t                    unmappable;           /* calls whose buffers could not be mapped */
    bool                        shared;               /* may ranks share devices? The same on all */
    bool                        in_turns;             /* and some do without MPS? The same on all */
    unsigned                    most_blocks;          /* of a kernel that waits for other ranks */
    bool                        broken; /* its memory may still be used: it is not given back */
    int                         users;  /* atomic: the communicator and operations */
};

/* Before the first call. */
void xm_direct_init(void);

/* That of a joined communicator, to be released; NULL: it has none any more. */
struct xm_direct *xm_direct_hold(struct xm_comm *xm);
void              xm_direct_release(struct xm_direct *d);
/* Held once more. */
void xm_direct_keep(struct xm_direct *d);
/* Has the program reset the device since? Then none of its memory may be touched. */
bool xm_direct_lost(const struct xm_direct *d);
/* An operation failed: kernels that wait give up. */
void xm_direct_break(struct xm_direct *d);
bool xm_direct_is_broken(const struct xm_direct *d);

/* The number of the next operation, in the order of the calls; the last one, if it has several. */
uint32_t xm_direct_next(struct xm_direct *d, uint32_t numbers);
/* Are there so many before the communicator has to join anew? */
bool xm_direct_has_numbers(const struct xm_direct *d, uint32_t numbers);
/* No other operation has one: the communicator is to join anew. In the same call on all ranks. */
void xm_direct_spend(struct xm_direct *d);
/* The last number was not used, on any rank: the next operation gets it. */
void xm_direct_unused(struct xm_direct *d);
/* Has the host been told that this operation is over? */
bool xm_direct_done(const struct xm_direct *d, uint32_t number);
/* Of one that is done: does it have to be done over? */
bool xm_direct_in_trouble(const struct xm_direct *d, uint32_t number);
/* A kernel that lingers has told it elsewhere. */
void xm_direct_set_done(struct xm_direct *d, uint32_t number);
/* Are all before it over? */
bool xm_direct_alone(const struct xm_direct *d, uint32_t number);

#endif
