/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One collective by which ranks agree, alone in a job, so that a tool can count its messages:
 * agreement gather|combine|id BYTES (agreement.py)
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    MPI_Request request = MPI_REQUEST_NULL;
    int         size = 0, bytes = (argc == 3) ? atoi(argv[2]) : 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (bytes <= 0) {
        fprintf(stderr, "usage: agreement gather|combine|id BYTES\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    char *mine = calloc(1, (size_t)bytes), *all = calloc((size_t)size, (size_t)bytes);
    if ((mine == NULL) || (all == NULL)) {
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (strcmp(argv[1], "gather") == 0) {
        MPI_Iallgather(mine, bytes, MPI_BYTE, all, bytes, MPI_BYTE, MPI_COMM_WORLD, &request);
    } else if (strcmp(argv[1], "combine") == 0) {
        MPI_Iallreduce(mine, all, bytes / (int)sizeof(int64_t), MPI_INT64_T, MPI_BOR,
                       MPI_COMM_WORLD, &request);
    } else {
        MPI_Ibcast(mine, bytes, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    free(mine);
    free(all);
    MPI_Finalize();
    return 0;
}
