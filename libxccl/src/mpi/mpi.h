/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The MPI library of the process, reached without linking it.
 *
 * libmpi may be in the global scope, or private to a Python extension, and its name differs between
 * vendors; so each PMPI function is looked up in the library that was found in the process, and
 * each predefined handle too (in the Open MPI family handles are addresses of its variables).
 */
#ifndef XM_MPI_MPI_H
#define XM_MPI_MPI_H

#include <stdbool.h>
#include <stdint.h>

#include <mpi.h>

#include <xccl/xccl.h>

#include "mpi/functions.h"

/*
 * The family by its ABI, whoever made the library. The build says which mpi.h is the standard
 * ABI's; its library may be any MPI's.
 */
#if defined(XCCL_MPI_STANDARD_ABI)
#define XM_OPENMPI 0
#define XM_STANDARD_ABI 1
#define XM_FAMILY_NAME "mpiabi"
#elif defined(OMPI_MAJOR_VERSION)
#define XM_OPENMPI 1
#define XM_STANDARD_ABI 0
#define XM_FAMILY_NAME "openmpi"
#else
#define XM_OPENMPI 0
#define XM_STANDARD_ABI 0
#define XM_FAMILY_NAME "mpich"
#endif

/* Functions that xccl calls for itself: always the library's own, past any tool. */
#define XM_PMPI(X)                                                                                 \
    X(Init)                                                                                        \
    X(Init_thread)                                                                                 \
    X(Initialized)                                                                                 \
    X(Finalized)                                                                                   \
    X(Query_thread)                                                                                \
    X(Get_library_version)                                                                         \
    X(Allreduce)                                                                                   \
    X(Iallreduce)                                                                                  \
    X(Allgather)                                                                                   \
    X(Alltoall)                                                                                    \
    X(Iallgather)                                                                                  \
    X(Bcast)                                                                                       \
    X(Ibcast)                                                                                      \
    X(Reduce_local)                                                                                \
    X(Comm_size)                                                                                   \
    X(Comm_rank)                                                                                   \
    X(Comm_get_parent)                                                                             \
    X(Comm_remote_size)                                                                            \
    X(Comm_remote_group)                                                                           \
    X(Comm_create)                                                                                 \
    X(Comm_dup)                                                                                    \
    X(Comm_free)                                                                                   \
    X(Sendrecv)                                                                                    \
    X(Isend)                                                                                       \
    X(Issend)                                                                                      \
    X(Irecv)                                                                                       \
    X(Mprobe)                                                                                      \
    X(Iprobe)                                                                                      \
    X(Improbe)                                                                                     \
    X(Mrecv)                                                                                       \
    X(Comm_test_inter)                                                                             \
    X(Comm_group)                                                                                  \
    X(Group_size)                                                                                  \
    X(Group_translate_ranks)                                                                       \
    X(Group_free)                                                                                  \
    X(Comm_create_keyval)                                                                          \
    X(Comm_free_keyval)                                                                            \
    X(Comm_get_attr)                                                                               \
    X(Comm_set_attr)                                                                               \
    X(Comm_delete_attr)                                                                            \
    X(Comm_get_errhandler)                                                                         \
    X(Comm_create_errhandler)                                                                      \
    X(Comm_set_errhandler)                                                                         \
    X(Comm_call_errhandler)                                                                        \
    X(Win_get_errhandler)                                                                          \
    X(Win_call_errhandler)                                                                         \
    X(Errhandler_free)                                                                             \
    X(Error_class)                                                                                 \
    X(Op_create)                                                                                   \
    X(Op_commutative)                                                                              \
    X(Op_free)                                                                                     \
    X(Ireduce)                                                                                     \
    X(Add_error_class)                                                                             \
    X(Add_error_code)                                                                              \
    X(Add_error_string)                                                                            \
    X(Topo_test)                                                                                   \
    X(Cartdim_get)                                                                                 \
    X(Graph_neighbors_count)                                                                       \
    X(Dist_graph_neighbors_count)                                                                  \
    X(Test)                                                                                        \
    X(Wait)                                                                                        \
    X(Cancel)                                                                                      \
    X(Request_free)                                                                                \
    X(Request_get_status)                                                                          \
    X(Grequest_start)                                                                              \
    X(Grequest_complete)                                                                           \
    X(Test_cancelled)                                                                              \
    X(Get_elements_x)                                                                              \
    X(Status_set_elements)                                                                         \
    X(Status_set_elements_x)                                                                       \
    X(Status_set_cancelled)                                                                        \
    X(Send_init)                                                                                   \
    X(Start)                                                                                       \
    X(Pack)                                                                                        \
    X(Unpack)                                                                                      \
    X(Pack_size)                                                                                   \
    X(Pack_external_size)                                                                          \
    X(Type_size_x)                                                                                 \
    X(Type_get_extent_x)                                                                           \
    X(Type_get_true_extent_x)                                                                      \
    X(Type_get_envelope)                                                                           \
    X(Type_get_contents)                                                                           \
    X(Type_get_name)                                                                               \
    X(Type_free)                                                                                   \
    X(Type_contiguous)                                                                             \
    X(Type_create_struct)                                                                          \
    X(Type_commit)                                                                                 \
    X(Info_create)                                                                                 \
    X(Info_dup)                                                                                    \
    X(Info_free)                                                                                   \
    X(Info_get)                                                                                    \
    X(Info_set)                                                                                    \
    X(Type_create_keyval)                                                                          \
    X(Type_free_keyval)                                                                            \
    X(Type_get_attr)                                                                               \
    X(Type_set_attr)

struct xm_pmpi {
#define XM_FIELD(name) __typeof__(&PMPI_##name) name;
    XM_PMPI(XM_FIELD)
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
    X(MPI_Op, MPI_NO_OP, ompi_mpi_op_no_op)                                                        \
    X(MPI_Op, MPI_REPLACE, ompi_mpi_op_replace)                                                    \
    X(MPI_Op, MPI_SUM, ompi_mpi_op_sum)                                                            \
    X(MPI_Op, MPI_PROD, ompi_mpi_op_prod)                                                          \
    X(MPI_Op, MPI_MAX, ompi_mpi_op_max)                                                            \
    X(MPI_Op, MPI_MIN, ompi_mpi_op_min)                                                            \
    X(MPI_Op, MPI_MAXLOC, ompi_mpi_op_maxloc)                                                      \
    X(MPI_Op, MPI_MINLOC, ompi_mpi_op_minloc)                                                      \
    X(MPI_Op, MPI_BAND, ompi_mpi_op_band)                                                          \
    X(MPI_Op, MPI_BOR, ompi_mpi_op_bor)                                                            \
    X(MPI_Op, MPI_BXOR, ompi_mpi_op_bxor)                                                          \
    X(MPI_Op, MPI_LAND, ompi_mpi_op_land)                                                          \
    X(MPI_Op, MPI_LOR, ompi_mpi_op_lor)                                                            \
    X(MPI_Op, MPI_LXOR, ompi_mpi_op_lxor)                                                          \
    X(MPI_Group, MPI_GROUP_NULL, ompi_mpi_group_null)                                              \
    X(MPI_Info, MPI_INFO_NULL, ompi_mpi_info_null)                                                 \
    X(MPI_Request, MPI_REQUEST_NULL, ompi_request_null)                                            \
    X(MPI_Message, MPI_MESSAGE_NULL, ompi_message_null)                                            \
    X(MPI_Message, MPI_MESSAGE_NO_PROC, ompi_message_no_proc)                                      \
    X(MPI_Errhandler, MPI_ERRORS_ARE_FATAL, ompi_mpi_errors_are_fatal)                             \
    X(MPI_Errhandler, MPI_ERRORS_RETURN, ompi_mpi_errors_return)

struct xm_handles {
#define XM_FIELD(type, name, variable) type h_##name;
    XM_HANDLES(XM_FIELD)
#undef XM_FIELD
};

extern struct xm_handles xm_handles;
#define XM_HANDLE(name) (xm_handles.h_##name)

/*
 * Fill the tables from libmpi, a dlopen handle. next: what a tool behind us has of each function.
 * Fails naming the first PMPI function that is missing; then the MPI is older than MPI-3.0.
 */
xcclResult_t xm_mpi_open(void *libmpi, void (*const next[XM_NUM_FUNCTIONS])(void));

/* The library's own function, or NULL where it has none. */
typedef void (*xm_function_t)(void);
extern xm_function_t xm_mpi_functions[XM_NUM_FUNCTIONS];

/*
 * Call a function as the program did: through the next tool in line, if the call came under the
 * name MPI_..., else the library's own.
 */
long xm_mpi_forward(enum xm_function function, int profiling, const long *args);
/* Are we called from such a tool, on the way back? Then the call goes straight to the library. */
bool xm_mpi_is_forwarded(void);
/* So it does here. The program's callbacks, which the library may call, are served again. */
long xm_mpi_go_on(enum xm_function function, const long *args);
/* "MPI_Allreduce". */
const char *xm_mpi_function_name(enum xm_function function);
/* Number of arguments of a function. */
int xm_mpi_arguments(enum xm_function function);

/* Address of one of the MPI library's functions, or NULL: for those that not every MPI has. */
void *xm_mpi_symbol(const char *name);

/* Address of one of its variables (Open MPI's predefined handles), as the program knows it. */
void *xm_mpi_variable(const char *name);

/* "Open MPI v4.1.4", "MPICH 4.0.2": as the library calls itself, shortened. */
void xm_mpi_name(char *buf, size_t len);

/* Is the library Open MPI, whose ways some calls take into account? Any may have the standard ABI.
 */
bool xm_mpi_is_openmpi(void);

/* Does the MPI library take buffers of this device runtime ("cuda", "rocm") itself? */
bool xm_mpi_gpu_aware(const char *runtime);
/* Does MPI itself say that it is not, whatever XCCL_MPI_GPU_AWARE says? */
bool xm_mpi_denies_gpu_aware(const char *runtime);

/* Is there MPI_COMM_WORLD: between MPI_Init and MPI_Finalize? */
bool xm_mpi_has_world(void);

/*
 * A communicator of this process alone whose errors come back to us, to be freed; false if there is
 * none. What may be an error is asked with it: to hold back the errors of MPI_COMM_SELF instead,
 * its handler would have to be set, and in MPICH from 4.3 on one that was never set is that of
 * MPI_COMM_WORLD, which no call gives back.
 */
bool xm_mpi_make_self(MPI_Comm *comm_p);

/*
 * A number of this MPI_COMM_WORLD if another world has spawned it: the same on all of its ranks,
 * and another than those of other worlds where the launcher names them. 0: none has. Asked of MPI
 * when it has begun, since the program may leave its parents.
 */
void     xm_mpi_ask_spawned(void);
uint32_t xm_mpi_spawned(void);

/*
 * Report a failure to the program through the communicator's error handler; returns the MPI code.
 */
int xm_raise(MPI_Comm comm, xcclResult_t res, const char *text);
/* The same through that of a window or a file. */
int xm_raise_on_window(MPI_Win window, xcclResult_t res, const char *text);
int xm_raise_on_file(MPI_File file, xcclResult_t res, const char *text);
/* The MPI code of a failure, with text as its string; for requests, which report it later. */
int xm_error_code(xcclResult_t res, const char *text);
/* MPI has ended, and its codes with it. */
void xm_errors_forget(void);

#endif
