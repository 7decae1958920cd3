/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Displacements that MPI allows and few programs use: negative ones, data that lies entirely below
 * the pointer passed, and a pointer moved back by the first displacement. All bytes are compared.
 * Usage: mpi_displs cuda|rocm|none
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

enum { PART = 37, GAP = 3, SLOT = PART + GAP, MOST_RANKS = 64, FAR = 1 << 18 };

enum pattern { AROUND, BELOW, BACK, NUM_PATTERNS };
static const char *const pattern_names[] = {"around", "below", "moved back"};

/* A buffer with a part for each rank, in the opposite order, and where a call is told to find it.
 */
struct layout {
    enum pattern pattern;
    int          ranks;
    int          elements;
    int         *host;
    int         *memory;
    int          counts[MOST_RANKS];
    int          displs[MOST_RANKS];
    int          byte_displs[MOST_RANKS];
    MPI_Datatype types[MOST_RANKS];
    void        *passed;
};

static int start_of(const struct layout *l, int part)
{
    return GAP + (l->ranks - 1 - part) * SLOT;
}

static struct layout layout_make(enum pattern pattern)
{
    struct layout l = {.pattern = pattern, .ranks = mt_size()};
    int           origin;

    l.elements = GAP + l.ranks * SLOT;
    l.host = mt_alloc(MT_HOST, sizeof(int) * (size_t)l.elements);
    l.memory = mt_alloc(MT_DEVICE, sizeof(int) * (size_t)l.elements);
    origin = (pattern == AROUND) ? l.elements / 2 : ((pattern == BELOW) ? l.elements + FAR : -FAR);
    for (int part = 0; part < l.ranks; part++) {
        l.counts[part] = PART;
        l.displs[part] = start_of(&l, part) - origin;
        l.byte_displs[part] = l.displs[part] * (int)sizeof(int);
        l.types[part] = MPI_INT;
    }
    /* By integers: such a pointer may point at nothing. */
    l.passed =
        (void *)((uintptr_t)l.memory + (uintptr_t)((intptr_t)origin * (intptr_t)sizeof(int)));
    return l;
}

static void layout_free(struct layout *l)
{
    mt_free(MT_DEVICE, l->memory);
    free(l->host);
}

static int value(int from, int to, int place)
{
    return from * 10000 + to * 1000 + place;
}

/* Each part holds what this rank has for another; or nothing yet. */
static void fill(struct layout *l, bool data)
{
    for (int i = 0; i < l->elements; i++) {
        l->host[i] = MT_UNTOUCHED;
    }
    for (int part = 0; data && (part < l->ranks); part++) {
        for (int i = 0; i < PART; i++) {
            l->host[start_of(l, part) + i] = value(mt_rank(), part, i);
        }
    }
    mt_put(l->memory, MT_DEVICE, l->host, sizeof(int) * (size_t)l->elements);
}

/* Part by part what a rank had for this one (to < 0) or for `to`; gaps as they were. */
static void expect(struct layout *l, const char *what, int to)
{
    int wrong = 0;
    int first = -1;

    mt_get(l->host, l->memory, MT_DEVICE, sizeof(int) * (size_t)l->elements);
    for (int i = 0; i < l->elements; i++) {
        int place = i - GAP;
        int part = l->ranks - 1 - place / SLOT;
        int wanted = MT_UNTOUCHED;
        if ((place >= 0) && (place % SLOT < PART)) {
            wanted = value(part, (to < 0) ? mt_rank() : to, place % SLOT);
        }
        if (l->host[i] != wanted) {
            first = (wrong++ == 0) ? i : first;
        }
    }
    mt_expect(wrong == 0, "%s, data %s: %d of %d elements are wrong, the first is %d", what,
              pattern_names[l->pattern], wrong, l->elements, first);
}

static void alltoall_with(struct layout *send, struct layout *recv)
{
    fill(send, true);
    fill(recv, false);
    MPI_Alltoallv(send->passed, send->counts, send->displs, MPI_INT, recv->passed, recv->counts,
                  recv->displs, MPI_INT, MPI_COMM_WORLD);
    expect(recv, "MPI_Alltoallv", -1);
    fill(recv, false);
    MPI_Alltoallw(send->passed, send->counts, send->byte_displs, send->types, recv->passed,
                  recv->counts, recv->byte_displs, recv->types, MPI_COMM_WORLD);
    expect(recv, "MPI_Alltoallw", -1);
}

static void gather_with(struct layout *send, struct layout *recv)
{
    int  root = mt_size() - 1;
    int *mine = send->memory + start_of(send, root);

    fill(send, true);
    fill(recv, false);
    MPI_Allgatherv(mine, PART, MPI_INT, recv->passed, recv->counts, recv->displs, MPI_INT,
                   MPI_COMM_WORLD);
    expect(recv, "MPI_Allgatherv", root);
    fill(recv, false);
    MPI_Gatherv(mine, PART, MPI_INT, recv->passed, recv->counts, recv->displs, MPI_INT, root,
                MPI_COMM_WORLD);
    if (mt_rank() == root) {
        expect(recv, "MPI_Gatherv", root);
    }
}

static void scatter_with(struct layout *send)
{
    int *out = mt_alloc(MT_DEVICE, sizeof(int) * PART);
    int  host[PART];
    int  wrong = 0;

    fill(send, true);
    MPI_Scatterv(send->passed, send->counts, send->displs, MPI_INT, out, PART, MPI_INT, 0,
                 MPI_COMM_WORLD);
    mt_get(host, out, MT_DEVICE, sizeof(host));
    for (int i = 0; i < PART; i++) {
        wrong += host[i] != value(0, mt_rank(), i);
    }
    mt_expect(wrong == 0, "MPI_Scatterv, data %s: %d elements are wrong",
              pattern_names[send->pattern], wrong);
    mt_free(MT_DEVICE, out);
}

/* In place, and each rank's displacements of another pattern than its neighbours'. */
static void in_place_with(struct layout *recv)
{
    int mine = start_of(recv, mt_rank());

    fill(recv, false);
    for (int i = 0; i < PART; i++) {
        recv->host[mine + i] = value(mt_rank(), 0, i);
    }
    mt_put(recv->memory, MT_DEVICE, recv->host, sizeof(int) * (size_t)recv->elements);
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_INT, recv->passed, recv->counts, recv->displs, MPI_INT,
                   MPI_COMM_WORLD);
    expect(recv, "MPI_Allgatherv in place", 0);
    fill(recv, true);
    MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_INT, recv->passed, recv->counts, recv->displs,
                  MPI_INT, MPI_COMM_WORLD);
    expect(recv, "MPI_Alltoallv in place", -1);
}

/*
 * The buffers' copies in host memory may come to lie so that the pointers behind the displacements
 * are equal, which some MPIs take for MPI_IN_PLACE: data at all distances from the pointer.
 */
static void every_distance(void)
{
    enum { PAGE = 4096, PAGES = 512 };
    const int ranks = mt_size();
    int       counts[MOST_RANKS], packed[MOST_RANKS], displs[MOST_RANKS], host[MOST_RANKS];
    int      *in = mt_alloc(MT_DEVICE, sizeof(host));
    int      *out = mt_alloc(MT_DEVICE, sizeof(host));
    int       wrong = 0;

    for (int page = -PAGES; page <= PAGES; page++) {
        MPI_Request request;
        intptr_t    distance = (intptr_t)page * PAGE;
        void       *passed = (void *)((uintptr_t)out - (uintptr_t)distance);
        if ((passed == in) && (strcmp(mt_runtime(), "none") == 0)) {
            continue; /* Open MPI 4.1 by itself takes that for MPI_IN_PLACE */
        }
        for (int i = 0; i < ranks; i++) {
            counts[i] = 1;
            packed[i] = i;
            displs[i] = i + (int)(distance / (intptr_t)sizeof(int));
            host[i] = value(mt_rank(), i, page);
        }
        mt_put(in, MT_DEVICE, host, sizeof(int) * (size_t)ranks);
        MPI_Ialltoallv(in, counts, packed, MPI_INT, passed, counts, displs, MPI_INT, MPI_COMM_WORLD,
                       &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        mt_get(host, out, MT_DEVICE, sizeof(int) * (size_t)ranks);
        for (int i = 0; i < ranks; i++) {
            wrong += (host[i] != value(i, mt_rank(), page));
        }
    }
    mt_expect(wrong == 0, "MPI_Ialltoallv: %d elements are wrong", wrong);
    mt_free(MT_DEVICE, in);
    mt_free(MT_DEVICE, out);
}

int main(int argc, char **argv)
{
    mt_begin(&argc, &argv, true);
    for (int i = 0; i < NUM_PATTERNS * NUM_PATTERNS; i++) {
        struct layout send = layout_make((enum pattern)(i % NUM_PATTERNS));
        struct layout recv = layout_make((enum pattern)(i / NUM_PATTERNS));
        alltoall_with(&send, &recv);
        gather_with(&send, &recv);
        scatter_with(&send);
        in_place_with(&recv);
        layout_free(&send);
        layout_free(&recv);
    }
    for (int i = 0; i < NUM_PATTERNS; i++) {
        struct layout send = layout_make((enum pattern)((i + mt_rank()) % NUM_PATTERNS));
        struct layout recv = layout_make((enum pattern)((i * mt_rank()) % NUM_PATTERNS));
        alltoall_with(&send, &recv);
        gather_with(&send, &recv);
        in_place_with(&recv);
        layout_free(&send);
        layout_free(&recv);
    }
    every_distance();
    mt_summary();
    MPI_Finalize();
    return mt_status();
}
