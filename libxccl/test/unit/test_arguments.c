/* SPDX-License-Identifier: BSD-3-Clause */
/* The matrix of bad input: each gives its error, with a text that names it, and nothing is asked
 * of the vendor's library. */
#include <stdint.h>

#include "with_fake.h"

enum { NRANKS = 4, RANK = 2 };

static char       buffer[8192];
static void      *s = buffer, *r = buffer + 4096;
static size_t     counts[NRANKS] = {1, 2, 3, 4};
static size_t     displs[NRANKS] = {0, 8, 16, 24};
static xcclComm_t comm;

/* The call was refused: code, parts of the text, nothing enqueued. */
static void refused(int line, xcclResult_t rc, xcclResult_t want, const char *call,
                    const char *part)
{
    const char *text = xcclGetLastError(NULL);

    CHECK(rc == want, "line %d: result %d instead of %d (%s)", line, rc, want, text);
    CHECK(strstr(text, call) != NULL, "line %d: \"%s\" does not name %s", line, text, call);
    CHECK(strstr(text, part) != NULL, "line %d: \"%s\" does not say %s", line, text, part);
    CHECK(fake_count() == 0, "line %d: asked the vendor: %s", line, fake_get(0));
    fake_clear();
}
#define REFUSED(call, name, part) refused(__LINE__, call, xcclInvalidArgument, name, part)

#define TYPE xcclFloat32

static void test_comm_argument(void)
{
    char not_a_comm[256] = {0};

    REFUSED(xcclAllReduce(s, r, 1, TYPE, xcclSum, NULL, NULL), "xcclAllReduce", "comm is NULL");
    REFUSED(xcclAllReduce(s, r, 1, TYPE, xcclSum, (xcclComm_t)(void *)not_a_comm, NULL),
            "xcclAllReduce", "no communicator of xccl");
    REFUSED(xcclSend(s, 1, TYPE, 0, NULL, NULL), "xcclSend", "comm is NULL");
    REFUSED(xcclCommCount(NULL, &(int){0}), "xcclCommCount", "comm is NULL");
    REFUSED(xcclCommCount(comm, NULL), "xcclCommCount", "NULL");
    REFUSED(xcclCommUserRank(comm, NULL), "xcclCommUserRank", "NULL");
    REFUSED(xcclCommDevice(comm, NULL), "xcclCommDevice", "NULL");
    REFUSED(xcclCommGetAsyncError(comm, NULL), "xcclCommGetAsyncError", "NULL");
    REFUSED(xcclCommGetAsyncError(NULL, &(xcclResult_t){0}), "xcclCommGetAsyncError", "NULL");
}

static void test_types_and_ops(void)
{
    REFUSED(xcclAllReduce(s, r, 1, (xcclDataType_t)12, xcclSum, comm, NULL), "xcclAllReduce",
            "datatype is 12");
    REFUSED(xcclAllReduce(s, r, 1, (xcclDataType_t)-1, xcclSum, comm, NULL), "xcclAllReduce",
            "datatype is -1");
    REFUSED(xcclAllGather(s, r, 1, (xcclDataType_t)99, comm, NULL), "xcclAllGather",
            "datatype is 99");
    REFUSED(xcclReduce(s, r, 1, TYPE, (xcclRedOp_t)-1, 0, comm, NULL), "xcclReduce", "op is -1");
    /* Also where there is nothing to do. */
    REFUSED(xcclAllReduce(s, r, 0, (xcclDataType_t)12, xcclSum, comm, NULL), "xcclAllReduce",
            "datatype is 12");
}

static void test_roots(void)
{
    REFUSED(xcclBroadcast(s, r, 1, TYPE, NRANKS, comm, NULL), "xcclBroadcast", "root is 4");
    REFUSED(xcclBroadcast(s, r, 1, TYPE, -1, comm, NULL), "xcclBroadcast", "root is -1");
    REFUSED(xcclBcast(s, 1, TYPE, -1, comm, NULL), "xcclBroadcast", "root is -1");
    REFUSED(xcclReduce(s, r, 1, TYPE, xcclSum, 7, comm, NULL), "xcclReduce", "root is 7");
    REFUSED(xcclGather(s, r, 1, TYPE, 4, comm, NULL), "xcclGather", "root is 4");
    REFUSED(xcclGatherv(s, 1, r, counts, displs, TYPE, 4, comm, NULL), "xcclGatherv", "root is 4");
    REFUSED(xcclScatter(s, r, 1, TYPE, 4, comm, NULL), "xcclScatter", "root is 4");
    REFUSED(xcclScatterv(s, counts, displs, r, 1, TYPE, 4, comm, NULL), "xcclScatterv", "root is");
    REFUSED(xcclSend(s, 1, TYPE, 4, comm, NULL), "xcclSend", "peer is 4, it must be 0 to 3");
    REFUSED(xcclRecv(r, 1, TYPE, -1, comm, NULL), "xcclRecv", "peer is -1");
}

static void test_null_buffers(void)
{
    REFUSED(xcclAllReduce(NULL, r, 1, TYPE, xcclSum, comm, NULL), "xcclAllReduce", "sendbuff is N");
    REFUSED(xcclAllReduce(s, NULL, 1, TYPE, xcclSum, comm, NULL), "xcclAllReduce", "recvbuff is N");
    REFUSED(xcclBroadcast(s, NULL, 1, TYPE, 0, comm, NULL), "xcclBroadcast", "recvbuff is NULL");
    REFUSED(xcclBroadcast(NULL, r, 1, TYPE, RANK, comm, NULL), "xcclBroadcast", "sendbuff is N");
    REFUSED(xcclReduce(s, NULL, 1, TYPE, xcclSum, RANK, comm, NULL), "xcclReduce", "recvbuff is N");
    REFUSED(xcclReduceScatter(NULL, r, 1, TYPE, xcclSum, comm, NULL), "xcclReduceScatter", "sendb");
    REFUSED(xcclAllGather(s, NULL, 1, TYPE, comm, NULL), "xcclAllGather", "recvbuff is NULL");
    REFUSED(xcclAllGatherv(s, 3, NULL, counts, displs, TYPE, comm, NULL), "xcclAllGatherv", "recv");
    REFUSED(xcclAllGatherv(s, 3, r, NULL, displs, TYPE, comm, NULL), "xcclAllGatherv", "counts of");
    REFUSED(xcclAlltoAll(NULL, r, 1, TYPE, comm, NULL), "xcclAlltoAll", "sendbuff is NULL");
    REFUSED(xcclAlltoAllv(s, NULL, displs, r, counts, displs, TYPE, comm, NULL), "xcclAlltoAllv",
            "counts of sendbuff");
    REFUSED(xcclAlltoAllv(s, counts, NULL, r, counts, displs, TYPE, comm, NULL), "xcclAlltoAllv",
            "displacements of sendbuff");
    REFUSED(xcclAlltoAllv(s, counts, displs, r, NULL, displs, TYPE, comm, NULL), "xcclAlltoAllv",
            "counts of recvbuff");
    REFUSED(xcclAlltoAllv(s, counts, displs, r, counts, NULL, TYPE, comm, NULL), "xcclAlltoAllv",
            "displacements of recvbuff");
    REFUSED(xcclGather(s, NULL, 1, TYPE, RANK, comm, NULL), "xcclGather", "recvbuff is NULL");
    REFUSED(xcclGatherv(s, 3, r, NULL, NULL, TYPE, RANK, comm, NULL), "xcclGatherv", "counts of");
    REFUSED(xcclGatherv(s, 3, r, counts, NULL, TYPE, RANK, comm, NULL), "xcclGatherv", "displacem");
    REFUSED(xcclScatter(NULL, r, 1, TYPE, RANK, comm, NULL), "xcclScatter", "sendbuff is NULL");
    REFUSED(xcclScatterv(NULL, counts, displs, r, 3, TYPE, RANK, comm, NULL), "xcclScatterv",
            "sendbuff is NULL");
    REFUSED(xcclSend(NULL, 1, TYPE, 0, comm, NULL), "xcclSend", "sendbuff is NULL");
    REFUSED(xcclRecv(NULL, 1, TYPE, 0, comm, NULL), "xcclRecv", "recvbuff is NULL");
}

static void test_overflow(void)
{
    size_t huge = SIZE_MAX / 2;
    size_t far[NRANKS] = {0, 0, 0, SIZE_MAX - 2};

    REFUSED(xcclAllReduce(s, r, huge, TYPE, xcclSum, comm, NULL), "xcclAllReduce", "beyond any");
    REFUSED(xcclAllReduce(s, r, (size_t)-1, xcclInt8, xcclSum, comm, NULL), "xcclAllReduce",
            "beyo");
    /* 4 blocks of it are too much, one is not. */
    REFUSED(xcclAllGather(s, r, (size_t)PTRDIFF_MAX / 2, xcclInt8, comm, NULL), "xcclAllGather",
            "beyond any");
    REFUSED(xcclSend(s, huge, xcclFloat64, 0, comm, NULL), "xcclSend", "beyond any");
    REFUSED(xcclAlltoAllv(s, counts, far, r, counts, displs, xcclInt8, comm, NULL), "xcclAlltoAllv",
            "rank 3");
    REFUSED(xcclAlltoAllv(s, counts, displs, r, counts, far, xcclInt8, comm, NULL), "xcclAlltoAllv",
            "recvbuff (rank 3)");
}

static void test_overlap(void)
{
    char *b = buffer;

    REFUSED(xcclAllReduce(b, b + 4, 2, TYPE, xcclSum, comm, NULL), "xcclAllReduce", "overlap");
    REFUSED(xcclBroadcast(b, b + 4, 2, TYPE, RANK, comm, NULL), "xcclBroadcast", "overlap");
    REFUSED(xcclAlltoAll(b, b, 2, TYPE, comm, NULL), "xcclAlltoAll", "does not work in place");
    REFUSED(xcclAlltoAll(b, b + 8, 2, TYPE, comm, NULL), "xcclAlltoAll", "overlap");
    /* In place at another rank's block. */
    REFUSED(xcclAllGather(b + 1 * 8, b, 2, TYPE, comm, NULL), "xcclAllGather", "caller's block");
    REFUSED(xcclReduceScatter(b, b + 3 * 8, 2, TYPE, xcclSum, comm, NULL), "xcclReduceScatter",
            "caller's block");
    REFUSED(xcclGather(b, b, 2, TYPE, RANK, comm, NULL), "xcclGather", "overlap");
    REFUSED(xcclScatter(b, b, 2, TYPE, RANK, comm, NULL), "xcclScatter", "overlap");
}

static void test_own_counts(void)
{
    REFUSED(xcclAllGatherv(s, 2, r, counts, displs, TYPE, comm, NULL), "xcclAllGatherv",
            "is 2, but");
    REFUSED(xcclGatherv(s, 4, r, counts, displs, TYPE, RANK, comm, NULL), "xcclGatherv", "says 3");
    REFUSED(xcclScatterv(s, counts, displs, r, 4, TYPE, RANK, comm, NULL), "xcclScatterv",
            "says 3");
}

static void test_init_arguments(void)
{
    xcclUniqueId id, zero = {{0}};
    xcclComm_t   out = (xcclComm_t)(void *)buffer;
    xcclConfig_t config = {0};
    xcclWindow_t win = NULL;

    CHECK(xcclGetUniqueId(&id) == xcclSuccess, "id");
    fake_clear();
    REFUSED(xcclCommInitRank(NULL, 1, id, 0), "xcclCommInitRank", "comm_p is NULL");
    REFUSED(xcclCommInitRank(&out, 0, id, 0), "xcclCommInitRank", "nranks is 0");
    REFUSED(xcclCommInitRank(&out, -3, id, 0), "xcclCommInitRank", "nranks is -3");
    REFUSED(xcclCommInitRank(&out, 2, id, 2), "xcclCommInitRank", "rank is 2, it must be 0 to 1");
    REFUSED(xcclCommInitRank(&out, 2, id, -1), "xcclCommInitRank", "rank is -1");
    REFUSED(xcclCommInitRank(&out, 2, zero, 1), "rank 1", "unique id");
    REFUSED(xcclCommInitRankConfig(&out, 2, id, 1, &config), "xcclCommInitRankConfig",
            "XCCL_CONFIG_INITIALIZER");
    REFUSED(xcclCommSplit(comm, -2, 0, &out, NULL), "xcclCommSplit", "color is -2");
    REFUSED(xcclCommSplit(comm, 0, 0, NULL, NULL), "xcclCommSplit", "newcomm_p is NULL");
    REFUSED(xcclCommSplit(comm, 0, 0, &out, &config), "xcclCommSplit", "INITIALIZER");
    REFUSED(xcclCommSplit(NULL, 0, 0, &out, NULL), "xcclCommSplit", "comm is NULL");
    CHECK(out == (xcclComm_t)(void *)buffer, "an output was written");
    REFUSED(xcclGetUniqueId(NULL), "xcclGetUniqueId", "NULL");
    REFUSED(xcclGetVersion(NULL), "xcclGetVersion", "NULL");
    REFUSED(xcclGetBackend(NULL, &(int){0}), "xcclGetBackend", "name_p is NULL");
    REFUSED(xcclMemAlloc(NULL, 8), "xcclMemAlloc", "NULL");
    REFUSED(xcclCommWindowRegister(comm, NULL, 4096, &win, 0), "WindowRegister", "buff is NULL");
    REFUSED(xcclCommWindowRegister(comm, buffer, 0, &win, 0), "WindowRegister", "size is 0");
    REFUSED(xcclCommWindowRegister(comm, buffer, 8, NULL, 0), "WindowRegister", "win_p is NULL");
    REFUSED(xcclCommWindowRegister(comm, buffer, 8, &win, 2), "WindowRegister", "winFlags is 2");
}

static void test_other_arguments(void)
{
    xcclRedOp_t op;
    float       one = 1;

    REFUSED(xcclRedOpCreatePreMulSum(NULL, &one, TYPE, xcclScalarHostImmediate, comm),
            "xcclRedOpCreatePreMulSum", "op_p is NULL");
    REFUSED(xcclRedOpCreatePreMulSum(&op, NULL, TYPE, xcclScalarHostImmediate, comm),
            "xcclRedOpCreatePreMulSum", "scalar is NULL");
    REFUSED(xcclRedOpCreatePreMulSum(&op, &one, TYPE, (xcclScalarResidence_t)2, comm),
            "xcclRedOpCreatePreMulSum", "residence is 2");
    REFUSED(xcclRedOpCreatePreMulSum(&op, &one, (xcclDataType_t)44, xcclScalarDevice, comm),
            "xcclRedOpCreatePreMulSum", "datatype 44");
    REFUSED(xcclRedOpDestroy(xcclAvg, comm), "xcclRedOpDestroy", "avg is built in");
    refused(__LINE__, xcclGroupEnd(), xcclInvalidUsage, "xcclGroupEnd", "no group open");
}

/* What looks odd but is right. */
static void test_allowed(void)
{
    char *b = buffer;

#define ALLOWED(call)                                                                              \
    do {                                                                                           \
        CHECK((call) == xcclSuccess, "%s", xcclGetLastError(NULL));                                \
        CHECK(fake_count() > 0, "nothing was asked of the vendor");                                \
        fake_clear();                                                                              \
    } while (0)
    ALLOWED(xcclAllReduce(b, b, 2, TYPE, xcclSum, comm, NULL));
    ALLOWED(xcclAllReduce(b, b + 8, 2, TYPE, xcclSum, comm, NULL)); /* side by side */
    ALLOWED(xcclAllGather(b + RANK * 8, b, 2, TYPE, comm, NULL));
    ALLOWED(xcclReduceScatter(b, b + RANK * 8, 2, TYPE, xcclSum, comm, NULL));
    ALLOWED(xcclGather(b + RANK * 8, b, 2, TYPE, RANK, comm, NULL));
    ALLOWED(xcclScatter(b, b + RANK * 8, 2, TYPE, RANK, comm, NULL));
    /* Not significant on this rank. */
    ALLOWED(xcclBroadcast(NULL, r, 1, TYPE, 0, comm, NULL));
    ALLOWED(xcclReduce(s, NULL, 1, TYPE, xcclSum, 0, comm, NULL));
    ALLOWED(xcclGather(s, NULL, 1, TYPE, 0, comm, NULL));
    ALLOWED(xcclGatherv(s, 1, NULL, NULL, NULL, TYPE, 0, comm, NULL));
    ALLOWED(xcclScatter(NULL, r, 1, TYPE, 0, comm, NULL));
    ALLOWED(xcclScatterv(NULL, NULL, NULL, r, 1, TYPE, 0, comm, NULL));
#undef ALLOWED
    /* Nothing to move: no buffer needed. */
    CHECK(xcclAllReduce(NULL, NULL, 0, TYPE, xcclSum, comm, NULL) == xcclSuccess, "0");
    CHECK(xcclSend(NULL, 0, TYPE, 1, comm, NULL) == xcclSuccess, "0");
    CHECK(xcclGather(NULL, NULL, 0, TYPE, RANK, comm, NULL) == xcclSuccess, "0");
    size_t zeros[NRANKS] = {0};
    CHECK(xcclAlltoAllv(NULL, zeros, zeros, NULL, zeros, zeros, TYPE, comm, NULL) == xcclSuccess,
          "0");
    fake_clear();
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s <folder of stand-ins>\n", argv[0]);
        return 2;
    }
    use_fake(argv[1], "nccl-2.32", "libnccl.so.2");
    comm = make_comm(NRANKS, RANK);
    test_comm_argument();
    test_types_and_ops();
    test_roots();
    test_null_buffers();
    test_overflow();
    test_overlap();
    test_own_counts();
    test_init_arguments();
    test_other_arguments();
    test_allowed();
    CHECK(xcclCommDestroy(comm) == xcclSuccess, "destroy");
    return xt_done("arguments");
}
