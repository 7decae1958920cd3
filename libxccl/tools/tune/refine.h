/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What to measure next, and what follows from what was measured, for one collective on one
 * communicator. Pure: no MPI, no clock. All that is known lies in the points, so a run that was
 * stopped goes on where its points end.
 */
#ifndef XCCL_TUNE_REFINE_H
#define XCCL_TUNE_REFINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decide/decide.h"

enum { TUNE_MAX_SAMPLES = 15 };

/* The medians that were measured of one path at one size, in microseconds. */
struct tune_samples {
    int    count;
    bool   missing; /* the path does not carry this call */
    bool   doubted; /* missing in an earlier run alone, in which a library may not have started */
    double us[TUNE_MAX_SAMPLES];
};

struct tune_point {
    uint64_t            bytes;
    struct tune_samples paths[XM_NUM_PATHS];
};

/* By bytes, ascending. */
struct tune_points {
    size_t             count, room;
    struct tune_point *points;
};

struct tune_limits {
    uint64_t least, most; /* bytes */
    double   factor;      /* between the sizes that are measured in any case */
    double   resolution;  /* a border is narrowed down until it lies between sizes of this ratio */
    uint64_t granularity; /* sizes are multiples of it */
    int      fewest_samples, most_samples; /* of a path at a size; odd numbers */
};

struct tune_request {
    uint64_t        bytes;
    enum xm_path_id path;
};

/* The point of a size, made if there is none; NULL: out of memory. */
struct tune_point *tune_point_at(struct tune_points *points, uint64_t bytes);
void               tune_points_free(struct tune_points *points);

/* False: nothing is left to measure. */
bool tune_next(const struct tune_points *points, const struct tune_limits *limits,
               struct tune_request *request_p);

/* Of these samples, in which a single odd one counts little. Both 0 if there is none. */
double tune_median(const struct tune_samples *samples);
double tune_noise(const struct tune_samples *samples);

/* Is path as good as the best one at this point, within the noise of both? */
bool tune_is_level(const struct tune_point *point, enum xm_path_id path);

/*
 * The path of each point, as many as there are points: the best, or among those level with it the
 * one of its neighbour, so that noise makes no rows.
 */
void tune_choose(const struct tune_points *points, enum xm_path_id *choices);

/* How many measurements are left at least. */
size_t tune_left(const struct tune_points *points, const struct tune_limits *limits);

#endif
