/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The MPI library of the process, reached without linking it.
 *
 * libmpi may be in the global scope, or private to a Python extension, and its name differs between
 * vendors; so each PMPI function is looked up in the library that was found in the process, and
 * each predefined handle too (in the Open MPI family handles are addresses of its variables).
 */
#ifndef XM_COMMS_MPI_H
#define XM_COMMS_MPI_H

#include <stdbool.h>

#include <mpi.h>

#include <xccl/xccl.h>

#if defined(OMPI_MAJOR_VERSION)
#define XM_OPENMPI 1
#else
#define XM_OPENMPI 0
#endif

#define XM_PMPI_COLLECTIVES(X)                                                                     \
    X(Allreduce)                                                                                   \
    X(Bcast)                                                                                       \
    X(Reduce)                                                                                      \
    X(Reduce_scatter)                                                                              \
    X(Reduce_scatter_block)                                                                        \
    X(Allgather)                                                                                   \
    X(Allgatherv)                                                                                  \
    X(Alltoall)                                                                                    \
    X(Alltoallv)                                                                                   \
    X(Gather)                                                                                      \
    X(Gatherv)                                                                                     \
    X(Scatter)                                                                                     \
    X(Scatterv)

/*
 * MPI-4's functions with large counts. Their types are spelt out because Open MPI's header has none
 * of them before 6.0, whatever the library in the process has: name, arguments.
 */
#define XM_PMPI_LARGE(X)                                                                           \
    X(Allreduce_c, (const void *, void *, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm))              \
    X(Bcast_c, (void *, MPI_Count, MPI_Datatype, int, MPI_Comm))                                   \
    X(Reduce_c, (const void *, void *, MPI_Count, MPI_Datatype, MPI_Op, int, MPI_Comm))            \
    X(Reduce_scatter_c, (const void *, void *, const MPI_Count *, MPI_Datatype, MPI_Op, MPI_Comm)) \
    X(Reduce_scatter_block_c, (const void *, void *, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm))   \
    X(Allgather_c,                                                                                 \
      (const void *, MPI_Count, MPI_Datatype, void *, MPI_Count, MPI_Datatype, MPI_Comm))          \
    X(Allgatherv_c, (const void *, MPI_Count, MPI_Datatype, void *, const MPI_Count *,             \
                     const MPI_Aint *, MPI_Datatype, MPI_Comm))                                    \
    X(Alltoall_c,                                                                                  \
      (const void *, MPI_Count, MPI_Datatype, void *, MPI_Count, MPI_Datatype, MPI_Comm))          \
    X(Alltoallv_c, (const void *, const MPI_Count *, const MPI_Aint *, MPI_Datatype, void *,       \
                    const MPI_Count *, const MPI_Aint *, MPI_Datatype, MPI_Comm))                  \
    X(Gather_c,                                                                                    \
      (const void *, MPI_Count, MPI_Datatype, void *, MPI_Count, MPI_Datatype, int, MPI_Comm))     \
    X(Gatherv_c, (const void *, MPI_Count, MPI_Datatype, void *, const MPI_Count *,                \
                  const MPI_Aint *, MPI_Datatype, int, MPI_Comm))                                  \
    X(Scatter_c,                                                                                   \
      (const void *, MPI_Count, MPI_Datatype, void *, MPI_Count, MPI_Datatype, int, MPI_Comm))     \
    X(Scatterv_c, (const void *, const MPI_Count *, const MPI_Aint *, MPI_Datatype, void *,        \
                   MPI_Count, MPI_Datatype, int, MPI_Comm))

#define XM_PMPI_OTHERS(X)                                                                          \
    X(Init)                                                                                        \
    X(Init_thread)                                                                                 \
    X(Initialized)                                                                                 \
    X(Finalize)                                                                                    \
    X(Comm_size)                                                                                   \
    X(Comm_rank)                                                                                   \
    X(Comm_remote_size)                                                                            \
    X(Comm_test_inter)                                                                             \
    X(Comm_split)                                                                                  \
    X(Comm_free)                                                                                   \
    X(Comm_create_keyval)                                                                          \
    X(Comm_free_keyval)                                                                            \
    X(Comm_get_attr)                                                                               \
    X(Comm_set_attr)                                                                               \
    X(Comm_delete_attr)                                                                            \
    X(Comm_set_errhandler)                                                                         \
    X(Comm_call_errhandler)                                                                        \
    X(Add_error_class)                                                                             \
    X(Add_error_code)                                                                              \
    X(Add_error_string)                                                                            \
    X(Iprobe)                                                                                      \
    X(Send)                                                                                        \
    X(Recv)                                                                                        \
    X(Pack)                                                                                        \
    X(Unpack)                                                                                      \
    X(Type_size_x)                                                                                 \
    X(Type_get_extent_x)                                                                           \
    X(Type_get_true_extent_x)                                                                      \
    X(Type_get_envelope)                                                                           \
    X(Type_get_contents)                                                                           \
    X(Type_free)

struct xm_pmpi {
#define XM_FIELD(name) __typeof__(&PMPI_##name) name;
    XM_PMPI_COLLECTIVES(XM_FIELD)
    XM_PMPI_OTHERS(XM_FIELD)
#undef XM_FIELD
#define XM_FIELD(name, arguments) int(*name) arguments; /* NULL: this library has none */
    XM_PMPI_LARGE(XM_FIELD)
#undef XM_FIELD
};

extern struct xm_pmpi xm_pmpi;

/* name in mpi.h, Open MPI's variable */
#define XM_HANDLES(X)                                                                              \
    X(MPI_Comm, MPI_COMM_WORLD, ompi_mpi_comm_world)                                               \
    X(MPI_Comm, MPI_COMM_SELF, ompi_mpi_comm_self)                                                 \
    X(MPI_Comm, MPI_COMM_NULL, ompi_mpi_comm_null)                                                 \
    X(MPI_Datatype, MPI_DATATYPE_NULL, ompi_mpi_datatype_null)                                     \
    X(MPI_Datatype, MPI_BYTE, ompi_mpi_byte)                                                       \
    X(MPI_Datatype, MPI_PACKED, ompi_mpi_packed)                                                   \
    X(MPI_Datatype, MPI_INT64_T, ompi_mpi_int64_t)                                                 \
    X(MPI_Datatype, MPI_INT, ompi_mpi_int)                                                         \
    X(MPI_Op, MPI_OP_NULL, ompi_mpi_op_null)                                                       \
    X(MPI_Op, MPI_SUM, ompi_mpi_op_sum)                                                            \
    X(MPI_Op, MPI_PROD, ompi_mpi_op_prod)                                                          \
    X(MPI_Op, MPI_MAX, ompi_mpi_op_max)                                                            \
    X(MPI_Op, MPI_MIN, ompi_mpi_op_min)                                                            \
    X(MPI_Errhandler, MPI_ERRORS_RETURN, ompi_mpi_errors_return)

struct xm_handles {
#define XM_FIELD(type, name, variable) type h_##name;
    XM_HANDLES(XM_FIELD)
#undef XM_FIELD
};

extern struct xm_handles xm_handles;
#define XM_HANDLE(name) (xm_handles.h_##name)

/*
 * Fill both tables from libmpi, a dlopen handle.
 * Fails naming the first PMPI function that is missing; then the MPI is older than MPI-3.0.
 */
xcclResult_t xm_mpi_open(void *libmpi);

/* Address of one of the MPI library's functions, or NULL: for those that not every MPI has. */
void *xm_mpi_symbol(const char *name);

/* Address of one of its variables (Open MPI's predefined handles), as the program knows it. */
void *xm_mpi_variable(const char *name);

/* Does the MPI library take buffers of this device runtime ("cuda", "rocm") itself? */
bool xm_mpi_gpu_aware(const char *runtime);

#endif
