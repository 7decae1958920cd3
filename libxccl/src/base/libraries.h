/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XC_BASE_LIBRARIES_H
#define XC_BASE_LIBRARIES_H

#include <stddef.h>

/*
 * The vendors' libraries by the names that XCCL_CCL, tables and messages have for them, in the
 * order of vendor/rows.c; NULL behind the last.
 */
static inline const char *xc_library_name(size_t row)
{
    static const char *const names[] = {"nccl", "rccl", "msccl", "mscclpp", "oneccl", "hccl"};

    return (row < sizeof(names) / sizeof(names[0])) ? names[row] : NULL;
}

#endif
