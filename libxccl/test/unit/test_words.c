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

void xs_kernel_pause(void)
{
    usleep(50);
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

int main(void)
{
    test_records();
    test_moves();
    test_units();
    test_commands();
    return xt_done("words of a kernel");
}
