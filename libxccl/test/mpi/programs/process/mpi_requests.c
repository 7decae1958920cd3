/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests of collectives and of messages together, in every function that completes requests, and
 * in orders that differ from rank to rank.
 * Usage: mpi_requests cuda|rocm|none CASE
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support.h"

enum { COUNT = 2000, MANY = 6, TAG = 11, LARGE = 1 << 18 };

static int start(struct mt_pair *pair, MPI_Comm comm, int salt, MPI_Request *request)
{
    *request = MPI_REQUEST_NULL;
    mt_pair_fill(pair, COUNT, comm, salt);
    return MPI_Iallreduce(pair->in, pair->out, COUNT, MPI_FLOAT, MPI_SUM, comm, request);
}

/* Two communicators; every second rank begins with the other one. In the barriers the ranks take in
 * what they agreed on. */
static void case_comms(void)
{
    MPI_Comm       comms[2];
    struct mt_pair pairs[2];
    MPI_Request    requests[2];

    for (int i = 0; i < 2; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
        pairs[i] = mt_pair_make(MT_DEVICE, COUNT);
    }
    for (int round = 0; round < 40; round++) {
        for (int i = 0; i < 2; i++) {
            int which = (i + mt_rank()) % 2;
            start(&pairs[which], comms[which], round + which, &requests[which]);
        }
        if (round % 2) {
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        } else {
            MPI_Wait(&requests[(mt_rank() + round / 2) % 2], MPI_STATUS_IGNORE);
            MPI_Wait(&requests[(mt_rank() + round / 2 + 1) % 2], MPI_STATUS_IGNORE);
        }
        for (int i = 0; i < 2; i++) {
            mt_pair_expect_sum(&pairs[i], COUNT, mt_size(), round + i, "two communicators");
            MPI_Barrier(comms[i]);
        }
    }
    for (int i = 0; i < 2; i++) {
        MPI_Comm_free(&comms[i]);
        mt_pair_free(&pairs[i]);
    }
}

/* More than a rank may be ahead of an agreement, and no call in which it may wait. */
static void case_rounds(void)
{
    enum { ROUNDS = 2200 };
    struct mt_pair pair = mt_pair_make(MT_DEVICE, COUNT);

    for (int round = 0; round < ROUNDS; round++) {
        MPI_Request request;
        MPI_Iallreduce(pair.in, pair.out, 1, MPI_FLOAT, MPI_MAX, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Request last;
    start(&pair, MPI_COMM_WORLD, 1, &last);
    MPI_Wait(&last, MPI_STATUS_IGNORE);
    mt_pair_expect_sum(&pair, COUNT, mt_size(), 1, "after many rounds");
    mt_pair_free(&pair);
}

/* A program without blocking collectives comes to the direct path soon, and every rank at once. */
static void case_soon(void)
{
    enum { ROUNDS = 1000 };
    const struct timespec nap = {0, 1000 * 1000};
    struct mt_pair        pair = mt_pair_make(MT_DEVICE, COUNT);
    MPI_Comm              comm;
    int                   round;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (round = 0; (round < ROUNDS) && (strcmp(mt_last_path(), "direct") != 0); round++) {
        MPI_Request request;
        start(&pair, comm, round, &request);
        nanosleep(&nap, NULL);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        mt_pair_expect_sum(&pair, COUNT, mt_size(), round, "non-blocking ones alone");
    }
    mt_expect(round < ROUNDS, "no direct path after %d non-blocking collectives", round);
    MPI_Comm_free(&comm);
    mt_pair_free(&pair);
}

/* Many on one communicator, waited for forwards, backwards and from the middle. */
static void case_orders(void)
{
    struct mt_pair pairs[MANY];
    MPI_Request    requests[MANY];

    for (int i = 0; i < MANY; i++) {
        pairs[i] = mt_pair_make(MT_DEVICE, COUNT);
    }
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < MANY; i++) {
            start(&pairs[i], MPI_COMM_WORLD, round + i, &requests[i]);
        }
        for (int i = 0; i < MANY; i++) {
            int which = (mt_rank() % 2) ? MANY - 1 - i : (i + round) % MANY;
            MPI_Wait(&requests[which], MPI_STATUS_IGNORE);
            mt_pair_expect_sum(&pairs[which], COUNT, mt_size(), round + which, "orders");
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    for (int i = 0; i < MANY; i++) {
        mt_pair_free(&pairs[i]);
    }
}

static MPI_Comm thread_comms[2];

static void *thread_work(void *argument)
{
    int            which = (int)(intptr_t)argument;
    struct mt_pair pairs[2];
    MPI_Request    requests[2];

    mt_memory_enter();
    pairs[0] = mt_pair_make(MT_DEVICE, COUNT);
    pairs[1] = mt_pair_make(MT_DEVICE, COUNT);
    for (int round = 0; round < 40; round++) {
        start(&pairs[0], thread_comms[which], round, &requests[0]);
        start(&pairs[1], thread_comms[which], round + 1, &requests[1]);
        MPI_Wait(&requests[(round + which + mt_rank()) % 2], MPI_STATUS_IGNORE);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        mt_pair_expect_sum(&pairs[0], COUNT, mt_size(), round, "thread");
        mt_pair_expect_sum(&pairs[1], COUNT, mt_size(), round + 1, "thread");
        MPI_Barrier(thread_comms[which]);
    }
    return NULL; /* the memory stays: to free it could wait for the other thread's operation */
}

static void case_threads(void)
{
    mt_two_threads(thread_comms, thread_work);
}

static int broken; /* atomic: threads that saw an error */

static void *breaking_work(void *argument)
{
    MPI_Comm       comm = thread_comms[(intptr_t)argument];
    struct mt_pair pairs[MANY];
    MPI_Request    requests[MANY];
    int            code = MPI_SUCCESS;

    mt_memory_enter();
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    for (int i = 0; i < MANY; i++) {
        pairs[i] = mt_pair_make(MT_DEVICE, COUNT);
        requests[i] = MPI_REQUEST_NULL;
    }
    mt_pair_allreduce(&pairs[0], COUNT, comm, 0); /* waits for the vendor's communicator */
    for (int round = 0; (round < 100) && (code == MPI_SUCCESS); round++) {
        for (int i = 0; (i < MANY) && (code == MPI_SUCCESS); i++) {
            code = start(&pairs[i], comm, round + i, &requests[i]);
        }
        int waited = MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE);
        code = (code == MPI_SUCCESS) ? waited : code;
        for (int i = 0; (i < MANY) && (code == MPI_SUCCESS); i++) {
            mt_pair_expect_sum(&pairs[i], COUNT, mt_size(), round + i, "before the error");
        }
    }
    __atomic_add_fetch(&broken, code != MPI_SUCCESS, __ATOMIC_RELAXED);
    return NULL;
}

/* An operation is made to fail: of one thread, and either may be the one that finds it. */
static void case_broken(void)
{
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    mt_two_threads(thread_comms, breaking_work);
    mt_expect(broken == 1, "%d threads saw an error", broken);
}

/*
 * What one round starts: a receive and a send of host memory around the ring, collectives of two
 * kinds, and null requests between them.
 */
struct batch {
    struct mt_pair sum;
    struct mt_pair cast;
    int           *sent;
    int           *got;
    int            done[8];
    int            salt;
};
enum { NULL0, RECEIVE, SUM, NULL3, SEND, CAST, BARRIER, NULL7, BATCH };

static struct batch batch_make(void)
{
    struct batch b = {.sum = mt_pair_make(MT_DEVICE, COUNT)};

    b.cast = mt_pair_make(MT_DEVICE, COUNT);
    b.sent = mt_alloc(MT_HOST, sizeof(int) * LARGE);
    b.got = mt_alloc(MT_HOST, sizeof(int) * LARGE);
    return b;
}

static void batch_free(struct batch *b)
{
    mt_pair_free(&b->sum);
    mt_pair_free(&b->cast);
    free(b->sent);
    free(b->got);
}

static void batch_start(struct batch *b, int salt, MPI_Request *requests)
{
    int next = (mt_rank() + 1) % mt_size();
    int previous = (mt_rank() + mt_size() - 1) % mt_size();

    b->salt = salt;
    memset(b->done, 0, sizeof(b->done));
    for (int i = 0; i < LARGE; i++) {
        b->sent[i] = mt_rank() + salt + i;
        b->got[i] = -1;
    }
    mt_pair_fill(&b->cast, COUNT, MPI_COMM_WORLD, salt);
    requests[NULL0] = requests[NULL3] = requests[NULL7] = MPI_REQUEST_NULL;
    MPI_Irecv(b->got, LARGE, MPI_INT, previous, TAG, MPI_COMM_WORLD, &requests[RECEIVE]);
    start(&b->sum, MPI_COMM_WORLD, salt, &requests[SUM]);
    MPI_Isend(b->sent, LARGE, MPI_INT, next, TAG, MPI_COMM_WORLD, &requests[SEND]);
    MPI_Ibcast(b->cast.in, COUNT, MPI_FLOAT, salt % mt_size(), MPI_COMM_WORLD, &requests[CAST]);
    MPI_Ibarrier(MPI_COMM_WORLD, &requests[BARRIER]);
}

/* A request of the batch has completed: its data is there, and its status says what it should. */
static void batch_done(struct batch *b, int which, const MPI_Status *status)
{
    int wrong = 0;
    int count;

    mt_expect((which >= 0) && (which < BATCH) && (which != NULL0) && (which != NULL3) &&
                  (which != NULL7),
              "request %d was said to be done", which);
    if ((which < 0) || (which >= BATCH)) {
        return;
    }
    mt_expect(b->done[which]++ == 0, "request %d was done twice", which);
    if (which == RECEIVE) {
        int previous = (mt_rank() + mt_size() - 1) % mt_size();
        for (int i = 0; i < LARGE; i++) {
            wrong += b->got[i] != previous + b->salt + i;
        }
        mt_expect(wrong == 0, "%d elements of the message are wrong", wrong);
        MPI_Get_count(status, MPI_INT, &count);
        mt_expect((status->MPI_SOURCE == previous) && (status->MPI_TAG == TAG) && (count == LARGE),
                  "the status says %d elements from %d with tag %d", count, status->MPI_SOURCE,
                  status->MPI_TAG);
    } else if (which == SUM) {
        mt_pair_expect_sum(&b->sum, COUNT, mt_size(), b->salt, "MPI_Iallreduce");
    } else if (which == CAST) {
        float *host = b->cast.host;
        mt_get(host, b->cast.in, MT_DEVICE, sizeof(float) * COUNT);
        for (int i = 0; i < COUNT; i++) {
            wrong += host[i] != (float)(b->salt % mt_size() + i % 61 + b->salt);
        }
        mt_expect(wrong == 0, "MPI_Ibcast: %d elements are wrong", wrong);
    }
}

static void batch_end(struct batch *b, const MPI_Request *requests)
{
    for (int i = 0; i < BATCH; i++) {
        bool null = (i == NULL0) || (i == NULL3) || (i == NULL7);
        mt_expect(b->done[i] == (null ? 0 : 1), "request %d was done %d times", i, b->done[i]);
        mt_expect(requests[i] == MPI_REQUEST_NULL, "request %d is still there", i);
    }
}

/* How a batch is completed: each returns when nothing is left. */
static void by_waitall(struct batch *b, MPI_Request *requests)
{
    MPI_Status statuses[BATCH];

    MPI_Waitall(BATCH, requests, statuses);
    for (int i = 0; i < BATCH; i++) {
        if ((i != NULL0) && (i != NULL3) && (i != NULL7)) {
            batch_done(b, i, &statuses[i]);
        }
    }
}

static void by_testall(struct batch *b, MPI_Request *requests)
{
    MPI_Status statuses[BATCH];
    int        flag = 0;

    while (!flag) {
        MPI_Testall(BATCH, requests, &flag, statuses);
    }
    for (int i = 0; i < BATCH; i++) {
        if ((i != NULL0) && (i != NULL3) && (i != NULL7)) {
            batch_done(b, i, &statuses[i]);
        }
    }
}

static void by_waitany(struct batch *b, MPI_Request *requests)
{
    MPI_Status status;
    int        which;

    for (MPI_Waitany(BATCH, requests, &which, &status); which != MPI_UNDEFINED;
         MPI_Waitany(BATCH, requests, &which, &status)) {
        batch_done(b, which, &status);
    }
}

static void by_testany(struct batch *b, MPI_Request *requests)
{
    MPI_Status status;
    int        which = 0;
    int        flag;

    while (true) {
        MPI_Testany(BATCH, requests, &which, &flag, &status);
        if (flag && (which == MPI_UNDEFINED)) {
            return;
        }
        if (flag) {
            batch_done(b, which, &status);
        }
    }
}

static void by_some(struct batch *b, MPI_Request *requests, bool wait)
{
    MPI_Status statuses[BATCH];
    int        places[BATCH];
    int        count = 0;

    while (true) {
        (wait ? MPI_Waitsome : MPI_Testsome)(BATCH, requests, &count, places, statuses);
        if (count == MPI_UNDEFINED) {
            return;
        }
        for (int i = 0; i < count; i++) {
            batch_done(b, places[i], &statuses[i]);
        }
    }
}

static void by_waitsome(struct batch *b, MPI_Request *requests)
{
    by_some(b, requests, true);
}

static void by_testsome(struct batch *b, MPI_Request *requests)
{
    by_some(b, requests, false);
}

/* One by one, in an order of the rank's own, asked first without being completed. */
static void by_status(struct batch *b, MPI_Request *requests)
{
    for (int i = 0; i < BATCH; i++) {
        int        which = (i * 3 + mt_rank()) % BATCH;
        int        flag = 0;
        MPI_Status status;
        if (requests[which] == MPI_REQUEST_NULL) {
            continue;
        }
        while (!flag) {
            MPI_Request_get_status(requests[which], &flag, &status);
        }
        mt_expect(requests[which] != MPI_REQUEST_NULL, "MPI_Request_get_status freed it");
        MPI_Test(&requests[which], &flag, &status);
        mt_expect(flag, "MPI_Test does not know a completed request");
        batch_done(b, which, &status);
    }
}

static void case_mixture(void)
{
    static void (*const ways[])(struct batch *, MPI_Request *) = {
        by_waitall, by_testall, by_waitany, by_testany, by_waitsome, by_testsome, by_status};
    enum { WAYS = sizeof(ways) / sizeof(ways[0]) };
    struct batch b = batch_make();
    MPI_Request  requests[BATCH];

    for (int round = 0; round < 3 * WAYS; round++) {
        /* First the same way on all ranks, then another on each. */
        int way = (round < WAYS) ? round : (round + mt_rank()) % WAYS;
        batch_start(&b, round, requests);
        ways[way](&b, requests);
        batch_end(&b, requests);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    batch_free(&b);
}

/* A message whose request is freed; null and freed requests in every function. */
static void case_freed(void)
{
    struct mt_pair pair = mt_pair_make(MT_DEVICE, COUNT);
    int            next = (mt_rank() + 1) % mt_size();
    int            previous = (mt_rank() + mt_size() - 1) % mt_size();
    int            sent = mt_rank();
    int            got = -1;
    int            flag, which;
    MPI_Request    requests[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};

    start(&pair, MPI_COMM_WORLD, 1, &requests[1]);
    MPI_Isend(&sent, 1, MPI_INT, next, TAG, MPI_COMM_WORLD, &requests[0]);
    MPI_Request_free(&requests[0]);
    mt_expect(requests[0] == MPI_REQUEST_NULL, "MPI_Request_free left the request");
    MPI_Recv(&got, 1, MPI_INT, previous, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    mt_expect(got == previous, "got %d", got);
    MPI_Waitany(3, requests, &which, MPI_STATUS_IGNORE);
    mt_expect(which == 1, "MPI_Waitany says %d", which);
    mt_pair_expect_sum(&pair, COUNT, mt_size(), 1, "MPI_Iallreduce");
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    MPI_Waitall(0, requests, MPI_STATUSES_IGNORE);
    MPI_Waitany(3, requests, &which, MPI_STATUS_IGNORE);
    mt_expect(which == MPI_UNDEFINED, "MPI_Waitany of null requests says %d", which);
    MPI_Testany(3, requests, &which, &flag, MPI_STATUS_IGNORE);
    mt_expect(flag && (which == MPI_UNDEFINED), "MPI_Testany of null requests says %d", which);
    MPI_Testall(3, requests, &flag, MPI_STATUSES_IGNORE);
    mt_expect(flag, "MPI_Testall of null requests says no");
    MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE);
    mt_expect(flag, "MPI_Test of a null request says no");
    MPI_Request_get_status(MPI_REQUEST_NULL, &flag, MPI_STATUS_IGNORE);
    mt_expect(flag, "MPI_Request_get_status of a null request says no");
    MPI_Barrier(MPI_COMM_WORLD); /* until the freed send has gone */
    mt_pair_free(&pair);
}

/* ---- MPI 4.1's looks at several requests, by whoever has them ---- */

typedef int look_all(int, const MPI_Request *, int *, MPI_Status *);
typedef int look_any(int, const MPI_Request *, int *, int *, MPI_Status *);
typedef int look_some(int, const MPI_Request *, int *, int *, MPI_Status *);

static void *must_have(const char *name)
{
    void *function = dlsym(RTLD_DEFAULT, name);

    mt_expect(function != NULL, "nobody has %s", name);
    return function;
}

/* Rank 1 sends once rank 0 has seen that nothing is there: a large message and a small one. */
static void look_at_messages(look_all *all, look_any *any, look_some *some)
{
    enum { REQUESTS = 4 };
    MPI_Request requests[REQUESTS] = {MPI_REQUEST_NULL, 0, 0, MPI_REQUEST_NULL};
    MPI_Status  statuses[REQUESTS];
    float      *large = mt_alloc(MT_DEVICE, sizeof(float) * LARGE);
    int         small = 0, flag = 1, index = 0, out = 9, indices[REQUESTS], got = 0;

    MPI_Irecv(large, LARGE, MPI_FLOAT, 1, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Irecv(&small, 1, MPI_INT, 1, 2, MPI_COMM_WORLD, &requests[2]);
    all(REQUESTS, requests, &flag, MPI_STATUSES_IGNORE);
    mt_expect(!flag, "all are over before anything was sent");
    any(REQUESTS, requests, &index, &flag, MPI_STATUS_IGNORE);
    mt_expect(!flag && (index == MPI_UNDEFINED), "any is over before anything was sent");
    some(REQUESTS, requests, &out, indices, MPI_STATUSES_IGNORE);
    mt_expect(out == 0, "some are over before anything was sent: %d", out);
    MPI_Barrier(MPI_COMM_WORLD);
    for (flag = 0; !flag;) {
        all(REQUESTS, requests, &flag, statuses);
    }
    MPI_Get_count(&statuses[1], MPI_FLOAT, &got);
    mt_expect((got == LARGE - 1) && (statuses[1].MPI_TAG == 1), "%d elements, tag %d", got,
              statuses[1].MPI_TAG);
    some(REQUESTS, requests, &out, indices, statuses);
    mt_expect((out == 2) && (indices[0] == 1) && (indices[1] == 2), "some: %d", out);
    any(REQUESTS, requests, &index, &flag, statuses);
    mt_expect(flag && (index == 1), "any: %d", index);
    MPI_Waitall(REQUESTS, requests, statuses);
    MPI_Get_count(&statuses[1], MPI_FLOAT, &got);
    mt_expect((got == LARGE - 1) && (small == 17), "afterwards: %d elements, %d", got, small);
    any(REQUESTS, requests, &index, &flag, statuses);
    mt_expect(flag && (index == MPI_UNDEFINED), "any of null requests: %d", index);
    some(REQUESTS, requests, &out, indices, statuses);
    mt_expect(out == MPI_UNDEFINED, "some of null requests: %d", out);
    mt_free(MT_DEVICE, large);
}

/* Persistent ones that are not started count for nothing, of host memory and of a device's. */
static void look_at_inactive(look_any *any, look_some *some)
{
    enum { REQUESTS = 5, OTHER_TAG = TAG + 1 };
    MPI_Request requests[REQUESTS];
    MPI_Status  statuses[REQUESTS];
    int         host[2] = {1, 2}, flag = 0, index = 9, out = 9, indices[REQUESTS], self = mt_rank();
    int        *device = mt_ints_make(MT_DEVICE, 2, 2, 1);

    MPI_Send_init(&host[0], 1, MPI_INT, self, TAG, MPI_COMM_WORLD, &requests[0]);
    MPI_Recv_init(&host[1], 1, MPI_INT, self, TAG, MPI_COMM_WORLD, &requests[1]);
    MPI_Send_init(&device[0], 1, MPI_INT, self, TAG, MPI_COMM_WORLD, &requests[2]);
    MPI_Recv_init(&device[1], 1, MPI_INT, self, TAG, MPI_COMM_WORLD, &requests[3]);
    statuses[0].MPI_ERROR = MPI_ERR_OTHER;
    any(4, requests, &index, &flag, &statuses[0]);
    mt_expect(flag && (index == MPI_UNDEFINED), "any of inactive ones: %d", index);
    mt_expect((statuses[0].MPI_TAG == MPI_ANY_TAG) && (statuses[0].MPI_ERROR == MPI_SUCCESS),
              "any of inactive ones: tag %d, error %d", statuses[0].MPI_TAG, statuses[0].MPI_ERROR);
    some(4, requests, &out, indices, statuses);
    mt_expect(out == MPI_UNDEFINED, "some of inactive ones: %d", out);
    MPI_Irecv(&host[1], 1, MPI_INT, self, OTHER_TAG, MPI_COMM_WORLD, &requests[4]);
    any(REQUESTS, requests, &index, &flag, &statuses[0]);
    mt_expect(!flag && (index == MPI_UNDEFINED), "any beside inactive ones: %d", index);
    some(REQUESTS, requests, &out, indices, statuses);
    mt_expect(out == 0, "some beside inactive ones: %d", out);
    MPI_Send(&host[0], 1, MPI_INT, self, OTHER_TAG, MPI_COMM_WORLD);
    for (flag = 0; !flag;) {
        any(REQUESTS, requests, &index, &flag, &statuses[0]);
    }
    mt_expect((index == 4) && (statuses[0].MPI_TAG == OTHER_TAG), "the active one: %d", index);
    MPI_Wait(&requests[4], MPI_STATUS_IGNORE);
    for (int i = 0; i < 4; i++) {
        MPI_Request_free(&requests[i]);
    }
    mt_free(MT_DEVICE, device);
}

/* Nor do those that were, and are over: well, and with too little room (fine for Open MPI's
 * MPI_Wait). */
static void look_at_ended(look_any *any)
{
    enum { ROOM = 10, ROUNDS = 3 };
    int        *buffer = mt_ints_make(MT_DEVICE, COUNT, COUNT, 1);
    int         index, flag, self = mt_rank();
    MPI_Request receive, send;
    MPI_Comm    comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* where MPICH reports some */
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Recv_init(buffer, ROOM, MPI_INT, self, TAG, comm, &receive);
    for (int round = 0; (round < ROUNDS) && (receive != MPI_REQUEST_NULL); round++) {
        bool too_long = (round == ROUNDS - 1);
        MPI_Start(&receive);
        MPI_Isend(buffer + ROOM, too_long ? 2 * ROOM : ROOM, MPI_INT, self, TAG, comm, &send);
        MPI_Wait(&send, MPI_STATUS_IGNORE);
        int code = MPI_Wait(&receive, MPI_STATUS_IGNORE);
        mt_expect((code == MPI_SUCCESS) || too_long, "round %d: code %d", round, code);
        if (receive != MPI_REQUEST_NULL) { /* as Open MPI does with those that failed */
            any(1, &receive, &index, &flag, MPI_STATUS_IGNORE);
            mt_expect(flag && (index == MPI_UNDEFINED), "round %d: any of one that is over: %d",
                      round, index);
        }
    }
    if (receive != MPI_REQUEST_NULL) {
        MPI_Request_free(&receive);
    }
    MPI_Comm_free(&comm);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    mt_free(MT_DEVICE, buffer);
}

/* MPICH 4.0 says nothing in the status of a send: what is there may be an empty one. */
static void look_at_send(look_any *any)
{
    int         value = 1, got = 0, index = 9, flag = 0, self = mt_rank();
    MPI_Request requests[2], none = MPI_REQUEST_NULL;
    MPI_Status  status;

    MPI_Irecv(&got, 1, MPI_INT, self, TAG, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(&value, 1, MPI_INT, self, TAG, MPI_COMM_WORLD, &requests[0]);
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    for (int i = 0; (i < 1000) && (index != 0); i++) {
        MPI_Wait(&none, &status);
        any(1, requests, &index, &flag, &status);
    }
    mt_expect(flag && (index == 0), "a send that is over: flag %d, index %d", flag, index);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
}

static void case_ended(void)
{
    look_any *any = (look_any *)must_have("MPI_Request_get_status_any");

    look_at_ended(any);
    look_at_send(any);
}

static void case_statuses(void)
{
    look_all  *all = (look_all *)must_have("MPI_Request_get_status_all");
    look_any  *any = (look_any *)must_have("MPI_Request_get_status_any");
    look_some *some = (look_some *)must_have("MPI_Request_get_status_some");
    int        small = 17;

    look_at_inactive(any, some);
    if (mt_rank() == 0) {
        look_at_messages(all, any, some);
    } else if (mt_rank() == 1) {
        float *large = mt_alloc(MT_DEVICE, sizeof(float) * LARGE);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Send(large, LARGE - 1, MPI_FLOAT, 0, 1, MPI_COMM_WORLD);
        MPI_Send(&small, 1, MPI_INT, 0, 2, MPI_COMM_WORLD);
        mt_free(MT_DEVICE, large);
    } else {
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

enum { SIDE = 64, SQUARE = SIDE * SIDE };

/* Of the kind that xccl does not take apart. */
static MPI_Datatype make_darray(void)
{
    int          sizes[] = {SIDE, SIDE}, grid[] = {1, 1};
    int          spread[] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK};
    int          blocks[] = {3, MPI_DISTRIBUTE_DFLT_DARG};
    MPI_Datatype type;

    MPI_Type_create_darray(1, 0, 2, sizes, spread, blocks, grid, MPI_ORDER_C, MPI_INT, &type);
    MPI_Type_commit(&type);
    return type;
}

/* Freed while its data is on the way; another type takes the handle. */
static MPI_Datatype free_and_make(MPI_Datatype *type)
{
    MPI_Datatype other;

    MPI_Type_free(type);
    MPI_Type_contiguous(3, MPI_DOUBLE, &other);
    MPI_Type_commit(&other);
    return other;
}

static void check_freed_type(enum mt_where where, int salt)
{
    int          next = (mt_rank() + 1) % mt_size();
    int          previous = (mt_rank() + mt_size() - 1) % mt_size();
    int         *in = mt_ints_make(MT_DEVICE, SQUARE, SQUARE, salt);
    int         *out = mt_ints_make(where, SQUARE, 0, 0);
    MPI_Datatype type = make_darray();
    MPI_Request  requests[2];

    MPI_Irecv(out, 1, type, previous, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Datatype other = free_and_make(&type);
    MPI_Isend(in, SQUARE, MPI_INT, next, 0, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    mt_ints_expect(out, where, SQUARE, SQUARE, previous, salt, "a message of a freed type");
    MPI_Type_free(&other);
    mt_free(MT_DEVICE, in);
    mt_free(where, out);
}

static void case_freed_types(void)
{
    int         *data = mt_ints_make(MT_DEVICE, SQUARE, SQUARE, 7);
    MPI_Datatype type = make_darray();
    MPI_Request  request;

    check_freed_type(MT_DEVICE, 1);
    check_freed_type(MT_HOST, 2);
    MPI_Ibcast(data, 1, type, 0, MPI_COMM_WORLD, &request);
    MPI_Datatype other = free_and_make(&type);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    mt_ints_expect(data, MT_DEVICE, SQUARE, SQUARE, 0, 7, "MPI_Ibcast of a freed type");
    MPI_Type_free(&other);
    mt_free(MT_DEVICE, data);
}

/* ---- several threads look at a request, and none completes it ---- */

enum { LOOKERS = 3, LOOKED_AT = 10 };

struct looked_at {
    MPI_Request request;
    const int  *out; /* NULL: it is sent */
    int         count, salt;
};

static void *look(void *argument)
{
    const struct looked_at *l = argument;
    MPI_Status              status;
    int                     flag = 0, last = 0, from = 1 - mt_rank();

    mt_memory_enter();
    while (!flag) {
        MPI_Request_get_status(l->request, &flag, &status);
    }
    if (l->out != NULL) {
        mt_get(&last, l->out + l->count - 1, MT_DEVICE, sizeof(last));
        mt_expect(last == mt_value(from, l->salt, l->count - 1), "the message is not there yet");
        mt_expect_status(&status, from, TAG, l->count, "MPI_Request_get_status");
    }
    return NULL;
}

static void look_at_message(int count, int salt)
{
    int        *in = mt_ints_make(MT_DEVICE, count, count, salt), to = 1 - mt_rank();
    int        *out = mt_ints_make(MT_DEVICE, count, 0, 0);
    MPI_Request requests[2];

    MPI_Irecv(out, count, MPI_INT, to, TAG, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(in, count, MPI_INT, to, TAG, MPI_COMM_WORLD, &requests[1]);
    for (int i = 0; i < 2; i++) {
        struct looked_at l = {requests[i], (i == 0) ? out : NULL, count, salt};
        mt_in_threads(LOOKERS, look, &l, 0);
    }
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    mt_ints_expect(out, MT_DEVICE, count, count, to, salt, "a message that threads look at");
    mt_free(MT_DEVICE, in);
    mt_free(MT_DEVICE, out);
}

/* Short ones are staged, and long ones fetched. */
static void case_looked_at(void)
{
    for (int i = 0; i < LOOKED_AT; i++) {
        look_at_message(100, i);
        look_at_message(LARGE, i);
    }
}

/*
 * A collective that begins while its communicator is duplicated. Open MPI mixes up both if it gets
 * progress between these calls on some ranks only.
 */
static void case_idup(void)
{
    enum { LONG = 1 << 20, ROUNDS = 20 };
    struct mt_pair pair = mt_pair_make(MT_DEVICE, LONG);
    MPI_Comm       comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Comm    twin;
        MPI_Request requests[2];
        mt_pair_fill(&pair, LONG, comm, round);
        MPI_Comm_idup(comm, &twin, &requests[0]);
        MPI_Ibcast(pair.in, LONG, MPI_FLOAT, round % mt_size(), comm, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        mt_pair_allreduce(&pair, LONG, twin, round);
        MPI_Comm_free(&twin);
    }
    MPI_Comm_free(&comm);
    mt_pair_free(&pair);
}

int main(int argc, char **argv)
{
    static const struct mt_named_case cases[] = {
        {"comms", case_comms},         {"rounds", case_rounds},
        {"soon", case_soon},           {"orders", case_orders},
        {"threads", case_threads},     {"broken", case_broken},
        {"mixture", case_mixture},     {"freed", case_freed},
        {"statuses", case_statuses},   {"freed_types", case_freed_types},
        {"looked_at", case_looked_at}, {"ended", case_ended},
        {"idup", case_idup},           {NULL, NULL},
    };

    mt_begin(&argc, &argv, true);
    return mt_run_to_end(cases, argc, argv);
}
