/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/sort.h"

#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

void sort_doubles(double *values, size_t count)
{
    qsort(values, count, sizeof(*values), by_value);
}
