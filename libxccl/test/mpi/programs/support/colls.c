/* SPDX-License-Identifier: BSD-3-Clause */
#include "colls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"
#include "support.h"

enum { GUARD = 64, SHOWN = 5 };

static int cases = 0;
static int failures = 0;

/* What a rank sees of a case: the group that it talks to, and its own part in it. */
struct view {
    int  n;  /* ranks that it exchanges with: the remote group on an intercommunicator */
    int  me; /* its rank in its own group */
    int  inter;
    bool root; /* does the root's buffer count here? */
    bool leaf; /* does the buffer of a rank that is not the root count here? */
};

/* Both buffers of a rank, in elements of their datatype. */
struct side {
    MPI_Count elements;
    size_t    bytes;
    bool      used; /* if not, the argument is not significant */
};

const char *mt_coll_name(enum mt_coll coll)
{
    static const char *const names[] = {
        "allreduce", "bcast",      "reduce",   "reduce_scatter", "reduce_scatter_block",
        "allgather", "allgatherv", "alltoall", "alltoallv",      "gather",
        "gatherv",   "scatter",    "scatterv"};
    return names[coll];
}

struct mt_case mt_case_make(enum mt_coll coll, MPI_Comm comm, const struct mt_type *type, int units)
{
    bool sums = (type->class == MT_INTEGER) || (type->class == MT_FLOATING) ||
                (type->class == MT_COMPLEX) || (type->class == MT_MULTI);

    return (struct mt_case){.coll = coll,
                            .comm = comm,
                            .element = type,
                            .sendtype = type->type,
                            .recvtype = type->type,
                            .sendper = 1,
                            .recvper = 1,
                            .units = units,
                            .op = sums ? MPI_SUM : MPI_BOR,
                            .sendwhere = MT_DEVICE,
                            .recvwhere = MT_DEVICE};
}

static struct view view_of(const struct mt_case *c)
{
    struct view v;

    PMPI_Comm_test_inter(c->comm, &v.inter);
    PMPI_Comm_rank(c->comm, &v.me);
    if (v.inter) {
        PMPI_Comm_remote_size(c->comm, &v.n);
        v.root = c->root == MPI_ROOT;
        v.leaf = (c->root != MPI_ROOT) && (c->root != MPI_PROC_NULL);
    } else {
        PMPI_Comm_size(c->comm, &v.n);
        v.root = v.me == c->root;
        v.leaf = true;
    }
    if (((1u << c->coll) & MT_ROOTED) == 0) {
        v.root = v.leaf = true;
    }
    return v;
}

/* Counts of a v-call: unequal, so that a wrong rank's count is seen; gaps of one between blocks. */
static MPI_Count spread(MPI_Count counts[], MPI_Count displs[], int n, int units, int per,
                        int (*of)(int me, int peer), int me)
{
    MPI_Count at = 0;

    for (int peer = 0; peer < n; peer++) {
        counts[peer] = (MPI_Count)(units + of(me, peer) % 3) * per;
        displs[peer] = at;
        at += counts[peer] + 1;
    }
    return at;
}

static int by_peer(int me, int peer)
{
    (void)me;
    return peer;
}

static int by_sender(int me, int peer)
{
    return me + 2 * peer;
}

static int by_receiver(int me, int peer)
{
    return peer + 2 * me;
}

static int by_both(int me, int peer)
{
    return me + peer;
}

/* Counts of the calls whose blocks are all alike, and of bcast. */
static void plan_even(const struct mt_case *c, const struct view *v, struct mt_args *a,
                      struct side *s, struct side *r)
{
    MPI_Count sent = (MPI_Count)c->units * c->sendper;
    MPI_Count received = (MPI_Count)c->units * c->recvper;

    a->sendcount = sent;
    a->recvcount = received;
    *s = (struct side){.elements = sent, .used = true};
    *r = (struct side){.elements = received, .used = true};
    switch (c->coll) {
    case MT_BCAST:
        s->used = false;
        if (v->root) { /* the root may describe the same data by another type */
            a->recvtype = c->sendtype;
            a->recvcount = r->elements = sent;
        }
        r->used = v->root || v->leaf;
        break;
    case MT_REDUCE:
        s->used = v->leaf;
        r->used = v->root;
        break;
    case MT_REDUCE_SCATTER_BLOCK:
        s->elements *= v->n;
        break;
    case MT_ALLGATHER:
        r->elements *= v->n;
        break;
    case MT_ALLTOALL:
        s->elements *= v->n;
        r->elements *= v->n;
        break;
    case MT_GATHER:
        s->used = v->leaf;
        r->used = v->root;
        r->elements *= v->n;
        break;
    case MT_SCATTER:
        s->used = v->root;
        r->used = v->leaf;
        s->elements *= v->n;
        break;
    default:
        break;
    }
}

/* Counts of the calls with an array of them. */
static void plan_spread(const struct mt_case *c, const struct view *v, struct mt_args *a,
                        struct side *s, struct side *r)
{
    MPI_Count mine = c->units + v->me % 3;

    *s = (struct side){.elements = mine * c->sendper, .used = v->leaf};
    *r = (struct side){.elements = mine * c->recvper, .used = v->leaf};
    a->sendcount = s->elements;
    a->recvcount = r->elements;
    if (c->coll == MT_REDUCE_SCATTER) {
        MPI_Count all = spread(a->recvcounts, a->recvdispls, v->n, c->units, 1, by_peer, v->me);
        s->elements = all - v->n; /* the blocks follow each other without a gap */
    } else if (c->coll == MT_ALLTOALLV) {
        s->elements = spread(a->sendcounts, a->senddispls, v->n, c->units, c->sendper,
                             c->in_place ? by_both : by_sender, v->me);
        r->elements = spread(a->recvcounts, a->recvdispls, v->n, c->units, c->recvper,
                             c->in_place ? by_both : by_receiver, v->me);
    } else if (c->coll == MT_SCATTERV) {
        s->used = v->root;
        s->elements = spread(a->sendcounts, a->senddispls, v->n, c->units, c->sendper, by_peer, 0);
    } else { /* allgatherv, gatherv */
        r->used = v->root;
        r->elements = spread(a->recvcounts, a->recvdispls, v->n, c->units, c->recvper, by_peer, 0);
    }
}

/* In place the buffer of the result holds the input too, and is as large as both need. */
static void plan_in_place(const struct mt_case *c, const struct view *v, struct side *s,
                          struct side *r)
{
    bool rooted = ((1u << c->coll) & MT_ROOTED) != 0;

    if (!c->in_place || (rooted && !v->root)) {
        return;
    }
    if ((c->coll == MT_SCATTER) || (c->coll == MT_SCATTERV)) {
        r->used = false;
        return;
    }
    if (s->elements > r->elements) {
        r->elements = s->elements;
    }
    s->used = false;
}

static size_t bytes_of(MPI_Datatype type, MPI_Count elements)
{
    MPI_Aint low;
    MPI_Aint extent;
    MPI_Aint true_low;
    MPI_Aint true_extent;

    PMPI_Type_get_extent(type, &low, &extent);
    PMPI_Type_get_true_extent(type, &true_low, &true_extent);
    size_t last = (size_t)(true_low + true_extent); /* may reach past the extent */
    return (size_t)elements * (size_t)extent + last + GUARD;
}

/* The buffers of one case: reference in host memory, and what is tested. */
struct buffers {
    char *send;     /* host copy of the input */
    char *expected; /* result of the reference */
    char *actual;   /* result of the tested call, fetched */
    char *tested_send;
    char *tested_recv;
};

static void *buffer_make(enum mt_where where, const struct side *side, int shift, const char *from)
{
    char *base = mt_alloc(where, side->bytes + (size_t)shift);

    mt_put(base + shift, where, from, side->bytes);
    return base;
}

static void fail(const struct mt_case *c, const struct view *v, const char *what, long at)
{
    char type_name[MPI_MAX_OBJECT_NAME] = "";
    int  length;
    int  world;

    PMPI_Comm_rank(MPI_COMM_WORLD, &world);
    PMPI_Type_get_name(c->recvtype, type_name, &length);
    failures++;
    if (failures <= SHOWN) {
        fprintf(stderr,
                "FAIL rank %d: %s%s of %d units of %s (%s), %s, %d ranks, root %d%s, send %d, "
                "recv %d, shift %d: %s (%ld)\n",
                world, mt_coll_name(c->coll), c->large ? "_c" : "", c->units, c->element->name,
                type_name, mt_op_name(c->op), v->n, c->root, c->in_place ? ", in place" : "",
                (int)c->sendwhere, (int)c->recvwhere, c->shift, what, at);
    }
}

/*
 * An argument that is not significant may be anything, and is NULL here; but not on an
 * intercommunicator, where MPICH 4.0.2 waits for ever in a reduce whose root has no send buffer.
 */
static const void *send_argument(const struct mt_case *c, const struct view *v,
                                 const struct side *s, char *buffer)
{
    bool rooted = ((1u << c->coll) & MT_ROOTED) != 0;
    bool scatter = (c->coll == MT_SCATTER) || (c->coll == MT_SCATTERV);

    if (c->in_place && !scatter && (!rooted || v->root)) {
        return MPI_IN_PLACE;
    }
    return (s->used || v->inter) ? buffer : NULL;
}

static void *recv_argument(const struct mt_case *c, const struct view *v, const struct side *r,
                           char *buffer)
{
    if (c->in_place && v->root && ((c->coll == MT_SCATTER) || (c->coll == MT_SCATTERV))) {
        return MPI_IN_PLACE;
    }
    return (r->used || v->inter) ? buffer : NULL;
}

/* In place, a reduce-scatter may leave anything where its input was, behind the result. */
static void forgive_scratch(const struct mt_case *c, const struct mt_args *a, const struct side *r,
                            struct buffers *b)
{
    bool     block = c->coll == MT_REDUCE_SCATTER_BLOCK;
    MPI_Aint low;
    MPI_Aint extent;
    int      me;

    if (!c->in_place || (!block && (c->coll != MT_REDUCE_SCATTER))) {
        return;
    }
    PMPI_Comm_rank(c->comm, &me);
    PMPI_Type_get_extent(c->recvtype, &low, &extent);
    MPI_Count kept = block ? a->recvcount : a->recvcounts[me];
    memcpy(b->actual + kept * extent, b->expected + kept * extent,
           (size_t)((r->elements - kept) * extent));
}

static void compare(const struct mt_case *c, const struct view *v, const struct side *s,
                    const struct side *r, const struct mt_args *a, struct buffers *b, int codes[2])
{
    if (mt_class_of(codes[0]) != mt_class_of(codes[1])) {
        fail(c, v, "error class differs from the reference's", mt_class_of(codes[1]));
        return;
    }
    if (codes[0] != MPI_SUCCESS) {
        return;
    }
    mt_get(b->actual, b->tested_recv + c->shift, c->recvwhere, r->bytes);
    forgive_scratch(c, a, r, b);
    long at = mt_compare(c->element, b->expected, b->actual, r->bytes);
    if (at >= 0) {
        fail(c, v, "the result differs at byte", at);
    }
    char *input = malloc(s->bytes);
    mt_get(input, b->tested_send + c->shift, c->sendwhere, s->bytes);
    if (memcmp(input, b->send, s->bytes) != 0) {
        fail(c, v, "the send buffer was changed", 0);
    }
    free(input);
}

/*
 * The call through PMPI. A reduce in place is made out of place: MPICH 4.0.2 takes MPI_IN_PLACE for
 * an address where the root is not rank 0 and the vector has 2 KiB or more.
 */
static int reference(const struct mt_case *c, const struct view *v, const struct side *s,
                     const struct side *r, struct buffers *b, struct mt_args *a)
{
    char *input = NULL;

    a->send = send_argument(c, v, s, b->send);
    a->recv = recv_argument(c, v, r, b->expected);
    if ((c->coll == MT_REDUCE) && (a->send == MPI_IN_PLACE)) {
        input = malloc(r->bytes);
        memcpy(input, b->expected, r->bytes);
        a->send = input;
    }
    int code = mt_call(c->coll, true, c->large, a);
    free(input);
    return code;
}

void mt_run(const struct mt_case *c)
{
    struct view    v = view_of(c);
    struct mt_args a = {.sendtype = c->sendtype,
                        .recvtype = c->recvtype,
                        .op = c->op,
                        .root = c->root,
                        .comm = c->comm};
    struct side    s;
    struct side    r;
    struct buffers b;
    int            codes[2];
    unsigned       seed = (unsigned)(v.me * 1000 + cases);
    bool           spread_out = (c->coll == MT_REDUCE_SCATTER) || (c->coll == MT_ALLGATHERV) ||
                      (c->coll == MT_ALLTOALLV) || (c->coll == MT_GATHERV) ||
                      (c->coll == MT_SCATTERV);

    spread_out ? plan_spread(c, &v, &a, &s, &r) : plan_even(c, &v, &a, &s, &r);
    plan_in_place(c, &v, &s, &r);
    s.bytes = bytes_of(a.sendtype, s.elements);
    r.bytes = bytes_of(a.recvtype, r.elements);
    b.send = malloc(s.bytes);
    b.expected = malloc(r.bytes);
    b.actual = malloc(r.bytes);
    mt_fill(c->element, b.send, s.bytes, seed);
    mt_fill(c->element, b.expected, r.bytes, seed + 500);
    b.tested_send = buffer_make(c->sendwhere, &s, c->shift, b.send);
    b.tested_recv = buffer_make(c->recvwhere, &r, c->shift, b.expected);
    PMPI_Comm_set_errhandler(c->comm, MPI_ERRORS_RETURN);
    codes[0] = reference(c, &v, &s, &r, &b, &a);
    a.send = send_argument(c, &v, &s, b.tested_send + c->shift);
    a.recv = recv_argument(c, &v, &r, b.tested_recv + c->shift);
    codes[1] = mt_call(c->coll, false, c->large, &a);
    compare(c, &v, &s, &r, &a, &b, codes);
    cases++;
    mt_free(c->sendwhere, b.tested_send);
    mt_free(c->recvwhere, b.tested_recv);
    free(b.send);
    free(b.expected);
    free(b.actual);
}

void mt_check(bool good, const char *what)
{
    int world;

    cases++;
    if (!good) {
        PMPI_Comm_rank(MPI_COMM_WORLD, &world);
        fprintf(stderr, "FAIL rank %d: %s\n", world, what);
        failures++;
    }
}

int mt_report(void)
{
    int mine[2] = {cases, failures};
    int all[2] = {0, 0};
    int rank;

    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Allreduce(mine, all, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%d checks, %d failures\n", all[0], all[1]);
        fflush(stdout);
    }
    return ((all[1] > 0) || (all[0] == 0)) ? 1 : 0;
}
