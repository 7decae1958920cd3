/* SPDX-License-Identifier: BSD-3-Clause */
#include "comms/posting.h"

#include <stdio.h>

#include "base/log.h"
#include "comms/agree.h"
#include "comms/cause.h"
#include "comms/creation.h"
#include "comms/cutover.h"
#include "comms/digest.h"
#include "comms/guarded.h"
#include "comms/peer_info.h"

void xm_checkin_end(struct xm_comm *xm)
{
    xm_guarded_free(xm->checkin.mine);
    xm_guarded_free(xm->checkin.all);
    xm->checkin = (struct xm_checkin){.kind = XM_CHECKIN_NONE};
    __atomic_store_n(&xm->asked, 0, __ATOMIC_RELEASE);
}

/* It is posted. */
static void begin(struct xm_comm *xm, int kind)
{
    xm->checkin.kind = kind;
    __atomic_store_n(&xm->asked, (kind == XM_CHECKIN_VARIABLES) ? 0 : xm->asks_call,
                     __ATOMIC_RELEASE);
    xm_cutover_begin(xm);
}

static xcclResult_t make_room(struct xm_comm *xm, size_t mine, size_t all)
{
    xm->checkin.mine = xm_guarded_alloc(mine);
    xm->checkin.all = xm_guarded_alloc(all);
    if ((xm->checkin.mine == NULL) || (xm->checkin.all == NULL)) {
        xm_checkin_end(xm);
        return xc_fail(xcclSystemError, "out of memory for %d ranks", xm->size);
    }
    return xcclSuccess;
}

static xcclResult_t gather(struct xm_comm *xm, int bytes)
{
    if (xm_pmpi.Iallgather(xm->checkin.mine, bytes, XM_HANDLE(MPI_BYTE), xm->checkin.all, bytes,
                           XM_HANDLE(MPI_BYTE), xm->comm, &xm->checkin.request) != MPI_SUCCESS) {
        xm_checkin_end(xm);
        return xm_agreement_failed("MPI_Iallgather");
    }
    return xcclSuccess;
}

/* Only what all together say, as long as that is enough: is it for so many ranks? */
static bool by_digest(const struct xm_comm *xm)
{
    return (xm->size >= XM_DIGEST_RANKS) && !xm->asks_all;
}

/* kind: what this rank asks; the others may ask the other. */
static xcclResult_t post_digest(struct xm_comm *xm, int kind, const struct xc_device_ops *dev,
                                int device)
{
    xcclResult_t res = make_room(xm, xm_peer_digest_bytes(), sizeof(struct xm_digest));

    if (res != xcclSuccess) {
        return res;
    }
    if (kind == XM_CHECKIN_VARIABLES) {
        xm_peer_digest_fill_variables(xm->checkin.mine);
    } else {
        xm_peer_digest_fill(xm, dev, device, xm->checkin.mine);
    }
    if (xm_pmpi.Iallreduce(xm->checkin.mine, xm->checkin.all, XM_DIGEST_WORDS,
                           XM_HANDLE(MPI_INT64_T), XM_HANDLE(MPI_BOR), xm->comm,
                           &xm->checkin.request) != MPI_SUCCESS) {
        xm_checkin_end(xm);
        return xm_agreement_failed("MPI_Iallreduce");
    }
    xm->checkin.digest = true;
    xc_trace("%d ranks say what they have by words of all together", xm->size);
    begin(xm, kind);
    return xcclSuccess;
}

/* kind: XM_CHECKIN_PEER_INFO or, without a device, XM_CHECKIN_VARIABLES. */
xcclResult_t xm_post_peer_info(struct xm_comm *xm, int kind, const struct xc_device_ops *dev,
                               int device)
{
    size_t bytes = xm_peer_info_bytes();

    if (by_digest(xm)) {
        return post_digest(xm, kind, dev, device);
    }
    xcclResult_t res = make_room(xm, bytes, bytes * (size_t)xm->size);
    if (res != xcclSuccess) {
        return res;
    }
    if (kind == XM_CHECKIN_VARIABLES) {
        xm_peer_info_fill_variables(xm->checkin.mine);
    } else {
        xm_peer_info_fill(xm, dev, device, xm->checkin.mine);
    }
    res = gather(xm, (int)bytes);
    if (res == xcclSuccess) {
        begin(xm, kind);
    }
    return res;
}

static int64_t pack_outcome(const struct xm_comm *xm)
{
    enum xm_outcome outcome = xm_creation_outcome(xm->creation);
    xcclResult_t    result = (outcome < XM_PENDING) ? xm->creation->result : xcclSuccess;

    return ((int64_t)outcome << XM_STATUS_OUTCOME_SHIFT) |
           ((int64_t)xm->rank << XM_STATUS_RANK_SHIFT) | (int)result;
}

/* A rank that has given up the communicator has no use for one of the vendor's, and says so. */
static void give_up_if_broken(struct xm_comm *xm)
{
    char text[sizeof(xm->reason) + 64];

    if (xm_comm_is_broken(xm)) {
        snprintf(text, sizeof(text), "rank %d has given up the communicator: %s", xm->rank,
                 xm->reason);
        xm_creation_give_up(xm, xcclRemoteError, text);
    }
}

xcclResult_t xm_post_status(struct xm_comm *xm)
{
    xcclResult_t res =
        make_room(xm, XM_STATUS_TERMS * sizeof(int64_t), XM_STATUS_TERMS * sizeof(int64_t));

    if (res != xcclSuccess) {
        return res;
    }
    int64_t *mine = xm->checkin.mine;
    xm_comm_advance(xm);
    give_up_if_broken(xm);
    mine[XM_STATUS_OUTCOME] = pack_outcome(xm);
    mine[XM_STATUS_COST] = -(int64_t)xm_creation_measured_us();
    mine[XM_STATUS_SLOTS] = (xm->slots != NULL);
    if (xm_pmpi.Iallreduce(mine, xm->checkin.all, XM_STATUS_TERMS, XM_HANDLE(MPI_INT64_T),
                           XM_HANDLE(MPI_MIN), xm->comm, &xm->checkin.request) != MPI_SUCCESS) {
        xm_checkin_end(xm);
        return xm_agreement_failed("MPI_Iallreduce");
    }
    uint64_t since = xm->device_calls - xm->create_begun;
    begin(xm, XM_CHECKIN_STATUS);
    xm->next_checkin = xm->device_calls + 1 + since / 4;
    return xcclSuccess;
}

/* What the ranks have for the direct path. */
xcclResult_t xm_post_join(struct xm_comm *xm, const struct xc_device_ops *dev, int device)
{
    int          bytes = (int)xm_comm_join->bytes;
    xcclResult_t res = make_room(xm, xm_comm_join->bytes, xm_comm_join->bytes * (size_t)xm->size);

    if (res != xcclSuccess) {
        return res;
    }
    xm_comm_join->fill(xm, dev, device, xm->checkin.mine);
    res = gather(xm, bytes);
    if (res != xcclSuccess) {
        return res;
    }
    begin(xm, XM_CHECKIN_JOIN);
    xm->next_join = xm->device_calls + 1 + (xm->device_calls - xm->join_begun) / 4;
    return xcclSuccess;
}
