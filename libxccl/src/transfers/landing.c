/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where MPI receives what may be a descriptor, and how the message gets from there to where the
 * program wants it.
 */
#include "transfers/landing.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "data/flatten.h"
#include "transfers/fetch.h"
#include "transfers/shape.h"
#include "transfers/staging.h"
#include "transfers/transfer.h"

enum { UNPACK_BYTES = 1 << 30 };
/* For messages of this process to itself; kept.c has tag 1, and every MPI has tags up to 32767. */
enum { FIRST_TAG = 2, TAGS = 1 << 14 };

struct xm_part *xm_landing_part(struct xm_transfer *t)
{
    for (int i = 0; i < t->num_parts; i++) {
        if (t->parts[i].argument == t->rendezvous.argument) {
            return &t->parts[i];
        }
    }
    return NULL;
}

MPI_Datatype xm_bytes_as_one(size_t bytes)
{
    enum { UNIT = 1 << 20 };
    MPI_Datatype whole = 0, types[2] = {0, XM_HANDLE(MPI_BYTE)};
    int          lengths[2] = {(int)(bytes / UNIT), (int)(bytes % UNIT)};
    MPI_Aint     at[2] = {0, (MPI_Aint)(bytes - bytes % UNIT)};

    if (xm_pmpi.Type_contiguous(UNIT, XM_HANDLE(MPI_BYTE), &types[0]) != MPI_SUCCESS) {
        return 0;
    }
    if ((xm_pmpi.Type_create_struct(2, lengths, at, types, &whole) != MPI_SUCCESS) ||
        (xm_pmpi.Type_commit(&whole) != MPI_SUCCESS)) {
        whole = 0;
    }
    xm_pmpi.Type_free(&types[0]);
    return whole;
}

/* The program may free a type as soon as its call has returned, and MPI unpacks by it later. */
static void keep_type(struct xm_transfer *t)
{
    struct xm_rendezvous *r = &t->rendezvous;

    if ((t->form != 'B') && r->receive.layout.derived && !r->receive.layout.held) {
        xm_buffer_hold_type(&r->receive);
        r->keeps = r->receive.layout.held;
    }
}

/* MPI is to receive this argument as so many bytes. */
static xcclResult_t receive_bytes(struct xm_transfer *t, size_t bytes)
{
    struct xm_rendezvous *r = &t->rendezvous;

    t->args[r->argument + 1] = (long)bytes;
    t->args[r->argument + 2] = (long)XM_HANDLE(MPI_BYTE);
    if (bytes <= INT32_MAX) {
        return xcclSuccess;
    }
    if (r->many == 0) {
        r->many = xm_bytes_as_one(bytes);
    }
    t->args[r->argument + 1] = 1;
    t->args[r->argument + 2] = (long)r->many;
    return (r->many != 0) ? xcclSuccess
                          : xc_fail(xcclSystemError, "MPI has no datatype of %zu bytes", bytes);
}

/* A type that cannot be taken apart comes as bytes, and MPI unpacks it afterwards. */
static xcclResult_t land_packed(struct xm_transfer *t)
{
    struct xm_rendezvous *r = &t->rendezvous;
    size_t                bytes = (size_t)r->receive.bytes;

    keep_type(t);
    if (r->landing == NULL) {
        r->landing = malloc(bytes);
    }
    if (r->landing == NULL) {
        return xc_fail(xcclSystemError, "out of memory for a message of %zu bytes", bytes);
    }
    t->args[r->argument] = (long)r->landing;
    return receive_bytes(t, bytes);
}

xcclResult_t xm_rendezvous_pack_replaced(struct xm_transfer *t)
{
    struct xm_rendezvous *r = &t->rendezvous;
    const struct xm_part *part = xm_landing_part(t);
    const char           *base = (part != NULL) ? xm_part_base(part) : r->receive.buf;
    int                   position = 0;

    if (!r->looks || (r->landing == NULL) || ((t->kinds[r->argument] != 'b') && !t->whole)) {
        return xcclSuccess;
    }
    if (r->receive.bytes > INT32_MAX) {
        return xc_fail(xcclUnsupported,
                       "%s: more than %d bytes of a datatype that cannot be taken "
                       "apart; pass less at a time",
                       xm_mpi_function_name(t->function), INT32_MAX);
    }
    return (xm_pmpi.Pack(base, (int)r->receive.count, r->receive.type, r->landing,
                         (int)r->receive.bytes, &position, xm_rendezvous_self()) == MPI_SUCCESS)
               ? xcclSuccess
               : xc_fail(xcclInternalError, "MPI_Pack failed on what is to be replaced");
}

/* MPICH takes a message that ends within an element for one that is too long. Would a descriptor?
 */
static bool ends_within_element(const struct xm_rendezvous *r)
{
    const struct xm_layout *l = &r->receive.layout;
    MPI_Count               element = (r->flat != NULL) ? r->flat->element : XM_ELEMENTS_DIFFER;

    return !XM_OPENMPI && (XM_DESCRIPTOR_BYTES % l->size != 0) &&
           ((element == XM_ELEMENTS_DIFFER) || (XM_DESCRIPTOR_BYTES % element != 0));
}

xcclResult_t xm_rendezvous_expect(struct xm_transfer *t)
{
    struct xm_rendezvous *r = &t->rendezvous;
    struct xm_buffer     *b = &r->receive;

    r->fetch = XM_FETCH_NONE;
    r->seen = false;
    r->came = XM_WHOLE;
    r->code = MPI_SUCCESS;
    r->failed = xcclSuccess;
    if (!r->looks) {
        return xcclSuccess;
    }
    const struct xm_part *part = xm_landing_part(t);
    if ((part != NULL) && part->packed) {
        r->base = xm_part_base(part); /* side by side, from there on */
        return xcclSuccess;
    }
    if (!b->plain && (r->flat == NULL)) {
        r->flat = b->layout.flat;
        if ((r->flat == NULL) && !b->layout.held) {
            r->flat = xm_flat_get(b->type);
            r->holds = true;
            if (r->flat == NULL) {
                xm_buffer_hold_type(b);
            }
        }
    }
    /* What is replaced is read from there too, and MPI packs so many bytes at most. */
    bool received = (t->kinds[r->argument] == 'r'), cut = ends_within_element(r);
    bool fits = (received && !t->whole) || (b->bytes <= INT32_MAX);
    bool odd = (r->flat == NULL) || (received && !r->flat->disjoint);
    if (!b->plain && ((fits && cut) || odd)) {
        return land_packed(t);
    }
    r->base = (part != NULL) ? xm_part_base(part) : b->buf;
    return (b->plain && cut) ? receive_bytes(t, (size_t)b->bytes) : xcclSuccess;
}

/*
 * MPI puts a part of an element where its type wants it in a message alone. Threads may be at it at
 * once: each has a tag, so that none receives what another one sends.
 */
static int unpack_rest(const struct xm_buffer *b, char *element, const char *packed, size_t bytes)
{
    static unsigned turn; /* atomic */
    int             tag = FIRST_TAG + (int)(__atomic_fetch_add(&turn, 1, __ATOMIC_RELAXED) % TAGS);

    return xm_pmpi.Sendrecv(packed, (int)bytes, XM_HANDLE(MPI_PACKED), 0, tag, element, 1, b->type,
                            0, tag, xm_rendezvous_self(), MPI_STATUS_IGNORE);
}

/* MPI puts packed bytes where a derived type wants them: whole elements, then a part of one. */
static int unpack(const struct xm_buffer *b, char *base, const char *packed, size_t bytes)
{
    size_t size = (size_t)b->layout.size, whole = bytes / size, rest = bytes % size;
    int    code = MPI_SUCCESS;

    for (size_t done = 0; (done < whole) && (code == MPI_SUCCESS);) {
        size_t piece = UNPACK_BYTES / size;
        size_t n = (whole - done < piece) ? whole - done : piece;
        int    position = 0;
        if (n == 0) {
            return MPI_ERR_COUNT;
        }
        code = xm_pmpi.Unpack(packed + done * size, (int)(n * size), &position,
                              base + (MPI_Aint)(done * (size_t)b->layout.extent), (int)n, b->type,
                              xm_rendezvous_self());
        done += n;
    }
    if ((code == MPI_SUCCESS) && (rest > 0)) {
        code = unpack_rest(b, base + (MPI_Aint)(whole * (size_t)b->layout.extent),
                           packed + whole * size, rest);
    }
    return code;
}

void xm_landing_scatter(struct xm_rendezvous *r)
{
    if (r->scatters) {
        xm_shape_scatter(r, r->landing, (size_t)r->from.bytes);
        free(r->landing);
        r->landing = NULL;
        r->scatters = false;
    }
}

xcclResult_t xm_rendezvous_unpack(struct xm_transfer *t, MPI_Count bytes)
{
    struct xm_rendezvous *r = &t->rendezvous;
    struct xm_part       *part = xm_landing_part(t);
    MPI_Count             all = t->whole ? r->receive.bytes : bytes;
    MPI_Count             got = (r->fetch == XM_FETCH_OVER) ? r->came : all;
    char                 *base = (part != NULL) ? xm_part_base(part) : r->receive.buf;

    if ((r->landing == NULL) || (got <= 0) || (r->code != MPI_SUCCESS)) {
        return xcclSuccess;
    }
    if (unpack(&r->receive, base, r->landing, (size_t)got) != MPI_SUCCESS) {
        return xc_fail(xcclInternalError, "MPI_Unpack failed on a message from device memory");
    }
    return (part != NULL) ? xm_transfer_part_out(part, got) : xcclSuccess;
}

void xm_landing_read_head(const struct xm_rendezvous *r, void *to, size_t bytes)
{
    if (r->landing != NULL) {
        memcpy(to, r->landing, bytes);
    } else {
        xm_shape_gather(r, to, bytes);
    }
}

bool xm_landing_is_in_place(struct xm_transfer *t)
{
    return (t->rendezvous.landing != NULL) || (xm_landing_part(t) == NULL);
}

void xm_landing_put_head(struct xm_rendezvous *r)
{
    if (r->head_kept && (r->landing != NULL)) {
        memcpy(r->landing, r->head, sizeof(r->head));
    } else if (r->head_kept) {
        xm_shape_scatter(r, r->head, sizeof(r->head));
    }
    r->head_kept = false;
}
