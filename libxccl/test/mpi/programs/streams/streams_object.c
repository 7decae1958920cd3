/* SPDX-License-Identifier: BSD-3-Clause */
#include "streams_object.h"

#include <string.h>

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
