/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that makes its calls in threads which live for one call each: nothing of them is kept.
 * Usage: mpi_short_threads cuda|rocm|none
 */
#include <malloc.h>
#include <stdio.h>

#include "support.h"

enum { WARM_UP = 20, THREADS = 300, COUNT = 100, MOST_BYTES = 100 }; /* kept for each thread */

static struct mt_pair pair;

static void *call(void *unused)
{
    (void)unused;
    mt_memory_enter();
    mt_pair_allreduce(&pair, COUNT, MPI_COMM_WORLD, 1);
    return NULL;
}

static void run(int threads)
{
    for (int i = 0; i < threads; i++) {
        mt_in_threads(1, call, &pair, sizeof(pair));
    }
}

int main(int argc, char **argv)
{
    mt_begin(&argc, &argv, true);
    pair = mt_pair_make(MT_DEVICE, COUNT);
    run(WARM_UP);
    size_t before = mallinfo2().uordblks;
    run(THREADS);
    size_t after = mallinfo2().uordblks;
    mt_expect(after < before + THREADS * MOST_BYTES, "%d threads left %zu bytes", THREADS,
              after - before);
    printf("rank %d: %zu bytes before, %zu after\n", mt_rank(), before, after);
    mt_pair_free(&pair);
    mt_summary();
    MPI_Finalize();
    return mt_status();
}
