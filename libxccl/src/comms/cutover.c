/* SPDX-License-Identifier: BSD-3-Clause */
#include "comms/cutover.h"

/*
 * The word: the number of the agreement; whether it is decided; how many ranks know its result; and
 * the farthest operation that any of these has begun, counted from that of the agreement. There are
 * two, for agreements in turns: nobody begins number n + 2 before all have ended n.
 */
enum { AGREEMENT_BITS = 20, KNOW_BITS = 11, FARTHEST_BITS = 32 };
_Static_assert(AGREEMENT_BITS + 1 + KNOW_BITS + FARTHEST_BITS == 64, "they fill a word");

/* NEVER: an operation is too far away to be told, so a blocking one has to come. */
enum { NEVER = (1 << KNOW_BITS) - 1, MOST_RANKS = NEVER - 1 };

struct word {
    uint64_t agreement, decided, know, farthest;
};

static uint64_t packed(const struct word *w)
{
    return (((((w->agreement << 1) | w->decided) << KNOW_BITS) | w->know) << FARTHEST_BITS) |
           w->farthest;
}

static uint64_t low(uint64_t value, int bits)
{
    return value & ((UINT64_C(1) << bits) - 1);
}

/* What an earlier agreement has left there is of no use. */
static struct word unpacked(uint64_t value, uint64_t agreement)
{
    struct word w = {.agreement = value >> (64 - AGREEMENT_BITS),
                     .decided = low(value >> (KNOW_BITS + FARTHEST_BITS), 1),
                     .know = low(value >> FARTHEST_BITS, KNOW_BITS),
                     .farthest = low(value, FARTHEST_BITS)};

    return (w.agreement == agreement) ? w : (struct word){.agreement = agreement};
}

void xm_cutover_begin(struct xm_comm *xm)
{
    xm->agreement = low(xm->agreement + 1, AGREEMENT_BITS);
    xm->agreement_begun = xm->device_calls;
    xm->said_to_know = false;
}

bool xm_cutover_due(struct xm_comm *xm)
{
    uint64_t since = xm->device_calls - xm->agreement_begun;

    if ((xm->slots == NULL) || (xm->size > MOST_RANKS)) {
        return false;
    }
    uint64_t   *at = &xm->slots->of[0]->cutovers[xm->agreement % 2];
    uint64_t    seen = __atomic_load_n(at, __ATOMIC_ACQUIRE), said;
    struct word w;
    do {
        w = unpacked(seen, xm->agreement);
        if (w.decided) {
            return since > w.farthest;
        }
        if (since > low(UINT64_MAX, FARTHEST_BITS)) {
            w.know = NEVER;
        } else if (w.know != NEVER) {
            w.farthest = (since > w.farthest) ? since : w.farthest;
            w.know += !xm->said_to_know;
            w.decided = (w.know == (uint64_t)xm->size);
        }
        said = packed(&w);
    } while (
        !__atomic_compare_exchange_n(at, &seen, said, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
    xm->said_to_know = true;
    return false;
}
