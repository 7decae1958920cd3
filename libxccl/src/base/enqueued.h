/* SPDX-License-Identifier: BSD-3-Clause */
/* The stream-ordered functions: MPICH's, and ours of the same shape (include/xccl/mpix.h). */
#ifndef XC_BASE_ENQUEUED_H
#define XC_BASE_ENQUEUED_H

/* X(name of the collective, in capitals, number of arguments): the same as without _enqueue. */
#define XM_ENQUEUED_COLLECTIVES(X)                                                                 \
    X(Allreduce, ALLREDUCE, 6)                                                                     \
    X(Bcast, BCAST, 5)                                                                             \
    X(Reduce, REDUCE, 7)                                                                           \
    X(Reduce_scatter_block, REDUCE_SCATTER_BLOCK, 6)                                               \
    X(Allgather, ALLGATHER, 7)                                                                     \
    X(Alltoall, ALLTOALL, 7)                                                                       \
    X(Gather, GATHER, 8)                                                                           \
    X(Scatter, SCATTER, 8)                                                                         \
    X(Scan, SCAN, 6)                                                                               \
    X(Exscan, EXSCAN, 6)

/* X(name, number of arguments); each has a form _c with large counts. */
#define XM_ENQUEUED_MESSAGES(X)                                                                    \
    X(Send, 6)                                                                                     \
    X(Recv, 7)                                                                                     \
    X(Isend, 7)                                                                                    \
    X(Irecv, 7)

/* X(name, number of arguments) of all the others. */
#define XM_STREAM_FUNCTIONS(X)                                                                     \
    X(MPIX_Info_set_hex, 4)                                                                        \
    X(MPIX_Stream_create, 2)                                                                       \
    X(MPIX_Stream_free, 1)                                                                         \
    X(MPIX_Stream_comm_create, 3)                                                                  \
    X(MPIX_Stream_comm_create_multiplex, 4)                                                        \
    X(MPIX_Comm_get_stream, 3)                                                                     \
    X(MPIX_Stream_progress, 1)                                                                     \
    X(MPIX_Start_progress_thread, 1)                                                               \
    X(MPIX_Stop_progress_thread, 1)                                                                \
    X(MPIX_Wait_enqueue, 2)                                                                        \
    X(MPIX_Waitall_enqueue, 3)                                                                     \
    X(MPIX_Barrier_enqueue, 1)

#endif
