/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting for work on a stream: polled, with MPI progress in between, never a blocking call. */
#ifndef XM_INTERCEPT_COMPLETE_H
#define XM_INTERCEPT_COMPLETE_H

#include "device/device.h"

/*
 * Until all work on stream is done. xcomm, which may be NULL, is watched for asynchronous errors.
 * xcclTimeout after XCCL_TIMEOUT; the work is then still outstanding.
 */
xcclResult_t xm_complete(const struct xc_device_ops *dev, xcclStream_t stream, xcclComm_t xcomm);

#endif
