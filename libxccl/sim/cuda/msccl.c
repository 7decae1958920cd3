/* SPDX-License-Identifier: BSD-3-Clause */
/* What MSCCL's executor has beside NCCL's functions, and since when it has those. */
#include "ccl/api.h"

/* Algorithms from files are its own; the simulation has none to run. */
XS_API int mscclLoadAlgo(const char *path, int *handle, int rank);
XS_API int mscclRunAlgo(const void *send, const size_t *send_counts, const size_t *send_displs,
                        void *recv, const size_t *recv_counts, const size_t *recv_displs,
                        size_t count, int type, int root, int peer, int op, int handle,
                        struct xs_comm *comm, void *stream);
XS_API int mscclUnloadAlgo(int handle);

int mscclLoadAlgo(const char *path, int *handle, int rank)
{
    (void)handle;
    (void)rank;
    return xs_problem(XS_INVALID_USAGE, "mscclLoadAlgo : the simulation runs no algorithm (%s)",
                      (path != NULL) ? path : "NULL");
}

int mscclRunAlgo(const void *send, const size_t *send_counts, const size_t *send_displs, void *recv,
                 const size_t *recv_counts, const size_t *recv_displs, size_t count, int type,
                 int root, int peer, int op, int handle, struct xs_comm *comm, void *stream)
{
    (void)send;
    (void)send_counts;
    (void)send_displs;
    (void)recv;
    (void)recv_counts;
    (void)recv_displs;
    (void)count;
    (void)type;
    (void)root;
    (void)peer;
    (void)op;
    (void)comm;
    (void)stream;
    return xs_problem(XS_INVALID_ARGUMENT, "mscclRunAlgo : %d is no algorithm", handle);
}

int mscclUnloadAlgo(int handle)
{
    return xs_problem(XS_INVALID_ARGUMENT, "mscclUnloadAlgo : %d is no algorithm", handle);
}

int ncclAllToAll(const void *sendbuff, void *recvbuff, size_t count, int datatype,
                 struct xs_comm *comm, void *stream)
{
    return xs_api_alltoall(sendbuff, recvbuff, count, datatype, comm, stream);
}

static const struct xs_since since[] = {
    {"ncclGetLastError", 21304}, {"ncclCommInitRankConfig", 21400}, {"ncclCommFinalize", 21400},
    {"ncclCommSplit", 21801},    {"ncclMemAlloc", 21903},           {"ncclMemFree", 21903},
    {"ncclCommRegister", 21903}, {"ncclCommDeregister", 21903},     {"ncclGather", 22803},
    {"ncclScatter", 22803},
};

__attribute__((constructor)) static void setup(void)
{
    xs_api_setup(since, sizeof(since) / sizeof(since[0]));
}
