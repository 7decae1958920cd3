/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages that were sent before MPI_Finalize, and are received inside it by a delete callback of
 * MPI_COMM_SELF: by one rank while the other still waits for its send, or by both, which have freed
 * their requests. Usage: mpi_ending cuda|rocm one|both|both_threads, on two ranks
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "support.h"

enum { LONG = 100000, SIZES = 3 };

static const int counts[SIZES] = {25, 4000, LONG};
static int       received;

static void receive(int i)
{
    int        *message = mt_ints_make(MT_DEVICE, LONG, 0, 0), peer = 1 - mt_rank();
    MPI_Status  status;
    MPI_Request request;

    if (i == 0) {
        MPI_Probe(peer, i, MPI_COMM_WORLD, &status);
        mt_expect_status(&status, peer, i, counts[i], "the probe");
    }
    MPI_Irecv(message, LONG, MPI_INT, peer, i, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, &status);
    mt_expect_status(&status, peer, i, counts[i], "the receive");
    mt_ints_expect(message, MT_DEVICE, LONG, counts[i], peer, i, "in the callback");
    mt_free(MT_DEVICE, message);
    received++;
}

static int receive_all(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm;
    (void)key;
    (void)value;
    (void)extra;
    for (int i = 0; i < SIZES; i++) {
        receive(i);
    }
    return MPI_SUCCESS;
}

static void receive_in_finalize(void)
{
    int key;

    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, receive_all, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
    MPI_Comm_free_keyval(&key);
}

static void begin_sends(MPI_Request requests[SIZES])
{
    for (int i = 0; i < SIZES; i++) {
        int *message = mt_ints_make(MT_DEVICE, LONG, counts[i], i);
        MPI_Isend(message, counts[i], MPI_INT, 1 - mt_rank(), i, MPI_COMM_WORLD, &requests[i]);
    }
}

static void one(void)
{
    MPI_Request requests[SIZES];

    if (mt_rank() == 1) {
        receive_in_finalize();
        MPI_Barrier(MPI_COMM_WORLD);
        return;
    }
    begin_sends(requests);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Waitall(SIZES, requests, MPI_STATUSES_IGNORE);
}

static void both(void)
{
    MPI_Request requests[SIZES];

    receive_in_finalize();
    begin_sends(requests);
    for (int i = 0; i < SIZES; i++) {
        MPI_Request_free(&requests[i]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    static const struct mt_named_case cases[] = {
        {"one", one},
        {"both", both},
        {"both_threads", both},
        {NULL, NULL},
    };
    bool threads = (argc > 2) && (strcmp(argv[2], "both_threads") == 0);

    mt_begin_at(threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &argc, &argv, true);
    mt_meet_on_device();
    mt_run_case(cases, argc, argv);
    bool receives = (mt_rank() == 1) || (strcmp(argv[2], "one") != 0);
    mt_expect(received == 0, "a message was received too early");
    mt_summary();
    MPI_Finalize();
    if (receives && (received != SIZES)) {
        printf("FAIL rank %d: received %d messages of %d\n", mt_rank(), received, (int)SIZES);
        return 1;
    }
    return mt_status();
}
