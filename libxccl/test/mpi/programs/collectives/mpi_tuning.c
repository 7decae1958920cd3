/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rows of tuning tables, changed while the program runs (xcclTuneMPI), on communicators that have
 * been used before and on new ones.
 *
 *   mpi_tuning RUNTIME change|loop|obstacle
 * change: with XCCL_COMM_CREATE=first and XCCL_TUNE='*:*:*:*:mpi'. loop: allreduces alone.
 * obstacle: where no vendor communicator can be made, why paths did not carry a call.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
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

/* What was freed holds something else from here on. */
static void fill_freed_memory(void)
{
    enum { BLOCKS = 300, STEP = 16 };
    static void *blocks[BLOCKS];

    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc((i + 1) * STEP);
        mt_expect(blocks[i] != NULL, "no memory");
        memset(blocks[i], '?', (i + 1) * STEP);
    }
    for (int i = 0; i < BLOCKS; i++) {
        free(blocks[i]);
    }
}

static const char *obstacle_of(const char *path)
{
    const char *(*ask)(const char *);
    *(void **)&ask = find("xccl_mpi_last_obstacle");
    const char *why = (ask != NULL) ? ask(path) : NULL;

    return (why != NULL) ? why : "none";
}

static void obstacle(void)
{
    char     why[1024];
    MPI_Comm copy;

    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    for (int i = 0; i < 2; i++) {
        expect_path(copy, "mpi-staged", "no vendor communicator can be made");
    }
    snprintf(why, sizeof(why), "%s", obstacle_of("ccl"));
    mt_expect(strstr(why, "communicator creation fails") != NULL, "the obstacle is: %s", why);
    MPI_Comm_free(&copy);
    fill_freed_memory();
    mt_expect(strcmp(obstacle_of("ccl"), why) == 0, "after its communicator: %.80s",
              obstacle_of("ccl"));
}

int main(int argc, char **argv)
{
    static const struct mt_named_case cases[] = {
        {"change", change}, {"loop", loop}, {"obstacle", obstacle}, {NULL, NULL}};

    mt_expect(tune(NULL) != xcclSuccess, "before MPI_Init");
    mt_begin(&argc, &argv, true);
    return mt_run_to_end(cases, argc, argv);
}
