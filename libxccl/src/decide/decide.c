/* SPDX-License-Identifier: BSD-3-Clause */
#include "decide/decide.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "decide/table.h"

/* A row for one collective on communicators of one size. */
struct rule {
    uint64_t        bytes_first, bytes_last; /* both included */
    uint32_t        mems;
    enum xm_path_id path;
    const char     *text;
};

/* Those of collective c are rules[first[c]] up to rules[first[c + 1]]. */
struct xm_rules {
    uint32_t    first[XM_NUM_COLLS + 1];
    struct rule rules[];
};

static bool concerns(const struct xm_row *row, int coll, int nranks)
{
    return (((row->colls >> coll) & 1) != 0) && ((uint64_t)nranks >= row->ranks_low) &&
           ((uint64_t)nranks <= row->ranks_high);
}

/* Count the rules of all collectives, and fill them in where there are any. */
static uint32_t fill(const struct xm_table *const *tables, size_t count, int nranks,
                     struct xm_rules *rules)
{
    uint32_t n = 0;

    for (int coll = 0; coll < XM_NUM_COLLS; coll++) {
        if (rules != NULL) {
            rules->first[coll] = n;
        }
        for (size_t t = 0; t < count; t++) {
            for (size_t i = 0; i < tables[t]->count; i++) {
                const struct xm_row *row = &tables[t]->rows[i];
                if (!concerns(row, coll, nranks)) {
                    continue;
                }
                if (rules != NULL) {
                    uint64_t last = (row->bytes_high == XM_INF) ? XM_INF : row->bytes_high - 1;
                    rules->rules[n] =
                        (struct rule){row->bytes_low, last, row->mems, row->path, row->text};
                }
                n++;
            }
        }
    }
    if (rules != NULL) {
        rules->first[XM_NUM_COLLS] = n;
    }
    return n;
}

xcclResult_t xm_rules_make(const struct xm_table *const *tables, size_t count, int nranks,
                           struct xm_rules **rules_p)
{
    size_t           n = fill(tables, count, nranks, NULL);
    struct xm_rules *rules = malloc(sizeof(*rules) + n * sizeof(rules->rules[0]));

    if (rules == NULL) {
        return xc_fail(xcclSystemError, "out of memory for %zu rules of tuning tables", n);
    }
    fill(tables, count, nranks, rules);
    *rules_p = rules;
    return xcclSuccess;
}

void xm_rules_free(struct xm_rules *rules)
{
    free(rules);
}

struct xm_choice xm_decide(const struct xm_rules *rules, unsigned available,
                           const struct xm_facts *facts)
{
    if (facts->obstacle != NULL) {
        return (struct xm_choice){XM_PATH_MPI, facts->obstacle, false};
    }
    const struct rule *end = rules->rules + rules->first[facts->coll + 1];
    for (const struct rule *r = rules->rules + rules->first[facts->coll]; r < end; r++) {
        if ((facts->bytes >= r->bytes_first) && (facts->bytes <= r->bytes_last) &&
            ((r->mems >> facts->mem) & 1) && ((available >> r->path) & 1)) {
            return (struct xm_choice){r->path, r->text, true};
        }
    }
    return (struct xm_choice){XM_PATH_MPI, "no matching row of the tables has a path that is there",
                              false};
}

/* The least size after this one from which on other rules may match; 0: none. */
static uint64_t next_border(const struct xm_rules *rules, enum xm_coll coll, uint64_t bytes)
{
    uint64_t next = 0;

    for (uint32_t i = rules->first[coll]; i < rules->first[coll + 1]; i++) {
        const struct rule *r = &rules->rules[i];
        if ((r->bytes_first > bytes) && ((next == 0) || (r->bytes_first < next))) {
            next = r->bytes_first;
        }
        if ((r->bytes_last >= bytes) && (r->bytes_last != XM_INF) &&
            ((next == 0) || (r->bytes_last + 1 < next))) {
            next = r->bytes_last + 1;
        }
    }
    return next;
}

bool xm_decides_always(const struct xm_rules *rules, unsigned available,
                       const struct xm_facts *facts, enum xm_path_id path)
{
    struct xm_facts at = *facts;

    for (at.bytes = 1; at.bytes != 0; at.bytes = next_border(rules, at.coll, at.bytes)) {
        if (xm_decide(rules, available, &at).path != path) {
            return false;
        }
    }
    return true;
}

int xm_size_class(uint64_t bytes)
{
    return (bytes == 0) ? 0 : 64 - __builtin_clzll(bytes);
}

void xm_size_class_text(int size_class, char *buf, size_t len)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    int                      power = size_class - 1;

    if (size_class == 0) {
        snprintf(buf, len, "0 B");
        return;
    }
    int up = power + 1;
    snprintf(buf, len, "%d %s to %d %s", 1 << (power % 10), units[power / 10], 1 << (up % 10),
             units[up / 10]);
}
