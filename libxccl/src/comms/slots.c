/* SPDX-License-Identifier: BSD-3-Clause */
#include "comms/slots.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comms/wait.h"

static bool find_slots(struct xm_slots *slots, const struct xm_board_address *addresses)
{
    for (int i = 0; i < slots->count; i++) {
        const struct xm_board_address *a = &addresses[i];
        struct xm_board               *board = NULL;
        if ((a->slot >= 0) && (a->node == addresses[slots->rank].node)) {
            board = xm_board_open(a);
        }
        if (board == NULL) {
            return false;
        }
        slots->boards[i] = board;
        slots->threads = slots->threads || xm_board_threads(board);
        slots->of[i] = xm_board_slot(board, a->slot);
        if (slots->of[i] == NULL) {
            return false;
        }
    }
    slots->mine = slots->of[slots->rank];
    return true;
}

struct xm_slots *xm_slots_open(const struct xm_board_address *addresses, int count, int rank)
{
    struct xm_slots *slots = calloc(1, sizeof(*slots));

    if (slots == NULL) {
        return NULL;
    }
    slots->count = count;
    slots->rank = rank;
    slots->of = calloc((size_t)count, sizeof(struct xm_slot *));
    slots->boards = calloc((size_t)count, sizeof(struct xm_board *));
    if ((slots->of == NULL) || (slots->boards == NULL) || !find_slots(slots, addresses)) {
        xm_slots_close(slots);
        return NULL;
    }
    return slots;
}

void xm_slots_close(struct xm_slots *slots)
{
    if (slots != NULL) {
        free(slots->of);
        free(slots->boards);
        free(slots);
    }
}

void xm_slots_leave(struct xm_slots *slots, bool agreed)
{
    int read = agreed ? slots->count : 1;

    for (int i = 0; i < read; i++) {
        __atomic_add_fetch(&slots->of[i]->left, 1, __ATOMIC_ACQ_REL);
    }
}

void xm_slots_call(struct xm_slots *slots, enum xm_call_memory memory, enum xm_coll coll)
{
    uint64_t             number = ++slots->calls;
    struct xm_seen_call *call = &slots->mine->calls[number % XM_SLOT_CALLS];

    /* Whoever reads one of the new words sees that the call is being replaced, too. */
    __atomic_store_n(&call->number, XM_SLOT_REPLACED, __ATOMIC_RELAXED);
    __atomic_store_n(&call->memory, memory, __ATOMIC_RELEASE);
    __atomic_store_n(&call->coll, coll, __ATOMIC_RELEASE);
    __atomic_store_n(&call->number, number, __ATOMIC_RELEASE);
}

int xm_slots_agree(struct xm_slots *slots, const int64_t *mine, int64_t *all)
{
    uint64_t       number = ++slots->agreements;
    int            at = (int)(number % 2);
    struct xm_wait wait = xm_wait_begin("for the other ranks of a communicator to come to this "
                                        "collective");

    memcpy(slots->mine->agreements[at].terms, mine, sizeof(slots->mine->agreements[at].terms));
    __atomic_store_n(&slots->mine->agreements[at].number, number, __ATOMIC_RELEASE);
    memset(all, 0, XM_SLOT_TERMS * sizeof(*all));
    for (int i = 0; i < slots->count; i++) {
        const struct xm_slot *s = slots->of[i];
        while (__atomic_load_n(&s->agreements[at].number, __ATOMIC_ACQUIRE) != number) {
            if (xm_wait_step(&wait) == XM_WAIT_EXPIRED) {
                return i;
            }
        }
        const int64_t *terms = s->agreements[at].terms;
        for (int t = 0; t < XM_SLOT_TERMS - 1; t++) {
            all[t] += terms[t];
        }
        if (terms[XM_SLOT_TERMS - 1] > all[XM_SLOT_TERMS - 1]) {
            all[XM_SLOT_TERMS - 1] = terms[XM_SLOT_TERMS - 1];
        }
    }
    return -1;
}

bool xm_slots_may_show(const struct xm_slots *slots)
{
    for (int i = 0; (slots->shows >= XM_SLOT_SHOWS) && (i < slots->count); i++) {
        uint64_t read = __atomic_load_n(&slots->of[i]->read, __ATOMIC_ACQUIRE);
        if (read + XM_SLOT_SHOWS <= slots->shows) {
            return false;
        }
    }
    return true;
}

uint64_t xm_slots_show(struct xm_slots *slots, const struct xm_show *show)
{
    uint64_t number = ++slots->shows;
    int      at = (int)(number % XM_SLOT_SHOWS);

    slots->mine->shows[at].show = *show;
    __atomic_store_n(&slots->mine->shows[at].number, number, __ATOMIC_RELEASE);
    return number;
}

const struct xm_show *xm_slots_shown(const struct xm_slots *slots, uint64_t number, int rank)
{
    const struct xm_slot *s = slots->of[rank];
    int                   at = (int)(number % XM_SLOT_SHOWS);

    return (__atomic_load_n(&s->shows[at].number, __ATOMIC_ACQUIRE) == number) ? &s->shows[at].show
                                                                               : NULL;
}

void xm_slots_say_mapped(struct xm_slots *slots, uint64_t number, bool mapped, uint32_t losses)
{
    int at = (int)(number % XM_SLOT_SHOWS);

    slots->mine->maps[at].mapped = mapped;
    slots->mine->maps[at].losses = losses;
    __atomic_store_n(&slots->mine->maps[at].number, number, __ATOMIC_RELEASE);
}

/* Nobody says it of a later call in this place before all have read it here. */
bool xm_slots_mapped(const struct xm_slots *slots, uint64_t number, bool *all_p,
                     uint32_t losses[XM_SLOT_RANKS])
{
    int  at = (int)(number % XM_SLOT_SHOWS);
    bool all = true;

    for (int i = 0; i < slots->count; i++) {
        const struct xm_slot *s = slots->of[i];
        if (__atomic_load_n(&s->maps[at].number, __ATOMIC_ACQUIRE) != number) {
            return false;
        }
        all = all && (s->maps[at].mapped != 0);
        losses[i] = s->maps[at].losses;
    }
    *all_p = all;
    return true;
}

void xm_slots_read(struct xm_slots *slots, uint64_t number)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

    pthread_mutex_lock(&lock);
    uint64_t read = slots->mine->read;
    slots->looked[number % XM_SLOT_SHOWS] |= (number > read); /* it may be said again */
    while (slots->looked[(read + 1) % XM_SLOT_SHOWS]) {
        slots->looked[++read % XM_SLOT_SHOWS] = false;
    }
    __atomic_store_n(&slots->mine->read, read, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
}

void xm_slots_end(struct xm_slots *slots, uint64_t number, bool trouble)
{
    __atomic_store_n(&slots->mine->ended, 2 * number + trouble, __ATOMIC_RELEASE);
}

/* Nobody ends the next of these calls before all have come to it, and so have been here. */
bool xm_slots_ended(const struct xm_slots *slots, uint64_t number, bool *trouble_p)
{
    bool trouble = false;

    for (int i = 0; i < slots->count; i++) {
        uint64_t ended = __atomic_load_n(&slots->of[i]->ended, __ATOMIC_ACQUIRE);
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
    const struct xm_seen_call *call = &slot->calls[number % XM_SLOT_CALLS];

    if (__atomic_load_n(&call->number, __ATOMIC_ACQUIRE) != number) {
        return false;
    }
    read->memory = __atomic_load_n(&call->memory, __ATOMIC_ACQUIRE);
    read->coll = __atomic_load_n(&call->coll, __ATOMIC_ACQUIRE);
    return __atomic_load_n(&call->number, __ATOMIC_RELAXED) == number;
}

int xm_slots_mismatch(const struct xm_slots *slots, uint64_t call, enum xm_coll coll,
                      enum xm_coll *other_p)
{
    struct xm_seen_call made;

    for (int i = 0; i < slots->count; i++) {
        if (read_call(slots->of[i], call, &made) &&
            ((made.memory == XM_ON_HOST) || (made.coll != coll))) {
            *other_p = (enum xm_coll)made.coll;
            return i;
        }
    }
    return -1;
}

int xm_slots_absent(const struct xm_slots *slots, uint64_t call, int from)
{
    for (int i = from; i < slots->count; i++) {
        const struct xm_slot *s = slots->of[i];
        if (__atomic_load_n(&s->calls[call % XM_SLOT_CALLS].number, __ATOMIC_ACQUIRE) < call) {
            return i;
        }
    }
    return -1;
}

/* A miss: the call, and in its last bits the rank. */
enum { MISS_RANK_BITS = 16 };

void xm_slots_say_missed(struct xm_slots *slots, uint64_t call)
{
    struct xm_slot *first = slots->of[0];
    uint64_t        at = __atomic_fetch_add(&first->misses, 1, __ATOMIC_ACQ_REL);

    __atomic_store_n(&first->missed[at % XM_SLOT_MISSES],
                     call << MISS_RANK_BITS | (uint64_t)slots->rank, __ATOMIC_RELEASE);
    __atomic_fetch_add(&first->said, 1, __ATOMIC_ACQ_REL);
}

uint64_t xm_slots_misses(const struct xm_slots *slots)
{
    return __atomic_load_n(&slots->of[0]->said, __ATOMIC_ACQUIRE);
}

int xm_slots_miss(const struct xm_slots *slots, int i, uint64_t *call_p)
{
    uint64_t miss = __atomic_load_n(&slots->of[0]->missed[i], __ATOMIC_ACQUIRE);

    *call_p = miss >> MISS_RANK_BITS;
    return (miss != 0) ? (int)(miss & ((1u << MISS_RANK_BITS) - 1)) : -1;
}

int xm_slots_missed(const struct xm_slots *slots, uint64_t call)
{
    const struct xm_slot *first = slots->of[0];

    if (__atomic_load_n(&first->misses, __ATOMIC_ACQUIRE) == 0) {
        return -1;
    }
    for (int i = 0; i < XM_SLOT_MISSES; i++) {
        uint64_t miss = __atomic_load_n(&first->missed[i], __ATOMIC_ACQUIRE);
        if (miss >> MISS_RANK_BITS == call) {
            return (int)(miss & ((1u << MISS_RANK_BITS) - 1));
        }
    }
    return -1;
}

void xm_slots_break(struct xm_slots *slots, const char *why)
{
    uint64_t none = 0;

    if (__atomic_load_n(&slots->of[0]->broken, __ATOMIC_ACQUIRE) != 0) {
        return; /* another rank may be reading this one's reason */
    }
    snprintf(slots->mine->why, sizeof(slots->mine->why), "%s", why);
    (void)__atomic_compare_exchange_n(&slots->of[0]->broken, &none, (uint64_t)slots->rank + 1,
                                      false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

int xm_slots_broken(const struct xm_slots *slots, const char **why_p)
{
    int rank = (int)__atomic_load_n(&slots->of[0]->broken, __ATOMIC_ACQUIRE) - 1;

    *why_p = (rank >= 0) ? slots->of[rank]->why : NULL;
    return rank;
}
