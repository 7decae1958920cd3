/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The functions that libxccl-mpi.so takes over, and the contract between it (dispatch.c: one file
 * for every MPI) and the part that is compiled with one MPI family's mpi.h (family.c).
 */
#ifndef XM_INTERCEPT_ENTRIES_H
#define XM_INTERCEPT_ENTRIES_H

#include <stddef.h>

/* name, number of arguments */
#define XM_ENTRIES_MPI(X)                                                                          \
    X(MPI_Init, 2)                                                                                 \
    X(MPI_Init_thread, 4)                                                                          \
    XM_ENTRIES_PROFILING(X)

/* Those that are taken over under the name PMPI_... as well. */
#define XM_ENTRIES_PROFILING(X)                                                                    \
    X(MPI_Finalize, 0)                                                                             \
    X(MPI_Allreduce, 6)                                                                            \
    X(MPI_Bcast, 5)                                                                                \
    X(MPI_Reduce, 7)                                                                               \
    X(MPI_Reduce_scatter, 6)                                                                       \
    X(MPI_Reduce_scatter_block, 6)                                                                 \
    X(MPI_Allgather, 7)                                                                            \
    X(MPI_Allgatherv, 8)                                                                           \
    X(MPI_Alltoall, 7)                                                                             \
    X(MPI_Alltoallv, 9)                                                                            \
    X(MPI_Gather, 8)                                                                               \
    X(MPI_Gatherv, 9)                                                                              \
    X(MPI_Scatter, 8)                                                                              \
    X(MPI_Scatterv, 9)

#define XM_ENTRIES_LARGE(X)                                                                        \
    X(MPI_Allreduce_c, 6)                                                                          \
    X(MPI_Bcast_c, 5)                                                                              \
    X(MPI_Reduce_c, 7)                                                                             \
    X(MPI_Reduce_scatter_c, 6)                                                                     \
    X(MPI_Reduce_scatter_block_c, 6)                                                               \
    X(MPI_Allgather_c, 7)                                                                          \
    X(MPI_Allgatherv_c, 8)                                                                         \
    X(MPI_Alltoall_c, 7)                                                                           \
    X(MPI_Alltoallv_c, 9)                                                                          \
    X(MPI_Gather_c, 8)                                                                             \
    X(MPI_Gatherv_c, 9)                                                                            \
    X(MPI_Scatter_c, 8)                                                                            \
    X(MPI_Scatterv_c, 9)

/* Not MPI's: nothing to fall back to in libmpi. */
#define XM_ENTRIES_OWN(X)                                                                          \
    X(xcclCommInitMPI, 2)                                                                          \
    X(xccl_mpi_last_path, 0)

#define XM_ENTRIES(X) XM_ENTRIES_MPI(X) XM_ENTRIES_LARGE(X) XM_ENTRIES_OWN(X)

enum xm_entry {
#define XM_ENTRY_ID(name, arguments) XM_ENTRY_##name,
    XM_ENTRIES(XM_ENTRY_ID)
#undef XM_ENTRY_ID
        XM_NUM_ENTRIES
};

/* Both sides are built together; a stale file of another version is refused by this number. */
enum { XM_FAMILY_ABI = 1 };

struct xm_family {
    unsigned    abi;
    const char *name; /* "openmpi", "mpich" */
    /*
     * Learn which library to call. Returns 0; else the family's file cannot serve this library, and
     * every call goes straight to it.
     */
    int (*open)(void *libmpi);
    void (*entries[XM_NUM_ENTRIES])(void); /* NULL: this family's header has no such function */
};

#define XM_FAMILY_SYMBOL "xccl_mpi_family"

#endif
