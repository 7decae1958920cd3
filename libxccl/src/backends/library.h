/* SPDX-License-Identifier: BSD-3-Clause */
/* What every backend says of the library that it has opened. */
#ifndef XC_BACKENDS_LIBRARY_H
#define XC_BACKENDS_LIBRARY_H

#include "backends/backend.h"
#include "vendor/vendor.h"

void xc_library_describe(const struct xc_vendor_row *row, const struct xc_vendor_lib *file,
                         int version, struct xc_library *lib_p);

/* Memory of row's device, by its runtime, where the library gives none. */
xcclResult_t xc_library_mem_alloc(const struct xc_vendor_row *row, void **ptr_p, size_t bytes);
xcclResult_t xc_library_mem_free(const struct xc_vendor_row *row, void *ptr);

#endif
