/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies of single partitions of partitioned transfers. */
#include "comms/wait.h"
#include "data/copy.h"
#include "transfers/staging.h"
#include "transfers/transfer.h"

/* With the device entered. Several threads may be at it: each has scratch memory of its own. */
static xcclResult_t copy_some(const struct xm_part *part, const struct xm_buffer *some, char *span,
                              bool out)
{
    struct xm_scratch scratch;
    struct xm_copier  copier = part->copier;
    xcclResult_t      res = xm_part_after_program(part);

    xm_scratch_begin(&scratch, copier.dev, some->mem.device);
    copier.scratch = &scratch;
    if (res == xcclSuccess) {
        res = out ? xm_stage_out(&copier, some, span) : xm_stage_in(&copier, some, span);
    }
    /*
     * Open MPI 5 loses count of the partitions of a send that is not all ready, if it progresses
     * from the second start on (its issue 12328).
     */
    if (res == xcclSuccess) {
        res = out ? xm_stream_wait(copier.dev, copier.stream)
                  : xm_stream_wait_apart(copier.dev, copier.stream);
    }
    if (res == xcclSuccess) {
        xm_scratch_end(&scratch);
    }
    return res;
}

/* Partitioned transfers have one buffer. */
static xcclResult_t copy_partitions(struct xm_transfer *t, int low, int high, bool out)
{
    const struct xm_part       *part = &t->parts[0];
    const struct xm_buffer     *all = &part->buffer;
    struct xm_buffer            some = {.used = false};
    const struct xc_device_ops *dev = part->copier.dev;
    MPI_Aint                    begin = (MPI_Aint)(low * t->per_partition * all->layout.extent);
    void                       *saved;

    xm_buffer_part(all, low * t->per_partition, (high - low + 1) * t->per_partition, &some);
    if (!some.used) {
        return xcclSuccess;
    }
    xcclResult_t res = dev->enter(all->mem.device, &saved);
    if (res == xcclSuccess) {
        res = copy_some(part, &some, part->span + (begin + some.low - all->low), out);
        dev->leave(saved);
    }
    return res;
}

xcclResult_t xm_transfer_partitions_in(struct xm_transfer *t, int low, int high)
{
    bool valid = (low >= 0) && (high < t->partitions) && (low <= high) && t->parts[0].buffer.in;

    return valid ? copy_partitions(t, low, high, false) : xcclSuccess; /* MPI says what is wrong */
}

xcclResult_t xm_transfer_partition_out(struct xm_transfer *t, int partition)
{
    if ((partition < 0) || (partition >= t->partitions) || !t->parts[0].buffer.out) {
        return xcclSuccess;
    }
    int           *delivery = &t->delivery[partition], staged = XM_STAGED;
    struct xm_wait wait = xm_wait_begin_for_ever("for another thread's copy of a partition");
    if (!__atomic_compare_exchange_n(delivery, &staged, XM_BEING_COPIED, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_ACQUIRE)) {
        while (__atomic_load_n(delivery, __ATOMIC_ACQUIRE) == XM_BEING_COPIED) {
            xm_wait_step(&wait);
        }
        return xcclSuccess;
    }
    xcclResult_t res = copy_partitions(t, partition, partition, true);
    __atomic_store_n(delivery, XM_DELIVERED, __ATOMIC_RELEASE);
    return res;
}
