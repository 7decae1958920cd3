/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages between nodes that go in pieces: two ranks, XCCL_PIPELINE=65536 and pieces of 16384.
 * Usage: mpi_pipeline cuda|rocm CASE [PATH]
 * PATH: what xccl_mpi_last_message_path() is to say of the sends of 65536 bytes and more.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

enum { TAG = 5, LEAST = 65536, PIECE = 16384, INT = sizeof(int) };

static const char *path;

static const char *path_of(int count)
{
    return (count * INT >= LEAST) ? path : "mpi-staged";
}

static void send(enum mt_where where, int count, int salt)
{
    int *in = mt_ints_make(where, count, count, salt);

    MPI_Send(in, count, MPI_INT, 1 - mt_rank(), TAG, MPI_COMM_WORLD);
    if (where == MT_DEVICE) {
        mt_expect_message_path(path_of(count), "a send");
    }
    mt_free(where, in);
}

/* from: what the sender has it in. more: integers that the buffer has room for beyond. */
static void receive(enum mt_where where, enum mt_where from, int count, int more, int salt)
{
    int       *out = mt_ints_make(where, count + more, 0, 0);
    char       what[64];
    MPI_Status status;

    snprintf(what, sizeof(what), "%d integers into memory %d", count, (int)where);
    MPI_Recv(out, count + more, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    if (where == MT_DEVICE) {
        mt_expect_message_path((from == MT_DEVICE) ? path_of(count) : "mpi-staged", what);
    }
    mt_expect_status(&status, 1 - mt_rank(), TAG, count, what);
    mt_ints_expect(out, where, count + more, count, 1 - mt_rank(), salt, what);
    mt_free(where, out);
}

/* Around the threshold, and where pieces end. */
static void case_sizes(void)
{
    static const int bytes[] = {LEAST - 4,         LEAST,         LEAST + 4,
                                LEAST + PIECE - 4, LEAST + PIECE, LEAST + PIECE + 4,
                                8 * PIECE,         9 * PIECE + 8, 100 * PIECE + 400};
    enum { SIZES = sizeof(bytes) / sizeof(bytes[0]), WHERES = 3 };

    for (int i = 0; i < SIZES * WHERES * 2; i++) {
        int           count = bytes[i % SIZES] / INT;
        enum mt_where where = (enum mt_where)(i / SIZES % WHERES);
        if (i / (SIZES * WHERES) == mt_rank()) {
            send(MT_DEVICE, count, i);
            receive(MT_DEVICE, where, count, 0, i);
        } else {
            receive(where, MT_DEVICE, count, i % 5, i);
            send(where, count, i);
        }
    }
}

/* Several large messages in each direction, and MPI_Sendrecv. */
static void case_both_ways(void)
{
    enum { MESSAGES = 12, COUNT = 300000 };
    MPI_Request requests[2 * MESSAGES];
    MPI_Status  status;
    int        *in[MESSAGES], *out[MESSAGES], other = 1 - mt_rank();

    for (int i = 0; i < MESSAGES; i++) {
        out[i] = mt_ints_make((i % 3 == 2) ? MT_HOST : MT_DEVICE, COUNT, 0, 0);
        MPI_Irecv(out[i], COUNT, MPI_INT, other, i, MPI_COMM_WORLD, &requests[i]);
    }
    for (int i = MESSAGES - 1; i >= 0; i--) {
        in[i] = mt_ints_make(MT_DEVICE, COUNT, COUNT, i);
        MPI_Isend(in[i], COUNT, MPI_INT, other, i, MPI_COMM_WORLD, &requests[MESSAGES + i]);
    }
    MPI_Waitall(2 * MESSAGES, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < MESSAGES; i++) {
        enum mt_where where = (i % 3 == 2) ? MT_HOST : MT_DEVICE;
        mt_ints_expect(out[i], where, COUNT, COUNT, other, i, "both ways");
        if (i > 0) {
            mt_free(where, out[i]);
            mt_free(MT_DEVICE, in[i]);
        }
    }
    for (int i = 1; i < 4; i++) {
        MPI_Sendrecv(in[0], COUNT - i, MPI_INT, other, TAG, out[0], COUNT, MPI_INT, other, TAG,
                     MPI_COMM_WORLD, &status);
        mt_expect_status(&status, other, TAG, COUNT - i, "MPI_Sendrecv");
    }
    mt_free(MT_DEVICE, out[0]);
    mt_free(MT_DEVICE, in[0]);
}

/* Rank 0 sends in MPI_Sendrecv, and gets a word back once rank 1 has the message. */
static void case_answer(void)
{
    enum { COUNT = 500000 };
    int word = 0, one = 1;

    if (mt_rank() == 0) {
        int *in = mt_ints_make(MT_DEVICE, COUNT, COUNT, 3);
        MPI_Sendrecv(in, COUNT, MPI_INT, 1, TAG, &word, 1, MPI_INT, 1, TAG, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        mt_expect(word == 1, "the word is %d", word);
        mt_free(MT_DEVICE, in);
    } else {
        receive(MT_DEVICE, MT_DEVICE, COUNT, 0, 3);
        MPI_Send(&one, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD);
    }
}

/* A rank meets the other one with its send or its receive open, which the other waits for first. */
static void case_barrier(void)
{
    enum { COUNT = 700000 };
    static const enum mt_where wheres[] = {MT_DEVICE, MT_HOST, MT_MANAGED};
    MPI_Request                request;

    for (int i = 0; i < 6; i++) {
        enum mt_where where = wheres[i % 3];
        if (mt_rank() == 0) {
            int *in = mt_ints_make(MT_DEVICE, COUNT, COUNT, i);
            if (i < 3) {
                MPI_Send(in, COUNT, MPI_INT, 1, TAG, MPI_COMM_WORLD);
                MPI_Barrier(MPI_COMM_WORLD);
            } else {
                MPI_Isend(in, COUNT, MPI_INT, 1, TAG, MPI_COMM_WORLD, &request);
                MPI_Barrier(MPI_COMM_WORLD);
                MPI_Wait(&request, MPI_STATUS_IGNORE);
            }
            mt_free(MT_DEVICE, in);
        } else if (i < 3) {
            int *out = mt_ints_make(where, COUNT, 0, 0);
            MPI_Irecv(out, COUNT, MPI_INT, 0, TAG, MPI_COMM_WORLD, &request);
            MPI_Barrier(MPI_COMM_WORLD);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            mt_ints_expect(out, where, COUNT, COUNT, 0, i, "behind a barrier");
            mt_free(where, out);
        } else {
            receive(where, MT_DEVICE, COUNT, 1, i);
            MPI_Barrier(MPI_COMM_WORLD);
        }
    }
}

/* One after the other with one tag for their pieces, which MPI has before they are received. */
static void case_tags(void)
{
    enum { MESSAGES = 60, COUNT = LEAST / INT, MORE = 40 };
    MPI_Request requests[MESSAGES];
    int        *out[MESSAGES], *in = mt_ints_make(MT_DEVICE, 2 * COUNT, 2 * COUNT, 8);

    for (int i = 0; (i < MESSAGES) && (mt_rank() == 1); i++) {
        out[i] = mt_ints_make(MT_DEVICE, 2 * COUNT, 0, 0);
        MPI_Irecv(out[i], 2 * COUNT, MPI_INT, 0, TAG, MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; (i < MESSAGES) && (mt_rank() == 0); i++) {
        MPI_Send(in, COUNT + i * MORE, MPI_INT, 1, TAG, MPI_COMM_WORLD);
    }
    if (mt_rank() == 1) {
        MPI_Waitall(MESSAGES, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < MESSAGES; i++) {
            mt_ints_expect(out[i], MT_DEVICE, 2 * COUNT, COUNT + i * MORE, 0, 8, "one of many");
            mt_free(MT_DEVICE, out[i]);
        }
    }
    mt_free(MT_DEVICE, in);
}

/* Memory of the process that is not a file's, in KiB; pinned memory of the simulation is shared. */
static long own_memory(void)
{
    char  line[128];
    long  kib = 0;
    FILE *file = fopen("/proc/self/status", "r");

    while ((file != NULL) && (fgets(line, sizeof(line), file) != NULL)) {
        if ((strncmp(line, "RssAnon:", 8) == 0) || (strncmp(line, "RssShmem:", 9) == 0)) {
            kib += strtol(strchr(line, ':') + 1, NULL, 10);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return kib;
}

/* 200 messages of 1 MiB, none of which is received before all are sent; the last one first. */
static void case_memory(void)
{
    enum { MESSAGES = 200, COUNT = 1 << 18, MOST_KIB = 64 << 10 };
    static MPI_Request requests[MESSAGES];
    int               *buffer = mt_ints_make(MT_DEVICE, COUNT, COUNT, 7);
    long               before = own_memory();

    for (int i = 0; i < MESSAGES; i++) {
        if (mt_rank() == 0) {
            MPI_Isend(buffer, COUNT, MPI_INT, 1, i, MPI_COMM_WORLD, &requests[i]);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (mt_rank() == 1) {
        for (int i = 0; i < MESSAGES; i++) {
            MPI_Irecv(buffer, COUNT, MPI_INT, 0, MESSAGES - 1 - i, MPI_COMM_WORLD, &requests[i]);
        }
    }
    MPI_Waitall(MESSAGES, requests, MPI_STATUSES_IGNORE);
    long more = own_memory() - before;
    mt_expect(more < MOST_KIB, "%ld KiB of memory more", more);
    mt_ints_expect(buffer, MT_DEVICE, COUNT, COUNT, 0, 7, "the last of many");
    mt_free(MT_DEVICE, buffer);
}

/* The communicator is freed, and requests are, before the messages have gone. */
static void case_freed(void)
{
    enum { COUNT = 400000 };
    int        *buffer = mt_ints_make(MT_DEVICE, COUNT, (mt_rank() == 0) ? COUNT : 0, 4);
    MPI_Request request;
    MPI_Comm    comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    if (mt_rank() == 0) {
        MPI_Isend(buffer, COUNT, MPI_INT, 1, TAG, comm, &request);
    } else {
        MPI_Irecv(buffer, COUNT, MPI_INT, 0, TAG, comm, &request);
    }
    MPI_Comm_free(&comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    mt_ints_expect(buffer, MT_DEVICE, COUNT, COUNT, 0, 4, "of a communicator that was freed");
    MPI_Barrier(MPI_COMM_WORLD);
    if (mt_rank() == 0) {
        MPI_Isend(buffer, COUNT, MPI_INT, 1, TAG, MPI_COMM_WORLD, &request);
        MPI_Request_free(&request);
        MPI_Recv(NULL, 0, MPI_INT, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        receive(MT_DEVICE, MT_DEVICE, COUNT, 0, 4);
        MPI_Send(NULL, 0, MPI_INT, 0, TAG, MPI_COMM_WORLD);
    }
    mt_free(MT_DEVICE, buffer);
}

/* Is what lies behind `room` integers as it was? */
static void expect_behind(const int *buffer, enum mt_where where, int count, int room)
{
    int *host = malloc(sizeof(int) * (size_t)count);
    int  wrong = 0;

    mt_get(host, buffer, where, sizeof(int) * (size_t)count);
    for (int i = room; i < count; i++) {
        wrong += (host[i] != MT_UNTOUCHED);
    }
    mt_expect(wrong == 0, "%d integers behind a receive of %d are written", wrong, room);
    free(host);
}

/* The error of a message that does not fit, and the next message. */
static void case_truncated(void)
{
    enum { COUNT = 200000 };

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int i = 0; i < 6; i++) {
        enum mt_where where = ((mt_rank() == 0) || (i % 2 == 0)) ? MT_DEVICE : MT_HOST;
        int           room = COUNT - i / 2, class = MPI_SUCCESS;
        int          *buffer = mt_ints_make(where, COUNT, (mt_rank() == 0) ? COUNT : 0, i);
        MPI_Status    status;
        if (mt_rank() == 0) {
            MPI_Send(buffer, COUNT, MPI_INT, 1, TAG, MPI_COMM_WORLD);
        } else {
            int code = MPI_Recv(buffer, room, MPI_INT, 0, TAG, MPI_COMM_WORLD, &status);
            MPI_Error_class(code, &class);
            mt_expect(class == ((room < COUNT) ? MPI_ERR_TRUNCATE : MPI_SUCCESS), "class %d",
                      class);
            expect_behind(buffer, where, COUNT, room);
        }
        mt_free(where, buffer);
    }
}

/* A message that nobody receives, with XCCL_TIMEOUT. */
static void case_timeout(void)
{
    int *buffer = mt_ints_make(MT_DEVICE, LEAST, LEAST, 6);

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (mt_rank() == 0) {
        int code = MPI_Send(buffer, LEAST, MPI_INT, 1, TAG, MPI_COMM_WORLD);
        mt_expect(code != MPI_SUCCESS, "the send ended");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    mt_free(MT_DEVICE, buffer);
}

/* With XCCL_SIM_FAIL=copy@0=n a piece cannot be copied: both ranks hear of it. Then all is well. */
static void case_uncopied(void)
{
    enum { COUNT = 200000 };
    int *buffer = mt_ints_make(MT_DEVICE, COUNT, (mt_rank() == 0) ? COUNT : 0, 7), code;

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (mt_rank() == 0) {
        code = MPI_Send(buffer, COUNT, MPI_INT, 1, TAG, MPI_COMM_WORLD);
    } else {
        code = MPI_Recv(buffer, COUNT, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    mt_expect(code != MPI_SUCCESS, "a message of which a piece is missing ended well");
    mt_free(MT_DEVICE, buffer);
    if (mt_rank() == 0) {
        send(MT_DEVICE, COUNT, 8);
    } else {
        receive(MT_DEVICE, MT_DEVICE, COUNT, 0, 8);
    }
}

int main(int argc, char **argv)
{
    static const struct mt_named_case cases[] = {
        {"sizes", case_sizes},
        {"both_ways", case_both_ways},
        {"answer", case_answer},
        {"barrier", case_barrier},
        {"tags", case_tags},
        {"memory", case_memory},
        {"freed", case_freed},
        {"truncated", case_truncated},
        {"timeout", case_timeout},
        {"uncopied", case_uncopied},
        {NULL, NULL},
    };
    int level = MPI_THREAD_SINGLE;

    mt_begin_at(MPI_THREAD_FUNNELED, &argc, &argv, true);
    path = (argc > 3) ? argv[3] : NULL;
    MPI_Query_thread(&level);
    mt_expect((path == NULL) || (strcmp(path, "pipelined") != 0) || (level == MPI_THREAD_MULTIPLE),
              "MPI has level %d", level);
    return mt_run_to_end(cases, argc, argv);
}
