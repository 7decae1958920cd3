/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Reduce_local: no communicator, no other ranks; only memory that MPI may not reach. */
#include <string.h>

#include "base/log.h"
#include "calls/calls.h"
#include "comms/wait.h"

/* MPI_Reduce_local(inbuf, inoutbuf, count, datatype, op) and its form with a large count. */
enum { IN, INOUT, COUNT, TYPE, ARGUMENTS = 5 };

struct local {
    const struct xc_device_ops *dev;
    struct xm_copier            copier;
    struct xm_scratch           scratch;
    struct xm_call              call; /* of no use but for MPI_Unpack's communicator */
    struct xm_buffer            in, inout;
};

static xcclResult_t copy_in(struct local *l, const struct xm_buffer *buffer, long *arg,
                            char **span_p)
{
    void *span;

    *span_p = NULL;
    if (!xm_on_device(buffer)) {
        return xcclSuccess;
    }
    xcclResult_t res =
        xm_scratch_take(&l->scratch, XM_POOL_HOST, (size_t)(buffer->high - buffer->low), &span);
    if (res != xcclSuccess) {
        return res;
    }
    *span_p = span;
    *arg = (long)((char *)span - buffer->low);
    return xm_stage_in(&l->copier, buffer, span);
}

static xcclResult_t run(struct local *l, enum xm_function function, int profiling, long *args,
                        int *code_p)
{
    char        *in, *inout;
    xcclResult_t res = l->dev->stream_after_default(l->copier.stream);

    if (res != xcclSuccess) {
        return res;
    }
    res = copy_in(l, &l->in, &args[IN], &in);
    if (res != xcclSuccess) {
        return res;
    }
    res = copy_in(l, &l->inout, &args[INOUT], &inout);
    if (res != xcclSuccess) {
        return res;
    }
    res = xm_stream_wait(l->dev, l->copier.stream);
    if (res != xcclSuccess) {
        return res;
    }
    *code_p = (int)xm_mpi_forward(function, profiling, args);
    if ((*code_p != MPI_SUCCESS) || (inout == NULL)) {
        return xcclSuccess;
    }
    res = xm_stage_out(&l->copier, &l->inout, inout);
    return (res == xcclSuccess) ? xm_stream_wait(l->dev, l->copier.stream) : res;
}

static int staged(struct local *l, enum xm_function function, int profiling, long *args)
{
    int   device = xm_on_device(&l->in) ? l->in.mem.device : l->inout.mem.device;
    int   code = MPI_SUCCESS;
    void *saved;

    xcclResult_t res = l->dev->enter(device, &saved);
    if (res != xcclSuccess) {
        return xm_raise(XM_HANDLE(MPI_COMM_WORLD), res, xc_last_detail());
    }
    xm_scratch_begin(&l->scratch, l->dev, device);
    l->call.comm = XM_HANDLE(MPI_COMM_SELF);
    l->copier = (struct xm_copier){&l->call, l->dev, NULL, &l->scratch};
    res = xm_copy_stream(l->dev, device, &l->copier.stream);
    if (res == xcclSuccess) {
        res = run(l, function, profiling, args, &code);
    }
    if (res == xcclSuccess) {
        xm_scratch_end(&l->scratch);
    }
    l->dev->leave(saved);
    return (res == xcclSuccess) ? code : xm_raise(XM_HANDLE(MPI_COMM_WORLD), res, xc_last_detail());
}

int xm_reduce_local(enum xm_function function, int profiling, const long *args)
{
    struct local l = {.dev = xc_device_active()};
    long         changed[ARGUMENTS];
    bool         large = (function == XM_FN_MPI_Reduce_local_c);
    MPI_Count    count = large ? (MPI_Count)args[COUNT] : (int)args[COUNT];
    MPI_Datatype type = (MPI_Datatype)(intptr_t)args[TYPE];

    memcpy(changed, args, sizeof(changed));
    if (large && (xm_mpi_functions[function] == NULL)) {
        if (count != (int)count) {
            return xm_raise(XM_HANDLE(MPI_COMM_WORLD), xcclUnsupported,
                            "MPI_Reduce_local_c: this MPI has no function for so large a count");
        }
        function = XM_FN_MPI_Reduce_local;
    }
    if ((l.dev == NULL) || (count <= 0) || xm_config.faulty) {
        return (int)xm_mpi_forward(function, profiling, changed);
    }
    l.in.in = l.inout.in = l.inout.out = true;
    bool valid = xm_buffer_single(&l.in, (const void *)args[IN], count, type) &&
                 xm_buffer_single(&l.inout, (const void *)args[INOUT], count, type);
    if (!valid || (!xm_on_device(&l.in) && !xm_on_device(&l.inout))) {
        return (int)xm_mpi_forward(function, profiling, changed);
    }
    return staged(&l, function, profiling, changed);
}
