/* SPDX-License-Identifier: BSD-3-Clause */
/* Which backend this process uses. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backends/backend.h"
#include "backends/hccl.h"
#include "backends/ncclfamily.h"
#include "backends/oneccl.h"
#include "base/launch.h"
#include "base/log.h"
#include "base/params.h"
#include "device/device.h"
#include "vendor/vendor.h"

/* In the order of the rows. */
static const struct xc_backend_ops *const all[XC_NUM_ROWS + 1] = {
    [XC_ROW_NCCL] = &xc_backend_nccl,     [XC_ROW_RCCL] = &xc_backend_rccl,
    [XC_ROW_MSCCL] = &xc_backend_msccl,   [XC_ROW_MSCCLPP] = &xc_backend_mscclpp,
    [XC_ROW_ONECCL] = &xc_backend_oneccl, [XC_ROW_HCCL] = &xc_backend_hccl,
};

/* Those that XCCL_CCL=auto looks for, in the order in which they are tried. */
static const size_t automatic[] = {XC_ROW_NCCL, XC_ROW_RCCL, XC_ROW_HCCL};
enum { NUM_AUTOMATIC = sizeof(automatic) / sizeof(automatic[0]) };

static struct {
    const struct xc_backend_ops *ops;
    struct xc_library            lib;
    xcclResult_t                 result;
    char                         detail[1024];
} chosen;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool     is_chosen;

const struct xc_backend_ops *const *xc_backend_all(void)
{
    return all;
}

static const struct xc_backend_ops *by_name(const char *name)
{
    size_t i = 0;

    while (strcmp(all[i]->name, name) != 0) {
        i++;
    }
    return all[i];
}

static xcclResult_t load(size_t row, const char *path, bool exactly)
{
    xcclResult_t rc = all[row]->load(path, exactly, &chosen.lib);

    if (rc == xcclSuccess) {
        chosen.ops = by_name(chosen.lib.name);
    }
    return rc;
}

/* The row whose name is in the file's: /opt/rccl/lib/librccl.so.1 is RCCL, libSynapse.so has
 * HCCL, all else is NCCL or a fork of it, which shows when it is open. */
static size_t by_file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *file = (slash != NULL) ? slash + 1 : path;

    if (strstr(file, "Synapse") != NULL) {
        return XC_ROW_HCCL;
    }
    return (strstr(file, xc_backend_rccl.name) != NULL) ? XC_ROW_RCCL : XC_ROW_NCCL;
}

/* No runtime says what the devices are: take the first library that there is. */
static xcclResult_t load_any(void)
{
    char         trail[800] = "";
    xcclResult_t rc = xcclLibraryNotFound;

    for (size_t i = 0; i < NUM_AUTOMATIC; i++) {
        rc = load(automatic[i], NULL, false);
        if (rc == xcclSuccess) {
            return rc;
        }
        size_t len = strlen(trail);
        snprintf(trail + len, sizeof(trail) - len, "%s%s", (len > 0) ? " | " : "",
                 xc_last_detail());
    }
    return xc_fail(rc, "XCCL_CCL=auto found no library. %s", trail);
}

static xcclResult_t load_automatic(const char *path)
{
    const struct xc_device_ops *device = xc_device_active();

    for (size_t i = 0; i < NUM_AUTOMATIC; i++) {
        const struct xc_vendor_row *row = &xc_vendor_rows()[automatic[i]];
        if ((device != NULL) ? (strcmp(row->device, device->name) == 0)
                             : xc_vendor_loaded(row->soname)) {
            return load(automatic[i], path, false);
        }
    }
    return (path != NULL) ? load(by_file_name(path), path, false) : load_any();
}

static xcclResult_t choose(void)
{
    const struct xc_params *params = xc_params();

    xc_params_warn(xc_first_of_node());
    if (xc_params_error() != NULL) {
        return xc_fail(xcclInvalidUsage, "%s", xc_params_error());
    }
    if (params->ccl == XC_CCL_NONE) {
        return xc_fail(xcclLibraryNotFound,
                       "XCCL_CCL=none forbids every vendor library; unset it to use one");
    }
    if (params->ccl == XC_CCL_AUTO) {
        return load_automatic(params->ccl_library);
    }
    _Static_assert((int)XC_CCL_NONE - XC_CCL_NCCL == XC_NUM_ROWS, "a value of XCCL_CCL each");
    return load((size_t)(params->ccl - XC_CCL_NCCL), params->ccl_library, true);
}

static void choose_once(void)
{
    char version[16], before[sizeof(chosen.detail)];

    snprintf(before, sizeof(before), "%s", xc_last_detail());
    pthread_mutex_lock(&lock);
    if (!atomic_load_explicit(&is_chosen, memory_order_relaxed)) {
        chosen.result = choose();
        if (chosen.result == xcclSuccess) {
            xc_restore_detail(before); /* a library that was tried first is no failure */
        }
        if ((chosen.result == xcclSuccess) && xc_first_of_node()) {
            xc_info("using %s %s from %s (found by: %s)", chosen.lib.name,
                    xc_nccl_version_text(chosen.lib.version, version, sizeof(version)),
                    chosen.lib.path, chosen.lib.found_by);
        } else if (chosen.result != xcclSuccess) {
            snprintf(chosen.detail, sizeof(chosen.detail), "%s", xc_last_detail());
        }
        atomic_store_explicit(&is_chosen, true, memory_order_release);
    }
    pthread_mutex_unlock(&lock);
}

/* NULL without a library; says nothing of it, since each call may ask. */
static const struct xc_backend_ops *chosen_ops(void)
{
    if (!atomic_load_explicit(&is_chosen, memory_order_acquire)) {
        choose_once();
    }
    return (chosen.result == xcclSuccess) ? chosen.ops : NULL;
}

xcclResult_t xc_backend_get(const struct xc_backend_ops **ops_p, const struct xc_library **lib_p)
{
    if (chosen_ops() == NULL) {
        return xc_fail(chosen.result, "%s", chosen.detail);
    }
    *ops_p = chosen.ops;
    *lib_p = &chosen.lib;
    return xcclSuccess;
}

/* The soname of a library that the program has loaded itself, or NULL. */
static const char *loaded_by_program(void)
{
    for (size_t i = 0; i < NUM_AUTOMATIC; i++) {
        const struct xc_vendor_row *row = &xc_vendor_rows()[automatic[i]];
        if (xc_vendor_loaded(row->soname)) {
            return row->soname;
        }
    }
    return NULL;
}

void xc_backend_outlook(char *buf, size_t len)
{
    const struct xc_params *params = xc_params();
    const char             *loaded = loaded_by_program();

    if (params->ccl == XC_CCL_NONE) {
        snprintf(buf, len, "no vendor library (XCCL_CCL=none)");
    } else if (loaded != NULL) {
        snprintf(buf, len, "vendor library %s (the program has it loaded)", loaded);
    } else if ((params->ccl_library != NULL) && (access(params->ccl_library, R_OK) != 0)) {
        snprintf(buf, len, "no vendor library (XCCL_CCL_LIBRARY=%s cannot be read)",
                 params->ccl_library);
    } else if (params->ccl_library != NULL) {
        snprintf(buf, len, "vendor library %s (XCCL_CCL_LIBRARY)", params->ccl_library);
    } else {
        snprintf(buf, len, "a vendor library is looked for at the first call on device memory");
    }
}

bool xc_backend_reduces(xcclDataType_t type, xcclRedOp_t op)
{
    static const enum xc_coll    colls[] = {XC_ALLREDUCE, XC_REDUCE, XC_REDUCE_SCATTER};
    const struct xc_backend_ops *ops = chosen_ops();

    if (ops == NULL) {
        return true;
    }
    for (size_t i = 0; i < sizeof(colls) / sizeof(colls[0]); i++) {
        if (!ops->supports(colls[i], type, op)) {
            return false;
        }
    }
    return true;
}

bool xc_backend_moves_bytes(void)
{
    const struct xc_backend_ops *ops = chosen_ops();

    return (ops == NULL) || ops->supports_type(xcclUint8);
}

xcclResult_t xc_backend_serves(const char *device)
{
    const struct xc_backend_ops *ops;
    const struct xc_library     *lib;
    xcclResult_t                 rc = xc_backend_get(&ops, &lib);

    if ((rc != xcclSuccess) || (strcmp(device, lib->device) == 0)) {
        return rc;
    }
    return xc_fail(xcclUnsupported,
                   "%s (%s) is for memory of %s, and the program uses %s; unset XCCL_CCL and "
                   "XCCL_CCL_LIBRARY, or choose a library for %s",
                   lib->name, lib->path, lib->device, device, device);
}
