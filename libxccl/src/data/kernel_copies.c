/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies and series of reductions by kernels, each in a slot of its device. A launch takes the host
 * 4 to 6 us (H200), more than many a copy: so copies that begin together share one, or a command to
 * the kernel that lingers.
 */
#include "base/log.h"
#include "data/kernel_state.h"
#include "data/mappings.h"

enum { POLLS_PER_LOOK = 4096 };
/* More blocks do not make copies over NVLink faster, and take room from the program's kernels. */
enum { BLOCK_BYTES = 64 << 10, MOST_BLOCKS = 16, MOST_TOGETHER = 128 };
/* For more in all the host does not wait; and of long ones of many none waits for others. */
enum { QUICK_BYTES = 1 << 20, LONG_BYTES = 64 << 10 };

static const uint64_t most_together[] = {[XM_COLLECT_FEW] = QUICK_BYTES,
                                         [XM_COLLECT_MANY] = UINT64_MAX,
                                         [XM_COLLECT_SHORT] = LONG_BYTES};

/* Copies that this thread has started and not launched. */
static __thread struct {
    enum xm_collect    how;
    bool               waited_for; /* by the host, whatever it has to do besides */
    struct xm_kernels *kernels;
    unsigned           count;
    uint64_t           bytes;
    int                slots[XK_BATCH];
    struct xk_batch    what;
} batch;

static int take_slot(struct xm_kernels *k)
{
    uint64_t taken = __atomic_load_n(&k->taken, __ATOMIC_ACQUIRE);

    while (taken != ~UINT64_C(0)) {
        int slot = __builtin_ctzll(~taken);
        if (__atomic_compare_exchange_n(&k->taken, &taken, taken | (UINT64_C(1) << slot), false,
                                        __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            return slot;
        }
    }
    return -1;
}

static void give_slot(struct xm_kernels *k, int slot)
{
    __atomic_and_fetch(&k->taken, ~(UINT64_C(1) << slot), __ATOMIC_ACQ_REL);
}

/* ---- copies ---- */

/* Share the blocks out; returns how many a row of the grid has. */
static unsigned set_blocks(void)
{
    unsigned share = MOST_TOGETHER / batch.count, most = 1;

    for (unsigned i = 0; i < batch.count; i++) {
        struct xk_copy *c = &batch.what.copy[i];
        uint64_t        blocks = (c->bytes + BLOCK_BYTES - 1) / BLOCK_BYTES;
        blocks = (blocks < MOST_BLOCKS) ? blocks : MOST_BLOCKS;
        blocks = (blocks < share) ? blocks : share;
        c->blocks = (blocks > 0) ? (uint32_t)blocks : 1;
        most = (c->blocks > most) ? c->blocks : most;
    }
    return most;
}

/* With the device entered. */
static xcclResult_t launch(void)
{
    struct xm_kernels *k = batch.kernels;
    const unsigned     grid[2] = {set_blocks(), batch.count};

    xc_trace("copies by one kernel: %u", batch.count);
    return k->dev->launch(k->copies, grid, XM_KERNEL_THREADS, &batch.what,
                          k->streams[k->stream_of[batch.slots[0]]]);
}

/* By the kernel that lingers, and they are over. */
static bool carry_out(void)
{
    struct xm_kernels    *k = batch.kernels;
    const struct xk_copy *copies = batch.what.copy;
    uint64_t              bytes = batch.bytes;

    if (((batch.how != XM_COLLECT_FEW) && !batch.waited_for) || (batch.count > XK_MAX_RANKS) ||
        (bytes >= QUICK_BYTES)) {
        return false;
    }
    enum xm_quick way = (bytes > XM_QUICK_FETCH_BYTES) ? XM_QUICK_FETCH_WIDE : XM_QUICK_FETCH;
    bool          over = (batch.count > 1)
                             ? xm_linger_copies(&k->lingering, copies, batch.count)
                             : xm_linger_copy(&k->lingering, way, (void *)(uintptr_t)copies->to,
                                              (const void *)(uintptr_t)copies->from, (uint32_t)bytes);
    for (unsigned i = 0; over && (i < batch.count); i++) {
        __atomic_store_n(&k->shared->done[batch.slots[i]], copies[i].value, __ATOMIC_RELEASE);
    }
    if (over) {
        xc_trace("copies by a kernel that was there: %u", batch.count);
    }
    return over;
}

static void reset(void)
{
    batch.count = 0;
    batch.bytes = 0;
    batch.waited_for = false;
}

static bool begin_collected(void)
{
    struct xm_kernels *k = batch.kernels;
    void              *saved;
    bool               over = false;

    if (batch.count == 0) {
        return false;
    }
    xcclResult_t res = k->dev->enter(k->device, &saved);
    if (res == xcclSuccess) {
        over = carry_out();
        res = over ? xcclSuccess : launch();
        k->dev->leave(saved);
    }
    for (unsigned i = 0; (res != xcclSuccess) && (i < batch.count); i++) {
        __atomic_store_n(&k->failed[batch.slots[i]], (int)res, __ATOMIC_RELEASE);
    }
    reset();
    return over;
}

bool xm_kernel_copies_are_collected(void)
{
    return batch.how != XM_COLLECT_NONE;
}

bool xm_kernel_copies_collect(enum xm_collect how)
{
    bool over = begin_collected();

    /* What is collected may read what is mapped: until it has been launched, that stays. */
    if ((how != XM_COLLECT_NONE) && (batch.how == XM_COLLECT_NONE)) {
        xm_mappings_hold();
    } else if ((how == XM_COLLECT_NONE) && (batch.how != XM_COLLECT_NONE)) {
        xm_mappings_let_go();
    }
    batch.how = how;
    return over;
}

void xm_kernel_copies_wait(void)
{
    batch.waited_for = true;
}

bool xm_kernel_copy_start(struct xm_kernels *k, void *to, const void *from, size_t bytes,
                          struct xm_kernel_copy *copy)
{
    int slot = take_slot(k);

    if (slot < 0) {
        return false;
    }
    if ((batch.kernels != k) || (batch.count == XK_BATCH)) {
        begin_collected();
    }
    uint32_t value = ++k->values[slot];
    batch.kernels = k;
    batch.slots[batch.count] = slot;
    batch.what.copy[batch.count++] = (struct xk_copy){.to = (uint64_t)(uintptr_t)to,
                                                      .from = (uint64_t)(uintptr_t)from,
                                                      .bytes = bytes,
                                                      .finished = &k->finished[slot],
                                                      .done = &k->shared->done[slot],
                                                      .value = value};
    k->stream_of[slot] = (unsigned char)(batch.slots[0] % XM_KERNEL_STREAMS);
    k->failed[slot] = xcclSuccess;
    batch.bytes += bytes;
    if (batch.how == XM_COLLECT_NONE) {
        xcclResult_t res = launch();
        reset();
        if (res != xcclSuccess) {
            give_slot(k, slot);
            return false;
        }
    }
    *copy = (struct xm_kernel_copy){.kernels = k, .slot = slot, .value = value};
    bool whole = batch.waited_for && (batch.count == XK_MAX_RANKS); /* one command's */
    if (whole || (batch.bytes >= most_together[batch.how])) {
        begin_collected();
    }
    return true;
}

/* A kernel that failed says nothing; its launch and its stream do. */
static xcclResult_t look(struct xm_kernel_copy *copy)
{
    struct xm_kernels *k = copy->kernels;
    xcclResult_t res = (xcclResult_t)__atomic_load_n(&k->failed[copy->slot], __ATOMIC_ACQUIRE);

    if (res != xcclSuccess) {
        return xc_fail(res, "device %d: a copy could not be launched", k->device);
    }
    if ((++copy->polls % POLLS_PER_LOOK) != 0) {
        return xcclInProgress;
    }
    res = k->dev->stream_query(k->streams[k->stream_of[copy->slot]]);
    return (res == xcclSuccess) ? xcclInProgress : res;
}

xcclResult_t xm_kernel_copy_query(struct xm_kernel_copy *copy)
{
    struct xm_kernels *k = copy->kernels;
    xcclResult_t       res = xcclSuccess;

    if (__atomic_load_n(&k->shared->done[copy->slot], __ATOMIC_ACQUIRE) != copy->value) {
        res = look(copy);
        if (res == xcclInProgress) {
            return res;
        }
    }
    give_slot(k, copy->slot);
    copy->kernels = NULL;
    return res;
}

/* ---- reductions ---- */

bool xm_kernel_series_begin(struct xm_kernels *k, struct xm_kernel_series *s)
{
    s->slot = take_slot(k);
    s->kernels = (s->slot >= 0) ? k : NULL;
    return s->kernels != NULL;
}

xcclResult_t xm_kernel_series_reduce(struct xm_kernel_series *s, const struct xk_work *work,
                                     unsigned blocks, xcclStream_t stream)
{
    struct xm_kernels *k = s->kernels;
    const unsigned     grid[2] = {blocks, 1};
    struct xk_mapped   what = {.ranks = {.abort = (uint64_t)(uintptr_t)k->shared->done},
                               .work = *work,
                               .finished = &k->finished[s->slot],
                               .done = &k->shared->done[s->slot]};

    /* The end of the stream's work is known by other means: no copy takes this number for its own.
     */
    what.work.number = k->values[s->slot];
    return k->dev->launch(k->mapped, grid, XM_KERNEL_THREADS, &what, stream);
}

void xm_kernel_series_end(struct xm_kernel_series *s)
{
    if (s->kernels != NULL) {
        give_slot(s->kernels, s->slot);
        s->kernels = NULL;
    }
}
