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

/* Copies that begin together. */
struct together {
    struct xm_kernels *kernels;
    unsigned           count;
    uint64_t           bytes;
    bool               waited_for; /* by the host, whatever it has to do besides */
    int                slots[XK_BATCH];
    struct xk_batch    what;
};

/* Those that this thread has started and not launched. */
static __thread struct {
    enum xm_collect how;
    struct together them;
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
static unsigned set_blocks(struct together *b)
{
    unsigned share = MOST_TOGETHER / b->count, most = 1;

    for (unsigned i = 0; i < b->count; i++) {
        struct xk_copy *c = &b->what.copy[i];
        uint64_t        blocks = (c->bytes + BLOCK_BYTES - 1) / BLOCK_BYTES;
        blocks = (blocks < MOST_BLOCKS) ? blocks : MOST_BLOCKS;
        blocks = (blocks < share) ? blocks : share;
        c->blocks = (blocks > 0) ? (uint32_t)blocks : 1;
        most = (c->blocks > most) ? c->blocks : most;
    }
    return most;
}

/* With the device entered. */
static xcclResult_t launch(struct together *b)
{
    struct xm_kernels *k = b->kernels;
    const unsigned     grid[2] = {set_blocks(b), b->count};

    xc_trace("copies by one kernel: %u", b->count);
    return k->dev->launch(k->copies, grid, XM_KERNEL_THREADS, &b->what,
                          k->streams[k->stream_of[b->slots[0]]]);
}

/* By the kernel that lingers, and they are over. */
static bool carry_out(const struct together *b)
{
    struct xm_kernels    *k = b->kernels;
    const struct xk_copy *copies = b->what.copy;

    if ((b->count > XK_MAX_RANKS) || (b->bytes >= QUICK_BYTES)) {
        return false;
    }
    enum xm_quick way = (b->bytes > XM_QUICK_FETCH_BYTES) ? XM_QUICK_FETCH_WIDE : XM_QUICK_FETCH;
    bool          over = (b->count > 1)
                             ? xm_linger_copies(&k->lingering, copies, b->count)
                             : xm_linger_copy(&k->lingering, way, (void *)(uintptr_t)copies->to,
                                              (const void *)(uintptr_t)copies->from, (uint32_t)b->bytes);
    for (unsigned i = 0; over && (i < b->count); i++) {
        __atomic_store_n(&k->shared->done[b->slots[i]], copies[i].value, __ATOMIC_RELEASE);
    }
    if (over) {
        xc_trace("copies by a kernel that was there: %u", b->count);
    }
    return over;
}

static struct together take_collected(void)
{
    struct together b = batch.them;

    batch.them.count = 0;
    batch.them.bytes = 0;
    batch.them.waited_for = false;
    return b;
}

/*
 * Who waits for the kernel makes progress, and may come here again, for other copies: so these are
 * taken out first. What they read stays mapped until they have been launched, or are over.
 */
static bool begin_collected(void)
{
    void *saved;
    bool  over = false;

    if (batch.them.count == 0) {
        return false;
    }
    struct together    b = take_collected();
    struct xm_kernels *k = b.kernels;
    bool               quick = (batch.how == XM_COLLECT_FEW) || b.waited_for;
    xm_mappings_hold();
    xcclResult_t res = k->dev->enter(k->device, &saved);
    if (res == xcclSuccess) {
        over = quick && carry_out(&b);
        res = over ? xcclSuccess : launch(&b);
        k->dev->leave(saved);
    }
    xm_mappings_let_go();
    for (unsigned i = 0; (res != xcclSuccess) && (i < b.count); i++) {
        __atomic_store_n(&k->failed[b.slots[i]], (int)res, __ATOMIC_RELEASE);
    }
    return over;
}

enum xm_collect xm_kernel_copies_collected(void)
{
    return batch.how;
}

bool xm_kernel_copies_collect(enum xm_collect how)
{
    bool over = begin_collected();

    /* What is collected may read what is mapped. */
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
    batch.them.waited_for = true;
}

/* With the device entered. */
static bool launch_alone(void)
{
    struct together b = take_collected();

    return launch(&b) == xcclSuccess;
}

bool xm_kernel_copy_start(struct xm_kernels *k, void *to, const void *from, size_t bytes,
                          struct xm_kernel_copy *copy)
{
    struct together *b = &batch.them;
    int              slot = take_slot(k);

    if (slot < 0) {
        return false;
    }
    /* Who waits for them may have collected others meanwhile. */
    while ((b->count > 0) && ((b->kernels != k) || (b->count == XK_BATCH))) {
        bool wait = b->waited_for;
        begin_collected();
        b->waited_for = wait;
    }
    uint32_t value = ++k->values[slot];
    b->kernels = k;
    b->slots[b->count] = slot;
    b->what.copy[b->count++] = (struct xk_copy){.to = (uint64_t)(uintptr_t)to,
                                                .from = (uint64_t)(uintptr_t)from,
                                                .bytes = bytes,
                                                .finished = &k->finished[slot],
                                                .done = &k->shared->done[slot],
                                                .value = value};
    b->bytes += bytes;
    k->stream_of[slot] = (unsigned char)(b->slots[0] % XM_KERNEL_STREAMS);
    k->failed[slot] = xcclSuccess;
    *copy = (struct xm_kernel_copy){.kernels = k, .slot = slot, .value = value};
    if (batch.how == XM_COLLECT_NONE) {
        if (!launch_alone()) {
            give_slot(k, slot);
            copy->kernels = NULL;
            return false;
        }
        return true;
    }
    bool whole = b->waited_for && (b->count == XK_MAX_RANKS); /* one command's */
    if (whole || (b->bytes >= most_together[batch.how])) {
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
