/* SPDX-License-Identifier: BSD-3-Clause */
/* Could this process ever use a device? Asked without loading or starting anything. */
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "device/device.h"

static bool node_exists(void)
{
    static const char *const nodes[] = {"/dev/nvidiactl", "/dev/kfd", "/dev/dxg",
                                        "/dev/accel/accel0", "/dev/hl0"};

    for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
        if (access(nodes[i], F_OK) == 0) {
            return true;
        }
    }
    return false;
}

static bool folder_has_runtime(const char *folder)
{
    static const char *const names[] = {"libcuda.so.1",     "libamdhip64.so",   "libamdhip64.so.5",
                                        "libamdhip64.so.6", "libamdhip64.so.7", "libSynapse.so"};
    char                     path[4096];

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        int n = snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        if ((n > 0) && (n < (int)sizeof(path)) && (access(path, F_OK) == 0)) {
            return true;
        }
    }
    return false;
}

/* The folders that dlopen would look in: LD_LIBRARY_PATH as the process began with it, and
 * defaults. */
static bool search_path_has_runtime(void)
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
        found = folder_has_runtime(info->dls_serpath[i].dls_name);
    }
out:
    free(info);
    if (self != NULL) {
        dlclose(self);
    }
    return found;
}

bool xc_device_possible(void)
{
    return node_exists() || (xc_device_active() != NULL) || search_path_has_runtime();
}
