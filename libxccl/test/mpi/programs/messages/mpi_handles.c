/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A derived datatype that the program frees while a call on device memory still needs it, which MPI
 * allows, and others that may take its handle. mpi_f08 does so itself for sections of arrays.
 * Requests that it frees before MPI_Comm_disconnect, which waits for their messages. And arrays
 * that it uses again while the call is under way, which MPI does not allow but stands. Usage:
 * mpi_handles cuda|rocm|none CASE [FOLDER]
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

enum { COUNT = 100, ROOM = 2 * COUNT };

static const char *folder = ".";

static int *make(bool filled)
{
    int  host[ROOM];
    int *buffer = mt_alloc(MT_DEVICE, sizeof(host));

    for (int i = 0; i < ROOM; i++) {
        host[i] = filled ? i + 1 : MT_UNTOUCHED;
    }
    mt_put(buffer, MT_DEVICE, host, sizeof(host));
    return buffer;
}

/* COUNT integers with a hole behind each. */
static MPI_Datatype holes(void)
{
    MPI_Datatype type;

    MPI_Type_vector(COUNT, 1, 2, MPI_INT, &type);
    MPI_Type_commit(&type);
    return type;
}

/* What was freed holds something else from here on: the C library gives it out again. */
static void fill_what_was_freed(void)
{
    enum { FROM = 16, TO = 3000, STEP = 8, EACH = 3 };
    static void *blocks[(TO - FROM) / STEP + 1][EACH];

    for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++) {
        for (int k = 0; k < EACH; k++) {
            free(blocks[i][k]);
            blocks[i][k] = malloc(FROM + STEP * i);
            memset(blocks[i][k], 0x5a, FROM + STEP * i);
        }
    }
}

static void free_and_make_others(MPI_Datatype *type)
{
    MPI_Type_free(type);
    fill_what_was_freed();
    for (int i = 0; i < 8; i++) {
        MPI_Datatype other;
        MPI_Type_contiguous(3, MPI_CHAR, &other);
        MPI_Type_commit(&other);
        if (i % 2 == 1) {
            MPI_Type_free(&other);
        }
    }
}

/* The first COUNT values, each before a hole. */
static void expect(const int *buffer)
{
    int host[ROOM], wrong = 0;

    mt_get(host, buffer, MT_DEVICE, sizeof(host));
    for (int i = 0; i < ROOM; i++) {
        wrong += host[i] != ((i % 2 == 0) ? i / 2 + 1 : MT_UNTOUCHED);
    }
    mt_expect(wrong == 0, "%d of %d integers are wrong", wrong, ROOM);
}

static void case_receive(void)
{
    int         *in = make(true), *out = make(false);
    MPI_Datatype type = holes();
    MPI_Request  request;

    MPI_Irecv(out, 1, type, 0, 0, MPI_COMM_SELF, &request);
    free_and_make_others(&type);
    MPI_Send(in, COUNT, MPI_INT, 0, 0, MPI_COMM_SELF);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(out);
}

enum { PAIRS = 100 };
struct pair {
    double value;
    int    place;
};

static struct pair *make_pairs(enum mt_where where, bool filled)
{
    struct pair  host[PAIRS];
    struct pair *pairs = mt_alloc(where, sizeof(host));

    memset(host, 0, sizeof(host));
    for (int i = 0; filled && (i < PAIRS); i++) {
        host[i] = (struct pair){i + 0.5, i + 1};
    }
    mt_put(pairs, where, host, sizeof(host));
    return pairs;
}

/* Its elements are of several sizes, so that MPI may not take it for what a descriptor fills. */
static void receive_pairs(enum mt_where where)
{
    struct pair *in = make_pairs(MT_DEVICE, true), *out = make_pairs(where, false), host[PAIRS];
    MPI_Datatype type;
    MPI_Request  request;
    int          wrong = 0;

    MPI_Type_dup(MPI_DOUBLE_INT, &type);
    MPI_Irecv(out, PAIRS, type, 0, 0, MPI_COMM_SELF, &request);
    free_and_make_others(&type);
    MPI_Send(in, PAIRS, MPI_DOUBLE_INT, 0, 0, MPI_COMM_SELF);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    mt_get(host, out, where, sizeof(host));
    for (int i = 0; i < PAIRS; i++) {
        wrong += (host[i].value != i + 0.5) || (host[i].place != i + 1);
    }
    mt_expect(wrong == 0, "%d of %d pairs are wrong", wrong, PAIRS);
    mt_free(MT_DEVICE, in);
    mt_free(where, out);
}

static void case_pairs(void)
{
    receive_pairs(MT_DEVICE);
    receive_pairs(MT_HOST);
}

static void case_persistent(void)
{
    int         *in = make(true), *out = make(false);
    MPI_Datatype type = holes();
    MPI_Request  request;

    MPI_Recv_init(out, 1, type, 0, 0, MPI_COMM_SELF, &request);
    free_and_make_others(&type);
    MPI_Start(&request);
    MPI_Send(in, COUNT, MPI_INT, 0, 0, MPI_COMM_SELF);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
    expect(out);
}

static void case_window(void)
{
    int         *memory, *out = make(false);
    MPI_Datatype type = holes();
    MPI_Win      win;

    MPI_Win_allocate(sizeof(int) * COUNT, sizeof(int), MPI_INFO_NULL, MPI_COMM_SELF, &memory, &win);
    for (int i = 0; i < COUNT; i++) {
        memory[i] = i + 1;
    }
    MPI_Win_fence(0, win);
    MPI_Get(out, 1, type, 0, 0, COUNT, MPI_INT, win);
    free_and_make_others(&type);
    MPI_Win_fence(0, win);
    expect(out);
    MPI_Win_free(&win);
}

static MPI_File open_file(void)
{
    char     path[4096];
    MPI_File file;
    int     *in = make(true);

    snprintf(path, sizeof(path), "%s/handles.tmp", folder);
    MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                  MPI_INFO_NULL, &file);
    MPI_File_write_at(file, 0, in, COUNT, MPI_INT, MPI_STATUS_IGNORE);
    return file;
}

static void case_file(void)
{
    MPI_File     file = open_file();
    int         *out = make(false);
    MPI_Datatype type = holes();
    MPI_Request  request;

    MPI_File_iread_at(file, 0, out, 1, type, &request);
    free_and_make_others(&type);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(out);
    MPI_File_close(&file);
}

static void case_split(void)
{
    MPI_File     file = open_file();
    int         *out = make(false);
    MPI_Datatype type = holes();

    MPI_File_read_at_all_begin(file, 0, out, 1, type);
    free_and_make_others(&type);
    MPI_File_read_at_all_end(file, out, MPI_STATUS_IGNORE);
    expect(out);
    MPI_File_close(&file);
}

static void case_collective(void)
{
    int         *in = make(true), *out = make(false);
    MPI_Datatype type = holes();
    MPI_Request  request;

    MPI_Iallgather(in, COUNT, MPI_INT, out, 1, type, MPI_COMM_SELF, &request);
    free_and_make_others(&type);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(out);
}

enum { PIECE = 2000 }; /* integers that each rank gives, with a hole behind each */

/* In order, or the last one first. */
static MPI_Datatype ordered(bool permutes)
{
    int          at[PIECE];
    MPI_Datatype type, wide;

    for (int i = 0; i < PIECE; i++) {
        at[i] = 2 * (permutes ? PIECE - 1 - i : i);
    }
    MPI_Type_create_indexed_block(PIECE, 1, at, MPI_INT, &type);
    MPI_Type_create_resized(type, 0, 2 * PIECE * (MPI_Aint)sizeof(int), &wide);
    MPI_Type_commit(&wide);
    MPI_Type_free(&type);
    return wide;
}

/* Where data is not unpacked on the device: managed memory, the host's, and a type that permutes.
 */
static void gather_to(enum mt_where where, bool permutes)
{
    int          room = 2 * PIECE * mt_size(), wrong = 0;
    size_t       bytes = sizeof(int) * (size_t)room;
    int         *host = malloc(bytes);
    int         *in = mt_alloc(MT_DEVICE, bytes), *out = mt_alloc(where, bytes);
    MPI_Datatype type = ordered(permutes);
    MPI_Request  request;

    for (int i = 0; i < room; i++) {
        host[i] = i + 1;
    }
    mt_put(in, MT_DEVICE, host, bytes);
    for (int i = 0; i < room; i++) {
        host[i] = MT_UNTOUCHED;
    }
    mt_put(out, where, host, bytes);
    MPI_Igather(in, PIECE, MPI_INT, out, 1, type, 0, MPI_COMM_WORLD, &request);
    MPI_Type_free(&type);
    fill_what_was_freed();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    mt_get(host, out, where, bytes);
    for (int i = 0; (mt_rank() == 0) && (i < room); i++) {
        int at = i % (2 * PIECE) / 2, value = (permutes ? PIECE - 1 - at : at) + 1;
        wrong += host[i] != ((i % 2 == 0) ? value : MT_UNTOUCHED);
    }
    mt_expect(wrong == 0, "memory %d, permuting %d: %d of %d integers are wrong", (int)where,
              (int)permutes, wrong, room);
    mt_free(where, out);
    free(host);
}

static void case_unpacked_by_mpi(void)
{
    for (int i = 0; i < 4; i++) {
        gather_to(MT_MANAGED, false);
        gather_to(MT_HOST, false);
        gather_to(MT_DEVICE, true);
        gather_to(MT_MANAGED, true);
    }
}

typedef int gatherv_init(const void *, int, MPI_Datatype, void *, const int *, const int *,
                         MPI_Datatype, int, MPI_Comm, MPI_Info, MPI_Request *);

/* Open MPI 4.1 has it as an extension. */
static gatherv_init *find_gatherv_init(void)
{
    void         *address = dlsym(RTLD_DEFAULT, "MPI_Gatherv_init");
    gatherv_init *found;

    address = (address != NULL) ? address : dlsym(RTLD_DEFAULT, "MPIX_Gatherv_init");
    memcpy(&found, &address, sizeof(found));
    return found;
}

/* The last rank gives nothing, of a type that is freed like the others' before the first start. */
static void case_empty_part(void)
{
    enum { PART = 4, STARTS = 3, MOST_RANKS = 8 };
    int          counts[MOST_RANKS] = {0}, at[MOST_RANKS] = {0}, host[ROOM], wrong = 0;
    int          givers = mt_size() - 1, *in = make(true), *out = make(false);
    MPI_Datatype type;
    MPI_Request  request;

    for (int i = 0; i < givers; i++) {
        counts[i] = PART;
        at[i] = PART * i;
    }
    MPI_Type_vector(2, 1, 2, MPI_INT, &type);
    MPI_Type_commit(&type);
    find_gatherv_init()(in, (mt_rank() < givers) ? 2 : 0, type, out, counts, at, MPI_INT, 0,
                        MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    MPI_Type_free(&type);
    fill_what_was_freed();
    for (int start = 0; start < STARTS; start++) {
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    mt_get(host, out, MT_DEVICE, sizeof(host));
    for (int i = 0; (mt_rank() == 0) && (i < PART * givers); i++) {
        wrong += host[i] != 1 + 3 * (i % PART / 2) + 2 * (i % 2);
    }
    mt_expect(wrong == 0, "a gather with an empty part: %d elements are wrong", wrong);
    MPI_Request_free(&request);
}

enum { RANKS = 4, DIMENSIONS = 5 };

/*
 * What a call has as arrays: a block of each rank, which goes to the second half of a buffer. On
 * communicators with a topology Open MPI 4.1 looks at a type for each neighbour in MPI_Ialltoallw.
 */
struct arrays {
    int          counts[RANKS], from[RANKS], to[RANKS], from_byte[RANKS], to_byte[RANKS];
    MPI_Datatype types[2 * DIMENSIONS];
};

static void fill(struct arrays *a, int block)
{
    memset(a, 0, sizeof(*a));
    for (int i = 0; i < RANKS; i++) {
        a->counts[i] = block;
        a->from[i] = i * block;
        a->to[i] = COUNT + i * block;
        a->from_byte[i] = a->from[i] * (int)sizeof(int);
        a->to_byte[i] = a->to[i] * (int)sizeof(int);
        a->types[i] = MPI_INT;
    }
}

enum vector_call { ALLTOALLV, ALLTOALLW, ALLGATHERV, GATHERV, SCATTERV, REDUCE_SCATTER, CALLS };

static void start(enum vector_call which, MPI_Comm comm, const int *in, int *out, int block,
                  const struct arrays *a, MPI_Request *request)
{
    int *half = out + COUNT;

    switch (which) {
    case ALLTOALLV:
        MPI_Ialltoallv(in, a->counts, a->from, MPI_INT, out, a->counts, a->to, MPI_INT, comm,
                       request);
        break;
    case ALLTOALLW:
        MPI_Ialltoallw(in, a->counts, a->from_byte, a->types, out, a->counts, a->to_byte, a->types,
                       comm, request);
        break;
    case ALLGATHERV:
        MPI_Iallgatherv(in, block, MPI_INT, out, a->counts, a->to, MPI_INT, comm, request);
        break;
    case GATHERV:
        MPI_Igatherv(in, block, MPI_INT, out, a->counts, a->to, MPI_INT, 0, comm, request);
        break;
    case SCATTERV:
        MPI_Iscatterv(in, a->counts, a->from, MPI_INT, half, block, MPI_INT, 0, comm, request);
        break;
    default:
        MPI_Ireduce_scatter(in, half, a->counts, MPI_INT, MPI_SUM, comm, request);
        break;
    }
}

/* Number i of the second half. Every rank passes 1, 2, 3, ... */
static int expected(enum vector_call which, int i, int block)
{
    bool one = (which == SCATTERV) || (which == REDUCE_SCATTER);
    int  mine = mt_rank() * block + i % block + 1;

    if (((which == GATHERV) && (mt_rank() != 0)) || (i >= (one ? 1 : mt_size()) * block)) {
        return MT_UNTOUCHED;
    }
    if ((which == ALLGATHERV) || (which == GATHERV)) {
        return i % block + 1;
    }
    return (which == REDUCE_SCATTER) ? mine * mt_size() : mine;
}

static void case_arrays(void)
{
    int      sizes[DIMENSIONS] = {mt_size(), 1, 1, 1, 1}, periods[DIMENSIONS] = {0};
    int      block = COUNT / RANKS;
    MPI_Comm comm;

    MPI_Cart_create(MPI_COMM_WORLD, DIMENSIONS, sizes, periods, 0, &comm);
    for (enum vector_call which = 0; which < CALLS; which++) {
        int          *in = make(true), *out = make(false), host[ROOM], wrong = 0;
        struct arrays a;
        MPI_Request   request;

        fill(&a, block);
        start(which, comm, in, out, block, &a, &request);
        memset(&a, 1, sizeof(a));
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        mt_get(host, out, MT_DEVICE, sizeof(host));
        for (int i = 0; i < ROOM; i++) {
            wrong += host[i] != ((i < COUNT) ? MT_UNTOUCHED : expected(which, i - COUNT, block));
        }
        mt_expect(wrong == 0, "call %d: %d of %d integers are wrong", (int)which, wrong, ROOM);
    }
    MPI_Comm_free(&comm);
}

/* What is left to MPI_Comm_disconnect: its request is freed before it is over. */
enum left { LEFT_SEND, LEFT_STARTED_SEND, LEFT_RECEIVE, LEFT_MATCHED_RECEIVE, NUM_LEFT };

static void send_and_free(const int *in, int count, int peer, bool starts, MPI_Comm comm)
{
    MPI_Request request;

    if (starts) {
        MPI_Send_init(in, count, MPI_INT, peer, 0, comm, &request);
        MPI_Start(&request);
    } else {
        MPI_Isend(in, count, MPI_INT, peer, 0, comm, &request);
    }
    MPI_Request_free(&request);
}

/* Both ranks leave the same. */
static void disconnect_after(int count, enum left left)
{
    int         peer = 1 - mt_rank(), salt = count % 100;
    int        *in = mt_ints_make(MT_DEVICE, count, count, salt);
    int        *out = mt_ints_make(MT_DEVICE, count, 0, 0);
    MPI_Request request;
    MPI_Message message;
    MPI_Comm    comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    if (left == LEFT_RECEIVE) {
        MPI_Irecv(out, count, MPI_INT, peer, 0, comm, &request);
        MPI_Request_free(&request);
    }
    send_and_free(in, count, peer, left == LEFT_STARTED_SEND, comm);
    if (left == LEFT_MATCHED_RECEIVE) {
        MPI_Mprobe(peer, 0, comm, &message, MPI_STATUS_IGNORE);
        MPI_Imrecv(out, count, MPI_INT, &message, &request);
        MPI_Request_free(&request);
    } else if (left != LEFT_RECEIVE) {
        MPI_Recv(out, count, MPI_INT, peer, 0, comm, MPI_STATUS_IGNORE);
    }
    MPI_Comm_disconnect(&comm);
    mt_ints_expect(out, MT_DEVICE, count, count, peer, salt, "before MPI_Comm_disconnect");
    mt_free(MT_DEVICE, in);
    mt_free(MT_DEVICE, out);
}

static void case_disconnected(void)
{
    static const int counts[] = {1, 30, 5000, 100000};

    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 4; i++) {
            for (enum left left = 0; left < NUM_LEFT; left++) {
                disconnect_after(counts[i], left);
            }
        }
    }
}

int main(int argc, char **argv)
{
    const struct mt_named_case cases[] = {
        {"receive", case_receive},
        {"persistent", case_persistent},
        {"window", case_window},
        {"file", case_file},
        {"split", case_split},
        {"collective", case_collective},
        {"arrays", case_arrays},
        {"unpacked", case_unpacked_by_mpi},
        {"empty", case_empty_part},
        {"pairs", case_pairs},
        {"disconnected", case_disconnected},
        {NULL, NULL},
    };

    mt_begin(&argc, &argv, true);
    folder = (argc > 3) ? argv[3] : folder;
    return mt_run_to_end(cases, argc, argv);
}
