/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Agreements of communicators that are gone, of which some fail: MPI calls an error handler, which
 * frees another communicator, or leaves by longjmp().
 * src/comms/orphans.c is compiled into this program; one rank, without xccl.
 * Usage: mpi_orphans none
 */
#include <dlfcn.h>
#include <setjmp.h>

#include "comms/guarded.h"
#include "comms/orphans.h"
#include "support.h"

enum { BYTES = 64, COUNT = 5 };
enum { ON, OVER, ADDS, JUMPS, FAILS };

static int     state[COUNT + 1]; /* of the request with that tag */
static int     tested[COUNT + 1];
static jmp_buf before;

static int number_of(const MPI_Request *request)
{
    return (int)(intptr_t)*request;
}

static void add(int number)
{
    xm_orphans_add((MPI_Request)(intptr_t)number, xm_guarded_alloc(BYTES), NULL);
}

static int test(MPI_Request *request, int *flag, MPI_Status *status)
{
    int number = number_of(request);

    (void)status;
    tested[number]++;
    *flag = (state[number] != ON);
    switch (state[number]) {
    case ADDS: /* as what frees a communicator does */
        state[number] = OVER;
        add(COUNT);
        xm_orphans_sweep();
        break;
    case JUMPS:
        longjmp(before, 1);
    case FAILS:
        *flag = 0;
        return MPI_ERR_OTHER;
    default:
        break;
    }
    return MPI_SUCCESS;
}

/* Is every one that is left looked at once? */
static void expect_tests(int from, int last, int times, const char *what)
{
    for (int i = 0; i <= COUNT; i++) {
        int wanted = ((i >= from) && (i <= last)) ? times : 0;
        mt_expect(tested[i] == wanted, "%s: request %d was tested %d times", what, i, tested[i]);
        tested[i] = 0;
    }
}

int main(int argc, char **argv)
{
    mt_begin(&argc, &argv, false);
    xm_pmpi.Test = test;
    for (int i = 1; i < COUNT; i++) {
        add(i);
    }
    xm_orphans_sweep();
    expect_tests(1, COUNT - 1, 1, "none is over");
    state[1] = ADDS;
    xm_orphans_sweep();
    for (int i = 1; i <= COUNT; i++) {
        mt_expect(tested[i] > 0, "request %d was not tested", i);
        tested[i] = 0;
    }
    state[2] = JUMPS;
    if (setjmp(before) == 0) {
        xm_orphans_sweep();
        mt_expect(false, "no jump");
    }
    mt_expect(tested[2] == 1, "the one that jumps was tested %d times", tested[2]);
    tested[3] = tested[4] = tested[COUNT] = tested[2] = 0;
    xm_orphans_sweep();
    expect_tests(3, COUNT, 1, "after the jump");
    state[3] = FAILS;
    state[4] = state[COUNT] = OVER;
    xm_orphans_finalize();
    expect_tests(3, COUNT, 1, "at last");
    xm_orphans_sweep();
    expect_tests(0, -1, 0, "nothing is left");
    mt_summary();
    MPI_Finalize();
    return mt_status();
}
