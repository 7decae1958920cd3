/* SPDX-License-Identifier: BSD-3-Clause */
/* Stream objects of the program's, by its handles. */
#ifndef XM_STREAMS_OBJECTS_H
#define XM_STREAMS_OBJECTS_H

#include "device/streams.h"

/* MPICH's MPIX_Stream is an int as well, and its null handle has this value. */
enum { XM_STREAM_NULL = 0x3c000000 };

/* A stream object. One without a device belongs to the host, and nothing is enqueued on it. */
struct xm_stream {
    int                         users; /* the program's handle, and communicators */
    const struct xc_device_ops *dev;
    const struct xc_stream_ops *ops;
    int                         device;
    unsigned                    resets; /* of the device before it was made */
    xcclStream_t                handle;
};

/* The program's handle of a stream of ours; NULL: it is none. Not counted as a use. */
struct xm_stream *xm_stream_of(int handle);
void              xm_stream_use(struct xm_stream *stream);
void              xm_stream_unuse(struct xm_stream *stream);
int               xm_info_set_hex(const long *args);
int               xm_stream_create(const long *args);
int               xm_stream_free(const long *args);

#endif
