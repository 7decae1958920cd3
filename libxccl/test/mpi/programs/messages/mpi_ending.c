/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages that were sent before MPI_Finalize, and are received inside it by a delete callback of
 * MPI_COMM_SELF: by one rank while the other still waits for its send, or by both, which have freed
 * their requests. And one that is sent there. Usage: mpi_ending cuda|rocm CASE, on two ranks
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

/* Rank 1 has not come to MPI_Finalize: it waits for what rank 0 sends in there. */
static int send_late(MPI_Comm comm, int key, void *value, void *extra)
{
    int word = 7;

    (void)comm;
    (void)key;
    (void)value;
    (void)extra;
    return MPI_Send(&word, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
}

/* So that a vendor's communicator is there, if one is to be. */
static void late(void)
{
    int *sums = mt_ints_make(MT_DEVICE, LONG, 0, 0), key;

    for (int i = 0; i < SIZES; i++) {
        MPI_Allreduce(MPI_IN_PLACE, sums, LONG, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }
    if (mt_rank() == 0) {
        MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, send_late, &key, NULL);
        MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
        MPI_Comm_free_keyval(&key);
    }
}

/* False: it took as long as the end of a vendor's communicator may. */
static bool comes_soon(void)
{
    enum { SOON = 8 }; /* seconds */
    double begun = MPI_Wtime();
    int    word = 0;

    MPI_Recv(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return (word == 7) && (MPI_Wtime() - begun < SOON);
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
        {"one", one}, {"both", both}, {"both_threads", both}, {"late", late}, {NULL, NULL},
    };
    bool threads = (argc > 2) && (strcmp(argv[2], "both_threads") == 0);

    mt_begin_at(threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &argc, &argv, true);
    mt_meet_on_device();
    mt_run_case(cases, argc, argv);
    bool receives =
        (strcmp(argv[2], "late") != 0) && ((mt_rank() == 1) || (strcmp(argv[2], "one") != 0));
    mt_expect(received == 0, "a message was received too early");
    mt_summary();
    bool soon = (strcmp(argv[2], "late") != 0) || (mt_rank() == 0) || comes_soon();
    MPI_Finalize();
    if (!soon) {
        printf("FAIL rank %d: what another rank sends in MPI_Finalize came late\n", mt_rank());
        return 1;
    }
    if (receives && (received != SIZES)) {
        printf("FAIL rank %d: received %d messages of %d\n", mt_rank(), received, (int)SIZES);
        return 1;
    }
    return mt_status();
}
