/* SPDX-License-Identifier: BSD-3-Clause */
/* Events of devices, of which those that are idle are kept: to make one takes some microseconds. */
#ifndef XM_DATA_EVENTS_H
#define XM_DATA_EVENTS_H

#include "device/device.h"

/* An event of the device, with the device entered; and back, NULL too. */
xcclResult_t xm_event_take(const struct xc_device_ops *dev, int device, void **event_p);
void         xm_event_give(const struct xc_device_ops *dev, int device, void *event);

/* Destroy those that are kept; in MPI_Finalize. */
void xm_events_finalize(void);

#endif
