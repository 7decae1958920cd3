/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stream-ordered messages, eagerly and in graphs; and what is refused.
 *
 *   mpi_streams_messages RUNTIME CASE
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xccl/mpix.h>

#include "streams_device.h"
#include "streams_object.h"
#include "support.h"

enum { COUNT = 5000, ROOM = 6000, ROUNDS = 4 };

struct fixture {
    struct ms_stream_comm on;
    int                  *in, *out;  /* device */
    int                  *from, *to; /* pinned */
};

static int left(void)
{
    return (mt_rank() + mt_size() - 1) % mt_size();
}

static int right(void)
{
    return (mt_rank() + 1) % mt_size();
}

static struct fixture fixture_make(void)
{
    struct fixture s = {.on = ms_stream_comm_make()};

    s.in = mt_alloc(MT_DEVICE, ROOM * sizeof(int));
    s.out = mt_alloc(MT_DEVICE, ROOM * sizeof(int));
    s.from = ms_pinned(ROOM * sizeof(int));
    s.to = ms_pinned(ROOM * sizeof(int));
    return s;
}

static void fixture_free(struct fixture *s)
{
    ms_stream_comm_free(&s->on);
    mt_free(MT_DEVICE, s->in);
    mt_free(MT_DEVICE, s->out);
    ms_pinned_free(s->from);
    ms_pinned_free(s->to);
}

/* This rank's values, and the rest untouched; on both sides. */
static void fill(struct fixture *s, int salt)
{
    for (int i = 0; i < ROOM; i++) {
        s->from[i] = mt_value(mt_rank(), salt, i);
        s->to[i] = MT_UNTOUCHED;
    }
}

static void before(struct fixture *s)
{
    ms_delay(s->on.stream);
    ms_copy(s->on.stream, s->in, s->from, ROOM * sizeof(int));
    ms_copy(s->on.stream, s->out, s->to, ROOM * sizeof(int));
}

static void after(struct fixture *s)
{
    ms_copy(s->on.stream, s->to, s->out, ROOM * sizeof(int));
}

static void expect(const struct fixture *s, int first, int count, int from, int salt,
                   const char *what)
{
    int wrong = 0;

    for (int i = 0; i < ROOM; i++) {
        bool there = (i >= first) && (i < first + count);
        wrong += (s->to[i] != (there ? mt_value(from, salt, i - first) : MT_UNTOUCHED));
    }
    mt_expect(wrong == 0, "%s: %d elements are wrong", what, wrong);
}

/* Even ranks send first: a stream has one call after the other. */
static void ring(struct fixture *s, MPI_Status *status)
{
    for (int turn = 0; turn < 2; turn++) {
        if (turn == mt_rank() % 2) {
            mt_expect(MPIX_Send_enqueue(s->in, COUNT, MPI_INT, right(), 3, s->on.comm) ==
                          MPI_SUCCESS,
                      "send");
        } else {
            mt_expect(MPIX_Recv_enqueue(s->out, COUNT, MPI_INT, left(), 3, s->on.comm, status) ==
                          MPI_SUCCESS,
                      "receive");
        }
    }
}

static void all_at_once(struct fixture *s, MPI_Status statuses[2])
{
    MPI_Request requests[2];

    mt_expect(MPIX_Irecv_enqueue(s->out, COUNT, MPI_INT, left(), 4, s->on.comm, &requests[0]) ==
                  MPI_SUCCESS,
              "receive");
    mt_expect(MPIX_Isend_enqueue(s->in, COUNT, MPI_INT, right(), 4, s->on.comm, &requests[1]) ==
                  MPI_SUCCESS,
              "send");
    mt_expect(MPIX_Waitall_enqueue(2, requests, statuses) == MPI_SUCCESS, "wait");
    mt_expect((requests[0] == MPI_REQUEST_NULL) && (requests[1] == MPI_REQUEST_NULL), "requests");
}

/* ---- cases ---- */

static void order(void)
{
    struct fixture s = fixture_make();
    MPI_Status     statuses[2], status;

    for (int i = 0; i < ROUNDS; i++) {
        fill(&s, i);
        before(&s);
        ring(&s, &status);
        after(&s);
        ms_sync(s.on.stream);
        expect(&s, 0, COUNT, left(), i, "a ring");
        mt_expect_status(&status, left(), 3, COUNT, "a ring");
        fill(&s, 100 + i);
        before(&s);
        all_at_once(&s, (i % 2 == 0) ? statuses : MPI_STATUSES_IGNORE);
        after(&s);
        ms_sync(s.on.stream);
        expect(&s, 0, COUNT, left(), 100 + i, "all at once");
        mt_expect_status(&statuses[0], left(), 4, COUNT, "all at once");
    }
    fixture_free(&s);
}

static void graphs(void)
{
    struct fixture s = fixture_make();
    MPI_Status     statuses[2], status;

    for (int mode = 0; mode < 3; mode++) {
        ms_capture_begin(s.on.stream, mode);
        before(&s);
        ring(&s, &status);
        after(&s);
        void *one = ms_capture_end(s.on.stream);
        ms_capture_begin(s.on.stream, mode);
        before(&s);
        all_at_once(&s, statuses);
        after(&s);
        void *other = ms_capture_end(s.on.stream);
        mt_expect((one != NULL) && (other != NULL), "graphs of mode %d", mode);
        for (int i = 0; (one != NULL) && (other != NULL) && (i < ROUNDS); i++) {
            memset(&status, 0, sizeof(status));
            fill(&s, 10 * mode + i);
            ms_launch(one, s.on.stream);
            ms_sync(s.on.stream);
            expect(&s, 0, COUNT, left(), 10 * mode + i, "a ring in a graph");
            mt_expect_status(&status, left(), 3, COUNT, "a ring in a graph");
            fill(&s, 10 * mode + i + 5);
            ms_launch(other, s.on.stream);
            ms_sync(s.on.stream);
            expect(&s, 0, COUNT, left(), 10 * mode + i + 5, "all at once in a graph");
            mt_expect_status(&statuses[0], left(), 4, COUNT, "all at once in a graph");
        }
        if ((one != NULL) && (other != NULL)) {
            ms_graph_free(one);
            ms_graph_free(other);
        }
    }
    fixture_free(&s);
}

/* Rank 0 receives from everybody, in whatever order they come, shorter than there is room. */
static void wildcards(void)
{
    struct fixture s = fixture_make();
    MPI_Status     status;

    for (int i = 0; i < ROUNDS; i++) {
        fill(&s, i);
        before(&s);
        if (mt_rank() != 0) {
            MPIX_Send_enqueue(s.in, 100 * mt_rank(), MPI_INT, 0, 50 + mt_rank(), s.on.comm);
        }
        for (int n = 1; (mt_rank() == 0) && (n < mt_size()); n++) {
            MPIX_Recv_enqueue(s.out, COUNT, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, s.on.comm,
                              &status);
            after(&s);
            ms_sync(s.on.stream);
            int from = status.MPI_SOURCE;
            mt_expect_status(&status, from, 50 + from, 100 * from, "a wildcard");
            expect(&s, 0, 100 * from, from, i, "a wildcard");
            fill(&s, i);
            before(&s);
        }
        ms_sync(s.on.stream);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    fixture_free(&s);
}

/* How often an attribute was copied. The program duplicates no type, so nobody may do that. */
static int copied;

static int copy_attribute(MPI_Datatype type, int key, void *extra, void *in, void *out, int *flag)
{
    (void)type, (void)key, (void)extra, (void)in, (void)out;
    copied++;
    *flag = 0;
    return MPI_ERR_OTHER;
}

/* A type with holes, which the program frees before anything has begun, as MPI allows it. */
static void columns(struct fixture *s)
{
    enum { COLUMN = 300 };
    MPI_Datatype column;
    MPI_Request  requests[2];
    int          wrong = 0, key;

    MPI_Type_create_keyval(copy_attribute, MPI_TYPE_NULL_DELETE_FN, &key, NULL);
    MPI_Type_vector(COLUMN, 1, 10, MPI_INT, &column);
    MPI_Type_commit(&column);
    MPI_Type_set_attr(column, key, s);
    fill(s, 1);
    before(s);
    MPIX_Irecv_enqueue(s->out, 1, column, left(), 1, s->on.comm, &requests[0]);
    MPIX_Isend_enqueue(s->in, 1, column, right(), 1, s->on.comm, &requests[1]);
    MPI_Type_free(&column);
    MPI_Type_free_keyval(&key);
    MPIX_Wait_enqueue(&requests[0], MPI_STATUS_IGNORE);
    MPIX_Wait_enqueue(&requests[1], MPI_STATUS_IGNORE);
    after(s);
    ms_sync(s->on.stream);
    for (int i = 0; i < ROOM; i++) {
        bool there = (i % 10 == 0) && (i / 10 < COLUMN);
        wrong += (s->to[i] != (there ? mt_value(left(), 1, i) : MT_UNTOUCHED));
    }
    mt_expect(wrong == 0, "a column: %d elements are wrong", wrong);
    mt_expect(copied == 0, "an attribute of a type was copied %d times", copied);
}

/* Enqueued on one side, ordinary on the other, from and to device memory: short and long. */
static void ordinary(struct fixture *s)
{
    MPI_Status status;
    int        count = -1;

    /* The ranks know of each other that they fetch. What is enqueued does not. */
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Sendrecv(s->in, COUNT, MPI_INT, right(), 6, s->out, COUNT, MPI_INT, left(), 6,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        usleep(2000);
    }
    for (int n = 10; n <= COUNT; n += COUNT - 10) {
        fill(s, n);
        before(s);
        ms_sync(s->on.stream);
        if (mt_rank() % 2 == 0) {
            MPIX_Send_enqueue(s->in, n, MPI_INT, right(), 2, s->on.comm);
            MPIX_Recv_enqueue(s->out, n, MPI_INT, right(), 2, s->on.comm, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(s->out, n, MPI_INT, left(), 2, s->on.comm, &status);
            MPI_Get_count(&status, MPI_INT, &count);
            mt_expect(count == n, "an ordinary receive has %d of %d", count, n);
            MPI_Send(s->in, n, MPI_INT, left(), 2, s->on.comm);
        }
        after(s);
        ms_sync(s->on.stream);
        expect(s, 0, n, (mt_rank() % 2 == 0) ? right() : left(), n, "ordinary calls");
    }
}

/* Host memory is used as it is; from nobody comes nothing. */
static void on_host(struct fixture *s)
{
    int        *host = malloc(ROOM * sizeof(int));
    MPI_Request requests[2];
    MPI_Status  status;

    fill(s, 3);
    before(s);
    for (int i = 0; i < ROOM; i++) {
        host[i] = MT_UNTOUCHED;
    }
    MPIX_Irecv_enqueue(host, COUNT, MPI_INT, left(), 5, s->on.comm, &requests[0]);
    MPIX_Isend_enqueue(s->from, COUNT, MPI_INT, right(), 5, s->on.comm, &requests[1]);
    MPIX_Waitall_enqueue(2, requests, MPI_STATUSES_IGNORE);
    MPIX_Recv_enqueue(s->out, COUNT, MPI_INT, MPI_PROC_NULL, 5, s->on.comm, &status);
    MPIX_Send_enqueue(s->in, COUNT, MPI_INT, MPI_PROC_NULL, 5, s->on.comm);
    after(s);
    ms_sync(s->on.stream);
    expect(s, 0, 0, 0, 0, "a receive from nobody");
    mt_expect(status.MPI_SOURCE == MPI_PROC_NULL, "the status of a receive from nobody");
    memcpy(s->to, host, ROOM * sizeof(int));
    expect(s, 0, COUNT, left(), 3, "host memory");
    free(host);
}

static void mixed(void)
{
    struct fixture s = fixture_make();

    columns(&s);
    ordinary(&s);
    on_host(&s);
    fixture_free(&s);
}

/* A message that does not fit: its status says so, and the next call on the communicator. */
static void truncation(void)
{
    struct fixture s = fixture_make();
    MPI_Status     status = {.MPI_ERROR = MPI_SUCCESS};
    bool           held;

    MPI_Comm_set_errhandler(s.on.comm, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* that of requests in MPICH */
    fill(&s, 1);
    ms_hold(s.on.stream, &held); /* the first call after the failure is the one that is told */
    before(&s);
    MPI_Request requests[2];
    MPIX_Irecv_enqueue(s.out, 10, MPI_INT, left(), 1, s.on.comm, &requests[0]);
    MPIX_Isend_enqueue(s.in, 20, MPI_INT, right(), 1, s.on.comm, &requests[1]);
    MPIX_Wait_enqueue(&requests[0], &status);
    MPIX_Wait_enqueue(&requests[1], MPI_STATUS_IGNORE);
    ms_let_go(&held);
    ms_sync(s.on.stream);
    mt_expect(mt_class_of(status.MPI_ERROR) == MPI_ERR_TRUNCATE,
              "the status of a truncated message");
    mt_expect(mt_class_of(MPIX_Barrier_enqueue(s.on.comm)) == MPI_ERR_TRUNCATE, "the next call");
    mt_expect(MPIX_Barrier_enqueue(s.on.comm) == MPI_SUCCESS, "the one behind it");
    mt_expect(MPIX_Send_enqueue(s.in, -1, MPI_INT, right(), 1, s.on.comm) != MPI_SUCCESS,
              "a negative count");
    ms_sync(s.on.stream);
    fixture_free(&s);
}

/* Of one rank alone: the call that says so is carried out, as the others wait in it. */
static void truncation_on_one(void)
{
    struct fixture s = fixture_make();
    bool           told = (mt_rank() == 0);

    MPI_Comm_set_errhandler(s.on.comm, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (mt_rank() == 0) {
        MPIX_Recv_enqueue(s.out, 10, MPI_INT, 1, 1, s.on.comm, MPI_STATUS_IGNORE);
    } else if (mt_rank() == 1) {
        MPIX_Send_enqueue(s.in, 20, MPI_INT, 0, 1, s.on.comm);
    }
    ms_sync(s.on.stream);
    int code = MPIX_Barrier_enqueue(s.on.comm);
    mt_expect(mt_class_of(code) == (told ? MPI_ERR_TRUNCATE : MPI_SUCCESS), "the next call: %d",
              code);
    ms_sync(s.on.stream);
    mt_expect(MPIX_Barrier_enqueue(s.on.comm) == MPI_SUCCESS, "the one behind it");
    ms_sync(s.on.stream);
    fixture_free(&s);
}

/* ---- what is refused ---- */

/* Absolute addresses of a device and of the host. */
static void two_memories(const struct fixture *s)
{
    int          on_host = 1, lengths[] = {1, 1};
    MPI_Aint     places[2];
    MPI_Datatype types[] = {MPI_INT, MPI_INT}, both;

    MPI_Get_address(s->in, &places[0]);
    MPI_Get_address(&on_host, &places[1]);
    MPI_Type_create_struct(2, lengths, places, types, &both);
    MPI_Type_commit(&both);
    mt_expect(MPIX_Bcast_enqueue(MPI_BOTTOM, 1, both, 0, s->on.comm) != MPI_SUCCESS,
              "a bcast of two kinds of memory");
    mt_expect(MPIX_Send_enqueue(MPI_BOTTOM, 1, both, right(), 1, s->on.comm) != MPI_SUCCESS,
              "a message of two kinds of memory");
    MPI_Type_free(&both);
}

/* What is waited for in the wrong graph can still be waited for. */
static void other_graph(struct fixture *s)
{
    MPI_Request requests[2];

    fill(s, 3);
    before(s);
    MPIX_Irecv_enqueue(s->out, ROOM, MPI_INT, left(), 5, s->on.comm, &requests[0]);
    MPIX_Isend_enqueue(s->in, COUNT, MPI_INT, right(), 5, s->on.comm, &requests[1]);
    ms_capture_begin(s->on.stream, 0);
    for (int i = 0; i < 2; i++) {
        mt_expect(MPIX_Wait_enqueue(&requests[i], MPI_STATUS_IGNORE) != MPI_SUCCESS, "a graph");
    }
    ms_graph_free(ms_capture_end(s->on.stream));
    for (int i = 0; i < 2; i++) {
        mt_expect(MPIX_Wait_enqueue(&requests[i], MPI_STATUS_IGNORE) == MPI_SUCCESS, "no graph");
    }
    after(s);
    ms_sync(s->on.stream);
    expect(s, 0, COUNT, left(), 3, "after a wait that was refused");
}

/* What is 1 where it is cut to an int. */
static void few(const struct fixture *s)
{
    const MPI_Count count = 2 * (MPI_Count)INT_MIN + 1;
    MPI_Request     request = MPI_REQUEST_NULL;

    mt_expect(MPIX_Send_enqueue_c(s->in, count, MPI_INT, right(), 9, s->on.comm) != MPI_SUCCESS,
              "a send of few");
    mt_expect(MPIX_Irecv_enqueue_c(s->to, count, MPI_INT, left(), 9, s->on.comm, &request) !=
                  MPI_SUCCESS,
              "a receive of few");
    mt_expect(MPIX_Bcast_enqueue_c(s->in, count, MPI_INT, 0, s->on.comm) != MPI_SUCCESS,
              "a broadcast of few");
    mt_expect(MPIX_Waitall_enqueue(1, &request, MPI_STATUSES_IGNORE) == MPI_SUCCESS, "nothing");
#if !defined(MPICH_NUMVERSION) || (MPICH_NUMVERSION < 40200000) || (MPICH_NUMVERSION >= 40300000)
    /* A request of MPI's own, which the function of MPICH 4.2 takes for one of a stream. */
    PMPI_Irecv(s->to, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &request);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    mt_expect(MPIX_Waitall_enqueue(1, &request, MPI_STATUSES_IGNORE) != MPI_SUCCESS, "no stream's");
    PMPI_Wait(&request, MPI_STATUS_IGNORE);
#endif
}

static void refused(void)
{
    MPIX_Stream    bad = MPIX_STREAM_NULL, none = MPIX_STREAM_NULL;
    MPI_Info       info;
    MPI_Comm       lone;
    struct fixture s = fixture_make();

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(s.on.comm, MPI_ERRORS_RETURN);
    MPI_Info_create(&info);
    MPI_Info_set(info, "type", strcmp(mt_runtime(), "cuda") == 0 ? "cudaStream_t" : "hipStream_t");
    mt_expect(MPIX_Stream_create(info, &bad) != MPI_SUCCESS, "no value");
    MPI_Info_set(info, "value", "xyz");
    mt_expect(MPIX_Stream_create(info, &bad) != MPI_SUCCESS, "a wrong value");
    MPI_Info_set(info, "type", strcmp(mt_runtime(), "cuda") == 0 ? "hipStream_t" : "cudaStream_t");
    mt_expect(MPIX_Stream_create(info, &bad) != MPI_SUCCESS, "the other runtime");
    MPI_Info_free(&info);
    mt_expect(MPIX_Barrier_enqueue(MPI_COMM_WORLD) != MPI_SUCCESS, "no stream");
    two_memories(&s);
    few(&s);

    /* Rank 1 attaches none: messages go, collectives are refused on all ranks. */
    MPIX_Stream_comm_create(MPI_COMM_WORLD, (mt_rank() == 1) ? none : s.on.object, &lone);
    MPI_Comm_set_errhandler(lone, MPI_ERRORS_RETURN);
    mt_expect(MPIX_Barrier_enqueue(lone) != MPI_SUCCESS, "a rank without a stream");
    mt_expect((mt_rank() != 1) || (MPIX_Send_enqueue(s.in, 1, MPI_INT, 0, 0, lone) != MPI_SUCCESS),
              "a message without a stream");
    MPI_Comm_free(&lone);

    other_graph(&s);
    /* Not while its stream is captured. */
    ms_capture_begin(s.on.stream, 0);
    lone = s.on.comm;
    mt_expect(MPI_Comm_free(&lone) != MPI_SUCCESS, "freed in a capture");
    ms_graph_free(ms_capture_end(s.on.stream));
    fixture_free(&s);
}

/* Without threads in MPI what needs MPI is refused, the rest goes on. */
static void threads(void)
{
    struct fixture s = fixture_make();

    MPI_Comm_set_errhandler(s.on.comm, MPI_ERRORS_RETURN);
    mt_expect(MPIX_Send_enqueue(s.in, 1, MPI_INT, right(), 1, s.on.comm) != MPI_SUCCESS, "a send");
    for (int i = 0; i < ROUNDS; i++) {
        fill(&s, i);
        before(&s);
        mt_expect(MPIX_Bcast_enqueue(s.in, COUNT, MPI_INT, 0, s.on.comm) == MPI_SUCCESS, "bcast");
        ms_copy(s.on.stream, s.to, s.in, ROOM * sizeof(int));
        ms_sync(s.on.stream);
        int wrong = 0;
        for (int n = 0; n < COUNT; n++) {
            wrong += (s.to[n] != mt_value(0, i, n));
        }
        mt_expect(wrong == 0, "bcast: %d elements are wrong", wrong);
    }
    fixture_free(&s);
}

/* More than the pinned memory that is allowed: earlier calls give theirs back, a graph does not. */
static void staging(void)
{
    enum { LONG = 200000, CALLS = 30 };
    struct fixture s = fixture_make();
    int           *large = mt_alloc(MT_DEVICE, LONG * sizeof(int));
    int           *host = ms_pinned(LONG * sizeof(int));

    for (int i = 0; i < LONG; i++) {
        host[i] = 1;
    }
    ms_capture_begin(s.on.stream, 0);
    mt_expect(MPIX_Bcast_enqueue(large, LONG, MPI_INT, 0, s.on.comm) == MPI_SUCCESS, "in a graph");
    void *graph = ms_capture_end(s.on.stream);
    for (int round = 0; round < 2; round++) {
        ms_delay(s.on.stream);
        ms_copy(s.on.stream, large, host, LONG * sizeof(int));
        for (int i = 0; i < CALLS; i++) {
            mt_expect(MPIX_Bcast_enqueue(large, LONG, MPI_INT, i % mt_size(), s.on.comm) ==
                          MPI_SUCCESS,
                      "round %d, bcast %d", round, i);
        }
        ms_sync(s.on.stream); /* then nothing is under way */
    }
    ms_graph_free(graph);
    mt_free(MT_DEVICE, large);
    ms_pinned_free(host);
    fixture_free(&s);
}

/* A type that xccl cannot take apart, freed at once, and others made in its place. */
static void scattered(void)
{
    enum { ALL = 4000, TIMES = 30, MORE = 8, TAG = 3 };
    const int      sizes[] = {ALL}, ways[] = {MPI_DISTRIBUTE_CYCLIC};
    const int      parts[] = {MPI_DISTRIBUTE_DFLT_DARG}, grid[] = {2};
    struct fixture s = fixture_make();

    for (int k = 0; k < TIMES; k++) {
        MPI_Datatype type, more[MORE];
        int          wrong = 0, size;
        MPI_Type_create_darray(2, 0, 1, sizes, ways, parts, grid, MPI_ORDER_C, MPI_INT, &type);
        MPI_Type_commit(&type);
        for (int i = 0; i < ALL; i++) {
            s.from[i] = (mt_rank() == 0) ? i + k : MT_UNTOUCHED;
        }
        ms_copy(s.on.stream, s.in, s.from, ALL * sizeof(int));
        if (mt_rank() == 0) {
            MPIX_Send_enqueue(s.in, 1, type, 1, TAG, s.on.comm);
        } else {
            MPIX_Recv_enqueue(s.in, 1, type, 0, TAG, s.on.comm, MPI_STATUS_IGNORE);
        }
        MPI_Type_free(&type);
        ms_copy(s.on.stream, s.to, s.in, ALL * sizeof(int));
        ms_sync(s.on.stream);
        for (int i = 0; i < MORE; i++) {
            MPI_Type_contiguous(i + 2, MPI_INT, &more[i]);
            MPI_Type_commit(&more[i]);
        }
        for (int i = 0; i < MORE; i++) {
            MPI_Type_size(more[i], &size);
            wrong += (size != (int)sizeof(int) * (i + 2));
            MPI_Type_free(&more[i]);
        }
        mt_expect(wrong == 0, "round %d: %d types are others", k, wrong);
        for (int i = 0; (i < ALL) && (mt_rank() == 1); i++) {
            wrong += (s.to[i] != ((i % 2 == 0) ? i + k : MT_UNTOUCHED));
        }
        mt_expect(wrong == 0, "round %d: %d integers are wrong", k, wrong);
    }
    fixture_free(&s);
}

/* A message as long as a descriptor of xccl's is probed, and received by the stream. */
static void probed(void)
{
    enum { BYTES = 80, TAG = 5 };
    struct fixture s = fixture_make();

    mt_meet_on_device();
    for (int i = 0; i < ROOM; i++) {
        s.from[i] = (mt_rank() == 0) ? i : MT_UNTOUCHED;
    }
    ms_copy(s.on.stream, s.in, s.from, ROOM * sizeof(int));
    if (mt_rank() == 0) {
        MPIX_Send_enqueue(s.in, BYTES, MPI_BYTE, 1, TAG, s.on.comm);
    } else {
        MPI_Status status;
        int        bytes = -1;
        MPI_Probe(0, TAG, s.on.comm, &status);
        MPI_Get_count(&status, MPI_BYTE, &bytes);
        mt_expect(bytes == BYTES, "probed %d bytes", bytes);
        MPIX_Recv_enqueue(s.in, BYTES, MPI_BYTE, 0, TAG, s.on.comm, MPI_STATUS_IGNORE);
    }
    ms_copy(s.on.stream, s.to, s.in, ROOM * sizeof(int));
    ms_sync(s.on.stream);
    int last = BYTES / (int)sizeof(int) - 1;
    mt_expect((s.to[last] == last) && ((mt_rank() == 0) || (s.to[last + 1] == MT_UNTOUCHED)),
              "received %d, %d", s.to[last], s.to[last + 1]);
    fixture_free(&s);
}

/* XCCL_MEMORY=mixed: device memory on one rank, and host memory on the other. */
static void unlike(void)
{
    struct fixture s = fixture_make();
    bool           device = (mt_rank() == 0);

    for (int i = 0; i < COUNT; i++) {
        s.from[i] = i + mt_rank();
        s.to[i] = MT_UNTOUCHED;
    }
    ms_copy(s.on.stream, s.in, s.from, COUNT * sizeof(int));
    MPIX_Allreduce_enqueue(device ? s.in : s.from, device ? s.out : s.to, COUNT, MPI_INT, MPI_MIN,
                           s.on.comm);
    if (device) {
        ms_copy(s.on.stream, s.to, s.out, COUNT * sizeof(int));
    }
    ms_sync(s.on.stream);
    mt_expect((s.to[0] == 0) && (s.to[COUNT - 1] == COUNT - 1), "%d, %d", s.to[0], s.to[COUNT - 1]);
    fixture_free(&s);
}

/* MPI lets a communicator be freed while requests on it are open. */
static void left_open(void)
{
    enum { TIMES = 5 };
    struct fixture s = fixture_make();
    MPI_Request    requests[2];

    for (int i = 0; i < TIMES; i++) {
        fill(&s, i);
        before(&s);
        MPIX_Irecv_enqueue(s.out, COUNT, MPI_INT, left(), 4, s.on.comm, &requests[0]);
        MPIX_Isend_enqueue(s.in, COUNT, MPI_INT, right(), 4, s.on.comm, &requests[1]);
        mt_expect(MPI_Comm_free(&s.on.comm) == MPI_SUCCESS, "MPI_Comm_free");
        mt_expect(s.on.comm == MPI_COMM_NULL, "the handle is not null");
        if (i % 2 == 0) { /* another one that may come to lie in its place */
            MPIX_Stream_comm_create(MPI_COMM_WORLD, s.on.object, &s.on.comm);
            MPI_Barrier(s.on.comm);
        }
        mt_expect(MPIX_Waitall_enqueue(2, requests, MPI_STATUSES_IGNORE) == MPI_SUCCESS, "waits");
        after(&s);
        ms_sync(s.on.stream);
        expect(&s, 0, COUNT, left(), i, "after the communicator");
        if (i % 2 == 1) {
            MPIX_Stream_comm_create(MPI_COMM_WORLD, s.on.object, &s.on.comm);
        }
    }
    fixture_free(&s);
}

/* ---- threads that meet communicators which were freed with open requests ---- */

enum { THREADS = 2 };

struct maker {
    MPIX_Stream object;
    MPI_Comm    comm;
    int        *come; /* atomic: threads */
};

/* Makes a communicator, which destroys those that nobody needs any more. */
static void *make_another(void *argument)
{
    struct maker *m = argument;
    MPI_Comm      made;

    __atomic_add_fetch(m->come, 1, __ATOMIC_ACQ_REL);
    while (__atomic_load_n(m->come, __ATOMIC_ACQUIRE) < THREADS) {}
    MPIX_Stream_comm_create(m->comm, m->object, &made);
    MPI_Comm_free(&made);
    return NULL;
}

static void freed_among_threads(void)
{
    enum { TIMES = 200, FREED = 8 };
    struct fixture s = fixture_make();
    struct maker   makers[THREADS];
    MPI_Request    requests[2];

    for (int k = 0; k < THREADS; k++) {
        makers[k].object = s.on.object;
        MPI_Comm_dup(MPI_COMM_SELF, &makers[k].comm);
    }
    for (int i = 0; i < TIMES; i++) {
        int come = 0;
        for (int k = 0; k < FREED; k++) {
            MPI_Comm comm;
            MPIX_Stream_comm_create(MPI_COMM_SELF, s.on.object, &comm);
            MPIX_Irecv_enqueue(s.out, COUNT, MPI_INT, 0, 4, comm, &requests[0]);
            MPIX_Isend_enqueue(s.in, COUNT, MPI_INT, 0, 4, comm, &requests[1]);
            mt_expect(MPI_Comm_free(&comm) == MPI_SUCCESS, "MPI_Comm_free");
            MPIX_Waitall_enqueue(2, requests, MPI_STATUSES_IGNORE);
        }
        ms_sync(s.on.stream);
        for (int k = 0; k < THREADS; k++) {
            makers[k].come = &come;
        }
        mt_in_threads(THREADS, make_another, makers, sizeof(makers[0]));
    }
    for (int k = 0; k < THREADS; k++) {
        MPI_Comm_free(&makers[k].comm);
    }
    fixture_free(&s);
}

/*
 * Two sends, of which the driver takes no host function for one: they come in the order of the
 * stream. Each turn calls for three of them.
 */
static void in_turn(void)
{
    enum { TURNS = 8, SENDS = 2, IDLE_US = 50 * 1000 /* naps are long then */ };
    struct fixture s = fixture_make();
    MPI_Request    requests[SENDS];
    bool           held;

    for (int i = 0; i < TURNS; i++) {
        for (int k = 0; k < SENDS; k++) {
            s.from[k] = SENDS * i + k;
        }
        if (mt_rank() == 0) {
            ms_hold(s.on.stream, &held);
            for (int k = 0; k < SENDS; k++) {
                MPIX_Isend_enqueue(s.from + k, 1, MPI_INT, 1, 4, s.on.comm, &requests[k]);
            }
            usleep(IDLE_US);
            ms_let_go(&held);
            MPIX_Waitall_enqueue(SENDS, requests, MPI_STATUSES_IGNORE);
            ms_sync(s.on.stream);
            continue;
        }
        for (int k = 0; k < SENDS; k++) {
            int came = -1;
            MPI_Recv(&came, 1, MPI_INT, 0, 4, s.on.comm, MPI_STATUS_IGNORE);
            mt_expect(came == s.from[k], "turn %d: %d came, not %d", i, came, s.from[k]);
        }
    }
    fixture_free(&s);
}

/* A device stream on one rank, none on the other; and two on one. */
static void multiplex(void)
{
    struct fixture s = fixture_make();
    MPI_Comm       comm = MPI_COMM_NULL;
    int            none = MPIX_STREAM_NULL, two[2] = {s.on.object, s.on.object};

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int code = MPIX_Stream_comm_create_multiplex(MPI_COMM_WORLD, 1,
                                                 (mt_rank() == 0) ? &s.on.object : &none, &comm);
    mt_expect(code == MPI_SUCCESS, "a device stream on one rank");
    if (code == MPI_SUCCESS) {
        MPI_Barrier(comm);
        MPI_Comm_free(&comm);
    }
    code = MPIX_Stream_comm_create_multiplex(MPI_COMM_WORLD, (mt_rank() == 0) ? 2 : 1, two, &comm);
    mt_expect(code != MPI_SUCCESS, "two device streams on one rank");
    fixture_free(&s);
}

int main(int argc, char **argv)
{
    static const struct mt_named_case cases[] = {{"order", order},
                                                 {"graphs", graphs},
                                                 {"wildcards", wildcards},
                                                 {"mixed", mixed},
                                                 {"truncation", truncation},
                                                 {"truncation_on_one", truncation_on_one},
                                                 {"refused", refused},
                                                 {"threads", threads},
                                                 {"staging", staging},
                                                 {"scattered", scattered},
                                                 {"probed", probed},
                                                 {"unlike", unlike},
                                                 {"left_open", left_open},
                                                 {"in_turn", in_turn},
                                                 {"freed_among_threads", freed_among_threads},
                                                 {"multiplex", multiplex},
                                                 {NULL, NULL}};

    mt_begin_at((argc > 2) && (strcmp(argv[2], "threads") == 0) ? MPI_THREAD_FUNNELED
                                                                : MPI_THREAD_MULTIPLE,
                &argc, &argv, true);
    ms_open();
    return mt_run_to_end(cases, argc, argv);
}
