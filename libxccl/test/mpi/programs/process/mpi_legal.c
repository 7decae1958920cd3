/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What real programs do besides: requests of every kind in one array, sparse exchanges whose
 * receivers do not know of them, several devices in one process, memory that comes again, children.
 * Usage: mpi_legal cuda|rocm|none CASE
 */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support.h"

enum { COUNT = 3000, TAG = 3 };

static int next_rank(void)
{
    return (mt_rank() + 1) % mt_size();
}

static int last_rank(void)
{
    return (mt_rank() + mt_size() - 1) % mt_size();
}

/* ---- requests of every kind in one array ---- */

enum { SEND, RECEIVE, REDUCE, OWN, CANCELLED, NUM_KINDS };
enum { OWN_SOURCE = 77, OWN_COUNT = 3 };

static int own_query(void *extra, MPI_Status *status)
{
    (void)extra;
    MPI_Status_set_elements(status, MPI_INT, OWN_COUNT);
    MPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = OWN_SOURCE;
    status->MPI_TAG = TAG;
    return MPI_SUCCESS;
}

static int own_free(void *extra)
{
    ++*(int *)extra;
    return MPI_SUCCESS;
}

static int own_cancel(void *extra, int complete)
{
    (void)extra;
    (void)complete;
    return MPI_SUCCESS;
}

/* Persistent messages, a collective, a request of the program's own, and one that is cancelled. */
static void begin_all(struct mt_pair *pair, const int *in, int *out, int *never, int *freed,
                      MPI_Request requests[])
{
    MPI_Comm world = MPI_COMM_WORLD;

    MPI_Send_init(in, COUNT, MPI_INT, next_rank(), TAG, world, &requests[SEND]);
    MPI_Recv_init(out, COUNT, MPI_INT, MPI_ANY_SOURCE, TAG, world, &requests[RECEIVE]);
    MPI_Startall(2, requests);
    MPI_Iallreduce(pair->in, pair->out, COUNT, MPI_FLOAT, MPI_SUM, world, &requests[REDUCE]);
    MPI_Grequest_start(own_query, own_free, own_cancel, freed, &requests[OWN]);
    MPI_Grequest_complete(requests[OWN]);
    MPI_Irecv(never, COUNT, MPI_INT, last_rank(), TAG + 1, world, &requests[CANCELLED]);
    MPI_Cancel(&requests[CANCELLED]);
}

/* One call; returns how many are over now. */
static int complete_some(int way, MPI_Request requests[], int indices[], MPI_Status statuses[])
{
    int count = 1, flag = 1;

    switch (way) {
    case 0:
        MPI_Waitany(NUM_KINDS, requests, indices, statuses);
        return 1;
    case 1:
        MPI_Testany(NUM_KINDS, requests, indices, &flag, statuses);
        return flag;
    case 2:
        MPI_Waitsome(NUM_KINDS, requests, &count, indices, statuses);
        return count;
    default:
        MPI_Testsome(NUM_KINDS, requests, &count, indices, statuses);
        return count;
    }
}

static void complete_all(int way, MPI_Request requests[], MPI_Status statuses[])
{
    int        indices[NUM_KINDS], seen[NUM_KINDS] = {0};
    MPI_Status some[NUM_KINDS];

    for (int left = NUM_KINDS; left > 0;) {
        int over = complete_some(way, requests, indices, some);
        mt_expect(over != MPI_UNDEFINED, "way %d: nothing is active, but %d are left", way, left);
        for (int i = 0; i < over; i++) {
            seen[indices[i]]++;
            statuses[indices[i]] = some[i];
        }
        left = (over == MPI_UNDEFINED) ? 0 : left - over;
    }
    for (int i = 0; i < NUM_KINDS; i++) {
        mt_expect(seen[i] == 1, "way %d: request %d was over %d times", way, i, seen[i]);
    }
}

static void case_kinds(void)
{
    enum { WAYS = 4 };
    MPI_Request requests[NUM_KINDS];
    MPI_Status  statuses[NUM_KINDS];

    for (int way = 0; way < WAYS; way++) {
        struct mt_pair pair = mt_pair_make(MT_DEVICE, COUNT);
        int           *in = mt_ints_make(MT_DEVICE, COUNT, COUNT, way);
        int           *out = mt_ints_make(MT_DEVICE, COUNT, 0, 0),
            *never = mt_ints_make(MT_DEVICE, COUNT, 0, 0);
        int freed = 0, cancelled = 0;
        mt_pair_fill(&pair, COUNT, MPI_COMM_WORLD, way);
        begin_all(&pair, in, out, never, &freed, requests);
        complete_all(way, requests, statuses);
        mt_expect_status(&statuses[RECEIVE], last_rank(), TAG, COUNT, "a persistent receive");
        mt_expect_status(&statuses[OWN], OWN_SOURCE, TAG, OWN_COUNT, "the program's own request");
        MPI_Test_cancelled(&statuses[CANCELLED], &cancelled);
        mt_expect(cancelled && (freed == 1), "cancelled: %d, freed: %d", cancelled, freed);
        mt_ints_expect(out, MT_DEVICE, COUNT, COUNT, last_rank(), way, "a persistent receive");
        mt_ints_expect(never, MT_DEVICE, COUNT, 0, 0, 0, "a cancelled receive");
        mt_pair_expect_sum(&pair, COUNT, mt_size(), way, "MPI_Iallreduce");
        MPI_Request_free(&requests[SEND]);
        MPI_Request_free(&requests[RECEIVE]);
        mt_pair_free(&pair);
        mt_free(MT_DEVICE, in);
        mt_free(MT_DEVICE, out);
        mt_free(MT_DEVICE, never);
    }
}

/* ---- persistent messages, started again and again ---- */

/* Both are over, by one kind of call; their statuses. */
static void complete_both(int way, MPI_Request requests[2], MPI_Status statuses[2])
{
    int        flag = 0, which, count, both[2];
    MPI_Status some[2];

    switch (way) {
    case 0:
        MPI_Waitall(2, requests, statuses);
        break;
    case 1:
        while (!flag) {
            MPI_Testall(2, requests, &flag, statuses);
        }
        break;
    case 2:
        MPI_Wait(&requests[0], &statuses[0]);
        MPI_Wait(&requests[1], &statuses[1]);
        break;
    case 3:
        for (int i = 0; i < 2; i++) {
            MPI_Waitany(2, requests, &which, some);
            statuses[which] = some[0];
        }
        break;
    default:
        for (int over = 0; over < 2; over += count) {
            MPI_Waitsome(2, requests, &count, both, some);
            for (int i = 0; i < count; i++) {
                statuses[both[i]] = some[i];
            }
        }
    }
}

static void expect_inactive(MPI_Request requests[2], const char *what)
{
    int        flag = 0, which = 0;
    MPI_Status status = {.MPI_SOURCE = 0, .MPI_TAG = 0};

    MPI_Testany(2, requests, &which, &flag, MPI_STATUS_IGNORE);
    mt_expect(flag && (which == MPI_UNDEFINED), "%s: request %d is active", what, which);
    MPI_Waitany(2, requests, &which, &status);
    mt_expect(which == MPI_UNDEFINED, "%s: MPI_Waitany gives request %d", what, which);
    mt_expect((status.MPI_SOURCE == MPI_ANY_SOURCE) && (status.MPI_TAG == MPI_ANY_TAG),
              "%s: the status of MPI_Waitany is not empty", what);
}

static void start_again_and_again(int count)
{
    enum { WAYS = 5 };
    int        *in = mt_ints_make(MT_DEVICE, count, count, 1), cancelled;
    int        *out = mt_ints_make(MT_DEVICE, count, 0, 0);
    MPI_Request requests[2];
    MPI_Status  statuses[2];

    MPI_Recv_init(out, count, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[0]);
    MPI_Ssend_init(in, count / 2, MPI_INT, next_rank(), TAG, MPI_COMM_WORLD, &requests[1]);
    for (int way = 0; way < WAYS; way++) {
        MPI_Startall(2, requests);
        complete_both(way, requests, statuses);
        mt_expect_status(&statuses[0], last_rank(), TAG, count / 2, "a receive started again");
        mt_ints_expect(out, MT_DEVICE, count, count / 2, last_rank(), 1, "one started again");
        expect_inactive(requests, "after its end");
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Start(&requests[0]);
    MPI_Cancel(&requests[0]);
    MPI_Wait(&requests[0], &statuses[0]);
    MPI_Test_cancelled(&statuses[0], &cancelled);
    mt_expect(cancelled, "a persistent receive is not cancelled");
    expect_inactive(requests, "after its cancelling");
    MPI_Barrier(MPI_COMM_WORLD); /* or it would have met what is sent next */
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    mt_free(MT_DEVICE, in);
    mt_free(MT_DEVICE, out);
}

static void case_started(void)
{
    start_again_and_again(10);
    start_again_and_again(COUNT);
}

/* ---- sparse exchange: synchronous sends, probes and a barrier ---- */

enum { MOST = 64 };

static bool sends(int from, int to, int round)
{
    return (from * 5 + to * 3 + round) % 3 != 0;
}

static int length(int from, int to, int round)
{
    return 1 + (from * 977 + to * 331 + round * 1511) % COUNT;
}

static int send_to_all(int round, int *buffers[], MPI_Request requests[])
{
    int count = 0;

    for (int to = 0; to < mt_size(); to++) {
        if (sends(mt_rank(), to, round)) {
            int n = length(mt_rank(), to, round);
            buffers[count] = mt_ints_make(MT_DEVICE, n, n, to);
            MPI_Issend(buffers[count], n, MPI_INT, to, round, MPI_COMM_WORLD, &requests[count]);
            count++;
        }
    }
    return count;
}

static int receive_one(int round)
{
    MPI_Status status;
    int        flag, count;

    MPI_Iprobe(MPI_ANY_SOURCE, round, MPI_COMM_WORLD, &flag, &status);
    if (flag) {
        int from = status.MPI_SOURCE, n = length(from, mt_rank(), round);
        MPI_Get_count(&status, MPI_INT, &count);
        mt_expect(count == n, "a probe says %d integers, not %d", count, n);
        int *buffer = mt_ints_make(MT_DEVICE, n, 0, 0);
        MPI_Recv(buffer, n, MPI_INT, from, round, MPI_COMM_WORLD, &status);
        mt_ints_expect(buffer, MT_DEVICE, n, n, from, mt_rank(), "a sparse exchange");
        mt_free(MT_DEVICE, buffer);
    }
    return flag;
}

static void case_sparse(void)
{
    enum { ROUNDS = 6 };

    for (int round = 0; round < ROUNDS; round++) {
        MPI_Request requests[MOST], barrier = MPI_REQUEST_NULL;
        int        *buffers[MOST], received = 0, wanted = 0, all = 0, over = 0;
        int         count = send_to_all(round, buffers, requests);
        while (!over) {
            received += receive_one(round);
            if (all) {
                MPI_Test(&barrier, &over, MPI_STATUS_IGNORE);
                continue;
            }
            MPI_Testall(count, requests, &all, MPI_STATUSES_IGNORE);
            if (all) {
                MPI_Ibarrier(MPI_COMM_WORLD, &barrier);
            }
        }
        for (int from = 0; from < mt_size(); from++) {
            wanted += sends(from, mt_rank(), round);
        }
        mt_expect(received == wanted, "%d messages instead of %d", received, wanted);
        for (int i = 0; i < count; i++) {
            mt_free(MT_DEVICE, buffers[i]);
        }
    }
}

/* ---- several devices in one process ---- */

static void use_device(int number)
{
    mt_memory_open(mt_runtime(), mt_rank() + number);
}

static void expect_all(int *out, int count, int which)
{
    for (int from = 0; from < mt_size(); from++) {
        mt_ints_expect(out + from * count, MT_DEVICE, count, count, from, which, "MPI_Allgather");
    }
}

/* Each buffer on another device, and yet another one current. */
static void case_devices(void)
{
    enum { DEVICES = 3 };
    int *in[DEVICES], *out[DEVICES], all = COUNT * mt_size();

    for (int i = 0; i < DEVICES; i++) {
        use_device(i);
        in[i] = mt_ints_make(MT_DEVICE, COUNT, COUNT, i);
        out[i] = mt_ints_make(MT_DEVICE, all, 0, 0);
    }
    for (int i = 0; i < DEVICES * DEVICES; i++) {
        int from = i % DEVICES, to = i / DEVICES;
        use_device(i + 1);
        MPI_Sendrecv(in[from], COUNT, MPI_INT, next_rank(), TAG, out[to], COUNT, MPI_INT,
                     last_rank(), TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        mt_ints_expect(out[to], MT_DEVICE, COUNT, COUNT, last_rank(), from, "MPI_Sendrecv");
        MPI_Allgather(in[from], COUNT, MPI_INT, out[to], COUNT, MPI_INT, MPI_COMM_WORLD);
        expect_all(out[to], COUNT, from);
    }
    for (int i = 0; i < DEVICES; i++) {
        mt_free(MT_DEVICE, in[i]);
        mt_free(MT_DEVICE, out[i]);
    }
}

/* ---- memory that is freed, and comes again at the same address ---- */

/* A call without data may name what was freed. It says nothing about what comes there later. */
static int *make_again(bool named_by_collective)
{
    int *gone = mt_ints_make(MT_DEVICE, COUNT, 0, 0);

    mt_free(MT_DEVICE, gone);
    if (named_by_collective) {
        MPI_Allreduce(MPI_IN_PLACE, gone, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    } else {
        MPI_Recv(gone, 0, MPI_INT, MPI_PROC_NULL, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    int *again = mt_ints_make(MT_DEVICE, COUNT, COUNT, 0);
    mt_expect((again == gone) || (mt_runtime()[0] == 'n'), "the address did not come again");
    return again;
}

static void gather_all(const int *in)
{
    enum { MOST_RANKS = 8 };
    int counts[MOST_RANKS], displs[MOST_RANKS];
    int all = COUNT * mt_size(), *out = mt_ints_make(MT_DEVICE, all, 0, 0);

    for (int i = 0; i < mt_size(); i++) {
        counts[i] = COUNT;
        displs[i] = COUNT * i;
    }
    MPI_Gatherv(in, COUNT, MPI_INT, out, counts, displs, MPI_INT, 0, MPI_COMM_WORLD);
    if (mt_rank() == 0) {
        expect_all(out, COUNT, 0);
    }
    mt_free(MT_DEVICE, out);
}

static void send_persistent(const int *in)
{
    int        *out = mt_ints_make(MT_DEVICE, COUNT, 0, 0);
    MPI_Request request;

    MPI_Send_init(in, COUNT, MPI_INT, next_rank(), TAG, MPI_COMM_WORLD, &request);
    MPI_Start(&request);
    MPI_Recv(out, COUNT, MPI_INT, last_rank(), TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
    mt_ints_expect(out, MT_DEVICE, COUNT, COUNT, last_rank(), 0, "MPI_Send_init");
    mt_free(MT_DEVICE, out);
}

static void receive_persistent(int *out)
{
    int        *in = mt_ints_make(MT_DEVICE, COUNT, COUNT, 1);
    MPI_Request request;

    MPI_Recv_init(out, COUNT, MPI_INT, last_rank(), TAG, MPI_COMM_WORLD, &request);
    MPI_Start(&request);
    MPI_Send(in, COUNT, MPI_INT, next_rank(), TAG, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
    mt_ints_expect(out, MT_DEVICE, COUNT, COUNT, last_rank(), 1, "MPI_Recv_init");
    mt_free(MT_DEVICE, in);
}

static void case_again(void)
{
    for (int round = 0; round < 4; round++) {
        int *buffer = make_again(round % 2 == 0);
        if (round / 2 == 0) {
            gather_all(buffer);
            send_persistent(buffer);
        } else {
            receive_persistent(buffer);
        }
        mt_free(MT_DEVICE, buffer);
    }
}

/* ---- children ---- */

/* A thread that loads a library holds a lock of AddressSanitizer's, and exit() takes it. */
#ifdef __SANITIZE_ADDRESS__
enum { MAY_EXIT = 0 };
#else
enum { MAY_EXIT = 1 };
#endif

/* They end in every way, while messages and collectives of the parent are under way. */
static void case_fork(void)
{
    enum { ROUNDS = 3 };
    int           *in = mt_ints_make(MT_DEVICE, COUNT, COUNT, 0);
    struct mt_pair pair = mt_pair_make(MT_DEVICE, COUNT);

    for (int round = 0; round < ROUNDS; round++) {
        int        *out = mt_ints_make(MT_DEVICE, COUNT, 0, 0), status = -1;
        MPI_Request requests[3];
        mt_pair_fill(&pair, COUNT, MPI_COMM_WORLD, round);
        MPI_Irecv(out, COUNT, MPI_INT, last_rank(), TAG, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(in, COUNT, MPI_INT, next_rank(), TAG, MPI_COMM_WORLD, &requests[1]);
        MPI_Iallreduce(pair.in, pair.out, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &requests[2]);
        pid_t child = fork();
        if (child == 0) {
            if (round == 0) {
                execlp("true", "true", (char *)NULL);
            } else if ((round == 1) && MAY_EXIT) {
                exit(0);
            }
            _exit(round == 0);
        }
        MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
        waitpid(child, &status, 0);
        mt_expect(status == 0, "a child ended with %d", status);
        mt_ints_expect(out, MT_DEVICE, COUNT, COUNT, last_rank(), 0, "a message around a fork");
        mt_pair_expect_sum(&pair, COUNT, mt_size(), round, "a collective around a fork");
        mt_free(MT_DEVICE, out);
    }
    mt_pair_free(&pair);
    mt_free(MT_DEVICE, in);
}

int main(int argc, char **argv)
{
    static const struct mt_named_case cases[] = {
        {"kinds", case_kinds},
        {"started", case_started},
        {"sparse", case_sparse},
        {"devices", case_devices},
        {"again", case_again},
        {"fork", case_fork},
        {NULL, NULL},
    };

    mt_begin(&argc, &argv, true);
    return mt_run_to_end(cases, argc, argv);
}
