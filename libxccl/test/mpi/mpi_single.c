/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Single messages from device memory, one after the other: two ranks.
 * Usage: mpi_single cuda|rocm|none CASE
 */
#include <stdlib.h>
#include <string.h>

#include "support.h"

enum { TAG = 5 };

/* ---- of a middle size ---- */

enum { MIDDLE = 4 << 20, SPARE = 64 };

/* What each round sends differs from what the one before did, and comes soon after it. */
static void send_and_get_back(char *sources[2], char *mine, const char *host, char *got,
                              size_t bytes, int at, int rounds)
{
    for (int i = 0; i < rounds; i++) {
        if (mt_rank() == 0) {
            MPI_Send(sources[i % 2] + at, (int)bytes, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
        }
        MPI_Recv(mine + at, (int)bytes, MPI_BYTE, 1 - mt_rank(), TAG, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        if (mt_rank() == 1) {
            MPI_Send(mine + at, (int)bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
        }
        mt_get(got, mine + at, MT_DEVICE, bytes);
        mt_expect(memcmp(got, host + i % 2 + at, bytes) == 0, "%zu bytes at %d, round %d", bytes,
                  at, i);
    }
}

/* Of a middle size, which several blocks of a kernel may read, amid short ones. */
static void case_middle(void)
{
    enum { ROUNDS = 20 };
    const size_t sizes[] = {65537, 131072, 262147, 1 << 20, MIDDLE, MIDDLE + 1, 300000};
    char        *host = malloc(MIDDLE + SPARE), *got = malloc(MIDDLE + SPARE);
    char        *mine = mt_alloc(MT_DEVICE, MIDDLE + SPARE), *sources[2];

    for (size_t i = 0; i < MIDDLE + SPARE; i++) {
        host[i] = (char)(i * 31 + i / 251);
    }
    for (int i = 0; i < 2; i++) {
        sources[i] = mt_alloc(MT_DEVICE, MIDDLE + SPARE);
        mt_put(sources[i], MT_DEVICE, host + i, MIDDLE + SPARE - 1);
    }
    mt_meet_on_device();
    for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
        send_and_get_back(sources, mine, host, got, sizes[k], 0, ROUNDS);
        send_and_get_back(sources, mine, host, got, sizes[k], 3, ROUNDS);
        send_and_get_back(sources, mine, host, got, 5000, 0, (k % 2 == 1) ? ROUNDS : 0);
    }
    free(host);
    free(got);
    mt_free(MT_DEVICE, mine);
    mt_free(MT_DEVICE, sources[0]);
    mt_free(MT_DEVICE, sources[1]);
}

/* ---- programs that count on MPI to take a few bytes at once ---- */

/* As many as the MPI takes so from host memory. */
#if defined(MPICH_VERSION)
enum { FEW = 1500 };
#else
enum { FEW = 500 };
#endif

static void send_first(void (*send)(const int *, int), const char *what)
{
    enum { REPEATS = 30 };
    static const int nothing[FEW];
    int              other = 1 - mt_rank();

    for (int i = 0; i < REPEATS; i++) {
        int *out = mt_ints_make(MT_DEVICE, FEW, FEW, i);
        int *in = mt_ints_make(MT_DEVICE, FEW, 0, 0);
        MPI_Barrier(MPI_COMM_WORLD);
        send(out, other);
        mt_put(out, MT_DEVICE, nothing, sizeof(nothing)); /* it is over */
        MPI_Recv(in, FEW, MPI_INT, other, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        mt_ints_expect(in, MT_DEVICE, FEW, FEW, other, i, what);
        mt_free(MT_DEVICE, out);
        mt_free(MT_DEVICE, in);
    }
}

static void by_send(const int *out, int to)
{
    MPI_Send(out, FEW, MPI_INT, to, TAG, MPI_COMM_WORLD);
}

static void by_isend(const int *out, int to)
{
    MPI_Request request;
    int         over = 0;

    MPI_Isend(out, FEW, MPI_INT, to, TAG, MPI_COMM_WORLD, &request);
    while (!over) {
        MPI_Test(&request, &over, MPI_STATUS_IGNORE);
    }
}

static void by_start(const int *out, int to)
{
    MPI_Request request;

    MPI_Send_init(out, FEW, MPI_INT, to, TAG, MPI_COMM_WORLD, &request);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
}

/* A synchronous send is over only when its receive has begun. */
static void case_unready(void)
{
    enum { NS = 30 * 1000 * 1000 };
    MPI_Request request;
    int         over = 0, other = 1 - mt_rank();

    mt_meet_on_device();
    send_first(by_send, "MPI_Send before its receive");
    send_first(by_isend, "MPI_Isend and MPI_Test before its receive");
    send_first(by_start, "a persistent send before its receive");
    int *out = mt_ints_make(MT_DEVICE, FEW, FEW, 1);
    int *in = mt_ints_make(MT_DEVICE, FEW, 0, 0);
    MPI_Issend(out, FEW, MPI_INT, other, TAG, MPI_COMM_WORLD, &request);
    for (double begun = MPI_Wtime(); !over && (MPI_Wtime() - begun < 1e-9 * NS);) {
        MPI_Test(&request, &over, MPI_STATUS_IGNORE);
    }
    mt_expect(!over, "MPI_Issend is over before its receive");
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Recv(in, FEW, MPI_INT, other, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    mt_ints_expect(in, MT_DEVICE, FEW, FEW, other, 1, "MPI_Issend");
    mt_free(MT_DEVICE, out);
    mt_free(MT_DEVICE, in);
}

int main(int argc, char **argv)
{
    static const struct mt_named_case cases[] = {
        {"unready", case_unready},
        {"middle", case_middle},
        {NULL, NULL},
    };

    mt_begin(&argc, &argv, true);
    return mt_run_to_end(cases, argc, argv);
}
