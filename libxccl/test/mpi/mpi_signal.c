/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SIGUSR1 between a failed call and a look at errno: the handler, which opens and writes a file,
 * leaves no trace of that.
 */
#include <errno.h>
#include <signal.h>

#include "support.h"

int main(int argc, char **argv)
{
    mt_begin(&argc, &argv, false);
    errno = EXDEV;
    raise(SIGUSR1);
    int found = errno;
    mt_expect(found == EXDEV, "errno is %d after the signal, not %d", found, EXDEV);
    mt_summary();
    MPI_Finalize();
    return mt_status();
}
