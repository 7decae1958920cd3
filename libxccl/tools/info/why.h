/* SPDX-License-Identifier: BSD-3-Clause */
/* Why a call takes its path: collected once, then printed as text or as JSON. */
#ifndef XCCL_INFO_WHY_H
#define XCCL_INFO_WHY_H

#include "info.h"
#include "tables/tables.h"

/* What a path needs, and what of that is not there. */
struct why_path {
    bool available;
    char text[640];
};

/* One row of a table that is asked. */
struct why_row {
    const char     *text;
    enum xm_path_id path;
    enum xm_verdict verdict;
    bool            chosen;
};

struct why_table {
    const struct xm_table *table;
    bool                   asked;
    char                   not_asked[768];
    struct why_row        *rows;
};

struct why {
    struct xm_facts   facts;
    struct xm_setting setting;
    char              obstacle[160]; /* "": none */
    struct why_path   paths[XM_NUM_PATHS];
    struct why_path   self; /* which no row names: where none decides */
    size_t            count;
    struct why_table *tables;
    const char       *path;
    const char       *reason;
};

/*
 * spec: "allreduce:64k:cuda:8", a collective, its bytes, memory and ranks, and the nodes behind
 * that (else 1). gpu: the model, or NULL for that of this machine. False with the detail in
 * xc_last_detail().
 */
bool why_collect(struct why *why, const struct info *info, const char *spec, const char *gpu);
void why_free(struct why *why);

/* why_print.c */
/*
 * fault: of the configuration, with which no program starts; "": none. all: also the tables that
 * are not asked.
 */
void why_print(const struct why *why, const char *fault, bool all);
void why_print_json(const struct why *why);

#endif
