/* SPDX-License-Identifier: BSD-3-Clause */
#include "backends/library.h"

#include <stdio.h>
#include <string.h>

void xc_library_describe(const struct xc_vendor_row *row, const struct xc_vendor_lib *file,
                         int version, struct xc_library *lib_p)
{
    _Static_assert(sizeof(lib_p->path) == sizeof(file->path), "a path fits");
    lib_p->name = row->name;
    memcpy(lib_p->path, file->path, sizeof(lib_p->path));
    snprintf(lib_p->found_by, sizeof(lib_p->found_by), "%s", xc_found_by_name(file->found_by));
    lib_p->version = version;
    lib_p->id_bytes = row->id_bytes;
    lib_p->device = row->device;
}
