/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Non-blocking collectives to which rank 1 passes host memory and the others device memory: an
 * error that names both; and what looks alike and is right, where none comes.
 *
 *   mpi_mixed RUNTIME CASE [COUNT]
 * first: in the first collective of MPI_COMM_WORLD; later: after others; dup, split, cart, nested:
 * the first of a communicator made so; blocked: a blocking one of a duplicate; idup: of one that
 * xccl does not know from the start; met: after others there; test, all, barrier, blocking: as
 * first, with MPI_Test, with MPI_Waitall, with a barrier before the wait, and with a blocking call
 * instead of it; none: as first, and rank 1 uses no device; return: as first, and the error comes
 * back. apart: each rank begins with another communicator of the same ranks, all as it is to be;
 * twice: the numbers of calls are equal on several; derived: on parts of the world, and their
 * duplicates; vector: counts for each rank, which MPI carries; late: rank 1 comes after two
 * seconds; meanwhile: a thread of rank 1 is in a call of the same number on a duplicate that the
 * others come to later.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <mpi.h>

#include "support.h"

enum { LATE_US = 2000000, MANY = 20 };

static int count = 4096;

static enum mt_where mine(void)
{
    return (mt_rank() == 1) ? MT_HOST : MT_DEVICE;
}

static MPI_Request begin(struct mt_pair *pair, MPI_Comm comm, int salt)
{
    MPI_Request request = MPI_REQUEST_NULL;

    mt_pair_fill(pair, count, comm, salt);
    MPI_Iallreduce(pair->in, pair->out, count, MPI_FLOAT, MPI_SUM, comm, &request);
    return request;
}

static void check(struct mt_pair *pair, int salt)
{
    mt_pair_expect_sum(pair, count, mt_size(), salt, "MPI_Iallreduce");
    mt_pair_free(pair);
}

static void meet(MPI_Comm comm, int times)
{
    struct mt_pair pair = mt_pair_make(MT_DEVICE, count);

    for (int i = 0; i < times; i++) {
        mt_pair_allreduce(&pair, count, comm, i);
    }
    mt_pair_free(&pair);
}

static void wait_as(const char *how, MPI_Request *request)
{
    struct mt_pair pair;
    int            over = 0;

    if (strcmp(how, "test") == 0) {
        while (!over) {
            MPI_Test(request, &over, MPI_STATUS_IGNORE);
            usleep(1000);
        }
    } else if (strcmp(how, "all") == 0) {
        MPI_Waitall(1, request, MPI_STATUSES_IGNORE);
    } else {
        if (strcmp(how, "barrier") == 0) {
            MPI_Barrier(MPI_COMM_WORLD);
        } else if (strcmp(how, "blocking") == 0) {
            pair = mt_pair_make(MT_DEVICE, count);
            mt_pair_allreduce(&pair, count, MPI_COMM_WORLD, 2);
        }
        MPI_Wait(request, MPI_STATUS_IGNORE);
    }
}

/* One of its own, that the ranks have not used before. */
static MPI_Comm make(const char *how)
{
    int         dims[1] = {mt_size()}, periods[1] = {0};
    MPI_Comm    comm = MPI_COMM_WORLD, inner;
    MPI_Request request;

    if ((strcmp(how, "dup") == 0) || (strcmp(how, "met") == 0) || (strcmp(how, "blocked") == 0)) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    } else if (strcmp(how, "split") == 0) {
        MPI_Comm_split(MPI_COMM_WORLD, (mt_rank() == 2) ? 1 : 0, -mt_rank(), &comm);
    } else if (strcmp(how, "cart") == 0) {
        MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &comm);
    } else if (strcmp(how, "nested") == 0) {
        MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &inner);
        MPI_Comm_dup_with_info(inner, MPI_INFO_NULL, &comm);
    } else if (strcmp(how, "idup") == 0) {
        MPI_Comm_idup(MPI_COMM_WORLD, &comm, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    return comm;
}

/* No result is looked at, and where no error comes it does not end. */
static void differ(const char *how)
{
    struct mt_pair pair = mt_pair_make(mine(), count);
    MPI_Comm       comm = make(how);
    char           text[MPI_MAX_ERROR_STRING];
    int            length;

    if ((strcmp(how, "later") == 0) || (strcmp(how, "met") == 0)) {
        meet(comm, MANY);
    }
    if (strcmp(how, "return") == 0) {
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    }
    if (strcmp(how, "blocked") == 0) {
        MPI_Allreduce(pair.in, pair.out, count, MPI_FLOAT, MPI_SUM, comm);
    }
    MPI_Request request = begin(&pair, comm, 1);
    if ((strcmp(how, "return") == 0) && (mt_rank() != 1)) {
        int code = MPI_Wait(&request, MPI_STATUS_IGNORE);
        mt_expect(code != MPI_SUCCESS, "no error came");
        MPI_Error_string(code, text, &length);
        printf("rank %d: %s\n", mt_rank(), text);
        fflush(stdout);
        _exit(7);
    }
    wait_as(how, &request);
    while (true) { /* MPI may have ended it here, with data of another call */
        sleep(1);
    }
}

/* Rank 1 begins with host memory on a duplicate, and comes to the world's first call later. */
static void begin_apart(void)
{
    struct mt_pair host = mt_pair_make(MT_HOST, count), device = mt_pair_make(MT_DEVICE, count);
    MPI_Comm       dup;
    MPI_Request    requests[2];

    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    if (mt_rank() == 1) {
        requests[0] = begin(&host, dup, 1);
        usleep(LATE_US);
        requests[1] = begin(&device, MPI_COMM_WORLD, 2);
    } else {
        requests[1] = begin(&device, MPI_COMM_WORLD, 2);
        MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
        requests[0] = begin(&host, dup, 1);
    }
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    check(&host, 1);
    check(&device, 2);
    MPI_Comm_free(&dup);
}

/* Calls of the same number on duplicates, one on host memory, before and after one is freed. */
static void number_twice(void)
{
    MPI_Comm dup[3];

    for (int i = 0; i < 3; i++) {
        struct mt_pair host = mt_pair_make(MT_HOST, count), device = mt_pair_make(MT_DEVICE, count);
        MPI_Request    requests[2];
        MPI_Comm_dup(MPI_COMM_WORLD, &dup[i]);
        requests[0] = begin(&host, dup[i], i);
        if (mt_rank() == 1) {
            usleep(LATE_US / 2);
        }
        requests[1] = begin(&device, (i == 0) ? MPI_COMM_WORLD : dup[i - 1], i + 1);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        check(&host, i);
        check(&device, i + 1);
        if (i > 0) {
            MPI_Comm_free(&dup[i - 1]);
        }
    }
    MPI_Comm_free(&dup[2]);
}

/* The first call on comm, where a rank may come to it late. */
static void first_call(MPI_Comm comm, enum mt_where where, bool late)
{
    struct mt_pair pair = mt_pair_make(where, count);
    MPI_Request    request;
    int            size;

    MPI_Comm_size(comm, &size);
    if (late) {
        usleep(LATE_US / 2);
    }
    mt_pair_fill(&pair, count, comm, size);
    MPI_Iallreduce(pair.in, pair.out, count, MPI_FLOAT, MPI_SUM, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    mt_pair_expect_sum(&pair, count, size, size, "on a part");
    mt_pair_free(&pair);
}

/*
 * Parts of the same split, one on host memory and the other on device memory, in calls of the same
 * number; and communicators of the same ranks, of which each rank is in another one meanwhile.
 */
static void use_parts(void)
{
    enum { ROUNDS = 3 };
    bool          odd = (mt_rank() % 2 == 1), late = (mt_rank() >= mt_size() / 2);
    enum mt_where mine_now = odd ? MT_HOST : MT_DEVICE, other = odd ? MT_DEVICE : MT_HOST;

    for (int round = 0; round < ROUNDS; round++) {
        MPI_Comm part, twin, whole;

        MPI_Comm_split(MPI_COMM_WORLD, odd, mt_rank(), &part);
        MPI_Comm_dup(part, &twin);
        MPI_Comm_dup(MPI_COMM_WORLD, &whole);
        first_call(part, mine_now, late);
        first_call(twin, other, !late);
        first_call(whole, (round == 1) ? MT_HOST : MT_DEVICE, late);
        MPI_Comm_free(&twin);
        MPI_Comm_free(&part);
        MPI_Comm_free(&whole);
    }
}

static void pass_vectors(void)
{
    struct mt_pair pair = mt_pair_make(mine(), count * mt_size());
    int            counts[8], displs[8];
    MPI_Request    request;

    for (int i = 0; i < mt_size(); i++) {
        counts[i] = count;
        displs[i] = i * count;
    }
    meet(MPI_COMM_WORLD, MANY);
    if (mt_rank() == 1) {
        usleep(LATE_US);
    }
    MPI_Ialltoallv(pair.in, counts, displs, MPI_FLOAT, pair.out, counts, displs, MPI_FLOAT,
                   MPI_COMM_WORLD, &request);
    if (mt_rank() == 0) {
        usleep(LATE_US);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    mt_pair_free(&pair);
}

static void come_late(void)
{
    struct mt_pair pair = mt_pair_make(MT_DEVICE, count);

    for (int i = 0; i < 2; i++) {
        if (mt_rank() == 1) {
            usleep(LATE_US);
        }
        MPI_Request request = begin(&pair, MPI_COMM_WORLD, i);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    check(&pair, 1);
}

static MPI_Comm twin; /* a duplicate that one rank uses before the others */

static void *broadcast_on_twin(void *values)
{
    mt_memory_enter();
    MPI_Bcast(values, count, MPI_FLOAT, 0, twin);
    return NULL;
}

static void wait_meanwhile(void)
{
    struct mt_pair host = mt_pair_make(MT_HOST, count), device = mt_pair_make(MT_DEVICE, count);
    pthread_t      thread;
    int            provided;

    MPI_Query_thread(&provided);
    mt_expect(provided == MPI_THREAD_MULTIPLE, "this MPI gives no MPI_THREAD_MULTIPLE\n");
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    if (mt_rank() == 1) {
        pthread_create(&thread, NULL, broadcast_on_twin, host.out);
        usleep(LATE_US);
    }
    mt_pair_fill(&device, count, MPI_COMM_WORLD, 1);
    MPI_Bcast(device.in, count, MPI_FLOAT, 0, MPI_COMM_WORLD);
    if (mt_rank() == 1) {
        pthread_join(thread, NULL);
    } else {
        broadcast_on_twin(host.out);
    }
    MPI_Comm_free(&twin);
    mt_pair_free(&host);
    mt_pair_free(&device);
}

int main(int argc, char **argv)
{
    const char *what = (argc > 2) ? argv[2] : "first";

    count = (argc > 3) ? atoi(argv[3]) : count;
    mt_begin(&argc, &argv, false);
    if ((strcmp(what, "none") != 0) || (mt_rank() != 1)) {
        mt_memory_open(mt_runtime(), mt_rank());
    }
    if (strcmp(what, "apart") == 0) {
        begin_apart();
    } else if (strcmp(what, "twice") == 0) {
        number_twice();
    } else if (strcmp(what, "derived") == 0) {
        use_parts();
    } else if (strcmp(what, "vector") == 0) {
        pass_vectors();
    } else if (strcmp(what, "late") == 0) {
        come_late();
    } else if (strcmp(what, "meanwhile") == 0) {
        wait_meanwhile();
    } else {
        differ(what);
    }
    mt_summary();
    MPI_Finalize();
    return mt_status();
}
