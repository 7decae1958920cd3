/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Large messages from device memory, which their receivers fetch: two ranks.
 * Usage: mpi_rendezvous cuda|rocm|none CASE [PATH]
 * PATH: what xccl_mpi_last_message_path() is to say of the sends, where the case looks.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support.h"
#include "types.h"

enum { COUNT = 20000, ROWS = 40, COLUMNS = 500, TAG = 5, DESCRIPTOR = 80 };

static const char *path;

static int *make(enum mt_where where, int count, int salt)
{
    return mt_ints_make(where, COUNT, count, salt);
}

static void expect(const int *buffer, enum mt_where where, int count, int from, int salt,
                   const char *what)
{
    mt_ints_expect(buffer, where, COUNT, count, from, salt, what);
}

static void expect_status(const MPI_Status *status, int tag, int count, const char *what)
{
    mt_expect_status(status, 1 - mt_rank(), tag, count, what);
}

/* ---- programs in which the receiver sits in another call when the message comes ---- */

typedef MPI_Datatype make_type(void);

static MPI_Datatype type_plain(void)
{
    MPI_Datatype type;

    MPI_Type_contiguous(COUNT, MPI_INT, &type);
    return type;
}

/* All of the block but for its last column. */
static MPI_Datatype type_vector(void)
{
    MPI_Datatype type;

    MPI_Type_vector(ROWS, COLUMNS - 1, COLUMNS, MPI_INT, &type);
    return type;
}

/* The same, as a type that cannot be taken apart. */
static MPI_Datatype type_darray(void)
{
    return mt_darray_make(ROWS, COLUMNS);
}

static void expect_type(const int *buffer, enum mt_where where, bool holes, int salt,
                        const char *what)
{
    int *host = malloc(sizeof(int) * COUNT);
    int  wrong = 0;

    mt_get(host, buffer, where, sizeof(int) * COUNT);
    for (int i = 0; i < COUNT; i++) {
        bool hole = holes && (i % COLUMNS == COLUMNS - 1);
        wrong += host[i] != (hole ? MT_UNTOUCHED : mt_value(0, salt, i));
    }
    mt_expect(wrong == 0, "%s: %d of %d integers are wrong", what, wrong, COUNT);
    free(host);
}

/* Rank 0 sends and then meets rank 1, which meets first and looks after its receive then. */
static void behind_barrier(make_type *sent, make_type *received, enum mt_where where,
                           const char *what)
{
    MPI_Datatype st = sent(), rt = received();
    MPI_Request  request;
    MPI_Status   status;

    MPI_Type_commit(&st);
    MPI_Type_commit(&rt);
    if (mt_rank() == 0) {
        int *in = make(MT_DEVICE, COUNT, 3);
        MPI_Send(in, 1, st, 1, TAG, MPI_COMM_WORLD);
        mt_expect_message_path(path, what);
        MPI_Barrier(MPI_COMM_WORLD);
        mt_free(MT_DEVICE, in);
    } else {
        int *out = make(where, 0, 0);
        MPI_Irecv(out, 1, rt, 0, TAG, MPI_COMM_WORLD, &request);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Wait(&request, &status);
        expect_status(&status, TAG, (received == type_plain) ? COUNT : COUNT - ROWS, what);
        expect_type(out, where, received != type_plain, 3, what);
        mt_free(where, out);
    }
    MPI_Type_free(&st);
    MPI_Type_free(&rt);
}

/* What messages are served by when they cannot be fetched. */
static void expect_no_files(void)
{
    char  link[64], text[512];
    int   files = 0, maps = 0;
    FILE *list = fopen("/proc/self/maps", "r");

    while ((list != NULL) && (fgets(text, sizeof(text), list) != NULL)) {
        maps += (strstr(text, "xccl-message") != NULL);
    }
    if (list != NULL) {
        fclose(list);
    }
    for (int fd = 0; fd < 1024; fd++) {
        snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        ssize_t n = readlink(link, text, sizeof(text) - 1);
        text[(n > 0) ? n : 0] = '\0';
        files += (strstr(text, "xccl-message") != NULL);
    }
    mt_expect((files == 0) && (maps == 0), "%d files of messages are open, %d mapped", files, maps);
}

static void case_barrier(void)
{
    mt_meet_on_device();
    behind_barrier(type_plain, type_plain, MT_DEVICE, "plain to device memory");
    behind_barrier(type_plain, type_plain, MT_HOST, "plain to host memory");
    behind_barrier(type_plain, type_plain, MT_MANAGED, "plain to managed memory");
    behind_barrier(type_vector, type_vector, MT_DEVICE, "a vector to device memory");
    behind_barrier(type_vector, type_vector, MT_HOST, "a vector to host memory");
    behind_barrier(type_vector, type_darray, MT_DEVICE, "a vector to a darray on the device");
    behind_barrier(type_vector, type_darray, MT_HOST, "a vector to a darray on the host");
    expect_no_files();
}

/* What rank 0 receives must come before rank 1 takes what rank 0 sends. */
static void case_crossing(void)
{
    int  big = 1 << 20, other = 1 - mt_rank();
    int *host = calloc((size_t)big, sizeof(int));

    mt_meet_on_device();
    if (mt_rank() == 0) {
        int *out = make(MT_DEVICE, 0, 0);
        MPI_Sendrecv(host, big, MPI_INT, other, TAG, out, COUNT, MPI_INT, other, TAG,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        expect(out, MT_DEVICE, COUNT, 1, 1, "received while sending");
        mt_free(MT_DEVICE, out);
    } else {
        int *in = make(MT_DEVICE, COUNT, 1);
        MPI_Send(in, COUNT, MPI_INT, other, TAG, MPI_COMM_WORLD);
        MPI_Recv(host, big, MPI_INT, other, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        mt_free(MT_DEVICE, in);
    }
    free(host);
}

/* ---- probes ---- */

/* Rank 0 sends: a large message, one of a descriptor's size, small ones, with different tags. */
static const struct {
    int tag, count;
} train[] = {{3, 10},   {TAG, COUNT},   {4, DESCRIPTOR / 4},   {TAG, COUNT - 1}, {3, 11},
             {TAG, 12}, {4, COUNT - 2}, {TAG, DESCRIPTOR / 4}, {3, COUNT - 3}};
enum { TRAIN = sizeof(train) / sizeof(train[0]) };

static void send_train(void)
{
    int        *in[TRAIN];
    MPI_Request requests[TRAIN];

    for (int i = 0; i < TRAIN; i++) {
        in[i] = make(MT_DEVICE, COUNT, i);
        MPI_Isend(in[i], train[i].count, MPI_INT, 1, train[i].tag, MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Waitall(TRAIN, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < TRAIN; i++) {
        mt_free(MT_DEVICE, in[i]);
    }
}

/* Every way to receive, in turn. */
static void receive_in_form(int form, int *out, int tag, MPI_Status *status)
{
    MPI_Request request;
    int         index, sent = 7, room = COUNT;

    switch (form % 6) {
    case 0:
        MPI_Recv(out, room, MPI_INT, 0, tag, MPI_COMM_WORLD, status);
        break;
    case 1:
        MPI_Irecv(out, room, MPI_INT, MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, status);
        break;
    case 2:
        MPI_Recv_init(out, room, MPI_INT, 0, tag, MPI_COMM_WORLD, &request);
        MPI_Start(&request);
        MPI_Waitany(1, &request, &index, status);
        mt_expect(index == 0, "MPI_Waitany of a persistent receive says %d", index);
        MPI_Request_free(&request);
        break;
    case 3:
        MPI_Sendrecv(&sent, 1, MPI_INT, MPI_PROC_NULL, 0, out, room, MPI_INT, 0, tag,
                     MPI_COMM_WORLD, status);
        break;
    case 4:
        MPI_Sendrecv_replace(out, room, MPI_INT, MPI_PROC_NULL, 0, 0, tag, MPI_COMM_WORLD, status);
        break;
    default: {
        MPI_Message message;
        MPI_Mprobe(0, tag, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
        MPI_Mrecv(out, room, MPI_INT, &message, status);
        break;
    }
    }
}

/* Probe for one message of the train, then receive all of them with any tag, in their order. */
static void probe_for(int tag, int first, int form, enum mt_where where)
{
    MPI_Status status;
    int        flag = 0;
    char       what[80];

    if (form % 2 == 0) {
        MPI_Probe(0, tag, MPI_COMM_WORLD, &status);
    } else {
        while (!flag) {
            MPI_Iprobe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &flag, &status);
        }
    }
    snprintf(what, sizeof(what), "a probe for tag %d, form %d", tag, form);
    expect_status(&status, train[first].tag, train[first].count, what);
    for (int i = 0; i < TRAIN; i++) {
        int *out = make(where, 0, 0);
        snprintf(what, sizeof(what), "message %d after a probe for tag %d, form %d", i, tag, form);
        receive_in_form(form + i, out, MPI_ANY_TAG, &status);
        expect_status(&status, train[i].tag, train[i].count, what);
        expect(out, where, train[i].count, 0, i, what);
        mt_free(where, out);
    }
}

static void case_probes(void)
{
    const int tags[] = {TAG, 4, 3, MPI_ANY_TAG}, firsts[] = {1, 2, 0, 0};

    mt_meet_on_device();
    for (int form = 0; form < 8; form++) {
        if (mt_rank() == 0) {
            send_train();
        } else {
            probe_for(tags[form % 4], firsts[form % 4], form, (form < 4) ? MT_DEVICE : MT_HOST);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

/* Messages that are matched in one order and received in another. */
static void case_matched(void)
{
    MPI_Message messages[TRAIN];
    MPI_Request requests[TRAIN];
    int        *out[TRAIN];
    MPI_Status  status, statuses[TRAIN];
    int         flag;

    mt_meet_on_device();
    if (mt_rank() == 0) {
        send_train();
        return;
    }
    for (int i = 0; i < TRAIN; i++) {
        out[i] = make((i % 2) ? MT_DEVICE : MT_HOST, 0, 0);
        flag = 0;
        while (!flag) {
            MPI_Improbe(0, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &messages[i], &status);
        }
        expect_status(&status, train[i].tag, train[i].count, "MPI_Improbe");
    }
    for (int i = TRAIN - 1; i >= 0; i--) {
        MPI_Imrecv(out[i], COUNT, MPI_INT, &messages[i], &requests[i]);
    }
    MPI_Waitall(TRAIN, requests, statuses);
    for (int i = 0; i < TRAIN; i++) {
        enum mt_where where = (i % 2) ? MT_DEVICE : MT_HOST;
        expect_status(&statuses[i], train[i].tag, train[i].count, "MPI_Imrecv");
        expect(out[i], where, train[i].count, 0, i, "MPI_Imrecv");
        mt_free(where, out[i]);
    }
}

/* ---- the rest ---- */

/* A receive in host memory that was begun before the process had a device. */
static void case_late(void)
{
    MPI_Request request;
    MPI_Status  status;
    int        *host = malloc(sizeof(int) * COUNT);

    for (int i = 0; i < COUNT; i++) {
        host[i] = MT_UNTOUCHED;
    }
    MPI_Irecv(host, COUNT, MPI_INT, 1 - mt_rank(), TAG, MPI_COMM_WORLD, &request);
    mt_memory_open(mt_runtime(), mt_rank());
    int *in = make(MT_DEVICE, COUNT, 9), *out = make(MT_DEVICE, 0, 0);
    MPI_Sendrecv(in, 100, MPI_INT, 1 - mt_rank(), 1, out, 100, MPI_INT, 1 - mt_rank(), 1,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Send(in, COUNT - 5, MPI_INT, 1 - mt_rank(), TAG, MPI_COMM_WORLD);
    mt_expect_message_path(path, "to a receive from before");
    MPI_Wait(&request, &status);
    expect_status(&status, TAG, COUNT - 5, "a receive from before");
    expect(host, MT_HOST, COUNT - 5, 1 - mt_rank(), 9, "a receive from before");
    mt_free(MT_DEVICE, in);
    mt_free(MT_DEVICE, out);
    free(host);
}

/* Memory that is freed, and comes again with other contents. */
static void case_reuse(void)
{
    mt_meet_on_device();
    for (int i = 0; i < 20; i++) {
        if (mt_rank() == 0) {
            int *in = make(MT_DEVICE, COUNT, i);
            MPI_Send(in, COUNT, MPI_INT, 1, TAG, MPI_COMM_WORLD);
            mt_expect_message_path(path, "memory that comes again");
            mt_free(MT_DEVICE, in);
        } else {
            int *out = make(MT_DEVICE, 0, 0);
            MPI_Recv(out, COUNT, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            expect(out, MT_DEVICE, COUNT, 0, i, "memory that comes again");
            mt_free(MT_DEVICE, out);
        }
    }
}

/* Messages back and forth: of all sizes that a kernel that stays treats differently, and at odd
 * addresses. */
static void case_sizes(void)
{
    static const int sizes[] = {1,    3,    4,    8,     23,    24,    25,     600,    1023,
                                1024, 1025, 5000, 32768, 32769, 70001, 300000, 1 << 20};
    enum { NUM = sizeof(sizes) / sizeof(sizes[0]), LARGEST = 1 << 20, ROUNDS = 6 };
    unsigned char *host = malloc(LARGEST), *got = malloc(LARGEST);
    unsigned char *room = mt_alloc(MT_DEVICE, LARGEST + 16);
    int            other = 1 - mt_rank();

    for (int i = 0; i < NUM * ROUNDS; i++) {
        int            bytes = sizes[i / ROUNDS], wrong = 0;
        unsigned char *at = room + i % ROUNDS;
        for (int k = 0; k < bytes; k++) {
            host[k] = (unsigned char)(k * 7 + k / 256 + i);
        }
        for (int turn = 0; turn < 2; turn++) {
            if (turn == mt_rank()) {
                mt_put(at, MT_DEVICE, host, (size_t)bytes);
                MPI_Send(at, bytes, MPI_BYTE, other, TAG, MPI_COMM_WORLD);
            } else {
                MPI_Recv(at, bytes, MPI_BYTE, other, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                mt_get(got, at, MT_DEVICE, (size_t)bytes);
                wrong = memcmp(host, got, (size_t)bytes);
            }
        }
        mt_expect(wrong == 0, "a message of %d bytes, %d bytes into memory", bytes, i % ROUNDS);
    }
    mt_free(MT_DEVICE, room);
    free(host);
    free(got);
}

/*
 * Elements of a size of which no descriptor is a multiple: what MPI makes of a part of one must not
 * matter.
 */
static void case_elements(void)
{
    enum { SIZE = 7, ELEMENTS = COUNT * 4 / SIZE };
    static const enum mt_where wheres[] = {MT_HOST, MT_DEVICE};
    const int                  lengths[] = {1, 1, 1};
    const MPI_Aint             places[] = {0, 4, 6};
    const MPI_Datatype         members[] = {MPI_INT, MPI_SHORT, MPI_CHAR};
    MPI_Datatype               packed, type;
    MPI_Status                 status;
    int                        got = -1;

    MPI_Type_create_struct(3, lengths, places, members, &packed);
    MPI_Type_create_resized(packed, 0, SIZE, &type);
    MPI_Type_commit(&type);
    for (int w = 0; w < 2; w++) {
        int *in = make(MT_DEVICE, COUNT, w), *out = make(wheres[w], 0, 0);
        if (mt_rank() == 0) {
            MPI_Send(in, ELEMENTS, type, 1, TAG, MPI_COMM_WORLD);
        } else {
            MPI_Recv(out, ELEMENTS, type, 0, TAG, MPI_COMM_WORLD, &status);
            MPI_Get_count(&status, type, &got);
            mt_expect(got == ELEMENTS, "%d elements instead of %d", got, ELEMENTS);
            expect(out, wheres[w], ELEMENTS * SIZE / 4, 0, w, "elements of 7 bytes");
        }
        mt_free(MT_DEVICE, in);
        mt_free(wheres[w], out);
    }
    MPI_Type_free(&packed);
    MPI_Type_free(&type);
}

/* Memory that comes again, while a collective is under way that the sender comes to after its
 * message. */
static void case_behind(void)
{
    float *sum = mt_alloc(MT_DEVICE, sizeof(float));

    mt_meet_on_device();
    MPI_Allreduce(MPI_IN_PLACE, sum, 1, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); /* joins */
    for (int i = 0; i < 5; i++) {
        MPI_Request pending = MPI_REQUEST_NULL;
        int        *buf = make(MT_DEVICE, (mt_rank() == 0) ? COUNT : 0, i);
        if (mt_rank() == 0) {
            MPI_Send(buf, COUNT, MPI_INT, 1, TAG, MPI_COMM_WORLD);
        }
        if (mt_rank() <= 1) {
            MPI_Iallreduce(MPI_IN_PLACE, sum, 1, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &pending);
        }
        if (mt_rank() == 1) {
            MPI_Recv(buf, COUNT, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            expect(buf, MT_DEVICE, COUNT, 0, i, "behind a collective");
        }
        MPI_Wait(&pending, MPI_STATUS_IGNORE);
        mt_free(MT_DEVICE, buf);
    }
    mt_free(MT_DEVICE, sum);
}

/* ---- persistent requests ---- */

/* Each way to complete a request that is active, or among others. */
static void complete_in_form(int form, MPI_Request *request, MPI_Status *status)
{
    MPI_Request several[3] = {MPI_REQUEST_NULL, *request, MPI_REQUEST_NULL};
    MPI_Status  statuses[3];
    int         flag = 0, index = -1;

    switch (form % 6) {
    case 0:
        MPI_Wait(request, status);
        return;
    case 1:
        while (!flag) {
            MPI_Test(request, &flag, status);
        }
        return;
    case 2:
        MPI_Waitall(3, several, statuses);
        *status = statuses[1];
        break;
    case 3:
        MPI_Waitany(3, several, &index, status);
        mt_expect(index == 1, "MPI_Waitany: index %d, not 1", index);
        break;
    case 4:
        while (!flag) {
            MPI_Testsome(3, several, &flag, &index, status);
        }
        mt_expect((flag == 1) && (index == 1), "MPI_Testsome: %d, index %d", flag, index);
        break;
    default:
        while (!flag) {
            MPI_Request_get_status(*request, &flag, status);
        }
        MPI_Waitsome(3, several, &flag, &index, MPI_STATUSES_IGNORE);
        mt_expect((flag == 1) && (index == 1), "MPI_Waitsome: %d, index %d", flag, index);
        break;
    }
    mt_expect(several[1] != MPI_REQUEST_NULL, "form %d: a persistent request is null", form);
    *request = several[1];
}

typedef int init_fn(const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
                    MPI_Request *request);

/* A send that is started again and again, with other values each time. */
static void start_sends(init_fn *init, MPI_Datatype type, int starts, MPI_Comm comm)
{
    int        *in = make(MT_DEVICE, COUNT, 0), *host = malloc(sizeof(int) * COUNT);
    MPI_Request request;
    MPI_Status  status;

    init(in, 1, type, 1, TAG, comm, &request);
    for (int i = 0; i < starts; i++) {
        for (int k = 0; k < COUNT; k++) {
            host[k] = mt_value(0, i, k);
        }
        mt_put(in, MT_DEVICE, host, sizeof(int) * COUNT);
        MPI_Barrier(MPI_COMM_WORLD);
        if (i % 2 == 0) {
            MPI_Start(&request);
        } else {
            MPI_Startall(1, &request);
        }
        mt_expect_message_path(path, "a persistent send");
        complete_in_form(i, &request, &status);
        MPI_Wait(&request, &status); /* is inactive */
    }
    MPI_Request_free(&request);
    mt_free(MT_DEVICE, in);
    free(host);
}

static void start_receives(bool holes, MPI_Datatype type, int starts, MPI_Comm comm)
{
    for (int i = 0; i < starts; i++) {
        enum mt_where where = (i % 3 == 2) ? MT_HOST : MT_DEVICE;
        int          *out = make(where, 0, 0);
        MPI_Request   request;
        MPI_Status    status;
        MPI_Recv_init(out, 1, type, (i % 2 == 0) ? 0 : MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &request);
        MPI_Start(&request);
        MPI_Barrier(MPI_COMM_WORLD);
        complete_in_form(i + 1, &request, &status);
        if ((i + 1) % 6 != 5) {
            expect_status(&status, TAG, holes ? COUNT - ROWS : COUNT, "a persistent send");
        }
        expect_type(out, where, holes, i, "a persistent send");
        MPI_Request_free(&request);
        mt_free(where, out);
    }
}

static void case_persistent(void)
{
    init_fn *inits[] = {MPI_Send_init, MPI_Ssend_init, MPI_Rsend_init};

    mt_meet_on_device();
    for (int i = 0; i < 6; i++) {
        bool         holes = (i >= 3);
        MPI_Datatype type = holes ? type_vector() : type_plain();
        MPI_Comm     comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Type_commit(&type);
        if (mt_rank() == 0) {
            start_sends(inits[i % 3], type, 6, comm);
        } else {
            start_receives(holes, type, 6, comm);
        }
        MPI_Type_free(&type);
        MPI_Comm_free(&comm);
    }
}

/* A start that the program cannot take back, one that it forgets, and one without a communicator.
 */
static void case_started(void)
{
    int        *buf = make(MT_DEVICE, (mt_rank() == 0) ? COUNT : 0, 0);
    MPI_Comm    comm;
    MPI_Request request;
    MPI_Status  status;

    mt_meet_on_device();
    for (int i = 0; i < 3; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        if (mt_rank() == 0) {
            MPI_Send_init(buf, COUNT, MPI_INT, 1, TAG + i, (i == 2) ? comm : MPI_COMM_WORLD,
                          &request);
        } else {
            MPI_Irecv(buf, COUNT, MPI_INT, 0, TAG + i, (i == 2) ? comm : MPI_COMM_WORLD, &request);
        }
        MPI_Comm_free(&comm);
        if (mt_rank() == 0) {
            MPI_Start(&request);
            mt_expect_message_path(((i == 2) && (path != NULL)) ? "mpi-staged" : path, "a start");
            if (i == 0) {
                MPI_Cancel(&request);
            }
            if (i != 1) {
                MPI_Wait(&request, &status);
            }
            MPI_Request_free(&request);
        } else {
            MPI_Wait(&request, &status);
            expect_status(&status, TAG + i, COUNT, "a start");
            expect(buf, MT_DEVICE, COUNT, 0, 0, "a start");
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    mt_free(MT_DEVICE, buf);
}

static void expect_truncated(int code, const char *what)
{
    int class;

    MPI_Error_class(code, &class);
    mt_expect(class == MPI_ERR_TRUNCATE, "%s: error class %d", what, class);
}

/* A start that got too much spoils no later one. Open MPI frees the request then. */
static void restart(int *out, int room, MPI_Comm comm)
{
    MPI_Request request;

    MPI_Recv_init(out, room, MPI_INT, 0, TAG, comm, &request);
    MPI_Start(&request);
    expect_truncated(MPI_Wait(&request, MPI_STATUS_IGNORE), "a persistent receive");
    if (request == MPI_REQUEST_NULL) {
        MPI_Recv_init(out, room, MPI_INT, 0, TAG, comm, &request);
    }
    MPI_Start(&request);
    mt_expect(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS, "its next start");
    mt_ints_expect(out, MT_DEVICE, room, room, 0, 1, "its next start");
    MPI_Request_free(&request);
}

/* Too long for their receives, which could hold a large message. */
static void case_truncated(void)
{
    enum { ROOM = COUNT / 2, MESSAGES = 3 };
    MPI_Request requests[MESSAGES];
    MPI_Status  statuses[MESSAGES];
    MPI_Comm    comm;
    int        *in = make(MT_DEVICE, COUNT, 1), *out = make(MT_DEVICE, 0, 0), class;

    mt_meet_on_device();
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Error_class(MPI_Send(in, COUNT, MPI_INT, 1 << 20, TAG, MPI_COMM_WORLD), &class);
    mt_expect(class == MPI_ERR_RANK, "a rank that there is not: error class %d", class);
    if (mt_rank() == 0) {
        for (int i = 0; i < MESSAGES; i++) {
            MPI_Send(in, (i == 1) ? ROOM : COUNT, MPI_INT, 1, TAG, comm);
        }
        MPI_Send(in, COUNT, MPI_INT, 1, TAG, comm);
        MPI_Send(in, COUNT, MPI_INT, 1, TAG, comm);
        MPI_Send(in, ROOM, MPI_INT, 1, TAG, comm);
    } else {
        for (int i = 0; i < MESSAGES; i++) {
            MPI_Irecv((i == 1) ? out + ROOM : out, (i == 1) ? ROOM : ROOM - 1, MPI_INT, 0, TAG,
                      comm, &requests[i]);
        }
        int code = MPI_Waitall(MESSAGES, requests, statuses);
        MPI_Error_class(code, &class);
        mt_expect(class == MPI_ERR_IN_STATUS, "MPI_Waitall: error class %d", class);
        expect_truncated(statuses[0].MPI_ERROR, "the first status");
        mt_expect(statuses[1].MPI_ERROR == MPI_SUCCESS, "the second status: %d",
                  statuses[1].MPI_ERROR);
        expect_truncated(statuses[2].MPI_ERROR, "the third status");
        expect_truncated(MPI_Recv(out, ROOM, MPI_INT, 0, TAG, comm, &statuses[0]), "MPI_Recv");
        restart(out, ROOM, comm);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_free(&comm);
    mt_free(MT_DEVICE, in);
    mt_free(MT_DEVICE, out);
}

/* More messages at once than can be offered. */
static void case_many(void)
{
    enum { MESSAGES = 1500, LENGTH = 4200 };
    MPI_Request *requests = malloc(sizeof(*requests) * MESSAGES);
    int         *in = make(MT_DEVICE, COUNT, 2), *out = make(MT_DEVICE, 0, 0);
    int          wrong = 0;

    mt_meet_on_device();
    if (mt_rank() == 0) {
        for (int i = 0; i < MESSAGES; i++) {
            MPI_Isend(in + i, LENGTH, MPI_INT, 1, TAG, MPI_COMM_WORLD, &requests[i]);
        }
        MPI_Waitall(MESSAGES, requests, MPI_STATUSES_IGNORE);
    } else {
        int *host = malloc(sizeof(int) * LENGTH);
        MPI_Barrier(MPI_COMM_SELF);
        for (int i = 0; i < MESSAGES; i++) {
            MPI_Recv(out, LENGTH, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            mt_get(host, out, MT_DEVICE, sizeof(int) * LENGTH);
            wrong += (host[0] != mt_value(0, 2, i)) ||
                     (host[LENGTH - 1] != mt_value(0, 2, i + LENGTH - 1));
        }
        free(host);
    }
    mt_expect(wrong == 0, "%d of %d messages are wrong", wrong, MESSAGES);
    mt_free(MT_DEVICE, in);
    mt_free(MT_DEVICE, out);
    free(requests);
}

/* A probe takes a short message out of MPI's queue, too, which a persistent request receives. */
static void case_short(void)
{
    enum { SHORT = 12, SHORT_TAG = TAG + 1 };
    int        *in = make(MT_DEVICE, COUNT, 1), *out = make(MT_DEVICE, 0, 0);
    MPI_Request request;
    MPI_Status  status;

    mt_meet_on_device();
    if (mt_rank() == 0) {
        MPI_Send(in, SHORT, MPI_INT, 1, SHORT_TAG, MPI_COMM_WORLD);
        MPI_Send(in, COUNT, MPI_INT, 1, TAG, MPI_COMM_WORLD);
    } else {
        MPI_Recv_init(out, SHORT, MPI_INT, 0, SHORT_TAG, MPI_COMM_WORLD, &request);
        MPI_Probe(0, TAG, MPI_COMM_WORLD, &status);
        expect_status(&status, TAG, COUNT, "the probe");
        MPI_Start(&request);
        MPI_Wait(&request, &status);
        expect_status(&status, SHORT_TAG, SHORT, "the short one");
        expect(out, MT_DEVICE, SHORT, 0, 1, "the short one");
        MPI_Request_free(&request);
        MPI_Recv(out, COUNT, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        expect(out, MT_DEVICE, COUNT, 0, 1, "the long one");
    }
    mt_free(MT_DEVICE, in);
    mt_free(MT_DEVICE, out);
}

/* A window of messages, all of which have come when they are waited for. */
static void pass_window(const int *in, int *const *out, int messages, int length)
{
    MPI_Request requests[64];
    int         host[8192];

    for (int i = 0; i < messages; i++) {
        if (mt_rank() == 0) {
            MPI_Isend(in + i, length, MPI_INT, 1, i, MPI_COMM_WORLD, &requests[i]);
        } else {
            MPI_Irecv(out[i], length, MPI_INT, 0, i, MPI_COMM_WORLD, &requests[i]);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Waitall(messages, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; (mt_rank() == 1) && (i < messages); i++) {
        mt_get(host, out[i], MT_DEVICE, sizeof(int) * (size_t)length);
        mt_expect((host[0] == mt_value(0, 2, i)) &&
                      (host[length - 1] == mt_value(0, 2, i + length - 1)),
                  "message %d is wrong", i);
    }
}

static void case_window(void)
{
    enum { MESSAGES = 40, LENGTH = 4200, WINDOWS = 12 };
    int *in = make(MT_DEVICE, COUNT, 2), *out[MESSAGES];

    for (int i = 0; i < MESSAGES; i++) {
        out[i] = make(MT_DEVICE, 0, 0);
    }
    for (int w = 0; w < WINDOWS; w++) {
        mt_meet_on_device();
        pass_window(in, out, MESSAGES, LENGTH);
        usleep(20 * 1000); /* kernels are loaded meanwhile */
    }
    for (int i = 0; i < MESSAGES; i++) {
        mt_free(MT_DEVICE, out[i]);
    }
    mt_free(MT_DEVICE, in);
}

int main(int argc, char **argv)
{
    static const struct mt_named_case cases[] = {
        {"barrier", case_barrier},     {"crossing", case_crossing},
        {"probes", case_probes},       {"matched", case_matched},
        {"late", case_late},           {"reuse", case_reuse},
        {"sizes", case_sizes},         {"elements", case_elements},
        {"behind", case_behind},       {"persistent", case_persistent},
        {"started", case_started},     {"many", case_many},
        {"window", case_window},       {"short", case_short},
        {"truncated", case_truncated}, {NULL, NULL},
    };
    bool open = (argc > 2) && (strcmp(argv[2], "late") != 0);

    mt_begin(&argc, &argv, open);
    path = (argc > 3) ? argv[3] : NULL;
    return mt_run_to_end(cases, argc, argv);
}
