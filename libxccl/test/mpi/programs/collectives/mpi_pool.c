/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Communicators of the same ranks are made, used and freed, and as many once more: their vendor
 * communicators may be kept in between (XCCL_COMM_POOL).
 *
 *   mpi_pool cuda one|two|nine
 */
#include "support.h"

enum { COUNT = 64, MOST = 9 };

static void use_and_free(int comms)
{
    MPI_Comm       made[MOST];
    struct mt_pair pair = mt_pair_make(MT_DEVICE, COUNT);

    for (int i = 0; i < comms; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &made[i]);
        mt_pair_allreduce(&pair, COUNT, made[i], i);
    }
    for (int i = 0; i < comms; i++) {
        MPI_Comm_free(&made[i]);
    }
    mt_pair_free(&pair);
}

static void case_one(void)
{
    use_and_free(1);
    use_and_free(1);
}

static void case_two(void)
{
    use_and_free(2);
    use_and_free(2);
}

static void case_nine(void)
{
    use_and_free(MOST);
    use_and_free(MOST);
}

int main(int argc, char **argv)
{
    static const struct mt_named_case cases[] = {
        {"one", case_one}, {"two", case_two}, {"nine", case_nine}, {NULL, NULL}};

    mt_begin(&argc, &argv, true);
    return mt_run_to_end(cases, argc, argv);
}
