/* SPDX-License-Identifier: BSD-3-Clause */
#include "intercept/complete.h"

#include "base/log.h"
#include "base/params.h"
#include "comms/wait.h"

static xcclResult_t async_error(xcclComm_t xcomm)
{
    xcclResult_t state = xcclSuccess;

    if (xcomm == NULL) {
        return xcclSuccess;
    }
    xcclResult_t res = xcclCommGetAsyncError(xcomm, &state);
    if (res != xcclSuccess) {
        return res;
    }
    if ((state == xcclSuccess) || (state == xcclInProgress)) {
        return xcclSuccess;
    }
    const char *detail = xcclGetLastError(xcomm);
    return xc_fail(state, "asynchronous error: %s%s%s", xcclGetErrorString(state),
                   (detail[0] != '\0') ? ": " : "", detail);
}

xcclResult_t xm_complete(const struct xc_device_ops *dev, xcclStream_t stream, xcclComm_t xcomm)
{
    struct xm_wait wait = xm_wait_begin();

    for (;;) {
        xcclResult_t res = dev->stream_query(stream);
        if (res != xcclInProgress) {
            return (res == xcclSuccess) ? async_error(xcomm) : res;
        }
        switch (xm_wait_step(&wait)) {
        case XM_WAIT_EXPIRED:
            return xc_fail(xcclTimeout,
                           "not completed within %ld s (XCCL_TIMEOUT): a rank may be missing, dead "
                           "or in another call",
                           xc_params()->timeout);
        case XM_WAIT_LOOK:
            res = async_error(xcomm);
            if (res != xcclSuccess) {
                return res;
            }
            break;
        default:
            break;
        }
    }
}
