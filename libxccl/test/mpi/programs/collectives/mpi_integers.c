/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Integers of all sizes, MPI_CHAR too, over their whole range: sums and products that leave it, and
 * comparisons at its ends, must come out as this MPI makes them on host memory, whatever path they
 * take. An MPI that refuses a pair must refuse it on device memory too.
 * Usage: mpi_integers cuda|rocm
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"

enum { COUNT = 777, MOST_BYTES = COUNT * 8 };

static const struct {
    const char  *name;
    MPI_Datatype type;
} types[] = {
    {"MPI_CHAR", MPI_CHAR},
    {"MPI_SIGNED_CHAR", MPI_SIGNED_CHAR},
    {"MPI_UNSIGNED_CHAR", MPI_UNSIGNED_CHAR},
    {"MPI_SHORT", MPI_SHORT},
    {"MPI_INT", MPI_INT},
    {"MPI_UNSIGNED", MPI_UNSIGNED},
    {"MPI_LONG", MPI_LONG},
    {"MPI_UNSIGNED_LONG", MPI_UNSIGNED_LONG},
    {"MPI_INT8_T", MPI_INT8_T},
    {"MPI_UINT8_T", MPI_UINT8_T},
    {"MPI_UINT32_T", MPI_UINT32_T},
    {"MPI_UINT64_T", MPI_UINT64_T},
    {"MPI_AINT", MPI_AINT},
    {"MPI_COUNT", MPI_COUNT},
};

static const struct {
    const char *name;
    MPI_Op      op;
} ops[] = {
    {"MPI_SUM", MPI_SUM}, {"MPI_PROD", MPI_PROD}, {"MPI_MAX", MPI_MAX}, {"MPI_MIN", MPI_MIN}};

static int rank, checks, failures;

/* Any byte may be any value. */
static void fill(unsigned char *buf, unsigned seed)
{
    for (int i = 0; i < MOST_BYTES; i++) {
        seed = seed * 1664525u + 1013904223u;
        buf[i] = (unsigned char)(seed >> 24);
    }
}

static void compare(size_t t, size_t o, void *send, void *recv)
{
    static unsigned char host[MOST_BYTES], expected[MOST_BYTES], found[MOST_BYTES];
    int                  size;

    MPI_Type_size(types[t].type, &size);
    fill(host, (unsigned)(1000 * rank + 10 * (int)t + (int)o));
    memset(expected, 0, sizeof(expected));
    mt_put(send, MT_DEVICE, host, MOST_BYTES);
    mt_put(recv, MT_DEVICE, expected, MOST_BYTES);
    int reference = MPI_Allreduce(host, expected, COUNT, types[t].type, ops[o].op, MPI_COMM_WORLD);
    int code = MPI_Allreduce(send, recv, COUNT, types[t].type, ops[o].op, MPI_COMM_WORLD);
    mt_get(found, recv, MT_DEVICE, MOST_BYTES);
    checks++;
    if (((code == MPI_SUCCESS) != (reference == MPI_SUCCESS)) ||
        ((code == MPI_SUCCESS) && (memcmp(found, expected, (size_t)(COUNT * size)) != 0))) {
        failures++;
        printf("FAIL rank %d: %s with %s\n", rank, types[t].name, ops[o].name);
    }
}

int main(int argc, char **argv)
{
    int sums[2], all[2];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    mt_memory_open((argc > 1) ? argv[1] : "cuda", rank);
    void *send = mt_alloc(MT_DEVICE, MOST_BYTES), *recv = mt_alloc(MT_DEVICE, MOST_BYTES);
    for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
        for (size_t o = 0; o < sizeof(ops) / sizeof(ops[0]); o++) {
            compare(t, o, send, recv);
        }
    }
    sums[0] = checks;
    sums[1] = failures;
    MPI_Reduce(sums, all, 2, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%d checks, %d failures\n", all[0], all[1]);
    }
    MPI_Finalize();
    return (failures == 0) ? 0 : 1;
}
