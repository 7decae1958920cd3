/* SPDX-License-Identifier: BSD-3-Clause */
/* What the measuring programs share: a clock, the median, and the form of their reports. */
#ifndef XCCL_BENCH_BENCH_H
#define XCCL_BENCH_BENCH_H

#include <stdbool.h>
#include <stdio.h>

/* One bar: what was measured, and the most that is allowed (negative: measured for information). */
struct bench_bar {
    char        name[80];
    const char *unit;
    double      limit;
    double      measured;
    double      without, with; /* the two times that it comes from, in the same unit */
};

double bench_now_ns(void);
/* Median of n values; sorts them. */
double bench_median(double *values, int n);
double bench_least(const double *values, int n);
/* A line that ci/bench makes its table of, and false if the bar is missed. */
bool bench_report(const struct bench_bar *bar);
/* All of them as JSON; false with a message if the file cannot be written. */
bool bench_write_json(const char *file, const char *program, const char *where,
                      const struct bench_bar *bars, int count);

#endif
