/* SPDX-License-Identifier: BSD-3-Clause */
#include "paths/as_bytes.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

/* One array each for what the blocks have of it; of its width, or of less. */
struct arrays {
    MPI_Count    *counts;
    MPI_Aint     *displs;
    MPI_Datatype *types;
};

static bool put(void *array, int i, MPI_Count value, bool wide)
{
    if (wide) {
        ((MPI_Count *)array)[i] = value;
        return true;
    }
    ((int *)array)[i] = (int)value;
    return value <= INT_MAX;
}

static bool fill(const struct xm_call *call, const struct xm_buffer *b, const struct arrays *a)
{
    bool      wide_displs = call->large || xm_signatures[call->coll].wide_displs;
    MPI_Count at = 0;

    for (int i = 0; i < b->blocks; i++) {
        struct xm_block block = xm_block_at(call, b, i);
        MPI_Count       bytes = block.count * block.layout->size;
        if (!put(a->counts, i, bytes, call->large) || !put(a->displs, i, at, wide_displs)) {
            return false;
        }
        a->types[i] = XM_HANDLE(MPI_BYTE);
        at += bytes;
    }
    return true;
}

/* Argument i; false: a count does not fit it. */
static bool change(struct xm_call *call, int i, const struct xm_buffer *b, bool sends,
                   const struct arrays *a)
{
    static const char ours[] = "nNdatU", theirs[] = "mMDAuV";
    const char       *kinds = sends ? ours : theirs;
    const char       *at = strchr(kinds, xm_signatures[call->coll].kinds[i]);
    MPI_Count         count = (sends ? call->sendcount : call->recvcount) * b->layout.size;

    switch ((at != NULL) ? ours[at - kinds] : '.') {
    case 'n':
        call->args[i] = (long)count;
        return call->large || (count <= INT_MAX);
    case 'N':
        call->args[i] = (long)a->counts;
        return true;
    case 'd':
    case 'a':
        call->args[i] = (long)a->displs;
        return true;
    case 't':
        call->args[i] = (long)XM_HANDLE(MPI_BYTE);
        return true;
    case 'U':
        call->args[i] = (long)a->types;
        return true;
    default:
        return true;
    }
}

xcclResult_t xm_call_as_bytes(struct xm_call *call, const struct xm_buffer *buffer, bool sends,
                              void **arrays_p)
{
    const char *kinds = xm_signatures[call->coll].kinds;
    size_t      n = (size_t)buffer->blocks, each = sizeof(MPI_Count);
    size_t      types = (size_t)xm_types_looked_at(call, sends, buffer->blocks);
    char       *room = calloc(2 * n + types + 1, each);

    _Static_assert((sizeof(MPI_Aint) <= sizeof(MPI_Count)) &&
                       (sizeof(MPI_Datatype) <= sizeof(MPI_Count)),
                   "an array of counts has room for what else is needed");
    if (room == NULL) {
        return xc_fail(xcclSystemError, "out of memory for %zu blocks", n);
    }
    struct arrays a = {(MPI_Count *)(void *)room, (MPI_Aint *)(void *)(room + n * each),
                       (MPI_Datatype *)(void *)(room + 2 * n * each)};
    bool          fits = fill(call, buffer, &a);
    for (int i = 0; (kinds[i] != '\0') && fits; i++) {
        fits = change(call, i, buffer, sends, &a);
    }
    if (!fits) {
        free(room);
        return xc_fail(
            xcclUnsupported,
            "%s with absolute addresses in its datatypes and more than %d bytes: use the "
            "function with large counts",
            xm_mpi_function_name(call->function), INT_MAX);
    }
    *arrays_p = room;
    return xcclSuccess;
}
