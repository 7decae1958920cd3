/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What stream-ordered calls need of a device's runtime, on streams of the program's. Looked up when
 * the first such stream comes: older runtimes lack some of it.
 */
#ifndef XC_DEVICE_STREAMS_H
#define XC_DEVICE_STREAMS_H

#include "device/device.h"

struct xc_stream_ops {
    /* The device of a stream; NULL is the default stream of the current one. */
    xcclResult_t (*device)(xcclStream_t stream, int *device_p);
    /* Is its work captured into a graph? Then nothing may wait for it. */
    xcclResult_t (*capturing)(xcclStream_t stream, bool *capturing_p);
    /* Call fn in the order of the stream, from a thread of the runtime: it must not wait. */
    xcclResult_t (*call)(void (*fn)(void *), void *arg, xcclStream_t stream);
    /* Let the stream wait until a word of pinned host memory is at least `least`. */
    xcclResult_t (*wait)(const uint32_t *word, uint32_t least, xcclStream_t stream);
};

/* Those of an active runtime; NULL, with the cause as the last detail: it is too old. */
XC_SHARED const struct xc_stream_ops *xc_streams_of(const struct xc_device_ops *dev);

#endif
