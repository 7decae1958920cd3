/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a program is told that asks whether MPI is GPU-aware: a line such as "after: cuda 1 rocm 0
 * hip 0 gpu0 1 gpu2 0", and one with MPI 4.1's kinds of memory. -1: MPI has no such function, or it
 * fails. The functions are looked up, as not every MPI has each. Usage: mpi_query [early]
 * early: before MPI_Init, too, where MPICH's own end the program.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include <mpi.h>

static int ask(const char *name)
{
    int (*query)(void);
    void *address = dlsym(RTLD_DEFAULT, name);

    memcpy(&query, &address, sizeof(query));
    return (query != NULL) ? query() : -1;
}

static int ask_mpich(int type)
{
    int (*query)(int, int *);
    void *address = dlsym(RTLD_DEFAULT, "MPIX_GPU_query_support");
    int   yes = -1;

    memcpy(&query, &address, sizeof(query));
    return ((query != NULL) && (query(type, &yes) == MPI_SUCCESS)) ? yes : -1;
}

static void say(const char *when)
{
    printf("%s: cuda %d rocm %d hip %d gpu0 %d gpu2 %d\n", when, ask("MPIX_Query_cuda_support"),
           ask("MPIX_Query_rocm_support"), ask("MPIX_Query_hip_support"), ask_mpich(0),
           ask_mpich(2));
    fflush(stdout);
}

/* What MPI 4.1 says of it: the kinds of memory that a communicator takes. */
static void say_kinds(void)
{
    int (*get)(MPI_Info, const char *, int *, char *, int *);
    char     text[512] = "";
    int      length = sizeof(text) - 1, found = 0;
    MPI_Info info;

    *(void **)&get = dlsym(RTLD_DEFAULT, "MPI_Info_get_string");
    MPI_Comm_get_info(MPI_COMM_WORLD, &info);
    if (get != NULL) {
        get(info, "mpi_memory_alloc_kinds", &length, text, &found);
    }
    printf("kinds: %s\n", found ? text : "none");
    MPI_Info_free(&info);
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        say("before");
    }
    MPI_Init(&argc, &argv);
    say("after");
    say_kinds();
    MPI_Finalize();
    return 0;
}
