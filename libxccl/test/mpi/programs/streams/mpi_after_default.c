/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The program gives the default stream a copy into a buffer, and then receives into that buffer:
 * MPI's memory is the stream's first, as with every copy of the runtime's own, and the message's
 * then. Two ranks. Usage: mpi_after_default cuda|rocm PATH
 * PATH: what xccl_mpi_last_message_path() is to say of the messages.
 */
#include <string.h>

#include "streams_device.h"
#include "support.h"

enum { COUNT = 20000, SHORT = 2000, TAG = 3 };
/* So long the stream is behind, in ms_delay()'s: long enough for a message to overtake it. */
enum { DELAYS = 30 };

static void receive(int count, int *old)
{
    int       *out = mt_alloc(MT_DEVICE, sizeof(int) * COUNT); /* of which xccl knows nothing */
    MPI_Status status;

    for (int i = 0; i < DELAYS; i++) {
        ms_delay(NULL);
    }
    ms_copy(NULL, out, old, sizeof(int) * COUNT);
    MPI_Recv(out, count, MPI_INT, 0, TAG, MPI_COMM_WORLD, &status);
    ms_sync(NULL);
    mt_expect_status(&status, 0, TAG, count, "a receive");
    mt_ints_expect(out, MT_DEVICE, COUNT, count, 0, count, "behind the stream's copy");
    mt_free(MT_DEVICE, out);
}

static void send(int count, const char *path)
{
    int *in = mt_ints_make(MT_DEVICE, COUNT, COUNT, count);

    MPI_Send(in, count, MPI_INT, 1, TAG, MPI_COMM_WORLD);
    mt_expect_message_path(path, "a send");
    mt_free(MT_DEVICE, in);
}

int main(int argc, char **argv)
{
    static const int counts[] = {COUNT, COUNT - 1, COUNT - 2, SHORT};

    mt_begin(&argc, &argv, true);
    ms_open();
    int *old = ms_pinned(sizeof(int) * COUNT);
    for (int i = 0; i < COUNT; i++) {
        old[i] = MT_UNTOUCHED;
    }
    mt_meet_on_device();
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        if (mt_rank() == 1) {
            receive(counts[i], old);
        } else {
            /* The first finds out whether memory can be mapped. */
            send(counts[i], (i > 0) && (argc > 2) ? argv[2] : NULL);
        }
    }
    ms_pinned_free(old);
    mt_summary();
    MPI_Finalize();
    return mt_status();
}
