/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Small copies between host memory and the device's own by the processor, through GDRCopy
 * (libgdrapi.so.2): it maps pages of device memory for the host. Neither a kernel nor a copy of the
 * runtime is needed. XCCL_GDRCOPY switches it on.
 *
 * Mapping a page takes about a millisecond, so it is done once the page has been copied from or to
 * XCCL_GDRCOPY times, and by a thread. A driver may keep memory that was freed for as long as it is
 * mapped: so only small allocations are, and few of them.
 */
#ifndef XM_DATA_GDRCOPY_H
#define XM_DATA_GDRCOPY_H

#include "device/device.h"

/*
 * Copy from device memory to host memory, or the other way; the copy is over on return. False:
 * nothing was done. The program's own work on the memory is over.
 */
bool xm_gdrcopy_out(const struct xc_device_ops *dev, int device, char *host, char *memory,
                    size_t bytes);
bool xm_gdrcopy_in(const struct xc_device_ops *dev, int device, char *memory, char *host,
                   size_t bytes);

/* In MPI_Finalize, when nothing is under way any more: all pages are given back. */
void xm_gdrcopy_finalize(void);

#endif
