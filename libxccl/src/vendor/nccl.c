/* SPDX-License-Identifier: BSD-3-Clause */
/* How a library of the NCCL family is opened, and told from its forks. */
#include "vendor/vendor.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/environment.h"
#include "base/log.h"
#include "base/params.h"

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
    /* NCCL's before 2.9; numbers of MSCCL++ that are smaller than those have the new form. */
    bool old = (version >= 2000) && (version < 10000);
    int  unit = old ? 1000 : 10000;

    snprintf(buf, len, "%d.%d.%d", version / unit, (version % unit) / 100, version % 100);
    return buf;
}

static bool has_any(const struct xc_vendor_lib *lib, const char *const *names)
{
    for (; (names != NULL) && (*names != NULL); names++) {
        if (dlsym(lib->handle, *names) != NULL) {
            return true;
        }
    }
    return false;
}

/* "libnccl.so.2" and a fork's "libnccl.so.2.12.12" are one name; "libnccl.so.20" is another. */
static bool same_soname(const char *soname, const char *row_soname)
{
    size_t len = strlen(row_soname);

    return (strncmp(soname, row_soname, len) == 0) &&
           ((soname[len] == '\0') || (soname[len] == '.'));
}

/*
 * The family shares its symbol names, so a library of another row would load without complaint.
 * NULL: a file under a name of its own, which is taken for what the user calls it.
 */
static const struct xc_vendor_row *identify(const struct xc_vendor_lib *lib)
{
    const struct xc_vendor_row *rows = xc_vendor_rows();
    const struct xc_vendor_row *found = NULL;
    char                        soname[256];

    if (!xc_vendor_soname(lib, soname, sizeof(soname))) {
        return NULL;
    }
    for (size_t i = 0; i < XC_NUM_NCCL_ROWS; i++) {
        if (!same_soname(soname, rows[i].soname)) {
            continue;
        }
        if ((rows[i].marks == NULL) ? (found == NULL) : has_any(lib, rows[i].marks)) {
            found = &rows[i]; /* a fork's mark says more than the name that it kept */
        }
    }
    return found;
}

/* The row of what was opened in *row_p, or a failure that says which it is. */
static xcclResult_t check_identity(const struct xc_vendor_row **row_p, bool exactly,
                                   const struct xc_vendor_lib *lib)
{
    const struct xc_vendor_row *row = *row_p;
    const struct xc_vendor_row *found = identify(lib);

    if ((found == NULL) || (found == row)) {
        return xcclSuccess;
    }
    if (strcmp(found->device, row->device) != 0) {
        return xc_fail(xcclLibraryNotFound,
                       "%s: %s (found by: %s) is %s, which works on %s devices, not %s; correct "
                       "XCCL_CCL_LIBRARY or set XCCL_CCL=%s",
                       row->name, lib->path, xc_found_by_name(lib->found_by), found->name,
                       found->device, row->device, found->name);
    }
    if (exactly) {
        return xc_fail(xcclLibraryNotFound,
                       "%s: %s (found by: %s) is %s, not %s; set XCCL_CCL_LIBRARY to the file of "
                       "%s, or XCCL_CCL=%s",
                       row->name, lib->path, xc_found_by_name(lib->found_by), found->name,
                       row->name, row->name, found->name);
    }
    *row_p = found;
    return xcclSuccess;
}

static xcclResult_t ask_version(struct xc_nccl_lib *lib)
{
    char version[40], least[40];
    int  rc = lib->fns.get_version(&lib->version);

    if ((rc == XC_NCCL_SUCCESS) && (lib->version >= lib->row->min_version)) {
        return xcclSuccess;
    }
    return xc_fail(xcclLibraryNotFound,
                   "%s: %s says version %s (%d, result %d), xccl needs %s or newer; point "
                   "XCCL_CCL_LIBRARY to a newer library",
                   lib->row->name, lib->file.path,
                   xc_nccl_version_text(lib->version, version, sizeof(version)), lib->version, rc,
                   xc_nccl_version_text(lib->row->min_version, least, sizeof(least)));
}

/* Forget the functions that do nothing: who asks for one is to find it missing. */
static void drop_hollow(struct xc_nccl_lib *lib)
{
    for (const char *const *name = lib->row->hollow; (name != NULL) && (*name != NULL); name++) {
        for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
            if (strcmp(symbols[i].name, *name) == 0) {
                memset((char *)&lib->fns + symbols[i].offset, 0, sizeof(void *));
            }
        }
    }
}

static xcclResult_t check_variable(const struct xc_vendor_row *row)
{
    const char *value = (row->variable != NULL) ? xc_foreign_variable(row->variable) : "";

    return (value != NULL) ? xcclSuccess
                           : xc_fail(xcclLibraryNotFound, "%s: %s is not set; set it to %s",
                                     row->name, row->variable, row->remedy);
}

xcclResult_t xc_nccl_open(const struct xc_vendor_row *row, const char *explicit_path, bool exactly,
                          struct xc_nccl_lib *lib_p)
{
    struct xc_nccl_lib lib = {.row = row};
    xcclResult_t       rc = xc_vendor_open_row(row, explicit_path, &lib.file);

    if (rc != xcclSuccess) {
        return rc;
    }
    rc = check_identity(&lib.row, exactly, &lib.file);
    if (rc == xcclSuccess) {
        rc = check_variable(lib.row);
    }
    if (rc == xcclSuccess) {
        rc = xc_vendor_resolve(&lib.file, lib.row->name, symbols,
                               sizeof(symbols) / sizeof(symbols[0]), &lib.fns);
    }
    if (rc == xcclSuccess) {
        rc = ask_version(&lib);
    }
    if (rc != xcclSuccess) {
        xc_vendor_close(&lib.file);
        return rc;
    }
    drop_hollow(&lib);
    *lib_p = lib;
    return xcclSuccess;
}
