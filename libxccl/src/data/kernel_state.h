/* SPDX-License-Identifier: BSD-3-Clause */
/* What kernels.c and kernel_copies.c keep of one device; nothing for others. */
#ifndef XM_DATA_KERNEL_STATE_H
#define XM_DATA_KERNEL_STATE_H

#include "data/kernels.h"
#include "data/lingering.h"

enum { XM_KERNEL_SLOTS = 64, XM_KERNEL_STREAMS = 8, XM_KERNEL_THREADS = 512 };

/* Host memory that kernels write to and read. */
struct xm_kernel_shared {
    uint32_t       done[XM_KERNEL_SLOTS];
    uint32_t       idle[2];        /* done, and in trouble, of kernels that nobody waits for */
    struct xm_post post, attended; /* of the kernels that linger */
};

struct xm_kernels {
    const struct xc_device_ops *dev;
    int                         device;
    unsigned                    resets;      /* of the device before they were loaded */
    int                         state;       /* atomic: of those for one rank alone, */
    int                         collectives; /* and of the others */
    uint32_t                    last;
    bool                        shares; /* other processes' kernels run beside ours */
    bool                        early;  /* xk_enqueued may be launched early */
    unsigned                    room;   /* blocks, where they do; or 0 */
    void                       *copies, *pack, *listed, *linger, *await;
    void                       *attend, *exchange, *brief, *mapped, *rounds, *enqueued;
    xcclStream_t                streams[XM_KERNEL_STREAMS];
    struct xm_kernel_shared    *shared;
    uint32_t                   *finished; /* device memory, one a slot */
    struct xk_relay            *relays;   /* behind them, of the kernels that linger */
    struct xm_lingering         lingering, attendant;

    /* ---- kernel_copies.c ---- */
    uint64_t      taken; /* atomic: slots in use */
    uint32_t      values[XM_KERNEL_SLOTS];
    int           failed[XM_KERNEL_SLOTS]; /* atomic: of a launch, else xcclSuccess */
    unsigned char stream_of[XM_KERNEL_SLOTS];
};

#endif
