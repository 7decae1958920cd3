/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Host memory that stands for device memory in a window: the public copy of MPI's separate memory
 * model, of which the device memory is the private copy. What changed in one goes to the other when
 * the program synchronises the window, byte by byte, so that what others put and what this process
 * stores into other places is both kept.
 */
#ifndef XM_TRANSFERS_SHADOW_H
#define XM_TRANSFERS_SHADOW_H

#include "data/buffer.h"

struct xm_shadow;

/* With the contents of the buffer, which is plain device memory. Fails beyond XCCL_STAGING. */
xcclResult_t xm_shadow_make(const struct xm_buffer *buffer, struct xm_shadow **shadow_p);
char        *xm_shadow_public(const struct xm_shadow *shadow);
char        *xm_shadow_private(const struct xm_shadow *shadow);
/* Both ways: what this process stored becomes public, and what others put comes to the device. */
xcclResult_t xm_shadow_exchange(struct xm_shadow *shadow);
/* What others put since an exchange in the same call of the program's. */
xcclResult_t xm_shadow_fetch(struct xm_shadow *shadow);
void         xm_shadow_free(struct xm_shadow *shadow);

#endif
