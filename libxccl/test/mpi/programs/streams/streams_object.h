/* SPDX-License-Identifier: BSD-3-Clause */
/* MPIX streams of device streams, for programs that are linked with xccl. */
#ifndef MT_STREAMS_OBJECT_H
#define MT_STREAMS_OBJECT_H

#include <xccl/mpix.h>

/* To be freed by MPIX_Stream_free(). */
MPIX_Stream ms_object_of(void *stream);

/* A communicator of all ranks, on a stream of its own. */
struct ms_stream_comm {
    void       *stream;
    MPIX_Stream object;
    MPI_Comm    comm;
};
struct ms_stream_comm ms_stream_comm_make(void);
void                  ms_stream_comm_free(struct ms_stream_comm *on);

#endif
