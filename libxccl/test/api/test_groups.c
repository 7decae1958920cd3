/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A call that is refused in a group: its end says so, and none of the group's calls is launched,
 * whether xccl or the library refused it, and wherever it stands. The communicator serves the next.
 *
 * Usage: test_groups cuda|rocm|msccl|mscclpp|hpu
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "device.h"
#include "ranks.h"

enum { RANKS = 3, COUNT = 1000, BYTES = COUNT * (int)sizeof(float) };

static const char *flavour;

struct place {
    const struct xt_rank *self;
    xcclComm_t            comm;
    float                *memory;
    void                 *stream;
};

static void fill(const struct place *p)
{
    float values[COUNT];

    for (int i = 0; i < COUNT; i++) {
        values[i] = (float)(p->self->rank + i);
    }
    xt_put(p->memory, values, BYTES);
}

/* Is it what fill() has put there, times ranks of them? */
static bool holds(const struct place *p, bool summed)
{
    float values[COUNT];
    int   wrong = 0;

    xt_stream_sync(p->stream);
    xt_get(values, p->memory, BYTES);
    for (int i = 0; i < COUNT; i++) {
        int sum = RANKS * (RANKS - 1) / 2 + RANKS * i;
        wrong += values[i] != (float)(summed ? sum : p->self->rank + i);
    }
    return wrong == 0;
}

static xcclResult_t good(const struct place *p)
{
    return xcclAllReduce(p->memory, p->memory, COUNT, xcclFloat32, xcclSum, p->comm, p->stream);
}

static xcclResult_t message(const struct place *p)
{
    int          next = (p->self->rank + 1) % RANKS, before = (p->self->rank + RANKS - 1) % RANKS;
    size_t       half = COUNT / 2;
    xcclResult_t rc = xcclSend(p->memory, half, xcclFloat32, next, p->comm, p->stream);

    return (rc != xcclSuccess)
               ? rc
               : xcclRecv(p->memory + half, half, xcclFloat32, before, p->comm, p->stream);
}

static xcclResult_t bad_type(const struct place *p)
{
    return xcclAllReduce(p->memory, p->memory, COUNT, (xcclDataType_t)99, xcclSum, p->comm,
                         p->stream);
}

static xcclResult_t bad_root(const struct place *p)
{
    return xcclBcast(p->memory, COUNT, xcclFloat32, RANKS, p->comm, p->stream);
}

static xcclResult_t no_comm(const struct place *p)
{
    return xcclBcast(p->memory, COUNT, xcclFloat32, 0, NULL, p->stream);
}

static xcclResult_t overlap(const struct place *p)
{
    return xcclAllReduce(p->memory, p->memory + 8, COUNT / 2, xcclFloat32, xcclSum, p->comm,
                         p->stream);
}

/* Beyond the end of the memory: only the library sees that. */
static xcclResult_t too_long(const struct place *p)
{
    return xcclAllReduce(p->memory, p->memory, (size_t)1 << 40, xcclFloat32, xcclSum, p->comm,
                         p->stream);
}

typedef xcclResult_t (*call_fn)(const struct place *p);

static const struct run {
    const char *what;
    call_fn     calls[3];
    int         refused; /* of the calls */
    bool        nested;  /* the refused call stands in a group of its own */
} runs[] = {
    {"a type, behind a collective", {good, bad_type}, 1, false},
    {"a type, before a collective", {bad_type, good}, 0, false},
    {"a root, behind messages", {message, bad_root}, 1, false},
    {"no communicator, between two", {good, no_comm, message}, 1, false},
    {"overlap, in a group within", {good, overlap, good}, 1, true},
    {"what the library refuses", {good, too_long}, 1, false},
    {"nothing but what is refused", {bad_root}, 0, false},
};
enum { NUM_RUNS = sizeof(runs) / sizeof(runs[0]) };

static void try_run(const struct place *p, const struct run *run)
{
    xcclResult_t refusal = xcclSuccess;
    char         why[256] = "";

    fill(p);
    CHECK(xcclGroupStart() == xcclSuccess, "%s", xcclGetLastError(NULL));
    for (int i = 0; (i < 3) && (run->calls[i] != NULL); i++) {
        bool refused = (i == run->refused);

        if (refused && run->nested) {
            CHECK(xcclGroupStart() == xcclSuccess, "%s", xcclGetLastError(NULL));
        }
        xcclResult_t rc = run->calls[i](p);
        CHECK((rc == xcclSuccess) == !refused, "%s: call %d: %d: %s", run->what, i, (int)rc,
              xcclGetLastError(NULL));
        if (refused) {
            refusal = rc;
            snprintf(why, sizeof(why), "%.200s", xcclGetLastError(NULL));
        }
        if (refused && run->nested) {
            CHECK(xcclGroupEnd() == rc, "the inner group says so, too");
        }
    }
    xcclResult_t end = xcclGroupEnd();
    CHECK(end == refusal, "%s: the group ended with %d, not %d", run->what, (int)end, (int)refusal);
    CHECK_HAS(xcclGetLastError(NULL), why);
    CHECK(holds(p, false), "%s: the group's other call was launched", run->what);
    CHECK(good(p) == xcclSuccess, "%s: the next call: %s", run->what, xcclGetLastError(NULL));
    CHECK(holds(p, true), "%s: the next call has wrong data", run->what);
}

static int body(const struct xt_rank *self)
{
    xt_device_open(flavour, self->rank);
    struct place place = {self, xt_comm(self), xt_alloc(BYTES), xt_stream_new()};

    for (int i = 0; i < NUM_RUNS; i++) {
        if ((runs[i].calls[runs[i].refused] != too_long) || (strcmp(flavour, "hpu") != 0)) {
            try_run(&place, &runs[i]);
        }
    }
    xt_stream_free(place.stream);
    xt_free(place.memory);
    CHECK(xcclCommDestroy(place.comm) == xcclSuccess, "%s", xcclGetLastError(NULL));
    return xt_failed;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: %s cuda|rocm|msccl|mscclpp|hpu\n", argv[0]);
        return 2;
    }
    bool real = (strcmp(argv[1], "rocm") == 0) || (strcmp(argv[1], "hpu") == 0);
    flavour = real ? argv[1] : "cuda";
    xt_ranks_open();
    bool ok = xt_run(RANKS, 60, body);
    printf("%s: refused calls in groups: %s\n", argv[1], ok ? "ok" : "FAILED");
    return ok ? 0 : 1;
}
