/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Errors of calls without a communicator come to the handler of MPI_COMM_SELF or MPI_COMM_WORLD,
 * which the program has set on the latter alone: they come back, before and after what xccl has MPI
 * try out.
 * Usage: mpi_world_errors cuda|rocm|none
 */
#include <string.h>

#include "support.h"

enum { COUNT = 10 };

static void fail_locally(const char *when)
{
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Group    world, none;
    int          no_rank = mt_size();

    mt_expect(MPI_Type_contiguous(-1, MPI_INT, &type) != MPI_SUCCESS, when);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    mt_expect(MPI_Group_incl(world, 1, &no_rank, &none) != MPI_SUCCESS, when);
    MPI_Group_free(&world);
}

int main(int argc, char **argv)
{
    mt_begin(&argc, &argv, (argc > 1) && (strcmp(argv[1], "none") != 0));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    fail_locally("after MPI_Init");
    if ((argc > 1) && (strcmp(argv[1], "none") != 0)) {
        struct mt_pair pair = mt_pair_make(MT_DEVICE, COUNT);
        mt_pair_allreduce(&pair, COUNT, MPI_COMM_WORLD, 1);
        fail_locally("after a reduction on device memory");
        mt_pair_free(&pair);
    }
    mt_summary();
    MPI_Finalize();
    return mt_status();
}
