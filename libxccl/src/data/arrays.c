/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/arrays.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 8 }; /* of what they hold, at most */

/* One of a call's. The pointers to it, of whatever type, are in the call and in its buffer. */
struct array {
    void  *in_call, *in_buffer; /* where; NULL: nowhere */
    size_t bytes;
    size_t more; /* bytes behind it that MPI may look at, which are to be zero */
};

static size_t room_for(struct array array)
{
    return (array.bytes + array.more + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* MPI gets the program's types. A buffer that was taken apart has what it needs of them. */
static struct array types_of(struct xm_call *call, struct xm_buffer *buffer, bool sends)
{
    const MPI_Datatype **in_call = sends ? &call->sendtypes : &call->recvtypes;
    const MPI_Datatype **in_buffer = (buffer->own != NULL) ? NULL : &buffer->types;
    size_t               n = (size_t)buffer->blocks;

    if (buffer->types == NULL) {
        return (struct array){0};
    }
    size_t looked_at = (size_t)xm_types_looked_at(call, sends, buffer->blocks);
    return (struct array){in_call, in_buffer, n * sizeof(MPI_Datatype),
                          (looked_at - n) * sizeof(MPI_Datatype)};
}

/* The array that an argument is, by its kind. Where it means nothing its buffer has none. */
static struct array array_by_kind(struct xm_call *call, struct xm_buffers *b, int ranks, char kind)
{
    bool   wide = call->large || xm_signatures[call->coll].wide_displs;
    size_t count = call->large ? sizeof(MPI_Count) : sizeof(int);
    size_t displ = wide ? sizeof(MPI_Aint) : sizeof(int);
    size_t sent = (b->send.counts != NULL) ? (size_t)b->send.blocks : 0;
    size_t received = (b->recv.counts != NULL) ? (size_t)b->recv.blocks : 0;

    switch (kind) {
    case 'N':
        return (struct array){&call->sendcounts, &b->send.counts, sent * count, 0};
    case 'd':
    case 'a':
        return (struct array){&call->sdispls, &b->send.displs, sent * displ, 0};
    case 'M':
        if (call->coll == XM_REDUCE_SCATTER) {
            return (struct array){&call->recvcounts, NULL, (size_t)ranks * count, 0};
        }
        return (struct array){&call->recvcounts, &b->recv.counts, received * count, 0};
    case 'D':
    case 'A':
        return (struct array){&call->rdispls, &b->recv.displs, received * displ, 0};
    case 'U':
        return types_of(call, &b->send, true);
    case 'V':
        return types_of(call, &b->recv, false);
    default:
        return (struct array){0};
    }
}

/* The program may have given none, in an erroneous call. */
static struct array array_of(struct xm_call *call, struct xm_buffers *b, int ranks, char kind)
{
    struct array array = array_by_kind(call, b, ranks, kind);
    const void  *given = NULL;

    if (array.bytes > 0) {
        memcpy(&given, array.in_call, sizeof(given));
    }
    return (given != NULL) ? array : (struct array){0};
}

static void put(struct array array, long *arg, char *room)
{
    const void *given;

    memcpy(&given, array.in_call, sizeof(given));
    memcpy(room, given, array.bytes);
    memcpy(array.in_call, &room, sizeof(room));
    if (array.in_buffer != NULL) {
        memcpy(array.in_buffer, &room, sizeof(room));
    }
    *arg = (long)room;
}

bool xm_arrays_keep(struct xm_call *call, struct xm_buffers *buffers, int ranks)
{
    const char *kinds = xm_signatures[call->coll].kinds;
    size_t      bytes = 0;

    if (buffers->arrays != NULL) {
        return true;
    }
    for (int i = 0; kinds[i] != '\0'; i++) {
        bytes += room_for(array_of(call, buffers, ranks, kinds[i]));
    }
    if (bytes > 0) {
        char *room = calloc(1, bytes);
        if (room == NULL) {
            return false;
        }
        buffers->arrays = room;
        for (int i = 0; kinds[i] != '\0'; i++) {
            struct array array = array_of(call, buffers, ranks, kinds[i]);
            if (array.bytes > 0) {
                put(array, &call->args[i], room);
                room += room_for(array);
            }
        }
    }
    return true;
}
