/* SPDX-License-Identifier: BSD-3-Clause */
/* Time that was watched (base/attended.h): sums of short steps, and of no more than a second each.
 */
#include <inttypes.h>

#include "base/attended.h"
#include "check.h"

static const uint64_t ms = 1000000u;

int main(void)
{
    struct xc_attended attended = {0};
    uint64_t           now = 5000 * ms;

    CHECK(xc_attended_at(&attended, now) == 0, "time before the first look counts");
    for (int i = 0; i < 30; i++) {
        xc_attended_at(&attended, now += 100 * ms);
    }
    CHECK(attended.ns == 3000 * ms, "%" PRIu64 " ns, not 3 s", attended.ns);
    CHECK(xc_attended_at(&attended, now += 3600 * 1000 * ms) == 4000 * ms,
          "an hour without a look counts %" PRIu64 " ns", attended.ns - 3000 * ms);
    CHECK(xc_attended_at(&attended, now + 250 * ms) == 4250 * ms, "%" PRIu64 " ns after it",
          attended.ns);
    return xt_done("attended time");
}
