/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/options.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"

enum { MOST_CHANGES = 3 };

static struct {
    const char          *tool;
    const struct option *known;
    const char          *elsewhere, *instead;
    bool                 speaking;
} parser;

void options_begin(const char *tool, const struct option *known, bool speaking)
{
    parser.tool = tool;
    parser.known = known;
    parser.speaking = speaking;
}

void options_elsewhere(const char *name, const char *instead)
{
    parser.elsewhere = name;
    parser.instead = instead;
}

bool options_refuse(const char *fmt, ...)
{
    va_list args;

    if (parser.speaking) {
        fprintf(stderr, "%s: ", parser.tool);
        va_start(args, fmt);
        vfprintf(stderr, fmt, args);
        va_end(args);
        fputc('\n', stderr);
    }
    return false;
}

bool options_refuse_missing(const char *option)
{
    return options_refuse("%s needs a value; see %s --help", option, parser.tool);
}

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

/* What is nearer to the name than all before it. */
struct nearest {
    const char *name, *best;
    size_t      least; /* changes from which on it was another word */
};

static struct nearest nearest_to(const char *name)
{
    size_t half = strlen(name) / 2;

    return (struct nearest){name, NULL, ((half < MOST_CHANGES) ? half : MOST_CHANGES) + 1};
}

static void compare(struct nearest *n, const char *known)
{
    size_t distance = xc_edit_distance(n->name, known);

    if (distance < n->least) {
        n->least = distance;
        n->best = known;
    }
}

bool options_refuse_word(const char *word)
{
    bool option = (word[0] == '-') && (word[1] != '\0');

    if (strncmp(word, "--", 2) == 0) {
        struct nearest n = nearest_to(word + 2);
        for (const struct option *known = parser.known; known->name != NULL; known++) {
            compare(&n, known->name);
        }
        if (n.best != NULL) {
            return options_refuse("unknown option '%s'; did you mean '--%s'?", word, n.best);
        }
        if (parser.elsewhere != NULL) {
            compare(&n, parser.elsewhere);
        }
        if (n.best != NULL) {
            return options_refuse("unknown option '%s'; there is no --%s here: %s", word, n.best,
                                  parser.instead);
        }
    }
    return options_refuse("%s '%s'; see %s --help",
                          option ? "unknown option" : "unexpected argument", word, parser.tool);
}

const char *options_nearest(const char *word, const char *const names[])
{
    struct nearest n = nearest_to(word);

    for (int i = 0; names[i] != NULL; i++) {
        compare(&n, names[i]);
    }
    return n.best;
}

bool options_refuse_name(const char *option, const char *what, const char *word, size_t len,
                         const char *const names[])
{
    char text[64];

    snprintf(text, sizeof(text), "%.*s", (int)((len < sizeof(text)) ? len : sizeof(text) - 1),
             word);
    const char *best = options_nearest(text, names);
    return (best != NULL)
               ? options_refuse("%s: unknown %s '%s'; did you mean '%s'?", option, what, text, best)
               : options_refuse("%s: unknown %s '%s'; %s --help lists them", option, what, text,
                                parser.tool);
}
