/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies of the receiver's that fail after they have begun: the receive must say so, although the
 * bytes may be there. A device that fails then is a stand-in for one that a kernel has crashed.
 */
#include "transfers/fetch.h"

#include "check.h"
#include "comms/spare.h"
#include "comms/wait.h"
#include "data/enqueue.h"
#include "data/events.h"
#include "data/kernels.h"
#include "data/mappings.h"
#include "data/pools.h"
#include "transfers/landing.h"
#include "transfers/pieces.h"
#include "transfers/pipeline.h"
#include "transfers/push.h"
#include "transfers/question.h"
#include "transfers/transfer.h"
#include "transfers/watcher.h"

enum { BYTES = 1000, NUMBER = 9 };

static xcclResult_t    answer; /* of a copy that is asked for */
static int             asked, events_given;
static struct xm_offer offer;

xcclResult_t xm_kernel_copy_query(struct xm_kernel_copy *copy)
{
    asked++;
    copy->kernels = (answer == xcclInProgress) ? copy->kernels : NULL;
    return answer;
}

xcclResult_t xm_question_ask(struct xm_rendezvous *r, const struct xc_device_ops *dev, void *event)
{
    (void)dev;
    CHECK(event == r->event, "another event is asked for");
    asked++;
    return answer;
}

void xm_rendezvous_fail(struct xm_rendezvous *r, xcclResult_t res)
{
    r->failed = (r->failed == xcclSuccess) ? res : r->failed;
}

bool xm_offer_move(struct xm_offer *o, uint64_t number, enum xm_offer_state from,
                   enum xm_offer_state to)
{
    bool moves = (o->state == xm_offer_word(number, from));

    o->state = moves ? xm_offer_word(number, to) : o->state;
    return moves;
}

void xm_event_give(const struct xc_device_ops *dev, int device, void *event)
{
    (void)dev, (void)device, (void)event;
    events_given++;
}

void xm_landing_scatter(struct xm_rendezvous *r)
{
    (void)r;
}

/* ---- what else the file calls: not in these cases ---- */

struct xm_board *xm_board_open(const struct xm_board_address *address)
{
    (void)address;
    return NULL;
}

struct xm_board *xm_board_own(void)
{
    return NULL;
}

struct xm_offer *xm_offer_of(struct xm_board *board, int slot)
{
    (void)board, (void)slot;
    return NULL;
}

uint64_t xm_descriptor_check(const struct xm_descriptor *d)
{
    return d->check;
}

bool xm_pipeline_is_open(const struct xm_descriptor *d)
{
    (void)d;
    return false;
}

xcclResult_t xm_copy_stream(const struct xc_device_ops *dev, int device, xcclStream_t *stream_p)
{
    (void)dev, (void)device, (void)stream_p;
    return xcclInternalError;
}

xcclResult_t xm_next_copy_stream(const struct xc_device_ops *dev, int device,
                                 xcclStream_t *stream_p)
{
    return xm_copy_stream(dev, device, stream_p);
}

xcclResult_t xm_event_take(const struct xc_device_ops *dev, int device, void **event_p)
{
    (void)dev, (void)device, (void)event_p;
    return xcclInternalError;
}

xcclResult_t xm_stream_wait(const struct xc_device_ops *dev, xcclStream_t stream)
{
    (void)dev, (void)stream;
    return xcclInternalError;
}

xcclResult_t xm_enqueue_bytes(const struct xm_lane *lane, MPI_Count bytes)
{
    (void)lane, (void)bytes;
    return xcclInternalError;
}

bool xm_move_quickly(const struct xm_lane *lane, bool elsewhere)
{
    (void)lane, (void)elsewhere;
    return false;
}

enum xm_collect xm_kernel_copies_collected(void)
{
    return XM_COLLECT_NONE;
}

bool xm_kernel_copy_start(struct xm_kernels *k, void *to, const void *from, size_t bytes,
                          struct xm_kernel_copy *copy)
{
    (void)k, (void)to, (void)from, (void)bytes, (void)copy;
    return false;
}

struct xm_kernels *xm_kernels_of(const struct xc_device_ops *dev, int device)
{
    (void)dev, (void)device;
    return NULL;
}

void xm_scratch_begin(struct xm_scratch *scratch, const struct xc_device_ops *dev, int device)
{
    (void)scratch, (void)dev, (void)device;
}

xcclResult_t xm_scratch_take(struct xm_scratch *scratch, enum xm_pool pool, size_t bytes,
                             void **ptr_p)
{
    (void)scratch, (void)pool, (void)bytes, (void)ptr_p;
    return xcclSystemError;
}

void xm_scratch_end(struct xm_scratch *scratch)
{
    (void)scratch;
}

bool xm_quick_copy(struct xm_kernels *k, enum xm_quick way, void *to, const void *from,
                   size_t bytes)
{
    (void)k, (void)way, (void)to, (void)from, (void)bytes;
    return false;
}

xcclResult_t xm_mapping_of(uint64_t nonce, const struct xc_ipc *ipc,
                           const struct xc_device_ops *dev, int device, char **base_p)
{
    (void)nonce, (void)ipc, (void)dev, (void)device, (void)base_p;
    return xcclInternalError;
}

void xm_mappings_hold(void)
{
}

void xm_mappings_let_go(void)
{
}

struct xm_part *xm_landing_part(struct xm_transfer *t)
{
    (void)t;
    return NULL;
}

void xm_landing_read_head(const struct xm_rendezvous *r, void *to, size_t bytes)
{
    (void)r, (void)to, (void)bytes;
}

bool xm_pieces_advance(struct xm_transfer *t)
{
    (void)t;
    return false;
}

bool xm_push_ask(struct xm_rendezvous *r, const struct xc_device_ops *dev, bool several)
{
    (void)r, (void)dev, (void)several;
    return false;
}

enum xm_push xm_push_look(struct xm_rendezvous *r)
{
    (void)r;
    return XM_PUSH_NOT;
}

void xm_question_begin(struct xm_rendezvous *r)
{
    (void)r;
}

uint64_t xm_now_ns(void)
{
    return 1;
}

int xm_spare_open(const char *path, int flags)
{
    (void)path, (void)flags;
    return -1;
}

void xm_spare_close(int fd)
{
    (void)fd;
}

int xm_watched_receives(void)
{
    return 1;
}

/* ---- the cases ---- */

static struct xm_transfer transfer;
static int                something; /* what kernels and events may point to */

/* A copy to device memory is under way, by a kernel or else by the runtime. */
static struct xm_rendezvous *begin(enum xm_fetch fetch, bool by_kernel)
{
    struct xm_rendezvous *r = &transfer.rendezvous;

    *r = (struct xm_rendezvous){.fetch = fetch, .offer = &offer};
    r->receive.mem.kind = XC_MEM_DEVICE;
    r->from.bytes = BYTES;
    r->got.number = NUMBER;
    r->by_kernel.kernels = by_kernel ? (struct xm_kernels *)(void *)&something : NULL;
    r->event = by_kernel ? NULL : &something;
    offer.state = xm_offer_word(NUMBER, XM_OFFER_TAKEN);
    asked = events_given = 0;
    answer = xcclInProgress;
    CHECK(!xm_fetch_advance(&transfer) && (r->fetch == fetch), "it is not over yet");
    CHECK(asked == 1, "it is asked for %d times", asked);
    return r;
}

/* With the sender told in any case: its buffer is the program's again. */
static void check_copying(bool by_kernel, xcclResult_t end)
{
    struct xm_rendezvous *r = begin(XM_FETCH_COPYING, by_kernel);

    answer = end;
    CHECK(xm_fetch_advance(&transfer) && (r->fetch == XM_FETCH_OVER), "it is over");
    CHECK(r->failed == end, "the receive says %d, and not %d", (int)r->failed, (int)end);
    CHECK(xm_offer_state(&offer) == XM_OFFER_DONE, "the sender is not told");
    /* That of a copy that failed may be gone with a reset of the device. */
    CHECK(events_given == (!by_kernel && (end == xcclSuccess)), "%d events are given back",
          events_given);
}

static void check_landing(xcclResult_t end)
{
    struct xm_rendezvous *r = begin(XM_FETCH_LANDING, true);

    answer = end;
    CHECK(xm_fetch_advance(&transfer) && (r->fetch == XM_FETCH_NONE), "it is over");
    CHECK(r->failed == end, "the receive says %d, and not %d", (int)r->failed, (int)end);
}

int main(void)
{
    static const xcclResult_t ends[] = {xcclSuccess, xcclSystemError};

    for (int i = 0; i < 2; i++) {
        check_copying(false, ends[i]);
        check_copying(true, ends[i]);
        check_landing(ends[i]);
    }
    return xt_done("copies of messages that fail");
}
