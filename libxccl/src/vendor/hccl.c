/* SPDX-License-Identifier: BSD-3-Clause */
/* How HCCL is opened: its functions are in the library of the device's runtime. */
#include "vendor/vendor.h"

#include <stdio.h>

#include "base/log.h"

static const struct xc_vendor_symbol symbols[] = {
#define REQUIRED(field, symbol, ret, params)                                                       \
    {#symbol, offsetof(struct xc_hccl_fns, field), XC_HCCL_MIN_VERSION, true},
#define OPTIONAL(field, symbol, ret, params)                                                       \
    {#symbol, offsetof(struct xc_hccl_fns, field), XC_HCCL_MIN_VERSION, false},
    XC_HCCL_REQUIRED(REQUIRED) XC_HCCL_OPTIONAL(OPTIONAL)
#undef REQUIRED
#undef OPTIONAL
};

xcclResult_t xc_hccl_open(const char *explicit_path, struct xc_hccl_lib *lib_p)
{
    struct xc_hccl_lib lib = {.row = &xc_vendor_rows()[XC_ROW_HCCL]};
    xcclResult_t       rc = xc_vendor_open_row(lib.row, explicit_path, &lib.file);

    if (rc != xcclSuccess) {
        return rc;
    }
    rc = xc_vendor_resolve(&lib.file, lib.row->name, symbols, sizeof(symbols) / sizeof(symbols[0]),
                           &lib.fns);
    if ((rc == xcclSuccess) && ((lib.fns.get_version(&lib.version) != XC_HCCL_SUCCESS) ||
                                (lib.version < lib.row->min_version))) {
        rc = xc_fail(xcclLibraryNotFound,
                     "hccl: %s says version %d, xccl needs 2.6 or newer; point XCCL_CCL_LIBRARY to "
                     "a newer library",
                     lib.file.path, lib.version);
    }
    if (rc != xcclSuccess) {
        xc_vendor_close(&lib.file);
        return rc;
    }
    *lib_p = lib;
    return xcclSuccess;
}
