/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libxccl-mpi.so itself: the MPI functions that it takes over, for any MPI.
 *
 * It knows no mpi.h. At the first call it finds the MPI library in the process, learns its family
 * from the symbols it has, opens libxccl-mpi-<family>.so beside it and hands all calls to that. So
 * one file is preloaded whatever MPI a program uses, and in a program without MPI nothing happens.
 *
 * Arguments travel as longs. In the calling conventions of the 64-bit platforms (x86-64, AArch64,
 * POWER, RISC-V) every argument of these functions, int, pointer or handle, takes one integer
 * register or one 8-byte stack slot, so forwarding the slot forwards the argument.
 */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "intercept/entries.h"

_Static_assert(sizeof(long) == sizeof(void *), "arguments are forwarded as longs");

#define DISPATCH_EXPORT __attribute__((visibility("default")))

typedef void (*function_t)(void);

static function_t     slots[XM_NUM_ENTRIES];
static bool           ready; /* atomic: slots are filled */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static const char *const mpi_names[XM_NUM_ENTRIES] = {
#define NAME(name, arguments) [XM_ENTRY_##name] = "P" #name,
    XM_ENTRIES_MPI(NAME) XM_ENTRIES_LARGE(NAME)
#undef NAME
};

static function_t lookup(void *handle, const char *name)
{
    void      *address = dlsym(handle, name);
    function_t function;

    memcpy(&function, &address, sizeof(function));
    return function;
}

/* A handle of the loaded object in which PMPI_Init is found: for libraries outside the global
 * scope. */
static int find_private(struct dl_phdr_info *info, size_t size, void *arg)
{
    void *handle;

    (void)size;
    if ((info->dlpi_name == NULL) || (info->dlpi_name[0] == '\0')) {
        return 0;
    }
    handle = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == NULL) {
        return 0;
    }
    if (dlsym(handle, "PMPI_Init") != NULL) {
        *(void **)arg = handle; /* keeps the library loaded */
        return 1;
    }
    dlclose(handle);
    return 0;
}

/* The MPI library of this process. */
static void *find_mpi(void)
{
    Dl_info info;
    void   *handle = NULL;
    void   *address = dlsym(RTLD_DEFAULT, "PMPI_Init");

    if ((address != NULL) && (dladdr(address, &info) != 0)) {
        handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
        /* NULL when MPI is linked statically into the program. */
        return (handle != NULL) ? handle : dlopen(NULL, RTLD_LAZY);
    }
    dl_iterate_phdr(find_private, &handle);
    return handle;
}

static const char *family_of(void *libmpi)
{
    if (dlsym(libmpi, "ompi_mpi_comm_world") != NULL) {
        return "openmpi";
    }
    /* The ABI that MPICH shares with Cray MPICH, Intel MPI, MVAPICH and ParaStation MPI. */
    if ((dlsym(libmpi, "MPIR_F_NeedInit") != NULL) ||
        (dlsym(libmpi, "MPIX_Query_cuda_support") != NULL) ||
        (dlsym(libmpi, "MPIR_Dup_fn") != NULL) || (dlsym(libmpi, "MPIR_Err_create_code") != NULL)) {
        return "mpich";
    }
    return NULL;
}

/* libxccl-mpi-<family>.so in the folder xccl beside this file. */
static const struct xm_family *open_family(const char *name)
{
    Dl_info info;
    char    path[4096];

    if ((name == NULL) || (dladdr((void *)&ready, &info) == 0)) {
        return NULL;
    }
    const char *slash = strrchr(info.dli_fname, '/');
    int         folder = (slash != NULL) ? (int)(slash - info.dli_fname) + 1 : 0;
    int         n =
        snprintf(path, sizeof(path), "%.*sxccl/libxccl-mpi-%s.so", folder, info.dli_fname, name);
    if ((n < 0) || (n >= (int)sizeof(path))) {
        return NULL;
    }
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        fprintf(stderr, "xccl warning: calls go to MPI alone: %s\n", dlerror());
        return NULL;
    }
    const struct xm_family *family = dlsym(handle, XM_FAMILY_SYMBOL);
    if ((family == NULL) || (family->abi != XM_FAMILY_ABI)) {
        fprintf(stderr, "xccl warning: calls go to MPI alone: %s is of another version of xccl\n",
                path);
        dlclose(handle);
        return NULL;
    }
    return family;
}

static void fill_slots(void)
{
    void                   *libmpi = find_mpi();
    const struct xm_family *family = NULL;

    if (libmpi != NULL) {
        family = open_family(family_of(libmpi));
        if ((family != NULL) && (family->open(libmpi) != 0)) {
            family = NULL;
        }
    }
    for (int i = 0; i < XM_NUM_ENTRIES; i++) {
        if ((family != NULL) && (family->entries[i] != NULL)) {
            slots[i] = family->entries[i];
        } else if ((mpi_names[i] != NULL) && (libmpi != NULL)) {
            slots[i] = lookup(libmpi, mpi_names[i]);
        }
    }
    __atomic_store_n(&ready, true, __ATOMIC_RELEASE);
}

/* MPI_ERR_OTHER in both families; only for a function that this MPI does not have. */
static long no_function(int entry)
{
    fprintf(stderr, "xccl error: no MPI library in this process has %s\n",
            (mpi_names[entry] != NULL) ? mpi_names[entry] + 1 : "this function");
    return 16;
}

#define L0 void
#define L2 long a, long b
#define L4 L2, long c, long d
#define L5 L4, long e
#define L6 L5, long f
#define L7 L6, long g
#define L8 L7, long h
#define L9 L8, long i
#define A0
#define A2 a, b
#define A4 A2, c, d
#define A5 A4, e
#define A6 A5, f
#define A7 A6, g
#define A8 A7, h
#define A9 A8, i

#define DEFINE(name, arguments)                                                                    \
    DISPATCH_EXPORT long name(L##arguments);                                                       \
    DISPATCH_EXPORT long name(L##arguments)                                                        \
    {                                                                                              \
        if (__builtin_expect(!__atomic_load_n(&ready, __ATOMIC_ACQUIRE), 0)) {                     \
            pthread_once(&once, fill_slots);                                                       \
        }                                                                                          \
        if (__builtin_expect(slots[XM_ENTRY_##name] == NULL, 0)) {                                 \
            return no_function(XM_ENTRY_##name);                                                   \
        }                                                                                          \
        return ((long (*)(L##arguments))slots[XM_ENTRY_##name])(A##arguments);                     \
    }

XM_ENTRIES_MPI(DEFINE)
XM_ENTRIES_LARGE(DEFINE)

/*
 * The profiling names too, because Open MPI's Fortran functions (mpif.h, mpi and mpi_f08 alike)
 * call PMPI_Allreduce and not MPI_Allreduce; and so does a profiling tool that stands in front of
 * us. The MPI library's own PMPI functions are reached by its handle. Not PMPI_Init: find_mpi()
 * asks for it, and a start that was missed is made up for at the first collective.
 */
#define DEFINE_PROFILING(name, arguments)                                                          \
    DISPATCH_EXPORT extern __typeof__(name) P##name __attribute__((alias(#name)));

XM_ENTRIES_PROFILING(DEFINE_PROFILING)
XM_ENTRIES_LARGE(DEFINE_PROFILING)
DEFINE(xcclCommInitMPI, 2)

/* "mpi", "ccl", ... for the last collective of this thread; NULL in a process without MPI. */
DISPATCH_EXPORT const char *xccl_mpi_last_path(void);
DISPATCH_EXPORT const char *xccl_mpi_last_path(void)
{
    if (!__atomic_load_n(&ready, __ATOMIC_ACQUIRE)) {
        pthread_once(&once, fill_slots);
    }
    if (slots[XM_ENTRY_xccl_mpi_last_path] == NULL) {
        return NULL;
    }
    return ((const char *(*)(void))slots[XM_ENTRY_xccl_mpi_last_path])();
}
