/* SPDX-License-Identifier: BSD-3-Clause */
#include "support.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PRINTED = 10, MOST_THREADS = 8 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char     *runtime = "none";
static int             rank, size;
static int             checks, failures;

void mt_begin(int *argc, char ***argv, bool open_device)
{
    const char *level = getenv("MT_LEVEL");
    bool        lower = (level != NULL) && (strcmp(level, "serialized") == 0);

    mt_begin_at(lower ? MPI_THREAD_SERIALIZED : MPI_THREAD_MULTIPLE, argc, argv, open_device);
}

void mt_begin_at(int level, int *argc, char ***argv, bool open_device)
{
    int provided;

    if (*argc > 1) {
        runtime = (*argv)[1];
    }
    MPI_Init_thread(argc, argv, level, &provided);
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

int mt_class_of(int code)
{
    int class = MPI_SUCCESS;

    PMPI_Error_class(code, &class);
    return class;
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

/* What the thread's calls of the runtime may do beside a capture is the program's to say. */
static void expect_mode_of_captures(void)
{
    int (*exchange)(int *) =
        mt_driver("cuThreadExchangeStreamCaptureMode", "hipThreadExchangeStreamCaptureMode");
    int mode = 0; /* global, as every thread begins */

    if ((exchange != NULL) && ((exchange(&mode) != 0) || (mode != 0))) {
        mt_expect(false, "this thread's mode of captures was left as %d", mode);
    }
}

void mt_summary(void)
{
    expect_mode_of_captures();
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

void *mt_find(const char *name)
{
    char  extension[64];
    void *address = dlsym(RTLD_DEFAULT, name);

    if (address == NULL) {
        snprintf(extension, sizeof(extension), "MPIX_%s", name + strlen("MPI_"));
        address = dlsym(RTLD_DEFAULT, extension);
    }
    return address;
}

void *mt_driver(const char *cuda, const char *hip)
{
    if (strcmp(runtime, "none") == 0) {
        return NULL;
    }
    return dlsym(RTLD_DEFAULT, (strcmp(runtime, "rocm") == 0) ? hip : cuda);
}

uint64_t mt_next(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

void mt_fill_noise(char *to, size_t bytes, uint64_t seed)
{
    for (size_t i = 0; i < bytes; i += sizeof(seed)) {
        uint64_t word = mt_next(&seed);
        memcpy(to + i, &word, (bytes - i < sizeof(word)) ? bytes - i : sizeof(word));
    }
}

char *mt_noise(size_t bytes, uint64_t seed)
{
    char *memory = malloc(bytes + 1);

    mt_fill_noise(memory, bytes, seed);
    return memory;
}

int mt_value(int from, int salt, int i)
{
    return from * 50000000 + salt * 50021 + i;
}

int *mt_ints_make(enum mt_where where, int room, int count, int salt)
{
    size_t bytes = sizeof(int) * (size_t)room;
    int   *host = malloc(bytes);
    int   *buffer = mt_alloc(where, bytes);

    for (int i = 0; i < room; i++) {
        host[i] = (i < count) ? mt_value(rank, salt, i) : MT_UNTOUCHED;
    }
    mt_put(buffer, where, host, bytes);
    free(host);
    return buffer;
}

void mt_ints_expect(const int *buffer, enum mt_where where, int room, int count, int from, int salt,
                    const char *what)
{
    size_t bytes = sizeof(int) * (size_t)room;
    int   *host = malloc(bytes);
    int    wrong = 0;

    mt_get(host, buffer, where, bytes);
    for (int i = 0; i < room; i++) {
        wrong += host[i] != ((i < count) ? mt_value(from, salt, i) : MT_UNTOUCHED);
    }
    mt_expect(wrong == 0, "%s: %d of %d integers are wrong", what, wrong, room);
    free(host);
}

struct mt_twin mt_twin_of(char *host, size_t bytes)
{
    struct mt_twin t = {host, mt_alloc(MT_DEVICE, bytes), bytes};

    mt_put(t.device, MT_DEVICE, host, bytes);
    return t;
}

void mt_twin_expect(const struct mt_twin *t, const char *what)
{
    char *found = malloc(t->bytes);

    mt_get(found, t->device, MT_DEVICE, t->bytes);
    mt_expect(memcmp(found, t->host, t->bytes) == 0, "%s: other bytes than on the host", what);
    free(found);
}

void mt_twin_free(struct mt_twin *t)
{
    free(t->host);
    mt_free(MT_DEVICE, t->device);
}

void mt_meet_on_device(void)
{
    enum { COUNT = 15, TAG = 5 }; /* too short to be fetched */
    int *in = mt_ints_make(MT_DEVICE, COUNT, COUNT, 0), *out = mt_ints_make(MT_DEVICE, COUNT, 0, 0);
    int  other = 1 - mt_rank();

    for (int i = 0; i < 3; i++) {
        MPI_Sendrecv(in, COUNT, MPI_INT, other, TAG, out, COUNT, MPI_INT, other, TAG,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    mt_free(MT_DEVICE, in);
    mt_free(MT_DEVICE, out);
}

void mt_expect_status(const MPI_Status *status, int from, int tag, int count, const char *what)
{
    int got = -1;

    MPI_Get_count(status, MPI_INT, &got);
    mt_expect((status->MPI_SOURCE == from) && (status->MPI_TAG == tag) && (got == count),
              "%s: the status says %d integers, tag %d, rank %d, not %d, %d, %d", what, got,
              status->MPI_TAG, status->MPI_SOURCE, count, tag, from);
}

static const char *ask_xccl(const char *name)
{
    const char *(*ask)(void);

    *(void **)&ask = dlsym(RTLD_DEFAULT, name);
    const char *path = (ask != NULL) ? ask() : NULL;
    return (path != NULL) ? path : "none";
}

const char *mt_last_path(void)
{
    return ask_xccl("xccl_mpi_last_path");
}

const char *mt_last_message_path(void)
{
    return ask_xccl("xccl_mpi_last_message_path");
}

static void expect_path(const char *was, const char *wanted, const char *what)
{
    mt_expect((wanted == NULL) || (strcmp(was, wanted) == 0), "%s: path %s instead of %s", what,
              was, wanted);
}

void mt_expect_path(const char *wanted, const char *what)
{
    expect_path(mt_last_path(), wanted, what);
}

void mt_expect_message_path(const char *wanted, const char *what)
{
    expect_path(mt_last_message_path(), wanted, what);
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

int mt_run_to_end(const struct mt_named_case *cases, int argc, char **argv)
{
    mt_run_case(cases, argc, argv);
    mt_summary();
    MPI_Finalize();
    return mt_status();
}

void mt_in_threads(int threads, void *(*work)(void *argument), void *arguments, size_t each)
{
    pthread_t made[MOST_THREADS];

    for (int i = 0; i < threads; i++) {
        pthread_create(&made[i], NULL, work, (char *)arguments + (size_t)i * each);
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(made[i], NULL);
    }
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

jmp_buf      mt_before;
volatile int mt_jumps;

void mt_jump(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    (void)code;
    mt_jumps++;
    longjmp(mt_before, 1);
}
