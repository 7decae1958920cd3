/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranges for a profiler that is attached: NVTX (Nsight Systems) and roctx (rocprof). */
#ifndef XM_OBSERVE_RANGES_H
#define XM_OBSERVE_RANGES_H

#include <stdbool.h>

/*
 * Once, before a range is pushed: is a profiler attached, and XCCL_RANGES not off? Loads what the
 * profiler itself has named or loaded, and nothing else.
 */
bool xm_ranges_open(void);

/* Ranges of a thread are nested; each push has its pop. name: a text that stays. */
void xm_range_push(const char *name);
void xm_range_pop(void);

/* ---- nvtx.c, roctx.c: each false if its profiler is not attached ---- */

bool xm_nvtx_open(void);
void xm_nvtx_push(const char *name);
void xm_nvtx_pop(void);

bool xm_roctx_open(void);
void xm_roctx_push(const char *name);
void xm_roctx_pop(void);

#endif
