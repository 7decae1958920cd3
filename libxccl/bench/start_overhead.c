/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a process start costs more with the interposer preloaded, and through xccl-run.
 * Usage: start_overhead <libxccl-mpi.so> <xccl-run> [json]
 * Starts of the kinds alternate; the figure is the difference of the medians.
 */
#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "bench.h"

extern char **environ;

enum { ROUNDS = 301, KINDS = 3 };

/* ms from spawn to the end of the child; negative if it failed. */
static double start_once(char *const *argv, char *const *env)
{
    pid_t  child;
    int    status;
    double start = bench_now_ns();

    if (posix_spawn(&child, argv[0], NULL, NULL, argv, env) != 0) {
        return -1;
    }
    if ((waitpid(child, &status, 0) != child) || (status != 0)) {
        return -1;
    }
    return (bench_now_ns() - start) / 1e6;
}

/* A copy of the environment with LD_PRELOAD set to lib (NULL: not set at all). */
static char **environment(const char *lib)
{
    size_t count = 0, used = 0;
    char  *preload = NULL;

    while (environ[count] != NULL) {
        count++;
    }
    char **env = calloc(count + 2, sizeof(*env));
    if ((env == NULL) || ((lib != NULL) && (asprintf(&preload, "LD_PRELOAD=%s", lib) < 0))) {
        free(env);
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        if (strncmp(environ[i], "LD_PRELOAD=", 11) != 0) {
            env[used++] = environ[i];
        }
    }
    env[used] = preload;
    return env;
}

static bool measure(char *const *const argvs[KINDS], char *const *const envs[KINDS],
                    double medians[KINDS])
{
    static double times[KINDS][ROUNDS];

    for (int round = -10; round < ROUNDS; round++) { /* the first ten only warm caches */
        for (int kind = 0; kind < KINDS; kind++) {
            double ms = start_once(argvs[kind], envs[kind]);
            if (ms < 0) {
                fprintf(stderr, "start_overhead: '%s' failed\n", argvs[kind][0]);
                return false;
            }
            if (round >= 0) {
                times[kind][round] = ms;
            }
        }
    }
    for (int kind = 0; kind < KINDS; kind++) {
        medians[kind] = bench_median(times[kind], ROUNDS);
    }
    return true;
}

int main(int argc, char **argv)
{
    char   program[] = "/bin/true";
    double medians[KINDS];

    if ((argc != 3) && (argc != 4)) {
        fprintf(stderr, "usage: start_overhead <libxccl-mpi.so> <xccl-run> [json]\n");
        return 2;
    }
    char **plain = environment(NULL), **preloaded = environment(argv[1]);
    char  *direct[] = {program, NULL}, *wrapped[] = {argv[2], program, NULL};
    if ((plain == NULL) || (preloaded == NULL)) {
        fprintf(stderr, "start_overhead: out of memory\n");
        return 1;
    }
    char *const *const argvs[KINDS] = {direct, direct, wrapped};
    char *const *const envs[KINDS] = {plain, preloaded, plain};
    if (!measure(argvs, envs, medians)) {
        return 1;
    }
    struct bench_bar bars[] = {
        {"LD_PRELOAD on /bin/true", "ms", 1, medians[1] - medians[0], medians[0], medians[1]},
        {"xccl-run /bin/true", "ms", 10, medians[2] - medians[0], medians[0], medians[2]},
    };
    bool good = bench_report(&bars[0]);
    good = bench_report(&bars[1]) && good;
    if (argc == 4) {
        good = bench_write_json(argv[3], "start_overhead", "", bars, 2) && good;
    }
    return good ? 0 : 1;
}
