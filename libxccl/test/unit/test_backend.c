/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is asked of the vendor's library: its own collective where the loaded version has it, else
 * a group of sends and receives; and nothing at all for what it cannot do.
 */
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/backend.h"
#include "with_fake.h"

static char  send_buffer[4096], recv_buffer[4096];
static void *stream = (void *)0x55;
static void *s = send_buffer, *r = recv_buffer;

/* "%p" of a place in a buffer, as the stand-in writes it. */
static const char *call_at(const char *fmt, const void *p)
{
    static char text[8][160];
    static int  next;
    next = (next + 1) % 8;
    snprintf(text[next], sizeof(text[next]), fmt, p);
    return text[next];
}

static void test_built_ins(xcclComm_t comm)
{
    fake_clear();
    CHECK(xcclAllReduce(s, r, 5, xcclFloat32, xcclMax, comm, stream) == xcclSuccess, "allreduce");
    expect_call(0, "ncclAllReduce(count=5,type=7,op=2,stream=0x55)");
    CHECK(xcclReduce(s, r, 5, xcclInt64, xcclMin, 2, comm, stream) == xcclSuccess, "reduce");
    expect_call(1, "ncclReduce(count=5,type=4,op=3,root=2)");
    CHECK(xcclReduceScatter(s, r, 5, xcclFloat64, xcclProd, comm, stream) == xcclSuccess, "rs");
    expect_call(2, "ncclReduceScatter(count=5,type=8,op=1)");
    CHECK(xcclAllGather(s, r, 5, xcclUint8, comm, stream) == xcclSuccess, "allgather");
    expect_call(3, "ncclAllGather(count=5,type=1)");
    CHECK(xcclSend(s, 5, xcclInt32, 0, comm, stream) == xcclSuccess, "send");
    expect_call(4, call_at("ncclSend(%p,count=5,type=2,peer=0)", s));
    CHECK(xcclRecv(r, 5, xcclInt32, 2, comm, stream) == xcclSuccess, "recv");
    expect_call(5, call_at("ncclRecv(%p,count=5,type=2,peer=2)", r));
    CHECK(xcclBcast(r, 5, xcclInt32, 1, comm, stream) == xcclSuccess, "bcast");
    CHECK(strstr(fake_get(6), "ncclBroadcast(") != NULL, "%s", fake_get(6));
    CHECK(fake_count() == 7, "%d calls", fake_count());
    /* Nothing to do: nothing asked. */
    fake_clear();
    CHECK(xcclAllReduce(NULL, NULL, 0, xcclFloat32, xcclSum, comm, stream) == xcclSuccess, "0");
    CHECK(xcclAlltoAll(NULL, NULL, 0, xcclFloat32, comm, stream) == xcclSuccess, "0");
    CHECK(fake_count() == 0, "%d calls for nothing", fake_count());
}

static void test_composed_alltoall(xcclComm_t comm)
{
    fake_clear();
    CHECK(xcclAlltoAll(s, r, 4, xcclInt32, comm, stream) == xcclSuccess, "alltoall");
    CHECK(fake_count() == 8, "%d calls instead of a group of 3 sends and 3 receives", fake_count());
    expect_call(0, "ncclGroupStart()");
    for (int i = 0; i < 3; i++) {
        char want[160];
        snprintf(want, sizeof(want), "ncclSend(%p,count=4,type=2,peer=%d)",
                 (void *)(send_buffer + 16 * i), i);
        expect_call(1 + 2 * i, want);
        snprintf(want, sizeof(want), "ncclRecv(%p,count=4,type=2,peer=%d)",
                 (void *)(recv_buffer + 16 * i), i);
        expect_call(2 + 2 * i, want);
    }
    expect_call(7, "ncclGroupEnd()");
}

/* Rank 1 of 3. Blocks of no elements are left out. */
static void test_composed_v(xcclComm_t comm)
{
    size_t counts[] = {2, 3, 0};
    size_t displs[] = {10, 20, 30};
    size_t rcounts[] = {0, 3, 1};

    fake_clear();
    CHECK(xcclAlltoAllv(s, counts, displs, r, rcounts, displs, xcclInt8, comm, stream) ==
              xcclSuccess,
          "alltoallv");
    CHECK(fake_count() == 6, "%d calls", fake_count());
    expect_call(1, call_at("ncclSend(%p,count=2,type=0,peer=0)", send_buffer + 10));
    expect_call(2, call_at("ncclSend(%p,count=3,type=0,peer=1)", send_buffer + 20));
    expect_call(3, call_at("ncclRecv(%p,count=3,type=0,peer=1)", recv_buffer + 20));
    expect_call(4, call_at("ncclRecv(%p,count=1,type=0,peer=2)", recv_buffer + 30));

    fake_clear();
    CHECK(xcclGatherv(s, 3, r, counts, displs, xcclInt8, 1, comm, stream) == xcclSuccess, "root");
    CHECK(fake_count() == 5, "%d calls", fake_count());
    expect_call(1, call_at("ncclSend(%p,count=3,type=0,peer=1)", s));
    expect_call(2, call_at("ncclRecv(%p,count=2,type=0,peer=0)", recv_buffer + 10));
    expect_call(3, call_at("ncclRecv(%p,count=3,type=0,peer=1)", recv_buffer + 20));

    fake_clear(); /* in place: the root's own block stays where it is */
    CHECK(xcclGatherv(recv_buffer + 20, 3, r, counts, displs, xcclInt8, 1, comm, stream) ==
              xcclSuccess,
          "root in place");
    CHECK(fake_count() == 3, "%d calls", fake_count());
    expect_call(1, call_at("ncclRecv(%p,count=2,type=0,peer=0)", recv_buffer + 10));

    fake_clear();
    CHECK(xcclScatterv(s, counts, displs, r, 3, xcclInt8, 1, comm, stream) == xcclSuccess, "root");
    CHECK(fake_count() == 5, "%d calls", fake_count());
    expect_call(1, call_at("ncclRecv(%p,count=3,type=0,peer=1)", r));
    expect_call(2, call_at("ncclSend(%p,count=2,type=0,peer=0)", send_buffer + 10));
    fake_clear();
    CHECK(xcclScatterv(NULL, NULL, NULL, r, 3, xcclInt8, 0, comm, stream) == xcclSuccess, "leaf");
    CHECK(fake_count() == 3, "%d calls", fake_count());
    expect_call(1, call_at("ncclRecv(%p,count=3,type=0,peer=0)", r));
}

static void test_allgatherv(xcclComm_t comm)
{
    size_t equal[] = {3, 3, 3};
    size_t counts[] = {1, 3, 0};
    size_t displs[] = {0, 3, 6};
    char   want[160];

    /* Packed by contract on all ranks: the vendor's allgather. */
    fake_clear();
    CHECK(xcclAllGatherv(s, 3, r, equal, NULL, xcclInt8, comm, stream) == xcclSuccess, "packed");
    CHECK(fake_count() == 1, "%d calls", fake_count());
    expect_call(0, "ncclAllGather(count=3,type=0)");
    /* Displacements that look packed here may not elsewhere: never decided by them. */
    fake_clear();
    CHECK(xcclAllGatherv(s, 3, r, equal, displs, xcclInt8, comm, stream) == xcclSuccess, "displs");
    CHECK(fake_count() == 5, "%d calls instead of a group of 3", fake_count());
    fake_clear();
    CHECK(xcclAllGatherv(s, 3, r, counts, displs, xcclInt8, comm, stream) == xcclSuccess, "v");
    CHECK(fake_count() == 4, "%d calls", fake_count());
    snprintf(want, sizeof(want), "ncclBroadcast(send=%p,recv=%p,count=1,type=0,root=0)", r, r);
    expect_call(1, want);
    snprintf(want, sizeof(want), "ncclBroadcast(send=%p,recv=%p,count=3,type=0,root=1)", s,
             (void *)(recv_buffer + 3));
    expect_call(2, want);
    fake_clear();
    CHECK(xcclAllGatherv(s, 3, r, counts, NULL, xcclInt8, comm, stream) == xcclSuccess, "packed");
    snprintf(want, sizeof(want), "ncclBroadcast(send=%p,recv=%p,count=3,type=0,root=1)", s,
             (void *)(recv_buffer + 1));
    expect_call(2, want);
}

/* A failure inside a composed collective: the group is closed, the failure kept. */
static void test_failure_inside(xcclComm_t comm)
{
    fake_clear();
    fake_fail("ncclRecv", 2);
    CHECK(xcclAlltoAll(s, r, 4, xcclInt32, comm, stream) == xcclSystemError, "the vendor's code");
    CHECK_HAS(xcclGetLastError(NULL), "ncclRecv");
    CHECK_HAS(xcclGetLastError(NULL), "fake error");
    CHECK(fake_count() == 4, "%d calls: start, send, recv, end", fake_count());
    expect_call(3, "ncclGroupEnd()");
    fake_fail("", 0);
}

static void expect_unsupported(xcclComm_t comm, const char *part)
{
    size_t counts[] = {1, 1, 1};
    size_t displs[] = {0, 1, 2};

    fake_clear();
    CHECK(xcclAllReduce(s, r, 4, xcclFloat8e4m3, xcclSum, comm, stream) == xcclUnsupported, "ar");
    CHECK_HAS(xcclGetLastError(NULL), part);
    CHECK_HAS(xcclGetLastError(NULL), "float8e4m3 sum");
    CHECK(xcclAlltoAll(s, r, 4, xcclFloat8e5m2, comm, stream) == xcclUnsupported, "a2a");
    CHECK(xcclAllGatherv(s, 1, r, counts, displs, xcclFloat8e5m2, comm, stream) == xcclUnsupported,
          "agv");
    CHECK(fake_count() == 0, "%d calls: something was enqueued", fake_count());
    CHECK(xcclGroupStart() == xcclSuccess, "group");
    CHECK(xcclGather(s, r, 4, xcclFloat8e5m2, 1, comm, stream) == xcclUnsupported, "in a group");
    CHECK(fake_count() == 1, "%d calls: something was enqueued", fake_count());
    CHECK(xcclGroupEnd() == xcclUnsupported, "the end of the group says so too");
    CHECK(xcclGroupStart() == xcclSuccess, "the next group");
    CHECK(xcclGroupEnd() == xcclSuccess, "the next group is well again");
}

static void test_old_limits(xcclComm_t comm)
{
    xcclComm_t  child = comm;
    xcclRedOp_t op;
    float       scalar = 2;

    CHECK(xcclCommSplit(comm, 0, 0, &child, NULL) == xcclUnsupported, "no split in 2.7");
    CHECK_HAS(xcclGetLastError(NULL), "ncclCommSplit");
    CHECK_HAS(xcclGetLastError(NULL), "2.18");
    CHECK(child == comm, "the output is untouched");
    CHECK(xcclRedOpCreatePreMulSum(&op, &scalar, xcclFloat32, xcclScalarHostImmediate, comm) ==
              xcclUnsupported,
          "no operations of one's own in 2.7");
    CHECK(xcclAllReduce(s, r, 1, xcclFloat32, xcclAvg, comm, stream) == xcclUnsupported, "no avg");
    CHECK(xcclAllReduce(s, r, 1, xcclBfloat16, xcclSum, comm, stream) == xcclUnsupported, "bf16");
    CHECK(xcclAllReduce(s, r, 1, (xcclDataType_t)7, (xcclRedOp_t)1000, comm, stream) ==
              xcclUnsupported,
          "an operation that cannot have been made");
    CHECK(xcclCommFinalize(comm) == xcclSuccess, "nothing to do in 2.7");
    void *ptr = NULL;
    CHECK(xcclMemAlloc(&ptr, 64) == xcclInvalidUsage, "no ncclMemAlloc and no device runtime");
    CHECK_HAS(xcclGetLastError(NULL), "has not started its cuda runtime");
    CHECK(ptr == NULL, "the output is untouched");
}

static void test_native(xcclComm_t comm, const char *alltoall)
{
    char want[160];

    fake_clear();
    CHECK(xcclAlltoAll(s, r, 4, xcclInt32, comm, stream) == xcclSuccess, "alltoall");
    snprintf(want, sizeof(want), "%s(count=4,type=2)", alltoall);
    expect_call(0, want);
    CHECK(xcclGather(s, r, 4, xcclInt32, 2, comm, stream) == xcclSuccess, "gather");
    expect_call(1, "ncclGather(count=4,type=2,root=2)");
    CHECK(xcclScatter(s, r, 4, xcclInt32, 0, comm, stream) == xcclSuccess, "scatter");
    expect_call(2, "ncclScatter(count=4,type=2,root=0)");
    CHECK(fake_count() == 3, "%d calls", fake_count());
}

/* The library has calls of its own for these, and none is made. */
static void test_forced(void)
{
    setenv("XCCL_CCL_NATIVE", "off", 1);
    xcclComm_t comm = make_comm(3, 1);

    test_built_ins(comm);
    test_composed_alltoall(comm);
    test_composed_v(comm);
    fake_clear();
    CHECK(xcclGather(s, r, 4, xcclInt32, 2, comm, stream) == xcclSuccess, "gather");
    CHECK(xcclScatter(s, r, 4, xcclInt32, 0, comm, stream) == xcclSuccess, "scatter");
    CHECK(fake_count() == 6, "%d calls instead of two groups of one", fake_count());
    expect_call(1, call_at("ncclSend(%p,count=4,type=2,peer=2)", s));
    expect_call(4, call_at("ncclRecv(%p,count=4,type=2,peer=0)", r));
    CHECK(xcclCommDestroy(comm) == xcclSuccess, "destroy");
}

static void test_rccl_alltoallv(xcclComm_t comm)
{
    size_t counts[] = {1, 2, 3};
    size_t displs[] = {0, 4, 8};

    fake_clear();
    CHECK(xcclAlltoAllv(s, counts, displs, r, counts, displs, xcclInt8, comm, stream) ==
              xcclSuccess,
          "alltoallv");
    CHECK(fake_count() == 1, "%d calls", fake_count());
    expect_call(0, "ncclAllToAllv(3@8,3@8,type=0)");
}

static void test_own_op(xcclComm_t comm)
{
    xcclRedOp_t op = xcclSum;
    float       scalar = 0.5F;

    fake_clear();
    CHECK(xcclRedOpCreatePreMulSum(&op, &scalar, xcclFloat32, xcclScalarHostImmediate, comm) ==
              xcclSuccess,
          "%s", xcclGetLastError(NULL));
    expect_call(0, "ncclRedOpCreatePreMulSum(type=7,residence=1)");
    CHECK((int)op == 1000, "the vendor's number, not %d", (int)op);
    CHECK(xcclAllReduce(s, r, 1, xcclFloat32, op, comm, stream) == xcclSuccess, "use");
    expect_call(1, "ncclAllReduce(count=1,type=7,op=1000,stream=0x55)");
    CHECK(xcclRedOpDestroy(op, comm) == xcclSuccess, "destroy");
    expect_call(2, "ncclRedOpDestroy(op=1000)");
    CHECK(xcclRedOpDestroy(xcclSum, comm) == xcclInvalidArgument, "built in");
    CHECK(fake_count() == 3, "%d calls", fake_count());
}

static void test_float8(xcclComm_t comm)
{
    fake_clear();
    CHECK(xcclAllReduce(s, r, 4, xcclFloat8e4m3, xcclSum, comm, stream) == xcclSuccess, "2.24+");
    expect_call(0, "ncclAllReduce(count=4,type=10,op=0,stream=0x55)");
    /* The device is too old for it, which only the vendor knows. */
    fake_fail("ncclAllReduce", 4);
    CHECK(xcclAllReduce(s, r, 4, xcclFloat8e4m3, xcclSum, comm, stream) == xcclUnsupported, "sm80");
    CHECK(xcclAllReduce(s, r, 4, xcclFloat32, xcclSum, comm, stream) == xcclInvalidArgument, "f32");
    fake_fail("", 0);
}

static void test_mem(void)
{
    void *ptr = NULL;

    fake_clear();
    CHECK(xcclMemAlloc(&ptr, 64) == xcclSuccess, "%s", xcclGetLastError(NULL));
    CHECK(ptr != NULL, "memory");
    CHECK(xcclMemFree(ptr) == xcclSuccess, "free");
    expect_call(0, "ncclMemAlloc(64)");
    expect_call(1, "ncclMemFree()");
    CHECK(xcclMemAlloc(&ptr, 0) == xcclSuccess, "nothing");
    CHECK((ptr == NULL) && (xcclMemFree(NULL) == xcclSuccess), "NULL");
    CHECK(fake_count() == 2, "%d calls", fake_count());
}

static void test_windows(xcclComm_t comm, bool there)
{
    xcclWindow_t win = NULL;

    fake_clear();
    xcclResult_t rc = xcclCommWindowRegister(comm, s, 4096, &win, XCCL_WIN_COLL_SYMMETRIC);
    if (!there) {
        CHECK((rc == xcclUnsupported) && (win == NULL), "%d", (int)rc);
        CHECK_HAS(xcclGetLastError(NULL), "2.27");
        CHECK(fake_count() == 0, "%d calls", fake_count());
        return;
    }
    CHECK((rc == xcclSuccess) && ((void *)win == s), "%s", xcclGetLastError(NULL));
    expect_call(0, "ncclCommWindowRegister(4096,flags=1)");
    CHECK(xcclCommWindowDeregister(comm, win) == xcclSuccess, "%s", xcclGetLastError(NULL));
    expect_call(1, call_at("ncclCommWindowDeregister(%p)", s));
    CHECK(xcclCommWindowDeregister(comm, NULL) == xcclSuccess, "NULL");
    CHECK(fake_count() == 2, "%d calls", fake_count());
}

/* What MSCCL++ would end the process for, or only return an error for, never gets there. */
static void test_mscclpp(xcclComm_t comm)
{
    float scalar = 2;

    fake_clear();
    CHECK(xcclAllReduce(s, r, 5, xcclFloat32, xcclMin, comm, stream) == xcclSuccess, "min");
    expect_call(0, "ncclAllReduce(count=5,type=7,op=3,stream=0x55)");
    CHECK(xcclAllReduce(s, r, 5, xcclFloat64, xcclSum, comm, stream) == xcclUnsupported, "double");
    CHECK_HAS(xcclGetLastError(NULL), "mscclpp 0.9.0 cannot do float64 sum");
    CHECK(xcclAllReduce(s, r, 5, xcclFloat32, xcclMax, comm, stream) == xcclUnsupported, "max");
    CHECK(xcclAllGather(s, r, 5, xcclInt8, comm, stream) == xcclUnsupported, "int8");
    CHECK(fake_count() == 1, "%d calls", fake_count());
    xcclRedOp_t op;
    CHECK(xcclRedOpCreatePreMulSum(&op, &scalar, xcclFloat32, xcclScalarHostImmediate, comm) ==
              xcclUnsupported,
          "an operation of one's own");
    CHECK(!xc_backend_reduces(xcclFloat32, xcclMax) && xc_backend_reduces(xcclFloat32, xcclSum),
          "known before a path is chosen");
    test_composed_alltoall(comm);
}

/* A process uses one library: each part runs in its own. */
static int part(char which, const char *fakes)
{
    xcclComm_t comm;
    static const struct {
        char        which;
        const char *folder, *file;
    } parts[] = {{'o', "nccl-2.7", "libnccl.so.2"},
                 {'m', "nccl-2.23", "libnccl.so.2"},
                 {'n', "nccl-2.32", "libnccl.so.2"},
                 {'c', "nccl-2.32", "libnccl.so.2"}, /* with XCCL_CCL_NATIVE=off */
                 {'r', "rccl", "librccl.so.1"},
                 {'p', "mscclpp", "libmscclpp_nccl.so.0"}};

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (parts[i].which == which) {
            use_fake(fakes, parts[i].folder, parts[i].file);
        }
    }
    if (which == 'p') {
        setenv("XCCL_CCL", "mscclpp", 1);
        setenv("MSCCLPP_NCCL_LIB_PATH", "libnccl.so.2", 1);
        comm = make_comm(3, 1);
        test_mscclpp(comm);
        CHECK(xcclCommDestroy(comm) == xcclSuccess, "destroy");
        return xt_done("MSCCL++ 0.9");
    }
    if (which == 'c') {
        test_forced();
        return xt_done("NCCL 2.32, composed");
    }
    comm = make_comm(3, 1);
    test_built_ins(comm);
    if ((which == 'o') || (which == 'm')) {
        test_composed_alltoall(comm);
        test_failure_inside(comm);
        expect_unsupported(comm, (which == 'o') ? "nccl 2.7.8" : "nccl 2.23.4");
    } else {
        test_native(comm, (which == 'r') ? "ncclAllToAll" : "ncclAlltoAll");
        test_float8(comm);
    }
    if (which == 'r') {
        test_rccl_alltoallv(comm);
    } else {
        test_composed_v(comm);
    }
    test_allgatherv(comm);
    test_windows(comm, which == 'n');
    if (which == 'o') {
        test_old_limits(comm);
    } else {
        test_own_op(comm);
        test_mem();
    }
    CHECK(xcclCommDestroy(comm) == xcclSuccess, "destroy");
    return xt_done((which == 'o')   ? "NCCL 2.7"
                   : (which == 'm') ? "NCCL 2.23"
                   : (which == 'n') ? "NCCL 2.32"
                                    : "RCCL 2.21");
}

int main(int argc, char **argv)
{
    if (argc == 3) {
        return part(argv[2][0], argv[1]);
    }
    for (const char *which = "omncrp"; *which != '\0'; which++) {
        char arg[2] = {*which, '\0'};
        int  status = -1;
        fflush(NULL);
        pid_t pid = fork();
        if (pid == 0) {
            execl(argv[0], argv[0], argv[1], arg, (char *)NULL);
            _exit(127);
        }
        waitpid(pid, &status, 0);
        CHECK(status == 0, "part %s ended with status %#x", arg, status);
    }
    return xt_done("backend, one process a library");
}
