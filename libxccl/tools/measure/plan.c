/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counts, displacements and expectations of one test at one size.
 *
 * The v-variants have unequal blocks: with d = max(1, count / 4), even ranks have count + d and odd
 * ones count - d elements (an odd last rank count), so that the average is exactly count and
 * count = 1 brings empty blocks; in alltoallv it is the distance of the two ranks around the ring
 * that is even or odd, so that the matrix is symmetric, as MPI_IN_PLACE needs. One element is left
 * free between blocks, and must be as before afterwards.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "measure/measure.h"

static size_t block_of_rank(size_t count, int nranks, int rank)
{
    size_t d = (count >= 4) ? count / 4 : (count > 0);

    if ((nranks % 2 == 1) && (rank == nranks - 1)) {
        return count;
    }
    return (rank % 2 == 0) ? count + d : count - d;
}

static size_t block_of_pair(size_t count, int nranks, int a, int b)
{
    int    around = (a > b) ? a - b : b - a;
    int    distance = (around < nranks - around) ? around : nranks - around;
    size_t d = (count >= 4) ? count / 4 : (count > 0);

    if (nranks % 2 == 0) {
        return (distance % 2 == 0) ? count + d : count - d;
    }
    /* An odd ring has every distance but 0 twice: what is left over goes to the own block. */
    if (count < 2) {
        return count;
    }
    if (distance == 0) {
        return ((nranks - 1) / 2 % 2 == 1) ? count - 2 * d : count;
    }
    return (distance % 2 == 1) ? count + d : count - d;
}

/* Block i of count elements follows on the one before, with gap elements between. */
static size_t lay_out(int nranks, const size_t *counts, size_t gap, int *icounts, int *displs)
{
    size_t at = 0;

    for (int i = 0; i < nranks; i++) {
        icounts[i] = (int)counts[i];
        displs[i] = (int)at;
        at += counts[i] + ((i < nranks - 1) ? gap : 0);
    }
    return at;
}

static void expect(struct perf_case *pc, size_t offset, size_t count, int rank, size_t index)
{
    if (count > 0) {
        pc->result[pc->nresult++] = (struct perf_segment){offset, count, 0, rank, index};
    }
}

static void put_input(struct perf_case *pc, size_t offset, size_t count, int rank, size_t index)
{
    if (count > 0) {
        pc->input[pc->ninput++] = (struct perf_segment){offset, count, 0, rank, index};
    }
}

static void expect_reduced(struct perf_case *pc, size_t count, int ranks, size_t index)
{
    if ((count > 0) && (ranks > 0)) {
        pc->result[pc->nresult++] = (struct perf_segment){0, count, ranks, 0, index};
    }
}

/* Whose input is in this rank's result: that of so many ranks, from 0 on. */
static int reduced_ranks(const struct perf_run *run, const struct perf_case *pc)
{
    switch (pc->test) {
    case PERF_SCAN:
        return run->rank + 1;
    case PERF_EXSCAN:
        return run->rank;
    default:
        return run->nranks;
    }
}

static void plan_reduction(const struct perf_run *run, struct perf_case *pc)
{
    bool   scatters = (pc->test == PERF_REDUCE_SCATTER) || (pc->test == PERF_REDUCE_SCATTER_BLOCK);
    bool   gets = (pc->test != PERF_REDUCE) || (run->rank == run->opt.root);
    size_t all = scatters ? pc->count * (size_t)run->nranks : pc->count;
    size_t mine = scatters ? pc->count * (size_t)run->rank : 0;

    pc->send_elems = all;
    pc->recv_elems = gets ? pc->count : 0;
    if (gets) {
        expect_reduced(pc, pc->count, reduced_ranks(run, pc), mine);
    }
    if (pc->in_place && gets) {
        pc->send_elems = 0;
        pc->recv_elems = all;
        put_input(pc, 0, all, run->rank, 0);
        pc->rest_untouched = !scatters; /* MPI leaves open what becomes of the other blocks */
    }
    if ((pc->test == PERF_EXSCAN) && (run->rank == 0)) {
        pc->rest_untouched = false; /* MPI leaves open what becomes of the buffer */
    }
    for (int i = 0; i < run->nranks; i++) {
        pc->recvcounts[i] = (int)pc->count;
    }
}

static void plan_bcast(const struct perf_run *run, struct perf_case *pc)
{
    pc->recv_elems = pc->count;
    if (run->rank == run->opt.root) {
        put_input(pc, 0, pc->count, run->rank, 0);
    }
    expect(pc, 0, pc->count, run->opt.root, 0);
}

/* allgather(v) and gather(v): one block of every rank, on all ranks or on the root. */
static void plan_gather(const struct perf_run *run, struct perf_case *pc, const size_t *blocks,
                        size_t gap)
{
    bool everywhere = (pc->test == PERF_ALLGATHER) || (pc->test == PERF_ALLGATHERV);
    bool gets = everywhere || (run->rank == run->opt.root);

    pc->send_elems = blocks[run->rank];
    pc->sendcounts[0] = (int)blocks[run->rank];
    size_t all = lay_out(run->nranks, blocks, gap, pc->recvcounts, pc->rdispls);
    if (!gets) {
        return;
    }
    pc->recv_elems = all;
    for (int i = 0; i < run->nranks; i++) {
        expect(pc, (size_t)pc->rdispls[i], blocks[i], i, 0);
    }
    if (pc->in_place) {
        pc->send_elems = 0;
        put_input(pc, (size_t)pc->rdispls[run->rank], blocks[run->rank], run->rank, 0);
    }
}

static void plan_scatter(const struct perf_run *run, struct perf_case *pc, const size_t *blocks,
                         size_t gap)
{
    size_t all = lay_out(run->nranks, blocks, gap, pc->sendcounts, pc->sdispls);
    bool   at_root = run->rank == run->opt.root;

    pc->send_elems = at_root ? all : 0;
    pc->recvcounts[0] = (int)blocks[run->rank];
    if (at_root && pc->in_place) {
        return; /* the root's block stays in its send buffer */
    }
    pc->recv_elems = blocks[run->rank];
    expect(pc, 0, blocks[run->rank], run->opt.root, (size_t)pc->sdispls[run->rank]);
}

/* Where rank's block for peer begins in its send buffer. */
static size_t exchange_offset(const struct perf_case *pc, int nranks, size_t gap, int rank,
                              int peer)
{
    size_t at = 0;

    for (int i = 0; i < peer; i++) {
        at += gap + ((gap > 0) ? block_of_pair(pc->count, nranks, rank, i) : pc->count);
    }
    return at;
}

static void plan_exchange(const struct perf_run *run, struct perf_case *pc, size_t *blocks,
                          size_t gap)
{
    for (int i = 0; i < run->nranks; i++) {
        blocks[i] = (gap > 0) ? block_of_pair(pc->count, run->nranks, run->rank, i) : pc->count;
    }
    pc->send_elems = lay_out(run->nranks, blocks, gap, pc->sendcounts, pc->sdispls);
    pc->recv_elems = lay_out(run->nranks, blocks, gap, pc->recvcounts, pc->rdispls);
    for (int i = 0; i < run->nranks; i++) {
        expect(pc, (size_t)pc->rdispls[i], blocks[i], i,
               exchange_offset(pc, run->nranks, gap, i, run->rank));
        if (pc->in_place) {
            put_input(pc, (size_t)pc->rdispls[i], blocks[i], run->rank, (size_t)pc->sdispls[i]);
        }
    }
    if (pc->in_place) {
        pc->send_elems = 0;
    }
}

/* The largest number that any rank would have to hand to MPI as an int. */
static size_t largest_number(const struct perf_run *run, const struct perf_case *pc)
{
    size_t n = (size_t)run->nranks;

    switch (pc->test) {
    case PERF_ALLGATHERV:
    case PERF_ALLTOALLV:
    case PERF_GATHERV:
    case PERF_SCATTERV:
        return (pc->count + 1 + pc->count / 4) * n;
    case PERF_HALO2D:
    case PERF_HALO3D:
        return perf_halo_face(pc->test, pc->count) + 2; /* in two dimensions a side is a face */
    default:
        return pc->count;
    }
}

/* How many blocks of the size that is measured the two buffers of a rank hold together, at most. */
static size_t most_blocks(const struct perf_run *run, enum perf_test test)
{
    size_t n = (size_t)run->nranks;

    switch (test) {
    case PERF_ALLTOALL:
    case PERF_ALLTOALLV:
        return 2 * n;
    case PERF_REDUCE_SCATTER:
    case PERF_REDUCE_SCATTER_BLOCK:
    case PERF_ALLGATHER:
    case PERF_ALLGATHERV:
    case PERF_GATHER:
    case PERF_GATHERV:
    case PERF_SCATTER:
    case PERF_SCATTERV:
        return n + 1;
    default:
        return 2;
    }
}

size_t perf_test_most(const struct perf_run *run, enum perf_test test, size_t most, size_t room)
{
    struct perf_case pc = {.test = test};
    size_t           size = run->type->size, each = room / most_blocks(run, test);
    size_t           low = 0, high = ((each < most) ? each : most) / size;

    while (low < high) {
        pc.count = high - (high - low) / 2;
        if (largest_number(run, &pc) <= INT_MAX) {
            low = pc.count;
        } else {
            high = pc.count - 1;
        }
    }
    return low * size;
}

static bool plan_fits(const struct perf_run *run, const struct perf_case *pc)
{
    if (largest_number(run, pc) <= INT_MAX) {
        return true;
    }
    if (run->rank == 0) {
        fprintf(stderr,
                "%s: %s of %zu bytes needs a count or displacement above %d, which MPI "
                "cannot take; use a larger type or a smaller --max\n",
                run->tool, perf_test_name(pc->test), pc->bytes, INT_MAX);
    }
    return false;
}

static void plan_coll(const struct perf_run *run, struct perf_case *pc, size_t *blocks)
{
    bool uneven = (pc->test == PERF_ALLGATHERV) || (pc->test == PERF_GATHERV) ||
                  (pc->test == PERF_SCATTERV) || (pc->test == PERF_ALLTOALLV);

    for (int i = 0; i < run->nranks; i++) {
        blocks[i] = uneven ? block_of_rank(pc->count, run->nranks, i) : pc->count;
    }
    switch (pc->test) {
    case PERF_BCAST:
        plan_bcast(run, pc);
        break;
    case PERF_ALLGATHER:
    case PERF_ALLGATHERV:
    case PERF_GATHER:
    case PERF_GATHERV:
        plan_gather(run, pc, blocks, uneven);
        break;
    case PERF_SCATTER:
    case PERF_SCATTERV:
        plan_scatter(run, pc, blocks, uneven);
        break;
    case PERF_ALLTOALL:
    case PERF_ALLTOALLV:
        plan_exchange(run, pc, blocks, uneven);
        break;
    default:
        plan_reduction(run, pc);
        break;
    }
}

bool perf_case_requests(const struct perf_run *run, struct perf_case *pc, int n)
{
    pc->requests = malloc((size_t)n * sizeof(*pc->requests));
    pc->statuses = malloc((size_t)n * sizeof(*pc->statuses));
    if ((pc->requests == NULL) || (pc->statuses == NULL)) {
        fprintf(stderr, "%s: out of memory on rank %d\n", run->tool, run->rank);
        return false;
    }
    return true;
}

int perf_case_wait(const struct perf_case *pc, int n)
{
    /* Not MPI_STATUSES_IGNORE: GCC takes MPICH's for an array without room. */
    return MPI_Waitall(n, pc->requests, pc->statuses);
}

static bool plan_test(const struct perf_run *run, struct perf_case *pc, size_t *blocks)
{
    if (perf_test_is_halo(pc->test)) {
        return perf_halo_plan(run, pc);
    }
    if (perf_test_is_message(pc->test)) {
        return perf_pair_plan(run, pc);
    }
    plan_coll(run, pc, blocks);
    return true;
}

static bool plan_with(const struct perf_run *run, struct perf_case *pc, int *ints, size_t *blocks)
{
    enum { MAX_FACES = 6 };
    size_t n = (size_t)run->nranks, segments = (n > MAX_FACES) ? n : MAX_FACES;

    pc->input = calloc(segments, sizeof(*pc->input));
    pc->result = calloc(segments, sizeof(*pc->result));
    if ((ints == NULL) || (blocks == NULL) || (pc->input == NULL) || (pc->result == NULL)) {
        fprintf(stderr, "%s: out of memory on rank %d\n", run->tool, run->rank);
        return false;
    }
    pc->sdispls = ints + n;
    pc->recvcounts = ints + 2 * n;
    pc->rdispls = ints + 3 * n;
    return plan_fits(run, pc) && plan_test(run, pc, blocks);
}

bool perf_case_plan(const struct perf_run *run, enum perf_test test, size_t bytes,
                    struct perf_case *pc)
{
    size_t  n = (size_t)run->nranks;
    int    *ints = calloc(4 * n, sizeof(*ints));
    size_t *blocks = calloc(n, sizeof(*blocks));

    memset(pc, 0, sizeof(*pc));
    pc->test = test;
    pc->bytes = perf_test_round(run, test, bytes);
    pc->count = pc->bytes / run->type->size;
    pc->in_place = run->opt.in_place && perf_test_in_place(test);
    pc->rest_untouched = true;
    pc->timed = true;
    pc->share = 1;
    pc->sendcounts = ints;
    bool ok = plan_with(run, pc, ints, blocks);
    free(blocks);
    if (!ok) {
        perf_case_free(pc);
    }
    return ok;
}

void perf_case_free(struct perf_case *pc)
{
    free(pc->sendcounts);
    free(pc->input);
    free(pc->result);
    free(pc->requests);
    free(pc->statuses);
    perf_halo_free(pc->halo);
    memset(pc, 0, sizeof(*pc));
}
