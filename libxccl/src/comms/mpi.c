/* SPDX-License-Identifier: BSD-3-Clause */
#include "comms/mpi.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#include "base/log.h"
#include "base/params.h"

struct xm_pmpi    xm_pmpi;
struct xm_handles xm_handles;

static void *mpi_library;

struct function {
    const char *name;
    size_t      offset;
};

static const struct function functions[] = {
#define XM_ROW(name) {"PMPI_" #name, offsetof(struct xm_pmpi, name)},
    XM_PMPI_COLLECTIVES(XM_ROW) XM_PMPI_OTHERS(XM_ROW)
#undef XM_ROW
};

/* Those that a library may lack: they stay NULL. */
static const struct function large_functions[] = {
#define XM_ROW(name, arguments) {"PMPI_" #name, offsetof(struct xm_pmpi, name)},
    XM_PMPI_LARGE(XM_ROW)
#undef XM_ROW
};

void *xm_mpi_symbol(const char *name)
{
    return dlsym(mpi_library, name);
}

void *xm_mpi_variable(const char *name)
{
    /* An executable may hold a copy of the variable, which then is the one that all use, the MPI
     * library too; only the global scope knows it. */
    void *address = dlsym(RTLD_DEFAULT, name);

    return (address != NULL) ? address : dlsym(mpi_library, name);
}

static void fill(const struct function *function)
{
    void *address = xm_mpi_symbol(function->name);

    memcpy((char *)&xm_pmpi + function->offset, &address, sizeof(address));
}

xcclResult_t xm_mpi_open(void *libmpi)
{
    mpi_library = libmpi;
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        if (xm_mpi_symbol(functions[i].name) == NULL) {
            return xc_fail(xcclUnsupported,
                           "the MPI library lacks %s; xccl needs one of MPI-3.0 or later",
                           functions[i].name);
        }
        fill(&functions[i]);
    }
    for (size_t i = 0; i < sizeof(large_functions) / sizeof(large_functions[0]); i++) {
        fill(&large_functions[i]);
    }
#if XM_OPENMPI
#define XM_SET(type, name, variable) xm_handles.h_##name = (type)xm_mpi_variable(#variable);
#else
#define XM_SET(type, name, variable) xm_handles.h_##name = name;
#endif
    XM_HANDLES(XM_SET)
#undef XM_SET
    return xcclSuccess;
}

bool xm_mpi_gpu_aware(const char *runtime)
{
    int forced = xc_params()->mpi_gpu_aware;

    if (forced != XC_AUTO) {
        return forced == XC_YES;
    }
    /* Open MPI and MPICH spell the question the same, except for AMD. */
    const char *const cuda[] = {"MPIX_Query_cuda_support", NULL};
    const char *const rocm[] = {"MPIX_Query_rocm_support", "MPIX_Query_hip_support", NULL};
    for (const char *const *name = (strcmp(runtime, "cuda") == 0) ? cuda : rocm; *name != NULL;
         name++) {
        int (*query)(void);
        void *address = xm_mpi_symbol(*name);
        memcpy(&query, &address, sizeof(query));
        if (query != NULL) {
            return query() == 1;
        }
    }
    return false;
}
