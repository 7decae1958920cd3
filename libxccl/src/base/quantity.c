/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/quantity.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <strings.h>

enum { KIB = 1 << 10, MIB = 1 << 20, GIB = 1 << 30 };

/* Bytes, seconds or microseconds. */
static const struct suffix {
    const char *text;
    long        factor;
} sizes[] = {{"k", KIB}, {"KiB", KIB}, {"m", MIB}, {"MiB", MIB}, {"g", GIB}, {"GiB", GIB}},
  seconds[] = {{"s", 1}, {"m", 60}, {"h", 3600}}, microseconds[] = {{"us", 1}, {"ms", 1000}};

#define LIST(rows) rows, sizeof(rows) / sizeof((rows)[0])

static const struct unit {
    const struct suffix *suffixes;
    size_t               count;
    long                 divisor;
} units[] = {
    [XC_UNIT_ONE] = {NULL, 0, 1},
    [XC_UNIT_BYTE] = {LIST(sizes), 1},
    [XC_UNIT_MIB] = {LIST(sizes), MIB},
    [XC_UNIT_SECOND] = {LIST(seconds), 1},
    [XC_UNIT_MICROSECOND] = {LIST(microseconds), 1},
};

bool xc_quantity_read(const char *text, enum xc_unit unit, long *value_p)
{
    const struct unit *u = &units[unit];
    char              *end;

    errno = 0;
    long n = strtol(text, &end, 10);
    if ((end == text) || (errno != 0)) {
        return false;
    }
    if (*end == '\0') {
        *value_p = n;
        return true;
    }
    for (size_t i = 0; i < u->count; i++) {
        long factor = u->suffixes[i].factor;
        if (strcasecmp(end, u->suffixes[i].text) != 0) {
            continue;
        }
        if ((n < 0) || (n > LONG_MAX / factor) || (n * factor % u->divisor != 0)) {
            return false;
        }
        *value_p = n * factor / u->divisor;
        return true;
    }
    return false;
}
