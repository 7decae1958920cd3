/* SPDX-License-Identifier: BSD-3-Clause */
/* Sizes as text, as variables take them. */
#include <ctype.h>

#include "base/quantity.h"
#include "measure/measure.h"

bool perf_parse_size(const char *text, size_t *bytes_p)
{
    long n;

    if (!isdigit((unsigned char)text[0]) || !xc_quantity_read(text, XC_UNIT_BYTE, &n)) {
        return false;
    }
    *bytes_p = (size_t)n;
    return true;
}
