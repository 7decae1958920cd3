/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/arrays.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 8 }; /* of what they hold, at most */

/* Where a call has one, and its buffer; NULL: nowhere. */
struct array {
    const void **in_call, **in_buffer;
    size_t       bytes;
};

static size_t padded(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* The types of a buffer that was taken apart are its own already. */
static struct array types_of(const MPI_Datatype **in_call, struct xm_buffer *buffer)
{
    if ((buffer->own != NULL) || (buffer->types == NULL)) {
        return (struct array){0};
    }
    return (struct array){(const void **)in_call, (const void **)&buffer->types,
                          (size_t)buffer->blocks * sizeof(MPI_Datatype)};
}

/* The array that an argument is, by its kind. Where it means nothing its buffer has none. */
static struct array array_of(struct xm_call *call, struct xm_buffers *b, int ranks, char kind)
{
    bool   wide = call->large || xm_signatures[call->coll].wide_displs;
    size_t count = call->large ? sizeof(MPI_Count) : sizeof(int);
    size_t displ = wide ? sizeof(MPI_Aint) : sizeof(int);
    size_t sent = (b->send.counts != NULL) ? (size_t)b->send.blocks : 0;
    size_t received = (b->recv.counts != NULL) ? (size_t)b->recv.blocks : 0;

    switch (kind) {
    case 'N':
        return (struct array){&call->sendcounts, &b->send.counts, sent * count};
    case 'd':
    case 'a':
        return (struct array){&call->sdispls, &b->send.displs, sent * displ};
    case 'M':
        if (call->coll == XM_REDUCE_SCATTER) {
            return (struct array){&call->recvcounts, NULL, (size_t)ranks * count};
        }
        return (struct array){&call->recvcounts, &b->recv.counts, received * count};
    case 'D':
    case 'A':
        return (struct array){&call->rdispls, &b->recv.displs, received * displ};
    case 'U':
        return types_of(&call->sendtypes, &b->send);
    case 'V':
        return types_of(&call->recvtypes, &b->recv);
    default:
        return (struct array){0};
    }
}

static void put(struct array array, long *arg, char *room)
{
    memcpy(room, *array.in_call, array.bytes);
    *array.in_call = room;
    *arg = (long)room;
    if (array.in_buffer != NULL) {
        *array.in_buffer = room;
    }
}

/* What buffers have as their own goes to MPI, too. */
static void show_own_types(struct xm_call *call, const struct xm_buffers *b)
{
    const char *kinds = xm_signatures[call->coll].kinds;

    for (int i = 0; kinds[i] != '\0'; i++) {
        if ((kinds[i] == 'U') && (b->send.own != NULL)) {
            call->sendtypes = b->send.own;
            call->args[i] = (long)b->send.own;
        } else if ((kinds[i] == 'V') && (b->recv.own != NULL)) {
            call->recvtypes = b->recv.own;
            call->args[i] = (long)b->recv.own;
        }
    }
}

bool xm_arrays_keep(struct xm_call *call, struct xm_buffers *buffers, int ranks)
{
    const char *kinds = xm_signatures[call->coll].kinds;
    size_t      bytes = 0;

    if (buffers->arrays != NULL) {
        return true;
    }
    for (int i = 0; kinds[i] != '\0'; i++) {
        bytes += padded(array_of(call, buffers, ranks, kinds[i]).bytes);
    }
    if (bytes > 0) {
        char *room = malloc(bytes);
        if (room == NULL) {
            return false;
        }
        buffers->arrays = room;
        for (int i = 0; kinds[i] != '\0'; i++) {
            struct array array = array_of(call, buffers, ranks, kinds[i]);
            if (array.bytes > 0) {
                put(array, &call->args[i], room);
                room += padded(array.bytes);
            }
        }
    }
    show_own_types(call, buffers);
    return true;
}
