/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Sendrecv_replace on device memory. Its message cannot be fetched from where another one comes
 * to, and through host memory it would take 40 times as long as MPI_Sendrecv (2 MiB, H200). So what
 * is replaced is sent from a copy on the device, by MPI_Sendrecv.
 */
#include "calls/replace.h"

#include "base/params.h"
#include "calls/calls.h"
#include "comms/wait.h"
#include "data/kernels.h"
#include "data/pools.h"
#include "transfers/staging.h"

/* Of fewer bytes the copy takes as long as the way through host memory. */
enum { LEAST_BYTES = 4096 };
enum { BUFFER, COUNT, TYPE, TO, SEND_TAG, FROM, RECEIVE_TAG, COMM, STATUS };

static bool is_better(const struct xm_transfer *t)
{
    const struct xm_buffer *b = &t->parts[0].buffer;

    return (t->num_parts == 1) && !t->scattered && b->plain && (b->blocks == 1) &&
           (b->mem.kind == XC_MEM_DEVICE) && (b->bytes >= LEAST_BYTES) &&
           (b->bytes <= (MPI_Count)xc_params()->scratch << 20) &&
           xm_rendezvous_is_fetched(xm_transfer_comm(t), (int)t->args[TO], b);
}

/* With the device entered, and waited for. */
static xcclResult_t copy(struct xm_scratch *scratch, const struct xc_device_ops *dev,
                         const struct xm_buffer *b, void **copy_p)
{
    const char  *from = b->buf + b->low;
    size_t       bytes = (size_t)b->bytes;
    xcclStream_t stream;

    xcclResult_t res = xm_scratch_take(scratch, XM_POOL_DEVICE, bytes, copy_p);
    if (res != xcclSuccess) {
        return res;
    }
    struct xm_kernels *k = xm_kernels_of(dev, b->mem.device);
    if (b->mem.synchronous && (k != NULL) &&
        xm_quick_copy(k, XM_QUICK_FETCH, *copy_p, from, bytes)) {
        return xcclSuccess;
    }
    res = xm_copy_stream(dev, b->mem.device, &stream);
    if ((res == xcclSuccess) && !b->mem.synchronous) {
        dev->mem_make_synchronous(from);
        res = dev->stream_after_default(stream);
    }
    if (res == xcclSuccess) {
        res = dev->copy_async(*copy_p, from, bytes, stream);
    }
    return (res == xcclSuccess) ? xm_stream_wait(dev, stream) : res;
}

static bool carry_out(const struct xm_transfer *t, int profiling, int *code_p)
{
    const struct xm_buffer     *b = &t->parts[0].buffer;
    const struct xc_device_ops *dev = xc_device_active();
    bool                        large = (t->function == XM_FN_MPI_Sendrecv_replace_c);
    struct xm_scratch           scratch;
    void                       *saved, *sent;

    if (dev->enter(b->mem.device, &saved) != xcclSuccess) {
        return false;
    }
    xm_scratch_begin(&scratch, dev, b->mem.device);
    xcclResult_t res = copy(&scratch, dev, b, &sent);
    dev->leave(saved);
    if (res != xcclSuccess) { /* where the copy failed, the device may still be at it */
        return false;
    }
    const long *a = t->args;
    const long  args[] = {(long)((char *)sent - b->low),
                          a[COUNT],
                          a[TYPE],
                          a[TO],
                          a[SEND_TAG],
                          a[BUFFER],
                          a[COUNT],
                          a[TYPE],
                          a[FROM],
                          a[RECEIVE_TAG],
                          a[COMM],
                          a[STATUS]};
    *code_p = xm_message_call(large ? XM_FN_MPI_Sendrecv_c : XM_FN_MPI_Sendrecv, profiling, args);
    if (*code_p == MPI_SUCCESS) { /* else its receiver may still be reading it */
        xm_scratch_end(&scratch);
    }
    return true;
}

bool xm_replace_apart(enum xm_function function, int profiling, const long *args, int *code_p)
{
    struct xm_transfer t;

    if (((function != XM_FN_MPI_Sendrecv_replace) && (function != XM_FN_MPI_Sendrecv_replace_c)) ||
        xm_config.faulty || (xm_transfer_way(function, args) != XM_WAY_OURS) ||
        !xm_transfer_read(&t, function, args)) {
        return false;
    }
    bool done = is_better(&t) && carry_out(&t, profiling, code_p);
    xm_transfer_close(&t);
    return done;
}
