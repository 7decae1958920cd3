/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Persistent collectives, by MPI_Start and MPI_Startall, also together with persistent messages.
 * The functions are looked up: Open MPI 4.1 has them as MPIX_ only, and xccl gives them their
 * names. Usage: mpi_persistent cuda|rocm|none CASE
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

/* MPICH 4.0.2 waits for persistent collectives that are not started, or says that they are done. */
#ifdef MPICH_VERSION
enum { KNOWS_INACTIVE = 0 };
#else
enum { KNOWS_INACTIVE = 1 };
#endif
enum { COUNT = 1500, SMALL = 16, TAG = 13, ROUNDS = 12 };

typedef int allreduce_init(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Info,
                           MPI_Request *);
typedef int bcast_init(void *, int, MPI_Datatype, int, MPI_Comm, MPI_Info, MPI_Request *);
typedef int alltoall_init(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, MPI_Comm,
                          MPI_Info, MPI_Request *);
typedef alltoall_init allgather_init;
typedef int gather_init(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, int, MPI_Comm,
                        MPI_Info, MPI_Request *);
typedef int barrier_init(MPI_Comm, MPI_Info, MPI_Request *);
typedef int alltoallw_init(const void *, const int *, const int *, const MPI_Datatype *, void *,
                           const int *, const int *, const MPI_Datatype *, MPI_Comm, MPI_Info,
                           MPI_Request *);

static struct {
    allreduce_init *allreduce;
    bcast_init     *bcast;
    alltoall_init  *alltoall;
    barrier_init   *barrier;
    alltoallw_init *alltoallw;
} init;

static bool find_all(void)
{
    *(void **)&init.allreduce = mt_find("MPI_Allreduce_init");
    *(void **)&init.bcast = mt_find("MPI_Bcast_init");
    *(void **)&init.alltoall = mt_find("MPI_Alltoall_init");
    *(void **)&init.barrier = mt_find("MPI_Barrier_init");
    *(void **)&init.alltoallw = mt_find("MPI_Alltoallw_init");
    return (init.allreduce != NULL) && (init.bcast != NULL) && (init.alltoall != NULL) &&
           (init.barrier != NULL) && (init.alltoallw != NULL);
}

/* One request, started again and again with new values in the same buffers. */
static void start_again(allreduce_init *make)
{
    struct mt_pair pair = mt_pair_make(MT_DEVICE, COUNT);
    MPI_Request    request;
    int            flag;

    make(pair.in, pair.out, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    if (KNOWS_INACTIVE) {
        MPI_Wait(&request, MPI_STATUS_IGNORE); /* at once */
        MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        mt_expect(flag && (request != MPI_REQUEST_NULL), "an inactive request is not at rest");
    }
    for (int round = 0; round < ROUNDS; round++) {
        mt_pair_fill(&pair, COUNT, MPI_COMM_WORLD, round);
        MPI_Start(&request);
        flag = 0;
        while ((round % 2) && !flag) {
            MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        }
        if (!flag || KNOWS_INACTIVE) {
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        mt_expect(request != MPI_REQUEST_NULL, "MPI_Wait freed a persistent request");
        mt_pair_expect_sum(&pair, COUNT, mt_size(), round, "MPI_Start of an allreduce");
    }
    MPI_Request_free(&request);
    mt_expect(request == MPI_REQUEST_NULL, "MPI_Request_free left the request");
    mt_pair_free(&pair);
}

/* Also under the name that Open MPI 4.1 has alone, where anybody has it. */
static void case_start(void)
{
    allreduce_init *extension;

    *(void **)&extension = dlsym(RTLD_DEFAULT, "MPIX_Allreduce_init");
    start_again(init.allreduce);
    if (extension != NULL) {
        start_again(extension);
    }
}

static void check_bcast(struct mt_pair *pair, int count, int root, int salt)
{
    int wrong = 0;

    mt_get(pair->host, pair->in, MT_DEVICE, sizeof(float) * (size_t)count);
    for (int i = 0; i < count; i++) {
        wrong += pair->host[i] != (float)(root + i % 61 + salt);
    }
    mt_expect(wrong == 0, "MPI_Start of a bcast: %d elements are wrong", wrong);
}

static void check_alltoall(struct mt_pair *pair, int count, int salt)
{
    int wrong = 0;

    mt_get(pair->host, pair->out, MT_DEVICE, sizeof(float) * (size_t)(count * mt_size()));
    for (int i = 0; i < count * mt_size(); i++) {
        int place = mt_rank() * count + i % count;
        wrong += pair->host[i] != (float)(i / count + place % 61 + salt);
    }
    mt_expect(wrong == 0, "MPI_Start of an alltoall: %d elements are wrong", wrong);
}

/* A column of each block, whose type is freed before the first start; another takes its handle. */
static void case_freed(void)
{
    enum { BLOCKS = COUNT / 4 };
    struct mt_pair pair = mt_pair_make(MT_DEVICE, COUNT);
    MPI_Datatype   type, other;
    MPI_Request    request;

    MPI_Type_vector(BLOCKS, 2, 4, MPI_FLOAT, &type);
    MPI_Type_commit(&type);
    init.bcast(pair.in, 1, type, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    MPI_Type_free(&type);
    MPI_Type_contiguous(3, MPI_DOUBLE, &other);
    MPI_Type_commit(&other);
    for (int round = 0; round < 3; round++) {
        int wrong = 0;
        mt_pair_fill(&pair, COUNT, MPI_COMM_WORLD, round);
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        mt_get(pair.host, pair.in, MT_DEVICE, sizeof(float) * COUNT);
        for (int i = 0; i < COUNT; i++) {
            int from = (i % 4 < 2) ? 1 : mt_rank();
            wrong += pair.host[i] != (float)(from + i % 61 + round);
        }
        mt_expect(wrong == 0, "a freed type: %d elements are wrong", wrong);
    }
    MPI_Request_free(&request);
    MPI_Type_free(&other);
    mt_pair_free(&pair);
}

/* Two requests on a communicator that is freed before they are started; others come and go. */
static void case_freed_comm(void)
{
    struct mt_pair pairs[2], other = mt_pair_make(MT_DEVICE, COUNT);
    MPI_Request    requests[2];
    MPI_Comm       comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int i = 0; i < 2; i++) {
        pairs[i] = mt_pair_make(MT_DEVICE, COUNT);
        init.allreduce(pairs[i].in, pairs[i].out, COUNT, MPI_FLOAT, MPI_SUM, comm, MPI_INFO_NULL,
                       &requests[i]);
    }
    MPI_Comm_free(&comm);
    mt_expect(comm == MPI_COMM_NULL, "MPI_Comm_free left the handle");
    for (int round = 0; round < 4; round++) {
        int which = (round == 3) ? 1 : 0;
        mt_pair_fill(&pairs[which], COUNT, MPI_COMM_WORLD, round);
        MPI_Start(&requests[which]);
        MPI_Wait(&requests[which], MPI_STATUS_IGNORE);
        mt_pair_expect_sum(&pairs[which], COUNT, mt_size(), round, "a freed communicator");
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        mt_pair_allreduce(&other, COUNT, comm, round);
        MPI_Comm_free(&comm);
        if (round == 2) {
            MPI_Request_free(&requests[0]);
        }
    }
    MPI_Request_free(&requests[1]);
    for (int i = 0; i < 2; i++) {
        mt_pair_free(&pairs[i]);
    }
    mt_pair_free(&other);
}

static void add_pairs(void *in, void *inout, int *count, MPI_Datatype *type)
{
    MPI_Aint low, extent;

    MPI_Type_get_extent(*type, &low, &extent);
    mt_expect(extent == 2 * (MPI_Aint)sizeof(float), "the operation's type has %ld bytes",
              (long)extent);
    for (int i = 0; i < 2 * *count; i++) {
        ((float *)inout)[i] += ((float *)in)[i];
    }
}

static void spoil(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)in;
    (void)type;
    memset(inout, 0, sizeof(float) * (size_t)*count);
}

/* Operation and datatype are freed before the first start; others take their handles. */
static void case_freed_op(void)
{
    struct mt_pair pair = mt_pair_make(MT_DEVICE, COUNT);
    MPI_Op         op, other_op;
    MPI_Datatype   type, other_type;
    MPI_Request    request, first;

    MPI_Op_create(add_pairs, 1, &op);
    MPI_Type_contiguous(2, MPI_FLOAT, &type);
    MPI_Type_commit(&type);
    init.allreduce(pair.in, pair.out, COUNT / 2, type, op, MPI_COMM_WORLD, MPI_INFO_NULL, &first);
    init.allreduce(pair.in, pair.out, COUNT / 2, type, op, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    MPI_Op_free(&op);
    MPI_Type_free(&type);
    mt_expect((op == MPI_OP_NULL) && (type == MPI_DATATYPE_NULL), "a handle was left");
    MPI_Request_free(&first); /* the other one needs them still */
    MPI_Op_create(spoil, 1, &other_op);
    MPI_Type_contiguous(3, MPI_DOUBLE, &other_type);
    MPI_Type_commit(&other_type);
    for (int round = 0; round < 3; round++) {
        mt_pair_fill(&pair, COUNT, MPI_COMM_WORLD, round);
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        mt_pair_expect_sum(&pair, COUNT, mt_size(), round, "a freed operation");
    }
    MPI_Request_free(&request);
    MPI_Op_free(&other_op);
    MPI_Type_free(&other_type);
    mt_pair_free(&pair);
}

/* Each block has a type of its own, freed before the first start; others take their handles. The
 * arrays of counts and displacements are given up, which MPI forbids and MPI libraries bear. */
static void case_freed_array(void)
{
    enum { MOST = 8, PART = 60 };
    struct mt_pair pair = mt_pair_make(MT_DEVICE, COUNT);
    int            ranks = mt_size(), counts[MOST], places[MOST];
    MPI_Datatype   out[MOST], in[MOST], others[2 * MOST];
    MPI_Request    request;

    for (int i = 0; i < ranks; i++) {
        counts[i] = 1;
        places[i] = (int)sizeof(float) * PART * i;
        MPI_Type_vector(PART / 2, 2, 2, MPI_FLOAT, &out[i]);
        MPI_Type_contiguous(PART, MPI_FLOAT, &in[i]);
        MPI_Type_commit(&out[i]);
        MPI_Type_commit(&in[i]);
    }
    init.alltoallw(pair.in, counts, places, out, pair.out, counts, places, in, MPI_COMM_WORLD,
                   MPI_INFO_NULL, &request);
    for (int i = 0; i < ranks; i++) {
        MPI_Datatype both[] = {out[i], in[i]}; /* Open MPI reads the arrays of types later */
        MPI_Type_free(&both[0]);
        MPI_Type_free(&both[1]);
        counts[i] = places[i] = -1;
    }
    for (int i = 0; i < 2 * ranks; i++) {
        MPI_Type_contiguous(3, MPI_DOUBLE, &others[i]);
        MPI_Type_commit(&others[i]);
    }
    for (int round = 0; round < 3; round++) {
        mt_pair_fill(&pair, COUNT, MPI_COMM_WORLD, round);
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        check_alltoall(&pair, PART, round);
    }
    MPI_Request_free(&request);
    for (int i = 0; i < 2 * ranks; i++) {
        MPI_Type_free(&others[i]);
    }
    mt_pair_free(&pair);
}

/* Collectives and messages by one MPI_Startall, completed in several ways. */
static void case_startall(void)
{
    enum { SUM, RECEIVE, CAST, SEND, BARRIER, EXCHANGE, ALL };
    int            next = (mt_rank() + 1) % mt_size();
    int            previous = (mt_rank() + mt_size() - 1) % mt_size();
    int            part = COUNT / mt_size();
    int            sent = 0;
    int            got = 0;
    struct mt_pair sum = mt_pair_make(MT_DEVICE, COUNT);
    struct mt_pair cast = mt_pair_make(MT_DEVICE, COUNT);
    struct mt_pair exchange = mt_pair_make(MT_DEVICE, COUNT);
    MPI_Request    r[ALL];
    int            which;

    init.allreduce(sum.in, sum.out, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL,
                   &r[SUM]);
    init.bcast(cast.in, COUNT, MPI_FLOAT, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &r[CAST]);
    init.alltoall(exchange.in, part, MPI_FLOAT, exchange.out, part, MPI_FLOAT, MPI_COMM_WORLD,
                  MPI_INFO_NULL, &r[EXCHANGE]);
    init.barrier(MPI_COMM_WORLD, MPI_INFO_NULL, &r[BARRIER]);
    MPI_Send_init(&sent, 1, MPI_INT, next, TAG, MPI_COMM_WORLD, &r[SEND]);
    MPI_Recv_init(&got, 1, MPI_INT, previous, TAG, MPI_COMM_WORLD, &r[RECEIVE]);
    for (int round = 0; round < ROUNDS; round++) {
        mt_pair_fill(&sum, COUNT, MPI_COMM_WORLD, round);
        mt_pair_fill(&cast, COUNT, MPI_COMM_WORLD, round);
        mt_pair_fill(&exchange, COUNT, MPI_COMM_WORLD, round);
        sent = mt_rank() + round;
        MPI_Startall(ALL, r);
        for (int left = ALL; KNOWS_INACTIVE && (round % 2) && (left > 0); left--) {
            MPI_Waitany(ALL, r, &which, MPI_STATUS_IGNORE);
            mt_expect(which != MPI_UNDEFINED, "MPI_Waitany finds nothing, with %d left", left);
        }
        MPI_Waitall(ALL, r, MPI_STATUSES_IGNORE);
        if (KNOWS_INACTIVE) {
            MPI_Waitany(ALL, r, &which, MPI_STATUS_IGNORE);
            mt_expect(which == MPI_UNDEFINED, "MPI_Waitany of inactive requests says %d", which);
        }
        mt_expect(got == previous + round, "the message is %d", got);
        mt_pair_expect_sum(&sum, COUNT, mt_size(), round, "MPI_Startall of an allreduce");
        check_bcast(&cast, COUNT, 1, round);
        check_alltoall(&exchange, part, round);
    }
    for (int i = 0; i < ALL; i++) {
        MPI_Request_free(&r[i]);
    }
    mt_pair_free(&sum);
    mt_pair_free(&cast);
    mt_pair_free(&exchange);
}

/* Two of them on two communicators; each rank starts and waits in an order of its own. */
static void case_orders(void)
{
    struct mt_pair pairs[2];
    MPI_Request    requests[2];
    MPI_Comm       comms[2];

    for (int i = 0; i < 2; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
        pairs[i] = mt_pair_make(MT_DEVICE, COUNT);
        init.allreduce(pairs[i].in, pairs[i].out, COUNT, MPI_FLOAT, MPI_SUM, comms[i],
                       MPI_INFO_NULL, &requests[i]);
    }
    for (int round = 0; round < ROUNDS; round++) {
        int first = (mt_rank() + round) % 2;
        for (int i = 0; i < 2; i++) {
            mt_pair_fill(&pairs[i], COUNT, comms[i], round + i);
        }
        MPI_Start(&requests[first]);
        MPI_Start(&requests[1 - first]);
        MPI_Wait(&requests[(round % 3) ? first : 1 - first], MPI_STATUS_IGNORE);
        MPI_Wait(&requests[(round % 3) ? 1 - first : first], MPI_STATUS_IGNORE);
        for (int i = 0; i < 2; i++) {
            mt_pair_expect_sum(&pairs[i], COUNT, mt_size(), round + i, "two communicators");
        }
    }
    for (int i = 0; i < 2; i++) {
        MPI_Request_free(&requests[i]);
        MPI_Comm_free(&comms[i]);
        mt_pair_free(&pairs[i]);
    }
}

/* Several on one communicator, started in an order of its own on each rank, before or after others.
 */
static void start_anyhow(enum mt_where memory, bool together)
{
    enum { MANY = 3 };
    struct mt_pair pairs[MANY], other = mt_pair_make(memory, COUNT);
    MPI_Request    requests[MANY], cast;
    int            back = mt_rank() % 2;

    for (int i = 0; i < MANY; i++) {
        pairs[i] = mt_pair_make(memory, COUNT);
        init.allreduce(pairs[i].in, pairs[i].out, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD,
                       MPI_INFO_NULL, &requests[together && back ? MANY - 1 - i : i]);
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < MANY; i++) {
            mt_pair_fill(&pairs[i], COUNT, MPI_COMM_WORLD, round + 7 * i);
        }
        if (back) {
            MPI_Ibcast(other.in, COUNT, MPI_FLOAT, 0, MPI_COMM_WORLD, &cast);
        }
        if (together) {
            MPI_Startall(MANY, requests);
        }
        for (int i = 0; !together && (i < MANY); i++) {
            MPI_Start(&requests[(i + mt_rank() + round) % MANY]);
        }
        if (!back) {
            MPI_Ibcast(other.in, COUNT, MPI_FLOAT, 0, MPI_COMM_WORLD, &cast);
        }
        MPI_Wait(&cast, MPI_STATUS_IGNORE);
        MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < MANY; i++) {
            mt_pair_expect_sum(&pairs[i], COUNT, mt_size(), round + 7 * i, "starts in any order");
        }
    }
    for (int i = 0; i < MANY; i++) {
        MPI_Request_free(&requests[back ? MANY - 1 - i : i]);
        mt_pair_free(&pairs[i]);
    }
    mt_pair_free(&other);
}

static void case_anyhow(void)
{
    start_anyhow(MT_DEVICE, false);
    start_anyhow(MT_DEVICE, true);
}

static void case_anyhow_host(void)
{
    start_anyhow(MT_HOST, false);
    start_anyhow(MT_HOST, true);
}

/* Made and freed again and again, in another order on odd ranks: more than MPI has communicators.
 */
static void case_again(void)
{
    struct mt_pair pair = mt_pair_make(MT_DEVICE, COUNT);
    MPI_Request    requests[2];

    for (int round = 0; round < 1500; round++) {
        int back = (mt_rank() + round) % 2;
        for (int i = 0; i < 2; i++) {
            init.allreduce(pair.in, pair.out, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD,
                           MPI_INFO_NULL, &requests[i]);
        }
        if (round % 100 == 0) {
            mt_pair_fill(&pair, COUNT, MPI_COMM_WORLD, round);
            MPI_Start(&requests[1]);
            MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
            mt_pair_expect_sum(&pair, COUNT, mt_size(), round, "requests made again");
        }
        MPI_Request_free(&requests[back]);
        MPI_Request_free(&requests[1 - back]);
    }
    mt_pair_free(&pair);
}

/* Its starts come to the vendor's library with no blocking collective between them. */
static void case_changes(void)
{
    enum { LARGE = 1 << 21, MOST = 400 };
    struct mt_pair pair = mt_pair_make(MT_DEVICE, LARGE);
    MPI_Request    request;
    bool           changed = false;

    mt_pair_fill(&pair, LARGE, MPI_COMM_WORLD, 3);
    init.allreduce(pair.in, pair.out, LARGE, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL,
                   &request);
    for (int round = 0; (round < MOST) && !changed; round++) {
        MPI_Start(&request);
        changed = (strcmp(mt_last_path(), "ccl") == 0);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    mt_expect(changed, "%d starts of %d bytes, none by the vendor's library", (int)MOST,
              (int)LARGE * (int)sizeof(float));
    mt_pair_expect_sum(&pair, LARGE, mt_size(), 3, "by the vendor's library");
    MPI_Request_free(&request);
    mt_pair_free(&pair);
}

/* More requests at once than have communicators of their own, and than MPICH has communicators. */
static void start_many(enum mt_where memory, int many)
{
    MPI_Request   *requests = calloc((size_t)many, sizeof(MPI_Request));
    struct mt_pair pair = mt_pair_make(memory, many);
    float         *in = pair.in, *out = pair.out;
    int            back = mt_rank() % 2;

    for (int i = 0; i < many; i++) {
        init.allreduce(in + i, out + i, 1, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL,
                       &requests[i]);
    }
    for (int round = 0; round < 3; round++) {
        mt_pair_fill(&pair, many, MPI_COMM_WORLD, round);
        for (int i = 0; i < many; i++) {
            MPI_Start(&requests[back ? many - 1 - i : i]);
        }
        MPI_Waitall(many, requests, MPI_STATUSES_IGNORE);
        mt_pair_expect_sum(&pair, many, mt_size(), round, "one of many requests");
    }
    for (int i = 0; i < many; i++) {
        MPI_Request_free(&requests[back ? many - 1 - i : i]);
    }
    mt_pair_free(&pair);
    free(requests);
}

static void case_many(void)
{
    start_many(MT_DEVICE, 100);
}

static void case_many_host(void)
{
    start_many(MT_HOST, 3000);
}

/* MPI_Comm_idup on the communicator is no reason for an order. */
static void case_idup(void)
{
    MPI_Request request;
    MPI_Comm    comm;

    MPI_Comm_idup(MPI_COMM_WORLD, &comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    start_anyhow(MT_DEVICE, false);
    MPI_Comm_free(&comm);
}

/* To start it while it is active is an error, and the start before it goes on. */
static void case_twice(void)
{
    struct mt_pair pair = mt_pair_make(MT_DEVICE, COUNT);
    MPI_Request    request;
    MPI_Comm       comm;
    int class = MPI_SUCCESS;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    init.allreduce(pair.in, pair.out, COUNT, MPI_FLOAT, MPI_SUM, comm, MPI_INFO_NULL, &request);
    for (int round = 0; round < 3; round++) {
        mt_pair_fill(&pair, COUNT, comm, round);
        MPI_Start(&request);
        MPI_Error_class(MPI_Start(&request), &class);
        mt_expect(class == MPI_ERR_REQUEST, "a second MPI_Start gives class %d", class);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        mt_pair_expect_sum(&pair, COUNT, mt_size(), round, "the first MPI_Start");
    }
    MPI_Request_free(&request);
    MPI_Comm_free(&comm);
    mt_pair_free(&pair);
}

/* MPICH 4.0 cannot start this one again itself. */
static void gather_unlike(void)
{
    int            all = COUNT * mt_size(), wrong = 0;
    struct mt_pair pair = mt_pair_make(mt_rank() % 2 ? MT_HOST : MT_DEVICE, all);
    MPI_Request    request;
    gather_init   *make;

    *(void **)&make = mt_find("MPI_Gather_init");
    make(pair.in, COUNT, MPI_FLOAT, pair.out, COUNT, MPI_FLOAT, 0, MPI_COMM_WORLD, MPI_INFO_NULL,
         &request);
    for (int round = 0; round < 3; round++) {
        mt_pair_fill(&pair, all, MPI_COMM_WORLD, round);
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (mt_rank() == 0) {
            mt_get(pair.host, pair.out, pair.where, sizeof(float) * (size_t)all);
            for (int i = 0; i < all; i++) {
                wrong += pair.host[i] != (float)(i / COUNT + i % COUNT % 61 + round);
            }
            mt_expect(wrong == 0, "a gather from unlike memory: %d elements are wrong", wrong);
        }
    }
    MPI_Request_free(&request);
    mt_pair_free(&pair);
}

/* Some ranks pass host memory: which the ranks know when the request is made. */
static void case_unlike(void)
{
    enum { MANY = 3 };
    struct mt_pair pairs[MANY];
    MPI_Request    requests[MANY];

    for (int i = 0; i < MANY; i++) {
        pairs[i] = mt_pair_make((mt_rank() + i) % 2 ? MT_HOST : MT_DEVICE, COUNT);
        init.allreduce(pairs[i].in, pairs[i].out, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD,
                       MPI_INFO_NULL, &requests[i]);
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < MANY; i++) {
            mt_pair_fill(&pairs[i], COUNT, MPI_COMM_WORLD, round + 3 * i);
        }
        for (int i = 0; i < MANY; i++) {
            MPI_Start(&requests[(i + mt_rank() + round) % MANY]);
        }
        MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < MANY; i++) {
            mt_pair_expect_sum(&pairs[i], COUNT, mt_size(), round + 3 * i, "unlike memory");
        }
    }
    for (int i = 0; i < MANY; i++) {
        MPI_Request_free(&requests[i]);
        mt_pair_free(&pairs[i]);
    }
    gather_unlike();
}

/* Between two groups, more than have communicators of their own, and in another order in each. */
static void case_inter(void)
{
    enum { MANY = 70, PART = 10 };
    int             odd = mt_rank() % 2, ranks = (mt_size() + odd) / 2;
    struct mt_pair  pairs[MANY];
    MPI_Request     requests[MANY];
    MPI_Comm        half, comm;
    allgather_init *make;

    *(void **)&make = mt_find("MPI_Allgather_init");
    MPI_Comm_split(MPI_COMM_WORLD, odd, mt_rank(), &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - odd, TAG, &comm);
    for (int i = 0; i < MANY; i++) {
        pairs[i] = mt_pair_make(MT_DEVICE, PART * mt_size());
        make(pairs[i].in, PART, MPI_FLOAT, pairs[i].out, PART, MPI_FLOAT, comm, MPI_INFO_NULL,
             &requests[i]);
    }
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < MANY; i++) {
            mt_pair_fill(&pairs[i], PART, MPI_COMM_WORLD, round + i);
        }
        for (int i = 0; i < MANY; i++) {
            MPI_Start(&requests[odd ? MANY - 1 - i : i]);
        }
        MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < MANY; i++) {
            int wrong = 0;
            mt_get(pairs[i].host, pairs[i].out, MT_DEVICE, sizeof(float) * (size_t)(PART * ranks));
            for (int k = 0; k < PART * ranks; k++) {
                int from = 2 * (k / PART) + 1 - odd;
                wrong += pairs[i].host[k] != (float)(from + k % PART + round + i);
            }
            mt_expect(wrong == 0, "request %d between groups: %d elements are wrong", i, wrong);
        }
    }
    for (int i = 0; i < MANY; i++) {
        MPI_Request_free(&requests[i]);
        mt_pair_free(&pairs[i]);
    }
    MPI_Comm_free(&comm);
    MPI_Comm_free(&half);
}

/*
 * Rank 0 gives up a request that MPI carries on host memory, by XCCL_TIMEOUT, and goes on. Rank 1
 * is late, and gets what rank 0 had started with.
 */
static void case_late(void)
{
    enum { MANY = 66, LAST = MANY - 1, OTHERS = 8 };
    struct mt_pair pair = mt_pair_make(MT_DEVICE, COUNT), other = mt_pair_make(MT_DEVICE, COUNT);
    MPI_Request    requests[MANY], request;
    int            word = 0;

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int i = 0; i < MANY; i++) {
        init.allreduce(pair.in, pair.out, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL,
                       &requests[i]);
    }
    mt_pair_fill(&pair, COUNT, MPI_COMM_WORLD, 5);
    if (mt_rank() == 0) {
        MPI_Start(&requests[LAST]);
        mt_expect(MPI_Wait(&requests[LAST], MPI_STATUS_IGNORE) != MPI_SUCCESS, "no time-out");
        mt_expect(MPI_Start(&requests[LAST]) != MPI_SUCCESS, "what was given up starts again");
        MPI_Request_free(&requests[LAST]);
        for (int i = 0; i < OTHERS; i++) { /* they take any memory that was given back */
            mt_pair_fill(&other, COUNT, MPI_COMM_SELF, i);
            MPI_Iallreduce(other.in, other.out, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_SELF, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        MPI_Send(&word, 1, MPI_INT, 1, TAG, MPI_COMM_WORLD);
        MPI_Recv(&word, 1, MPI_INT, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(&word, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Start(&requests[LAST]);
        MPI_Wait(&requests[LAST], MPI_STATUS_IGNORE);
        mt_pair_expect_sum(&pair, COUNT, mt_size(), 5, "a late start");
        MPI_Request_free(&requests[LAST]);
        MPI_Send(&word, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD);
    }
    for (int i = 0; i < LAST; i++) {
        MPI_Request_free(&requests[i]);
    }
    mt_pair_free(&pair);
    mt_pair_free(&other);
}

/*
 * The root is over before any other rank starts, and frees its request. Of keys that the program
 * has freed MPI does not say whether there are attributes: but none are on a request's
 * communicator. Another request has the workspace of the kernels, so the ranks ask each other in
 * every start.
 */
static void case_ahead(void)
{
    struct mt_pair pair = mt_pair_make(MT_DEVICE, COUNT);
    MPI_Request    request, first;
    int            key, word = 0;

    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL);
    MPI_Comm_free_keyval(&key);
    mt_pair_fill(&pair, COUNT, MPI_COMM_WORLD, 1);
    init.bcast(pair.out, SMALL, MPI_FLOAT, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &first);
    init.bcast(pair.in, SMALL, MPI_FLOAT, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    if (mt_rank() != 0) {
        MPI_Recv(&word, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Start(&request);
    mt_expect_path("mpi-staged", "a start without a workspace");
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check_bcast(&pair, SMALL, 0, 1);
    MPI_Request_free(&request);
    for (int i = 1; (mt_rank() == 0) && (i < mt_size()); i++) {
        MPI_Send(&word, 1, MPI_INT, i, TAG, MPI_COMM_WORLD);
    }
    MPI_Request_free(&first);
    mt_pair_free(&pair);
}

/* On a grid that leaves the last rank out: its neighbours are needed, and its ranks alone. */
static void case_grid(void)
{
    int            dims[] = {mt_size() - 1}, periods[] = {1};
    struct mt_pair pair = mt_pair_make(MT_DEVICE, COUNT),
                   gathered = mt_pair_make(MT_DEVICE, 2 * COUNT);
    allgather_init *neighbors;
    MPI_Request     sum, gather;
    MPI_Comm        grid;

    *(void **)&neighbors = mt_find("MPI_Neighbor_allgather_init");
    MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &grid);
    if (grid == MPI_COMM_NULL) {
        return;
    }
    init.allreduce(pair.in, pair.out, COUNT, MPI_FLOAT, MPI_SUM, grid, MPI_INFO_NULL, &sum);
    neighbors(pair.in, COUNT, MPI_FLOAT, gathered.out, COUNT, MPI_FLOAT, grid, MPI_INFO_NULL,
              &gather);
    for (int round = 0; round < 3; round++) {
        mt_pair_fill(&pair, COUNT, grid, round);
        MPI_Start(&sum);
        MPI_Wait(&sum, MPI_STATUS_IGNORE);
        mt_pair_expect_sum(&pair, COUNT, dims[0], round, "on a grid");
        MPI_Start(&gather);
        MPI_Wait(&gather, MPI_STATUS_IGNORE);
        mt_get(gathered.host, gathered.out, MT_DEVICE, sizeof(float) * 2 * COUNT);
        mt_get(pair.host, pair.in, MT_DEVICE, sizeof(float) * COUNT);
        int last = (mt_rank() + dims[0] - 1) % dims[0], wrong = 0;
        for (int i = 0; i < COUNT; i++) {
            wrong += gathered.host[i] != pair.host[i] + (float)(last - mt_rank());
        }
        mt_expect(wrong == 0, "%d elements of the neighbour are wrong", wrong);
    }
    MPI_Request_free(&sum);
    MPI_Request_free(&gather);
    MPI_Comm_free(&grid);
    mt_pair_free(&pair);
    mt_pair_free(&gathered);
}

int main(int argc, char **argv)
{
    static const struct mt_named_case cases[] = {{"start", case_start},
                                                 {"twice", case_twice},
                                                 {"startall", case_startall},
                                                 {"orders", case_orders},
                                                 {"anyhow", case_anyhow},
                                                 {"anyhow_host", case_anyhow_host},
                                                 {"again", case_again},
                                                 {"changes", case_changes},
                                                 {"many", case_many},
                                                 {"many_host", case_many_host},
                                                 {"idup", case_idup},
                                                 {"unlike", case_unlike},
                                                 {"inter", case_inter},
                                                 {"late", case_late},
                                                 {"ahead", case_ahead},
                                                 {"grid", case_grid},
                                                 {"freed", case_freed},
                                                 {"freed_comm", case_freed_comm},
                                                 {"freed_op", case_freed_op},
                                                 {"freed_array", case_freed_array},
                                                 {NULL, NULL}};

    mt_begin(&argc, &argv, true);
    if (find_all()) {
        mt_run_case(cases, argc, argv);
    } else {
        mt_expect(false, "this MPI has no persistent collectives, and nothing adds them");
    }
    mt_summary();
    MPI_Finalize();
    return mt_status();
}
