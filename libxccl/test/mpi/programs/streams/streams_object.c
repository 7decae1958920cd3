/* SPDX-License-Identifier: BSD-3-Clause */
#include "streams_object.h"

#include <string.h>

#include "streams_device.h"
#include "support.h"

MPIX_Stream ms_object_of(void *stream)
{
    MPIX_Stream object = MPIX_STREAM_NULL;
    MPI_Info    info;

    MPI_Info_create(&info);
    MPI_Info_set(info, "type", strcmp(mt_runtime(), "cuda") == 0 ? "cudaStream_t" : "hipStream_t");
    MPIX_Info_set_hex(info, "value", &stream, sizeof(stream));
    mt_expect(MPIX_Stream_create(info, &object) == MPI_SUCCESS, "MPIX_Stream_create");
    MPI_Info_free(&info);
    return object;
}

struct ms_stream_comm ms_stream_comm_make(void)
{
    struct ms_stream_comm on = {.stream = ms_stream_make()};

    on.object = ms_object_of(on.stream);
    mt_expect(MPIX_Stream_comm_create(MPI_COMM_WORLD, on.object, &on.comm) == MPI_SUCCESS,
              "MPIX_Stream_comm_create");
    return on;
}

void ms_stream_comm_free(struct ms_stream_comm *on)
{
    MPI_Comm_free(&on->comm);
    MPIX_Stream_free(&on->object);
    ms_stream_free(on->stream);
}
