/* SPDX-License-Identifier: BSD-3-Clause */
/* Device memory of processes for each other: exported, and mapped once and kept. */
#ifndef XM_DATA_MAPPINGS_H
#define XM_DATA_MAPPINGS_H

#include "device/device.h"

/*
 * How others map the allocation at ptr. What the runtime made of it is kept for as long as it
 * lives. known: its number (struct xc_mem_info), of a query in this call of MPI's; or 0: ask.
 */
xcclResult_t xm_export(const struct xc_device_ops *dev, const void *ptr, uint64_t known,
                       struct xc_ipc *ipc_p);

/*
 * Where the allocation of a process lies for the device, which is entered. nonce: the process's.
 * xcclInProgress: what was freed at its place is being unmapped, or will be once nothing is pinned;
 * ask again.
 */
xcclResult_t xm_mapping_of(uint64_t nonce, const struct xc_ipc *ipc,
                           const struct xc_device_ops *dev, int device, char **base_p);

/*
 * From here to xm_mappings_unpin() nothing is unmapped that its process has not freed. How often
 * any was unmapped up to now.
 */
uint32_t xm_mappings_pin(void);
void     xm_mappings_unpin(void);

/*
 * Something is mapped where this would be: unmap what may lie there, on a thread. Whose it is does
 * not matter: what is used again is mapped again. False: none of this is there.
 */
bool xm_mappings_make_way(const struct xc_device_ops *dev, const struct xc_ipc *ipc);

/*
 * What is looked up in between stays mapped until the last of these ends, so until what uses it has
 * been enqueued. By any number of threads at once; none of it waits on another rank.
 */
void xm_mappings_hold(void);
void xm_mappings_let_go(void);

void xm_mappings_close(void);

#endif
