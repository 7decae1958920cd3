/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file xccl_mpi.h
 * @brief Make an xccl communicator from an MPI communicator (library libxccl-mpi).
 */
#ifndef XCCL_XCCL_MPI_H
#define XCCL_XCCL_MPI_H

#include <mpi.h>
#include <xccl/xccl.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief The communicator over the ranks of @p mpi_comm, on the current device of each.
 *
 * The ranks agree: either all get a communicator or all get the same kind of failure.
 * @param[in]  mpi_comm  An intracommunicator. The result does not depend on its life.
 * @param[out] comm_p    To be freed with xcclCommDestroy() before MPI_Finalize.
 * @return ::xcclSuccess on all ranks, or the failure, with xcclGetLastError() naming the rank.
 * @note Collective over @p mpi_comm and blocking.
 */
XCCL_EXPORT xcclResult_t xcclCommInitMPI(xcclComm_t *comm_p, MPI_Comm mpi_comm);

#ifdef __cplusplus
}
#endif
#endif
