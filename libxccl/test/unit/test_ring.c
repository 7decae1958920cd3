/* SPDX-License-Identifier: BSD-3-Clause */
/* Records that threads write, change and read at once: what is read is whole. */
#include "ops/ring.h"

#include "check.h"
#include <pthread.h>

enum { WRITERS = 3, EACH = 400000, NEAR = 8, FIRST = 20, CHANGED = 3 };

static struct xm_ring ring;
static int            over; /* atomic */

/* All words before FIRST are alike, and so are those that are changed together. */
static void fill(uint64_t words[XM_RING_WORDS], uint64_t value)
{
    for (size_t i = 0; i < XM_RING_WORDS; i++) {
        words[i] = (i < FIRST) ? value : 0;
    }
}

static void *write_some(void *argument)
{
    uint64_t words[XM_RING_WORDS], change[CHANGED];

    for (uint64_t i = 1; i <= EACH; i++) {
        uint64_t value = i * WRITERS + *(const int *)argument;
        fill(words, value);
        uint64_t number = xm_ring_add(&ring, words);
        for (int c = 0; c < CHANGED; c++) {
            change[c] = value;
        }
        xm_ring_change(&ring, number, FIRST, change, CHANGED);
    }
    return NULL;
}

static long torn, whole; /* the reader's */

static void look_at(const uint64_t words[XM_RING_WORDS])
{
    bool good = (words[FIRST] == 0) || (words[FIRST] == words[0]);

    for (size_t i = 1; i < FIRST; i++) {
        good = good && (words[i] == words[0]);
    }
    for (size_t i = 1; i < CHANGED; i++) {
        good = good && (words[FIRST + i] == words[FIRST]);
    }
    whole += good;
    torn += !good;
}

static void *read_all(void *argument)
{
    uint64_t words[XM_RING_WORDS];

    (void)argument;
    while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE)) {
        uint64_t last = xm_ring_last(&ring);
        /* The oldest are just being taken, and the newest being changed. */
        for (uint64_t i = 0; (i < NEAR) && (last > XM_RING_RECORDS); i++) {
            const uint64_t numbers[] = {last - XM_RING_RECORDS + 1 + i, last - i};
            for (int n = 0; n < 2; n++) {
                if (xm_ring_read(&ring, numbers[n], words)) {
                    look_at(words);
                }
            }
        }
    }
    return NULL;
}

static void test_threads(void)
{
    pthread_t writers[WRITERS], reader;
    int       ids[WRITERS];

    pthread_create(&reader, NULL, read_all, NULL);
    for (int i = 0; i < WRITERS; i++) {
        ids[i] = i;
        pthread_create(&writers[i], NULL, write_some, &ids[i]);
    }
    for (int i = 0; i < WRITERS; i++) {
        pthread_join(writers[i], NULL);
    }
    __atomic_store_n(&over, 1, __ATOMIC_RELEASE);
    pthread_join(reader, NULL);
    CHECK(whole > 0, "nothing was read");
    CHECK(torn == 0, "%ld of %ld records are torn", torn, torn + whole);
    CHECK(xm_ring_last(&ring) == (uint64_t)WRITERS * EACH, "numbers are lost");
}

/* What is said of a record whose place was taken changes nobody else's. */
static void test_taken(void)
{
    static struct xm_ring small;
    uint64_t              words[XM_RING_WORDS], value = 7;

    fill(words, 1);
    uint64_t first = xm_ring_add(&small, words);
    CHECK(first == 1, "numbers begin with 1");
    CHECK(xm_ring_read(&small, first, words) && (words[0] == 1), "it is there");
    fill(words, 2);
    for (int i = 0; i < XM_RING_RECORDS; i++) {
        xm_ring_add(&small, words);
    }
    CHECK(!xm_ring_read(&small, first, words), "its place is taken");
    xm_ring_change(&small, first, FIRST, &value, 1);
    CHECK(xm_ring_read(&small, first + XM_RING_RECORDS, words), "the newer one is there");
    CHECK((words[0] == 2) && (words[FIRST] == 0), "and is as it was");
    xm_ring_change(&small, first + XM_RING_RECORDS, FIRST, &value, 1);
    CHECK(xm_ring_read(&small, first + XM_RING_RECORDS, words) && (words[FIRST] == value),
          "changed");
    small.slots[(first + XM_RING_RECORDS) % XM_RING_RECORDS].version |= 1;
    CHECK(!xm_ring_read(&small, first + XM_RING_RECORDS, words), "it is being written");
    CHECK(!xm_ring_read(&small, 0, words), "there is no number 0");
    CHECK(!xm_ring_read(&small, first + 1000, words), "nor one that was not given");
}

int main(void)
{
    test_taken();
    test_threads();
    return xt_done("the last records");
}
