/* SPDX-License-Identifier: BSD-3-Clause */
#include "cpus.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = CPUS_MAX / 64 };

void cpus_clear(struct cpus *set_p)
{
    memset(set_p, 0, sizeof(*set_p));
}

void cpus_add(struct cpus *set_p, int cpu)
{
    if ((cpu >= 0) && (cpu < CPUS_MAX)) {
        set_p->word[cpu / 64] |= UINT64_C(1) << (cpu % 64);
    }
}

bool cpus_has(const struct cpus *set, int cpu)
{
    return (cpu >= 0) && (cpu < CPUS_MAX) && ((set->word[cpu / 64] >> (cpu % 64)) & 1);
}

int cpus_count(const struct cpus *set)
{
    int count = 0;

    for (int i = 0; i < WORDS; i++) {
        count += __builtin_popcountll(set->word[i]);
    }
    return count;
}

void cpus_and(const struct cpus *a, const struct cpus *b, struct cpus *out_p)
{
    for (int i = 0; i < WORDS; i++) {
        out_p->word[i] = a->word[i] & b->word[i];
    }
}

void cpus_or(const struct cpus *a, const struct cpus *b, struct cpus *out_p)
{
    for (int i = 0; i < WORDS; i++) {
        out_p->word[i] = a->word[i] | b->word[i];
    }
}

bool cpus_equal(const struct cpus *a, const struct cpus *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

bool cpus_meet(const struct cpus *a, const struct cpus *b)
{
    for (int i = 0; i < WORDS; i++) {
        if ((a->word[i] & b->word[i]) != 0) {
            return true;
        }
    }
    return false;
}

bool cpus_within(const struct cpus *a, const struct cpus *b)
{
    for (int i = 0; i < WORDS; i++) {
        if ((a->word[i] & ~b->word[i]) != 0) {
            return false;
        }
    }
    return true;
}

bool cpus_parse_list(const char *text, struct cpus *out_p)
{
    struct cpus set;

    cpus_clear(&set);
    for (const char *p = text;; p++) {
        char *end;
        long  low = strtol(p, &end, 10), high;

        if ((end == p) || (*p < '0') || (*p > '9')) {
            return false;
        }
        high = low;
        if ((*end == '-') && (end[1] >= '0') && (end[1] <= '9')) {
            high = strtol(end + 1, &end, 10);
        }
        if ((low > high) || (high >= CPUS_MAX)) {
            return false;
        }
        for (long cpu = low; cpu <= high; cpu++) {
            cpus_add(&set, (int)cpu);
        }
        p = end;
        if (*p == '\0') {
            *out_p = set;
            return true;
        }
        if (*p != ',') {
            return false;
        }
    }
}

bool cpus_parse_hex(const char *text, size_t len, struct cpus *out_p)
{
    struct cpus set;
    int         cpu = 0;

    if ((len > 2) && (text[0] == '0') && ((text[1] == 'x') || (text[1] == 'X'))) {
        text += 2;
        len -= 2;
    }
    cpus_clear(&set);
    for (size_t i = len; i > 0; i--, cpu += 4) {
        char  digit[2] = {text[i - 1], '\0'};
        char *end;
        long  value = strtol(digit, &end, 16);

        if ((*end != '\0') || (end == digit) || (cpu + 3 >= CPUS_MAX)) {
            return false;
        }
        for (int bit = 0; bit < 4; bit++) {
            if ((value >> bit) & 1) {
                cpus_add(&set, cpu + bit);
            }
        }
    }
    *out_p = set;
    return len > 0;
}

void cpus_text(const struct cpus *set, char *text_p, size_t size)
{
    size_t used = 0;

    snprintf(text_p, size, "none");
    for (int cpu = 0; cpu < CPUS_MAX; cpu++) {
        int last = cpu;

        if (!cpus_has(set, cpu)) {
            continue;
        }
        while (cpus_has(set, last + 1)) {
            last++;
        }
        const char *comma = (used > 0) ? "," : "";
        int n = (last > cpu) ? snprintf(text_p + used, size - used, "%s%d-%d", comma, cpu, last)
                             : snprintf(text_p + used, size - used, "%s%d", comma, cpu);
        if ((n < 0) || ((size_t)n >= size - used)) {
            snprintf(text_p + size - 4, 4, "...");
            return;
        }
        used += (size_t)n;
        cpu = last;
    }
}

bool cpus_of_process(struct cpus *out_p)
{
    struct cpus set;

    cpus_clear(&set);
    /* The kernel takes any length that holds its own masks. */
    if (sched_getaffinity(0, sizeof(set), (cpu_set_t *)(void *)&set) != 0) {
        return false;
    }
    *out_p = set;
    return true;
}
