/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kernels of our own on a device, from libxccl-direct-<runtime>.so. Nothing depends on them: where
 * there are none, or not yet, the runtime's copies do the work.
 */
#ifndef XM_DATA_KERNELS_H
#define XM_DATA_KERNELS_H

#include "device/device.h"
#include "kernels/kernels.h"

struct xm_kernels; /* of one device */

/*
 * Those of a device that have to do with one rank alone: copies, packing, and waiting for a word.
 * NULL: there are none, or they are still being loaded. That is done by a thread, once: loading may
 * wait for kernels that run, and those for other ranks.
 */
struct xm_kernels *xm_kernels_of(const struct xc_device_ops *dev, int device);
/*
 * The same, when those for collectives are there too. They are loaded once somebody asks for them:
 * the device launches nothing for 3 to 9 ms meanwhile (H200), and the others need 1.
 */
struct xm_kernels *xm_collective_kernels_of(const struct xc_device_ops *dev, int device);

/* A copy by a kernel, under way from a start that succeeded until it is no longer in progress. */
struct xm_kernel_copy {
    struct xm_kernels *kernels; /* NULL: there is none */
    int                slot;
    uint32_t           value;
    unsigned           polls;
};

/* With the device entered. False: not by a kernel now. Both sides are reachable for the device. */
bool         xm_kernel_copy_start(struct xm_kernels *k, void *to, const void *from, size_t bytes,
                                  struct xm_kernel_copy *copy);
xcclResult_t xm_kernel_copy_query(struct xm_kernel_copy *copy);
/*
 * From here until XM_COLLECT_NONE the copies that this thread starts begin together. Nothing in
 * between may wait for them, or for other ranks. Where they are few the host has nothing else to
 * do, and may wait for them instead of launching them. XM_COLLECT_SHORT: of many, but long ones are
 * launched without the others. Returns whether some are over already.
 */
enum xm_collect { XM_COLLECT_NONE, XM_COLLECT_FEW, XM_COLLECT_MANY, XM_COLLECT_SHORT };
bool xm_kernel_copies_collect(enum xm_collect how);
/* How this thread does at present. */
enum xm_collect xm_kernel_copies_collected(void);
/* The one that begins next may be waited for in any case. */
void xm_kernel_copies_wait(void);

/* Reductions on a stream of the caller's, one after the other. */
struct xm_kernel_series {
    struct xm_kernels *kernels; /* NULL: none has begun */
    int                slot;
};
/* False: too many are under way. */
bool xm_kernel_series_begin(struct xm_kernels *k, struct xm_kernel_series *s);
/* Enqueue one that meets nobody and is not checked; with the device entered. */
xcclResult_t xm_kernel_series_reduce(struct xm_kernel_series *s, const struct xk_work *work,
                                     unsigned blocks, xcclStream_t stream);
/* When all of them are over. */
void xm_kernel_series_end(struct xm_kernel_series *s);

/* Could they not be loaded? Then the functions above stay NULL. */
bool xm_kernels_failed(const struct xc_device_ops *dev, int device);
bool xm_collective_kernels_failed(const struct xc_device_ops *dev, int device);

/* A stream for kernels of the direct path, and what launches them faster; NULL: nothing does. */
struct xm_kernel_queue {
    xcclStream_t stream;
    void        *exchange, *brief, *mapped;
};
xcclResult_t xm_kernel_queue_create(struct xm_kernels *k, struct xm_kernel_queue *q);
void         xm_kernel_queue_destroy(struct xm_kernels *k, struct xm_kernel_queue *q);

/* Enqueue it; with the device entered. alone: all that was enqueued there before is over. */
xcclResult_t xm_kernel_exchange(struct xm_kernels *k, const struct xk_exchange *what,
                                unsigned blocks, const struct xm_kernel_queue *q, bool alone);
xcclResult_t xm_kernel_mapped(struct xm_kernels *k, const struct xk_mapped *what, unsigned blocks,
                              const struct xm_kernel_queue *q, bool alone);
xcclResult_t xm_kernel_rounds(struct xm_kernels *k, const struct xk_rounds *what, unsigned blocks,
                              const struct xm_kernel_queue *q);
xcclResult_t xm_kernel_enqueued(struct xm_kernels *k, const struct xk_enqueued *what,
                                unsigned blocks, xcclStream_t stream);
/* Let a stream wait until a word of pinned host memory is at least a value. */
xcclResult_t xm_kernel_await(struct xm_kernels *k, const uint32_t *word, uint32_t least,
                             xcclStream_t stream);
/*
 * Blocks of kernels that wait for other ranks which the device has room for, where it runs kernels
 * of other processes beside ours; 0: it gives processes turns.
 */
unsigned xm_kernels_room(const struct xm_kernels *k);
/* The largest number of an operation. */
uint32_t xm_kernels_last_number(const struct xm_kernels *k);
/* The kernel that lingers for collectives: they wait for other ranks, and copies must not. */
struct xm_lingering;
struct xm_lingering *xm_kernels_attendant(struct xm_kernels *k);

/* Enqueue it; with the device entered. */
xcclResult_t xm_kernel_pack(struct xm_kernels *k, const struct xk_pack *what, xcclStream_t stream);
xcclResult_t xm_kernel_pack_listed(struct xm_kernels *k, const struct xk_listed *what,
                                   xcclStream_t stream);

/*
 * To host memory, from there to the device's own memory, and from another device to that. Copies of
 * at most so many bytes may be quick; those from another device by several blocks, if none else is
 * under way.
 */
enum xm_quick { XM_QUICK_OUT, XM_QUICK_IN, XM_QUICK_FETCH, XM_QUICK_FETCH_WIDE };
enum { XM_QUICK_BYTES = 32 << 10, XM_QUICK_FETCH_BYTES = 64 << 10, XM_QUICK_WIDE_BYTES = 4 << 20 };

/*
 * Copy by the kernel that lingers on the device, and wait for it: that takes half the time of a
 * copy by the runtime. False: nothing was done; it may linger the next time. The program's own work
 * on the memory is over. With the device entered.
 */
bool xm_quick_copy(struct xm_kernels *k, enum xm_quick way, void *to, const void *from,
                   size_t bytes);

/* Is that kernel there now? */
bool xm_kernels_linger(struct xm_kernels *k);

/*
 * The same for what xm_kernel_pack() does by its few runs, and for what xm_kernel_pack_listed()
 * does, of at most so many units: more go in less time by several blocks of a launch, which the
 * host does not wait for. elsewhere: others than this device are to see what was written.
 */
enum { XM_QUICK_UNITS = 4096 };
bool xm_quick_pack(struct xm_kernels *k, const struct xk_pack *what, bool elsewhere);
bool xm_quick_pack_listed(struct xm_kernels *k, const struct xk_listed *what, bool elsewhere);

/* In MPI_Finalize, when nothing is under way any more. */
void xm_kernels_finalize(void);

#endif
