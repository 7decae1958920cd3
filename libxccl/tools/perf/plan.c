/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counts, displacements and expectations of one collective at one size.
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

#include "perf.h"

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
        pc->result[pc->nresult++] =
            (struct perf_segment){offset, count, rank < 0, (rank < 0) ? 0 : rank, index};
    }
}

static void put_input(struct perf_case *pc, size_t offset, size_t count, int rank, size_t index)
{
    if (count > 0) {
        pc->input[pc->ninput++] = (struct perf_segment){offset, count, false, rank, index};
    }
}

enum { REDUCED = -1 };

static void plan_reduction(const struct perf_run *run, struct perf_case *pc)
{
    bool   scatters = (pc->coll == PERF_REDUCE_SCATTER) || (pc->coll == PERF_REDUCE_SCATTER_BLOCK);
    bool   gets = (pc->coll != PERF_REDUCE) || (run->rank == run->opt.root);
    size_t all = scatters ? pc->count * (size_t)run->nranks : pc->count;
    size_t mine = scatters ? pc->count * (size_t)run->rank : 0;

    pc->send_elems = all;
    pc->recv_elems = gets ? pc->count : 0;
    if (gets) {
        expect(pc, 0, pc->count, REDUCED, mine);
    }
    if (pc->in_place && gets) {
        pc->send_elems = 0;
        pc->recv_elems = all;
        put_input(pc, 0, all, run->rank, 0);
        pc->rest_untouched = !scatters; /* MPI leaves open what becomes of the other blocks */
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
    bool everywhere = (pc->coll == PERF_ALLGATHER) || (pc->coll == PERF_ALLGATHERV);
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

    switch (pc->coll) {
    case PERF_ALLGATHERV:
    case PERF_ALLTOALLV:
    case PERF_GATHERV:
    case PERF_SCATTERV:
        return (pc->count + 1 + pc->count / 4) * n;
    default:
        return pc->count;
    }
}

static bool plan_fits(const struct perf_run *run, const struct perf_case *pc)
{
    if (largest_number(run, pc) <= INT_MAX) {
        return true;
    }
    if (run->rank == 0) {
        fprintf(stderr,
                "xccl-perf: %s of %zu bytes needs a count or displacement above %d, which MPI "
                "cannot take; use a larger type or a smaller --max\n",
                perf_coll_name(pc->coll), pc->bytes, INT_MAX);
    }
    return false;
}

static void plan_blocks(const struct perf_run *run, struct perf_case *pc, size_t *blocks)
{
    bool uneven = (pc->coll == PERF_ALLGATHERV) || (pc->coll == PERF_GATHERV) ||
                  (pc->coll == PERF_SCATTERV) || (pc->coll == PERF_ALLTOALLV);

    for (int i = 0; i < run->nranks; i++) {
        blocks[i] = uneven ? block_of_rank(pc->count, run->nranks, i) : pc->count;
    }
    switch (pc->coll) {
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

bool perf_case_plan(const struct perf_run *run, enum perf_coll coll, size_t bytes,
                    struct perf_case *pc)
{
    size_t  n = (size_t)run->nranks;
    int    *ints = calloc(4 * n, sizeof(*ints));
    size_t *blocks = calloc(n, sizeof(*blocks));

    memset(pc, 0, sizeof(*pc));
    pc->coll = coll;
    pc->count = bytes / run->type->size;
    pc->bytes = pc->count * run->type->size;
    pc->in_place = run->opt.in_place && (coll != PERF_BCAST);
    pc->rest_untouched = true;
    pc->input = calloc(n, sizeof(*pc->input));
    pc->result = calloc(n, sizeof(*pc->result));
    pc->sendcounts = ints;
    if ((ints == NULL) || (blocks == NULL) || (pc->input == NULL) || (pc->result == NULL)) {
        fprintf(stderr, "xccl-perf: out of memory on rank %d\n", run->rank);
        free(blocks);
        perf_case_free(pc);
        return false;
    }
    pc->sdispls = ints + n;
    pc->recvcounts = ints + 2 * n;
    pc->rdispls = ints + 3 * n;
    if (!plan_fits(run, pc)) {
        free(blocks);
        perf_case_free(pc);
        return false;
    }
    plan_blocks(run, pc, blocks);
    free(blocks);
    return true;
}

void perf_case_free(struct perf_case *pc)
{
    free(pc->sendcounts);
    free(pc->input);
    free(pc->result);
    memset(pc, 0, sizeof(*pc));
}
