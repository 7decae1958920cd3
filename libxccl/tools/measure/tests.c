/* SPDX-License-Identifier: BSD-3-Clause */
/* The tests: names, what their bytes mean, and the bandwidths that follow from a time. */
#include "measure/measure.h"

struct test {
    const char *name;
    const char *bytes;
    bool        reduces, rooted;
    bool        per_rank; /* bytes are one rank's part: all ranks together move nranks times that */
    double      bus;      /* bus per algorithm bandwidth in units of (n - 1) / n; 0: equal */
};

static const struct test tests[PERF_NUM_TESTS] = {
    [PERF_ALLREDUCE] = {"allreduce", "count * size", true, false, false, 2},
    [PERF_BCAST] = {"bcast", "count * size", false, true, false, 0},
    [PERF_REDUCE] = {"reduce", "count * size", true, true, false, 0},
    [PERF_REDUCE_SCATTER] = {"reduce_scatter", "received per rank", true, false, true, 1},
    [PERF_REDUCE_SCATTER_BLOCK] = {"reduce_scatter_block", "received per rank", true, false, true,
                                   1},
    [PERF_ALLGATHER] = {"allgather", "sent per rank", false, false, true, 1},
    [PERF_ALLGATHERV] = {"allgatherv", "sent per rank, average", false, false, true, 1},
    [PERF_ALLTOALL] = {"alltoall", "per pair of ranks", false, false, true, 1},
    [PERF_ALLTOALLV] = {"alltoallv", "per pair of ranks, average", false, false, true, 1},
    [PERF_GATHER] = {"gather", "sent per rank", false, true, true, 1},
    [PERF_GATHERV] = {"gatherv", "sent per rank, average", false, true, true, 1},
    [PERF_SCATTER] = {"scatter", "received per rank", false, true, true, 1},
    [PERF_SCATTERV] = {"scatterv", "received per rank, average", false, true, true, 1},
    [PERF_SCAN] = {"scan", "count * size", true, false, false, 0},
    [PERF_EXSCAN] = {"exscan", "count * size", true, false, false, 0},
    [PERF_LATENCY] = {"latency", "of a message", false, false, false, 0},
    [PERF_BANDWIDTH] = {"bandwidth", "of a message", false, false, false, 0},
    [PERF_BIBANDWIDTH] = {"bibandwidth", "of a message", false, false, false, 0},
    [PERF_HALO2D] = {"halo2d", "local block without ghost cells", false, false, false, 0},
    [PERF_HALO3D] = {"halo3d", "local block without ghost cells", false, false, false, 0},
};

const char *perf_test_name(enum perf_test test)
{
    return tests[test].name;
}

const char *perf_test_bytes(enum perf_test test)
{
    return tests[test].bytes;
}

bool perf_test_reduces(enum perf_test test)
{
    return tests[test].reduces;
}

bool perf_test_rooted(enum perf_test test)
{
    return tests[test].rooted;
}

bool perf_test_in_place(enum perf_test test)
{
    return !perf_test_is_message(test) && (test != PERF_BCAST);
}

bool perf_test_is_message(enum perf_test test)
{
    return test >= PERF_NUM_COLLS;
}

bool perf_test_is_halo(enum perf_test test)
{
    return (test == PERF_HALO2D) || (test == PERF_HALO3D);
}

double perf_test_bus(enum perf_test test, int nranks)
{
    return (tests[test].bus == 0) ? 1 : tests[test].bus * (nranks - 1) / nranks;
}

size_t perf_test_round(const struct perf_run *run, enum perf_test test, size_t bytes)
{
    size_t count = bytes / run->type->size;

    return (perf_test_is_halo(test) ? perf_halo_count(test, count) : count) * run->type->size;
}

int perf_case_ready(const struct perf_run *run, const struct perf_case *pc)
{
    bool pair = perf_test_is_message(pc->test) && !perf_test_is_halo(pc->test);

    return pair ? perf_pair_ready(run, pc) : MPI_SUCCESS;
}

int perf_case_call(const struct perf_run *run, const struct perf_case *pc)
{
    if (run->vendor != NULL) {
        return perf_vendor_call(run, pc);
    }
    if (perf_test_is_halo(pc->test)) {
        return perf_halo_call(run, pc);
    }
    return perf_test_is_message(pc->test) ? perf_pair_call(run, pc) : perf_coll_call(run, pc);
}

static void message_bandwidth(const struct perf_run *run, const struct perf_case *pc,
                              struct perf_result *result)
{
    bool   halo = perf_test_is_halo(pc->test);
    double bytes = (double)pc->message_bytes;

    if (halo) {
        bytes *= pc->messages; /* the time is that of all of them */
    } else if (pc->test == PERF_BIBANDWIDTH) {
        bytes *= 2;
    }
    result->bw = (result->avg > 0) ? bytes / (result->avg * 1e3) : 0;
    result->total_bw = result->bw * (halo ? run->nranks : run->nranks / 2);
}

void perf_case_bandwidth(const struct perf_run *run, const struct perf_case *pc,
                         struct perf_result *result)
{
    double bytes = (double)pc->bytes * (tests[pc->test].per_rank ? run->nranks : 1);

    if (perf_test_is_message(pc->test)) {
        message_bandwidth(run, pc, result);
        return;
    }
    result->algbw = (result->avg > 0) ? bytes / (result->avg * 1e3) : 0;
    result->busbw = result->algbw * perf_test_bus(pc->test, run->nranks);
}
