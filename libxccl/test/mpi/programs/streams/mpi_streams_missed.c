/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Enqueued collectives, staged, in which one rank's data has no part: that rank has an error, the
 * others are told by their next call, nobody waits for ever, and all later calls are right.
 *
 *   mpi_streams_missed RUNTIME gather|left|graph
 * With XCCL_STAGING=1 the root gets no pinned memory for what it gathers. left: the communicator is
 * freed, and the last call left to MPI_Finalize.
 *
 *   mpi_streams_missed RUNTIME copy_in|copy_out
 * Copy 3 or 4 of rank 1 fails: the second call's copy to pinned memory, or the one back.
 *
 *   mpi_streams_missed RUNTIME absolute
 * Rank 1 has absolute addresses in its datatypes, also of two kinds of memory in a reduction.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <xccl/mpix.h>

#include "streams_device.h"
#include "streams_object.h"
#include "support.h"

enum { FEW = 100, MANY = 75000, SALT = 7, LAUNCHES = 3 };

struct fixture {
    struct ms_stream_comm on;
    int                  *in, *out; /* device */
};

static struct fixture fixture_make(void)
{
    struct fixture s = {.on = ms_stream_comm_make()};

    MPI_Comm_set_errhandler(s.on.comm, MPI_ERRORS_RETURN);
    s.in = mt_ints_make(MT_DEVICE, MANY, MANY, SALT);
    s.out = mt_ints_make(MT_DEVICE, mt_size() * MANY, 0, SALT);
    return s;
}

static void fixture_free(struct fixture *s)
{
    ms_stream_comm_free(&s->on);
    mt_free(MT_DEVICE, s->in);
    mt_free(MT_DEVICE, s->out);
}

/* A call on the stream. */
static int broadcast(const struct fixture *s, int root)
{
    return MPIX_Bcast_enqueue((mt_rank() == root) ? s->in : s->out, FEW, MPI_INT, root, s->on.comm);
}

static void expect_broadcast(const struct fixture *s, int root, const char *what)
{
    ms_sync(s->on.stream);
    mt_ints_expect((mt_rank() == root) ? s->in : s->out, MT_DEVICE, FEW, FEW, root, SALT, what);
}

/* Others than the rank that failed hear its name. */
static void expect_told(int code, bool told, int failed, const char *what)
{
    char text[MPI_MAX_ERROR_STRING] = "", wanted[64];
    int  length;

    mt_expect((code != MPI_SUCCESS) == told, "%s: code %d", what, code);
    if (told && (code != MPI_SUCCESS) && (failed >= 0) && (failed != mt_rank())) {
        MPI_Error_string(code, text, &length);
        snprintf(wanted, sizeof(wanted), "rank %d could not copy", failed);
        mt_expect(strstr(text, wanted) != NULL, "%s: \"%s\"", what, text);
    }
}

/* All that was enqueued is over. The next call tells those who have not heard; and is served. */
static void meet(const struct fixture *s, bool told, int failed, const char *what)
{
    ms_sync(s->on.stream);
    expect_told(broadcast(s, 0), told, failed, what);
    expect_broadcast(s, 0, what);
    expect_told(broadcast(s, mt_size() - 1), false, -1, what);
    expect_broadcast(s, mt_size() - 1, what);
}

static int gather(const struct fixture *s, int count)
{
    return MPIX_Gather_enqueue(s->in, count, MPI_INT, s->out, count, MPI_INT, 0, s->on.comm);
}

static void case_gather(void)
{
    struct fixture s = fixture_make();
    bool           held, root = (mt_rank() == 0);

    if (!root) { /* which waits for earlier calls, as there may be memory then */
        ms_hold(s.on.stream, &held);
    }
    mt_expect(broadcast(&s, 1) == MPI_SUCCESS, "the call before");
    expect_told(gather(&s, MANY), root, -1, "the call that fails");
    mt_expect(broadcast(&s, 1) == MPI_SUCCESS, "the call behind");
    ms_let_go(&held);
    expect_broadcast(&s, 1, "the call behind");
    meet(&s, !root, 0, "after a gather");
    /* Twice in a row, with others under way. */
    for (int i = 0; i < 2; i++) {
        int code = gather(&s, MANY);
        mt_expect(!root || (code != MPI_SUCCESS), "gather %d", i);
    }
    ms_sync(s.on.stream);
    broadcast(&s, 1);
    meet(&s, false, 0, "after two gathers");
    mt_expect(gather(&s, FEW) == MPI_SUCCESS, "one that fits");
    ms_sync(s.on.stream);
    for (int i = 0; root && (i < mt_size()); i++) {
        mt_ints_expect(s.out + i * FEW, MT_DEVICE, FEW, FEW, i, SALT, "one that fits");
    }
    fixture_free(&s);
}

static void case_left(void)
{
    struct fixture s = fixture_make();
    bool           root = (mt_rank() == 0);

    for (int i = 0; i < 3; i++) {
        int code = gather(&s, MANY);
        mt_expect(!root || (code != MPI_SUCCESS), "gather %d", i);
        MPI_Comm_free(&s.on.comm);
        MPIX_Stream_comm_create(MPI_COMM_WORLD, s.on.object, &s.on.comm);
        MPI_Comm_set_errhandler(s.on.comm, MPI_ERRORS_RETURN);
    }
    expect_told(gather(&s, MANY), root, -1, "the last call");
}

/* Each launch fails anew, so that each is told to all. */
static void case_graph(void)
{
    struct fixture s = fixture_make();
    bool           root = (mt_rank() == 0);

    ms_capture_begin(s.on.stream, 0);
    mt_expect(broadcast(&s, 1) == MPI_SUCCESS, "a captured call");
    expect_told(gather(&s, MANY), root, -1, "a captured call that fails");
    mt_expect(broadcast(&s, 1) == MPI_SUCCESS, "a captured call behind it");
    void *graph = ms_capture_end(s.on.stream);
    mt_expect(graph != NULL, "a graph");
    for (int i = 0; (graph != NULL) && (i < LAUNCHES); i++) {
        ms_launch(graph, s.on.stream);
        expect_broadcast(&s, 1, "in the graph");
        meet(&s, true, 0, "after a launch");
    }
    for (int i = 0; (graph != NULL) && (i < LAUNCHES); i++) {
        ms_launch(graph, s.on.stream);
    }
    meet(&s, true, 0, "after several launches");
    if (graph != NULL) {
        ms_graph_free(graph);
    }
    fixture_free(&s);
}

/* in: the copy to pinned memory fails, so that all results are wrong; else one rank's alone is. */
static void reduce_thrice(bool in)
{
    struct fixture s = fixture_make();
    bool           failing = (mt_rank() == 1);
    int            sums[FEW];

    for (int i = 0; i < 3; i++) {
        bool fails = (i == 1);
        int  code = MPIX_Allreduce_enqueue(s.in, s.out, FEW, MPI_INT, MPI_SUM, s.on.comm);
        expect_told(code, failing && fails, -1, "an allreduce");
        ms_sync(s.on.stream);
        mt_get(sums, s.out, MT_DEVICE, sizeof(sums));
        for (int j = 0, sum = 0; !fails && (j < FEW); j++, sum = 0) {
            for (int rank = 0; rank < mt_size(); rank++) {
                sum += mt_value(rank, SALT, j);
            }
            mt_expect(sums[j] == sum, "sum %d of call %d", j, i);
        }
        if (fails) {
            expect_told(MPIX_Barrier_enqueue(s.on.comm), in && !failing, 1, "the barrier");
            ms_sync(s.on.stream);
        }
    }
    fixture_free(&s);
}

static void case_copy_in(void)
{
    reduce_thrice(true);
}

static void case_copy_out(void)
{
    reduce_thrice(false);
}

/* ---- absolute addresses ---- */

static void add(void *in, void *inout, int *count, MPI_Datatype *type)
{
    int *from = in, *to = inout;

    (void)type;
    for (int i = 0; i < 2 * *count; i++) {
        to[i] += from[i];
    }
}

/* Two integers: one after the other, or on rank 1 at absolute places. */
static MPI_Datatype two_integers(int *first, int *second)
{
    int          lengths[] = {1, 1};
    MPI_Aint     places[] = {0, sizeof(int)};
    MPI_Datatype types[] = {MPI_INT, MPI_INT}, both;

    if (mt_rank() == 1) {
        MPI_Get_address(first, &places[0]);
        MPI_Get_address(second, &places[1]);
    }
    MPI_Type_create_struct(2, lengths, places, types, &both);
    MPI_Type_commit(&both);
    return both;
}

static void case_absolute(void)
{
    struct fixture s = fixture_make();
    bool           failing = (mt_rank() == 1);
    void          *buffer = failing ? MPI_BOTTOM : s.out;
    int           *on_host = mmap((void *)((uintptr_t)s.out - ((size_t)1 << 40)), sizeof(int),
                                  PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MPI_Op         sum;
    MPI_Datatype   near = two_integers(s.out, s.out + 10), far = two_integers(s.out, on_host);

    MPI_Op_create(add, 1, &sum);
    for (int i = 0; i < 2; i++) {
        MPI_Datatype type = (i == 0) ? near : far;
        expect_told(MPIX_Bcast_enqueue(buffer, 1, type, 1, s.on.comm), failing, -1, "a broadcast");
        meet(&s, !failing, 1, "after a broadcast");
        expect_told(MPIX_Allreduce_enqueue(MPI_IN_PLACE, buffer, 1, type, sum, s.on.comm), failing,
                    -1, "a reduction");
        meet(&s, !failing, 1, "after a reduction");
    }
    MPI_Op_free(&sum);
    MPI_Type_free(&near);
    MPI_Type_free(&far);
    fixture_free(&s);
}

int main(int argc, char **argv)
{
    static const struct mt_named_case cases[] = {{"gather", case_gather},
                                                 {"left", case_left},
                                                 {"graph", case_graph},
                                                 {"copy_in", case_copy_in},
                                                 {"copy_out", case_copy_out},
                                                 {"absolute", case_absolute},
                                                 {NULL, NULL}};

    mt_begin(&argc, &argv, true);
    ms_open();
    return mt_run_to_end(cases, argc, argv);
}
