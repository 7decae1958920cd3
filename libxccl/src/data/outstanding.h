/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work on devices that waits for other ranks, and calls of the driver that wait for all work there.
 *
 * While a thread frees or unmaps memory, CUDA waits for the device, and lets no other thread
 * enqueue anything (docs/benchmarks/h200-x2/direct/locks.txt). Were that begun while a kernel waits
 * for a rank which waits for what this process has yet to enqueue, none of it would end. So it
 * begins when nothing is outstanding, and nothing becomes so until it is over. What the program
 * frees itself, and the work of graphs that it launches, are not seen here.
 */
#ifndef XM_DATA_OUTSTANDING_H
#define XM_DATA_OUTSTANDING_H

#include "device/device.h"

/*
 * Around work that waits for other ranks, from before it is enqueued until it is over. The begin
 * waits where a call as above is under way, which waits for nobody else then.
 */
void xm_outstanding_begin(void);
void xm_outstanding_end(void);
/* Is anything outstanding? Then a call as above may not begin soon. */
bool xm_outstanding_any(void);

/*
 * A stream of the program's, where the end of what is enqueued is not waited for: an event there
 * tells. recorded is set, with the work outstanding, when the event has been recorded behind it.
 */
struct xm_outstanding_stream {
    const struct xc_device_ops   *dev;
    int                           device;
    unsigned                      resets;
    void                         *event;
    bool                          recorded; /* atomic */
    struct xm_outstanding_stream *next;
};
void xm_outstanding_add(struct xm_outstanding_stream *stream);
void xm_outstanding_remove(struct xm_outstanding_stream *stream);

/*
 * Around a call of the driver that waits for a device, on a thread that others need not wait for:
 * the begin waits until nothing is outstanding, which may take as long as the program likes.
 */
void xm_alone_begin(void);
/* If that is now. */
bool xm_alone_try(void);
void xm_alone_end(void);

/*
 * The same on a thread, one for all: prepare(), or NULL, is called before it waits for that, and
 * run() is alone. Fails if there is no thread.
 */
struct xm_alone_job {
    void (*prepare)(struct xm_alone_job *job);
    void (*run)(struct xm_alone_job *job); /* the job may be gone behind it */
    struct xm_alone_job *next;
};
xcclResult_t xm_alone_start(struct xm_alone_job *job);

#endif
