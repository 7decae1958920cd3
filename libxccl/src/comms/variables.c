/* SPDX-License-Identifier: BSD-3-Clause */
#include "comms/variables.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/params.h"

enum { TUNE = 2 };

static const char *const names[XM_NUM_VARIABLES] = {
    "XCCL_ROUTE",  "XCCL_CCL",           "XCCL_TUNE",       "XCCL_CHECK",
    "XCCL_MEMORY", "XCCL_SCRATCH",       "XCCL_CCL_NATIVE", "XCCL_COMM_CREATE",
    "XCCL_DIRECT", "XCCL_DIRECT_COPIES", "XCCL_LAUNCH",     "XCCL_DIRECT_TURNS"};

void xm_variables_fill(struct xm_variables *mine)
{
    const struct xc_params *p = xc_params();
    const uint64_t          values[XM_NUM_VARIABLES] = {
        (uint64_t)p->route,         (uint64_t)p->ccl,         xc_hash_text(XC_HASH_BEGIN, p->tune),
        (uint64_t)p->check,         (uint64_t)p->memory,      (uint64_t)p->scratch,
        (uint64_t)p->ccl_native,    (uint64_t)p->comm_create, (uint64_t)p->direct,
        (uint64_t)p->direct_copies, (uint64_t)p->launch,      (uint64_t)p->direct_turns};

    for (int i = 0; i < XM_NUM_VARIABLES; i++) {
        mine->values[i] = values[i];
    }
    mine->known = 1;
    snprintf(mine->tune, sizeof(mine->tune), "%s", (p->tune != NULL) ? p->tune : "");
}

uint64_t xm_variables_hash(const struct xm_variables *of)
{
    uint64_t hash = XC_HASH_BEGIN;

    for (int i = 0; i < XM_NUM_VARIABLES; i++) {
        hash = xc_hash_word(hash, of->values[i]);
    }
    return hash;
}

/* Two ranks with unlike values; where most ranks have one value, the other is of those. */
struct odd {
    const struct xm_variables *one, *other;
    int                        rank, other_rank, variable;
    bool                       most;
};

struct search {
    xm_variables_of *of;
    const void      *all;
    int              n;
};

static int next_known(const struct search *s, int rank)
{
    while ((rank < s->n) && (s->of(s->all, rank)->known == 0)) {
        rank++;
    }
    return rank;
}

/* The first rank, from this one on, whose value is not this; n: there is none. */
static int next_unlike(const struct search *s, int variable, uint64_t value)
{
    int r = next_known(s, 0);

    while ((r < s->n) && (s->of(s->all, r)->values[variable] == value)) {
        r = next_known(s, r + 1);
    }
    return r;
}

/* The rank whose value may be that of most: each two unlike values cancel each other. */
static int candidate(const struct search *s, int variable)
{
    int first = next_known(s, 0), count = 0;

    for (int r = first; r < s->n; r = next_known(s, r + 1)) {
        if (count == 0) {
            first = r;
        }
        bool like = s->of(s->all, r)->values[variable] == s->of(s->all, first)->values[variable];
        count += like ? 1 : -1;
    }
    return first;
}

static bool is_most(const struct search *s, int variable, uint64_t value)
{
    int known = 0, like = 0;

    for (int r = next_known(s, 0); r < s->n; r = next_known(s, r + 1)) {
        known++;
        like += (s->of(s->all, r)->values[variable] == value);
    }
    return 2 * like > known;
}

static bool find_odd(const struct search *s, struct odd *odd_p)
{
    for (int v = 0; v < XM_NUM_VARIABLES; v++) {
        int r = candidate(s, v);
        if (r >= s->n) {
            return false;
        }
        bool most = is_most(s, v, s->of(s->all, r)->values[v]);
        r = most ? r : next_known(s, 0);
        int odd = next_unlike(s, v, s->of(s->all, r)->values[v]);
        if (odd < s->n) {
            *odd_p = (struct odd){s->of(s->all, odd), s->of(s->all, r), odd, r, v, most};
            return true;
        }
    }
    return false;
}

static int name_of(const int *world_ranks, int rank)
{
    return (world_ranks != NULL) ? world_ranks[rank] : rank;
}

static void value_text(const struct xm_variables *of, int variable, char *buf, size_t len)
{
    if (variable == TUNE) {
        bool cut = (strlen(of->tune) == sizeof(of->tune) - 1);
        snprintf(buf, len, "%s%s", of->tune, cut ? "..." : "");
    } else {
        xc_param_text(names[variable], (long)of->values[variable], buf, len);
    }
}

xcclResult_t xm_variables_judge(xm_variables_of *of, const void *all, const int *world_ranks, int n)
{
    const char   *world = (world_ranks != NULL) ? " of MPI_COMM_WORLD" : "";
    struct search search = {of, all, n};
    struct odd    odd;
    char          one[64], other[64], others[32] = "most other ranks";

    if (!find_odd(&search, &odd)) {
        return xcclSuccess;
    }
    value_text(odd.one, odd.variable, one, sizeof(one));
    value_text(odd.other, odd.variable, other, sizeof(other));
    if (!odd.most) {
        snprintf(others, sizeof(others), "rank %d", name_of(world_ranks, odd.other_rank));
    }
    return xc_fail(xcclInvalidUsage,
                   "%s is '%s' on rank %d%s, and '%s' on %s; pass it to all of them (mpirun -x %s, "
                   "srun --export=ALL)",
                   names[odd.variable], one, name_of(world_ranks, odd.rank), world, other, others,
                   names[odd.variable]);
}
