/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * HIP has no name for what a device's reset ends. Memory of ours is the sign: it has a number that
 * no other memory gets, and is gone after a reset. All of it is kept in mind, so that there is a
 * sign for as long as there is anything of ours on the device.
 */
#ifndef XC_DEVICE_HIP_SIGNS_H
#define XC_DEVICE_HIP_SIGNS_H

#include <stdbool.h>

#include <xccl/xccl.h>

/*
 * New memory of ours on a device, and its number. stream: it was allocated for the sake of that,
 * and goes with it; else NULL. False: it cannot be kept in mind.
 */
bool xc_hip_sign_add(int device, void *ptr, unsigned id, xcclStream_t stream);
/* It is to be freed. */
void xc_hip_sign_remove(const void *ptr);
/* The stream is to be destroyed: what was allocated for it, or NULL. */
void *xc_hip_sign_take(xcclStream_t stream);

/*
 * How often a device was found to have been reset. id_of: look now, by the number that memory has,
 * 0 for none; NULL: do not.
 */
unsigned xc_hip_sign_resets(int device, unsigned (*id_of)(void *ptr));

#endif
