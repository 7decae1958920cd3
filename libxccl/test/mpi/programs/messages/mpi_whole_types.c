/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages from device memory into types that nobody takes apart, which MPI unpacks itself, and
 * what is left of a descriptor when its message is gone.
 * Usage: mpi_whole_types cuda|rocm|none CASE, on two ranks
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "support.h"

enum { TOTAL = 8000, OWN = TOTAL / 2, ELEMENTS = 3, TAG = 3 };

/* Every second integer of an array that is distributed over two processes. */
static MPI_Datatype distributed_of(int total)
{
    int          sizes[1] = {total}, how[1] = {MPI_DISTRIBUTE_CYCLIC}, blocks[1] = {1};
    int          grid[1] = {2};
    MPI_Datatype type;

    MPI_Type_create_darray(2, 0, 1, sizes, how, blocks, grid, MPI_ORDER_C, MPI_INT, &type);
    MPI_Type_commit(&type);
    return type;
}

static MPI_Datatype distributed(void)
{
    return distributed_of(TOTAL);
}

static int *numbered(int count, int first)
{
    int *host = malloc(sizeof(int) * (size_t)count), *device;

    for (int i = 0; i < count; i++) {
        host[i] = first + i;
    }
    device = mt_alloc(MT_DEVICE, sizeof(int) * (size_t)count);
    mt_put(device, MT_DEVICE, host, sizeof(int) * (size_t)count);
    free(host);
    return device;
}

/* What rank 0 has got: count numbers from 1000 on where the type has data, and the rest as it was.
 */
static void expect(const int *array, int elements, int before, const char *what)
{
    int wrong = 0, number = 0;

    for (int i = 0; i < elements * TOTAL; i++) {
        bool data = (i % 2 == 0);
        wrong += array[i] != (data ? 1000 + number : before + i);
        number += data;
    }
    mt_expect(wrong == 0, "%s: %d of %d integers are wrong", what, wrong, elements * TOTAL);
}

/* MPI_Sendrecv_replace, from host or device memory. */
static void replace(enum mt_where where, int elements)
{
    int          all = elements * TOTAL, own = elements * OWN, wrong = 0;
    size_t       bytes = sizeof(int) * (size_t)all;
    int         *host = malloc(bytes), *mine = mt_alloc(where, bytes);
    MPI_Datatype type = distributed();
    MPI_Status   status;

    if (mt_rank() == 1) {
        MPI_Sendrecv(numbered(own, 1000), own, MPI_INT, 0, TAG, host, own, MPI_INT, 0, TAG,
                     MPI_COMM_WORLD, &status);
        for (int i = 0; i < own; i++) {
            wrong += host[i] != -1 + 2 * i;
        }
        mt_expect(wrong == 0, "%d integers that were to be replaced came wrong", wrong);
    } else {
        for (int i = 0; i < all; i++) {
            host[i] = -1 + i;
        }
        mt_put(mine, where, host, bytes);
        MPI_Sendrecv_replace(mine, elements, type, 1, TAG, 1, TAG, MPI_COMM_WORLD, &status);
        mt_expect_status(&status, 1, TAG, own, "what was replaced");
        mt_get(host, mine, where, bytes);
        expect(host, elements, -1, "what was replaced");
    }
    MPI_Type_free(&type);
    free(host);
    mt_free(where, mine);
}

static void case_replace(void)
{
    replace(MT_HOST, 1);
    replace(MT_HOST, ELEMENTS);
    replace(MT_DEVICE, ELEMENTS);
}

/* A receive with room for more bytes than an int counts. */
static void case_room(void)
{
    enum { ROOM = 150000 };
    size_t       bytes = sizeof(int) * TOTAL * (size_t)ROOM;
    MPI_Datatype type = distributed();
    MPI_Status   status;
    MPI_Request  request;

    if (mt_rank() == 1) {
        int *from = numbered(ELEMENTS * OWN, 1000);
        MPI_Send(from, ELEMENTS * OWN, MPI_INT, 0, TAG, MPI_COMM_WORLD);
        MPI_Send(from, ELEMENTS * OWN, MPI_INT, 0, TAG, MPI_COMM_WORLD);
        MPI_Type_free(&type);
        return;
    }
    for (int blocking = 0; blocking < 2; blocking++) {
        int *room = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        for (int i = 0; i < ELEMENTS * TOTAL; i++) {
            room[i] = i;
        }
        if (blocking) {
            MPI_Recv(room, ROOM, type, 1, TAG, MPI_COMM_WORLD, &status);
        } else {
            MPI_Irecv(room, ROOM, type, 1, TAG, MPI_COMM_WORLD, &request);
            MPI_Wait(&request, &status);
        }
        mt_expect_status(&status, 1, TAG, ELEMENTS * OWN, "with much room");
        expect(room, ELEMENTS, 0, "with much room");
        munmap(room, bytes);
    }
    MPI_Type_free(&type);
}

/* An integer and a double, side by side: a descriptor ends within the double of one. */
static MPI_Datatype uneven(void)
{
    int          lengths[] = {1, 1};
    MPI_Aint     at[] = {0, sizeof(int)};
    MPI_Datatype parts[] = {MPI_INT, MPI_DOUBLE}, type, packed;

    MPI_Type_create_struct(2, lengths, at, parts, &type);
    MPI_Type_create_resized(type, 0, sizeof(double) + sizeof(int), &packed);
    MPI_Type_commit(&packed);
    MPI_Type_free(&type);
    return packed;
}

/* The same of elements that MPI need not unpack, which may have holes. */
static void case_room_for_uneven(void)
{
    enum { EACH = sizeof(double) + sizeof(int), MANY = INT32_MAX / EACH + 100, SENT = 500 };
    MPI_Datatype types[2] = {uneven(), MPI_DATATYPE_NULL};
    size_t       bytes = (size_t)MANY * 2 * EACH;

    MPI_Type_create_resized(types[0], 0, 2 * EACH, &types[1]);
    MPI_Type_commit(&types[1]);
    for (int k = 0; k < 2; k++) {
        MPI_Status status;
        int       *from = numbered(SENT * EACH / 4, 1000);
        int       *room = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (mt_rank() == 1) {
            MPI_Send(from, SENT, types[0], 0, TAG, MPI_COMM_WORLD);
        } else {
            int count = -1, wrong = 0;
            MPI_Recv(room, MANY, types[k], 1, TAG, MPI_COMM_WORLD, &status);
            MPI_Get_count(&status, types[k], &count);
            for (int i = 0; i < SENT * 3; i++) {
                wrong += (room[(k == 0) ? i : i / 3 * 6 + i % 3] != 1000 + i);
            }
            mt_expect((count == SENT) && (wrong == 0), "type %d: %d elements, %d integers wrong", k,
                      count, wrong);
        }
        munmap(room, bytes);
        mt_free(MT_DEVICE, from);
    }
    MPI_Type_free(&types[0]);
    MPI_Type_free(&types[1]);
}

static int handled;

static void count_error(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    (void)code;
    handled++;
}

/* MPI_Sendrecv_replace of more bytes than an int counts, by rank 0, of a message that was probed.
 */
static void replace_probed(MPI_Comm comm, int count, MPI_Datatype type, size_t bytes)
{
    enum { FEW = 20 };
    int       *room = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    MPI_Status status;

    if (mt_rank() == 1) {
        MPI_Send(numbered(FEW, 1000), FEW, MPI_INT, 0, TAG, comm);
    } else {
        MPI_Probe(1, TAG, comm, &status);
        int code =
            MPI_Sendrecv_replace(room, count, type, MPI_PROC_NULL, TAG, 1, TAG, comm, &status);
        mt_expect(handled == (code != MPI_SUCCESS), "the handler was called %d times", handled);
        if (code != MPI_SUCCESS) { /* what cannot be done takes no message */
            MPI_Iprobe(1, TAG, comm, &code, &status);
            mt_expect(code, "the message is lost");
            if (code) {
                MPI_Recv(room, FEW, MPI_INT, 1, TAG, comm, &status);
            }
        }
        mt_expect_status(&status, 1, TAG, FEW, "what was probed");
        mt_expect(room[FEW - 1] == 1000 + FEW - 1, "what was probed: %d", room[FEW - 1]);
    }
    munmap(room, bytes);
}

static void replace_much(bool as_one)
{
    enum { MEGA = 1 << 20, MANY = 2100 };
    MPI_Comm       comm;
    MPI_Errhandler handler;
    MPI_Datatype   mega, whole;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_create_errhandler(count_error, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    MPI_Type_contiguous(MEGA, MPI_BYTE, &mega);
    MPI_Type_contiguous(MANY, mega, &whole);
    MPI_Type_commit(&mega);
    MPI_Type_commit(&whole);
    replace_probed(comm, as_one ? 1 : MANY, as_one ? whole : mega, (size_t)MEGA * MANY);
    mt_expect(handled == (as_one && (mt_rank() == 0)), "%d calls failed", handled);
    MPI_Type_free(&mega);
    MPI_Type_free(&whole);
    MPI_Errhandler_free(&handler);
    MPI_Comm_free(&comm);
}

static void case_one_too_large(void)
{
    replace_much(true);
}

static void case_many(void)
{
    replace_much(false);
}

/* Memory of the stack that a call has had for its own: what lies there that looks like its message?
 */
static __attribute__((noinline)) int found_below(void)
{
    enum { DEEP = 16 << 10 };
    char           room[DEEP];
    volatile char *at = room;
    int            found = 0;

    for (size_t i = 0; i + sizeof(uint64_t) <= sizeof(room); i += sizeof(uint64_t)) {
        found += (*(volatile uint64_t *)(at + i) == 0x7863636c72647631u);
    }
    return found;
}

/* A short send ends before its receiver has taken the message. */
static void case_left(void)
{
    enum { COUNT = 150 };
    int  host[COUNT];
    int *device = numbered(COUNT, 1000);

    if (mt_rank() == 0) {
        MPI_Send(device, COUNT, MPI_INT, 1, TAG, MPI_COMM_WORLD);
        mt_expect(found_below() == 0, "a descriptor is left below the program's stack");
        MPI_Send(NULL, 0, MPI_INT, 1, TAG + 1, MPI_COMM_WORLD);
        return;
    }
    MPI_Recv(NULL, 0, MPI_INT, 0, TAG + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(device, COUNT, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    mt_get(host, device, MT_DEVICE, sizeof(host));
    mt_expect((host[0] == 1000) && (host[COUNT - 1] == 1000 + COUNT - 1), "the message is wrong");
}

/* ---- threads that receive parts of elements at once ---- */

enum { THREADS = 4, SMALL = 40, PART = 30 /* one and a half elements */, MUCH = 200 };
static MPI_Comm     comms[THREADS];
static MPI_Datatype small_type;

static int number_of(int thread, int i, int k)
{
    return (thread * 100000 + i) * PART + k;
}

static void *exchange_parts(void *argument)
{
    enum { MESSAGES = 20000 };
    int  thread = *(int *)argument, wrong = 0;
    int *host = malloc(sizeof(int) * SMALL * MUCH);

    for (int i = 0; i < MESSAGES; i++) {
        if (mt_rank() == 1) {
            for (int k = 0; k < PART; k++) {
                host[k] = number_of(thread, i, k);
            }
            MPI_Send(host, PART, MPI_INT, 0, TAG, comms[thread]);
        } else {
            MPI_Recv(host, MUCH, small_type, 1, TAG, comms[thread], MPI_STATUS_IGNORE);
            for (int k = 0; k < PART; k++) {
                wrong += (host[2 * k] != number_of(thread, i, k));
            }
        }
    }
    mt_expect(wrong == 0, "thread %d: %d integers are wrong", thread, wrong);
    free(host);
    return NULL;
}

static void case_threads(void)
{
    int threads[THREADS];

    small_type = distributed_of(SMALL);
    for (int i = 0; i < THREADS; i++) {
        threads[i] = i;
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    }
    mt_in_threads(THREADS, exchange_parts, threads, sizeof(threads[0]));
    for (int i = 0; i < THREADS; i++) {
        MPI_Comm_free(&comms[i]);
    }
    MPI_Type_free(&small_type);
}

typedef int isendrecv(const void *, int, MPI_Datatype, int, int, void *, int, MPI_Datatype, int,
                      int, MPI_Comm, MPI_Request *);

/* The program may run with a newer MPI than it was built with. */
static isendrecv *find_isendrecv(void)
{
    void      *address = dlsym(RTLD_DEFAULT, "MPI_Isendrecv");
    isendrecv *found;

    memcpy(&found, &address, sizeof(found));
    return found;
}

struct element {
    char   letter;
    double number;
    int    count;
};

static MPI_Datatype struct_type(void)
{
    int          lengths[] = {1, 1, 1};
    MPI_Aint     at[] = {offsetof(struct element, letter), offsetof(struct element, number),
                         offsetof(struct element, count)};
    MPI_Datatype parts[] = {MPI_CHAR, MPI_DOUBLE, MPI_INT}, type, wide;

    MPI_Type_create_struct(3, lengths, at, parts, &type);
    MPI_Type_create_resized(type, 0, sizeof(struct element), &wide);
    MPI_Type_commit(&wide);
    MPI_Type_free(&type);
    return wide;
}

/* Both ways at once, and what comes is shorter than its buffer: what lies behind stays. */
static void exchange(enum mt_where where, int sent)
{
    enum { MOST = 40 };
    struct element host[MOST], before[MOST];
    MPI_Datatype   type = struct_type();
    char          *from = mt_alloc(MT_DEVICE, sizeof(host)), *to = mt_alloc(where, sizeof(host));
    int            peer = 1 - mt_rank(), wrong = 0;
    MPI_Request    request;
    MPI_Status     status;

    memset(before, 0x33, sizeof(before));
    memset(host, 0, sizeof(host));
    mt_put(to, where, before, sizeof(before));
    for (int i = 0; i < MOST; i++) {
        host[i].letter = (char)(mt_rank() + 1);
        host[i].number = i;
        host[i].count = i;
    }
    mt_put(from, MT_DEVICE, host, sizeof(host));
    find_isendrecv()(from, sent, type, peer, TAG, to, MOST, type, peer, TAG, MPI_COMM_WORLD,
                     &request);
    MPI_Wait(&request, &status);
    mt_get(host, to, where, sizeof(host));
    for (int i = 0; i < sent; i++) {
        wrong +=
            (host[i].letter != (char)(peer + 1)) || (host[i].number != i) || (host[i].count != i);
    }
    mt_expect(wrong == 0, "%d of %d elements are wrong", wrong, sent);
    mt_expect(memcmp(host + sent, before + sent, sizeof(host[0]) * (size_t)(MOST - sent)) == 0,
              "%d elements were sent, and those behind are changed", sent);
    MPI_Type_free(&type);
    mt_free(where, to);
}

static void case_behind(void)
{
    exchange(MT_HOST, 5);
    exchange(MT_HOST, 30);
    exchange(MT_DEVICE, 5);
    exchange(MT_DEVICE, 30);
}

/* The status says whose message came, also of one that is shorter than any descriptor, or none. */
static void case_status(void)
{
    enum { LONG = 1 << 18 };
    int        *large = numbered(LONG, 0), word = 5, peer = 1 - mt_rank();
    MPI_Request request;
    MPI_Status  status;

    find_isendrecv()(large, LONG, MPI_INT, peer, TAG, &word, 1, MPI_INT, MPI_PROC_NULL, TAG,
                     MPI_COMM_WORLD, &request);
    MPI_Recv(numbered(LONG, 0), LONG, MPI_INT, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, &status);
    mt_expect((status.MPI_SOURCE == MPI_PROC_NULL) && (status.MPI_TAG == MPI_ANY_TAG),
              "of nobody: source %d, tag %d", status.MPI_SOURCE, status.MPI_TAG);
    find_isendrecv()(large, LONG, MPI_INT, peer, TAG, &word, 1, MPI_INT, MPI_ANY_SOURCE, TAG + 4,
                     MPI_COMM_WORLD, &request);
    MPI_Send(&peer, 1, MPI_INT, peer, TAG + 4, MPI_COMM_WORLD);
    MPI_Recv(numbered(LONG, 0), LONG, MPI_INT, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, &status);
    mt_expect((status.MPI_SOURCE == peer) && (status.MPI_TAG == TAG + 4) && (word == mt_rank()),
              "of a short one: source %d, tag %d", status.MPI_SOURCE, status.MPI_TAG);
}
int main(int argc, char **argv)
{
    static const struct mt_named_case cases[] = {
        {"replace", case_replace}, {"room", case_room},
        {"left", case_left},       {"behind", case_behind},
        {"status", case_status},   {"one_too_large", case_one_too_large},
        {"many", case_many},       {"room_for_uneven", case_room_for_uneven},
        {"threads", case_threads}, {NULL, NULL},
    };

    /* Among threads a message is taken after the copy is made. */
    bool alone = (argc > 2) && (strcmp(argv[2], "one_too_large") == 0);
    mt_begin_at(alone ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE, &argc, &argv, true);
    mt_meet_on_device();
    return mt_run_to_end(cases, argc, argv);
}
