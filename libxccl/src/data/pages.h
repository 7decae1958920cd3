/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of the operating system's, by whole pages. */
#ifndef XM_DATA_PAGES_H
#define XM_DATA_PAGES_H

#include <stddef.h>

/*
 * From this many bytes on, memory comes in huge pages where the system has them: on an H200 machine
 * 256 MiB are pinned in 64 ms so, and freed in 7; by cuMemHostAlloc() in 183, and 46
 * (docs/benchmarks/h200-x2/messages/pinning.txt).
 */
enum { XM_PAGES_HUGE = 2 << 20 };

/*
 * bytes: a multiple of XM_PAGES_HUGE. A child does not inherit it, as it does not inherit memory of
 * the driver's: else the first write of either would move the page away from where the device looks
 * for it. NULL: there is none.
 */
void *xm_pages_map(size_t bytes);
/* Addresses, of which few are ever written to. NULL: there are none. */
void *xm_pages_map_lazily(size_t bytes);
/* What either gave. */
void xm_pages_unmap(void *at, size_t bytes);

#endif
