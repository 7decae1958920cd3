/* SPDX-License-Identifier: BSD-3-Clause */
/* What variables of others say: profilers and the vendors' runtimes. Those of launchers are in
 * launch.h, our own in params.h. */
#ifndef XC_BASE_ENVIRONMENT_H
#define XC_BASE_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/log.h"

/*
 * Add "NAME=value" lines to a text: what preloads `library` into processes that this one starts,
 * and its settings; names that are there already stay as they are. False if the preloading has no
 * room. Nothing is added where `library` is not preloaded here.
 */
XC_SHARED bool xc_environment_for_children(const char *library, char *text, size_t len);

/* The library of an attached tool that understands NVTX (Nsight Systems), or NULL. */
XC_SHARED const char *xc_nvtx_library(void);
/* Is a profiler of ROCm's attached? */
XC_SHARED bool xc_rocm_profiler(void);

/*
 * What the vendor's library is told of its network; "" where nothing is said. By variables, and
 * where these are not set by the files from which NCCL and RCCL set them: NCCL_CONF_FILE or
 * ~/.nccl.conf, /etc/nccl.conf, and the same of rccl.
 */
enum { XC_NETWORK_VALUE = 1024 }; /* which NCCL cuts longer ones to */
struct xc_network_variables {
    char net[XC_NETWORK_VALUE], plugin[XC_NETWORK_VALUE], hca[XC_NETWORK_VALUE];
    bool no_verbs;
};
void xc_network_variables_get(struct xc_network_variables *v);

/*
 * Do all streams of a device share one queue, because CUDA_DEVICE_MAX_CONNECTIONS or
 * GPU_MAX_HW_QUEUES asks the vendor's runtime for that?
 */
XC_SHARED bool xc_one_hardware_queue(void);
/* Is a launch to end with its kernel, as CUDA_LAUNCH_BLOCKING and its like ask the runtime? */
XC_SHARED bool xc_launches_block(void);
/* A variable that a vendor's library, or the simulation, reads; NULL where it is not set or empty.
 */
const char *xc_foreign_variable(const char *name);
/* Does this variable, as CUDA_VISIBLE_DEVICES, hide all devices from the process? */
bool xc_hides_devices(const char *name);
/* Has the user told the vendor's library not to reach the memory of other devices, by a variable or
 * in such a file? */
XC_SHARED bool xc_peers_disabled(void);

#endif
