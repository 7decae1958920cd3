/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The functions of MPI that move the data of one process's buffers and are no collectives:
 * messages, files, packing. Names and argument kinds, once, as collectives.h has them for
 * collectives.
 */
#ifndef XC_BASE_TRANSFERS_H
#define XC_BASE_TRANSFERS_H

/*
 * X(name, number of arguments, form, the kind of each argument)
 *
 *   s r b  buffer that is read, written, both
 *   n      count of the buffers before it that have none yet; MPI_Count in the form _c; where there
 *          is none it is 1
 *   t      their type                    z y  their size in bytes; y: always MPI_Aint or MPI_Count
 *   m N    number of partitions, and the count of each, always MPI_Count
 *   c      communicator                  h    file
 *   S      status                        q    request
 *   w      window                        k    rank of its group
 *   o      operation; MPI_NO_OP takes no heed of the first buffer
 *   .      anything else
 *
 * Form: B blocking, N non-blocking, P persistent, O and E the begin and the end of a split call,
 * W over when the window is synchronised, R refused on such memory, A attaches it for buffered
 * sends, Q asks for a message; and of windows, Y synchronises one, Z makes one.
 * Those of the second list have no form with large counts.
 */
#define XM_TRANSFERS_WITH_COUNTS(X)                                                                \
    X(Send, 6, 'B', "snt..c")                                                                      \
    X(Bsend, 6, 'B', "snt..c")                                                                     \
    X(Ssend, 6, 'B', "snt..c")                                                                     \
    X(Rsend, 6, 'B', "snt..c")                                                                     \
    X(Recv, 7, 'B', "rnt..cS")                                                                     \
    X(Mrecv, 5, 'B', "rnt.S")                                                                      \
    X(Sendrecv, 12, 'B', "snt..rnt..cS")                                                           \
    X(Sendrecv_replace, 9, 'B', "bnt....cS")                                                       \
    X(Isend, 7, 'N', "snt..cq")                                                                    \
    X(Ibsend, 7, 'N', "snt..cq")                                                                   \
    X(Issend, 7, 'N', "snt..cq")                                                                   \
    X(Irsend, 7, 'N', "snt..cq")                                                                   \
    X(Irecv, 7, 'N', "rnt..cq")                                                                    \
    X(Imrecv, 5, 'N', "rnt.q")                                                                     \
    X(Isendrecv, 12, 'N', "snt..rnt..cq")                                                          \
    X(Isendrecv_replace, 9, 'N', "bnt....cq")                                                      \
    X(Send_init, 7, 'P', "snt..cq")                                                                \
    X(Bsend_init, 7, 'P', "snt..cq")                                                               \
    X(Ssend_init, 7, 'P', "snt..cq")                                                               \
    X(Rsend_init, 7, 'P', "snt..cq")                                                               \
    X(Recv_init, 7, 'P', "rnt..cq")                                                                \
    X(Pack, 7, 'B', "sntrz..")                                                                     \
    X(Unpack, 7, 'B', "sz.rnt.")                                                                   \
    X(Pack_external, 7, 'B', ".sntry.")                                                            \
    X(Unpack_external, 7, 'B', ".sy.rnt")                                                          \
    X(Reduce_local, 5, 'B', "sbnt.")                                                               \
    X(File_read, 5, 'B', "hrntS")                                                                  \
    X(File_read_all, 5, 'B', "hrntS")                                                              \
    X(File_read_at, 6, 'B', "h.rntS")                                                              \
    X(File_read_at_all, 6, 'B', "h.rntS")                                                          \
    X(File_read_ordered, 5, 'B', "hrntS")                                                          \
    X(File_read_shared, 5, 'B', "hrntS")                                                           \
    X(File_write, 5, 'B', "hsntS")                                                                 \
    X(File_write_all, 5, 'B', "hsntS")                                                             \
    X(File_write_at, 6, 'B', "h.sntS")                                                             \
    X(File_write_at_all, 6, 'B', "h.sntS")                                                         \
    X(File_write_ordered, 5, 'B', "hsntS")                                                         \
    X(File_write_shared, 5, 'B', "hsntS")                                                          \
    X(File_iread, 5, 'N', "hrntq")                                                                 \
    X(File_iread_all, 5, 'N', "hrntq")                                                             \
    X(File_iread_at, 6, 'N', "h.rntq")                                                             \
    X(File_iread_at_all, 6, 'N', "h.rntq")                                                         \
    X(File_iread_shared, 5, 'N', "hrntq")                                                          \
    X(File_iwrite, 5, 'N', "hsntq")                                                                \
    X(File_iwrite_all, 5, 'N', "hsntq")                                                            \
    X(File_iwrite_at, 6, 'N', "h.sntq")                                                            \
    X(File_iwrite_at_all, 6, 'N', "h.sntq")                                                        \
    X(File_iwrite_shared, 5, 'N', "hsntq")                                                         \
    X(File_read_all_begin, 4, 'O', "hrnt")                                                         \
    X(File_read_at_all_begin, 5, 'O', "h.rnt")                                                     \
    X(File_read_ordered_begin, 4, 'O', "hrnt")                                                     \
    X(File_write_all_begin, 4, 'O', "hsnt")                                                        \
    X(File_write_at_all_begin, 5, 'O', "h.snt")                                                    \
    X(File_write_ordered_begin, 4, 'O', "hsnt")                                                    \
    X(Put, 8, 'W', "sntk...w")                                                                     \
    X(Get, 8, 'W', "rntk...w")                                                                     \
    X(Accumulate, 9, 'W', "sntk....w")                                                             \
    X(Get_accumulate, 12, 'W', "sntrntk...ow")                                                     \
    X(Win_create, 6, 'Z', "sy..c.")                                                                \
    X(Buffer_attach, 2, 'A', "sz")                                                                 \
    X(Rput, 9, 'N', "sntk...wq")                                                                   \
    X(Rget, 9, 'N', "rntk...wq")                                                                   \
    X(Raccumulate, 10, 'N', "sntk....wq")                                                          \
    X(Rget_accumulate, 13, 'N', "sntrntk...owq")

#define XM_TRANSFERS_WITHOUT_COUNTS(X)                                                             \
    X(Probe, 4, 'Q', "..cS")                                                                       \
    X(Iprobe, 5, 'Q', "..c.S")                                                                     \
    X(Mprobe, 5, 'Q', "..c.S")                                                                     \
    X(Improbe, 6, 'Q', "..c..S")                                                                   \
    X(Psend_init, 9, 'P', "smNt..c.q")                                                             \
    X(Precv_init, 9, 'P', "rmNt..c.q")                                                             \
    X(File_read_all_end, 3, 'E', "hrS")                                                            \
    X(File_read_at_all_end, 3, 'E', "hrS")                                                         \
    X(File_read_ordered_end, 3, 'E', "hrS")                                                        \
    X(File_write_all_end, 3, 'E', "hsS")                                                           \
    X(File_write_at_all_end, 3, 'E', "hsS")                                                        \
    X(File_write_ordered_end, 3, 'E', "hsS")                                                       \
    X(Fetch_and_op, 7, 'W', "srtk.ow")                                                             \
    X(Compare_and_swap, 7, 'W', "ssrtk.w")                                                         \
    X(Win_attach, 3, 'R', "wsy")                                                                   \
    X(Win_fence, 2, 'Y', ".w")                                                                     \
    X(Win_complete, 1, 'Y', "w")                                                                   \
    X(Win_unlock, 2, 'Y', "kw")                                                                    \
    X(Win_unlock_all, 1, 'Y', "w")                                                                 \
    X(Win_flush, 2, 'Y', "kw")                                                                     \
    X(Win_flush_all, 1, 'Y', "w")                                                                  \
    X(Win_flush_local, 2, 'Y', "kw")                                                               \
    X(Win_flush_local_all, 1, 'Y', "w")

#endif
