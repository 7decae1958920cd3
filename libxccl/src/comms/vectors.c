/* SPDX-License-Identifier: BSD-3-Clause */
#include "comms/vectors.h"

/* So many calls on host memory of all ranks, one after the other, are given back to MPI. */
enum { CALLS_ON_HOST = 8 };

/*
 * The word: the number of the change; whether it is decided; how many ranks have said that they
 * know of it; and the farthest call that any of these has begun, counted from the change before.
 * There are two, for changes in turns: nobody says anything of number n + 2 before it has changed
 * over to n + 1, and so has seen n; and n + 2 is decided when all ranks have.
 */
enum { CHANGE_BITS = 20, KNOW_BITS = 11, FARTHEST_BITS = 32 };
_Static_assert(CHANGE_BITS + 1 + KNOW_BITS + FARTHEST_BITS == 64, "they fill a word");
_Static_assert((int)XM_VECTORS_RANKS < (1 << KNOW_BITS), "all ranks can say that they know");

/* After so many without a change there is none any more: a word could not tell of the calls then.
 */
static const uint64_t MOST_CALLS = UINT64_C(1) << (FARTHEST_BITS - 1);

struct word {
    uint64_t change, decided, know, farthest;
};

static uint64_t low(uint64_t value, int bits)
{
    return value & ((UINT64_C(1) << bits) - 1);
}

static uint64_t packed(const struct word *w)
{
    return (((((w->change << 1) | w->decided) << KNOW_BITS) | w->know) << FARTHEST_BITS) |
           w->farthest;
}

/* What an earlier change has left there is of no use. */
static struct word unpacked(uint64_t value, uint64_t change)
{
    struct word w = {.change = value >> (64 - CHANGE_BITS),
                     .decided = low(value >> (KNOW_BITS + FARTHEST_BITS), 1),
                     .know = low(value >> FARTHEST_BITS, KNOW_BITS),
                     .farthest = low(value, FARTHEST_BITS)};

    return (w.change == change) ? w : (struct word){.change = change};
}

/* Does the next change take place with this call? */
static bool is_due(struct xm_comm *xm, bool wants)
{
    uint64_t    change = low(xm->vectors.changes + 1, CHANGE_BITS);
    uint64_t   *at = &xm->slots->of[0]->vectors[change % 2];
    uint64_t    seen = __atomic_load_n(at, __ATOMIC_ACQUIRE), said;
    uint64_t    since = xm->vectors.calls;
    struct word w;

    do {
        w = unpacked(seen, change);
        if (w.decided) {
            return since > w.farthest;
        }
        if (((w.know == 0) && !wants) || (!xm->vectors.said && (since > MOST_CALLS))) {
            return false;
        }
        w.farthest = (since > w.farthest) ? since : w.farthest;
        w.know += !xm->vectors.said;
        w.decided = (w.know == (uint64_t)xm->size);
        said = packed(&w);
    } while (
        !__atomic_compare_exchange_n(at, &seen, said, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
    xm->vectors.said = true;
    return false;
}

bool xm_vectors_call(struct xm_comm *xm, bool device)
{
    bool     shown = (xm->vectors.changes % 2 != 0);
    unsigned on_host = __atomic_load_n(&xm->vectors.on_host, __ATOMIC_RELAXED);

    xm->vectors.calls++;
    if (is_due(xm, shown ? (on_host >= CALLS_ON_HOST) : device)) {
        xm->vectors.changes++;
        xm->vectors.calls = 0;
        xm->vectors.said = false;
        __atomic_store_n(&xm->vectors.on_host, 0, __ATOMIC_RELAXED);
        shown = !shown;
    }
    return shown;
}

void xm_vectors_seen(struct xm_comm *xm, bool device)
{
    if (device) {
        __atomic_store_n(&xm->vectors.on_host, 0, __ATOMIC_RELAXED);
    } else {
        __atomic_add_fetch(&xm->vectors.on_host, 1, __ATOMIC_RELAXED);
    }
}
