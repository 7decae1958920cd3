/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Communicators whose ranks are threads, which MPICH has from 4.2 on: collectives on host memory
 * are MPI's, and on device memory an error. Usage: mpi_threadcomm cuda|rocm host|device
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>

#include "support.h"

enum { COUNT = 1000, THREADS = 2, TIMES = 20 };

typedef int make(MPI_Comm, int, MPI_Comm *);
typedef int unmake(MPI_Comm *);
typedef int begin_or_end(MPI_Comm);

static MPI_Comm comm;
static int     *data; /* of a device, current in the first thread alone */

static void *function(const char *name)
{
    void *found = dlsym(RTLD_DEFAULT, name);

    mt_expect(found != NULL, "this MPI has no %s", name);
    return found;
}

/* A rank of the communicator from here on. */
static void *reduce(void *unused)
{
    (void)unused;
    ((begin_or_end *)function("MPIX_Threadcomm_start"))(comm);
    for (int i = 0; i < TIMES; i++) {
        int rank = -1, size = 0, sum = 0;
        MPI_Comm_rank(comm, &rank);
        MPI_Comm_size(comm, &size);
        int code = MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
        mt_expect((code == MPI_SUCCESS) && (sum == size * (size - 1) / 2),
                  "code %d, the ranks of %d add up to %d", code, size, sum);
        MPI_Barrier(comm);
    }
    ((begin_or_end *)function("MPIX_Threadcomm_finish"))(comm);
    return NULL;
}

static void *refuse(void *unused)
{
    (void)unused;
    ((begin_or_end *)function("MPIX_Threadcomm_start"))(comm);
    int code = MPI_Allreduce(MPI_IN_PLACE, data, COUNT, MPI_INT, MPI_SUM, comm);
    mt_expect(code != MPI_SUCCESS, "device memory reached MPI");
    ((begin_or_end *)function("MPIX_Threadcomm_finish"))(comm);
    return NULL;
}

static void among_threads(void *(*work)(void *))
{
    pthread_t other;

    ((make *)function("MPIX_Threadcomm_init"))(MPI_COMM_WORLD, THREADS, &comm);
    pthread_create(&other, NULL, work, NULL);
    work(NULL);
    pthread_join(other, NULL);
    ((unmake *)function("MPIX_Threadcomm_free"))(&comm);
}

/* A device is in use. */
static void use_device(void)
{
    int *used = mt_ints_make(MT_DEVICE, COUNT, COUNT, 1);

    MPI_Bcast(used, COUNT, MPI_INT, 0, MPI_COMM_WORLD);
    mt_ints_expect(used, MT_DEVICE, COUNT, COUNT, 0, 1, "MPI_Bcast");
    mt_free(MT_DEVICE, used);
}

static void case_host(void)
{
    use_device();
    among_threads(reduce);
    use_device();
}

static void case_device(void)
{
    use_device();
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* which the threads have as well */
    data = mt_ints_make(MT_DEVICE, COUNT, COUNT, 1);
    among_threads(refuse);
    mt_free(MT_DEVICE, data);
}

int main(int argc, char **argv)
{
    static const struct mt_named_case cases[] = {
        {"host", case_host}, {"device", case_device}, {NULL, NULL}};

    mt_begin_at(MPI_THREAD_MULTIPLE, &argc, &argv, true);
    return mt_run_to_end(cases, argc, argv);
}
