/* SPDX-License-Identifier: BSD-3-Clause */
/* The few device calls that the collective tests need, over CUDA or HIP. */
#ifndef XT_SIM_DEVICE_H
#define XT_SIM_DEVICE_H

#include <stddef.h>

typedef void *dev_stream_t;

void         dev_use(int device); /* start, and make it current */
void        *dev_alloc(size_t bytes);
int          dev_try_alloc(size_t bytes, void **ptr_p); /* the runtime's result */
void        *dev_pinned(size_t bytes);
void         dev_register(void *ptr, size_t bytes);
void         dev_free(void *ptr);
void         dev_put(void *dst, const void *src, size_t bytes);
void         dev_get(void *dst, const void *src, size_t bytes);
dev_stream_t dev_stream(void);
void         dev_stream_free(dev_stream_t stream);
void         dev_sync(dev_stream_t stream);
/* The runtime's result. */
int dev_try_copy(void *dst, const void *src, size_t bytes, dev_stream_t stream);
int dev_idle(dev_stream_t stream); /* 1: nothing left to do */

#endif
