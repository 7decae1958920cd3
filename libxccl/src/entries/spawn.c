/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes that a program starts have the launcher's environment, and not what xccl-run set behind
 * it: without xccl they would crash with the first device memory that they give to MPI. Open MPI
 * takes variables for them from a key of MPI_Info. Hydra takes none.
 */
#include "entries/spawn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/environment.h"
#include "base/log.h"
#include "mpi/call.h"

/* The name that the key has from Open MPI 5 on; there the old one is a warning. */
static const char *environment_key(void)
{
    char name[128];
    int  major = 0;

    xm_mpi_name(name, sizeof(name));
    return ((sscanf(name, "Open MPI v%d", &major) == 1) && (major >= 5)) ? "PMIX_ENVAR" : "env";
}

/* What the program says of some processes, and our environment; or NULL. To be freed. */
static MPI_Info with_environment(MPI_Info given)
{
    const char *key = environment_key();
    char        text[MPI_MAX_INFO_VAL] = "";
    bool        none = (given == XM_HANDLE(MPI_INFO_NULL));
    MPI_Info    info;
    int         found = 0;

    if (!none) {
        xm_pmpi.Info_get(given, key, sizeof(text) - 1, text, &found);
    }
    if (!xc_environment_for_children("libxccl-mpi.so", text, sizeof(text))) {
        xc_warn("MPI_Comm_spawn: the processes run without xccl, since LD_PRELOAD is too long for "
                "a hint to Open MPI; put xccl-run in front of mpirun, or spawn xccl-run with the "
                "program as its argument");
    }
    if ((text[0] == '\0') ||
        ((none ? xm_pmpi.Info_create(&info) : xm_pmpi.Info_dup(given, &info)) != MPI_SUCCESS)) {
        return XM_HANDLE(MPI_INFO_NULL);
    }
    xm_pmpi.Info_set(info, key, text);
    return info;
}

static bool is_root(int root, MPI_Comm comm)
{
    int rank = -1;

    return (comm != XM_HANDLE(MPI_COMM_NULL)) && (xm_pmpi.Comm_rank(comm, &rank) == MPI_SUCCESS) &&
           (rank == root);
}

/* (command, argv, maxprocs, info, root, comm, ...), and the same with arrays after a count. */
int xm_spawn(enum xm_function function, int profiling, const long *args)
{
    bool     several = (function == XM_FN_MPI_Comm_spawn_multiple);
    int      count = several ? (int)args[0] : 1, at = several ? 5 : 4;
    MPI_Info one = (MPI_Info)(intptr_t)args[3];
    long     changed[XM_MAX_ARGUMENTS];

    if (!xm_mpi_is_openmpi() || (count <= 0) ||
        !is_root((int)args[at], (MPI_Comm)(intptr_t)args[at + 1])) {
        return (int)xm_mpi_forward(function, profiling, args);
    }
    const MPI_Info *given = several ? (const MPI_Info *)args[4] : &one;
    MPI_Info       *infos = malloc((size_t)count * sizeof(*infos));
    if ((infos == NULL) || (given == NULL)) {
        free(infos);
        return (int)xm_mpi_forward(function, profiling, args);
    }
    memcpy(changed, args, sizeof(long) * (size_t)xm_mpi_arguments(function));
    bool all = true;
    for (int i = 0; i < count; i++) {
        infos[i] = with_environment(given[i]);
        all = all && (infos[i] != XM_HANDLE(MPI_INFO_NULL));
    }
    if (all) {
        changed[several ? 4 : 3] = several ? (long)infos : (long)infos[0];
    }
    int code = (int)xm_mpi_forward(function, profiling, changed);
    for (int i = 0; i < count; i++) {
        if (infos[i] != XM_HANDLE(MPI_INFO_NULL)) {
            xm_pmpi.Info_free(&infos[i]);
        }
    }
    free(infos);
    return code;
}
