/* SPDX-License-Identifier: BSD-3-Clause */
#include "transfers/datarep.h"

#include <string.h>

typedef int view_fn(MPI_File, MPI_Offset *, MPI_Datatype *, MPI_Datatype *, char *);

static bool any; /* atomic: a view converts, or did; MPICH's MPI_File_get_view loses memory */

static bool converts(const char *name)
{
    return (strcmp(name, "native") != 0) && (strcmp(name, "internal") != 0);
}

/* (file, offset, element, filetype, representation, info) */
long xm_datarep_set_view(int profiling, const long *args)
{
    const char *name = (const char *)args[4];

    if ((name != NULL) && converts(name)) {
        __atomic_store_n(&any, true, __ATOMIC_RELEASE);
    }
    return xm_mpi_forward(XM_FN_MPI_File_set_view, profiling, args);
}

static void free_derived(MPI_Datatype *type)
{
    int integers, addresses, types, combiner = MPI_COMBINER_NAMED;

    xm_pmpi.Type_get_envelope(*type, &integers, &addresses, &types, &combiner);
    if (combiner != MPI_COMBINER_NAMED) {
        xm_pmpi.Type_free(type);
    }
}

bool xm_datarep_converts(MPI_File file)
{
    char         name[MPI_MAX_DATAREP_STRING + 1] = "";
    MPI_Offset   offset;
    MPI_Datatype element, filetype;
    view_fn     *get_view;

    if (!__atomic_load_n(&any, __ATOMIC_ACQUIRE)) {
        return false;
    }
    *(void **)&get_view = xm_mpi_symbol("PMPI_File_get_view"); /* an MPI may lack files */
    if ((get_view == NULL) || (get_view(file, &offset, &element, &filetype, name) != MPI_SUCCESS)) {
        return false;
    }
    free_derived(&element);
    free_derived(&filetype);
    return converts(name);
}
