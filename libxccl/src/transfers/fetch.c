/* SPDX-License-Identifier: BSD-3-Clause */
/* Rendezvous on the side of the receiver. */
#include "transfers/fetch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "base/params.h"
#include "comms/spare.h"
#include "comms/wait.h"
#include "data/events.h"
#include "transfers/landing.h"
#include "transfers/pieces.h"
#include "transfers/pipeline.h"
#include "transfers/push.h"
#include "transfers/question.h"
#include "transfers/transfer.h"
#include "transfers/watcher.h"

enum { MOST_REPEATS = 8 };

/*
 * Several copies at once pass a link better by kernels up to here; those beyond, and a single one
 * for which no kernel lingers, by a copy engine, which takes nothing from the program's kernels.
 * Within a device it takes longer: 3 us where ranks share an H200 (docs/benchmarks/programs.md).
 */
enum { KERNEL_BYTES = 16 << 20 };
/*
 * Where copies are not collected the kernel that lingers carries out one after the other: of more,
 * one launch for all takes less.
 */
enum { FEW = 2 };
/*
 * To unmap what was freed waits for the device's kernels, and one of those may wait for what the
 * sender does after its message has gone.
 */
enum { MAPPING_NS = 10 * 1000 * 1000 };
static int copying; /* atomic: copies under way */

static struct xm_board *board_of(const struct xm_descriptor *d)
{
    struct xm_board_address address = {.nonce = d->nonce, .pid = d->pid, .fd = d->fd, .slot = -1};

    if ((d->magic != XM_DESCRIPTOR_MAGIC) || (d->check != xm_descriptor_check(d))) {
        errno = ENOENT;
        return NULL;
    }
    return xm_board_open(&address);
}

bool xm_descriptor_is_hidden(const struct xm_descriptor *d, int *why_p)
{
    struct xm_board *board = board_of(d);

    *why_p = errno;
    return (board == NULL) && (*why_p != ENOENT);
}

/* A descriptor that nobody took yet, of a process of this node? */
bool xm_descriptor_is_open(const struct xm_descriptor *d, struct xm_offer **offer_p)
{
    struct xm_board *board = board_of(d);
    struct xm_offer *offer = (board != NULL) ? xm_offer_of(board, d->slot) : NULL;
    if (offer == NULL) {
        return false;
    }
    uint64_t word = __atomic_load_n(&offer->state, __ATOMIC_ACQUIRE);
    *offer_p = offer;
    return (word == xm_offer_word(d->number, XM_OFFER_OPEN)) ||
           (word == xm_offer_word(d->number, XM_OFFER_LEFT));
}

bool xm_descriptor_bytes(const struct xm_descriptor *d, MPI_Count *bytes_p)
{
    struct xm_offer *offer;

    if (xm_pipeline_is_open(d)) {
        *bytes_p = (MPI_Count)d->bytes;
        return true;
    }
    if (!xm_descriptor_is_open(d, &offer)) {
        return false;
    }
    /* Before the state is read again: else they may be a later message's. */
    *bytes_p = (MPI_Count)__atomic_load_n(&offer->source.bytes, __ATOMIC_ACQUIRE);
    return xm_descriptor_is_open(d, &offer); /* still */
}

/* Device and memory that the bytes are copied with: the receiver's, or the sender's. */
static int device_for(const struct xc_device_ops *dev, const struct xm_rendezvous *r)
{
    unsigned char uuid[XC_DEVICE_UUID_BYTES];
    int           count = 0;

    if (r->receive.mem.kind == XC_MEM_DEVICE) {
        return r->receive.mem.device;
    }
    if (dev->count(&count) != xcclSuccess) {
        return 0;
    }
    for (int i = 0; i < count; i++) {
        if ((dev->uuid_of(i, uuid) == xcclSuccess) &&
            (memcmp(uuid, r->from.uuid, sizeof(uuid)) == 0)) {
            return i;
        }
    }
    return 0;
}

/* Where the bytes are copied to in host memory: not with a plain or device buffer. */
static char *packed_target(struct xm_rendezvous *r)
{
    if (r->landing == NULL) {
        r->landing = malloc((size_t)r->from.bytes);
        r->scatters = true;
    }
    return r->landing;
}

xcclResult_t xm_fetch_host_target(struct xm_transfer *t, char **to_p)
{
    struct xm_rendezvous *r = &t->rendezvous;

    if ((r->landing == NULL) && (xm_landing_part(t) != NULL)) {
        *to_p = NULL;
        return xcclSuccess;
    }
    bool in_place = (r->landing == NULL) && r->receive.plain;
    *to_p = in_place ? r->receive.buf + r->receive.low : packed_target(r);
    return (*to_p != NULL) ? xcclSuccess
                           : xc_fail(xcclSystemError, "out of memory for a message of %llu bytes",
                                     (unsigned long long)r->from.bytes);
}

static xcclResult_t enqueue_bytes(struct xm_transfer *t, const struct xc_device_ops *dev,
                                  xcclStream_t stream, const char *from)
{
    struct xm_rendezvous *r = &t->rendezvous;
    struct xm_part       *part = xm_landing_part(t);
    size_t                bytes = (size_t)r->from.bytes;
    bool                  on_device = (part != NULL) && (r->landing == NULL);
    char                 *to = r->receive.buf + r->receive.low;

    if (on_device && !r->receive.plain) {
        struct xm_copier copier = {part->copier.call, dev, stream, &part->scratch,
                                   part->copier.comm};
        struct xm_lane   lane = {&copier, &r->receive, (char *)(uintptr_t)from, false, true};
        return xm_enqueue_bytes(&lane, (MPI_Count)r->from.bytes);
    }
    if (!r->receive.plain) {
        to = packed_target(r);
        if (to == NULL) {
            return xc_fail(xcclSystemError, "out of memory for a message of %zu bytes", bytes);
        }
    }
    return dev->copy_async(to, from, bytes, stream);
}

/* Is it a message of this process to itself? */
static bool is_own(const struct xm_rendezvous *r)
{
    struct xm_board *own = xm_board_own();

    return (own != NULL) && (xm_offer_of(own, r->got.slot) == r->offer);
}

/* Can the bytes go from device to device as they are, without the default stream in between? */
static bool is_direct(const struct xm_transfer *t)
{
    const struct xm_rendezvous *r = &t->rendezvous;

    return r->receive.plain && (r->receive.mem.kind == XC_MEM_DEVICE) &&
           r->receive.mem.synchronous && (r->landing == NULL);
}

static bool are_several(void)
{
    return (__atomic_load_n(&copying, __ATOMIC_RELAXED) > 0) || (xm_watched_receives() > 1);
}

/* Do both buffers lie on one device? */
static bool is_near(const struct xc_device_ops *dev, const struct xm_rendezvous *r, int device)
{
    unsigned char uuid[XC_DEVICE_UUID_BYTES];

    return (dev->uuid_of(device, uuid) == xcclSuccess) &&
           (memcmp(uuid, r->from.uuid, sizeof(uuid)) == 0);
}

/* To where a type wants the bytes on the device; false: nothing was done. */
static bool scatter_quickly(struct xm_transfer *t, const struct xc_device_ops *dev,
                            const char *from)
{
    struct xm_rendezvous *r = &t->rendezvous;
    struct xm_part       *part = xm_landing_part(t);

    if ((part == NULL) || (r->landing != NULL) || r->receive.plain || !r->receive.mem.synchronous ||
        ((MPI_Count)r->from.bytes != r->receive.bytes)) {
        return false;
    }
    struct xm_copier copier = {part->copier.call, dev, NULL, &part->scratch, part->copier.comm};
    struct xm_lane   lane = {&copier, &r->receive, (char *)(uintptr_t)from, false, true};
    return xm_move_quickly(&lane, false);
}

/* By a kernel of ours; *over_p: it is over already. */
static bool start_kernel(struct xm_transfer *t, const struct xc_device_ops *dev, int device,
                         const char *from, bool *over_p)
{
    struct xm_rendezvous *r = &t->rendezvous;
    size_t                bytes = (size_t)r->from.bytes;
    char                 *to = r->receive.buf + r->receive.low;
    bool                  several = are_several(), near = is_near(dev, r, device);

    /* No mapping has been made between two devices of one process. */
    if ((bytes == 0) || (bytes > KERNEL_BYTES) || (is_own(r) && !near)) {
        return false;
    }
    if (!is_direct(t)) {
        *over_p = scatter_quickly(t, dev, from);
        return *over_p;
    }
    struct xm_kernels *k = xm_kernels_of(dev, device);
    bool               collected = (xm_kernel_copies_collected() != XM_COLLECT_NONE);
    bool               few = collected ? !several : (xm_watched_receives() <= FEW);
    bool               launch = several || (near && (bytes <= XM_QUICK_FETCH_BYTES));
    *over_p = (k != NULL) && few && xm_quick_copy(k, XM_QUICK_FETCH, to, from, bytes);
    return *over_p ||
           (launch && (k != NULL) && xm_kernel_copy_start(k, to, from, bytes, &r->by_kernel));
}

/* The program's own fills of the buffer from before are not to win over the message. */
xcclResult_t xm_fetch_after_program(const struct xm_rendezvous *r, const struct xc_device_ops *dev,
                                    xcclStream_t stream)
{
    if ((r->receive.mem.kind != XC_MEM_DEVICE) || r->receive.mem.synchronous) {
        return xcclSuccess;
    }
    dev->mem_make_synchronous(r->receive.buf + r->receive.low);
    return dev->stream_after_default(stream);
}

/* Enqueue the copy of the sender's bytes; r->event is when they are there. */
static xcclResult_t start_runtime(struct xm_transfer *t, const struct xc_device_ops *dev,
                                  int device, const char *from)
{
    struct xm_rendezvous *r = &t->rendezvous;
    xcclStream_t          stream;
    /* Two copies at once fill the link better than one; one alone begins sooner where the last was.
     */
    bool         turns = is_direct(t) && are_several();
    xcclResult_t res =
        turns ? xm_next_copy_stream(dev, device, &stream) : xm_copy_stream(dev, device, &stream);

    if (res == xcclSuccess) {
        res = xm_fetch_after_program(r, dev, stream);
    }
    if (res == xcclSuccess) {
        res = xm_event_take(dev, device, &r->event);
    }
    if (res == xcclSuccess) {
        res = enqueue_bytes(t, dev, stream, from);
    }
    if (res == xcclSuccess) {
        res = dev->event_record(r->event, stream);
    }
    if (res == xcclSuccess) {
        xm_question_begin(r);
    }
    return res;
}

static xcclResult_t start_copy(struct xm_transfer *t, const struct xc_device_ops *dev, int device,
                               bool *over_p)
{
    const struct xm_rendezvous *r = &t->rendezvous;
    char                       *base = (char *)(uintptr_t)r->from.ipc.base;
    xcclResult_t                res = xcclSuccess;

    xm_mappings_hold();
    if (!is_own(r)) {
        res = xm_mapping_of(r->got.nonce, &r->from.ipc, dev, device, &base);
    }
    const char *from = (res == xcclSuccess) ? base + r->from.offset : NULL;

    *over_p = false;
    if ((res == xcclSuccess) && !start_kernel(t, dev, device, from, over_p)) {
        res = start_runtime(t, dev, device, from);
    }
    xm_mappings_let_go();
    if ((res == xcclSuccess) && !*over_p) {
        __atomic_add_fetch(&copying, 1, __ATOMIC_RELAXED);
    }
    return res;
}

static void set_stage(struct xm_rendezvous *r, enum xm_fetch stage)
{
    __atomic_store_n(&r->fetch, stage, __ATOMIC_RELEASE);
}

static void end_copy(struct xm_rendezvous *r, const struct xc_device_ops *dev)
{
    if (r->event != NULL) {
        xm_event_give(dev, device_for(dev, r), r->event);
        r->event = NULL;
    }
    xm_landing_scatter(r);
}

/*
 * A descriptor may be whole in memory although MPI's memcpy is not over: it writes some bytes
 * twice, and its thread may be held in between, while another thread sees the descriptor and
 * fetches the message. Then it goes on, over the message. So what the message begins with is kept,
 * and put there again when MPI has come out of memcpy. False: words of the descriptor are there, so
 * MPI has gone on already.
 */
static bool keep_head(struct xm_rendezvous *r)
{
    uint64_t there[XM_DESCRIPTOR_BYTES / sizeof(uint64_t)],
        came[XM_DESCRIPTOR_BYTES / sizeof(uint64_t)];

    xm_landing_read_head(r, r->head, sizeof(r->head));
    memcpy(there, r->head, sizeof(there));
    memcpy(came, &r->got, sizeof(came));
    for (size_t i = 0; i < sizeof(came) / sizeof(came[0]); i++) {
        if (there[i] == came[i]) {
            return false;
        }
    }
    r->head_kept = true;
    return true;
}

void xm_fetch_end(struct xm_rendezvous *r)
{
    end_copy(r, xc_device_active());
    r->came = (MPI_Count)r->from.bytes;
    set_stage(r, XM_FETCH_OVER);
    if (!r->came_in_pieces) {
        xm_offer_move(r->offer, r->got.number, XM_OFFER_TAKEN, XM_OFFER_DONE);
        xm_offer_move(r->offer, r->got.number, XM_OFFER_SERVED, XM_OFFER_DONE);
    }
}

/* The sender is asked for the bytes in host memory. */
static void refuse(struct xm_rendezvous *r, bool once)
{
    if (!once) {
        xc_info("device memory of another process cannot be mapped (%s): its messages are staged",
                xc_last_detail());
    }
    r->offer->once = once;
    set_stage(r, XM_FETCH_REFUSED);
    xm_offer_move(r->offer, r->got.number, XM_OFFER_TAKEN, XM_OFFER_REFUSED);
}

/* With the device entered, and by pinned memory in between. */
static bool read_by_kernel(const struct xm_rendezvous *r, const struct xc_device_ops *dev,
                           int device, const char *from, char *to)
{
    size_t             bytes = (size_t)r->from.bytes;
    struct xm_kernels *k = xm_kernels_of(dev, device);
    struct xm_scratch  scratch;
    void              *pinned;
    bool               over = false;

    xm_scratch_begin(&scratch, dev, device);
    if ((k != NULL) && (xm_scratch_take(&scratch, XM_POOL_HOST, bytes, &pinned) == xcclSuccess) &&
        dev->mem_reachable(pinned)) {
        over = xm_quick_copy(k, XM_QUICK_OUT, pinned, from, bytes);
    }
    if (over) {
        memcpy(to, pinned, bytes);
        xc_trace("%zu bytes read to host memory by a kernel that was there", bytes);
    }
    xm_scratch_end(&scratch);
    return over;
}

/*
 * Few bytes to host memory, by the kernel that lingers on the device that the program works with:
 * the runtime's copy takes twice as long. Where that device does not reach the sender's, what is
 * mapped is the latter's memory for itself. False: nothing was done.
 */
static bool fetch_to_host_quickly(struct xm_transfer *t)
{
    static bool                 out_of_reach; /* atomic */
    const struct xc_device_ops *dev = xc_device_active();
    struct xm_rendezvous       *r = &t->rendezvous;
    char                       *base = (char *)(uintptr_t)r->from.ipc.base, *to = NULL;
    int                         device = -1;
    void                       *saved;
    bool                        over = false;

    if ((r->receive.mem.kind != XC_MEM_HOST) || (r->from.bytes == 0) ||
        (r->from.bytes > XM_QUICK_BYTES) || __atomic_load_n(&out_of_reach, __ATOMIC_RELAXED) ||
        (dev->current(&device) != xcclSuccess) || (device < 0) ||
        (is_own(r) && !is_near(dev, r, device)) || (xm_fetch_host_target(t, &to) != xcclSuccess) ||
        (to == NULL) || (dev->enter(device, &saved) != xcclSuccess)) {
        return false;
    }
    xm_mappings_hold();
    xcclResult_t res =
        is_own(r) ? xcclSuccess : xm_mapping_of(r->got.nonce, &r->from.ipc, dev, device, &base);
    if (res == xcclSuccess) {
        over = read_by_kernel(r, dev, device, base + r->from.offset, to);
    } else if (res != xcclInProgress) {
        __atomic_store_n(&out_of_reach, true, __ATOMIC_RELAXED);
    }
    xm_mappings_let_go();
    dev->leave(saved);
    return over;
}

static bool finish_copy(struct xm_transfer *t, const struct xc_device_ops *dev);

/* Map the sender's memory and start the copy, or come again. */
static void map_and_copy(struct xm_transfer *t)
{
    const struct xc_device_ops *dev = xc_device_active();
    struct xm_rendezvous       *r = &t->rendezvous;
    int                         device = device_for(dev, r);
    void                       *saved;
    bool                        over = false;

    if (fetch_to_host_quickly(t)) {
        finish_copy(t, dev);
        return;
    }
    xcclResult_t res = dev->enter(device, &saved);
    if (res == xcclSuccess) {
        res = start_copy(t, dev, device, &over);
        dev->leave(saved);
    }
    bool later = (res == xcclInProgress);
    if (later && (xm_now_ns() - r->came_ns < MAPPING_NS)) {
        return;
    }
    if (res != xcclSuccess) {
        refuse(r, later);
    } else if (over) {
        xm_fetch_end(r);
    } else {
        set_stage(r, XM_FETCH_COPYING);
    }
}

/*
 * By the kernel that lingers, in several blocks: where the sender could be asked to write it, that
 * takes longer. False: nothing was done.
 */
static bool fetch_quickly(struct xm_transfer *t)
{
    const struct xc_device_ops *dev = xc_device_active();
    struct xm_rendezvous       *r = &t->rendezvous;
    size_t                      bytes = (size_t)r->from.bytes;
    int                         device = r->receive.mem.device;
    char                       *base = NULL;
    void                       *saved;

    if ((bytes <= XM_QUICK_FETCH_BYTES) || (bytes > XM_QUICK_WIDE_BYTES) || are_several() ||
        (xc_params()->p2p_push != XC_P2P_PUSH_AUTO) ||
        (dev->enter(device, &saved) != xcclSuccess)) {
        return false;
    }
    struct xm_kernels *k = xm_kernels_of(dev, device);
    xm_mappings_hold();
    bool over = (k != NULL) &&
                (xm_mapping_of(r->got.nonce, &r->from.ipc, dev, device, &base) == xcclSuccess) &&
                xm_quick_copy(k, XM_QUICK_FETCH_WIDE, r->receive.buf + r->receive.low,
                              base + r->from.offset, bytes);
    xm_mappings_let_go();
    dev->leave(saved);
    if (over) {
        xc_trace("%zu bytes read by a kernel that was there", bytes);
    }
    return over;
}

/* With the descriptor in r->got, and taken. */
void xm_fetch_start(struct xm_transfer *t, bool served)
{
    struct xm_rendezvous *r = &t->rendezvous;

    const struct xc_device_ops *dev = xc_device_active();
    r->came_ns = xm_now_ns();
    r->head_kept = false;
    r->came_in_pieces = false;
    r->repeats = 0;
    if (r->from.bytes > (uint64_t)r->receive.bytes) {
        r->code = MPI_ERR_TRUNCATE;
        xm_fetch_end(r);
    } else if (served) {
        set_stage(r, XM_FETCH_REFUSED);
    } else if (is_direct(t) && !is_own(r) && fetch_quickly(t)) {
        xm_fetch_end(r);
    } else if (is_direct(t) && !is_own(r) && xm_push_ask(r, dev, are_several())) {
        set_stage(r, XM_FETCH_PUSHED);
    } else {
        set_stage(r, XM_FETCH_MAPPING);
        map_and_copy(t);
    }
}

xcclResult_t xm_fetch_copy(struct xm_transfer *t, const char *from)
{
    const struct xc_device_ops *dev = xc_device_active();
    int                         device = device_for(dev, &t->rendezvous);
    xcclStream_t                stream;
    void                       *saved;

    xcclResult_t res = dev->enter(device, &saved);
    if (res != xcclSuccess) {
        return res;
    }
    res = xm_copy_stream(dev, device, &stream);
    if (res == xcclSuccess) {
        res = xm_fetch_after_program(&t->rendezvous, dev, stream);
    }
    if (res == xcclSuccess) {
        res = enqueue_bytes(t, dev, stream, from);
    }
    if (res == xcclSuccess) {
        res = xm_stream_wait(dev, stream);
    }
    dev->leave(saved);
    return res;
}

/* The sender's program may have closed files that are not its own, and opened others. */
static int open_served(const struct xm_rendezvous *r)
{
    static const char wanted[] = "/memfd:" XM_OFFER_FILES;
    char              path[64], target[64] = "";

    snprintf(path, sizeof(path), "/proc/%d/fd/%d", r->got.pid, r->offer->fd);
    ssize_t length = readlink(path, target, sizeof(target) - 1);
    if (length < 0) {
        return -1;
    }
    if (strncmp(target, wanted, sizeof(wanted) - 1) != 0) {
        errno = EBADF;
        return -1;
    }
    return xm_spare_open(path, O_RDONLY);
}

static void fetch_served(struct xm_transfer *t)
{
    struct xm_rendezvous *r = &t->rendezvous;
    size_t                page = (size_t)sysconf(_SC_PAGESIZE);
    size_t                skip = (size_t)r->offer->at_in_file % page;
    size_t                length = skip + (size_t)r->from.bytes;
    char                 *mapped = MAP_FAILED;
    int                   file = open_served(r), why = errno;

    if (file >= 0) {
        mapped =
            mmap(NULL, length, PROT_READ, MAP_SHARED, file, (off_t)(r->offer->at_in_file - skip));
        why = errno;
        xm_spare_close(file);
    }
    if (mapped == MAP_FAILED) {
        xm_rendezvous_fail(
            r, xc_fail(xcclSystemError,
                       "a message of %llu bytes that process %d serves cannot be read (%s); set "
                       "XCCL_P2P=staged",
                       (unsigned long long)r->from.bytes, r->got.pid, strerror(why)));
    } else {
        xm_rendezvous_fail(r, xm_fetch_copy(t, mapped + skip));
        if (r->early) {
            memcpy(r->head, mapped + skip, sizeof(r->head));
            r->head_kept = true;
        }
        munmap(mapped, length);
    }
    xm_fetch_end(r);
}

/* It is over, or begins once more. */
static bool finish_copy(struct xm_transfer *t, const struct xc_device_ops *dev)
{
    struct xm_rendezvous *r = &t->rendezvous;

    end_copy(r, dev);
    if (r->early && (r->failed == xcclSuccess) && !keep_head(r) && (r->repeats++ < MOST_REPEATS)) {
        r->came_ns = xm_now_ns();
        set_stage(r, XM_FETCH_MAPPING);
        map_and_copy(t);
        return r->fetch == XM_FETCH_OVER;
    }
    xm_fetch_end(r);
    return true;
}

bool xm_fetch_advance(struct xm_transfer *t)
{
    const struct xc_device_ops *dev = xc_device_active();
    struct xm_rendezvous       *r = &t->rendezvous;
    xcclResult_t                res;

    switch (r->fetch) {
    case XM_FETCH_PUSHED:
        switch (xm_push_look(r)) {
        case XM_PUSH_WAITS:
            return false;
        case XM_PUSH_DONE:
            xm_fetch_end(r);
            return true;
        default:
            set_stage(r, XM_FETCH_MAPPING);
            r->came_ns = xm_now_ns();
        }
        /* fall through */
    case XM_FETCH_MAPPING:
        map_and_copy(t);
        return r->fetch == XM_FETCH_OVER;
    case XM_FETCH_COPYING:
        res = (r->by_kernel.kernels != NULL) ? xm_kernel_copy_query(&r->by_kernel)
                                             : xm_question_ask(r, dev, r->event);
        if (res == xcclInProgress) {
            return false;
        }
        __atomic_sub_fetch(&copying, 1, __ATOMIC_RELAXED);
        if (res != xcclSuccess) {
            xm_rendezvous_fail(r, res);
            r->event = NULL; /* it may be gone with a reset of the device */
        }
        return finish_copy(t, dev);
    case XM_FETCH_REFUSED:
        if (xm_offer_state(r->offer) != XM_OFFER_SERVED) {
            return false;
        }
        fetch_served(t);
        return true;
    case XM_FETCH_PIECES:
        return xm_pieces_advance(t);
    case XM_FETCH_LANDING:
        res = xm_kernel_copy_query(&r->by_kernel);
        if (res == xcclInProgress) {
            return false;
        }
        xm_rendezvous_fail(r, res);
        set_stage(r, XM_FETCH_NONE);
        return true;
    default:
        return true;
    }
}
