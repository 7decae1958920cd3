/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Partitioned messages between buffers in device memory.
 * Usage: mpi_partitions cuda|rocm|none CASE
 */
#include <stdio.h>
#include <stdlib.h>

#include "support.h"

#if MPI_VERSION >= 4

enum { TAG = 5, ROUNDS = 6 };

/* A message from each rank to the next one. */
struct ring {
    int         last, partitions, each, all;
    int        *in, *out;
    MPI_Request send, receive;
};

static struct ring ring_make(int partitions, int each)
{
    int         next = (mt_rank() + 1) % mt_size();
    struct ring r = {.last = (mt_rank() + mt_size() - 1) % mt_size(),
                     .partitions = partitions,
                     .each = each,
                     .all = partitions * each};

    r.in = mt_ints_make(MT_DEVICE, r.all, 0, 0);
    r.out = mt_ints_make(MT_DEVICE, r.all, 0, 0);
    MPI_Psend_init(r.in, partitions, each, MPI_INT, next, TAG, MPI_COMM_WORLD, MPI_INFO_NULL,
                   &r.send);
    MPI_Precv_init(r.out, partitions, each, MPI_INT, r.last, TAG, MPI_COMM_WORLD, MPI_INFO_NULL,
                   &r.receive);
    return r;
}

static void ring_free(struct ring *r)
{
    MPI_Request_free(&r->send);
    MPI_Request_free(&r->receive);
    mt_free(MT_DEVICE, r->in);
    mt_free(MT_DEVICE, r->out);
}

/* Start a round; nothing of it is ready. */
static void ring_start(const struct ring *r, int round)
{
    MPI_Request requests[] = {r->send, r->receive};
    int        *host = malloc(sizeof(int) * (size_t)r->all);

    for (int i = 0; i < r->all; i++) {
        host[i] = mt_value(mt_rank(), round, i);
    }
    mt_put(r->in, MT_DEVICE, host, sizeof(int) * (size_t)r->all);
    free(host);
    MPI_Startall(2, requests);
}

static void ring_wait(struct ring *r, int round)
{
    MPI_Request requests[] = {r->send, r->receive};

    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    mt_ints_expect(r->out, MT_DEVICE, r->all, r->all, r->last, round, "a partitioned message");
}

static void wait_for_partition(const struct ring *r, int partition)
{
    int flag = 0;

    while (!flag) {
        MPI_Parrived(r->receive, partition, &flag);
    }
}

static void case_ring(void)
{
    struct ring r = ring_make(6, 833);

    for (int round = 0; round < ROUNDS; round++) {
        int list[] = {5, 3};
        ring_start(&r, round);
        MPI_Pready(4, r.send);
        MPI_Pready_range(0, 2, r.send);
        MPI_Pready_list(2, list, r.send);
        wait_for_partition(&r, 1);
        ring_wait(&r, round);
    }
    ring_free(&r);
}

/* ---- several threads ---- */

enum { THREADS = 3, PARTITIONS = 6, EACH = 1 << 18 };

struct work {
    const struct ring *ring;
    int                number, round;
};

/* The first and the last integer of a partition. */
static void expect_ends(const struct work *w, int partition)
{
    const int *at = w->ring->out + partition * EACH;
    int        place = partition * EACH, first, last;

    mt_get(&first, at, MT_DEVICE, sizeof(first));
    mt_get(&last, at + EACH - 1, MT_DEVICE, sizeof(last));
    mt_expect((first == mt_value(w->ring->last, w->round, place)) &&
                  (last == mt_value(w->ring->last, w->round, place + EACH - 1)),
              "round %d: partition %d is not there when MPI_Parrived says so", w->round, partition);
}

/* Some partitions become ready in each thread, in another order each round; all look at each. */
static void *pass(void *argument)
{
    const struct work *w = argument;

    mt_memory_enter();
    for (int i = w->number; i < PARTITIONS; i += THREADS) {
        MPI_Pready((i * 5 + w->round) % PARTITIONS, w->ring->send);
    }
    for (int i = 0; i < PARTITIONS; i++) {
        wait_for_partition(w->ring, i);
        expect_ends(w, i);
    }
    return NULL;
}

static void case_threads(void)
{
    struct ring r = ring_make(PARTITIONS, EACH);

    for (int round = 0; round < ROUNDS; round++) {
        struct work work[THREADS];
        for (int i = 0; i < THREADS; i++) {
            work[i] = (struct work){&r, i, round};
        }
        ring_start(&r, round);
        mt_in_threads(THREADS, pass, work, sizeof(work[0]));
        ring_wait(&r, round);
    }
    ring_free(&r);
}
#else
static void skip(void)
{
    printf("SKIP: this MPI has no partitioned messages\n");
}
#define case_ring skip
#define case_threads skip
#endif

int main(int argc, char **argv)
{
    const struct mt_named_case cases[] = {
        {"ring", case_ring}, {"threads", case_threads}, {NULL, NULL}};

    mt_begin(&argc, &argv, true);
    return mt_run_to_end(cases, argc, argv);
}
