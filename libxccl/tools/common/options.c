/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"

enum { MOST_CHANGES = 3 };

bool options_integer(const char *text, long low, long high, long *value_p)
{
    char *end;

    errno = 0;
    long n = strtol(text, &end, 10);
    if ((end == text) || (*end != '\0') || (errno != 0) || (n < low) || (n > high)) {
        return false;
    }
    *value_p = n;
    return true;
}

bool options_real(const char *text, double low, double high, double *value_p)
{
    char  *end;
    double x = strtod(text, &end);

    /* Not "x < low": a value that is not a number compares false with everything. */
    if ((end == text) || (*end != '\0') || !(x >= low) || !(x <= high)) {
        return false;
    }
    *value_p = x;
    return true;
}

static const char *nearest(const char *name, const struct option *known)
{
    const char *best = NULL;
    size_t      half = strlen(name) / 2; /* where more letters are wrong, it was another word */
    size_t      least = ((half < MOST_CHANGES) ? half : MOST_CHANGES) + 1;

    for (; known->name != NULL; known++) {
        size_t distance = xc_edit_distance(name, known->name);
        if (distance < least) {
            least = distance;
            best = known->name;
        }
    }
    return best;
}

void options_unknown(const char *tool, const char *word, const struct option *known, char *text,
                     size_t len)
{
    bool        option = (word[0] == '-') && (word[1] != '\0');
    const char *meant = (strncmp(word, "--", 2) == 0) ? nearest(word + 2, known) : NULL;

    if (meant != NULL) {
        snprintf(text, len, "unknown option '%s'; did you mean '--%s'?", word, meant);
    } else {
        snprintf(text, len, "%s '%s'; see %s --help",
                 option ? "unknown option" : "unexpected argument", word, tool);
    }
}
