/* SPDX-License-Identifier: BSD-3-Clause */
#include "tune/refine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/sort.h"

struct tune_point *tune_point_at(struct tune_points *points, uint64_t bytes)
{
    size_t at = 0;

    while ((at < points->count) && (points->points[at].bytes < bytes)) {
        at++;
    }
    if ((at < points->count) && (points->points[at].bytes == bytes)) {
        return &points->points[at];
    }
    if (points->count == points->room) {
        size_t             room = 2 * points->room + 16;
        struct tune_point *more = realloc(points->points, room * sizeof(*more));
        if (more == NULL) {
            return NULL;
        }
        points->points = more;
        points->room = room;
    }
    memmove(&points->points[at + 1], &points->points[at],
            (points->count - at) * sizeof(points->points[0]));
    points->count++;
    points->points[at] = (struct tune_point){.bytes = bytes};
    return &points->points[at];
}

void tune_points_free(struct tune_points *points)
{
    free(points->points);
    *points = (struct tune_points){0};
}

/* The samples in order; returns how many. */
static int sorted(const struct tune_samples *samples, double *us)
{
    memcpy(us, samples->us, (size_t)samples->count * sizeof(us[0]));
    sort_doubles(us, (size_t)samples->count);
    return samples->count;
}

double tune_median(const struct tune_samples *samples)
{
    double us[TUNE_MAX_SAMPLES];
    int    n = sorted(samples, us);

    return (n == 0) ? 0 : (us[(n - 1) / 2] + us[n / 2]) / 2;
}

/* Half the range of the middle half, which a single odd sample does not widen. */
double tune_noise(const struct tune_samples *samples)
{
    double us[TUNE_MAX_SAMPLES];
    int    n = sorted(samples, us);

    if (n < 2) {
        return 0;
    }
    int low = n / 4, high = n - 1 - n / 4;
    return (us[high] - us[low]) / 2;
}

static bool is_measured(const struct tune_samples *s)
{
    return !s->missing && (s->count > 0);
}

static int best_of(const struct tune_point *point)
{
    int best = -1;

    for (int p = 0; p < XM_NUM_PATHS; p++) {
        if (is_measured(&point->paths[p]) &&
            ((best < 0) || (tune_median(&point->paths[p]) < tune_median(&point->paths[best])))) {
            best = p;
        }
    }
    return best;
}

bool tune_is_level(const struct tune_point *point, enum xm_path_id path)
{
    int                        best = best_of(point);
    const struct tune_samples *s = &point->paths[path];

    if ((best < 0) || !is_measured(s)) {
        return false;
    }
    const struct tune_samples *b = &point->paths[best];
    /* The fewer samples, the more often do they lie close to each other by chance alone. */
    int    fewest = (s->count < b->count) ? s->count : b->count;
    double margin = 1 + 9.0 / fewest;
    return tune_median(s) - tune_median(b) <= margin * (tune_noise(s) + tune_noise(b));
}

/* Has one path at this size too few samples? The one with the fewest, so that they take turns. */
static bool next_at(const struct tune_point *point, const struct tune_limits *limits,
                    struct tune_request *request)
{
    bool undecided = false;
    int  wanted = limits->fewest_samples, fewest = -1, best = best_of(point);

    for (int p = 0; p < XM_NUM_PATHS; p++) {
        undecided = undecided || ((p != best) && tune_is_level(point, (enum xm_path_id)p));
    }
    for (int p = 0; p < XM_NUM_PATHS; p++) {
        const struct tune_samples *s = &point->paths[p];
        bool                       level = undecided && tune_is_level(point, (enum xm_path_id)p);
        int                        enough = level ? limits->most_samples : wanted;
        if (!s->missing && (s->count < enough) &&
            ((fewest < 0) || (s->count < point->paths[fewest].count))) {
            fewest = p;
        }
    }
    if (fewest < 0) {
        return false;
    }
    *request = (struct tune_request){point->bytes, (enum xm_path_id)fewest};
    return true;
}

/* Five binary digits are enough for a border, and keep sizes multiples of what kernels like. */
static uint64_t round_size(const struct tune_limits *limits, double bytes)
{
    uint64_t g = limits->granularity;

    while ((double)g * 32 <= bytes) {
        g *= 2;
    }
    uint64_t rounded = (uint64_t)(bytes / (double)g + 0.5) * g;
    return (rounded < g) ? g : rounded;
}

static uint64_t grid_after(const struct tune_limits *limits, uint64_t bytes)
{
    uint64_t next = round_size(limits, (double)bytes * limits->factor);

    return (next > bytes) ? next : bytes + limits->granularity;
}

static uint64_t grid_begin(const struct tune_limits *limits)
{
    return round_size(limits, (double)limits->least);
}

static const struct tune_point *find(const struct tune_points *points, uint64_t bytes)
{
    for (size_t i = 0; i < points->count; i++) {
        if (points->points[i].bytes == bytes) {
            return &points->points[i];
        }
    }
    return NULL;
}

static bool next_at_size(const struct tune_points *points, const struct tune_limits *limits,
                         uint64_t bytes, struct tune_request *request)
{
    const struct tune_point  none = {.bytes = bytes};
    const struct tune_point *point = find(points, bytes);

    return next_at((point != NULL) ? point : &none, limits, request);
}

/* In the middle, on the scale of powers; low: there is no size between. */
static uint64_t middle(const struct tune_limits *limits, uint64_t low, uint64_t high)
{
    uint64_t mid = round_size(limits, sqrt((double)low * (double)high));

    if ((double)high <= (double)low * limits->resolution) {
        return low;
    }
    return ((mid > low) && (mid < high)) ? mid : low;
}

static bool next_between(const struct tune_points *points, const struct tune_limits *limits,
                         struct tune_request *request)
{
    enum xm_path_id *choices = calloc(points->count + 1, sizeof(*choices));
    bool             more = false;

    if (choices == NULL) {
        return false;
    }
    tune_choose(points, choices);
    for (size_t i = 1; (i < points->count) && !more; i++) {
        uint64_t low = points->points[i - 1].bytes, high = points->points[i].bytes;
        if (choices[i] != choices[i - 1]) {
            uint64_t mid = middle(limits, low, high);
            more = (mid != low) && next_at_size(points, limits, mid, request);
        }
    }
    free(choices);
    return more;
}

/* A path that an earlier run did not get: one measurement says whether it is still so. */
static bool next_doubted(const struct tune_points *points, const struct tune_limits *limits,
                         struct tune_request *request)
{
    for (size_t i = 0; i < points->count; i++) {
        const struct tune_point *point = &points->points[i];
        for (int p = 0; (p < XM_NUM_PATHS) && (point->bytes <= limits->most); p++) {
            if (point->paths[p].doubted) {
                *request = (struct tune_request){point->bytes, (enum xm_path_id)p};
                return true;
            }
        }
    }
    return false;
}

bool tune_next(const struct tune_points *points, const struct tune_limits *limits,
               struct tune_request *request)
{
    if (next_doubted(points, limits, request)) {
        return true;
    }
    for (uint64_t b = grid_begin(limits); b <= limits->most; b = grid_after(limits, b)) {
        if (next_at_size(points, limits, b, request)) {
            return true;
        }
    }
    /* Sizes between them, which a border asked for. */
    for (size_t i = 0; i < points->count; i++) {
        if (next_at(&points->points[i], limits, request)) {
            return true;
        }
    }
    return next_between(points, limits, request);
}

void tune_choose(const struct tune_points *points, enum xm_path_id *choices)
{
    int first = -1;

    for (size_t i = 0; i < points->count; i++) {
        int best = best_of(&points->points[i]);
        choices[i] = (best < 0) ? XM_PATH_MPI : (enum xm_path_id)best;
        if ((i > 0) && ((best < 0) || tune_is_level(&points->points[i], choices[i - 1]))) {
            choices[i] = choices[i - 1];
        }
    }
    /* What is level at the beginning follows the first size that decides. */
    for (size_t i = 0; (i < points->count) && (first < 0); i++) {
        bool alone = true;
        for (int p = 0; p < XM_NUM_PATHS; p++) {
            alone = alone && ((p == best_of(&points->points[i])) ||
                              !tune_is_level(&points->points[i], (enum xm_path_id)p));
        }
        first = alone ? (int)i : -1;
    }
    for (int i = first - 1; i >= 0; i--) {
        if (!tune_is_level(&points->points[i], choices[i + 1])) {
            break;
        }
        choices[i] = choices[i + 1];
    }
}

size_t tune_left(const struct tune_points *points, const struct tune_limits *limits)
{
    size_t left = 0;

    for (uint64_t b = grid_begin(limits); b <= limits->most; b = grid_after(limits, b)) {
        const struct tune_point *point = find(points, b);
        for (int p = 0; p < XM_NUM_PATHS; p++) {
            const struct tune_samples *s = (point != NULL) ? &point->paths[p] : NULL;
            int                        have = (s != NULL) ? s->count : 0;
            if ((s == NULL) || (!s->missing && (have < limits->fewest_samples))) {
                left += (size_t)(limits->fewest_samples - have);
            }
        }
    }
    return left;
}
