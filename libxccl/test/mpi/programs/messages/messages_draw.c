/* SPDX-License-Identifier: BSD-3-Clause */
/* Draw a round of messages, and how each end of them on this rank is made. */
#include "messages.h"

#include <string.h>

enum { UNIQUE_TAGS = 100, CANCELLED_TAGS = 31000, SHIFT_TAGS = 31500, MOST_UNIQUE = 3000 };

/* MPICH 4.0.2 says of larger messages of types with holes that they are truncated. */
#ifdef MPICH_VERSION
enum { MOST_WITH_HOLES = 4000 };
#else
enum { MOST_WITH_HOLES = 1 << 30 };
#endif

/* ---- communicators ---- */

static int part_of(uint64_t seed, int rank)
{
    return (int)(rx_hash(seed, (uint64_t)rank, 1) % 2);
}

static void add_member(struct mg_comm *c, int world, int me)
{
    c->rank = (world == me) ? c->size : c->rank;
    c->world[c->size++] = world;
}

void mg_comms_make(struct mg_worker *w)
{
    static const char *const kinds[MG_COMMS] = {"all ranks",       "a duplicate",
                                                "all backwards",   "the first part",
                                                "the second part", "for shifts"};
    uint64_t                 seed = rx_hash(rx_options.seed, (uint64_t)w->id, 31);
    int                      me, size;

    MPI_Comm_rank(w->parent, &me);
    MPI_Comm_size(w->parent, &size);
    for (int slot = 0; slot < MG_COMMS; slot++) {
        w->comms[slot] = (struct mg_comm){.kind = kinds[slot], .rank = -1};
        for (int i = 0; i < size; i++) {
            bool backwards = (slot == 2) || (slot == MG_SHIFTED);
            int  rank = backwards ? size - 1 - i : i;
            if ((slot < MG_PART) || (slot == MG_SHIFTED) ||
                (part_of(seed, rank) == slot - MG_PART)) {
                add_member(&w->comms[slot], rank, me);
            }
        }
    }
    w->comms[0].comm = w->parent;
    MPI_Comm_dup(w->parent, &w->comms[1].comm);
    MPI_Comm_split(w->parent, 0, size - me, &w->comms[2].comm);
    MPI_Comm_split(w->parent, part_of(seed, me), me, &w->comms[MG_PART + part_of(seed, me)].comm);
    MPI_Comm_dup(w->comms[2].comm, &w->comms[MG_SHIFTED].comm);
}

void mg_comms_free(struct mg_worker *w)
{
    for (int slot = 1; slot < MG_COMMS; slot++) {
        if (w->comms[slot].rank >= 0) {
            MPI_Comm_free(&w->comms[slot].comm);
        }
    }
}

/* ---- datatypes ---- */

static void add_element(struct mg_type *type, size_t at, size_t size)
{
    type->at[type->num] = at;
    type->sizes[type->num++] = size;
    type->size += size;
}

static void make_mixed(struct mg_type *type)
{
    const struct rx_type *from = rx_type_mixed();

    *type = (struct mg_type){.handle = from->handle, .base = "mixed", .shape = from->shape};
    add_element(type, 0, 4);
    add_element(type, 8, 8);
    for (size_t i = 20; i < 23; i++) {
        add_element(type, i, 1);
    }
    type->high = type->extent = from->extent;
}

static void make_type(struct mg_type *type, const struct mt_type *base, int shape)
{
    const struct rx_type *from = rx_type_get(base, shape);
    intptr_t              size = (intptr_t)from->size;

    *type = (struct mg_type){.handle = from->handle,
                             .base = base->name,
                             .shape = from->shape,
                             .pairs = (base->class == MT_PAIR),
                             .low = from->low * size,
                             .high = from->high * size,
                             .extent = from->extent * size};
    for (int i = 0; i < from->per; i++) {
        size_t at = (size_t)(from->places[i] * size);
        if (base->class == MT_COMPLEX) {
            add_element(type, at, from->size);
            continue;
        }
        for (int f = 0; (f < 2) && (base->field[f].size > 0); f++) {
            add_element(type, at + base->field[f].at, base->field[f].size);
        }
    }
}

/* Most messages are small, a few have megabytes. */
static int draw_count(uint64_t *state, size_t size)
{
    static const int limits[] = {2000, 2000, 20000, 100000, 1 << 20};
    int              which = rx_below(state, 16);
    int              most = 20;

    if (which < (int)(sizeof(limits) / sizeof(limits[0]))) {
        most = limits[which] / (int)size;
    }
    return rx_below(state, most + 1);
}

/* A long double's padding may or may not be sent. */
static const struct mt_type *draw_base(uint64_t *state)
{
    const struct mt_type *base;

    do {
        base = rx_draw_base(state);
    } while ((base->field[0].kind == 'f') && (base->field[0].size == sizeof(long double)));
    return base;
}

static bool has_holes(const struct mg_type *type)
{
    return (intptr_t)type->size != type->extent;
}

/* Both ends describe the same elements, each with a shape of its own. */
static void draw_data(struct mg_message *m, uint64_t base_seed, uint64_t *state)
{
    bool mixed = rx_below(&base_seed, 8) == 0;

    int count, most = 1 << 30;

    if (mixed) {
        make_mixed(&m->send_type);
        make_mixed(&m->recv_type);
    } else {
        const struct mt_type *base = draw_base(&base_seed);
        int                   shapes[2] = {rx_below(state, RX_SHAPES), rx_below(state, RX_SHAPES)};
        make_type(&m->send_type, base, shapes[0]);
        make_type(&m->recv_type, base, (rx_below(state, 3) == 0) ? shapes[0] : shapes[1]);
    }
    if (has_holes(&m->send_type) || has_holes(&m->recv_type)) {
        most = MOST_WITH_HOLES / (int)m->send_type.size;
    }
    count = draw_count(state, m->send_type.size);
    m->send_count = (count < most) ? count : most;
    m->bytes = (size_t)m->send_count * m->send_type.size;
}

/* Room for so many bytes, and sometimes for more. */
static void draw_room(struct mg_message *m, size_t bytes, uint64_t *state)
{
    size_t size = m->recv_type.size;
    int more = (rx_below(state, 3) > 0) ? 0 : rx_below(state, (rx_below(state, 2) > 0) ? 4 : 400);

    m->recv_count = (int)((bytes + size - 1) / size) + more;
}

/* ---- messages ---- */

static enum mg_wild draw_wild(const struct mg_round *r, const struct mg_message *m)
{
    uint64_t hash = rx_hash(r->seed, 40 + (uint64_t)m->slot, (uint64_t)m->dest) % 10;

    if ((hash < 2) && !r->loose) { /* a receive of this round could take a message of the next */
        return MG_ANY;
    }
    return (hash < 5) ? MG_ANY_TAG : MG_EXACT;
}

static void draw_ends(const struct mg_worker *w, struct mg_message *m, uint64_t *state)
{
    const struct mg_round *r = &w->round;

    if ((r->num_messages > 0) && (rx_below(state, 3) == 0)) {
        const struct mg_message *last = &r->messages[r->num_messages - 1];
        if (last->kind == MG_MESSAGE) {
            m->slot = last->slot;
            m->source = last->source;
            m->dest = last->dest;
            m->tag = last->tag;
            m->unique = false;
            if (last->unique) {
                m->tag = rx_below(state, 3);
            }
            return;
        }
    }
    do {
        m->slot = rx_below(state, MG_SHIFTED);
    } while (w->comms[m->slot].size == 0);
    m->source = rx_below(state, w->comms[m->slot].size);
    m->dest = rx_below(state, w->comms[m->slot].size);
    m->unique = rx_below(state, 2) == 0;
    m->tag = m->unique
                 ? UNIQUE_TAGS + (int)(r->number % MOST_UNIQUE) * MG_MESSAGES + r->num_messages
                 : rx_below(state, 3);
}

static void draw_message(struct mg_worker *w)
{
    struct mg_round   *r = &w->round;
    struct mg_message *m = &r->messages[r->num_messages];
    uint64_t           state = rx_hash(r->seed, 50, (uint64_t)r->num_messages);
    int                kind = rx_below(&state, 32);

    *m = (struct mg_message){.kind = MG_MESSAGE, .seed = mt_next(&state)};
    draw_ends(w, m, &state);
    m->wild = draw_wild(r, m);
    if (kind < 2) {
        m->kind = MG_TO_NOBODY;
        m->dest = MPI_PROC_NULL;
    } else if (kind < 4) {
        m->kind = MG_FROM_NOBODY;
        m->source = MPI_PROC_NULL;
    } else if (kind < 7) {
        m->kind = MG_CANCELLED;
        m->tag = CANCELLED_TAGS + r->num_messages;
    }
    if (m->kind != MG_MESSAGE) {
        m->wild = MG_EXACT;
        m->unique = true;
    }
    draw_data(m,
              (m->wild == MG_ANY) ? rx_hash(r->seed, 60 + (uint64_t)m->slot, (uint64_t)m->dest)
                                  : mt_next(&state),
              &state);
    r->num_messages++;
}

/* May the receives of both take the same message? */
bool mg_same_domain(const struct mg_message *a, const struct mg_message *b)
{
    return (a->kind == MG_MESSAGE) && (b->kind == MG_MESSAGE) && (a->slot == b->slot) &&
           (a->dest == b->dest) &&
           ((a->wild == MG_ANY) ||
            ((a->source == b->source) && ((a->wild == MG_ANY_TAG) || (a->tag == b->tag))));
}

/*
 * Receives match in the order in which they are made. So of those that could take each other's
 * message the first ones are made before anything is sent, and the others later; with any source
 * either all or none.
 */
static void arrange(struct mg_round *r, int i)
{
    struct mg_message *m = &r->messages[i];
    uint64_t           state = rx_hash(m->seed, 7, 7);
    int                before = 0, all = 0, first = i;
    size_t             most = m->bytes;

    for (int k = r->num_messages - 1; k >= 0; k--) {
        const struct mg_message *other = &r->messages[k];
        if ((k != i) && !mg_same_domain(m, other)) {
            continue;
        }
        first = k;
        all++;
        before += (k < i) ? 1 : 0;
        most = (other->bytes > most) ? other->bytes : most;
    }
    uint64_t hash = rx_hash(r->messages[first].seed, 8, 8);
    m->alone = (all == 1);
    m->posted = (m->kind == MG_CANCELLED) || (before < (int)(hash % (uint64_t)(all + 1)));
    if (m->wild == MG_ANY) {
        m->posted = (hash % 2 == 0);
        draw_room(m, most, &state);
    } else {
        draw_room(m, m->bytes, &state);
    }
}

void mg_shift_message(const struct mg_worker *w, const struct mg_shift *shift, int from,
                      struct mg_message *m)
{
    int      size = w->comms[MG_SHIFTED].size;
    int      to = from + shift->distance;
    uint64_t state = rx_hash(shift->seed, 3, (uint64_t)from);

    if (shift->around) {
        to = (to + size) % size;
    }
    *m = (struct mg_message){.kind = MG_SHIFT,
                             .slot = MG_SHIFTED,
                             .source = from,
                             .dest = ((to < 0) || (to >= size)) ? MPI_PROC_NULL : to,
                             .tag = shift->tag,
                             .unique = true,
                             .alone = true,
                             .seed = state};
    draw_data(m, shift->seed, &state);
    draw_room(m, m->bytes, &state);
}

static void draw_shifts(struct mg_worker *w, uint64_t *state)
{
    struct mg_round *r = &w->round;
    int              size = w->comms[MG_SHIFTED].size;

    r->num_shifts = (rx_below(state, 3) > 0) ? 0 : 1 + rx_below(state, MG_SHIFTS);
    for (int i = 0; i < r->num_shifts; i++) {
        r->shifts[i] = (struct mg_shift){.distance = rx_below(state, 2 * size + 1) - size,
                                         .around = rx_below(state, 2) == 0,
                                         .tag = SHIFT_TAGS + i,
                                         .seed = mt_next(state)};
        if (r->shifts[i].around) {
            r->shifts[i].distance %= size;
        }
    }
}

/* ---- the ends on this rank ---- */

static enum mt_where draw_where(uint64_t *own)
{
    static const enum mt_where wheres[] = {MT_HOST,   MT_HOST,    MT_DEVICE, MT_DEVICE,
                                           MT_DEVICE, MT_MANAGED, MT_DEVICE};

    return wheres[rx_below(own, (int)(sizeof(wheres) / sizeof(wheres[0])))];
}

static struct mg_side *add_side(struct mg_worker *w, const struct mg_message *m, bool sends)
{
    struct mg_side *side = &w->sides[w->num_sides++];

    *side = (struct mg_side){.message = *m,
                             .sends = sends,
                             .source = m->source,
                             .tag = m->tag,
                             .where = draw_where(&w->own),
                             .slot = -1};
    side->type = sends ? &side->message.send_type : &side->message.recv_type;
    side->count = sends ? m->send_count : m->recv_count;
    return side;
}

/*
 * Open MPI 4.1.4 sends wrong data when a buffered persistent send is started again. MPICH 4.0.2
 * takes persistent requests from and to nobody for inactive.
 */
static bool persists_wrongly(const struct mg_worker *w, const struct mg_side *side)
{
#ifdef MPICH_VERSION
    bool wrong = (side->message.kind == MG_TO_NOBODY) || (side->message.kind == MG_FROM_NOBODY);
#else
    bool wrong = side->sends && (side->mode == MG_BUFFER) && (w->round.passes > 1);
#endif

    (void)w;
    return wrong && (side->form == MG_PERSISTENT);
}

/*
 * MPICH 4.0.2 loses a message to the rank itself when its request is freed before the receive is
 * there, and completes a persistent request twice that is freed while it is active.
 */
static bool frees_wrongly(const struct mg_side *side)
{
#ifdef MPICH_VERSION
    return (side->form == MG_PERSISTENT) || (side->message.source == side->message.dest);
#else
    (void)side;
    return false;
#endif
}

/* A blocking send waits for its receive, so that has to be there without this rank's doing. */
static void draw_send(struct mg_worker *w, const struct mg_message *m)
{
    struct mg_side *side = add_side(w, m, true);
    bool            safe = m->posted || (m->kind == MG_TO_NOBODY);

    do {
        side->mode = (enum mg_mode)rx_below(&w->own, MG_MODES);
        side->form = (enum mg_form)rx_below(&w->own, MG_PERSISTENT + 1);
    } while (
        ((side->form == MG_BLOCKING) && (side->mode != MG_BUFFER) && !safe) ||
        ((side->mode == MG_BUFFER) && (m->bytes > MG_BUFFERED)) || persists_wrongly(w, side) ||
        ((side->mode == MG_READY) && ((m->kind != MG_MESSAGE) || !m->posted || !w->round.ready)));
    /* The next barrier says that a request that was freed is over. */
    side->frees = !w->round.loose && (side->form != MG_BLOCKING) && !frees_wrongly(side) &&
                  (rx_below(&w->own, 6) == 0);
    side->batched =
        (side->form == MG_PERSISTENT) && m->alone && !side->frees && (rx_below(&w->own, 2) == 0);
}

static void draw_receive(struct mg_worker *w, const struct mg_message *m)
{
    struct mg_side *side = add_side(w, m, false);

    side->form = m->posted ? ((rx_below(&w->own, 3) == 0) ? MG_PERSISTENT : MG_NONBLOCKING)
                           : (enum mg_form)rx_below(&w->own, MG_IMPROBED + 1);
    if (persists_wrongly(w, side)) {
        side->form = MG_NONBLOCKING;
    }
    side->frees =
        (m->kind == MG_CANCELLED) && (side->form == MG_NONBLOCKING) && (rx_below(&w->own, 4) == 0);
    side->batched = (side->form == MG_PERSISTENT) && (m->kind == MG_MESSAGE) && m->posted &&
                    m->alone && (m->wild == MG_EXACT) && (rx_below(&w->own, 2) == 0);
    if ((m->wild == MG_ANY) ||
        (m->unique && (m->wild == MG_EXACT) && (m->source >= 0) && (rx_below(&w->own, 2) == 0))) {
        side->source = MPI_ANY_SOURCE;
    }
    if ((m->wild == MG_ANY) || ((m->wild == MG_ANY_TAG) && (rx_below(&w->own, 2) == 0))) {
        side->tag = MPI_ANY_TAG;
    }
}

/* Where the datatype is the same both ways, one buffer may do. */
static void draw_shift_ends(struct mg_worker *w, const struct mg_shift *shift)
{
    int               me = w->comms[MG_SHIFTED].rank, size = w->comms[MG_SHIFTED].size;
    int               from = me - shift->distance;
    struct mg_message out, in;
    struct mg_side   *send, *recv;

    mg_shift_message(w, shift, me, &out);
    if (shift->around) {
        from = (from + size) % size;
    }
    bool nobody = (from < 0) || (from >= size);
    mg_shift_message(w, shift, nobody ? me : from, &in);
    if (nobody) {
        in.source = MPI_PROC_NULL;
    }
    in.dest = me;
    send = add_side(w, &out, true);
    recv = add_side(w, &in, false);
    recv->form = send->form = MG_PAIRED;
    if ((nobody || (in.bytes <= out.bytes)) && (rx_below(&w->own, 2) == 0)) {
        recv->form = send->form = MG_REPLACED;
        recv->type = &recv->message.send_type;
        recv->message.send_type = out.send_type;
        recv->count = out.send_count;
        recv->replaced = send;
    }
    recv->pair = send;
    recv->returns = mg_has_isendrecv() && (recv->form == MG_PAIRED) && (rx_below(&w->own, 2) == 0);
}

static void draw_sides(struct mg_worker *w)
{
    const struct mg_round *r = &w->round;

    w->num_sides = 0;
    for (int i = 0; i < r->num_messages; i++) {
        const struct mg_message *m = &r->messages[i];
        int                      me = w->comms[m->slot].rank;
        if (me < 0) {
            continue;
        }
        if ((me == m->source) && (m->kind != MG_CANCELLED)) {
            draw_send(w, m);
        }
        if (me == m->dest) {
            draw_receive(w, m);
        }
    }
    for (int i = 0; i < r->num_shifts; i++) {
        draw_shift_ends(w, &r->shifts[i]);
    }
}

void mg_draw(struct mg_worker *w, long number)
{
    struct mg_round *r = &w->round;
    uint64_t         state = rx_hash(rx_options.seed, 100 + (uint64_t)w->id, (uint64_t)number);
    int              me;

    *r = (struct mg_round){.number = number, .seed = state};
    MPI_Comm_rank(w->parent, &me);
    w->own = rx_hash(state, 5, (uint64_t)me);
    r->passes = (rx_below(&state, 3) > 0) ? 1 : 2 + rx_below(&state, 2);
    r->ready = rx_below(&state, 3) == 0;
    r->loose = rx_below(&state, 4) == 0;
    int messages = 1 + rx_below(&state, MG_MESSAGES);
    while (r->num_messages < messages) {
        draw_message(w);
    }
    for (int i = 0; i < messages; i++) {
        arrange(r, i);
    }
    draw_shifts(w, &state);
    draw_sides(w);
}
