/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks that send and receive at once: in the order of calls in which halo exchanges do that, and
 * also to themselves, as on a periodic grid that is one rank wide.
 * Usage: mpi_exchange cuda|rocm|none CASE [PATH]
 * PATH: what xccl_mpi_last_message_path() is to say of the messages, where the case looks; or a
 * file that is not there yet.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "support.h"

enum { COUNT = 20000, SHORT = 2000, TAG = 5, ROUNDS = 40 };

static const char *path;

/* ---- the naps of threads that are not the program's ---- */

enum { LONG_NAP_NS = 20 * 1000 * 1000 };
static pthread_t own_thread;
static bool      slow; /* atomic */
static int       naps; /* atomic */

/* In the place of the C library's: who leaves the work to a thread that naps is found out. */
__attribute__((visibility("default"))) int nanosleep(const struct timespec *asked,
                                                     struct timespec       *left)
{
    const struct timespec long_nap = {0, LONG_NAP_NS};
    bool                  is_slow =
        __atomic_load_n(&slow, __ATOMIC_RELAXED) && !pthread_equal(pthread_self(), own_thread);

    if (is_slow) {
        __atomic_add_fetch(&naps, 1, __ATOMIC_RELAXED);
    }
    return clock_nanosleep(CLOCK_MONOTONIC, 0, is_slow ? &long_nap : asked, left);
}

/* ---- exchanges ---- */

static int length = COUNT;

typedef int  isendrecv(const void *, int, MPI_Datatype, int, int, void *, int, MPI_Datatype, int,
                       int, MPI_Comm, MPI_Request *);
typedef void exchange(const int *in, int *out, int peer);

static void send_between(const int *in, int *out, int peer)
{
    MPI_Request request;

    MPI_Irecv(out, length, MPI_INT, peer, TAG, MPI_COMM_WORLD, &request);
    MPI_Send(in, length, MPI_INT, peer, TAG, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void wait_for_send_first(const int *in, int *out, int peer)
{
    MPI_Request requests[2];

    MPI_Irecv(out, length, MPI_INT, peer, TAG, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(in, length, MPI_INT, peer, TAG, MPI_COMM_WORLD, &requests[1]);
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
}

static void test_send_first(const int *in, int *out, int peer)
{
    MPI_Request requests[2];

    MPI_Irecv(out, length, MPI_INT, peer, TAG, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(in, length, MPI_INT, peer, TAG, MPI_COMM_WORLD, &requests[1]);
    for (int done = 0; !done;) {
        MPI_Test(&requests[1], &done, MPI_STATUS_IGNORE);
    }
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
}

static void wait_for_all(const int *in, int *out, int peer)
{
    MPI_Request requests[2];

    MPI_Irecv(out, length, MPI_INT, peer, TAG, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(in, length, MPI_INT, peer, TAG, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

static void send_then_receive(const int *in, int *out, int peer)
{
    MPI_Request request;

    MPI_Isend(in, length, MPI_INT, peer, TAG, MPI_COMM_WORLD, &request);
    MPI_Recv(out, length, MPI_INT, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void send_and_receive(const int *in, int *out, int peer)
{
    MPI_Sendrecv(in, length, MPI_INT, peer, TAG, out, length, MPI_INT, peer, TAG, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
}

static void persistent(const int *in, int *out, int peer)
{
    MPI_Request requests[2];

    MPI_Recv_init(out, length, MPI_INT, peer, TAG, MPI_COMM_WORLD, &requests[0]);
    MPI_Send_init(in, length, MPI_INT, peer, TAG, MPI_COMM_WORLD, &requests[1]);
    for (int i = 0; i < 3; i++) {
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
}

static const struct {
    const char *name;
    exchange   *run;
    bool        sends_blocking; /* to oneself, MPI decides what becomes of it */
} exchanges[] = {
    {"irecv, send, wait", send_between, true},
    {"irecv, isend, wait for the send first", wait_for_send_first, false},
    {"irecv, isend, test the send first", test_send_first, false},
    {"irecv, isend, waitall", wait_for_all, false},
    {"isend, recv, wait", send_then_receive, false},
    {"sendrecv", send_and_receive, false},
    {"persistent", persistent, false},
};
enum { EXCHANGES = sizeof(exchanges) / sizeof(exchanges[0]) };

/* Not all at once: a message that is longer than what MPI buffers would wait for its receive. */
static void run_one(int e, int peer, enum mt_where from, enum mt_where to, int salt)
{
    int *in = mt_ints_make(from, length, length, salt), *out = mt_ints_make(to, length, 0, 0);

    exchanges[e].run(in, out, peer);
    mt_ints_expect(out, to, length, length, peer, salt, exchanges[e].name);
    mt_ints_expect(in, from, length, length, mt_rank(), salt, exchanges[e].name);
    mt_free(from, in);
    mt_free(to, out);
}

/* A rank knows that another fetches once they have met on device memory. */
static void meet(int peer)
{
    for (int i = 0; i < 3; i++) {
        run_one(EXCHANGES - 2, peer, MT_DEVICE, MT_DEVICE, i);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

/* One in which the ranks know nothing of each other's counts; it is not over before both are in. */
static void meet_on_host(void)
{
    const int counts[] = {1, 1}, displs[] = {0, 1};
    int       in[] = {1, 2}, out[] = {0, 0};

    MPI_Alltoallv(in, counts, displs, MPI_INT, out, counts, displs, MPI_INT, MPI_COMM_WORLD);
}

/*
 * A rank that uses a device says in any collective that it fetches, so not even the first message
 * is staged, whose receiver comes later.
 */
static void case_first(void)
{
    int  peer = 1 - mt_rank();
    int *in = mt_ints_make(MT_DEVICE, COUNT, COUNT, 3), *out = mt_ints_make(MT_DEVICE, COUNT, 0, 0);

    meet_on_host();
    if (mt_rank() == 0) {
        MPI_Send(in, COUNT, MPI_INT, peer, TAG, MPI_COMM_WORLD);
        mt_expect_message_path(path, "the first message");
    } else {
        const struct timespec later = {0, 50 * 1000 * 1000};
        clock_nanosleep(CLOCK_MONOTONIC, 0, &later, NULL);
        MPI_Recv(out, COUNT, MPI_INT, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        mt_ints_expect(out, MT_DEVICE, COUNT, COUNT, peer, 3, "the first message");
    }
    mt_free(MT_DEVICE, in);
    mt_free(MT_DEVICE, out);
}

/* Who waits for its own message fetches meanwhile what it was sent. */
static void case_orders(void)
{
    int  peer = 1 - mt_rank();
    int *in = mt_ints_make(MT_DEVICE, COUNT, COUNT, 7), *out = mt_ints_make(MT_DEVICE, COUNT, 0, 0);

    meet(peer);
    for (int e = 0; e < EXCHANGES; e++) {
        MPI_Barrier(MPI_COMM_WORLD);
        __atomic_store_n(&naps, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&slow, true, __ATOMIC_RELAXED);
        for (int i = 0; i < ROUNDS; i++) {
            exchanges[e].run(in, out, peer);
        }
        __atomic_store_n(&slow, false, __ATOMIC_RELAXED);
        int slept = __atomic_load_n(&naps, __ATOMIC_RELAXED);
        mt_expect(slept < ROUNDS, "%s: %d exchanges took %d naps of another thread",
                  exchanges[e].name, ROUNDS, slept);
        mt_ints_expect(out, MT_DEVICE, COUNT, COUNT, peer, 7, exchanges[e].name);
    }
    mt_free(MT_DEVICE, in);
    mt_free(MT_DEVICE, out);
}

static void case_short(void)
{
    int *in, *out, peer = 1 - mt_rank();

    length = SHORT;
    meet(peer);
    in = mt_ints_make(MT_DEVICE, length, length, 7);
    out = mt_ints_make(MT_DEVICE, length, 0, 0);
    for (int e = 0; e < EXCHANGES; e++) {
        for (int i = 0; i < ROUNDS; i++) {
            exchanges[e].run(in, out, peer);
        }
        mt_ints_expect(out, MT_DEVICE, length, length, peer, 7, exchanges[e].name);
        mt_expect_message_path(path, exchanges[e].name);
    }
    mt_free(MT_DEVICE, in);
    mt_free(MT_DEVICE, out);
}

/* Requests that are made before anything was sent, on memory that nobody has seen. */
static void case_early(void)
{
    int        *in = mt_ints_make(MT_DEVICE, SHORT, SHORT, 7), peer = 1 - mt_rank();
    int        *out = mt_ints_make(MT_DEVICE, SHORT, 0, 0);
    MPI_Request requests[2];

    MPI_Recv_init(out, SHORT, MPI_INT, peer, TAG, MPI_COMM_WORLD, &requests[0]);
    MPI_Send_init(in, SHORT, MPI_INT, peer, TAG, MPI_COMM_WORLD, &requests[1]);
    mt_meet_on_device();
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        mt_ints_expect(out, MT_DEVICE, SHORT, SHORT, peer, 7, "made early");
    }
    mt_expect_message_path(path, "made early");
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    mt_free(MT_DEVICE, in);
    mt_free(MT_DEVICE, out);
}

static void case_self(void)
{
    static const enum mt_where pairs[][2] = {{MT_DEVICE, MT_DEVICE},
                                             {MT_DEVICE, MT_HOST},
                                             {MT_HOST, MT_DEVICE},
                                             {MT_DEVICE, MT_MANAGED}};

    for (size_t p = 0; p < sizeof(pairs) / sizeof(pairs[0]); p++) {
        for (int e = 0; e < EXCHANGES; e++) {
            for (int i = 0; (i < 3) && !(exchanges[e].sends_blocking && (i > 0)); i++) {
                run_one(e, mt_rank(), pairs[p][0], pairs[p][1], 10 * e + i);
            }
            if ((pairs[p][0] == MT_DEVICE) && !exchanges[e].sends_blocking) {
                mt_expect_message_path(path, exchanges[e].name);
            }
        }
    }
}

enum { LARGE = 1 << 20 };

/* Rank 0 sends and receives in one call, and rank 1 in two: its send comes first. */
static void replace(enum mt_where where)
{
    int *in = mt_ints_make((mt_rank() == 0) ? where : MT_DEVICE, LARGE, LARGE, 1);
    int *out = mt_ints_make(MT_DEVICE, LARGE, 0, 0), peer = 1 - mt_rank();

    if (mt_rank() == 0) {
        MPI_Sendrecv_replace(in, LARGE, MPI_INT, peer, TAG, peer, TAG, MPI_COMM_WORLD,
                             MPI_STATUS_IGNORE);
        mt_ints_expect(in, where, LARGE, LARGE, peer, 1, "MPI_Sendrecv_replace");
    } else {
        MPI_Send(in, LARGE, MPI_INT, peer, TAG, MPI_COMM_WORLD);
        MPI_Recv(out, LARGE, MPI_INT, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        mt_ints_expect(out, MT_DEVICE, LARGE, LARGE, peer, 1, "MPI_Recv");
    }
    mt_free((mt_rank() == 0) ? where : MT_DEVICE, in);
    mt_free(MT_DEVICE, out);
}

static void case_replace(void)
{
    mt_meet_on_device();
    replace(MT_DEVICE);
    replace(MT_HOST);
}

/* Both ranks replace what they send, in memory seen for the first time and in memory seen before.
 */
static void replace_both(int count)
{
    int       *values = mt_ints_make(MT_DEVICE, LARGE, count, 0), peer = 1 - mt_rank();
    MPI_Status status;

    for (int i = 1; i < 4; i++) {
        MPI_Sendrecv_replace(values, count, MPI_INT, peer, TAG + mt_rank(), peer, TAG + peer,
                             MPI_COMM_WORLD, &status);
        mt_ints_expect(values, MT_DEVICE, count, count, (i % 2 == 0) ? mt_rank() : peer, 0,
                       "both ranks replace");
        mt_expect_status(&status, peer, TAG + peer, count, "both ranks replace");
        mt_expect_message_path(path, "both ranks replace");
    }
    mt_free(MT_DEVICE, values);
}

/* Nothing comes for what rank 0 sends. */
static void replace_by_nothing(void)
{
    int *values = mt_ints_make(MT_DEVICE, LARGE, LARGE, 7);

    if (mt_rank() == 0) {
        MPI_Sendrecv_replace(values, LARGE, MPI_INT, 1, TAG, MPI_PROC_NULL, TAG, MPI_COMM_WORLD,
                             MPI_STATUS_IGNORE);
        mt_expect_message_path(path, "replaced by nothing");
    } else {
        MPI_Recv(values, LARGE, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    mt_ints_expect(values, MT_DEVICE, LARGE, LARGE, 0, 7, "replaced by nothing");
    mt_free(MT_DEVICE, values);
}

/* What rank 1 sends is too long for rank 0: that has an error, and its own message arrives. */
static void replace_too_little(void)
{
    int *values = mt_ints_make(MT_DEVICE, LARGE, LARGE, 5), code, class = MPI_SUCCESS;
    int  count = (mt_rank() == 0) ? LARGE / 2 : LARGE;

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    code = MPI_Sendrecv_replace(values, count, MPI_INT, 1 - mt_rank(), TAG, 1 - mt_rank(), TAG,
                                MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Error_class(code, &class);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    mt_expect(class == ((mt_rank() == 0) ? MPI_ERR_TRUNCATE : MPI_SUCCESS), "error class %d",
              class);
    if (mt_rank() == 1) {
        mt_ints_expect(values, MT_DEVICE, LARGE / 2, LARGE / 2, 0, 5, "replaced by less");
    }
    mt_free(MT_DEVICE, values);
}

/* From here on threads take messages out of MPI's queue, if there are any. */
static void probe_once(void)
{
    MPI_Request request;
    MPI_Status  status;
    int         peer = 1 - mt_rank(), sent = mt_rank(), got = -1;

    MPI_Isend(&sent, 1, MPI_INT, peer, TAG, MPI_COMM_WORLD, &request);
    MPI_Probe(peer, TAG, MPI_COMM_WORLD, &status);
    MPI_Recv(&got, 1, MPI_INT, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    mt_expect(got == peer, "a message that was probed: %d", got);
}

static void case_replaced(void)
{
    mt_meet_on_device();
    replace_both(2000);
    replace_both(COUNT);
    replace_both(LARGE);
    replace_by_nothing();
    replace_too_little();
    probe_once();
    replace_both(COUNT);
    replace_too_little();
}

/* More than XCCL_SCRATCH is replaced. */
static void case_huge(void)
{
    mt_meet_on_device();
    replace_both(LARGE);
}

/* What rank 0 receives comes once its large message has been received. */
static void case_answer(void)
{
    int *in = mt_ints_make(MT_DEVICE, LARGE, LARGE, 1), *out = mt_ints_make(MT_DEVICE, LARGE, 0, 0);
    int  answer = mt_rank();

    mt_meet_on_device();
    if (mt_rank() == 0) {
        MPI_Sendrecv(in, LARGE, MPI_INT, 1, TAG, &answer, 1, MPI_INT, 1, TAG, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        mt_expect(answer == 1, "the answer is %d", answer);
    } else {
        MPI_Recv(out, LARGE, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(&answer, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD);
        mt_ints_expect(out, MT_DEVICE, LARGE, LARGE, 0, 1, "MPI_Recv");
    }
    mt_free(MT_DEVICE, in);
    mt_free(MT_DEVICE, out);
}

enum { FACES = 6, FACE = 750, SHORT_FACE = 25 };

static void exchange_faces(const int *in, int *out, int peer, int count)
{
    MPI_Request requests[2 * FACES];

    for (int i = 0; i < FACES; i++) {
        MPI_Irecv(out + i * count, count, MPI_INT, peer, TAG + i, MPI_COMM_WORLD, &requests[i]);
    }
    for (int i = 0; i < FACES; i++) {
        MPI_Isend(in + i * count, count, MPI_INT, peer, TAG + i, MPI_COMM_WORLD,
                  &requests[FACES + i]);
    }
    MPI_Waitall(2 * FACES, requests, MPI_STATUSES_IGNORE);
}

/* As in a halo exchange: messages that are fetched, and some so short that they are staged. */
static void case_faces(void)
{
    const int counts[] = {FACE, SHORT_FACE}, peer = 1 - mt_rank();

    for (int round = 0; round < ROUNDS; round++) {
        int  salt = 3 * round;
        int *in = mt_ints_make(MT_DEVICE, FACES * FACE, FACES * FACE, salt);
        for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
            int *out = mt_ints_make(MT_DEVICE, FACES * FACE, 0, 0);
            for (int again = 0; again < 4; again++) {
                exchange_faces(in, out, peer, counts[c]);
            }
            mt_ints_expect(out, MT_DEVICE, FACES * FACE, FACES * counts[c], peer, salt, "faces");
            mt_free(MT_DEVICE, out);
        }
        mt_free(MT_DEVICE, in);
    }
}

/* ---- many are posted ---- */

enum { MANY = 24, LONG = 1 << 18, SECONDS = 20, POLL_NS = 20 * 1000 };

/* Without MPI. */
static void poll_once(void)
{
    const struct timespec pause = {0, POLL_NS};

    clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
}

static bool has_come(const int *out, int peer, int salt)
{
    int value = 0;

    mt_get(&value, out + LONG - 1, MT_DEVICE, sizeof(value));
    return value == mt_value(peer, salt, LONG - 1);
}

/* Rank 1 says by the file that it has begun its sends, while rank 0 goes on with its own. */
static void post_sends(const int *in, int peer, MPI_Request *requests)
{
    for (int i = 0; (mt_rank() == 0) && (access(path, F_OK) != 0) && (i < SECONDS * 50000); i++) {
        poll_once();
    }
    for (int i = 0; i < MANY; i++) {
        MPI_Isend(in, LONG, MPI_INT, peer, TAG + i, MPI_COMM_WORLD, &requests[i]);
        poll_once();
    }
    if (mt_rank() == 1) {
        FILE *file = fopen(path, "w");
        mt_expect((file != NULL) && (fclose(file) == 0), "%s is written", path);
    }
}

/* Long messages are fetched while the program begins others, before it waits for any. */
static void case_posted(void)
{
    MPI_Request requests[2 * MANY];
    int         peer = 1 - mt_rank(), *out[MANY];
    int        *in = mt_ints_make(MT_DEVICE, LONG, LONG, 0);

    mt_meet_on_device();
    for (int i = 0; i < MANY; i++) {
        out[i] = mt_ints_make(MT_DEVICE, LONG, 0, 0);
        MPI_Irecv(out[i], LONG, MPI_INT, peer, TAG + i, MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    post_sends(in, peer, requests + MANY);
    for (int i = 0; (mt_rank() == 0) && !has_come(out[0], peer, 0) && (i < SECONDS * 50000); i++) {
        poll_once();
    }
    mt_expect((mt_rank() == 1) || has_come(out[0], peer, 0), "the first has come before a wait");
    MPI_Waitall(2 * MANY, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < MANY; i++) {
        mt_ints_expect(out[i], MT_DEVICE, LONG, LONG, peer, 0, "posted");
        mt_free(MT_DEVICE, out[i]);
    }
    mt_free(MT_DEVICE, in);
}

/*
 * A receiver that is elsewhere has its thread ask the sender for the message, and the sender
 * writes it: rank 1 waits, and rank 0 not before it is there.
 */
static void meet_elsewhere(int *out, int peer, int round)
{
    MPI_Request request;
    int        *in = mt_ints_make(MT_DEVICE, LONG, LONG, round);

    if (mt_rank() == 0) {
        MPI_Irecv(out, LONG, MPI_INT, peer, TAG, MPI_COMM_WORLD, &request);
    } else {
        MPI_Isend(in, LONG, MPI_INT, peer, TAG, MPI_COMM_WORLD, &request);
    }
    MPI_Barrier(MPI_COMM_WORLD); /* the descriptor is there */
    for (int i = 0; (mt_rank() == 0) && !has_come(out, peer, round) && (i < SECONDS * 50000); i++) {
        poll_once();
    }
    mt_expect((mt_rank() == 1) || has_come(out, peer, round), "it has come before the wait");
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    mt_free(MT_DEVICE, in);
}

/* The first message to a buffer is copied in the order of the program's own work on it. */
static void case_elsewhere(void)
{
    int *out = mt_ints_make(MT_DEVICE, LONG, 0, 0);

    mt_meet_on_device();
    for (int round = 1; round <= 3; round++) {
        meet_elsewhere(out, 1 - mt_rank(), round);
    }
    mt_free(MT_DEVICE, out);
}

/*
 * MPI_Irecv fetches nothing itself: the other rank may wait for what comes next. Other threads may
 * have the core of this one, so not all rounds count.
 */
static void case_later(void)
{
    enum { LATER = 8 };
    int *in = mt_ints_make(MT_DEVICE, LONG, LONG, 0), left = 0;

    mt_meet_on_device();
    __atomic_store_n(&slow, true, __ATOMIC_RELAXED);
    for (int i = 0; i < LATER; i++) {
        int        *out = mt_ints_make(MT_DEVICE, LONG, 0, 0);
        MPI_Request request = MPI_REQUEST_NULL;
        if (mt_rank() == 1) {
            MPI_Isend(in, LONG, MPI_INT, 0, TAG, MPI_COMM_WORLD, &request);
        }
        MPI_Barrier(MPI_COMM_WORLD); /* MPI has the message then */
        if (mt_rank() == 0) {
            MPI_Irecv(out, LONG, MPI_INT, 1, TAG, MPI_COMM_WORLD, &request);
            left += !has_come(out, 1, 0);
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        mt_ints_expect(out, MT_DEVICE, LONG, (mt_rank() == 0) ? LONG : 0, 1, 0, "later");
        mt_free(MT_DEVICE, out);
    }
    __atomic_store_n(&slow, false, __ATOMIC_RELAXED);
    mt_expect((mt_rank() == 1) || (left > 0), "MPI_Irecv fetched all %d messages", LATER);
    mt_free(MT_DEVICE, in);
}

/* ---- a message that is too long, beside one that is sent ---- */

enum { ROOM = 100 };

static bool is_over_within(MPI_Request *request, int ms, int *code_p)
{
    const struct timespec time = {0, 1000 * 1000};
    int                   done = 0;

    for (int i = 0; !done && (i < ms); i++) {
        *code_p = MPI_Test(request, &done, MPI_STATUS_IGNORE);
        nanosleep(&time, NULL);
    }
    return done || (*request == MPI_REQUEST_NULL);
}

/*
 * What MPI_Isendrecv receives is too long, which is known before what it sends has come: that goes
 * all the same.
 */
static void send_and_get_too_much(MPI_Comm comm, int *large)
{
    int         room[ROOM], code = MPI_SUCCESS, class = MPI_SUCCESS;
    MPI_Request request;
    isendrecv  *start = NULL;
    void       *address = mt_find("MPI_Isendrecv");

    memcpy(&start, &address, sizeof(start));
    start(large, LONG, MPI_INT, 1, TAG, room, ROOM, MPI_INT, 1, TAG, comm, &request);
    bool over = is_over_within(&request, 100, &code);
    mt_expect(!over, "what is sent is over before it has come");
    MPI_Send(room, 1, MPI_INT, 1, TAG + 1, MPI_COMM_WORLD);
    code = over ? code : MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Error_class(code, &class);
    mt_expect((class == MPI_ERR_TRUNCATE) || (class == MPI_SUCCESS) /* MPICH to 4.3, Open MPI 5 */,
              "a message that is too long: error class %d", class);
}

static void case_too_long(void)
{
    int     *large = mt_ints_make(MT_DEVICE, LONG, (mt_rank() == 0) ? LONG : 0, 3);
    int      several[2 * ROOM] = {0};
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    mt_meet_on_device();
    if (mt_rank() == 0) {
        send_and_get_too_much(comm, large);
    } else {
        MPI_Status status;
        MPI_Send(several, 2 * ROOM, MPI_INT, 0, TAG, comm);
        MPI_Recv(several, 1, MPI_INT, 0, TAG + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(large, LONG, MPI_INT, 0, TAG, comm, &status);
        mt_expect_status(&status, 0, TAG, LONG, "beside one that is too long");
        mt_ints_expect(large, MT_DEVICE, LONG, LONG, 0, 3, "beside one that is too long");
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_free(&comm);
    mt_free(MT_DEVICE, large);
}

int main(int argc, char **argv)
{
    static const struct mt_named_case cases[] = {
        {"first", case_first},       {"orders", case_orders}, {"short", case_short},
        {"early", case_early},       {"self", case_self},     {"replace", case_replace},
        {"replaced", case_replaced}, {"answer", case_answer}, {"faces", case_faces},
        {"posted", case_posted},     {"later", case_later},   {"elsewhere", case_elsewhere},
        {"too-long", case_too_long}, {"huge", case_huge},     {NULL, NULL},
    };

    own_thread = pthread_self();
    mt_begin(&argc, &argv, true);
    path = (argc > 3) ? argv[3] : NULL;
    return mt_run_to_end(cases, argc, argv);
}
