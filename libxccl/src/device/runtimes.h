/* SPDX-License-Identifier: BSD-3-Clause */
/* The runtimes that device.c chooses from. */
#ifndef XC_DEVICE_RUNTIMES_H
#define XC_DEVICE_RUNTIMES_H

#include "device/device.h"

extern const struct xc_device_ops xc_cuda_ops;
extern const struct xc_device_ops xc_hip_ops;
extern const struct xc_device_ops xc_hpu_ops;

/* Is the library in the process (as far as the last look at active() found)? */
bool xc_cuda_loaded(void);
bool xc_hip_loaded(void);
bool xc_hpu_loaded(void);

/* Has the program initialised CUDA (as far as the last look found)? A load, no call. */
bool xc_cuda_initialised(void);

/* cuda_early.c */
bool         xc_cuda_waits_itself(void *function);
xcclResult_t xc_cuda_launch_early(void *function, const unsigned grid[2], unsigned threads,
                                  const void *arguments, xcclStream_t stream);

/* cuda_repeat.c */
xcclResult_t xc_cuda_repeat_create(void **repeat_p, void *function, const void *arguments,
                                   size_t bytes, xcclStream_t stream);
xcclResult_t xc_cuda_repeat_launch(void *repeat, const unsigned grid[2], unsigned threads,
                                   const void *arguments, const void *next);
void         xc_cuda_repeat_destroy(void *repeat);

/* cuda_names.c */
xcclResult_t xc_cuda_name_of(int device, char *buf, size_t len);
xcclResult_t xc_cuda_uuid_of(int device, unsigned char uuid[XC_DEVICE_UUID_BYTES]);
xcclResult_t xc_cuda_bus_id_of(int device, char *buf, size_t len);

/* cuda_room.c */
xcclResult_t xc_cuda_multiprocessors_of(int device, int *count_p);
bool         xc_cuda_runs_processes_at_once(int device);
xcclResult_t xc_cuda_blocks_at_once(int device, void *function, unsigned threads, int *count_p);

/*
 * What to add to the text of an error, which CUDA and HIP number alike: "" unless it is one that
 * every call returns once a kernel has crashed, whoever made it.
 */
const char *xc_crash_hint(int error);

/* Open and initialise on purpose; fail where there is no device. */
xcclResult_t xc_cuda_start(void);
xcclResult_t xc_hip_start(void);
xcclResult_t xc_hpu_start(void);

#endif
