/* SPDX-License-Identifier: BSD-3-Clause */
#include "calls/packing.h"

#include "comms/wait.h"
#include "data/copy.h"
#include "data/pools.h"
#include "transfers/staging.h"

static const struct xm_buffer *buffer_at(const struct xm_transfer *t, char kind)
{
    int at = xm_transfer_argument(t->function, kind);

    for (int i = 0; i < t->num_parts; i++) {
        if (t->parts[i].argument == at) {
            return &t->parts[i].buffer;
        }
    }
    return NULL;
}

/* Of the program's type, and of bytes. */
static bool can_do(const struct xm_transfer *t, const struct xm_buffer *typed,
                   const struct xm_buffer *packed, MPI_Count room)
{
    return (typed != NULL) && (packed != NULL) && !t->scattered &&
           (xm_transfer_comm(t) != XM_HANDLE(MPI_COMM_NULL)) && (typed->blocks == 1) &&
           !typed->absolute && (typed->plain || (typed->layout.flat != NULL)) &&
           (typed->mem.kind == XC_MEM_DEVICE) && (packed->mem.kind == XC_MEM_DEVICE) &&
           (typed->mem.device == packed->mem.device) && (typed->bytes <= room);
}

/* With the device entered, and waited for. out: to the buffer of the program's type. */
static xcclResult_t move(const struct xm_call *call, const struct xm_buffer *typed,
                         const struct xm_buffer *packed, bool out, struct xm_scratch *scratch)
{
    const struct xc_device_ops *dev = scratch->dev;
    struct xm_copier            copier = {call, dev, NULL, scratch, 0};
    struct xm_lane              lane = {&copier, typed, packed->buf + packed->low, false, out};

    if (typed->mem.synchronous && packed->mem.synchronous && xm_move_quickly(&lane, false)) {
        return xcclSuccess;
    }
    xcclResult_t res = xm_copy_stream(dev, typed->mem.device, &copier.stream);
    if (res == xcclSuccess) {
        res = xm_after_program(dev, typed, packed, copier.stream);
    }
    if (res == xcclSuccess) {
        res = out ? xm_unpack(&copier, typed, lane.other) : xm_pack(&copier, typed, lane.other);
    }
    return (res == xcclSuccess) ? xm_stream_wait(dev, copier.stream) : res;
}

static bool carry_out(const struct xm_transfer *t, const struct xm_buffer *typed,
                      const struct xm_buffer *packed, bool out)
{
    const struct xm_call        call = {.comm = xm_transfer_comm(t)};
    const struct xc_device_ops *dev = xc_device_active();
    struct xm_scratch           scratch;
    void                       *saved;

    if (dev->enter(typed->mem.device, &saved) != xcclSuccess) {
        return false;
    }
    xm_scratch_begin(&scratch, dev, typed->mem.device);
    xcclResult_t res = move(&call, typed, packed, out, &scratch);
    dev->leave(saved);
    if (res == xcclSuccess) { /* else the device may still be at it */
        xm_scratch_end(&scratch);
        xm_transfer_last_path = "device";
    }
    return res == xcclSuccess;
}

bool xm_pack_on_device(const struct xm_transfer *t, MPI_Count room, MPI_Count *bytes_p)
{
    const struct xm_call call = {.comm = xm_transfer_comm(t)};
    bool                 in = (t->function == XM_FN_MPI_Pack) || (t->function == XM_FN_MPI_Pack_c);
    bool out = (t->function == XM_FN_MPI_Unpack) || (t->function == XM_FN_MPI_Unpack_c);

    if (!in && !out) { /* external32 is for MPI to write and to read */
        return false;
    }
    const struct xm_buffer *typed = buffer_at(t, out ? 'r' : 's');
    const struct xm_buffer *packed = buffer_at(t, out ? 's' : 'r');
    if (!can_do(t, typed, packed, room) || (out && !xm_ordered(&call, typed)) ||
        !carry_out(t, typed, packed, out)) {
        return false;
    }
    *bytes_p = typed->bytes;
    return true;
}
