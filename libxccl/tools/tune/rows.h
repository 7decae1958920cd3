/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables from what was measured, and what differs between tables. */
#ifndef XCCL_TUNE_ROWS_H
#define XCCL_TUNE_ROWS_H

#include "decide/table.h"
#include "tune/store.h"

/* What the head of a table says of where it comes from. */
struct tune_origin {
    char measured[16], where[256], gpu[96], driver[64], library[64], mpi_library[128], raw[256];
    char memory[16]; /* "cuda" */
    bool simulated;  /* nobody has measured it then */
    bool partial;    /* the run has not come to its end */
};

/* A series of so many nodes is whole, and has rows. */
bool tune_has_rows(const struct tune_series *series, int nodes);

/*
 * The table of all communicators on so many nodes, of series that are whole. False: there is none,
 * or no memory.
 */
bool tune_table_write(FILE *f, const struct tune_store *store, int nodes,
                      const struct tune_origin *origin);

/* All samples, their medians and what was made of them, as JSON (xccl-tune.schema.json). */
void tune_raw_write(FILE *f, const struct tune_store *store, const struct tune_origin *origin,
                    const char *version);

/*
 * Print where the choices of two tables differ, on two ranks and more, and the settings that say
 * for which communicators they are. Where only settings differ, the rows follow. Returns how many
 * things differ; negative: out of memory.
 */
int tune_compare(FILE *f, const struct xm_table *a, const struct xm_table *b);

/* "64k", "1m" or "1000". */
const char *tune_size_text(uint64_t bytes, char *buf, size_t len);

#endif
