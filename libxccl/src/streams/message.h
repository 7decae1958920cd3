/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XM_STREAMS_MESSAGE_H
#define XM_STREAMS_MESSAGE_H

#include "calls/calls.h"

int xm_enqueue_message(enum xm_function function, const long *args);
/* Of MPIX_Wait_enqueue, or of MPIX_Waitall_enqueue; the request is the program's no more. */
int  xm_enqueue_wait(enum xm_function function, MPI_Request *request, MPI_Status *status);
bool xm_enqueue_has_request(MPI_Request request);

#endif
