/* SPDX-License-Identifier: BSD-3-Clause */
/* What the ranks of a communicator write to their slots, and read in those of others. */
#include <string.h>

#include "comms/board.h"
#include "comms/wait.h"

void xm_seats_call(struct xm_seats *seats, enum xm_board_memory memory, enum xm_coll coll)
{
    uint64_t             number = ++seats->calls;
    struct xm_seen_call *call = &seats->mine->calls[number % XM_BOARD_CALLS];

    /* Whoever reads one of the new words sees that the call is being replaced, too. */
    __atomic_store_n(&call->number, XM_BOARD_REPLACED, __ATOMIC_RELAXED);
    __atomic_store_n(&call->memory, memory, __ATOMIC_RELEASE);
    __atomic_store_n(&call->coll, coll, __ATOMIC_RELEASE);
    __atomic_store_n(&call->number, number, __ATOMIC_RELEASE);
}

bool xm_seats_sum(struct xm_seats *seats, const int64_t *mine, int64_t *sum)
{
    uint64_t       number = ++seats->agreements;
    int            at = (int)(number % 2);
    struct xm_wait wait = xm_wait_begin("for the other ranks of a communicator to come to this "
                                        "collective");

    memcpy(seats->mine->agreements[at].terms, mine, sizeof(seats->mine->agreements[at].terms));
    __atomic_store_n(&seats->mine->agreements[at].number, number, __ATOMIC_RELEASE);
    memset(sum, 0, XM_BOARD_TERMS * sizeof(*sum));
    for (int i = 0; i < seats->count; i++) {
        const struct xm_slot *s = seats->slots[i];
        while (__atomic_load_n(&s->agreements[at].number, __ATOMIC_ACQUIRE) != number) {
            if (xm_wait_step(&wait) == XM_WAIT_EXPIRED) {
                return false;
            }
        }
        for (int t = 0; t < XM_BOARD_TERMS; t++) {
            sum[t] += s->agreements[at].terms[t];
        }
    }
    return true;
}

uint64_t xm_seats_show(struct xm_seats *seats, const struct xm_shown buffers[2])
{
    uint64_t number = ++seats->shows;
    int      at = (int)(number % 2);

    memcpy(seats->mine->shows[at].buffers, buffers, sizeof(seats->mine->shows[at].buffers));
    __atomic_store_n(&seats->mine->shows[at].number, number, __ATOMIC_RELEASE);
    return number;
}

const struct xm_shown *xm_seats_shown(const struct xm_seats *seats, uint64_t number, int rank)
{
    const struct xm_slot *s = seats->slots[rank];
    int                   at = (int)(number % 2);

    return (__atomic_load_n(&s->shows[at].number, __ATOMIC_ACQUIRE) == number)
               ? s->shows[at].buffers
               : NULL;
}

void xm_seats_end(struct xm_seats *seats, uint64_t number, bool trouble)
{
    __atomic_store_n(&seats->mine->ended, 2 * number + trouble, __ATOMIC_RELEASE);
}

/* Nobody ends the next of these calls before all have come to it, and so have been here. */
bool xm_seats_ended(const struct xm_seats *seats, uint64_t number, bool *trouble_p)
{
    bool trouble = false;

    for (int i = 0; i < seats->count; i++) {
        uint64_t ended = __atomic_load_n(&seats->slots[i]->ended, __ATOMIC_ACQUIRE);
        if (ended / 2 < number) {
            return false;
        }
        trouble = trouble || (ended == 2 * number + 1);
    }
    *trouble_p = *trouble_p || trouble;
    return true;
}

/* Is it there, and whole? A rank that is ahead by so many calls has another in its place. */
static bool read_call(const struct xm_slot *slot, uint64_t number, struct xm_seen_call *read)
{
    const struct xm_seen_call *call = &slot->calls[number % XM_BOARD_CALLS];

    if (__atomic_load_n(&call->number, __ATOMIC_ACQUIRE) != number) {
        return false;
    }
    read->memory = __atomic_load_n(&call->memory, __ATOMIC_ACQUIRE);
    read->coll = __atomic_load_n(&call->coll, __ATOMIC_ACQUIRE);
    return __atomic_load_n(&call->number, __ATOMIC_RELAXED) == number;
}

int xm_seats_mismatch(const struct xm_seats *seats, uint64_t call, enum xm_coll coll,
                      enum xm_coll *other_p)
{
    struct xm_seen_call made;

    for (int i = 0; i < seats->count; i++) {
        if (read_call(seats->slots[i], call, &made) &&
            ((made.memory == XM_ON_HOST) || (made.coll != coll))) {
            *other_p = (enum xm_coll)made.coll;
            return i;
        }
    }
    return -1;
}

int xm_seats_absent(const struct xm_seats *seats, uint64_t call)
{
    for (int i = 0; i < seats->count; i++) {
        const struct xm_slot *s = seats->slots[i];
        if (__atomic_load_n(&s->calls[call % XM_BOARD_CALLS].number, __ATOMIC_ACQUIRE) < call) {
            return i;
        }
    }
    return -1;
}
