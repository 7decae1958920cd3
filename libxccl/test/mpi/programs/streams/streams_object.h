/* SPDX-License-Identifier: BSD-3-Clause */
/* MPIX streams of device streams, for programs that are linked with xccl. */
#ifndef MT_STREAMS_OBJECT_H
#define MT_STREAMS_OBJECT_H

#include <xccl/mpix.h>

/* To be freed by MPIX_Stream_free(). */
MPIX_Stream ms_object_of(void *stream);

#endif
