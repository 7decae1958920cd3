/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages whose data cannot be copied from the device, or to it: whoever completes the request
 * says so, or starts it. Rank 1 fails, with XCCL_SIM_FAIL=copy@1 and no kernels to copy by. Two
 * ranks. Usage: mpi_uncopied cuda|rocm CASE
 */
#include <unistd.h>

#include "support.h"

enum { LONG = 400000, TAG = 5 };

static int other(void)
{
    return 1 - mt_rank();
}

static int handled;

static void count_error(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    (void)code;
    handled++;
}

enum { FEW = 500 }; /* so few that MPI sends them at once */
enum { BY_WAIT, BY_WAITALL, BY_WAITANY, BY_TESTSOME, BY_START, AT_ONCE, NUM_WAYS };

/* Several requests, of which only the first fails. */
static int complete(int way, MPI_Request requests[2])
{
    MPI_Status statuses[2];
    int        code = MPI_SUCCESS, index = 0, outcount = 0, indices[2];

    switch (way) {
    case BY_WAITALL:
        code = MPI_Waitall(2, requests, statuses);
        mt_expect(mt_class_of(code) == MPI_ERR_IN_STATUS, "MPI_Waitall: class %d",
                  mt_class_of(code));
        mt_expect(statuses[1].MPI_ERROR == MPI_SUCCESS, "the other request failed, too");
        return statuses[0].MPI_ERROR;
    case BY_WAITANY:
        return MPI_Waitany(1, requests, &index, MPI_STATUS_IGNORE);
    case BY_TESTSOME:
        while ((code == MPI_SUCCESS) && (outcount == 0)) {
            code = MPI_Testsome(1, requests, &outcount, indices, statuses);
        }
        return (mt_class_of(code) == MPI_ERR_IN_STATUS) ? statuses[0].MPI_ERROR : MPI_SUCCESS;
    default:
        return MPI_Wait(requests, MPI_STATUS_IGNORE);
    }
}

static void receive_in_vain(int way, int *out)
{
    MPI_Request requests[2];
    int         word;

    handled = 0;
    if (way == BY_START) {
        MPI_Recv_init(out, FEW, MPI_INT, 0, TAG, MPI_COMM_WORLD, &requests[0]);
        MPI_Start(&requests[0]);
    } else {
        MPI_Irecv(out, FEW, MPI_INT, 0, TAG, MPI_COMM_WORLD, &requests[0]);
    }
    MPI_Irecv(&word, 1, MPI_INT, 0, TAG + 1, MPI_COMM_WORLD, &requests[1]);
    int code = complete(way, requests);
    mt_expect(code != MPI_SUCCESS, "way %d: the request ended well", way);
    mt_expect(handled == 1, "way %d: the handler was called %d times", way, handled);
    if (way == BY_START) { /* it is not active any more */
        code = MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        mt_expect(code == MPI_SUCCESS, "the error was said twice");
        MPI_Request_free(&requests[0]);
    }
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
}

/* What is received beside a message that is fetched is lost; that message is not. */
static void exchange_in_vain(void)
{
    enum { LATE_US = 200000 };
    int *in = mt_ints_make(MT_DEVICE, LONG, LONG, 1), *out = mt_ints_make(MT_DEVICE, LONG, 0, 0);
    int  host[FEW] = {0};

    for (int i = 0; i < 3; i++) { /* rank 0 has used a device, and says so */
        MPI_Sendrecv(host, 1, MPI_INT, other(), TAG, host + 1, 1, MPI_INT, other(), TAG,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (mt_rank() == 0) {
        MPI_Send(host, FEW, MPI_INT, 1, TAG, MPI_COMM_WORLD);
        usleep(LATE_US);
        MPI_Recv(out, LONG, MPI_INT, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        mt_ints_expect(out, MT_DEVICE, LONG, LONG, 1, 1, "beside what was not copied");
    } else {
        int code = MPI_Sendrecv(in, LONG, MPI_INT, 0, TAG, out, FEW, MPI_INT, 0, TAG,
                                MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        mt_expect(code != MPI_SUCCESS, "MPI_Sendrecv ended well");
        mt_put(in, MT_DEVICE, host, sizeof(host));
    }
    mt_free(MT_DEVICE, in);
    mt_free(MT_DEVICE, out);
}

/* With XCCL_SIM_FAIL=copy@1, and no kernels to copy by. */
static void case_received(void)
{
    MPI_Errhandler handler;
    int           *buffer = mt_ints_make((mt_rank() == 0) ? MT_HOST : MT_DEVICE, FEW, 0, 0);

    MPI_Comm_create_errhandler(count_error, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    for (int way = 0; way < NUM_WAYS; way++) {
        if (mt_rank() == 0) {
            MPI_Send(buffer, FEW, MPI_INT, 1, TAG, MPI_COMM_WORLD);
            MPI_Send(&way, 1, MPI_INT, 1, TAG + 1, MPI_COMM_WORLD);
        }
        if (way == AT_ONCE) { /* it is there before its receive begins */
            MPI_Barrier(MPI_COMM_WORLD);
        }
        if (mt_rank() == 1) {
            receive_in_vain(way, buffer);
        }
    }
    exchange_in_vain();
    MPI_Errhandler_free(&handler);
    mt_free((mt_rank() == 0) ? MT_HOST : MT_DEVICE, buffer);
}

/* The handler of the request's communicator hears of it. With XCCL_SIM_FAIL=copy@1. */
static void case_started(void)
{
    MPI_Errhandler handler;
    MPI_Comm       comm;
    MPI_Request    request;
    int           *data = mt_ints_make(MT_DEVICE, FEW, FEW, 1);

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_create_errhandler(count_error, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    if (mt_rank() == 1) {
        MPI_Send_init(data, FEW, MPI_INT, 0, TAG, comm, &request);
        handled = 0;
        int code = MPI_Start(&request);
        mt_expect((code != MPI_SUCCESS) && (handled == 1), "code %d, the handler %d times", code,
                  handled);
        MPI_Request_free(&request);
    }
    MPI_Errhandler_free(&handler);
    MPI_Comm_free(&comm);
    mt_free(MT_DEVICE, data);
}
int main(int argc, char **argv)
{
    static const struct mt_named_case cases[] = {
        {"received", case_received}, {"started", case_started}, {NULL, NULL}};

    mt_begin_at(MPI_THREAD_MULTIPLE, &argc, &argv, true);
    return mt_run_to_end(cases, argc, argv);
}
