/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All that a run of xccl-tune has measured: points for each collective on each communicator, and
 * the state file that keeps them. Every sample is a line that is written at once, so a run may be
 * stopped in any way and goes on from there.
 */
#ifndef XCCL_TUNE_STORE_H
#define XCCL_TUNE_STORE_H

#include <stdio.h>

#include "tune/refine.h"

enum { TUNE_MAX_KEY = 4096 };

/* So many ranks on each of so many nodes. */
struct tune_shape {
    int nodes, per_node;
};

struct tune_series {
    struct tune_shape  shape;
    enum xm_coll       coll;
    struct tune_points points;
    bool               whole; /* nothing was left to measure: only then do rows follow from it */
    bool               again; /* it was whole, and there is more to measure since */
};

struct tune_store {
    size_t              count;
    struct tune_series *series;
};

/* Made if there is none; NULL: out of memory. Valid until the next is made. */
struct tune_series *tune_series_of(struct tune_store *store, struct tune_shape shape,
                                   enum xm_coll coll);
void                tune_store_free(struct tune_store *store);

/*
 * Keep a sample; us is negative where the path does not carry the call. What a state says of that
 * is doubted until a sample of the path, of whatever size, has settled it. False: out of memory.
 */
bool tune_sample_add(struct tune_store *store, struct tune_shape shape, enum xm_coll coll,
                     const struct tune_request *request, double us);

/*
 * Write a sample's line, and see that it reaches the file. What is said with it is what `key` was
 * when the file was begun.
 */
bool tune_state_write(FILE *f, struct tune_shape shape, enum xm_coll coll,
                      const struct tune_request *request, double us);

/* Write that nothing of a series is left to measure. A sample that follows takes it back. */
bool tune_state_write_whole(FILE *f, const struct tune_series *series);

/*
 * Begin a state file, or go on with one. key: a line that says what is measured (machine, library,
 * settings), in parts with "; " between them: a file with another one is refused. The file is left
 * open for tune_state_write(). A last line that was cut off is dropped. NULL, with a message in
 * text: why not.
 */
FILE *tune_state_open(const char *path, const char *key, struct tune_store *store, char *text,
                      size_t len);

#endif
