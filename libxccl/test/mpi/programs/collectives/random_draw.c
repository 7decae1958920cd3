/* SPDX-License-Identifier: BSD-3-Clause */
/* Draw a call. What all ranks must agree on comes from the call's seed alone. */
#include "random.h"

#include <stdio.h>
#include <string.h>

enum { GUARD = 8, GRID = 1, GRAPH = 2, FAR = 1000 }; /* in elements, slots, in extents */

/* What the MPI libraries themselves do wrong is left out; the calls would end in a crash. */
#ifdef MPICH_VERSION
/* MPICH 4.0.2 forgets the displacement of a rank that is alone, and reads too far to neighbours. */
enum { ALONE_WRONG = RX_ALLGATHERV, WRONG = RX_NEIGHBOR_ALLTOALLW };
/* Of larger messages of types with holes it says that they are truncated: only contiguous ones, and
 * short ones of pairs such as MPI_LONG_INT. */
enum { NUM_SHAPES = 2, STRUCTS = 0, MOST_OF_PAIRS = 4096 };
#else
/* Open MPI 4.1.4 takes a lone rank's displacement in bytes for one in extents. */
enum { ALONE_WRONG = RX_ALLTOALLW, WRONG = RX_NUM_COLLS };
enum { NUM_SHAPES = RX_SHAPES, STRUCTS = 1, MOST_OF_PAIRS = 1 << 20 };
#endif

/* How the blocks of a side lie: one behind the other, or anywhere, counted in extents or bytes. */
enum spread { PACKED, SPREAD, SPREAD_BYTES };

static const char *const names[] = {
#define NAME_OF(NAME, name, iname) #name,
    RX_COLLS(NAME_OF) "Reduce_local"};

const char *rx_coll_name(enum rx_coll coll)
{
    return names[coll];
}

int rx_coll_find(const char *name)
{
    for (int i = 0; i < RX_NUM_COLLS; i++) {
        if (strcmp(names[i], name) == 0) {
            return i;
        }
    }
    return -1;
}

static bool is_neighbor(enum rx_coll coll)
{
    return (coll >= RX_NEIGHBOR_ALLGATHER) && (coll <= RX_NEIGHBOR_ALLTOALLW);
}

static bool is_reduction(enum rx_coll coll)
{
    return (coll <= RX_EXSCAN) || (coll == RX_REDUCE_LOCAL);
}

static bool is_rooted(enum rx_coll coll)
{
    return (coll == RX_REDUCE) || ((coll >= RX_BCAST) && (coll <= RX_SCATTERV));
}

/* Units that the first passes to the second; every rank computes the same. */
static int units_between(const struct rx_call *c, int from, int to)
{
    uint64_t hash;

    if (c->in_place) { /* alltoall exchanges there: as much one way as the other */
        int low = (from < to) ? from : to;
        to = (from < to) ? to : from;
        from = low;
    }
    hash = rx_hash(c->seed, 1000 + (uint64_t)(int64_t)from, 1000 + (uint64_t)(int64_t)to);
    return (hash % 5 == 0) ? 0 : (int)((hash >> 8) % (2 * (uint64_t)c->units + 1));
}

static void add_block(const struct rx_call *c, struct rx_side *side, const struct rx_type *type,
                      int units)
{
    int b = side->blocks++;

    side->type[b] = type;
    side->types[b] = type->handle;
    side->counts[b] = units * c->per_unit / type->per;
}

/* Open MPI 4.1.4 unpacks large ones of these wrongly in the w-calls. */
static int below_is_wrong(enum rx_coll coll)
{
    return rx_options.without[RX_HAS_BELOW] || (coll == RX_ALLTOALLW) ||
           (coll == RX_NEIGHBOR_ALLTOALLW);
}

/*
 * A shape to describe data with: any, if the units are made for that. The w-calls draw it on each
 * rank; elsewhere the ranks have the same, as Open MPI chooses algorithms by the local type.
 */
static const struct rx_type *draw_shape(const struct rx_call *c, uint64_t *state)
{
    int shape =
        rx_below(state, ((int)NUM_SHAPES == (int)RX_SHAPES) ? RX_SHAPES - below_is_wrong(c->coll)
                                                            : NUM_SHAPES);

    if (c->base == NULL) {
        return rx_type_mixed();
    }
    return rx_type_get(c->base, (c->per_unit == RX_UNIT) ? shape : 0);
}

/* Where each block begins, in elements of the base type; total is what they all span. */
static void place_blocks(struct rx_side *side, enum spread spread, uint64_t *state, long *at)
{
    int  order[RX_MAX_RANKS];
    long next = 0;
    long step = (spread == SPREAD_BYTES) || (side->blocks == 0) ? 1 : side->type[0]->extent;
    int  pattern = rx_below(state, 8);

    for (int i = 0; i < side->blocks; i++) {
        int other = (spread == PACKED) ? i : rx_below(state, i + 1);
        order[i] = order[other];
        order[other] = i;
    }
    for (int i = 0; i < side->blocks; i++) {
        int b = order[i];
        int gap = (spread == PACKED) ? 0 : rx_below(state, 4) % 3;
        at[b] = next;
        next += (long)(side->counts[b] + gap) * side->type[b]->extent;
    }
    if ((spread != PACKED) && !rx_options.without[RX_HAS_DISPLS]) {
        long shift = (pattern == 0) ? -next : ((pattern == 1) ? -(next / step / 2) * step : 0);
        shift = (pattern == 2) ? FAR * step : shift;
        for (int b = 0; b < side->blocks; b++) {
            at[b] += shift;
        }
    }
}

/* Place the blocks, and make the buffer large enough for them and a guard on both ends. */
static void lay_out(struct rx_side *side, enum spread spread, uint64_t *state)
{
    long   at[RX_MAX_RANKS];
    long   low = 0;
    long   high = 0;
    bool   any = false;
    size_t size = (side->blocks > 0) ? side->type[0]->size : 1;

    place_blocks(side, spread, state, at);
    for (int b = 0; b < side->blocks; b++) {
        const struct rx_type *type = side->type[b];
        long                  first = at[b] + type->low;
        long last = at[b] + (long)(side->counts[b] - 1) * type->extent + type->high;
        side->byte_displs[b] = (MPI_Aint)at[b] * (MPI_Aint)size;
        side->displs[b] =
            (spread == SPREAD_BYTES) ? (int)side->byte_displs[b] : (int)(at[b] / type->extent);
        if (side->counts[b] == 0) {
            continue;
        }
        low = (!any || (first < low)) ? first : low;
        high = (!any || (last > high)) ? last : high;
        any = true;
    }
    side->bytes = (size_t)(high - low + 2 * GUARD) * size;
    side->origin = (intptr_t)(GUARD - low) * (intptr_t)size;
    side->defined = side->bytes;
}

static void draw_reduction(struct rx_call *c, uint64_t *own)
{
    struct rx_type const *type = c->recv.type[0]; /* left here by draw_type() */
    int                   ranks = c->where.size;
    int                   in = c->units;
    int                   out = c->units;

    if (c->coll == RX_REDUCE_SCATTER_BLOCK) {
        in = c->units * ranks;
    } else if (c->coll == RX_REDUCE_SCATTER) {
        in = 0;
        for (int i = 0; i < ranks; i++) {
            c->parts[i] = units_between(c, i, i);
            in += c->parts[i];
        }
        out = c->parts[c->where.rank];
    }
    if ((c->coll == RX_REDUCE) && (c->where.rank != c->root)) {
        c->in_place = false;
        c->recv.null = rx_below(own, 2) == 0;
    }
    c->undefined = (c->coll == RX_EXSCAN) && (c->where.rank == 0);
    add_block(c, &c->send, type, in);
    add_block(c, &c->recv, type, c->in_place ? in : out);
    lay_out(&c->send, PACKED, own);
    lay_out(&c->recv, PACKED, own);
    if (c->in_place && (out < in)) {
        /* The input behind the result: some algorithms of MPI reduce in it. */
        long behind = (long)(out * c->per_unit / type->per) * type->extent;
        c->recv.defined = (size_t)(c->recv.origin +
                                   (behind + ((type->low < 0) ? type->low : 0)) * (long)type->size);
    }
}

/* bcast, gather and scatter: the root has a block for each rank, the others one. */
static void draw_rooted(struct rx_call *c, uint64_t *own)
{
    bool                  root = c->where.rank == c->root;
    bool                  gathers = (c->coll == RX_GATHER) || (c->coll == RX_GATHERV);
    bool                  vector = (c->coll == RX_GATHERV) || (c->coll == RX_SCATTERV);
    struct rx_side       *one = gathers ? &c->send : &c->recv;
    struct rx_side       *many = gathers ? &c->recv : &c->send;
    uint64_t              shared = rx_hash(c->seed, 78, 0);
    const struct rx_type *type = draw_shape(c, &shared);
    const struct rx_type *parts = (c->coll == RX_BCAST) ? type : draw_shape(c, &shared);

    c->in_place = c->in_place && root && (c->coll != RX_BCAST);
    if (c->coll == RX_BCAST) {
        add_block(c, one, type, c->units);
    } else {
        bool in_place = c->in_place;
        c->in_place = false; /* nothing is exchanged here */
        add_block(c, one, type, vector ? units_between(c, c->where.rank, -1) : c->units);
        for (int i = 0; root && (i < c->where.size); i++) {
            add_block(c, many, parts, vector ? units_between(c, i, -1) : c->units);
        }
        c->in_place = in_place;
    }
    if (many->blocks == 0) {
        many->types[0] = MPI_BYTE; /* MPI does not look at it */
        many->null = (c->coll != RX_BCAST) && (rx_below(own, 2) == 0);
    }
    lay_out(one, PACKED, own);
    lay_out(many, vector ? SPREAD : PACKED, own);
}

/* What this rank sends to, or gets from, the other end of each block. */
static void draw_exchange(struct rx_call *c, uint64_t *own)
{
    const struct rx_comm *w = &c->where;
    bool                  near = is_neighbor(c->coll);
    bool                  gathers = (c->coll == RX_ALLGATHER) || (c->coll == RX_ALLGATHERV) ||
                   (c->coll == RX_NEIGHBOR_ALLGATHER) || (c->coll == RX_NEIGHBOR_ALLGATHERV);
    bool vector = (c->coll == RX_ALLGATHERV) || (c->coll == RX_NEIGHBOR_ALLGATHERV) ||
                  (c->coll == RX_ALLTOALLV) || (c->coll == RX_NEIGHBOR_ALLTOALLV);
    bool                  each = (c->coll == RX_ALLTOALLW) || (c->coll == RX_NEIGHBOR_ALLTOALLW);
    int                   outs = gathers ? 1 : (near ? w->num_out : w->size);
    int                   ins = near ? w->num_in : w->size;
    enum spread           spread = each ? SPREAD_BYTES : (vector ? SPREAD : PACKED);
    uint64_t              shared = rx_hash(c->seed, 78, 0);
    const struct rx_type *sent = draw_shape(c, &shared);
    const struct rx_type *got = draw_shape(c, &shared);

    if ((w->size == 1) && ((int)c->coll == ALONE_WRONG)) {
        spread = PACKED;
    }
    for (int i = 0; i < outs; i++) {
        int to = gathers ? -1 : (near ? w->out[i] : i);
        int units = (vector || each) ? units_between(c, w->rank, to) : c->units;
        sent = each ? draw_shape(c, own) : sent;
        add_block(c, &c->send, sent, units);
    }
    for (int i = 0; i < ins; i++) {
        int from = near ? w->in[i] : i;
        int units = (vector || each) ? units_between(c, from, gathers ? -1 : w->rank) : c->units;
        got = each ? draw_shape(c, own) : got;
        add_block(c, &c->recv, got, units);
    }
    lay_out(&c->send, gathers ? PACKED : spread, own);
    lay_out(&c->recv, spread, own);
    if (outs == 0) { /* Open MPI does nothing at all where a single count is 0 */
        c->send.types[0] = sent->handle;
        c->send.counts[0] = c->units * c->per_unit / sent->per;
    }
    if (ins == 0) {
        c->recv.types[0] = got->handle;
        c->recv.counts[0] = c->units * c->per_unit / got->per;
    }
}

static void draw_coll(struct rx_call *c, uint64_t *state, const struct rx_comm *comms)
{
    int slot = rx_below(state, RX_COMMS);
    int form = rx_below(state, 10);

    c->coll = (enum rx_coll)rx_below(state, RX_NUM_COLLS);
    if (rx_options.only >= 0) {
        c->coll = (enum rx_coll)rx_options.only;
    }
    if ((int)c->coll == WRONG) {
        c->coll = RX_ALLTOALLW;
    }
    if (is_neighbor(c->coll)) {
        slot = ((slot % 2) || rx_options.without[RX_HAS_GRAPHS]) ? GRID : GRAPH;
    }
    c->comm = &comms[slot];
    c->where = comms[slot];
    c->mode = (form < 4) ? RX_BLOCKING : ((form < 8) ? RX_NONBLOCKING : RX_PERSISTENT);
    if (rx_options.blocking || (c->coll == RX_REDUCE_LOCAL)) {
        c->mode = RX_BLOCKING;
    } else if ((c->mode == RX_PERSISTENT) &&
               (!rx_has_persistent() || rx_options.without[RX_HAS_PERSISTENT])) {
        c->mode = RX_NONBLOCKING;
    }
    c->root = rx_below(state, 64) % c->where.size;
    c->in_place = (rx_below(state, 4) == 0) && !rx_options.without[RX_HAS_IN_PLACE] &&
                  !is_neighbor(c->coll) && (c->coll != RX_REDUCE_LOCAL) && (c->coll != RX_BARRIER);
    /* MPIs go wrong in these in place where they do not block, and in a lone rank's exchange. */
    bool exchanges = (c->coll >= RX_ALLTOALL) && (c->coll <= RX_ALLTOALLW);
    if ((exchanges || (c->coll == RX_REDUCE_SCATTER)) && (c->mode != RX_BLOCKING)) {
        c->in_place = false;
        c->mode = exchanges ? RX_NONBLOCKING : c->mode; /* Open MPI's persistent ones */
        c->mode = (c->where.size == 1) ? RX_BLOCKING : c->mode;
    }
#ifdef MPICH_VERSION
    /* MPICH 4.0.2 takes MPI_IN_PLACE for an address where the root is not rank 0. */
    c->in_place = c->in_place && !((c->coll == RX_REDUCE) && (c->root != 0));
#endif
}

/* The base type, the operation, and how many base elements make one unit. */
static void draw_type(struct rx_call *c, uint64_t *state)
{
    int kind = rx_below(state, 10);

    if (is_reduction(c->coll)) {
        rx_draw_reduction(state, c->where.size, &c->base, &c->recv.type[0], &c->op);
        c->per_unit = c->recv.type[0]->per;
        return;
    }
#ifndef MPICH_VERSION
    /* Open MPI 4.1.4 may wait for ever for derived types in these. */
    if ((c->mode != RX_BLOCKING) &&
        ((c->coll == RX_ALLTOALLW) || (c->coll == RX_NEIGHBOR_ALLTOALLW))) {
        kind = 1;
    }
#endif
    c->base = ((kind == 0) && STRUCTS && !rx_options.without[RX_HAS_STRUCTS]) ? NULL
                                                                              : rx_draw_base(state);
    c->per_unit = ((kind < 6) || rx_options.without[RX_HAS_DERIVED]) ? 1 : RX_UNIT;
}

static bool has_holes(const struct mt_type *base)
{
    int size;

    PMPI_Type_size(base->type, &size);
    return (size_t)size != rx_type_get(base, 0)->size;
}

/*
 * From none to a MiB, or to some, counted in units, of which there may be one block for each rank.
 */
static void draw_units(struct rx_call *c, uint64_t *state)
{
    int    kind = rx_below(state, 1000);
    int    small = rx_below(state, 20);
    double part = (double)(mt_next(state) >> 40) / (double)(1 << 24);
    size_t size = (c->base == NULL) ? 24 : rx_type_get(c->base, 0)->size;
    bool   blocks = !is_reduction(c->coll) && (c->coll != RX_BCAST);
    size_t unit = size * (size_t)c->per_unit * (size_t)(blocks ? c->where.size : 1);
    size_t bytes = (kind < 940) ? 4096 : ((kind < 997) ? 100 << 10 : 1 << 20);

    bytes = rx_options.large ? 6 << 20 : bytes;
    if ((bytes > MOST_OF_PAIRS) && (c->base != NULL) && has_holes(c->base)) {
        bytes = MOST_OF_PAIRS;
    }
    if (kind < 100) {
        c->units = 0;
    } else if (kind < 700) {
        c->units = small;
    } else {
        c->units = (int)(part * (double)bytes / (double)unit);
    }
}

/* The same kind on all ranks, or one for this rank; by the seed of one of both. */
static enum mt_where draw_where(uint64_t *state)
{
    static const enum mt_where kinds[] = {MT_DEVICE, MT_DEVICE,  MT_DEVICE,
                                          MT_HOST,   MT_MANAGED, MT_DEVICE};

    return kinds[rx_below(state, 6)];
}

void rx_draw(struct rx_call *c, const struct rx_comm *comms, int world_rank)
{
    uint64_t state = c->seed;
    uint64_t own = rx_hash(c->seed, 77, (uint64_t)world_rank);

    draw_coll(c, &state, comms);
    draw_type(c, &state);
    draw_units(c, &state);
    c->send.where = draw_where(rx_options.mixed ? &own : &state);
    c->recv.where = draw_where(rx_options.mixed ? &own : &state);
    if (c->in_place && is_rooted(c->coll) && !rx_options.mixed) {
        c->send.where = c->recv.where; /* the root has one buffer only: all pass its kind */
    }
    if (is_reduction(c->coll)) {
        draw_reduction(c, &own);
    } else if ((c->coll >= RX_BCAST) && (c->coll <= RX_SCATTERV)) {
        draw_rooted(c, &own);
    } else if (c->coll != RX_BARRIER) {
        draw_exchange(c, &own);
    }
    if (c->base == NULL) {
        c->base = rx_type_mixed()->base;
    }
}

static void describe_side(const struct rx_side *side, char *text, size_t size)
{
    static const char *const kinds[] = {"host", "device", "managed"};
    size_t                   used = 0;

    used += (size_t)snprintf(text, size, "%s memory%s, %zu bytes:", kinds[side->where],
                             side->null ? " (NULL)" : "", side->bytes);
    for (int b = 0; (b < side->blocks) && (used < size); b++) {
        used += (size_t)snprintf(text + used, size - used, " %d %s at %d", side->counts[b],
                                 side->type[b]->shape, side->displs[b]);
    }
}

void rx_describe(const struct rx_call *c, char *text, size_t size)
{
    static const char *const modes[] = {"", "blocking", "non-blocking", "persistent"};
    char                     send[600], recv[600], root[32] = "";

    describe_side(&c->send, send, sizeof(send));
    describe_side(&c->recv, recv, sizeof(recv));
    if (is_rooted(c->coll)) {
        snprintf(root, sizeof(root), ", root %d", c->root);
    }
    snprintf(text, size, "%s, %s, on %s as rank %d of %d%s%s, %s%s%s\n  send: %s\n  recv: %s",
             names[c->coll], modes[c->mode], c->where.kind, c->where.rank, c->where.size, root,
             c->in_place ? ", in place" : "", (c->base != NULL) ? c->base->name : "",
             is_reduction(c->coll) ? ", " : "", is_reduction(c->coll) ? c->op.name : "", send,
             recv);
}
