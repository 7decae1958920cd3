/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rows of tuning tables, changed while the program runs (xcclTuneMPI), on communicators that have
 * been used before and on new ones.
 *
 *   mpi_tuning RUNTIME change|loop
 * change: with XCCL_COMM_CREATE=first and XCCL_TUNE='*:*:*:*:mpi'. loop: allreduces alone.
 */
#include <dlfcn.h>
#include <string.h>

#include <xccl/xccl.h>

#include "support.h"

enum { COUNT = 300 };

typedef int (*tune_fn)(const char *rows);

static void *find(const char *name)
{
    return dlsym(RTLD_DEFAULT, name);
}

static int tune(const char *rows)
{
    tune_fn call = (tune_fn)find("xcclTuneMPI");

    return (call != NULL) ? call(rows) : -1;
}

static void expect_path(MPI_Comm comm, const char *wanted, const char *what)
{
    struct mt_pair pair = mt_pair_make(MT_DEVICE, COUNT);

    mt_pair_allreduce(&pair, COUNT, comm, 3);
    mt_expect_path(wanted, what);
    mt_pair_free(&pair);
}

static void change(void)
{
    MPI_Comm copy;

    expect_path(MPI_COMM_WORLD, "mpi-staged", "XCCL_TUNE");
    mt_expect(tune("*:*:*:*:ccl") == xcclSuccess, "ccl");
    expect_path(MPI_COMM_WORLD, "ccl", "ccl");
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    expect_path(copy, "ccl", "ccl on a new communicator");
    mt_expect(tune("# direct\n*:*:*:*:direct\n") == xcclSuccess, "direct");
    expect_path(MPI_COMM_WORLD, "direct", "direct");
    expect_path(copy, "direct", "direct on the other");
    mt_expect(tune("*:*:*:*:staged") == xcclSuccess, "staged");
    expect_path(copy, "mpi-staged", "staged");
    mt_expect(tune("*:*:*:*:direct") == xcclSuccess, "direct once more");
    mt_expect(tune("*:*:*:*:dirict") == xcclInvalidArgument, "a mistake");
    expect_path(copy, "direct", "a mistake changes nothing");
    mt_expect(tune("bcast:*:*:*:mpi#allreduce:0-1k:*:*:mpi#*:*:*:*:ccl") == xcclSuccess, "sizes");
    expect_path(copy, "ccl", "other sizes");
    mt_expect(tune(NULL) == xcclSuccess, "back");
    expect_path(copy, "mpi-staged", "XCCL_TUNE again");
    MPI_Comm_free(&copy);
}

static void loop(void)
{
    struct mt_pair pair = mt_pair_make(MT_DEVICE, COUNT);

    for (int i = 0; i < 4; i++) {
        mt_pair_allreduce(&pair, COUNT, MPI_COMM_WORLD, i);
    }
    mt_pair_free(&pair);
}

int main(int argc, char **argv)
{
    static const struct mt_named_case cases[] = {{"change", change}, {"loop", loop}, {NULL, NULL}};

    mt_expect(tune(NULL) != xcclSuccess, "before MPI_Init");
    mt_begin(&argc, &argv, true);
    return mt_run_to_end(cases, argc, argv);
}
