/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs that reset their device, as cudaDeviceReset() does, or use contexts of their own. All of
 * it is legal while nothing is pending: what xccl keeps on the device is not the program's affair.
 * Usage: mpi_reset cuda|rocm CASE
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support.h"

enum { TAG = 7, SMALL = 100, LARGE = 300000, ROUNDS = 4, MANY = 20 };
static const int sizes[] = {1, SMALL, LARGE};

static int next_rank(void)
{
    return (mt_rank() + 1) % mt_size();
}

static int last_rank(void)
{
    return (mt_rank() + mt_size() - 1) % mt_size();
}

/* A ring of messages, between two kinds of memory. */
static void ring(enum mt_where from, enum mt_where to, int count, int salt, const char *what)
{
    int       *in = mt_ints_make(from, count, count, salt);
    int       *out = mt_ints_make(to, count, 0, 0);
    MPI_Status status;

    MPI_Sendrecv(in, count, MPI_INT, next_rank(), TAG, out, count, MPI_INT, last_rank(), TAG,
                 MPI_COMM_WORLD, &status);
    mt_expect_status(&status, last_rank(), TAG, count, what);
    mt_ints_expect(out, to, count, count, last_rank(), salt, what);
    mt_free(from, in);
    mt_free(to, out);
}

static void messages(int salt, const char *what)
{
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            ring(MT_HOST, MT_DEVICE, sizes[i], salt + round, what);
            ring(MT_DEVICE, MT_HOST, sizes[i], salt + round, what);
            ring(MT_DEVICE, MT_DEVICE, sizes[i], salt + round, what);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

static void collectives(MPI_Comm comm, int rounds, int salt)
{
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct mt_pair pair = mt_pair_make(MT_DEVICE, sizes[i] * mt_size());

        for (int round = 0; round < rounds; round++) {
            mt_pair_allreduce(&pair, sizes[i], comm, salt + round);
            mt_pair_alltoall(&pair, sizes[i], comm);
        }
        mt_pair_free(&pair);
    }
}

static void non_blocking(MPI_Comm comm, int salt)
{
    struct mt_pair pair = mt_pair_make(MT_DEVICE, SMALL);
    MPI_Request    request;
    int            ranks;

    MPI_Comm_size(comm, &ranks);
    for (int round = 0; round < ROUNDS; round++) {
        mt_pair_fill(&pair, SMALL, comm, salt + round);
        MPI_Iallreduce(pair.in, pair.out, SMALL, MPI_FLOAT, MPI_SUM, comm, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        mt_pair_expect_sum(&pair, SMALL, ranks, salt + round, "MPI_Iallreduce");
    }
    mt_pair_free(&pair);
}

/* All that leaves something on the device. */
static void use(int salt)
{
    messages(salt, "messages");
    collectives(MPI_COMM_WORLD, MANY, salt);
    non_blocking(MPI_COMM_WORLD, salt);
}

/* The last thing that many programs do before MPI_Finalize. */
static void at_the_end(void)
{
    use(1);
    MPI_Barrier(MPI_COMM_WORLD);
    mt_memory_reset(false);
}

/* The device is in use again, with other memory. */
static void at_the_end_again(void)
{
    use(1);
    MPI_Barrier(MPI_COMM_WORLD);
    mt_memory_reset(true);
    mt_free(MT_DEVICE, mt_ints_make(MT_DEVICE, LARGE, LARGE, 1));
}

/* Only the first rank resets, and the others end as always. */
static void at_the_end_alone(void)
{
    use(1);
    MPI_Barrier(MPI_COMM_WORLD);
    if (mt_rank() == 0) {
        mt_memory_reset(false);
    }
}

/* Before anything was loaded, or while it may be. */
static void early(void)
{
    ring(MT_DEVICE, MT_DEVICE, SMALL, 1, "before");
    MPI_Barrier(MPI_COMM_WORLD);
    mt_memory_reset(true);
    messages(2, "after");
}

/* Messages go on. */
static void between_messages(void)
{
    for (int round = 0; round < 3; round++) {
        messages(round * 10, (round == 0) ? "before" : "after");
        MPI_Barrier(MPI_COMM_WORLD);
        mt_memory_reset(true);
    }
    messages(50, "at last");
}

/* A rank that has reset its device receives from others into host memory at first, and from itself.
 */
static void between_messages_alone(void)
{
    messages(1, "before");
    for (int rank = 0; rank < mt_size(); rank++) {
        if (rank == mt_rank()) {
            mt_memory_reset(true);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        ring((rank == mt_rank()) ? MT_HOST : MT_DEVICE, (rank == mt_rank()) ? MT_HOST : MT_DEVICE,
             LARGE, rank, "one rank was reset");
        messages(10 * rank, "after");
    }
}

/* MPI_Pack, and a message of rows. */
static void packing(int salt)
{
    enum { ROWS = 50, WIDTH = 3, STRIDE = 7 };
    MPI_Datatype rows;
    int         *in = mt_ints_make(MT_DEVICE, ROWS * STRIDE, ROWS * STRIDE, salt);
    int         *out = mt_ints_make(MT_DEVICE, ROWS * STRIDE, ROWS * STRIDE, salt);
    int          position = 0, there = 0;
    char        *packed = mt_alloc(MT_DEVICE, ROWS * WIDTH * sizeof(int));

    MPI_Type_vector(ROWS, WIDTH, STRIDE, MPI_INT, &rows);
    MPI_Type_commit(&rows);
    MPI_Pack(in, 1, rows, packed, ROWS * WIDTH * (int)sizeof(int), &position, MPI_COMM_WORLD);
    MPI_Unpack(packed, position, &there, out, 1, rows, MPI_COMM_WORLD);
    mt_ints_expect(out, MT_DEVICE, ROWS * STRIDE, ROWS * STRIDE, mt_rank(), salt, "packed");
    MPI_Type_free(&rows);
    mt_free(MT_DEVICE, packed);
    mt_free(MT_DEVICE, in);
    mt_free(MT_DEVICE, out);
}

static void between_packing(void)
{
    packing(1);
    mt_memory_reset(true);
    packing(2);
}

/* Collectives of before the reset, and whether the same communicator goes on. */
static void between_collectives(void)
{
    struct mt_pair pair;
    MPI_Comm       comm;
    int            error = MPI_SUCCESS;

    collectives(MPI_COMM_WORLD, MANY, 1);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Barrier(MPI_COMM_WORLD);
    mt_memory_reset(true);
    pair = mt_pair_make(MT_DEVICE, SMALL);
    for (int round = 0; round < ROUNDS; round++) {
        mt_pair_fill(&pair, SMALL, MPI_COMM_WORLD, round);
        error = MPI_Allreduce(pair.in, pair.out, SMALL, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        if (error == MPI_SUCCESS) {
            mt_pair_expect_sum(&pair, SMALL, mt_size(), round, "after the reset");
        } else {
            char text[MPI_MAX_ERROR_STRING];
            int  length;
            MPI_Error_string(error, text, &length);
            mt_expect(strstr(text, "reset") != NULL, "the error does not say why: %s", text);
        }
    }
    mt_pair_free(&pair);
    mt_expect((mt_rank() != 0) || (error == MPI_SUCCESS) || (mt_size() > 1), "alone");
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    collectives(comm, MANY, 5);
    non_blocking(comm, 5);
    MPI_Comm_free(&comm);
    messages(9, "after");
}

/*
 * One rank's device memory begins anew, where the others still have its first one mapped, though no
 * communicator uses that any more.
 */
static void between_collectives_alone(void)
{
    MPI_Comm comm;

    for (int rank = 0; rank <= mt_size(); rank++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        collectives(comm, MANY, rank);
        mt_expect_path("direct", "one rank was reset");
        MPI_Comm_free(&comm);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == mt_rank()) {
            mt_memory_reset(true);
        }
    }
}

/* Until the direct path has them, on a communicator that stays in the making. */
static void until_direct(MPI_Comm comm)
{
    enum { MOST = 3000, MORE = 20 };
    struct mt_pair pair = mt_pair_make(MT_DEVICE, SMALL);
    MPI_Request    request;
    int            carried = 0;

    for (int round = 0; (round < MOST) && (carried < MORE); round++) {
        mt_pair_fill(&pair, SMALL, comm, round);
        MPI_Iallreduce(pair.in, pair.out, SMALL, MPI_FLOAT, MPI_SUM, comm, &request);
        carried += (strcmp(mt_last_path(), "direct") == 0);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        mt_pair_expect_sum(&pair, SMALL, mt_size(), round, "before the reset");
    }
    mt_expect(carried == MORE, "only %d calls were direct", carried);
    mt_pair_free(&pair);
}

/* How many of so many calls fail; the others' requests are there at once. */
static int failed_of(MPI_Comm comm, int calls, bool blocking)
{
    MPI_Request    requests[MANY];
    struct mt_pair pair = mt_pair_make(MT_DEVICE, MANY);
    int            failed = 0;

    mt_pair_fill(&pair, MANY, comm, 1);
    for (int i = 0; i < calls; i++) {
        int code = blocking ? MPI_Allreduce(pair.in + i, pair.out + i, 1, MPI_FLOAT, MPI_SUM, comm)
                            : MPI_Iallreduce(pair.in + i, pair.out + i, 1, MPI_FLOAT, MPI_SUM, comm,
                                             &requests[i]);
        failed += (code != MPI_SUCCESS);
        requests[i] = (blocking || (code != MPI_SUCCESS)) ? MPI_REQUEST_NULL : requests[i];
    }
    for (int i = 0; i < calls; i++) {
        failed += (MPI_Wait(&requests[i], MPI_STATUS_IGNORE) != MPI_SUCCESS);
    }
    mt_pair_free(&pair);
    return failed;
}

/*
 * Rank 0 gives up its communicator while the ranks ask each other whether the vendor's is there.
 * The others do not wait for its answer, and MPI's own calls are in order afterwards. late: it
 * comes to its next call much later than they.
 */
static void asked(bool blocking, bool late)
{
    MPI_Request request;
    MPI_Comm    comm;
    int         sum = 0, one = 1;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    until_direct(comm);
    MPI_Barrier(MPI_COMM_WORLD);
    if (mt_rank() == 0) {
        mt_memory_reset(true);
        usleep(late ? 500000 : 0);
    }
    int failed = failed_of(comm, MANY, blocking);
    mt_expect(failed == MANY, "%d of %d calls failed", failed, MANY);
    MPI_Barrier(comm);
    MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    mt_expect(sum == mt_size(), "a sum on the host: %d", sum);
    MPI_Comm_free(&comm);
}

static void asked_at_once(void)
{
    asked(false, false);
}

static void asked_blocking(void)
{
    asked(true, false);
}

static void asked_late(void)
{
    asked(true, true);
}

/* Requests that are made once and started again, with memory of after the reset. */
static void between_persistent(void)
{
    for (int round = 0; round < 3; round++) {
        int        *in = mt_ints_make(MT_DEVICE, LARGE, LARGE, round);
        int        *out = mt_ints_make(MT_DEVICE, LARGE, 0, 0);
        MPI_Request requests[2];

        MPI_Send_init(in, LARGE, MPI_INT, next_rank(), TAG, MPI_COMM_WORLD, &requests[0]);
        MPI_Recv_init(out, LARGE, MPI_INT, last_rank(), TAG, MPI_COMM_WORLD, &requests[1]);
        for (int i = 0; i < 3; i++) {
            MPI_Startall(2, requests);
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        }
        mt_ints_expect(out, MT_DEVICE, LARGE, LARGE, last_rank(), round, "persistent");
        MPI_Barrier(MPI_COMM_WORLD);
        mt_memory_reset(true);
        MPI_Request_free(&requests[0]);
        MPI_Request_free(&requests[1]);
    }
}

/* ---- contexts of the program's own (CUDA) ---- */

static void own_context(void)
{
    int (*create)(void **, unsigned, int);
    int (*destroy)(void *);
    int (*set)(void *);
    int (*get_device)(int *);
    void *own = NULL;
    int   device = 0;

    *(void **)&create = mt_driver("cuCtxCreate_v2", "");
    *(void **)&destroy = mt_driver("cuCtxDestroy_v2", "");
    *(void **)&set = mt_driver("cuCtxSetCurrent", "");
    *(void **)&get_device = mt_driver("cuCtxGetDevice", "");
    if (create == NULL) {
        return;
    }
    get_device(&device);
    mt_expect(create(&own, 0, device) == 0, "cuCtxCreate failed");
    use(1);
    mt_expect(destroy(own) == 0, "cuCtxDestroy failed");
    mt_expect(set(NULL) == 0, "cuCtxSetCurrent failed"); /* none, as at first */
}

static void *send_without_context(void *buffer)
{
    for (int i = 0; i < 3; i++) {
        MPI_Send(buffer, LARGE, MPI_INT, next_rank(), TAG + 1, MPI_COMM_WORLD);
        MPI_Send(buffer, SMALL, MPI_INT, next_rank(), TAG + 1, MPI_COMM_WORLD);
    }
    return NULL;
}

/* A thread that has never used the device sends from it. */
static void thread_without_context(void)
{
    int      *in = mt_ints_make(MT_DEVICE, LARGE, LARGE, 1);
    int      *out = mt_ints_make(MT_DEVICE, LARGE, 0, 0);
    int       provided;
    pthread_t thread;

    MPI_Query_thread(&provided);
    if (provided == MPI_THREAD_MULTIPLE) {
        pthread_create(&thread, NULL, send_without_context, in);
        for (int i = 0; i < 6; i++) {
            MPI_Recv(out, LARGE, MPI_INT, last_rank(), TAG + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        pthread_join(thread, NULL);
        mt_ints_expect(out, MT_DEVICE, LARGE, LARGE, last_rank(), 1, "by a thread");
    }
    mt_free(MT_DEVICE, in);
    mt_free(MT_DEVICE, out);
}

int main(int argc, char **argv)
{
    static const struct mt_named_case cases[] = {
        {"end", at_the_end},
        {"end_again", at_the_end_again},
        {"end_alone", at_the_end_alone},
        {"early", early},
        {"messages", between_messages},
        {"messages_alone", between_messages_alone},
        {"packing", between_packing},
        {"collectives", between_collectives},
        {"collectives_alone", between_collectives_alone},
        {"persistent", between_persistent},
        {"asked", asked_at_once},
        {"asked_blocking", asked_blocking},
        {"asked_late", asked_late},
        {"context", own_context},
        {"thread", thread_without_context},
        {NULL, NULL},
    };

    mt_begin(&argc, &argv, true);
    return mt_run_to_end(cases, argc, argv);
}
