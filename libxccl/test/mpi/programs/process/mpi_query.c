/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a program is told that asks whether MPI is GPU-aware: a line such as "after: cuda 1 rocm 0
 * hip 0 gpu0 1 gpu2 0", and with MPI 4.1's kinds of memory one each for a communicator, a window
 * and a file. -1: MPI has no such function, or it fails. The functions are looked up, as not every
 * MPI has each. Usage: mpi_query [early] early: before MPI_Init, too, where MPICH's own end the
 * program.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

/* What MPI 4.1 says of it: the kinds of memory that the object of this info takes. False: nothing.
 */
static bool say_kinds_in(const char *what, MPI_Info info)
{
    int (*get)(MPI_Info, const char *, int *, char *, int *);
    char text[512] = "";
    int  length = sizeof(text) - 1, found = 0;

    *(void **)&get = dlsym(RTLD_DEFAULT, "MPI_Info_get_string");
    if (get != NULL) {
        get(info, "mpi_memory_alloc_kinds", &length, text, &found);
    }
    printf("%s: %s\n", what, found ? text : "none");
    MPI_Info_free(&info);
    return found != 0;
}

static void say_kinds(void)
{
    MPI_Info info;
    MPI_Win  window;
    MPI_File file;
    char    *memory, name[64];

    MPI_Comm_get_info(MPI_COMM_WORLD, &info);
    if (!say_kinds_in("kinds", info)) {
        return;
    }
    MPI_Win_allocate(1, 1, MPI_INFO_NULL, MPI_COMM_SELF, &memory, &window);
    MPI_Win_get_info(window, &info);
    say_kinds_in("kinds of a window", info);
    MPI_Win_free(&window);
    snprintf(name, sizeof(name), "/tmp/xccl-query-%d", (int)getpid());
    if (MPI_File_open(MPI_COMM_SELF, name,
                      MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                      &file) == MPI_SUCCESS) {
        MPI_File_get_info(file, &info);
        say_kinds_in("kinds of a file", info);
        MPI_File_close(&file);
    }
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
