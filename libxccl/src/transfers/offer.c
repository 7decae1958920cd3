/* SPDX-License-Identifier: BSD-3-Clause */
/* Rendezvous on the side of the sender. */
#include "transfers/offer.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/files.h"
#include "base/log.h"
#include "base/params.h"
#include "comms/wait.h"
#include "data/mappings.h"
#include "transfers/left.h"
#include "transfers/pieces.h"
#include "transfers/pipeline.h"
#include "transfers/push.h"
#include "transfers/transfer.h"
#include "transfers/watcher.h"

static bool may_offer(enum xm_function function)
{
    switch (function) {
    case XM_FN_MPI_Send:
    case XM_FN_MPI_Send_c:
    case XM_FN_MPI_Ssend:
    case XM_FN_MPI_Ssend_c:
    case XM_FN_MPI_Rsend:
    case XM_FN_MPI_Rsend_c:
    case XM_FN_MPI_Isend:
    case XM_FN_MPI_Isend_c:
    case XM_FN_MPI_Issend:
    case XM_FN_MPI_Issend_c:
    case XM_FN_MPI_Irsend:
    case XM_FN_MPI_Irsend_c:
    case XM_FN_MPI_Sendrecv:
    case XM_FN_MPI_Sendrecv_c:
    case XM_FN_MPI_Isendrecv:
    case XM_FN_MPI_Isendrecv_c:
    case XM_FN_MPI_Send_init:
    case XM_FN_MPI_Send_init_c:
    case XM_FN_MPI_Ssend_init:
    case XM_FN_MPI_Ssend_init_c:
    case XM_FN_MPI_Rsend_init:
    case XM_FN_MPI_Rsend_init_c:
        return true;
    default:
        /* Buffered sends end without the receiver; what is replaced must have left before; and
         * MPI sends the partitions of partitioned ones as it likes. */
        return false;
    }
}

bool (*xm_rendezvous_excludes)(MPI_Comm comm);

/* The rank of MPI_COMM_WORLD that a rank of a communicator is, or -1. */
static int ask_world_rank(MPI_Comm comm, int rank)
{
    MPI_Group theirs, world;
    int       inter = 0, found = -1;

    if ((rank < 0) || ((xm_rendezvous_excludes != NULL) && xm_rendezvous_excludes(comm)) ||
        (xm_pmpi.Comm_test_inter(comm, &inter) != MPI_SUCCESS) ||
        ((inter ? xm_pmpi.Comm_remote_group(comm, &theirs) : xm_pmpi.Comm_group(comm, &theirs)) !=
         MPI_SUCCESS)) {
        return -1;
    }
    if (xm_pmpi.Comm_group(XM_HANDLE(MPI_COMM_WORLD), &world) == MPI_SUCCESS) {
        int size = 0;
        xm_pmpi.Group_size(theirs, &size);
        if ((rank >= size) ||
            (xm_pmpi.Group_translate_ranks(theirs, 1, &rank, world, &found) != MPI_SUCCESS) ||
            (found == MPI_UNDEFINED)) {
            found = -1;
        }
        xm_pmpi.Group_free(&world);
    }
    xm_pmpi.Group_free(&theirs);
    return found;
}

/*
 * MPI may look at every rank of the job for an answer, so the last ones are kept, until any
 * communicator is freed: its handle may come again.
 */
static unsigned frees; /* atomic */

void xm_rendezvous_comm_freed(void)
{
    __atomic_add_fetch(&frees, 1, __ATOMIC_ACQ_REL);
}

int xm_world_rank(MPI_Comm comm, int rank)
{
    enum { KEPT = 32 };
    static __thread struct {
        bool     used;
        unsigned frees;
        MPI_Comm comm;
        int      rank, found;
    } known[KEPT];
    unsigned now = __atomic_load_n(&frees, __ATOMIC_ACQUIRE);
    int      at = rank & (KEPT - 1);

    if (comm == XM_HANDLE(MPI_COMM_WORLD)) {
        return rank;
    }
    if (comm == XM_HANDLE(MPI_COMM_NULL)) {
        return -1; /* the call's own error is the only one that the program is to hear */
    }
    if (!known[at].used || (known[at].frees != now) || (known[at].comm != comm) ||
        (known[at].rank != rank)) {
        known[at].used = true;
        known[at].frees = now;
        known[at].comm = comm;
        known[at].rank = rank;
        known[at].found = ask_world_rank(comm, rank);
    }
    return known[at].found;
}

/* The part of the call that is sent from a device; -1: there is none. */
static int part_to_offer(const struct xm_transfer *t)
{
    for (int i = 0; i < t->num_parts; i++) {
        const struct xm_buffer *b = &t->parts[i].buffer;
        if ((t->kinds[t->parts[i].argument] == 's') && (b->plain || (b->layout.flat != NULL)) &&
            (b->blocks == 1) && ((uint64_t)b->bytes >= xm_rendezvous_least())) {
            return i;
        }
    }
    return -1;
}

/*
 * What has holes is packed on the device, and what no other process can map is copied there. With
 * the device entered.
 */
static xcclResult_t pack(struct xm_rendezvous *r, const struct xc_device_ops *dev,
                         const struct xm_buffer *b, xcclStream_t stream, bool *over_p)
{
    const struct xm_call nowhere = {.comm = xm_rendezvous_self()};
    struct xm_copier     copier = {&nowhere, dev, stream, &r->scratch, 0};
    void                *packed;

    xm_scratch_begin(&r->scratch, dev, b->mem.device);
    r->packs = true;
    xcclResult_t res = xm_scratch_take(&r->scratch, XM_POOL_DEVICE, (size_t)b->bytes, &packed);
    if (res == xcclSuccess) {
        struct xm_lane lane = {&copier, b, packed, false, false};
        *over_p = b->mem.synchronous && xm_move_quickly(&lane, true);
        res = *over_p ? res : xm_pack(&copier, b, packed);
        r->sent = packed;
    }
    return res;
}

/*
 * The bytes side by side, and all that the program gave the default stream for them is over, as it
 * is when a copy of ours begins: see stream_after_default. apart: not where the program has them.
 */
static xcclResult_t settle(struct xm_rendezvous *r, const struct xc_device_ops *dev,
                           const struct xm_buffer *b, bool apart)
{
    xcclStream_t stream;
    xcclResult_t res = xcclSuccess;
    bool         over = false;

    r->sent = b->buf + b->low;
    r->sent_device = b->mem.device;
    if (b->mem.synchronous && !apart) {
        return xcclSuccess;
    }
    res = xm_copy_stream(dev, b->mem.device, &stream);
    if ((res == xcclSuccess) && !b->mem.synchronous) {
        dev->mem_make_synchronous(b->buf + b->low);
        res = dev->stream_after_default(stream);
    }
    if ((res == xcclSuccess) && apart) {
        res = pack(r, dev, b, stream, &over);
    }
    if ((res == xcclSuccess) && !over) {
        res = xm_stream_wait(dev, stream);
    }
    if ((res != xcclSuccess) && r->packs) {
        xm_scratch_end(&r->scratch);
        r->packs = false;
    }
    return res;
}

/* Shorter ones are sooner there through host memory: two ranks of an H200. */
enum { LEAST_COPIED = 64 << 10 };

/* With the device entered. Before it is waited for: memory of a pool cannot be shared. */
static bool show_source(struct xm_rendezvous *r, const struct xc_device_ops *dev,
                        const struct xm_buffer *b, struct xm_sent *source)
{
    const uint64_t most = (uint64_t)xc_params()->scratch << 20;
    const char    *at = b->buf + b->low;

    if (b->plain && (xm_export(dev, at, b->mem.allocation, &source->ipc) == xcclSuccess)) {
        return settle(r, dev, b, false) == xcclSuccess;
    }
    if (b->plain && ((b->bytes < LEAST_COPIED) || ((uint64_t)b->bytes > most))) {
        return false;
    }
    return (settle(r, dev, b, true) == xcclSuccess) &&
           (xm_export(dev, r->sent, 0, &source->ipc) == xcclSuccess);
}

static bool find_source(struct xm_rendezvous *r, const struct xc_device_ops *dev,
                        const struct xm_buffer *b, struct xm_sent *source)
{
    void *saved;

    memset(source, 0, sizeof(*source));
    if (dev->enter(b->mem.device, &saved) != xcclSuccess) {
        return false;
    }
    bool good = (dev->uuid_of(b->mem.device, source->uuid) == xcclSuccess) &&
                (xm_mailbox_find(r->peer, (uint64_t)b->bytes, source->uuid) != NULL) &&
                show_source(r, dev, b, source);
    dev->leave(saved);
    if (good) {
        source->offset = (uint64_t)(uintptr_t)r->sent - source->ipc.base;
        source->bytes = (uint64_t)b->bytes;
    }
    return good;
}

/* To a rank that cannot fetch it. */
static bool open_pieces(struct xm_rendezvous *r, const struct xc_device_ops *dev,
                        const struct xm_buffer *b)
{
    void *saved;

    if (!xm_pipeline_takes(r->peer, (uint64_t)b->bytes) ||
        (dev->enter(b->mem.device, &saved) != xcclSuccess)) {
        return false;
    }
    /* Else it is packed already, or needs not be. */
    xcclResult_t res = r->packs ? xcclSuccess : settle(r, dev, b, !b->plain);
    dev->leave(saved);
    return (res == xcclSuccess) && xm_pieces_offer(r, (uint64_t)b->bytes);
}

static bool open_offer(struct xm_rendezvous *r, const struct xc_device_ops *dev,
                       const struct xm_buffer *b)
{
    struct xm_board_address mine;
    struct xm_sent          source;

    xm_offers_left(false);
    r->slot = find_source(r, dev, b, &source) ? xm_offer_take(&source, &r->number) : -1;
    r->in_pieces = false;
    if (r->slot < 0) {
        return open_pieces(r, dev, b);
    }
    xm_board_address_of(xm_board_own(), &mine);
    memset(&r->out, XM_DESCRIPTOR_FILL, sizeof(r->out));
    r->out.magic = XM_DESCRIPTOR_MAGIC;
    r->out.nonce = mine.nonce;
    r->out.pid = mine.pid;
    r->out.fd = mine.fd;
    r->out.slot = r->slot;
    r->out.number = r->number;
    r->out.check = xm_descriptor_check(&r->out);
    __atomic_store_n(&r->offered, true, __ATOMIC_RELEASE);
    r->file = -1;
    r->pushed = NULL;
    r->polls = 0;
    r->may_leave = r->late = false;
    r->waits_ns = 0;
    r->lost = false;
    return true;
}

/* A send to oneself that ends before the program can receive it: MPI buffers it, or does not. */
static bool cannot_be_met(const struct xm_transfer *t, int peer)
{
    int own = -1;

    return (t->form == 'B') && (strchr(t->kinds, 'r') == NULL) &&
           (xm_pmpi.Comm_rank(XM_HANDLE(MPI_COMM_WORLD), &own) == MPI_SUCCESS) && (peer == own);
}

/* The part that might be offered, or -1; *peer_p: to which rank of MPI_COMM_WORLD. */
static int find_offer(const struct xm_transfer *t, int *peer_p)
{
    if ((xm_rendezvous_looks_from() == 0) || !may_offer(t->function)) {
        return -1;
    }
    int part = part_to_offer(t);
    if (part >= 0) {
        *peer_p = xm_world_rank(xm_transfer_comm(t), (int)t->args[t->parts[part].argument + 3]);
    }
    return ((part >= 0) && (*peer_p >= 0) && !cannot_be_met(t, *peer_p)) ? part : -1;
}

static bool open_unless_late(struct xm_transfer *t, int part)
{
    struct xm_rendezvous   *r = &t->rendezvous;
    const struct xm_buffer *b = &t->parts[part].buffer;

    bool may_leave = xm_offer_may_leave(t->function, (uint64_t)b->bytes);

    if (xm_offers_come_late((uint64_t)b->bytes) || (may_leave && !xm_offers_have_room()) ||
        !open_offer(r, xc_device_active(), b)) {
        return false;
    }
    r->may_leave = may_leave && !r->in_pieces;
    return true;
}

bool xm_rendezvous_offer(struct xm_transfer *t)
{
    struct xm_rendezvous *r = &t->rendezvous;
    int                   part = find_offer(t, &r->peer);

    if ((part < 0) || !open_unless_late(t, part)) {
        return false;
    }
    /* MPI sends the descriptor instead of the bytes. */
    int at = t->parts[part].argument;
    xm_mailbox_looked(); /* a program that sends waits for the end soon, most often */
    xm_buffer_free(&t->parts[part].buffer);
    t->parts[part] = t->parts[--t->num_parts];
    t->args[at] = (long)&r->out;
    t->args[at + 1] = XM_DESCRIPTOR_BYTES;
    t->args[at + 2] = (long)XM_HANDLE(MPI_BYTE);
    return true;
}

/* Can a rank of MPI_COMM_WORLD fetch from there? */
static bool is_reached(int peer, const struct xm_buffer *b)
{
    const struct xc_device_ops *dev = xc_device_active();
    unsigned char               uuid[XC_DEVICE_UUID_BYTES];

    return (dev->uuid_of(b->mem.device, uuid) == xcclSuccess) &&
           (xm_mailbox_find(peer, (uint64_t)b->bytes, uuid) != NULL);
}

bool xm_rendezvous_will_offer(const struct xm_transfer *t)
{
    int peer, part = find_offer(t, &peer);

    if (part < 0) {
        return false;
    }
    const struct xm_buffer *b = &t->parts[part].buffer;
    return (b->bytes >= XM_LAZY_BYTES) &&
           (xm_pipeline_takes(peer, (uint64_t)b->bytes) || is_reached(peer, b));
}

bool xm_rendezvous_is_fetched(MPI_Comm comm, int rank, const struct xm_buffer *b)
{
    if ((xm_rendezvous_looks_from() == 0) || ((uint64_t)b->bytes < xm_rendezvous_least())) {
        return false;
    }
    int peer = xm_world_rank(comm, rank);
    return (peer >= 0) && is_reached(peer, b);
}

bool xm_rendezvous_offer_start(struct xm_transfer *t)
{
    struct xm_rendezvous *r = &t->rendezvous;

    if (r->offered || t->comm_gone) { /* its last start failed; or only MPI knows the rank */
        return false;
    }
    int part = find_offer(t, &r->peer);
    r->failed = xcclSuccess;
    bool offered = (part >= 0) && open_unless_late(t, part);
    xm_rendezvous_rest(t); /* unless it is offered */
    return offered;
}

static void withdraw(struct xm_transfer *t, bool may_have_gone)
{
    struct xm_rendezvous *r = &t->rendezvous;

    if (r->offered) { /* else the watcher might give the offer back, too */
        xm_unwatch(t);
    }
    if (r->offered && r->in_pieces) {
        xm_pieces_drop(r, may_have_gone);
    }
    if (r->offered &&
        xm_offer_move(xm_offer_own(r->slot), r->number, XM_OFFER_OPEN, XM_OFFER_DONE)) {
        xm_offer_give(r->slot);
    }
    __atomic_store_n(&r->offered, false, __ATOMIC_RELEASE);
}

void xm_rendezvous_withdraw(struct xm_transfer *t)
{
    withdraw(t, strchr(t->kinds, 'r') != NULL);
}

void xm_rendezvous_take_back(struct xm_transfer *t)
{
    withdraw(t, false);
    xm_rendezvous_rest(t);
    t->rendezvous.out.magic = 0;
}

xcclResult_t xm_offer_copy_to(const struct xm_rendezvous *r, void *at)
{
    const struct xc_device_ops *dev = xc_device_active();
    size_t                      bytes = (size_t)xm_offer_own(r->slot)->source.bytes;
    xcclStream_t                stream;
    void                       *saved;

    xcclResult_t res = dev->enter(r->sent_device, &saved);
    if (res != xcclSuccess) {
        return res;
    }
    res = xm_copy_stream(dev, r->sent_device, &stream);
    if (res == xcclSuccess) {
        res = dev->copy_async(at, r->sent, bytes, stream);
    }
    if (res == xcclSuccess) {
        res = xm_stream_wait(dev, stream);
    }
    dev->leave(saved);
    return res;
}

xcclResult_t xm_offer_to_file(const struct xm_rendezvous *r, int *file_p)
{
    size_t bytes = (size_t)xm_offer_own(r->slot)->source.bytes;
    int    file = xc_file_aside(memfd_create(XM_OFFER_FILES, MFD_CLOEXEC));
    void  *at = MAP_FAILED;

    if ((file >= 0) && (xc_file_lengthen(file, (off_t)bytes) == 0)) {
        at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    }
    int          why = errno;
    xcclResult_t res = (at != MAP_FAILED) ? xm_offer_copy_to(r, at) : xcclSystemError;
    if (at != MAP_FAILED) {
        munmap(at, bytes);
    }
    if ((res != xcclSuccess) && (file >= 0)) {
        close(file);
    }
    *file_p = (res == xcclSuccess) ? file : -1;
    errno = why;
    return res;
}

/* The receiver cannot reach the memory: it gets the bytes in a file without a name. */
static xcclResult_t serve(struct xm_rendezvous *r)
{
    struct xm_offer *offer = xm_offer_own(r->slot);

    if (offer->once == 0) {
        xm_mailbox_refused(r->peer);
    }
    xcclResult_t res = xm_offer_to_file(r, &r->file);
    offer->fd = r->file; /* without one the receiver fails too */
    offer->at_in_file = 0;
    xm_offer_move(offer, r->number, XM_OFFER_REFUSED, XM_OFFER_SERVED);
    return (res != xcclSystemError)
               ? res
               : xc_fail(xcclSystemError,
                         "a message of %llu bytes cannot be fetched by its receiver, and there is "
                         "no memory for a copy (%s); set XCCL_P2P=staged",
                         (unsigned long long)offer->source.bytes, strerror(errno));
}

bool xm_offer_is_lost(struct xm_rendezvous *r)
{
    enum { POLLS_PER_LOOK = 256 };
    uint32_t polls = __atomic_load_n(&r->polls, __ATOMIC_RELAXED) + 1;

    __atomic_store_n(&r->polls, polls, __ATOMIC_RELAXED);
    if (((polls % POLLS_PER_LOOK) == 0) && xm_mailbox_has_lost(r->peer, r->number)) {
        __atomic_store_n(&r->lost, true, __ATOMIC_RELAXED);
    }
    return __atomic_load_n(&r->lost, __ATOMIC_RELAXED);
}

/* MPI has matched it with a receive that got nothing: neither side has the message. */
static void lose(struct xm_rendezvous *r)
{
    unsigned long long bytes = xm_offer_own(r->slot)->source.bytes;

    xm_rendezvous_fail(r, xc_fail(xcclSystemError,
                                  "rank %d of MPI_COMM_WORLD cannot fetch a message of %llu bytes "
                                  "from device memory: it cannot open this process's shared "
                                  "memory; set XCCL_P2P=staged",
                                  r->peer, bytes));
    if (xm_offer_move(xm_offer_own(r->slot), r->number, XM_OFFER_OPEN, XM_OFFER_DONE)) {
        xm_offer_give(r->slot);
    }
    __atomic_store_n(&r->offered, false, __ATOMIC_RELEASE);
}

/* Is the message gone? */
bool xm_offer_advance(struct xm_rendezvous *r)
{
    enum xm_offer_state state = xm_offer_state(xm_offer_own(r->slot));

    if (state == XM_OFFER_ASKED) {
        xm_push_begin(r);
    } else if (state == XM_OFFER_PUSHING) {
        xm_push_advance(r);
        state = xm_offer_state(xm_offer_own(r->slot));
    }
    switch (state) {
    case XM_OFFER_OPEN:
        if (xm_offer_is_lost(r)) {
            lose(r);
        } else if (__atomic_load_n(&r->late, __ATOMIC_RELAXED) || xm_offer_is_late(r)) {
            xm_offer_leave_late(r);
        }
        return !r->offered;
    case XM_OFFER_DONE:
        xm_offer_came_in_time(r);
        xm_offer_give(r->slot);
        if (r->file >= 0) {
            close(r->file);
        }
        __atomic_store_n(&r->offered, false, __ATOMIC_RELEASE);
        return true;
    case XM_OFFER_REFUSED:
        if (r->failed == xcclSuccess) {
            xm_rendezvous_fail(r, serve(r));
        }
        return r->failed != xcclSuccess;
    default:
        return false;
    }
}
