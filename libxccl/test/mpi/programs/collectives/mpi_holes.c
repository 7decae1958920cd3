/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes in the holes of a derived type are not MPI's: what a program writes there while a
 * collective runs must still be there afterwards. One rank comes late to each call, so that the
 * others' are certain to run while the holes change.
 * Usage: mpi_holes cuda|rocm|none
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "support.h"

enum { BLOCKS = 50, STRIDE = 3, LATE_US = 60 * 1000, WRITE_US = 20 * 1000 };
enum { OLD_HOLE = -1, NEW_HOLE = -2 };

/* A buffer of some vectors of BLOCKS ints with two ints of hole behind each. */
struct buffer {
    int  parts;
    int  elements;
    int *host;
    int *memory;
};

static MPI_Datatype vector; /* resized to BLOCKS * STRIDE ints */

static struct buffer buffer_make(int parts)
{
    struct buffer b = {.parts = parts, .elements = parts * BLOCKS * STRIDE};

    b.host = mt_alloc(MT_HOST, sizeof(int) * (size_t)b.elements);
    b.memory = mt_alloc(MT_DEVICE, sizeof(int) * (size_t)b.elements);
    return b;
}

static void buffer_free(struct buffer *b)
{
    mt_free(MT_DEVICE, b->memory);
    free(b->host);
}

static int value(int from, int part, int block)
{
    return from * 10000 + part * 1000 + block;
}

static void buffer_fill(struct buffer *b)
{
    for (int i = 0; i < b->elements; i++) {
        int block = i / STRIDE;
        b->host[i] =
            (i % STRIDE == 0) ? value(mt_rank(), block / BLOCKS, block % BLOCKS) : OLD_HOLE;
    }
    mt_put(b->memory, MT_DEVICE, b->host, sizeof(int) * (size_t)b->elements);
}

/* Write new values to the holes, each by a copy of its own. */
static void write_holes(struct buffer *b)
{
    static const int fresh[STRIDE - 1] = {NEW_HOLE, NEW_HOLE};

    for (int i = 1; i < b->elements; i += STRIDE) {
        mt_put(b->memory + i, MT_DEVICE, fresh, sizeof(fresh));
    }
}

static void *write_later(void *argument)
{
    mt_memory_enter();
    usleep(WRITE_US);
    write_holes(argument);
    return NULL;
}

/* The blocks of part p come from rank `from` (p if negative), where they were part `part`. */
static void buffer_expect(struct buffer *b, const char *what, int from, int part)
{
    int wrong_data = 0;
    int wrong_holes = 0;

    mt_get(b->host, b->memory, MT_DEVICE, sizeof(int) * (size_t)b->elements);
    for (int i = 0; i < b->elements; i++) {
        int p = i / STRIDE / BLOCKS;
        int data = value((from < 0) ? p : from, (part < 0) ? p : part, i / STRIDE % BLOCKS);
        wrong_data += (i % STRIDE == 0) && (b->host[i] != data);
        wrong_holes += (i % STRIDE != 0) && (b->host[i] != NEW_HOLE);
    }
    mt_expect(wrong_data == 0, "%s: %d elements are wrong", what, wrong_data);
    mt_expect(wrong_holes == 0, "%s: %d changes to holes are lost", what, wrong_holes);
}

enum call { BCAST, ALLGATHER, ALLTOALL, NUM_CALLS };
static const char *const call_names[] = {"bcast", "allgather", "alltoall"};

static void start(enum call call, struct buffer *send, struct buffer *recv, MPI_Request *request)
{
    if (call == BCAST) {
        MPI_Ibcast(recv->memory, recv->parts, vector, 0, MPI_COMM_WORLD, request);
    } else if (call == ALLGATHER) {
        MPI_Iallgather(send->memory, 1, vector, recv->memory, 1, vector, MPI_COMM_WORLD, request);
    } else {
        MPI_Ialltoall(send->memory, 1, vector, recv->memory, 1, vector, MPI_COMM_WORLD, request);
    }
}

static void block(enum call call, struct buffer *send, struct buffer *recv)
{
    if (call == BCAST) {
        MPI_Bcast(recv->memory, recv->parts, vector, 0, MPI_COMM_WORLD);
    } else if (call == ALLGATHER) {
        MPI_Allgather(send->memory, 1, vector, recv->memory, 1, vector, MPI_COMM_WORLD);
    } else {
        MPI_Alltoall(send->memory, 1, vector, recv->memory, 1, vector, MPI_COMM_WORLD);
    }
}

static void check(enum call call, struct buffer *recv)
{
    int from = (call == BCAST) ? 0 : -1;
    int part = (call == BCAST) ? -1 : ((call == ALLGATHER) ? 0 : mt_rank());

    buffer_expect(recv, call_names[call], from, part);
}

static void holes(enum call call, bool blocking, int late)
{
    struct buffer send = buffer_make(mt_size());
    struct buffer recv = buffer_make(mt_size());
    pthread_t     thread;
    MPI_Request   request;

    buffer_fill(&send);
    buffer_fill(&recv);
    MPI_Barrier(MPI_COMM_WORLD);
    if (mt_rank() == late) {
        usleep(LATE_US);
    }
    if (blocking) {
        pthread_create(&thread, NULL, write_later, &recv);
        block(call, &send, &recv);
        pthread_join(thread, NULL);
    } else {
        start(call, &send, &recv, &request);
        write_holes(&recv);
        write_holes(&send);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    check(call, &recv);
    buffer_free(&send);
    buffer_free(&recv);
}

int main(int argc, char **argv)
{
    MPI_Datatype plain;

    mt_begin(&argc, &argv, true);
    MPI_Type_vector(BLOCKS, 1, STRIDE, MPI_INT, &plain);
    MPI_Type_create_resized(plain, 0, BLOCKS * STRIDE * (int)sizeof(int), &vector);
    MPI_Type_commit(&vector);
    for (int i = 0; i < NUM_CALLS; i++) {
        holes((enum call)i, true, 0);
        holes((enum call)i, true, 1);
        holes((enum call)i, false, 0);
        holes((enum call)i, false, 1);
    }
    MPI_Type_free(&vector);
    MPI_Type_free(&plain);
    mt_summary();
    MPI_Finalize();
    return mt_status();
}
