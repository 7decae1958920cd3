/* SPDX-License-Identifier: BSD-3-Clause */
/* Communicators of one process over several devices: a group of the calls that make one each. */
#include <stdlib.h>
#include <string.h>

#include "api/group.h"
#include "base/log.h"
#include "device/device.h"
#include <xccl/xccl.h>

static int device_of(const int *devlist, int i)
{
    return (devlist != NULL) ? devlist[i] : i;
}

static xcclResult_t check_device(const int *devlist, int i, int count)
{
    int device = device_of(devlist, i);

    if ((device < 0) || (device >= count)) {
        return xc_fail(xcclInvalidArgument,
                       "xcclCommInitAll: there is no device %d; this process has %d, from 0 on",
                       device, count);
    }
    for (int k = 0; k < i; k++) {
        if (device_of(devlist, k) == device) {
            return xc_fail(xcclInvalidUsage,
                           "xcclCommInitAll: devlist has device %d twice; a rank needs one of its "
                           "own",
                           device);
        }
    }
    return xcclSuccess;
}

/* All that can fail before a rank waits for the others: a group with some of them would hang. */
static xcclResult_t check_devices(const struct xc_device_ops *dev, const int *devlist, int ndev)
{
    int          count = 0;
    void        *saved;
    xcclResult_t rc = dev->count(&count);

    for (int i = 0; (rc == xcclSuccess) && (i < ndev); i++) {
        rc = check_device(devlist, i, count);
        if (rc == xcclSuccess) {
            rc = dev->enter(device_of(devlist, i), &saved);
        }
        if (rc == xcclSuccess) {
            dev->leave(saved);
        }
    }
    return rc;
}

static xcclResult_t init_ranks(const struct xc_device_ops *dev, xcclComm_t *comms, int ndev,
                               const int *devlist)
{
    xcclUniqueId id;
    void        *saved;
    xcclResult_t rc = xcclGetUniqueId(&id);

    if (rc == xcclSuccess) {
        rc = xcclGroupStart();
    }
    if (rc != xcclSuccess) {
        return rc;
    }
    for (int i = 0; (rc == xcclSuccess) && (i < ndev); i++) {
        rc = dev->enter(device_of(devlist, i), &saved);
        if (rc == xcclSuccess) {
            rc = xcclCommInitRank(&comms[i], ndev, id, i);
            dev->leave(saved);
        }
    }
    xcclResult_t ended = xcclGroupEnd();
    return (rc != xcclSuccess) ? rc : ended;
}

static xcclResult_t init_all(xcclComm_t *comms, int ndev, const int *devlist)
{
    const struct xc_device_ops *dev = xc_device_active();

    if ((comms == NULL) || (ndev < 1)) {
        return xc_fail(xcclInvalidArgument, "xcclCommInitAll: %s",
                       (comms == NULL) ? "comms is NULL; pass an array of ndev xcclComm_t"
                                       : "ndev must be at least 1");
    }
    if (dev == NULL) {
        return xc_fail(xcclInvalidUsage,
                       "xcclCommInitAll: the program has not started its device runtime; choose a "
                       "device first, as by cudaSetDevice or hipSetDevice");
    }
    xcclResult_t rc = check_devices(dev, devlist, ndev);
    if (rc != xcclSuccess) {
        return rc;
    }
    xcclComm_t *made = calloc((size_t)ndev, sizeof(xcclComm_t));
    if (made == NULL) {
        return xc_fail(xcclSystemError, "no memory for communicators; the host is out of it");
    }
    rc = init_ranks(dev, made, ndev, devlist);
    if (rc == xcclSuccess) {
        memcpy(comms, made, (size_t)ndev * sizeof(xcclComm_t));
    }
    for (int i = 0; (rc != xcclSuccess) && (i < ndev); i++) {
        (void)xcclCommAbort(made[i]);
    }
    free(made);
    return rc;
}

xcclResult_t xcclCommInitAll(xcclComm_t *comms, int ndev, const int *devlist)
{
    return xc_group_note(init_all(comms, ndev, devlist), NULL, NULL);
}
