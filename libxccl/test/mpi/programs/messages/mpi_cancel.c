/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends from device memory that are cancelled: each is over before its receiver knows of it, and
 * its message comes all the same, before later ones. Two ranks.
 * Usage: mpi_cancel cuda|rocm
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "support.h"

enum { SMALL = 1100, COUNT = 20000, TAG = 5, LATER = 6, WORD = 7, NEVER = 8 };

static int *make(enum mt_where where, int count, int salt)
{
    return mt_ints_make(where, COUNT, count, salt);
}

/* The send is over here, though nobody receives it yet; the buffer is the program's again. */
static void cancel(MPI_Request *request, int *buffer, const char *what)
{
    MPI_Status status;
    int        cancelled = -1, *zeros = calloc(COUNT, sizeof(int));

    MPI_Cancel(request);
    MPI_Wait(request, &status);
    MPI_Test_cancelled(&status, &cancelled);
    mt_expect(cancelled == 0, "%s: MPI_Test_cancelled says %d", what, cancelled);
    mt_put(buffer, MT_DEVICE, zeros, sizeof(int) * COUNT);
    free(zeros);
}

/* Receive what was cancelled, by its length, and what was sent after it. */
static void receive(enum mt_where where, int count, const char *what)
{
    int       *out = make(where, 0, 0), word;
    MPI_Status status;

    MPI_Recv(&word, 1, MPI_INT, 0, WORD, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Probe(MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &status);
    mt_expect_status(&status, 0, TAG, count, what);
    MPI_Recv(out, COUNT, MPI_INT, 0, TAG, MPI_COMM_WORLD, &status);
    mt_expect_status(&status, 0, TAG, count, what);
    mt_ints_expect(out, where, COUNT, count, 0, 1, what);
    mt_free(where, out);
    out = make(where, 0, 0);
    MPI_Recv(out, COUNT, MPI_INT, 0, TAG, MPI_COMM_WORLD, &status);
    mt_ints_expect(out, where, COUNT, COUNT, 0, 2, "the message behind it");
    mt_free(where, out);
}

static void send_behind(void)
{
    int        *in = make(MT_DEVICE, COUNT, 2);
    MPI_Request request;

    MPI_Isend(in, COUNT, MPI_INT, 1, TAG, MPI_COMM_WORLD, &request);
    MPI_Send(&(int){1}, 1, MPI_INT, 1, WORD, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    mt_free(MT_DEVICE, in);
}

static void cancelled_once(enum mt_where where, int count)
{
    MPI_Request request;

    if (mt_rank() == 1) {
        receive(where, count, "MPI_Isend");
        return;
    }
    int *in = make(MT_DEVICE, COUNT, 1);
    MPI_Isend(in, count, MPI_INT, 1, TAG, MPI_COMM_WORLD, &request);
    cancel(&request, in, "MPI_Isend");
    send_behind();
    mt_free(MT_DEVICE, in);
}

/* The second start is not cancelled. */
static void cancelled_persistent(void)
{
    MPI_Request request;

    if (mt_rank() == 1) {
        receive(MT_DEVICE, COUNT, "MPI_Send_init");
        return;
    }
    int *in = make(MT_DEVICE, COUNT, 1), *second = make(MT_HOST, COUNT, 2);
    MPI_Send_init(in, COUNT, MPI_INT, 1, TAG, MPI_COMM_WORLD, &request);
    MPI_Start(&request);
    cancel(&request, in, "MPI_Send_init");
    mt_put(in, MT_DEVICE, second, sizeof(int) * COUNT);
    MPI_Start(&request);
    MPI_Send(&(int){1}, 1, MPI_INT, 1, WORD, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
    mt_free(MT_DEVICE, in);
    mt_free(MT_HOST, second);
}

/* Too long for its receive; a message that was left is over then as well. */
static void cancelled_truncated(void)
{
    MPI_Request request;
    MPI_Comm    comm;
    int        *buf = make(MT_DEVICE, COUNT, 1), class;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    if (mt_rank() == 0) {
        MPI_Isend(buf, COUNT, MPI_INT, 1, TAG, comm, &request);
        cancel(&request, buf, "truncated");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (mt_rank() == 1) {
        int code = MPI_Recv(buf, COUNT - 1, MPI_INT, 0, TAG, comm, MPI_STATUS_IGNORE);
        MPI_Error_class(code, &class);
        mt_expect(class == MPI_ERR_TRUNCATE, "error class %d", class);
    }
    MPI_Comm_free(&comm);
    mt_free(MT_DEVICE, buf);
}

/* MPICH 4.1 and later may end MPI_Finalize with an error if a message was never received, though
 * its send was cancelled. So may it without xccl: a short message cannot be taken back. */
static bool counts_unmatched(void)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int  length, major, minor;

    MPI_Get_library_version(text, &length);
    return (sscanf(text, "MPICH Version: %d.%d", &major, &minor) == 2) &&
           ((major > 4) || ((major == 4) && (minor >= 1)));
}

/* The sender comes to MPI_Finalize before one message is received; the other one never is. */
static void cancelled_last(void)
{
    MPI_Request request;
    int        *buf = make(MT_DEVICE, (mt_rank() == 0) ? COUNT : 0, 1);

    if (mt_rank() == 0) {
        MPI_Isend(buf, COUNT, MPI_INT, 1, LATER, MPI_COMM_WORLD, &request);
        cancel(&request, buf, "the last message");
        if (!counts_unmatched()) {
            MPI_Isend(buf, COUNT, MPI_INT, 1, NEVER, MPI_COMM_WORLD, &request);
            cancel(&request, buf, "a message for nobody");
        }
        mt_free(MT_DEVICE, buf);
        return;
    }
    usleep(300 * 1000);
    MPI_Recv(buf, COUNT, MPI_INT, 0, LATER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    mt_ints_expect(buf, MT_DEVICE, COUNT, COUNT, 0, 1, "the last message");
    mt_free(MT_DEVICE, buf);
}

int main(int argc, char **argv)
{
    mt_begin(&argc, &argv, true);
    mt_meet_on_device();
    for (int i = 0; i < 20; i++) {
        cancelled_once((i % 2 == 0) ? MT_DEVICE : MT_HOST, (i % 3 == 0) ? SMALL : COUNT);
    }
    cancelled_persistent();
    cancelled_truncated();
    mt_summary();
    cancelled_last();
    MPI_Finalize();
    return mt_status();
}
