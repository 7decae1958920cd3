/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where the data of a datatype lies in memory and in its packed form, as runs: stretches of bytes
 * repeated at regular distances. Pure functions: no MPI, no device.
 */
#ifndef XM_DATA_RUNS_H
#define XM_DATA_RUNS_H

#include <stdbool.h>
#include <stddef.h>

/* A type's run has at most one level less: the last is for the count of a call. */
enum { XM_LEVELS = 5, XM_MAX_RUNS = 1 << 22 };

/* Something is there `count` times, so many bytes apart in memory and in the packed data. */
struct xm_level {
    size_t    count;
    ptrdiff_t stride; /* may be negative, or less than what is repeated is long */
    size_t    packed;
};

/* One stretch, repeated by each level in turn; the innermost level is the first. */
struct xm_run {
    ptrdiff_t       offset; /* of the first stretch, from the buffer */
    size_t          packed; /* and from the beginning of the packed data */
    size_t          bytes;
    int             levels;
    struct xm_level level[XM_LEVELS];
};

/* As it is kept: of an irregular type there may be millions, and they have no levels. */
struct xm_levels;
struct xm_kept_run {
    ptrdiff_t         offset;
    size_t            packed;
    size_t            bytes;
    struct xm_levels *levels; /* or NULL */
};

/* What an element of a type consists of. Zeroed: of nothing. */
struct xm_runs {
    struct xm_kept_run *kept;
    size_t              count;
    size_t              room;
    size_t              size; /* bytes of data */
};

void xm_runs_free(struct xm_runs *runs);
/* Number i. */
struct xm_run xm_runs_at(const struct xm_runs *runs, size_t i);

/*
 * All of these are false where memory, the levels or XM_MAX_RUNS do not suffice. What was there is
 * then of no use any more.
 */
/* A stretch without holes, behind what is there already. */
bool xm_runs_add(struct xm_runs *runs, ptrdiff_t offset, size_t bytes);
/* All of `more`, `offset` bytes further on in memory, behind what is there already. */
bool xm_runs_append(struct xm_runs *runs, const struct xm_runs *more, ptrdiff_t offset);
/* The whole `count` times, `stride` bytes apart in memory, and side by side when packed. */
bool xm_runs_repeat(struct xm_runs *runs, size_t count, ptrdiff_t stride);
bool xm_runs_copy(struct xm_runs *to, const struct xm_runs *from);

/* Join runs that continue each other. Once, at the end. */
void xm_runs_compact(struct xm_runs *runs);

/* The bytes touched are in [low, high); both 0 for nothing. */
void xm_runs_bounds(const struct xm_runs *runs, ptrdiff_t *low_p, ptrdiff_t *high_p);

/* Is it certain that no byte is there twice? Of many interleaved runs that may be unknown. */
bool xm_runs_disjoint(const struct xm_runs *runs);

/* One more level; false if there is no room for it. limit: at most XM_LEVELS. */
bool xm_run_repeat(struct xm_run *run, size_t count, ptrdiff_t stride, size_t packed, int limit);
/* As xm_runs_disjoint(). */
bool xm_run_disjoint(const struct xm_run *run);
/* Number of stretches; SIZE_MAX: of more. */
size_t xm_run_stretches(const struct xm_run *run);
size_t xm_runs_stretches(const struct xm_runs *runs);
/* Where the i-th of them lies, in the order of packing. */
void xm_run_at(const struct xm_run *run, size_t i, ptrdiff_t *offset_p, size_t *packed_p);

#endif
