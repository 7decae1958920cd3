/* SPDX-License-Identifier: BSD-3-Clause */
/* What NCCL has under names of its own, and since when. */
#include <stdlib.h>
#include <string.h>

#include "ccl/api.h"

/* Several ids spread the start-up of many ranks in NCCL; here the first one serves all. */
int ncclCommInitRankScalable(struct xs_comm **comm, int nranks, int rank, int nid,
                             ncclUniqueId *ids, void *config)
{
    if ((nid < 1) || (nid > nranks) || (ids == NULL)) {
        return xs_problem(XS_INVALID_ARGUMENT,
                          "CommInitRankScalable : %d ids for %d ranks is out of range", nid,
                          nranks);
    }
    return ncclCommInitRankConfig(comm, nranks, ids[0], rank, config);
}

int ncclAlltoAll(const void *sendbuff, void *recvbuff, size_t count, int datatype,
                 struct xs_comm *comm, void *stream)
{
    return xs_api_alltoall(sendbuff, recvbuff, count, datatype, comm, stream);
}

static bool is_off(const char *variable)
{
    const char *value = getenv(variable);

    return (value != NULL) && (strcmp(value, "0") == 0);
}

/*
 * Collective, and as strict as NCCL: whole pages, and all ranks wait for each other. Where both
 * kinds of registration are off it succeeds, and writes no window.
 */
int ncclCommWindowRegister(struct xs_comm *comm, void *buff, size_t size, void **win, int flags)
{
    enum { PAGE = 4096, SYMMETRIC = 1 };

    if (is_off("NCCL_WIN_ENABLE") && is_off("NCCL_LOCAL_REGISTER")) {
        return XS_SUCCESS;
    }
    if ((comm == NULL) || (win == NULL) || ((flags & ~SYMMETRIC) != 0)) {
        return xs_problem(XS_INVALID_ARGUMENT, "CommWindowRegister : wrong argument");
    }
    if ((((uintptr_t)buff % PAGE) != 0) || ((size % PAGE) != 0)) {
        return xs_problem(XS_INVALID_ARGUMENT,
                          "CommWindowRegister : %p and %zu are no multiples of %d", buff, size,
                          PAGE);
    }
    return xs_comm_register_together(comm, buff, size, win);
}

int ncclCommWindowDeregister(struct xs_comm *comm, void *win)
{
    return ncclCommDeregister(comm, win);
}

static const struct xs_since since[] = {
    {"ncclGetLastError", 21304},
    {"ncclCommInitRankConfig", 21400},
    {"ncclCommFinalize", 21400},
    {"ncclCommSplit", 21801},
    {"ncclMemAlloc", 21903},
    {"ncclMemFree", 21903},
    {"ncclCommRegister", 21903},
    {"ncclCommDeregister", 21903},
    {"ncclCommInitRankScalable", 22304},
    {"ncclCommWindowRegister", 22703},
    {"ncclCommWindowDeregister", 22703},
    {"ncclAlltoAll", 22803},
    {"ncclGather", 22803},
    {"ncclScatter", 22803},
};

__attribute__((constructor)) static void setup(void)
{
    xs_api_setup(since, sizeof(since) / sizeof(since[0]));
}
