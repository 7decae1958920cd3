/* SPDX-License-Identifier: BSD-3-Clause */
#include "api/check.h"

#include <stdint.h>

#include "base/log.h"
#include "vendor/vendor.h"

enum who { NOBODY, EVERYONE, AT_ROOT }; /* on which ranks is a buffer significant? */
enum shape { ONE, BLOCKS, VECTOR };     /* count elements, nranks times count, counts[] */

static const struct rule {
    const char *name;
    bool        has_op;
    const char *root; /* how the argument is called; NULL: has none */
    enum who    send, recv;
    enum shape  send_shape, recv_shape;
} rules[XC_NUM_COLLS] = {
    [XC_ALLREDUCE] = {"xcclAllReduce", true, NULL, EVERYONE, EVERYONE, ONE, ONE},
    [XC_BROADCAST] = {"xcclBroadcast", false, "root", AT_ROOT, EVERYONE, ONE, ONE},
    [XC_REDUCE] = {"xcclReduce", true, "root", EVERYONE, AT_ROOT, ONE, ONE},
    [XC_REDUCE_SCATTER] = {"xcclReduceScatter", true, NULL, EVERYONE, EVERYONE, BLOCKS, ONE},
    [XC_ALLGATHER] = {"xcclAllGather", false, NULL, EVERYONE, EVERYONE, ONE, BLOCKS},
    [XC_ALLGATHERV] = {"xcclAllGatherv", false, NULL, EVERYONE, EVERYONE, ONE, VECTOR},
    [XC_ALLTOALL] = {"xcclAlltoAll", false, NULL, EVERYONE, EVERYONE, BLOCKS, BLOCKS},
    [XC_ALLTOALLV] = {"xcclAlltoAllv", false, NULL, EVERYONE, EVERYONE, VECTOR, VECTOR},
    [XC_GATHER] = {"xcclGather", false, "root", EVERYONE, AT_ROOT, ONE, BLOCKS},
    [XC_GATHERV] = {"xcclGatherv", false, "root", EVERYONE, AT_ROOT, ONE, VECTOR},
    [XC_SCATTER] = {"xcclScatter", false, "root", AT_ROOT, EVERYONE, BLOCKS, ONE},
    [XC_SCATTERV] = {"xcclScatterv", false, "root", AT_ROOT, EVERYONE, VECTOR, ONE},
    [XC_SEND] = {"xcclSend", false, "peer", EVERYONE, NOBODY, ONE, ONE},
    [XC_RECV] = {"xcclRecv", false, "peer", NOBODY, EVERYONE, ONE, ONE},
};

const char *xc_call_name(enum xc_coll coll)
{
    return rules[coll].name;
}

static xcclResult_t check_type_and_op(xcclComm_t comm, const struct xc_coll_args *args,
                                      const struct rule *rule)
{
    char version[16];

    if ((unsigned)args->datatype >= xcclNumTypes) {
        return xc_fail(xcclInvalidArgument, "%s: datatype is %d, it must be 0 to %d", rule->name,
                       (int)args->datatype, xcclNumTypes - 1);
    }
    if (rule->has_op && ((int)args->op < 0)) {
        return xc_fail(xcclInvalidArgument,
                       "%s: op is %d, it must be 0 to %d or made by xcclRedOpCreatePreMulSum",
                       rule->name, (int)args->op, xcclNumOps - 1);
    }
    if (!comm->ops->supports(args->coll, args->datatype, args->op)) {
        const char *op = rule->has_op ? xc_op_name(args->op) : "";
        return xc_fail(xcclUnsupported,
                       "%s: %s %s cannot do %s%s%s; use a newer library or another type",
                       rule->name, comm->lib->name,
                       xc_nccl_version_text(comm->lib->version, version, sizeof(version)),
                       xc_type_name(args->datatype), rule->has_op ? " " : "",
                       (op != NULL) ? op : "with an operation of your own");
    }
    return xcclSuccess;
}

/* Sum of a displacement and a count in bytes, into the largest so far; false if it overflows. */
static bool stretch(size_t displ, size_t count, size_t size, size_t *bytes_p)
{
    size_t end;

    if (count == 0) {
        return true;
    }
    if (__builtin_add_overflow(displ, count, &end) || __builtin_mul_overflow(end, size, &end) ||
        (end > PTRDIFF_MAX)) {
        return false;
    }
    *bytes_p = (end > *bytes_p) ? end : *bytes_p;
    return true;
}

/* One side of a call. */
struct side {
    const char   *buffer_name;
    const void   *buffer;
    enum shape    shape;
    const size_t *counts;
    const size_t *displs;
    size_t        bytes; /* out: from the buffer's begin to the end of its last element */
};

static xcclResult_t measure_vector(const struct rule *rule, struct side *side, size_t size,
                                   int nranks, bool displs_may_be_null)
{
    size_t packed = 0;

    if ((side->counts == NULL) || ((side->displs == NULL) && !displs_may_be_null)) {
        return xc_fail(xcclInvalidArgument, "%s: the %s of %s are NULL; pass arrays of %d elements",
                       rule->name, (side->counts == NULL) ? "counts" : "displacements",
                       side->buffer_name, nranks);
    }
    for (int r = 0; r < nranks; r++) {
        size_t displ = (side->displs != NULL) ? side->displs[r] : packed;
        if (!stretch(displ, side->counts[r], size, &side->bytes)) {
            return xc_fail(xcclInvalidArgument,
                           "%s: %zu elements at displacement %zu of %s (rank %d) go beyond any "
                           "memory; counts are in elements and not negative",
                           rule->name, side->counts[r], displ, side->buffer_name, r);
        }
        packed += side->counts[r];
    }
    return xcclSuccess;
}

static xcclResult_t measure(const struct rule *rule, const struct xc_coll_args *args,
                            struct side *side, int nranks)
{
    size_t       size = xc_type_size(args->datatype);
    xcclResult_t rc = xcclSuccess;

    if (side->shape == VECTOR) {
        rc = measure_vector(rule, side, size, nranks, args->coll == XC_ALLGATHERV);
    } else {
        size_t blocks = (side->shape == BLOCKS) ? (size_t)nranks : 1;
        if (!stretch(0, args->count, size * blocks, &side->bytes)) {
            rc = xc_fail(xcclInvalidArgument,
                         "%s: %zu elements of %s (%zu blocks) go beyond any memory; counts are in "
                         "elements and not negative",
                         rule->name, args->count, xc_type_name(args->datatype), blocks);
        }
    }
    if ((rc == xcclSuccess) && (side->bytes > 0) && (side->buffer == NULL)) {
        rc = xc_fail(xcclInvalidArgument, "%s: %s is NULL but has %zu bytes", rule->name,
                     side->buffer_name, side->bytes);
    }
    return rc;
}

/*
 * In place means: where both sides have one shape, the same buffer; where one is a block of the
 * other, this rank's block. An exchange of blocks has no such form.
 */
static bool is_in_place(const struct side *send, const struct side *recv, int rank)
{
    uintptr_t s = (uintptr_t)send->buffer;
    uintptr_t r = (uintptr_t)recv->buffer;

    if ((send->shape == ONE) && (recv->shape == ONE)) {
        return s == r;
    }
    if (send->shape == ONE) {
        return s == r + (size_t)rank * send->bytes;
    }
    return (recv->shape == ONE) && (r == s + (size_t)rank * recv->bytes);
}

static const char *in_place_rule(const struct side *send, const struct side *recv)
{
    if ((send->shape == ONE) && (recv->shape == ONE)) {
        return "in place they are the same pointer";
    }
    if (send->shape == ONE) {
        return "in place sendbuff is the caller's block of recvbuff";
    }
    return (recv->shape == ONE) ? "in place recvbuff is the caller's block of sendbuff"
                                : "it does not work in place";
}

static xcclResult_t check_overlap(const struct rule *rule, const struct side *send,
                                  const struct side *recv, int rank)
{
    uintptr_t s = (uintptr_t)send->buffer;
    uintptr_t r = (uintptr_t)recv->buffer;
    bool      apart = (s + send->bytes <= r) || (r + recv->bytes <= s);

    /* With displacements the blocks may be laced into each other without touching. */
    if ((send->shape == VECTOR) || (recv->shape == VECTOR) || (send->bytes == 0) ||
        (recv->bytes == 0) || apart || is_in_place(send, recv, rank)) {
        return xcclSuccess;
    }
    return xc_fail(xcclInvalidArgument, "%s: sendbuff and recvbuff overlap; %s", rule->name,
                   in_place_rule(send, recv));
}

static bool significant(enum who who, const struct xc_coll_args *args, int rank)
{
    return (who == EVERYONE) || ((who == AT_ROOT) && (args->root == rank));
}

static xcclResult_t check_buffers(const struct rule *rule, const struct xc_coll_args *args,
                                  int nranks, int rank)
{
    struct side  send = {"sendbuff",       args->sendbuff, rule->send_shape,
                         args->sendcounts, args->sdispls,  0};
    struct side  recv = {"recvbuff",       args->recvbuff, rule->recv_shape,
                         args->recvcounts, args->rdispls,  0};
    bool         has_send = significant(rule->send, args, rank);
    bool         has_recv = significant(rule->recv, args, rank);
    xcclResult_t rc = has_send ? measure(rule, args, &send, nranks) : xcclSuccess;

    if ((rc == xcclSuccess) && has_recv) {
        rc = measure(rule, args, &recv, nranks);
    }
    if ((rc == xcclSuccess) && has_send && has_recv) {
        rc = check_overlap(rule, &send, &recv, rank);
    }
    return rc;
}

/* A count that both sides of this rank state. */
static xcclResult_t check_own_count(const struct rule *rule, const struct xc_coll_args *args,
                                    int rank)
{
    const size_t *counts = NULL;

    if ((args->coll == XC_ALLGATHERV) || ((args->coll == XC_GATHERV) && (args->root == rank))) {
        counts = args->recvcounts;
    } else if ((args->coll == XC_SCATTERV) && (args->root == rank)) {
        counts = args->sendcounts;
    }
    if ((counts != NULL) && (counts[rank] != args->count)) {
        return xc_fail(xcclInvalidArgument,
                       "%s: this rank's own count is %zu, but element %d of the counts says %zu",
                       rule->name, args->count, rank, counts[rank]);
    }
    return xcclSuccess;
}

xcclResult_t xc_check_args(xcclComm_t comm, const struct xc_coll_args *args)
{
    const struct rule *rule = &rules[args->coll];
    int                nranks = atomic_load_explicit(&comm->nranks, memory_order_relaxed);
    xcclResult_t       rc = check_type_and_op(comm, args, rule);

    if ((rc == xcclSuccess) && (rule->root != NULL) && ((unsigned)args->root >= (unsigned)nranks)) {
        rc = xc_fail(xcclInvalidArgument, "%s: %s is %d, it must be 0 to %d", rule->name,
                     rule->root, args->root, nranks - 1);
    }
    if (rc == xcclSuccess) {
        rc = check_buffers(rule, args, nranks, comm->rank);
    }
    if (rc == xcclSuccess) {
        rc = check_own_count(rule, args, comm->rank);
    }
    return rc;
}
