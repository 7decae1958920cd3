/* SPDX-License-Identifier: BSD-3-Clause */
/* A set of processors (PUs, as the kernel numbers them); larger than glibc's cpu_set_t. */
#ifndef XCCL_TOOLS_CPUS_H
#define XCCL_TOOLS_CPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CPUS_MAX = 4096, CPUS_TEXT = 512 };

struct cpus {
    uint64_t word[CPUS_MAX / 64];
};

void cpus_clear(struct cpus *set_p);
void cpus_add(struct cpus *set_p, int cpu);
bool cpus_has(const struct cpus *set, int cpu);
int  cpus_count(const struct cpus *set);
void cpus_and(const struct cpus *a, const struct cpus *b, struct cpus *out_p);
void cpus_or(const struct cpus *a, const struct cpus *b, struct cpus *out_p);
bool cpus_equal(const struct cpus *a, const struct cpus *b);
bool cpus_meet(const struct cpus *a, const struct cpus *b);
/* true if every cpu of a is in b. */
bool cpus_within(const struct cpus *a, const struct cpus *b);
/* "0-3,8"; false if text is no such list. */
bool cpus_parse_list(const char *text, struct cpus *out_p);
/* "0xff00", as Slurm writes masks; len characters of text. */
bool cpus_parse_hex(const char *text, size_t len, struct cpus *out_p);
/* "0-3,8", or "none"; cut with "..." if it does not fit. */
void cpus_text(const struct cpus *set, char *text_p, size_t size);
/* Cores this process may run on. */
bool cpus_of_process(struct cpus *out_p);

#endif
