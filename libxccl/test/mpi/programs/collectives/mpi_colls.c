/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every collective, compared with PMPI on host copies.
 *
 *   mpi_colls RUNTIME MEMORY SECTION ...
 *     RUNTIME  cuda, rocm, or none (no device is ever touched)
 *     MEMORY   two letters, of the send and the receive buffer: d device, h host, m managed
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "colls.h"

static enum mt_where send_where;
static enum mt_where recv_where;
static int           world_rank;
static int           world_size;

static bool is_reduction(enum mt_coll coll)
{
    return ((1u << coll) & MT_REDUCTIONS) != 0;
}

/* What cannot be tested. */
static bool left_out(const struct mt_case *c)
{
    bool rooted = ((1u << c->coll) & MT_ROOTED) != 0;

    /* The root's only buffer would be of another kind of memory than those of the others. */
    if (c->in_place && rooted && (send_where != recv_where)) {
        return true;
    }
#ifdef MPICH_VERSION
    /* A crash inside MPICH 4.0.2, where it serves the call itself; see reference() in colls.c. */
    bool served = (recv_where != MT_DEVICE) || (getenv("XCCL_ROUTE") != NULL);
    return (c->coll == MT_REDUCE) && c->in_place && (c->root > 0) && served;
#else
    return false;
#endif
}

static void run(struct mt_case c)
{
    if (left_out(&c)) {
        return;
    }
    c.sendwhere = send_where;
    c.recvwhere = recv_where;
    mt_run(&c);
    if (mt_has_large()) {
        c.large = true;
        mt_run(&c);
    }
}

/* Every predefined datatype in every collective, and every operation that is defined for it. */
static void section_types(void)
{
    int                   num_types;
    int                   num_ops;
    const struct mt_type *types = mt_types(&num_types);
    const struct mt_op   *ops = mt_ops(&num_ops);

    for (int t = 0; t < num_types; t++) {
        for (int coll = 0; coll < MT_NUM_COLLS; coll++) {
            struct mt_case c = mt_case_make(coll, MPI_COMM_WORLD, &types[t], 5);
            c.root = t % world_size;
            for (int o = 0; is_reduction(coll) && (o < num_ops); o++) {
                if (((1u << types[t].class) & ops[o].classes) != 0) {
                    c.op = ops[o].op;
                    c.in_place = !c.in_place;
                    run(c);
                }
            }
            if (!is_reduction(coll)) {
                run(c);
            }
        }
    }
}

/* Counts around every limit that an implementation may have, in place and not, and both roots. */
static void section_counts(void)
{
    static const int   counts[] = {0, 1, 2, 7, 1000, 4099};
    const MPI_Datatype handles[] = {MPI_INT, MPI_DOUBLE, MPI_INT8_T};

    for (size_t t = 0; t < sizeof(handles) / sizeof(handles[0]); t++) {
        for (size_t n = 0; n < sizeof(counts) / sizeof(counts[0]); n++) {
            for (int coll = 0; coll < MT_NUM_COLLS; coll++) {
                struct mt_case c =
                    mt_case_make(coll, MPI_COMM_WORLD, mt_type_find(handles[t]), counts[n]);
                for (c.root = 0; c.root < world_size;
                     c.root += (world_size > 1) ? world_size - 1 : 1) {
                    c.in_place = false;
                    c.shift = (int)(n % 2) * 8;
                    run(c);
                    if (((1u << coll) & MT_IN_PLACE) != 0) {
                        c.in_place = true;
                        run(c);
                    }
                }
            }
        }
    }
}

/* More than a staging buffer or a pipeline step holds. */
static void section_large(void)
{
    for (int coll = 0; coll < MT_NUM_COLLS; coll++) {
        struct mt_case c =
            mt_case_make(coll, MPI_COMM_WORLD, mt_type_find(MPI_DOUBLE), (2 << 20) + 1);
        bool blocks = (coll != MT_ALLREDUCE) && (coll != MT_BCAST) && (coll != MT_REDUCE);
        c.units = blocks ? c.units / world_size : c.units;
        c.root = world_size / 2;
        run(c);
    }
}

/* Bytes at any address: what an implementation may not take for aligned. */
static void section_odd(void)
{
    for (int coll = 0; coll < MT_NUM_COLLS; coll++) {
        for (int shift = 1; shift < 16; shift += 6) {
            struct mt_case c = mt_case_make(coll, MPI_COMM_WORLD, mt_type_find(MPI_BYTE), 1001);
            c.shift = shift;
            c.op = MPI_BXOR;
            run(c);
        }
    }
}

/* One case of so many bytes, by roots that are not 0, in place and not. */
static void border(MPI_Comm comm, const struct mt_type *type, size_t size, int bytes, int shift)
{
    for (int coll = 0; coll < MT_NUM_COLLS; coll++) {
        struct mt_case c = mt_case_make(coll, comm, type, bytes / (int)size);
        c.root = (bytes + coll) % world_size;
        c.shift = shift;
        c.op = (size == 1) ? MPI_BXOR : MPI_MAX;
        run(c);
        c.in_place = ((1u << coll) & MT_IN_PLACE) != 0;
        run(c);
    }
}

/* Around the sizes where kernels change what they do, at addresses of any alignment. */
static void section_borders(void)
{
    static const int bytes[] = {1,     7,     8,      15,     16,     17,     4096,
                                32767, 32768, 131071, 131072, 131073, 131088, 1 << 20};
    static const int shifts[] = {0, 1, 4, 8};

    size_t num_shifts = (world_size > 3) ? 2 : sizeof(shifts) / sizeof(shifts[0]);

    for (size_t s = 0; s < num_shifts; s++) {
        MPI_Comm comm; /* buffers that cannot be used as they are count for each on its own */
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        for (size_t b = 0; b < sizeof(bytes) / sizeof(bytes[0]); b++) {
            if ((bytes[b] > 1 << 17) && (shifts[s] > 1)) {
                continue;
            }
            border(comm, mt_type_find(MPI_BYTE), 1, bytes[b], shifts[s]);
            if (shifts[s] % 8 == 0) {
                border(comm, mt_type_find(MPI_DOUBLE), 8, bytes[b] + 8, shifts[s]);
            }
        }
        MPI_Comm_free(&comm);
    }
}

/* Every type and operation by the kernels for large vectors. */
static void section_large_types(void)
{
    int                   num_types;
    int                   num_ops;
    const struct mt_type *types = mt_types(&num_types);
    const struct mt_op   *ops = mt_ops(&num_ops);

    for (int t = 0; t < num_types; t++) {
        MPI_Aint low;
        MPI_Aint extent;
        PMPI_Type_get_extent(types[t].type, &low, &extent);
        for (int o = 0; o < num_ops; o++) {
            if (((1u << types[t].class) & ops[o].classes) != 0) {
                struct mt_case c =
                    mt_case_make(MT_ALLREDUCE, MPI_COMM_WORLD, &types[t], 140001 / (int)extent);
                c.op = ops[o].op;
                run(c);
            }
        }
    }
}

struct derived {
    MPI_Datatype type;
    MPI_Datatype element;
    int          per; /* how many of it hold the same data as one of the contiguous one */
};

enum { NUM_DERIVED = 8 };

/* All hold six MPI_INT a unit but the last three, which stand alone. */
static void make_derived(struct derived made[NUM_DERIVED])
{
    MPI_Datatype inner;
    MPI_Datatype parts[2] = {MPI_INT, MPI_DOUBLE};
    int          lengths[2] = {1, 1};
    MPI_Aint     places[2] = {0, 8};

    made[0] = (struct derived){MPI_INT, MPI_INT, 6};
    made[1] = (struct derived){.element = MPI_INT, .per = 1};
    MPI_Type_contiguous(6, MPI_INT, &made[1].type);
    made[2] = (struct derived){.element = MPI_INT, .per = 2};
    MPI_Type_vector(3, 1, 2, MPI_INT, &made[2].type); /* holes inside, none at the end */
    made[3] = (struct derived){.element = MPI_INT, .per = 6};
    MPI_Type_create_resized(MPI_INT, 0, 12, &made[3].type); /* holes at the end only */
    made[4] = (struct derived){.element = MPI_INT, .per = 3};
    MPI_Type_contiguous(1, MPI_INT, &inner);
    MPI_Type_contiguous(2, inner, &made[4].type);
    MPI_Type_free(&inner);
    made[5] = (struct derived){.element = MPI_INT, .per = 1};
    MPI_Type_create_struct(2, lengths, places, parts, &made[5].type);
    made[6] = (struct derived){.element = MPI_DOUBLE, .per = 1};
    MPI_Type_dup(MPI_DOUBLE, &made[6].type);
    made[7] = (struct derived){.element = MPI_INT, .per = 3};
    MPI_Type_contiguous(0, MPI_INT, &made[7].type); /* no data at all */
    for (int i = 1; i < NUM_DERIVED; i++) {
        MPI_Type_commit(&made[i].type);
    }
}

static void section_derived(void)
{
    struct derived made[NUM_DERIVED];

    make_derived(made);
    for (int coll = 0; coll < MT_NUM_COLLS; coll++) {
        for (int s = 0; !is_reduction(coll) && (s < NUM_DERIVED); s++) {
            for (int r = 0; r < NUM_DERIVED; r++) {
                struct mt_case c =
                    mt_case_make(coll, MPI_COMM_WORLD, mt_type_find(made[s].element), 4);
                if ((s != r) && ((s > 4) || (r > 4))) {
                    continue; /* their signatures differ */
                }
                c.sendtype = made[s].type;
                c.recvtype = made[r].type;
                c.sendper = made[s].per;
                c.recvper = made[r].per;
                c.root = (s + r) % world_size;
                run(c);
                c.in_place = (s == r) && (((1u << coll) & MT_IN_PLACE) != 0);
                run(c);
            }
        }
    }
    for (int i = 1; i < NUM_DERIVED; i++) {
        MPI_Type_free(&made[i].type);
    }
}

/* Products of 2 x 2 matrices: associative, and the order of the ranks is in the result. */
static void multiply(void *in, void *inout, int *len, MPI_Datatype *type)
{
    const double *a = in;
    double       *b = inout;

    (void)type;
    for (int i = 0; i < *len; i++, a += 4, b += 4) {
        double c[4] = {a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3],
                       a[2] * b[0] + a[3] * b[2], a[2] * b[1] + a[3] * b[3]};
        memcpy(b, c, sizeof(c));
    }
}

static void add_and_count(void *in, void *inout, int *len, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *len; i++) {
        ((int *)inout)[i] += ((int *)in)[i] + 1;
    }
}

static void section_user_ops(void)
{
    MPI_Datatype matrix;
    MPI_Op       product;
    MPI_Op       sum;

    MPI_Type_contiguous(4, MPI_DOUBLE, &matrix);
    MPI_Type_commit(&matrix);
    MPI_Op_create(multiply, 0, &product);
    MPI_Op_create(add_and_count, 1, &sum);
    for (int coll = 0; coll < MT_NUM_COLLS; coll++) {
        for (int round = 0; is_reduction(coll) && (round < 4); round++) {
            struct mt_case c = mt_case_make(coll, MPI_COMM_WORLD, mt_type_find(MPI_DOUBLE), 9);
            c.sendtype = c.recvtype = matrix;
            c.op = product;
            c.in_place = round % 2;
            c.root = round % world_size;
            run(c);
            c.element = mt_type_find(MPI_INT);
            c.sendtype = c.recvtype = MPI_INT;
            c.op = sum;
            run(c);
        }
    }
    MPI_Op_free(&product);
    MPI_Op_free(&sum);
    MPI_Type_free(&matrix);
}

static void every_coll(MPI_Comm comm, const int roots[2], bool in_place)
{
    static const int counts[] = {1, 65, 3000};

    for (int coll = 0; coll < MT_NUM_COLLS; coll++) {
        for (int i = 0; i < 6; i++) {
            struct mt_case c = mt_case_make(coll, comm, mt_type_find(MPI_INT), counts[i / 2]);
            c.root = roots[i % 2];
            c.in_place = in_place && (i % 2) && (((1u << coll) & MT_IN_PLACE) != 0);
            run(c);
        }
    }
}

static void section_comms(void)
{
    int      low_half = world_rank < world_size / 2;
    int      roots[2] = {0, 0};
    MPI_Comm comm;

    every_coll(MPI_COMM_SELF, roots, true);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    roots[1] = world_size - 1;
    every_coll(comm, roots, true);
    MPI_Comm_free(&comm);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank, &comm); /* backwards */
    every_coll(comm, roots, true);
    MPI_Comm_free(&comm);
    roots[1] = 0;
    MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, 0, &comm);
    every_coll(comm, roots, true);
    MPI_Comm_free(&comm);
    MPI_Comm_split(MPI_COMM_WORLD, low_half ? 0 : MPI_UNDEFINED, 0, &comm);
    if (comm != MPI_COMM_NULL) {
        every_coll(comm, roots, true);
        MPI_Comm_free(&comm);
    }
    for (int i = 0; i < 20; i++) { /* made and freed again: nothing may be used up */
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        run(mt_case_make(MT_ALLREDUCE, comm, mt_type_find(MPI_FLOAT), 100));
        MPI_Comm_free(&comm);
    }
}

/* Two equal halves that talk to each other. */
static void section_intercomm(void)
{
    int      half = world_size / 2;
    int      low = world_rank < half;
    int      roots[2];
    MPI_Comm mine;
    MPI_Comm between;

    if ((world_size % 2) != 0) {
        mt_check(true, "an intercommunicator takes an even number of ranks");
        return;
    }
    MPI_Comm_split(MPI_COMM_WORLD, low, 0, &mine);
    MPI_Intercomm_create(mine, 0, MPI_COMM_WORLD, low ? half : 0, 9, &between);
    for (int i = 0; i < 2; i++) { /* first the root is rank 0 of the low half, then of the high */
        bool root_here = low ? (i == 0) : (i == 1);
        bool is_root = world_rank == ((i == 0) ? 0 : half);
        roots[0] = roots[1] = !root_here ? 0 : is_root ? MPI_ROOT : MPI_PROC_NULL;
        every_coll(between, roots, false);
    }
    MPI_Comm_free(&between);
    MPI_Comm_free(&mine);
}

/* Calls back to back, without anything that would bring the ranks together between them. */
static void section_repeat(void)
{
    enum { COUNT = 257, ROUNDS = 300 };
    size_t bytes = COUNT * sizeof(int);
    int   *mine = malloc(bytes);
    void  *send = mt_alloc(send_where, bytes);
    void  *recv = mt_alloc(recv_where, bytes);

    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < COUNT; i++) {
            mine[i] = world_rank + round * 3 + i;
        }
        mt_put(send, send_where, mine, bytes);
        MPI_Allreduce(send, recv, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        mt_get(mine, recv, recv_where, bytes);
        int good = 1;
        for (int i = 0; i < COUNT; i++) {
            int ranks = world_size * (world_size - 1) / 2;
            good = good && (mine[i] == ranks + world_size * (round * 3 + i));
        }
        mt_check(good, "allreduce in a loop gives the sum of its own round");
    }
    mt_free(send_where, send);
    mt_free(recv_where, recv);
    free(mine);
}

/*
 * Waiting is progress: rank 0 begins a large send and enters the collective; rank 1 receives first.
 * A rank that only waits for its device would never let the send end.
 */
static void section_rendezvous(void)
{
    enum { LARGE = 8 << 20 };
    char       *message = calloc(1, LARGE);
    MPI_Request request = MPI_REQUEST_NULL;

    for (int round = 0; round < 3; round++) {
        if ((world_rank == 0) && (world_size > 1)) {
            memset(message, round + 1, LARGE);
            MPI_Isend(message, LARGE, MPI_BYTE, 1, 7, MPI_COMM_WORLD, &request);
        } else if (world_rank == 1) {
            MPI_Recv(message, LARGE, MPI_BYTE, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            mt_check(message[LARGE - 1] == round + 1, "the message came whole");
        }
        void *buf = mt_alloc(recv_where, 4096);
        MPI_Allreduce(MPI_IN_PLACE, buf, 1024, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        mt_free(recv_where, buf);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    mt_check(true, "no rank waited for ever");
    free(message);
}

static const struct {
    const char *name;
    void (*run)(void);
} sections[] = {
    {"types", section_types},     {"counts", section_counts},
    {"large", section_large},     {"odd", section_odd},
    {"derived", section_derived}, {"user_ops", section_user_ops},
    {"comms", section_comms},     {"intercomm", section_intercomm},
    {"repeat", section_repeat},   {"rendezvous", section_rendezvous},
    {"borders", section_borders}, {"large_types", section_large_types},
};

static enum mt_where where_of(char letter)
{
    return (letter == 'd') ? MT_DEVICE : (letter == 'm') ? MT_MANAGED : MT_HOST;
}

int main(int argc, char **argv)
{
    int known = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    if ((argc < 4) || (strlen(argv[2]) != 2)) {
        fprintf(stderr, "usage: mpi_colls cuda|rocm|none XY SECTION ...; X, Y: d, h or m\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    mt_memory_open(argv[1], world_rank);
    send_where = where_of(argv[2][0]);
    recv_where = where_of(argv[2][1]);
    for (int i = 3; i < argc; i++) {
        for (size_t s = 0; s < sizeof(sections) / sizeof(sections[0]); s++) {
            if (strcmp(argv[i], sections[s].name) == 0) {
                sections[s].run();
                known++;
            }
        }
    }
    if (known != argc - 3) {
        fprintf(stderr, "mpi_colls: a section is not known\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    int status = mt_report();
    MPI_Finalize();
    return status;
}
