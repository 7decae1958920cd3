/* SPDX-License-Identifier: BSD-3-Clause */
/* A device for the tests, as a program has one: CUDA's driver API or HIP, no SDK needed. */
#ifndef XT_DEVICE_H
#define XT_DEVICE_H

#include <stddef.h>

/* flavour: "cuda", "rocm", "hpu", or "host" for ordinary memory. Ends the process if there is none,
 * or fewer than device + 1. */
void xt_device_open(const char *flavour, int device);
/* The same device in another thread. */
void xt_device_enter(void);

void *xt_alloc(size_t bytes);
void  xt_free(void *ptr);
void  xt_put(void *device, const void *host, size_t bytes);
void  xt_get(void *host, const void *device, size_t bytes);
void *xt_stream_new(void);
void  xt_stream_free(void *stream);
void  xt_stream_sync(void *stream);

#endif
