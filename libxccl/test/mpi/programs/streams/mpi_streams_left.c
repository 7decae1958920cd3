/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Error handlers that leave enqueued calls by longjmp(): nothing is left undone behind them.
 *
 *   mpi_streams_left RUNTIME wait
 * With XCCL_STAGING=1 MPIX_Wait_enqueue tells of a gather; then nothing is open on the
 * communicator.
 *
 *   mpi_streams_left RUNTIME calls
 * Of calls that MPI refuses, and xccl itself. MPI is without threads: with them MPICH takes no call
 * behind a jump.
 */
#include <stdio.h>
#include <string.h>

#include <xccl/mpix.h>

#include "streams_device.h"
#include "streams_object.h"
#include "support.h"

enum { COUNT = 100, MANY = 60000, SALT = 5 };

static struct fixture {
    void       *stream;
    MPIX_Stream object;
    MPI_Comm    comm;
    int        *in, *out; /* device */
} s;

static void fixture_make(void)
{
    MPI_Errhandler handler;

    s.stream = ms_stream_make();
    s.object = ms_object_of(s.stream);
    MPIX_Stream_comm_create(MPI_COMM_WORLD, s.object, &s.comm);
    MPI_Comm_create_errhandler(mt_jump, &handler);
    MPI_Comm_set_errhandler(s.comm, handler);
    MPI_Errhandler_free(&handler);
    s.in = mt_ints_make(MT_DEVICE, MANY, MANY, SALT);
    s.out = mt_ints_make(MT_DEVICE, 2 * MANY, 0, SALT);
}

static void fixture_free(void)
{
    MPIX_Stream_free(&s.object);
    ms_stream_free(s.stream);
    mt_free(MT_DEVICE, s.in);
    mt_free(MT_DEVICE, s.out);
}

/* Captures forbid this thread what they did before the call. */
static void expect_mode(const char *what)
{
    enum { GLOBAL = 0 };
    int mode = GLOBAL;
    int (*exchange)(int *);

    *(void **)&exchange =
        mt_driver("cuThreadExchangeStreamCaptureMode", "hipThreadExchangeStreamCaptureMode");
    if (exchange != NULL) {
        mt_expect((exchange(&mode) == 0) && (mode == GLOBAL), "%s: mode %d", what, mode);
    }
}

static void expect_heard(const char *what)
{
    mt_expect(mt_jumps == 1, "%s: the handler was called %d times", what, mt_jumps);
    mt_jumps = 0;
    expect_mode(what);
}

/* The root gets no pinned memory for all of it, and the other rank is told later. */
static void gather(int root)
{
    MPIX_Gather_enqueue(s.in, MANY, MPI_INT, s.out, MANY, MPI_INT, root, s.comm);
}

static void case_wait(void)
{
    static MPI_Request requests[2]; /* as they are after a jump */
    static int         root;

    fixture_make();
    for (root = 0; root < 2; root++) {
        MPIX_Irecv_enqueue(s.out, COUNT, MPI_INT, 1 - mt_rank(), 0, s.comm, &requests[0]);
        MPIX_Isend_enqueue(s.in, COUNT, MPI_INT, 1 - mt_rank(), 0, s.comm, &requests[1]);
        if (setjmp(mt_before) == 0) {
            gather(root);
            mt_expect(mt_rank() != root, "the gather came back");
            ms_sync(s.stream);
            MPIX_Wait_enqueue(&requests[0], MPI_STATUS_IGNORE);
            mt_expect(false, "the wait came back");
        }
        expect_heard((mt_rank() == root) ? "a gather" : "a wait that tells of it");
        for (int i = 0; i < 2; i++) {
            mt_expect((requests[i] == MPI_REQUEST_NULL) == ((mt_rank() != root) && (i == 0)),
                      "request %d of rank %d", i, mt_rank());
            MPIX_Wait_enqueue(&requests[i], MPI_STATUS_IGNORE);
        }
        ms_sync(s.stream);
        mt_ints_expect(s.out, MT_DEVICE, COUNT, COUNT, 1 - mt_rank(), SALT, "a message");
    }
    MPI_Comm_set_errhandler(s.comm, MPI_ERRORS_RETURN);
    mt_expect(MPI_Comm_disconnect(&s.comm) == MPI_SUCCESS, "something is open");
    fixture_free();
}

static void broadcast(int count, MPI_Datatype type, void *buffer, const char *what)
{
    if (setjmp(mt_before) == 0) {
        MPIX_Bcast_enqueue(buffer, count, type, 0, s.comm);
        mt_expect(false, "%s came back", what);
    }
    expect_heard(what);
}

static void case_calls(void)
{
    int          on_host[COUNT] = {0};
    MPI_Datatype type;

    fixture_make();
    MPI_Type_vector(COUNT / 2, 1, 2, MPI_INT, &type);
    broadcast(-1, MPI_INT, s.in, "a negative count");
    broadcast(1, type, s.in, "a type that is not committed");
    broadcast(COUNT, MPI_INT, on_host, "memory that needs threads");
    if (setjmp(mt_before) == 0) {
        MPIX_Send_enqueue(s.in, COUNT, MPI_INT, mt_rank(), 0, s.comm);
    }
    expect_heard("a message");
    if (setjmp(mt_before) == 0) {
        MPIX_Send_enqueue(s.in, -1, MPI_INT, mt_rank(), 0, s.comm);
    }
    expect_heard("a message of a negative count");
    MPI_Type_free(&type);
    for (int root = 0; root < mt_size(); root++) {
        void *buffer = (mt_rank() == root) ? s.in : s.out;
        mt_expect(MPIX_Bcast_enqueue(buffer, COUNT, MPI_INT, root, s.comm) == MPI_SUCCESS,
                  "a broadcast");
        ms_sync(s.stream);
        mt_ints_expect(buffer, MT_DEVICE, COUNT, COUNT, root, SALT, "a broadcast");
    }
    MPI_Comm_free(&s.comm);
    fixture_free();
}

int main(int argc, char **argv)
{
    static const struct mt_named_case cases[] = {
        {"wait", case_wait}, {"calls", case_calls}, {NULL, NULL}};
    bool threads = (argc > 2) && (strcmp(argv[2], "wait") == 0);

    mt_begin_at(threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &argc, &argv, true);
    ms_open();
    return mt_run_to_end(cases, argc, argv);
}
