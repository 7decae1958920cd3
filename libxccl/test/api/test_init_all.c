/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Communicators of one process over several devices, made by one call, on the simulated
 * accelerator.
 *
 * Usage: test_init_all cuda|rocm
 */
#include <stdio.h>
#include <stdlib.h>

#include "check.h"
#include "device.h"
#include "ranks.h"

static const char *flavour;

static const char *detail(void)
{
    return xcclGetLastError(NULL);
}

static void check_refused(xcclResult_t expected, int ndev, const int *devlist, const char *part)
{
    static char kept;
    xcclComm_t  comms[16] = {(xcclComm_t)&kept};

    CHECK(xcclCommInitAll(comms, ndev, devlist) == expected, "%s", detail());
    CHECK_HAS(detail(), part);
    CHECK((comms[0] == (xcclComm_t)&kept) && (comms[1] == NULL), "written on failure");
}

/* A sum over all communicators of one process, and their end. */
static void use_all(xcclComm_t *comms, int ndev, const int *devices)
{
    float *memory[16];
    void  *streams[16];
    float  one = 1, sum = 0;

    for (int i = 0; i < ndev; i++) {
        xt_device_open(flavour, devices[i]);
        streams[i] = xt_stream_new();
        memory[i] = xt_alloc(sizeof(one));
        xt_put(memory[i], &one, sizeof(one));
    }
    CHECK(xcclGroupStart() == xcclSuccess, "%s", detail());
    for (int i = 0; i < ndev; i++) {
        xcclResult_t rc =
            xcclAllReduce(memory[i], memory[i], 1, xcclFloat32, xcclSum, comms[i], streams[i]);
        CHECK(rc == xcclSuccess, "%s", detail());
    }
    CHECK(xcclGroupEnd() == xcclSuccess, "%s", detail());
    for (int i = 0; i < ndev; i++) {
        xt_device_open(flavour, devices[i]);
        xt_stream_sync(streams[i]);
        xt_get(&sum, memory[i], sizeof(sum));
        CHECK(sum == (float)ndev, "%g", (double)sum);
        xt_stream_free(streams[i]);
        xt_free(memory[i]);
        CHECK(xcclCommDestroy(comms[i]) == xcclSuccess, "%s", detail());
    }
}

/* The device that a communicator of the calling thread alone gets. */
static int current_device(void)
{
    xcclUniqueId id;
    xcclComm_t   comm = NULL;
    int          device = -1;

    CHECK(xcclGetUniqueId(&id) == xcclSuccess, "%s", detail());
    CHECK(xcclCommInitRank(&comm, 1, id, 0) == xcclSuccess, "%s", detail());
    CHECK(xcclCommDevice(comm, &device) == xcclSuccess, "%s", detail());
    CHECK(xcclCommDestroy(comm) == xcclSuccess, "%s", detail());
    return device;
}

/* The same without a group of one's own; NULL: the first devices. */
static int init_all(const struct xt_rank *self)
{
    static const int twice[] = {1, 1}, beyond[] = {0, 8}, below[] = {-1};
    static const int chosen[] = {3, 0, 2}, first[] = {0, 1, 2};
    xcclComm_t       comms[3] = {NULL};
    int              rank = -1, device = -1;

    (void)self;
    check_refused(xcclInvalidUsage, 2, NULL, "has not started its device runtime");
    xt_device_open(flavour, 1);
    check_refused(xcclInvalidArgument, 0, NULL, "ndev must be at least 1");
    check_refused(xcclInvalidArgument, 9, NULL, "there is no device 8; this process has 8");
    check_refused(xcclInvalidArgument, 2, beyond, "there is no device 8");
    check_refused(xcclInvalidArgument, 1, below, "there is no device -1");
    check_refused(xcclInvalidUsage, 2, twice, "devlist has device 1 twice");
    CHECK(xcclCommInitAll(NULL, 2, NULL) == xcclInvalidArgument, "comms is NULL");
    for (int round = 0; round < 2; round++) {
        const int *devices = (round == 0) ? chosen : first;
        CHECK(xcclCommInitAll(comms, 3, (round == 0) ? chosen : NULL) == xcclSuccess, "%s",
              detail());
        CHECK(current_device() == 1, "the device that was current stays");
        for (int i = 0; i < 3; i++) {
            CHECK((xcclCommUserRank(comms[i], &rank) == xcclSuccess) && (rank == i), "%d", rank);
            CHECK(xcclCommDevice(comms[i], &device) == xcclSuccess, "%s", detail());
            CHECK(device == devices[i], "rank %d is on device %d", i, device);
        }
        use_all(comms, 3, devices);
        xt_device_open(flavour, 1);
    }
    return xt_failed;
}

/* A rank cannot be made: the others are given up, and nothing is handed out. */
static int failing_init_all(const struct xt_rank *self)
{
    (void)self;
    xt_device_open(flavour, 0);
    check_refused(xcclSystemError, 3, NULL, "");
    return xt_failed;
}

int main(int argc, char **argv)
{
    bool good;

    if (argc < 2) {
        fprintf(stderr, "usage: %s cuda|rocm\n", argv[0]);
        return 2;
    }
    flavour = argv[1];
    xt_ranks_open();
    good = xt_run(1, 60, init_all);
    setenv("XCCL_SIM_FAIL", "init", 1);
    good = xt_run(1, 60, failing_init_all) && good;
    printf("%s: %s\n", flavour, good ? "ok" : "FAILED");
    return good ? 0 : 1;
}
