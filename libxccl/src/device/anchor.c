/* SPDX-License-Identifier: BSD-3-Clause */
#include "device/anchor.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* In turns: a thread may still be looking at the one before. */
enum { ANCHORS = 2 };

static pthread_mutex_t        lock = PTHREAD_MUTEX_INITIALIZER;
static const struct link_map *anchor; /* atomic */
static void                  *handles[ANCHORS];
static int                    current;
static bool                   lifted;

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

bool xc_anchor_drop(void)
{
    const struct link_map *map = NULL;

    pthread_mutex_lock(&lock);
    int next = (current + 1) % ANCHORS;
    if (handles[next] != NULL) {
        dlclose(handles[next]);
    }
    handles[next] = lifted ? NULL : open_anchor(next);
    if ((handles[next] != NULL) && (dlinfo(handles[next], RTLD_DI_LINKMAP, &map) == 0)) {
        current = next;
    }
    __atomic_store_n(&anchor, map, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
    return map != NULL;
}

void xc_anchor_lift(void)
{
    pthread_mutex_lock(&lock);
    lifted = true;
    __atomic_store_n(&anchor, NULL, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
}
