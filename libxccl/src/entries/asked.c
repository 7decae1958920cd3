/* SPDX-License-Identifier: BSD-3-Clause */
#include "entries/asked.h"

#include <stdio.h>
#include <string.h>

#include "base/params.h"
#include "device/device.h"
#include "mpi/mpi.h"

static const char key[] = "mpi_memory_alloc_kinds";

/* Whether by messages in device memory or by staging is all the same to a program. */
int xm_asked_of(const char *runtime)
{
    const struct xc_params *params = xc_params();

    return (params->gpu_query == XC_GPU_QUERY_AUTO) && (xc_params_error() == NULL) &&
           ((params->mpi_gpu_aware == XC_YES) || (params->p2p != XC_P2P_MPI)) &&
           xc_device_possible_of(runtime);
}

/* A program may look for a kind with a restriction, or for the kind alone. */
static void append_kinds(char *text, size_t room, const char *runtime)
{
    size_t n = strlen(text);

    if (xm_asked_of(runtime) && (strstr(text, runtime) == NULL)) {
        snprintf(text + n, room - n, ",%s,%s:host,%s:device,%s:managed", runtime, runtime, runtime,
                 runtime);
    }
}

/* An MPI older than 4.1 does not have the key, and gets none. */
static void add_kinds(MPI_Info info)
{
    enum { MOST = 1024, OURS = 128 };
    char text[MOST + OURS] = "";
    int  length = MOST, found = 0;
    int (*get)(MPI_Info, const char *, int *, char *, int *);
    int (*set)(MPI_Info, const char *, const char *);

    *(void **)&get = xm_mpi_symbol("PMPI_Info_get_string");
    *(void **)&set = xm_mpi_symbol("PMPI_Info_set");
    if ((get == NULL) || (set == NULL) || (get(info, key, &length, text, &found) != MPI_SUCCESS) ||
        !found || (length > MOST)) {
        return;
    }
    append_kinds(text, sizeof(text), "cuda");
    append_kinds(text, sizeof(text), "rocm");
    set(info, key, text);
}

int xm_asked_info(enum xm_function function, int profiling, const long *args)
{
    if (xm_mpi_functions[function] == NULL) {
        return MPI_ERR_OTHER;
    }
    int code = (int)xm_mpi_forward(function, profiling, args);
    if (code == MPI_SUCCESS) {
        add_kinds(*(MPI_Info *)args[1]);
    }
    return code;
}
