/* SPDX-License-Identifier: BSD-3-Clause */
/* What RCCL has under names of its own, and since when. */
#include "ccl/api.h"

int ncclAllToAll(const void *sendbuff, void *recvbuff, size_t count, int datatype,
                 struct xs_comm *comm, void *stream)
{
    return xs_api_alltoall(sendbuff, recvbuff, count, datatype, comm, stream);
}

/* A group of sends and receives, as RCCL does it too; displacements are in elements. */
int ncclAllToAllv(const void *sendbuff, const size_t sendcounts[], const size_t sdispls[],
                  void *recvbuff, const size_t recvcounts[], const size_t rdispls[], int datatype,
                  struct xs_comm *comm, void *stream)
{
    size_t size = xs_type_bytes(datatype);
    int    nranks;
    int    res = ncclCommCount(comm, &nranks);

    if (res != XS_SUCCESS) {
        return res;
    }
    if ((sendcounts == NULL) || (sdispls == NULL) || (recvcounts == NULL) || (rdispls == NULL)) {
        return xs_problem(XS_INVALID_ARGUMENT, "AllToAllv : counts or displacements are NULL");
    }
    xs_group_start();
    for (int i = 0; (i < nranks) && (res == XS_SUCCESS); i++) {
        if (sendcounts[i] > 0) {
            res = ncclSend((const char *)sendbuff + sdispls[i] * size, sendcounts[i], datatype, i,
                           comm, stream);
        }
        if ((res == XS_SUCCESS) && (recvcounts[i] > 0)) {
            res = ncclRecv((char *)recvbuff + rdispls[i] * size, recvcounts[i], datatype, i, comm,
                           stream);
        }
    }
    int ended = xs_group_end();
    return (res != XS_SUCCESS) ? res : ended;
}

static const struct xs_since since[] = {
    {"ncclGetLastError", 21304}, {"ncclCommInitRankConfig", 21400}, {"ncclCommFinalize", 21400},
    {"ncclCommSplit", 21803},    {"ncclMemAlloc", 22003},           {"ncclMemFree", 22003},
    {"ncclCommRegister", 22003}, {"ncclCommDeregister", 22003},
};

__attribute__((constructor)) static void setup(void)
{
    xs_api_setup(since, sizeof(since) / sizeof(since[0]));
}
