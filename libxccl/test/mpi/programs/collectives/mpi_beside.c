/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Large non-blocking collectives, which work on the ranks' own buffers where these can be mapped.
 * Usage: mpi_beside cuda|rocm CASE
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support.h"

/* Floats: more than the workspaces take at once, on 2 to 4 ranks. */
enum { COUNT = 150000, MANY = 20, ROUNDS = 4 };

static struct mt_pair pairs[2 * MANY];

static void make_pairs(int n, enum mt_where where)
{
    for (int i = 0; i < n; i++) {
        pairs[i] = mt_pair_make(where, COUNT);
    }
}

static void free_pairs(int n)
{
    for (int i = 0; i < n; i++) {
        mt_pair_free(&pairs[i]);
    }
}

static void begin_sum(int i, MPI_Comm comm, int salt, MPI_Request *request)
{
    mt_pair_fill(&pairs[i], COUNT, comm, salt);
    MPI_Iallreduce(pairs[i].in, pairs[i].out, COUNT, MPI_FLOAT, MPI_SUM, comm, request);
}

static void expect_sum(int i, int salt, const char *what)
{
    mt_pair_expect_sum(&pairs[i], COUNT, mt_size(), salt, what);
}

/* The last rank comes when all others have begun, and needs a message from them first. */
static void meet_late(void)
{
    int last = mt_size() - 1, token = 0;

    if (mt_rank() == last) {
        for (int i = 0; i < last; i++) {
            MPI_Recv(&token, 1, MPI_INT, i, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        usleep(2000);
    }
}

static void tell_last(void)
{
    int last = mt_size() - 1, token = 0;

    if (mt_rank() != last) {
        MPI_Send(&token, 1, MPI_INT, last, 0, MPI_COMM_WORLD);
    }
}

/* More under way than the ranks can show each other at once, and a blocking one behind them. */
static void case_many(void)
{
    MPI_Request requests[MANY];

    make_pairs(MANY + 1, MT_DEVICE);
    for (int round = 0; round < ROUNDS; round++) {
        meet_late();
        for (int i = 0; i < MANY; i++) {
            begin_sum(i, MPI_COMM_WORLD, round + i, &requests[i]);
        }
        tell_last();
        mt_pair_allreduce(&pairs[MANY], COUNT, MPI_COMM_WORLD, round);
        MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < MANY; i++) {
            expect_sum(i, round + i, "one of many");
        }
    }
    free_pairs(MANY + 1);
}

/* Ranks begin in different orders, and block on one of the communicators meanwhile. */
static void case_orders(void)
{
    MPI_Comm    comms[2];
    MPI_Request requests[2 * MANY];

    MPI_Comm_dup(MPI_COMM_WORLD, &comms[0]);
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
    make_pairs(2 * MANY, MT_DEVICE);
    for (int round = 0; round < ROUNDS; round++) {
        for (int k = 0; k < 2; k++) {
            int which = (k + mt_rank()) % 2;
            for (int i = 0; i < MANY; i++) {
                begin_sum(which * MANY + i, comms[which], round + i, &requests[which * MANY + i]);
            }
        }
        struct mt_pair more = mt_pair_make(MT_DEVICE, COUNT);
        mt_pair_allreduce(&more, COUNT, comms[round % 2], round);
        mt_pair_free(&more);
        MPI_Waitall(2 * MANY, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < 2 * MANY; i++) {
            expect_sum(i, round + i % MANY, "on one of two communicators");
        }
    }
    free_pairs(2 * MANY);
    MPI_Comm_free(&comms[0]);
    MPI_Comm_free(&comms[1]);
}

/* Some rank's memory cannot be mapped, or lies so that kernels do not take it. */
static void case_unusable(void)
{
    int    wrong_rank = mt_size() - 1;
    size_t bytes = COUNT * sizeof(float);
    float *host = malloc(bytes);

    for (int round = 0; round < 3 * ROUNDS; round++) {
        bool          odd = (mt_rank() == wrong_rank) && (round % 3 == 1);
        enum mt_where where = (round % 3 == 2) ? MT_MANAGED : MT_DEVICE;
        char       *memory = mt_alloc(where, 2 * bytes + 8), *out = memory + bytes + (odd ? 4 : 0);
        MPI_Request request;
        int         wrong = 0;
        for (int i = 0; i < COUNT; i++) {
            host[i] = (float)(i % 97 + mt_rank() + round);
        }
        mt_put(memory, where, host, bytes);
        MPI_Iallreduce(memory, out, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        mt_get(host, out, where, bytes);
        for (int i = 0; i < COUNT; i++) {
            int sum = mt_size() * (i % 97 + round) + mt_size() * (mt_size() - 1) / 2;
            wrong += host[i] != (float)sum;
        }
        mt_expect(wrong == 0, "round %d: %d elements are wrong", round, wrong);
        mt_free(where, memory);
    }
    free(host);
}

/* What was freed elsewhere is mapped anew, and what was received may be written over at once. */
static void case_freed(void)
{
    for (int round = 0; round < 5 * ROUNDS; round++) {
        MPI_Request requests[2];
        make_pairs(2, MT_DEVICE);
        for (int i = 0; i < 2; i++) {
            begin_sum(i, MPI_COMM_WORLD, round + i, &requests[i]);
        }
        for (int i = 0; i < 2; i++) {
            MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
            expect_sum(i, round + i, "new memory");
            mt_pair_fill(&pairs[i], COUNT, MPI_COMM_SELF, 0);
            mt_pair_free(&pairs[i]);
        }
    }
}

/* Each rank leaves as soon as it may, and writes over its buffers. */
static void case_left(void)
{
    make_pairs(2, MT_DEVICE);
    for (int round = 0; round < 10 * ROUNDS; round++) {
        MPI_Request request;
        begin_sum(round % 2, MPI_COMM_WORLD, round, &request);
        if (mt_rank() % 2 == round % 2) {
            usleep(500);
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        expect_sum(round % 2, round, "left at once");
    }
    free_pairs(2);
}

static int *ints(int count)
{
    return mt_alloc(MT_DEVICE, (size_t)count * sizeof(int));
}

static void put_ints(int *to, int count, int first)
{
    int *host = malloc((size_t)count * sizeof(int));

    for (int i = 0; i < count; i++) {
        host[i] = first + i;
    }
    mt_put(to, MT_DEVICE, host, (size_t)count * sizeof(int));
    free(host);
}

static void expect_some(const int *from, int count, int first, const char *what)
{
    int *host = malloc((size_t)count * sizeof(int)), wrong = 0;

    mt_get(host, from, MT_DEVICE, (size_t)count * sizeof(int));
    for (int i = 0; i < count; i++) {
        wrong += host[i] != first + i;
    }
    mt_expect(wrong == 0, "%s: %d elements are wrong", what, wrong);
    free(host);
}

/* `blocks` blocks, block b beginning with first + b * step. */
static void expect_ints(const int *from, int blocks, int first, int step, const char *what)
{
    size_t count = (size_t)blocks * COUNT;
    int   *host = malloc(count * sizeof(int)), wrong = 0;

    mt_get(host, from, MT_DEVICE, count * sizeof(int));
    for (size_t i = 0; i < count; i++) {
        int block = (int)(i / COUNT), at = (int)(i % COUNT);
        wrong += host[i] != first + block * step + at;
    }
    mt_expect(wrong == 0, "%s: %d elements are wrong", what, wrong);
    free(host);
}

/* One collective of each form at the same time: rank r's blocks for rank q begin with r * R + q. */
static void case_forms(void)
{
    enum { FORMS = 7, R = 1000000, Q = 1000 };
    int         n = mt_size(), rank = mt_rank(), root = n - 1;
    int        *in[FORMS], *out[FORMS];
    MPI_Request requests[FORMS];
    MPI_Comm    comm = MPI_COMM_WORLD;

    for (int i = 0; i < FORMS; i++) {
        in[i] = ints(n * COUNT);
        out[i] = ints(n * COUNT);
        for (int q = 0; q < n; q++) {
            put_ints(in[i] + q * COUNT, COUNT, rank * R + q * Q);
            put_ints(out[i] + q * COUNT, COUNT, -5);
        }
    }
    if (rank == root) {
        put_ints(out[0], COUNT, 42);
    }
    MPI_Ibcast(out[0], COUNT, MPI_INT, root, comm, &requests[0]);
    MPI_Iallgather(in[1], COUNT, MPI_INT, out[1], COUNT, MPI_INT, comm, &requests[1]);
    MPI_Ialltoall(in[2], COUNT, MPI_INT, out[2], COUNT, MPI_INT, comm, &requests[2]);
    MPI_Igather(in[3], COUNT, MPI_INT, out[3], COUNT, MPI_INT, root, comm, &requests[3]);
    MPI_Iscatter(in[4], COUNT, MPI_INT, out[4], COUNT, MPI_INT, root, comm, &requests[4]);
    MPI_Ireduce(in[5], out[5], COUNT, MPI_INT, MPI_MAX, root, comm, &requests[5]);
    MPI_Ireduce_scatter_block(in[6], out[6], COUNT, MPI_INT, MPI_MIN, comm, &requests[6]);
    MPI_Waitall(FORMS, requests, MPI_STATUSES_IGNORE);
    expect_ints(out[0], 1, 42, 0, "ibcast");
    expect_ints(out[1], n, 0, R, "iallgather");
    expect_ints(out[2], n, rank * Q, R, "ialltoall");
    expect_ints(out[4], 1, root * R + rank * Q, 0, "iscatter");
    expect_ints(out[6], 1, rank * Q, 0, "ireduce_scatter_block");
    if (rank == root) {
        expect_ints(out[3], n, 0, R, "igather");
        expect_ints(out[5], 1, root * R, 0, "ireduce");
    }
    for (int i = 0; i < FORMS; i++) {
        mt_free(MT_DEVICE, in[i]);
        mt_free(MT_DEVICE, out[i]);
    }
}

/*
 * Between small ones, a large one that turns out to be another path's: what is small is sent ahead
 * by a root that waits for nobody, and must not be written over what others still read.
 */
static void case_between(void)
{
    enum { SMALL = 8000, SERIES = 12, REPEATS = 30 };
    static int *small[SERIES];
    MPI_Request requests[2 * SERIES];
    int         odd = (mt_rank() == mt_size() - 1) ? 1 : 0;

    int *large = ints(COUNT + 1);
    for (int i = 0; i < SERIES; i++) {
        small[i] = ints(COUNT);
    }
    for (int round = 0; round < REPEATS; round++) {
        for (int i = 0; i < SERIES; i++) {
            put_ints(small[i], SMALL, (mt_rank() == 0) ? 100 * i + round : -1);
        }
        for (int i = 0; i < SERIES; i++) {
            int count = COUNT - 15000 * (round % 4);
            MPI_Ibcast(small[i], SMALL, MPI_INT, 0, MPI_COMM_WORLD, &requests[2 * i]);
            MPI_Ibcast(large + odd, count, MPI_INT, 0, MPI_COMM_WORLD, &requests[2 * i + 1]);
        }
        MPI_Waitall(2 * SERIES, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < SERIES; i++) {
            expect_some(small[i], SMALL, 100 * i + round, "between others");
        }
    }
    for (int i = 0; i < SERIES; i++) {
        mt_free(MT_DEVICE, small[i]);
    }
    mt_free(MT_DEVICE, large);
}

int main(int argc, char **argv)
{
    static const struct mt_named_case cases[] = {
        {"many", case_many},         {"orders", case_orders},
        {"unusable", case_unusable}, {"freed", case_freed},
        {"left", case_left},         {"forms", case_forms},
        {"between", case_between},   {NULL, NULL}};

    mt_begin(&argc, &argv, true);
    struct mt_pair pair = mt_pair_make(MT_DEVICE, COUNT);
    mt_pair_allreduce(&pair, COUNT, MPI_COMM_WORLD, 0);
    mt_pair_free(&pair);
    return mt_run_to_end(cases, argc, argv);
}
