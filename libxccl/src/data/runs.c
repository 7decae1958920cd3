/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/runs.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Stretches that are looked at one by one to see whether they overlap. */
enum { MOST_LOOKED_AT = 1 << 16 };

/*
 * Of more runs than these, two stretches alike do not make a level yet, but three at one distance
 * do: an irregular type has many that are alike, and levels would only take room.
 */
enum { FEW_RUNS = 16 };

struct xm_levels {
    int             count;
    struct xm_level level[XM_LEVELS];
};

static void drop_behind(struct xm_runs *runs, size_t count)
{
    for (size_t i = count; i < runs->count; i++) {
        free(runs->kept[i].levels);
    }
    runs->count = count;
}

void xm_runs_free(struct xm_runs *runs)
{
    drop_behind(runs, 0);
    free(runs->kept);
    *runs = (struct xm_runs){.kept = NULL};
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
    struct xm_kept_run *kept = realloc(runs->kept, room * sizeof(*kept));
    if (kept == NULL) {
        return false;
    }
    runs->kept = kept;
    runs->room = room;
    return true;
}

/* Without clearing what is not used: this is done for each of millions. */
static void get(const struct xm_runs *runs, size_t i, struct xm_run *run)
{
    const struct xm_kept_run *kept = &runs->kept[i];

    run->offset = kept->offset;
    run->packed = kept->packed;
    run->bytes = kept->bytes;
    run->levels = (kept->levels != NULL) ? kept->levels->count : 0;
    if (run->levels > 0) {
        memcpy(run->level, kept->levels->level, (size_t)run->levels * sizeof(run->level[0]));
    }
}

/* In the place of one that is there, or behind the last, where there is room. */
static bool put(struct xm_runs *runs, size_t i, const struct xm_run *run)
{
    struct xm_kept_run *kept = &runs->kept[i];
    struct xm_levels   *levels = (i < runs->count) ? kept->levels : NULL;

    if ((run->levels > 0) && (levels == NULL)) {
        levels = malloc(sizeof(*levels));
        if (levels == NULL) {
            return false;
        }
    } else if (run->levels == 0) {
        free(levels);
        levels = NULL;
    }
    *kept = (struct xm_kept_run){run->offset, run->packed, run->bytes, levels};
    if (levels != NULL) {
        levels->count = run->levels;
        memcpy(levels->level, run->level, (size_t)run->levels * sizeof(run->level[0]));
    }
    runs->count += (i == runs->count);
    return true;
}

struct xm_run xm_runs_at(const struct xm_runs *runs, size_t i)
{
    struct xm_run run;

    memset(&run, 0, sizeof(run));
    get(runs, i, &run);
    return run;
}

bool xm_runs_copy(struct xm_runs *to, const struct xm_runs *from)
{
    struct xm_run run;
    bool          good = grow(to, from->count);

    drop_behind(to, 0);
    for (size_t i = 0; good && (i < from->count); i++) {
        get(from, i, &run);
        good = put(to, i, &run);
    }
    to->size = from->size;
    return good;
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

/* Make b a part of a, or return false. pairs: two alike make a level, whatever their distance. */
static bool join(struct xm_run *a, const struct xm_run *b, bool pairs)
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
    return pairs && (a->levels == b->levels) && same_levels(a, b, b->levels) &&
           (b->packed > a->packed) &&
           xm_run_repeat(a, 2, b->offset - a->offset, b->packed - a->packed, XM_LEVELS - 1);
}

/* Do the last two stretches and the next one lie at one distance? Then they become one run. */
static bool join_three(struct xm_runs *runs, const struct xm_run *next)
{
    size_t                    last = runs->count - 1;
    const struct xm_kept_run *a = &runs->kept[last - 1], *b = &runs->kept[last];
    struct xm_run             run = {.offset = a->offset, .packed = a->packed, .bytes = a->bytes};
    bool same = (a->bytes == next->bytes) && (b->bytes == next->bytes) && (a->levels == NULL) &&
                (b->levels == NULL) && (b->packed > a->packed) &&
                (next->offset - b->offset == b->offset - a->offset) &&
                (next->packed - b->packed == b->packed - a->packed);

    if (!same ||
        !xm_run_repeat(&run, 3, b->offset - a->offset, b->packed - a->packed, XM_LEVELS - 1)) {
        return false;
    }
    drop_behind(runs, last);
    return put(runs, last - 1, &run);
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

/* Of many: the way of the millions. */
static bool append_stretch(struct xm_runs *runs, ptrdiff_t offset, size_t bytes)
{
    struct xm_kept_run *last = &runs->kept[runs->count - 1];
    struct xm_run       next = {.offset = offset, .packed = runs->size, .bytes = bytes};

    if ((offset == last->offset + (ptrdiff_t)last->bytes) &&
        (runs->size == last->packed + last->bytes)) {
        last->bytes += bytes;
    } else if (!join_three(runs, &next)) {
        if (!grow(runs, runs->count + 1)) {
            return false;
        }
        runs->kept[runs->count++] =
            (struct xm_kept_run){next.offset, next.packed, next.bytes, NULL};
    }
    return !__builtin_add_overflow(runs->size, bytes, &runs->size);
}

bool xm_runs_append(struct xm_runs *runs, const struct xm_runs *more, ptrdiff_t offset)
{
    size_t        before = runs->count;
    bool          stretch = (more->count == 1) && (more->kept[0].levels == NULL);
    bool          pairs = !stretch || (before <= FEW_RUNS);
    struct xm_run last, next;

    if (!pairs && (runs->kept[before - 1].levels == NULL)) {
        return append_stretch(runs, more->kept[0].offset + offset, more->kept[0].bytes);
    }
    for (size_t i = 0; i < more->count; i++) {
        get(more, i, &next);
        next.offset += offset;
        next.packed += runs->size;
        /* The last time it was appended, its place was this. */
        if (before >= more->count) {
            size_t at = before - more->count + i;
            get(runs, at, &last);
            if (join(&last, &next, pairs)) {
                if (!put(runs, at, &last)) {
                    return false;
                }
                continue;
            }
        }
        if (!grow(runs, runs->count + 1) || !put(runs, runs->count, &next)) {
            return false;
        }
    }
    return !__builtin_add_overflow(runs->size, more->size, &runs->size);
}

bool xm_runs_add(struct xm_runs *runs, ptrdiff_t offset, size_t bytes)
{
    struct xm_kept_run run = {.bytes = bytes};
    struct xm_runs     one = {.kept = &run, .count = 1, .room = 1, .size = bytes};

    return (bytes == 0) || xm_runs_append(runs, &one, offset);
}

/* Where the levels do not suffice: one after the other. */
static bool repeat_singly(struct xm_runs *runs, size_t count, ptrdiff_t stride)
{
    struct xm_runs one = {.kept = NULL};
    bool           fine = (count <= XM_MAX_RUNS) && xm_runs_copy(&one, runs);

    for (size_t i = 1; fine && (i < count); i++) {
        fine = xm_runs_append(runs, &one, stride * (ptrdiff_t)i);
    }
    xm_runs_free(&one);
    return fine;
}

bool xm_runs_repeat(struct xm_runs *runs, size_t count, ptrdiff_t stride)
{
    bool          fits = true;
    struct xm_run run;

    if ((count == 0) || (runs->count == 0)) {
        drop_behind(runs, 0);
        runs->size = 0;
        return true;
    }
    if (count == 1) {
        return true;
    }
    for (size_t i = 0; fits && (i < runs->count); i++) {
        get(runs, i, &run);
        fits = xm_run_repeat(&run, count, stride, runs->size, XM_LEVELS - 1);
    }
    if (!fits) {
        return repeat_singly(runs, count, stride);
    }
    for (size_t i = 0; i < runs->count; i++) {
        get(runs, i, &run);
        xm_run_repeat(&run, count, stride, runs->size, XM_LEVELS - 1);
        if (!put(runs, i, &run)) {
            return false;
        }
    }
    return !__builtin_mul_overflow(runs->size, count, &runs->size);
}

/* Make a run part of the one before it. many: see FEW_RUNS. */
static bool absorb(struct xm_runs *runs, size_t before, size_t i, bool many)
{
    struct xm_kept_run       *a = &runs->kept[before];
    const struct xm_kept_run *b = &runs->kept[i];
    struct xm_run             last, next;

    if (many && (a->levels == NULL) && (b->levels == NULL)) {
        bool side_by_side =
            (b->offset == a->offset + (ptrdiff_t)a->bytes) && (b->packed == a->packed + a->bytes);
        a->bytes += side_by_side ? b->bytes : 0;
        return side_by_side;
    }
    get(runs, before, &last);
    get(runs, i, &next);
    return join(&last, &next, !many || (b->levels != NULL)) && put(runs, before, &last);
}

void xm_runs_compact(struct xm_runs *runs)
{
    size_t before, kept;

    do { /* what was joined may join again, a level higher */
        before = runs->count;
        kept = 0;
        for (size_t i = 0; i < before; i++) {
            if ((kept > 0) && absorb(runs, kept - 1, i, before > FEW_RUNS)) {
                continue;
            }
            if (kept < i) {
                struct xm_kept_run moved = runs->kept[kept];
                runs->kept[kept] = runs->kept[i];
                runs->kept[i] = moved; /* and its levels go with those behind */
            }
            kept++;
        }
        drop_behind(runs, kept);
    } while (kept < before);
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

static void bounds_at(const struct xm_runs *runs, size_t i, ptrdiff_t *low_p, ptrdiff_t *high_p)
{
    const struct xm_kept_run *kept = &runs->kept[i];
    struct xm_run             run;

    if (kept->levels == NULL) {
        *low_p = kept->offset;
        *high_p = kept->offset + (ptrdiff_t)kept->bytes;
        return;
    }
    get(runs, i, &run);
    bounds_of(&run, low_p, high_p);
}

void xm_runs_bounds(const struct xm_runs *runs, ptrdiff_t *low_p, ptrdiff_t *high_p)
{
    ptrdiff_t low, high;

    *low_p = *high_p = 0;
    for (size_t i = 0; i < runs->count; i++) {
        bounds_at(runs, i, &low, &high);
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

size_t xm_runs_stretches(const struct xm_runs *runs)
{
    size_t        number = 0;
    struct xm_run run;

    for (size_t i = 0; i < runs->count; i++) {
        size_t more = 1;
        if (runs->kept[i].levels != NULL) {
            get(runs, i, &run);
            more = xm_run_stretches(&run);
        }
        if (__builtin_add_overflow(number, more, &number)) {
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

static bool are_sorted(const struct interval *all, size_t count)
{
    size_t i = 1;

    while ((i < count) && (all[i - 1].low <= all[i].low)) {
        i++;
    }
    return i >= count;
}

static bool none_overlap(struct interval *all, size_t count)
{
    if (!are_sorted(all, count)) {
        qsort(all, count, sizeof(*all), compare);
    }
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
    struct xm_run    run;

    for (size_t i = 0; good && (i < runs->count); i++) {
        bounds_at(runs, i, &all[i].low, &all[i].high);
        if (runs->kept[i].levels != NULL) {
            get(runs, i, &run);
            good = xm_run_disjoint(&run);
        }
    }
    good = good && none_overlap(all, runs->count);
    free(all);
    return good;
}

/* Stretch by stretch, if they are not too many. */
static bool stretches_apart(const struct xm_runs *runs)
{
    size_t           total = xm_runs_stretches(runs), at = 0, packed;
    struct interval *all = (total <= MOST_LOOKED_AT) ? malloc(total * sizeof(*all)) : NULL;
    struct xm_run    run;

    if (all == NULL) {
        return false;
    }
    for (size_t i = 0; i < runs->count; i++) {
        get(runs, i, &run);
        for (size_t n = 0; n < xm_run_stretches(&run); n++, at++) {
            xm_run_at(&run, n, &all[at].low, &packed);
            all[at].high = all[at].low + (ptrdiff_t)run.bytes;
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
