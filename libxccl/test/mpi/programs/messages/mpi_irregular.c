/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Data that lies in no order, as an unstructured mesh has it: types of thousands of stretches, on
 * the device. What arrives is what MPI unpacks on the host, and no other byte is written.
 * Usage: mpi_irregular cuda|rocm CASE
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support.h"

enum { ROOM = 1 << 18, TAG = 3 };

enum shape { BLOCKS, LENGTHS, ODD, PAIRS, NUM_SHAPES };
static const char *const names[] = {"blocks", "lengths", "odd lengths", "pairs"};

/* Never the same one: what is kept of a type must not serve another. */
static MPI_Datatype make(enum shape shape, int stretches, uint64_t seed)
{
    int         *at = malloc(sizeof(int) * (size_t)stretches);
    int         *lengths = malloc(sizeof(int) * (size_t)stretches);
    MPI_Datatype type;

    for (int i = 0, next = 0; i < stretches; i++) {
        bool longer = (mt_next(&seed) % 3) == 0;
        lengths[i] = (shape == ODD) ? (longer ? 11 : 3) : 1 + (int)(mt_next(&seed) % 3);
        at[i] = next + (int)(mt_next(&seed) % 4);
        next = at[i] + lengths[i];
    }
    switch (shape) {
    case BLOCKS:
        MPI_Type_create_indexed_block(stretches, 1, at, MPI_DOUBLE, &type);
        break;
    case LENGTHS:
        MPI_Type_indexed(stretches, lengths, at, MPI_INT, &type);
        break;
    case ODD:
        MPI_Type_indexed(stretches, lengths, at, MPI_CHAR, &type);
        break;
    default:
        MPI_Type_create_indexed_block(stretches, 1, at, MPI_SHORT_INT, &type);
        break;
    }
    MPI_Type_commit(&type);
    free(at);
    free(lengths);
    return type;
}

static int stretches_of(enum shape shape)
{
    return (shape == PAIRS) ? 900 : 2500;
}

static int size_of(MPI_Datatype type)
{
    int size;

    MPI_Type_size(type, &size);
    return size;
}

static struct mt_twin twin_make(uint64_t seed)
{
    return mt_twin_of(mt_noise(ROOM, seed), ROOM);
}

/* What the other rank sends of a buffer of this seed, packed; free() it. */
static char *packed_of(uint64_t seed, int count, MPI_Datatype type)
{
    char *from = mt_noise(ROOM, seed);
    int   bytes = count * size_of(type), at = 0;
    char *packed = malloc((size_t)bytes + 1);

    MPI_Pack(from, count, type, packed, bytes, &at, MPI_COMM_SELF);
    free(from);
    return packed;
}

/* Rank 0 to rank 1, and there to lie as MPI_Unpack puts so many elements of `as`. */
static void send_one(int count, MPI_Datatype sent, int room, MPI_Datatype received, int elements,
                     MPI_Datatype as, const char *what)
{
    struct mt_twin t = twin_make((uint64_t)mt_rank() + 1);

    if (mt_rank() == 0) {
        MPI_Send(t.device, count, sent, 1, TAG, MPI_COMM_WORLD);
    } else {
        char      *packed = packed_of(1, count, sent);
        int        at = 0, bytes = count * size_of(sent), got;
        MPI_Status status;
        MPI_Unpack(packed, bytes, &at, t.host, elements, as, MPI_COMM_SELF);
        MPI_Recv(t.device, room, received, 0, TAG, MPI_COMM_WORLD, &status);
        MPI_Get_elements(&status, MPI_BYTE, &got);
        mt_expect(got == bytes, "%s: %d bytes", what, got);
        free(packed);
    }
    mt_twin_expect(&t, what);
    mt_twin_free(&t);
}

static MPI_Datatype element_of(enum shape shape)
{
    return (shape == BLOCKS) ? MPI_DOUBLE : (shape == LENGTHS) ? MPI_INT : MPI_BYTE;
}

static void case_messages(void)
{
    for (int i = 0; i < NUM_SHAPES; i++) {
        MPI_Datatype type = make(i, stretches_of(i), 11 + (uint64_t)i), single = element_of(i);
        int          all = size_of(type) / size_of(single);
        for (int again = 0; again < 3; again++) { /* what is kept of it serves those after it */
            send_one(1, type, 1, type, 1, type, names[i]);
            send_one(1, type, all, single, all, single, names[i]);
            usleep(2000); /* kernels are loaded meanwhile */
        }
        if (i != PAIRS) {
            send_one(all, single, 1, type, 1, type, names[i]);
        }
        MPI_Type_free(&type);
    }
}

/* Of a longer type only the beginning comes; what is sent is a type of its own. */
static void case_parts(void)
{
    for (int i = 0; i < NUM_SHAPES; i++) {
        uint64_t     seed = 31 + (uint64_t)i;
        MPI_Datatype whole = make(i, stretches_of(i), seed);
        for (int part = 1; part < stretches_of(i); part = 3 * part + 1) {
            MPI_Datatype type = make(i, part, seed);
            send_one(1, type, 1, whole, 1, type, names[i]);
            MPI_Type_free(&type);
        }
        MPI_Type_free(&whole);
    }
}

static void case_collectives(void)
{
    for (int i = 0; i < NUM_SHAPES; i++) {
        MPI_Datatype   type = make(i, stretches_of(i) / 3, 51 + (uint64_t)i);
        struct mt_twin t = twin_make(7 + (uint64_t)mt_rank()), to = twin_make(5);
        const int      places[2] = {0, ROOM / 2}, one[2] = {1, 1}, zero[2] = {0, 0};
        int            size = size_of(type), at = 0;
        char          *packed = packed_of(7, 1, type);
        MPI_Datatype   types[2] = {type, type};

        MPI_Unpack(packed, size, &at, t.host, 1, type, MPI_COMM_SELF);
        MPI_Bcast(t.device, 1, type, 0, MPI_COMM_WORLD);
        mt_twin_expect(&t, names[i]);
        for (int rank = 0; rank < 2; rank++) { /* all send what both have now */
            at = 0;
            MPI_Unpack(packed, size, &at, to.host + places[rank], 1, type, MPI_COMM_SELF);
        }
        MPI_Alltoallw(t.device, one, zero, types, to.device, one, places, types, MPI_COMM_WORLD);
        mt_twin_expect(&to, names[i]);
        free(packed);
        mt_twin_free(&t);
        mt_twin_free(&to);
        MPI_Type_free(&type);
    }
}

/* A type is freed while its data is on the way, and others take its handle. */
static void case_freed(void)
{
    for (int i = 0; i < 30; i++) {
        int            other = 1 - mt_rank();
        enum shape     shape = (enum shape)(i % NUM_SHAPES);
        struct mt_twin from = twin_make((uint64_t)(40 + mt_rank())), to = twin_make(6);
        MPI_Datatype   type = make(shape, stretches_of(shape), (uint64_t)i);
        char          *packed = packed_of((uint64_t)(40 + other), 1, type);
        int            at = 0, size = size_of(type);
        MPI_Request    requests[2];

        MPI_Unpack(packed, size, &at, to.host, 1, type, MPI_COMM_SELF);
        MPI_Irecv(to.device, 1, type, other, TAG, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(from.device, 1, type, other, TAG, MPI_COMM_WORLD, &requests[1]);
        MPI_Type_free(&type);
        MPI_Datatype next = make(BLOCKS, 500, (uint64_t)(100 + i));
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        mt_twin_expect(&to, "a freed type");
        MPI_Type_free(&next);
        free(packed);
        mt_twin_free(&from);
        mt_twin_free(&to);
    }
}

/* Two threads pack the same types, which neither has used before. */
struct packs {
    const MPI_Datatype *types;
    struct mt_twin      from[NUM_SHAPES], packed[NUM_SHAPES];
};

static void *pack_all(void *argument)
{
    struct packs *p = argument;

    for (int i = 0; i < NUM_SHAPES; i++) {
        int at = 0, size = size_of(p->types[i]);
        MPI_Pack(p->from[i].device, 1, p->types[i], p->packed[i].device, size, &at, MPI_COMM_SELF);
    }
    return NULL;
}

static void packs_make(struct packs *p, const MPI_Datatype *types)
{
    p->types = types;
    for (int i = 0; i < NUM_SHAPES; i++) {
        char *want = packed_of(3, 1, types[i]);
        p->from[i] = twin_make(3);
        p->packed[i] = twin_make(4);
        memcpy(p->packed[i].host, want, (size_t)size_of(types[i]));
        free(want);
    }
}

static void case_threads(void)
{
    enum { THREADS = 2 };
    static struct packs packs[THREADS];
    MPI_Datatype        types[NUM_SHAPES];

    for (int again = 0; again < 10; again++) {
        for (int i = 0; i < NUM_SHAPES; i++) {
            types[i] = make(i, stretches_of(i), (uint64_t)(71 + again));
        }
        for (int t = 0; t < THREADS; t++) {
            packs_make(&packs[t], types);
        }
        mt_in_threads(THREADS, pack_all, packs, sizeof(packs[0]));
        for (int i = 0; i < NUM_SHAPES; i++) {
            for (int t = 0; t < THREADS; t++) {
                mt_twin_expect(&packs[t].packed[i], names[i]);
                mt_twin_free(&packs[t].packed[i]);
                mt_twin_free(&packs[t].from[i]);
            }
            MPI_Type_free(&types[i]);
        }
    }
}

/* More types at a time than XCCL_SCRATCH keeps the lists of, if it is 1 MiB. */
static void case_many(void)
{
    enum { TYPES = 60 };
    MPI_Datatype types[TYPES];

    for (int i = 0; i < TYPES; i++) {
        types[i] = make(BLOCKS, stretches_of(BLOCKS), (uint64_t)(200 + i));
    }
    for (int again = 0; again < 2; again++) {
        for (int i = 0; i < TYPES; i++) {
            send_one(1, types[i], 1, types[i], 1, types[i], "one of many");
        }
    }
    for (int i = 0; i < TYPES; i++) {
        MPI_Type_free(&types[i]);
    }
    case_messages(); /* now there is room again */
}

/* Freed by nobody: MPI_Finalize comes first. */
static void case_left(void)
{
    MPI_Datatype type = make(BLOCKS, stretches_of(BLOCKS), 1);

    send_one(1, type, 1, type, 1, type, "left");
    send_one(1, type, 1, type, 1, type, "left");
}

int main(int argc, char **argv)
{
    static const struct mt_named_case cases[] = {
        {"messages", case_messages},
        {"parts", case_parts},
        {"collectives", case_collectives},
        {"freed", case_freed},
        {"threads", case_threads},
        {"many", case_many},
        {"left", case_left},
        {NULL, NULL},
    };

    mt_begin_at((argc > 2) && (strcmp(argv[2], "threads") == 0) ? MPI_THREAD_MULTIPLE
                                                                : MPI_THREAD_SINGLE,
                &argc, &argv, true);
    return mt_run_to_end(cases, argc, argv);
}
