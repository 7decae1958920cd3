/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Reduce_local on memory of a device gives what it gives on the host, to the last bit, and
 * writes no other byte.
 * Usage: mpi_reduce_local cuda|rocm [PATH [apart]]
 * PATH: what xccl_mpi_last_message_path() is to say where a kernel can do it. apart: what is read
 * is on another device, where no kernel can.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support.h"

enum { ROOM = 1 << 18, GUARD = 64 };

static const char *path;
static char       *in, *inout, *device_in, *device_inout;

static void fill(void)
{
    for (int i = 0; i < ROOM; i++) {
        in[i] = (char)((i % 4 == 3) ? 63 : i * 7); /* of floats and doubles no NaN */
        inout[i] = (char)((i % 4 == 3) ? 63 : i * 11 + 3);
    }
    mt_put(device_in, MT_DEVICE, in, ROOM);
    mt_put(device_inout, MT_DEVICE, inout, ROOM);
}

static void compare(const char *name, MPI_Datatype type, MPI_Op op, int count, size_t at,
                    const char *wanted)
{
    char *found = malloc(ROOM);

    fill();
    MPI_Reduce_local(in + at, inout + at, count, type, op);
    MPI_Reduce_local(device_in + at, device_inout + at, count, type, op);
    mt_expect_message_path(wanted, name);
    mt_get(found, device_inout, MT_DEVICE, ROOM);
    mt_expect(memcmp(found, inout, ROOM) == 0, "%s, %d from %zu on", name, count, at);
    mt_get(found, device_in, MT_DEVICE, ROOM);
    mt_expect(memcmp(found, in, ROOM) == 0, "%s: what is read is written", name);
    free(found);
}

/* Kernels are loaded by a thread. */
static void await_kernels(void)
{
    enum { TRIES = 2000 };

    fill();
    for (int i = 0; (path != NULL) && (i < TRIES) && (strcmp(mt_last_message_path(), path) != 0);
         i++) {
        MPI_Reduce_local(device_in, device_inout, 1, MPI_FLOAT, MPI_SUM);
        usleep(1000);
    }
}

static void user_sum(void *a, void *b, int *count, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *count; i++) {
        ((int *)b)[i] += ((int *)a)[i];
    }
}

int main(int argc, char **argv)
{
    MPI_Op op;

    mt_begin(&argc, &argv, true);
    path = (argc > 2) ? argv[2] : NULL;
    in = malloc(ROOM);
    inout = malloc(ROOM);
    if (argc > 3) {
        mt_memory_open(mt_runtime(), 1);
    }
    device_in = mt_alloc(MT_DEVICE, ROOM);
    mt_memory_open(mt_runtime(), 0);
    device_inout = mt_alloc(MT_DEVICE, ROOM);
    await_kernels();
    for (int i = 0; i < 3; i++) {
        int count = (i == 0) ? 1 : (i == 1) ? 1001 : 20000;
        compare("sums of floats", MPI_FLOAT, MPI_SUM, count, GUARD, path);
        compare("products of doubles", MPI_DOUBLE, MPI_PROD, count, GUARD + 8, path);
        compare("largest ints", MPI_INT, MPI_MAX, count, GUARD + 4, path);
        compare("bits", MPI_UNSIGNED_SHORT, MPI_BXOR, count, GUARD + 2, path);
        compare("places", MPI_2INT, MPI_MINLOC, count, GUARD + 8, path);
        compare("sums of bytes", MPI_SIGNED_CHAR, MPI_SUM, count, GUARD + 1, NULL);
    }
    MPI_Op_create(user_sum, 1, &op);
    compare("an operation of the program's", MPI_INT, op, 1000, GUARD, "mpi-staged");
    MPI_Op_free(&op);
    mt_free(MT_DEVICE, device_in);
    mt_free(MT_DEVICE, device_inout);
    free(in);
    free(inout);
    mt_summary();
    MPI_Finalize();
    return mt_status();
}
