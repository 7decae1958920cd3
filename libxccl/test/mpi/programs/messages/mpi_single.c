/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Single messages from device memory, one after the other: two ranks.
 * Usage: mpi_single cuda|rocm|none CASE
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support.h"

enum { TAG = 6 /* another one than that of mt_meet_on_device() */ };

/* ---- of a middle size ---- */

enum { MIDDLE = 4 << 20, SPARE = 64 };

/* What each round sends differs from what the one before did, and comes soon after it. */
static void send_and_get_back(char *sources[2], char *mine, const char *host, char *got,
                              size_t bytes, int at, int rounds)
{
    for (int i = 0; i < rounds; i++) {
        if (mt_rank() == 0) {
            MPI_Send(sources[i % 2] + at, (int)bytes, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
        }
        MPI_Recv(mine + at, (int)bytes, MPI_BYTE, 1 - mt_rank(), TAG, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        if (mt_rank() == 1) {
            MPI_Send(mine + at, (int)bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
        }
        mt_get(got, mine + at, MT_DEVICE, bytes);
        mt_expect(memcmp(got, host + i % 2 + at, bytes) == 0, "%zu bytes at %d, round %d", bytes,
                  at, i);
    }
}

/* Of a middle size, which several blocks of a kernel may read, amid short ones. */
static void case_middle(void)
{
    enum { ROUNDS = 20 };
    const size_t sizes[] = {65537, 131072, 262147, 1 << 20, MIDDLE, MIDDLE + 1, 300000};
    char        *host = malloc(MIDDLE + SPARE), *got = malloc(MIDDLE + SPARE);
    char        *mine = mt_alloc(MT_DEVICE, MIDDLE + SPARE), *sources[2];

    for (size_t i = 0; i < MIDDLE + SPARE; i++) {
        host[i] = (char)(i * 31 + i / 251);
    }
    for (int i = 0; i < 2; i++) {
        sources[i] = mt_alloc(MT_DEVICE, MIDDLE + SPARE);
        mt_put(sources[i], MT_DEVICE, host + i, MIDDLE + SPARE - 1);
    }
    mt_meet_on_device();
    for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
        send_and_get_back(sources, mine, host, got, sizes[k], 0, ROUNDS);
        send_and_get_back(sources, mine, host, got, sizes[k], 3, ROUNDS);
        send_and_get_back(sources, mine, host, got, 5000, 0, (k % 2 == 1) ? ROUNDS : 0);
    }
    free(host);
    free(got);
    mt_free(MT_DEVICE, mine);
    mt_free(MT_DEVICE, sources[0]);
    mt_free(MT_DEVICE, sources[1]);
}

/* How rank 1 receives into host memory: as it is or with holes, and at once or later. */
static void receive_on_host(char *to, int bytes, bool holes, bool later)
{
    MPI_Datatype type;
    MPI_Request  request;

    MPI_Type_vector(bytes, 1, holes ? 2 : 1, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    if (later) {
        MPI_Irecv(to, 1, type, 0, TAG, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(to, 1, type, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Type_free(&type);
}

/* Short ones that go to host memory. */
static void case_to_host(void)
{
    enum { MOST = 33000, ROUNDS = 12 };
    const int sizes[] = {80, 100, 256, 257, 1000, 8191, 32768, 32769};
    char     *data = mt_alloc(MT_DEVICE, MOST), *host = malloc(MOST), *got = malloc(2 * MOST);

    mt_meet_on_device();
    for (int i = 0; i < ROUNDS * (int)(sizeof(sizes) / sizeof(sizes[0])); i++) {
        int  bytes = sizes[i / ROUNDS], step = 1 + i % 2, wrong = 0;
        bool holes = (i % 2 == 1);
        for (int k = 0; k < bytes; k++) {
            host[k] = (char)mt_value(0, i, k);
        }
        if (mt_rank() == 0) {
            mt_put(data, MT_DEVICE, host, (size_t)bytes);
            usleep(500); /* kernels are loaded meanwhile */
            MPI_Send(data, bytes, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
        } else {
            memset(got, -1, 2 * MOST);
            receive_on_host(got, bytes, holes, (i % 4 < 2));
            for (int k = 0; k < 2 * MOST; k++) {
                bool data_is_here = (k < step * bytes) && (k % step == 0);
                wrong += (got[k] != (data_is_here ? host[k / step] : (char)-1));
            }
        }
        mt_expect(wrong == 0, "round %d, %d bytes: %d are wrong", i, bytes, wrong);
    }
    free(host);
    free(got);
    mt_free(MT_DEVICE, data);
}

/* More than a MiB, and less, for the bound of XCCL_SCRATCH; and too little to be copied. */
static void case_scratch(void)
{
    const size_t      sizes[] = {MIDDLE, 300000, 60000};
    const char *const paths[] = {"mpi-staged", "fetched", "mpi-staged"};
    char             *host = mt_noise(MIDDLE, 5), *got = malloc(MIDDLE);
    char             *data = mt_alloc(MT_DEVICE, MIDDLE);

    mt_meet_on_device();
    for (int i = 0; i < 3; i++) {
        if (mt_rank() == 0) {
            mt_put(data, MT_DEVICE, host, sizes[i]);
            MPI_Send(data, (int)sizes[i], MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
            mt_expect_message_path(paths[i], "a send");
        } else {
            MPI_Recv(data, (int)sizes[i], MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            mt_get(got, data, MT_DEVICE, sizes[i]);
            mt_expect(memcmp(got, host, sizes[i]) == 0, "%zu bytes are wrong", sizes[i]);
        }
    }
    free(host);
    free(got);
    mt_free(MT_DEVICE, data);
}

/* ---- irregular types ---- */

/* So many that a launch does not take their description along, and no two of one length or gap. */
static MPI_Datatype irregular(void)
{
    enum { PIECES = 40 };
    int          lengths[PIECES], at[PIECES];
    MPI_Datatype type;

    for (int i = 0, next = 0; i < PIECES; i++) {
        lengths[i] = 10 + (i * i) % 23;
        at[i] = next;
        next += lengths[i] + 1 + (i * 7) % 5;
    }
    MPI_Type_indexed(PIECES, lengths, at, MPI_INT, &type);
    MPI_Type_commit(&type);
    return type;
}

/* Each start takes as few copies as the first: the test allows a few for each. */
static void case_irregular(void)
{
    enum { STARTS = 100, ROOM = 2000 };
    MPI_Datatype type = irregular();
    int         *mine = mt_alloc(MT_DEVICE, sizeof(int) * ROOM), host[ROOM];
    MPI_Request  request;

    mt_meet_on_device();
    if (mt_rank() == 0) {
        MPI_Send_init(mine, 1, type, 1, TAG, MPI_COMM_WORLD, &request);
    } else {
        MPI_Recv_init(mine, 1, type, 0, TAG, MPI_COMM_WORLD, &request);
    }
    for (int i = 0; i < STARTS; i++) {
        for (int k = 0; k < ROOM; k++) {
            host[k] = (mt_rank() == 0) ? mt_value(0, i, k) : MT_UNTOUCHED;
        }
        mt_put(mine, MT_DEVICE, host, sizeof(host));
        usleep(2000); /* kernels are loaded meanwhile */
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        mt_get(host, mine, MT_DEVICE, sizeof(host));
        mt_expect((host[0] == mt_value(0, i, 0)) && (host[9] == mt_value(0, i, 9)), "start %d", i);
    }
    MPI_Request_free(&request);
    MPI_Type_free(&type);
    mt_free(MT_DEVICE, mine);
}

/* ---- programs that count on MPI to take a few bytes at once ---- */

/* As many as the MPI takes so from host memory. */
#if defined(MPICH_VERSION)
enum { FEW = 1000 };
#else
enum { FEW = 500 };
#endif

static void send_first(void (*send)(const int *, int), const char *what)
{
    enum { REPEATS = 30 };
    static const int nothing[FEW];
    int              other = 1 - mt_rank();

    for (int i = 0; i < REPEATS; i++) {
        int *out = mt_ints_make(MT_DEVICE, FEW, FEW, i);
        int *in = mt_ints_make(MT_DEVICE, FEW, 0, 0);
        MPI_Barrier(MPI_COMM_WORLD);
        send(out, other);
        mt_put(out, MT_DEVICE, nothing, sizeof(nothing)); /* it is over */
        MPI_Recv(in, FEW, MPI_INT, other, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        mt_ints_expect(in, MT_DEVICE, FEW, FEW, other, i, what);
        mt_free(MT_DEVICE, out);
        mt_free(MT_DEVICE, in);
    }
}

static void by_send(const int *out, int to)
{
    MPI_Send(out, FEW, MPI_INT, to, TAG, MPI_COMM_WORLD);
}

static void by_isend(const int *out, int to)
{
    MPI_Request request;
    int         over = 0;

    MPI_Isend(out, FEW, MPI_INT, to, TAG, MPI_COMM_WORLD, &request);
    while (!over) {
        MPI_Test(&request, &over, MPI_STATUS_IGNORE);
    }
}

static void by_start(const int *out, int to)
{
    MPI_Request request;

    MPI_Send_init(out, FEW, MPI_INT, to, TAG, MPI_COMM_WORLD, &request);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
}

/* A synchronous send is over only when its receive has begun. */
static void case_unready(void)
{
    enum { NS = 30 * 1000 * 1000 };
    MPI_Request request;
    int         over = 0, other = 1 - mt_rank();

    mt_meet_on_device();
    send_first(by_send, "MPI_Send before its receive");
    send_first(by_isend, "MPI_Isend and MPI_Test before its receive");
    send_first(by_start, "a persistent send before its receive");
    int *out = mt_ints_make(MT_DEVICE, FEW, FEW, 1);
    int *in = mt_ints_make(MT_DEVICE, FEW, 0, 0);
    MPI_Issend(out, FEW, MPI_INT, other, TAG, MPI_COMM_WORLD, &request);
    for (double begun = MPI_Wtime(); !over && (MPI_Wtime() - begun < 1e-9 * NS);) {
        MPI_Test(&request, &over, MPI_STATUS_IGNORE);
    }
    mt_expect(!over, "MPI_Issend is over before its receive");
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Recv(in, FEW, MPI_INT, other, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    mt_ints_expect(in, MT_DEVICE, FEW, FEW, other, 1, "MPI_Issend");
    mt_free(MT_DEVICE, out);
    mt_free(MT_DEVICE, in);
}

/* ---- short ones, which only who looks for them from the first on is offered ---- */

enum { SHORT = 100, HERE = 0, THERE = 1 }; /* of integers */

/* What comes to host memory, in each way that MPI has to say so. */
static void receive_short(int *in, int way)
{
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Status  status;
    int         over = 0, index = -1;

    if (way > 0) {
        MPI_Irecv(in, SHORT, MPI_INT, HERE, TAG, MPI_COMM_WORLD, &request);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    switch (way) {
    case 0:
        MPI_Recv(in, SHORT, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        break;
    case 1:
        MPI_Wait(&request, &status);
        break;
    case 2:
        MPI_Waitall(1, &request, &status);
        break;
    case 3:
        while (!over) {
            MPI_Test(&request, &over, &status);
        }
        break;
    case 4:
        MPI_Waitany(1, &request, &index, &status);
        break;
    case 5:
        MPI_Waitsome(1, &request, &over, &index, &status);
        break;
    default:
        while (!over) {
            MPI_Testall(1, &request, &over, &status);
        }
        break;
    }
    mt_expect_status(&status, HERE, TAG, SHORT, "a short message");
    mt_expect(request == MPI_REQUEST_NULL, "way %d: the request is still there", way);
}

static void exchange_short(int way, const char *path)
{
    int *out = mt_ints_make(MT_DEVICE, SHORT, SHORT, way), *in = mt_ints_make(MT_HOST, SHORT, 0, 0);

    if (mt_rank() == HERE) {
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Ssend(out, SHORT, MPI_INT, THERE, TAG, MPI_COMM_WORLD);
        mt_expect_message_path(path, "a short message");
    } else {
        receive_short(in, way);
        mt_ints_expect(in, MT_HOST, SHORT, SHORT, HERE, way, "a short message");
    }
    mt_free(MT_DEVICE, out);
    mt_free(MT_HOST, in);
}

static void case_short(void)
{
    mt_memory_open(mt_runtime(), mt_rank());
    mt_meet_on_device();
    for (int way = 0; way < 7; way++) {
        exchange_short(way, "fetched");
    }
}

/* A receive of that size has begun before the device was in use: that one looks for nothing. */
static void case_passed_over(void)
{
    MPI_Request request = MPI_REQUEST_NULL;
    int        *in = mt_ints_make(MT_HOST, SHORT, 0, 0);

    if (mt_rank() == THERE) {
        MPI_Irecv(in, SHORT, MPI_INT, HERE, TAG, MPI_COMM_WORLD, &request);
    }
    mt_memory_open(mt_runtime(), mt_rank());
    mt_meet_on_device();
    if (mt_rank() == HERE) {
        int *out = mt_ints_make(MT_DEVICE, SHORT, SHORT, 9);
        MPI_Send(out, SHORT, MPI_INT, THERE, TAG, MPI_COMM_WORLD);
        mt_free(MT_DEVICE, out);
    } else {
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        mt_ints_expect(in, MT_HOST, SHORT, SHORT, HERE, 9, "an early receive");
    }
    mt_free(MT_HOST, in);
    exchange_short(1, "mpi-staged");
}

/* One of a size between: longer messages are fetched all the same, and so short ones are not. */
static void case_short_passed_over(void)
{
    enum { LITTLE = 25 };
    MPI_Request request = MPI_REQUEST_NULL;
    int        *in = mt_ints_make(MT_HOST, LITTLE, 0, 0);

    if (mt_rank() == THERE) {
        MPI_Irecv(in, LITTLE, MPI_INT, HERE, TAG, MPI_COMM_WORLD, &request);
    }
    mt_memory_open(mt_runtime(), mt_rank());
    mt_meet_on_device();
    if (mt_rank() == HERE) {
        int *out = mt_ints_make(MT_DEVICE, LITTLE, LITTLE, 9);
        MPI_Send(out, LITTLE, MPI_INT, THERE, TAG, MPI_COMM_WORLD);
        mt_expect_message_path("mpi-staged", "a message to an early receive");
        mt_free(MT_DEVICE, out);
    } else {
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        mt_ints_expect(in, MT_HOST, LITTLE, LITTLE, HERE, 9, "an early receive");
    }
    mt_free(MT_HOST, in);
    exchange_short(1, "fetched");
}

/* Many, from memory of both kinds, waited for together. */
static void case_mixed(void)
{
    enum { MESSAGES = 40, ROUNDS = 20 };
    MPI_Request requests[MESSAGES];
    MPI_Status  statuses[MESSAGES];
    int        *in[MESSAGES], *out[MESSAGES];

    mt_memory_open(mt_runtime(), mt_rank());
    mt_meet_on_device();
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < MESSAGES; i++) {
            enum mt_where where = ((i + round) % 3 == 0) ? MT_HOST : MT_DEVICE;
            out[i] = mt_ints_make(where, SHORT, SHORT, i + round);
            in[i] = mt_ints_make(MT_HOST, SHORT, 0, 0);
        }
        int count = 1 + (round * 7) % MESSAGES;
        for (int i = 0; (i < count) && (mt_rank() == THERE); i++) {
            MPI_Irecv(in[i], SHORT, MPI_INT, HERE, i, MPI_COMM_WORLD, &requests[i]);
        }
        for (int i = count; (i-- > 0) && (mt_rank() == HERE);) {
            MPI_Isend(out[i], SHORT, MPI_INT, THERE, i, MPI_COMM_WORLD, &requests[i]);
        }
        MPI_Waitall(count, requests, (round % 2 == 0) ? MPI_STATUSES_IGNORE : statuses);
        for (int i = 0; i < MESSAGES; i++) {
            bool came = (i < count) && (mt_rank() == THERE);
            if (came && (round % 2 == 1)) {
                mt_expect_status(&statuses[i], HERE, i, SHORT, "one of many");
            }
            mt_ints_expect(in[i], MT_HOST, SHORT, came ? SHORT : 0, HERE, i + round, "one of many");
            mt_free(((i + round) % 3 == 0) ? MT_HOST : MT_DEVICE, out[i]);
            mt_free(MT_HOST, in[i]);
        }
    }
}

/* While its receiver waits in MPI for somebody who waits for its sender. Three ranks. */
static void case_awaited(void)
{
    enum { THIRD = 2, ROUNDS = 20 };
    int word = 0;

    mt_memory_open(mt_runtime(), mt_rank());
    int *out = mt_ints_make(MT_DEVICE, SHORT, SHORT, 4);
    for (int i = 0; i < ROUNDS; i++) {
        int        *in = mt_ints_make(MT_HOST, SHORT, 0, 0);
        MPI_Request request;
        switch (mt_rank()) {
        case HERE:
            MPI_Ssend(out, SHORT, MPI_INT, THERE, TAG, MPI_COMM_WORLD);
            MPI_Send(&word, 1, MPI_INT, THIRD, TAG, MPI_COMM_WORLD);
            break;
        case THERE:
            MPI_Irecv(in, SHORT, MPI_INT, HERE, TAG, MPI_COMM_WORLD, &request);
            MPI_Recv(&word, 1, MPI_INT, THIRD, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            mt_ints_expect(in, MT_HOST, SHORT, SHORT, HERE, 4, "a message that is waited for");
            break;
        default:
            MPI_Recv(&word, 1, MPI_INT, HERE, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(&word, 1, MPI_INT, THERE, TAG, MPI_COMM_WORLD);
            break;
        }
        MPI_Barrier(MPI_COMM_WORLD);
        mt_free(MT_HOST, in);
    }
    mt_free(MT_DEVICE, out);
}

/* Other calls on the request of a receive than those that wait for it and test it. */
static void ask_otherwise(int way, int *in)
{
    MPI_Request request;
    MPI_Status  status;
    int         over = 0;

    MPI_Irecv(in, SHORT, MPI_INT, HERE, TAG + way, MPI_COMM_WORLD, &request);
    MPI_Barrier(MPI_COMM_WORLD);
    if (way == 0) {
        MPI_Request_free(&request);
        for (double begun = MPI_Wtime();
             (MPI_Wtime() - begun < 5) && ((in[SHORT - 1] != mt_value(HERE, way, SHORT - 1)) ||
                                           (in[0] != mt_value(HERE, way, 0)));) {
            MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &over, MPI_STATUS_IGNORE);
        }
    } else if (way == 1) {
        while (!over) {
            MPI_Request_get_status(request, &over, &status);
        }
        mt_expect_status(&status, HERE, TAG + way, SHORT, "MPI_Request_get_status");
        MPI_Wait(&request, &status);
    } else {
        MPI_Cancel(&request);
        MPI_Wait(&request, &status);
        MPI_Test_cancelled(&status, &over);
        mt_expect(over, "the receive was not cancelled");
        MPI_Recv(in, SHORT, MPI_INT, HERE, TAG + way, MPI_COMM_WORLD, &status);
    }
    mt_ints_expect(in, MT_HOST, SHORT, SHORT, HERE, way, "asked otherwise");
}

static void case_otherwise(void)
{
    enum { WAYS = 3 };
    int *in[WAYS]; /* until the end: nothing tells when a receive is over whose request is freed */

    mt_memory_open(mt_runtime(), mt_rank());
    mt_meet_on_device();
    for (int way = 0; way < WAYS; way++) {
        int *out = mt_ints_make(MT_DEVICE, SHORT, SHORT, way);
        in[way] = mt_ints_make(MT_HOST, SHORT, 0, 0);
        if (mt_rank() == HERE) {
            MPI_Barrier(MPI_COMM_WORLD);
            usleep((way == 2) ? 100 * 1000 : 0); /* until the receive is cancelled */
            MPI_Ssend(out, SHORT, MPI_INT, THERE, TAG + way, MPI_COMM_WORLD);
        } else {
            ask_otherwise(way, in[way]);
        }
        mt_free(MT_DEVICE, out);
    }
    for (int way = 0; way < WAYS; way++) {
        mt_free(MT_HOST, in[way]);
    }
}

/* From nobody nothing comes, and there may be no memory to look at. */
static void case_nobody(void)
{
    size_t     bytes = (size_t)sysconf(_SC_PAGESIZE);
    void      *buffer = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MPI_Status status;

    MPI_Recv(buffer, SHORT, MPI_INT, MPI_PROC_NULL, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    mt_memory_open(mt_runtime(), mt_rank());
    mt_meet_on_device();
    MPI_Recv(buffer, SHORT, MPI_INT, MPI_PROC_NULL, TAG, MPI_COMM_WORLD, &status);
    mt_expect_status(&status, MPI_PROC_NULL, MPI_ANY_TAG, 0, "a message from nobody");
    munmap(buffer, bytes);
}

/* MPI_Testall() until it has completed all of them; or, for a while, until one of them fails. */
static void test_all(int count, MPI_Request *requests, bool failure)
{
    int over = 0, code = MPI_SUCCESS;

    for (double begun = MPI_Wtime(); MPI_Wtime() - begun < (failure ? 0.05 : 5);) {
        int left = 0;
        code = MPI_Testall(count, requests, &over, MPI_STATUSES_IGNORE);
        for (int i = 0; i < count; i++) {
            left += (requests[i] != MPI_REQUEST_NULL);
        }
        if ((left == 0) || (failure && (code != MPI_SUCCESS))) {
            return;
        }
    }
    mt_expect(failure, "MPI_Testall does not complete all");
}

/* One of several is too long: MPI may say so while others are to come, and has completed some. */
static void case_too_long(void)
{
    enum { MESSAGES = 4 };
    MPI_Request requests[MESSAGES];
    int        *in[MESSAGES];

    mt_memory_open(mt_runtime(), mt_rank());
    mt_meet_on_device();
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int *out = mt_ints_make(MT_DEVICE, SHORT, SHORT, 3);
    int *host = mt_ints_make(MT_HOST, 2 * SHORT, 2 * SHORT, 3);
    for (int i = 0; i < MESSAGES; i++) {
        in[i] = mt_ints_make(MT_HOST, SHORT, 0, 0);
        if (mt_rank() == THERE) {
            MPI_Irecv(in[i], SHORT, MPI_INT, HERE, i, MPI_COMM_WORLD, &requests[i]);
        }
    }
    for (int i = 0; (i < MESSAGES) && (mt_rank() == HERE); i++) {
        MPI_Send((i < 2) ? host : out, (i == 0) ? 2 * SHORT : SHORT, MPI_INT, THERE, i,
                 MPI_COMM_WORLD);
        if (i == 1) {
            MPI_Barrier(MPI_COMM_WORLD);
        }
    }
    if (mt_rank() == THERE) {
        test_all(MESSAGES, requests, true);
        MPI_Barrier(MPI_COMM_WORLD);
        test_all(MESSAGES, requests, false);
    }
    for (int i = 0; i < MESSAGES; i++) {
        bool whole = (i > 0) && (mt_rank() == THERE);
        if (whole) {
            mt_ints_expect(in[i], MT_HOST, SHORT, SHORT, HERE, 3, "beside one that is too long");
        }
        mt_free(MT_HOST, in[i]);
    }
    mt_free(MT_HOST, host);
    mt_free(MT_DEVICE, out);
}

/*
 * Each is sent once the one before has been received, by who waits for all of them: in 57 ms and
 * more if only the watcher looked.
 */
static void case_in_turn(void)
{
    enum { MESSAGES = 50, MOST_MS = 25 };
    MPI_Request requests[MESSAGES];
    int        *in[MESSAGES], over = 0;

    mt_memory_open(mt_runtime(), mt_rank());
    mt_meet_on_device();
    int *out = mt_ints_make(MT_DEVICE, SHORT, SHORT, 8);
    for (int i = 0; i < MESSAGES; i++) {
        in[i] = mt_ints_make(MT_HOST, SHORT, 0, 0);
        if (mt_rank() == THERE) {
            MPI_Irecv(in[i], SHORT, MPI_INT, HERE, i, MPI_COMM_WORLD, &requests[i]);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    double begun = MPI_Wtime();
    for (int i = 0; (i < MESSAGES) && (mt_rank() == HERE); i++) {
        MPI_Ssend(out, SHORT, MPI_INT, THERE, i, MPI_COMM_WORLD);
    }
    while ((mt_rank() == THERE) && !over) {
        MPI_Testall(MESSAGES, requests, &over, MPI_STATUSES_IGNORE);
    }
    double ms = 1e3 * (MPI_Wtime() - begun) / MESSAGES;
    mt_expect(ms < MOST_MS, "a message took %.1f ms", ms);
    for (int i = 0; i < MESSAGES; i++) {
        mt_ints_expect(in[i], MT_HOST, SHORT, (mt_rank() == THERE) ? SHORT : 0, HERE, 8, "in turn");
        mt_free(MT_HOST, in[i]);
    }
    mt_free(MT_DEVICE, out);
}

int main(int argc, char **argv)
{
    static const struct mt_named_case cases[] = {
        {"unready", case_unready},
        {"middle", case_middle},
        {"scratch", case_scratch},
        {"to-host", case_to_host},
        {"irregular", case_irregular},
        {"short", case_short},
        {"passed-over", case_passed_over},
        {"short-passed-over", case_short_passed_over},
        {"mixed", case_mixed},
        {"awaited", case_awaited},
        {"otherwise", case_otherwise},
        {"nobody", case_nobody},
        {"too-long", case_too_long},
        {"in-turn", case_in_turn},
        {NULL, NULL},
    };

    /* These open a device, and the others do so themselves. */
    bool open = (argc > 2) && (strstr("unready middle scratch irregular to-host", argv[2]) != NULL);

    mt_begin(&argc, &argv, open);
    return mt_run_to_end(cases, argc, argv);
}
