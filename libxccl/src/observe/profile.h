/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * XCCL_PROFILE: how often each kind of call was made, on which path, and how long it took.
 *
 * A process counts in a table of fixed shape, so that MPI_Finalize can merge those of all ranks by
 * one reduction, whatever each of them called.
 */
#ifndef XM_OBSERVE_PROFILE_H
#define XM_OBSERVE_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "mpi/functions.h"

enum { XM_PROFILE_ROWS = 384, XM_PROFILE_REASON = 96 };

/* What calls of one row have in common. Compared as bytes: clear it before it is filled. */
struct xm_profile_key {
    uint16_t function;   /* enum xm_function, of the form with int counts */
    uint8_t  size_class; /* decide.h */
    uint8_t  memory;     /* xm_profile_word(): "host", "cuda" */
    uint8_t  path;       /* likewise: "ccl" */
    uint8_t  other;      /* path that the tables choose without this one; 0: none */
    uint8_t  unsure;     /* whether that path could have carried the call was not looked at */
    uint8_t  why;        /* of the reason: calls with another one have another row */
    int32_t  ranks;      /* of the communicator; 0: no collective */
};

struct xm_profile_row {
    struct xm_profile_key key;
    char                  reason[XM_PROFILE_REASON]; /* for the path */
    uint64_t              calls, bytes;
    uint64_t              ns;            /* inside the calls */
    uint64_t completions, completion_ns; /* start to completion, of non-blocking ones */
    uint64_t ranks, least_ns, most_ns;   /* of ns by rank; filled in when merged */
};

struct xm_profile {
    uint32_t              count;      /* rows in use */
    uint32_t              ranks;      /* that are in this table */
    uint64_t              run_ns;     /* MPI_Init to MPI_Finalize, added up over them */
    uint64_t              most_ns;    /* of them */
    uint64_t              lost_calls; /* of kinds for which there was no row left */
    uint64_t              lost_ns;
    struct xm_profile_row rows[XM_PROFILE_ROWS];
};

/* Count from here on; false, and a failure, if there is no memory for it. */
bool xm_profile_begin(void);
/* Is it counted? */
bool xm_profile_on(void);

/* A word as a number for keys, 0 for an unknown one or NULL; and back, "" for 0. */
uint8_t     xm_profile_word(const char *text);
const char *xm_profile_text(uint8_t word);

/* The row of a key, or -1 if there is no room. Any thread. */
int  xm_profile_row(const struct xm_profile_key *key, const char *reason);
void xm_profile_add(int row, uint64_t calls, uint64_t bytes, uint64_t ns);
void xm_profile_completed(int row, uint64_t ns);

/*
 * In MPI_Finalize, once nothing is under way: merge the tables of all ranks, and have rank 0 write
 * the result. Waits a bounded time for ranks that do not come.
 */
void xm_profile_finalize(void);

/* ---- report.c, report_json.c; of a merged table, whose rows they sort ---- */

struct xm_profile_about {
    const char *mpi, *program;
    int         world;   /* ranks of MPI_COMM_WORLD; more than in the table: it is not of all */
    bool        spawned; /* by a world that has a file of its own */
};

void xm_profile_sort(struct xm_profile *p);
void xm_profile_report(const struct xm_profile *p, const struct xm_profile_about *about);
/* False, and a failure, if the file cannot be written. */
bool xm_profile_write(const struct xm_profile *p, const struct xm_profile_about *about,
                      const char *file);

#endif
