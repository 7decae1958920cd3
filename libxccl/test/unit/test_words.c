/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Words that other ranks, and the host, write while a kernel polls them: nothing is taken before
 * its last half is there. The halves come in every order.
 */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

#define XK_SIMULATED
#include "kernels/lingering.h"
#include "kernels/short.h"

enum { NUMBER = 7, HALVES = 4, ORDERS = 24 };

/* What the simulation has of this is in its core. */
uint64_t xs_kernel_place(uint64_t address, uint64_t bytes)
{
    (void)bytes;
    return address;
}

void xs_kernel_misaligned(uint64_t address, uint64_t bytes)
{
    CHECK(false, "%llu bytes at %#llx", (unsigned long long)bytes, (unsigned long long)address);
}

uint64_t xs_kernel_now_ns(void)
{
    return 0;
}

static void (*while_waiting)(void);

void xs_kernel_pause(void)
{
    if (while_waiting != NULL) {
        while_waiting();
    } else {
        usleep(50);
    }
}

/* A unit: two words of 16 bytes, and each half of them is written as a whole. */
struct unit {
    uint64_t     half[HALVES] __attribute__((aligned(16)));
    uint32_t     abort;
    struct xk_16 taken;
    int          good, over; /* over: atomic */
};

static void *take_unit(void *arg)
{
    struct unit *u = arg;
    uint64_t     at = (uint64_t)(uintptr_t)u->half;

    u->good = take_units(&at, 1, NUMBER, (uint64_t)(uintptr_t)&u->abort, &u->taken);
    __atomic_store_n(&u->over, 1, __ATOMIC_RELEASE);
    return NULL;
}

static uint64_t half_of(int i, uint64_t number)
{
    return (uint64_t)(100 + i) | number << 32;
}

/* order: a number in base 4, 3, 2, 1 */
static void in_order(int order, int halves[HALVES])
{
    int left[HALVES] = {0, 1, 2, 3};

    for (int i = 0; i < HALVES; i++) {
        int at = order % (HALVES - i);
        order /= HALVES - i;
        halves[i] = left[at];
        memmove(&left[at], &left[at + 1], sizeof(int) * (size_t)(HALVES - 1 - at));
    }
}

static void test_units(void)
{
    for (int order = 0; order < ORDERS; order++) {
        struct unit u = {.over = 0};
        pthread_t   taker;
        int         halves[HALVES], early = 0;

        for (int i = 0; i < HALVES; i++) {
            u.half[i] = half_of(i, NUMBER - 2); /* of the operation that had the slot before */
        }
        in_order(order, halves);
        pthread_create(&taker, NULL, take_unit, &u);
        for (int i = 0; i < HALVES; i++) {
            usleep(500); /* it has looked several times */
            early += __atomic_load_n(&u.over, __ATOMIC_ACQUIRE);
            __atomic_store_n(&u.half[halves[i]], half_of(halves[i], NUMBER), __ATOMIC_RELEASE);
        }
        pthread_join(taker, NULL);
        CHECK(u.good && (early == 0), "order %d: taken before all of it was there", order);
        CHECK((u.taken.x == (100 | (uint64_t)101 << 32)) &&
                  (u.taken.y == (102 | (uint64_t)103 << 32)),
              "order %d: %#llx %#llx", order, (unsigned long long)u.taken.x,
              (unsigned long long)u.taken.y);
    }
}

/* A command is one once each of its halves has the number of the first, and that is a new one. */
static void test_commands(void)
{
    enum { WORDS = XK_WORDS / 2 };
    struct xk_units u;

    for (int missing = 0; missing < 2 * WORDS; missing++) {
        for (int i = 0; i < WORDS; i++) {
            u.own[i] = (struct xk_16){half_of(2 * i, NUMBER), half_of(2 * i + 1, NUMBER)};
        }
        CHECK(are_new(&u, WORDS, NUMBER - 1), "all of it is there");
        CHECK(heard(&u, (uint32_t)missing) == 100 + (uint32_t)missing, "word %d", missing);
        CHECK(!are_new(&u, WORDS, NUMBER), "the last one is not a new one");
        uint64_t *half = (missing % 2 == 0) ? &u.own[missing / 2].x : &u.own[missing / 2].y;
        *half = half_of(missing, NUMBER - 1);
        CHECK(!are_new(&u, WORDS, NUMBER - 1), "half %d is the last one's", missing);
    }
}

/* Numbers begin anew. */
static void test_numbers(void)
{
    struct xk_units u = {{{0, 0}}};

    u.own[0] = (struct xk_16){half_of(0, 2), half_of(1, 2)};
    CHECK(are_new(&u, 1, UINT32_MAX - 1), "2 comes after 2^32 - 2");
    u.own[0] = (struct xk_16){half_of(0, UINT32_MAX - 1), half_of(1, UINT32_MAX - 1)};
    CHECK(!are_new(&u, 1, 2), "and is not before it");
}

/* Of a command that says more of each rank. */
static void test_records(void)
{
    uint32_t mapped = xk_how(XK_MAPPED, 0, 16, 0, 0),
             parts = xk_how(XK_ALLTOALL, XK_PARTS, 1, 0, 0);
    uint32_t plain = xk_how(XK_ALLTOALL, XK_PARTS - 1, 1, 0, 0);

    CHECK(xk_words_of(plain, 5) == XK_WORDS, "%u words", xk_words_of(plain, 5));
    CHECK(xk_words_of(parts, 2) == XK_WORDS + 10, "%u words", xk_words_of(parts, 2));
    CHECK(xk_words_of(mapped, 3) == XK_WORDS + 16, "an even number: %u", xk_words_of(mapped, 3));
    CHECK(xk_words_of(mapped, 4) <= XK_LISTENED, "those of four ranks come at once");
    CHECK(xk_words_of(mapped, UINT32_MAX) == XK_ALL_WORDS,
          "what is not whole yet may say anything");
    CHECK((xk_how_root(plain) == XK_PARTS - 1) && (xk_how_root(parts) == 0), "roots");
}

/* What a block hears: values that say what they are, of a command with so many records. */
static struct xk_told    told;
static struct xk_command command __attribute__((aligned(16)));
static struct xk_relay   relay __attribute__((aligned(16)));
static uint32_t          said[XK_ALL_WORDS], units;

static void say(uint64_t *words, uint32_t from, uint32_t to, uint32_t number)
{
    for (uint32_t i = from; i < to; i++) {
        words[i] = said[i] | (uint64_t)number << 32;
    }
}

static void make_command(uint32_t records)
{
    for (uint32_t i = 0; i < XK_ALL_WORDS; i++) {
        said[i] = 1000 * records + i;
    }
    said[XK_HOW] = xk_how(XK_ALLTOALL, (records > 0) ? XK_PARTS : 0, 2, 0, 0);
    said[XK_BYTES] = records;
    units = xk_words_of(said[XK_HOW], records) / 2;
}

/* Of the communicator of the command before. */
static void forget(void)
{
    memset(&told, 0, sizeof(told));
    told.ranks = said[XK_RANKS_LOW] | (uint64_t)said[XK_RANKS_HIGH] << 32;
    told.serial = said[XK_SERIAL];
}

/* Of the command that lies there. */
static uint32_t words_before(void)
{
    return xk_words_of(told.values[XK_HOW], told.values[XK_BYTES]);
}

static void expect_told(uint32_t number, const char *what)
{
    const struct xk_exchange *a = &told.exchange;

    CHECK((told.verdict == XK_TOLD) && (told.number == number), "%s: %u of %u", what, told.verdict,
          told.number);
    CHECK(memcmp(told.values, said, 8 * (size_t)units) == 0, "%s: %u units", what, units);
    CHECK((a->in == told_address(&told, XK_IN_LOW)) && (a->number == said[XK_NUMBER]),
          "%s: made ready", what);
    if (xk_how_has_parts(said[XK_HOW])) {
        const uint32_t *record = &said[XK_RECORDS + XK_RECORD * (XK_MAX_RANKS - 1)];
        CHECK(a->parts[XK_MAX_RANKS - 1].receive_at == record[XK_RECEIVE_AT], "%s: parts", what);
    }
}

static void the_host_goes_on(void)
{
    say(command.word, XK_WORDS, 2 * units, NUMBER);
    say(command.word, 0, XK_WORDS, NUMBER);
}

static void the_first_block_goes_on(void)
{
    say(relay.word, 0, 2 * units, NUMBER);
}

static void the_first_block_leaves(void)
{
    relay.leave = NUMBER;
}

/* Commands with records and without, each after one with and without; and the other blocks hear. */
static void test_host_is_heard(void)
{
    const struct xk_stay stay = {.idle_ns = 1, .life_ns = 1};

    for (uint32_t n = 0; n < 4; n++) {
        uint32_t before[XK_ALL_WORDS];
        make_command(((n & 1) != 0) ? XK_MAX_RANKS : 0);
        memcpy(before, said, sizeof(before));
        make_command(((n & 2) != 0) ? XK_MAX_RANKS : 0);
        forget();
        memcpy(told.values, before, sizeof(before));
        say(command.word, 0, XK_ALL_WORDS, NUMBER - 1);
        memset(&relay, 0, sizeof(relay));
        while_waiting = the_host_goes_on;
        gridDim.x = 2;
        listen_to_host((const char *)&command, (uint64_t)(uintptr_t)&relay, NUMBER - 1,
                       words_before(), &stay, &told);
        expect_told(NUMBER, "a command of the host's");
        forget();
        listen_to_first((const char *)&relay, NUMBER - 1, NUMBER, &told);
        expect_told(NUMBER, "what the first block relays");
    }
    while_waiting = NULL;
    gridDim.x = 1;
    memset(&relay, 0, sizeof(relay));
    listen_to_host((const char *)&command, (uint64_t)(uintptr_t)&relay, NUMBER - 1, words_before(),
                   &stay, &told);
    CHECK(relay.word[0] == 0, "nobody is told where there is nobody");
}

static void hear_first(uint32_t missing)
{
    forget();
    the_first_block_goes_on();
    relay.word[missing] = said[missing] + 1;
    listen_to_first((const char *)&relay, NUMBER - 1, NUMBER, &told);
}

/* What the first block tells is there when all of its words are; or it leaves. */
static void test_first_is_heard(void)
{
    memset(&relay, 0, sizeof(relay));
    make_command(XK_MAX_RANKS);
    while_waiting = the_first_block_goes_on;
    for (uint32_t missing = 0; missing < 2 * units; missing++) {
        hear_first(missing);
        expect_told(NUMBER, "what the first block says");
    }
    while_waiting = the_first_block_leaves;
    hear_first(2 * units - 1);
    CHECK(told.verdict == XK_LEAVES, "the first block has left: %u", told.verdict);
    while_waiting = NULL;
}

/* A host that says to leave, and one that says nothing for too long. */
static void test_end_is_heard(void)
{
    struct xk_stay stay = {.idle_ns = 1, .life_ns = 1};

    make_command(0);
    said[XK_HOW] = xk_how(XK_LEAVE, 0, 1, 0, 0);
    forget();
    say(command.word, 0, XK_WORDS, NUMBER);
    listen_to_host((const char *)&command, 0, NUMBER - 1, words_before(), &stay, &told);
    CHECK(told.verdict == XK_LEAVES, "told to leave: %u", told.verdict);
    forget();
    stay.idle = (uint64_t)0 - 2; /* time has passed */
    listen_to_host((const char *)&command, 0, NUMBER, words_before(), &stay, &told);
    CHECK(told.verdict == XK_LEAVES, "alone for too long: %u", told.verdict);
}

/* Few bytes from any address to any other, by the threads of a grid, one after the other. */
static void test_moves(void)
{
    enum { MOST = 80, ROOM = MOST + 64, AT = 16 };
    static unsigned char from[ROOM] __attribute__((aligned(16)));
    static unsigned char to[ROOM] __attribute__((aligned(16)));

    for (int i = 0; i < ROOM; i++) {
        from[i] = (unsigned char)(i + 1);
    }
    for (uint32_t n = 0; n < 16 * 16 * MOST * 2; n++) {
        uint32_t a = n % 16, b = n / 16 % 16, bytes = n / 256 % MOST, threads = 1 + n / 256 / MOST;
        uint32_t wrong = 0;
        memset(to, 0, sizeof(to));
        for (uint32_t thread = 0; thread < threads; thread++) {
            move_bytes((uint64_t)(uintptr_t)&to[AT + b], (uint64_t)(uintptr_t)&from[AT + a], bytes,
                       thread, threads);
        }
        for (uint32_t i = 0; i < ROOM; i++) {
            bool within = (i >= AT + b) && (i < AT + b + bytes);
            wrong += (to[i] != (within ? from[i + a - b] : 0));
        }
        CHECK(wrong == 0, "%u bytes, from %u to %u, by %u threads: %u are wrong", bytes, a, b,
              threads, wrong);
    }
}

/* Copies that come together: all threads have their part of each, and short ones threads apart. */
static void test_threads_of_copies(void)
{
    static unsigned char seen[2048];

    for (uint32_t threads = 1; threads <= sizeof(seen); threads *= 2) {
        for (uint32_t n = 2; n <= XK_MAX_RANKS; n++) {
            uint32_t twice = 0, shared = 0, each = threads / n / XK_LANES * XK_LANES;
            memset(seen, 0, sizeof(seen));
            for (uint32_t k = 0; k < n; k++) {
                for (uint32_t t = 0; t < threads; t++) {
                    uint32_t at = thread_of_copy(t, threads, k, n);
                    twice += (at >= threads) || ((seen[at] & 1) != 0);
                    seen[at % threads] |= 1;
                    shared += (at < each) && ((seen[t] & 2) != 0);
                    seen[t] |= (at < each) ? 2 : 0;
                }
                for (uint32_t t = 0; t < threads; t++) {
                    seen[t] &= 2;
                }
            }
            CHECK((twice == 0) && (shared == 0), "%u copies by %u threads: %u twice, %u shared", n,
                  threads, twice, shared);
        }
    }
}

/* Such a command, heard and carried out: lengths and places of all kinds. */
static void test_copies_by_records(void)
{
    enum { MOST = 300, ROOM = XK_MAX_RANKS * (MOST + 16) };
    static unsigned char from[ROOM], to[ROOM], want[ROOM];
    const struct xk_stay stay = {.idle_ns = 1, .life_ns = 1};

    for (uint32_t count = 2; count <= XK_MAX_RANKS; count++) {
        memset(said, 0, sizeof(said));
        memset(to, 0, sizeof(to));
        memset(want, 0, sizeof(want));
        said[XK_IN_HIGH] = said[XK_BYTES] = count;
        said[XK_HOW] = xk_how(XK_COPIES, XK_PARTS, 3, 0, XK_BY_RECORDS);
        for (uint32_t i = 0; i < count; i++) {
            uint32_t length = (i == 1) ? 0 : (count * 97 + i * 41) % MOST, at = i * (MOST + 16);
            uint64_t f = (uint64_t)(uintptr_t)&from[at + i],
                     t = (uint64_t)(uintptr_t)&to[at + count];
            uint32_t *record = &said[XK_RECORDS + XK_RECORD * i];
            record[XK_FROM] = (uint32_t)f;
            record[XK_FROM + 1] = (uint32_t)(f >> 32);
            record[XK_TO] = (uint32_t)t;
            record[XK_TO + 1] = (uint32_t)(t >> 32);
            record[XK_LENGTH] = length;
            for (uint32_t k = 0; k < length; k++) {
                from[at + i + k] = want[at + count + k] = (unsigned char)(count + i + 7 * k);
            }
        }
        units = xk_words_of(said[XK_HOW], count) / 2;
        CHECK(2 * units >= XK_RECORDS + XK_RECORD * count, "%u units for %u", units, count);
        memset(&told, 0, sizeof(told));
        say(command.word, 0, XK_ALL_WORDS, NUMBER - 1);
        the_host_goes_on();
        gridDim.x = 3;
        listen_to_host((const char *)&command, (uint64_t)(uintptr_t)&relay, NUMBER - 1,
                       words_before(), &stay, &told);
        for (blockIdx.x = 0; blockIdx.x < 3; blockIdx.x++) {
            carry_out_copy(&told, 3, NULL);
        }
        blockIdx.x = 0;
        CHECK(memcmp(to, want, sizeof(to)) == 0, "%u copies: other bytes", count);
    }
    gridDim.x = 1;
}

int main(void)
{
    test_threads_of_copies();
    test_copies_by_records();
    test_records();
    test_moves();
    test_units();
    test_commands();
    test_numbers();
    test_host_is_heard();
    test_first_is_heard();
    test_end_is_heard();
    return xt_done("words of a kernel");
}
