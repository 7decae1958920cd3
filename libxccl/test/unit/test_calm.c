/* SPDX-License-Identifier: BSD-3-Clause */
/* When a rank that waits may nap (base/calm.h): while nothing moves, and not while something does.
 */
#include "base/calm.h"
#include "check.h"

/* So many polls of so many ns; every `often`th moves something, and takes `longer`. */
static unsigned naps_of(struct xc_calm *calm, uint64_t *now, int polls, int often, uint64_t longer)
{
    unsigned naps = 0;

    for (int i = 0; i < polls; i++) {
        *now += 600 + (uint64_t)(i % 3) * 100 + (((often > 0) && (i % often == 0)) ? longer : 0);
        if (xc_is_calm(calm, *now)) {
            naps++;
            *now += 110 * 1000;
        }
    }
    return naps;
}

int main(void)
{
    enum { POLLS = 100000, IN_CALM = XC_CALM_NS / 700 };
    struct xc_calm calm = {0};
    uint64_t       now = 1;

    CHECK(naps_of(&calm, &now, IN_CALM - 10, 0, 0) == 0, "a nap at once");
    CHECK(naps_of(&calm, &now, 20, 0, 0) == 1, "no nap when nothing moved");
    unsigned naps = naps_of(&calm, &now, POLLS, 0, 0);
    CHECK(naps > POLLS / IN_CALM * 5, "%u naps of a long wait", naps);
    naps = naps_of(&calm, &now, POLLS, 100, 3000);
    CHECK(naps <= 10, "%u naps while something moves", naps);
    CHECK(naps_of(&calm, &now, 2 * IN_CALM, 0, 0) > 0, "no nap after it");
    return xt_done("naps");
}
