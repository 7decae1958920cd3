/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a kernel that lingers hears of its next command, and what it makes ready for it: by the first
 * warp of each block, whose lanes have units of 16 bytes of the command in registers. The other
 * warps find all of it in struct xk_told.
 */
#ifndef XK_KERNELS_LISTENING_H
#define XK_KERNELS_LISTENING_H

#include "kernels/ending.h"
#include "kernels/kernels.h"
#include "kernels/portable.h"
/* Once those are known. */
#include "kernels/numbers.h"
#include "kernels/words.h"

enum { XK_TOLD, XK_LEAVES };

/* What a block has in common. */
struct xk_told {
    struct xk_exchange exchange;
    union { /* of one command at a time */
        struct xk_work   work;
        struct xk_run    run;
        struct xk_listed listed;
    };
    uint64_t ranks;  /* where those came from, */
    uint32_t serial; /* and which ones */
    uint32_t number, verdict;
    uint32_t values[XK_ALL_WORDS];
};

XK_DEVICE uint64_t told_address(const struct xk_told *t, uint32_t low)
{
    return (uint64_t)t->values[low] | (uint64_t)t->values[low + 1] << 32;
}

/* ---- hearing ---- */

enum {
    XK_UNITS = XK_ALL_WORDS / 2 + 1, /* of a relay: the last one says to leave */
    XK_OWN_UNITS = (XK_UNITS + XK_LANES - 1) / XK_LANES
};

struct xk_units {
    struct xk_16 own[XK_OWN_UNITS]; /* i: unit threadIdx.x + i * XK_LANES */
};

/*
 * Side by side: one request on the bus. Not a second one before the first has come: what follows
 * the one that brings the command would wait for the other, 0.6 us. 2 H200s.
 */
XK_DEVICE void ask_units(const char *command, uint32_t from, uint32_t to, struct xk_units *u)
{
    XK_UNROLL
    for (uint32_t i = 0; i < XK_OWN_UNITS; i++) {
        uint32_t unit = threadIdx.x + i * XK_LANES;
        if ((unit >= from) && (unit < to)) {
            u->own[i] = load_16(command + 16 * unit);
        }
    }
}

/* A word of a command, in all lanes. */
XK_DEVICE uint32_t heard(const struct xk_units *u, uint32_t word)
{
    const struct xk_16 *own = &u->own[word / 2 / XK_LANES];

    return XK_OF_LANE((uint32_t)((word % 2 == 0) ? own->x : own->y), word / 2 % XK_LANES);
}

/* Of the command, as its first word says. */
XK_DEVICE uint32_t number_of(const struct xk_units *u)
{
    return XK_OF_LANE((uint32_t)(u->own[0].x >> 32), 0);
}

/* So many it has, if the first ones are whole. */
XK_DEVICE uint32_t units_of(const struct xk_units *u)
{
    return xk_words_of(heard(u, XK_HOW), heard(u, XK_BYTES)) / 2;
}

/* Are units of this command there? All lanes know. */
XK_DEVICE int have_come(const struct xk_units *u, uint32_t from, uint32_t to, uint32_t number)
{
    int whole = 1;

    XK_UNROLL
    for (uint32_t i = 0; i < XK_OWN_UNITS; i++) {
        uint32_t unit = threadIdx.x + i * XK_LANES;
        whole = whole && ((unit < from) || (unit >= to) || has_come(&u->own[i], number));
    }
    return XK_IN_ALL_LANES(whole);
}

/* And of a command after the last one? */
XK_DEVICE int are_new(const struct xk_units *u, uint32_t units, uint32_t last)
{
    uint32_t number = number_of(u);

    return have_come(u, 0, units, number) && ((int32_t)(number - last) > 0);
}

/* So many blocks a command is for. */
XK_DEVICE uint32_t blocks_of(uint32_t how)
{
    uint32_t blocks = xk_how_blocks(how);

    return (blocks < gridDim.x) ? blocks : gridDim.x;
}

XK_DEVICE void keep_units(const struct xk_units *u, uint32_t units, struct xk_told *t)
{
    XK_UNROLL
    for (uint32_t i = 0; i < XK_OWN_UNITS; i++) {
        uint32_t unit = threadIdx.x + i * XK_LANES;
        if (unit < units) {
            t->values[2 * unit] = (uint32_t)u->own[i].x;
            t->values[2 * unit + 1] = (uint32_t)u->own[i].y;
        }
    }
}

/* Tell the other blocks, as it came. */
XK_DEVICE void relay_units(uint64_t relay, const struct xk_units *u, uint32_t units)
{
    XK_UNROLL
    for (uint32_t i = 0; i < XK_OWN_UNITS; i++) {
        uint32_t unit = threadIdx.x + i * XK_LANES;
        if (unit < units) {
            store_16_at_once(relay + 16 * unit, u->own[i]);
        }
    }
}

/* How long a kernel stays without a command, and at all. */
struct xk_stay {
    uint64_t begun, idle;
    uint64_t idle_ns, life_ns;
};

XK_DEVICE int is_over(const struct xk_stay *s)
{
    uint64_t now = now_ns();
    int      over = (now - s->idle > s->idle_ns) || (now - s->begun > s->life_ns);

    return XK_OF_LANE((uint32_t)over, 0) != 0;
}

/* False: none came. */
XK_DEVICE int hear(const char *command, uint32_t looked, uint32_t last, const struct xk_stay *s,
                   struct xk_units *u)
{
    for (;;) {
        ask_units(command, 0, looked, u);
        if (are_new(u, XK_WORDS / 2, last)) {
            return 1;
        }
        if (is_over(s)) {
            return 0;
        }
        XK_PAUSE();
    }
}

/* ---- making ready ---- */

/* The communicator's ranks are most often those of the command before. */
XK_DEVICE void know_ranks(struct xk_told *t)
{
    uint64_t from = told_address(t, XK_RANKS_LOW);

    if ((from == t->ranks) && (t->values[XK_SERIAL] == t->serial)) {
        return;
    }
    const uint64_t *words = (const uint64_t *)XK_PLACE(from, sizeof(struct xk_ranks));
    for (uint32_t i = threadIdx.x; i < sizeof(struct xk_ranks) / 8; i += XK_LANES) {
        ((uint64_t *)&t->exchange.ranks)[i] = load_8(&words[i]);
    }
    XK_SYNC_WARP(); /* all have compared */
    if (threadIdx.x == 0) {
        t->ranks = from;
        t->serial = t->values[XK_SERIAL];
    }
    XK_SYNC_WARP();
}

XK_DEVICE void prepare_mapped(struct xk_told *t)
{
    struct xk_work *a = &t->work;

    for (uint32_t k = threadIdx.x; k < XK_MAX_RANKS; k += XK_LANES) {
        uint32_t record = XK_RECORDS + XK_RECORD * k;
        a->from[k] = told_address(t, record + XK_FROM);
        a->to[k] = told_address(t, record + XK_TO);
        a->lengths[k] = t->values[record + XK_LENGTH];
    }
    if (threadIdx.x == 0) {
        a->bytes = told_address(t, XK_OUT_LOW);
        a->sources = t->values[XK_IN_HIGH] & 0xff;
        a->targets = (t->values[XK_IN_HIGH] >> 8) & 0xff;
        a->turn = (t->values[XK_IN_HIGH] >> 16) & 0xff;
        a->meets = t->values[XK_IN_HIGH] >> 24;
        a->number = t->values[XK_NUMBER];
        a->what = xk_how_what(t->values[XK_HOW]);
    }
}

XK_DEVICE void prepare_exchange(struct xk_told *t)
{
    struct xk_exchange *a = &t->exchange;
    uint32_t            how = t->values[XK_HOW], most = 0;

    for (uint32_t k = threadIdx.x; k < XK_MAX_RANKS; k += XK_LANES) {
        const uint32_t *w = &t->values[XK_RECORDS + XK_RECORD * k];
        struct xk_span  s = {w[XK_SEND_AT], w[XK_RECEIVE_AT], w[XK_SEND], w[XK_RECEIVE]};
        if (!xk_how_has_parts(how)) {
            s = xk_span_of((enum xk_form)xk_how_form(how), xk_how_root(how), a->ranks.rank, k,
                           t->values[XK_BYTES]);
        }
        a->parts[k] = xk_part_of(&s);
        most = (a->parts[k].send > most) ? a->parts[k].send : most;
        most = (a->parts[k].receive > most) ? a->parts[k].receive : most;
    }
    for (uint32_t k = 1; (k < XK_MAX_RANKS) && (k < XK_LANES); k++) {
        uint32_t other = XK_OF_LANE(most, k);
        most = (threadIdx.x == 0) && (other > most) ? other : most;
    }
    if (threadIdx.x == 0) {
        a->most = most;
        a->in = told_address(t, XK_IN_LOW);
        a->out = told_address(t, XK_OUT_LOW);
        a->number = t->values[XK_NUMBER];
        a->what = xk_how_what(how);
    }
}

/* All of it, for the other warps. */
XK_DEVICE void conclude(uint32_t number, uint32_t verdict, struct xk_told *t)
{
    XK_SYNC_WARP();
    uint32_t form = xk_how_form(t->values[XK_HOW]);

    if (threadIdx.x == 0) {
        t->number = number;
        t->verdict = ((verdict == XK_TOLD) && (form == XK_LEAVE)) ? XK_LEAVES : verdict;
    }
    if (verdict != XK_TOLD) {
        return;
    }
    if (form <= XK_MAPPED) {
        know_ranks(t);
        if (form == XK_MAPPED) {
            prepare_mapped(t);
        } else {
            prepare_exchange(t);
        }
    } else if (xk_how_has_parts(t->values[XK_HOW])) { /* XK_BY_RECORDS */
        prepare_mapped(t);
    }
}

/* ---- listening ---- */

/*
 * The first block, to the host. If the command before had records it looks for them at once: that
 * saves a microsecond where there are any, and costs half of one where not. 2 H100s.
 */
XK_DEVICE void listen_to_host(const char *command, uint64_t relay, uint32_t last, uint32_t before,
                              const struct xk_stay *s, struct xk_told *t)
{
    struct xk_units u = {{{0, 0}}};
    uint32_t        looked = ((before > XK_WORDS) ? XK_LISTENED : XK_WORDS) / 2;

    if (!hear(command, looked, last, s, &u)) {
        conclude(last, XK_LEAVES, t);
        return;
    }
    uint32_t number = number_of(&u), units = units_of(&u);
    /* The further words were written before the first ones. */
    if ((units > XK_WORDS / 2) &&
        ((units > looked) || !have_come(&u, XK_WORDS / 2, units, number))) {
        ask_units(command, XK_WORDS / 2, units, &u);
    }
    if (blocks_of(heard(&u, XK_HOW)) > 1) {
        relay_units(relay, &u, units);
    }
    keep_units(&u, units, t);
    conclude(number, XK_TOLD, t);
}

/* The others, to what the first one relays. */
XK_DEVICE void listen_to_first(const char *relay, uint32_t last, uint32_t epoch, struct xk_told *t)
{
    struct xk_units u = {{{0, 0}}};

    for (;;) {
        ask_units(relay, 0, XK_UNITS, &u);
        uint32_t units = units_of(&u);
        if (are_new(&u, units, last)) {
            keep_units(&u, units, t);
            conclude(number_of(&u), XK_TOLD, t);
            return;
        }
        if (heard(&u, XK_ALL_WORDS) == epoch) {
            conclude(last, XK_LEAVES, t);
            return;
        }
        XK_PAUSE();
    }
}

/* The command that the kernel was launched with. */
XK_DEVICE void begin_with(const struct xk_linger *a, struct xk_told *t)
{
    for (uint32_t i = threadIdx.x; i < XK_ALL_WORDS; i += XK_LANES) {
        t->values[i] = a->values[i];
    }
    conclude(a->number + 1, XK_TOLD, t);
}

/* ---- what a kernel that lingers does around its commands ---- */

/*
 * Each of them has what follows in variables of its own: kept together in one struct, with the turn
 * of the loop in functions, the same collectives took 0.3 us of 6 longer. 2 H200s.
 */

/* A command for all blocks is not to wait for one that finds no room. */
XK_DEVICE void begin_lingering(const struct xk_linger *a, struct xk_relay *relay,
                               struct xk_answers *answers, struct xk_told *t)
{
    if (threadIdx.x == 0) {
        t->ranks = 0;
        t->values[XK_HOW] = 0; /* none before */
        if (atomicAdd(&relay->begun, 1) == gridDim.x - 1) {
            relay->begun = 0;
            *(volatile uint32_t *)&answers->alive = a->epoch;
        }
    }
    __syncthreads();
}

/*
 * first: the next command is the one that the kernel was launched with. before: words of the
 * command before, read before the block met, as its next one is written over it.
 */
XK_DEVICE void listen(const struct xk_linger *a, const char *command, struct xk_relay *relay,
                      uint32_t last, uint32_t first, uint32_t before, const struct xk_stay *stay,
                      struct xk_told *t)
{
    if (threadIdx.x >= XK_LANES) {
        /* the first warp listens */
    } else if (first) {
        begin_with(a, t);
    } else if (blockIdx.x == 0) {
        listen_to_host(command, (uint64_t)relay, last, before, stay, t);
    } else {
        listen_to_first((const char *)relay, last, a->epoch, t);
    }
    __syncthreads();
}

/* The last block that has done its part tells the host, */
XK_DEVICE void tell_done(const struct xk_told *t, uint32_t blocks, struct xk_relay *relay,
                         struct xk_answers *answers, uint32_t trouble)
{
    tell_host(&answers->done, &answers->trouble, t->number, trouble);
    if (blocks > 1) {
        *(volatile uint32_t *)&relay->ended = t->number;
    }
}

/* and the first one does not listen to the next command, and so does not leave, before all have. */
XK_DEVICE void wait_for_last(const struct xk_told *t, struct xk_relay *relay)
{
    if ((threadIdx.x == 0) && (blockIdx.x == 0)) {
        while (load_4(&relay->ended) != t->number) {
            XK_PAUSE();
        }
    }
}

XK_DEVICE void end_lingering(const struct xk_linger *a, struct xk_relay *relay,
                             struct xk_answers *answers)
{
    if ((threadIdx.x == 0) && (blockIdx.x == 0)) {
        *(volatile uint64_t *)&relay->leave = a->epoch;
        __threadfence_system();
        *(volatile uint32_t *)&answers->gone = a->epoch;
    }
}

#endif
