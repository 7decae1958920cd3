/* SPDX-License-Identifier: BSD-3-Clause */
/* A process that starts one more by MPI_Comm_spawn, which is alone in its MPI_COMM_WORLD by right.
 */
#include <stdio.h>

#include <mpi.h>

int main(int argc, char **argv)
{
    MPI_Comm parent, child;
    int      size, one = 1, sum = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (parent == MPI_COMM_NULL) {
        MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &child,
                       MPI_ERRCODES_IGNORE);
        MPI_Bcast(&one, 1, MPI_INT, MPI_ROOT, child);
        MPI_Comm_disconnect(&child);
        printf("spawned one\n");
    } else {
        MPI_Bcast(&sum, 1, MPI_INT, 0, parent);
        MPI_Comm_disconnect(&parent);
        printf("child: world of %d, got %d\n", size, sum);
    }
    MPI_Finalize();
    return 0;
}
