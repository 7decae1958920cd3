/* SPDX-License-Identifier: BSD-3-Clause */
/* An MPI program without devices: prints what of the vendors' is loaded after a few collectives. */
#include <stdio.h>
#include <string.h>

#include <mpi.h>

static int vendor_files(void)
{
    static const char *const vendors[] = {"libcuda", "libnccl", "libamdhip64", "librccl",
                                          "/dev/nvidia"};
    char                     line[4096];
    int                      found = 0;
    FILE                    *maps = fopen("/proc/self/maps", "r");

    while ((maps != NULL) && (fgets(line, sizeof(line), maps) != NULL)) {
        for (size_t i = 0; i < sizeof(vendors) / sizeof(vendors[0]); i++) {
            if (strstr(line, vendors[i]) != NULL) {
                printf("loaded: %s", line);
                found++;
            }
        }
    }
    if (maps != NULL) {
        fclose(maps);
    }
    return found;
}

int main(int argc, char **argv)
{
    static int big[100000];
    int        rank;
    int        size;
    int        one = 1;
    int        sum = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Bcast(big, 100000, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, big, 100000, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    int found = vendor_files();
    printf("rank %d: sum %s, %d vendor files mapped\n", rank, (sum == size) ? "right" : "wrong",
           found);
    MPI_Finalize();
    return (sum != size) || (found > 0);
}
