/* SPDX-License-Identifier: BSD-3-Clause */
/* Sizes and times as text: "64k", "4GiB", "10m". */
#ifndef XC_BASE_QUANTITY_H
#define XC_BASE_QUANTITY_H

#include <stdbool.h>

/* What a number without a suffix counts. */
enum xc_unit { XC_UNIT_ONE, XC_UNIT_BYTE, XC_UNIT_MIB, XC_UNIT_SECOND, XC_UNIT_MICROSECOND };

/*
 * Read a whole number of the unit. Sizes take k, m and g (powers of 1024) and KiB, MiB and GiB;
 * seconds take s, m and h, microseconds us and ms. Capitals and small letters are the same. False
 * for any other text, and where the size is no multiple of the unit.
 */
bool xc_quantity_read(const char *text, enum xc_unit unit, long *value_p);

#endif
