/* SPDX-License-Identifier: BSD-3-Clause */
/* The little that a test needs: count what was checked, say what failed, sum up. */
#ifndef XT_CHECK_H
#define XT_CHECK_H

#include <stdio.h>
#include <string.h>

static int xt_checked;
static int xt_failed;

#define CHECK(cond, ...)                                                                           \
    do {                                                                                           \
        xt_checked++;                                                                              \
        if (!(cond)) {                                                                             \
            xt_failed++;                                                                           \
            fprintf(stderr, "FAILED %s:%d: %s: ", __FILE__, __LINE__, #cond);                      \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fprintf(stderr, "\n");                                                                 \
        }                                                                                          \
    } while (0)

/* Does text contain part? Both are printed when not. */
#define CHECK_HAS(text, part)                                                                      \
    CHECK(strstr((text), (part)) != NULL, "\"%s\" should contain \"%s\"", (text), (part))

/* Exit status of the test. A test that checked nothing has failed. */
static inline int xt_done(const char *what)
{
    printf("%s: %d checked, %d failed\n", what, xt_checked, xt_failed);
    return ((xt_failed == 0) && (xt_checked > 0)) ? 0 : 1;
}

#endif
