/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Both buffers are filled with a pattern all over, then with the call's data; afterwards the whole
 * of what this rank may receive into is compared, so that a byte too many is found as well.
 */
#include "colls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "values.h"

enum { MAX_RANKS = 16, GAP = 3, GUARD = 64, PATTERN = 0xa5 };

static const struct {
    const char *name;
    bool        reduces, in_place;
} colls[XT_NUM_COLLS] = {
    [XT_ALLREDUCE] = {"allreduce", true, true},
    [XT_BROADCAST] = {"broadcast", false, true},
    [XT_BCAST] = {"bcast", false, false},
    [XT_REDUCE] = {"reduce", true, true},
    [XT_REDUCE_SCATTER] = {"reduce_scatter", true, true},
    [XT_ALLGATHER] = {"allgather", false, true},
    [XT_ALLGATHERV] = {"allgatherv", false, true},
    [XT_ALLTOALL] = {"alltoall", false, false},
    [XT_ALLTOALLV] = {"alltoallv", false, false},
    [XT_GATHER] = {"gather", false, true},
    [XT_GATHERV] = {"gatherv", false, true},
    [XT_SCATTER] = {"scatter", false, true},
    [XT_SCATTERV] = {"scatterv", false, true},
    [XT_SENDRECV] = {"send and recv", false, false},
};

const char *xt_coll_name(enum xt_coll coll)
{
    return colls[coll].name;
}

bool xt_reduces(enum xt_coll coll)
{
    return colls[coll].reduces;
}

bool xt_can_be_in_place(enum xt_coll coll)
{
    return colls[coll].in_place;
}

void xt_place_open(struct xt_place *place, xcclComm_t comm, int nranks, int rank, size_t bytes)
{
    *place = (struct xt_place){.nranks = nranks, .rank = rank, .comm = comm, .bytes = bytes};
    place->stream = xt_stream_new();
    place->device_send = xt_alloc(bytes);
    place->device_recv = xt_alloc(bytes);
    place->host = malloc(bytes);
    place->expected = malloc(bytes);
    if ((place->host == NULL) || (place->expected == NULL)) {
        fprintf(stderr, "no memory\n");
        exit(3);
    }
}

void xt_place_close(struct xt_place *place)
{
    xt_stream_free(place->stream);
    xt_free(place->device_send);
    xt_free(place->device_recv);
    free(place->host);
    free(place->expected);
}

/*
 * How many elements rank `from` has for rank `to`. In the calls with one count that is it; in the
 * others it differs by rank, may be 0, and is known to both.
 */
static size_t block(const struct xt_case *c, int from, int to)
{
    switch (c->coll) {
    case XT_ALLGATHERV:
    case XT_GATHERV:
        return (c->packed && (c->seed % 2 == 0))
                   ? c->count
                   : (c->count + (size_t)from * 7 + c->seed) % (c->count + 5);
    case XT_SCATTERV:
        return (c->count + (size_t)to * 7 + c->seed) % (c->count + 5);
    case XT_ALLTOALLV:
        return (c->count + (size_t)from * 3 + (size_t)to * 5 + c->seed) % (c->count + 5);
    default:
        return c->count;
    }
}

/* Counts and displacements of a side; with gaps between the blocks. */
struct layout {
    size_t counts[MAX_RANKS], displs[MAX_RANKS];
    size_t elements; /* from the begin to the end of the last */
};

static void lay_out(const struct xt_place *p, const struct xt_case *c, bool sending,
                    struct layout *l)
{
    bool v = (c->coll == XT_ALLGATHERV) || (c->coll == XT_ALLTOALLV) || (c->coll == XT_GATHERV) ||
             (c->coll == XT_SCATTERV);
    size_t at = 0;

    l->elements = 0;
    for (int r = 0; r < p->nranks; r++) {
        l->counts[r] = sending ? block(c, p->rank, r) : block(c, r, p->rank);
        l->displs[r] = at;
        l->elements = at + l->counts[r];
        /* Displacements may differ by rank: only the caller's own layout is meant. */
        at = l->elements + ((v && !c->packed) ? (size_t)(GAP + p->rank) : 0);
    }
}

/* The data that rank `from` has for rank `to`: the same for all `to` where all get it. */
static uint64_t stream_of(const struct xt_case *c, int from, int to)
{
    bool same = (c->coll == XT_BROADCAST) || (c->coll == XT_BCAST) || (c->coll == XT_ALLGATHER) ||
                (c->coll == XT_ALLGATHERV);

    return xt_mix(c->seed, (uint64_t)from, same ? 1000 : (uint64_t)to);
}

static void put_block(unsigned char *image, size_t size, size_t displ, size_t count,
                      const struct xt_case *c, int from, int to)
{
    xt_fill_bytes(image + displ * size, count * size, stream_of(c, from, to), from);
}

/* Which ranks have something to send, and receive. */
static bool sends(const struct xt_place *p, const struct xt_case *c)
{
    switch (c->coll) {
    case XT_BROADCAST:
    case XT_BCAST:
    case XT_SCATTER:
    case XT_SCATTERV:
        return p->rank == c->root;
    default:
        return true;
    }
}

static bool receives(const struct xt_place *p, const struct xt_case *c)
{
    switch (c->coll) {
    case XT_REDUCE:
    case XT_GATHER:
    case XT_GATHERV:
        return p->rank == c->root;
    default:
        return true;
    }
}

static int ring(const struct xt_place *p, int step)
{
    return (p->rank + step + p->nranks) % p->nranks;
}

/* Write this rank's send data into image; how many elements it takes. */
static size_t make_send(const struct xt_place *p, const struct xt_case *c, unsigned char *image)
{
    size_t        size = xt_size(c->type);
    struct layout l;

    if (xt_reduces(c->coll)) {
        size_t n = c->count * ((c->coll == XT_REDUCE_SCATTER) ? (size_t)p->nranks : 1);
        xt_fill_operands(image, c->type, c->op, n, 0, c->seed, p->rank);
        return n;
    }
    switch (c->coll) {
    case XT_ALLTOALL:
    case XT_ALLTOALLV:
    case XT_SCATTER:
    case XT_SCATTERV:
        lay_out(p, c, true, &l);
        for (int r = 0; r < p->nranks; r++) {
            put_block(image, size, l.displs[r], l.counts[r], c, p->rank, r);
        }
        return l.elements;
    case XT_SENDRECV:
        put_block(image, size, 0, c->count, c, p->rank, ring(p, 1));
        return c->count;
    default: { /* one block for the root, or for all */
        int    to = ((c->coll == XT_GATHER) || (c->coll == XT_GATHERV)) ? c->root : p->rank;
        size_t n = block(c, p->rank, to);
        put_block(image, size, 0, n, c, p->rank, to);
        return n;
    }
    }
}

/* Write what this rank should have received into image; how many elements that spans. */
static size_t make_expected(const struct xt_place *p, const struct xt_case *c, unsigned char *image)
{
    size_t        size = xt_size(c->type);
    struct layout l;

    switch (c->coll) {
    case XT_ALLREDUCE:
    case XT_REDUCE:
    case XT_REDUCE_SCATTER:
        return c->count; /* compared by value */
    case XT_BROADCAST:
    case XT_BCAST:
        put_block(image, size, 0, c->count, c, c->root, p->rank);
        return c->count;
    case XT_SCATTER:
    case XT_SCATTERV: {
        size_t n = block(c, c->root, p->rank);
        put_block(image, size, 0, n, c, c->root, p->rank);
        return n;
    }
    case XT_SENDRECV:
        put_block(image, size, 0, c->count, c, ring(p, -1), p->rank);
        return c->count;
    default:
        lay_out(p, c, false, &l);
        for (int r = 0; r < p->nranks; r++) {
            put_block(image, size, l.displs[r], l.counts[r], c, r, p->rank);
        }
        return l.elements;
    }
}

/* In place: this rank's block inside the larger side, and which side that is. */
static size_t own_offset(const struct xt_place *p, const struct xt_case *c)
{
    struct layout l;

    switch (c->coll) {
    case XT_REDUCE_SCATTER:
    case XT_ALLGATHER:
    case XT_GATHER:
    case XT_SCATTER:
        return (size_t)p->rank * c->count * xt_size(c->type);
    case XT_ALLGATHERV:
    case XT_GATHERV:
        lay_out(p, c, false, &l);
        return l.displs[p->rank] * xt_size(c->type);
    case XT_SCATTERV:
        lay_out(p, c, true, &l);
        return l.displs[p->rank] * xt_size(c->type);
    default:
        return 0;
    }
}

/* Is the receive buffer a part of the send buffer (else the other way round)? */
static bool inside_send(const struct xt_case *c)
{
    return (c->coll == XT_REDUCE_SCATTER) || (c->coll == XT_SCATTER) || (c->coll == XT_SCATTERV);
}

struct buffers {
    unsigned char *send, *recv;
};

/* In the rooted calls only the root has both sides, so only it can be in place. */
static bool in_place_here(const struct xt_place *p, const struct xt_case *c)
{
    return c->in_place && sends(p, c) && receives(p, c);
}

static struct buffers place_buffers(const struct xt_place *p, const struct xt_case *c)
{
    struct buffers b = {p->device_send, p->device_recv};

    if (c->coll == XT_BCAST) {
        b.send = b.recv;
    } else if (in_place_here(p, c) && inside_send(c)) {
        b.recv = b.send + own_offset(p, c);
    } else if (in_place_here(p, c)) {
        b.send = b.recv + own_offset(p, c);
    }
    if (!sends(p, c) && (c->coll != XT_BCAST)) {
        b.send = NULL;
    }
    if (!receives(p, c)) {
        b.recv = NULL;
    }
    return b;
}

/* As much of a buffer as the case may touch, and a guard behind it. */
static size_t reach(const struct xt_place *p, const struct xt_case *c)
{
    size_t bytes =
        (c->count + 8 + GAP + (size_t)p->nranks) * (size_t)p->nranks * xt_size(c->type) + GUARD;

    if (bytes > p->bytes) {
        fprintf(stderr, "the buffers are too small for the case\n");
        exit(3);
    }
    return bytes;
}

static void prepare(struct xt_place *p, const struct xt_case *c, const struct buffers *b)
{
    size_t used = reach(p, c);

    memset(p->host, PATTERN, used);
    xt_put(p->device_send, p->host, used);
    xt_put(p->device_recv, p->host, used);
    if (sends(p, c)) {
        size_t n = make_send(p, c, p->host);
        xt_put(b->send, p->host, n * xt_size(c->type));
    }
}

static xcclResult_t issue_v(const struct xt_place *p, const struct xt_case *c,
                            const struct buffers *b, void *stream)
{
    struct layout s, r;
    bool          root = (p->rank == c->root);

    lay_out(p, c, true, &s);
    lay_out(p, c, false, &r);
    switch (c->coll) {
    case XT_ALLGATHERV:
        return xcclAllGatherv(b->send, r.counts[p->rank], b->recv, r.counts,
                              c->packed ? NULL : r.displs, c->type, p->comm, stream);
    case XT_ALLTOALLV:
        return xcclAlltoAllv(b->send, s.counts, s.displs, b->recv, r.counts, r.displs, c->type,
                             p->comm, stream);
    case XT_GATHERV:
        return xcclGatherv(b->send, block(c, p->rank, c->root), b->recv, root ? r.counts : NULL,
                           root ? r.displs : NULL, c->type, c->root, p->comm, stream);
    default:
        return xcclScatterv(b->send, root ? s.counts : NULL, root ? s.displs : NULL, b->recv,
                            block(c, c->root, p->rank), c->type, c->root, p->comm, stream);
    }
}

static xcclResult_t issue_ring(const struct xt_place *p, const struct xt_case *c,
                               const struct buffers *b, void *stream)
{
    xcclResult_t rc = xcclGroupStart();

    if (rc == xcclSuccess) {
        rc = xcclSend(b->send, c->count, c->type, ring(p, 1), p->comm, stream);
    }
    if (rc == xcclSuccess) {
        rc = xcclRecv(b->recv, c->count, c->type, ring(p, -1), p->comm, stream);
    }
    xcclResult_t end = xcclGroupEnd();
    return (rc != xcclSuccess) ? rc : end;
}

static xcclResult_t issue(const struct xt_place *p, const struct xt_case *c,
                          const struct buffers *b, void *stream)
{
    switch (c->coll) {
    case XT_ALLREDUCE:
        return xcclAllReduce(b->send, b->recv, c->count, c->type, c->op, p->comm, stream);
    case XT_BROADCAST:
        return xcclBroadcast(b->send, b->recv, c->count, c->type, c->root, p->comm, stream);
    case XT_BCAST:
        return xcclBcast(b->recv, c->count, c->type, c->root, p->comm, stream);
    case XT_REDUCE:
        return xcclReduce(b->send, b->recv, c->count, c->type, c->op, c->root, p->comm, stream);
    case XT_REDUCE_SCATTER:
        return xcclReduceScatter(b->send, b->recv, c->count, c->type, c->op, p->comm, stream);
    case XT_ALLGATHER:
        return xcclAllGather(b->send, b->recv, c->count, c->type, p->comm, stream);
    case XT_ALLTOALL:
        return xcclAlltoAll(b->send, b->recv, c->count, c->type, p->comm, stream);
    case XT_GATHER:
        return xcclGather(b->send, b->recv, c->count, c->type, c->root, p->comm, stream);
    case XT_SCATTER:
        return xcclScatter(b->send, b->recv, c->count, c->type, c->root, p->comm, stream);
    case XT_SENDRECV:
        return issue_ring(p, c, b, stream);
    default:
        return issue_v(p, c, b, stream);
    }
}

xcclResult_t xt_case_call(struct xt_place *p, const struct xt_case *c)
{
    struct buffers b = place_buffers(p, c);

    prepare(p, c, &b);
    return issue(p, c, &b, c->default_stream ? NULL : p->stream);
}

const char *xt_case_text(const struct xt_place *p, const struct xt_case *c, char *buf, size_t len)
{
    snprintf(buf, len, "%s %s%s%s count=%zu root=%d%s%s, rank %d of %d", xt_coll_name(c->coll),
             xt_type_name(c->type), xt_reduces(c->coll) ? " " : "",
             xt_reduces(c->coll) ? xt_op_name(c->op) : "", c->count, c->root,
             c->in_place ? " in place" : "", c->packed ? " packed" : "", p->rank, p->nranks);
    return buf;
}

static bool wrong(const struct xt_place *p, const struct xt_case *c, const char *what, size_t at)
{
    char text[160];

    fprintf(stderr, "WRONG: %s: %s at %zu\n", xt_case_text(p, c, text, sizeof(text)), what, at);
    return false;
}

/* The bytes [0, len) of host against those of expected. */
static bool same_bytes(const struct xt_place *p, const struct xt_case *c, size_t len,
                       const char *what)
{
    for (size_t i = 0; i < len; i++) {
        if (p->host[i] != p->expected[i]) {
            return wrong(p, c, what, i);
        }
    }
    return true;
}

static bool compare_recv(struct xt_place *p, const struct xt_case *c, const struct buffers *b)
{
    size_t size = xt_size(c->type);
    /* In place inside the send buffer what follows is the sender's data, not the pattern. */
    bool   inside = in_place_here(p, c) && inside_send(c);
    size_t guard = inside ? 0 : GUARD;

    memset(p->expected, PATTERN, reach(p, c));
    size_t n = make_expected(p, c, p->expected);
    xt_get(p->host, b->recv, n * size + guard);
    if (!xt_reduces(c->coll)) {
        return same_bytes(p, c, n * size + guard, "received byte");
    }
    char   text[100];
    size_t first = (c->coll == XT_REDUCE_SCATTER) ? (size_t)p->rank * c->count : 0;
    long   bad = xt_check_reduction(p->host, c->type, c->op, n, first, c->seed, p->nranks, text,
                                    sizeof(text));
    if (bad >= 0) {
        return wrong(p, c, text, (size_t)bad);
    }
    memcpy(p->expected, p->host, n * size);
    return same_bytes(p, c, n * size + guard, "byte behind the result");
}

/* What was sent must not have been changed, unless it was in place. */
static bool compare_send(struct xt_place *p, const struct xt_case *c, const struct buffers *b)
{
    if (!sends(p, c) || in_place_here(p, c) || (c->coll == XT_BCAST)) {
        return true;
    }
    memset(p->expected, PATTERN, reach(p, c));
    size_t len = make_send(p, c, p->expected) * xt_size(c->type) + GUARD;
    xt_get(p->host, b->send, len);
    return same_bytes(p, c, len, "sent byte that was changed");
}

bool xt_case_compare(struct xt_place *p, const struct xt_case *c)
{
    struct buffers b = place_buffers(p, c);

    xt_stream_sync(c->default_stream ? NULL : p->stream);
    if (receives(p, c) && !compare_recv(p, c, &b)) {
        return false;
    }
    return compare_send(p, c, &b);
}
