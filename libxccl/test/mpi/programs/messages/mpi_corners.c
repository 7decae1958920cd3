/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Corners of messages, packing and windows: ranks that are nobody, messages that are too long,
 * buffers of which a call writes a part. Two ranks.
 * Usage: mpi_corners cuda|rocm|none CASE
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support.h"

enum { LONG = 400000, COUNT = 4000, TAG = 5, LITTLE = 20 }; /* LITTLE: 80 bytes, as a descriptor */

static int other(void)
{
    return 1 - mt_rank();
}

/* ---- a window's rank that is nobody: nothing is written here either ---- */

static void expect_untouched(int *buffer, const char *what)
{
    mt_ints_expect(buffer, MT_DEVICE, COUNT, COUNT, mt_rank(), 1, what);
}

enum { NULL_ROUNDS = 20, NULL_RECEIVES = 40, NAP_US = 2000 };

/* Nothing may be read or written there. */
static void *no_memory(void)
{
    return mmap(NULL, COUNT * sizeof(int), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* Where nothing is received from, such as past the border of a grid, there may be no memory. */
static void case_no_memory(void)
{
    int         *in = mt_ints_make(MT_DEVICE, COUNT, COUNT, 1), *none = no_memory();
    int         *out = mt_ints_make(MT_DEVICE, COUNT, 0, 1), tag = 1;
    MPI_Request  request;
    MPI_Datatype holes;

    MPI_Type_vector(COUNT / 2, 1, 2, MPI_INT, &holes);
    MPI_Type_commit(&holes);
    mt_meet_on_device();
    MPI_Recv_init(none, 1, holes, MPI_PROC_NULL, tag, MPI_COMM_WORLD, &request);
    for (int i = 0; i < NULL_ROUNDS; i++) {
        MPI_Start(&request);
        MPI_Sendrecv_replace(none, COUNT, MPI_INT, MPI_PROC_NULL, tag, MPI_PROC_NULL, tag,
                             MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (mt_rank() == 0) {
            MPI_Sendrecv(in, COUNT, MPI_INT, 1, tag, none, COUNT, MPI_INT, MPI_PROC_NULL, tag,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            usleep(NAP_US); /* the other rank's thread looks meanwhile */
            MPI_Recv(out, COUNT, MPI_INT, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    if (mt_rank() == 1) {
        mt_ints_expect(out, MT_DEVICE, COUNT, COUNT, 0, 1, "beside nothing");
    }
    MPI_Request_free(&request);
    MPI_Type_free(&holes);
    munmap(none, COUNT * sizeof(int));
    mt_free(MT_DEVICE, in);
    mt_free(MT_DEVICE, out);
}

/* MPI_Request_free of a receive that is cancelled: from then on the buffer is the program's. */
static void case_cancelled(void)
{
    enum { BYTES = 1 << 20 };
    char       *buffer[NULL_RECEIVES];
    MPI_Request request[NULL_RECEIVES];

    mt_meet_on_device();
    for (int round = 0; round < NULL_ROUNDS; round++) {
        for (int i = 0; i < NULL_RECEIVES; i++) {
            buffer[i] =
                mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            MPI_Irecv(buffer[i], BYTES, MPI_BYTE, 1 - mt_rank(), i, MPI_COMM_WORLD, &request[i]);
        }
        for (int i = 0; i < NULL_RECEIVES; i++) {
            MPI_Cancel(&request[i]);
            MPI_Request_free(&request[i]);
            munmap(buffer[i], BYTES);
        }
        usleep(NAP_US); /* this rank's thread must not look there any more */
    }
    mt_expect(request[0] == MPI_REQUEST_NULL, "the requests are freed");
}

static void case_nobody(void)
{
    int        *buffer = mt_ints_make(MT_DEVICE, COUNT, COUNT, 1);
    int        *origin = mt_ints_make(MT_DEVICE, COUNT, COUNT, 2);
    int        *memory;
    MPI_Win     window;
    MPI_Request request;

    MPI_Win_allocate(COUNT * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory,
                     &window);
    MPI_Win_fence(0, window);
    MPI_Get(buffer, COUNT, MPI_INT, MPI_PROC_NULL, 0, COUNT, MPI_INT, window);
    MPI_Put(origin, COUNT, MPI_INT, MPI_PROC_NULL, 0, COUNT, MPI_INT, window);
    MPI_Win_fence(0, window);
    expect_untouched(buffer, "MPI_Get from nobody");
    MPI_Win_lock_all(0, window);
    MPI_Get_accumulate(origin, COUNT, MPI_INT, buffer, COUNT, MPI_INT, MPI_PROC_NULL, 0, COUNT,
                       MPI_INT, MPI_SUM, window);
    MPI_Fetch_and_op(origin, buffer, MPI_INT, MPI_PROC_NULL, 0, MPI_SUM, window);
    MPI_Compare_and_swap(origin, origin + 1, buffer + 1, MPI_INT, MPI_PROC_NULL, 0, window);
    MPI_Win_flush_all(window);
    expect_untouched(buffer, "atomic accesses to nobody");
    MPI_Rget(buffer, COUNT, MPI_INT, MPI_PROC_NULL, 0, COUNT, MPI_INT, window, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Win_unlock_all(window);
    expect_untouched(buffer, "MPI_Rget from nobody");
    MPI_Win_free(&window);
    mt_free(MT_DEVICE, buffer);
    mt_free(MT_DEVICE, origin);
}

/* ---- MPI_Sendrecv whose receive is too short: the other rank gets what is sent ---- */

static void case_truncated(void)
{
    int       *in = mt_ints_make(MT_DEVICE, LONG, LONG, 1);
    int       *out = mt_ints_make(MT_DEVICE, LONG, 0, 0);
    MPI_Status status;

    mt_meet_on_device();
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (mt_rank() == 0) {
        int code = MPI_Sendrecv(in, LONG, MPI_INT, 1, TAG, out, COUNT / 2, MPI_INT, 1, TAG,
                                MPI_COMM_WORLD, &status);
        mt_expect(mt_class_of(code) == MPI_ERR_TRUNCATE, "class %d of a message that is too long",
                  mt_class_of(code));
    } else {
        int *longer = calloc(COUNT, sizeof(int));
        MPI_Send(longer, COUNT, MPI_INT, 0, TAG, MPI_COMM_WORLD);
        int code = MPI_Recv(out, LONG, MPI_INT, 0, TAG, MPI_COMM_WORLD, &status);
        mt_expect(code == MPI_SUCCESS, "the other direction ended with %d", code);
        mt_expect_status(&status, 0, TAG, LONG, "of the other direction");
        mt_ints_expect(out, MT_DEVICE, LONG, LONG, 0, 1, "the other direction");
        free(longer);
    }
    mt_free(MT_DEVICE, in);
    mt_free(MT_DEVICE, out);
}

/* What MPI says of a persistent receive whose message is too long. */
static int wait_for_too_long(int way, MPI_Request *request)
{
    int        index = 0, outcount = 0, code;
    MPI_Status status;

    switch (way) {
    case 0:
        return MPI_Wait(request, MPI_STATUS_IGNORE);
    case 1:
        return MPI_Waitany(1, request, &index, &status);
    default:
        code = MPI_Waitsome(1, request, &outcount, &index, &status);
        mt_expect(mt_class_of(code) == MPI_ERR_IN_STATUS, "MPI_Waitsome: class %d",
                  mt_class_of(code));
        return status.MPI_ERROR;
    }
}

/*
 * A persistent receive that is too short. Open MPI frees its request then, and gives the handle to
 * another one soon.
 */
static void receive_too_long(int way)
{
    int *buffer = mt_ints_make(MT_DEVICE, LITTLE, LITTLE, 1);

    if (mt_rank() == 0) {
        MPI_Send(buffer, LITTLE, MPI_INT, 1, TAG, MPI_COMM_WORLD);
    } else {
        MPI_Request request;
        MPI_Recv_init(buffer, LITTLE / 2, MPI_INT, 0, TAG, MPI_COMM_WORLD, &request);
        MPI_Start(&request);
        int code = wait_for_too_long(way, &request);
        mt_expect(mt_class_of(code) == MPI_ERR_TRUNCATE, "way %d: class %d", way,
                  mt_class_of(code));
        if (request != MPI_REQUEST_NULL) {
            MPI_Request_free(&request);
        }
    }
    mt_free(MT_DEVICE, buffer);
}

static void case_truncated_again(void)
{
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int way = 0; way < 3; way++) {
        receive_too_long(way);
    }
    for (int salt = 2; salt < 6; salt++) {
        int        *in = mt_ints_make(MT_DEVICE, LITTLE, LITTLE, salt);
        int        *out = mt_ints_make(MT_DEVICE, LITTLE, 0, 0);
        MPI_Request requests[2];
        MPI_Irecv(out, LITTLE, MPI_INT, other(), TAG, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(in, LITTLE, MPI_INT, other(), TAG, MPI_COMM_WORLD, &requests[1]);
        MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        mt_ints_expect(out, MT_DEVICE, LITTLE, LITTLE, other(), salt, "a later message");
        mt_free(MT_DEVICE, in);
        mt_free(MT_DEVICE, out);
    }
}

/* Room for a descriptor, and for less than any message that one stands for. */
static int receive_shortly(int way, int *out, MPI_Datatype pairs, MPI_Status *status)
{
    MPI_Request request;
    int         on_host[2 * LITTLE];

    switch (way) {
    case 0:
        return MPI_Recv(out, 2 * LITTLE, MPI_INT, 0, TAG, MPI_COMM_WORLD, status);
    case 1:
        MPI_Irecv(out, LITTLE, MPI_INT, 0, TAG, MPI_COMM_WORLD, &request);
        return MPI_Wait(&request, status);
    case 2:
        return MPI_Recv(out, 1, pairs, 0, TAG, MPI_COMM_WORLD, status);
    case 3:
        return MPI_Recv(on_host, 2 * LITTLE, MPI_INT, 0, TAG, MPI_COMM_WORLD, status);
    default:
        return MPI_Sendrecv(NULL, 0, MPI_INT, MPI_PROC_NULL, TAG, out, 2 * LITTLE, MPI_INT, 0, TAG,
                            MPI_COMM_WORLD, status);
    }
}

static void case_much_too_long(void)
{
    MPI_Status   status;
    MPI_Datatype pairs;

    mt_meet_on_device();
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Type_vector(LITTLE, 2, 3, MPI_INT, &pairs);
    MPI_Type_commit(&pairs);
    for (int way = 0; way < 5; way++) {
        int *buffer = mt_ints_make(MT_DEVICE, LONG, LONG, way);
        if (mt_rank() == 0) { /* it ends: the receive has begun */
            MPI_Ssend(buffer, (way % 2 == 0) ? LONG : COUNT, MPI_INT, 1, TAG, MPI_COMM_WORLD);
        } else {
            int code = receive_shortly(way, buffer, pairs, &status);
            mt_expect(mt_class_of(code) == MPI_ERR_TRUNCATE, "way %d: class %d", way,
                      mt_class_of(code));
        }
        mt_free(MT_DEVICE, buffer);
    }
    MPI_Type_free(&pairs);
}

/* Too long for a receive whose communicator the program has freed meanwhile. */
static void case_freed(void)
{
    MPI_Comm    comm;
    MPI_Request request;
    int        *buffer = mt_ints_make(MT_DEVICE, LONG, LONG, 0);

    mt_meet_on_device();
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    if (mt_rank() == 0) {
        MPI_Isend(buffer, LONG, MPI_INT, 1, TAG, comm, &request);
    } else {
        MPI_Irecv(buffer, COUNT, MPI_INT, 0, TAG, comm, &request);
    }
    MPI_Comm_free(&comm);
    int class = mt_class_of(MPI_Wait(&request, MPI_STATUS_IGNORE));
    mt_expect(class == ((mt_rank() == 0) ? MPI_SUCCESS : MPI_ERR_TRUNCATE), "class %d", class);
    mt_free(MT_DEVICE, buffer);
}

/* A call that ends one request leaves the status's error alone. */
static void case_error_field(void)
{
    int       *in = mt_ints_make(MT_DEVICE, COUNT, COUNT, 1);
    int       *out = mt_ints_make(MT_DEVICE, COUNT, 0, 0);
    MPI_Status status;

    mt_meet_on_device();
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (mt_rank() == 0) {
        MPI_Send(in, COUNT, MPI_INT, 1, TAG, MPI_COMM_WORLD);
    } else {
        status.MPI_ERROR = MT_UNTOUCHED;
        int code = MPI_Recv(out, COUNT / 2, MPI_INT, 0, TAG, MPI_COMM_WORLD, &status);
        mt_expect(mt_class_of(code) == MPI_ERR_TRUNCATE, "class %d", mt_class_of(code));
        mt_expect(status.MPI_ERROR == MT_UNTOUCHED, "MPI_ERROR became %d", status.MPI_ERROR);
    }
    mt_free(MT_DEVICE, in);
    mt_free(MT_DEVICE, out);
}

/* ---- packing writes between two positions alone ---- */

/* A message comes to the first half of what is packed into. */
static void case_packing(void)
{
    enum { ROUNDS = 8, PACKED = 6 };
    int        *in = mt_ints_make(MT_DEVICE, LONG, LONG, 1), *both;
    MPI_Request request;

    mt_meet_on_device();
    for (int round = 0; round < ROUNDS; round++) {
        if (mt_rank() == 0) {
            MPI_Barrier(MPI_COMM_WORLD);
            MPI_Send(in, LONG, MPI_INT, 1, TAG, MPI_COMM_WORLD);
            continue;
        }
        both = mt_ints_make(MT_DEVICE, 2 * LONG, 0, 0);
        MPI_Irecv(both, LONG, MPI_INT, 0, TAG, MPI_COMM_WORLD, &request);
        MPI_Barrier(MPI_COMM_WORLD);
        for (int i = 0; i < PACKED; i++) {
            int position = LONG * (int)sizeof(int);
            MPI_Pack(in, LONG, MPI_INT, both, 2 * LONG * (int)sizeof(int), &position,
                     MPI_COMM_WORLD);
            mt_expect(position == 2 * LONG * (int)sizeof(int), "packed to position %d", position);
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        mt_ints_expect(both, MT_DEVICE, LONG, LONG, 0, 1, "beside what is packed");
        mt_ints_expect(both + LONG, MT_DEVICE, LONG, LONG, 1, 1, "what is packed");
        mt_free(MT_DEVICE, both);
    }
    mt_free(MT_DEVICE, in);
}

/* In steps, with what lies around. */
static void case_positions(void)
{
    enum { STEP = 7, ROOM = 30 };
    int     *in = mt_ints_make(MT_DEVICE, ROOM, ROOM, 1);
    int     *out = mt_ints_make(MT_DEVICE, ROOM, 0, 0);
    int      position = 2 * (int)sizeof(int), bytes = 20 * (int)sizeof(int);
    MPI_Aint place = 0;

    MPI_Pack(in, STEP, MPI_INT, out, bytes, &position, MPI_COMM_WORLD);
    MPI_Pack(in + STEP, STEP, MPI_INT, out, bytes, &position, MPI_COMM_WORLD);
    mt_expect(position == 16 * (int)sizeof(int), "position %d", position);
    int *host = malloc(ROOM * sizeof(int));
    mt_get(host, out, MT_DEVICE, ROOM * sizeof(int));
    for (int i = 0; i < ROOM; i++) {
        int wanted = ((i < 2) || (i >= 16)) ? MT_UNTOUCHED : mt_value(mt_rank(), 1, i - 2);
        mt_expect(host[i] == wanted, "element %d is %d, not %d", i, host[i], wanted);
    }
    free(host);
    MPI_Pack_external("external32", in, STEP, MPI_INT, out, bytes, &place);
    mt_expect(place == STEP * (MPI_Aint)sizeof(int), "external position %ld", (long)place);
    mt_free(MT_DEVICE, in);
    mt_free(MT_DEVICE, out);
}

/* ---- messages that were probed ---- */

/* A persistent receive gets one on a communicator that is freed by then. */
static void receive_probed(int count)
{
    int        *in = mt_ints_make(MT_DEVICE, COUNT, COUNT, 1);
    int        *out = mt_ints_make(MT_DEVICE, COUNT, 0, 0);
    MPI_Comm    comm;
    MPI_Request request;
    MPI_Status  status;

    mt_meet_on_device();
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    if (mt_rank() == 0) {
        MPI_Isend(in, count, MPI_INT, 1, TAG, comm, &request);
        MPI_Comm_free(&comm);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv_init(out, COUNT, MPI_INT, 0, TAG, comm, &request);
        MPI_Probe(0, TAG, comm, &status);
        MPI_Comm_free(&comm);
        MPI_Start(&request);
        MPI_Wait(&request, &status);
        mt_expect_status(&status, 0, TAG, count, "of a probed message");
        mt_ints_expect(out, MT_DEVICE, COUNT, count, 0, 1, "a probed message");
        MPI_Request_free(&request);
    }
    mt_free(MT_DEVICE, in);
    mt_free(MT_DEVICE, out);
}

static void case_gone(void)
{
    receive_probed(COUNT);
    receive_probed(LITTLE);
}

static void expect_too_long(int code, int tag, const MPI_Status *status, const char *how)
{
    mt_expect(mt_class_of(code) == MPI_ERR_TRUNCATE, "%s: class %d", how, mt_class_of(code));
    if (status != NULL) {
        mt_expect((status->MPI_SOURCE == 0) && (status->MPI_TAG == tag), "%s: from %d, tag %d", how,
                  status->MPI_SOURCE, status->MPI_TAG);
    }
}

static int times_called;

static void note(MPI_Comm *comm, int *code, ...)
{
    (void)code;
    mt_expect(*comm == MPI_COMM_WORLD, "another communicator's handler");
    times_called++;
}

/* The same by a persistent receive: the handler is called once more. */
static void start_probed_too_long(int *buffer)
{
    enum { LAST = 3 };
    MPI_Request request;
    MPI_Status  status;
    int         before = times_called;

    MPI_Recv_init(buffer, 5, MPI_INT, 0, LAST, MPI_COMM_WORLD, &request);
    MPI_Probe(0, LAST, MPI_COMM_WORLD, &status);
    MPI_Start(&request);
    expect_too_long(MPI_Wait(&request, &status), LAST, &status, "MPI_Start");
#if defined(MPICH_NUMVERSION) && (MPICH_NUMVERSION >= 40200000)
    (void)
        before; /* a look completes the request there, and what stands in for it calls no handler */
#else
    mt_expect(times_called == before + 1, "the handler was called %d times", times_called - before);
#endif
    MPI_Request_free(&request);
}

/* One as long as a descriptor, received with too little room. */
static void case_probed_too_long(void)
{
    int            buffer[LITTLE] = {0};
    MPI_Message    message;
    MPI_Request    request;
    MPI_Status     status;
    MPI_Errhandler handler;

    mt_meet_on_device();
    MPI_Comm_create_errhandler(note, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    if (mt_rank() == 0) {
        for (int tag = 0; tag < 4; tag++) {
            MPI_Send(buffer, LITTLE, MPI_INT, 1, tag, MPI_COMM_WORLD);
        }
    } else {
        MPI_Probe(0, 0, MPI_COMM_WORLD, &status);
        int code = MPI_Recv(buffer, 5, MPI_INT, 0, 0, MPI_COMM_WORLD, &status);
        expect_too_long(code, 0, &status, "MPI_Recv");
        mt_expect(times_called == 1, "the handler was called %d times", times_called);
        start_probed_too_long(buffer);
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        MPI_Mprobe(0, 1, MPI_COMM_WORLD, &message, &status);
        expect_too_long(MPI_Mrecv(buffer, 5, MPI_INT, &message, &status), 1, &status, "MPI_Mrecv");
        MPI_Probe(0, 2, MPI_COMM_WORLD, &status);
        MPI_Irecv(buffer, 5, MPI_INT, 0, 2, MPI_COMM_WORLD, &request);
        expect_too_long(MPI_Wait(&request, &status), 2, NULL, "MPI_Irecv");
    }
    MPI_Errhandler_free(&handler);
}

/* ---- sends that MPI refuses hold nothing back ---- */

static int handled;

static void count_error(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    (void)code;
    handled++;
}

static void case_refused(void)
{
    enum { REFUSED = 3000 };
    int        *in = mt_ints_make(MT_DEVICE, COUNT, COUNT, 1);
    int        *out = mt_ints_make(MT_DEVICE, COUNT, 0, 0);
    MPI_Request request;

    mt_meet_on_device();
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int i = 0; i < REFUSED; i++) {
        MPI_Isend(in, COUNT, MPI_INT, other(), -5, MPI_COMM_WORLD, &request);
    }
    MPI_Isend(in, COUNT, MPI_INT, other(), TAG, MPI_COMM_WORLD, &request);
    mt_expect_message_path("fetched", "after sends that were refused");
    MPI_Recv(out, COUNT, MPI_INT, other(), TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    mt_ints_expect(out, MT_DEVICE, COUNT, COUNT, other(), 1, "after sends that were refused");
    /* What xccl asks of MPI first is no second error. */
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(count_error, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    handled = 0;
    MPI_Send(in, COUNT, MPI_INT, other(), TAG, MPI_COMM_NULL);
    mt_expect(handled == 1, "the handler was called %d times", handled);
    MPI_Errhandler_free(&handler);
    mt_free(MT_DEVICE, in);
    mt_free(MT_DEVICE, out);
}

/* Nor do collectives. */
static void case_refused_collective(void)
{
    enum { REFUSED = 100 };
    struct mt_pair pair = mt_pair_make(MT_DEVICE, LONG);
    MPI_Datatype   two;
    MPI_Request    request;

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Type_contiguous(2, MPI_FLOAT, &two);
    MPI_Type_commit(&two);
    for (int i = 0; i < REFUSED; i++) {
        int code =
            MPI_Iallreduce(pair.in, pair.out, LONG / 2, two, MPI_SUM, MPI_COMM_WORLD, &request);
        mt_expect(code != MPI_SUCCESS, "a sum of pairs");
    }
    mt_pair_allreduce(&pair, LONG, MPI_COMM_WORLD, 1);
    MPI_Type_free(&two);
    mt_pair_free(&pair);
}

/* ---- an error handler that does not return ---- */

static MPI_Errhandler jumping;

/* To the other rank, and from a rank that there is not, or with room for less than it sends. */
static void fail_both_ways(MPI_Comm comm, const int *in, int *out, bool too_long)
{
    if (setjmp(mt_before) == 0) {
        MPI_Sendrecv(in, COUNT, MPI_INT, other(), TAG, out, too_long ? COUNT / 2 : COUNT, MPI_INT,
                     too_long ? other() : 99, TAG, comm, MPI_STATUS_IGNORE);
        mt_expect(false, "MPI_Sendrecv returned");
    }
}

/* What the calls held is looked after no more: later ones look at all that is under way. */
static void case_jumping(void)
{
    enum { TIMES = 3 };
    int           *in = mt_ints_make(MT_DEVICE, COUNT, COUNT, 1);
    int           *out = mt_ints_make(MT_DEVICE, COUNT, 0, 0);
    MPI_Comm       comm;
    MPI_Errhandler found;
    struct mt_pair pair = mt_pair_make(MT_DEVICE, COUNT);

    mt_meet_on_device();
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_create_errhandler(mt_jump, &jumping);
    MPI_Comm_set_errhandler(comm, jumping);
    for (volatile int i = 0; i < TIMES; i++) {
        fail_both_ways(comm, in, out, false);
        fail_both_ways(comm, in, out, true);
        MPI_Barrier(MPI_COMM_WORLD);
        mt_pair_allreduce(&pair, COUNT, MPI_COMM_WORLD, i);
    }
    mt_expect(mt_jumps == 2 * TIMES, "the handler was called %d times, not %d", mt_jumps,
              2 * TIMES);
    MPI_Comm_get_errhandler(comm, &found);
    mt_expect(found == jumping, "the communicator has another error handler");
    MPI_Errhandler_free(&found);
    MPI_Sendrecv(in, COUNT, MPI_INT, other(), TAG, out, COUNT, MPI_INT, other(), TAG, comm,
                 MPI_STATUS_IGNORE);
    mt_ints_expect(out, MT_DEVICE, COUNT, COUNT, other(), 1, "after errors");
    MPI_Errhandler_free(&jumping);
    MPI_Comm_free(&comm);
    mt_pair_free(&pair);
    mt_free(MT_DEVICE, in);
    mt_free(MT_DEVICE, out);
}

static void expect_class(int code, int wanted, const char *what)
{
    int class = MPI_SUCCESS;

    MPI_Error_class(code, &class);
    mt_expect((wanted < 0) ? (code != MPI_SUCCESS) : (class == wanted), "%s: error class %d", what,
              class);
}

/* MPI sees the type although only the bytes of a message go through it. */
static void case_uncommitted(void)
{
    enum { ROWS = 1000, STRIDE = 4, MANY = ROWS * STRIDE };
    MPI_Datatype type;
    MPI_Request  request;
    int         *data = mt_alloc(MT_DEVICE, sizeof(int) * MANY);
    int          to = mt_rank();

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Type_vector(ROWS, 1, STRIDE, MPI_INT, &type);
    expect_class(MPI_Send(data, 1, type, to, 1, MPI_COMM_WORLD), MPI_ERR_TYPE, "MPI_Send");
    expect_class(MPI_Recv(data, 1, type, to, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE), MPI_ERR_TYPE,
                 "MPI_Recv");
    expect_class(MPI_Isend(data, 1, type, to, 1, MPI_COMM_WORLD, &request), MPI_ERR_TYPE,
                 "MPI_Isend");
    expect_class(MPI_Irecv(data, 1, type, to, 1, MPI_COMM_WORLD, &request), MPI_ERR_TYPE,
                 "MPI_Irecv");
    expect_class(MPI_Recv_init(data, 1, type, to, 1, MPI_COMM_WORLD, &request), MPI_ERR_TYPE,
                 "MPI_Recv_init");
    MPI_Type_free(&type);
    mt_free(MT_DEVICE, data);
}

/* A place outside of what is packed: an error, and no crash. */
static void case_outside(void)
{
    enum { BYTES = 64 };
    char *packed = mt_alloc(MT_DEVICE, BYTES);
    int  *data = mt_alloc(MT_DEVICE, 2 * sizeof(int)), below = -4, above = BYTES + 1;

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    expect_class(MPI_Pack(data, 2, MPI_INT, packed, BYTES, &below, MPI_COMM_WORLD), -1, "below");
    expect_class(MPI_Pack(data, 2, MPI_INT, packed, BYTES, &above, MPI_COMM_WORLD), -1, "above");
    mt_free(MT_DEVICE, packed);
    mt_free(MT_DEVICE, data);
}

int main(int argc, char **argv)
{
    static const struct mt_named_case cases[] = {
        {"nobody", case_nobody},
        {"no_memory", case_no_memory},
        {"cancelled", case_cancelled},
        {"truncated", case_truncated},
        {"truncated_again", case_truncated_again},
        {"much_too_long", case_much_too_long},
        {"freed", case_freed},
        {"error_field", case_error_field},
        {"packing", case_packing},
        {"positions", case_positions},
        {"gone", case_gone},
        {"probed_too_long", case_probed_too_long},
        {"refused", case_refused},
        {"refused_collective", case_refused_collective},
        {"jumping", case_jumping},
        {"uncommitted", case_uncommitted},
        {"outside", case_outside},
        {NULL, NULL},
    };

    /* Whoever jumps out of MPICH's functions leaves the lock of its threads behind. */
    bool alone = (argc > 2) && (strcmp(argv[2], "jumping") == 0);
    mt_begin_at(alone ? MPI_THREAD_SERIALIZED : MPI_THREAD_MULTIPLE, &argc, &argv, true);
    return mt_run_to_end(cases, argc, argv);
}
