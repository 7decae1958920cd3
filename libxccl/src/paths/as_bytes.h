/* SPDX-License-Identifier: BSD-3-Clause */
/* A call of a collective whose buffer goes as the bytes that it consists of. */
#ifndef XM_PATHS_AS_BYTES_H
#define XM_PATHS_AS_BYTES_H

#include "data/buffer.h"

/*
 * Change the arguments of `call` that describe a buffer: its blocks are bytes now, side by side.
 * Not of a reduction. sends: they are those of the send buffer; MPI_Bcast has none.
 * @param[out] arrays_p  To be freed when MPI has ended the call.
 */
xcclResult_t xm_call_as_bytes(struct xm_call *call, const struct xm_buffer *buffer, bool sends,
                              void **arrays_p);

#endif
