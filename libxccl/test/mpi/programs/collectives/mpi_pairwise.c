/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Neighbourhood collectives and MPI_Alltoallw: who carries them, and what becomes of those that
 * fail. mpi_edges has what comes along each edge.
 * Usage: mpi_pairwise cuda|rocm CASE [PATH]
 * PATH: what xccl_mpi_last_path() is to say of those on device memory.
 */
#include <stdlib.h>
#include <string.h>

#include "support.h"

enum { MOST_RANKS = 8, COUNT = 3000, PATIENCE_S = 20 };

enum form { BLOCKING, LATER, STARTED, LARGE, ALL, ALL_STARTED, ALL_LARGE, NUM_FORMS };
static const char *const names[] = {
    "MPI_Neighbor_alltoall",   "MPI_Ineighbor_alltoall", "MPI_Neighbor_alltoall_init",
    "MPI_Neighbor_alltoall_c", "MPI_Alltoallw",          "MPI_Alltoallw_init",
    "MPI_Alltoallw_c"};

static const char *path;

typedef int init_all(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, MPI_Comm, MPI_Info,
                     MPI_Request *);
typedef int large_all(const void *, MPI_Count, MPI_Datatype, void *, MPI_Count, MPI_Datatype,
                      MPI_Comm);
typedef int large_w(const void *, const MPI_Count *, const MPI_Aint *, const MPI_Datatype *, void *,
                    const MPI_Count *, const MPI_Aint *, const MPI_Datatype *, MPI_Comm);

typedef int init_w(const void *, const int *, const int *, const MPI_Datatype *, void *,
                   const int *, const int *, const MPI_Datatype *, MPI_Comm, MPI_Info,
                   MPI_Request *);

/* A block to each of the neighbours, of which no two are one rank. */
struct call {
    MPI_Comm      comm;
    int           n, neighbors[MOST_RANKS];
    enum mt_where where;
    int          *in, *out;
    MPI_Request   request;
};

static void fill(struct call *c)
{
    size_t bytes = sizeof(int) * COUNT * (size_t)c->n;
    int   *host = malloc(bytes);

    for (int i = 0; i < c->n * COUNT; i++) {
        host[i] = mt_value(mt_rank(), c->neighbors[i / COUNT], i % COUNT);
    }
    c->request = MPI_REQUEST_NULL;
    c->in = mt_alloc(c->where, bytes);
    mt_put(c->in, c->where, host, bytes);
    c->out = mt_ints_make(c->where, c->n * COUNT, 0, 0);
    free(host);
}

static void check(const struct call *c, const char *what)
{
    size_t bytes = sizeof(int) * COUNT * (size_t)c->n;
    int   *host = malloc(bytes), wrong = 0;

    mt_get(host, c->out, c->where, bytes);
    for (int i = 0; i < c->n * COUNT; i++) {
        wrong += (host[i] != mt_value(c->neighbors[i / COUNT], mt_rank(), i % COUNT));
    }
    mt_expect(wrong == 0, "%s: %d integers are wrong", what, wrong);
    free(host);
}

static void end(struct call *c)
{
    mt_free(c->where, c->in);
    mt_free(c->where, c->out);
}

/* Not every MPI library keeps the arrays of a persistent request. */
static int exchange_all(struct call *c, enum form form)
{
    static int          counts[MOST_RANKS], displs[MOST_RANKS];
    static MPI_Count    long_counts[MOST_RANKS];
    static MPI_Aint     long_displs[MOST_RANKS];
    static MPI_Datatype types[MOST_RANKS];
    large_w            *w;
    init_w             *init;

    for (int i = 0; i < MOST_RANKS; i++) {
        counts[i] = COUNT;
        long_counts[i] = COUNT;
        displs[i] = i * COUNT * (int)sizeof(int);
        long_displs[i] = displs[i];
        types[i] = MPI_INT;
    }
    *(void **)&w = mt_find("MPI_Alltoallw_c");
    *(void **)&init = mt_find("MPI_Alltoallw_init");
    if ((form == ALL_LARGE) && (w != NULL)) {
        return w(c->in, long_counts, long_displs, types, c->out, long_counts, long_displs, types,
                 c->comm);
    }
    if ((form == ALL_STARTED) && (init != NULL)) {
        int code = init(c->in, counts, displs, types, c->out, counts, displs, types, c->comm,
                        MPI_INFO_NULL, &c->request);
        return (code == MPI_SUCCESS) ? MPI_Start(&c->request) : code;
    }
    return MPI_Alltoallw(c->in, counts, displs, types, c->out, counts, displs, types, c->comm);
}

static int begin(struct call *c, enum form form)
{
    init_all  *init;
    large_all *large;

    *(void **)&init = mt_find("MPI_Neighbor_alltoall_init");
    *(void **)&large = mt_find("MPI_Neighbor_alltoall_c");
    if (form >= ALL) {
        return exchange_all(c, form);
    }
    if ((form == LARGE) && (large != NULL)) {
        return large(c->in, COUNT, MPI_INT, c->out, COUNT, MPI_INT, c->comm);
    }
    if ((form == STARTED) && (init != NULL)) {
        int code = init(c->in, COUNT, MPI_INT, c->out, COUNT, MPI_INT, c->comm, MPI_INFO_NULL,
                        &c->request);
        return (code == MPI_SUCCESS) ? MPI_Start(&c->request) : code;
    }
    return (form == LATER)
               ? MPI_Ineighbor_alltoall(c->in, COUNT, MPI_INT, c->out, COUNT, MPI_INT, c->comm,
                                        &c->request)
               : MPI_Neighbor_alltoall(c->in, COUNT, MPI_INT, c->out, COUNT, MPI_INT, c->comm);
}

static void run(struct call *c, enum form form, enum mt_where where, const char *wanted)
{
    c->where = where;
    fill(c);
    mt_expect(begin(c, form) == MPI_SUCCESS, "%s fails", names[form]);
    mt_expect_path(wanted, names[form]);
    MPI_Wait(&c->request, MPI_STATUS_IGNORE);
    check(c, names[form]);
    if (c->request != MPI_REQUEST_NULL) {
        MPI_Request_free(&c->request);
    }
    end(c);
}

/* All ranks of the world. */
static struct call world(void)
{
    struct call c = {.comm = MPI_COMM_WORLD, .n = mt_size()};

    for (int i = 0; i < c.n; i++) {
        c.neighbors[i] = i;
    }
    return c;
}

static struct call ring(void)
{
    int         all = mt_size(), periodic = 1;
    struct call c = {.n = 2};

    MPI_Cart_create(MPI_COMM_WORLD, 1, &all, &periodic, 0, &c.comm);
    MPI_Cart_shift(c.comm, 0, 1, &c.neighbors[0], &c.neighbors[1]);
    return c;
}

/* All others, the last one first. */
static struct call graph(void)
{
    int         n = mt_size(), index[MOST_RANKS], edges[MOST_RANKS * MOST_RANKS], at = 0;
    struct call c = {.n = n - 1};

    for (int r = 0; r < n; r++) {
        for (int other = n - 1; other >= 0; other--) {
            if (other != r) {
                edges[at++] = other;
            }
        }
        index[r] = at;
    }
    MPI_Graph_create(MPI_COMM_WORLD, n, index, edges, 0, &c.comm);
    MPI_Graph_neighbors(c.comm, mt_rank(), c.n, c.neighbors);
    return c;
}

static void case_graph(void)
{
    struct call c = graph();

    run(&c, LATER, MT_DEVICE, "messages");
    run(&c, BLOCKING, MT_DEVICE, "messages");
    run(&c, STARTED, MT_DEVICE, "messages");
    MPI_Comm_free(&c.comm);
}

/* In every form, the first ones before the ranks have asked each other. */
static void case_path(void)
{
    struct call near = ring(), all = world();

    for (int round = 0; round < 2; round++) {
        for (enum form form = BLOCKING; form < NUM_FORMS; form++) {
            run((form >= ALL) ? &all : &near, form, MT_DEVICE, path);
        }
    }
    MPI_Comm_free(&near.comm);
}

static int heard;

static void hear(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    (void)code;
    heard++;
}

/* MPI says what is wrong with a communicator, and nobody else does. */
static void case_nowhere(void)
{
    struct call    c = world();
    MPI_Errhandler handler;

    MPI_Comm_create_errhandler(hear, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
    MPI_Errhandler_free(&handler);
    MPI_Comm_dup(MPI_COMM_WORLD, &c.comm);
    c.where = MT_DEVICE;
    fill(&c);
    for (int i = 0; i < 4; i++) {
        int class = mt_class_of(begin(&c, (i < 2) ? BLOCKING : LATER));
        mt_expect(class == MPI_ERR_TOPOLOGY, "without a topology: class %d", class);
    }
    mt_expect(heard == 4, "without a topology: %d errors are heard", heard);
    MPI_Comm_free(&c.comm);
    for (enum form form = BLOCKING; form < ALL_LARGE; form++) {
        int class = mt_class_of(begin(&c, form));
        mt_expect(class == MPI_ERR_COMM, "%s on MPI_COMM_NULL: class %d", names[form], class);
        mt_expect(heard == 5 + (int)form, "%s on MPI_COMM_NULL: %d errors are heard", names[form],
                  heard);
    }
    end(&c);
}

/* Between two groups of ranks, of one and of all others, MPI has the blocks. */
static void case_groups(void)
{
    bool        alone = (mt_rank() == 0);
    MPI_Comm    group;
    struct call c = {.n = alone ? mt_size() - 1 : 1};

    MPI_Comm_split(MPI_COMM_WORLD, alone, 0, &group);
    MPI_Intercomm_create(group, 0, MPI_COMM_WORLD, alone ? 1 : 0, 7, &c.comm);
    for (int i = 0; i < c.n; i++) {
        c.neighbors[i] = alone ? i + 1 : 0;
    }
    for (int i = 0; i < 4; i++) {
        run(&c, ALL, MT_DEVICE, "mpi-staged");
        run(&c, ALL_STARTED, MT_DEVICE, NULL);
    }
    MPI_Comm_free(&c.comm);
    MPI_Comm_free(&group);
}

/* Upwards goes nothing, of a type that MPI would refuse in a message: below every block arrives. */
static void case_empty(void)
{
    struct call  c = ring();
    int          to[] = {COUNT, 0}, from[] = {0, COUNT};
    MPI_Aint     displs[] = {0, 0};
    MPI_Datatype wrong, out[2], in[2];

    MPI_Type_vector(3, 1, 2, MPI_INT, &wrong);
    out[0] = in[1] = MPI_INT;
    out[1] = in[0] = wrong;
    c.where = MT_DEVICE;
    for (int i = 0; i < 3; i++) {
        fill(&c);
        int code = MPI_Neighbor_alltoallw(c.in, to, displs, out, c.out, from, displs, in, c.comm);
        mt_expect(code == MPI_SUCCESS, "a block of nothing: code %d", code);
        mt_expect_path("messages", "a block of nothing");
        c.neighbors[0] = c.neighbors[1];
        c.n = 1;
        check(&c, "beside a block of nothing");
        c.n = 2;
        MPI_Cart_shift(c.comm, 0, 1, &c.neighbors[0], &c.neighbors[1]);
        end(&c);
    }
    MPI_Type_free(&wrong);
    MPI_Comm_free(&c.comm);
}

/* After MPI_Comm_idup Open MPI makes no communicator in the same place on all ranks. */
static void case_idup(void)
{
    struct call near = ring(), copy = near;
    MPI_Comm    other;
    MPI_Request request;
#ifdef OPEN_MPI
    const char *wanted = "mpi-staged";
#else
    const char *wanted = "messages";
#endif

    MPI_Comm_dup(near.comm, &copy.comm);
    MPI_Comm_idup(copy.comm, &other, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < 4; i++) {
        run(&copy, BLOCKING, MT_DEVICE, wanted);
        run(&copy, LATER, MT_DEVICE, wanted);
    }
    MPI_Comm_free(&other);
    MPI_Comm_free(&copy.comm);
    MPI_Comm_free(&near.comm);
}

/* Host memory is MPI's while no rank has come with a device, and once any has, it is not. */
static void case_host(void)
{
    struct call near = ring(), all = world();

    mt_memory_open(mt_runtime(), mt_rank());
    for (int i = 1; i <= 5; i++) {
        run(&near, BLOCKING, MT_HOST, "host");
        run(&near, LATER, MT_HOST, "host");
        run(&all, ALL, MT_HOST, "host");
    }
    bool last = (mt_rank() == mt_size() - 1);
    for (int i = 6; i <= 15; i++) {
        run(&near, BLOCKING, last ? MT_DEVICE : MT_HOST, last ? "mpi-staged" : "host");
    }
    run(&near, BLOCKING, MT_HOST, "messages");
    MPI_Comm_free(&near.comm);
}

/* MPICH has 2048 communicators in all: what was made for messages goes with the program's. */
static void case_many(void)
{
    for (int i = 0; i < 2100; i++) {
        struct call c = ring();
        if (i % 100 == 0) {
            run(&c, BLOCKING, MT_DEVICE, "messages");
        }
        MPI_Comm_free(&c.comm);
    }
}

static bool await_by_tests(MPI_Request *request)
{
    double begun = MPI_Wtime();
    int    flag = 0;

    while (!flag && (MPI_Wtime() - begun < PATIENCE_S)) {
        MPI_Test(request, &flag, MPI_STATUS_IGNORE);
    }
    return flag != 0;
}

/* A test moves any operation, also once it has moved messages of one. */
static void case_tested(void)
{
    struct call    c = ring();
    struct mt_pair pair = mt_pair_make(MT_DEVICE, COUNT);

    c.where = MT_DEVICE;
    for (int i = 0; i < 3; i++) {
        MPI_Request request;
        fill(&c);
        mt_expect(begin(&c, LATER) == MPI_SUCCESS, "%s fails", names[LATER]);
        mt_expect(await_by_tests(&c.request), "%s never ends", names[LATER]);
        check(&c, "by tests");
        end(&c);
        mt_pair_fill(&pair, COUNT, MPI_COMM_WORLD, i);
        MPI_Iallreduce(pair.in, pair.out, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request);
        mt_expect(await_by_tests(&request), "MPI_Iallreduce never ends");
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        mt_pair_expect_sum(&pair, COUNT, mt_size(), i, "MPI_Iallreduce by tests");
    }
    mt_pair_free(&pair);
    MPI_Comm_free(&c.comm);
}

/*
 * A copy of this only rank's fails in one of the calls, which says so; the others are right, and
 * get nothing of that one's.
 */
static void miss(enum form form)
{
    enum { CALLS = 8, FEW = 10 };
    struct call    c = ring();
    int            errors = 0;
    MPI_Errhandler handler;

    MPI_Comm_create_errhandler(hear, &handler);
    MPI_Comm_set_errhandler(c.comm, handler);
    MPI_Errhandler_free(&handler);
    for (int i = 0; i < CALLS; i++) {
        int *in = mt_ints_make(MT_DEVICE, 2 * FEW, 2 * FEW, i);
        int *out = mt_ints_make(MT_DEVICE, 2 * FEW, 0, 0), host[2 * FEW], wrong = 0;
        int  code =
            (form == BLOCKING)
                 ? MPI_Neighbor_alltoall(in, FEW, MPI_INT, out, FEW, MPI_INT, c.comm)
                 : MPI_Ineighbor_alltoall(in, FEW, MPI_INT, out, FEW, MPI_INT, c.comm, &c.request);
        if ((form != BLOCKING) && (code == MPI_SUCCESS)) {
            code = MPI_Wait(&c.request, MPI_STATUS_IGNORE);
        }
        mt_get(host, out, MT_DEVICE, sizeof(host));
        for (int k = 0; k < 2 * FEW; k++) {
            /* The block that was sent below comes from above. */
            wrong += (host[k] != mt_value(mt_rank(), i, (k + FEW) % (2 * FEW)));
        }
        mt_expect((code != MPI_SUCCESS) || (wrong == 0), "call %d: %d are wrong", i, wrong);
        errors += (code != MPI_SUCCESS);
        mt_free(MT_DEVICE, in);
        mt_free(MT_DEVICE, out);
    }
    mt_expect(errors == 1, "%d calls fail", errors);
    mt_expect(heard == 1, "the handler has heard of %d errors", heard);
    MPI_Comm_free(&c.comm);
}

static void case_miss(void)
{
    miss(BLOCKING);
}

static void case_miss_later(void)
{
    miss(LATER);
}

int main(int argc, char **argv)
{
    static const struct mt_named_case cases[] = {{"graph", case_graph},
                                                 {"groups", case_groups},
                                                 {"nowhere", case_nowhere},
                                                 {"idup", case_idup},
                                                 {"empty", case_empty},
                                                 {"path", case_path},
                                                 {"host", case_host},
                                                 {"many", case_many},
                                                 {"tested", case_tested},
                                                 {"miss", case_miss},
                                                 {"miss_later", case_miss_later},
                                                 {NULL, NULL}};
    bool                              later = (argc > 2) && (strcmp(argv[2], "host") == 0);

    path = (argc > 3) ? argv[3] : NULL;
    mt_begin(&argc, &argv, !later);
    return mt_run_to_end(cases, argc, argv);
}
