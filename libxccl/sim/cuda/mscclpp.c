/* SPDX-License-Identifier: BSD-3-Clause */
/* What MSCCL++ exports and does not do, and what NCCL has and it has not. */
#include "ccl/api.h"

static int unavailable(const char *name)
{
    return xs_problem(XS_INTERNAL_ERROR, "%s is currently unavailable", name);
}

int ncclAllToAll(const void *sendbuff, void *recvbuff, size_t count, int datatype,
                 struct xs_comm *comm, void *stream)
{
    (void)sendbuff;
    (void)recvbuff;
    (void)count;
    (void)datatype;
    (void)comm;
    (void)stream;
    return unavailable("ncclAllToAll");
}

int ncclAllToAllv(const void *sendbuff, const size_t sendcounts[], const size_t sdispls[],
                  void *recvbuff, const size_t recvcounts[], const size_t rdispls[], int datatype,
                  struct xs_comm *comm, void *stream)
{
    (void)sendbuff;
    (void)sendcounts;
    (void)sdispls;
    (void)recvbuff;
    (void)recvcounts;
    (void)rdispls;
    (void)datatype;
    (void)comm;
    (void)stream;
    return unavailable("ncclAllToAllv");
}

int ncclCommWindowRegister(struct xs_comm *comm, void *buff, size_t size, void **win, int flags)
{
    (void)comm;
    (void)buff;
    (void)size;
    (void)win;
    (void)flags;
    return unavailable("ncclCommWindowRegister");
}

int ncclCommWindowDeregister(struct xs_comm *comm, void *win)
{
    (void)comm;
    (void)win;
    return unavailable("ncclCommWindowDeregister");
}

/* Since never: hidden in every version. */
static const struct xs_since since[] = {{"ncclGather", 1 << 30}, {"ncclScatter", 1 << 30}};

__attribute__((constructor)) static void setup(void)
{
    xs_api_setup(since, sizeof(since) / sizeof(since[0]));
}
