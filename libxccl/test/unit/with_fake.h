/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens a stand-in library and reaches what it offers to tests. Include once a test. */
#ifndef XT_WITH_FAKE_H
#define XT_WITH_FAKE_H

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>

#include "check.h"
#include "fake.h"
#include <xccl/xccl.h>

static fake_count_t fake_count;
static fake_get_t   fake_get;
static fake_clear_t fake_clear;
static fake_fail_t  fake_fail;
static fake_block_t fake_block;
static fake_waits_t fake_waits;

static void *reach(void *handle, const char *name)
{
    void *address = dlsym(handle, name);

    if (address == NULL) {
        fprintf(stderr, "the stand-in has no %s\n", name);
        exit(2);
    }
    return address;
}

/* Load fakes/folder/file as "the program" would, and let xccl find it. */
static void use_fake(const char *fakes, const char *folder, const char *file)
{
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/%s/%s", fakes, folder, file);
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(2);
    }
    *(void **)&fake_count = reach(handle, "fake_count");
    *(void **)&fake_get = reach(handle, "fake_get");
    *(void **)&fake_clear = reach(handle, "fake_clear");
    *(void **)&fake_fail = reach(handle, "fake_fail");
    *(void **)&fake_block = reach(handle, "fake_block");
    *(void **)&fake_waits = reach(handle, "fake_waits");
}

/* One call of the vendor's library was made, this one. */
static inline void expect_call(int i, const char *text)
{
    CHECK(strcmp(fake_get(i), text) == 0, "call %d is \"%s\" instead of \"%s\"", i, fake_get(i),
          text);
}

static inline xcclComm_t make_comm(int nranks, int rank)
{
    xcclUniqueId id;
    xcclComm_t   comm = NULL;

    CHECK(xcclGetUniqueId(&id) == xcclSuccess, "%s", xcclGetLastError(NULL));
    CHECK(xcclCommInitRank(&comm, nranks, id, rank) == xcclSuccess, "%s", xcclGetLastError(NULL));
    if (comm == NULL) {
        exit(xt_done("no communicator"));
    }
    fake_clear();
    return comm;
}

#endif
