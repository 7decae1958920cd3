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

/**
 * @brief Put other rows of a tuning table in the place of those of `XCCL_TUNE`, in this process.
 *
 * The rows decide from the next collective on. They have the form `coll:bytes:mem:ranks:path`, as
 * in `XCCL_TUNE`, joined by `#` or each on a line of its own. This is for programs that measure, as
 * xccl-tune does; a program that computes leaves the choice to tables.
 * @param[in] rows  Text, of which nothing is kept; NULL takes the rows of `XCCL_TUNE` again.
 * @return ::xcclSuccess; ::xcclInvalidArgument where the text is wrong, with xcclGetLastError()
 *         naming the place, and nothing changed; ::xcclInvalidUsage before MPI_Init and after
 *         MPI_Finalize.
 * @note Local, but all ranks have to give the same text, between the same two collectives of every
 *       communicator, and with no collective under way: else they take different paths, and wait
 *       for each other.
 */
XCCL_EXPORT xcclResult_t xcclTuneMPI(const char *rows);

#ifdef __cplusplus
}
#endif
#endif
