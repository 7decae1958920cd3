/* SPDX-License-Identifier: BSD-3-Clause */
#include "calls/choice.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/params.h"
#include "calls/calls.h"
#include "calls/facts.h"
#include "calls/observed.h"
#include "calls/obstacles.h"
#include "comms/agree.h"
#include "comms/creation.h"
#include "comms/vectors.h"
#include "data/pools.h"
#include "ops/record.h"
#include "paths/direct.h"
#include "paths/self.h"
#include "tables/tables.h"

/* What MPI_Init could not say yet: nothing of a device is touched before the program uses one. */
static void say_first_use(const struct xm_op *op)
{
    static bool said; /* atomic */

    if (!__atomic_exchange_n(&said, true, __ATOMIC_RELAXED)) {
        bool aware = xm_mpi_gpu_aware(op->dev->name);
        xc_info("device memory is in use (%s); MPI is %sGPU-aware%s", op->dev->name,
                aware ? "" : "not ",
                aware ? "" : ", so calls that are left to it are staged through host memory");
    }
}

/* A bit for the path, and one for the reason: what is said once of either is enough. */
static uint64_t bits_of(const struct xm_choice *choice, const struct xm_path *path)
{
    enum { FIRST_REASON = XM_NUM_PATHS + 1 };
    unsigned at = (path == &xm_path_self) ? XM_NUM_PATHS : (unsigned)choice->path;
    uint64_t reason = xc_hash_text(XC_HASH_BEGIN, choice->reason) % (64 - FIRST_REASON);

    return (UINT64_C(1) << at) | (UINT64_C(1) << (FIRST_REASON + reason));
}

/* At info on rank 0, once per collective, size class, path and reason; at trace every call. */
static void log_choice(const struct xm_op *op, const struct xm_choice *choice,
                       const struct xm_path *path)
{
    static uint64_t        seen[XM_NUM_COLLS][66];
    const struct xm_facts *facts = &op->facts;
    char                   sizes[64];

    if (!xc_log_enabled(XC_LOG_INFO)) {
        return;
    }
    if (xc_log_enabled(XC_LOG_TRACE)) {
        xc_trace("%s of %llu bytes in %s on %d ranks: %s (%s)", xm_coll_name(facts->coll),
                 (unsigned long long)facts->bytes, xm_mem_name(facts->mem), facts->nranks,
                 path->name, choice->reason);
        return;
    }
    int      size_class = xm_size_class(facts->bytes);
    uint64_t bits = bits_of(choice, path);
    if ((op->comm->rank != 0) ||
        ((__atomic_fetch_or(&seen[facts->coll][size_class], bits, __ATOMIC_RELAXED) & bits) ==
         bits)) {
        return;
    }
    xm_size_class_text(size_class, sizes, sizeof(sizes));
    say_first_use(op);
    xc_info("%s of %s in %s on %d ranks: %s (%s)", xm_coll_name(facts->coll), sizes,
            xm_mem_name(facts->mem), facts->nranks, path->name, choice->reason);
}

const struct xm_path *xm_collective_path_to_mpi(const struct xm_op *op, bool on_copies)
{
    bool device = xm_on_device(&op->buffers.send) || xm_on_device(&op->buffers.recv);

    return (device && (op->dev != NULL) && (on_copies || !xm_mpi_gpu_aware(op->dev->name)))
               ? &xm_path_staged
               : &xm_path_mpi;
}

/*
 * A derived type that was not committed must be refused before anything is enqueued. Only functions
 * that use a type look: packing no element is one. The error reaches the program from there.
 */
static int check_buffer(const struct xm_op *op, const struct xm_buffer *buffer)
{
    char none[1] = {0};
    int  position = 0;

    if (!buffer->used || !buffer->layout.derived) {
        return MPI_SUCCESS;
    }
    return xm_pmpi.Pack(none, 0, buffer->type, none, 0, &position, op->comm->comm);
}

/* Each block may be of another type. */
static int check_blocks(const struct xm_op *op, const struct xm_buffer *buffer)
{
    int code = MPI_SUCCESS;

    for (int i = 0; buffer->used && (i < buffer->blocks) && (code == MPI_SUCCESS); i++) {
        struct xm_block  block = xm_block_at(&op->call, buffer, i);
        struct xm_buffer one = {.used = true, .type = block.type, .layout = *block.layout};
        code = (block.count > 0) ? check_buffer(op, &one) : code;
    }
    return code;
}

static int check(const struct xm_op *op, const struct xm_buffer *buffer)
{
    return (buffer->types != NULL) ? check_blocks(op, buffer) : check_buffer(op, buffer);
}

int xm_collective_check_types(const struct xm_op *op)
{
    int code = check(op, &op->buffers.send);

    return (code == MPI_SUCCESS) ? check(op, &op->buffers.recv) : code;
}

bool xm_collective_takes_turns(const struct xm_op *op)
{
    return op->call.start && (op->comm->size == 1) && !op->comm->inter;
}

/* With a lock held it is left for later: the program's handler may leave by longjmp(). */
static int check_unless_in_turn(const struct xm_op *op)
{
    return xm_collective_takes_turns(op) ? MPI_SUCCESS : xm_collective_check_types(op);
}

/* For whoever asks why a path that was wished for did not carry a call. */
static void note_obstacles(const struct xm_comm *xm, const char *vendor, const char *direct)
{
    bool named = (direct != NULL) && (xm->direct_state == XM_DIRECT_NEVER) && xm->direct_reason[0];

    if (vendor == NULL) {
        vendor = (xm->state == XM_COMM_FAILED) ? xm->reason
                 : xm->doubled                 ? "some ranks share a device"
                                               : NULL;
    }
    xm_obstacle_note(xm, XM_PATH_CCL, vendor);
    xm_obstacle_note(xm, XM_PATH_DIRECT, named ? xm->direct_reason : direct);
}

/* The paths that could carry it, and why not the others. */
static unsigned available_paths(struct xm_op *op)
{
    const char *vendor, *direct;
    unsigned    available = (1u << XM_PATH_MPI) | (1u << XM_PATH_STAGED);

    op->facts.obstacle = xm_facts_obstacle(op);
    if (op->facts.obstacle != NULL) {
        xm_obstacle_note(op->comm, XM_PATH_CCL, op->facts.obstacle);
        xm_obstacle_note(op->comm, XM_PATH_DIRECT, op->facts.obstacle);
        return available;
    }
    vendor = xm_facts_vendor_obstacle(op);
    direct = op->obstacle = xm_direct_obstacle(op);
    if ((vendor != NULL) && (direct != NULL)) {
        /* Without a vendor's library by choice, the direct path is what is missed. */
        bool missed = (xc_params()->ccl == XC_CCL_NONE) && (xc_params()->direct != XC_DIRECT_OFF) &&
                      (op->comm->one_node || op->comm->slots_agreed);
        op->facts.obstacle = missed ? direct : vendor;
    }
    /* A row that wants the vendor's library is left out where it never comes, and kernels do. */
    bool never = (direct == NULL) && ((op->comm->state == XM_COMM_FAILED) || op->comm->doubled);
    note_obstacles(op->comm, vendor, direct);
    return available | (unsigned)((vendor == NULL) && !never) << XM_PATH_CCL |
           (unsigned)(direct == NULL) << XM_PATH_DIRECT;
}

/* Why there is no communicator of the vendor's library yet. */
static const char *vendor_later(const struct xm_comm *xm)
{
    return xm->quiet ? "MPI_Comm_idup was called on it, or its ranks have unlike memory"
                     : "a vendor communicator has not paid for itself yet";
}

/* MPI, while there is no communicator of the vendor's library. */
static const struct xm_path *mpi_meanwhile(struct xm_op *op, enum xm_comm_state state,
                                           struct xm_choice *choice)
{
    struct xm_comm *xm = op->comm;

    xm_comm_saved(xm, xm_facts_saving_us(&op->facts), op->dev, op->device);
    bool pending = (xc_params()->direct != XC_DIRECT_OFF) &&
                   (xm->direct_state != XM_DIRECT_JOINED) && (xm->direct_state != XM_DIRECT_NEVER);
    /* The vendors' libraries refuse ranks that share a device, so none is to be waited for. */
    const char *turns = (xm->direct_state == XM_DIRECT_JOINED) ? xm_direct_turns(op) : NULL;
    turns = (turns == op->obstacle) ? turns : NULL;

    choice->path = XM_PATH_MPI;
    choice->reason = vendor_later(xm);
    if (state == XM_COMM_FAILED) {
        choice->reason = xm->reason;
    } else if (pending && !xm->quiet) {
        choice->reason = "a first call, before the direct path is ready";
    } else if ((turns != NULL) && !xm->quiet) {
        choice->reason = turns;
    }
    xm_obstacle_note(xm, XM_PATH_CCL, choice->reason);
    return xm_collective_path_to_mpi(op, false);
}

/*
 * Chosen is the vendor's library, or the direct path in rounds, which carry twice the bytes. The
 * library carries it once it can, where the tables have it for such calls; until then the direct
 * path, where they have that; else MPI.
 */
static const struct xm_path *vendor_once_ready(struct xm_op *op, const struct xm_rules *rules,
                                               unsigned available, struct xm_choice *choice)
{
    enum xm_comm_state state = xm_comm_state_now(op->comm);
    struct xm_choice   other = xm_decide(rules, available & ~(1u << choice->path), &op->facts);
    bool               direct = (choice->path == XM_PATH_DIRECT);

    if (direct && (other.path != XM_PATH_CCL)) {
        return &xm_path_direct;
    }
    if (state == XM_COMM_READY) {
        *choice = direct ? other : *choice;
        return &xm_path_ccl;
    }
    if (!direct && (other.path != XM_PATH_DIRECT)) {
        return mpi_meanwhile(op, state, choice);
    }
    if (!direct) { /* not by a row of its own, but because the one for the library has to wait */
        *choice = other;
        choice->reason = vendor_later(op->comm);
        xm_obstacle_note(op->comm, XM_PATH_CCL, choice->reason);
    }
    xm_comm_saved(op->comm, xm_facts_saving_over_direct_us(&op->facts, op->rounds > 0), op->dev,
                  op->device);
    return &xm_path_direct;
}

/*
 * For an operation that the direct path may have to give up. Of one that is not blocking it is not
 * known whether it goes in rounds instead, so what the library would save is reckoned as if it did.
 */
static const struct xm_path *path_without_direct(const struct xm_op    *op,
                                                 const struct xm_rules *rules, unsigned available)
{
    struct xm_choice other = xm_decide(rules, available & ~(1u << XM_PATH_DIRECT), &op->facts);

    if ((other.path == XM_PATH_CCL) && (xm_comm_state_now(op->comm) == XM_COMM_READY)) {
        return &xm_path_ccl;
    }
    if ((other.path == XM_PATH_CCL) && (op->instead > 0)) {
        xm_comm_saved(op->comm, xm_facts_saving_over_direct_us(&op->facts, true), op->dev,
                      op->device);
    }
    return xm_collective_path_to_mpi(op, other.path == XM_PATH_STAGED);
}

/*
 * What the communicator has on the device is gone if the program has reset that. The other ranks
 * may not have done so, and would wait for this one on a path that it cannot take any more.
 */
static void look_for_reset(struct xm_comm *xm)
{
    struct xm_vendor *vendor = xm_comm_hold_vendor(xm);
    int               device = -1;

    if (vendor != NULL) {
        device = xm_vendor_lost(vendor) ? vendor->device : -1;
        xm_vendor_release(vendor);
    }
    if ((xm->direct != NULL) && xm_direct_lost(xm->direct)) {
        device = xm->direct->device;
    }
    if (device >= 0) {
        char text[256];
        snprintf(text, sizeof(text),
                 "the program has reset device %d (as cudaDeviceReset does), and with it what the "
                 "communicator had there; go on with a duplicate of the communicator",
                 device);
        xm_comm_break(xm, text);
    }
}

/* Does the only rank copy its data itself? Not where a row asks for another path that is there. */
static bool is_for_self(const struct xm_op *op, const struct xm_rules *rules, unsigned available)
{
    struct xm_facts facts = op->facts;

    facts.obstacle = NULL;
    return (xm_self_obstacle(op) == NULL) && !xm_decide(rules, available, &facts).by_row;
}

static void choose_self(struct xm_op *op, const struct xm_rules *rules, unsigned available,
                        const struct xm_path **path_p)
{
    struct xm_choice choice = {XM_PATH_MPI, "the data of the only rank goes to itself", false};

    op->facts.obstacle = NULL;
    op->code = check_unless_in_turn(op);
    if (op->code != MPI_SUCCESS) {
        return;
    }
    log_choice(op, &choice, &xm_path_self);
    if (__builtin_expect(xm_observing, 0)) {
        xm_seen_choice(op, rules, &choice, available);
    }
    *path_p = &xm_path_self;
}

/*
 * Messages between pairs: the vendor's library wants of a rank what that knows. In place it takes
 * a copy, and whether there is room for that depends on the bytes.
 */
static bool vendor_needs_no_counts(const struct xm_op *op)
{
    bool made = (xm_comm_state_now(op->comm) == XM_COMM_READY);

    return (op->facts.obstacle == NULL) && (op->call.coll == XM_ALLTOALLV) &&
           !op->buffers.in_place && made;
}

/* Kernels carry blocks of any length, if the tables have them for all; else MPI has the call. */
static struct xm_choice choose_later(const struct xm_op *op, const struct xm_rules *rules,
                                     unsigned available)
{
    unsigned without = available & ~(1u << XM_PATH_CCL);

    if (vendor_needs_no_counts(op) &&
        xm_decides_always(rules, available, &op->facts, XM_PATH_CCL)) {
        if (op->buffers.send.used || op->buffers.recv.used) {
            xm_vectors_seen(op->comm, xm_touches_device(op));
        }
        return (struct xm_choice){XM_PATH_CCL, "each rank's own counts are enough", true};
    }
    if ((op->facts.obstacle == NULL) &&
        xm_decides_always(rules, without, &op->facts, XM_PATH_DIRECT)) {
        return (struct xm_choice){XM_PATH_DIRECT, "the ranks show their counts when all have come",
                                  true};
    }
    return (struct xm_choice){XM_PATH_MPI, "a non-blocking call with counts of each rank's own",
                              false};
}

static const struct xm_path *path_of_choice(struct xm_op *op, const struct xm_rules *rules,
                                            unsigned available, struct xm_choice *choice)
{
    const struct xm_path *path;

    if ((choice->path == XM_PATH_CCL) || ((choice->path == XM_PATH_DIRECT) && (op->rounds > 0))) {
        path = vendor_once_ready(op, rules, available, choice);
    } else if (choice->path == XM_PATH_DIRECT) {
        path = &xm_path_direct;
    } else {
        path = xm_collective_path_to_mpi(op, choice->path == XM_PATH_STAGED);
    }
    op->counts_later = op->counts_later && (path == &xm_path_direct);
    if ((path == &xm_path_direct) && !op->counts_later &&
        (op->mapped || xm_direct_is_checked(op))) {
        op->otherwise = path_without_direct(op, rules, available);
    }
    return path;
}

/* Device memory on all ranks: which path? Every rank comes to the same answer. */
static xcclResult_t choose_on_device(struct xm_op *op, const struct xm_path **path_p)
{
    struct xm_comm        *xm = op->comm;
    const struct xm_path  *path;
    const struct xm_rules *rules;

    xm_obstacles_forget();
    look_for_reset(xm);
    xm_pools_age();
    op->record = xm_record_begin(op, XM_COUNTED); /* the others may never come to agree on it */
    xcclResult_t res = xm_comm_agree(xm, op->call.coll, op->call.form == XM_BLOCKING,
                                     xm_facts_worth_us(xm, op), op->dev, op->device);
    if (res == xcclSuccess) {
        res = xm_rules_of(xm, &rules);
    }
    if (res != xcclSuccess) {
        return res;
    }
    unsigned available = available_paths(op);
    if (is_for_self(op, rules, available)) {
        choose_self(op, rules, available, path_p);
        return xcclSuccess;
    }
    struct xm_choice choice = op->counts_later ? choose_later(op, rules, available)
                                               : xm_decide(rules, available, &op->facts);
    if ((choice.path == XM_PATH_CCL) || (choice.path == XM_PATH_DIRECT)) {
        op->code = check_unless_in_turn(op);
        if (op->code != MPI_SUCCESS) {
            return xcclSuccess;
        }
    }
    path = path_of_choice(op, rules, available, &choice);
    /* Only now: what a vendor communicator saves is added up alike on all ranks. */
    if (((path == &xm_path_ccl) || (path == &xm_path_direct)) && xm_comm_is_broken(xm)) {
        return xc_fail(xcclInvalidUsage, "%s", xm->reason);
    }
    log_choice(op, &choice, path);
    if (__builtin_expect(xm_observing, 0)) {
        xm_seen_choice(op, rules, &choice, available);
    }
    *path_p = path;
    return xcclSuccess;
}

/*
 * Of one rank, which has nobody to agree with: first by the rows that need no agreement, as if the
 * vendor's library was there.
 */
static xcclResult_t choose_alone(struct xm_op *op, const struct xm_path **path_p)
{
    const unsigned any =
        (1u << XM_PATH_MPI) | (1u << XM_PATH_CCL) | (1u << XM_PATH_STAGED); /* not direct */
    const struct xm_rules *rules;

    if (!xm_tables_for_one_rank()) {
        xcclResult_t res = xm_rules_of(op->comm, &rules);
        if (res != xcclSuccess) {
            return res;
        }
        if (is_for_self(op, rules, any)) {
            choose_self(op, rules, any, path_p);
            return xcclSuccess;
        }
    }
    return choose_on_device(op, path_p);
}

xcclResult_t xm_collective_choose(struct xm_op *op, const struct xm_path **path_p)
{
    return (op->comm->size == 1) ? choose_alone(op, path_p) : choose_on_device(op, path_p);
}
