/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The path of the kernels: that it is taken where it should be, from the first call on, and that
 * nothing is left of it.
 *
 *   mpi_direct RUNTIME CASE [arguments]
 * Paths are looked at by xccl_mpi_last_path(); XCCL_COMM_CREATE=first is taken for granted.
 */
#include <dirent.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <mpi.h>

#include "support.h"

static int    num_words;
static char **words;

static long word(int i, long fallback)
{
    return (i < num_words) ? strtol(words[i], NULL, 10) : fallback;
}

/* ---- nothing is left ---- */

static int entries_of(const char *folder)
{
    DIR *dir = opendir(folder);
    int  count = 0;

    while ((dir != NULL) && (readdir(dir) != NULL)) {
        count++;
    }
    if (dir != NULL) {
        closedir(dir);
    }
    return count;
}

static long resident_kib(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    long  total, resident = 0;

    if (file != NULL) {
        if (fscanf(file, "%ld %ld", &total, &resident) != 2) {
            resident = 0;
        }
        fclose(file);
    }
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static void one_life(struct mt_pair *pair, int i)
{
    MPI_Comm comm;
    int      size;

    if (i % 2 == 0) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    } else {
        MPI_Comm_split(MPI_COMM_WORLD, 0, (i % 4 == 1) ? -mt_rank() : 0, &comm);
    }
    MPI_Comm_size(comm, &size);
    mt_pair_allreduce(pair, 1 + i % pair->count, comm, i);
    mt_expect_path("direct", "the first call of a communicator");
    MPI_Comm_free(&comm);
}

/* Communicators that come and go: each has the path at once, and leaves nothing behind. */
static void churn(void)
{
    enum { COUNT = 100, SETTLED = 200, GROWTH_KIB = 4096, MOST_BYTES = 40 };
    struct mt_pair pair = mt_pair_make(MT_DEVICE, COUNT);
    long           lives = word(3, 3000), before = 0;
    int            files = 0, threads = 0;
    size_t         heap = 0;

    for (int i = 0; i < lives; i++) {
        if (i == SETTLED) {
            heap = mallinfo2().uordblks;
            files = entries_of("/proc/self/fd");
            threads = entries_of("/proc/self/task");
            before = resident_kib();
        }
        one_life(&pair, i);
    }
    int now = entries_of("/proc/self/fd");
    mt_expect(now <= files + 2, "%d files open, and %d at the end", files, now);
    now = entries_of("/proc/self/task");
    mt_expect(now <= threads + 4, "%d threads, and %d at the end", threads, now);
    long grown = resident_kib() - before;
#ifdef __SANITIZE_ADDRESS__
    grown = 0; /* it keeps what was freed: the release build measures */
#endif
    size_t left = mallinfo2().uordblks;
    printf("rank %d: %zu bytes of the heap in use, %zu at the end\n", mt_rank(), heap, left);
    mt_expect(left < heap + (size_t)(lives - SETTLED) * MOST_BYTES, "%zu bytes are left of %ld",
              left - heap, lives);
    mt_expect(grown < GROWTH_KIB, "memory has grown by %ld KiB", grown);
    mt_pair_free(&pair);
}

/* More communicators than there is room for, twice; those that have none take another path. */
static void crowd(void)
{
    enum { COUNT = 1000, MANY = 24 };
    struct mt_pair pair = mt_pair_make(MT_DEVICE, COUNT);
    MPI_Comm       comms[MANY];
    int            direct[2] = {0, 0};

    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < MANY; i++) {
            MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
            mt_pair_allreduce(&pair, COUNT, comms[i], i);
            direct[round] += (strcmp(mt_last_path(), "direct") == 0);
        }
        for (int i = 0; i < MANY; i++) {
            mt_pair_allreduce(&pair, 1 + i, comms[i], i);
            MPI_Comm_free(&comms[i]);
        }
    }
    mt_expect((direct[0] > 0) && (direct[0] < MANY), "%d of %d are direct", direct[0], MANY);
    mt_expect(direct[0] == direct[1], "%d at first, %d when they were freed", direct[0], direct[1]);
    mt_pair_free(&pair);
}

/*
 * Calls that alone know their counts, on a communicator that has seen no others: its ranks ask each
 * other in the first whether any has device memory.
 */
static void counted(void)
{
    enum { COUNT = 30, CALLS = 10, RANKS = 8 };
    struct mt_pair pair = mt_pair_make(MT_DEVICE, COUNT * RANKS);
    int            counts[RANKS], displs[RANKS];
    MPI_Comm       comm;

    for (int i = 0; i < mt_size(); i++) {
        counts[i] = COUNT;
        displs[i] = i * COUNT;
    }
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int call = 1; call <= CALLS; call++) {
        MPI_Alltoallv(pair.in, counts, displs, MPI_FLOAT, pair.out, counts, displs, MPI_FLOAT,
                      comm);
        mt_expect_path("direct", "a call with its own counts");
    }
    MPI_Comm_free(&comm);
    mt_pair_free(&pair);
}

/* ---- numbers, order, arrival ---- */

/* Many more operations than there are numbers, blocking and not. */
static void renew(void)
{
    enum { COUNT = 3000, CALLS = 300 };
    struct mt_pair pair = mt_pair_make(MT_DEVICE, COUNT);
    int            direct = 0;

    for (int i = 0; i < CALLS; i++) {
        mt_pair_allreduce(&pair, 1 + i * 31 % COUNT, MPI_COMM_WORLD, i);
        direct += (strcmp(mt_last_path(), "direct") == 0);
    }
    mt_expect(direct == CALLS, "%d of %d blocking calls were direct", direct, CALLS);
    direct = 0;
    for (int i = 0; i < CALLS; i++) {
        MPI_Request request;
        mt_pair_fill(&pair, COUNT, MPI_COMM_WORLD, i);
        MPI_Iallreduce(pair.in, pair.out, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request);
        bool is_direct = (strcmp(mt_last_path(), "direct") == 0);
        direct += is_direct;
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        mt_pair_expect_sum(&pair, COUNT, mt_size(), i, "renewed without waiting");
        if (!is_direct) {
            usleep(2000); /* a thread is clearing what was left, and nobody waits for it */
        }
        if (i % 8 == 0) {
            MPI_Barrier(MPI_COMM_WORLD); /* what the ranks have agreed on counts from here on */
        }
    }
    mt_expect(direct > CALLS / 2, "%d of %d non-blocking calls were direct", direct, CALLS);
    mt_pair_free(&pair);
}

static void someones_nap(uint64_t *state, int round)
{
    if ((int)(mt_next(state) % (uint64_t)mt_size()) == mt_rank()) {
        usleep((useconds_t)((round % 3) * 1000));
    }
}

/* Values whose sum depends on the order of the ranks. */
static void same_bits_of(size_t count, int rounds)
{
    size_t   bytes = count * sizeof(float);
    float   *mine = malloc(bytes), *first = malloc(bytes), *now = malloc(bytes);
    float   *in = mt_alloc(MT_DEVICE, bytes), *out = mt_alloc(MT_DEVICE, bytes);
    uint64_t state = 4711 + (uint64_t)mt_rank();

    for (size_t i = 0; i < count; i++) {
        mine[i] = (float)((double)(mt_next(&state) % 1000003) / 999.7 - 500.0);
    }
    mt_put(in, MT_DEVICE, mine, bytes);
    for (int round = 0; round < rounds; round++) {
        someones_nap(&state, round);
        MPI_Allreduce(in, out, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        mt_expect_path("direct", "same bits");
        mt_get(now, out, MT_DEVICE, bytes);
        if (round == 0) {
            memcpy(first, now, bytes);
            PMPI_Bcast(first, (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
        }
        mt_expect(memcmp(first, now, bytes) == 0, "%zu floats, round %d: other bits", count, round);
    }
    mt_free(MT_DEVICE, in);
    mt_free(MT_DEVICE, out);
    free(mine);
    free(first);
    free(now);
}

static void bits(void)
{
    same_bits_of(1, 30);
    same_bits_of(1000, 30);
    same_bits_of(32 << 10, 10);
    same_bits_of(100001, 10);
}

/* ---- large vectors, on the program's own memory ---- */

static void expect_large(float *in, float *out, float *host, int count, int salt, const char *what)
{
    int wrong = 0, size = mt_size();

    for (int i = 0; i < count; i++) {
        host[i] = (float)(mt_rank() + salt + i % 17);
    }
    mt_put(in, MT_DEVICE, host, sizeof(float) * (size_t)count);
    MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    mt_get(host, out, MT_DEVICE, sizeof(float) * (size_t)count);
    for (int i = 0; i < count; i++) {
        wrong += (host[i] != (float)(size * (size - 1) / 2 + size * (salt + i % 17)));
    }
    mt_expect(wrong == 0, "%s: %d of %d sums are wrong", what, wrong, count);
}

/*
 * Buffers are freed, and others allocated, most often at the same address. On a busy machine
 * unmapping takes longer than the ranks wait for, and a call goes another way.
 */
static void reused(void)
{
    enum { COUNT = 100000, ROUNDS = 40 };
    size_t bytes = COUNT * sizeof(float);
    float *host = malloc(bytes);
    int    direct = 0;

    for (int round = 0; round < ROUNDS; round++) {
        /* Sometimes another size, so that the other kinds of reuse come too. */
        size_t more = (size_t)((round / 5 + mt_rank()) % 3) << 20;
        float *in = mt_alloc(MT_DEVICE, bytes + more), *out = mt_alloc(MT_DEVICE, bytes + more);
        expect_large(in, out, host, COUNT, round, "memory allocated again");
        direct += (strcmp(mt_last_path(), "direct") == 0);
        mt_free(MT_DEVICE, (round % 2 == 0) ? in : out);
        mt_free(MT_DEVICE, (round % 2 == 0) ? out : in);
    }
    mt_expect(direct >= ROUNDS / 2, "%d of %d calls are direct", direct, ROUNDS);
    free(host);
}

/* Both in one allocation, at places that differ by rank; and not aligned on one rank alone. */
static void parts(void)
{
    enum { COUNT = 100000, ROOM = 4 * COUNT };
    float *all = mt_alloc(MT_DEVICE, ROOM * sizeof(float));
    float *host = malloc(COUNT * sizeof(float));

    for (int i = 0; i < 8; i++) {
        int at = 4 * (i * 7 + mt_rank() * 100);
        expect_large(all + at, all + at + COUNT + 64, host, COUNT, i, "parts of an allocation");
        mt_expect_path("direct", "parts of an allocation");
    }
    for (int i = 0; i < 8; i++) {
        int at = (mt_rank() == 1) ? 1 : 0;
        expect_large(all + at, all + at + COUNT + 64, host, COUNT, i, "one is not aligned");
    }
    mt_free(MT_DEVICE, all);
    free(host);
}

/* Memory that cannot be shown to others on one rank, or on all. */
static void managed(void)
{
    enum { COUNT = 100000, ROUNDS = 4 };
    struct mt_pair all = mt_pair_make(MT_MANAGED, COUNT);
    struct mt_pair one = mt_pair_make((mt_rank() == 0) ? MT_MANAGED : MT_DEVICE, COUNT);

    for (int i = 0; i < ROUNDS; i++) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        mt_pair_allreduce(&all, COUNT, comm, i);
        mt_pair_allreduce(&one, COUNT, comm, i);
        mt_pair_allreduce(&one, 100, comm, i);
        mt_pair_alltoall(&one, COUNT / mt_size(), comm);
        MPI_Comm_free(&comm);
    }
    mt_pair_free(&all);
    mt_pair_free(&one);
}

/* The same of a pool, which the simulation's drivers refuse to export as the real ones do. */
static void pools(void)
{
    enum { COUNT = 100000 };
    int (*alloc)(void **, size_t, void *);
    int (*give)(void *, void *);
    void  *in = NULL, *out = NULL;
    float *host = malloc(COUNT * sizeof(float));

    *(void **)&alloc = mt_driver("cuMemAllocAsync", "hipMallocAsync");
    *(void **)&give = mt_driver("cuMemFreeAsync", "hipFreeAsync");
    bool has = (alloc != NULL) && (give != NULL) &&
               (alloc(&in, COUNT * sizeof(float), NULL) == 0) &&
               (alloc(&out, COUNT * sizeof(float), NULL) == 0);
    mt_expect(has, "memory of a pool");
    for (int i = 0; has && (i < 4); i++) {
        expect_large(in, out, host, COUNT, i, "memory of a pool");
        expect_large(in, out, host, 1000, i, "memory of a pool");
        mt_expect_path("direct", "little of it");
    }
    if (has) {
        give(in, NULL);
        give(out, NULL);
    }
    free(host);
}

/* A small operation is under way when a large one finds that it takes another path. */
static void pending(void)
{
    enum { COUNT = 100000, ROUNDS = 12 };
    struct mt_pair large = mt_pair_make(MT_MANAGED, COUNT), small = mt_pair_make(MT_DEVICE, 999);
    struct mt_pair next = mt_pair_make(MT_DEVICE, 999);

    for (int i = 0; i < ROUNDS; i++) {
        MPI_Request request;
        MPI_Comm    comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        mt_pair_allreduce(&next, 999, comm, i);
        mt_pair_fill(&small, 999, comm, i);
        MPI_Iallreduce(small.in, small.out, 999, MPI_FLOAT, MPI_SUM, comm, &request);
        mt_pair_allreduce(&large, COUNT, comm, i);
        mt_pair_allreduce(&next, 999, comm, i + 1);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        mt_pair_expect_sum(&small, 999, mt_size(), i, "small one around a large one");
        MPI_Comm_free(&comm);
    }
    mt_pair_free(&large);
    mt_pair_free(&small);
    mt_pair_free(&next);
}

/* Two threads with large vectors, on communicators used in no common order. */
static MPI_Comm comms[2];

static void *large_ones(void *which)
{
    enum { COUNT = 50000, ROUNDS = 12 };
    MPI_Comm       comm = comms[(intptr_t)which];
    struct mt_pair pair;

    mt_memory_enter();
    pair = mt_pair_make(MT_DEVICE, COUNT);
    for (int i = 0; i < ROUNDS; i++) {
        mt_pair_allreduce(&pair, COUNT, comm, i);
        mt_pair_allreduce(&pair, 10, comm, i);
    }
    mt_pair_free(&pair);
    return NULL;
}

static void threads(void)
{
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[0]);
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
    mt_two_threads(comms, large_ones);
}

/* ---- a rank that is late ---- */

static int allreduce_anyhow(struct mt_pair *pair, int count, MPI_Comm comm, bool blocks)
{
    MPI_Request request;

    if (blocks) {
        return MPI_Allreduce(pair->in, pair->out, count, MPI_FLOAT, MPI_SUM, comm);
    }
    int code = MPI_Iallreduce(pair->in, pair->out, count, MPI_FLOAT, MPI_SUM, comm, &request);
    return (code == MPI_SUCCESS) ? MPI_Wait(&request, MPI_STATUS_IGNORE) : code;
}

/*
 * The others get an error that says who is missing, and their device goes on. A call that does not
 * block (2) goes in rounds. Rank 0 may come so many milliseconds after the others, and hears of it
 * from one that gave up before.
 */
static void absent(void)
{
    enum { COUNT = 1000, LATE_S = 3 };
    int            large = (int)word(3, 0), count = (large != 0) ? 100000 : COUNT;
    long           after_ms = word(4, 0);
    struct mt_pair pair = mt_pair_make(MT_DEVICE, 100000);
    MPI_Comm       comm, others;
    int            late = mt_size() - 1;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_split(MPI_COMM_WORLD, (mt_rank() == late) ? MPI_UNDEFINED : 0, 0, &others);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* MPI_Wait's, in Open MPI */
    for (int i = 0; i < 20; i++) {
        mt_pair_allreduce(&pair, COUNT, comm, i);
    }
    if (mt_rank() == late) {
        sleep(LATE_S);
    } else {
        char text[MPI_MAX_ERROR_STRING] = "";
        char name[32];
        int  length;
        mt_pair_fill(&pair, count, comm, 1);
        usleep((mt_rank() == 0) ? (useconds_t)(1000 * after_ms) : 0);
        int code = allreduce_anyhow(&pair, count, comm, large < 2);
        mt_expect(code != MPI_SUCCESS, "a rank is missing, and nobody noticed");
        MPI_Error_string(code, text, &length);
        snprintf(name, sizeof(name), "rank %d", late);
        mt_expect(strstr(text, name) != NULL, "it does not name rank %d: %s", late, text);
        if ((after_ms > 0) && (mt_rank() == 0)) {
            mt_expect(strstr(text, "given up") != NULL, "it is not another's: %s", text);
        }
        PMPI_Barrier(others);          /* on a crowded machine one is late with its report */
        for (int i = 0; i < 20; i++) { /* the device is free again */
            mt_pair_allreduce(&pair, COUNT, others, i);
            mt_expect_path("direct", "after a failure");
        }
        MPI_Comm_free(&others);
    }
    PMPI_Barrier(MPI_COMM_WORLD);
    mt_pair_free(&pair);
    MPI_Comm_free(&comm);
}

/* ---- blocks that only move, on memory that is used again: copy engines may do it ---- */

static int moved_word(int rank, int block, int round, int i)
{
    return (rank * 31 + block * 7 + round) * 100003 + i;
}

static void fill_blocks(int *blocks, int each, int count, int rank, int round)
{
    for (int b = 0; b < count; b++) {
        for (int i = 0; i < each; i++) {
            blocks[b * each + i] = moved_word(rank, b, round, i);
        }
    }
}

static void expect_block(const int *block, int each, int rank, int of, int round, const char *what)
{
    int wrong = 0;

    for (int i = 0; i < each; i++) {
        wrong += (block[i] != moved_word(rank, of, round, i));
    }
    mt_expect(wrong == 0, "%s, round %d: %d of %d words of rank %d are wrong", what, round, wrong,
              each, rank);
}

struct moved {
    int  words, root, round;
    int *in, *out, *host; /* size blocks each; host memory for both */
};

static void move_bcast(const struct moved *m)
{
    int *buffer = (mt_rank() == m->root) ? m->in : m->out;

    MPI_Bcast(buffer, m->words, MPI_INT, m->root, MPI_COMM_WORLD);
    mt_get(m->host, buffer, MT_DEVICE, (size_t)m->words * sizeof(int));
    expect_block(m->host, m->words, m->root, 0, m->round, "bcast");
}

static void move_gather(const struct moved *m, bool in_place)
{
    bool   root = (mt_rank() == m->root);
    size_t bytes = (size_t)m->words * sizeof(int);

    if (in_place && root) {
        fill_blocks(m->host, m->words, 1, mt_rank(), m->round);
        mt_put(m->out + mt_rank() * m->words, MT_DEVICE, m->host, bytes);
    }
    MPI_Gather((in_place && root) ? MPI_IN_PLACE : m->in, m->words, MPI_INT, m->out, m->words,
               MPI_INT, m->root, MPI_COMM_WORLD);
    mt_get(m->host, m->out, MT_DEVICE, (size_t)mt_size() * bytes);
    for (int r = 0; root && (r < mt_size()); r++) {
        expect_block(m->host + r * m->words, m->words, r, 0, m->round, "gather");
    }
}

static void move_scatter(const struct moved *m, bool in_place)
{
    bool       kept = in_place && (mt_rank() == m->root);
    const int *got = kept ? m->in + mt_rank() * m->words : m->out;

    MPI_Scatter(m->in, m->words, MPI_INT, kept ? MPI_IN_PLACE : m->out, m->words, MPI_INT, m->root,
                MPI_COMM_WORLD);
    mt_get(m->host, got, MT_DEVICE, (size_t)m->words * sizeof(int));
    expect_block(m->host, m->words, m->root, mt_rank(), m->round, "scatter");
}

static void move_all(const struct moved *m, bool in_place)
{
    size_t bytes = (size_t)m->words * sizeof(int);

    if (in_place) {
        fill_blocks(m->host, m->words, 1, mt_rank(), m->round);
        mt_put(m->out + mt_rank() * m->words, MT_DEVICE, m->host, bytes);
    }
    MPI_Allgather(in_place ? MPI_IN_PLACE : m->in, m->words, MPI_INT, m->out, m->words, MPI_INT,
                  MPI_COMM_WORLD);
    mt_get(m->host, m->out, MT_DEVICE, (size_t)mt_size() * bytes);
    for (int r = 0; r < mt_size(); r++) {
        expect_block(m->host + r * m->words, m->words, r, 0, m->round, "allgather");
    }
    MPI_Alltoall(m->in, m->words, MPI_INT, m->out, m->words, MPI_INT, MPI_COMM_WORLD);
    mt_get(m->host, m->out, MT_DEVICE, (size_t)mt_size() * bytes);
    for (int r = 0; r < mt_size(); r++) {
        expect_block(m->host + r * m->words, m->words, r, mt_rank(), m->round, "alltoall");
    }
}

/* Not a multiple of anything, and more than goes through the workspaces. */
static void moved(void)
{
    enum { WORDS = 150001, ROUNDS = 6 };
    size_t bytes = (size_t)mt_size() * WORDS * sizeof(int);
    /* Blocks begin where kernels and engines take them: at 16 bytes. */
    struct moved m = {.words = WORDS + 3, .host = malloc(bytes + 16 * (size_t)mt_size())};

    m.in = mt_alloc(MT_DEVICE, bytes + 16 * (size_t)mt_size());
    m.out = mt_alloc(MT_DEVICE, bytes + 16 * (size_t)mt_size());
    for (m.round = 0; m.round < ROUNDS; m.round++) {
        m.root = m.round % mt_size();
        fill_blocks(m.host, m.words, mt_size(), mt_rank(), m.round);
        mt_put(m.in, MT_DEVICE, m.host, (size_t)mt_size() * (size_t)m.words * sizeof(int));
        move_bcast(&m);
        mt_expect_path("direct", "blocks that move");
        move_gather(&m, m.round % 2 == 1);
        move_scatter(&m, m.round % 2 == 1);
        move_all(&m, m.round % 2 == 1);
        mt_expect_path("direct", "blocks that move");
    }
    mt_free(MT_DEVICE, m.in);
    mt_free(MT_DEVICE, m.out);
    free(m.host);
}

/* ---- long sums: engines and kernels may share the work ---- */

static int summand(int rank, int round, int i)
{
    return (rank + 1) * (i % 1009) + round * 31 + i % 7;
}

/* from: of which element the first sum is. */
static void expect_sums(const int *sums, int from, int count, int round, const char *what)
{
    int wrong = 0, first = -1;

    for (int i = 0; i < count; i++) {
        int sum = 0;
        for (int r = 0; r < mt_size(); r++) {
            sum += summand(r, round, from + i);
        }
        if (sums[i] != sum) {
            first = (wrong++ == 0) ? i : first;
        }
    }
    mt_expect(wrong == 0, "%s, round %d: %d of %d sums are wrong, the first at %d", what, round,
              wrong, count, first);
}

/* The inputs stay, or the sums are in their place; nothing behind them is touched. */
static void sum_up(int *in, int *out, int *host, int count, int round, bool in_place)
{
    size_t bytes = (size_t)(count + 1) * sizeof(int);

    for (int i = 0; i < count; i++) {
        host[i] = summand(mt_rank(), round, i);
    }
    host[count] = -7;
    mt_put(in, MT_DEVICE, host, bytes);
    mt_put(out, MT_DEVICE, host, bytes);
    MPI_Allreduce(in_place ? MPI_IN_PLACE : in, out, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    mt_expect_path("direct", "long sums");
    mt_get(host, out, MT_DEVICE, bytes);
    expect_sums(host, 0, count, round, in_place ? "in place" : "sums");
    mt_expect(host[count] == -7, "what lies behind the sums was touched");
    mt_get(host, in, MT_DEVICE, bytes);
    for (int i = 0; i < count; i++) {
        if (host[i] != summand(mt_rank(), round, i)) {
            mt_expect(false, "the input was touched at %d", i);
            break;
        }
    }
}

static void sum_for_root(int *in, int *out, int *host, int count, int round, bool in_place)
{
    size_t bytes = (size_t)count * sizeof(int);
    int    root = round % mt_size();
    bool   is_root = (mt_rank() == root);

    for (int i = 0; i < count; i++) {
        host[i] = summand(mt_rank(), round, i);
    }
    mt_put(in, MT_DEVICE, host, bytes);
    mt_put(out, MT_DEVICE, host, bytes);
    MPI_Reduce((in_place && is_root) ? MPI_IN_PLACE : in, is_root ? out : NULL, count, MPI_INT,
               MPI_SUM, root, MPI_COMM_WORLD);
    mt_expect_path("direct", "long sums for a root");
    mt_get(host, out, MT_DEVICE, bytes);
    if (is_root) {
        expect_sums(host, 0, count, round, "for a root");
    }
}

/* Parts of one length, or of several. */
static void sum_parts(int *in, int *out, int *host, int count, int round, bool alike)
{
    int counts[16], from = 0, each = count / mt_size() / 4 * 4;

    for (int i = 0; i < count; i++) {
        host[i] = summand(mt_rank(), round, i);
    }
    mt_put(in, MT_DEVICE, host, (size_t)count * sizeof(int));
    for (int i = 0; i < mt_size(); i++) {
        counts[i] = each - (alike ? 0 : 4 * i);
        from += (i < mt_rank()) ? counts[i] : 0;
    }
    if (alike) {
        MPI_Reduce_scatter_block(in, out, each, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    } else {
        MPI_Reduce_scatter(in, out, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }
    mt_expect_path("direct", "long sums in parts");
    mt_get(host, out, MT_DEVICE, (size_t)counts[mt_rank()] * sizeof(int));
    expect_sums(host, from, counts[mt_rank()], round, alike ? "parts" : "parts of any length");
}

/* Small whole numbers: the same in any order, so that MPI's own result is the same. */
static void fill_type(void *at, MPI_Datatype type, int count)
{
    for (int i = 0; i < count; i++) {
        int value = (mt_rank() * 7 + i * 3) % 23 + 1;
        if (type == MPI_DOUBLE) {
            ((double *)at)[i] = value;
        } else if (type == MPI_C_FLOAT_COMPLEX) {
            ((float *)at)[2 * i] = (float)value;
            ((float *)at)[2 * i + 1] = (float)(value % 5);
        } else if (type == MPI_SHORT) {
            ((short *)at)[i] = (short)value;
        } else if (type == MPI_2INT) {
            ((int *)at)[2 * i] = value;
            ((int *)at)[2 * i + 1] = mt_rank();
        } else {
            ((long *)at)[i] = value;
        }
    }
}

static void reduced(void)
{
    enum { COUNT = 200003, MOST = 16 };
    const struct {
        MPI_Datatype type;
        MPI_Op       op;
        const char  *name;
    } all[] = {{MPI_DOUBLE, MPI_MAX, "MPI_DOUBLE, MPI_MAX"},
               {MPI_DOUBLE, MPI_SUM, "MPI_DOUBLE, MPI_SUM"},
               {MPI_C_FLOAT_COMPLEX, MPI_SUM, "MPI_C_FLOAT_COMPLEX, MPI_SUM"},
               {MPI_SHORT, MPI_MIN, "MPI_SHORT, MPI_MIN"},
               {MPI_2INT, MPI_MAXLOC, "MPI_2INT, MPI_MAXLOC"},
               {MPI_LONG, MPI_BXOR, "MPI_LONG, MPI_BXOR"},
               {MPI_LONG, MPI_SUM, "MPI_LONG, MPI_SUM"}};
    char *host = malloc(2 * (size_t)COUNT * MOST), *expected = host + (size_t)COUNT * MOST;
    void *in = mt_alloc(MT_DEVICE, (size_t)COUNT * MOST);
    void *out = mt_alloc(MT_DEVICE, (size_t)COUNT * MOST);

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        int size;
        MPI_Type_size(all[i].type, &size);
        size_t bytes = (size_t)COUNT * (size_t)size;
        fill_type(host, all[i].type, COUNT);
        mt_put(in, MT_DEVICE, host, bytes);
        MPI_Allreduce(host, expected, COUNT, all[i].type, all[i].op, MPI_COMM_WORLD);
        MPI_Allreduce(in, out, COUNT, all[i].type, all[i].op, MPI_COMM_WORLD);
        mt_expect_path("direct", all[i].name);
        mt_get(host, out, MT_DEVICE, bytes);
        mt_expect(memcmp(host, expected, bytes) == 0, "%s is not what MPI makes of it",
                  all[i].name);
    }
    mt_free(MT_DEVICE, in);
    mt_free(MT_DEVICE, out);
    free(host);
}

/* No whole number, so that another order of adding gives other bits at some of the places. */
static float fraction(int rank, int i)
{
    return (float)(i % 1009 + 1) / (float)(rank * rank + 3);
}

/* Whichever rank adds a part of a long vector, it adds in the order of the ranks. */
static void ordered(void)
{
    enum { COUNT = 1000003, ROUNDS = 3 };
    size_t bytes = COUNT * sizeof(float);
    float *host = malloc(bytes);
    void  *in = mt_alloc(MT_DEVICE, bytes), *out = mt_alloc(MT_DEVICE, bytes);

    for (int i = 0; i < COUNT; i++) {
        host[i] = fraction(mt_rank(), i);
    }
    mt_put(in, MT_DEVICE, host, bytes);
    for (int round = 0; round < ROUNDS; round++) {
        int wrong = 0;
        MPI_Allreduce(in, out, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        mt_expect_path("direct", "sums in order");
        mt_get(host, out, MT_DEVICE, bytes);
        for (int i = 0; i < COUNT; i++) {
            float expected = fraction(0, i);
            for (int rank = 1; rank < mt_size(); rank++) {
                expected += fraction(rank, i);
            }
            wrong += (host[i] != expected);
        }
        mt_expect(wrong == 0, "%d sums were not added in the order of the ranks", wrong);
    }
    mt_free(MT_DEVICE, in);
    mt_free(MT_DEVICE, out);
    free(host);
}

/* Among more than two ranks the longest are more than fits into the workspaces at once. */
static void summed(void)
{
    enum { MOST = 700001, MORE = 2400001, ROUNDS = 4 };
    const int counts[] = {(mt_size() > 2) ? MORE : MOST, MOST - 1, 200003, 150000};
    int      *host = malloc((MORE + 1) * sizeof(int));
    int      *in = mt_alloc(MT_DEVICE, (MORE + 1) * sizeof(int));
    int      *out = mt_alloc(MT_DEVICE, (MORE + 1) * sizeof(int));

    for (int round = 0; round < ROUNDS; round++) {
        sum_up(in, out, host, counts[round], round, false);
        sum_up(in, out, host, counts[round], round, true);
        sum_for_root(in, out, host, counts[round], round, round % 2 == 1);
        sum_parts(in, out, host, counts[round], round, round % 2 == 0);
    }
    mt_free(MT_DEVICE, in);
    mt_free(MT_DEVICE, out);
    free(host);
}

static const struct mt_named_case cases[] = {
    {"churn", churn},     {"crowd", crowd},   {"counted", counted}, {"renew", renew},
    {"bits", bits},       {"parts", parts},   {"reused", reused},   {"managed", managed},
    {"pending", pending}, {"absent", absent}, {"threads", threads}, {"pools", pools},
    {"moved", moved},     {"summed", summed}, {"reduced", reduced}, {"ordered", ordered},
    {NULL, NULL},
};

int main(int argc, char **argv)
{
    num_words = argc;
    words = argv;
    mt_begin(&argc, &argv, true);
    return mt_run_to_end(cases, argc, argv);
}
