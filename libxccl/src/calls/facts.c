/* SPDX-License-Identifier: BSD-3-Clause */
#include "calls/facts.h"

#include <stdlib.h>
#include <string.h>

#include "backends/backend.h"
#include "base/log.h"
#include "base/params.h"
#include "comms/agree.h"
#include "comms/guarded.h"
#include "comms/vectors.h"
#include "tables/tables.h"

bool xm_coll_needs_agreement(enum xm_coll coll)
{
    return (coll == XM_ALLTOALLV) || (coll == XM_GATHERV) || (coll == XM_SCATTERV);
}

/* Has a vendor's library, or can compose, this collective? */
static bool has_vendor(enum xm_coll coll)
{
    return coll < XM_ALLTOALLW;
}

static bool is_reduction(enum xm_coll coll)
{
    return (coll == XM_SCAN) || (coll == XM_EXSCAN) || (coll == XM_ALLREDUCE) ||
           (coll == XM_REDUCE) || (coll == XM_REDUCE_SCATTER) || (coll == XM_REDUCE_SCATTER_BLOCK);
}

static enum xm_mem mem_of(const struct xc_device_ops *dev, enum xc_mem_kind kind)
{
    bool cuda = (strcmp(dev->name, "cuda") == 0);

    if (strcmp(dev->name, "hpu") == 0) {
        return XM_MEM_HPU; /* the host reaches none of it */
    }
    if (kind == XC_MEM_MANAGED) {
        return cuda ? XM_MEM_CUDA_MANAGED : XM_MEM_ROCM_MANAGED;
    }
    return cuda ? XM_MEM_CUDA : XM_MEM_ROCM;
}

/*
 * The buffer whose kind of memory decides: one that every rank has, so that no rank decides by a
 * buffer that means nothing to the others.
 */
static const struct xm_buffer *deciding_buffer(const struct xm_op *op)
{
    const struct xm_buffers *b = &op->buffers;

    switch (op->call.coll) {
    case XM_ALLGATHER:
    case XM_ALLGATHERV:
    case XM_ALLTOALL:
    case XM_ALLREDUCE:
        return &b->recv;
    case XM_SCATTER:
        return b->in_place ? &b->send : &b->recv;
    case XM_BCAST:
        return b->send.used ? &b->send : &b->recv;
    default:
        return b->in_place ? &b->recv : &b->send;
    }
}

/* As decide.h defines the bytes of each collective. */
static uint64_t bytes_of(const struct xm_op *op, const struct xm_buffer *decides)
{
    uint64_t bytes = (uint64_t)decides->bytes, size = (uint64_t)op->comm->size;

    switch (op->call.coll) {
    case XM_REDUCE_SCATTER:
    case XM_REDUCE_SCATTER_BLOCK:
    case XM_ALLGATHER:
    case XM_ALLGATHERV:
    case XM_ALLTOALL:
        bytes /= size;
        break;
    case XM_GATHER:
    case XM_SCATTER:
        bytes = op->buffers.in_place ? bytes / size : bytes;
        break;
    default:
        break;
    }
    return ((bytes == 0) && decides->used) ? 1 : bytes; /* little data is not no data */
}

static int device_of(const struct xm_op *op)
{
    const struct xm_buffer *both[] = {deciding_buffer(op), &op->buffers.send, &op->buffers.recv};
    int                     device = -1;

    for (int i = 0; i < 3; i++) {
        if (both[i]->used && (both[i]->mem.device >= 0)) {
            return both[i]->mem.device;
        }
    }
    if ((op->dev == NULL) || (op->dev->current(&device) != xcclSuccess)) {
        return -1;
    }
    return device;
}

/* Does either buffer lie in this kind of memory? */
static bool any_in(const struct xm_op *op, enum xc_mem_kind kind)
{
    return (op->buffers.send.used && (op->buffers.send.mem.kind == kind)) ||
           (op->buffers.recv.used && (op->buffers.recv.mem.kind == kind));
}

bool xm_touches_device(const struct xm_op *op)
{
    return any_in(op, XC_MEM_DEVICE) || any_in(op, XC_MEM_MANAGED);
}

/* One rank's part of an agreement; added up over the ranks, but for the largest of its blocks. As
 * many as a board has room for. */
enum { ON_DEVICE, NOT_CUDA, ON_MANAGED, ON_HOST, INVALID, BYTES, LARGEST, NUM_TERMS };
/* What a rank on Gaudi adds to NOT_CUDA: more than all ranks on ROCm together. */
#define ON_HPU ((int64_t)1 << 32)
_Static_assert((int)NUM_TERMS == (int)XM_SLOT_TERMS, "an agreement fits a slot");

/* In bytes, of what this rank sends to each or, at a root, receives. */
static int64_t largest_block(const struct xm_op *op)
{
    const struct xm_call    *call = &op->call;
    const struct xm_buffers *b = &op->buffers;
    bool sends = (call->coll == XM_SCATTERV) || ((call->coll == XM_ALLTOALLV) && !b->in_place);
    const struct xm_buffer *of = sends ? &b->send : &b->recv;
    const void             *counts = sends ? call->sendcounts : call->recvcounts;
    MPI_Count               most = 0;

    if (!of->used || (counts == NULL)) {
        return 0;
    }
    for (int i = 0; i < op->comm->size; i++) {
        MPI_Count count = xm_count_at(call, counts, i);
        most = (count > most) ? count : most;
    }
    return (int64_t)(most * of->layout.size);
}

static void terms_of(const struct xm_op *op, int64_t mine[NUM_TERMS])
{
    bool device = xm_touches_device(op);

    memset(mine, 0, NUM_TERMS * sizeof(mine[0]));
    mine[INVALID] = op->invalid;
    mine[ON_DEVICE] = device;
    enum xm_mem kind = device ? mem_of(op->dev, XC_MEM_DEVICE) : XM_MEM_CUDA;
    mine[NOT_CUDA] = (kind == XM_MEM_HPU) ? ON_HPU : (kind == XM_MEM_ROCM);
    mine[ON_MANAGED] = device && !any_in(op, XC_MEM_DEVICE);
    mine[ON_HOST] = !device && (op->buffers.send.used || op->buffers.recv.used);
    /* Every byte is counted once, where it arrives or, at the root alone, where it leaves. */
    mine[BYTES] = (op->call.coll == XM_SCATTERV) ? op->buffers.send.bytes : op->buffers.recv.bytes;
    mine[LARGEST] = largest_block(op);
}

static xcclResult_t ask_ranks(const struct xm_op *op, int64_t sum[NUM_TERMS])
{
    int64_t mine[NUM_TERMS];

    terms_of(op, mine);
    if (op->comm->slots_agreed) {
        int late = xm_slots_agree(op->comm->slots, mine, sum);
        return (late < 0)
                   ? xcclSuccess
                   : xc_fail(xcclTimeout,
                             "not completed within %ld s (XCCL_TIMEOUT): rank %d has not come to "
                             "%s, number %llu of its communicator of %d ranks",
                             xc_params()->timeout, late, xm_coll_name(op->call.coll),
                             (unsigned long long)op->comm->device_calls + 1, op->comm->size);
    }
    sum[LARGEST] = INT64_MAX;
    if (xm_pmpi.Allreduce(mine, sum, LARGEST, XM_HANDLE(MPI_INT64_T), XM_HANDLE(MPI_SUM),
                          op->comm->comm) != MPI_SUCCESS) {
        return xc_fail(xcclInternalError, "MPI_Allreduce failed while ranks agreed on a path");
    }
    return xcclSuccess;
}

static void take_sum(struct xm_op *op, const int64_t sum[NUM_TERMS], bool *on_device_p)
{
    struct xm_facts *facts = &op->facts;
    uint64_t         parts = (uint64_t)op->comm->size;

    /* With a wrong argument on any rank MPI gets the call, and says there what is wrong. */
    op->largest_bytes = (uint64_t)((sum[LARGEST] < sum[BYTES]) ? sum[LARGEST] : sum[BYTES]);
    *on_device_p = (sum[ON_DEVICE] > 0) && (sum[INVALID] == 0);
    bool managed = (sum[ON_MANAGED] == sum[ON_DEVICE]);
    if (sum[NOT_CUDA] >= ON_HPU) {
        facts->mem = XM_MEM_HPU;
    } else if (sum[NOT_CUDA] > 0) {
        facts->mem = managed ? XM_MEM_ROCM_MANAGED : XM_MEM_ROCM;
    } else {
        facts->mem = managed ? XM_MEM_CUDA_MANAGED : XM_MEM_CUDA;
    }
    facts->bytes = (uint64_t)sum[BYTES] / ((op->call.coll == XM_ALLTOALLV) ? parts * parts : parts);
    if ((sum[BYTES] > 0) && (facts->bytes == 0)) {
        facts->bytes = 1; /* little data is not no data */
    }
    if (*on_device_p && (sum[ON_HOST] > 0)) {
        facts->obstacle = "some ranks pass host memory";
    }
}

static xcclResult_t agreed_facts(struct xm_op *op, bool *on_device_p)
{
    int64_t      sum[NUM_TERMS];
    xcclResult_t res = ask_ranks(op, sum);

    if (res == xcclSuccess) {
        take_sum(op, sum, on_device_p);
    }
    return res;
}

xcclResult_t xm_facts_of_starts(struct xm_op *op, struct xm_comm *own)
{
    int64_t      mine[NUM_TERMS], sum[NUM_TERMS] = {0};
    void        *all;
    bool         on_device = false;
    xcclResult_t res;

    terms_of(op, mine);
    res = xm_comm_collect(own, mine, sizeof(mine), &all);
    if (res != xcclSuccess) {
        return res;
    }
    for (int i = 0; i < own->size; i++) {
        const int64_t *terms = (const int64_t *)all + (size_t)i * NUM_TERMS;
        for (int t = 0; t < LARGEST; t++) {
            sum[t] += terms[t];
        }
        sum[LARGEST] = (terms[LARGEST] > sum[LARGEST]) ? terms[LARGEST] : sum[LARGEST];
    }
    xm_guarded_free(all);
    take_sum(op, sum, &on_device);
    own->starts.known = true;
    own->starts.on_device = on_device && (op->facts.obstacle == NULL);
    own->starts.mem = (int)op->facts.mem;
    own->starts.bytes = op->facts.bytes;
    own->starts.largest = op->largest_bytes;
    return xcclSuccess;
}

/* Every start is of the same counts, and of the same memory. */
static void facts_of_start(struct xm_op *op, bool *on_device_p)
{
    op->facts.mem = (enum xm_mem)op->comm->starts.mem;
    op->facts.bytes = op->comm->starts.bytes;
    op->largest_bytes = op->comm->starts.largest;
    *on_device_p = op->comm->starts.on_device && !op->invalid;
}

/* By MPI's own symmetry. */
static bool symmetric_facts(struct xm_op *op)
{
    const struct xm_buffer *decides = deciding_buffer(op);

    op->facts.bytes = bytes_of(op, decides);
    if (!decides->used || (decides->mem.kind == XC_MEM_HOST)) {
        return false;
    }
    op->facts.mem = mem_of(op->dev, decides->mem.kind);
    return true;
}

const char *xm_facts_obstacle(struct xm_op *op)
{
    if (is_reduction(op->call.coll)) {
        op->no_reduction = xm_reduction_of(op->call.sendtype, op->call.op, &op->reduction);
        if ((op->no_reduction == NULL) && op->reduction.integer && op->comm->integers_differ) {
            op->no_reduction = "the ranks' MPIs reduce integers differently";
        }
    }
    if (op->facts.bytes == 0) {
        return "no data";
    }
    if (xc_params()->route != XC_ROUTE_XCCL) {
        return "XCCL_ROUTE is not xccl";
    }
    return op->facts.obstacle;
}

/*
 * Do the blocks of this call consist of whole words of two bytes? A block's bytes are equal on all
 * ranks, the size of an element is not: ranks may describe a block by different types. Blocks of
 * different lengths are not asked for: not every rank knows all of them.
 */
static bool is_of_words(const struct xm_op *op)
{
    const struct xm_buffer *b = op->buffers.recv.used ? &op->buffers.recv : &op->buffers.send;

    switch (op->call.coll) {
    case XM_BCAST:
        return b->bytes % XC_WORD_BYTES == 0;
    case XM_ALLGATHER:
    case XM_ALLTOALL:
        return (b->bytes / op->comm->size) % XC_WORD_BYTES == 0;
    default:
        return false;
    }
}

const char *xm_facts_vendor_obstacle(const struct xm_op *op)
{
    bool alltoall = (op->call.coll == XM_ALLTOALL) || (op->call.coll == XM_ALLTOALLV);

    if (xc_params()->ccl == XC_CCL_NONE) {
        return "XCCL_CCL=none";
    }
    if (!has_vendor(op->call.coll)) {
        return "a collective that the vendors' libraries lack";
    }
    if (alltoall && op->buffers.in_place &&
        (op->facts.bytes > ((uint64_t)xc_params()->scratch << 20) / (uint64_t)op->comm->size)) {
        return "in place and too long for a copy";
    }
    if (!is_reduction(op->call.coll) && !xc_backend_moves_bytes() && !is_of_words(op)) {
        return "data that the vendor's library moves in words of two bytes only";
    }
    if (!is_reduction(op->call.coll) || (op->no_reduction != NULL)) {
        return op->no_reduction;
    }
    return xc_backend_reduces(op->reduction.type, op->reduction.op)
               ? NULL
               : "type or operation that this version of the vendor's library lacks";
}

bool xm_facts_local(struct xm_op *op)
{
    op->device = device_of(op);
    return symmetric_facts(op);
}

/* Does the direct path serve the communicator, or may it yet? */
static bool is_direct_hoped_for(const struct xm_comm *xm)
{
    bool asked_for = (xc_params()->direct != XC_DIRECT_OFF) && (xm_comm_join != NULL) &&
                     ((xm_comm_state_now(xm) == XM_COMM_NEW) || xm_comm_join->wanted(xm));

    return (xm->direct_state == XM_DIRECT_JOINED) ||
           ((xm->direct_state == XM_DIRECT_UNKNOWN) && asked_for);
}

/* May the ranks be asked, and is there a reason to? */
static bool ask(const struct xm_op *op)
{
    bool vendor = (xc_params()->ccl != XC_CCL_NONE) && (op->comm->state != XM_COMM_FAILED);
    bool direct = is_direct_hoped_for(op->comm);

    return op->comm->tracked && (op->call.form == XM_BLOCKING) && (op->comm->size > 1) &&
           !op->comm->inter && (xc_params()->route == XC_ROUTE_XCCL) && (vendor || direct);
}

/*
 * Has any rank come with device memory to this communicator's calls with counts of their own? Asked
 * at calls number 1, 4, 16, ...: a program that passes host memory hardly notices, and one that
 * passes GiB of device memory need not stage them once.
 */
static xcclResult_t track_vector_calls(struct xm_op *op)
{
    struct xm_comm *xm = op->comm;
    int             mine = 0, any = 0;

    if (xm->tracked || xm->inter || (xm->size == 1) || (op->call.form != XM_BLOCKING) ||
        (xc_params()->route != XC_ROUTE_XCCL)) {
        return xcclSuccess;
    }
    xm->vector_on_device = xm->vector_on_device || xm_touches_device(op);
    op->vector = true; /* counted once MPI has carried it: it may refuse it on this rank alone */
    uint64_t n = xm->vector_calls + 1;
    bool     asks = ((n & (n - 1)) == 0) && ((__builtin_ctzll(n) & 1) == 0);
    if (!asks) {
        return xcclSuccess;
    }
    mine = xm->vector_on_device;
    xm->asks_for = xm_coll_name(op->call.coll);
    xm->asks_in = xm->device_calls + 1;
    xcclResult_t res = xm_comm_greatest(xm, mine, &any);
    xm->tracked = (res == xcclSuccess) && (any != 0);
    return res;
}

/* Of a communicator with one rank, which has nobody to agree with: any memory of a device counts.
 */
static bool facts_alone(struct xm_op *op)
{
    MPI_Count send = op->buffers.send.bytes, recv = op->buffers.recv.bytes;
    bool      device = xm_touches_device(op);

    op->facts.bytes = (uint64_t)((send > recv) ? send : recv);
    op->facts.mem = XM_MEM_CUDA;
    if (device) {
        op->facts.mem = mem_of(op->dev, any_in(op, XC_MEM_DEVICE) ? XC_MEM_DEVICE : XC_MEM_MANAGED);
    }
    return device;
}

/*
 * May the ranks show each other the counts of a call that does not wait? By what is equal on all of
 * them, and the same from one call to the next but for what they have agreed on.
 */
bool xm_facts_may_be_shown(const struct xm_comm *xm, enum xm_coll coll)
{
    return xm_coll_needs_agreement(coll) && xm->slots_agreed && (xm->size <= XM_VECTORS_RANKS) &&
           (xc_params()->memory == XC_MEMORY_SAME) && (xc_params()->route == XC_ROUTE_XCCL);
}

/* Its bytes are this rank's, and nothing is decided by them. */
static bool facts_to_be_shown(struct xm_op *op)
{
    MPI_Count bytes = op->buffers.send.bytes + op->buffers.recv.bytes;

    op->counts_later = xm_vectors_call(op->comm, xm_touches_device(op));
    op->facts.bytes = (bytes > 0) ? (uint64_t)bytes : 1;
    op->facts.mem = (op->dev != NULL) ? mem_of(op->dev, XC_MEM_DEVICE) : XM_MEM_CUDA;
    return op->counts_later;
}

xcclResult_t xm_facts_of(struct xm_op *op, bool *on_device_p)
{
    bool         asks = xm_coll_needs_agreement(op->call.coll);
    bool         mixed = (xc_params()->memory == XC_MEMORY_MIXED);
    xcclResult_t res = xcclSuccess;

    *on_device_p = false;
    op->facts.coll = op->call.coll;
    op->facts.nranks = op->comm->size;
    op->device = device_of(op);
    if ((op->comm->size == 1) && !op->comm->inter && xm_coll_alone_on_device(op->call.coll)) {
        *on_device_p = facts_alone(op);
        return xcclSuccess;
    }
    if (!xm_coll_on_device(op->call.coll) || op->comm->inter) {
        op->facts.bytes = (uint64_t)(op->buffers.send.bytes + op->buffers.recv.bytes);
        op->facts.mem = (op->dev != NULL) ? mem_of(op->dev, XC_MEM_DEVICE) : XM_MEM_CUDA;
        return xcclSuccess;
    }
    if (asks && op->comm->starts.known) {
        facts_of_start(op, on_device_p);
        return xcclSuccess;
    }
    if ((op->call.form == XM_NONBLOCKING) && xm_facts_may_be_shown(op->comm, op->call.coll)) {
        *on_device_p = facts_to_be_shown(op);
        return xcclSuccess;
    }
    if (mixed) {
        op->comm->tracked = true;
    } else if (asks) {
        res = track_vector_calls(op);
    }
    if (asks || mixed) {
        if ((res == xcclSuccess) && ask(op)) {
            op->comm->asks_for = xm_coll_name(op->call.coll);
            op->comm->asks_in = op->comm->device_calls + 1;
            res = mixed ? xm_comm_compare(op->comm) : xcclSuccess;
        }
        if ((res == xcclSuccess) && ask(op)) {
            res = agreed_facts(op, on_device_p);
        }
    } else {
        *on_device_p = symmetric_facts(op);
        op->comm->tracked = op->comm->tracked || *on_device_p;
    }
    return res;
}

/* us: of each call; per_us: bytes. */
static double saving_us(const struct xm_facts *facts, double us, double per_us)
{
    bool all = (facts->coll == XM_ALLGATHER) || (facts->coll == XM_ALLGATHERV) ||
               (facts->coll == XM_ALLTOALL) || (facts->coll == XM_ALLTOALLV);
    double bytes = (double)facts->bytes * (all ? facts->nranks : 1);
    /* 4 H200s, NCCL: 18 us and some 150 GB/s. */
    double now = us + bytes / per_us, vendor = 18.0 + bytes / 150000.0;

    return (now > vendor) ? now - vendor : 0.0;
}

double xm_facts_saving_us(const struct xm_facts *facts)
{
    return saving_us(facts, 12.0, 2000.0); /* 2 and 4 H200s, staged: 12 us and 1 to 6 GB/s */
}

double xm_facts_worth_us(const struct xm_comm *xm, const struct xm_op *op)
{
    if (xm->direct_state != XM_DIRECT_UNKNOWN) {
        return 0.0; /* nobody waits for it */
    }
    /* Through a GPU-aware MPI less is lost; how much is not measured, 50 GB/s is a guess. */
    return ((op->dev != NULL) && xm_mpi_gpu_aware(op->dev->name))
               ? saving_us(&op->facts, 18.0, 50000.0)
               : xm_facts_saving_us(&op->facts);
}

double xm_facts_saving_over_direct_us(const struct xm_facts *facts, bool in_rounds)
{
    /* 2 H200s, in rounds: 12 us and 60 to 150 GB/s. Else the two are close. */
    return in_rounds ? saving_us(facts, 12.0, 60000.0) : saving_us(facts, 18.0, 140000.0);
}

xcclResult_t xm_rules_of(struct xm_comm *xm, const struct xm_rules **rules_p)
{
    const struct xm_rules *rules = __atomic_load_n(&xm->rules, __ATOMIC_ACQUIRE);

    if (__builtin_expect(rules == NULL, 0)) {
        xcclResult_t res = xm_tables_rules(&xm->setting, &rules);
        if (res != xcclSuccess) {
            return res;
        }
        __atomic_store_n(&xm->rules, rules, __ATOMIC_RELEASE);
    }
    *rules_p = rules;
    return xcclSuccess;
}
