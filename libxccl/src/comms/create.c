/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Making a vendor communicator so that all ranks end with the same answer.
 *
 *   1. every rank looks at what it has: library, version, device      (local, may fail)
 *   2. the cards are exchanged and judged by all in the same way      (MPI)
 *   3. rank 0's unique id is handed out                               (MPI)
 *   4. all join, each in a thread that can be given up (join.c)       (vendor)
 *   5. the outcomes are compared                                      (MPI)
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "comms/comms.h"
#include "comms/join.h"

/* NCCL_MULTI_RANK_GPU_ENABLE came with this one: it may share a device, so it decides itself. */
enum { NCCL_MULTI_RANK_VERSION = 23003 };

struct card {
    int           result; /* of this rank's own look */
    int           version;
    char          library[16];
    unsigned char uuid[XC_DEVICE_UUID_BYTES];
};

static xcclResult_t fill_card(const struct xc_device_ops *dev, int device, struct card *card)
{
    const char *name;

    if ((dev == NULL) || (device < 0)) {
        return xc_fail(xcclInvalidUsage, "no device is in use; the buffers of this rank are empty "
                                         "and no device was made current");
    }
    xcclResult_t res = xcclGetBackend(&name, &card->version);
    if (res != xcclSuccess) {
        return res;
    }
    snprintf(card->library, sizeof(card->library), "%s", name);
    return dev->uuid_of(device, card->uuid);
}

static xcclResult_t mpi_failed(const char *what)
{
    return xc_fail(xcclInternalError, "%s failed while a communicator was made", what);
}

/* The first failing rank tells all others why. Same text on every rank. */
static xcclResult_t share_failure(MPI_Comm ctl, int who, xcclResult_t code)
{
    char detail[256];

    snprintf(detail, sizeof(detail), "%s", xc_last_detail());
    if (xm_pmpi.Bcast(detail, (int)sizeof(detail), XM_HANDLE(MPI_BYTE), who, ctl) != MPI_SUCCESS) {
        return mpi_failed("MPI_Bcast");
    }
    return xc_fail(code, "rank %d: %s", who, detail);
}

static int compare_uuid(const void *a, const void *b)
{
    const struct card *const *x = a;
    const struct card *const *y = b;
    int                       order = memcmp((*x)->uuid, (*y)->uuid, XC_DEVICE_UUID_BYTES);

    /* By rank within a device, so that every rank names the same pair. */
    return (order != 0) ? order : ((*x < *y) ? -1 : 1);
}

static xcclResult_t judge_devices(const struct card *cards, int size)
{
    const struct card **sorted = malloc((size_t)size * sizeof(*sorted));
    xcclResult_t        res = xcclSuccess;

    if (sorted == NULL) {
        return xcclSuccess; /* the vendor's library finds it as well, only less clearly */
    }
    for (int i = 0; i < size; i++) {
        sorted[i] = &cards[i];
    }
    qsort(sorted, (size_t)size, sizeof(*sorted), compare_uuid);
    for (int i = 1; i < size; i++) {
        if (memcmp(sorted[i - 1]->uuid, sorted[i]->uuid, XC_DEVICE_UUID_BYTES) == 0) {
            res = xc_fail(xcclInvalidUsage,
                          "ranks %d and %d use the same device; give each rank a device of its own "
                          "(cudaSetDevice or hipSetDevice with the local rank, or xccl-run)",
                          (int)(sorted[i - 1] - cards), (int)(sorted[i] - cards));
            break;
        }
    }
    free(sorted);
    return res;
}

static xcclResult_t judge(const struct card *cards, int size, MPI_Comm ctl)
{
    for (int i = 0; i < size; i++) {
        if (cards[i].result != xcclSuccess) {
            return share_failure(ctl, i, (xcclResult_t)cards[i].result);
        }
    }
    for (int i = 1; i < size; i++) {
        if ((strcmp(cards[i].library, cards[0].library) != 0) ||
            (cards[i].version != cards[0].version)) {
            return xc_fail(xcclVersionMismatch,
                           "rank 0 loaded %s %d and rank %d loaded %s %d; load one library on all "
                           "ranks, for instance with XCCL_CCL_LIBRARY",
                           cards[0].library, cards[0].version, i, cards[i].library,
                           cards[i].version);
        }
    }
    if (cards[0].version >= NCCL_MULTI_RANK_VERSION) {
        return xcclSuccess;
    }
    return judge_devices(cards, size);
}

static xcclResult_t exchange_cards(MPI_Comm ctl, int size, const struct card *mine)
{
    struct card *cards = malloc((size_t)size * sizeof(*cards));
    xcclResult_t res;

    /* Without memory a rank cannot take part; MPI itself would have failed before. */
    if (cards == NULL) {
        return xc_fail(xcclSystemError, "out of memory for %d ranks", size);
    }
    if (xm_pmpi.Allgather(mine, (int)sizeof(*mine), XM_HANDLE(MPI_BYTE), cards, (int)sizeof(*mine),
                          XM_HANDLE(MPI_BYTE), ctl) != MPI_SUCCESS) {
        res = mpi_failed("MPI_Allgather");
    } else {
        res = judge(cards, size, ctl);
    }
    free(cards);
    return res;
}

struct ticket {
    int          result;
    xcclUniqueId id;
};

static xcclResult_t hand_out_id(MPI_Comm ctl, int rank, struct ticket *ticket)
{
    memset(ticket, 0, sizeof(*ticket));
    if (rank == 0) {
        ticket->result = (int)xcclGetUniqueId(&ticket->id);
    }
    if (xm_pmpi.Bcast(ticket, (int)sizeof(*ticket), XM_HANDLE(MPI_BYTE), 0, ctl) != MPI_SUCCESS) {
        return mpi_failed("MPI_Bcast");
    }
    return (ticket->result == xcclSuccess) ? xcclSuccess
                                           : share_failure(ctl, 0, (xcclResult_t)ticket->result);
}

/* Compare the outcomes; who failed by himself, not because of others, tells why. */
static xcclResult_t compare_outcomes(MPI_Comm ctl, int rank, int size, xcclResult_t mine,
                                     bool because_of_others)
{
    /* The lowest rank that failed by itself, else the lowest that failed. */
    int found[2] = {size, size};
    int lowest[2];

    if (mine != xcclSuccess) {
        found[because_of_others ? 1 : 0] = rank;
    }
    if (xm_pmpi.Allreduce(found, lowest, 2, XM_HANDLE(MPI_INT), XM_HANDLE(MPI_MIN), ctl) !=
        MPI_SUCCESS) {
        return mpi_failed("MPI_Allreduce");
    }
    int who = (lowest[0] < size) ? lowest[0] : lowest[1];
    if (who == size) {
        return xcclSuccess;
    }
    return share_failure(ctl, who, (mine != xcclSuccess) ? mine : xcclRemoteError);
}

static xcclResult_t create_over(MPI_Comm ctl, const struct xc_device_ops *dev, int device,
                                xcclComm_t *xcomm_p)
{
    struct card   card = {0};
    struct ticket ticket;
    int           rank, size;
    bool          because_of_others = false;
    xcclComm_t    xcomm = NULL;

    xm_pmpi.Comm_rank(ctl, &rank);
    xm_pmpi.Comm_size(ctl, &size);
    card.result = (int)fill_card(dev, device, &card);
    xcclResult_t res = exchange_cards(ctl, size, &card);
    if (res != xcclSuccess) {
        return res;
    }
    res = hand_out_id(ctl, rank, &ticket);
    if (res != xcclSuccess) {
        return res;
    }
    res = xm_join(ctl, dev, device, &ticket.id, &xcomm, &because_of_others);
    res = compare_outcomes(ctl, rank, size, res, because_of_others);
    if (res != xcclSuccess) {
        if (xcomm != NULL) {
            xcclCommAbort(xcomm);
        }
        return res;
    }
    *xcomm_p = xcomm;
    return xcclSuccess;
}

xcclResult_t xm_comm_create(MPI_Comm comm, const struct xc_device_ops *dev, int device,
                            xcclComm_t *xcomm_p)
{
    MPI_Comm ctl;
    int      rank;

    /*
     * A communicator of our own, so that no message of ours meets a receive of the program. Split
     * rather than dup: a dup would run the program's attribute callbacks.
     */
    xm_pmpi.Comm_rank(comm, &rank);
    if (xm_pmpi.Comm_split(comm, 0, rank, &ctl) != MPI_SUCCESS) {
        return mpi_failed("MPI_Comm_split");
    }
    xm_pmpi.Comm_set_errhandler(ctl, XM_HANDLE(MPI_ERRORS_RETURN));
    xcclResult_t res = create_over(ctl, dev, device, xcomm_p);
    xm_pmpi.Comm_free(&ctl);
    return res;
}
