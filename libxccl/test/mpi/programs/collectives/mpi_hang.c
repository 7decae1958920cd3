/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Legal programs that an interposer may hang: a rank that waits for its peers inside a collective,
 * or inside the making or the end of a communicator, has to let MPI go on meanwhile.
 * Usage: mpi_hang cuda|rocm|none CASE
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support.h"

enum { COUNT = 1024, MESSAGE = 1 << 22, TAG = 7 };

static char message[MESSAGE];

/* A message too large to be sent at once: it needs its sender to make progress until it is there.
 */
static MPI_Request large_send(void)
{
    MPI_Request request = MPI_REQUEST_NULL;

    if (mt_rank() == 0) {
        memset(message, 'm', sizeof(message));
        MPI_Isend(message, MESSAGE, MPI_CHAR, 1, TAG, MPI_COMM_WORLD, &request);
    }
    return request;
}

static void large_receive(void)
{
    if (mt_rank() == 1) {
        MPI_Recv(message, MESSAGE, MPI_CHAR, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        mt_expect((message[0] == 'm') && (message[MESSAGE - 1] == 'm'), "the message is wrong");
    }
}

/* A send is pending while its sender frees a communicator. */
static void case_free(void)
{
    struct mt_pair pair = mt_pair_make(MT_DEVICE, COUNT * mt_size());
    MPI_Request    request;
    MPI_Comm       comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    mt_pair_allreduce(&pair, COUNT, comm, 1);
    mt_pair_alltoall(&pair, COUNT, comm);
    MPI_Barrier(MPI_COMM_WORLD);
    request = large_send();
    large_receive();
    MPI_Comm_free(&comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    mt_pair_free(&pair);
}

/* A send is pending while the first collective of a kind connects the ranks. */
static void case_connect(void)
{
    struct mt_pair pair = mt_pair_make(MT_DEVICE, COUNT * mt_size());
    MPI_Request    request;

    mt_pair_allreduce(&pair, COUNT, MPI_COMM_WORLD, 1);
    MPI_Barrier(MPI_COMM_WORLD);
    request = large_send();
    large_receive();
    mt_pair_alltoall(&pair, COUNT, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    mt_pair_free(&pair);
}

/* A send is pending while the first collective makes its communicator, and across later ones. */
static void case_allreduce(void)
{
    struct mt_pair pair = mt_pair_make(MT_DEVICE, 200 * COUNT);

    for (int round = 0; round < 4; round++) {
        MPI_Request request = large_send();
        large_receive();
        mt_pair_allreduce(&pair, (round % 2) ? COUNT : 200 * COUNT, MPI_COMM_WORLD, round);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    mt_pair_free(&pair);
}

/* A send that nobody waits for is pending when MPI_Finalize is called. */
static void case_send_finalize(void)
{
    struct mt_pair pair = mt_pair_make(MT_DEVICE, COUNT * mt_size());
    MPI_Request    request;

    mt_pair_allreduce(&pair, COUNT, MPI_COMM_WORLD, 1);
    mt_pair_alltoall(&pair, COUNT, MPI_COMM_WORLD);
    mt_summary();
    request = large_send();
    if (mt_rank() == 0) {
        MPI_Request_free(&request);
    }
    large_receive();
    mt_pair_free(&pair);
}

/* Communicators that are still there in MPI_Finalize, first used in another order on each rank. */
static void case_finalize(void)
{
    struct mt_pair pair = mt_pair_make(MT_DEVICE, COUNT);
    float          one = 1;
    float          sum = 0;
    MPI_Comm       comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Reduce(&one, (mt_rank() == 0) ? &sum : NULL, 1, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
    mt_expect((mt_rank() != 0) || (sum == (float)mt_size()), "MPI_Reduce gave %f", (double)sum);
    mt_pair_allreduce(&pair, COUNT, comm, 1);
    mt_pair_allreduce(&pair, COUNT, MPI_COMM_WORLD, 2);
    mt_pair_alltoall(&pair, 64, comm);
    mt_pair_alltoall(&pair, 64, MPI_COMM_WORLD);
    mt_pair_free(&pair);
}

static MPI_Comm thread_comms[2];

static void *thread_work(void *argument)
{
    enum { ROUNDS = 60, MOST = 1 << 16 };
    int            which = (int)(intptr_t)argument;
    struct mt_pair pair;

    mt_memory_enter();
    pair = mt_pair_make(MT_DEVICE, MOST);
    for (int round = 0; round < ROUNDS; round++) {
        mt_pair_allreduce(&pair, (round % 3) ? COUNT : MOST, thread_comms[which], round);
    }
    /* The memory stays: to free it could wait for the other thread's operation. */
    return NULL;
}

/* Two threads with a communicator each, begun in another order on every second rank. */
static void case_threads(void)
{
    mt_two_threads(thread_comms, thread_work);
}

static size_t device_memory_free(void)
{
    int (*info)(size_t *, size_t *);
    size_t left = SIZE_MAX;
    size_t total;

    *(void **)&info = mt_driver("cuMemGetInfo_v2", "hipMemGetInfo");
    if (info != NULL) {
        info(&left, &total);
    }
    return left;
}

/* Gathered to, and scattered from, host memory at the root: its device has no room for all. */
static void case_hostroot(void)
{
    enum { MANY = 4 << 20 }; /* of ints: 16 MiB from each rank */
    bool   root = mt_rank() == 0;
    size_t all = (size_t)MANY * (size_t)mt_size();
    int   *mine = mt_alloc(MT_HOST, sizeof(int) * MANY);
    int   *device = mt_alloc(MT_DEVICE, sizeof(int) * MANY);
    int   *whole = root ? mt_alloc(MT_HOST, sizeof(int) * all) : NULL;
    size_t before = device_memory_free();
    size_t wrong = 0;

    for (int i = 0; i < MANY; i++) {
        mine[i] = mt_rank() * MANY + i;
    }
    mt_put(device, MT_DEVICE, mine, sizeof(int) * MANY);
    MPI_Gather(device, MANY, MPI_INT, whole, MANY, MPI_INT, 0, MPI_COMM_WORLD);
    for (size_t i = 0; root && (i < all); i++) {
        wrong += whole[i] != (int)i;
        whole[i] = -whole[i];
    }
    mt_expect(wrong == 0, "MPI_Gather: %zu elements are wrong", wrong);
    MPI_Scatter(whole, MANY, MPI_INT, device, MANY, MPI_INT, 0, MPI_COMM_WORLD);
    mt_get(mine, device, MT_DEVICE, sizeof(int) * MANY);
    wrong = 0;
    for (int i = 0; i < MANY; i++) {
        wrong += mine[i] != -(mt_rank() * MANY + i);
    }
    mt_expect(wrong == 0, "MPI_Scatter: %zu elements are wrong", wrong);
    size_t after = device_memory_free();
    mt_expect((after >= before) || (before - after <= all * sizeof(int) / 2),
              "%zu bytes of device memory are kept for a root in host memory", before - after);
    mt_free(MT_DEVICE, device);
}

/* Gathered in place with gaps: there is no room for a second copy of all parts. */
static void case_allgatherv(void)
{
    enum { PART = 2 << 20, GAP = 16 }; /* ints: 8 MiB */
    int    counts[64], displs[64];
    size_t all = (size_t)(PART + GAP) * (size_t)mt_size();
    int   *host = mt_alloc(MT_HOST, sizeof(int) * all);
    int   *device = mt_alloc(MT_DEVICE, sizeof(int) * all);
    int    mine = mt_rank();
    size_t wrong = 0;

    for (int i = 0; i < mt_size(); i++) {
        counts[i] = PART;
        displs[i] = i * (PART + GAP);
    }
    for (size_t i = 0; i < all; i++) {
        host[i] = ((int)i / (PART + GAP) == mine) ? (int)i : -1;
    }
    mt_put(device, MT_DEVICE, host, sizeof(int) * all);
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_INT, device, counts, displs, MPI_INT, MPI_COMM_WORLD);
    mt_get(host, device, MT_DEVICE, sizeof(int) * all);
    for (size_t i = 0; i < all; i++) {
        bool gap = ((int)i % (PART + GAP) >= PART) && ((int)i / (PART + GAP) != mine);
        wrong += host[i] != (gap ? -1 : (int)i);
    }
    mt_expect(wrong == 0, "MPI_Allgatherv: %zu elements are wrong", wrong);
    mt_free(MT_DEVICE, device);
    free(host);
}

/* Every second rank passes host memory. */
static void case_mixed(void)
{
    enum mt_where  where = (mt_rank() % 2) ? MT_HOST : MT_DEVICE;
    struct mt_pair pair = mt_pair_make(where, COUNT * mt_size());
    struct mt_pair last = mt_pair_make((mt_rank() == mt_size() - 1) ? MT_HOST : MT_DEVICE, COUNT);

    for (int round = 0; round < 3; round++) {
        mt_pair_allreduce(&pair, COUNT, MPI_COMM_WORLD, round);
        mt_pair_alltoall(&pair, COUNT, MPI_COMM_WORLD);
        mt_pair_allreduce(&last, COUNT, MPI_COMM_WORLD, round);
    }
    mt_pair_fill(&pair, COUNT, MPI_COMM_WORLD, 5);
    MPI_Bcast(pair.in, COUNT, MPI_FLOAT, 1, MPI_COMM_WORLD);
    mt_get(pair.host, pair.in, where, sizeof(float) * COUNT);
    mt_expect((pair.host[0] == 6.0f) && (pair.host[COUNT - 1] == (float)(6 + (COUNT - 1) % 61)),
              "MPI_Bcast gave %f", (double)pair.host[0]);
    mt_pair_free(&pair);
    mt_pair_free(&last);
}

static void case_iallreduce(void)
{
    struct mt_pair pair = mt_pair_make(MT_DEVICE, COUNT);

    for (int round = 0; round < 10; round++) {
        MPI_Request request;
        mt_pair_fill(&pair, COUNT, MPI_COMM_WORLD, round);
        MPI_Iallreduce(pair.in, pair.out, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        mt_expect(request == MPI_REQUEST_NULL, "MPI_Wait left the request");
        mt_pair_expect_sum(&pair, COUNT, mt_size(), round, "MPI_Iallreduce");
    }
    mt_pair_free(&pair);
}

/* For longer than XCCL_TIMEOUT the program looks after no request. */
static void case_computes(void)
{
    struct mt_pair pair = mt_pair_make(MT_DEVICE, COUNT);
    MPI_Request    request;

    mt_pair_fill(&pair, COUNT, MPI_COMM_WORLD, 1);
    MPI_Iallreduce(pair.in, pair.out, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request);
    sleep(2);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    mt_pair_expect_sum(&pair, COUNT, mt_size(), 1, "MPI_Iallreduce beside two seconds of work");
    mt_pair_free(&pair);
}

static void case_scan(void)
{
    struct mt_pair pair = mt_pair_make(MT_DEVICE, COUNT);
    int            me = mt_rank();

    mt_pair_fill(&pair, COUNT, MPI_COMM_WORLD, 3);
    MPI_Scan(pair.in, pair.out, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    mt_pair_expect_sum(&pair, COUNT, me + 1, 3, "MPI_Scan");
    mt_pair_fill(&pair, COUNT, MPI_COMM_WORLD, 4);
    MPI_Exscan(pair.in, pair.out, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    if (me > 0) {
        mt_pair_expect_sum(&pair, COUNT, me, 4, "MPI_Exscan");
    }
    mt_pair_free(&pair);
}

/* Memory of the runtime's pool, by cudaMallocAsync. */
static void case_async(void)
{
    struct mt_pair pair = mt_pair_make(MT_DEVICE, COUNT);
    struct mt_pair pool = pair;
    int (*alloc)(void **, size_t, void *);
    int (*release)(void *, void *);
    int (*synchronize)(void *);

    *(void **)&alloc = mt_driver("cuMemAllocAsync", "hipMallocAsync");
    *(void **)&release = mt_driver("cuMemFreeAsync", "hipFreeAsync");
    *(void **)&synchronize = mt_driver("cuStreamSynchronize", "hipStreamSynchronize");
    if ((alloc != NULL) && (release != NULL)) {
        mt_expect(alloc((void **)&pool.in, sizeof(float) * COUNT, NULL) == 0, "allocation");
        mt_expect(alloc((void **)&pool.out, sizeof(float) * COUNT, NULL) == 0, "allocation");
        synchronize(NULL);
    }
    mt_pair_allreduce(&pool, COUNT, MPI_COMM_WORLD, 1);
    if ((alloc != NULL) && (release != NULL)) {
        release(pool.in, NULL);
        release(pool.out, NULL);
        synchronize(NULL);
    }
    mt_pair_free(&pair);
}

/* Many communicators that live for one small collective. */
static void case_splits(void)
{
    struct mt_pair pair = mt_pair_make(MT_DEVICE, COUNT);

    for (int i = 0; i < 50; i++) {
        MPI_Comm comm;
        MPI_Comm_split(MPI_COMM_WORLD, mt_rank() % 2, mt_rank(), &comm);
        mt_pair_allreduce(&pair, 2, comm, i);
        MPI_Comm_free(&comm);
    }
    mt_pair_free(&pair);
}

/* A rank begins more collectives than it may be asked to agree in, before any other rank does. */
static void run_ahead(MPI_Comm comm, struct mt_pair pairs[], int count)
{
    MPI_Request *requests = malloc(sizeof(*requests) * (size_t)count);
    int          word = 0;

    if (mt_rank() == 1) {
        MPI_Recv(&word, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < count; i++) {
        mt_pair_fill(&pairs[i], pairs[i].count, MPI_COMM_WORLD, i);
        MPI_Iallreduce(pairs[i].in, pairs[i].out, pairs[i].count, MPI_FLOAT, MPI_SUM, comm,
                       &requests[i]);
    }
    if (mt_rank() == 0) {
        MPI_Send(&word, 1, MPI_INT, 1, TAG, MPI_COMM_WORLD);
    }
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < count; i++) {
        mt_pair_expect_sum(&pairs[i], pairs[i].count, mt_size(), i, "a rank that runs ahead");
    }
    free(requests);
}

/* On a new communicator, and on one whose ranks have agreed in collectives on host memory alone. */
static void case_ahead(void)
{
    enum { MANY = 200, SMALL = 50 };
    struct mt_pair pairs[MANY];
    MPI_Comm       comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int i = 0; i < MANY; i++) {
        pairs[i] = mt_pair_make(MT_DEVICE, SMALL);
    }
    for (int round = 0; round < 4; round++) {
        run_ahead(comm, pairs, MANY);
        MPI_Barrier(comm);
    }
    mt_pair_allreduce(&pairs[0], SMALL, comm, 3);
    run_ahead(comm, pairs, MANY);
    MPI_Comm_free(&comm);
    for (int i = 0; i < MANY; i++) {
        mt_pair_free(&pairs[i]);
    }
}

/* One that is ahead is in a receive, which the other one sends once it has completed its own. */
static void case_ahead_receive(void)
{
    enum { MANY = 200, SMALL = 50, ROUNDS = 3 };
    struct mt_pair pairs[MANY];
    MPI_Request    requests[MANY];
    MPI_Comm       comm;
    int            word = 0;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int i = 0; i < MANY; i++) {
        pairs[i] = mt_pair_make(MT_DEVICE, SMALL);
    }
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        usleep((mt_rank() == 1) ? 300000 : 0);
        for (int i = 0; i < MANY; i++) {
            mt_pair_fill(&pairs[i], SMALL, MPI_COMM_WORLD, i);
            MPI_Iallreduce(pairs[i].in, pairs[i].out, SMALL, MPI_FLOAT, MPI_SUM, comm,
                           &requests[i]);
        }
        if (mt_rank() == 0) {
            MPI_Recv(&word, 1, MPI_INT, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE);
        if (mt_rank() == 1) {
            MPI_Send(&word, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD);
        }
        for (int i = 0; i < MANY; i++) {
            mt_pair_expect_sum(&pairs[i], SMALL, mt_size(), i, "a rank that is ahead");
        }
    }
    MPI_Comm_free(&comm);
    for (int i = 0; i < MANY; i++) {
        mt_pair_free(&pairs[i]);
    }
}

/* Nothing of xccl's may be under way on a communicator when MPI waits for its last user. */
static void case_disconnect(void)
{
    struct mt_pair pair = mt_pair_make(MT_DEVICE, COUNT);

    for (int round = 0; round < 3; round++) {
        MPI_Request request;
        MPI_Comm    comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        for (int i = 0; i < round; i++) {
            mt_pair_allreduce(&pair, COUNT, comm, i);
        }
        mt_pair_fill(&pair, COUNT, MPI_COMM_WORLD, round);
        MPI_Iallreduce(pair.in, pair.out, COUNT, MPI_FLOAT, MPI_SUM, comm, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        mt_pair_expect_sum(&pair, COUNT, mt_size(), round, "MPI_Iallreduce");
        MPI_Comm_disconnect(&comm);
    }
    mt_pair_free(&pair);
}

/* A communicator is duplicated while blocking collectives are made on it. */
static void case_idup(void)
{
    struct mt_pair pair = mt_pair_make(MT_DEVICE, COUNT);

    for (int round = 0; round < 30; round++) {
        MPI_Comm    comm, twin;
        MPI_Request request;
        int         flag;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Comm_idup(comm, &twin, &request);
        for (int i = 0; i < (mt_rank() * 31 + round * 17) % 5; i++) {
            MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        }
        for (int i = 0; i < 3; i++) {
            mt_pair_allreduce(&pair, COUNT, comm, round + i);
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        mt_pair_allreduce(&pair, COUNT, twin, round);
        MPI_Comm_free(&twin);
        MPI_Comm_free(&comm);
    }
    mt_pair_free(&pair);
}

static void synchronize(void)
{
    int (*call)(void);

    *(void **)&call = mt_driver("cuCtxSynchronize", "hipDeviceSynchronize");
    mt_expect(call() == 0, "the device's work fails");
}

/*
 * A collective is under way, and this rank waits for all of its device before it lets its peer go.
 */
static void case_device(void)
{
    struct mt_pair pair = mt_pair_make(MT_DEVICE, COUNT);
    MPI_Comm       comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int i = 0; i < 10; i++) {
        MPI_Request request;
        int         token = i;
        void       *other = mt_alloc(MT_DEVICE, 1000);
        mt_pair_fill(&pair, COUNT, comm, i);
        if (mt_rank() == 1) {
            MPI_Recv(&token, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        MPI_Iallreduce(pair.in, pair.out, COUNT, MPI_FLOAT, MPI_SUM, comm, &request);
        if (i % 2 == 0) {
            synchronize();
        }
        mt_free(MT_DEVICE, other); /* that waits as well */
        if (mt_rank() == 0) {
            MPI_Send(&token, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        mt_pair_expect_sum(&pair, COUNT, mt_size(), i, "beside the device's work");
        mt_pair_allreduce(&pair, COUNT, comm, i); /* now its vendor communicator is there */
    }
    MPI_Comm_free(&comm);
    mt_pair_free(&pair);
}

/* Communicators are freed while collectives on them are under way. */
static void case_freed_early(void)
{
    enum { MANY = 3 };
    struct mt_pair pairs[MANY];
    MPI_Request    requests[MANY];

    for (int i = 0; i < MANY; i++) {
        pairs[i] = mt_pair_make(MT_DEVICE, COUNT);
    }
    for (int round = 0; round < 4; round++) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        for (int i = 0; i < MANY; i++) {
            mt_pair_fill(&pairs[i], COUNT, MPI_COMM_WORLD, round + i);
            MPI_Iallreduce(pairs[i].in, pairs[i].out, COUNT, MPI_FLOAT, MPI_SUM, comm,
                           &requests[i]);
        }
        MPI_Comm_free(&comm);
        MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < MANY; i++) {
            mt_pair_expect_sum(&pairs[i], COUNT, mt_size(), round + i, "a freed communicator");
        }
    }
    for (int i = 0; i < MANY; i++) {
        mt_pair_free(&pairs[i]);
    }
}

/* What another rank waits for before it begins a collective may come after MPI_Comm_free. */
static void case_freed_first(void)
{
    struct mt_pair pair = mt_pair_make(MT_DEVICE, COUNT);

    for (int round = 0; round < 3; round++) {
        int         word = 0;
        MPI_Comm    comm;
        MPI_Request request;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        if (round > 0) {
            mt_pair_allreduce(&pair, COUNT, comm, round);
        }
        mt_pair_fill(&pair, COUNT, MPI_COMM_WORLD, round);
        if (mt_rank() == 1) {
            MPI_Recv(&word, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        MPI_Iallreduce(pair.in, pair.out, COUNT, MPI_FLOAT, MPI_SUM, comm, &request);
        MPI_Comm_free(&comm);
        mt_expect(comm == MPI_COMM_NULL, "MPI_Comm_free left the communicator");
        if (mt_rank() == 0) {
            MPI_Send(&word, 1, MPI_INT, 1, TAG, MPI_COMM_WORLD);
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        mt_pair_expect_sum(&pair, COUNT, mt_size(), round, "a freed communicator");
    }
    mt_pair_free(&pair);
}

static void add(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *count; i++) {
        ((int *)inout)[i] += ((const int *)in)[i];
    }
}

/* Two by an operation and a datatype of the program's, which are freed while none has begun. */
static void reduce_by_own(const int *in, int *out, MPI_Comm comm, MPI_Request *requests)
{
    MPI_Datatype type;
    MPI_Op       op;

    MPI_Type_contiguous(1, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_Op_create(add, 1, &op);
    MPI_Iallreduce(&in[0], &out[0], 1, type, op, comm, &requests[0]);
    MPI_Iallreduce(&in[1], &out[1], 1, type, op, comm, &requests[1]);
    MPI_Op_free(&op);
    MPI_Type_free(&type);
}

/* With a datatype for each of two blocks; the array of them stays, and they do not. */
static void exchange_by_own(const int *in, int *out, MPI_Datatype types[2], MPI_Comm comm,
                            MPI_Request *request)
{
    static const int one[] = {1, 1}, same[] = {0, 0}, apart[] = {0, sizeof(int)};
    MPI_Datatype     made[2];

    for (int i = 0; i < 2; i++) {
        MPI_Type_contiguous(1, MPI_INT, &made[i]);
        MPI_Type_commit(&made[i]);
        types[i] = made[i];
    }
    MPI_Ialltoallw(in, one, same, types, out, one, apart, types, comm, request);
    MPI_Type_free(&made[0]);
    MPI_Type_free(&made[1]);
}

enum { AHEAD = 1500, AHEAD_COMMS = 2, AHEAD_ALL = AHEAD_COMMS * AHEAD };

/* What many collectives on two communicators work on. */
struct far {
    int *in, *out, *both; /* on the device; both: of exchanges */
    int *ones, *host, *exchanged;
    MPI_Datatype (*types)[2];
    MPI_Request *requests;
    MPI_Comm     comms[AHEAD_COMMS];
};

/* Of every hundred: two by the program's own operation, an exchange, and one on host memory. */
static enum { FAR_SUM, FAR_OWN, FAR_EXCHANGE, FAR_HOST } far_kind(int at)
{
    switch (at % 100) {
    case 0:
        return FAR_OWN;
    case 50:
        return (mt_size() == 2) ? FAR_EXCHANGE : FAR_SUM;
    case 99:
        return FAR_HOST;
    default:
        return FAR_SUM;
    }
}

static void far_make(struct far *f)
{
    const size_t bytes = sizeof(int) * AHEAD_ALL;

    *f = (struct far){.in = mt_alloc(MT_DEVICE, bytes),
                      .out = mt_alloc(MT_DEVICE, bytes),
                      .both = mt_alloc(MT_DEVICE, 2 * bytes),
                      .ones = malloc(2 * bytes),
                      .host = malloc(bytes),
                      .exchanged = malloc(2 * bytes),
                      .types = malloc(sizeof(*f->types) * AHEAD_ALL),
                      .requests = malloc(sizeof(*f->requests) * AHEAD_ALL)};
    for (int i = 0; i < AHEAD_ALL; i++) {
        f->host[i] = i * (mt_rank() + 1);
        f->ones[i] = 1;
    }
    mt_put(f->in, MT_DEVICE, f->host, bytes);
    for (int c = 0; c < AHEAD_COMMS; c++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &f->comms[c]);
    }
}

static void far_start(struct far *f)
{
    for (int i = 0; i < AHEAD_ALL; i++) {
        int      which = (i / AHEAD + mt_rank()) % AHEAD_COMMS, at = which * AHEAD + i % AHEAD;
        MPI_Comm comm = f->comms[which];
        switch (far_kind(at)) {
        case FAR_HOST:
            MPI_Iallreduce(&f->ones[at], &f->ones[AHEAD_ALL + at], 1, MPI_INT, MPI_SUM, comm,
                           &f->requests[i]);
            break;
        case FAR_OWN:
            reduce_by_own(&f->in[at], &f->out[at], comm, &f->requests[i++]);
            break;
        case FAR_EXCHANGE:
            exchange_by_own(&f->in[at], &f->both[2 * at], f->types[at], comm, &f->requests[i]);
            break;
        default:
            MPI_Iallreduce(&f->in[at], &f->out[at], 1, MPI_INT, MPI_SUM, comm, &f->requests[i]);
        }
    }
}

static void far_expect(struct far *f)
{
    int wrong = 0;

    mt_get(f->host, f->out, MT_DEVICE, sizeof(int) * AHEAD_ALL);
    mt_get(f->exchanged, f->both, MT_DEVICE, sizeof(int) * 2 * AHEAD_ALL);
    for (int i = 0; i < AHEAD_ALL; i++) {
        switch (far_kind(i)) {
        case FAR_HOST:
            wrong += (f->ones[AHEAD_ALL + i] != mt_size());
            break;
        case FAR_EXCHANGE:
            wrong += (f->exchanged[2 * i] != i) || (f->exchanged[2 * i + 1] != 2 * i);
            break;
        default:
            wrong += (f->host[i] != i * mt_size() * (mt_size() + 1) / 2);
        }
    }
    mt_expect(wrong == 0, "%d of %d results are wrong", wrong, (int)AHEAD_ALL);
}

static void far_free(struct far *f)
{
    mt_free(MT_DEVICE, f->in);
    mt_free(MT_DEVICE, f->out);
    mt_free(MT_DEVICE, f->both);
    free(f->requests);
    free(f->types);
    free(f->exchanged);
    free(f->host);
    free(f->ones);
}

/*
 * More collectives than agreements reckon with, before any is completed: each rank begins with
 * another communicator, and makes some on host memory in between.
 */
static void case_far_ahead(void)
{
    struct far f;
    MPI_Comm   twin;

    far_make(&f);
    far_start(&f);
    /* What else is made of the communicator, with all its ranks, comes after them everywhere. */
    MPI_Comm_dup(f.comms[0], &twin);
    MPI_Comm_free(&twin);
    MPI_Waitall(AHEAD_ALL, f.requests, MPI_STATUSES_IGNORE);
    far_expect(&f);
    for (int c = 0; c < AHEAD_COMMS; c++) {
        MPI_Allreduce(f.in, f.out, AHEAD, MPI_INT, MPI_SUM, f.comms[c]);
        MPI_Comm_free(&f.comms[c]);
    }
    far_free(&f);
}

/* Rank 0 is far ahead of the last one, which waits until a communicator without it is made. */
static void case_group(void)
{
    enum { MANY = 1500 };
    int         *in = mt_ints_make(MT_DEVICE, MANY, MANY, 0), word = 0;
    int         *out = mt_ints_make(MT_DEVICE, MANY, 0, 0), end = mt_size() - 1;
    MPI_Request *requests = malloc(sizeof(*requests) * MANY);
    MPI_Group    world, group;
    MPI_Comm     comm;

    if (mt_rank() == end) {
        MPI_Recv(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < MANY; i++) {
        MPI_Iallreduce(&in[i], &out[i], 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD, &requests[i]);
    }
    if (mt_rank() < end) {
        MPI_Comm_group(MPI_COMM_WORLD, &world);
        MPI_Group_excl(world, 1, &end, &group);
        MPI_Comm_create_group(MPI_COMM_WORLD, group, 1, &comm);
        MPI_Barrier(comm);
        if (mt_rank() == 0) {
            MPI_Send(&word, 1, MPI_INT, end, 0, MPI_COMM_WORLD);
        }
        MPI_Comm_free(&comm);
        MPI_Group_free(&group);
        MPI_Group_free(&world);
    }
    MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE);
    mt_ints_expect(out, MT_DEVICE, MANY, MANY, 0, 0, "MPI_Iallreduce");
    mt_free(MT_DEVICE, in);
    mt_free(MT_DEVICE, out);
    free(requests);
}

int main(int argc, char **argv)
{
    static const struct mt_named_case cases[] = {
        {"free", case_free},
        {"connect", case_connect},
        {"allreduce", case_allreduce},
        {"send_finalize", case_send_finalize},
        {"finalize", case_finalize},
        {"threads", case_threads},
        {"hostroot", case_hostroot},
        {"allgatherv", case_allgatherv},
        {"mixed", case_mixed},
        {"iallreduce", case_iallreduce},
        {"computes", case_computes},
        {"scan", case_scan},
        {"async", case_async},
        {"splits", case_splits},
        {"ahead", case_ahead},
        {"disconnect", case_disconnect},
        {"freed_early", case_freed_early},
        {"freed_first", case_freed_first},
        {"far_ahead", case_far_ahead},
        {"ahead_receive", case_ahead_receive},
        {"group", case_group},
        {"idup", case_idup},
        {"device", case_device},
        {NULL, NULL},
    };

    mt_begin(&argc, &argv, true);
    mt_run_case(cases, argc, argv);
    if (strcmp(argv[2], "send_finalize") != 0) {
        mt_summary();
    }
    MPI_Finalize();
    return mt_status();
}
