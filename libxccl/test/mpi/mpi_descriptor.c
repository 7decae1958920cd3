/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A receive in whose memory a descriptor appears piece by piece, as a slow MPI library would write
 * it: the message is not taken before the last byte is there, and then it is. Two ranks. Rank 1
 * gets a true descriptor by asking MPI itself for it, and writes it into the buffer of a receive
 * that MPI has nothing for yet.
 * Usage: mpi_descriptor cuda|rocm
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support.h"

enum { COUNT = 20000, DESCRIPTOR = 80, TAG = 5, LATER = 6, WORD = 7 };
/* Naps between two looks at a receive are shorter. */
enum { LOOKS_US = 20 * 1000 };

/* How much of it is there when it is looked at. */
static const int pieces[] = {8, 36, 72, 79, DESCRIPTOR};
enum { PIECES = sizeof(pieces) / sizeof(pieces[0]) };

static void tell(int rank)
{
    int word = 1;

    PMPI_Send(&word, 1, MPI_INT, rank, WORD, MPI_COMM_WORLD);
}

static void hear(int rank)
{
    int word;

    PMPI_Recv(&word, 1, MPI_INT, rank, WORD, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void send(void)
{
    int        *in = mt_ints_make(MT_DEVICE, COUNT, COUNT, 1);
    char        raw[DESCRIPTOR];
    MPI_Request request;

    MPI_Isend(in, COUNT, MPI_INT, 1, TAG, MPI_COMM_WORLD, &request);
    for (int i = 0; i < PIECES - 1; i++) {
        int over = 0;
        hear(1);
        MPI_Test(&request, &over, MPI_STATUS_IGNORE);
        mt_expect(!over, "taken with %d of %d bytes of its descriptor", pieces[i], DESCRIPTOR);
        tell(1);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    /* The receive that it came to is MPI's still. */
    PMPI_Recv(raw, DESCRIPTOR, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    PMPI_Send(raw, DESCRIPTOR, MPI_BYTE, 1, LATER, MPI_COMM_WORLD);
    mt_free(MT_DEVICE, in);
}

static void receive(void)
{
    int        *out = mt_ints_make(MT_HOST, COUNT, 0, 0), wrong = 0;
    char        raw[DESCRIPTOR];
    MPI_Status  status;
    MPI_Request request;

    PMPI_Recv(raw, DESCRIPTOR, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &status);
    for (int i = 0; i < DESCRIPTOR; i++) {
        ((char *)out)[i] = (char)~raw[i];
    }
    MPI_Irecv(out, COUNT, MPI_INT, 0, LATER, MPI_COMM_WORLD, &request);
    for (int i = 0; i < PIECES; i++) {
        memcpy(out, raw, (size_t)pieces[i]);
        if (i < PIECES - 1) {
            usleep(LOOKS_US);
            tell(0);
            hear(0);
        }
    }
    PMPI_Send(raw, DESCRIPTOR, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
    MPI_Wait(&request, &status);
    mt_expect_status(&status, 0, LATER, COUNT, "the receive");
    for (int i = DESCRIPTOR / (int)sizeof(int); i < COUNT; i++) {
        wrong += (out[i] != mt_value(0, 1, i));
    }
    mt_expect(wrong == 0, "%d of %d integers are wrong", wrong, COUNT);
    mt_free(MT_HOST, out);
}

int main(int argc, char **argv)
{
    mt_begin(&argc, &argv, true);
    mt_meet_on_device();
    if (mt_rank() == 0) {
        send();
    } else {
        receive();
    }
    mt_summary();
    MPI_Finalize();
    return mt_status();
}
