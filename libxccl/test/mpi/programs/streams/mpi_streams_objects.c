/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What enqueued calls hold, and where it lies.
 *
 *   mpi_streams_objects RUNTIME apart
 * Blocks that begin behind the address of their buffer, by so much that the addresses which MPI is
 * given for both buffers could be equal (with XCCL_TUNE=*:*:*:*:mpi).
 *
 *   mpi_streams_objects RUNTIME kept
 * Calls that are refused keep no memory. MPI is without threads.
 *
 *   mpi_streams_objects RUNTIME per-thread
 * The stream that each thread has for itself is refused.
 */
#include <malloc.h>
#include <stdint.h>

#include <xccl/mpix.h>

#include "streams_device.h"
#include "streams_object.h"
#include "support.h"

enum { COUNT = 16, STEP = 4, MOST = 64, SALT = 5 };

static void gather_apart(const struct ms_stream_comm *on, int at, bool all)
{
    int         *in = mt_ints_make(MT_DEVICE, COUNT, COUNT, at), length = COUNT;
    int          room = at + COUNT * mt_size();
    int         *out = mt_ints_make(MT_DEVICE, room, 0, 0);
    MPI_Datatype type;

    MPI_Type_indexed(1, &length, &at, MPI_INT, &type);
    MPI_Type_commit(&type);
    if (all) {
        MPIX_Allgather_enqueue(in, COUNT, MPI_INT, out, 1, type, on->comm);
    } else {
        MPIX_Gather_enqueue(in, COUNT, MPI_INT, out, 1, type, 0, on->comm);
    }
    ms_sync(on->stream);
    for (int r = 0; (r < mt_size()) && (all || (mt_rank() == 0)); r++) {
        mt_ints_expect(out + at + r * COUNT, MT_DEVICE, COUNT, COUNT, r, at,
                       all ? "allgather" : "gather");
    }
    MPI_Type_free(&type);
    mt_free(MT_DEVICE, in);
    mt_free(MT_DEVICE, out);
}

static void case_apart(void)
{
    struct ms_stream_comm on = ms_stream_comm_make();

    for (int at = 0; at <= MOST; at += STEP) {
        gather_apart(&on, at, true);
        gather_apart(&on, at, false);
    }
    ms_stream_comm_free(&on);
}

static void case_kept(void)
{
    enum { CALLS = 4000, LEAST = 256 /* bytes of a call, if it were kept */ };
    struct ms_stream_comm on = ms_stream_comm_make();
    int                  *in = mt_ints_make(MT_DEVICE, COUNT, COUNT, SALT);
    size_t                before = 0;

    MPI_Comm_set_errhandler(on.comm, MPI_ERRORS_RETURN);
    for (int i = 0; i < 2 * CALLS; i++) {
        if (i == CALLS) {
            before = mallinfo2().uordblks;
        }
        mt_expect(MPIX_Send_enqueue(in, COUNT, MPI_INT, 0, 0, on.comm) != MPI_SUCCESS,
                  "a message without threads");
    }
    size_t after = mallinfo2().uordblks;
    mt_expect(after < before + (size_t)CALLS * LEAST, "%d calls keep %zu bytes", CALLS,
              after - before);
    mt_free(MT_DEVICE, in);
    ms_stream_comm_free(&on);
}

static void case_per_thread(void)
{
    const uintptr_t per_thread = 2;
    MPIX_Stream     object = MPIX_STREAM_NULL;
    MPI_Info        info;

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Info_create(&info);
    MPI_Info_set(info, "type", (mt_runtime()[0] == 'c') ? "cudaStream_t" : "hipStream_t");
    MPIX_Info_set_hex(info, "value", &per_thread, sizeof(per_thread));
    mt_expect(MPIX_Stream_create(info, &object) != MPI_SUCCESS, "the stream of each thread");
    mt_expect(object == MPIX_STREAM_NULL, "an object of the stream of each thread");
    MPI_Info_free(&info);
}

int main(int argc, char **argv)
{
    static const struct mt_named_case cases[] = {
        {"apart", case_apart}, {"kept", case_kept}, {"per-thread", case_per_thread}, {NULL, NULL}};
    bool threads = (argc > 2) && (argv[2][0] == 'a');

    mt_begin_at(threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &argc, &argv, true);
    ms_open();
    return mt_run_to_end(cases, argc, argv);
}
