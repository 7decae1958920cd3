/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory of the direct path on one device: workspaces that the other ranks write to, taken from
 * one allocation that they map once; words in host memory; streams; and the mappings of others'
 * allocations. It is made by a thread at its first use and lives as long as the process, since
 * other processes map it.
 */
#ifndef XM_DIRECT_ARENA_H
#define XM_DIRECT_ARENA_H

#include <stdbool.h>
#include <stdint.h>

#include "data/kernels.h"

enum { XM_ARENA_WORDS = 256, XM_ARENA_OPENED = 16 };

/* Host memory of one communicator, which the device reads and writes. */
struct xm_arena_words {
    uint32_t        done;    /* number of the last operation that a kernel has ended */
    uint32_t        trouble; /* and of the last checked sum that may have left its range */
    uint32_t        abort;   /* not 0: kernels that wait give up */
    struct xk_ranks ranks;
} __attribute__((aligned(128)));

enum xm_arena_state { XM_ARENA_LATER, XM_ARENA_READY, XM_ARENA_NEVER };
/* SOON: once what was given back is cleared. */
enum xm_arena_room { XM_ARENA_NO_ROOM, XM_ARENA_ROOM_SOON, XM_ARENA_ROOM };

struct xm_arena;

/* Of a device; begun at the first call. NULL: there is no room for another device. */
struct xm_arena    *xm_arena_of(const struct xc_device_ops *dev, int device);
enum xm_arena_state xm_arena_state(const struct xm_arena *a);
/* Why it is NEVER. */
const char *xm_arena_reason(const struct xm_arena *a);

/* Has the program reset the device since? Then none of its memory may be touched. */
bool xm_arena_lost(const struct xm_arena *a);

/* Of a READY one. */
struct xm_kernels   *xm_arena_kernels(const struct xm_arena *a);
const struct xc_ipc *xm_arena_ipc(const struct xm_arena *a);
char                *xm_arena_base(const struct xm_arena *a);
/* A number as good as unique among all processes' arenas. */
uint64_t xm_arena_key(const struct xm_arena *a);
size_t   xm_arena_bytes(const struct xm_arena *a);
size_t   xm_arena_used(const struct xm_arena *a);

/*
 * A workspace. *first_p: numbers of operations begin there, since what others have written into
 * this memory bears smaller ones, in the places where numbers are (kernels.h).
 */
enum xm_arena_room xm_arena_take(struct xm_arena *a, size_t bytes, uint64_t *offset_p,
                                 uint32_t *first_p);
/* last: the number of the last operation in it. */
void xm_arena_give(struct xm_arena *a, uint64_t offset, size_t bytes, uint32_t last);

/* Words of a communicator, zeroed, and the counter of its kernels' blocks; -1: there are none. */
int                    xm_arena_take_words(struct xm_arena *a);
void                   xm_arena_give_words(struct xm_arena *a, int at);
struct xm_arena_words *xm_arena_words(struct xm_arena *a, int at);
uint32_t              *xm_arena_finished(struct xm_arena *a, int at);

/* A queue, with the device entered; and back. */
xcclResult_t xm_arena_take_queue(struct xm_arena *a, struct xm_kernel_queue *q);
void         xm_arena_give_queue(struct xm_arena *a, struct xm_kernel_queue *q);

/* Where another process's arena is mapped; NULL: it is not. */
char *xm_arena_opened(struct xm_arena *a, uint64_t key);
/* Keys of all that are. They stay until each is let go as often as it was listed. */
int  xm_arena_list_opened(struct xm_arena *a, uint64_t keys[XM_ARENA_OPENED]);
void xm_arena_let_go(struct xm_arena *a, uint64_t key);
/* Map some by a thread, which is the only one, in the place of those that nobody uses. False: one
 * is at work. */
struct xm_arena_peer {
    uint64_t      key;
    struct xc_ipc ipc;
};
bool xm_arena_open(struct xm_arena *a, const struct xm_arena_peer *peers, int count);
/*
 * For a communicator whose ranks are about to join: could memory of another one not be mapped? Then
 * this one goes without; the next ones try again, after each failure twice as many later.
 */
bool xm_arena_turns_away(struct xm_arena *a);

#endif
