/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Small collectives and messages of device memory that is copied again and again, as it is for
 * GDRCopy; and memory that comes and goes meanwhile. Usage: mpi_gdrcopy <runtime> <case>, two
 * ranks.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support.h"

enum { REPEATS = 12, PAGE = 64 << 10 };

static void sum(int *in, int *out, int count, int round, const char *what)
{
    int *values = calloc((size_t)count, sizeof(int)), wrong = 0;

    for (int i = 0; i < count; i++) {
        values[i] = mt_rank() * 100 + round * 7 + i;
    }
    mt_put(in, MT_DEVICE, values, (size_t)count * sizeof(int));
    MPI_Allreduce(in, out, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    mt_get(values, out, MT_DEVICE, (size_t)count * sizeof(int));
    for (int i = 0; i < count; i++) {
        wrong += (values[i] != 100 + 2 * (round * 7 + i));
    }
    mt_expect(wrong == 0, "%s, round %d: %d of %d sums are wrong", what, round, wrong, count);
    free(values);
}

/* Mapping is done by a thread. */
static void nap(void)
{
    const struct timespec t = {0, 1000 * 1000};

    nanosleep(&t, NULL);
}

static void sums(int *in, int *out, int count, const char *what)
{
    for (int round = 0; round < REPEATS; round++) {
        sum(in, out, count, round, what);
        nap();
    }
}

static void of_all_sizes(void)
{
    static const int counts[] = {1, 2, 3, 17, 255, 256, 257, 1000, 4096, 4097, 9000};
    int             *in = mt_alloc(MT_DEVICE, 40000), *out = mt_alloc(MT_DEVICE, 40000);

    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        sums(in + i, out + 2 * i, counts[i], "sizes");
    }
    mt_free(MT_DEVICE, in);
    mt_free(MT_DEVICE, out);
}

/* What is allocated next begins where this was. */
static void of_memory_that_goes(void)
{
    void *stays = mt_alloc(MT_DEVICE, 512), *was = NULL;
    int   again = 0;

    for (int i = 0; i < 6; i++) {
        int *in = mt_alloc(MT_DEVICE, 4096), *out = mt_alloc(MT_DEVICE, 4096);
        again += (was == in);
        was = in;
        sums(in, out, 64 + i, "freed");
        mt_free(MT_DEVICE, out);
        mt_free(MT_DEVICE, in);
    }
    mt_expect(again > 0, "no memory came to lie where other memory was");
    mt_free(MT_DEVICE, stays);
}

/* Several in one page: each is its own, and one goes before the other. */
static void of_neighbours(void)
{
    int *all[5];

    for (int i = 0; i < 5; i++) {
        all[i] = mt_alloc(MT_DEVICE, 2048);
    }
    sums(all[0], all[1], 100, "neighbours");
    sums(all[2], all[3], 100, "neighbours");
    mt_free(MT_DEVICE, all[1]);
    sums(all[0], all[3], 100, "one of them is gone");
    all[1] = mt_alloc(MT_DEVICE, 1024);
    sums(all[1], all[4], 100, "another is there");
    for (int i = 0; i < 5; i++) {
        mt_free(MT_DEVICE, all[i]);
    }
}

/* More pages than are mapped at a time. */
static void of_many_pages(void)
{
    enum { PAGES = 80 };
    char *in = mt_alloc(MT_DEVICE, (size_t)PAGES * PAGE), *out = mt_alloc(MT_DEVICE, PAGE);

    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; i < PAGES; i++) {
            int *at = (int *)(void *)(in + (size_t)i * PAGE + 128);
            for (int round = 0; round < 4; round++) {
                sum(at, (int *)(void *)out, 8, round, "pages");
            }
        }
        nap();
    }
    mt_free(MT_DEVICE, in);
    mt_free(MT_DEVICE, out);
}

/* Each somewhere else: nothing comes to lie where the last one was. */
static void of_memory_that_is_gone(void)
{
    enum { PARTS = 12 };
    int *parts[PARTS];

    for (int i = 0; i < PARTS; i++) {
        parts[i] = mt_alloc(MT_DEVICE, 2 * PAGE);
    }
    for (int i = 0; i < PARTS; i++) {
        sums(parts[i], parts[i] + 64, 16, "gone");
        mt_free(MT_DEVICE, parts[i]);
    }
}

/* All together are more than may be kept from the driver. */
static void of_much_memory(void)
{
    enum { PARTS = 6, BYTES = 60 << 20 };
    int *parts[PARTS];

    for (int i = 0; i < PARTS; i++) {
        parts[i] = mt_alloc(MT_DEVICE, BYTES);
        sums(parts[i], parts[i] + PAGE / 8, 16, "much");
    }
    for (int i = 0; i < PARTS; i++) {
        mt_free(MT_DEVICE, parts[i]);
    }
}

/* A driver would keep all of it while a page is mapped. */
static void of_large_memory(void)
{
    int *in = mt_alloc(MT_DEVICE, (size_t)65 << 20), *out = mt_alloc(MT_DEVICE, (size_t)65 << 20);

    sums(in, out, 16, "large");
    mt_free(MT_DEVICE, in);
    mt_free(MT_DEVICE, out);
}

static void of_messages(void)
{
    enum { ROOM = 300 };
    int *send = mt_ints_make(MT_DEVICE, ROOM, ROOM, 1);
    int  other = 1 - mt_rank();

    for (int round = 0; round < REPEATS; round++) {
        int  count = 1 + round * 20;
        int *recv = mt_ints_make(MT_DEVICE, ROOM, 0, 0);
        for (int i = 0; i < 4; i++) {
            MPI_Status status;
            MPI_Sendrecv(send, count, MPI_INT, other, 5, recv, ROOM, MPI_INT, other, 5,
                         MPI_COMM_WORLD, &status);
            mt_expect_status(&status, other, 5, count, "messages");
            nap();
        }
        mt_ints_expect(recv, MT_DEVICE, ROOM, count, other, 1, "messages");
        mt_free(MT_DEVICE, recv);
    }
    mt_free(MT_DEVICE, send);
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"sizes", of_all_sizes},    {"freed", of_memory_that_goes},   {"neighbours", of_neighbours},
    {"pages", of_many_pages},   {"gone", of_memory_that_is_gone}, {"much", of_much_memory},
    {"large", of_large_memory}, {"messages", of_messages},
};

int main(int argc, char **argv)
{
    mt_begin(&argc, &argv, true);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if ((argc > 2) && (strcmp(argv[2], cases[i].name) == 0)) {
            cases[i].run();
        }
    }
    mt_summary();
    MPI_Finalize();
    return mt_status();
}
