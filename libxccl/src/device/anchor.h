/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Was anything loaded since? In one load and a comparison, for calls that take 100 ns in all.
 *
 * The loader appends objects to a list. So an object of our own is loaded behind all others, and
 * as long as no object follows it, nothing was loaded: no driver, and so no device memory. It is
 * ours alone, so nobody unloads it.
 */
#ifndef XC_DEVICE_ANCHOR_H
#define XC_DEVICE_ANCHOR_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/log.h"

/* Where the anchor is kept; there it is NULL while there is none. Never NULL itself. */
XC_SHARED const struct link_map *const *xc_anchor_place(void);

/* Is nothing loaded behind the anchor? */
static inline bool xc_anchor_is_last(const struct link_map *const *place)
{
    const struct link_map *anchor = __atomic_load_n(place, __ATOMIC_ACQUIRE);

    return (anchor != NULL) && (__atomic_load_n(&anchor->l_next, __ATOMIC_RELAXED) == NULL);
}

/*
 * Load an anchor behind what is loaded now, or NULL if there is none to be had. What is asked after
 * that, and found not to be loaded, is not loaded while the anchor is the last; so it is put in its
 * place only then. One thread at a time.
 */
const struct link_map *xc_anchor_drop(void);
void                   xc_anchor_put(const struct link_map *map);

#endif
