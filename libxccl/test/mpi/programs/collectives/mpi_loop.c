/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Allreduces in a loop, for the tests of faults: says after which call an error came, and which.
 *
 *   mpi_loop RUNTIME ROUNDS [return|fatal [unequal|host|counts|absent]]
 * unequal: rank 1 passes host memory where the others pass device memory; host: all ranks pass host
 * memory; counts: so they do, in alltoallv; absent: rank 1 never comes to the last round. Every
 * result is compared.
 * Exit status: 0 all rounds good, 3 an error came and was returned, 4 a wrong result; fatal leaves
 * it to MPI what happens.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <mpi.h>

#include "memory.h"

enum { COUNT = 5000, BYTES = COUNT * sizeof(float) };

static int           rank;
static int           size;
static enum mt_where where = MT_DEVICE;
static bool          counts; /* each has its own for every pair of ranks */

/* Every rank gets what rank 0 sends. */
static int exchange_of(int round, int *send, int *recv)
{
    int n[2][64] = {{0}}, at[64] = {0};

    for (int i = 0; i < size; i++) {
        n[0][i] = (rank == 0);
        n[1][i] = (i == 0);
    }
    *send = round;
    *recv = -1;
    int code = MPI_Alltoallv(send, n[0], at, MPI_INT, recv, n[1], at, MPI_INT, MPI_COMM_WORLD);
    return ((code == MPI_SUCCESS) && (*recv != round)) ? -1 : code;
}

/* One round; MPI's code, or -1 when the result is wrong. */
static int round_of(int round, float *host, void *send, void *recv)
{
    if (counts) {
        return exchange_of(round, send, recv);
    }
    for (int i = 0; i < COUNT; i++) {
        host[i] = (float)(rank + round + i % 7);
    }
    mt_put(send, where, host, BYTES);
    int code = MPI_Allreduce(send, recv, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    if (code != MPI_SUCCESS) {
        return code;
    }
    mt_get(host, recv, where, BYTES);
    for (int i = 0; i < COUNT; i++) {
        if (host[i] != (float)(size * (size - 1) / 2 + size * (round + i % 7))) {
            printf("rank %d: wrong result in round %d at %d: %g\n", rank, round, i,
                   (double)host[i]);
            return -1;
        }
    }
    return MPI_SUCCESS;
}

static int tell(int round, int code)
{
    char text[MPI_MAX_ERROR_STRING];
    int  length;
    int class;

    MPI_Error_class(code, &class);
    MPI_Error_string(code, text, &length);
    printf("rank %d: round %d: class %d: %s\n", rank, round, class, text);
    fflush(stdout);
    return 3;
}

/* Until the job is aborted. */
static int stay_away(void)
{
    MPI_Recv(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return 0;
}

int main(int argc, char **argv)
{
    float *host = malloc(BYTES);
    int    status = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc < 3) {
        fprintf(
            stderr,
            "usage: mpi_loop cuda|rocm|none ROUNDS [return|fatal [unequal|host|counts|absent]]\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if ((argc < 4) || (strcmp(argv[3], "return") == 0)) {
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    }
    mt_memory_open(argv[1], rank);
    counts = (argc > 4) && (strcmp(argv[4], "counts") == 0);
    bool all = counts || ((argc > 4) && (strcmp(argv[4], "host") == 0));
    bool absent = (argc > 4) && (strcmp(argv[4], "absent") == 0);
    bool unequal = (argc > 4) && !absent && (rank == 1);
    where = (all || unequal) ? MT_HOST : MT_DEVICE;
    void *send = mt_alloc(where, BYTES);
    void *recv = mt_alloc(where, BYTES);
    printf("rank %d: pid %d\n", rank, (int)getpid());
    fflush(stdout);
    for (int round = 0; (round < atoi(argv[2])) && (status == 0); round++) {
        bool away = absent && (rank == 1) && (round + 1 == atoi(argv[2]));
        int  code = away ? stay_away() : round_of(round, host, send, recv);
        status = (code == -1) ? 4 : (code != MPI_SUCCESS) ? tell(round, code) : 0;
    }
    if (status == 0) {
        printf("rank %d: all rounds good\n", rank);
    }
    fflush(stdout);
    if (absent) {
        MPI_Abort(MPI_COMM_WORLD, 3); /* MPI_Finalize would wait for it */
    }
    mt_free(where, send);
    mt_free(where, recv);
    free(host);
    MPI_Finalize();
    return status;
}
