/* SPDX-License-Identifier: BSD-3-Clause */
/* What every backend says of the library that it has opened. */
#ifndef XC_BACKENDS_LIBRARY_H
#define XC_BACKENDS_LIBRARY_H

#include "backends/backend.h"
#include "vendor/vendor.h"

void xc_library_describe(const struct xc_vendor_row *row, const struct xc_vendor_lib *file,
                         int version, struct xc_library *lib_p);

#endif
