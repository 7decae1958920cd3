/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Communicators with a stream. All that an operation may need is made here, where ranks may wait:
 * an operation may be captured. The duplicate that the program gets carries messages; collectives
 * have a communicator of their own, whose workspace and vendor communicator nobody else uses.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "comms/agree.h"
#include "comms/topology.h"
#include "comms/vendor_comm.h"
#include "comms/wait.h"
#include "data/events.h"
#include "ops/freed.h"
#include "ops/persistent.h"
#include "streams/enqueue.h"
#include "streams/runner.h"
#include "streams/stream_comm.h"
#include "streams/streams.h"

static pthread_mutex_t        lock = PTHREAD_MUTEX_INITIALIZER;
static struct xm_stream_comm *all;

struct xm_stream_comm *xm_stream_comm_of(MPI_Comm comm)
{
    if (__atomic_load_n(&all, __ATOMIC_ACQUIRE) == NULL) {
        return NULL;
    }
    pthread_mutex_lock(&lock);
    struct xm_stream_comm *sc = all;
    while ((sc != NULL) && ((sc->comm != comm) || sc->freed)) {
        sc = sc->next;
    }
    pthread_mutex_unlock(&lock);
    return sc;
}

static void insert(struct xm_stream_comm *sc)
{
    pthread_mutex_lock(&lock);
    sc->next = all;
    __atomic_store_n(&all, sc, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
}

static void extract(struct xm_stream_comm *sc)
{
    pthread_mutex_lock(&lock);
    struct xm_stream_comm **at = &all;
    while ((*at != NULL) && (*at != sc)) {
        at = &(*at)->next;
    }
    if (*at != NULL) {
        __atomic_store_n(at, sc->next, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
}

/* Not another duplicate, which would call the program's copy callbacks again. */
static xcclResult_t make_inner(struct xm_stream_comm *sc)
{
    int code = xm_topology_plain(sc->comm, &sc->inner);

    if (code == MPI_SUCCESS) {
        code = xm_pmpi.Comm_set_errhandler(sc->inner, XM_HANDLE(MPI_ERRORS_RETURN));
    }
    return (code == MPI_SUCCESS) ? xm_comm_get(sc->inner, &sc->xm)
                                 : xc_fail(xcclInternalError, "MPI made no communicator");
}

/*
 * What the least of all ranks has: a device stream, a thread that may call MPI, the direct path, no
 * failure.
 */
static xcclResult_t agree(struct xm_stream_comm *sc, bool good)
{
    enum { STREAM, THREADS, COUNTER, GOOD, TERMS };
    int level = MPI_THREAD_SINGLE;
    int mine[TERMS], least[TERMS];

    xm_pmpi.Query_thread(&level);
    mine[STREAM] = (sc->stream->dev != NULL) ? sc->xm->size : sc->xm->rank;
    mine[THREADS] = (level == MPI_THREAD_MULTIPLE);
    mine[COUNTER] = (sc->counter != NULL);
    mine[GOOD] = good;
    if (xm_pmpi.Allreduce(mine, least, TERMS, XM_HANDLE(MPI_INT), XM_HANDLE(MPI_MIN), sc->inner) !=
        MPI_SUCCESS) {
        return xc_fail(xcclInternalError, "MPI_Allreduce failed");
    }
    sc->without = (least[STREAM] < sc->xm->size) ? least[STREAM] : -1;
    sc->threads = (least[THREADS] != 0);
    if (least[COUNTER] == 0) {
        sc->counter = NULL;
    }
    if (good && (least[GOOD] == 0)) {
        return xc_fail(xcclRemoteError, "another rank could not attach its stream");
    }
    return good ? xcclSuccess : xcclInternalError; /* with the detail of its cause */
}

/* The first number, in a place of the workspace that no other rank writes to: the rank's own slot.
 */
static xcclResult_t set_counter(struct xm_stream_comm *sc)
{
    struct xm_direct *d = sc->xm->direct;
    struct xk_ranks  *r = &d->words->ranks;
    char    *at = (char *)(uintptr_t)(r->workspace[r->rank] + r->rank * xk_slot_bytes(r->size) +
                                   XK_SLOT_HEADER);
    uint32_t words = xk_slot_words(r->size);

    d->words->done = d->number + 1;
    xcclResult_t res = d->dev->copy_async(at, &d->words->done, sizeof(uint32_t), d->queue.stream);
    if (res == xcclSuccess) {
        res = d->dev->set_async(at + sizeof(uint32_t), 0,
                                sizeof(struct xk_counter) - sizeof(uint32_t), d->queue.stream);
    }
    if (res == xcclSuccess) {
        res = xm_stream_wait(d->dev, d->queue.stream);
    }
    if (res != xcclSuccess) {
        return res;
    }
    sc->last = d->last & ~1u;
    /* All words in half a round, since each parity has slots of its own. */
    sc->sweep = 2 * words / sc->last + 1;
    sc->counter = (struct xk_counter *)(void *)at;
    d->number = d->last; /* nothing else is numbered there */
    return xcclSuccess;
}

/* The rank's own slot of the other parity, where no other rank writes either: of two blocks' bytes.
 */
static char *spare_slot(const struct xm_direct *d)
{
    const struct xk_ranks *r = &d->words->ranks;

    return (char *)(uintptr_t)(r->workspace[r->rank] +
                               (uint64_t)(r->size + r->rank) * xk_slot_bytes(r->size));
}

char *xm_stream_comm_soil(struct xm_stream_comm *sc)
{
    sc->soiled = true;
    return spare_slot(sc->xm->direct);
}

/* Of another communicator it might be taken for words that have come. */
static xcclResult_t clean(struct xm_stream_comm *sc)
{
    struct xm_direct *d = sc->xm->direct;
    xcclResult_t      res = xcclSuccess;

    if (sc->soiled) {
        res = d->dev->set_async(spare_slot(d), 0, xk_slot_bytes(d->words->ranks.size),
                                d->queue.stream);
        sc->soiled = (res != xcclSuccess);
    }
    return res; /* the stream is waited for with what is asked for next */
}

/*
 * The last number, once all is over: the next communicator in this memory begins behind it. Where
 * numbers have begun anew in between, the memory is cleared first.
 */
static xcclResult_t settle_counter(struct xm_stream_comm *sc)
{
    struct xm_direct *d = sc->xm->direct;
    uint32_t          found[2];
    const uint32_t   *from[2] = {&sc->counter->number, &sc->counter->rounds};
    xcclResult_t      res = clean(sc);

    for (int i = 0; (i < 2) && (res == xcclSuccess); i++) {
        res = d->dev->copy_async(&d->words->done, from[i], sizeof(uint32_t), d->queue.stream);
        if (res == xcclSuccess) {
            res = xm_stream_wait(d->dev, d->queue.stream);
        }
        found[i] = __atomic_load_n(&d->words->done, __ATOMIC_ACQUIRE);
    }
    if (res != xcclSuccess) {
        return res;
    }
    d->number = (found[1] == 0) ? found[0] - 1 : d->last;
    return xcclSuccess;
}

/*
 * A capture waits by one of our kernels. Those for collectives, too: to load them may wait for what
 * is on a stream, and that for other ranks.
 */
static void wait_for_kernels(const struct xm_stream *stream)
{
    const struct timespec nap = {0, 1000000};

    for (int i = 0; (i < 2000) && (xm_collective_kernels_of(stream->dev, stream->device) == NULL) &&
                    !xm_collective_kernels_failed(stream->dev, stream->device);
         i++) {
        nanosleep(&nap, NULL);
    }
}

/* With the device entered. Without an event what is enqueued there is not known to be under way. */
static void track(struct xm_stream_comm *sc)
{
    const struct xm_stream       *stream = sc->stream;
    struct xm_outstanding_stream *t = &sc->tracked;

    *t = (struct xm_outstanding_stream){
        .dev = stream->dev, .device = stream->device, .resets = stream->resets};
    xm_vendors_beside_streams(1);
    if (xm_event_take(t->dev, t->device, &t->event) == xcclSuccess) {
        xm_outstanding_add(t);
    }
}

static void track_no_more(struct xm_stream_comm *sc)
{
    struct xm_outstanding_stream *t = &sc->tracked;

    if (t->dev != NULL) {
        xm_vendors_beside_streams(-1);
    }
    if (t->event != NULL) {
        xm_outstanding_remove(t);
        if (xc_device_resets(t->dev, t->device, false) == t->resets) {
            xm_event_give(t->dev, t->device, t->event);
        }
    }
}

/* With the device entered. A rank without memory takes part in staged collectives by this word. */
static xcclResult_t take_reserve(struct xm_stream_comm *sc)
{
    void *word = NULL;

    xm_scratch_begin_ordered(&sc->reserve, sc->stream->dev, sc->stream->device);
    sc->reserve.beyond = true;
    xcclResult_t res = xm_scratch_take(&sc->reserve, XM_POOL_HOST, 2 * sizeof(*sc->word), &word);
    sc->word = word;
    if (res == xcclSuccess) {
        sc->word[1] = 0;
    }
    return res;
}

static xcclResult_t prepare(struct xm_stream_comm *sc)
{
    const struct xm_stream *stream = sc->stream;
    void                   *saved;

    if (stream->dev != NULL) {
        wait_for_kernels(stream);
    }
    if ((sc->without >= 0) || (sc->xm->size == 1)) {
        return xcclSuccess;
    }
    xcclResult_t res = stream->dev->enter(stream->device, &saved);
    if (res != xcclSuccess) {
        return res;
    }
    track(sc);
    res = xm_comm_agree_now(sc->xm, stream->dev, stream->device);
    /* Where ranks share a device, kernels in streams of the program's may not find room. */
    if ((res == xcclSuccess) && (sc->xm->direct_state == XM_DIRECT_JOINED) &&
        !sc->xm->direct->shared) {
        res = set_counter(sc);
    }
    if ((res == xcclSuccess) && sc->threads) {
        res = take_reserve(sc);
    }
    stream->dev->leave(saved);
    return res;
}

static void destroy(struct xm_stream_comm *sc)
{
    track_no_more(sc);
    xm_scratch_end(&sc->reserve);
    xm_stream_unuse(sc->stream);
    if (sc->xm != NULL) {
        xm_comm_unuse(sc->xm);
    }
    if (sc->inner != XM_HANDLE(MPI_COMM_NULL)) {
        xm_pmpi.Comm_free(&sc->inner);
    }
    pthread_mutex_destroy(&sc->lock);
    free(sc->spare);
    free(sc);
}

static struct xm_stream_comm *new_comm(int handle)
{
    struct xm_stream_comm *sc = calloc(1, sizeof(*sc));
    struct xm_stream      *stream = xm_stream_of(handle);

    if (sc == NULL) {
        return NULL;
    }
    sc->stream = stream;
    if (stream == NULL) { /* MPIX_STREAM_NULL: this rank enqueues nothing */
        sc->stream = calloc(1, sizeof(*stream));
        if (sc->stream == NULL) {
            free(sc);
            return NULL;
        }
    }
    xm_stream_use(sc->stream);
    sc->spare = calloc(1, sizeof(*sc->spare)); /* without it a call with no memory is an error */
    sc->handle = handle;
    sc->comm = sc->inner = XM_HANDLE(MPI_COMM_NULL);
    sc->held_end = &sc->held;
    pthread_mutex_init(&sc->lock, NULL);
    return sc;
}

static xcclResult_t set_up(struct xm_stream_comm *sc)
{
    xcclResult_t res = make_inner(sc);

    if (res != xcclSuccess) {
        return res;
    }
    res = agree(sc, true);
    if (res == xcclSuccess) {
        res = prepare(sc);
        if ((res == xcclSuccess) && sc->threads && (sc->without < 0)) {
            res = xm_runner_start(); /* before the ranks agree that each has all it needs */
        }
        char text[256];
        snprintf(text, sizeof(text), "%s", xc_last_detail());
        xcclResult_t others = agree(sc, res == xcclSuccess);
        if (res != xcclSuccess) {
            return xc_fail(res, "%s", text);
        }
        res = others;
    }
    return res;
}

int xm_stream_comm_create(MPI_Comm comm, int handle, MPI_Comm *comm_p)
{
    int inter = 0;

    int code = xm_pmpi.Comm_test_inter(comm, &inter);
    if (code != MPI_SUCCESS) {
        return code;
    }
    if (inter) {
        return xm_raise(comm, xcclUnsupported,
                        "MPIX_Stream_comm_create: streams go to intracommunicators");
    }
    xm_stream_comms_let_go(NULL);
    struct xm_stream_comm *sc = new_comm(handle);
    if (sc == NULL) {
        return xm_raise(comm, xcclSystemError, "out of memory for a communicator");
    }
    code = xm_pmpi.Comm_dup(comm, &sc->comm);
    if (code != MPI_SUCCESS) {
        destroy(sc);
        return code;
    }
    xcclResult_t res = set_up(sc);
    if (res != xcclSuccess) {
        char text[512];
        snprintf(text, sizeof(text), "MPIX_Stream_comm_create: %s", xc_last_detail());
        MPI_Comm made = sc->comm;
        destroy(sc);
        xm_pmpi.Comm_free(&made);
        return xm_raise(comm, res, text);
    }
    insert(sc);
    xc_info("stream communicator of %d ranks: direct path %s, vendor's library %s, staging %s",
            sc->xm->size, (sc->counter != NULL) ? "yes" : "no",
            (sc->xm->vendor != NULL) ? "yes" : "no",
            sc->threads ? "yes" : "no (no MPI_THREAD_MULTIPLE)");
    *comm_p = sc->comm;
    return MPI_SUCCESS;
}

void xm_stream_comm_failed(struct xm_stream_comm *sc, int code, xcclResult_t ours, const char *what,
                           const char *why)
{
    pthread_mutex_lock(&sc->lock);
    snprintf(sc->failure, sizeof(sc->failure), "%s%s%s", what, (why[0] != '\0') ? ": " : "", why);
    sc->failed_as = ours;
    __atomic_store_n(&sc->failed, code, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&sc->lock);
}

/*
 * A rank, or -1, that had no data for a call which this one has made, and was not seen before. One
 * that is ahead may tell of a call to come. With the lock held.
 */
static int find_misled(struct xm_stream_comm *sc)
{
    const struct xm_slots *slots = sc->xm->slots;
    uint64_t               said = xm_slots_misses(slots);
    uint64_t               made = __atomic_load_n(&sc->carried, __ATOMIC_RELAXED);
    int                    found = -1;
    bool                   rest = false;

    for (int i = 0; i < XM_SLOT_MISSES; i++) {
        struct xm_miss miss;
        miss.rank = xm_slots_miss(slots, i, &miss.call);
        if ((miss.call == sc->known[i].call) && (miss.rank == sc->known[i].rank)) {
            continue;
        }
        bool carried = ((miss.call & XM_MISS_CARRIED) != 0);
        if (carried && (miss.call - XM_MISS_CARRIED > made)) {
            rest = true;
            continue;
        }
        sc->known[i] = miss;
        if (carried && (miss.rank != slots->rank)) {
            found = miss.rank;
        }
    }
    if (!rest) {
        __atomic_store_n(&sc->looked, said, __ATOMIC_RELAXED);
    }
    return found;
}

void xm_stream_comm_look_for_misled(struct xm_stream_comm *sc)
{
    const struct xm_slots *slots = (sc->xm != NULL) ? sc->xm->slots : NULL;
    char                   why[160];

    if ((slots == NULL) ||
        (xm_slots_misses(slots) == __atomic_load_n(&sc->looked, __ATOMIC_RELAXED))) {
        return;
    }
    pthread_mutex_lock(&sc->lock);
    int rank = find_misled(sc);
    pthread_mutex_unlock(&sc->lock);
    if (rank >= 0) {
        snprintf(why, sizeof(why),
                 "rank %d took part without its data, as an error of its own says, so the result "
                 "may be wrong",
                 rank);
        xm_stream_comm_failed(sc, MPI_ERR_OTHER, xcclRemoteError, "a collective", why);
    }
}

/* No call on it comes any more. */
static void tell_untold(struct xm_stream_comm *sc)
{
    xm_stream_comm_look_for_misled(sc);
    pthread_mutex_lock(&sc->lock);
    if (__atomic_exchange_n(&sc->failed, MPI_SUCCESS, __ATOMIC_ACQ_REL) != MPI_SUCCESS) {
        xc_error("an operation enqueued on a communicator that is freed now has failed: %s",
                 sc->failure);
    }
    pthread_mutex_unlock(&sc->lock);
}

/* Its enqueued work is over, in whatever way; its memory may be used by others then. */
static xcclResult_t drain(struct xm_stream_comm *sc)
{
    const struct xm_stream *stream = sc->stream;
    void                   *saved;
    bool                    capturing = false;

    if ((stream->dev == NULL) || (sc->xm == NULL)) {
        return xcclSuccess;
    }
    if (xc_device_resets(stream->dev, stream->device, true) != stream->resets) {
        return xcclSuccess; /* the program has reset the device: nothing is left of either */
    }
    xcclResult_t res = stream->dev->enter(stream->device, &saved);
    if (res != xcclSuccess) {
        return res;
    }
    res = stream->ops->capturing(stream->handle, &capturing);
    if ((res == xcclSuccess) && capturing) {
        res =
            xc_fail(xcclInvalidUsage,
                    "a communicator is freed while its stream is captured; end the capture first");
    }
    if (res == xcclSuccess) {
        int mode = xc_device_relax(stream->dev);
        res = xm_stream_wait(stream->dev, stream->handle);
        if ((res == xcclSuccess) && (sc->counter != NULL)) {
            res = settle_counter(sc);
        }
        if (res == xcclSuccess) {
            xm_stream_comm_reap(sc, true);
            tell_untold(sc);
        } else if (sc->xm->direct != NULL) {
            xm_direct_break(sc->xm->direct);
        }
        xc_device_restore(stream->dev, mode);
    }
    stream->dev->leave(saved);
    return res;
}

static bool is_idle(const struct xm_stream_comm *sc)
{
    const struct xm_stream *stream = sc->stream;
    bool                    capturing = false;
    void                   *saved;

    if ((stream->dev == NULL) ||
        (xc_device_resets(stream->dev, stream->device, true) != stream->resets)) {
        return true;
    }
    if (stream->dev->enter(stream->device, &saved) != xcclSuccess) {
        return false;
    }
    bool idle = (stream->ops->capturing(stream->handle, &capturing) == xcclSuccess) && !capturing &&
                (stream->dev->stream_query(stream->handle) == xcclSuccess);
    stream->dev->leave(saved);
    return idle;
}

static bool is_left(const struct xm_stream_comm *sc, const struct xm_stream *stream)
{
    return sc->freed && !sc->leaving && (__atomic_load_n(&sc->open, __ATOMIC_ACQUIRE) == 0) &&
           ((stream != NULL) ? (sc->stream == stream) : is_idle(sc));
}

/* No other thread finds it from here on. */
static struct xm_stream_comm *take_left(const struct xm_stream *stream)
{
    pthread_mutex_lock(&lock);
    struct xm_stream_comm *sc = all;
    while ((sc != NULL) && !is_left(sc, stream)) {
        sc = sc->next;
    }
    if (sc != NULL) {
        sc->leaving = true;
        sc->leaver = pthread_self();
    }
    pthread_mutex_unlock(&lock);
    return sc;
}

/* These are tried again another time. */
static void put_back(struct xm_stream_comm *kept)
{
    pthread_mutex_lock(&lock);
    for (; kept != NULL; kept = kept->kept) {
        kept->leaving = false;
    }
    pthread_mutex_unlock(&lock);
}

/* By another thread: this one may be in a callback of the program's, on its way to another one. */
static bool is_any_leaving(const struct xm_stream *stream)
{
    pthread_mutex_lock(&lock);
    const struct xm_stream_comm *sc = all;
    while ((sc != NULL) &&
           (!sc->leaving || (sc->stream != stream) || pthread_equal(sc->leaver, pthread_self()))) {
        sc = sc->next;
    }
    pthread_mutex_unlock(&lock);
    return sc != NULL;
}

void xm_stream_comms_let_go(const struct xm_stream *stream)
{
    struct xm_wait wait = xm_wait_begin_for_ever("for a thread that waits for the same stream");
    struct xm_stream_comm *sc, *kept = NULL;

    while ((sc = take_left(stream)) != NULL) {
        MPI_Comm comm = sc->comm;
        if (drain(sc) != xcclSuccess) {
            xc_warn("a communicator that was freed is kept: %s", xc_last_detail());
            sc->kept = kept;
            kept = sc;
            continue;
        }
        extract(sc);
        destroy(sc);
        if (!xm_persistent_keeps_comm(comm)) {
            xm_freed_free(&comm, 0, false);
        }
    }
    put_back(kept);
    while ((stream != NULL) && is_any_leaving(stream)) { /* the program may destroy it next */
        xm_wait_step(&wait);
    }
}

int xm_stream_comm_freeing(MPI_Comm comm, bool *kept_p)
{
    struct xm_stream_comm *sc = xm_stream_comm_of(comm);

    if (sc == NULL) {
        return MPI_SUCCESS;
    }
    int open = __atomic_load_n(&sc->open, __ATOMIC_ACQUIRE);
    if ((open > 0) && (kept_p == NULL)) {
        char text[200];
        snprintf(text, sizeof(text),
                 "MPI_Comm_disconnect: %d requests of MPIX_Isend_enqueue or MPIX_Irecv_enqueue are "
                 "open on the communicator; call MPIX_Wait_enqueue for each first",
                 open);
        return xm_raise(comm, xcclInvalidUsage, text);
    }
    if (open > 0) {
        pthread_mutex_lock(&lock);
        sc->freed = true;
        pthread_mutex_unlock(&lock);
        *kept_p = true;
        return MPI_SUCCESS;
    }
    xcclResult_t res = drain(sc);
    if (res != xcclSuccess) {
        return xm_raise(comm, res, xc_last_detail());
    }
    extract(sc);
    destroy(sc);
    return MPI_SUCCESS;
}

void xm_streams_finalize(void)
{
    struct xm_stream_comm *sc;

    for (sc = all; sc != NULL; sc = sc->next) {
        if (drain(sc) != xcclSuccess) {
            xc_warn("MPI_Finalize: enqueued work is not over: %s", xc_last_detail());
        }
    }
    xm_runner_stop(); /* before what it uses of the communicators is gone */
    while ((sc = all) != NULL) {
        extract(sc);
        if (sc->xm != NULL) {
            xm_comm_unuse(sc->xm);
            sc->xm = NULL;
        }
        sc->inner =
            XM_HANDLE(MPI_COMM_NULL); /* it goes with MPI, as the communicator itself does */
        if ((sc->held == NULL) && (sc->captured == NULL)) {
            destroy(sc);
        } /* else graphs, or what could not be waited for, may still use it */
    }
}
