/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stream-ordered collectives: against MPI's own on host memory, with work on the stream before and
 * after that shows the order, eagerly and in graphs.
 *
 *   mpi_streams RUNTIME CASE [PATH]
 * PATH: which one xccl_mpi_last_path() has to name, where it is said.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <xccl/mpix.h>

#include "streams_device.h"
#include "support.h"

enum { ROOM = 1 << 16, REPLAYS = 20 };

/* A stream with its communicator, and memory of either side. */
struct fixture {
    void       *stream;
    MPIX_Stream object;
    MPI_Comm    comm;
    int         rank, size;
    char       *in, *out;             /* device */
    char       *host_in, *host_out;   /* pinned: copied before and after */
    char       *model_in, *model_out; /* what MPI makes of the same */
};

static const char *wanted_path;

/* As MPICH 4.3 writes it: bytes in hexadecimal, and "[n]" for n that are zero. */
static void write_compressed(MPI_Info info, const void *value, size_t bytes)
{
    const unsigned char *from = value;
    char                 text[64];
    int                  at = 0;

    for (size_t i = 0, zeros; i < bytes; i += (zeros > 1) ? zeros : 1) {
        for (zeros = 0; (i + zeros < bytes) && (from[i + zeros] == 0); zeros++) {}
        at += (zeros > 1) ? snprintf(text + at, sizeof(text) - (size_t)at, "[%zu]", zeros)
                          : snprintf(text + at, sizeof(text) - (size_t)at, "%02X", from[i]);
    }
    mt_expect(strchr(text, '[') != NULL, "%s: nothing is compressed", text);
    MPI_Info_set(info, "value", text);
}

static MPIX_Stream object_of(void *stream)
{
    static int  made;
    MPIX_Stream object = MPIX_STREAM_NULL;
    MPI_Info    info;

    MPI_Info_create(&info);
    MPI_Info_set(info, "type", strcmp(mt_runtime(), "cuda") == 0 ? "cudaStream_t" : "hipStream_t");
    if (made++ % 2 == 0) {
        MPIX_Info_set_hex(info, "value", &stream, sizeof(stream));
    } else {
        write_compressed(info, &stream, sizeof(stream));
    }
    mt_expect(MPIX_Stream_create(info, &object) == MPI_SUCCESS, "MPIX_Stream_create");
    MPI_Info_free(&info);
    return object;
}

static struct fixture fixture_make(MPI_Comm comm)
{
    struct fixture s = {.stream = ms_stream_make()};
    MPIX_Stream    found = MPIX_STREAM_NULL;

    s.object = object_of(s.stream);
    mt_expect(MPIX_Stream_comm_create(comm, s.object, &s.comm) == MPI_SUCCESS, "creation");
    mt_expect((MPIX_Comm_get_stream(s.comm, 0, &found) == MPI_SUCCESS) && (found == s.object),
              "the stream of a communicator");
    MPI_Comm_rank(s.comm, &s.rank);
    MPI_Comm_size(s.comm, &s.size);
    s.in = mt_alloc(MT_DEVICE, ROOM);
    s.out = mt_alloc(MT_DEVICE, ROOM);
    s.host_in = ms_pinned(ROOM);
    s.host_out = ms_pinned(ROOM);
    s.model_in = malloc(ROOM);
    s.model_out = malloc(ROOM);
    return s;
}

static void fixture_free(struct fixture *s)
{
    MPI_Comm_free(&s->comm);
    MPIX_Stream_free(&s->object);
    mt_expect(s->object == MPIX_STREAM_NULL, "a freed stream's handle");
    ms_stream_free(s->stream);
    mt_free(MT_DEVICE, s->in);
    mt_free(MT_DEVICE, s->out);
    ms_pinned_free(s->host_in);
    ms_pinned_free(s->host_out);
    free(s->model_in);
    free(s->model_out);
}

/* ---- the collectives, enqueued and as MPI's own ---- */

struct shape {
    int          count, root;
    MPI_Datatype type;
    MPI_Op       op;
    int          in_place;
};

#define TWICE(name, ...) enqueue ? MPIX_##name##_enqueue(__VA_ARGS__) : MPI_##name(__VA_ARGS__)

static int call(int which, const struct shape *a, void *in, void *out, MPI_Comm comm, int enqueue)
{
    int me;

    MPI_Comm_rank(comm, &me);
    const void *send = a->in_place ? MPI_IN_PLACE : in;
    bool        root = (me == a->root);
    switch (which) {
    case 0:
        return TWICE(Allreduce, send, out, a->count, a->type, a->op, comm);
    case 1:
        return TWICE(Bcast, out, a->count, a->type, a->root, comm);
    case 2:
        return TWICE(Reduce, (a->in_place && root) ? MPI_IN_PLACE : in, out, a->count, a->type,
                     a->op, a->root, comm);
    case 3:
        return TWICE(Reduce_scatter_block, send, out, a->count, a->type, a->op, comm);
    case 4:
        return TWICE(Allgather, send, a->count, a->type, out, a->count, a->type, comm);
    case 5:
        return TWICE(Alltoall, send, a->count, a->type, out, a->count, a->type, comm);
    case 6:
        return TWICE(Gather, (a->in_place && root) ? MPI_IN_PLACE : in, a->count, a->type, out,
                     a->count, a->type, a->root, comm);
    case 7:
        return TWICE(Scatter, in, a->count, a->type, (a->in_place && root) ? MPI_IN_PLACE : out,
                     a->count, a->type, a->root, comm);
    case 8:
        return TWICE(Scan, send, out, a->count, a->type, a->op, comm);
    default:
        return TWICE(Exscan, send, out, a->count, a->type, a->op, comm);
    }
}

enum { CALLS = 10 };
static const char *const names[CALLS] = {"allreduce", "bcast",    "reduce", "reduce_scatter_block",
                                         "allgather", "alltoall", "gather", "scatter",
                                         "scan",      "exscan"};

/* Whole numbers whose sums are exact in any order, as floats and as integers. */
static void fill(struct fixture *s, uint64_t seed)
{
    uint64_t state = seed * 977 + (unsigned)s->rank + 1;
    float   *in = (float *)(void *)s->host_in;

    for (size_t i = 0; i < ROOM / sizeof(float); i++) {
        in[i] = (float)(int)(mt_next(&state) % 1000);
    }
    memcpy(s->model_in, s->host_in, ROOM);
    for (size_t i = 0; i < ROOM / sizeof(float); i++) {
        ((float *)(void *)s->model_out)[i] = (float)(int)(mt_next(&state) % 1000);
    }
    memcpy(s->host_out, s->model_out, ROOM);
}

static void before(struct fixture *s)
{
    ms_delay(s->stream);
    ms_copy(s->stream, s->in, s->host_in, ROOM);
    ms_copy(s->stream, s->out, s->host_out, ROOM);
}

static void after(struct fixture *s)
{
    ms_copy(s->stream, s->host_in, s->in, ROOM);
    ms_copy(s->stream, s->host_out, s->out, ROOM);
}

static void compare(const struct fixture *s, int which, const struct shape *a, const char *how)
{
    mt_expect((memcmp(s->host_out, s->model_out, ROOM) == 0) &&
                  (memcmp(s->host_in, s->model_in, ROOM) == 0),
              "%s of %d, root %d, %s, %s", names[which], a->count, a->root,
              a->in_place ? "in place" : "not in place", how);
}

static void one(struct fixture *s, int which, const struct shape *a, uint64_t seed)
{
    fill(s, seed);
    before(s);
    mt_expect(call(which, a, s->in, s->out, s->comm, 1) == MPI_SUCCESS, "%s", names[which]);
    mt_expect_path(wanted_path, names[which]);
    after(s);
    call(which, a, s->model_in, s->model_out, MPI_COMM_WORLD, 0);
    ms_sync(s->stream);
    compare(s, which, a, "eagerly");
}

static bool has_in_place(int which)
{
    return which != 1;
}

static void all_calls(struct fixture *s, MPI_Datatype type, MPI_Op op, const int *counts, int num,
                      void (*run)(struct fixture *, int, const struct shape *, uint64_t))
{
    uint64_t seed = 1;

    for (int which = 0; which < CALLS; which++) {
        for (int i = 0; i < num; i++) {
            for (int in_place = 0; in_place <= (has_in_place(which) ? 1 : 0); in_place++) {
                struct shape a = {counts[i], (int)(seed % (unsigned)s->size), type, op, in_place};
                run(s, which, &a, seed++);
            }
        }
    }
}

static void collectives(void)
{
    static const int counts[] = {1, 2, 777, 2048};
    struct fixture   s = fixture_make(MPI_COMM_WORLD);
    MPI_Datatype     columns, moved;

    all_calls(&s, MPI_FLOAT, MPI_SUM, counts, 4, one);
    MPI_Type_vector(7, 1, 2, MPI_FLOAT, &columns);
    MPI_Type_create_resized(columns, 0, 15 * (MPI_Aint)sizeof(float), &moved);
    MPI_Type_commit(&moved);
    for (int which = 0; which < CALLS; which++) {
        bool reduces = (which == 0) || (which == 2) || (which == 3) || (which >= 8);
        for (int in_place = 0; !reduces && (in_place <= (has_in_place(which) ? 1 : 0));
             in_place++) {
            struct shape a = {11, 0, moved, MPI_SUM, in_place};
            one(&s, which, &a, 99);
        }
    }
    MPI_Type_free(&moved);
    MPI_Type_free(&columns);
    for (int i = 0; i < 3; i++) {
        mt_expect(MPIX_Barrier_enqueue(s.comm) == MPI_SUCCESS, "barrier");
    }
    ms_sync(s.stream);
    struct shape none = {0, 0, MPI_FLOAT, MPI_SUM, 0};
    wanted_path = NULL;
    for (int which = 0; which < CALLS; which++) {
        one(&s, which, &none, 5);
    }
    fixture_free(&s);
}

/* ---- graphs ---- */

/* Captured without having been called before, then replayed on new data each time. */
static void replay(struct fixture *s, int which, const struct shape *a, uint64_t seed)
{
    ms_capture_begin(s->stream, (int)(seed % 3));
    before(s);
    mt_expect(call(which, a, s->in, s->out, s->comm, 1) == MPI_SUCCESS, "%s captured",
              names[which]);
    after(s);
    void *graph = ms_capture_end(s->stream);
    mt_expect(graph != NULL, "%s: a graph", names[which]);
    for (uint64_t i = 0; (graph != NULL) && (i < 3); i++) {
        fill(s, seed * 31 + i);
        call(which, a, s->model_in, s->model_out, MPI_COMM_WORLD, 0);
        ms_launch(graph, s->stream);
        ms_sync(s->stream);
        compare(s, which, a, "in a graph");
    }
    if (graph != NULL) {
        ms_graph_free(graph);
    }
}

/* Several calls in one graph, launched many times without a look in between. */
static void chain(struct fixture *s)
{
    struct shape a = {100, 0, MPI_FLOAT, MPI_MAX, 1};

    fill(s, 7);
    ms_copy(s->stream, s->out, s->host_out, ROOM);
    ms_sync(s->stream);
    ms_capture_begin(s->stream, 0);
    for (int i = 0; i < 5; i++) {
        a.op = (i % 2 == 0) ? MPI_MAX : MPI_MIN;
        call(0, &a, NULL, s->out, s->comm, 1);
        call(1, &a, NULL, s->out, s->comm, 1);
    }
    void *graph = ms_capture_end(s->stream);
    mt_expect(graph != NULL, "a chain");
    for (int i = 0; (graph != NULL) && (i < REPLAYS); i++) {
        ms_launch(graph, s->stream);
    }
    ms_copy(s->stream, s->host_out, s->out, ROOM);
    for (int i = 0; i < 2; i++) {
        a.op = (i % 2 == 0) ? MPI_MAX : MPI_MIN;
        call(0, &a, NULL, s->model_out, MPI_COMM_WORLD, 0);
        call(1, &a, NULL, s->model_out, MPI_COMM_WORLD, 0);
    }
    ms_sync(s->stream);
    memcpy(s->host_in, s->model_in, ROOM);
    compare(s, 0, &a, "in a chain");
    if (graph != NULL) {
        ms_graph_free(graph);
    }
}

static void graphs(void)
{
    static const int counts[] = {2, 1111};
    struct fixture   s = fixture_make(MPI_COMM_WORLD);

    all_calls(&s, MPI_INT, MPI_SUM, counts, 2, replay);
    chain(&s);
    fixture_free(&s);
}

/* ---- several streams and communicators ---- */

/* Each stream has its communicator; the ranks use them in different orders, and nobody waits. */
static void streams(void)
{
    enum { MANY = 3, ROUNDS = 20 };
    struct fixture fixtures[MANY];
    struct shape   a = {500, 0, MPI_FLOAT, MPI_SUM, 0};

    for (int i = 0; i < MANY; i++) {
        fixtures[i] = fixture_make(MPI_COMM_WORLD);
        fill(&fixtures[i], 50 + (unsigned)i);
        before(&fixtures[i]);
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < MANY; i++) {
            /* A vendor's library connects in the first round, which waits for the other ranks. */
            struct fixture *s = &fixtures[(i + ((round > 0) ? mt_rank() : 0)) % MANY];
            call(0, &a, s->in, s->out, s->comm, 1);
            mt_expect_path(wanted_path, "one of several");
        }
    }
    for (int i = 0; i < MANY; i++) {
        after(&fixtures[i]);
        call(0, &a, fixtures[i].model_in, fixtures[i].model_out, MPI_COMM_WORLD, 0);
        ms_sync(fixtures[i].stream);
        compare(&fixtures[i], 0, &a, "on one of several streams");
        fixture_free(&fixtures[i]);
    }
}

/* Longer than a slot of the kernels' own workspace: of every size, and into each other's. */
static void longer(void)
{
    enum { MOST = 1 << 20 };
    struct fixture s = fixture_make(MPI_COMM_WORLD);
    int           *in = mt_alloc(MT_DEVICE, sizeof(int) * MOST), wrong = 0;
    int *out = mt_alloc(MT_DEVICE, sizeof(int) * MOST), *host = malloc(sizeof(int) * MOST);

    for (int count = 100000; count <= MOST; count += 237144) {
        for (int i = 0; i < count; i++) {
            host[i] = s.rank + i;
        }
        mt_put(in, MT_DEVICE, host, sizeof(int) * (size_t)count);
        MPIX_Allreduce_enqueue(in, out, count, MPI_INT, MPI_SUM, s.comm);
        MPIX_Bcast_enqueue(out, count, MPI_INT, 0, s.comm);
        ms_sync(s.stream);
        mt_get(host, out, MT_DEVICE, sizeof(int) * (size_t)count);
        for (int i = 0; i < count; i++) {
            wrong += host[i] != s.size * (s.size - 1) / 2 + s.size * i;
        }
        mt_expect(wrong == 0, "%d integers: %d are wrong", count, wrong);
    }
    free(host);
    fixture_free(&s);
}

/* Two integers of three. */
static MPI_Datatype with_holes(void)
{
    MPI_Datatype type;

    MPI_Type_vector(2, 1, 2, MPI_INT, &type);
    MPI_Type_commit(&type);
    return type;
}

/* One that nobody takes apart: two blocks of an array that is distributed over two processes. */
static MPI_Datatype distributed(void)
{
    int          sizes[1] = {8}, how[1] = {MPI_DISTRIBUTE_CYCLIC}, blocks[1] = {1}, grid[1] = {2};
    MPI_Datatype type;

    MPI_Type_create_darray(2, 0, 1, sizes, how, blocks, grid, MPI_ORDER_C, MPI_INT, &type);
    MPI_Type_commit(&type);
    return type;
}

/*
 * A type in managed memory, where others have device memory; and one that cannot be packed on the
 * stream, on one rank alone: that is an error there, and nobody else waits for it.
 */
static void types(void)
{
    enum { COUNT = 30 };
    struct fixture s = fixture_make(MPI_COMM_WORLD);
    bool           last = (s.rank == s.size - 1);
    int         *memory = mt_alloc(last ? MT_MANAGED : MT_DEVICE, ROOM), host[3 * COUNT], wrong = 0;
    MPI_Datatype type = with_holes(), other = distributed();

    for (int i = 0; i < 3 * COUNT; i++) {
        host[i] = (s.rank == 0) ? i : -1;
    }
    mt_put(memory, last ? MT_MANAGED : MT_DEVICE, host, sizeof(host));
    MPIX_Bcast_enqueue(memory, COUNT, type, 0, s.comm);
    ms_sync(s.stream);
    mt_get(host, memory, last ? MT_MANAGED : MT_DEVICE, sizeof(host));
    for (int i = 0; i < 3 * COUNT; i++) {
        wrong += host[i] != (((i % 3 == 1) && (s.rank != 0)) ? -1 : i);
    }
    mt_expect(wrong == 0, "a type with holes: %d integers are wrong", wrong);
    MPI_Comm_set_errhandler(s.comm, MPI_ERRORS_RETURN);
    int code = MPIX_Bcast_enqueue(s.in, last ? 10 : 20, last ? other : type, 0, s.comm);
    ms_sync(s.stream);
    mt_expect((code != MPI_SUCCESS) == last, "rank %d of %d: code %d for a type", s.rank, s.size,
              code);
    MPI_Type_free(&type);
    MPI_Type_free(&other);
    fixture_free(&s);
}

/*
 * Numbers begin anew after 20 (XCCL_SIM_NUMBERS): a long vector leaves words behind that the next
 * one of the same number must not take for its own, while a rank is late.
 */
static void numbers(void)
{
    struct fixture s = fixture_make(MPI_COMM_WORLD);

    for (unsigned i = 0; i < 150; i++) {
        struct shape a = {(i % 20 == 3) ? 4000 : 1 + (int)(i % 5), 0, MPI_FLOAT, MPI_SUM, 0};
        fill(&s, i);
        if ((i / 20) % (unsigned)s.size == (unsigned)s.rank) {
            ms_delay(s.stream);
        }
        ms_copy(s.stream, s.in, s.host_in, ROOM);
        ms_copy(s.stream, s.out, s.host_out, ROOM);
        call(0, &a, s.in, s.out, s.comm, 1);
        mt_expect_path(wanted_path, "numbers");
        after(&s);
        call(0, &a, s.model_in, s.model_out, MPI_COMM_WORLD, 0);
        ms_sync(s.stream);
        compare(&s, 0, &a, "by number");
    }
    fixture_free(&s);
}

/* Communicators freed with work under way, and work that is left to MPI_Finalize. */
static void leave(void)
{
    struct fixture s = fixture_make(MPI_COMM_WORLD), last = fixture_make(MPI_COMM_WORLD);
    struct shape   a = {100, 0, MPI_FLOAT, MPI_SUM, 0};

    for (int i = 0; i < 20; i++) {
        fill(&s, (unsigned)i);
        before(&s);
        call(0, &a, s.in, s.out, s.comm, 1);
        mt_expect_path(wanted_path, "one of many communicators");
        after(&s);
        MPI_Comm_free(&s.comm);
        call(0, &a, s.model_in, s.model_out, MPI_COMM_WORLD, 0);
        compare(&s, 0, &a, "before the communicator is freed");
        MPIX_Stream_comm_create(MPI_COMM_WORLD, s.object, &s.comm);
    }
    fixture_free(&s);
    fill(&last, 3);
    before(&last);
    call(0, &a, last.in, last.out, last.comm, 1);
}

/* ---- an operation of the program's that is freed before MPI comes to it, and its type ---- */

static MPI_Datatype known;   /* the type of the enqueued calls */
static int          strange; /* calls with another one */

static void add(void *in, void *inout, int *count, MPI_Datatype *type)
{
    const int *from = in;
    int       *to = inout;

    __atomic_add_fetch(&strange, *type != known, __ATOMIC_RELAXED);
    for (int i = 0; i < *count; i++) {
        to[i] += from[i];
    }
}

static void spoil(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)in;
    (void)type;
    memset(inout, 0, sizeof(int) * (size_t)*count);
}

typedef int allreduce_init(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Info,
                           MPI_Request *);

/* Another one may get its handle. In odd rounds a persistent request needs it for a while, too. */
static void freed_op(void)
{
    enum { COUNT = 100, ROUNDS = 6 };
    struct fixture  s = fixture_make(MPI_COMM_WORLD);
    allreduce_init *init = (allreduce_init *)dlsym(RTLD_DEFAULT, "MPI_Allreduce_init");
    MPI_Request     request = MPI_REQUEST_NULL;

    for (int round = 0; round < ROUNDS; round++) {
        MPI_Op       own, other;
        MPI_Datatype integer;
        bool         held;
        int         *values = (int *)(void *)s.host_in, sum;
        for (int i = 0; i < COUNT; i++) {
            values[i] = s.rank + round;
        }
        MPI_Op_create(add, 1, &own);
        if (round % 2 == 1) {
            init(s.in, s.out, COUNT, MPI_INT, own, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
        }
        ms_hold(s.stream, &held);
        ms_copy(s.stream, s.in, s.host_in, sizeof(int) * COUNT);
        MPI_Type_contiguous(1, MPI_INT, &integer);
        MPI_Type_commit(&integer);
        known = integer;
        MPIX_Allreduce_enqueue(s.in, s.out, COUNT, integer, own, s.comm);
        MPI_Type_free(&integer);
        MPI_Op_free(&own);
        mt_expect(own == MPI_OP_NULL, "MPI_Op_free");
        if (request != MPI_REQUEST_NULL) {
            MPI_Request_free(&request);
        }
        MPI_Op_create(spoil, 1, &other);
        ms_copy(s.stream, s.host_out, s.out, sizeof(int) * COUNT);
        ms_let_go(&held);
        ms_sync(s.stream);
        MPI_Op_free(&other);
        memcpy(&sum, s.host_out + sizeof(int) * (COUNT - 1), sizeof(sum));
        mt_expect(sum == s.size * (s.size - 1) / 2 + s.size * round, "the sum is %d", sum);
    }
    mt_expect(strange == 0, "%d calls of the operation have another type", strange);
    fixture_free(&s);
}

/* An enqueued call on the device's stream; its text if it fails. */
static int enqueue_one(struct fixture *s, char text[MPI_MAX_ERROR_STRING])
{
    int length = 0;
    int code = MPIX_Allreduce_enqueue(s->in, s->out, 1, MPI_INT, MPI_SUM, s->comm);

    if (code != MPI_SUCCESS) {
        MPI_Error_string(code, text, &length);
    }
    text[length] = '\0';
    return code;
}

/* The device is reset: the stream is gone, and its communicator says so. Others are made anew. */
static void reset(void)
{
    char text[MPI_MAX_ERROR_STRING];

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int round = 0; round < 2; round++) {
        struct fixture s = fixture_make(MPI_COMM_WORLD);

        MPI_Comm_set_errhandler(s.comm, MPI_ERRORS_RETURN);
        mt_expect(enqueue_one(&s, text) == MPI_SUCCESS, "before the reset: %s", text);
        ms_sync(s.stream);
        MPI_Barrier(MPI_COMM_WORLD);
        mt_memory_reset(true);
        mt_expect((enqueue_one(&s, text) != MPI_SUCCESS) && (strstr(text, "reset") != NULL),
                  "after the reset: %s", text);
        mt_expect(MPI_Comm_free(&s.comm) == MPI_SUCCESS, "freeing the communicator");
        mt_expect(MPIX_Stream_free(&s.object) == MPI_SUCCESS, "freeing the stream");
        free(s.model_in);
        free(s.model_out);
    }
}

/*
 * What lay where rank 1 has its large buffer now is to be unmapped by rank 0, which waits for the
 * device; and there a kernel waits for a call that rank 1 makes behind the large one.
 */
static void mapped_anew(void)
{
    enum { MANY = 1 << 18, ROUNDS = 3, LARGE = 3, FEW = 16 };
    struct fixture s = fixture_make(MPI_COMM_WORLD);
    struct mt_pair pair = mt_pair_make(MT_DEVICE, MANY);
    int            sums[FEW];

    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < LARGE; i++) {
            mt_pair_allreduce(&pair, MANY, MPI_COMM_WORLD, i);
            mt_expect_path("direct", "a large call");
        }
        if (s.rank == 1) {
            mt_pair_free(&pair);
            pair = mt_pair_make(MT_DEVICE, MANY);
        }
        for (int i = 0; i < FEW; i++) {
            sums[i] = round + i;
        }
        mt_put(s.in, MT_DEVICE, sums, sizeof(sums));
        MPI_Barrier(MPI_COMM_WORLD);
        if (s.rank == 0) {
            MPIX_Allreduce_enqueue(s.in, s.out, FEW, MPI_INT, MPI_SUM, s.comm);
        }
        mt_pair_allreduce(&pair, MANY, MPI_COMM_WORLD, 10 + round);
        if (s.rank != 0) {
            MPIX_Allreduce_enqueue(s.in, s.out, FEW, MPI_INT, MPI_SUM, s.comm);
        }
        ms_sync(s.stream);
        mt_get(sums, s.out, MT_DEVICE, sizeof(sums));
        mt_expect(sums[FEW - 1] == s.size * (round + FEW - 1), "an enqueued sum");
    }
    mt_pair_free(&pair);
    fixture_free(&s);
}

enum { MANY_TO_CREATE = 5 };

static void soon(int ms)
{
    struct timespec nap = {ms / 1000, (long)(ms % 1000) * 1000000};

    nanosleep(&nap, NULL);
}

/* Communicators with one of the vendor's library each. */
static void make_two(struct mt_pair *pair, int many, MPI_Comm *first, MPI_Comm *second)
{
    MPI_Comm_dup(MPI_COMM_WORLD, first);
    MPI_Comm_dup(MPI_COMM_WORLD, second);
    for (int i = 0; i < MANY_TO_CREATE; i++) {
        mt_pair_allreduce(pair, many, *first, i);
        mt_expect_path("ccl", "on a communicator that goes");
        mt_pair_allreduce(pair, many, *second, i);
    }
}

/* An enqueued sum that rank 1 makes behind another call, of both ranks; rank 0 frees a communicator
 * meanwhile if there is one. */
static void sum_beside(struct fixture *s, struct mt_pair *pair, int many, MPI_Comm other,
                       MPI_Comm *freed)
{
    enum { FEW = 16 };
    int sums[FEW];

    for (int i = 0; i < FEW; i++) {
        sums[i] = i;
    }
    mt_put(s->in, MT_DEVICE, sums, sizeof(sums));
    MPIX_Allreduce_enqueue(s->in, s->out, FEW, MPI_INT, MPI_SUM, s->comm); /* which connects */
    ms_sync(s->stream);
    MPI_Barrier(MPI_COMM_WORLD);
    if (s->rank == 0) {
        MPIX_Allreduce_enqueue(s->in, s->out, FEW, MPI_INT, MPI_SUM, s->comm);
    }
    if (freed != NULL) {
        MPI_Comm_free(freed);
    }
    soon((freed != NULL) ? 300 : 1200);
    mt_pair_allreduce(pair, many, other, MANY_TO_CREATE);
    if (s->rank != 0) {
        MPIX_Allreduce_enqueue(s->in, s->out, FEW, MPI_INT, MPI_SUM, s->comm);
    }
    ms_sync(s->stream);
    mt_get(sums, s->out, MT_DEVICE, sizeof(sums));
    mt_expect(sums[FEW - 1] == s->size * (FEW - 1), "an enqueued sum");
}

/*
 * A communicator of the vendor's library is destroyed, which waits for the device, while a kernel
 * there waits for a call that rank 1 makes behind another one, of both ranks.
 */
static void destroyed(void)
{
    enum { MANY = 1 << 12 };
    struct fixture s = fixture_make(MPI_COMM_WORLD);
    struct mt_pair pair = mt_pair_make(MT_DEVICE, MANY);
    MPI_Comm       first, second;

    make_two(&pair, MANY, &first, &second);
    sum_beside(&s, &pair, MANY, second, &first);
    MPI_Comm_free(&second);
    mt_pair_free(&pair);
    fixture_free(&s);
}

/* The same where the destruction has begun before there is a stream. */
static void destroyed_before(void)
{
    enum { MANY = 1 << 12 };
    struct mt_pair pair = mt_pair_make(MT_DEVICE, MANY);
    MPI_Comm       first, second;

    make_two(&pair, MANY, &first, &second);
    MPI_Comm_free(&first);
    struct fixture s = fixture_make(MPI_COMM_WORLD);
    sum_beside(&s, &pair, MANY, second, NULL);
    MPI_Comm_free(&second);
    mt_pair_free(&pair);
    fixture_free(&s);
}

int main(int argc, char **argv)
{
    static const struct mt_named_case cases[] = {{"collectives", collectives},
                                                 {"mapped_anew", mapped_anew},
                                                 {"graphs", graphs},
                                                 {"alone", collectives},
                                                 {"alone_graphs", graphs},
                                                 {"streams", streams},
                                                 {"longer", longer},
                                                 {"types", types},
                                                 {"numbers", numbers},
                                                 {"leave", leave},
                                                 {"destroyed", destroyed},
                                                 {"destroyed_before", destroyed_before},
                                                 {"freed_op", freed_op},
                                                 {"reset", reset},
                                                 {NULL, NULL}};

    /* Of one rank nothing needs another thread. */
    bool alone = (argc > 2) && (strncmp(argv[2], "alone", 5) == 0);
    mt_begin_at(alone ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE, &argc, &argv, true);
    ms_open();
    wanted_path = (argc > 3) ? argv[3] : NULL;
    return mt_run_to_end(cases, argc, argv);
}
