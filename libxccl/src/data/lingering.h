/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A kernel that stays on the device for a while after a copy or a collective. The next one is told
 * to it through host memory, which spares a launch.
 *
 * A program that synchronises its device waits for the kernel to leave. So where launches do not
 * serve enough commands to pay for that, they become rare.
 *
 * It never keeps anybody from anything for long: it leaves when nothing came for
 * XCCL_DIRECT_LINGER, and in any case after a few milliseconds; copies wait neither for it to begin
 * nor to end, since the runtime's copies serve as well.
 *
 * It has few blocks, or many where commands come that have work for them.
 */
#ifndef XM_DATA_LINGERING_H
#define XM_DATA_LINGERING_H

#include <pthread.h>

#include "data/kernels.h"
#include "device/device.h"
#include "kernels/kernels.h"

/* Host memory that both sides see. Each is written by one side. */
struct xm_post {
    struct xk_command command __attribute__((aligned(64)));
    struct xk_answers answers __attribute__((aligned(64)));
    struct xk_run     runs[XK_FEW_RUNS] __attribute__((aligned(64))); /* of the command, */
    struct xk_listed  listed __attribute__((aligned(64)));            /* or its list */
};

struct xm_lingering {
    const struct xc_device_ops *dev;
    void                       *function, *repeat; /* NULL: it is launched by the function */
    struct xm_post             *post;
    struct xk_relay            *relay;
    unsigned                    few, many; /* blocks */
    uint32_t                    most;      /* number of a command, about */
    unsigned                    blocks;    /* of the last launch */
    unsigned                    small;     /* commands in a row that few blocks would do for */
    xcclStream_t                stream;
    pthread_mutex_t             lock;
    uint64_t                    idle_ns;  /* 0: it never lingers */
    bool                        launched; /* and not known to be gone */
    bool                        busy;     /* atomic: with a command that somebody waits for */
    bool                        left;     /* atomic: nobody waits for it any more */
    uint32_t                    epoch;    /* of the last launch */
    uint32_t                    number;   /* of the last command */
    uint64_t                    last_ns;  /* when the last command came, or was over */
    bool                        adapts;
    unsigned                    served; /* commands of the last launch */
    unsigned                    wasted; /* launches in a row that did not pay */
    unsigned                    skips;  /* chances to linger that are to be left out */
};

/*
 * With the device entered; the post, and the relay in device memory, are zeroed. most: a launch
 * that finds commands numbered above it begins at 1 again.
 */
xcclResult_t xm_lingering_init(struct xm_lingering *l, const struct xc_device_ops *dev,
                               void *function, struct xm_post *post, struct xk_relay *relay,
                               unsigned few, unsigned many, uint32_t most);
/* Begin and end at once, so that it is loaded. */
xcclResult_t xm_linger_once(struct xm_lingering *l);
/* As xm_quick_copy(). */
bool xm_linger_copy(struct xm_lingering *l, enum xm_quick way, void *to, const void *from,
                    uint32_t bytes);
/* Would a command be carried out at once? */
bool xm_linger_is_there(struct xm_lingering *l);
/* Several that are not to leave the device, at most XK_MAX_RANKS, of XM_QUICK_WIDE_BYTES in all. */
bool xm_linger_copies(struct xm_lingering *l, const struct xk_copy *copies, unsigned count);
/* As xm_quick_pack() and xm_quick_pack_listed(). */
bool xm_linger_pack(struct xm_lingering *l, const struct xk_pack *what, bool elsewhere);
bool xm_linger_pack_listed(struct xm_lingering *l, const struct xk_listed *what, bool elsewhere);

/*
 * Have a command carried out, and go on: the kernel is told, or is launched with it if the last
 * one was a short while ago. False: nothing was done. With the device entered.
 */
bool xm_linger_tell(struct xm_lingering *l, const uint32_t values[XK_ALL_WORDS]);
/* How a command ended: the kernel has left without it, and it was never begun. In trouble: a
 * checked sum of it may have left its range. */
enum xm_told { XM_TOLD_DONE, XM_TOLD_LOST, XM_TOLD_IN_TROUBLE };
/* xcclSuccess: it is over. */
xcclResult_t xm_linger_query(struct xm_lingering *l, enum xm_told *how_p);
/* The command told last is not waited for any more: others are, once the kernel is through. */
void xm_linger_leave(struct xm_lingering *l);
/* Does it still run? xcclInProgress, or what has gone wrong. */
xcclResult_t xm_linger_look(struct xm_lingering *l);

void xm_lingering_end(struct xm_lingering *l);

#endif
