/* SPDX-License-Identifier: BSD-3-Clause */
/* XCCL_CHECK=1: do the ranks agree on what MPI or this library takes to be equal? */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/log.h"
#include "calls/facts.h"
#include "comms/agree.h"
#include "comms/guarded.h"

enum { SAMPLES = 10 };

/* One rank's values. */
struct sample {
    int64_t values[SAMPLES];
};

/* Where the ranks differ: a value, a rank that has another one than most, and one of these. */
struct difference {
    int rank; /* -1: all agree */
    int most;
    int value;
};

/* The first rank with the value that most ranks have: rank 0 may be the odd one. */
static int find_most(const struct sample *samples, int size, int value)
{
    int most = 0, ranks = 0;

    /* Ends where fewer ranks are left than have one value already. */
    for (int r = 0; r + ranks < size; r++) {
        int alike = 0;
        for (int other = r; other < size; other++) {
            alike += (samples[other].values[value] == samples[r].values[value]) ? 1 : 0;
        }
        if (alike > ranks) {
            ranks = alike;
            most = r;
        }
    }
    return most;
}

/* The first value in which ranks differ, and the first of the fewer. Same on every rank. */
static void find_difference(const struct sample *samples, int size, int count,
                            struct difference *found)
{
    found->rank = -1;
    for (int v = 0; v < count; v++) {
        for (int r = 1; r < size; r++) {
            if (samples[r].values[v] == samples[0].values[v]) {
                continue;
            }
            found->value = v;
            found->most = find_most(samples, size, v);
            found->rank = (found->most == 0) ? r : 0;
            return;
        }
    }
}

static xcclResult_t compare(struct xm_comm *xm, const struct sample *mine, int count,
                            struct sample **all_p, struct difference *found)
{
    void        *all = NULL;
    xcclResult_t res = xm_comm_collect(xm, mine, (int)sizeof(*mine), &all);

    *all_p = all;
    found->rank = -1;
    if (res == xcclSuccess) {
        find_difference(all, xm->size, count, found);
    }
    return res;
}

enum { COLL, VALID, MEMORY, SIZE, ROOT, OPERATION, TYPE, COUNTS, NUM_CHECKED };

static const char *const checked_names[NUM_CHECKED] = {
    "the collective",     "the validity of its arguments",
    "the kind of memory", "the number of bytes",
    "the root",           "the operation",
    "the type",           "the array of receive counts"};

/* What an operation is called: equal on all ranks, which handles of user operations are not. */
static const char *op_name(int64_t number)
{
    static const char *const names[] = {"none",       "MPI_SUM",
                                        "MPI_PROD",   "MPI_MAX",
                                        "MPI_MIN",    "MPI_MAXLOC",
                                        "MPI_MINLOC", "MPI_BAND",
                                        "MPI_BOR",    "MPI_BXOR",
                                        "MPI_LAND",   "MPI_LOR",
                                        "MPI_LXOR",   "an operation of the program's"};

    return names[number];
}

static int64_t op_number(MPI_Op op)
{
    const MPI_Op known[] = {XM_HANDLE(MPI_SUM),  XM_HANDLE(MPI_PROD),   XM_HANDLE(MPI_MAX),
                            XM_HANDLE(MPI_MIN),  XM_HANDLE(MPI_MAXLOC), XM_HANDLE(MPI_MINLOC),
                            XM_HANDLE(MPI_BAND), XM_HANDLE(MPI_BOR),    XM_HANDLE(MPI_BXOR),
                            XM_HANDLE(MPI_LAND), XM_HANDLE(MPI_LOR),    XM_HANDLE(MPI_LXOR)};
    const int    n = (int)(sizeof(known) / sizeof(known[0]));

    for (int i = 0; i < n; i++) {
        if (op == known[i]) {
            return i + 1;
        }
    }
    return n + 1;
}

/* Kind and size of a predefined type of a reduction; derived ones are not compared. */
static int64_t type_number(MPI_Datatype type)
{
    enum xm_nature nature;
    MPI_Count      size;

    return xm_type_named(type, &nature, &size) ? ((int64_t)nature << 32) + size + 1 : 0;
}

static void describe_type(int64_t number, char *buf, size_t len)
{
    static const char *const natures[] = {[XM_OTHER] = "elements",
                                          [XM_CHARACTER] = "characters",
                                          [XM_SIGNED] = "signed integers",
                                          [XM_UNSIGNED] = "unsigned integers",
                                          [XM_REAL] = "real numbers",
                                          [XM_COMPLEX] = "complex numbers",
                                          [XM_HOLES] = "pairs"};

    if (number == 0) {
        snprintf(buf, len, "a derived type");
    } else {
        snprintf(buf, len, "%s of %lld bytes", natures[number >> 32],
                 (long long)(number & 0xffffffff) - 1);
    }
}

static int64_t hash_counts(const struct xm_op *op)
{
    uint64_t hash = XC_HASH_BEGIN;

    for (int i = 0; i < op->comm->size; i++) {
        /* Bytes: the ranks may count in different types. */
        int64_t bytes = (int64_t)xm_count_at(&op->call, op->call.recvcounts, i) *
                        (int64_t)op->buffers.recv.layout.size;
        hash = xc_hash_bytes(hash, &bytes, sizeof(bytes));
    }
    return (int64_t)hash;
}

static void take_sample(struct xm_op *op, bool valid, struct sample *mine)
{
    const struct xm_call *call = &op->call;
    int64_t              *v = mine->values;

    memset(mine, 0, sizeof(*mine));
    v[COLL] = call->coll;
    v[VALID] = valid;
    v[ROOT] = call->root;
    if (!valid) {
        return;
    }
    v[OPERATION] = (call->op != 0) ? op_number(call->op) : 0;
    v[TYPE] = (call->op != 0) ? type_number(call->sendtype) : 0;
    if (xm_coll_on_device(call->coll) && !xm_coll_needs_agreement(call->coll)) {
        v[MEMORY] = xm_facts_local(op) ? 1 + (int64_t)op->facts.mem : 0;
        v[SIZE] = (int64_t)op->facts.bytes;
    }
    if ((call->coll == XM_ALLGATHERV) || (call->coll == XM_REDUCE_SCATTER)) {
        v[COUNTS] = hash_counts(op);
    }
}

static void describe(const struct sample *sample, int what, char *buf, size_t len)
{
    int64_t value = sample->values[what];

    switch (what) {
    case COLL:
        snprintf(buf, len, "%s", xm_coll_name((enum xm_coll)value));
        break;
    case MEMORY:
        snprintf(buf, len, "%s",
                 (value == 0) ? "host memory or no data" : xm_mem_name((enum xm_mem)(value - 1)));
        break;
    case VALID:
        snprintf(buf, len, "%s", (value != 0) ? "valid" : "not valid");
        break;
    case OPERATION:
        snprintf(buf, len, "%s", op_name(value));
        break;
    case TYPE:
        describe_type(value, buf, len);
        break;
    case COUNTS:
        snprintf(buf, len, "digest %08llx", (unsigned long long)value & 0xffffffffu);
        break;
    default:
        snprintf(buf, len, "%lld", (long long)value);
        break;
    }
}

/* Bytes of the block for, or from, rank i in a buffer of this rank's. */
static int64_t block_bytes(const struct xm_op *op, const struct xm_buffer *buffer, int i)
{
    struct xm_block block = xm_block_at(&op->call, buffer, i);

    return (int64_t)(block.count * block.layout->size);
}

/* What this rank sends to rank i, or takes from it, in a collective with counts for each pair. */
static int64_t pair_bytes(const struct xm_op *op, int i, bool sends)
{
    const struct xm_buffer *b = sends ? &op->buffers.send : &op->buffers.recv;
    bool                    to_or_from_root = (i == op->call.root);
    bool                    is_root = (op->call.root == op->comm->rank);

    switch (op->call.coll) {
    case XM_ALLTOALLV:
        return block_bytes(op, op->buffers.in_place ? &op->buffers.recv : b, i);
    case XM_GATHERV:
        if (sends) {
            return to_or_from_root && !op->buffers.in_place ? (int64_t)b->bytes : 0;
        }
        return (is_root && !(op->buffers.in_place && to_or_from_root)) ? block_bytes(op, b, i) : 0;
    default:
        if (sends) {
            return (is_root && !(op->buffers.in_place && to_or_from_root)) ? block_bytes(op, b, i)
                                                                           : 0;
        }
        return to_or_from_root && !op->buffers.in_place ? (int64_t)b->bytes : 0;
    }
}

enum { PAIR_FROM, PAIR_SENT, PAIR_EXPECTED, PAIR_WRONG };

/* The first pair in which one rank sends what the other does not expect. */
static xcclResult_t check_pairs(struct xm_op *op)
{
    size_t            n = (size_t)op->comm->size;
    int64_t          *sent = calloc(2 * n, sizeof(*sent));
    struct sample     mine = {{0}};
    struct sample    *all = NULL;
    xcclResult_t      res = xcclSuccess;
    struct difference none;

    if (sent == NULL) {
        return xc_fail(xcclSystemError, "out of memory for %zu ranks", n);
    }
    for (size_t i = 0; i < n; i++) {
        sent[i] = pair_bytes(op, (int)i, true);
    }
    if (xm_pmpi.Alltoall(sent, 1, XM_HANDLE(MPI_INT64_T), sent + n, 1, XM_HANDLE(MPI_INT64_T),
                         op->comm->comm) != MPI_SUCCESS) {
        free(sent);
        return xc_fail(xcclInternalError, "MPI_Alltoall failed while ranks were compared");
    }
    for (size_t i = 0; i < n; i++) {
        int64_t expected = pair_bytes(op, (int)i, false);
        if ((sent[n + i] != expected) && !mine.values[PAIR_WRONG]) {
            mine.values[PAIR_FROM] = (int64_t)i;
            mine.values[PAIR_SENT] = sent[n + i];
            mine.values[PAIR_EXPECTED] = expected;
            mine.values[PAIR_WRONG] = 1;
        }
    }
    free(sent);
    res = compare(op->comm, &mine, 0, &all, &none);
    for (int r = 0; (r < op->comm->size) && (res == xcclSuccess); r++) {
        const int64_t *v = all[r].values;
        if (v[PAIR_WRONG]) {
            res = xc_fail(xcclInvalidUsage,
                          "XCCL_CHECK: %s: rank %d sends %lld bytes to rank %d, which expects %lld",
                          xm_coll_name(op->call.coll), (int)v[PAIR_FROM], (long long)v[PAIR_SENT],
                          r, (long long)v[PAIR_EXPECTED]);
        }
    }
    xm_guarded_free(all);
    return res;
}

xcclResult_t xm_check_call(struct xm_op *op, bool valid)
{
    struct sample     mine;
    struct sample    *all;
    struct difference found;
    char              his[64], ours[64];

    if (op->comm->inter) {
        return xcclSuccess;
    }
    op->comm->asks_for = xm_coll_name(op->call.coll);
    op->comm->asks_in = op->comm->device_calls + 1;
    xcclResult_t res = xm_comm_compare(op->comm);
    if (res != xcclSuccess) {
        return res;
    }
    take_sample(op, valid, &mine);
    res = compare(op->comm, &mine, NUM_CHECKED, &all, &found);
    if ((res == xcclSuccess) && (found.rank >= 0)) {
        describe(&all[found.rank], found.value, his, sizeof(his));
        describe(&all[found.most], found.value, ours, sizeof(ours));
        res = xc_fail(xcclInvalidUsage,
                      "XCCL_CHECK: %s: %s differs between ranks: %s on rank %d, %s on rank %d",
                      xm_coll_name(op->call.coll), checked_names[found.value], his, found.rank,
                      ours, found.most);
    }
    xm_guarded_free(all);
    return ((res == xcclSuccess) && valid && xm_coll_needs_agreement(op->call.coll))
               ? check_pairs(op)
               : res;
}
