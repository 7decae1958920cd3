/* SPDX-License-Identifier: BSD-3-Clause */
/* How oneCCL is opened, and which of its plugins it will use. */
#include "vendor/vendor.h"

#include <stdio.h>
#include <string.h>

#include "base/environment.h"
#include "base/log.h"

static const struct xc_vendor_symbol symbols[] = {
#define REQUIRED(field, symbol, ret, params)                                                       \
    {#symbol, offsetof(struct xc_oneccl_fns, field), XC_ONECCL_MIN_VERSION, true},
    XC_ONECCL_REQUIRED(REQUIRED)
#undef REQUIRED
};

/*
 * The library has no question for that: it decides at the first call, by this variable or by the
 * devices that it finds.
 */
bool xc_oneccl_on_host(void)
{
    const char *plugin = xc_foreign_variable("CCL_PLUGIN");

    return (plugin != NULL) && (strcasestr(plugin, "legacy_cpu") != NULL);
}

static xcclResult_t ask_version(struct xc_oneccl_lib *lib)
{
    char        version[16];
    int         rc = lib->fns.get_version(&lib->version);
    const char *text = (rc == XC_ONECCL_SUCCESS) ? NULL : lib->fns.get_last_error(NULL);

    if (rc != XC_ONECCL_SUCCESS) {
        return xc_fail(xcclLibraryNotFound,
                       "oneccl: %s does not start: %s; without a SYCL device set "
                       "CCL_PLUGIN=ONECCL_LEGACY_CPU, CCL_LOG_LEVEL=info says more",
                       lib->file.path, (text != NULL) ? text : lib->fns.get_error_string(rc));
    }
    if (lib->version < lib->row->min_version) {
        return xc_fail(xcclLibraryNotFound,
                       "oneccl: %s is version %s, xccl needs 2022.1 or newer; point "
                       "XCCL_CCL_LIBRARY to a newer library",
                       lib->file.path,
                       xc_nccl_version_text(lib->version, version, sizeof(version)));
    }
    return xcclSuccess;
}

xcclResult_t xc_oneccl_open(const char *explicit_path, struct xc_oneccl_lib *lib_p)
{
    struct xc_oneccl_lib lib = {.row = &xc_vendor_rows()[XC_ROW_ONECCL]};
    xcclResult_t         rc = xc_vendor_open_row(lib.row, explicit_path, &lib.file);

    if (rc != xcclSuccess) {
        return rc;
    }
    rc = xc_vendor_resolve(&lib.file, lib.row->name, symbols, sizeof(symbols) / sizeof(symbols[0]),
                           &lib.fns);
    if (rc == xcclSuccess) {
        rc = ask_version(&lib);
    }
    if (rc != xcclSuccess) {
        xc_vendor_close(&lib.file);
        return rc;
    }
    *lib_p = lib;
    return xcclSuccess;
}
