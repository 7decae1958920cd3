/* SPDX-License-Identifier: BSD-3-Clause */
/* xk_linger: a kernel that stays and carries out what it is told. */
#ifndef XK_KERNELS_LINGERING_H
#define XK_KERNELS_LINGERING_H

#include "kernels/mapped.h"

enum { XK_AGAIN, XK_TOLD, XK_LEAVES };

/* What a block has in common. */
struct xk_told {
    struct xk_exchange exchange;
    union { /* of one command at a time */
        struct xk_work work;
        struct xk_run  run;
    };
    uint64_t ranks;  /* where those came from, */
    uint32_t serial; /* and which ones */
    uint32_t values[XK_ALL_WORDS];
    uint32_t number, verdict;
};

XK_DEVICE uint64_t told_address(const struct xk_told *t, uint32_t low)
{
    return (uint64_t)t->values[low] | (uint64_t)t->values[low + 1] << 32;
}

/* One request on the bus: the lanes of the first warp load words of a command side by side. */
XK_DEVICE void load_words(const char *command, uint32_t from, uint32_t to, struct xk_16 *words)
{
    for (uint32_t i = from + threadIdx.x; i < to; i += blockDim.x) {
        words[i] = load_16(command + 16 * i);
    }
}

/* What the first words say it is. */
XK_DEVICE uint32_t number_of(const struct xk_16 *words)
{
    return XK_OF_FIRST_LANE((uint32_t)(words[threadIdx.x].x >> 32));
}

/* Are words of this command there? Each lane looks at those that it loaded, and all know. */
XK_DEVICE int have_come(const struct xk_16 *words, uint32_t from, uint32_t to, uint32_t number)
{
    int whole = 1;

    for (uint32_t i = threadIdx.x; i < to; i += blockDim.x) {
        whole = whole && ((i < from) || has_come(&words[i], number));
    }
    return XK_IN_ALL_LANES(whole);
}

XK_DEVICE int is_new(uint32_t number, uint32_t last)
{
    return (int32_t)(number - last) > 0;
}

/* So many there are, if the first ones are whole. */
XK_DEVICE uint32_t units_of(const struct xk_16 *words)
{
    XK_SYNC_WARP(); /* two lanes have loaded what says so */
    return xk_words_of((uint32_t)words[XK_HOW / 2].y, (uint32_t)words[XK_BYTES / 2].x) / 2;
}

/* Each lane those that it loaded. */
XK_DEVICE void keep_words(const struct xk_16 *words, uint32_t units, struct xk_told *t)
{
    for (uint32_t i = threadIdx.x; i < units; i += blockDim.x) {
        t->values[2 * i] = (uint32_t)words[i].x;
        t->values[2 * i + 1] = (uint32_t)words[i].y;
    }
}

/* For the other warps. */
XK_DEVICE void conclude(uint32_t number, uint32_t verdict, struct xk_told *t)
{
    if (threadIdx.x == 0) {
        t->number = number;
        t->verdict = verdict;
    }
}

/*
 * Wait for the host's next command; by the first block's first warp. If the one before had records
 * it looks for them at once: that saves a microsecond where there are any, and costs half of one
 * where not. 2 H100s.
 */
XK_DEVICE void listen_to_host(const char *command, uint32_t last, uint64_t begun, uint64_t idle,
                              const struct xk_linger *a, struct xk_16 *words, struct xk_told *t)
{
    uint32_t before = xk_words_of(t->values[XK_HOW], t->values[XK_BYTES]);
    uint32_t looked = (before > XK_WORDS) ? XK_LISTENED / 2 : XK_WORDS / 2;
    uint32_t number, leaves = 0;

    for (;;) {
        if (looked == XK_WORDS / 2) { /* a constant number of them */
            load_words(command, 0, XK_WORDS / 2, words);
        } else {
            load_words(command, 0, XK_LISTENED / 2, words);
        }
        number = number_of(words);
        if (have_come(words, 0, XK_WORDS / 2, number) && is_new(number, last)) {
            break;
        }
        uint64_t now = now_ns();
        leaves =
            XK_OF_FIRST_LANE((now - idle > a->idle_ns) || (now - begun > a->life_ns) ? 1u : 0u);
        if (leaves) {
            break;
        }
        XK_PAUSE();
    }
    if (!leaves) {
        uint32_t units = units_of(words);
        /* The further words were written before the first ones. */
        if ((units > XK_WORDS / 2) &&
            ((units > looked) || !have_come(words, XK_WORDS / 2, units, number))) {
            load_words(command, XK_WORDS / 2, units, words);
        }
        keep_words(words, units, t);
    }
    conclude(number, leaves ? XK_LEAVES : XK_TOLD, t);
}

/* Wait for what the first block has to tell; by the first warp of another one. */
XK_DEVICE void listen_to_first(const char *relay, uint32_t last, uint32_t epoch,
                               struct xk_16 *words, struct xk_told *t)
{
    uint32_t number, units, verdict = XK_AGAIN;

    do {
        load_words(relay, 0, XK_ALL_WORDS / 2 + 1, words);
        number = number_of(words);
        units = units_of(words);
        if (have_come(words, 0, units, number) && is_new(number, last)) {
            verdict = XK_TOLD;
        } else if ((uint32_t)words[XK_ALL_WORDS / 2].x == epoch) {
            verdict = XK_LEAVES;
        } else {
            XK_SYNC_WARP(); /* all have looked */
            XK_PAUSE();
        }
    } while (verdict == XK_AGAIN);
    if (verdict == XK_TOLD) {
        keep_words(words, units, t);
    }
    conclude(number, verdict, t);
}

XK_DEVICE uint32_t blocks_of(const struct xk_told *t)
{
    uint32_t blocks = xk_how_blocks(t->values[XK_HOW]);

    return (blocks < gridDim.x) ? blocks : gridDim.x;
}

/* Tell the other blocks. */
XK_DEVICE void relay_words(uint64_t relay, const struct xk_told *t)
{
    uint32_t units = xk_words_of(t->values[XK_HOW], t->values[XK_BYTES]) / 2;

    for (uint32_t i = threadIdx.x; i < units; i += blockDim.x) {
        struct xk_16 w = {t->values[2 * i] | (uint64_t)t->number << 32,
                          t->values[2 * i + 1] | (uint64_t)t->number << 32};
        store_16_at_once(relay + 16 * i, w);
    }
}

/* The communicator's is most often that of the command before. */
XK_DEVICE void know_ranks(struct xk_told *t)
{
    uint64_t from = told_address(t, XK_RANKS_LOW);

    if ((from == t->ranks) && (t->values[XK_SERIAL] == t->serial)) {
        return;
    }
    __syncthreads();
    const uint64_t *words = (const uint64_t *)XK_PLACE(from, sizeof(struct xk_ranks));
    for (uint32_t i = threadIdx.x; i < sizeof(struct xk_ranks) / 8; i += blockDim.x) {
        ((uint64_t *)&t->exchange.ranks)[i] = load_8(&words[i]);
    }
    if (threadIdx.x == 0) {
        t->ranks = from;
        t->serial = t->values[XK_SERIAL];
    }
    __syncthreads();
}

XK_DEVICE void carry_out_mapped(struct xk_told *t, uint32_t blocks)
{
    struct xk_work *a = &t->work;

    for (uint32_t k = threadIdx.x; k < XK_MAX_RANKS; k += blockDim.x) {
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
    __syncthreads();
#if defined(XK_SIMULATED)
    struct xk_work  placed = *a;
    struct xk_ranks ranks = t->exchange.ranks;
    place_work(&placed);
    place_ranks(&ranks);
    work_mapped(&ranks, &placed, blocks);
#else
    work_mapped(&t->exchange.ranks, a, blocks);
#endif
}

/* Every word says by itself that it is there: no fence is waited for. */
XK_DEVICE void tell_bytes(const struct xk_told *t, struct xk_answers *answers)
{
    uint32_t bytes = t->values[XK_BYTES];
    uint64_t in = XK_PLACE(told_address(t, XK_IN_LOW), bytes);

    for (uint32_t i = threadIdx.x; 4 * i < bytes; i += blockDim.x) {
        uint32_t value = 0, rest = bytes - 4 * i;
        if ((rest >= 4) && ((in & 3) == 0)) {
            value = load_4((const uint32_t *)(in + 4 * i));
        } else {
            for (uint32_t k = 0; (k < 4) && (k < rest); k++) {
                value |= (uint32_t) * (const volatile uint8_t *)(in + 4 * i + k) << (8 * k);
            }
        }
        *(volatile uint64_t *)&answers->told[i] = value | (uint64_t)t->number << 32;
    }
}

XK_DEVICE void take_bytes(const struct xk_told *t)
{
    uint32_t bytes = t->values[XK_BYTES];
    uint64_t out = XK_PLACE(told_address(t, XK_OUT_LOW), bytes);

    for (uint32_t i = threadIdx.x; i < bytes; i += blockDim.x) {
        uint32_t value = t->values[xk_taken_at(i / 4)];
        *(volatile uint8_t *)(out + i) = (uint8_t)(value >> (8 * (i % 4)));
    }
}

/* Runs that the host has just written: none is read by way of a cache. */
XK_DEVICE void carry_out_runs(struct xk_told *t)
{
    uint32_t        count = t->values[XK_BYTES];
    uint32_t        back = (xk_how_what(t->values[XK_HOW]) == XK_BY_RUNS_BACK);
    uint64_t        in = told_address(t, XK_IN_LOW), out = told_address(t, XK_OUT_LOW);
    const uint64_t *words =
        (const uint64_t *)XK_PLACE(told_address(t, XK_RANKS_LOW), count * sizeof(struct xk_run));

    for (uint32_t n = 0; n < count; n++) {
        __syncthreads(); /* nobody is at the one before it any more */
        for (uint32_t w = threadIdx.x; w < sizeof(t->run) / 8; w += blockDim.x) {
            ((uint64_t *)&t->run)[w] = load_8(&words[n * (sizeof(t->run) / 8) + w]);
        }
        __syncthreads();
        move_run(&t->run, in, out, back, threadIdx.x, blockDim.x);
    }
}

/* What has nothing to do with other ranks. False: it is something else. Only the copy of a stretch
 * is work for several blocks. */
XK_DEVICE int carry_out_copy(struct xk_told *t, uint32_t blocks, struct xk_answers *answers)
{
    uint32_t form = xk_how_form(t->values[XK_HOW]), bytes = t->values[XK_BYTES];
    uint64_t in = told_address(t, XK_IN_LOW), out = told_address(t, XK_OUT_LOW);

    if ((form == XK_COPIES) && (xk_how_what(t->values[XK_HOW]) != XK_BY_BYTES)) {
        carry_out_runs(t);
    } else if (form == XK_COPIES) {
        move_bytes(XK_PLACE(out, bytes), XK_PLACE(in, bytes), bytes,
                   (uint64_t)blockIdx.x * blockDim.x + threadIdx.x, (uint64_t)blocks * blockDim.x);
    } else if (form == XK_TELLS) {
        tell_bytes(t, answers);
    } else if (form == XK_TAKES) {
        take_bytes(t);
    } else {
        return 0;
    }
    return 1;
}

XK_DEVICE void carry_out(struct xk_told *t, uint32_t blocks, struct xk_answers *answers)
{
    uint32_t how = t->values[XK_HOW];
    uint64_t in = told_address(t, XK_IN_LOW), out = told_address(t, XK_OUT_LOW);
    uint32_t bytes = t->values[XK_BYTES];

    if (carry_out_copy(t, blocks, answers)) {
        return;
    }
    know_ranks(t);
    if (xk_how_form(how) == XK_MAPPED) {
        carry_out_mapped(t, blocks);
        return;
    }
    struct xk_exchange *a = &t->exchange;
    for (uint32_t k = threadIdx.x; k < XK_MAX_RANKS; k += blockDim.x) {
        const uint32_t *w = &t->values[XK_RECORDS + XK_RECORD * k];
        struct xk_span  s = {w[XK_SEND_AT], w[XK_RECEIVE_AT], w[XK_SEND], w[XK_RECEIVE]};
        if (!xk_how_has_parts(how)) {
            s = xk_span_of((enum xk_form)xk_how_form(how), xk_how_root(how), a->ranks.rank, k,
                           bytes);
        }
        a->parts[k] = xk_part_of(&s);
    }
    if (threadIdx.x == 0) {
        a->in = in;
        a->out = out;
        a->number = t->values[XK_NUMBER];
        a->what = xk_how_what(how);
    }
    __syncthreads();
#if defined(XK_SIMULATED)
    struct xk_exchange placed = *a;
    place_exchange(&placed);
    a = &placed;
#endif
    exchange(a, (uint64_t)blockIdx.x * blockDim.x + threadIdx.x, (uint64_t)blocks * blockDim.x);
}

XK_DEVICE uint32_t told_trouble(const struct xk_told *t)
{
    uint32_t form = xk_how_form(t->values[XK_HOW]), what = xk_how_what(t->values[XK_HOW]);
    uint32_t meets = (form == XK_MAPPED) ? t->work.meets : xk_meets((enum xk_form)form, what);

    if ((form == XK_COPIES) || (form == XK_TELLS) || (form == XK_TAKES)) {
        return 0;
    }
#if defined(XK_SIMULATED)
    struct xk_ranks ranks = t->exchange.ranks;
    place_ranks(&ranks);
    return ends_in_trouble(&ranks, t->values[XK_NUMBER], what, meets);
#else
    return ends_in_trouble(&t->exchange.ranks, t->values[XK_NUMBER], what, meets);
#endif
}

/*
 * The last block that has done its part tells the host. The first one does not listen to the next
 * command, and so does not leave, before all have.
 */
XK_DEVICE void end_command(const struct xk_told *t, uint32_t blocks, struct xk_relay *relay,
                           struct xk_answers *answers)
{
    uint32_t mapped = (xk_how_form(t->values[XK_HOW]) == XK_MAPPED);
    uint32_t elsewhere = mapped || xk_how_elsewhere(t->values[XK_HOW]);

    if (is_last(&relay->arrived, blocks, elsewhere)) {
        tell_host(&answers->done, &answers->trouble, t->number, told_trouble(t));
        if (blocks > 1) {
            *(volatile uint32_t *)&relay->ended = t->number;
        }
    } else if ((threadIdx.x == 0) && (blockIdx.x == 0)) {
        while (load_4(&relay->ended) != t->number) {
            XK_PAUSE();
        }
    }
}

XK_KERNEL(xk_linger)(XK_ARGUMENT struct xk_linger a)
{
    __shared__ struct xk_16   words[XK_ALL_WORDS / 2 + 1];
    __shared__ struct xk_told told;
    uint32_t                  last = a.number, first = a.first;
    uint64_t                  begun = now_ns(), idle = begun;
    const char        *command = (const char *)XK_PLACE((uint64_t)a.command, XK_LISTENED * 8);
    struct xk_answers *answers =
        (struct xk_answers *)XK_PLACE((uint64_t)a.answers, sizeof(struct xk_answers));
    struct xk_relay *relay =
        (struct xk_relay *)XK_PLACE((uint64_t)a.relay, sizeof(struct xk_relay));

    if (threadIdx.x == 0) {
        told.ranks = 0;
        told.values[XK_HOW] = 0; /* none before */
        /* A command for all blocks is not to wait for one that finds no room. */
        if (atomicAdd(&relay->begun, 1) == gridDim.x - 1) {
            relay->begun = 0;
            *(volatile uint32_t *)&answers->alive = a.epoch;
        }
    }
    __syncthreads();
    for (;;) {
        uint32_t relayed = first;
        if (first) {
            for (uint32_t i = threadIdx.x; i < XK_ALL_WORDS; i += blockDim.x) {
                told.values[i] = a.values[i];
            }
            if (threadIdx.x == 0) {
                told.number = last + 1;
                told.verdict = XK_TOLD;
            }
            first = 0;
        } else if (threadIdx.x < 32) {
            if (blockIdx.x == 0) {
                listen_to_host(command, last, begun, idle, &a, words, &told);
            } else {
                listen_to_first((const char *)relay, last, a.epoch, words, &told);
            }
        }
        __syncthreads();
        if ((told.verdict == XK_LEAVES) || (xk_how_form(told.values[XK_HOW]) == XK_LEAVE)) {
            break;
        }
        last = told.number;
        uint32_t blocks = blocks_of(&told);
        if ((blockIdx.x == 0) && (blocks > 1) && !relayed) {
            relay_words((uint64_t)relay, &told);
        }
        if (blockIdx.x < blocks) {
            carry_out(&told, blocks, answers);
            end_command(&told, blocks, relay, answers);
        }
        idle = now_ns();
        __syncthreads(); /* nobody reads what comes next over it */
    }
    if ((threadIdx.x == 0) && (blockIdx.x == 0)) {
        *(volatile uint64_t *)&relay->leave = a.epoch;
        __threadfence_system();
        *(volatile uint32_t *)&answers->gone = a.epoch;
    }
}

#endif
