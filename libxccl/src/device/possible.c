/* SPDX-License-Identifier: BSD-3-Clause */
/* Could this process ever use a device? Asked without loading or starting anything. */
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device/device.h"

struct place {
    const char *runtime;
    const char *nodes[3];
    const char *libraries[5];
};

/* /dev/dxg: a GPU of Windows, which may be either's. */
static const struct place places[] = {
    {"cuda", {"/dev/nvidiactl", "/dev/dxg"}, {"libcuda.so.1"}},
    {"rocm",
     {"/dev/kfd", "/dev/dxg"},
     {"libamdhip64.so", "libamdhip64.so.5", "libamdhip64.so.6", "libamdhip64.so.7"}},
    {"hpu", {"/dev/accel/accel0", "/dev/hl0"}, {"libSynapse.so"}},
};

static bool node_exists(const struct place *place)
{
    for (const char *const *node = place->nodes; *node != NULL; node++) {
        if (access(*node, F_OK) == 0) {
            return true;
        }
    }
    return false;
}

static bool folder_has(const char *folder, const struct place *place)
{
    char path[4096];

    for (const char *const *name = place->libraries; *name != NULL; name++) {
        int n = snprintf(path, sizeof(path), "%s/%s", folder, *name);
        if ((n > 0) && (n < (int)sizeof(path)) && (access(path, F_OK) == 0)) {
            return true;
        }
    }
    return false;
}

/* The folders that dlopen would look in: LD_LIBRARY_PATH as the process began with it, and
 * defaults. */
static bool search_path_has(const struct place *place)
{
    Dl_serinfo  size;
    Dl_serinfo *info = NULL;
    void       *self = dlopen(NULL, RTLD_LAZY);
    bool        found = false;

    if ((self == NULL) || (dlinfo(self, RTLD_DI_SERINFOSIZE, &size) != 0)) {
        goto out;
    }
    info = malloc(size.dls_size);
    if (info == NULL) {
        goto out;
    }
    if ((dlinfo(self, RTLD_DI_SERINFOSIZE, info) != 0) ||
        (dlinfo(self, RTLD_DI_SERINFO, info) != 0)) {
        goto out;
    }
    for (unsigned i = 0; (i < info->dls_cnt) && !found; i++) {
        found = folder_has(info->dls_serpath[i].dls_name, place);
    }
out:
    free(info);
    if (self != NULL) {
        dlclose(self);
    }
    return found;
}

bool xc_device_possible_of(const char *runtime)
{
    const struct xc_device_ops *active = xc_device_active();

    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        if (strcmp(places[i].runtime, runtime) == 0) {
            return ((active != NULL) && (strcmp(active->name, runtime) == 0)) ||
                   node_exists(&places[i]) || search_path_has(&places[i]);
        }
    }
    return false;
}

bool xc_device_possible(void)
{
    bool possible = false;

    for (size_t i = 0; (i < sizeof(places) / sizeof(places[0])) && !possible; i++) {
        possible = node_exists(&places[i]);
    }
    possible = possible || (xc_device_active() != NULL);
    for (size_t i = 0; (i < sizeof(places) / sizeof(places[0])) && !possible; i++) {
        possible = search_path_has(&places[i]);
    }
    return possible;
}
