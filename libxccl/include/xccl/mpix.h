/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file mpix.h
 * @brief Stream-ordered MPI calls under MPICH's names, on any MPI (library libxccl-mpi).
 *
 * A call with the suffix _enqueue is put on a CUDA or HIP stream like a kernel: it begins when the
 * work before it on the stream is over, the work behind it begins when it is over, and the host
 * waits for nothing. While the stream is captured, the call becomes a part of the graph.
 *
 * @code
 * MPI_Info_create(&info);
 * MPI_Info_set(info, "type", "cudaStream_t");                        // or "hipStream_t"
 * MPIX_Info_set_hex(info, "value", &cuda_stream, sizeof(cuda_stream));
 * MPIX_Stream_create(info, &stream);
 * MPIX_Stream_comm_create(MPI_COMM_WORLD, stream, &comm);            // collective
 * MPIX_Allreduce_enqueue(MPI_IN_PLACE, data, n, MPI_FLOAT, MPI_SUM, comm);
 * @endcode
 *
 * Works behind an mpi.h that declares some of it (MPICH 4.1 and later) and one that does not.
 *
 * Each function returns MPI_SUCCESS or an error code of MPI, and calls the error handler of its
 * communicator first: that of MPI_COMM_WORLD where it has none, as for streams and infos. Counts
 * are in elements of the datatype.
 * @note If a rank cannot take part in a collective with its data, the call is an error there. Other
 *       ranks of its node are told by their next enqueued call; ranks of other nodes are not.
 * @note Needs libxccl-mpi.so in the program: linked in front of the MPI library, or preloaded
 *       (xccl-run).
 */
#ifndef XCCL_MPIX_H
#define XCCL_MPIX_H

#include <mpi.h>
#include <xccl/xccl.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Calls that MPICH defines ---- */

#ifndef MPIX_STREAM_NULL
/** A stream object; the same type and null handle as MPICH's. */
typedef int MPIX_Stream;
#define MPIX_STREAM_NULL ((MPIX_Stream)0x3c000000)

/**
 * @brief Set @p key of @p info to the @p value_size bytes at @p value, as hexadecimal text.
 */
XCCL_EXPORT int MPIX_Info_set_hex(MPI_Info info, const char *key, const void *value,
                                  int value_size);

/**
 * @brief Make a stream object of a stream of the program's.
 *
 * @param[in] info  "type": "cudaStream_t" or "hipStream_t"; "value": the handle, by
 *                  MPIX_Info_set_hex(). It belongs to the device's primary context (the CUDA
 *                  runtime's). Without a type the object names no device stream.
 * @note The program's stream lives until the object and its communicators are freed.
 */
XCCL_EXPORT int MPIX_Stream_create(MPI_Info info, MPIX_Stream *stream);

/** @brief Give the handle back; communicators go on using the stream. */
XCCL_EXPORT int MPIX_Stream_free(MPIX_Stream *stream);

/**
 * @brief A duplicate of @p comm with @p stream attached.
 *
 * Makes all that its calls may need: the workspace of the direct path and a communicator of the
 * vendor's library. A rank with ::MPIX_STREAM_NULL enqueues nothing, but may take part in messages
 * by ordinary calls. Freed by MPI_Comm_free, which waits until its stream is idle; graphs that hold
 * its calls are not launched any more then.
 * @note Collective over @p comm and blocking.
 */
XCCL_EXPORT int MPIX_Stream_comm_create(MPI_Comm comm, MPIX_Stream stream, MPI_Comm *newcomm);

/** @brief The same for @p count streams; one of them, or none, may be a device's. */
XCCL_EXPORT int MPIX_Stream_comm_create_multiplex(MPI_Comm comm, int count,
                                                  MPIX_Stream array_of_streams[],
                                                  MPI_Comm   *newcomm);

/** @brief The stream of a communicator (@p idx 0), or ::MPIX_STREAM_NULL. */
XCCL_EXPORT int MPIX_Comm_get_stream(MPI_Comm comm, int idx, MPIX_Stream *stream);

/**
 * @brief Let MPI and xccl make progress.
 *
 * Streams of xccl's do not need it: a thread of xccl makes progress on them.
 */
XCCL_EXPORT int MPIX_Stream_progress(MPIX_Stream stream);
/**
 * @brief 1 if the operation of @p request is complete, else 0; MPI_Wait or MPI_Test still has to
 * complete the request.
 *
 * In a loop with MPIX_Stream_progress(MPIX_STREAM_NULL) it waits for a request.
 */
XCCL_EXPORT int MPIX_Request_is_complete(MPI_Request request);
/** @brief Does nothing on streams of xccl's. */
XCCL_EXPORT int MPIX_Start_progress_thread(MPIX_Stream stream);
XCCL_EXPORT int MPIX_Stop_progress_thread(MPIX_Stream stream);

/**
 * @brief MPI_Allreduce in the order of the stream.
 * @note Needs MPI_THREAD_MULTIPLE where neither kernels nor the vendor's library carry the call.
 */
XCCL_EXPORT int MPIX_Allreduce_enqueue(const void *sendbuf, void *recvbuf, int count,
                                       MPI_Datatype datatype, MPI_Op op, MPI_Comm comm);
XCCL_EXPORT int MPIX_Allreduce_enqueue_c(const void *sendbuf, void *recvbuf, MPI_Count count,
                                         MPI_Datatype datatype, MPI_Op op, MPI_Comm comm);

/**
 * @brief Messages in the order of the stream, with MPI's matching, ordinary calls on the other side
 * included. They go through MPI, on host memory, and need MPI_THREAD_MULTIPLE.
 *
 * @p status is written when the stream has come to the end of the call, and may be
 * MPI_STATUS_IGNORE. A buffer on the host is read and written when the stream comes to the call.
 * @note If the message fails then, MPI calls the error handler of @p comm on a thread of xccl's,
 *       where it must return. The next enqueued call on @p comm returns the error, too.
 */
XCCL_EXPORT int MPIX_Send_enqueue(const void *buf, int count, MPI_Datatype datatype, int dest,
                                  int tag, MPI_Comm comm);
XCCL_EXPORT int MPIX_Send_enqueue_c(const void *buf, MPI_Count count, MPI_Datatype datatype,
                                    int dest, int tag, MPI_Comm comm);
XCCL_EXPORT int MPIX_Recv_enqueue(void *buf, int count, MPI_Datatype datatype, int source, int tag,
                                  MPI_Comm comm, MPI_Status *status);
XCCL_EXPORT int MPIX_Recv_enqueue_c(void *buf, MPI_Count count, MPI_Datatype datatype, int source,
                                    int tag, MPI_Comm comm, MPI_Status *status);

/**
 * @brief Begin a message in the order of the stream, which goes on at once.
 *
 * @p request is for MPIX_Wait_enqueue() and MPIX_Waitall_enqueue() alone, not for MPI_Wait.
 */
XCCL_EXPORT int MPIX_Isend_enqueue(const void *buf, int count, MPI_Datatype datatype, int dest,
                                   int tag, MPI_Comm comm, MPI_Request *request);
XCCL_EXPORT int MPIX_Isend_enqueue_c(const void *buf, MPI_Count count, MPI_Datatype datatype,
                                     int dest, int tag, MPI_Comm comm, MPI_Request *request);
XCCL_EXPORT int MPIX_Irecv_enqueue(void *buf, int count, MPI_Datatype datatype, int source, int tag,
                                   MPI_Comm comm, MPI_Request *request);
XCCL_EXPORT int MPIX_Irecv_enqueue_c(void *buf, MPI_Count count, MPI_Datatype datatype, int source,
                                     int tag, MPI_Comm comm, MPI_Request *request);

/** @brief Let the stream wait for such a message. @p request becomes MPI_REQUEST_NULL at once. */
XCCL_EXPORT int MPIX_Wait_enqueue(MPI_Request *request, MPI_Status *status);
XCCL_EXPORT int MPIX_Waitall_enqueue(int count, MPI_Request array_of_requests[],
                                     MPI_Status *array_of_statuses);
#endif

/* ---- Calls that only xccl has: arguments are those of the call without _enqueue ---- */

/** @brief Everything behind it on the stream begins after all ranks have come to it. */
XCCL_EXPORT int MPIX_Barrier_enqueue(MPI_Comm comm);
XCCL_EXPORT int MPIX_Bcast_enqueue(void *buffer, int count, MPI_Datatype datatype, int root,
                                   MPI_Comm comm);
XCCL_EXPORT int MPIX_Bcast_enqueue_c(void *buffer, MPI_Count count, MPI_Datatype datatype, int root,
                                     MPI_Comm comm);
XCCL_EXPORT int MPIX_Reduce_enqueue(const void *sendbuf, void *recvbuf, int count,
                                    MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm);
XCCL_EXPORT int MPIX_Reduce_enqueue_c(const void *sendbuf, void *recvbuf, MPI_Count count,
                                      MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm);
XCCL_EXPORT int MPIX_Reduce_scatter_block_enqueue(const void *sendbuf, void *recvbuf, int recvcount,
                                                  MPI_Datatype datatype, MPI_Op op, MPI_Comm comm);
XCCL_EXPORT int MPIX_Reduce_scatter_block_enqueue_c(const void *sendbuf, void *recvbuf,
                                                    MPI_Count recvcount, MPI_Datatype datatype,
                                                    MPI_Op op, MPI_Comm comm);
XCCL_EXPORT int MPIX_Allgather_enqueue(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                                       void *recvbuf, int recvcount, MPI_Datatype recvtype,
                                       MPI_Comm comm);
XCCL_EXPORT int MPIX_Allgather_enqueue_c(const void *sendbuf, MPI_Count sendcount,
                                         MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
                                         MPI_Datatype recvtype, MPI_Comm comm);
XCCL_EXPORT int MPIX_Alltoall_enqueue(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                                      void *recvbuf, int recvcount, MPI_Datatype recvtype,
                                      MPI_Comm comm);
XCCL_EXPORT int MPIX_Alltoall_enqueue_c(const void *sendbuf, MPI_Count sendcount,
                                        MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
                                        MPI_Datatype recvtype, MPI_Comm comm);
XCCL_EXPORT int MPIX_Gather_enqueue(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                                    void *recvbuf, int recvcount, MPI_Datatype recvtype, int root,
                                    MPI_Comm comm);
XCCL_EXPORT int MPIX_Gather_enqueue_c(const void *sendbuf, MPI_Count sendcount,
                                      MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
                                      MPI_Datatype recvtype, int root, MPI_Comm comm);
XCCL_EXPORT int MPIX_Scatter_enqueue(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                                     void *recvbuf, int recvcount, MPI_Datatype recvtype, int root,
                                     MPI_Comm comm);
XCCL_EXPORT int MPIX_Scatter_enqueue_c(const void *sendbuf, MPI_Count sendcount,
                                       MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
                                       MPI_Datatype recvtype, int root, MPI_Comm comm);
XCCL_EXPORT int MPIX_Scan_enqueue(const void *sendbuf, void *recvbuf, int count,
                                  MPI_Datatype datatype, MPI_Op op, MPI_Comm comm);
XCCL_EXPORT int MPIX_Scan_enqueue_c(const void *sendbuf, void *recvbuf, MPI_Count count,
                                    MPI_Datatype datatype, MPI_Op op, MPI_Comm comm);
XCCL_EXPORT int MPIX_Exscan_enqueue(const void *sendbuf, void *recvbuf, int count,
                                    MPI_Datatype datatype, MPI_Op op, MPI_Comm comm);
XCCL_EXPORT int MPIX_Exscan_enqueue_c(const void *sendbuf, void *recvbuf, MPI_Count count,
                                      MPI_Datatype datatype, MPI_Op op, MPI_Comm comm);

#ifdef __cplusplus
}
#endif
#endif
