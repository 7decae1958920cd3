/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/runs.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Stretches that are looked at one by one to see whether they overlap. */
enum { MOST_LOOKED_AT = 1 << 16 };

void xm_runs_free(struct xm_runs *runs)
{
    free(runs->run);
    *runs = (struct xm_runs){.run = NULL};
}

static bool grow(struct xm_runs *runs, size_t count)
{
    size_t room = (runs->room > 0) ? runs->room : 4;

    if (count <= runs->room) {
        return true;
    }
    if (count > XM_MAX_RUNS) {
        return false;
    }
    while (room < count) {
        room *= 2;
    }
    struct xm_run *run = realloc(runs->run, room * sizeof(*run));
    if (run == NULL) {
        return false;
    }
    runs->run = run;
    runs->room = room;
    return true;
}

bool xm_runs_copy(struct xm_runs *to, const struct xm_runs *from)
{
    if (!grow(to, from->count)) {
        return false;
    }
    if (from->count > 0) {
        memcpy(to->run, from->run, from->count * sizeof(*from->run));
    }
    to->count = from->count;
    to->size = from->size;
    return true;
}

/* Does `next` lie `times` such steps behind `first`? */
static bool follows(const struct xm_run *first, const struct xm_run *next,
                    const struct xm_level *step, size_t times)
{
    return (next->offset == first->offset + step->stride * (ptrdiff_t)times) &&
           (next->packed == first->packed + step->packed * times);
}

static bool same_levels(const struct xm_run *a, const struct xm_run *b, int levels)
{
    for (int i = 0; i < levels; i++) {
        if ((a->level[i].count != b->level[i].count) ||
            (a->level[i].stride != b->level[i].stride) ||
            (a->level[i].packed != b->level[i].packed)) {
            return false;
        }
    }
    return true;
}

/* Both are repetitions of one thing at one distance, and b begins where a ends. */
static bool continues(const struct xm_run *a, const struct xm_run *b)
{
    int top = a->levels - 1;

    return (a->levels > 0) && (a->levels == b->levels) && same_levels(a, b, top) &&
           (a->level[top].stride == b->level[top].stride) &&
           (a->level[top].packed == b->level[top].packed) &&
           follows(a, b, &a->level[top], a->level[top].count);
}

/* Make b a part of a, or return false. */
static bool join(struct xm_run *a, const struct xm_run *b)
{
    struct xm_level *top = &a->level[a->levels - ((a->levels > 0) ? 1 : 0)];

    if ((a->levels == 0) && (b->levels == 0) && (b->offset == a->offset + (ptrdiff_t)a->bytes) &&
        (b->packed == a->packed + a->bytes)) {
        a->bytes += b->bytes;
        return true;
    }
    if (a->bytes != b->bytes) {
        return false;
    }
    if (continues(a, b)) {
        top->count += b->level[b->levels - 1].count;
        return true;
    }
    if ((a->levels == b->levels + 1) && same_levels(a, b, b->levels) &&
        follows(a, b, top, top->count)) {
        top->count++;
        return true;
    }
    /* Two alike make a level, whatever their distance. */
    return (a->levels == b->levels) && same_levels(a, b, b->levels) && (b->packed > a->packed) &&
           xm_run_repeat(a, 2, b->offset - a->offset, b->packed - a->packed, XM_LEVELS - 1);
}

bool xm_run_repeat(struct xm_run *run, size_t count, ptrdiff_t stride, size_t packed, int limit)
{
    if (count == 1) {
        return true;
    }
    if (run->levels == 0) {
        if ((stride == (ptrdiff_t)run->bytes) && (packed == run->bytes)) {
            return !__builtin_mul_overflow(run->bytes, count, &run->bytes);
        }
    } else {
        struct xm_level *top = &run->level[run->levels - 1];
        if ((stride == top->stride * (ptrdiff_t)top->count) &&
            (packed == top->packed * top->count)) {
            return !__builtin_mul_overflow(top->count, count, &top->count);
        }
    }
    if (run->levels >= limit) {
        return false;
    }
    run->level[run->levels++] = (struct xm_level){count, stride, packed};
    return true;
}

bool xm_runs_append(struct xm_runs *runs, const struct xm_runs *more, ptrdiff_t offset)
{
    size_t before = runs->count;

    for (size_t i = 0; i < more->count; i++) {
        struct xm_run next = more->run[i];
        next.offset += offset;
        next.packed += runs->size;
        /* The last time it was appended, its place was this. */
        if ((before >= more->count) && join(&runs->run[before - more->count + i], &next)) {
            continue;
        }
        if (!grow(runs, runs->count + 1)) {
            return false;
        }
        runs->run[runs->count++] = next;
    }
    return !__builtin_add_overflow(runs->size, more->size, &runs->size);
}

bool xm_runs_add(struct xm_runs *runs, ptrdiff_t offset, size_t bytes)
{
    struct xm_run  run = {.bytes = bytes};
    struct xm_runs one = {.run = &run, .count = 1, .room = 1, .size = bytes};

    return (bytes == 0) || xm_runs_append(runs, &one, offset);
}

/* Where the levels do not suffice: one after the other. */
static bool repeat_singly(struct xm_runs *runs, size_t count, ptrdiff_t stride)
{
    struct xm_runs one = {.run = NULL};
    bool           fine = (count <= XM_MAX_RUNS) && xm_runs_copy(&one, runs);

    for (size_t i = 1; fine && (i < count); i++) {
        fine = xm_runs_append(runs, &one, stride * (ptrdiff_t)i);
    }
    xm_runs_free(&one);
    return fine;
}

bool xm_runs_repeat(struct xm_runs *runs, size_t count, ptrdiff_t stride)
{
    bool fits = true;

    if ((count == 0) || (runs->count == 0)) {
        runs->count = runs->size = 0;
        return true;
    }
    if (count == 1) {
        return true;
    }
    for (size_t i = 0; fits && (i < runs->count); i++) {
        struct xm_run trial = runs->run[i];
        fits = xm_run_repeat(&trial, count, stride, runs->size, XM_LEVELS - 1);
    }
    if (!fits) {
        return repeat_singly(runs, count, stride);
    }
    for (size_t i = 0; i < runs->count; i++) {
        xm_run_repeat(&runs->run[i], count, stride, runs->size, XM_LEVELS - 1);
    }
    return !__builtin_mul_overflow(runs->size, count, &runs->size);
}

void xm_runs_compact(struct xm_runs *runs)
{
    size_t before;

    do { /* what was joined may join again, a level higher */
        before = runs->count;
        size_t kept = 0;
        for (size_t i = 0; i < before; i++) {
            if ((kept == 0) || !join(&runs->run[kept - 1], &runs->run[i])) {
                runs->run[kept++] = runs->run[i];
            }
        }
        runs->count = kept;
    } while (runs->count < before);
}

static void bounds_of(const struct xm_run *run, ptrdiff_t *low_p, ptrdiff_t *high_p)
{
    *low_p = run->offset;
    *high_p = run->offset + (ptrdiff_t)run->bytes;
    for (int i = 0; i < run->levels; i++) {
        ptrdiff_t way = run->level[i].stride * (ptrdiff_t)(run->level[i].count - 1);
        *((way < 0) ? low_p : high_p) += way;
    }
}

void xm_runs_bounds(const struct xm_runs *runs, ptrdiff_t *low_p, ptrdiff_t *high_p)
{
    ptrdiff_t low, high;

    *low_p = *high_p = 0;
    for (size_t i = 0; i < runs->count; i++) {
        bounds_of(&runs->run[i], &low, &high);
        *low_p = ((i == 0) || (low < *low_p)) ? low : *low_p;
        *high_p = ((i == 0) || (high > *high_p)) ? high : *high_p;
    }
}

static size_t distance(const struct xm_level *level)
{
    return (size_t)((level->stride < 0) ? -level->stride : level->stride);
}

/* Level by level, the nearest first: each must reach over all that the ones before it cover. */
bool xm_run_disjoint(const struct xm_run *run)
{
    struct xm_level level[XM_LEVELS];
    size_t          covered = run->bytes;

    for (int i = 0; i < run->levels; i++) { /* sorted as they come */
        int at = i;
        for (; (at > 0) && (distance(&level[at - 1]) > distance(&run->level[i])); at--) {
            level[at] = level[at - 1];
        }
        level[at] = run->level[i];
    }
    for (int i = 0; i < run->levels; i++) {
        if (distance(&level[i]) < covered) {
            return false;
        }
        covered += distance(&level[i]) * (level[i].count - 1);
    }
    return true;
}

size_t xm_run_stretches(const struct xm_run *run)
{
    size_t number = 1;

    for (int i = 0; i < run->levels; i++) {
        if (__builtin_mul_overflow(number, run->level[i].count, &number)) {
            return SIZE_MAX;
        }
    }
    return number;
}

void xm_run_at(const struct xm_run *run, size_t i, ptrdiff_t *offset_p, size_t *packed_p)
{
    *offset_p = run->offset;
    *packed_p = run->packed;
    for (int l = 0; l < run->levels; l++) {
        size_t step = i % run->level[l].count;
        i /= run->level[l].count;
        *offset_p += run->level[l].stride * (ptrdiff_t)step;
        *packed_p += run->level[l].packed * step;
    }
}

struct interval {
    ptrdiff_t low, high;
};

static int compare(const void *a, const void *b)
{
    ptrdiff_t x = ((const struct interval *)a)->low, y = ((const struct interval *)b)->low;

    return (x > y) - (x < y);
}

static bool none_overlap(struct interval *all, size_t count)
{
    qsort(all, count, sizeof(*all), compare);
    for (size_t i = 1; i < count; i++) {
        if (all[i].low < all[i - 1].high) {
            return false;
        }
    }
    return true;
}

/* Run by run: does each keep to an interval of its own? */
static bool apart(const struct xm_runs *runs)
{
    struct interval *all = malloc(runs->count * sizeof(*all));
    bool             good = (all != NULL);

    for (size_t i = 0; good && (i < runs->count); i++) {
        bounds_of(&runs->run[i], &all[i].low, &all[i].high);
        good = xm_run_disjoint(&runs->run[i]);
    }
    good = good && none_overlap(all, runs->count);
    free(all);
    return good;
}

/* Stretch by stretch, if they are not too many. */
static bool stretches_apart(const struct xm_runs *runs)
{
    size_t total = 0, at = 0, packed;

    for (size_t i = 0; i < runs->count; i++) {
        size_t number = xm_run_stretches(&runs->run[i]);
        if ((number > MOST_LOOKED_AT) || ((total += number) > MOST_LOOKED_AT)) {
            return false;
        }
    }
    struct interval *all = malloc(total * sizeof(*all));
    if (all == NULL) {
        return false;
    }
    for (size_t i = 0; i < runs->count; i++) {
        for (size_t n = 0; n < xm_run_stretches(&runs->run[i]); n++, at++) {
            xm_run_at(&runs->run[i], n, &all[at].low, &packed);
            all[at].high = all[at].low + (ptrdiff_t)runs->run[i].bytes;
        }
    }
    bool good = none_overlap(all, total);
    free(all);
    return good;
}

bool xm_runs_disjoint(const struct xm_runs *runs)
{
    return (runs->count == 0) || apart(runs) || stretches_apart(runs);
}
