/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads of rank 1 share a communicator with those of rank 0, a tag for each: some probe, and the
 * others receive what those that probe find in MPI's queue. Two ranks.
 * Usage: mpi_probing cuda|rocm|none
 */
#include <stdlib.h>

#include "support.h"

/* LONG: more than may be staged because receivers came late before; MPICH reports those elsewhere.
 */
enum { COUNT = 2000, LONG = 6000, ROUNDS = 60, META = 100 };

typedef void receive_fn(int *buffer, int tag, MPI_Status *status);

static void by_probe(int *buffer, int tag, MPI_Status *status)
{
    MPI_Probe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, status);
    mt_expect_status(status, 0, tag, COUNT, "MPI_Probe");
    MPI_Recv(buffer, COUNT, MPI_INT, status->MPI_SOURCE, tag, MPI_COMM_WORLD, status);
}

static void by_iprobe(int *buffer, int tag, MPI_Status *status)
{
    int flag = 0;

    while (!flag) {
        MPI_Iprobe(0, tag, MPI_COMM_WORLD, &flag, status);
    }
    mt_expect_status(status, 0, tag, COUNT, "MPI_Iprobe");
    MPI_Recv(buffer, COUNT, MPI_INT, 0, tag, MPI_COMM_WORLD, status);
}

static void by_mprobe(int *buffer, int tag, MPI_Status *status)
{
    MPI_Message message;

    MPI_Mprobe(0, tag, MPI_COMM_WORLD, &message, status);
    mt_expect_status(status, 0, tag, COUNT, "MPI_Mprobe");
    MPI_Mrecv(buffer, COUNT, MPI_INT, &message, status);
}

static void by_recv(int *buffer, int tag, MPI_Status *status)
{
    MPI_Recv(buffer, COUNT, MPI_INT, 0, tag, MPI_COMM_WORLD, status);
}

static void by_irecv(int *buffer, int tag, MPI_Status *status)
{
    MPI_Request request;

    MPI_Irecv(buffer, COUNT, MPI_INT, MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, status);
}

static void by_start(int *buffer, int tag, MPI_Status *status)
{
    MPI_Request request;

    MPI_Recv_init(buffer, COUNT, MPI_INT, 0, tag, MPI_COMM_WORLD, &request);
    MPI_Start(&request);
    MPI_Wait(&request, status);
    MPI_Request_free(&request);
}

/* Each message is for rank 1, which has nothing to send. */
static void by_sendrecv(int *buffer, int tag, MPI_Status *status)
{
    MPI_Sendrecv(&tag, 1, MPI_INT, MPI_PROC_NULL, tag, buffer, COUNT, MPI_INT, 0, tag,
                 MPI_COMM_WORLD, status);
}

static void by_replace(int *buffer, int tag, MPI_Status *status)
{
    MPI_Sendrecv_replace(buffer, COUNT, MPI_INT, MPI_PROC_NULL, tag, 0, tag, MPI_COMM_WORLD,
                         status);
}

static const struct {
    const char *name;
    receive_fn *receive;
} ways[] = {
    {"MPI_Probe", by_probe},       {"MPI_Iprobe", by_iprobe},
    {"MPI_Mprobe", by_mprobe},     {"MPI_Recv", by_recv},
    {"MPI_Irecv", by_irecv},       {"MPI_Start", by_start},
    {"MPI_Sendrecv", by_sendrecv}, {"MPI_Sendrecv_replace", by_replace},
};
enum { WAYS = sizeof(ways) / sizeof(ways[0]) };

/* Its number in host memory, and then the message: both may be taken out of MPI's queue. */
static void *work(void *argument)
{
    int way = *(int *)argument, number, *buffer;

    mt_memory_enter();
    for (int i = 0; i < ROUNDS; i++) {
        if (mt_rank() == 0) {
            buffer = mt_ints_make(MT_DEVICE, COUNT, COUNT, i);
            MPI_Send(&i, 1, MPI_INT, 1, META + way, MPI_COMM_WORLD);
            MPI_Send(buffer, COUNT, MPI_INT, 1, way, MPI_COMM_WORLD);
        } else {
            MPI_Status status;
            buffer = mt_ints_make(MT_DEVICE, COUNT, 0, 0);
            MPI_Recv(&number, 1, MPI_INT, 0, META + way, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            mt_expect(number == i, "%s: number %d, not %d", ways[way].name, number, i);
            ways[way].receive(buffer, way, &status);
            mt_expect_status(&status, 0, way, COUNT, ways[way].name);
            mt_ints_expect(buffer, MT_DEVICE, COUNT, COUNT, 0, i, ways[way].name);
        }
        mt_free(MT_DEVICE, buffer);
    }
    return NULL;
}

static int receive_too_much(int way, int *buffer, MPI_Comm comm)
{
    MPI_Message message;

    if (way == 0) {
        return MPI_Recv(buffer, LONG - 1, MPI_INT, 0, 0, comm, MPI_STATUS_IGNORE);
    }
    if (way == 1) {
        MPI_Probe(0, 0, comm, MPI_STATUS_IGNORE);
        return MPI_Recv(buffer, LONG - 1, MPI_INT, 0, 0, comm, MPI_STATUS_IGNORE);
    }
    MPI_Mprobe(0, 0, comm, &message, MPI_STATUS_IGNORE);
    return MPI_Mrecv(buffer, LONG - 1, MPI_INT, &message, MPI_STATUS_IGNORE);
}

/* Wrong arguments are errors at once, although the message is waited for in another way by now. */
static void expect_errors(void)
{
    int class, *buffer = mt_ints_make(MT_DEVICE, LONG, LONG, 1);
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Error_class(MPI_Recv(buffer, -1, MPI_INT, 0, 0, comm, MPI_STATUS_IGNORE), &class);
    mt_expect(class == MPI_ERR_COUNT, "a negative count: class %d", class);
    MPI_Error_class(MPI_Recv(buffer, 1, MPI_INT, mt_size(), 0, comm, MPI_STATUS_IGNORE), &class);
    mt_expect(class == MPI_ERR_RANK, "no such rank: class %d", class);
    for (int i = 0; i < 3; i++) {
        if (mt_rank() == 0) {
            MPI_Send(buffer, LONG, MPI_INT, 1, 0, comm);
        } else {
            MPI_Error_class(receive_too_much(i, buffer, comm), &class);
            mt_expect(class == MPI_ERR_TRUNCATE, "too long a message: class %d", class);
        }
    }
    MPI_Comm_free(&comm);
    mt_free(MT_DEVICE, buffer);
}

/* A message that was met by a probe is none of another communicator's, whatever its tag. */
static void receive_beside(void)
{
    enum { TAG = 50 };
    MPI_Comm    other, comms[] = {MPI_COMM_WORLD, MPI_COMM_NULL};
    MPI_Request requests[2];
    MPI_Status  status;
    int        *values[2];

    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    comms[1] = other;
    for (int i = 0; i < 2; i++) {
        values[i] = mt_ints_make(MT_DEVICE, LONG, (mt_rank() == 0) ? LONG : 0, i);
        if (mt_rank() == 0) {
            MPI_Isend(values[i], LONG, MPI_INT, 1, TAG, comms[i], &requests[i]);
        }
    }
    if (mt_rank() == 0) {
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    } else {
        MPI_Probe(0, TAG, MPI_COMM_WORLD, &status);
        for (int i = 1; i >= 0; i--) {
            MPI_Recv(values[i], LONG, MPI_INT, 0, TAG, comms[i], &status);
            mt_ints_expect(values[i], MT_DEVICE, LONG, LONG, 0, i, "on its communicator");
        }
    }
    mt_free(MT_DEVICE, values[0]);
    mt_free(MT_DEVICE, values[1]);
    MPI_Comm_free(&other);
}

int main(int argc, char **argv)
{
    int numbers[WAYS];

    mt_begin(&argc, &argv, true);
    for (int i = 0; i < WAYS; i++) {
        numbers[i] = i;
    }
    mt_in_threads(WAYS, work, numbers, sizeof(numbers[0]));
    expect_errors();
    receive_beside();
    mt_summary();
    MPI_Finalize();
    return mt_status();
}
