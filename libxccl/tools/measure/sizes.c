/* SPDX-License-Identifier: BSD-3-Clause */
/* Sizes as text. */
#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "measure/measure.h"

bool perf_parse_size(const char *text, size_t *bytes_p)
{
    char              *end;
    unsigned long long n;
    int                shift = 0;

    errno = 0;
    n = strtoull(text, &end, 10);
    if (!isdigit((unsigned char)text[0]) || (errno != 0)) {
        return false;
    }
    switch (tolower((unsigned char)*end)) {
    case 'k':
        shift = 10;
        break;
    case 'm':
        shift = 20;
        break;
    case 'g':
        shift = 30;
        break;
    default:
        break;
    }
    if ((end[shift != 0] != '\0') || (n > (SIZE_MAX >> shift >> 1))) {
        return false;
    }
    *bytes_p = (size_t)n << shift;
    return true;
}
