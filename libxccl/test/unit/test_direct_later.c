/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Non-blocking calls whose ranks show their counts, in memory that cannot be mapped: how many
 * rounds blocks of any length take, and that those for which there are not enough are an error.
 * And what becomes of the buffers that were pinned for a call which then is not to map any.
 */
#include "check.h"
#include "comms/vectors.h"
#include "paths/direct.h"

enum { RANKS = 2, MOST = 60000, MANY = 1 << 30, NUMBER = 1 };

static struct xm_show   show;
static struct xm_slots  slots = {.count = RANKS};
static struct xm_comm   comm = {.slots = &slots, .size = RANKS};
static struct xm_direct direct = {.size = RANKS, .last = MANY};
static int              unpinned, read, mapped; /* how often each was called */

/* What the two files under test call. */

const struct xm_show *xm_slots_shown(const struct xm_slots *of, uint64_t number, int rank)
{
    (void)of;
    (void)rank;
    return (number == NUMBER) ? &show : NULL;
}

void xm_slots_read(struct xm_slots *of, uint64_t number)
{
    (void)of;
    CHECK(number == NUMBER, "what was shown of another call is given up");
    read++;
}

void xm_vectors_seen(struct xm_comm *xm, bool device)
{
    (void)xm;
    (void)device;
}

void xm_direct_unpin(struct xm_op *op)
{
    (void)op;
    unpinned++;
}

xcclResult_t xm_direct_mapped(struct xm_op *op, bool told)
{
    (void)op;
    (void)told;
    mapped++;
    return xcclUnsupported;
}

void xm_direct_form_of(const struct xm_op *op, struct xm_direct_form *form)
{
    (void)op;
    (void)form;
}

struct xk_span xm_direct_span(const struct xm_op *op, const struct xm_direct_form *form, int other)
{
    (void)op;
    (void)form;
    (void)other;
    return (struct xk_span){0, 0, 0, 0};
}

bool xm_direct_elsewhere(const struct xm_op *op)
{
    (void)op;
    return false;
}

xcclResult_t xm_kernel_rounds(struct xm_kernels *k, const struct xk_rounds *what, unsigned blocks,
                              const struct xm_kernel_queue *q)
{
    (void)k;
    (void)what;
    (void)blocks;
    (void)q;
    return xcclSuccess;
}

/* Rounds of a block of so many pieces; 0: it fits into one exchange; -1: an error. */
static long rounds_of(uint64_t pieces)
{
    struct xm_op op = {.call = {.coll = XM_ALLTOALLV},
                       .comm = &comm,
                       .direct = &direct,
                       .direct_what = XK_NO_REDUCTION,
                       .counts_later = true,
                       .show = NUMBER};

    show.length[1] = pieces * xk_slot_data(RANKS);
    xcclResult_t res = xm_direct_later(&op);
    CHECK(op.block_bytes == show.length[1], "%llu bytes", (unsigned long long)op.block_bytes);
    CHECK(op.instead <= xm_direct_later_numbers(&direct), "%u rounds", op.instead);
    return (res == xcclUnsupported) ? (long)op.instead : -1;
}

/* Does a call with such blocks map its buffers? If not they are unpinned, and nobody is waited for.
 */
static void check_mapped(enum xm_coll coll, bool in_place, uint64_t pieces, bool maps)
{
    struct xm_op op = {.call = {.coll = coll},
                       .comm = &comm,
                       .direct = &direct,
                       .direct_what = XK_NO_REDUCTION,
                       .counts_later = true,
                       .show = NUMBER};

    op.buffers.in_place = in_place;
    unpinned = read = mapped = 0;
    show.length[1] = pieces * xk_slot_data(RANKS);
    CHECK(xm_direct_later(&op) == xcclUnsupported, "it goes through the workspaces");
    CHECK(mapped == maps, "%d pieces: mapped %d times", (int)pieces, mapped);
    CHECK(unpinned == !maps, "%d pieces: unpinned %d times", (int)pieces, unpinned);
    CHECK(read == !maps, "%d pieces: what is shown was given up %d times", (int)pieces, read);
}

int main(void)
{
    check_mapped(XM_ALLTOALLV, false, 1, false);
    check_mapped(XM_ALLTOALLV, false, 3, true);
    check_mapped(XM_ALLTOALLV, true, 3, false);
    check_mapped(XM_ALLGATHERV, true, 3, true);
    CHECK(rounds_of(1) == 0, "one exchange");
    CHECK(rounds_of(2) == 3, "an odd number of rounds");
    CHECK(rounds_of(3) == 3, "as many rounds as pieces");
    CHECK(rounds_of(MOST - 1) == MOST - 1, "nearly the longest block");
    CHECK(rounds_of(MOST) == MOST + 1, "the longest block");
    CHECK(rounds_of(MOST + 1) == -1, "a longer one");
    CHECK_HAS(xc_last_detail(), "is too long for memory that the ranks cannot map");
    CHECK(rounds_of(100 * (uint64_t)MOST) == -1, "a much longer one");
    direct.last = 1000; /* a simulation's */
    CHECK(rounds_of(5) == 5, "few numbers");
    CHECK(rounds_of(6) == -1, "too few numbers");
    return xt_done("blocks of calls whose ranks show their counts");
}
