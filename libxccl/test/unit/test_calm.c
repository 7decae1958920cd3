/* SPDX-License-Identifier: BSD-3-Clause */
/* When a rank that waits may nap (base/calm.h): while nothing moves, and not while something does.
 */
#include "base/calm.h"
#include "check.h"

static uint64_t used = 1, now = 1;

/*
 * So many polls; every `often`th moves something, and takes `longer`. Other threads have the core
 * for `away` ns each time.
 */
static unsigned naps_of(struct xc_calm *calm, int polls, int often, uint64_t longer, uint64_t away)
{
    unsigned naps = 0;

    for (int i = 0; i < polls; i++) {
        bool     moves = (often > 0) && (i % often == 0);
        uint64_t took = 600 + (uint64_t)(i % 3) * 100 + (moves ? longer : 0);
        used += took;
        now += took + away;
        if (xc_is_calm(calm, used, now)) {
            naps++;
            used += 3000;
            now += 110 * 1000;
        }
    }
    return naps;
}

int main(void)
{
    enum { POLLS = 100000, IN_CALM = XC_CALM_NS / 700, FEW = XC_CALM_FEW_NS / 700 };
    struct xc_calm calm = {0};

    CHECK(naps_of(&calm, IN_CALM - 10, 0, 0, 100) == 0, "a nap at once");
    CHECK(naps_of(&calm, 20, 0, 0, 100) == 1, "no nap when nothing moved");
    unsigned naps = naps_of(&calm, POLLS, 0, 0, 100);
    CHECK(naps > POLLS / IN_CALM * 5, "%u naps of a long wait", naps);
    naps = naps_of(&calm, POLLS, 100, 3000, 100);
    CHECK(naps <= 10, "%u naps while something moves", naps);
    CHECK(naps_of(&calm, 2 * IN_CALM, 0, 0, 100) > 0, "no nap after it");
    naps = naps_of(&calm, POLLS, 3, 3000, 20000);
    CHECK(naps > POLLS / FEW / 2, "%u naps on a core that others want", naps);
    return xt_done("naps");
}
