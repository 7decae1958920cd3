/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening the libraries as a loader does: faults of loading, missing symbols, older versions. */
#include <dlfcn.h>
#include <string.h>

#include "ranks.h"

#ifdef TEST_ROCM
#define SIM "rocm:2"
#define DRIVER "libamdhip64.so.6"
#define CCL "librccl.so.1"
#define ALLTOALL "ncclAllToAll"
#else
#define SIM "cuda:2"
#define DRIVER "libcuda.so.1"
#define CCL "libnccl.so.2"
#define ALLTOALL "ncclAlltoAll"
#endif

/* The program's runtime path leads to the simulation. */
static void *open_ccl(void)
{
    CHECK(dlopen(DRIVER, RTLD_NOW | RTLD_GLOBAL) != NULL);
    return dlopen(CCL, RTLD_NOW | RTLD_LOCAL);
}

static void fine(const struct world *world)
{
    static const char *const names[] = {"ncclGetVersion", "ncclCommInitRank", "ncclCommSplit",
                                        "ncclMemAlloc",   "ncclGather",       ALLTOALL};
    void                    *library = open_ccl();

    (void)world;
    CHECK(library != NULL);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        CHECK(dlsym(library, names[i]) != NULL);
    }
    CHECK(dlsym(library, "xs_comm_init") != NULL); /* of the core: a dependency, not an export */
}

/* load@1: the dynamic linker refuses the library there, and says why. */
static void load(const struct world *world)
{
    void *library = open_ccl();

    CHECK_EQ(library == NULL, world->rank == 1);
    if (library == NULL) {
        const char *text = dlerror();

        CHECK((text != NULL) && (strstr(text, "XCCL_SIM_FAIL_says_load") != NULL));
        CHECK(dlopen(CCL, RTLD_NOW | RTLD_LOCAL) == NULL);
    }
}

/* Without the driver loaded before, the library opens and has none of its names. */
static void load_first(const struct world *world)
{
    void *library = dlopen(CCL, RTLD_NOW | RTLD_LOCAL);

    CHECK(library != NULL);
    CHECK_EQ(dlsym(library, "ncclAllReduce") == NULL, world->rank == 1);
    CHECK_EQ(dlsym(library, "ncclGetUniqueId") == NULL, world->rank == 1);
}

/* symbol:ncclReduceScatter@0: that one, nothing else. */
static void symbol(const struct world *world)
{
    void *library = open_ccl();

    CHECK(library != NULL);
    CHECK_EQ(dlsym(library, "ncclReduceScatter") == NULL, world->rank == 0);
    CHECK(dlsym(library, "ncclReduce") != NULL);
    CHECK(dlsym(library, "ncclAllReduce") != NULL);
}

/* XCCL_SIM_VERSION=21803: what came later is not there. */
static void old_version(const struct world *world)
{
    void *library = open_ccl();
    int   version = 0;
    int (*get_version)(int *);

    (void)world;
    CHECK(library != NULL);
    *(void **)&get_version = dlsym(library, "ncclGetVersion");
    CHECK_EQ(get_version(&version), 0);
    CHECK_EQ(version, 21803);
    CHECK(dlsym(library, "ncclCommSplit") != NULL);
    CHECK(dlsym(library, "ncclMemAlloc") == NULL);
#ifndef TEST_ROCM
    CHECK(dlsym(library, ALLTOALL) == NULL);
    CHECK(dlsym(library, "ncclGather") == NULL);
#endif
}

/* A wrong variable: no collective library either. */
static void bad_variable(const struct world *world)
{
    (void)world;
    CHECK(open_ccl() == NULL);
}

int main(int argc, char **argv)
{
    const struct test_case cases[] = {
        {"fine", fine, 1, SIM, NULL, NULL, -1},
        {"load", load, 2, SIM, "load@1", NULL, -1},
        {"load_first", load_first, 2, SIM, "load@1", NULL, -1},
        {"symbol", symbol, 2, SIM, "symbol:ncclReduceScatter@0", NULL, -1},
        {"old_version", old_version, 1, SIM, NULL, "XCCL_SIM_VERSION=21803", -1},
        {"bad_variable", bad_variable, 1, SIM, "load@1-0", NULL, -1},
        {"bad_count", bad_variable, 1, SIM, "alloc=0", NULL, -1},
        {"bad_where", bad_variable, 1, SIM, "init,, op:any", NULL, -1},
    };

    return run_cases(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
