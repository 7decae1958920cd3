/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives in delete callbacks, where MPI says that the communicator is still whole; a rank that
 * has no device; a wrong argument on one rank.
 * Usage: mpi_attr cuda|rocm|none CASE
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support.h"

enum { COUNT = 1000, MOST_RANKS = 64 };

static struct mt_pair pair;
static bool           at_finalize, on_device;
static int            calls;

static void host_gatherv(MPI_Comm comm)
{
    int counts[MOST_RANKS], displs[MOST_RANKS], all[MOST_RANKS];
    int me, ranks;

    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &ranks);
    for (int i = 0; i < ranks; i++) {
        counts[i] = 1;
        displs[i] = i;
        all[i] = -1;
    }
    MPI_Gatherv(&me, 1, MPI_INT, all, counts, displs, MPI_INT, 0, comm);
    for (int i = 0; (me == 0) && (i < ranks); i++) {
        mt_expect(all[i] == i, "MPI_Gatherv: element %d is %d", i, all[i]);
    }
}

static int on_delete(MPI_Comm comm, int key, void *value, void *extra)
{
    MPI_Comm used = at_finalize ? MPI_COMM_WORLD : comm;

    (void)key;
    (void)value;
    (void)extra;
    calls++;
    if (on_device) {
        mt_pair_allreduce(&pair, COUNT, used, 3);
    } else {
        host_gatherv(used);
    }
    return MPI_SUCCESS;
}

/* It frees another communicator, and then uses its own again. */
static int on_nested_delete(MPI_Comm comm, int key, void *value, void *extra)
{
    MPI_Comm twin;

    (void)key;
    (void)value;
    (void)extra;
    calls++;
    MPI_Comm_dup(comm, &twin);
    MPI_Comm_free(&twin);
    mt_pair_allreduce(&pair, COUNT, comm, 3);
    MPI_Comm_dup(comm, &twin);
    MPI_Comm_free(&twin);
    return MPI_SUCCESS;
}

static void case_dup_nested(void)
{
    MPI_Comm comm;
    int      key;

    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_nested_delete, &key, NULL);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_attr(comm, key, &calls);
    mt_pair_allreduce(&pair, COUNT, comm, 1);
    MPI_Comm_free(&comm);
    mt_expect(calls == 1, "the callback ran %d times", calls);
    MPI_Comm_free_keyval(&key);
}

static void with_callback(bool warm)
{
    MPI_Comm comm = MPI_COMM_SELF;
    int      key;

    if (!at_finalize) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    }
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_delete, &key, NULL);
    MPI_Comm_set_attr(comm, key, &calls);
    if (warm) {
        mt_pair_allreduce(&pair, COUNT, at_finalize ? MPI_COMM_WORLD : comm, 1);
    }
    if (!at_finalize) {
        MPI_Comm_free(&comm);
        mt_expect(calls == 1, "the callback ran %d times", calls);
    }
    MPI_Comm_free_keyval(&key);
}

static void case_dup_host(void)
{
    with_callback(true);
}

/* A rank is late, while a collective on the communicator is under way on the others. */
static void with_pending(int key)
{
    const struct timespec late = {0, 100 * 1000 * 1000};
    MPI_Comm              comm;
    MPI_Request           request;

    on_device = true;
    for (int round = 0; round < 2; round++) {
        struct mt_pair own = mt_pair_make(MT_DEVICE, COUNT);
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Comm_set_attr(comm, key, &calls);
        mt_pair_fill(&own, COUNT, comm, round);
        if (round == mt_rank()) {
            nanosleep(&late, NULL);
        }
        MPI_Iallreduce(own.in, own.out, COUNT, MPI_FLOAT, MPI_SUM, comm, &request);
        MPI_Comm_free(&comm);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        mt_pair_expect_sum(&own, COUNT, mt_size(), round, "a freed communicator");
        MPI_Barrier(MPI_COMM_WORLD);
        mt_expect(calls == round + 1, "the callback ran %d times", calls);
        mt_pair_free(&own);
    }
}

static void case_dup_pending(void)
{
    int key;

    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_delete, &key, NULL);
    with_pending(key);
    MPI_Comm_free_keyval(&key);
}

/* The key comes from MPI-1's function, which an MPI need not have any more. */
static void case_dup_pending_old(void)
{
    int (*create)(MPI_Comm_copy_attr_function *, MPI_Comm_delete_attr_function *, int *, void *);
    void *address = dlsym(RTLD_DEFAULT, "MPI_Keyval_create");
    int   key = MPI_KEYVAL_INVALID;

    memcpy(&create, &address, sizeof(create));
    if (create == NULL) {
        create = MPI_Comm_create_keyval;
    }
    create(MPI_COMM_NULL_COPY_FN, on_delete, &key, NULL);
    with_pending(key);
}

static void case_dup_device(void)
{
    on_device = true;
    with_callback(true);
}

/* The communicator is first used by the callback. */
static void case_dup_first(void)
{
    on_device = true;
    with_callback(false);
}

static void case_self_host(void)
{
    at_finalize = true;
    with_callback(true);
}

static void case_self_device(void)
{
    at_finalize = on_device = true;
    with_callback(true);
}

/* A program without any device; see also self_only. */
static void case_host_only(void)
{
    with_callback(false);
    calls = 0;
    with_callback(false);
    calls = 0;
}

static void case_self_only(void)
{
    at_finalize = true;
    with_callback(false);
}

/* The last rank has no data, and only later a device: the communicator must serve it then. */
static void case_nodevice(void)
{
    bool late = mt_rank() == mt_size() - 1;
    int  counts[MOST_RANKS], displs[MOST_RANKS];
    int  size = mt_size();
    int  host[MOST_RANKS];
    int  none[2];
    int *in = &none[0]; /* MPICH refuses twice the same address, of no data too */
    int *out = &none[1];

    for (int i = 0; i < size; i++) {
        counts[i] = (late || (i == size - 1)) ? 0 : 1;
        displs[i] = i;
        host[i] = mt_rank() * 100 + i;
    }
    if (!late) {
        mt_memory_open(mt_runtime(), mt_rank());
        in = mt_alloc(MT_DEVICE, sizeof(host));
        out = mt_alloc(MT_DEVICE, sizeof(host));
        mt_put(in, MT_DEVICE, host, sizeof(host));
    }
    for (int round = 0; round < 3; round++) {
        MPI_Alltoallv(in, counts, displs, MPI_INT, out, counts, displs, MPI_INT, MPI_COMM_WORLD);
    }
    if (!late) {
        mt_get(host, out, MT_DEVICE, sizeof(host));
        for (int i = 0; i < size - 1; i++) {
            mt_expect(host[i] == i * 100 + mt_rank(), "element %d is %d", i, host[i]);
        }
    } else {
        mt_memory_open(mt_runtime(), mt_rank());
    }
    pair = mt_pair_make(MT_DEVICE, COUNT);
    for (int round = 0; round < 3; round++) {
        mt_pair_allreduce(&pair, COUNT, MPI_COMM_WORLD, round);
    }
    mt_expect(true, "the communicator is of use again");
}

/* The last rank passes host memory, and never has a device. */
static void case_never(void)
{
    bool host = mt_rank() == mt_size() - 1;

    if (!host) {
        mt_memory_open(mt_runtime(), mt_rank());
    }
    pair = mt_pair_make(host ? MT_HOST : MT_DEVICE, COUNT);
    for (int round = 0; round < 3; round++) {
        mt_pair_allreduce(&pair, COUNT, MPI_COMM_WORLD, round);
    }
}

/* A negative count on the root alone: the root gets an error, and nobody waits for it. */
static void wrong_at_root(bool vector, enum mt_where where)
{
    int      counts[MOST_RANKS], displs[MOST_RANKS];
    int     *send = mt_alloc(where, sizeof(int));
    int     *recv = mt_alloc(where, sizeof(int) * MOST_RANKS);
    int      status;
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    for (int i = 0; i < mt_size(); i++) {
        counts[i] = 1;
        displs[i] = i;
    }
    counts[mt_size() - 1] = -1;
    status = vector ? MPI_Gatherv(send, 1, MPI_INT, recv, counts, displs, MPI_INT, 0, comm)
                    : MPI_Gather(send, 1, MPI_INT, recv, -1, MPI_INT, 0, comm);
    mt_expect((mt_rank() != 0) || (status != MPI_SUCCESS), "the root got no error");
    MPI_Barrier(MPI_COMM_WORLD);
    mt_free(where, send);
    mt_free(where, recv);
}

static void case_rooterr_host(void)
{
    wrong_at_root(false, MT_HOST);
    wrong_at_root(true, MT_HOST);
}

/* Where the ranks have to agree first, in calls with counts of their own. */
static void case_rooterr_device(void)
{
    wrong_at_root(true, MT_DEVICE);
}

int main(int argc, char **argv)
{
    static const struct mt_named_case cases[] = {
        {"dup_host", case_dup_host},
        {"dup_device", case_dup_device},
        {"dup_first", case_dup_first},
        {"dup_nested", case_dup_nested},
        {"dup_pending", case_dup_pending},
        {"dup_pending_old", case_dup_pending_old},
        {"self_host", case_self_host},
        {"self_device", case_self_device},
        {"host_only", case_host_only},
        {"self_only", case_self_only},
        {"nodevice", case_nodevice},
        {"never", case_never},
        {"rooterr_host", case_rooterr_host},
        {"rooterr_device", case_rooterr_device},
        {NULL, NULL},
    };
    bool late =
        (argc > 2) && ((strcmp(argv[2], "nodevice") == 0) || (strcmp(argv[2], "never") == 0));

    mt_begin(&argc, &argv, !late);
    if (!late) {
        pair = mt_pair_make(MT_DEVICE, COUNT);
    }
    mt_run_case(cases, argc, argv);
    mt_expect(true, "the case came to its end");
    mt_summary();
    MPI_Finalize();
    if (at_finalize && (calls != 1)) {
        printf("FAIL rank %d: MPI_Finalize ran the callback %d times\n", mt_rank(), calls);
        return 1;
    }
    return mt_status();
}
