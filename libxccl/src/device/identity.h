/* SPDX-License-Identifier: BSD-3-Clause */
/* What stands for the UUID of a device that has none. */
#ifndef XC_DEVICE_IDENTITY_H
#define XC_DEVICE_IDENTITY_H

#include <stdbool.h>

#include "device/device.h"

/* Is it what a runtime gives for a device without one? */
bool xc_uuid_is_none(const unsigned char uuid[XC_DEVICE_UUID_BYTES]);

/* The machine, and where the device is in it: the same in all processes. */
void xc_uuid_of_place(const char *bus_id, unsigned char uuid[XC_DEVICE_UUID_BYTES]);

#endif
