/* SPDX-License-Identifier: BSD-3-Clause */
/* Which operations a kernel that lingers may be told of, without one of their own on a stream. */
#include "check.h"
#include "comms/order.h"
#include "data/kernels.h"
#include "data/lingering.h"
#include "data/outstanding.h"
#include "paths/direct.h"

enum { NUMBER = 7 };

static bool                  alone, idle;
static int                   told, launched, waiting;
static struct xm_comm        comm = {.size = 2};
static struct xm_arena_words words;
static struct xm_direct      direct;

bool xm_direct_alone(const struct xm_direct *d, uint32_t number)
{
    CHECK((d == &direct) && (number == NUMBER), "it asks for operation %u", number);
    return alone;
}

bool xm_order_idle(void)
{
    return idle;
}

struct xm_lingering *xm_kernels_attendant(struct xm_kernels *k)
{
    (void)k;
    return NULL;
}

bool xm_linger_tell(struct xm_lingering *l, const uint32_t values[XK_ALL_WORDS])
{
    (void)l;
    CHECK(values[XK_NUMBER] == NUMBER, "it is told of operation %u", values[XK_NUMBER]);
    told++;
    return true;
}

xcclResult_t xm_kernel_exchange(struct xm_kernels *k, const struct xk_exchange *what,
                                unsigned blocks, const struct xm_kernel_queue *q, bool alone_there)
{
    (void)k, (void)blocks, (void)q, (void)alone_there;
    CHECK(what->number == NUMBER, "operation %u is launched", what->number);
    launched++;
    return xcclSuccess;
}

void xm_direct_form_of(const struct xm_op *op, struct xm_direct_form *form_p)
{
    (void)op;
    *form_p = (struct xm_direct_form){.bytes = 8};
}

struct xk_span xm_direct_span(const struct xm_op *op, const struct xm_direct_form *form, int other)
{
    (void)op, (void)form, (void)other;
    return (struct xk_span){0, 0, 0, 0};
}

xcclResult_t xm_direct_rounds(struct xm_op *op)
{
    (void)op;
    return xcclInternalError;
}

void xm_outstanding_begin(void)
{
    waiting++;
}

/* One for which nothing stands against it. */
static struct xm_op begin(void)
{
    alone = idle = true;
    direct = (struct xm_direct){.size = 2, .words = &words};
    return (struct xm_op){.comm = &comm,
                          .direct = &direct,
                          .blocking = true,
                          .ordered = true,
                          .number_there = NUMBER};
}

static void check_exchange(bool ordered, bool asked, bool tells)
{
    struct xm_op op = begin();

    op.ordered = ordered;
    told = launched = waiting = 0;
    CHECK(xm_direct_exchange(&op, asked) == xcclSuccess, "an exchange");
    CHECK((told == tells) && (launched == !tells), "told %d, launched %d", told, launched);
    CHECK((op.told == tells) && op.waits && (waiting == 1), "and that is noted");
}

static void check_told(void)
{
    struct xm_op op = begin();

    CHECK(xm_direct_may_tell(&op), "nothing stands against it");
    op.blocking = false;
    CHECK(!xm_direct_may_tell(&op), "nobody waits for it");
    op = begin();
    op.ordered = false;
    CHECK(!xm_direct_may_tell(&op), "the default stream may have copies left");
    op = begin();
    op.send.packed = true;
    CHECK(!xm_direct_may_tell(&op), "its data is being packed");
    op = begin();
    op.recv.packed = true;
    CHECK(!xm_direct_may_tell(&op), "its result is to be unpacked");
    op = begin();
    alone = false;
    CHECK(!xm_direct_may_tell(&op), "one before it is under way");
    op = begin();
    direct.in_turns = true;
    CHECK(!xm_direct_may_tell(&op), "processes take turns on a device");
    op = begin();
    direct.shared = true;
    CHECK(xm_direct_may_tell(&op), "ranks may share a device, and none waits");
    idle = false;
    CHECK(!xm_direct_may_tell(&op), "another communicator's waits for its turn");
    idle = op.in_turn = true;
    CHECK(!xm_direct_may_tell(&op), "it has a turn of its own");
}

int main(void)
{
    check_told();
    check_exchange(true, true, true);
    check_exchange(true, false, false);
    check_exchange(false, true, false);
    return xt_done("what a kernel that lingers may be told");
}
