/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of a communicator: made, divided, failing, ended twice, ended by another thread. */
#include <pthread.h>
#include <unistd.h>

#include "with_fake.h"

enum { MOST_WAIT_MS = 60000 };

static float send_buffer[64], recv_buffer[64];

static void test_init(void)
{
    xcclUniqueId id;
    xcclComm_t   comm = NULL;
    xcclConfig_t config = XCCL_CONFIG_INITIALIZER;
    int          value = -1;

    CHECK(xcclGetUniqueId(&id) == xcclSuccess, "id");
    fake_clear();
    CHECK(xcclCommInitRank(&comm, 5, id, 3) == xcclSuccess, "%s", xcclGetLastError(NULL));
    expect_call(0, "ncclCommInitRank(nranks=5,rank=3,id=intact)");
    CHECK((xcclCommCount(comm, &value) == xcclSuccess) && (value == 5), "count %d", value);
    CHECK((xcclCommUserRank(comm, &value) == xcclSuccess) && (value == 3), "rank %d", value);
    CHECK((xcclCommDevice(comm, &value) == xcclSuccess) && (value == 43), "device %d", value);
    CHECK((xcclCommCuDevice(comm, &value) == xcclSuccess) && (value == 43), "device %d", value);
    CHECK(xcclCommFinalize(comm) == xcclSuccess, "finalize");
    CHECK(xcclCommDestroy(comm) == xcclSuccess, "destroy");

    config.blocking = 1;
    fake_clear();
    CHECK(xcclCommInitRankConfig(&comm, 2, id, 1, &config) == xcclSuccess, "config");
    expect_call(0, "ncclCommInitRankConfig(nranks=2,rank=1,id=intact,size=24,magic=cafebeef,"
                   "version=21400,blocking=1)");
    CHECK(xcclCommDestroy(comm) == xcclSuccess, "destroy");

    comm = NULL;
    fake_fail("ncclCommInitRank", 5);
    CHECK(xcclCommInitRank(&comm, 2, id, 1) == xcclInvalidUsage, "the vendor's refusal");
    CHECK(comm == NULL, "the output was written");
    CHECK_HAS(xcclGetLastError(NULL), "ncclCommInitRank failed: fake error");
    CHECK_HAS(xcclGetLastError(NULL), "the fake was told to fail");
    fake_fail("", 0);
}

static void test_errors(void)
{
    xcclComm_t   comm = make_comm(2, 0);
    xcclResult_t async = xcclInternalError;

    CHECK(xcclCommGetAsyncError(comm, &async) == xcclSuccess, "ask");
    CHECK(async == xcclSuccess, "%d", async);
    fake_fail("async", 6);
    CHECK(xcclCommGetAsyncError(comm, &async) == xcclSuccess, "ask");
    CHECK(async == xcclRemoteError, "%d", async);
    fake_fail("async", 7);
    CHECK(xcclCommGetAsyncError(comm, &async) == xcclSuccess, "ask");
    CHECK(async == xcclInProgress, "%d", async);

    for (int code = 1; code <= 8; code++) {
        fake_fail("ncclAllReduce", code);
        xcclResult_t rc =
            xcclAllReduce(send_buffer, recv_buffer, 1, xcclFloat32, xcclSum, comm, NULL);
        CHECK((int)rc == code, "%d became %d", code, rc);
    }
    fake_fail("ncclAllReduce", 77);
    CHECK(xcclAllReduce(send_buffer, recv_buffer, 1, xcclFloat32, xcclSum, comm, NULL) ==
              xcclInternalError,
          "a code nobody knows");
    CHECK_HAS(xcclGetLastError(comm), "the fake was told to fail");
    fake_fail("", 0);
    CHECK(xcclCommDestroy(comm) == xcclSuccess, "destroy");
}

static void test_split(void)
{
    xcclComm_t comm = make_comm(4, 2);
    xcclComm_t child = NULL;
    int        value = -1;

    CHECK(xcclCommSplit(comm, 1, 9, &child, NULL) == xcclSuccess, "%s", xcclGetLastError(NULL));
    expect_call(0, "ncclCommSplit(color=1,key=9,config=none)");
    CHECK((xcclCommCount(child, &value) == xcclSuccess) && (value == 4), "count %d", value);
    CHECK((xcclCommUserRank(child, &value) == xcclSuccess) && (value == 2), "rank %d", value);
    CHECK(xcclAllReduce(send_buffer, recv_buffer, 1, xcclFloat32, xcclSum, child, NULL) ==
              xcclSuccess,
          "use");
    CHECK(xcclCommDestroy(child) == xcclSuccess, "destroy");
    child = comm;
    CHECK(xcclCommSplit(comm, XCCL_SPLIT_NOCOLOR, 0, &child, NULL) == xcclSuccess, "no part");
    CHECK(child == NULL, "no part is NULL");
    child = comm;
    fake_fail("ncclCommSplit", 3);
    CHECK(xcclCommSplit(comm, 0, 0, &child, NULL) == xcclInternalError, "the vendor's refusal");
    CHECK(child == comm, "the output was written");
    fake_fail("", 0);
    CHECK(xcclCommDestroy(comm) == xcclSuccess, "destroy");
}

/* Of a communicator that does not block: the vendor tells of the split through the parent. */
static void test_split_later(void)
{
    xcclComm_t   comm = make_comm(4, 2), child = NULL;
    xcclResult_t state = xcclSuccess;
    int          value = -1;

    fake_fail("async", 7);
    CHECK(xcclCommSplit(comm, 1, 9, &child, NULL) == xcclInProgress, "%s", xcclGetLastError(NULL));
    CHECK(child != NULL, "nothing to poll");
    CHECK(xcclCommCount(child, &value) == xcclInProgress, "not ready");
    CHECK(xcclCommDestroy(child) == xcclInvalidUsage, "not ready");
    CHECK(xcclCommDestroy(comm) == xcclInvalidUsage, "not ready");
    fake_fail("async", 3);
    CHECK(xcclCommGetAsyncError(child, &state) == xcclSuccess, "%s", xcclGetLastError(NULL));
    CHECK(state == xcclInternalError, "%d", (int)state);
    CHECK(xcclCommCount(child, &value) == xcclInternalError, "a split that failed");
    CHECK_HAS(xcclGetLastError(NULL), "xcclCommCount: comm was not made: the split failed");
    fake_fail("", 0);
    CHECK((xcclCommCount(child, &value) == xcclSuccess) && (value == 4), "count %d", value);
    fake_fail("async", 3);
    CHECK(xcclCommUserRank(child, &value) == xcclSuccess, "the parent's later error");
    fake_fail("", 0);
    CHECK(xcclCommDestroy(comm) == xcclSuccess, "the parent may go first");
    CHECK((xcclCommUserRank(child, &value) == xcclSuccess) && (value == 2), "rank %d", value);
    CHECK(xcclCommDestroy(child) == xcclSuccess, "destroy");
}

static void *ask_rank(void *comm)
{
    int rank = -1;

    return ((xcclCommUserRank(comm, &rank) == xcclSuccess) && (rank == 2)) ? comm : NULL;
}

/* Threads that all ask first of what was split: one learns the rank, none sees half of it. */
static void test_split_in_threads(void)
{
    xcclComm_t comm = make_comm(4, 2);

    for (int round = 0; round < 50; round++) {
        xcclComm_t child = NULL;
        pthread_t  threads[4];
        void      *right;

        CHECK(xcclCommSplit(comm, 1, 9, &child, NULL) == xcclSuccess, "%s", xcclGetLastError(NULL));
        for (int i = 0; i < 4; i++) {
            pthread_create(&threads[i], NULL, ask_rank, child);
        }
        for (int i = 0; i < 4; i++) {
            pthread_join(threads[i], &right);
            CHECK(right == child, "round %d: a wrong rank", round);
        }
        CHECK(xcclCommDestroy(child) == xcclSuccess, "destroy");
    }
    CHECK(xcclCommDestroy(comm) == xcclSuccess, "destroy");
}

static void test_use_after_end(void)
{
    xcclComm_t comms[40];
    int        value;

    for (int i = 0; i < 40; i++) {
        comms[i] = make_comm(2, 0);
    }
    for (int i = 0; i < 40; i++) {
        xcclResult_t rc = (i % 2 == 0) ? xcclCommDestroy(comms[i]) : xcclCommAbort(comms[i]);
        CHECK(rc == xcclSuccess, "end %d", i);
    }
    fake_clear();
    for (int i = 0; i < 40; i++) {
        CHECK(xcclCommDestroy(comms[i]) == xcclInvalidArgument, "destroyed twice");
        CHECK_HAS(xcclGetLastError(NULL), "xcclCommDestroy: comm was destroyed");
        CHECK(xcclCommAbort(comms[i]) == xcclInvalidArgument, "aborted after");
        CHECK(xcclCommCount(comms[i], &value) == xcclInvalidArgument, "asked after");
        CHECK(xcclAllReduce(send_buffer, recv_buffer, 1, xcclFloat32, xcclSum, comms[i], NULL) ==
                  xcclInvalidArgument,
              "used after");
        CHECK_HAS(xcclGetLastError(comms[i]), "xcclAllReduce: comm was destroyed or aborted");
    }
    CHECK(fake_count() == 0, "the vendor was asked %d times", fake_count());
    CHECK(xcclCommDestroy(NULL) == xcclSuccess, "NULL is allowed");
    CHECK(xcclCommAbort(NULL) == xcclSuccess, "NULL is allowed");
}

/* Many lives, to see that what is kept for a while is bounded and freed (ASan looks). */
static void test_many(void)
{
    for (int i = 0; i < 2000; i++) {
        xcclComm_t comm = make_comm(2, 1);
        CHECK(xcclCommDestroy(comm) == xcclSuccess, "life %d", i);
    }
}

static void *blocked_allreduce(void *arg)
{
    static xcclResult_t rc;

    rc = xcclAllReduce(send_buffer, recv_buffer, 1, xcclFloat32, xcclSum, arg, NULL);
    return &rc;
}

static void test_abort_from_another_thread(void)
{
    xcclComm_t comm = make_comm(2, 0);
    pthread_t  thread;
    void      *result;

    fake_block(1);
    pthread_create(&thread, NULL, blocked_allreduce, comm);
    for (int ms = 0; !fake_waits() && (ms < MOST_WAIT_MS); ms++) {
        usleep(1000);
    }
    CHECK(fake_waits(), "the call does not wait");
    CHECK(xcclCommAbort(comm) == xcclSuccess, "%s", xcclGetLastError(NULL));
    pthread_join(thread, &result);
    xcclResult_t rc = *(xcclResult_t *)result;
    CHECK(rc == xcclRemoteError, "the blocked call ended with %d", rc);
    fake_block(0);
}

static void *end_it(void *arg)
{
    return (xcclCommDestroy(arg) == xcclSuccess) ? arg : NULL;
}

/* Of threads that all want to end it, one does. */
static void test_race_to_end(void)
{
    for (int round = 0; round < 50; round++) {
        xcclComm_t comm = make_comm(2, 0);
        pthread_t  threads[4];
        int        ended = 0;
        for (int i = 0; i < 4; i++) {
            pthread_create(&threads[i], NULL, end_it, comm);
        }
        for (int i = 0; i < 4; i++) {
            void *result;
            pthread_join(threads[i], &result);
            ended += (result != NULL);
        }
        CHECK(ended == 1, "%d threads ended it", ended);
    }
}

static void test_groups(void)
{
    xcclComm_t comm = make_comm(2, 0);

    CHECK(xcclGroupStart() == xcclSuccess, "start");
    CHECK(xcclGroupStart() == xcclSuccess, "groups nest");
    CHECK(xcclSend(NULL, 5, xcclInt8, 1, comm, NULL) == xcclInvalidArgument, "a bad call");
    CHECK(xcclSend(send_buffer, 5, xcclInt8, 1, comm, NULL) == xcclSuccess, "a good call");
    CHECK(xcclGroupEnd() == xcclInvalidArgument, "the inner end says so");
    CHECK(xcclGroupEnd() == xcclInvalidArgument, "the outer end says so");
    CHECK(xcclGroupEnd() == xcclInvalidUsage, "one end too many");
    CHECK(fake_count() == 6, "%d calls", fake_count()); /* one to refuse, of the library's own */
    CHECK(xcclGroupStart() == xcclSuccess, "start");
    CHECK(xcclGroupEnd() == xcclSuccess, "forgotten at the end of the outer group");
    fake_fail("ncclGroupEnd", 2);
    CHECK(xcclGroupStart() == xcclSuccess, "start");
    CHECK(xcclGroupEnd() == xcclSystemError, "the vendor's failure");
    fake_fail("ncclGroupStart", 2);
    CHECK(xcclGroupStart() == xcclSystemError, "the vendor's failure");
    fake_fail("", 0);
    CHECK(xcclGroupEnd() == xcclInvalidUsage, "was not opened");
    CHECK(xcclCommDestroy(comm) == xcclSuccess, "destroy");
}

static void test_info(void)
{
    const char *name = NULL;
    int         version = 0;

    CHECK((xcclGetVersion(&version) == xcclSuccess) && (version == XCCL_VERSION_CODE), "%d",
          version);
    CHECK(xcclGetBackend(&name, &version) == xcclSuccess, "backend");
    CHECK(strcmp(name, "nccl") == 0, "%s", name);
    CHECK(version == 23203, "%d", version);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s <folder of stand-ins>\n", argv[0]);
        return 2;
    }
    use_fake(argv[1], "nccl-2.32", "libnccl.so.2");
    test_info();
    test_init();
    test_errors();
    test_split();
    test_split_later();
    test_split_in_threads();
    test_use_after_end();
    test_many();
    test_abort_from_another_thread();
    test_race_to_end();
    test_groups();
    return xt_done("communicators");
}
