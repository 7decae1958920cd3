/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reduce-scatters in place where one rank has no device memory for a copy.
 *
 *   mpi_spare cuda unlike|alike|block|unlike_blocking|alike_blocking|block_blocking
 * All ranks get an error, or all of them the sum. unlike: its part is longer than those.
 *
 *   mpi_spare cuda idle
 * On no rank there is room but for what the library has kept of another call: that gives way.
 */
#include "support.h"

enum { MEETINGS = 3, LONG = 1 << 20, SHORT = 1 << 18, MOST_RANKS = 8 };

static const size_t left_bytes = (size_t)1 << 20;
/* Of the copy of a call, which the library keeps, and of a later one, for which that is too much.
 */
static const size_t kept_bytes = (size_t)32 << 20, shorter_bytes = (size_t)4 << 20;

static int counts[MOST_RANKS];
static int total;

static void set_counts(bool unlike)
{
    total = 0;
    for (int i = 0; i < mt_size(); i++) {
        counts[i] = (unlike && (i != 1)) ? SHORT : LONG;
        total += counts[i];
    }
}

static int value(int rank, int i)
{
    return i % 1000 + 1000 * rank;
}

static void *make_input(void)
{
    size_t bytes = (size_t)total * sizeof(int);
    int   *values = mt_alloc(MT_HOST, bytes);
    void  *device = mt_alloc(MT_DEVICE, bytes);

    for (int i = 0; i < total; i++) {
        values[i] = value(mt_rank(), i);
    }
    mt_put(device, MT_DEVICE, values, bytes);
    mt_free(MT_HOST, values);
    return device;
}

static void expect_sum(const void *device)
{
    int    count = counts[mt_rank()], before = 0, wrong = 0;
    size_t bytes = (size_t)count * sizeof(int);
    int   *values = mt_alloc(MT_HOST, bytes);

    for (int i = 0; i < mt_rank(); i++) {
        before += counts[i];
    }
    mt_get(values, device, MT_DEVICE, bytes);
    for (int i = 0; i < count; i++) {
        int sum = 0;
        for (int r = 0; r < mt_size(); r++) {
            sum += value(r, before + i);
        }
        wrong += (values[i] != sum);
    }
    mt_expect(wrong == 0, "%d of %d elements of the sum are wrong", wrong, count);
    mt_free(MT_HOST, values);
}

/* Whatever the pools of the library have kept may serve it; nothing larger is there. */
static void take_memory(size_t left_to_it)
{
    int (*info)(size_t *, size_t *);
    size_t left = 0, all = 0;

    *(void **)&info = mt_driver("cuMemGetInfo_v2", "hipMemGetInfo");
    info(&left, &all);
    mt_expect(left > left_to_it, "no memory to take");
    (void)mt_alloc(MT_DEVICE, left - left_to_it);
}

static void run(bool unlike, bool block, bool blocking)
{
    struct mt_pair pair = mt_pair_make(MT_DEVICE, SHORT);
    MPI_Request    request = MPI_REQUEST_NULL;
    MPI_Comm       apart;
    int            code, all;

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_dup(MPI_COMM_WORLD, &apart);
    for (int round = 0; round < MEETINGS; round++) {
        mt_pair_allreduce(&pair, SHORT, MPI_COMM_WORLD, round);
    }
    set_counts(unlike);
    void *data = make_input();
    if (mt_rank() == 1) {
        take_memory(left_bytes);
    }
    if (block && blocking) {
        code = MPI_Reduce_scatter_block(MPI_IN_PLACE, data, LONG, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    } else if (block) {
        code = MPI_Ireduce_scatter_block(MPI_IN_PLACE, data, LONG, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
                                         &request);
    } else if (blocking) {
        code = MPI_Reduce_scatter(MPI_IN_PLACE, data, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    } else {
        code = MPI_Ireduce_scatter(MPI_IN_PLACE, data, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
                                   &request);
    }
    if ((code == MPI_SUCCESS) && !blocking) {
        code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    int failed = (code != MPI_SUCCESS);
    if (!failed) {
        expect_sum(data);
    }
    MPI_Allreduce(&failed, &all, 1, MPI_INT, MPI_SUM, apart);
    mt_expect((all == 0) || (all == mt_size()), "%d ranks failed", all);
    MPI_Comm_free(&apart);
}

static void case_unlike(void)
{
    run(true, false, false);
}

static void case_alike(void)
{
    run(false, false, false);
}

static void case_block(void)
{
    run(false, true, false);
}

static void case_unlike_blocking(void)
{
    run(true, false, true);
}

static void case_alike_blocking(void)
{
    run(false, false, true);
}

static void case_block_blocking(void)
{
    run(false, true, true);
}

static int sum_in_place(void *data, size_t bytes)
{
    int count = (int)(bytes / sizeof(int));

    for (int i = 0; i < mt_size(); i++) {
        counts[i] = count;
    }
    return MPI_Reduce_scatter_block(MPI_IN_PLACE, data, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

static void case_idle(void)
{
    struct mt_pair pair = mt_pair_make(MT_DEVICE, SHORT);

    for (int round = 0; round < MEETINGS; round++) {
        mt_pair_allreduce(&pair, SHORT, MPI_COMM_WORLD, round);
    }
    total = (int)(kept_bytes / sizeof(int)) * mt_size();
    void *first = make_input();
    mt_expect(sum_in_place(first, kept_bytes) == MPI_SUCCESS, "no memory at first");
    total = (int)(shorter_bytes / sizeof(int)) * mt_size();
    void *second = make_input();
    take_memory(left_bytes);
    mt_expect(sum_in_place(second, shorter_bytes) == MPI_SUCCESS, "the memory that is idle stays");
    expect_sum(second);
}

int main(int argc, char **argv)
{
    static const struct mt_named_case cases[] = {{"unlike", case_unlike},
                                                 {"alike", case_alike},
                                                 {"block", case_block},
                                                 {"unlike_blocking", case_unlike_blocking},
                                                 {"alike_blocking", case_alike_blocking},
                                                 {"block_blocking", case_block_blocking},
                                                 {"idle", case_idle},
                                                 {NULL, NULL}};

    mt_begin(&argc, &argv, true);
    return mt_run_to_end(cases, argc, argv);
}
