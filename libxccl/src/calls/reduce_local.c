/* SPDX-License-Identifier: BSD-3-Clause */
#include "calls/reduce_local.h"

#include "comms/wait.h"
#include "data/copy.h"
#include "data/events.h"
#include "data/kernel_reduction.h"
#include "data/kernels.h"

/* The arguments, and how many bytes a block is to reduce at least; more blocks gain nothing. */
enum { IN, INOUT, COUNT, TYPE, OP };
enum { BLOCK_BYTES = 16 << 10, MOST_BLOCKS = 64 };

static bool is_usable(const struct xm_buffer *b)
{
    return b->plain && (b->blocks == 1) && !b->absolute && (b->mem.kind == XC_MEM_DEVICE);
}

/* What a kernel is to do; false: MPI knows better. */
static bool describe(const struct xm_transfer *t, const struct xm_buffer *in,
                     const struct xm_buffer *inout, struct xk_work *work)
{
    struct xm_kernel_reduction reduction;
    MPI_Datatype               type = (MPI_Datatype)(intptr_t)t->args[TYPE];
    MPI_Op                     op = (MPI_Op)(intptr_t)t->args[OP];

    if (!is_usable(in) || !is_usable(inout) || (in->mem.device != inout->mem.device) ||
        (xm_kernel_reduction_of(type, op, &reduction) != NULL) ||
        (XK_OP_OF(reduction.what) == XK_SUM_CHECKED)) {
        return false;
    }
    uint64_t out = (uint64_t)(uintptr_t)(inout->buf + inout->low);
    *work = (struct xk_work){.from = {(uint64_t)(uintptr_t)(in->buf + in->low), out},
                             .to = {out},
                             .bytes = (uint64_t)in->count * reduction.element,
                             .sources = 2,
                             .targets = 1,
                             .what = reduction.what};
    return work->bytes == (uint64_t)in->bytes; /* without holes */
}

/* With the device entered, and waited for. *begun_p: something is on the device. */
static xcclResult_t carry_out(struct xm_kernel_series *series, const struct xm_buffer *in,
                              const struct xm_buffer *inout, const struct xk_work *work,
                              bool *begun_p)
{
    const struct xc_device_ops *dev = xc_device_active();
    uint64_t                    blocks = work->bytes / BLOCK_BYTES + 1;
    xcclStream_t                stream;

    xcclResult_t res = xm_copy_stream(dev, in->mem.device, &stream);
    if (res == xcclSuccess) {
        res = xm_after_program(dev, in, inout, stream);
    }
    if (res == xcclSuccess) {
        res = xm_kernel_series_reduce(
            series, work, (unsigned)((blocks < MOST_BLOCKS) ? blocks : MOST_BLOCKS), stream);
        *begun_p = (res == xcclSuccess);
    }
    return (res == xcclSuccess) ? xm_stream_wait(dev, stream) : res;
}

bool xm_reduce_on_device(const struct xm_transfer *t, xcclResult_t *res_p)
{
    const struct xc_device_ops *dev = xc_device_active();
    struct xm_kernel_series     series;
    struct xk_work              work;
    bool                        begun = false;
    void                       *saved;

    bool mine =
        (t->function == XM_FN_MPI_Reduce_local) || (t->function == XM_FN_MPI_Reduce_local_c);
    if (!mine || (t->num_parts != 2) || t->scattered ||
        !describe(t, &t->parts[IN].buffer, &t->parts[INOUT].buffer, &work)) {
        return false;
    }
    const struct xm_buffer *in = &t->parts[IN].buffer, *inout = &t->parts[INOUT].buffer;
    struct xm_kernels      *k = xm_collective_kernels_of(dev, in->mem.device);
    if ((k == NULL) || !xm_kernel_series_begin(k, &series)) {
        return false;
    }
    *res_p = dev->enter(in->mem.device, &saved);
    if (*res_p == xcclSuccess) {
        *res_p = carry_out(&series, in, inout, &work, &begun);
        dev->leave(saved);
    }
    if ((*res_p == xcclSuccess) || !begun) { /* else the device may still be at it */
        xm_kernel_series_end(&series);
    }
    if (begun) {
        xm_transfer_last_path = "device";
    }
    return begun;
}
