/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread of rank 1 waits for a message by a probe. Meanwhile another one comes to use a device,
 * so that the message is offered; the probe has to say how long the message is. Usage:
 * mpi_late_probe cuda|rocm probe|mprobe, on two ranks
 */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "support.h"

enum { COUNT = 1 << 16, TAG = 3, NAP_US = 200000 };

static MPI_Comm twin;

/* One call on device memory, which lets the process look for offers. */
static void exchange_one(void)
{
    int *one = mt_ints_make(MT_DEVICE, 2, 1, 1), peer = 1 - mt_rank();

    MPI_Sendrecv(one, 1, MPI_INT, peer, TAG, one + 1, 1, MPI_INT, peer, TAG, twin,
                 MPI_STATUS_IGNORE);
    mt_free(MT_DEVICE, one);
}

static void *open_late(void *unused)
{
    usleep(NAP_US);
    mt_memory_open(mt_runtime(), mt_rank());
    exchange_one();
    return unused;
}

static void send_it(void)
{
    mt_memory_open(mt_runtime(), mt_rank());
    int *message = mt_ints_make(MT_DEVICE, COUNT, COUNT, 1);
    exchange_one();
    usleep(NAP_US / 2);
    MPI_Send(message, COUNT, MPI_INT, 1, TAG, MPI_COMM_WORLD);
    mt_free(MT_DEVICE, message);
}

static void probe_it(bool matched)
{
    pthread_t   thread;
    MPI_Message found;
    MPI_Status  status;
    int         count = -1;

    pthread_create(&thread, NULL, open_late, NULL);
    if (matched) {
        MPI_Mprobe(0, TAG, MPI_COMM_WORLD, &found, &status);
    } else {
        MPI_Probe(0, TAG, MPI_COMM_WORLD, &status);
    }
    MPI_Get_count(&status, MPI_INT, &count);
    mt_expect(count == COUNT, "the probe says %d, not %d", count, (int)COUNT);
    pthread_join(thread, NULL);
    mt_memory_enter();
    int *message = mt_ints_make(MT_DEVICE, COUNT, 0, 0);
    if (matched) {
        MPI_Mrecv(message, COUNT, MPI_INT, &found, &status);
    } else {
        MPI_Recv(message, COUNT, MPI_INT, 0, TAG, MPI_COMM_WORLD, &status);
    }
    mt_ints_expect(message, MT_DEVICE, COUNT, COUNT, 0, 1, "the message");
    mt_free(MT_DEVICE, message);
}

static void run(bool matched)
{
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    if (mt_rank() == 0) {
        send_it();
    } else {
        probe_it(matched);
    }
    MPI_Comm_free(&twin);
}

static void probe(void)
{
    run(false);
}

static void mprobe(void)
{
    run(true);
}

int main(int argc, char **argv)
{
    static const struct mt_named_case cases[] = {
        {"probe", probe}, {"mprobe", mprobe}, {NULL, NULL}};

    mt_begin(&argc, &argv, false);
    return mt_run_to_end(cases, argc, argv);
}
