/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/enqueue.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "data/flatten.h"
#include "data/kernels.h"
#include "data/lists.h"

/*
 * More calls than this for a block: then it is worth looking for a way with fewer, at so many bytes
 * in the time of a call.
 */
enum { FEW_CALLS = 64, LOOK_BYTES = 4096 };
/* More runs than this are not written for a call. */
enum { MOST_RUNS = 1 << 16 };
/* Rows of so many bytes and more a copy engine moves as fast as a kernel. */
enum { WIDE_ROW = 1024 };

/* A visit of all data. Stretches that follow each other are one copy. */
struct visit {
    const struct xm_lane *lane;
    MPI_Aint              offset; /* of what is not enqueued yet: the next may follow it */
    size_t                packed, bytes;
};

/*
 * Stretches at absolute addresses may go over from one allocation to the next, where these lie side
 * by side; the runtime copies within one.
 */
static xcclResult_t copy_absolute(const struct xm_lane *lane, char *mine, char *other, size_t bytes)
{
    const struct xc_device_ops *dev = lane->copier->dev;
    xcclResult_t                res = xcclSuccess;

    for (size_t at = 0, n; (at < bytes) && (res == xcclSuccess); at += n) {
        size_t left = dev->mem_left(mine + at);
        n = ((left > 0) && (left < bytes - at)) ? left : bytes - at;
        res = dev->copy_async((lane->out ? mine : other) + at, (lane->out ? other : mine) + at, n,
                              lane->copier->stream);
    }
    return res;
}

static xcclResult_t copy_rows(const struct xm_lane *lane, MPI_Aint offset, size_t packed,
                              size_t bytes, const struct xm_level *level)
{
    const struct xc_device_ops *dev = lane->copier->dev;
    char                       *mine = xm_buffer_at(lane->buffer, offset);
    char *other = lane->other + (lane->span ? (size_t)(offset - lane->buffer->low) : packed);
    char *to = lane->out ? mine : other, *from = lane->out ? other : mine;

    if (lane->buffer->absolute) {
        return copy_absolute(lane, mine, other, bytes);
    }
    if (level == NULL) {
        return dev->copy_async(to, from, bytes, lane->copier->stream);
    }
    size_t stride = (size_t)level->stride, apart = lane->span ? stride : level->packed;
    return dev->copy_2d_async(to, lane->out ? stride : apart, from, lane->out ? apart : stride,
                              bytes, level->count, lane->copier->stream);
}

static xcclResult_t flush(struct visit *v)
{
    xcclResult_t res = xcclSuccess;

    if (v->bytes > 0) {
        res = copy_rows(v->lane, v->offset, v->packed, v->bytes, NULL);
    }
    v->packed += v->bytes;
    v->bytes = 0;
    return res;
}

static xcclResult_t add(struct visit *v, MPI_Aint offset, size_t bytes)
{
    xcclResult_t res = xcclSuccess;

    bool together = (offset == v->offset + (MPI_Aint)v->bytes) && !v->lane->buffer->absolute;

    if ((v->bytes > 0) && !together) {
        res = flush(v);
    }
    if (v->bytes == 0) {
        v->offset = offset;
    }
    v->bytes += bytes;
    return res;
}

/* ---- runs ---- */

/* The longest level whose repetitions are rows of a copy in two dimensions, or -1. */
static int rows_level(const struct xm_run *run)
{
    int best = -1;

    for (int i = 0; i < run->levels; i++) {
        if ((run->level[i].stride >= (ptrdiff_t)run->bytes) &&
            (run->level[i].packed >= run->bytes) &&
            ((best < 0) || (run->level[i].count > run->level[best].count))) {
            best = i;
        }
    }
    return best;
}

static size_t calls_of(const struct xm_run *run)
{
    int    level = rows_level(run);
    size_t rows = xm_run_stretches(run);

    return (level < 0) ? rows : rows / run->level[level].count;
}

static xcclResult_t enqueue_run(const struct visit *v, const struct xm_run *run, MPI_Aint base)
{
    int           level = v->lane->buffer->absolute ? -1 : rows_level(run);
    struct xm_run rest = *run;
    xcclResult_t  res = xcclSuccess;
    ptrdiff_t     offset;
    size_t        packed;

    if (level >= 0) {
        rest.levels--;
        memmove(&rest.level[level], &rest.level[level + 1],
                (size_t)(rest.levels - level) * sizeof(rest.level[0]));
    }
    size_t calls = xm_run_stretches(&rest);
    for (size_t i = 0; (i < calls) && (res == xcclSuccess); i++) {
        xm_run_at(&rest, i, &offset, &packed);
        res = copy_rows(v->lane, base + offset, v->packed + packed, run->bytes,
                        (level >= 0) ? &run->level[level] : NULL);
    }
    return res;
}

/* ---- runs by a kernel ---- */

_Static_assert((int)XM_LEVELS == (int)XK_LEVELS, "a run has the same levels on the device");

/*
 * Kernels run on the device entered, which is the scratch memory's, and reach managed memory from
 * each. NULL is pinned memory to come.
 */
static struct xm_kernels *kernels_for(const struct xm_lane *lane)
{
    const struct xm_copier *c = lane->copier;
    const struct xm_buffer *b = lane->buffer;

    bool here = (b->mem.kind == XC_MEM_MANAGED) ||
                ((b->mem.kind == XC_MEM_DEVICE) && (b->mem.device == c->scratch->device));

    if (!here || b->mixed) {
        return NULL;
    }
    struct xm_kernels *k = xm_kernels_of(c->dev, c->scratch->device);
    bool               reachable = (lane->other == NULL) || c->dev->mem_reachable(lane->other);
    return ((k != NULL) && reachable) ? k : NULL;
}

static bool worth_a_kernel(const struct xm_block *block)
{
    const struct xm_runs *runs = &block->layout->flat->runs;
    struct xm_run         run = xm_block_run(block, 0);

    return (runs->count > 1) || (calls_of(&run) > 1) ||
           ((run.bytes < WIDE_ROW) && (xm_run_stretches(&run) > 1));
}

/* The largest that divides all of them, 16 at most. */
static uint32_t unit_of(const struct xm_run *run, uintptr_t memory, uintptr_t packed)
{
    uint64_t bits = (memory + (uintptr_t)run->offset) | (packed + run->packed) | run->bytes | 16;

    for (int i = 0; i < run->levels; i++) {
        bits |= (uint64_t)run->level[i].stride | run->level[i].packed;
    }
    return (uint32_t)(bits & -bits);
}

static struct xk_run for_device(const struct xm_lane *lane, const struct xm_block *block, size_t i,
                                size_t packed)
{
    struct xm_run run = xm_block_run(block, i);
    struct xk_run made = {.levels = (uint32_t)run.levels, .bytes = run.bytes};

    run.offset += block->offset;
    run.packed = lane->span ? (size_t)(run.offset - lane->buffer->low) : run.packed + packed;
    for (int l = 0; l < run.levels; l++) {
        if (lane->span) {
            run.level[l].packed = (size_t)run.level[l].stride;
        }
        made.level[l] =
            (struct xk_level){run.level[l].count, run.level[l].stride, run.level[l].packed};
    }
    made.offset = run.offset;
    made.packed = run.packed;
    made.stretches = xm_run_stretches(&run);
    made.unit = unit_of(&run, (uintptr_t)lane->buffer->buf, (uintptr_t)lane->other);
    return made;
}

/* Where more runs are written than a launch takes along: memory that kernels read, or NULL. */
static struct xk_run *room_for_runs(const struct xm_copier *c, size_t count)
{
    void *room = NULL;

    if ((count > MOST_RUNS) ||
        (c->scratch->count + 3 > XM_SCRATCH_MAX) || /* others want some too */
        (xm_scratch_take(c->scratch, XM_POOL_HOST, count * sizeof(struct xk_run), &room) !=
         xcclSuccess) ||
        !c->dev->mem_reachable(room)) {
        return NULL;
    }
    return room;
}

static struct xk_pack pack_of(const struct xm_lane *lane, const struct xm_block *block)
{
    return (struct xk_pack){.memory = (uint64_t)(uintptr_t)lane->buffer->buf,
                            .packed = (uint64_t)(uintptr_t)lane->other,
                            .out = lane->out,
                            .count = (uint32_t)block->layout->flat->runs.count};
}

typedef bool find_list_fn(const struct xm_copier *copier, const struct xm_flat *flat,
                          struct xk_listed *what);

/*
 * What moves the first `bytes` bytes of a block whose type has too many runs for a launch. NULL: no
 * kernel does.
 */
static struct xm_kernels *describe_listed(const struct visit *v, const struct xm_block *block,
                                          size_t bytes, find_list_fn *find_list,
                                          struct xk_listed *what)
{
    const struct xm_lane *lane = v->lane;
    const struct xm_flat *flat = block->layout->flat;
    struct xm_kernels    *k = xm_is_listed(flat) ? kernels_for(lane) : NULL;
    uintptr_t             other = (uintptr_t)lane->other + v->packed;

    if (lane->span) { /* as the buffer, and as far from its lowest byte */
        other = (uintptr_t)lane->other + (uintptr_t)(block->offset - lane->buffer->low);
    }
    *what = (struct xk_listed){.memory = (uintptr_t)lane->buffer->buf + (uintptr_t)block->offset,
                               .packed = other,
                               .total = bytes,
                               .extent = (int64_t)block->layout->extent,
                               .out = lane->out,
                               .span = lane->span};
    if ((k == NULL) || !find_list(lane->copier, flat, what)) {
        return NULL;
    }
    uint64_t bits = what->unit | what->memory | what->packed | bytes;
    bits |= (bytes > what->size) ? what->size | (uint64_t)what->extent : 0;
    what->unit = (uint32_t)(bits & -bits);
    return k;
}

/* Likewise false: what takes its runs one by one is next. */
static bool enqueue_listed(const struct visit *v, const struct xm_block *block, size_t bytes)
{
    struct xk_listed   what;
    struct xm_kernels *k = describe_listed(v, block, bytes, xm_list_find, &what);

    return (k != NULL) && (xm_kernel_pack_listed(k, &what, v->lane->copier->stream) == xcclSuccess);
}

/* False: not by a kernel, and nothing is enqueued. */
static bool enqueue_kernel(const struct visit *v, const struct xm_block *block)
{
    if (enqueue_listed(v, block, (size_t)(block->count * block->layout->size))) {
        return true;
    }
    const struct xm_lane *lane = v->lane;
    struct xm_kernels    *k = worth_a_kernel(block) ? kernels_for(lane) : NULL;
    struct xk_pack        what = pack_of(lane, block);
    struct xk_run        *runs = what.few;

    if ((k != NULL) && (what.count > XK_FEW_RUNS)) {
        runs = room_for_runs(lane->copier, what.count);
        what.runs = runs;
    }
    if ((k == NULL) || (runs == NULL)) {
        return false;
    }
    for (uint32_t i = 0; i < what.count; i++) {
        runs[i] = for_device(lane, block, i, v->packed);
    }
    return xm_kernel_pack(k, &what, lane->copier->stream) == xcclSuccess;
}

static xcclResult_t enqueue_runs(struct visit *v, const struct xm_block *block)
{
    xcclResult_t res = xcclSuccess;

    if (enqueue_kernel(v, block)) {
        return res;
    }

    for (size_t i = 0; (i < block->layout->flat->runs.count) && (res == xcclSuccess); i++) {
        struct xm_run run = xm_block_run(block, i);
        res = enqueue_run(v, &run, block->offset);
    }
    return res;
}

static struct xm_cost cost_of_runs(const struct xm_lane *lane, const struct xm_block *block)
{
    struct xm_cost        cost = {.kernel = worth_a_kernel(block) && (kernels_for(lane) != NULL)};
    const struct xm_flat *flat = block->layout->flat;

    if (cost.kernel && xm_is_listed(flat)) { /* at once: there may be millions of runs */
        cost.calls = 1;
        cost.rows = flat->stretches * (size_t)block->count;
        return cost;
    }
    if (flat->runs.count > MOST_RUNS) {
        return (struct xm_cost){flat->runs.count, flat->stretches, false};
    }
    for (size_t i = 0; i < block->layout->flat->runs.count; i++) {
        struct xm_run run = xm_block_run(block, i);
        cost.calls += calls_of(&run);
        cost.rows += xm_run_stretches(&run);
    }
    if (cost.kernel) {
        cost.calls = 1;
    }
    return cost;
}

/* ---- which bytes are data ---- */

static void mark_runs(const struct xm_layout *layout, char *mask)
{
    const struct xm_flat *flat = layout->flat;
    ptrdiff_t             offset;
    size_t                packed;

    for (size_t i = 0; i < flat->runs.count; i++) {
        struct xm_run run = xm_runs_at(&flat->runs, i);
        size_t        stretches = xm_run_stretches(&run);
        for (size_t n = 0; n < stretches; n++) {
            xm_run_at(&run, n, &offset, &packed);
            memset(mask + (offset - layout->true_lb), 0xff, run.bytes);
        }
    }
}

/* Those bytes that MPI_Unpack writes. That holds for any type, however it was made. */
static bool mark_unpacked(const struct xm_copier *copier, const struct xm_block *block, char *mask)
{
    size_t size = (size_t)block->layout->size;
    char  *ones = (size <= INT32_MAX) ? malloc(size) : NULL;
    int    position = 0;
    int    res = MPI_ERR_OTHER;

    if (ones != NULL) {
        memset(ones, 0xff, size);
        res = xm_pmpi.Unpack(ones, (int)size, &position, mask - block->layout->true_lb, 1,
                             block->type, xm_copier_comm(copier));
    }
    free(ones);
    return res == MPI_SUCCESS;
}

/* Of one element: true_extent bytes, from its true lower bound. */
static char *find_data(const struct xm_copier *copier, const struct xm_block *block)
{
    char *mask = calloc((size_t)block->layout->true_extent, 1);

    if (mask == NULL) {
        return NULL;
    }
    if (block->layout->flat != NULL) {
        mark_runs(block->layout, mask);
    } else if (!mark_unpacked(copier, block, mask)) {
        free(mask);
        return NULL;
    }
    return mask;
}

/* The next stretch of data in the mask at or behind *at_p; false: there is none. */
static bool next_stretch(const char *mask, size_t extent, size_t *at_p, size_t *bytes_p)
{
    const char *begin = memchr(mask + *at_p, 0xff, extent - *at_p);

    if (begin == NULL) {
        return false;
    }
    *at_p = (size_t)(begin - mask);
    const char *end = memchr(begin, 0, extent - *at_p);
    *bytes_p = (end != NULL) ? (size_t)(end - begin) : extent - *at_p;
    return true;
}

static size_t count_stretches(const char *mask, size_t extent)
{
    size_t count = 0, at = 0, bytes;

    for (; next_stretch(mask, extent, &at, &bytes); at += bytes) {
        count++;
    }
    return count;
}

static xcclResult_t enqueue_marked(struct visit *v, const struct xm_block *block, const char *mask)
{
    const struct xm_layout *l = block->layout;
    size_t                  extent = (size_t)l->true_extent, bytes;
    xcclResult_t            res = xcclSuccess;

    for (MPI_Count i = 0; (i < block->count) && (res == xcclSuccess); i++) {
        MPI_Aint first = block->offset + (MPI_Aint)(i * l->extent + l->true_lb);
        for (size_t at = 0; (res == xcclSuccess) && next_stretch(mask, extent, &at, &bytes);
             at += bytes) {
            res = add(v, first + (MPI_Aint)at, bytes);
        }
    }
    xcclResult_t last = flush(v);
    return (res != xcclSuccess) ? res : last;
}

/* ---- blocks ---- */

/*
 * Between memory of the same shape the order of packing does not matter, and what lies side by side
 * is one stretch, however a type permutes it. *calls: of the runs, and of these if they are fewer.
 */
static char *better_mask(const struct xm_lane *lane, const struct xm_block *block, size_t *calls)
{
    char  *mask;
    size_t stretches;

    if (!lane->span || (*calls <= FEW_CALLS) ||
        ((size_t)block->layout->true_extent / LOOK_BYTES > *calls)) {
        return NULL;
    }
    mask = find_data(lane->copier, block);
    stretches =
        (mask == NULL) ? SIZE_MAX : count_stretches(mask, (size_t)block->layout->true_extent);
    if (stretches >= *calls / (size_t)block->count) {
        free(mask);
        return NULL;
    }
    *calls = stretches * (size_t)block->count;
    return mask;
}

static xcclResult_t enqueue_derived(struct visit *v, const struct xm_block *block)
{
    xcclResult_t res;
    char        *mask;
    size_t       calls;

    if (block->layout->flat == NULL) {
        mask = find_data(v->lane->copier, block);
        if (mask == NULL) {
            return xc_fail(xcclSystemError, "out of memory for a datatype of %lld bytes",
                           (long long)block->layout->true_extent);
        }
    } else {
        calls = cost_of_runs(v->lane, block).calls;
        mask = better_mask(v->lane, block, &calls);
    }
    res = (mask != NULL) ? enqueue_marked(v, block, mask) : enqueue_runs(v, block);
    free(mask);
    return res;
}

static bool is_empty(const struct xm_block *block)
{
    return (block->count == 0) || (block->layout->size == 0);
}

xcclResult_t xm_enqueue(const struct xm_lane *lane)
{
    const struct xm_buffer *b = lane->buffer;
    struct visit            v = {.lane = lane};
    xcclResult_t            res = xcclSuccess;
    size_t                  at = 0;

    for (int i = 0; (i < b->blocks) && (res == xcclSuccess); i++) {
        struct xm_block block = xm_block_at(lane->copier->call, b, i);
        if (is_empty(&block)) {
            continue;
        }
        size_t bytes = (size_t)(block.count * block.layout->size);
        if (block.layout->plain) {
            res = add(&v, block.offset, bytes);
        } else {
            res = flush(&v);
            v.packed = at;
            res = (res == xcclSuccess) ? enqueue_derived(&v, &block) : res;
            v.packed = at + bytes;
        }
        at += bytes;
    }
    xcclResult_t last = flush(&v);
    return (res != xcclSuccess) ? res : last;
}

static bool move_listed_quickly(const struct xm_lane *lane, const struct xm_block *block,
                                bool elsewhere)
{
    struct visit       v = {.lane = lane};
    struct xk_listed   what;
    struct xm_kernels *k =
        describe_listed(&v, block, (size_t)lane->buffer->bytes, xm_list_there, &what);

    return (k != NULL) && xm_quick_pack_listed(k, &what, elsewhere);
}

bool xm_move_quickly(const struct xm_lane *lane, bool elsewhere)
{
    const struct xm_buffer *b = lane->buffer;

    if ((b->blocks != 1) || b->absolute) {
        return false;
    }
    struct xm_block block = xm_block_at(lane->copier->call, b, 0);
    if (is_empty(&block) || block.layout->plain || (block.layout->flat == NULL)) {
        return false;
    }
    if (block.layout->flat->runs.count > XK_FEW_RUNS) {
        return move_listed_quickly(lane, &block, elsewhere);
    }
    struct xm_kernels *k = kernels_for(lane);
    if (k == NULL) {
        return false;
    }
    struct xk_pack what = pack_of(lane, &block);
    for (uint32_t i = 0; i < what.count; i++) {
        what.few[i] = for_device(lane, &block, i, 0);
    }
    return xm_quick_pack(k, &what, elsewhere);
}

xcclResult_t xm_enqueue_head(const struct xm_lane *lane, size_t bytes)
{
    const struct xm_flat *flat = lane->buffer->layout.flat;
    struct xm_block       block = xm_block_at(lane->copier->call, lane->buffer, 0);
    struct visit          first = {.lane = lane};
    xcclResult_t          res = xcclSuccess;
    ptrdiff_t             offset;
    size_t                packed;

    if (enqueue_listed(&first, &block, bytes)) {
        return res;
    }

    for (size_t i = 0; i < flat->runs.count; i++) {
        struct xm_run run = xm_runs_at(&flat->runs, i);
        size_t        stretches = xm_run_stretches(&run);
        for (size_t n = 0; (n < stretches) && (res == xcclSuccess); n++) {
            xm_run_at(&run, n, &offset, &packed);
            if (packed < bytes) {
                size_t left = bytes - packed;
                res = copy_rows(lane, offset, packed, (left < run.bytes) ? left : run.bytes, NULL);
            }
        }
    }
    return res;
}

xcclResult_t xm_enqueue_bytes(const struct xm_lane *lane, MPI_Count bytes)
{
    const struct xm_buffer *b = lane->buffer;
    struct xm_lane          some = *lane;
    struct xm_buffer        part;
    xcclResult_t            res = xcclSuccess;

    if ((bytes < 0) || (bytes >= b->bytes)) {
        return xm_enqueue(lane);
    }
    MPI_Count whole = bytes / b->layout.size;
    size_t    rest = (size_t)(bytes % b->layout.size);
    some.buffer = &part;
    if (whole > 0) {
        xm_buffer_part(b, 0, whole, &part);
        res = xm_enqueue(&some);
    }
    if ((res == xcclSuccess) && (rest > 0)) {
        xm_buffer_part(b, whole, 1, &part);
        some.other += whole * b->layout.size;
        res = xm_enqueue_head(&some, rest);
    }
    return res;
}

bool xm_enqueue_cost(const struct xm_lane *lane, struct xm_cost *cost_p)
{
    *cost_p = (struct xm_cost){.kernel = true};
    for (int i = 0; i < lane->buffer->blocks; i++) {
        struct xm_block block = xm_block_at(lane->copier->call, lane->buffer, i);
        struct xm_cost  cost = {1, 1, true};
        if (is_empty(&block)) {
            continue;
        }
        if (!block.layout->plain) {
            if (block.layout->flat == NULL) {
                return false;
            }
            cost = cost_of_runs(lane, &block);
            free(better_mask(lane, &block, &cost.calls));
        }
        cost_p->calls += cost.calls;
        cost_p->rows += cost.rows;
        cost_p->kernel = cost_p->kernel && cost.kernel;
    }
    return true;
}

static bool block_ordered(const struct xm_block *block)
{
    const struct xm_layout *l = block->layout;

    if (l->plain) {
        return true;
    }
    if ((l->flat == NULL) || !l->flat->disjoint) {
        return false;
    }
    MPI_Count extent = (l->extent < 0) ? -l->extent : l->extent;
    if ((block->count == 1) || (extent >= l->flat->high - l->flat->low)) {
        return true;
    }
    struct xm_run run = xm_block_run(block, 0);
    return (l->flat->runs.count == 1) && xm_run_disjoint(&run);
}

bool xm_ordered(const struct xm_call *call, const struct xm_buffer *buffer)
{
    for (int i = 0; i < buffer->blocks; i++) {
        struct xm_block block = xm_block_at(call, buffer, i);
        if (!is_empty(&block) && !block_ordered(&block)) {
            return false;
        }
    }
    return true;
}
