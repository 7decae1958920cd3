/* SPDX-License-Identifier: BSD-3-Clause */
#include "support.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PRINTED = 10 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char     *runtime = "none";
static int             rank, size;
static int             checks, failures;

void mt_begin(int *argc, char ***argv, bool open_device)
{
    int provided;

    if (*argc > 1) {
        runtime = (*argv)[1];
    }
    MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (open_device) {
        mt_memory_open(runtime, rank);
    }
}

const char *mt_runtime(void)
{
    return runtime;
}

int mt_rank(void)
{
    return rank;
}

int mt_size(void)
{
    return size;
}

void mt_expect(bool good, const char *format, ...)
{
    va_list arguments;

    pthread_mutex_lock(&lock);
    checks++;
    if (!good && (++failures <= MOST_PRINTED)) {
        printf("FAIL rank %d: ", rank);
        va_start(arguments, format);
        vprintf(format, arguments);
        va_end(arguments);
        printf("\n");
        fflush(stdout);
    }
    pthread_mutex_unlock(&lock);
}

void mt_summary(void)
{
    int mine[2] = {checks, failures};
    int all[2] = {0, 0};

    MPI_Reduce(mine, all, 2, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%d checks, %d failures\n", all[0], all[1]);
        fflush(stdout);
    }
}

int mt_status(void)
{
    return failures > 0;
}

void *mt_driver(const char *cuda, const char *hip)
{
    if (strcmp(runtime, "none") == 0) {
        return NULL;
    }
    return dlsym(RTLD_DEFAULT, (strcmp(runtime, "rocm") == 0) ? hip : cuda);
}

struct mt_pair mt_pair_make(enum mt_where where, int count)
{
    size_t         bytes = sizeof(float) * (size_t)count;
    struct mt_pair pair = {.where = where, .count = count};

    pair.in = mt_alloc(where, bytes);
    pair.out = mt_alloc(where, bytes);
    pair.host = mt_alloc(MT_HOST, bytes);
    return pair;
}

void mt_pair_free(struct mt_pair *pair)
{
    mt_free(pair->where, pair->in);
    mt_free(pair->where, pair->out);
    free(pair->host);
}

void mt_pair_fill(struct mt_pair *pair, int count, MPI_Comm comm, int salt)
{
    size_t bytes = sizeof(float) * (size_t)count;
    int    me;

    MPI_Comm_rank(comm, &me);
    for (int i = 0; i < count; i++) {
        pair->host[i] = (float)(me + i % 61 + salt);
    }
    mt_put(pair->in, pair->where, pair->host, bytes);
    memset(pair->host, 0x5a, bytes);
    mt_put(pair->out, pair->where, pair->host, bytes);
}

void mt_pair_expect_sum(struct mt_pair *pair, int count, int ranks, int salt, const char *what)
{
    int wrong = 0;
    int first = -1;

    mt_get(pair->host, pair->out, pair->where, sizeof(float) * (size_t)count);
    for (int i = 0; i < count; i++) {
        float sum = (float)(ranks * (ranks - 1) / 2 + ranks * (i % 61 + salt));
        if (pair->host[i] != sum) {
            first = (wrong++ == 0) ? i : first;
        }
    }
    mt_expect(wrong == 0, "%s: %d of %d elements are wrong, the first is %d", what, wrong, count,
              first);
}

void mt_pair_allreduce(struct mt_pair *pair, int count, MPI_Comm comm, int salt)
{
    int ranks;

    MPI_Comm_size(comm, &ranks);
    mt_pair_fill(pair, count, comm, salt);
    MPI_Allreduce(pair->in, pair->out, count, MPI_FLOAT, MPI_SUM, comm);
    mt_pair_expect_sum(pair, count, ranks, salt, "MPI_Allreduce");
}

void mt_pair_alltoall(struct mt_pair *pair, int count, MPI_Comm comm)
{
    int me, ranks;
    int wrong = 0;

    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &ranks);
    for (int i = 0; i < count * ranks; i++) {
        pair->host[i] = (float)(me * 1000 + (i / count) * 10 + i % 7);
    }
    mt_put(pair->in, pair->where, pair->host, sizeof(float) * (size_t)(count * ranks));
    MPI_Alltoall(pair->in, count, MPI_FLOAT, pair->out, count, MPI_FLOAT, comm);
    mt_get(pair->host, pair->out, pair->where, sizeof(float) * (size_t)(count * ranks));
    for (int i = 0; i < count * ranks; i++) {
        wrong +=
            pair->host[i] != (float)((i / count) * 1000 + me * 10 + (me * count + i % count) % 7);
    }
    mt_expect(wrong == 0, "MPI_Alltoall: %d of %d elements are wrong", wrong, count * ranks);
}

void mt_run_case(const struct mt_named_case *cases, int argc, char **argv)
{
    const char *name = (argc > 2) ? argv[2] : "";

    for (; cases->name != NULL; cases++) {
        if (strcmp(cases->name, name) == 0) {
            cases->run();
            return;
        }
    }
    fprintf(stderr, "%s: no case is named '%s'\n", argv[0], name);
    MPI_Abort(MPI_COMM_WORLD, 64);
}

void mt_two_threads(MPI_Comm comms[2], void *(*work)(void *which))
{
    pthread_t threads[2];
    int       provided;

    MPI_Query_thread(&provided);
    mt_expect(provided == MPI_THREAD_MULTIPLE, "this MPI gives no MPI_THREAD_MULTIPLE");
    if (provided < MPI_THREAD_MULTIPLE) {
        return;
    }
    for (int i = 0; i < 2; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    }
    for (int i = 0; i < 2; i++) {
        intptr_t which = (i + mt_rank()) % 2;
        pthread_create(&threads[i], NULL, work, (void *)which);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    MPI_Comm_free(&comms[0]);
    MPI_Comm_free(&comms[1]);
}
