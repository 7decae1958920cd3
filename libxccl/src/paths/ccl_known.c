/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a communicator of the vendor's library has connected for, so that a call does not wait in
 * the library for other ranks.
 *
 * The library chooses an algorithm by the call, the type and operation of a reduction, and the
 * size. Where it changes from one to another is not known. So of each kind of call the smallest and
 * the largest size are kept that were called, within each power of two: what lies between them
 * takes an algorithm of one of them.
 */
#include <pthread.h>
#include <stdlib.h>

#include "paths/buffers.h"
#include "paths/ccl.h"

enum { CONNECTED_TO_SEND = 1, CONNECTED_TO_RECEIVE = 2 };

/* ---- algorithms ---- */

/* Calls of the library's that a collective may become, beside the one with its name. */
enum { EACH_PART = XM_NUM_COLLS };

static uint32_t key_of(const struct xm_op *op, unsigned call)
{
    const struct xm_reduction *r = &op->reduction;

    return (op->call.op == 0) ? call
                              : call | ((uint32_t)r->type + 1) << 8 | ((uint32_t)r->op << 16);
}

/* With the lock of the communicator. NULL: out of memory. */
static struct xm_vendor_kind *kind_of(struct xm_vendor *vendor, uint32_t key)
{
    struct xm_vendor_kind *kind = vendor->kinds;

    while ((kind != NULL) && (kind->key != key)) {
        kind = kind->next;
    }
    if (kind == NULL) {
        kind = calloc(1, sizeof(*kind));
        if (kind != NULL) {
            kind->key = key;
            kind->next = vendor->kinds;
            vendor->kinds = kind;
        }
    }
    return kind;
}

static int class_of(uint64_t bytes)
{
    int class = 63 - __builtin_clzll(bytes | 1);

    return (class < XM_VENDOR_SIZES) ? class : XM_VENDOR_SIZES - 1;
}

/* True: nothing of this kind and size was called before. */
static bool meet(struct xm_op *op, unsigned call, uint64_t bytes)
{
    bool is_new = true;

    pthread_mutex_lock(&op->vendor->lock);
    struct xm_vendor_kind *kind = kind_of(op->vendor, key_of(op, call));
    if (kind != NULL) {
        struct xm_vendor_sizes *seen = &kind->sizes[class_of(bytes)];
        is_new = !seen->any || (bytes < seen->least) || (bytes > seen->most);
        seen->least = (!seen->any || (bytes < seen->least)) ? bytes : seen->least;
        seen->most = (!seen->any || (bytes > seen->most)) ? bytes : seen->most;
        seen->any = true;
    }
    pthread_mutex_unlock(&op->vendor->lock);
    return is_new;
}

static uint64_t part_bytes(const struct xm_op *op, int i)
{
    const struct xm_buffer *input = op->buffers.in_place ? &op->buffers.recv : &op->buffers.send;

    return (op->call.coll == XM_ALLGATHERV)
               ? op->recv.counts[i]
               : (uint64_t)(xm_count_at(&op->call, op->call.recvcounts, i) * input->layout.size);
}

/* One call for each part, in a group, which the library may take together. */
static bool meet_parts(struct xm_op *op)
{
    unsigned call = EACH_PART + (unsigned)op->call.coll;
    uint64_t all = 0;
    bool     is_new = false;

    for (int i = 0; i < op->comm->size; i++) {
        uint64_t bytes = part_bytes(op, i);
        all += bytes;
        is_new = ((bytes > 0) && meet(op, call, bytes)) || is_new;
    }
    return meet(op, call, all) || is_new;
}

static bool new_algorithm(struct xm_op *op)
{
    uint64_t bytes = op->facts.bytes;
    size_t   piece;
    bool     apart = false;

    if (op->call.coll == XM_REDUCE_SCATTER) {
        apart = !xm_ccl_parts_are_equal(op);
    } else if (op->call.coll == XM_ALLGATHERV) {
        apart = !xm_ccl_gathers_parts(op, &piece);
        bytes = piece;
    }
    return apart ? meet_parts(op) : meet(op, (unsigned)op->call.coll, bytes);
}

/* ---- peers ---- */

static bool new_peer(struct xm_op *op, int peer, int directions)
{
    uint8_t *known = &op->vendor->peers[peer];
    int      before = __atomic_load_n(known, __ATOMIC_RELAXED);

    if ((before & directions) != directions) {
        before = __atomic_fetch_or(known, (uint8_t)directions, __ATOMIC_RELAXED);
    }
    return (before & directions) != directions;
}

/* Blocks that are empty connect nobody. Is there one for rank i, or of it, or is it the root's? */
static bool has_block(const struct xm_op *op, int i)
{
    bool                    gathers = (op->call.coll == XM_GATHERV);
    bool                    root = (op->call.root == op->comm->rank);
    const struct xm_usable *all = gathers ? &op->recv : &op->send;
    const struct xm_buffer *own = gathers ? &op->buffers.send : &op->buffers.recv;

    if ((op->call.coll != XM_GATHERV) && (op->call.coll != XM_SCATTERV)) {
        return true;
    }
    return root ? (all->counts[i] > 0) : (own->bytes > 0);
}

static bool new_peers(struct xm_op *op)
{
    enum xm_coll coll = op->call.coll;
    bool         is_new = false;
    bool         gathers = (coll == XM_GATHER) || (coll == XM_GATHERV);
    bool         rooted = gathers || (coll == XM_SCATTER) || (coll == XM_SCATTERV);
    bool         root = rooted && (op->call.root == op->comm->rank);
    int          both = CONNECTED_TO_SEND | CONNECTED_TO_RECEIVE;

    for (int i = 0; i < op->comm->size; i++) {
        bool sends = (gathers != root);
        int  way = !rooted ? both : sends ? CONNECTED_TO_SEND : CONNECTED_TO_RECEIVE;
        if (!rooted || ((root || (i == op->call.root)) && has_block(op, i))) {
            is_new = new_peer(op, i, way) || is_new;
        }
    }
    return is_new;
}

/* Of alltoallv pairs that exchange data count alone. */
static bool new_pairs(struct xm_op *op)
{
    const struct xm_usable *send = op->buffers.in_place ? &op->recv : &op->send;
    bool                    is_new = false;

    for (int i = 0; i < op->comm->size; i++) {
        int directions = ((send->counts[i] > 0) ? CONNECTED_TO_SEND : 0) |
                         ((op->recv.counts[i] > 0) ? CONNECTED_TO_RECEIVE : 0);
        is_new = new_peer(op, i, directions) || is_new;
    }
    return is_new;
}

/*
 * What is known changes by any thread: an operation may be taken over on one, beside a call of the
 * program's.
 */
bool xm_ccl_may_block(struct xm_op *op)
{
    bool host = xm_copies_host_memory(op);

    switch (op->call.coll) {
    case XM_ALLTOALLV:
        return new_pairs(op) || host;
    case XM_ALLTOALL:
    case XM_GATHER:
    case XM_GATHERV:
    case XM_SCATTER:
    case XM_SCATTERV:
        return new_peers(op) || host;
    default:
        return new_algorithm(op) || host;
    }
}
