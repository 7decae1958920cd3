/* SPDX-License-Identifier: BSD-3-Clause */
/* Could this process ever use a device? Asked without loading or starting anything. */
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/environment.h"
#include "device/device.h"

struct place {
    const char *runtime;
    const char *visible[3]; /* variables that hide devices from the process */
    const char *nodes[3];
    const char *libraries[5];
};

static const struct place places[] = {
    {"cuda", {"CUDA_VISIBLE_DEVICES"}, {"/dev/nvidiactl"}, {"libcuda.so.1"}},
    {"rocm",
     {"ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"},
     {"/dev/kfd"},
     {"libamdhip64.so", "libamdhip64.so.5", "libamdhip64.so.6", "libamdhip64.so.7"}},
    {"hpu", {NULL}, {"/dev/accel/accel0", "/dev/hl0"}, {"libSynapse.so"}},
};

/* A GPU of Windows, which may be any vendor's. */
static bool shared_node_exists(void)
{
    return access("/dev/dxg", F_OK) == 0;
}

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

static bool is_hidden(const struct place *place)
{
    for (const char *const *name = place->visible; *name != NULL; name++) {
        if (xc_hides_devices(*name)) {
            return true;
        }
    }
    return false;
}

/* Where the device itself does not tell: one of Windows, or a simulated one. */
static bool library_tells(const struct place *place)
{
    return (shared_node_exists() || (xc_foreign_variable("XCCL_SIM") != NULL)) &&
           search_path_has(place);
}

/* Loads nothing: it would start a driver that the program may want to start after a fork. */
bool xc_device_possible_of(const char *runtime)
{
    const struct xc_device_ops *active = xc_device_active();

    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        if (strcmp(places[i].runtime, runtime) == 0) {
            return ((active != NULL) && (strcmp(active->name, runtime) == 0)) ||
                   (!is_hidden(&places[i]) &&
                    (node_exists(&places[i]) || library_tells(&places[i])));
        }
    }
    return false;
}

bool xc_device_possible(void)
{
    bool possible = shared_node_exists();

    for (size_t i = 0; (i < sizeof(places) / sizeof(places[0])) && !possible; i++) {
        possible = node_exists(&places[i]);
    }
    possible = possible || (xc_device_active() != NULL);
    for (size_t i = 0; (i < sizeof(places) / sizeof(places[0])) && !possible; i++) {
        possible = search_path_has(&places[i]);
    }
    return possible;
}
