/* SPDX-License-Identifier: BSD-3-Clause */
/* Facts about this machine and this environment. */
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "device/device.h"
#include "info.h"

static const struct {
    const char *runtime;
    const char *libraries[5];
} runtimes[INFO_MAX_RUNTIMES] = {
    {"cuda", {"libcuda.so.1", NULL}},
    {"rocm", {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so", NULL}},
    {"hpu", {"libSynapse.so", NULL}},
};

/*
 * Loading a runtime initialises nothing: no context, no device file is opened. It stays loaded:
 * ROCm's brings an LLVM that aborts the process when it is loaded a second time.
 */
static void find_runtime(struct info_runtime *runtime, const char *const *libraries)
{
    for (int i = 0; (libraries[i] != NULL) && (runtime->library[0] == '\0'); i++) {
        void *lib = dlopen(libraries[i], RTLD_LAZY | RTLD_LOCAL);
        if (lib == NULL) {
            continue;
        }
        struct link_map *map = NULL;
        snprintf(runtime->library, sizeof(runtime->library), "%s", libraries[i]);
        if ((dlinfo(lib, RTLD_DI_LINKMAP, &map) == 0) && (map != NULL)) {
            snprintf(runtime->path, sizeof(runtime->path), "%s", map->l_name);
        }
    }
}

static void uuid_text(const unsigned char *uuid, char *text)
{
    for (int i = 0; i < XC_DEVICE_UUID_BYTES; i++) {
        text += sprintf(text, "%s%02x", ((i == 4) || (i == 6) || (i == 8) || (i == 10)) ? "-" : "",
                        uuid[i]);
    }
}

static void list_devices(struct info_runtime *runtime, const struct xc_device_ops *ops)
{
    int count = 0;

    if (ops->count(&count) != xcclSuccess) {
        snprintf(runtime->why, sizeof(runtime->why), "%s", xc_last_detail());
        return;
    }
    runtime->started = true;
    runtime->count = (count < INFO_MAX_DEVICES) ? count : INFO_MAX_DEVICES;
    for (int i = 0; i < runtime->count; i++) {
        struct info_device *device = &runtime->devices[i];
        unsigned char       uuid[XC_DEVICE_UUID_BYTES];
        if (ops->name_of(i, device->name, sizeof(device->name)) != xcclSuccess) {
            snprintf(device->name, sizeof(device->name), "unknown");
        }
        (void)ops->bus_id_of(i, device->bus_id, sizeof(device->bus_id));
        if (ops->uuid_of(i, uuid) == xcclSuccess) {
            uuid_text(uuid, device->uuid);
        }
    }
}

static void collect_runtimes(struct info *info, bool with_devices)
{
    for (int i = 0; i < INFO_MAX_RUNTIMES; i++) {
        struct info_runtime        *runtime = &info->runtimes[i];
        const struct xc_device_ops *ops;
        runtime->name = runtimes[i].runtime;
        find_runtime(runtime, runtimes[i].libraries);
        info_find_kernels(info, runtime);
        if (!with_devices || (runtime->library[0] == '\0')) {
            continue;
        }
        if (xc_device_start(runtime->name, &ops) == xcclSuccess) {
            list_devices(runtime, ops);
        } else {
            snprintf(runtime->why, sizeof(runtime->why), "%s", xc_last_detail());
        }
    }
}

static void found(struct info_ccl *ccl, const char *path, const char *found_by, int version)
{
    ccl->found = true;
    ccl->version = version;
    snprintf(ccl->path, sizeof(ccl->path), "%s", path);
    snprintf(ccl->found_by, sizeof(ccl->found_by), "%s", found_by);
    xc_nccl_version_text(version, ccl->version_text, sizeof(ccl->version_text));
}

static void collect_ccls(struct info *info)
{
    if (xc_backend_get(&info->backend, &info->library) != xcclSuccess) {
        info->backend = NULL;
        info->library = NULL;
        snprintf(info->backend_why, sizeof(info->backend_why), "%s", xc_last_detail());
    }
    info->nccls = XC_NUM_ROWS;
    for (size_t i = 0; i < info->nccls; i++) {
        struct info_ccl     *ccl = &info->ccls[i];
        struct xc_vendor_lib lib;
        int                  version;
        ccl->row = &xc_vendor_rows()[i];
        if ((info->library != NULL) && (strcmp(info->library->name, ccl->row->name) == 0)) {
            found(ccl, info->library->path, info->library->found_by, info->library->version);
        } else if (xc_vendor_probe(ccl->row, &lib, &version) != xcclSuccess) {
            snprintf(ccl->why, sizeof(ccl->why), "%s", xc_last_detail());
        } else {
            found(ccl, lib.path, xc_found_by_name(lib.found_by), version);
        }
    }
}

static void collect_config(struct info *info)
{
    const char *fault = xc_params_error();
    const char *unknown = xc_params_unknown();

    info->tune = xc_params()->tune;
    xc_params_warn(false); /* main() does */
    snprintf(info->unknown, sizeof(info->unknown), "%s", (unknown != NULL) ? unknown : "");
    if (fault != NULL) {
        snprintf(info->fault, sizeof(info->fault), "%s", fault);
    }
    if ((xm_tables_begin("/proc/self/exe") != xcclSuccess) && (info->fault[0] == '\0')) {
        snprintf(info->fault, sizeof(info->fault), "%s", xc_last_detail());
    }
    info->tables = xm_tables_all();
    fault = xm_tables_fault();
    if ((fault != NULL) && (info->fault[0] == '\0')) {
        snprintf(info->fault, sizeof(info->fault), "%s", fault);
    }
}

void info_collect(struct info *info, bool with_ccl, bool with_devices)
{
    info_collect_install(info);
    collect_config(info);
    if (with_ccl) {
        collect_runtimes(info, with_devices);
        collect_ccls(info);
    }
    info_find_missing(info);
}

bool info_ccl_has_type(const struct info_ccl *ccl, int type)
{
    return ccl->version >= ccl->row->type_since[type];
}

bool info_ccl_has_op(const struct info_ccl *ccl, int op)
{
    return ccl->version >= ccl->row->op_since[op];
}
