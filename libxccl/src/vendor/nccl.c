/* SPDX-License-Identifier: BSD-3-Clause */
/* The libraries of the NCCL family, a row each, and how one of them is opened. */
#include "vendor/vendor.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "xc_ccl_path.h" /* made by CMake: XC_CCL_PATH */

/* Before 2.10 nccl.h knew bfloat16 only in forks; float8 came with 2.24, in RCCL with 2.20. */
static const struct xc_nccl_row rows[] = {
    [XC_NCCL_ROW_NCCL] =
        {
            .name = "nccl",
            .soname = "libnccl.so.2",
            .device = "cuda",
            .by_soname = true,
            .min_version = 2700,
            .type_since =
                {[xcclBfloat16] = 21000, [xcclFloat8e4m3] = 22400, [xcclFloat8e5m2] = 22400},
            .op_since = {[xcclAvg] = 21000},
        },
    [XC_NCCL_ROW_RCCL] =
        {
            .name = "rccl",
            .soname = "librccl.so.1",
            .device = "rocm",
            .by_soname = true,
            .min_version = 2700,
            .type_since = {[xcclFloat8e4m3] = 22005, [xcclFloat8e5m2] = 22005},
            .op_since = {[xcclAvg] = 21000},
        },
    [XC_NCCL_ROW_MSCCL] =
        {
            /* A fork of NCCL under NCCL's own soname: a search by name would find NCCL instead. */
            .name = "msccl",
            .soname = "libnccl.so.2",
            .device = "cuda",
            .by_soname = false,
            .min_version = 2700,
            .type_since =
                {[xcclBfloat16] = 21000, [xcclFloat8e4m3] = XC_NEVER, [xcclFloat8e5m2] = XC_NEVER},
            .op_since = {[xcclAvg] = 21000},
        },
};

const struct xc_nccl_row *xc_nccl_rows(size_t *count_p)
{
    *count_p = sizeof(rows) / sizeof(rows[0]);
    return rows;
}

static const struct xc_vendor_symbol symbols[] = {
#define REQUIRED(field, symbol, since, ret, params)                                                \
    {#symbol, offsetof(struct xc_nccl_fns, field), since, true},
#define OPTIONAL(field, symbol, since, ret, params)                                                \
    {#symbol, offsetof(struct xc_nccl_fns, field), since, false},
#define ALIAS(field, symbol, since) {#symbol, offsetof(struct xc_nccl_fns, field), since, false},
    XC_NCCL_REQUIRED(REQUIRED) XC_NCCL_OPTIONAL(OPTIONAL) XC_NCCL_ALIASES(ALIAS)
#undef REQUIRED
#undef OPTIONAL
#undef ALIAS
};

const char *xc_nccl_version_text(int version, char *buf, size_t len)
{
    int unit = (version >= 10000) ? 10000 : 1000;

    snprintf(buf, len, "%d.%d.%d", version / unit, (version % unit) / 100, version % 100);
    return buf;
}

/* The family shares its symbol names, so a library of another row would load without complaint. */
static xcclResult_t check_identity(const struct xc_nccl_row *row, const struct xc_vendor_lib *lib)
{
    char soname[256];

    if (!xc_vendor_soname(lib, soname, sizeof(soname))) {
        return xcclSuccess;
    }
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if ((strcmp(rows[i].soname, soname) == 0) && (strcmp(rows[i].device, row->device) != 0)) {
            return xc_fail(
                xcclLibraryNotFound,
                "%s: %s (found by: %s) is %s, which works on %s devices, not %s; correct "
                "XCCL_CCL_LIBRARY or set XCCL_CCL=%s",
                row->name, lib->path, xc_found_by_name(lib->found_by), rows[i].name, rows[i].device,
                row->device, rows[i].name);
        }
    }
    return xcclSuccess;
}

static xcclResult_t ask_version(const struct xc_nccl_row *row, const struct xc_vendor_lib *lib,
                                const struct xc_nccl_fns *fns, int *version_p)
{
    int version = 0;
    int rc = fns->get_version(&version);

    if ((rc != XC_NCCL_SUCCESS) || (version < row->min_version)) {
        return xc_fail(xcclLibraryNotFound,
                       "%s: %s says version %d (result %d), xccl needs 2.7 or newer; point "
                       "XCCL_CCL_LIBRARY to a newer library",
                       row->name, lib->path, version, rc);
    }
    *version_p = version;
    return xcclSuccess;
}

xcclResult_t xc_nccl_open(const struct xc_nccl_row *row, const char *explicit_path,
                          struct xc_vendor_lib *lib_p, struct xc_nccl_fns *fns_p, int *version_p)
{
    char                    built_in[1024];
    struct xc_nccl_fns      fns = {0};
    struct xc_vendor_lib    lib;
    struct xc_vendor_search search = {
        .name = row->name,
        .soname = row->soname,
        .variable = explicit_path,
        .built_in = xc_vendor_list_path(XC_CCL_PATH, row->name, built_in, sizeof(built_in)),
        .by_soname = row->by_soname,
    };
    xcclResult_t rc = xc_vendor_open(&search, &lib);

    if (rc != xcclSuccess) {
        return rc;
    }
    rc = check_identity(row, &lib);
    if (rc == xcclSuccess) {
        rc =
            xc_vendor_resolve(&lib, row->name, symbols, sizeof(symbols) / sizeof(symbols[0]), &fns);
    }
    if (rc == xcclSuccess) {
        rc = ask_version(row, &lib, &fns, version_p);
    }
    if (rc != xcclSuccess) {
        xc_vendor_close(&lib);
        return rc;
    }
    *lib_p = lib;
    *fns_p = fns;
    return xcclSuccess;
}
