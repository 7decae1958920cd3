/* SPDX-License-Identifier: BSD-3-Clause */
/* The exported names of libnccl.so.2 and librccl.so.1. */
#ifndef XS_CCL_API_H
#define XS_CCL_API_H

#include "ccl/ccl.h"

typedef struct {
    char internal[XS_ID_BYTES];
} ncclUniqueId;

/* Hide what the reported version is too old for, or what XCCL_SIM_FAIL names. */
struct xs_since {
    const char *name;
    int         version;
};
void xs_api_setup(const struct xs_since *rows, size_t count);

XS_API int         ncclGetVersion(int *version);
XS_API const char *ncclGetErrorString(int result);
XS_API const char *ncclGetLastError(struct xs_comm *comm);
XS_API int         ncclGetUniqueId(ncclUniqueId *id);
XS_API int         ncclCommInitRank(struct xs_comm **comm, int nranks, ncclUniqueId id, int rank);
XS_API int ncclCommInitRankConfig(struct xs_comm **comm, int nranks, ncclUniqueId id, int rank,
                                  void *config);
XS_API int ncclCommInitRankScalable(struct xs_comm **comm, int nranks, int rank, int nid,
                                    ncclUniqueId *ids, void *config);
XS_API int ncclCommInitAll(struct xs_comm **comms, int ndev, const int *devlist);
XS_API int ncclCommSplit(struct xs_comm *comm, int color, int key, struct xs_comm **newcomm,
                         void *config);
XS_API int ncclCommFinalize(struct xs_comm *comm);
XS_API int ncclCommDestroy(struct xs_comm *comm);
XS_API int ncclCommAbort(struct xs_comm *comm);
XS_API int ncclCommGetAsyncError(struct xs_comm *comm, int *async_error);
XS_API int ncclCommCount(const struct xs_comm *comm, int *count);
XS_API int ncclCommUserRank(const struct xs_comm *comm, int *rank);
XS_API int ncclCommCuDevice(const struct xs_comm *comm, int *device);
XS_API int ncclCommRegister(const struct xs_comm *comm, void *buff, size_t size, void **handle);
XS_API int ncclCommDeregister(const struct xs_comm *comm, void *handle);
XS_API int ncclCommWindowRegister(struct xs_comm *comm, void *buff, size_t size, void **win,
                                  int flags);
XS_API int ncclCommWindowDeregister(struct xs_comm *comm, void *win);
XS_API int ncclMemAlloc(void **ptr, size_t size);
XS_API int ncclMemFree(void *ptr);
XS_API int ncclRedOpCreatePreMulSum(int *op, void *scalar, int datatype, int residence,
                                    struct xs_comm *comm);
XS_API int ncclRedOpDestroy(int op, struct xs_comm *comm);
XS_API int ncclAllReduce(const void *sendbuff, void *recvbuff, size_t count, int datatype, int op,
                         struct xs_comm *comm, void *stream);
XS_API int ncclReduce(const void *sendbuff, void *recvbuff, size_t count, int datatype, int op,
                      int root, struct xs_comm *comm, void *stream);
XS_API int ncclReduceScatter(const void *sendbuff, void *recvbuff, size_t recvcount, int datatype,
                             int op, struct xs_comm *comm, void *stream);
XS_API int ncclBroadcast(const void *sendbuff, void *recvbuff, size_t count, int datatype, int root,
                         struct xs_comm *comm, void *stream);
XS_API int ncclBcast(void *buff, size_t count, int datatype, int root, struct xs_comm *comm,
                     void *stream);
XS_API int ncclAllGather(const void *sendbuff, void *recvbuff, size_t sendcount, int datatype,
                         struct xs_comm *comm, void *stream);
XS_API int ncclAlltoAll(const void *sendbuff, void *recvbuff, size_t count, int datatype,
                        struct xs_comm *comm, void *stream);
XS_API int ncclAllToAll(const void *sendbuff, void *recvbuff, size_t count, int datatype,
                        struct xs_comm *comm, void *stream);
XS_API int ncclAllToAllv(const void *sendbuff, const size_t sendcounts[], const size_t sdispls[],
                         void *recvbuff, const size_t recvcounts[], const size_t rdispls[],
                         int datatype, struct xs_comm *comm, void *stream);
XS_API int ncclGather(const void *sendbuff, void *recvbuff, size_t count, int datatype, int root,
                      struct xs_comm *comm, void *stream);
XS_API int ncclScatter(const void *sendbuff, void *recvbuff, size_t count, int datatype, int root,
                       struct xs_comm *comm, void *stream);
XS_API int ncclSend(const void *sendbuff, size_t count, int datatype, int peer,
                    struct xs_comm *comm, void *stream);
XS_API int ncclRecv(void *recvbuff, size_t count, int datatype, int peer, struct xs_comm *comm,
                    void *stream);
XS_API int ncclGroupStart(void);
XS_API int ncclGroupEnd(void);

int xs_api_alltoall(const void *sendbuff, void *recvbuff, size_t count, int datatype,
                    struct xs_comm *comm, void *stream);

#endif
