/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A test over several processes: the program starts itself again once a rank, with the rank's
 * environment, and a board of shared memory that needs no launcher.
 */
#ifndef XT_SIM_RANKS_H
#define XT_SIM_RANKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(cond)                                                                                \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            check_failed(__FILE__, __LINE__, #cond);                                               \
        }                                                                                          \
    } while (0)
#define CHECK_EQ(a, b) check_equal(__FILE__, __LINE__, #a, (long long)(a), (long long)(b))

/* Both end the process with status 1. */
void check_failed(const char *file, int line, const char *text) __attribute__((noreturn));
void check_equal(const char *file, int line, const char *text, long long got, long long want);

struct world {
    int rank;
    int size;
};

/* A test: run by every rank of its world. */
typedef void rank_fn(const struct world *world);

struct test_case {
    const char *name;
    rank_fn    *run;
    int         ranks;
    const char *sim;  /* XCCL_SIM */
    const char *fail; /* XCCL_SIM_FAIL, or NULL */
    const char *more; /* further variables, "NAME=value" joined by spaces, or NULL */
    int         dies; /* rank that is to be killed by SIGKILL; -1: none */
};

/*
 * main() of such a test: without arguments all cases, else those named. A case that takes longer
 * than 30 s has failed, and its processes are killed.
 */
int run_cases(int argc, char **argv, const struct test_case *cases, size_t count);

/* From rank 0 to all: bytes of what it has at data. */
void share_bytes(const struct world *world, void *data, size_t bytes);
/* Wait for all that are alive. */
void meet(const struct world *world);
/* The pid of rank, once it has started. */
int pid_of(int rank);

#endif
