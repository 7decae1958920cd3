/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/nearest.h"

#include <stdint.h>
#include <string.h>

enum { LONGEST = 63 };

size_t xc_edit_distance(const char *typed, const char *known)
{
    size_t line[LONGEST + 1];
    size_t length = strlen(known);

    if (length >= LONGEST) {
        return SIZE_MAX;
    }
    for (size_t j = 0; j <= length; j++) {
        line[j] = j;
    }
    for (size_t i = 1; typed[i - 1] != '\0'; i++) {
        size_t diagonal = line[0];
        line[0] = i;
        for (size_t j = 1; j <= length; j++) {
            size_t swap = diagonal + (typed[i - 1] != known[j - 1]);
            diagonal = line[j];
            size_t best = (line[j] < line[j - 1]) ? line[j] + 1 : line[j - 1] + 1;
            line[j] = (swap < best) ? swap : best;
        }
    }
    return line[length];
}
