/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/buffer.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "data/flatten.h"

/* Stretches of a datatype whose memory is looked at. */
enum { LOOKS = 64 };

struct xm_block xm_block_at(const struct xm_call *call, const struct xm_buffer *b, int i)
{
    struct xm_block block = {.count =
                                 (b->counts != NULL) ? xm_count_at(call, b->counts, i) : b->count,
                             .type = b->type,
                             .layout = &b->layout};

    if (b->types != NULL) {
        block.type = b->types[i];
        block.layout = &b->layouts[i];
        block.offset = xm_displ_at(call, b->displs, i);
    } else if (b->displs != NULL) {
        block.offset = xm_displ_at(call, b->displs, i) * (MPI_Aint)b->layout.extent;
    }
    return block;
}

struct xm_run xm_block_run(const struct xm_block *block, size_t i)
{
    const struct xm_flat *flat = block->layout->flat;
    struct xm_run         run = xm_runs_at(&flat->runs, i);

    /* There is always a level left for that. */
    xm_run_repeat(&run, (size_t)block->count, (ptrdiff_t)block->layout->extent, flat->runs.size,
                  XM_LEVELS);
    return run;
}

static __thread struct {
    const void        *ptr;
    struct xc_mem_info info;
} asked;

struct xc_mem_info xm_buffer_ask(const struct xc_device_ops *dev, const void *ptr)
{
    asked.info = dev->mem_query(ptr);
    asked.ptr = ptr;
    return asked.info;
}

void xm_buffer_forget(void)
{
    asked.ptr = NULL;
}

static struct xc_mem_info memory_at(const void *ptr)
{
    if ((asked.ptr == ptr) && (ptr != NULL)) {
        asked.ptr = NULL; /* once: what lies there may change between calls */
        return asked.info;
    }
    return xc_mem_query(ptr);
}

static void widen(struct xm_buffer *b, const struct xm_block *block)
{
    const struct xm_layout *l = block->layout;
    /* Extents may be negative: the last element may lie before the first. */
    MPI_Aint last = block->offset + (MPI_Aint)((block->count - 1) * l->extent);
    MPI_Aint low = ((last < block->offset) ? last : block->offset) + (MPI_Aint)l->true_lb;
    MPI_Aint high = ((last < block->offset) ? block->offset : last) + (MPI_Aint)l->true_lb +
                    (MPI_Aint)l->true_extent;

    if ((b->elements == 0) || (low < b->low)) {
        b->low = low;
    }
    if ((b->elements == 0) || (high > b->high)) {
        b->high = high;
    }
}

static bool find_layouts(struct xm_buffer *b, const struct xm_call *call)
{
    if (b->blocks == 0) {
        return true; /* without neighbours the array of their types may be NULL */
    }
    if (b->types == NULL) {
        return xm_layout_of(b->type, &b->layout);
    }
    b->layouts = calloc((size_t)b->blocks + 1, sizeof(*b->layouts));
    if (b->layouts == NULL) {
        return false;
    }
    for (int i = 0; i < b->blocks; i++) {
        /* The type of an empty block may be anything that is a type. */
        if (!xm_layout_of(b->types[i], &b->layouts[i]) && (xm_count_at(call, b->counts, i) != 0)) {
            return false;
        }
    }
    return true;
}

/*
 * References to types that nobody needs any more. A buffer may come to its end in a callback of
 * MPI's, and there MPICH refuses to free a type.
 */
static struct {
    pthread_mutex_t lock;
    MPI_Datatype   *types;
    size_t          count;
} unused = {.lock = PTHREAD_MUTEX_INITIALIZER};

void xm_type_forget(MPI_Datatype type)
{
    pthread_mutex_lock(&unused.lock);
    MPI_Datatype *more = realloc(unused.types, (unused.count + 1) * sizeof(*more));
    if (more != NULL) { /* else it stays until the end */
        unused.types = more;
        more[unused.count++] = type;
    }
    pthread_mutex_unlock(&unused.lock);
}

void xm_buffers_free_types(void)
{
    pthread_mutex_lock(&unused.lock);
    MPI_Datatype *types = unused.types;
    size_t        count = unused.count;
    unused.types = NULL;
    unused.count = 0;
    pthread_mutex_unlock(&unused.lock);
    for (size_t i = 0; i < count; i++) {
        xm_pmpi.Type_free(&types[i]);
    }
    free(types);
}

/* Not a duplicate: that would call the program's copy callbacks. */
static void hold(MPI_Datatype *type, struct xm_layout *layout)
{
    MPI_Datatype same;

    xm_buffers_free_types();
    if (!layout->held && (xm_pmpi.Type_contiguous(1, *type, &same) == MPI_SUCCESS)) {
        xm_pmpi.Type_commit(&same);
        *type = same;
        layout->held = true;
    }
}

static void let_go(const MPI_Datatype *type, struct xm_layout *layout)
{
    if (layout->held) {
        xm_type_forget(*type);
        layout->held = false;
    }
    xm_flat_put(layout->flat);
    layout->flat = NULL;
}

void xm_buffer_hold_type(struct xm_buffer *buffer)
{
    hold(&buffer->type, &buffer->layout);
}

void xm_buffer_let_type_go(struct xm_buffer *buffer)
{
    let_go(&buffer->type, &buffer->layout);
}

static void take_type_apart(MPI_Datatype *type, struct xm_layout *layout)
{
    layout->flat = xm_flat_get(*type);
    if (layout->flat == NULL) {
        hold(type, layout);
    }
}

/*
 * What the copies will need of derived types. Now, because the program may free a type as soon as
 * the call has returned, while its data is still on the way.
 */
static void take_apart(struct xm_buffer *b)
{
    if (b->types == NULL) {
        take_type_apart(&b->type, &b->layout);
        return;
    }
    b->own = malloc((size_t)b->blocks * sizeof(*b->own));
    if (b->own == NULL) {
        return;
    }
    memcpy(b->own, b->types, (size_t)b->blocks * sizeof(*b->own));
    b->types = b->own;
    for (int i = 0; i < b->blocks; i++) {
        if (!b->layouts[i].plain && (b->layouts[i].size > 0)) {
            take_type_apart(&b->own[i], &b->layouts[i]);
        }
    }
}

void xm_buffer_take_apart(struct xm_buffer *b)
{
    if (b->used && !b->plain && (b->types == NULL) && (b->layout.flat == NULL) && !b->layout.held) {
        take_type_apart(&b->type, &b->layout);
    }
}

static void look_at(struct xm_buffer *b, MPI_Aint offset)
{
    struct xc_mem_info mem = xc_mem_query(xm_buffer_at(b, offset));

    if ((mem.kind == b->mem.kind) && (mem.device == b->mem.device)) {
        return;
    }
    if ((mem.kind != XC_MEM_DEVICE) && (b->mem.kind != XC_MEM_DEVICE)) {
        b->mem = (struct xc_mem_info){.kind = XC_MEM_HOST, .device = -1}; /* MPI reaches both */
        return;
    }
    b->mixed = true;
    if (b->mem.kind != XC_MEM_DEVICE) {
        b->mem = mem;
    }
}

/* Of many regular stretches the first ones and the last tell. */
static void look_at_block(struct xm_buffer *b, const struct xm_block *block)
{
    const struct xm_flat *flat = block->layout->flat;

    if (block->layout->plain) {
        look_at(b, block->offset + (MPI_Aint)block->layout->true_lb);
        return;
    }
    for (size_t i = 0; i < flat->runs.count; i++) {
        struct xm_run run = xm_block_run(block, i);
        size_t        stretches = xm_run_stretches(&run), packed;
        ptrdiff_t     offset;
        for (size_t s = 0; s < stretches; s += (s < LOOKS) ? 1 : stretches - s) {
            xm_run_at(&run, (s < LOOKS) ? s : stretches - 1, &offset, &packed);
            look_at(b, block->offset + offset);
        }
    }
}

/* The data of MPI_BOTTOM lies anywhere, and need not be what its first byte is. */
static void look_everywhere(const struct xm_call *call, struct xm_buffer *b)
{
    b->absolute = !b->plain || (b->blocks > 1);
    for (int i = 0; b->absolute && (i < b->blocks); i++) {
        struct xm_block block = xm_block_at(call, b, i);
        b->absolute = block.layout->plain || (block.layout->flat != NULL) || (block.count == 0);
    }
    for (int i = 0; b->absolute && (i < b->blocks); i++) {
        struct xm_block block = xm_block_at(call, b, i);
        if ((block.count > 0) && (block.layout->size > 0)) {
            look_at_block(b, &block);
            b->mem.synchronous = false; /* that is a property of each allocation */
        }
    }
}

/* Totals, span and memory kind of a buffer whose blocks are set. False for MPI to complain. */
static bool finish(const struct xm_call *call, struct xm_buffer *b)
{
    b->mem = (struct xc_mem_info){.kind = XC_MEM_HOST, .device = -1};
    b->plain = true;
    if (!find_layouts(b, call)) {
        return false;
    }
    for (int i = 0; i < b->blocks; i++) {
        struct xm_block block = xm_block_at(call, b, i);
        if (block.count < 0) {
            return false;
        }
        if ((block.count > 0) && (block.layout->size > 0)) {
            widen(b, &block);
            b->elements += block.count;
            b->bytes += block.count * block.layout->size;
            b->plain = b->plain && block.layout->plain;
        }
    }
    b->used = (b->bytes > 0);
    if (b->used) {
        b->mem = memory_at(xm_buffer_at(b, b->low));
        bool bottom = (b->buf == NULL) && (xc_device_active() != NULL);
        if (!b->plain && (bottom || (b->mem.kind == XC_MEM_DEVICE))) {
            take_apart(b);
        }
        if (bottom) {
            look_everywhere(call, b);
        }
    }
    return true;
}

static bool single(const struct xm_call *call, struct xm_buffer *b, const void *buf,
                   MPI_Count count, MPI_Datatype type)
{
    b->buf = (char *)(uintptr_t)buf;
    b->type = type;
    b->blocks = 1;
    b->count = count;
    return finish(call, b);
}

bool xm_buffer_single(struct xm_buffer *buffer, const void *buf, MPI_Count count, MPI_Datatype type)
{
    return single(NULL, buffer, buf, count, type);
}

void xm_buffer_ask_again(struct xm_buffer *b)
{
    if (!b->used || b->absolute || (b->mem.kind != XC_MEM_DEVICE)) {
        return;
    }
    struct xc_mem_info now = xc_mem_query(xm_buffer_at(b, b->low));
    b->mem.synchronous = now.synchronous;
    b->mem.allocation = now.allocation;
}

void xm_buffer_part(const struct xm_buffer *all, MPI_Count first, MPI_Count count,
                    struct xm_buffer *part_p)
{
    struct xm_buffer part = *all;
    struct xm_block  block = {.count = count, .type = all->type, .layout = &all->layout};

    part.buf += (MPI_Aint)(first * all->layout.extent);
    part.count = count;
    part.bytes = count * all->layout.size;
    part.used = (part.bytes > 0);
    part.elements = 0;
    if (part.used) {
        widen(&part, &block);
        part.elements = count;
    }
    *part_p = part;
}

/* Send or receive blocks of their own size each, for n partners. */
static bool vector(const struct xm_call *call, struct xm_buffer *b, bool sends, int n)
{
    b->buf = (char *)(uintptr_t)(sends ? call->sendbuf : call->recvbuf);
    b->type = sends ? call->sendtype : call->recvtype;
    b->types = sends ? call->sendtypes : call->recvtypes;
    b->counts = sends ? call->sendcounts : call->recvcounts;
    b->displs = sends ? call->sdispls : call->rdispls;
    b->blocks = n;
    bool w = (call->coll == XM_ALLTOALLW) || (call->coll == XM_NEIGHBOR_ALLTOALLW);
    if ((n > 0) && ((b->counts == NULL) || (b->displs == NULL) || (w && (b->types == NULL)))) {
        return false;
    }
    return finish(call, b);
}

void xm_buffer_free(struct xm_buffer *b)
{
    let_go(&b->type, &b->layout);
    for (int i = 0; (b->own != NULL) && (i < b->blocks); i++) {
        let_go(&b->own[i], &b->layouts[i]);
    }
    free(b->own);
    b->own = NULL;
    free(b->layouts);
    b->layouts = NULL;
}

void xm_buffers_free(struct xm_buffers *buffers)
{
    xm_buffer_free(&buffers->send);
    xm_buffer_free(&buffers->recv);
    free(buffers->arrays);
    buffers->arrays = NULL;
}

/* Who this rank is in a rooted collective, on either kind of communicator. */
struct role {
    bool root;
    bool leaf; /* contributes to, or receives from, a root */
};

static bool role_of(const struct xm_call *call, const struct xm_place *place, struct role *role)
{
    if (place->inter) {
        role->root = (call->root == MPI_ROOT);
        role->leaf = (call->root >= 0);
        return role->root || role->leaf || (call->root == MPI_PROC_NULL);
    }
    role->root = (call->root == place->rank);
    role->leaf = true; /* the root too has a part of its own */
    return (call->root >= 0) && (call->root < place->size);
}

static MPI_Count sum_counts(const struct xm_call *call, const void *counts, int n)
{
    MPI_Count sum = 0;

    for (int i = 0; i < n; i++) {
        MPI_Count count = xm_count_at(call, counts, i);
        if (count < 0) {
            return -1;
        }
        sum += count;
    }
    return sum;
}

/* Allreduce, Reduce and the two Reduce_scatters: n elements in, m out. */
static bool reduction(const struct xm_call *call, struct xm_buffers *buffers, MPI_Count in,
                      MPI_Count out, bool receives)
{
    bool in_place = (call->sendbuf == MPI_IN_PLACE);

    buffers->in_place = in_place;
    buffers->recv.in = in_place;
    buffers->recv.out = receives;
    buffers->send.in = true;
    if (in_place) {
        /* The input lies in the receive buffer: of Reduce_scatter it is the longer part. */
        return single(call, &buffers->recv, call->recvbuf, (in > out) ? in : out, call->sendtype);
    }
    return single(call, &buffers->send, call->sendbuf, in, call->sendtype) &&
           (!receives || single(call, &buffers->recv, call->recvbuf, out, call->sendtype));
}

static bool bcast(const struct xm_call *call, const struct xm_place *place,
                  struct xm_buffers *buffers)
{
    struct role role;

    if (!role_of(call, place, &role)) {
        return false;
    }
    struct xm_buffer *b = role.root ? &buffers->send : &buffers->recv;
    b->in = role.root;
    b->out = !role.root;
    return (!role.root && !role.leaf) ||
           single(call, b, call->recvbuf, call->recvcount, call->recvtype);
}

static bool reduce(const struct xm_call *call, const struct xm_place *place,
                   struct xm_buffers *buffers)
{
    struct role role;

    if (!role_of(call, place, &role)) {
        return false;
    }
    if (place->inter && role.root) { /* receives only */
        buffers->recv.out = true;
        return single(call, &buffers->recv, call->recvbuf, call->sendcount, call->sendtype);
    }
    if (!role.leaf) {
        return true;
    }
    if ((call->sendbuf == MPI_IN_PLACE) && !role.root) {
        return false;
    }
    return reduction(call, buffers, call->sendcount, call->sendcount, role.root);
}

/* Gather(v): a part from each leaf, all parts at the root. */
static bool gather(const struct xm_call *call, const struct xm_place *place,
                   struct xm_buffers *buffers)
{
    struct role role;
    int         n = place->partners;

    if (!role_of(call, place, &role)) {
        return false;
    }
    buffers->in_place = role.root && (call->sendbuf == MPI_IN_PLACE);
    buffers->send.in = true;
    buffers->recv.out = true;
    buffers->recv.in = buffers->in_place;
    if (role.root) {
        bool fine = (call->coll == XM_GATHERV) ? vector(call, &buffers->recv, false, n)
                                               : single(call, &buffers->recv, call->recvbuf,
                                                        call->recvcount * n, call->recvtype);
        if (!fine || place->inter) {
            return fine;
        }
    }
    return !role.leaf || buffers->in_place ||
           single(call, &buffers->send, call->sendbuf, call->sendcount, call->sendtype);
}

static bool scatter(const struct xm_call *call, const struct xm_place *place,
                    struct xm_buffers *buffers)
{
    struct role role;
    int         n = place->partners;

    if (!role_of(call, place, &role)) {
        return false;
    }
    buffers->in_place = role.root && (call->recvbuf == MPI_IN_PLACE);
    buffers->send.in = true;
    buffers->recv.out = true;
    if (role.root) {
        bool fine = (call->coll == XM_SCATTERV) ? vector(call, &buffers->send, true, n)
                                                : single(call, &buffers->send, call->sendbuf,
                                                         call->sendcount * n, call->sendtype);
        if (!fine || place->inter) {
            return fine;
        }
    }
    return !role.leaf || buffers->in_place ||
           single(call, &buffers->recv, call->recvbuf, call->recvcount, call->recvtype);
}

static bool is_vector(enum xm_coll coll)
{
    return (coll == XM_ALLGATHERV) || (coll == XM_ALLTOALLV) || (coll == XM_ALLTOALLW) ||
           (coll == XM_NEIGHBOR_ALLGATHERV) || (coll == XM_NEIGHBOR_ALLTOALLV) ||
           (coll == XM_NEIGHBOR_ALLTOALLW);
}

static bool is_alltoall(enum xm_coll coll)
{
    return (coll == XM_ALLTOALL) || (coll == XM_ALLTOALLV) || (coll == XM_ALLTOALLW) ||
           (coll == XM_NEIGHBOR_ALLTOALL) || (coll == XM_NEIGHBOR_ALLTOALLV) ||
           (coll == XM_NEIGHBOR_ALLTOALLW);
}

/* The send buffer of an allgather or an alltoall with n partners to send to. */
static bool send_to_all(const struct xm_call *call, struct xm_buffers *buffers, int n)
{
    if (!is_alltoall(call->coll)) {
        return single(call, &buffers->send, call->sendbuf, call->sendcount, call->sendtype);
    }
    if (is_vector(call->coll)) {
        return vector(call, &buffers->send, true, n);
    }
    return single(call, &buffers->send, call->sendbuf, call->sendcount * n, call->sendtype);
}

static bool receive_from_all(const struct xm_call *call, struct xm_buffers *buffers, int n)
{
    if (is_vector(call->coll)) {
        return vector(call, &buffers->recv, false, n);
    }
    return single(call, &buffers->recv, call->recvbuf, call->recvcount * n, call->recvtype);
}

/* Allgather(v), Alltoall(v, w): all ranks alike. */
static bool everyone(const struct xm_call *call, const struct xm_place *place,
                     struct xm_buffers *buffers)
{
    buffers->in_place = (call->sendbuf == MPI_IN_PLACE);
    buffers->recv.out = true;
    buffers->recv.in = buffers->in_place;
    buffers->send.in = true;
    return receive_from_all(call, buffers, place->partners) &&
           (buffers->in_place || send_to_all(call, buffers, place->partners));
}

static bool neighbors(const struct xm_call *call, const struct xm_place *place,
                      struct xm_buffers *buffers)
{
    int status = MPI_UNDEFINED, in = 0, out = 0, weighted;

    if (xm_pmpi.Topo_test(call->comm, &status) != MPI_SUCCESS) {
        return false;
    }
    if (status == MPI_CART) {
        xm_pmpi.Cartdim_get(call->comm, &in);
        in = out = 2 * in;
    } else if (status == MPI_GRAPH) {
        xm_pmpi.Graph_neighbors_count(call->comm, place->rank, &in);
        out = in;
    } else if (status == MPI_DIST_GRAPH) {
        xm_pmpi.Dist_graph_neighbors_count(call->comm, &in, &out, &weighted);
    } else {
        return false;
    }
    /* The block of a neighbour that is MPI_PROC_NULL keeps its bytes, so they come along. */
    buffers->recv.in = buffers->recv.out = true;
    buffers->send.in = true;
    return receive_from_all(call, buffers, in) && send_to_all(call, buffers, out);
}

bool xm_buffers_of(const struct xm_call *call, const struct xm_place *place,
                   struct xm_buffers *buffers_p)
{
    MPI_Count total;

    memset(buffers_p, 0, sizeof(*buffers_p));
    switch (call->coll) {
    case XM_BARRIER:
        return true;
    case XM_ALLREDUCE:
    case XM_SCAN:
        return reduction(call, buffers_p, call->sendcount, call->sendcount, true);
    case XM_EXSCAN:
        /* MPI leaves the first rank's receive buffer alone. */
        return reduction(call, buffers_p, call->sendcount, call->sendcount, place->rank > 0);
    case XM_REDUCE:
        return reduce(call, place, buffers_p);
    case XM_REDUCE_SCATTER:
        if (call->recvcounts == NULL) {
            return false;
        }
        total = sum_counts(call, call->recvcounts, place->size);
        return (total >= 0) && reduction(call, buffers_p, total,
                                         xm_count_at(call, call->recvcounts, place->rank), true);
    case XM_REDUCE_SCATTER_BLOCK:
        return (call->recvcount >= 0) &&
               reduction(call, buffers_p, call->recvcount * place->size, call->recvcount, true);
    case XM_BCAST:
        return bcast(call, place, buffers_p);
    case XM_GATHER:
    case XM_GATHERV:
        return gather(call, place, buffers_p);
    case XM_SCATTER:
    case XM_SCATTERV:
        return scatter(call, place, buffers_p);
    case XM_ALLGATHER:
    case XM_ALLGATHERV:
    case XM_ALLTOALL:
    case XM_ALLTOALLV:
    case XM_ALLTOALLW:
        return everyone(call, place, buffers_p);
    default:
        return neighbors(call, place, buffers_p);
    }
}
