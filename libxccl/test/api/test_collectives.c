/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every collective with every type and operation, in place and not, on 1 to 8 ranks. Each number of
 * ranks takes a third of the pairs, another one each time, so that every pair is tried on at least
 * two of them, with counts that take turns; and every collective with every count.
 *
 * What the library of a flavour lacks must be refused, on every rank and before anything happens.
 *
 * Usage: test_collectives cuda|rocm|msccl|mscclpp|oneccl|hpu [most ranks]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "colls.h"
#include "device.h"
#include "ranks.h"
#include "values.h"

enum { MAX_RANKS = 8, SECONDS = 110 };

static const size_t counts[] = {1, 3, 1021, 65537, 0, 257, 8, 4099};
enum { NUM_COUNTS = sizeof(counts) / sizeof(counts[0]) };

static const char *flavour;

/* What libraries lack, written down again from their sources. A bit each type, and operation. */
#define BIT(x) (1u << (x))
enum {
    ALL = 0xffff,
    MESSAGES = BIT(XT_SENDRECV) | BIT(XT_ALLTOALLV) | BIT(XT_GATHER) | BIT(XT_GATHERV) |
               BIT(XT_SCATTER) | BIT(XT_SCATTERV),
    HCCL_REDUCED = BIT(xcclFloat32) | BIT(xcclBfloat16),
    FLOAT8 = BIT(xcclFloat8e4m3) | BIT(xcclFloat8e5m2),
    MSCCLPP_TYPES = BIT(xcclUint8) | BIT(xcclInt32) | BIT(xcclUint32) | BIT(xcclFloat16) |
                    BIT(xcclFloat32) | BIT(xcclBfloat16),
};
static const struct limits {
    const char *flavour, *memory;
    unsigned    types, ops, colls;
    unsigned    reduced; /* of the types */
} limits[] = {
    {"cuda", "cuda", ALL, ALL, ALL, ALL},
    {"rocm", "rocm", ALL, ALL, ALL, ALL},
    {"msccl", "cuda", ALL & ~FLOAT8, ALL, ALL, ALL},
    {"mscclpp", "cuda", MSCCLPP_TYPES, BIT(xcclSum) | BIT(xcclMin), ALL, ALL},
    {"oneccl", "host", ALL & ~FLOAT8, ALL & ~BIT(xcclAvg), ALL & ~MESSAGES, ALL},
    {"hpu", "hpu", HCCL_REDUCED | BIT(xcclInt32) | BIT(xcclUint32) | BIT(xcclFloat16),
     BIT(xcclSum) | BIT(xcclMin) | BIT(xcclMax), ALL, HCCL_REDUCED},
};
static const struct limits *limit;

static bool is_offered(enum xt_coll coll, xcclDataType_t type, xcclRedOp_t op)
{
    return ((limit->types & BIT(type)) != 0) && ((limit->colls & BIT(coll)) != 0) &&
           (!xt_reduces(coll) ||
            (((limit->ops & BIT(op)) != 0) && ((limit->reduced & BIT(type)) != 0)));
}

/* Is it the turn of this pair with this number of ranks? */
static bool is_due(enum xt_coll coll, int type, int op, int nranks)
{
    return ((int)coll + type + op + nranks) % 3 == 0;
}

/* Run one case and compare; 1 for a wrong one. */
static int run_case(struct xt_place *place, const struct xt_case *c)
{
    char         text[160];
    xcclResult_t rc = xt_case_call(place, c);

    if (!is_offered(c->coll, c->type, c->op)) {
        bool told = (rc == xcclUnsupported);
        if (!told) {
            fprintf(stderr, "NOT REFUSED: %s: %s\n", xt_case_text(place, c, text, sizeof(text)),
                    xcclGetErrorString(rc));
        }
        if (told && (place->rank == 0)) {
            xt_shared->covered[c->coll][c->type][xt_reduces(c->coll) ? c->op : 0] = 1;
        }
        return told ? 0 : 1;
    }
    if (rc != xcclSuccess) {
        fprintf(stderr, "FAILED: %s: %s: %s\n", xt_case_text(place, c, text, sizeof(text)),
                xcclGetErrorString(rc), xcclGetLastError(place->comm));
        return 1;
    }
    if (!xt_case_compare(place, c)) {
        return 1;
    }
    if (place->rank == 0) {
        xt_shared->calls++;
        xt_shared->covered[c->coll][c->type][xt_reduces(c->coll) ? c->op : 0] = 1;
    }
    __atomic_fetch_add(&xt_shared->elements, (long)c->count, __ATOMIC_RELAXED);
    return 0;
}

/* The same on all ranks: the turn decides root, count and stream. */
static struct xt_case next_case(enum xt_coll coll, xcclDataType_t type, xcclRedOp_t op, int nranks,
                                bool in_place, unsigned *turn)
{
    unsigned       t = (*turn)++;
    struct xt_case c = {.coll = coll,
                        .type = type,
                        .op = op,
                        .count = counts[t % NUM_COUNTS],
                        .root = (int)((t / 3) % (unsigned)nranks),
                        .in_place = in_place,
                        .default_stream = (t % 5 == 4) && (strcmp(flavour, "hpu") != 0),
                        .packed = (coll == XT_ALLGATHERV) && (t % 3 == 1),
                        .seed = xt_mix((uint64_t)nranks, t, (uint64_t)coll)};
    return c;
}

static int run_coll(struct xt_place *place, enum xt_coll coll, unsigned *turn)
{
    int bad = 0;

    for (int type = 0; type < xcclNumTypes; type++) {
        for (int op = 0; op < (xt_reduces(coll) ? xcclNumOps : 1); op++) {
            for (int in_place = 0; in_place <= (xt_can_be_in_place(coll) ? 1 : 0); in_place++) {
                if (!is_due(coll, type, op, place->nranks)) {
                    continue;
                }
                struct xt_case c = next_case(coll, (xcclDataType_t)type, (xcclRedOp_t)op,
                                             place->nranks, in_place != 0, turn);
                bad += run_case(place, &c);
                if (bad > 0) {
                    return bad; /* the ranks may be out of step now */
                }
            }
        }
    }
    return bad;
}

/* The counts of issue and brief with one type, so that none is left to the turns. */
static int run_counts(struct xt_place *place, enum xt_coll coll, unsigned *turn)
{
    int bad = 0;

    for (int i = 0; (i < NUM_COUNTS) && (bad == 0); i++) {
        struct xt_case c = next_case(coll, xcclFloat32, xcclSum, place->nranks, false, turn);
        c.count = counts[i];
        bad += run_case(place, &c);
    }
    return bad;
}

static int body(const struct xt_rank *self)
{
    struct xt_place place;
    unsigned        turn = (unsigned)self->nranks;
    int             bad = 0;

    xt_device_open(limit->memory, self->rank);
    xcclComm_t comm = xt_comm(self);
    xt_place_open(&place, comm, self->nranks, self->rank, (size_t)5 << 20);
    for (int coll = 0; (coll < XT_NUM_COLLS) && (bad == 0); coll++) {
        bad += run_coll(&place, (enum xt_coll)coll, &turn);
        bad += (bad == 0) ? run_counts(&place, (enum xt_coll)coll, &turn) : 0;
    }
    xt_place_close(&place);
    if ((bad == 0) && (xcclCommDestroy(comm) != xcclSuccess)) {
        fprintf(stderr, "destroy: %s\n", xcclGetLastError(NULL));
        bad++;
    }
    return (bad == 0) ? 0 : 1;
}

/* Every collective with every type, and operation where it has one, must have run. */
static int count_covered(int *total_p)
{
    int covered = 0;

    *total_p = 0;
    for (int coll = 0; coll < XT_NUM_COLLS; coll++) {
        for (int type = 0; type < xcclNumTypes; type++) {
            for (int op = 0; op < (xt_reduces((enum xt_coll)coll) ? xcclNumOps : 1); op++) {
                (*total_p)++;
                covered += xt_shared->covered[coll][type][op];
            }
        }
    }
    return covered;
}

int main(int argc, char **argv)
{
    int most = (argc > 2) ? atoi(argv[2]) : MAX_RANKS;
    int failed = 0;
    int total;

    for (size_t i = 0; (argc > 1) && (i < sizeof(limits) / sizeof(limits[0])); i++) {
        limit = (strcmp(limits[i].flavour, argv[1]) == 0) ? &limits[i] : limit;
    }
    if ((limit == NULL) || (most < 1) || (most > MAX_RANKS)) {
        fprintf(stderr, "usage: %s cuda|rocm|msccl|mscclpp|oneccl|hpu [most ranks]\n", argv[0]);
        return 2;
    }
    flavour = limit->flavour;
    xt_ranks_open();
    for (int nranks = 1; nranks <= most; nranks++) {
        long before = xt_shared->calls;
        bool ok = xt_run(nranks, SECONDS, body);
        printf("%s, %d ranks: %ld calls%s\n", flavour, nranks, xt_shared->calls - before,
               ok ? "" : ", FAILED");
        failed += !ok;
    }
    int covered = count_covered(&total);
    printf("%s: %ld calls, %ld elements compared, %d of %d (collective, type, operation) covered, "
           "%d of %d numbers of ranks failed\n",
           flavour, xt_shared->calls, xt_shared->elements, covered, total, failed, most);
    return ((failed == 0) && (covered == total)) ? 0 : 1;
}
