/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread of rank 1 waits for a message by a probe. Meanwhile another one comes to use a device,
 * so that the message is offered; the probe has to say how long the message is. Or, isendrecv: what
 * was probed is received by MPI_Isendrecv, whose status has to say whose message it was. Usage:
 * mpi_late_probe cuda|rocm probe|mprobe|isendrecv, on two ranks
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
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

/* It sends more than MPI takes at once: the request is not over before the other rank has it. */
static void isendrecv(void)
{
#if MPI_VERSION >= 4
    enum { LATER = TAG + 1 };
    int         peer = 1 - mt_rank(), over = 0;
    MPI_Request first, both;
    MPI_Status  status;

    mt_memory_open(mt_runtime(), mt_rank());
    int *in = mt_ints_make(MT_DEVICE, COUNT, COUNT, 1), *out = mt_ints_make(MT_DEVICE, COUNT, 0, 0);
    int *large = mt_ints_make(MT_HOST, COUNT, COUNT, 2), *last = mt_ints_make(MT_HOST, COUNT, 0, 0);
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    exchange_one();
    MPI_Isend(in, COUNT, MPI_INT, peer, TAG, MPI_COMM_WORLD, &first);
    MPI_Probe(MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &status);
    MPI_Isendrecv(large, COUNT, MPI_INT, peer, LATER, out, COUNT, MPI_INT, MPI_ANY_SOURCE,
                  MPI_ANY_TAG, MPI_COMM_WORLD, &both);
    usleep(NAP_US);
    MPI_Test(&both, &over, &status);
    mt_expect(!over, "what nobody receives has been sent");
    MPI_Barrier(twin);
    MPI_Recv(last, COUNT, MPI_INT, peer, LATER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    memset(&status, 0, sizeof(status));
    MPI_Wait(&both, &status);
    mt_expect_status(&status, peer, TAG, COUNT, "MPI_Isendrecv");
    MPI_Wait(&first, MPI_STATUS_IGNORE);
    mt_ints_expect(out, MT_DEVICE, COUNT, COUNT, peer, 1, "the message that was probed");
    mt_ints_expect(last, MT_HOST, COUNT, COUNT, peer, 2, "what it sends");
    MPI_Comm_free(&twin);
    mt_free(MT_DEVICE, in);
    mt_free(MT_DEVICE, out);
    mt_free(MT_HOST, large);
    mt_free(MT_HOST, last);
#endif
}

int main(int argc, char **argv)
{
    static const struct mt_named_case cases[] = {
        {"probe", probe}, {"mprobe", mprobe}, {"isendrecv", isendrecv}, {NULL, NULL}};

    mt_begin(&argc, &argv, false);
    return mt_run_to_end(cases, argc, argv);
}
