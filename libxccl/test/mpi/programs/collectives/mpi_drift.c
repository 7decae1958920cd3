/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks that drift apart in non-blocking collectives on device memory, just when they are to change
 * over to another path: rank 0 begins hundreds that no other rank has begun, and blocks in a call
 * on host memory that the others reach once they have completed them all.
 *
 * And the same in random places: bursts of collectives on several communicators, barriers on host
 * memory while they are pending, and naps, which differ by rank.
 *
 * vendor: they come to the vendor's library by non-blocking collectives alone.
 * reused_short, reused_large: a rank frees a communicator, and makes use of another one without
 * those that are still in the last call on it.
 * settled: collectives on host memory that only some ranks have to look at closely.
 *
 * Usage: mpi_drift cuda|rocm CASE, or random SEED BURSTS
 * barrier, receive: [FIRST STEP], which collectives a rank runs ahead after, up to 400.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support.h"

enum { MANY = 400, TAG = 7 };
enum { COMMS = 3, MOST_PENDING = 2000, LONGEST = 300, WIDTH = 8 };

static int    num_words;
static char **words;

/* Until rank 1 has completed all that it has begun. */
static void wait_on_host(bool in_barrier)
{
    int word = 0;

    if (in_barrier) {
        MPI_Barrier(MPI_COMM_WORLD);
    } else if (mt_rank() == 0) {
        MPI_Recv(&word, 1, MPI_INT, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (mt_rank() == 1) {
        MPI_Send(&word, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD);
    }
}

/* close: so many collectives in which no rank is ahead come before. */
static void drift(int close, bool in_barrier)
{
    int        *in = mt_ints_make(MT_DEVICE, MANY, MANY, close);
    int        *out = mt_ints_make(MT_DEVICE, MANY, 0, 0);
    MPI_Request requests[MANY];
    MPI_Comm    comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int i = 0; i < close; i++) {
        MPI_Iallreduce(in, out, 1, MPI_INT, MPI_MIN, comm, &requests[0]);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    usleep((mt_rank() > 0) ? 20000 : 0);
    for (int i = 0; i < MANY; i++) {
        MPI_Iallreduce(&in[i], &out[i], 1, MPI_INT, MPI_MIN, comm, &requests[i]);
    }
    if (mt_rank() > 0) {
        MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE);
    }
    wait_on_host(in_barrier);
    if (mt_rank() == 0) {
        MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE);
    }
    mt_ints_expect(out, MT_DEVICE, MANY, MANY, 0, close, "drifted apart");
    MPI_Comm_free(&comm);
    mt_free(MT_DEVICE, in);
    mt_free(MT_DEVICE, out);
}

static void in_all_places(bool in_barrier)
{
    enum { FARTHEST = 400 };
    int first = (num_words > 3) ? atoi(words[3]) : 0, step = (num_words > 4) ? atoi(words[4]) : 16;

    for (int close = first; close <= FARTHEST; close += step) {
        drift(close, in_barrier);
    }
}

static void barrier(void)
{
    in_all_places(true);
}

static void receive(void)
{
    in_all_places(false);
}

/* Of one that is pending: where its data is, and what it computes. */
struct pending {
    int number, root; /* root -1: the least of all ranks' */
};

struct random_run {
    uint64_t       shared, own; /* what all ranks draw alike, and what each for itself */
    MPI_Comm       comms[COMMS];
    int           *in, *out; /* WIDTH integers of each that is pending */
    MPI_Request    requests[MOST_PENDING];
    struct pending pending[MOST_PENDING];
    int            num, begun;
};

static int draw(uint64_t *state, int below)
{
    return (int)((mt_next(state) >> 20) % (uint64_t)below);
}

/* All that this rank has begun, whatever the others have. */
static void complete(struct random_run *r)
{
    int found[WIDTH], wrong = 0;

    MPI_Waitall(r->num, r->requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < r->num; i++) {
        const struct pending *p = &r->pending[i];
        const int            *at = ((p->root == mt_rank()) ? r->in : r->out) + (long)i * WIDTH;
        mt_get(found, at, MT_DEVICE, sizeof(found));
        for (int j = 0; j < WIDTH; j++) {
            int expected = mt_value((p->root < 0) ? 0 : p->root, p->number, j);
            for (int other = 1; (p->root < 0) && (other < mt_size()); other++) {
                int his = mt_value(other, p->number, j);
                expected = (his < expected) ? his : expected;
            }
            wrong += (found[j] != expected);
        }
    }
    mt_expect(wrong == 0, "%d integers of %d collectives are wrong", wrong, r->num);
    r->num = 0;
}

static void begin_one(struct random_run *r, MPI_Comm comm, int root)
{
    int  values[WIDTH], i = r->num++;
    int *in = r->in + (long)i * WIDTH, *out = r->out + (long)i * WIDTH;

    r->pending[i] = (struct pending){++r->begun, root};
    for (int j = 0; j < WIDTH; j++) {
        values[j] = mt_value(mt_rank(), r->begun, j);
    }
    mt_put(in, MT_DEVICE, values, sizeof(values));
    if (root < 0) {
        MPI_Iallreduce(in, out, WIDTH, MPI_INT, MPI_MIN, comm, &r->requests[i]);
    } else {
        MPI_Ibcast((root == mt_rank()) ? in : out, WIDTH, MPI_INT, root, comm, &r->requests[i]);
    }
}

static void burst(struct random_run *r)
{
    int      which = draw(&r->shared, COMMS), length = 1 + draw(&r->shared, LONGEST);
    MPI_Comm comm = r->comms[which];

    if (draw(&r->shared, 12) == 0) {
        complete(r); /* Open MPI's collectives use a communicator that is freed, and may crash */
        MPI_Comm_free(&r->comms[which]);
        MPI_Comm_dup(MPI_COMM_WORLD, &r->comms[which]);
        comm = r->comms[which];
    }
    if (r->num + length > MOST_PENDING) {
        complete(r);
    }
    for (int i = 0; i < length; i++) {
        begin_one(r, comm, draw(&r->shared, mt_size() + 2) - 2);
    }
}

static void random_bursts(void)
{
    struct random_run r = {.shared = (num_words > 3) ? strtoull(words[3], NULL, 0) : 1};
    int               bursts = (num_words > 4) ? atoi(words[4]) : 100;
    size_t            bytes = sizeof(int) * WIDTH * MOST_PENDING;

    r.own = r.shared * 1000 + (uint64_t)mt_rank();
    r.in = mt_alloc(MT_DEVICE, bytes);
    r.out = mt_alloc(MT_DEVICE, bytes);
    for (int c = 0; c < COMMS; c++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &r.comms[c]);
    }
    for (int i = 0; i < bursts; i++) {
        burst(&r);
        if (draw(&r.own, 3) == 0) {
            complete(&r);
        }
        if (draw(&r.own, 6) == 0) {
            usleep((useconds_t)draw(&r.own, 3000));
        }
        if (draw(&r.shared, 4) == 0) {
            MPI_Barrier((draw(&r.shared, 8) == 0) ? r.comms[0] : MPI_COMM_WORLD);
        }
    }
    complete(&r);
    for (int c = 0; c < COMMS; c++) {
        MPI_Comm_free(&r.comms[c]);
    }
    mt_free(MT_DEVICE, r.in);
    mt_free(MT_DEVICE, r.out);
}

static void vendor(void)
{
    enum { LARGE = 1 << 23, MOST = 400, BEHIND = 20 };
    struct mt_pair pair = mt_pair_make(MT_DEVICE, LARGE);
    MPI_Request    request;
    int            by_vendor = 0;

    mt_pair_fill(&pair, LARGE, MPI_COMM_WORLD, 3);
    for (int i = 0; (i < MOST) && (by_vendor < BEHIND); i++) {
        MPI_Iallreduce(pair.in, pair.out, LARGE, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request);
        by_vendor += (strcmp(mt_last_path(), "ccl") == 0);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    mt_expect(by_vendor == BEHIND, "%d of %d calls by the vendor's library", by_vendor, (int)MOST);
    mt_pair_expect_sum(&pair, LARGE, mt_size(), 3, "by the vendor's library");
    mt_pair_free(&pair);
}

/* With its own communicator this rank takes what it has given back of the common one. */
static void reused(int count, bool agrees)
{
    enum { ROUNDS = 30, FEW = 1024, BEFORE = 4, SHORT_NAP = 3000 };
    int     *in = mt_ints_make(MT_DEVICE, count, count, 1);
    int     *out = mt_ints_make(MT_DEVICE, count, 0, 0), *parts = calloc(mt_size(), sizeof(int));
    MPI_Comm comm, own;

    for (int round = 0; round < ROUNDS; round++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Comm_dup(MPI_COMM_SELF, &own);
        for (int i = 0; i < BEFORE; i++) {
            MPI_Allreduce(in, out, count, MPI_INT, MPI_MIN, comm);
        }
        mt_ints_expect(out, MT_DEVICE, count, count, 0, 1, "the common one");
        MPI_Barrier(MPI_COMM_WORLD);
        usleep((mt_rank() == 1) ? SHORT_NAP : 0);
        if (agrees) {
            MPI_Alltoallv(in, parts, parts, MPI_INT, out, parts, parts, MPI_INT, comm);
        } else {
            MPI_Allreduce(in, out, count, MPI_INT, MPI_MIN, comm);
        }
        MPI_Comm_free(&comm);
        MPI_Allreduce(in, out, FEW, MPI_INT, MPI_MIN, own);
        MPI_Comm_free(&own);
    }
    mt_free(MT_DEVICE, in);
    mt_free(MT_DEVICE, out);
    free(parts);
}

static void reused_short(void)
{
    reused(1024, true);
}

static void reused_large(void)
{
    reused(1 << 18, false);
}

/* Without a receive buffer xccl has to look whether there is data elsewhere. */
static void settled(void)
{
    enum { FEW = 1024, ROUNDS = 8, LONG_NAP = 1500000 };
    int *in = mt_ints_make(MT_DEVICE, FEW, FEW, 1), *out = mt_ints_make(MT_DEVICE, FEW, 0, 0);
    int  one = 1, sum = 0;
    MPI_Request request;

    for (int i = 0; i < ROUNDS; i++) {
        MPI_Iallreduce(in, out, FEW, MPI_INT, MPI_MIN, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Reduce(&one, (mt_rank() == 0) ? &sum : NULL, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    }
    usleep((mt_rank() == 0) ? LONG_NAP : 0); /* the others come to look for what keeps it */
    MPI_Allreduce(in, out, FEW, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    mt_ints_expect(out, MT_DEVICE, FEW, FEW, 0, 1, "the last");
    mt_expect((mt_rank() > 0) || (sum == mt_size()), "on host memory");
    mt_free(MT_DEVICE, in);
    mt_free(MT_DEVICE, out);
}

int main(int argc, char **argv)
{
    static const struct mt_named_case cases[] = {
        {"barrier", barrier},           {"receive", receive},
        {"random", random_bursts},      {"vendor", vendor},
        {"reused_short", reused_short}, {"reused_large", reused_large},
        {"settled", settled},           {NULL, NULL}};

    num_words = argc;
    words = argv;
    mt_begin(&argc, &argv, true);
    return mt_run_to_end(cases, argc, argv);
}
