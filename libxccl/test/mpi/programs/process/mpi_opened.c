/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that is linked with no MPI library: it opens one and asks that for MPI's functions, as
 * Julia does. Says the sum of an allreduce on device memory, its path, and whether MPI says that it
 * is GPU-aware. Usage: mpi_opened cuda|rocm|none LIBRARY
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include <mpi.h>

#include "memory.h"

enum { COUNT = 1000 };

static void *library;

static void *find(const char *name)
{
    void *found = dlsym(library, name);

    if (found == NULL) {
        fprintf(stderr, "no %s: %s\n", name, dlerror());
        exit(2);
    }
    return found;
}

#ifdef OPEN_MPI
#define HANDLE(type, value, variable) ((type)find(variable))
#else
#define HANDLE(type, value, variable) ((type)(value))
#endif
#define CALL(name) ((__typeof__(&(name)))find(#name))

/* The sum of the ranks' numbers, or -1. */
static int sum_of_ranks(const char *runtime)
{
    MPI_Comm      world = HANDLE(MPI_Comm, MPI_COMM_WORLD, "ompi_mpi_comm_world");
    MPI_Datatype  type = HANDLE(MPI_Datatype, MPI_INT, "ompi_mpi_int");
    MPI_Op        add = HANDLE(MPI_Op, MPI_SUM, "ompi_mpi_op_sum");
    enum mt_where where = (runtime[0] == 'n') ? MT_HOST : MT_DEVICE;
    int           rank, values[COUNT];

    CALL(MPI_Comm_rank)(world, &rank);
    mt_memory_open(runtime, rank);
    int *in = mt_alloc(where, sizeof(values)), *out = mt_alloc(where, sizeof(values));
    for (int i = 0; i < COUNT; i++) {
        values[i] = rank;
    }
    mt_put(in, where, values, sizeof(values));
    CALL(MPI_Allreduce)(in, out, COUNT, type, add, world);
    mt_get(values, out, where, sizeof(values));
    mt_free(where, in);
    mt_free(where, out);
    for (int i = 1; i < COUNT; i++) {
        values[0] = (values[i] == values[0]) ? values[0] : -1;
    }
    return values[0];
}

int main(int argc, char **argv)
{
    library = (argc > 2) ? dlopen(argv[2], RTLD_LAZY | RTLD_LOCAL) : NULL;
    if (library == NULL) {
        fprintf(stderr, "usage: mpi_opened cuda|rocm|none LIBRARY (%s)\n", dlerror());
        return 2;
    }
    const char *(*last_path)(void);
    *(void **)&last_path = dlsym(library, "xccl_mpi_last_path");
    CALL(MPI_Init)(&argc, &argv);
    int sum = sum_of_ranks(argv[1]);
    int (*aware)(void) = (int (*)(void))find("MPIX_Query_cuda_support");
    printf("sum %d, path %s, GPU-aware %d\n", sum, (last_path != NULL) ? last_path() : "none",
           aware());
    CALL(MPI_Finalize)();
    return 0;
}
