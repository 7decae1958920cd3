/* SPDX-License-Identifier: BSD-3-Clause */
/* Communicators of some ranks, which measure at the same time. */
#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "measure/measure.h"

/* Where each rank of the job goes: its group, or -1, and its place in the list. */
struct places {
    int  nranks;
    int *group, *at;
    int  count, groups, size; /* ranks named so far, whole groups, ranks of each */
    char wrong[80];           /* where the reason has numbers */
};

static bool refuse(const struct perf_run *run, const char *text, const char *why)
{
    if (run->rank == 0) {
        fprintf(stderr, "%s: --groups: '%s': %s; as in 0/1+2/3 or 0-7\n", run->tool, text, why);
    }
    return false;
}

static bool read_rank(const char **text_p, int *rank_p)
{
    char *end;
    long  n = strtol(*text_p, &end, 10);

    if (!isdigit((unsigned char)**text_p) || (n > INT_MAX)) {
        return false;
    }
    *text_p = end;
    *rank_p = (int)n;
    return true;
}

/* One rank, or first-last. NULL, or what is wrong. */
static const char *read_range(const char **text_p, struct places *p)
{
    int first, last;

    if (!read_rank(text_p, &first)) {
        return "a rank is missing";
    }
    last = first;
    if (**text_p == '-') {
        (*text_p)++;
        if (!read_rank(text_p, &last)) {
            return "a rank is missing";
        }
    }
    if (last < first) {
        return "a range runs backwards";
    }
    if (last >= p->nranks) {
        snprintf(p->wrong, sizeof(p->wrong), "the job has %d rank%s, numbered from 0: no rank %d",
                 p->nranks, (p->nranks == 1) ? "" : "s", last);
        return p->wrong;
    }
    for (int rank = first; rank <= last; rank++) {
        if (p->group[rank] >= 0) {
            return "a rank is named twice";
        }
        p->group[rank] = p->groups;
        p->at[rank] = p->count++;
    }
    return NULL;
}

static const char *end_group(struct places *p)
{
    if (p->groups == 0) {
        p->size = p->count;
    }
    p->groups++;
    return (p->count == p->groups * p->size) ? NULL : "the communicators differ in size";
}

static const char *read_groups(const char *text, struct places *p)
{
    for (;;) {
        const char *wrong = read_range(&text, p);
        if (wrong != NULL) {
            return wrong;
        }
        char between = *text;
        if ((between == '+') || (between == '\0')) {
            wrong = end_group(p);
        } else if (between != '/') {
            wrong = "expected '/' between ranks and '+' between communicators";
        }
        if ((wrong != NULL) || (between == '\0')) {
            return wrong;
        }
        text++;
    }
}

/* The rank's communicator, and that of all groups; the ranks in the order of the list. */
static void split(struct perf_run *run, const struct places *p, bool *idle_p)
{
    int      group = p->group[run->rank], at = p->at[run->rank];
    MPI_Comm all, comm;

    *idle_p = group < 0;
    PMPI_Comm_split(MPI_COMM_WORLD, *idle_p ? MPI_UNDEFINED : 0, at, &all);
    /* Not PMPI: the interposer is to see the communicator that is measured. */
    MPI_Comm_split(MPI_COMM_WORLD, *idle_p ? MPI_UNDEFINED : group, at, &comm);
    if (!*idle_p) {
        perf_take_part(run, comm);
        run->all = all;
        PMPI_Comm_rank(all, &run->all_rank);
        PMPI_Comm_size(all, &run->all_size);
    }
}

bool perf_groups_split(struct perf_run *run, const char *text, bool *idle_p)
{
    size_t        n = (size_t)run->nranks;
    struct places p = {.nranks = run->nranks};
    bool          ok = false;

    p.group = malloc(n * sizeof(*p.group));
    p.at = calloc(n, sizeof(*p.at));
    if ((p.group != NULL) && (p.at != NULL)) {
        memset(p.group, -1, n * sizeof(*p.group));
        const char *wrong = read_groups(text, &p);
        ok = (wrong == NULL) || refuse(run, text, wrong);
    }
    if (ok) {
        split(run, &p, idle_p);
    }
    free(p.group);
    free(p.at);
    return ok;
}
