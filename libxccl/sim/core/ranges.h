/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of memory.c, for virtual.c and ipc.c. All but the first with the lock held. */
#ifndef XS_CORE_RANGES_H
#define XS_CORE_RANGES_H

#include "core/core.h"

#define XS_ALIGNMENT 512
/* Device memory is had in blocks of this size, and shared as such. */
#define XS_BLOCK ((size_t)2 << 20)

void xs_ranges_lock(void);
void xs_ranges_unlock(void);
/* The range that ptr lies in, or NULL. Any change of the table moves ranges. */
struct xs_range *xs_ranges_find(const void *ptr);
/* The first range that begins at address or behind it, or NULL. */
struct xs_range *xs_ranges_next(uintptr_t address);
/* Gives it an id; false: out of memory. */
bool xs_ranges_add(struct xs_range *range);
void xs_ranges_remove(const struct xs_range *range);
/* What threads remember of a range is not true any more. */
void xs_ranges_changed(void);
/* Count so many bytes of a device as used; false: it has not so many. */
bool xs_ranges_use(int device, size_t bytes);
void xs_ranges_unuse(int device, size_t bytes);
/* Where the ids of a device's memory are in its file. */
size_t xs_ranges_ids(int device);

/* Of ipc.c: unmap memory of another process, and take it out of the table. */
void xs_ipc_unmap(const struct xs_range *range);

#endif
