/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every collective on communicators of one rank, whose data goes to itself: each form, in place or
 * not, types with holes, displacements, memory of several kinds. PATH is the one to be taken.
 * Usage: mpi_self cuda|rocm PATH [long|managed|starts|left]
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support.h"

/* Vectors of ELEMENTS data in blocks of two with holes behind them, `apart` ints from each other.
 */
enum { BLOCK = 2, DISPL = 3, MOST = 66000 };
enum form { BLOCKING, NONBLOCKING, PERSISTENT, NUM_FORMS };
static const char *const form_names[] = {"blocking", "non-blocking", "persistent"};

#define COLLECTIVES(X)                                                                             \
    X(Allreduce, allreduce)                                                                        \
    X(Bcast, bcast)                                                                                \
    X(Reduce, reduce)                                                                              \
    X(Reduce_scatter, reduce_scatter)                                                              \
    X(Reduce_scatter_block, reduce_scatter_block)                                                  \
    X(Scan, scan)                                                                                  \
    X(Exscan, exscan)                                                                              \
    X(Allgather, allgather)                                                                        \
    X(Allgatherv, allgatherv)                                                                      \
    X(Alltoall, alltoall)                                                                          \
    X(Alltoallv, alltoallv)                                                                        \
    X(Alltoallw, alltoallw)                                                                        \
    X(Gather, gather)                                                                              \
    X(Gatherv, gatherv)                                                                            \
    X(Scatter, scatter)                                                                            \
    X(Scatterv, scatterv)
enum coll {
#define ID(name, small) name,
    COLLECTIVES(ID)
#undef ID
        NUM_COLLS
};
static const char *const coll_names[] = {
#define NAME(name, small) #name,
    COLLECTIVES(NAME)
#undef NAME
};

/* How data lies in a buffer of ints: apart 0: one after the other. */
struct shape {
    int           apart;
    int           displ; /* in elements of the type */
    enum mt_where where;
};

/* One call. */
struct work {
    enum coll    coll;
    enum form    form;
    bool         in_place;
    int          count; /* ints of data */
    struct shape from, to;
    MPI_Comm     comm;
    MPI_Op       op;
};

struct side {
    struct shape shape;
    int          room;
    int         *memory, *host;
    MPI_Datatype type;
    int          count, displ, bytes; /* of the type; and the displacement in bytes */
};

static const char *path;

/* ---- the sixteen calls, in three forms ---- */

#define TAIL MPI_Comm, MPI_Info, MPI_Request *
#define PART const void *, int, MPI_Datatype, void *, int, MPI_Datatype
#define INTO_PART const void *, int, MPI_Datatype, void *, const int *, const int *, MPI_Datatype
#define REDUCES const void *, void *, int, MPI_Datatype, MPI_Op
#define PARTS const void *, const int *, const int *, MPI_Datatype
#define LISTS const int *, const int *, const MPI_Datatype *

/* Of Open MPI 4.1 the persistent ones are known by name only. */
#define CALL(name, small, types, ...)                                                              \
    do {                                                                                           \
        int(*init) types = NULL;                                                                   \
        *(void **)&init = mt_find("MPI_" #name "_init");                                           \
        return (w->form == BLOCKING)      ? MPI_##name(__VA_ARGS__, w->comm)                       \
               : (w->form == NONBLOCKING) ? MPI_I##small(__VA_ARGS__, w->comm, request)            \
               : (init != NULL)           ? init(__VA_ARGS__, w->comm, MPI_INFO_NULL, request)     \
                                          : MPI_ERR_OTHER;                                                   \
    } while (0)

static int call_reduction(const struct work *w, const struct side *s, const struct side *r,
                          MPI_Request *request)
{
    const void *from = w->in_place ? MPI_IN_PLACE : s->memory;
    int        *to = r->memory;

    switch (w->coll) {
    case Allreduce:
        CALL(Allreduce, allreduce, (REDUCES, TAIL), from, to, r->count, r->type, w->op);
    case Reduce:
        CALL(Reduce, reduce, (REDUCES, int, TAIL), from, to, r->count, r->type, w->op, 0);
    case Reduce_scatter:
        CALL(Reduce_scatter, reduce_scatter,
             (const void *, void *, const int *, MPI_Datatype, MPI_Op, TAIL), from, to, &r->count,
             r->type, w->op);
    case Reduce_scatter_block:
        CALL(Reduce_scatter_block, reduce_scatter_block, (REDUCES, TAIL), from, to, r->count,
             r->type, w->op);
    case Scan:
        CALL(Scan, scan, (REDUCES, TAIL), from, to, r->count, r->type, w->op);
    default:
        CALL(Exscan, exscan, (REDUCES, TAIL), from, to, r->count, r->type, w->op);
    }
}

static int call_vector(const struct work *w, const struct side *s, const struct side *r,
                       MPI_Request *request)
{
    const void *from = w->in_place ? MPI_IN_PLACE : s->memory;
    void       *to = w->in_place ? MPI_IN_PLACE : r->memory; /* of a scatter */

    switch (w->coll) {
    case Allgatherv:
        CALL(Allgatherv, allgatherv, (INTO_PART, TAIL), from, s->count, s->type, r->memory,
             &r->count, &r->displ, r->type);
    case Gatherv:
        CALL(Gatherv, gatherv, (INTO_PART, int, TAIL), from, s->count, s->type, r->memory,
             &r->count, &r->displ, r->type, 0);
    case Scatterv:
        CALL(Scatterv, scatterv, (PARTS, void *, int, MPI_Datatype, int, TAIL), s->memory,
             &s->count, &s->displ, s->type, to, r->count, r->type, 0);
    case Alltoallv:
        CALL(Alltoallv, alltoallv, (PARTS, void *, const int *, const int *, MPI_Datatype, TAIL),
             from, &s->count, &s->displ, s->type, r->memory, &r->count, &r->displ, r->type);
    default:
        CALL(Alltoallw, alltoallw, (const void *, LISTS, void *, LISTS, TAIL), from, &s->count,
             &s->bytes, &s->type, r->memory, &r->count, &r->bytes, &r->type);
    }
}

static int call(const struct work *w, const struct side *s, const struct side *r,
                MPI_Request *request)
{
    const void *from = w->in_place ? MPI_IN_PLACE : s->memory;
    void       *to = w->in_place ? MPI_IN_PLACE : r->memory;

    if ((w->coll <= Exscan) && (w->coll != Bcast)) {
        return call_reduction(w, s, r, request);
    }
    switch (w->coll) {
    case Bcast:
        CALL(Bcast, bcast, (void *, int, MPI_Datatype, int, TAIL), r->memory, r->count, r->type, 0);
    case Allgather:
        CALL(Allgather, allgather, (PART, TAIL), from, s->count, s->type, r->memory, r->count,
             r->type);
    case Alltoall:
        CALL(Alltoall, alltoall, (PART, TAIL), from, s->count, s->type, r->memory, r->count,
             r->type);
    case Gather:
        CALL(Gather, gather, (PART, int, TAIL), from, s->count, s->type, r->memory, r->count,
             r->type, 0);
    case Scatter:
        CALL(Scatter, scatter, (PART, int, TAIL), s->memory, s->count, s->type, to, r->count,
             r->type, 0);
    default:
        return call_vector(w, s, r, request);
    }
}

/* ---- buffers ---- */

static bool is_vector(enum coll coll, bool sends)
{
    return (coll == Alltoallv) || (coll == Alltoallw) ||
           (sends ? (coll == Scatterv) : ((coll == Allgatherv) || (coll == Gatherv)));
}

/* One int of data: where is it? */
static int place_of(const struct side *side, int i)
{
    int apart = side->shape.apart;

    return (apart == 0) ? side->displ + i : (side->displ + i / BLOCK) * apart + i % BLOCK;
}

static struct side side_make(const struct work *w, bool sends)
{
    struct side  side = {.shape = sends ? w->from : w->to, .type = MPI_INT, .count = w->count};
    int          apart = side.shape.apart;
    MPI_Datatype block;

    side.displ = is_vector(w->coll, sends) ? side.shape.displ : 0;
    if (apart > 0) {
        MPI_Type_contiguous(BLOCK, MPI_INT, &block);
        MPI_Type_create_resized(block, 0, apart * (int)sizeof(int), &side.type);
        MPI_Type_commit(&side.type);
        MPI_Type_free(&block);
        side.count /= BLOCK;
    }
    side.room = (w->count + DISPL * BLOCK) * (apart + 1) + 1;
    side.bytes = side.displ * ((apart > 0) ? apart : 1) * (int)sizeof(int);
    side.memory = mt_alloc(side.shape.where, sizeof(int) * (size_t)side.room);
    side.host = mt_alloc(MT_HOST, sizeof(int) * (size_t)side.room);
    return side;
}

static void side_free(struct side *side)
{
    if (side->type != MPI_INT) {
        MPI_Type_free(&side->type);
    }
    mt_free(side->shape.where, side->memory);
    mt_free(MT_HOST, side->host);
}

static int value(int salt, int i)
{
    return 1000 * salt + i;
}

static void side_fill(struct side *side, int salt)
{
    for (int i = 0; i < side->room; i++) {
        side->host[i] = value(salt, i);
    }
    mt_put(side->memory, side->shape.where, side->host, sizeof(int) * (size_t)side->room);
}

/* Does it hold its own values, but for `count` ints that came from the other side? */
static int side_wrong(struct side *side, int salt, const struct side *from, int from_salt,
                      int count)
{
    int *expected = malloc(sizeof(int) * (size_t)side->room);
    int  wrong = 0;

    for (int i = 0; i < side->room; i++) {
        expected[i] = value(salt, i);
    }
    for (int i = 0; i < count; i++) {
        expected[place_of(side, i)] = value(from_salt, place_of(from, i));
    }
    mt_get(side->host, side->memory, side->shape.where, sizeof(int) * (size_t)side->room);
    for (int i = 0; i < side->room; i++) {
        wrong += (side->host[i] != expected[i]);
    }
    free(expected);
    return wrong;
}

/* ---- one call ---- */

static bool on_device(const struct work *w)
{
    bool scatters = (w->coll == Scatter) || (w->coll == Scatterv);
    bool send = (w->coll != Bcast) && (!w->in_place || scatters) && (w->from.where != MT_HOST);
    bool recv = (w->coll != Exscan) && !(w->in_place && scatters) && (w->to.where != MT_HOST);

    return (w->count > 0) && (send || recv || (w->in_place && (w->to.where != MT_HOST)));
}

static void text_of(const struct work *w, char *text, size_t len)
{
    snprintf(text, len, "%s %s of %d ints%s, %d to %d apart, memory %d to %d", form_names[w->form],
             coll_names[w->coll], w->count, w->in_place ? " in place" : "", w->from.apart,
             w->to.apart, w->from.where, w->to.where);
}

static void expect_path(const struct work *w, const char *text)
{
    bool managed = (w->from.where == MT_MANAGED) || (w->to.where == MT_MANAGED);
    bool staged = (strcmp(path, "mpi-staged") == 0); /* MPI reaches managed memory as it is */

    if (on_device(w) && !(staged && managed)) {
        mt_expect_path(path, text);
    }
}

static void complete(const struct work *w, MPI_Request *request, const char *text)
{
    int flag = 0;

    if (w->form == PERSISTENT) {
        MPI_Start(request);
    }
    expect_path(w, text);
    while ((w->form == NONBLOCKING) && !flag && (w->count % 2 == 0)) {
        MPI_Test(request, &flag, MPI_STATUS_IGNORE);
    }
    if ((w->form != BLOCKING) && !flag) {
        MPI_Wait(request, MPI_STATUS_IGNORE);
    }
}

static void one(const struct work *w)
{
    struct side s = side_make(w, true), r = side_make(w, false);
    MPI_Request request = MPI_REQUEST_NULL;
    bool        copies = !w->in_place && (w->coll != Bcast) && (w->coll != Exscan);
    char        text[160];
    int         code = MPI_SUCCESS;

    text_of(w, text, sizeof(text));

    for (int salt = 1; salt <= ((w->form == PERSISTENT) ? 2 : 1); salt++) {
        side_fill(&s, salt);
        side_fill(&r, -salt);
        if ((w->form != PERSISTENT) || (salt == 1)) {
            code = call(w, &s, &r, &request);
        }
        mt_expect(code == MPI_SUCCESS, "%s: error %d", text, code);
        if (code != MPI_SUCCESS) {
            break;
        }
        complete(w, &request, text);
        int wrong = side_wrong(&r, -salt, &s, salt, copies ? w->count : 0);
        mt_expect(wrong == 0, "%s: %d ints of the result are wrong", text, wrong);
        wrong = side_wrong(&s, salt, &s, salt, 0);
        mt_expect(wrong == 0, "%s: %d ints of the input have changed", text, wrong);
    }
    if (request != MPI_REQUEST_NULL) {
        MPI_Request_free(&request);
    }
    side_free(&s);
    side_free(&r);
}

/* ---- which calls ---- */

static bool reduces(enum coll coll)
{
    return (coll <= Exscan) && (coll != Bcast);
}

/* Open MPI 4.1 takes displacements of the blocking MPI_Alltoallw for elements on one rank. */
static bool is_right(enum coll coll)
{
    return (coll != Alltoallw) || (strcmp(path, "self") == 0);
}

static void each_form(struct work w)
{
    for (int form = 0; form < NUM_FORMS; form++) {
        w.form = (enum form)form;
        one(&w);
    }
}

static void never_called(void *in, void *inout, int *len, MPI_Datatype *type)
{
    (void)in;
    (void)inout;
    (void)len;
    (void)type;
    mt_expect(false, "a single rank has nothing to reduce");
}

/* All layouts on both sides; a reduction has one type, and MPI's own operations no derived one. */
static void layouts(enum coll coll, MPI_Comm comm, MPI_Op own)
{
    static const int aparts[] = {0, 3, 5};

    for (int from = 0; from < 3; from++) {
        for (int to = 0; to < 3; to++) {
            struct work w = {.coll = coll, .count = 12, .comm = comm};
            w.from = (struct shape){aparts[from], DISPL, MT_DEVICE};
            w.to = (struct shape){aparts[to], DISPL - 1, MT_DEVICE};
            w.op = (from > 0) ? own : MPI_SUM;
            if (!reduces(coll) || (from == to)) {
                each_form(w);
            }
        }
    }
}

static void sizes(enum coll coll, MPI_Comm comm, MPI_Op own)
{
    static const int counts[] = {0, 7, 20000, MOST};

    for (int i = 0; i < 4; i++) {
        struct work w = {.coll = coll, .count = counts[i], .comm = comm, .op = MPI_MAX};
        w.from = w.to = (struct shape){0, DISPL, MT_DEVICE};
        each_form(w);
        w.op = own;
        each_form(w);
        w.in_place = (coll != Bcast);
        each_form(w);
        if (!reduces(coll) && (w.count > 0)) { /* of nothing MPICH 4.0.2 frees the type twice */
            w.in_place = false;
            w.to.apart = 4;
            w.count = counts[i] / BLOCK * BLOCK;
            each_form(w);
        }
    }
}

static void memory(enum coll coll, MPI_Comm comm, enum mt_where from, enum mt_where to)
{
    struct work w = {.coll = coll, .count = 10, .comm = comm, .op = MPI_PROD};

    w.from = (struct shape){0, DISPL, from};
    w.to = (struct shape){0, 0, to};
    each_form(w);
    w.from.apart = w.to.apart = reduces(coll) ? 0 : 3;
    each_form(w);
}

/* Host memory alone is MPI's own affair, and neither family has all forms of that right. */
static void memories(enum coll coll, MPI_Comm comm)
{
    memory(coll, comm, MT_HOST, MT_DEVICE);
    memory(coll, comm, MT_HOST, MT_MANAGED);
    memory(coll, comm, MT_DEVICE, MT_HOST);
    memory(coll, comm, MT_DEVICE, MT_MANAGED);
    memory(coll, comm, MT_MANAGED, MT_HOST);
    memory(coll, comm, MT_MANAGED, MT_DEVICE);
    memory(coll, comm, MT_MANAGED, MT_MANAGED);
}

/* ---- what MPI refuses ---- */

static void expect_refused(int code, const char *what)
{
    mt_expect(code != MPI_SUCCESS, "MPI has nothing against %s", what);
    mt_expect(strcmp(mt_last_path(), "self") != 0, "%s: the path is self", what);
}

/* MPICH 4.2.1 copies as much as there is room for, without a word. */
static bool host_refuses_too_much(MPI_Comm comm)
{
    int in[16] = {0}, out[16];

    return PMPI_Allgather(in, 8, MPI_INT, out, 4, MPI_INT, comm) != MPI_SUCCESS;
}

static void refusals(MPI_Comm comm)
{
    int         *in = mt_ints_make(MT_DEVICE, 16, 16, 0), *out = mt_ints_make(MT_DEVICE, 16, 0, 0);
    MPI_Datatype vector;

    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Type_vector(2, 1, 2, MPI_INT, &vector);
    expect_refused(MPI_Allreduce(in, out, 4, MPI_FLOAT, MPI_BAND, comm), "bits of floats");
    expect_refused(MPI_Reduce(in, out, 4, MPI_DOUBLE, MPI_BXOR, 0, comm), "bits of doubles");
    expect_refused(MPI_Allreduce(MPI_IN_PLACE, out, 4, MPI_DOUBLE, MPI_MAXLOC, comm), "no pairs");
    expect_refused(MPI_Scan(in, out, 4, MPI_INT, MPI_OP_NULL, comm), "no operation");
    expect_refused(MPI_Bcast(in, 1, vector, 0, comm), "a type that was not committed");
    expect_refused(MPI_Allgather(in, 1, vector, out, 2, MPI_INT, comm), "such a type to send");
    expect_refused(MPI_Bcast(in, 4, MPI_INT, 1, comm), "a root that is not there");
    if (host_refuses_too_much(comm)) {
        expect_refused(MPI_Allgather(in, 8, MPI_INT, out, 4, MPI_INT, comm), "too much data");
    }
    MPI_Type_commit(&vector);
    expect_refused(MPI_Allreduce(in, out, 1, vector, MPI_SUM, comm), "a sum of a derived type");
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_ARE_FATAL);
    MPI_Type_free(&vector);
    mt_ints_expect(out, MT_DEVICE, 16, 0, 0, 0, "a call that is refused");
    mt_free(MT_DEVICE, in);
    mt_free(MT_DEVICE, out);
}

/* ---- more than the call itself ---- */

/* Types, operations and the communicator may be freed once a call has returned. */
static void free_early(void)
{
    enum { COUNT = 8 };
    struct work w = {.coll = Alltoall, .form = NONBLOCKING, .count = COUNT};
    MPI_Request requests[2];

    w.from = (struct shape){5, 0, MT_DEVICE};
    w.to = (struct shape){3, 0, MT_DEVICE};
    MPI_Comm_dup(MPI_COMM_SELF, &w.comm);
    MPI_Op_create(never_called, 0, &w.op);
    struct side s = side_make(&w, true), r = side_make(&w, false), sum = side_make(&w, false);
    side_fill(&s, 1);
    side_fill(&r, 2);
    side_fill(&sum, 3);
    call(&w, &s, &r, &requests[0]);
    MPI_Iallreduce(s.memory, sum.memory, COUNT, MPI_INT, w.op, w.comm, &requests[1]);
    MPI_Type_free(&s.type);
    MPI_Type_free(&r.type);
    MPI_Op_free(&w.op);
    MPI_Comm_free(&w.comm);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    mt_expect(side_wrong(&r, 2, &s, 1, COUNT) == 0, "an alltoall whose types were freed");
    s.type = r.type = MPI_INT;
    s.shape.apart = sum.shape.apart = 0;
    mt_expect(side_wrong(&sum, 3, &s, 1, COUNT) == 0, "an allreduce whose operation was freed");
    side_free(&s);
    side_free(&r);
    side_free(&sum);
}

/* Absolute addresses, of a device and of the host, on one side. */
static void bottom(MPI_Comm comm)
{
    enum { COUNT = 5 };
    const int    lengths[2] = {COUNT, COUNT};
    int         *parts[2] = {mt_alloc(MT_DEVICE, COUNT * sizeof(int)),
                             mt_alloc(MT_HOST, COUNT * sizeof(int))};
    int         *whole = mt_ints_make(MT_DEVICE, 2 * COUNT, 2 * COUNT, 3);
    int          host[2 * COUNT];
    MPI_Aint     at[2];
    MPI_Datatype both;

    MPI_Get_address(parts[0], &at[0]);
    MPI_Get_address(parts[1], &at[1]);
    MPI_Type_create_hindexed(2, lengths, at, MPI_INT, &both);
    MPI_Type_commit(&both);
    MPI_Allgather(whole, 2 * COUNT, MPI_INT, MPI_BOTTOM, 1, both, comm);
    mt_expect_path(path, "to absolute addresses");
    mt_get(host, parts[0], MT_DEVICE, COUNT * sizeof(int));
    memcpy(host + COUNT, parts[1], COUNT * sizeof(int));
    mt_ints_expect(host, MT_HOST, 2 * COUNT, 2 * COUNT, mt_rank(), 3, "absolute addresses");
    memset(host, 0, sizeof(host));
    mt_put(whole, MT_DEVICE, host, sizeof(host));
    MPI_Alltoall(MPI_BOTTOM, 1, both, whole, 2 * COUNT, MPI_INT, comm);
    mt_expect_path(path, "from absolute addresses");
    mt_ints_expect(whole, MT_DEVICE, 2 * COUNT, 2 * COUNT, mt_rank(), 3, "and back");
    MPI_Type_free(&both);
    mt_free(MT_DEVICE, whole);
    mt_free(MT_DEVICE, parts[0]);
    mt_free(MT_HOST, parts[1]);
}

/* What has holes on both sides takes scratch memory: more than a megabyte. */
static void case_long(void)
{
    struct work w = {.coll = Allgather, .count = 300000, .comm = MPI_COMM_SELF};

    w.from = (struct shape){3, 0, MT_DEVICE};
    w.to = (struct shape){5, 0, MT_DEVICE};
    one(&w);
}

/* Also where MPI takes the memory. */
static void case_managed(void)
{
    for (int coll = 0; coll < NUM_COLLS; coll++) {
        if (is_right((enum coll)coll)) {
            memory((enum coll)coll, MPI_COMM_SELF, MT_MANAGED, MT_MANAGED);
        }
    }
}

static pthread_barrier_t together;

static void *start_one(void *argument)
{
    MPI_Request *request = argument;

    mt_memory_enter();
    pthread_barrier_wait(&together);
    MPI_Start(request);
    MPI_Wait(request, MPI_STATUS_IGNORE);
    return NULL;
}

/* Requests of one communicator may be started by any threads at the same time, the first time too.
 */
static void case_starts(void)
{
    enum { ROUNDS = 200, THREADS = 4, COUNT = 100 };
    typedef int    init(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Info,
                        MPI_Request *);
    struct mt_pair pairs[THREADS];
    MPI_Request    requests[THREADS];
    init          *make;
    MPI_Comm       comm;

    *(void **)&make = mt_find("MPI_Allreduce_init");
    pthread_barrier_init(&together, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        pairs[i] = mt_pair_make(MT_DEVICE, COUNT);
    }
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Comm_dup(MPI_COMM_SELF, &comm);
        for (int i = 0; i < THREADS; i++) {
            mt_pair_fill(&pairs[i], COUNT, comm, round + i);
            make(pairs[i].in, pairs[i].out, COUNT, MPI_FLOAT, MPI_SUM, comm, MPI_INFO_NULL,
                 &requests[i]);
        }
        mt_in_threads(THREADS, start_one, requests, sizeof(requests[0]));
        for (int i = 0; i < THREADS; i++) {
            mt_pair_expect_sum(&pairs[i], COUNT, 1, round + i, "started by threads");
            MPI_Request_free(&requests[i]);
        }
        MPI_Comm_free(&comm);
    }
    for (int i = 0; i < THREADS; i++) {
        mt_pair_free(&pairs[i]);
    }
    pthread_barrier_destroy(&together);
}

static void first_of(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)in;
    (void)inout;
    (void)count;
    (void)type;
}

static const char *path_behind; /* NULL: any */

static void *start_and_wait(void *argument)
{
    MPI_Request *request = argument;

    MPI_Start(request);
    mt_expect_path(path_behind, "behind a start that was left");
    MPI_Wait(request, MPI_STATUS_IGNORE);
    return NULL;
}

/* Of a thread that may wait for ever. */
static bool ends_within(void *(*work)(void *argument), void *argument, int seconds)
{
    pthread_t       thread;
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += seconds;
    pthread_create(&thread, NULL, work, argument);
    return pthread_timedjoin_np(thread, NULL, &until) == 0;
}

typedef int init(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Info,
                 MPI_Request *);

/* Other threads start requests of a communicator, of which a handler has left a start. */
static void start_behind(MPI_Comm comm, const char *behind)
{
    enum { ROUNDS = 3, COUNT = 100, SECONDS = 10 };
    struct mt_pair pair = mt_pair_make(MT_DEVICE, COUNT);
    MPI_Request    good;
    init          *make;

    path_behind = behind;
    *(void **)&make = mt_find("MPI_Allreduce_init");
    make(pair.in, pair.out, COUNT, MPI_FLOAT, MPI_SUM, comm, MPI_INFO_NULL, &good);
    for (int round = 0; round < ROUNDS; round++) {
        mt_pair_fill(&pair, COUNT, comm, round);
        if (!ends_within(start_and_wait, &good, SECONDS)) {
            mt_expect(false, "a start waits for one that a handler has left");
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
        mt_pair_expect_sum(&pair, COUNT, 1, round, "behind a start that was left");
    }
    mt_pair_fill(&pair, COUNT, comm, ROUNDS);
    path_behind = NULL;
    start_and_wait(&good);
    mt_pair_expect_sum(&pair, COUNT, 1, ROUNDS, "in the thread of the one that was left");
    MPI_Request_free(&good);
    mt_pair_free(&pair);
}

/* By an error in what the program passes: a type that was not committed. */
static void case_left(void)
{
    int               *in = mt_ints_make(MT_DEVICE, 2, 2, 1), *out = in + 1;
    static MPI_Request bad;
    MPI_Datatype       type;
    MPI_Errhandler     jumps;
    MPI_Comm           comm;
    MPI_Op             op;
    init              *make;

    *(void **)&make = mt_find("MPI_Allreduce_init");
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    MPI_Comm_create_errhandler(mt_jump, &jumps);
    MPI_Comm_set_errhandler(comm, jumps);
    MPI_Type_contiguous(1, MPI_INT, &type);
    MPI_Op_create(first_of, 1, &op);
    make(in, out, 1, type, op, comm, MPI_INFO_NULL, &bad);
    if (setjmp(mt_before) == 0) {
        MPI_Start(&bad);
    }
    mt_expect(mt_jumps == 1, "%d errors of a type that was not committed", mt_jumps);
    start_behind(comm, "self");
    MPI_Request_free(&bad);
    MPI_Errhandler_free(&jumps);
    MPI_Type_free(&type);
    MPI_Op_free(&op);
    MPI_Comm_free(&comm);
    mt_free(MT_DEVICE, in);
}

static void case_all(void)
{
    MPI_Comm comms[2] = {MPI_COMM_SELF, MPI_COMM_NULL};
    MPI_Op   own;

    MPI_Comm_split(MPI_COMM_WORLD, mt_rank(), 0, &comms[1]);
    MPI_Op_create(never_called, 0, &own);
    for (int coll = 0; coll < NUM_COLLS; coll++) {
        if (!is_right((enum coll)coll)) {
            continue;
        }
        layouts((enum coll)coll, comms[0], own);
        sizes((enum coll)coll, comms[1], own);
        memories((enum coll)coll, comms[coll % 2]);
    }
    free_early();
    bottom(comms[1]);
    refusals(comms[1]);
    MPI_Op_free(&own);
    MPI_Comm_free(&comms[1]);
}

int main(int argc, char **argv)
{
    mt_begin(&argc, &argv, true);
    path = (argc > 2) ? argv[2] : "self";
    const char *what = (argc > 3) ? argv[3] : "all";
    if (strcmp(what, "long") == 0) {
        case_long();
    } else if (strcmp(what, "managed") == 0) {
        case_managed();
    } else if (strcmp(what, "starts") == 0) {
        case_starts();
    } else if (strcmp(what, "left") == 0) {
        case_left();
    } else {
        case_all();
    }
    mt_summary();
    MPI_Finalize();
    return mt_status();
}
