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
