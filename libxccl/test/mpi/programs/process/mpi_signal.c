/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SIGUSR1 between a failed call and a look at errno: the handler, which opens and writes a file,
 * leaves no trace of that. A handler that the program had before MPI_Init stays. Several threads
 * may have a signal at once. Usage: mpi_signal none [own|threads]
 */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "support.h"

static volatile sig_atomic_t handled;

static void on_signal(int number)
{
    (void)number;
    handled++;
}

static void *raise_often(void *unused)
{
    (void)unused;
    for (int i = 0; i < 300; i++) {
        raise(SIGUSR1);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    bool own = (argc > 2) && (strcmp(argv[2], "own") == 0);
    bool several = (argc > 2) && (strcmp(argv[2], "threads") == 0);

    if (own) {
        signal(SIGUSR1, on_signal);
    }
    mt_begin(&argc, &argv, false);
    errno = EXDEV;
    raise(SIGUSR1);
    int found = errno;
    mt_expect(found == EXDEV, "errno is %d after the signal, not %d", found, EXDEV);
    mt_expect(handled == (own ? 1 : 0), "the program's handler ran %d times", (int)handled);
    if (several) {
        mt_in_threads(4, raise_often, NULL, 0);
    }
    mt_summary();
    MPI_Finalize();
    return mt_status();
}
