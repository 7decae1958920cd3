/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Neighbourhood collectives and MPI_Alltoallw, whose blocks go as messages: what comes along each
 * edge, in all forms, with other memory on each rank.
 * Usage: mpi_edges cuda|rocm|none CASE
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support.h"

enum {
    MOST_EDGES = 8,
    SHORT = 5,
    LONG = 20000,
    NUM_COLLS = 5,
    MANY = 40,
    CROWD = 70,
    MOST_RANKS = 8
};

enum coll { ALLGATHER, ALLGATHERV, ALLTOALL, ALLTOALLV, ALLTOALLW };
static const char *const names[] = {"MPI_Neighbor_allgather", "MPI_Neighbor_allgatherv",
                                    "MPI_Neighbor_alltoall", "MPI_Neighbor_alltoallv",
                                    "MPI_Neighbor_alltoallw"};

enum form { BLOCKING, NONBLOCKING, PERSISTENT };

/* The neighbours of this rank, and which of a source's edges each of its blocks comes along. */
struct edges {
    int      in, out;
    int      sources[MOST_EDGES], number[MOST_EDGES];
    MPI_Comm comm;
};

/* One call: its blocks lie apart, in front of each other. */
struct call {
    enum coll     coll;
    struct edges *edges;
    int           count, salt;
    enum mt_where where;
    int          *in, *out;
    int           counts[MOST_EDGES], displs[MOST_EDGES];
    MPI_Aint      bytes[MOST_EDGES];
    MPI_Datatype  types[MOST_EDGES];
    MPI_Request   request;
};

static int ints_of(const struct call *c)
{
    return MOST_EDGES * (c->count + 1);
}

static bool gathers(const struct call *c)
{
    return c->coll <= ALLGATHERV;
}

/* Vectors have a hole behind each block, and the last block first. */
static int place_of(const struct call *c, int i)
{
    bool vector = (c->coll != ALLGATHER) && (c->coll != ALLTOALL);

    return vector ? (MOST_EDGES - 1 - i) * (c->count + 1) : i * c->count;
}

static void make(struct call *c, enum coll coll, struct edges *edges, enum mt_where where,
                 int count, int salt)
{
    *c = (struct call){.coll = coll, .edges = edges, .count = count, .salt = salt, .where = where};
    c->request = MPI_REQUEST_NULL;
    for (int i = 0; i < MOST_EDGES; i++) {
        c->counts[i] = count;
        c->displs[i] = place_of(c, i);
        c->bytes[i] = c->displs[i] * (MPI_Aint)sizeof(int);
        c->types[i] = MPI_INT;
    }
    int *host = malloc(sizeof(int) * (size_t)ints_of(c));
    for (int k = 0; k < (gathers(c) ? 1 : edges->out); k++) {
        for (int i = 0; i < count; i++) {
            host[(gathers(c) ? 0 : place_of(c, k)) + i] = mt_value(mt_rank(), 100 * salt + k, i);
        }
    }
    c->in = mt_alloc(where, sizeof(int) * (size_t)ints_of(c));
    mt_put(c->in, where, host, sizeof(int) * (size_t)ints_of(c));
    c->out = mt_ints_make(where, ints_of(c), 0, 0);
    free(host);
}

static void check(const struct call *c, const char *what)
{
    int *host = malloc(sizeof(int) * (size_t)ints_of(c)), wrong = 0;

    mt_get(host, c->out, c->where, sizeof(int) * (size_t)ints_of(c));
    for (int l = 0; l < c->edges->in; l++) {
        int source = c->edges->sources[l];
        int salt = 100 * c->salt + (gathers(c) ? 0 : c->edges->number[l]);
        for (int i = 0; i < c->count; i++) {
            int value = (source == MPI_PROC_NULL) ? MT_UNTOUCHED : mt_value(source, salt, i);
            wrong += (host[place_of(c, l) + i] != value);
        }
    }
    mt_expect(wrong == 0, "%s, %s of %d integers: %d are wrong", what, names[c->coll], c->count,
              wrong);
    free(host);
}

static void end(struct call *c)
{
    mt_free(c->where, c->in);
    mt_free(c->where, c->out);
}

#define GATHER(c) (c)->in, (c)->count, MPI_INT, (c)->out
#define VECTOR(c) (c)->in, (c)->counts, (c)->displs, MPI_INT, (c)->out
#define WIDE(c) (c)->in, (c)->counts, (c)->bytes, (c)->types, (c)->out

static int call_blocking(struct call *c)
{
    MPI_Comm comm = c->edges->comm;

    switch (c->coll) {
    case ALLGATHER:
        return MPI_Neighbor_allgather(GATHER(c), c->count, MPI_INT, comm);
    case ALLGATHERV:
        return MPI_Neighbor_allgatherv(GATHER(c), c->counts, c->displs, MPI_INT, comm);
    case ALLTOALL:
        return MPI_Neighbor_alltoall(GATHER(c), c->count, MPI_INT, comm);
    case ALLTOALLV:
        return MPI_Neighbor_alltoallv(VECTOR(c), c->counts, c->displs, MPI_INT, comm);
    default:
        return MPI_Neighbor_alltoallw(WIDE(c), c->counts, c->bytes, c->types, comm);
    }
}

static int call_nonblocking(struct call *c)
{
    MPI_Comm comm = c->edges->comm;

    switch (c->coll) {
    case ALLGATHER:
        return MPI_Ineighbor_allgather(GATHER(c), c->count, MPI_INT, comm, &c->request);
    case ALLGATHERV:
        return MPI_Ineighbor_allgatherv(GATHER(c), c->counts, c->displs, MPI_INT, comm,
                                        &c->request);
    case ALLTOALL:
        return MPI_Ineighbor_alltoall(GATHER(c), c->count, MPI_INT, comm, &c->request);
    case ALLTOALLV:
        return MPI_Ineighbor_alltoallv(VECTOR(c), c->counts, c->displs, MPI_INT, comm, &c->request);
    default:
        return MPI_Ineighbor_alltoallw(WIDE(c), c->counts, c->bytes, c->types, comm, &c->request);
    }
}

typedef int init_all(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, MPI_Comm, MPI_Info,
                     MPI_Request *);
typedef int init_v(const void *, const int *, const int *, MPI_Datatype, void *, const int *,
                   const int *, MPI_Datatype, MPI_Comm, MPI_Info, MPI_Request *);

/* Two of them: not every MPI has any, and xccl adds all. */
static bool init(struct call *c)
{
    init_all *all;
    init_v   *v;

    *(void **)&all = mt_find("MPI_Neighbor_alltoall_init");
    *(void **)&v = mt_find("MPI_Neighbor_alltoallv_init");
    if ((c->coll == ALLTOALL) && (all != NULL)) {
        return all(GATHER(c), c->count, MPI_INT, c->edges->comm, MPI_INFO_NULL, &c->request) ==
               MPI_SUCCESS;
    }
    return (c->coll == ALLTOALLV) && (v != NULL) &&
           (v(VECTOR(c), c->counts, c->displs, MPI_INT, c->edges->comm, MPI_INFO_NULL,
              &c->request) == MPI_SUCCESS);
}

static void run_persistent(struct call *c)
{
    if (!init(c)) {
        return;
    }
    for (int round = 0; round < 3; round++) {
        MPI_Start(&c->request);
        mt_expect_path("messages", "a start");
        MPI_Wait(&c->request, MPI_STATUS_IGNORE);
        check(c, "a start");
        int *untouched = mt_ints_make(MT_HOST, ints_of(c), 0, 0);
        mt_put(c->out, c->where, untouched, sizeof(int) * (size_t)ints_of(c));
        mt_free(MT_HOST, untouched);
    }
    MPI_Request_free(&c->request);
}

static void run(struct call *c, enum form form, const char *path)
{
    if (form == PERSISTENT) {
        run_persistent(c);
        return;
    }
    mt_expect(((form == BLOCKING) ? call_blocking(c) : call_nonblocking(c)) == MPI_SUCCESS,
              "%s fails", names[c->coll]);
    mt_expect_path(path, names[c->coll]);
    MPI_Wait(&c->request, MPI_STATUS_IGNORE);
    check(c, (form == BLOCKING) ? "blocking" : "non-blocking");
}

/* The memory of a rank in call number `salt`. */
static enum mt_where memory_of(int salt)
{
    static const enum mt_where all[] = {MT_DEVICE, MT_HOST, MT_MANAGED};

    return all[(mt_rank() + salt) % 3];
}

static void run_all(struct edges *edges, bool mixed, const char *path)
{
    struct call c;
    int         salt = 0;

    for (int coll = 0; coll < NUM_COLLS; coll++) {
        for (enum form form = BLOCKING; form <= PERSISTENT; form++) {
            for (int large = 0; large < 2; large++, salt++) {
                make(&c, (enum coll)coll, edges, mixed ? memory_of(salt) : MT_DEVICE,
                     large ? LONG : SHORT, salt);
                run(&c, form, path);
                end(&c);
            }
        }
    }
}

/* What is sent below comes from above, also where both are the same rank. */
static void grid(struct edges *edges, int dims, const int *size, int periodic)
{
    int periods[3] = {periodic, periodic, periodic};

    MPI_Cart_create(MPI_COMM_WORLD, dims, size, periods, 0, &edges->comm);
    edges->in = edges->out = 2 * dims;
    for (int d = 0; d < dims; d++) {
        MPI_Cart_shift(edges->comm, d, 1, &edges->sources[2 * d], &edges->sources[2 * d + 1]);
        edges->number[2 * d] = 2 * d + 1;
        edges->number[2 * d + 1] = 2 * d;
    }
}

/* Of all ranks, of one and of two: one rank may be both neighbours, or this one itself. */
static void case_grid(void)
{
    int          ring[] = {mt_size()}, flat[] = {1, mt_size()}, pair[] = {2, mt_size() / 2};
    struct edges edges;

    grid(&edges, 1, ring, 1);
    run_all(&edges, false, "messages");
    MPI_Comm_free(&edges.comm);
    grid(&edges, 2, flat, 1);
    run_all(&edges, true, "messages");
    MPI_Comm_free(&edges.comm);
    if (mt_size() % 2 == 0) {
        grid(&edges, 2, pair, 1);
        run_all(&edges, true, "messages");
        MPI_Comm_free(&edges.comm);
    }
}

/* Without a neighbour a block keeps what it has. */
static void case_border(void)
{
    int          line[] = {mt_size()};
    struct edges edges;

    grid(&edges, 1, line, 0);
    run_all(&edges, true, "messages");
    MPI_Comm_free(&edges.comm);
}

/* Two edges to the next rank, around one to this rank itself: of equal ones the order tells. */
static void graph(struct edges *edges)
{
    int next = (mt_rank() + 1) % mt_size(), last = (mt_rank() + mt_size() - 1) % mt_size();
    int targets[] = {next, mt_rank(), next};

    *edges =
        (struct edges){.in = 3, .out = 3, .sources = {mt_rank(), last, last}, .number = {1, 0, 2}};
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 3, edges->sources, MPI_UNWEIGHTED, 3, targets,
                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &edges->comm);
}

static void case_graph(void)
{
    struct edges edges;

    graph(&edges);
    run_all(&edges, true, "messages");
    MPI_Comm_free(&edges.comm);
}

/*
 * MPI_Alltoallw: to rank r r + 1 elements of every other float of a block, the whole of which is
 * untouched else; and to every third rank nothing.
 */
struct pieces {
    int           counts[MOST_RANKS], back[MOST_RANKS], displs[MOST_RANKS];
    MPI_Datatype  types[MOST_RANKS];
    MPI_Datatype  type;
    int          *in, *out;
    enum mt_where where;
    MPI_Request   request;
};

static int count_of(int from, int to, int factor)
{
    return ((from + to) % 3 == 2) ? 0 : (from + 2 * to + 1) * factor;
}

static void make_pieces(struct pieces *p, enum mt_where where, int factor, int salt)
{
    int n = mt_size(), room = 2 * factor * 3 * (n + 1);

    *p = (struct pieces){.where = where, .request = MPI_REQUEST_NULL};
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &p->type);
    MPI_Type_commit(&p->type);
    int *host = malloc(sizeof(int) * (size_t)(room * n));
    for (int r = 0; r < n; r++) {
        p->counts[r] = count_of(mt_rank(), r, factor);
        p->back[r] = count_of(r, mt_rank(), factor);
        p->displs[r] = r * room * (int)sizeof(int);
        p->types[r] = p->type;
        for (int i = 0; i < p->counts[r]; i++) {
            host[r * room + 2 * i] = mt_value(mt_rank(), 100 * salt + r, i);
        }
    }
    p->in = mt_alloc(where, sizeof(int) * (size_t)(room * n));
    mt_put(p->in, where, host, sizeof(int) * (size_t)(room * n));
    p->out = mt_ints_make(where, room * n, 0, 0);
    free(host);
}

static void end_pieces(struct pieces *p, int factor, int salt, const char *what)
{
    int  n = mt_size(), room = 2 * factor * 3 * (n + 1), wrong = 0;
    int *host = malloc(sizeof(int) * (size_t)(room * n));

    mt_get(host, p->out, p->where, sizeof(int) * (size_t)(room * n));
    for (int i = 0; i < room * n; i++) {
        int  from = i / room, at = i % room;
        bool sent = (at % 2 == 0) && (at / 2 < p->back[from]);
        wrong +=
            host[i] != (sent ? mt_value(from, 100 * salt + mt_rank(), at / 2) : (int)MT_UNTOUCHED);
    }
    mt_expect(wrong == 0, "%s of blocks of %d: %d are wrong", what, factor, wrong);
    MPI_Type_free(&p->type);
    mt_free(p->where, p->in);
    mt_free(p->where, p->out);
    free(host);
}

#define ALL(p)                                                                                     \
    (p)->in, (p)->counts, (p)->displs, (p)->types, (p)->out, (p)->back, (p)->displs, (p)->types

typedef int init_w(const void *, const int *, const int *, const MPI_Datatype *, void *,
                   const int *, const int *, const MPI_Datatype *, MPI_Comm, MPI_Info,
                   MPI_Request *);

static void case_alltoallw(void)
{
    struct pieces p;
    init_w       *init_all_w;
    int           factors[] = {1, 3000};

    *(void **)&init_all_w = mt_find("MPI_Alltoallw_init");
    for (int salt = 0; salt < 24; salt++) {
        int           factor = factors[(salt / 3) % 2];
        enum mt_where where = (salt < 12) ? MT_DEVICE : memory_of(salt);
        make_pieces(&p, where, factor, salt);
        if (salt % 3 == 0) {
            MPI_Alltoallw(ALL(&p), MPI_COMM_WORLD);
            mt_expect_path("messages", "MPI_Alltoallw");
        } else if ((salt % 3 == 1) || (init_all_w == NULL)) {
            MPI_Ialltoallw(ALL(&p), MPI_COMM_WORLD, &p.request);
            mt_expect_path("messages", "MPI_Ialltoallw");
            MPI_Wait(&p.request, MPI_STATUS_IGNORE);
        } else {
            init_all_w(ALL(&p), MPI_COMM_WORLD, MPI_INFO_NULL, &p.request);
            MPI_Start(&p.request);
            MPI_Wait(&p.request, MPI_STATUS_IGNORE);
            MPI_Request_free(&p.request);
        }
        end_pieces(&p, factor, salt, "MPI_Alltoallw");
    }
}

/* On host memory as well a call that MPI refuses on one rank is none of the others. */
static void case_refused_on_host(void)
{
    struct pieces p;

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int salt = 0; salt < 9; salt++) {
        make_pieces(&p, MT_HOST, 1, salt);
        if ((mt_rank() == 0) && (salt == 1)) {
            int count = p.counts[0];
            p.counts[0] = -1;
            mt_expect(MPI_Alltoallw(ALL(&p), MPI_COMM_WORLD) != MPI_SUCCESS, "it is not refused");
            p.counts[0] = count;
        }
        MPI_Alltoallw(ALL(&p), MPI_COMM_WORLD);
        end_pieces(&p, 1, salt, "MPI_Alltoallw");
    }
}

/* In place MPI exchanges the blocks, between calls that are messages. */
static void case_in_place(void)
{
    int           n = mt_size();
    struct pieces p;

    for (int salt = 0; salt < 6; salt++) {
        make_pieces(&p, MT_DEVICE, 1, salt);
        MPI_Alltoallw(ALL(&p), MPI_COMM_WORLD);
        mt_expect_path("messages", "MPI_Alltoallw");
        end_pieces(&p, 1, salt, "MPI_Alltoallw");
        int *data = mt_ints_make(MT_DEVICE, n, n, salt);
        for (int r = 0; r < n; r++) {
            p.counts[r] = 1;
            p.displs[r] = r * (int)sizeof(int);
            p.types[r] = MPI_INT;
        }
        MPI_Alltoallw(MPI_IN_PLACE, NULL, NULL, NULL, data, p.counts, p.displs, p.types,
                      MPI_COMM_WORLD);
        mt_expect_path("mpi-staged", "in place");
        int host[MOST_RANKS], wrong = 0;
        mt_get(host, data, MT_DEVICE, sizeof(int) * (size_t)n);
        for (int r = 0; r < n; r++) {
            wrong += (host[r] != mt_value(r, salt, mt_rank()));
        }
        mt_expect(wrong == 0, "in place: %d are wrong", wrong);
        mt_free(MT_DEVICE, data);
    }
}

/* Many at once, of which the last one is waited for first; the communicator is freed meanwhile. */
static void case_pending(void)
{
    static struct call calls[MANY];
    struct edges       edges;

    graph(&edges);
    for (int i = 0; i < MANY; i++) {
        make(&calls[i], (enum coll)(i % NUM_COLLS), &edges, memory_of(i),
             (i % 7 == 0) ? LONG : SHORT, i);
        call_nonblocking(&calls[i]);
    }
    MPI_Comm freed = edges.comm;
    MPI_Comm_free(&freed);
    for (int i = MANY - 1; i >= 0; i--) {
        MPI_Wait(&calls[i].request, MPI_STATUS_IGNORE);
        check(&calls[i], "one of many");
        end(&calls[i]);
    }
}

static int call_and_wait(struct call *c, bool blocking)
{
    int code = blocking ? call_blocking(c) : call_nonblocking(c);

    return ((code == MPI_SUCCESS) && !blocking) ? MPI_Wait(&c->request, MPI_STATUS_IGNORE) : code;
}

/* Rank 0 has an error, and uses the buffer for other things, long before the others come. */
static void expire(enum mt_where where, bool blocking)
{
    static struct call c, next;
    struct edges       edges;
    int               *own;

    graph(&edges);
    MPI_Comm_set_errhandler(edges.comm, MPI_ERRORS_RETURN);
    make(&c, ALLTOALL, &edges, where, LONG, 1);
    make(&next, ALLTOALL, &edges, where, SHORT, 2);
    own = mt_ints_make(MT_HOST, ints_of(&c), ints_of(&c), 3);
    if (mt_rank() > 0) {
        sleep(2);
    }
    double since = MPI_Wtime();
    int    code = call_and_wait(&c, blocking);
    if (mt_rank() == 0) {
        mt_expect((code != MPI_SUCCESS) && (MPI_Wtime() - since < 1.8), "no error in %g s",
                  MPI_Wtime() - since);
        mt_put(c.out, where, own, sizeof(int) * (size_t)ints_of(&c));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (mt_rank() == 0) {
        mt_expect(call_and_wait(&next, blocking) != MPI_SUCCESS, "the next call goes on");
        mt_ints_expect(c.out, where, ints_of(&c), ints_of(&c), 0, 3, "after an error");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    end(&c);
    end(&next);
    mt_free(MT_HOST, own);
    MPI_Comm_free(&edges.comm);
}

/* With XCCL_TIMEOUT=1. */
static void case_expired(void)
{
    expire(MT_DEVICE, false);
    expire(MT_HOST, true);
}

/* A device comes into use behind the communicator: ranks ask each other now and then. */
static void case_later(void)
{
    int          ring[] = {mt_size()};
    struct edges edges;
    struct call  c;
    bool         last = (mt_rank() == mt_size() - 1);

    grid(&edges, 1, ring, 1);
    for (int i = 1; i <= 16; i++) {
        if (i == 6) {
            mt_memory_open(mt_runtime(), mt_rank());
        }
        make(&c, ALLTOALL, &edges, (last && (i >= 6)) ? MT_DEVICE : MT_HOST, SHORT, i);
        run(&c, (i == 9) ? NONBLOCKING : BLOCKING, NULL);
        end(&c);
    }
    make(&c, ALLTOALLV, &edges, MT_HOST, SHORT, 17);
    run(&c, BLOCKING, NULL);
    end(&c);
    make(&c, ALLTOALLV, &edges, MT_DEVICE, LONG, 18);
    run(&c, NONBLOCKING, "messages");
    end(&c);
    MPI_Comm_free(&edges.comm);
}

/* A duplicate's ranks have not asked: no call that does not wait does so. */
static void case_duplicate(void)
{
    struct edges edges, copy;
    struct call  c;
    int          ring[] = {mt_size()};

    grid(&edges, 1, ring, 1);
    copy = edges;
    MPI_Comm_dup(edges.comm, &copy.comm);
    make(&c, ALLTOALLW, &copy, MT_DEVICE, SHORT, 1);
    run(&c, NONBLOCKING, "mpi-staged");
    run(&c, BLOCKING, "messages");
    run(&c, NONBLOCKING, "messages");
    end(&c);
    MPI_Comm_free(&copy.comm);
    MPI_Comm_free(&edges.comm);
}

/*
 * More communicators than messages have room for: the others' are MPI's. Rings: of equal edges
 * MPICH takes the last one first.
 */
static void case_crowd(void)
{
    static struct edges all[CROWD];
    struct call         c;
    int                 ring[] = {mt_size()};

    for (int i = 0; i < CROWD; i++) {
        grid(&all[i], 1, ring, 1);
        make(&c, ALLTOALL, &all[i], MT_DEVICE, SHORT, i);
        run(&c, BLOCKING, (i < 64) ? "messages" : "mpi-staged");
        end(&c);
    }
    for (int i = 0; i < CROWD; i++) {
        MPI_Comm_free(&all[i].comm);
    }
    grid(&all[0], 1, ring, 1);
    make(&c, ALLTOALL, &all[0], MT_DEVICE, SHORT, 1);
    run(&c, BLOCKING, "messages");
    end(&c);
    MPI_Comm_free(&all[0].comm);
}

static int heard;

static void hear(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    (void)code;
    heard++;
}

/* A block that is too long for its receiver: an error of the program's communicator. */
static void too_long(enum form form)
{
    MPI_Errhandler handler;
    struct edges   edges;
    struct call    c;
    int            ring[] = {mt_size()};

    grid(&edges, 1, ring, 1);
    MPI_Comm_create_errhandler(hear, &handler);
    MPI_Comm_set_errhandler(edges.comm, handler);
    make(&c, ALLTOALLV, &edges, MT_DEVICE, SHORT, 1);
    for (int i = 0; (mt_rank() == 0) && (i < MOST_EDGES); i++) {
        c.counts[i] = SHORT + 1;
    }
    int code = (form == BLOCKING) ? call_blocking(&c) : call_nonblocking(&c);
    code = (form == BLOCKING) ? code : MPI_Wait(&c.request, MPI_STATUS_IGNORE);
    bool wrong = (mt_rank() == 1) || (mt_rank() == mt_size() - 1);
    mt_expect(mt_class_of(code) == (wrong ? MPI_ERR_TRUNCATE : MPI_SUCCESS),
              "it ends with an error of class %d", mt_class_of(code));
    mt_expect(heard == wrong, "the handler has heard of %d errors", heard);
    MPI_Errhandler_free(&handler);
    end(&c);
}

static void case_too_long(void)
{
    too_long(BLOCKING);
}

static void case_too_long_later(void)
{
    too_long(NONBLOCKING);
}

/* What MPI refuses on one rank is no call of the others. */
static void case_refused(void)
{
    struct edges edges;
    struct call  c;

    graph(&edges);
    MPI_Comm_set_errhandler(edges.comm, MPI_ERRORS_RETURN);
    make(&c, ALLTOALL, &edges, MT_DEVICE, -1, 1);
    mt_expect((mt_rank() != 0) || (call_blocking(&c) != MPI_SUCCESS), "a negative count goes");
    end(&c);
    MPI_Comm_set_errhandler(edges.comm, MPI_ERRORS_ARE_FATAL);
    run_all(&edges, false, "messages");
    MPI_Comm_free(&edges.comm);
}

/* The program's own attributes end with a communicator, and their callbacks may still use it. */
static struct edges dying;

static int exchange_at_end(MPI_Comm comm, int key, void *value, void *extra)
{
    struct call c;

    (void)comm;
    (void)key;
    (void)value;
    (void)extra;
    make(&c, ALLTOALL, &dying, MT_DEVICE, SHORT, 3);
    run(&c, BLOCKING, NULL);
    end(&c);
    return MPI_SUCCESS;
}

static void attribute(MPI_Comm comm)
{
    int key;

    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, exchange_at_end, &key, NULL);
    MPI_Comm_set_attr(comm, key, NULL);
    MPI_Comm_free_keyval(&key);
}

/* In MPI_Comm_free, before and after xccl has ended with it; and in MPI_Finalize. */
static void case_callback(void)
{
    int         ring[] = {mt_size()};
    struct call c;

    for (int before = 0; before < 2; before++) {
        grid(&dying, 1, ring, 1);
        if (before) {
            attribute(dying.comm);
        }
        make(&c, ALLTOALL, &dying, MT_DEVICE, SHORT, 2);
        run(&c, BLOCKING, "messages");
        end(&c);
        if (!before) {
            attribute(dying.comm);
        }
        MPI_Comm comm = dying.comm;
        MPI_Comm_free(&comm);
    }
    grid(&dying, 1, ring, 1);
    attribute(MPI_COMM_SELF);
}

/* Threads start requests of one rank at the same time. */
enum { THREADS = 4, STARTS = 200 };

static void *start_again(void *argument)
{
    struct call *c = argument;
    int          wrong = 0;

    for (int i = 0; i < STARTS; i++) {
        int got[2];
        MPI_Start(&c->request);
        MPI_Wait(&c->request, MPI_STATUS_IGNORE);
        mt_get(got, c->out, MT_HOST, sizeof(got));
        wrong += (got[0] != mt_value(mt_rank(), 100 * c->salt + 1, 0)) ||
                 (got[1] != mt_value(mt_rank(), 100 * c->salt, 0));
    }
    mt_expect(wrong == 0, "a thread: %d starts are wrong", wrong);
    return NULL;
}

static void case_threads(void)
{
    struct call  calls[THREADS];
    struct edges edges = {.in = 2, .out = 2, .number = {1, 0}};
    int          one = 1, periodic = 1, level;

    MPI_Query_thread(&level);
    MPI_Cart_create(MPI_COMM_SELF, 1, &one, &periodic, 0, &edges.comm);
    for (int i = 0; i < THREADS; i++) {
        make(&calls[i], ALLTOALL, &edges, MT_DEVICE, 1, i + 1);
        mt_free(MT_DEVICE, calls[i].out);
        calls[i].out = mt_ints_make(MT_HOST, ints_of(&calls[i]), 0, 0);
        mt_expect(init(&calls[i]), "no persistent request");
    }
    if (level == MPI_THREAD_MULTIPLE) {
        mt_in_threads(THREADS, start_again, calls, sizeof(calls[0]));
    }
    for (int i = 0; i < THREADS; i++) {
        MPI_Request_free(&calls[i].request);
        mt_free(MT_DEVICE, calls[i].in);
        mt_free(MT_HOST, calls[i].out);
    }
    MPI_Comm_free(&edges.comm);
}

int main(int argc, char **argv)
{
    static const struct mt_named_case cases[] = {{"grid", case_grid},
                                                 {"border", case_border},
                                                 {"graph", case_graph},
                                                 {"pending", case_pending},
                                                 {"expired", case_expired},
                                                 {"later", case_later},
                                                 {"duplicate", case_duplicate},
                                                 {"crowd", case_crowd},
                                                 {"too_long", case_too_long},
                                                 {"too_long_later", case_too_long_later},
                                                 {"refused", case_refused},
                                                 {"alltoallw", case_alltoallw},
                                                 {"callback", case_callback},
                                                 {"host_refused", case_refused_on_host},
                                                 {"threads", case_threads},
                                                 {"in_place", case_in_place},
                                                 {NULL, NULL}};
    bool                              later = (argc > 2) && (strcmp(argv[2], "later") == 0);

    mt_begin(&argc, &argv, !later);
    return mt_run_to_end(cases, argc, argv);
}
