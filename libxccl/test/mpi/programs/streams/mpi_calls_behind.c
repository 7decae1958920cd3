/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The program gives the default stream a copy into a buffer, and passes that buffer to a call: what
 * the call reads is what the stream has written, as with every copy of the runtime's own.
 * Usage: mpi_calls_behind cuda|rocm CASE [PATH]
 * PATH: what xccl says of the call, or of the message.
 */
#include <string.h>
#include <unistd.h>

#include "streams_device.h"
#include "support.h"

enum { COUNT = 20000, SHORT = 1500, TAG = 3 };
/* So long the stream is behind, in ms_delay()'s. */
enum { DELAYS = 30 };

static const char *path;
static int        *fresh; /* pinned */

/* Memory of which xccl knows nothing, with this rank's values once the stream has come so far. */
static int *written_later(int count)
{
    int *old = mt_ints_make(MT_HOST, COUNT, 0, 0), *data = mt_alloc(MT_DEVICE, sizeof(int) * COUNT);

    mt_put(data, MT_DEVICE, old, sizeof(int) * COUNT);
    ms_sync(NULL);
    for (int i = 0; i < DELAYS; i++) {
        ms_delay(NULL);
    }
    ms_copy(NULL, data, fresh, sizeof(int) * (size_t)count);
    mt_free(MT_HOST, old);
    return data;
}

static int peer(void)
{
    return (mt_rank() + 1) % mt_size();
}

/* Every second integer of so many: whole bytes side by side need no kernel. */
static MPI_Datatype seconds(int count)
{
    MPI_Datatype type;

    MPI_Type_vector(count / 2, 1, 2, MPI_INT, &type);
    MPI_Type_commit(&type);
    return type;
}

/* Short calls in memory that is known: a kernel is there when the next one comes. */
static int *known;

static void call_before(void)
{
    MPI_Datatype type = seconds(SHORT);

    for (int i = 0; i < 20; i++) {
        int at = 0;
        MPI_Pack(known, 1, type, known + SHORT, SHORT * (int)sizeof(int), &at, MPI_COMM_WORLD);
    }
    MPI_Type_free(&type);
}

static void replace(int count)
{
    int *data = written_later(count);

    call_before();
    MPI_Sendrecv_replace(data, count, MPI_INT, peer(), TAG, peer(), TAG, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
    mt_expect_message_path(path, "MPI_Sendrecv_replace");
    ms_sync(NULL);
    mt_ints_expect(data, MT_DEVICE, COUNT, count, peer(), 1, "MPI_Sendrecv_replace");
    mt_free(MT_DEVICE, data);
}

/* Of two ranks on a ring both blocks are the other one's. */
static void edges(int count)
{
    int      all = mt_size(), periodic = 1, *host = mt_ints_make(MT_HOST, COUNT, 0, 0), wrong = 0;
    int     *in, *out = mt_ints_make(MT_DEVICE, COUNT, 0, 0);
    MPI_Comm ring;

    MPI_Cart_create(MPI_COMM_WORLD, 1, &all, &periodic, 0, &ring);
    in = written_later(count);
    MPI_Neighbor_alltoall(in, count / 2, MPI_INT, out, count / 2, MPI_INT, ring);
    mt_expect_path(path, "MPI_Neighbor_alltoall");
    mt_get(host, out, MT_DEVICE, sizeof(int) * COUNT);
    for (int i = 0; i < count; i++) {
        wrong += (host[i] != mt_value(peer(), 1, (i + count / 2) % count));
    }
    mt_expect(wrong == 0, "MPI_Neighbor_alltoall of %d: %d are wrong", count, wrong);
    ms_sync(NULL);
    mt_free(MT_HOST, host);
    mt_free(MT_DEVICE, in);
    mt_free(MT_DEVICE, out);
    MPI_Comm_free(&ring);
}

/* So many of what was written, each `from`-th, at each `of`-th place; all else is untouched. */
static void expect(const int *out, int number, int of, int from, const char *what)
{
    int *host = mt_ints_make(MT_HOST, COUNT, 0, 0), wrong = 0;

    mt_get(host, out, MT_DEVICE, sizeof(int) * COUNT);
    for (int i = 0; i < COUNT; i++) {
        bool written = (i % of == 0) && (i / of < number);
        wrong += host[i] != (written ? mt_value(mt_rank(), 1, i / of * from) : (int)MT_UNTOUCHED);
    }
    mt_expect(wrong == 0, "%s of %d: %d are wrong", what, number, wrong);
    mt_free(MT_HOST, host);
}

static void pack(int count)
{
    int          at = 0, *out = mt_ints_make(MT_DEVICE, COUNT, 0, 0), *in = written_later(count);
    MPI_Datatype type = seconds(count);

    call_before();
    MPI_Pack(in, 1, type, out, COUNT * (int)sizeof(int), &at, MPI_COMM_WORLD);
    mt_expect_message_path(path, "MPI_Pack");
    expect(out, count / 2, 1, 2, "MPI_Pack");
    ms_sync(NULL);
    MPI_Type_free(&type);
    mt_free(MT_DEVICE, in);
    mt_free(MT_DEVICE, out);
}

static void unpack(int count)
{
    int          at = 0, *out = mt_ints_make(MT_DEVICE, COUNT, 0, 0), *in = written_later(count);
    MPI_Datatype type = seconds(count);

    call_before();
    MPI_Unpack(in, count * (int)sizeof(int), &at, out, 1, type, MPI_COMM_WORLD);
    mt_expect_message_path(path, "MPI_Unpack");
    expect(out, count / 2, 2, 1, "MPI_Unpack");
    ms_sync(NULL);
    MPI_Type_free(&type);
    mt_free(MT_DEVICE, in);
    mt_free(MT_DEVICE, out);
}

/* The largest of each: all values are larger than what was there. */
static void reduce(int count)
{
    int *inout = mt_ints_make(MT_DEVICE, COUNT, 0, 0), *in = written_later(count);

    MPI_Reduce_local(in, inout, count, MPI_INT, MPI_MAX);
    mt_expect_message_path(path, "MPI_Reduce_local");
    mt_ints_expect(inout, MT_DEVICE, COUNT, count, mt_rank(), 1, "MPI_Reduce_local");
    ms_sync(NULL);
    mt_free(MT_DEVICE, in);
    mt_free(MT_DEVICE, inout);
}

/* Long and short, each twice: the kernel that lingers on the device may have been there before. */
static void each(void (*call)(int count))
{
    const int counts[] = {COUNT, SHORT};

    for (int i = 0; i < 4; i++) {
        call(counts[i % 2]);
    }
}

static void case_replace(void)
{
    mt_meet_on_device();
    each(replace);
}

static void case_edges(void)
{
    each(edges);
}

static void case_pack(void)
{
    each(pack);
}

static void case_unpack(void)
{
    each(unpack);
}

/* Kernels are loaded by a thread. */
static void case_reduce(void)
{
    enum { TRIES = 2000 };

    for (int i = 0; (path != NULL) && (i < TRIES) && (strcmp(mt_last_message_path(), path) != 0);
         i++) {
        MPI_Reduce_local(known, known + SHORT, 1, MPI_INT, MPI_MAX);
        usleep(1000);
    }
    each(reduce);
}

int main(int argc, char **argv)
{
    static const struct mt_named_case cases[] = {{"replace", case_replace}, {"edges", case_edges},
                                                 {"pack", case_pack},       {"unpack", case_unpack},
                                                 {"reduce", case_reduce},   {NULL, NULL}};

    mt_begin(&argc, &argv, true);
    ms_open();
    path = (argc > 3) ? argv[3] : NULL;
    int *values = mt_ints_make(MT_HOST, COUNT, COUNT, 1);
    known = mt_ints_make(MT_DEVICE, 2 * SHORT, 0, 0);
    fresh = ms_pinned(sizeof(int) * COUNT);
    memcpy(fresh, values, sizeof(int) * COUNT);
    mt_free(MT_HOST, values);
    return mt_run_to_end(cases, argc, argv);
}
