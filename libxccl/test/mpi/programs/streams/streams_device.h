/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams, copies and graphs of either runtime, for the tests of stream-ordered calls. */
#ifndef MT_STREAMS_DEVICE_H
#define MT_STREAMS_DEVICE_H

#include <stdbool.h>
#include <stddef.h>

/* After mt_begin(). */
void ms_open(void);

void *ms_stream_make(void);
/* One that blocks towards the default stream. */
void *ms_blocking_stream_make(void);
void  ms_stream_free(void *stream);
void  ms_sync(void *stream);
/* Copies between pinned and device memory, in the order of the stream. */
void ms_copy(void *stream, void *to, const void *from, size_t bytes);
/* Let the stream wait some milliseconds, so that what does not wait for it comes too early. */
void ms_delay(void *stream);
/* What is enqueued next waits until the program lets it go. */
void  ms_hold(void *stream, bool *held);
void  ms_let_go(bool *held);
void *ms_pinned(size_t bytes);
void  ms_pinned_free(void *ptr);

/* mode: 0 global, 1 thread-local, 2 relaxed. */
void ms_capture_begin(void *stream, int mode);
/* False: it was spoilt. */
bool ms_capture_lasts(void *stream);
/* An executable graph; NULL: the capture was spoilt. */
void *ms_capture_end(void *stream);
void  ms_launch(void *graph, void *stream);
void  ms_graph_free(void *graph);

#endif
