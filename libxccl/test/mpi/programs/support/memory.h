/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of every kind that a program may pass to MPI, reached by dlopen: no SDK is needed. */
#ifndef MT_MEMORY_H
#define MT_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

enum mt_where { MT_HOST, MT_DEVICE, MT_MANAGED };

/*
 * Start a device runtime, "cuda", "rocm" or "hpu", and make a device current for this thread;
 * "none" leaves the process without one, and then all memory is the host's. Ends the program on
 * failure.
 */
void mt_memory_open(const char *runtime, int local_rank);

/* From here on mt_put() and mt_get() copy on the thread's own default stream. */
void mt_copy_per_thread(void);

/* Make the device of mt_memory_open() current in another thread. */
void mt_memory_enter(void);

/*
 * Reset the device: all that the process has there is gone. again: and begin to use it anew, as the
 * program's next call of the runtime would.
 */
void mt_memory_reset(bool again);

void *mt_alloc(enum mt_where where, size_t bytes);
void  mt_free(enum mt_where where, void *ptr);
void  mt_put(void *dst, enum mt_where where, const void *src, size_t bytes);
void  mt_get(void *dst, const void *src, enum mt_where where, size_t bytes);

#endif
