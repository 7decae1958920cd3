/* SPDX-License-Identifier: BSD-3-Clause */
/* xccl-tune: what the files share that measure. */
#ifndef XCCL_TUNE_TUNE_H
#define XCCL_TUNE_TUNE_H

#include "measure/measure.h"
#include "tune/rows.h"

enum { TUNE_MAX_LIST = 32 };

struct tune_list {
    int count, values[TUNE_MAX_LIST];
};

struct tune_options {
    uint32_t           colls; /* a bit per enum perf_test */
    struct tune_limits limits;
    struct tune_list   nodes, per_node; /* empty: powers of two, and all there are */
    const char        *folder;
    double             minutes; /* 0: no limit */
    long               iters;
    double             max_time; /* seconds of timed calls a sample */
    enum perf_memory   memory;
    const char        *device;
    uint64_t           seed;
    long               timeout;
    double             progress;   /* seconds from line to line without a terminal; 0: no lines */
    const char        *compare[2]; /* files */
    const char        *check;      /* file */
};

/* options.c: 0: go on; else the status to exit with, plus 1 (--help is 1). */
int tune_options_parse(struct tune_options *opt, int argc, char **argv, bool speak);

struct tune_job;
/* key.c */
/* What a state must agree with, in TUNE_MAX_KEY bytes: sizes and samples may be changed. */
void tune_key_make(const struct tune_job *job, char *key);

/* origin.c */
/* What this machine has, as far as it can be known without MPI. dev: NULL: none. */
void tune_origin_here(const struct xc_device_ops *dev, int device, struct tune_origin *origin);
/* Print what differs between a table's head and here; how many things do. */
int tune_check(FILE *f, const struct xm_head *head, const struct tune_origin *here);

struct tune_job {
    struct tune_options opt;
    struct perf_run     world;    /* all ranks */
    int                 nodes;    /* of the job */
    int                 per_node; /* the fewest ranks on a node */
    int                 node;     /* of this rank, in the order of their first ranks */
    size_t              room;     /* bytes of device memory for the buffers of a rank */
    struct tune_origin  origin;
    struct tune_store   store; /* rank 0 */
    FILE               *state; /* rank 0 */
    size_t              done;  /* measurements of this run */
    double              begun; /* seconds */
    /* Why the last call that was asked of a path was not carried by it; rank 0. */
    char   why[XM_NUM_PATHS][256];
    double said; /* when progress was printed last */
};

enum tune_outcome { TUNE_FINISHED, TUNE_STOPPED, TUNE_FAILED };

/* work.c */
/* Every rank knows the nodes; the shapes to measure follow. */
void tune_find_nodes(struct tune_job *job);
/* Has the job what --nodes and --ranks-per-node ask for? Rank 0 prints what it has not. */
bool tune_has_shapes(const struct tune_job *job);
/* Measure until nothing is left, or a signal or --minutes asks to stop. Collective. */
enum tune_outcome tune_work(struct tune_job *job);

#endif
