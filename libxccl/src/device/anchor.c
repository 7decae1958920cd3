/* SPDX-License-Identifier: BSD-3-Clause */
#include "device/anchor.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* In turns: a thread may still be looking at the one before. */
enum { ANCHORS = 2 };

static const struct link_map *anchor; /* atomic */
static void                  *handles[ANCHORS];
static int                    current;

const struct link_map *const *xc_anchor_place(void)
{
    return &anchor;
}

/* xccl/libxccl-anchor-<a or b>.so beside this library. */
static void *open_anchor(int which)
{
    Dl_info info;
    char    path[4096];

    if (dladdr((void *)&anchor, &info) == 0) {
        return NULL;
    }
    const char *slash = strrchr(info.dli_fname, '/');
    int         folder = (slash != NULL) ? (int)(slash - info.dli_fname) + 1 : 0;
    int n = snprintf(path, sizeof(path), "%.*sxccl/libxccl-anchor-%c.so", folder, info.dli_fname,
                     'a' + which);
    return ((n < 0) || (n >= (int)sizeof(path))) ? NULL : dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

const struct link_map *xc_anchor_drop(void)
{
    struct link_map *map = NULL;
    int              next = (current + 1) % ANCHORS;

    if (handles[next] != NULL) {
        dlclose(handles[next]);
    }
    handles[next] = open_anchor(next);
    if ((handles[next] == NULL) || (dlinfo(handles[next], RTLD_DI_LINKMAP, &map) != 0)) {
        return NULL;
    }
    current = next;
    return map;
}

void xc_anchor_put(const struct link_map *map)
{
    __atomic_store_n(&anchor, map, __ATOMIC_RELEASE);
}
