/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A long allreduce, once the hosts have met: each rank has a part of the vector, and copy engines
 * bring the others the sums. Between two ranks engines also fetch what is to be added, in pieces,
 * while kernels add what has come. Among more a kernel reads it. Engines fill the links better than
 * kernels that read and write over them.
 */
#include "base/log.h"
#include "base/params.h"
#include "data/events.h"
#include "data/pools.h"
#include "paths/direct.h"

/*
 * In units of XCCL_DIRECT_COPIES. A copy costs its engine 3 to 7 us beside the bytes, and the last
 * piece is added when nothing else is left to do: so at least two pieces, and long ones. 2 H200s.
 */
enum { LEAST = 256, PIECE = 128 };
/*
 * Among more ranks nothing is gained by pieces: engines that are at work at once get into each
 * other's way. And kernels are as fast up to 128 MiB. 4 H100s.
 */
enum { LEAST_AMONG_MORE = 1024 };
enum { ALIGNED = 16, BLOCKS = 64 };

bool xm_direct_pipelines_well(const struct xm_op *op, const struct xk_work *m)
{
    uint64_t least = (op->comm->size > 2) ? LEAST_AMONG_MORE : LEAST;

    return !op->meets && (op->call.coll == XM_ALLREDUCE) && (m->targets > 1) &&
           !xm_direct_is_checked(op) && (op->block_bytes >= xc_params()->direct_copies * least);
}

static uint64_t piece_of(uint64_t bytes)
{
    uint64_t most = (uint64_t)xc_params()->direct_copies * PIECE;
    uint64_t count = (bytes + most - 1) / most;

    count = (count > XM_PIPES) ? count : XM_PIPES;
    return (bytes / count / ALIGNED + 1) * ALIGNED;
}

static int pipes_of(const struct xm_op *op)
{
    return (op->comm->size == 2) ? XM_PIPES : 1;
}

/* The first is the direct path's own stream; with nothing under way, the order is no matter. */
static xcclResult_t open_pipes(struct xm_op *op)
{
    xcclResult_t res = xcclSuccess;

    for (int i = 0; (res == xcclSuccess) && (i < pipes_of(op)); i++) {
        struct xm_pipe *pipe = &op->pipes[i];
        if (!xm_kernel_series_begin(op->direct->kernels, &pipe->series)) {
            return xcclUnsupported;
        }
        pipe->stream = op->stream;
        if (i > 0) {
            res = xm_next_copy_stream(op->dev, op->home, &pipe->stream);
        }
        if (res == xcclSuccess) {
            res = xm_event_take(op->dev, op->home, &pipe->event);
        }
    }
    return res;
}

static void close_pipe(struct xm_op *op, struct xm_pipe *pipe)
{
    xm_kernel_series_end(&pipe->series);
    if (pipe->event != NULL) {
        xm_event_give(op->dev, op->home, pipe->event);
        pipe->event = NULL;
    }
}

/* Fetch the other's, add to it this rank's, and bring it the sums. */
static xcclResult_t enqueue_piece(struct xm_op *op, struct xm_pipe *pipe, const struct xk_work *m,
                                  uint64_t at, uint64_t fetched, uint64_t bytes)
{
    const struct xc_device_ops *dev = op->dev;
    const struct xk_work        sum = {.from = {m->from[0] + at, fetched},
                                       .to = {m->to[0] + at},
                                       .bytes = bytes,
                                       .sources = 2,
                                       .targets = 1,
                                       .turn = m->turn,
                                       .what = m->what};

    xcclResult_t res =
        dev->copy_async((void *)(uintptr_t)fetched, (const void *)(uintptr_t)(m->from[1] + at),
                        bytes, pipe->stream);
    if (res == xcclSuccess) {
        res = xm_kernel_series_reduce(&pipe->series, &sum, BLOCKS, pipe->stream);
    }
    if (res == xcclSuccess) {
        res = dev->copy_async((void *)(uintptr_t)(m->to[1] + at),
                              (const void *)(uintptr_t)(m->to[0] + at), bytes, pipe->stream);
    }
    return res;
}

/* Add the parts of all, and bring them the sums, one after the other. */
static xcclResult_t enqueue_whole(struct xm_op *op, struct xm_pipe *pipe, const struct xk_work *m)
{
    struct xk_work sum = *m;

    sum.targets = 1;
    xcclResult_t res = xm_kernel_series_reduce(&pipe->series, &sum, BLOCKS, pipe->stream);
    for (uint32_t i = m->targets; (res == xcclSuccess) && (i-- > 1);) {
        res = op->dev->copy_async((void *)(uintptr_t)m->to[i], (const void *)(uintptr_t)m->to[0],
                                  m->bytes, pipe->stream);
    }
    return res;
}

static xcclResult_t enqueue_pieces(struct xm_op *op, const struct xk_work *m, uint64_t piece,
                                   char *room)
{
    uint64_t     at = 0;
    xcclResult_t res = xcclSuccess;

    for (int i = 0; (res == xcclSuccess) && (at < m->bytes); i = (i + 1) % XM_PIPES) {
        uint64_t bytes = (m->bytes - at < piece) ? m->bytes - at : piece;
        uint64_t fetched =
            (room != NULL) ? (uint64_t)(uintptr_t)(room + (uint64_t)i * piece) : m->to[0] + at;
        res = enqueue_piece(op, &op->pipes[i], m, at, fetched, bytes);
        at += bytes;
    }
    return res;
}

/* In place what is fetched has no room in the result. Of a failure nothing is kept. */
static xcclResult_t prepare(struct xm_op *op, const struct xk_work *m, uint64_t piece,
                            char **room_p)
{
    void        *room = NULL;
    xcclResult_t res = xcclSuccess;

    if ((op->comm->size == 2) && (m->from[0] == m->to[0])) {
        res = xm_scratch_take(&op->scratch, XM_POOL_DEVICE, XM_PIPES * piece, &room);
    }
    if (res == xcclSuccess) {
        res = open_pipes(op);
    }
    for (int i = 0; (res != xcclSuccess) && (i < XM_PIPES); i++) {
        close_pipe(op, &op->pipes[i]);
    }
    *room_p = room;
    return (res == xcclSuccess) ? res : xcclUnsupported;
}

xcclResult_t xm_direct_pipeline(struct xm_op *op, const struct xk_work *m)
{
    bool         two = (op->comm->size == 2);
    uint64_t     piece = two ? piece_of(m->bytes) : m->bytes;
    char        *room = NULL;
    xcclResult_t res = prepare(op, m, piece, &room);

    if (res != xcclSuccess) {
        return res;
    }
    op->by_copies = true;
    res = two ? enqueue_pieces(op, m, piece, room) : enqueue_whole(op, &op->pipes[0], m);
    for (int i = 0; (res == xcclSuccess) && (i < pipes_of(op)); i++) {
        res = op->dev->event_record(op->pipes[i].event, op->pipes[i].stream);
    }
    xc_trace("%llu bytes by copy engines, added in pieces of %llu", (unsigned long long)m->bytes,
             (unsigned long long)piece);
    return res;
}

xcclResult_t xm_direct_query_pipeline(struct xm_op *op)
{
    xcclResult_t res = xcclSuccess;

    for (int i = 0; (res == xcclSuccess) && (i < XM_PIPES); i++) {
        struct xm_pipe *pipe = &op->pipes[i];
        if (pipe->event == NULL) {
            continue;
        }
        res = op->dev->event_query(pipe->event);
        if (res == xcclSuccess) {
            close_pipe(op, pipe);
        }
    }
    return res;
}
