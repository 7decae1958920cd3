/* SPDX-License-Identifier: BSD-3-Clause */
#include "decide/decide.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "decide/table.h"

/*
 * On one node kernels of our own, where they are; else the vendor's library. Measured on 2 and 4
 * H200s (docs/benchmarks/direct.md), where NCCL is faster for long reductions.
 */
static const char builtin[] = "reduce:128m-inf:*:2:ccl"
                              "#reduce:6m-inf:*:3-8:ccl#allreduce:96m-inf:*:3-8:ccl"
                              "#*:*:*:2-8:direct#*:*:*:2-inf:ccl#*:*:*:1:mpi";

const char *xm_table_builtin(void)
{
    return builtin;
}

static const struct xm_token *first_match(const struct xm_table *table, unsigned available,
                                          const struct xm_facts *facts)
{
    if (table == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < table->count; i++) {
        const struct xm_token *t = &table->tokens[i];
        if (((t->colls >> facts->coll) & 1) && ((t->mems >> facts->mem) & 1) &&
            (facts->bytes >= t->bytes_low) &&
            ((facts->bytes < t->bytes_high) || (t->bytes_high == XM_INF)) &&
            ((uint64_t)facts->nranks >= t->ranks_low) &&
            ((uint64_t)facts->nranks <= t->ranks_high) && ((available >> t->path) & 1)) {
            return t;
        }
    }
    return NULL;
}

struct xm_choice xm_decide(const struct xm_table *tune, const struct xm_table *table,
                           unsigned available, const struct xm_facts *facts)
{
    struct xm_choice choice = {XM_PATH_MPI, facts->obstacle};

    if (facts->obstacle != NULL) {
        return choice;
    }
    const struct xm_token *token = first_match(tune, available, facts);
    if (token == NULL) {
        token = first_match(table, available, facts);
    }
    if (token == NULL) {
        choice.reason = "no token of the tables matches";
        return choice;
    }
    choice.path = token->path;
    choice.reason = token->text;
    return choice;
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
