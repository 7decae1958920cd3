/* SPDX-License-Identifier: BSD-3-Clause */
/* Do the ranks agree? Once a communicator on the environment, and with XCCL_CHECK=1 on each call.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/params.h"
#include "intercept/facts.h"

/* FNV-1a: equal inputs give equal numbers, and that is all that is asked of it. */
static uint64_t hash_bytes(uint64_t hash, const void *data, size_t len)
{
    const unsigned char *p = data;

    for (size_t i = 0; i < len; i++) {
        hash = (hash ^ p[i]) * 1099511628211u;
    }
    return hash;
}

enum { SAMPLES = 8 };

/* One rank's values; texts of the differing one are made by the caller. */
struct sample {
    int64_t values[SAMPLES];
};

/* The first (rank, value) that differs from most ranks; false if all agree. Same on every rank. */
static bool find_stray(const struct sample *samples, int size, int count, int *rank_p, int *value_p)
{
    for (int v = 0; v < count; v++) {
        int like_first = 0, stray = -1;
        for (int r = 0; r < size; r++) {
            if (samples[r].values[v] == samples[0].values[v]) {
                like_first++;
            } else if (stray < 0) {
                stray = r;
            }
        }
        if (stray >= 0) {
            *rank_p = (2 * like_first < size) ? 0 : stray;
            *value_p = v;
            return true;
        }
    }
    return false;
}

static xcclResult_t compare(struct xm_comm *xm, const struct sample *mine, int count,
                            struct sample **all_p, int *rank_p, int *value_p)
{
    struct sample *all = malloc((size_t)xm->size * sizeof(*all));

    *all_p = all;
    *rank_p = -1;
    if (all == NULL) {
        return xc_fail(xcclSystemError, "out of memory for %d ranks", xm->size);
    }
    if (xm_pmpi.Allgather(mine, SAMPLES, XM_HANDLE(MPI_INT64_T), all, SAMPLES,
                          XM_HANDLE(MPI_INT64_T), xm->comm) != MPI_SUCCESS) {
        return xc_fail(xcclInternalError, "MPI_Allgather failed while ranks were compared");
    }
    find_stray(all, xm->size, count, rank_p, value_p);
    return xcclSuccess;
}

xcclResult_t xm_check_environment(struct xm_comm *xm)
{
    static const char *const names[] = {"XCCL_ROUTE", "XCCL_CCL", "XCCL_TUNE", "XCCL_CHECK"};
    const struct xc_params  *params = xc_params();
    struct sample            mine = {{params->route, params->ccl, 0, params->check}};
    struct sample           *all;
    int                      rank, value;

    if (xm->environment_checked || xm->inter) {
        return xcclSuccess;
    }
    if (params->tune != NULL) {
        mine.values[2] =
            (int64_t)hash_bytes(14695981039346656037u, params->tune, strlen(params->tune));
    }
    xcclResult_t res = compare(xm, &mine, 4, &all, &rank, &value);
    if ((res == xcclSuccess) && (rank >= 0)) {
        res =
            xc_fail(xcclInvalidUsage,
                    "%s on rank %d differs from other ranks; pass it to all of them (mpirun -x %s, "
                    "srun --export=ALL)",
                    names[value], rank, names[value]);
    }
    xm->environment_checked = (res == xcclSuccess);
    free(all);
    return res;
}

enum { COLL, VALID, MEMORY, SIZE, ROOT, OPERATION, COUNTS, NUM_CHECKED };

static const char *const checked_names[NUM_CHECKED] = {
    "the collective",     "the validity of its arguments",
    "the kind of memory", "the amount of data",
    "the root",           "the operation",
    "the receive counts"};

/* A number for the op that is the same on all ranks: handles of user operations are not. */
static int64_t op_number(const struct xm_call *call)
{
    const MPI_Op known[] = {XM_HANDLE(MPI_SUM), XM_HANDLE(MPI_PROD), XM_HANDLE(MPI_MAX),
                            XM_HANDLE(MPI_MIN)};

    for (int i = 0; i < 4; i++) {
        if (call->op == known[i]) {
            return i + 1;
        }
    }
    return 5;
}

static bool has_root(enum xm_coll coll)
{
    return (coll == XM_BCAST) || (coll == XM_REDUCE) || (coll == XM_GATHER) ||
           (coll == XM_GATHERV) || (coll == XM_SCATTER) || (coll == XM_SCATTERV);
}

static void take_sample(const struct xm_sides *sides, bool valid, struct xm_comm *xm,
                        struct sample *mine)
{
    const struct xm_call *call = sides->call;
    int64_t              *v = mine->values;
    struct xm_view        view;

    memset(mine, 0, sizeof(*mine));
    v[COLL] = call->coll;
    v[VALID] = valid;
    v[ROOT] = has_root(call->coll) ? call->root : 0;
    if (!valid) {
        return;
    }
    v[OPERATION] = (call->op != 0) ? op_number(call) : 0;
    if (!xm_coll_needs_agreement(call->coll) && (xm_facts_of(sides, xm, &view) == xcclSuccess)) {
        v[MEMORY] = view.on_device ? 1 + (int64_t)view.facts.mem : 0;
        v[SIZE] = (int64_t)view.facts.bytes;
    }
    if ((call->coll == XM_ALLGATHERV) || (call->coll == XM_REDUCE_SCATTER)) {
        uint64_t hash = 14695981039346656037u;
        for (int i = 0; i < xm->size; i++) {
            /* Bytes: the ranks may count in different types. */
            int64_t bytes =
                (int64_t)xm_count_at(call, call->recvcounts, i) * (int64_t)sides->recv.layout.size;
            hash = hash_bytes(hash, &bytes, sizeof(bytes));
        }
        v[COUNTS] = (call->coll == XM_ALLGATHERV) ? (int64_t)hash : 0;
    }
}

static const char *memory_text(int64_t value)
{
    return (value == 0) ? "host memory" : xm_mem_name((enum xm_mem)(value - 1));
}

static void describe(const struct sample *sample, int what, char *buf, size_t len)
{
    int64_t value = sample->values[what];

    switch (what) {
    case COLL:
        snprintf(buf, len, "%s", xm_coll_name((enum xm_coll)value));
        break;
    case MEMORY:
        snprintf(buf, len, "%s", memory_text(value));
        break;
    case VALID:
        snprintf(buf, len, "%s", (value != 0) ? "valid" : "not valid");
        break;
    case OPERATION:
    case COUNTS:
        snprintf(buf, len, "others");
        break;
    default:
        snprintf(buf, len, "%lld", (long long)value);
        break;
    }
}

xcclResult_t xm_check_call(const struct xm_sides *sides, bool valid, struct xm_comm *xm)
{
    struct sample  mine;
    struct sample *all;
    int            rank, what;
    char           his[64], ours[64];

    if (xm->inter) {
        return xcclSuccess;
    }
    take_sample(sides, valid, xm, &mine);
    xcclResult_t res = compare(xm, &mine, NUM_CHECKED, &all, &rank, &what);
    if ((res == xcclSuccess) && (rank >= 0)) {
        int other = (rank == 0) ? xm->size - 1 : 0;
        while (all[other].values[what] == all[rank].values[what]) {
            other--; /* ends: some rank differs */
        }
        describe(&all[rank], what, his, sizeof(his));
        describe(&all[other], what, ours, sizeof(ours));
        res = xc_fail(xcclInvalidUsage,
                      "XCCL_CHECK: %s: %s differs between ranks: %s on rank %d, %s on rank %d",
                      xm_coll_name(sides->call->coll), checked_names[what], his, rank, ours, other);
    }
    free(all);
    return res;
}
