/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The vendor's call for each MPI collective. Data is moved as bytes, whatever its type: the ranks
 * may describe the same data by different types.
 */
#include "base/log.h"
#include "intercept/ports.h"

static xcclComm_t comm_of(const struct xm_run *run)
{
    return run->xm->xcomm;
}

static xcclStream_t stream_of(const struct xm_run *run)
{
    return run->xm->stream;
}

static size_t part_bytes(const struct xm_run *run, const struct xm_port *port)
{
    return (size_t)port->side->bytes / (size_t)run->xm->size;
}

static xcclResult_t take_device(struct xm_run *run, size_t bytes, char **ptr_p)
{
    void        *ptr;
    xcclResult_t res = xm_scratch_take(&run->scratch, XM_POOL_DEVICE, bytes, &ptr);

    if (res == xcclSuccess) {
        *ptr_p = ptr;
    }
    return res;
}

/* xccl elements in count MPI elements. */
static size_t elements(const struct xm_run *run, MPI_Count count)
{
    return (size_t)count * run->view->reduction.factor;
}

static xcclResult_t allreduce(struct xm_run *run)
{
    const struct xm_reduction *r = &run->view->reduction;
    const char                *in = run->sides->in_place ? run->recv.ptr : run->send.ptr;

    return xcclAllReduce(in, run->recv.ptr, elements(run, run->call->sendcount), r->type, r->op,
                         comm_of(run), stream_of(run));
}

static xcclResult_t reduce(struct xm_run *run)
{
    const struct xm_reduction *r = &run->view->reduction;
    const char                *in = run->sides->in_place ? run->recv.ptr : run->send.ptr;
    char                      *out = run->sides->recv.used ? run->recv.ptr : NULL;

    return xcclReduce(in, out, elements(run, run->call->sendcount), r->type, r->op, run->call->root,
                      comm_of(run), stream_of(run));
}

/* Unequal parts: no vendor has a call for that, but a reduction to each rank in one group does it.
 */
static xcclResult_t reduce_to_each(struct xm_run *run, const char *in, char *out)
{
    const struct xm_reduction *r = &run->view->reduction;
    const struct xm_side      *side = run->sides->in_place ? &run->sides->recv : &run->sides->send;
    xcclResult_t               res = xcclGroupStart();

    if (res != xcclSuccess) {
        return res;
    }
    for (int i = 0; (i < run->xm->size) && (res == xcclSuccess); i++) {
        MPI_Count count = xm_count_at(run->call, run->call->recvcounts, i);
        if (count > 0) {
            res = xcclReduce(in, (i == run->xm->rank) ? out : NULL, elements(run, count), r->type,
                             r->op, i, comm_of(run), stream_of(run));
            in += count * side->layout.size;
        }
    }
    xcclResult_t end = xcclGroupEnd();
    return (res != xcclSuccess) ? res : end;
}

static bool parts_are_equal(const struct xm_run *run)
{
    if (run->call->coll == XM_REDUCE_SCATTER_BLOCK) {
        return true;
    }
    for (int i = 1; i < run->xm->size; i++) {
        if (xm_count_at(run->call, run->call->recvcounts, i) !=
            xm_count_at(run->call, run->call->recvcounts, 0)) {
            return false;
        }
    }
    return true;
}

static xcclResult_t reduce_scatter(struct xm_run *run)
{
    const struct xm_reduction *r = &run->view->reduction;
    bool                       in_place = run->sides->in_place;
    MPI_Count                  own = (run->call->coll == XM_REDUCE_SCATTER_BLOCK)
                                         ? run->call->recvcount
                                         : xm_count_at(run->call, run->call->recvcounts, run->xm->rank);
    char                      *in = in_place ? run->recv.ptr : run->send.ptr;
    char                      *out = (own > 0) ? run->recv.ptr : NULL;
    size_t                     bytes = (size_t)(own * run->recv.side->layout.size);
    xcclResult_t               res = xcclSuccess;

    /* In place in MPI is: input in all of the buffer, output at its beginning. To the vendors it
     * is: output at the rank's own part. So the output goes elsewhere first. */
    if (in_place && (own > 0)) {
        res = take_device(run, bytes, &out);
    }
    if (res == xcclSuccess) {
        res = parts_are_equal(run) ? xcclReduceScatter(in, out, elements(run, own), r->type, r->op,
                                                       comm_of(run), stream_of(run))
                                   : reduce_to_each(run, in, out);
    }
    if ((res == xcclSuccess) && in_place && (own > 0)) {
        res = run->copier.dev->copy_async(run->recv.ptr, out, bytes, stream_of(run));
    }
    return res;
}

static xcclResult_t bcast(struct xm_run *run)
{
    const struct xm_port *port = run->sides->send.used ? &run->send : &run->recv;

    return xcclBcast(port->ptr, (size_t)port->side->bytes, xcclUint8, run->call->root, comm_of(run),
                     stream_of(run));
}

static xcclResult_t allgather(struct xm_run *run)
{
    size_t      bytes = part_bytes(run, &run->recv);
    const char *in =
        run->sides->in_place ? run->recv.ptr + (size_t)run->xm->rank * bytes : run->send.ptr;

    return xcclAllGather(in, run->recv.ptr, bytes, xcclUint8, comm_of(run), stream_of(run));
}

/*
 * The vendors exchange out of place only: in place the input is a copy, with the same offsets.
 */
static xcclResult_t copy_of_input(struct xm_run *run, const char **in_p)
{
    const struct xm_side *side = run->recv.side;
    /* Packed data begins at 0, a plain buffer's at the lowest offset used. */
    MPI_Aint     low = run->recv.packed ? 0 : side->low;
    size_t       bytes = run->recv.packed ? (size_t)side->bytes : (size_t)(side->high - side->low);
    char        *copy;
    xcclResult_t res = take_device(run, bytes, &copy);

    if (res == xcclSuccess) {
        res = run->copier.dev->copy_async(copy, run->recv.ptr + low, bytes, stream_of(run));
    }
    if (res == xcclSuccess) {
        *in_p = copy - low;
    }
    return res;
}

static xcclResult_t alltoall(struct xm_run *run)
{
    const char  *in = run->send.ptr;
    xcclResult_t res = run->sides->in_place ? copy_of_input(run, &in) : xcclSuccess;

    return (res != xcclSuccess) ? res
                                : xcclAlltoAll(in, run->recv.ptr, part_bytes(run, &run->recv),
                                               xcclUint8, comm_of(run), stream_of(run));
}

static xcclResult_t alltoallv(struct xm_run *run)
{
    const struct xm_port *send = run->sides->in_place ? &run->recv : &run->send;
    const char           *in = send->ptr;
    xcclResult_t          res = xcclSuccess;

    if (run->sides->in_place && run->sides->recv.used) {
        res = copy_of_input(run, &in);
    }
    return (res != xcclSuccess)
               ? res
               : xcclAlltoAllv(in, send->counts, send->displs, run->recv.ptr, run->recv.counts,
                               run->recv.displs, xcclUint8, comm_of(run), stream_of(run));
}

static xcclResult_t gather(struct xm_run *run)
{
    bool        in_place = run->sides->in_place;
    size_t      bytes = in_place ? part_bytes(run, &run->recv) : (size_t)run->send.side->bytes;
    const char *in = in_place ? run->recv.ptr + (size_t)run->xm->rank * bytes : run->send.ptr;
    char       *out = run->sides->recv.used ? run->recv.ptr : NULL;

    return xcclGather(in, out, bytes, xcclUint8, run->call->root, comm_of(run), stream_of(run));
}

static xcclResult_t gatherv(struct xm_run *run)
{
    const struct xm_port *recv = &run->recv;
    size_t                bytes = (size_t)run->send.side->bytes;
    const char           *in = run->send.ptr;

    if (run->sides->in_place) {
        bytes = recv->counts[run->xm->rank];
        in = recv->ptr + recv->displs[run->xm->rank];
    }
    return xcclGatherv(in, bytes, recv->ptr, recv->counts, recv->displs, xcclUint8, run->call->root,
                       comm_of(run), stream_of(run));
}

static xcclResult_t scatter(struct xm_run *run)
{
    bool   in_place = run->sides->in_place;
    size_t bytes = in_place ? part_bytes(run, &run->send) : (size_t)run->recv.side->bytes;
    char  *out = in_place ? run->send.ptr + (size_t)run->xm->rank * bytes : run->recv.ptr;

    return xcclScatter(run->send.ptr, out, bytes, xcclUint8, run->call->root, comm_of(run),
                       stream_of(run));
}

static xcclResult_t scatterv(struct xm_run *run)
{
    const struct xm_port *send = &run->send;
    size_t                bytes = (size_t)run->recv.side->bytes;
    char                 *out = run->recv.ptr;

    if (run->sides->in_place) {
        bytes = send->counts[run->xm->rank];
        out = send->ptr + send->displs[run->xm->rank];
    }
    return xcclScatterv(send->ptr, send->counts, send->displs, out, bytes, xcclUint8,
                        run->call->root, comm_of(run), stream_of(run));
}

xcclResult_t xm_enqueue(struct xm_run *run)
{
    static xcclResult_t (*const calls[XM_NUM_COLLS])(struct xm_run *) = {
        [XM_ALLREDUCE] = allreduce,
        [XM_BCAST] = bcast,
        [XM_REDUCE] = reduce,
        [XM_REDUCE_SCATTER] = reduce_scatter,
        [XM_REDUCE_SCATTER_BLOCK] = reduce_scatter,
        [XM_ALLGATHER] = allgather,
        [XM_ALLGATHERV] = xm_enqueue_allgatherv,
        [XM_ALLTOALL] = alltoall,
        [XM_ALLTOALLV] = alltoallv,
        [XM_GATHER] = gather,
        [XM_GATHERV] = gatherv,
        [XM_SCATTER] = scatter,
        [XM_SCATTERV] = scatterv,
    };

    return calls[run->call->coll](run);
}
