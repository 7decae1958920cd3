/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/nearest.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { LONGEST = 63 };

static bool same(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

static size_t least(size_t a, size_t b)
{
    return (a < b) ? a : b;
}

/* Known as optimal string alignment: the distances of the last two beginnings of typed are kept. */
size_t xc_edit_distance(const char *typed, const char *known)
{
    size_t lines[3][LONGEST + 1];
    size_t length = strlen(known), i = 0;

    if (length >= LONGEST) {
        return SIZE_MAX;
    }
    for (size_t j = 0; j <= length; j++) {
        lines[0][j] = j;
    }
    for (i = 1; typed[i - 1] != '\0'; i++) {
        size_t       *line = lines[i % 3];
        const size_t *last = lines[(i + 2) % 3], *before = lines[(i + 1) % 3];
        line[0] = i;
        for (size_t j = 1; j <= length; j++) {
            line[j] = least(last[j - 1] + !same(typed[i - 1], known[j - 1]),
                            least(last[j], line[j - 1]) + 1);
            if ((i > 1) && (j > 1) && same(typed[i - 1], known[j - 2]) &&
                same(typed[i - 2], known[j - 1])) {
                line[j] = least(line[j], before[j - 2] + 1);
            }
        }
    }
    return lines[(i - 1) % 3][length];
}
