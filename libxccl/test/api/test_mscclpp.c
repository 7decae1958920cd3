/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What MSCCL++ exports and does not do: xccl says so, and finds out by itself what it is told
 * wrongly. The ranks have the devices in reverse order, so that no number is right by chance.
 *
 * Usage: test_mscclpp
 */
#include <stdio.h>

#include "check.h"
#include "device.h"
#include "ranks.h"

enum { RANKS = 3, BYTES = 65536 };

static const char *detail(void)
{
    return xcclGetLastError(NULL);
}

static void devices(xcclComm_t comm, int expected)
{
    int value = -1;

    CHECK((xcclCommDevice(comm, &value) == xcclSuccess) && (value == expected), "%d, not %d", value,
          expected);
    value = -1;
    CHECK((xcclCommCuDevice(comm, &value) == xcclSuccess) && (value == expected), "%d, not %d",
          value, expected);
}

static void windows(xcclComm_t comm)
{
    xcclWindow_t win = NULL;
    void        *memory = NULL;

    CHECK(xcclMemAlloc(&memory, BYTES) == xcclSuccess, "%s", detail());
    xcclResult_t rc = xcclCommWindowRegister(comm, memory, BYTES, &win, XCCL_WIN_DEFAULT);
    CHECK(rc == xcclUnsupported, "%d: %s", (int)rc, detail());
    CHECK_HAS(detail(), "ncclCommWindowRegister");
    CHECK(win == NULL, "a window");
    CHECK(xcclMemFree(memory) == xcclSuccess, "%s", detail());
}

static int body(const struct xt_rank *self)
{
    int device = self->nranks - 1 - self->rank;

    xt_device_open("cuda", device);
    xcclComm_t comm = xt_comm(self), part = NULL;
    devices(comm, device);
    windows(comm);
    CHECK(xcclCommSplit(comm, 0, -self->rank, &part, NULL) == xcclSuccess, "%s", detail());
    devices(part, device);
    CHECK(xcclCommDestroy(part) == xcclSuccess, "%s", detail());
    xcclResult_t rc = xcclCommAbort(comm);
    CHECK(rc == xcclUnsupported, "given up: %d: %s", (int)rc, detail());
    CHECK_HAS(detail(), "cannot be aborted");
    return xt_failed;
}

int main(void)
{
    xt_ranks_open();
    bool ok = xt_run(RANKS, 60, body);
    printf("mscclpp: what it does not do: %s\n", ok ? "ok" : "FAILED");
    return ok ? 0 : 1;
}
