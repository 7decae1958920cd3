/* SPDX-License-Identifier: BSD-3-Clause */
#include "direct/direct.h"

#include <limits.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/environment.h"
#include "base/launch.h"
#include "base/log.h"
#include "base/params.h"
#include "comms/agree.h"
#include "comms/node.h"
#include "comms/order.h"

/* HIDDEN: another rank's. NONE: it has none itself. */
enum { SLOTS_HIDDEN, SLOTS_NONE, SLOTS_ALL };

/* What a rank says of itself. */
struct says {
    int32_t       state; /* enum xm_arena_state */
    int32_t       slots; /* does it see those of all ranks? */
    int32_t       full;  /* has it no room for another communicator? */
    uint32_t      first; /* least number of an operation in its workspace */
    uint32_t      last;  /* and the largest */
    int32_t       num_opened;
    int32_t       crowd; /* ranks that may share its device at once, or IN_TURNS */
    int32_t       job;   /* processes started with it, or 0 */
    int32_t       device;
    int32_t       given; /* XCCL_LOCAL_DEVICE, if it is another one; else -1 */
    uint64_t      key, offset;
    uint64_t      saving_us; /* in the operation that asks */
    struct xc_ipc ipc;
    uint64_t      opened[XM_ARENA_OPENED];
    unsigned char uuid[XC_DEVICE_UUID_BYTES];
    char          why[96]; /* NEVER */
};

_Static_assert(offsetof(struct xm_arena_words, trouble) ==
                   offsetof(struct xm_arena_words, done) + sizeof(uint32_t),
               "as the kernels write it");

/* Of several communicators' devices, where they have been seen all; 0: they have not. */
static int known_crowd; /* atomic */

/* Ranks of a device that are reckoned with until they are known, and at most. */
enum { MOST_CROWDED = 16, IN_TURNS = -1 };
enum { KERNELS_OF_A_RANK = 2, JOBS = 2 };

/* Processes that the launcher started with this one; 0: it does not say. */
static int job_size(void)
{
    struct xc_launch launch;

    return (xc_launch_read(&launch) && !launch.at_least && (launch.size > 0)) ? launch.size : 0;
}

static int crowd_of(const struct xc_device_ops *dev, int device)
{
    int known = __atomic_load_n(&known_crowd, __ATOMIC_RELAXED), size = job_size();

    bool at_once = (dev->runs_processes_at_once != NULL) && dev->runs_processes_at_once(device);
    if (!at_once) {
        return IN_TURNS;
    }
    if (known > 0) {
        return known;
    }
    return ((size > 0) && (size < MOST_CROWDED)) ? size : MOST_CROWDED;
}

static bool wanted(const struct xm_comm *xm)
{
    return (xc_params()->direct != XC_DIRECT_OFF) && (xc_params()->route == XC_ROUTE_XCCL) &&
           (xm->size > 1) && (xm->size <= XK_MAX_RANKS) && (xm->group != 0) &&
           (xm->one_node || xm->slots_agreed);
}

static struct xm_direct *new_direct(struct xm_arena *a, const struct xc_device_ops *dev, int device,
                                    uint32_t size)
{
    static uint32_t   serial; /* atomic */
    struct xm_direct *d = calloc(1, sizeof(*d));

    if (d != NULL) {
        *d = (struct xm_direct){.arena = a,
                                .kernels = xm_arena_kernels(a),
                                .dev = dev,
                                .device = device,
                                .size = size,
                                .serial = __atomic_add_fetch(&serial, 1, __ATOMIC_RELAXED),
                                .users = 1};
    }
    return d;
}

static xcclResult_t take_queue(struct xm_direct *d)
{
    void        *saved;
    xcclResult_t res = d->dev->enter(d->device, &saved);

    if (res == xcclSuccess) {
        res = xm_arena_take_queue(d->arena, &d->queue);
        d->dev->leave(saved);
    }
    return res;
}

/* Those that are no rank's: all, without any words of the ranks. */
static void let_go(struct xm_direct *d, const struct says *all, int size)
{
    int kept = 0;

    for (int i = 0; i < d->num_used; i++) {
        bool needed = false;
        for (int k = 0; k < size; k++) {
            needed = needed || (all[k].key == d->used[i]);
        }
        if (needed) {
            d->used[kept++] = d->used[i];
        } else {
            xm_arena_let_go(d->arena, d->used[i]);
        }
    }
    d->num_used = kept;
}

static void give_back(struct xm_direct *d, uint32_t size)
{
    if (!xm_direct_is_broken(d) && !xm_direct_lost(d)) {
        let_go(d, NULL, 0);
        xm_arena_give(d->arena, d->offset, xk_workspace_bytes(size), d->number);
        xm_arena_give_words(d->arena, d->at);
        if (d->queue.stream != NULL) {
            xm_arena_give_queue(d->arena, &d->queue);
        }
    }
    free(d);
}

/* Take a workspace to offer; kept in xm->direct until the ranks have judged. */
static enum xm_arena_state offer(struct xm_comm *xm, struct xm_arena *a,
                                 const struct xc_device_ops *dev, int device, struct says *mine)
{
    struct xm_direct *d = new_direct(a, dev, device, (uint32_t)xm->size);
    size_t            bytes = xk_workspace_bytes((uint32_t)xm->size);

    if (d == NULL) {
        return XM_ARENA_LATER;
    }
    enum xm_arena_room room = XM_ARENA_NO_ROOM;
    d->at = xm_arena_take_words(a);
    if (d->at >= 0) {
        room = xm_arena_take(a, bytes, &d->offset, &mine->first);
    }
    if (room != XM_ARENA_ROOM) {
        if (d->at >= 0) {
            xm_arena_give_words(a, d->at);
        }
        free(d);
        mine->full = (room == XM_ARENA_NO_ROOM);
        return mine->full ? XM_ARENA_READY : XM_ARENA_LATER;
    }
    d->words = xm_arena_words(a, d->at);
    d->finished = xm_arena_finished(a, d->at);
    d->number = mine->first - 1;
    if (take_queue(d) != xcclSuccess) { /* without one no other rank can have this path either */
        xc_warn("no stream for the direct path: %s", xc_last_detail());
        give_back(d, (uint32_t)xm->size);
        mine->full = 1;
        return XM_ARENA_READY;
    }
    xm->direct = d;
    mine->key = xm_arena_key(a);
    mine->offset = d->offset;
    mine->last = xm_kernels_last_number(d->kernels);
    mine->ipc = *xm_arena_ipc(a);
    mine->num_opened = d->num_used = xm_arena_list_opened(a, d->used);
    memcpy(mine->opened, d->used, sizeof(mine->opened));
    return XM_ARENA_READY;
}

static bool           apart; /* peers are not to be reached */
static pthread_once_t apart_once = PTHREAD_ONCE_INIT;

/* From files, while ranks may ask each other thousands of times: once, as NCCL does. */
static void find_apart(void)
{
    apart = xc_peers_disabled();
}

/*
 * What keeps it from being used by default: a path that may not work. ROCm's memory is not seen by
 * kernels of other devices while they run, unless it is allocated for that.
 */
static const char *unless_asked_for(const struct xc_device_ops *dev)
{
    if (xc_params()->direct == XC_DIRECT_ON) {
        return NULL;
    }
    if (strcmp(dev->name, "rocm") == 0) {
        return "nobody has tried it on ROCm; XCCL_DIRECT=on does";
    }
    pthread_once(&apart_once, find_apart);
    return apart ? "NCCL_P2P_DISABLE is set" : NULL;
}

/* The device that the launcher has chosen for this rank, if the program works on another one. */
static int given_instead_of(const struct xc_device_ops *dev, int device)
{
    long given = xc_params()->local_device;
    int  count = 0;
    bool there = (given >= 0) && (dev->count(&count) == xcclSuccess) && (given < count);

    return (there && (given != device)) ? (int)given : -1;
}

static void fill(struct xm_comm *xm, const struct xc_device_ops *dev, int device, void *out)
{
    struct says     *mine = out;
    struct xm_arena *a = NULL;

    memset(mine, 0, sizeof(*mine));
    mine->saving_us = xm->saving_us;
    mine->slots = (xm->slots != NULL) ? SLOTS_ALL : (xm->slot < 0) ? SLOTS_NONE : SLOTS_HIDDEN;
    mine->state = XM_ARENA_NEVER;
    if ((dev == NULL) || (device < 0)) {
        snprintf(mine->why, sizeof(mine->why), "no device is in use");
        return;
    }
    const char *why =
        xm_comm_is_broken(xm) ? "it has given up the communicator" : unless_asked_for(dev);
    if (why != NULL) {
        snprintf(mine->why, sizeof(mine->why), "%s", why);
        return;
    }
    mine->crowd = crowd_of(dev, device);
    mine->job = job_size();
    mine->device = device;
    mine->given = given_instead_of(dev, device);
    if (dev->uuid_of(device, mine->uuid) == xcclSuccess) {
        a = xm_arena_of(dev, device);
    }
    if (a == NULL) {
        snprintf(mine->why, sizeof(mine->why), "too many devices");
        return;
    }
    mine->state = (int32_t)xm_arena_state(a);
    if (mine->state == XM_ARENA_NEVER) {
        snprintf(mine->why, sizeof(mine->why), "%s", xm_arena_reason(a));
    } else if (xm_arena_turns_away(a)) {
        mine->state = XM_ARENA_NEVER;
        snprintf(mine->why, sizeof(mine->why), "the device cannot reach another's memory");
    } else if (mine->state == XM_ARENA_READY) {
        mine->state = (int32_t)offer(xm, a, dev, device, mine);
    }
}

static enum xm_joining never(struct xm_comm *xm, int rank, const char *why)
{
    snprintf(xm->direct_reason, sizeof(xm->direct_reason), "rank %d: %s", rank, why);
    if (xm->rank == 0) {
        xc_info("no direct path on %d ranks: %s", xm->size, xm->direct_reason);
    }
    return XM_JOIN_NEVER;
}

static bool has_opened(const struct says *s, uint64_t key)
{
    for (int i = 0; i < s->num_opened; i++) {
        if (s->opened[i] == key) {
            return true;
        }
    }
    return s->key == key;
}

/* A rank without a slot is why all others do not see it. */
static enum xm_joining never_without_slots(struct xm_comm *xm, const struct says *all, int rank)
{
    for (int i = 0; i < xm->size; i++) {
        if (all[i].slots == SLOTS_NONE) {
            return never(xm, i,
                         "256 of its communicators use device memory already, or it has no shared "
                         "memory; free communicators");
        }
    }
    return never(xm, rank,
                 "it does not see the memory of all processes of the node: they are "
                 "another user's, or need one user namespace (apptainer exec --sharens)");
}

/* The first verdict that any rank's words ask for, and the same on all. */
static enum xm_joining verdict(struct xm_comm *xm, const struct says *all)
{
    enum xm_joining res = XM_JOINED;

    for (int i = 0; i < xm->size; i++) {
        if (all[i].slots != SLOTS_ALL) {
            return never_without_slots(xm, all, i);
        }
        if (all[i].state == XM_ARENA_NEVER) {
            return never(xm, i, all[i].why);
        }
        if (all[i].state != XM_ARENA_READY) {
            res = XM_JOIN_LATER;
        }
    }
    for (int i = 0; (res == XM_JOINED) && (i < xm->size); i++) {
        res = (all[i].full != 0) ? XM_JOIN_FULL : res;
    }
    for (int i = 0; (res == XM_JOINED) && (i < xm->size); i++) {
        for (int j = 0; j < xm->size; j++) {
            res = has_opened(&all[i], all[j].key) ? res : XM_JOIN_LATER;
        }
    }
    return res;
}

/* Map what is not mapped yet, before the ranks are asked again. */
static void open_others(struct xm_direct *d, const struct says *all, int size)
{
    struct xm_arena_peer peers[XK_MAX_RANKS];
    int                  n = 0;
    bool                 all_there = true;

    for (int i = 0; i < size; i++) {
        if (all[i].state == XM_ARENA_READY) {
            all_there = all_there && (xm_arena_opened(d->arena, all[i].key) != NULL);
            peers[n++] = (struct xm_arena_peer){all[i].key, all[i].ipc};
        }
    }
    if (!all_there) {
        xm_arena_open(d->arena, peers, n);
    }
}

/* The largest number of ranks on one device, among those of the communicator; do they take turns?
 */
static int most_on_a_device(const struct xm_comm *xm, const struct says *all, bool *in_turns_p)
{
    int most = 1;

    *in_turns_p = false;

    for (int i = 0; i < xm->size; i++) {
        int n = 0;
        for (int j = 0; j < xm->size; j++) {
            n += (memcmp(all[i].uuid, all[j].uuid, sizeof(all[i].uuid)) == 0);
        }
        *in_turns_p = *in_turns_p || ((n > 1) && (all[i].crowd == IN_TURNS));
        most = (n > most) ? n : most;
    }
    return most;
}

/*
 * A program that takes device 0 on each rank works, slowly. Of ranks that share a device, although
 * the first of them was given another, that one says so.
 */
static bool warn_of_astray(const struct xm_comm *xm, const struct says *all)
{
    static bool said; /* atomic */

    for (int i = 0; i < xm->size; i++) {
        for (int j = 0; (all[i].given >= 0) && (j < xm->size); j++) {
            if ((i == j) || (memcmp(all[i].uuid, all[j].uuid, sizeof(all[i].uuid)) != 0)) {
                continue;
            }
            if ((i == xm->rank) && !__atomic_exchange_n(&said, true, __ATOMIC_RELAXED)) {
                xc_warn("ranks %d and %d share device %d, but XCCL_LOCAL_DEVICE gives rank %d "
                        "device %d; for a program that takes device 0 on each rank use xccl-run "
                        "--gpus first",
                        i, j, all[i].device, i, all[i].given);
            }
            return true;
        }
    }
    return false;
}

/* The same where xccl-run gives no devices: some are left over. */
static void warn_of_idle(const struct xm_comm *xm, const struct says *all)
{
    static bool said; /* atomic */
    int         seen = 0, used = 0;

    for (int i = 0; i < xm->size; i++) {
        int j = 0;
        while ((j < i) && (memcmp(all[i].uuid, all[j].uuid, sizeof(all[i].uuid)) != 0)) {
            j++;
        }
        used += (j == i);
    }
    if ((xm->rank != 0) || (xc_params()->local_device >= 0) || (used == xm->size) ||
        (xm->direct->dev->count(&seen) != xcclSuccess) || (seen <= used) ||
        __atomic_exchange_n(&said, true, __ATOMIC_RELAXED)) {
        return;
    }
    xc_warn(
        "%d ranks share %d of the %d devices that rank 0 sees: put xccl-run between the launcher "
        "and the program, with --gpus first if that takes device 0 on each rank",
        xm->size, used, seen);
}

/* Are these all processes of the job? Spawned ones have another job than the ranks beside them. */
static bool is_whole_job(const struct xm_comm *xm, const struct says *all)
{
    bool whole = true;

    for (int i = 0; i < xm->size; i++) {
        whole = whole && (all[i].job == xm->size);
    }
    return whole;
}

/*
 * How many blocks each rank's kernels may have, so that all find room. Two kernels of a rank may
 * wait at once, one of them lingering; and another job may be on the device.
 */
static void divide_device(struct xm_comm *xm, const struct says *all)
{
    struct xm_direct *d = xm->direct;
    unsigned          room = xm_kernels_room(d->kernels);
    int               most = most_on_a_device(xm, all, &d->in_turns), crowd = most;

    bool whole = is_whole_job(xm, all);
    if (!warn_of_astray(xm, all) && whole) {
        warn_of_idle(xm, all);
    }
    if (whole) {
        __atomic_store_n(&known_crowd, crowd, __ATOMIC_RELAXED);
    }
    for (int i = 0; (i < xm->size) && !whole; i++) {
        crowd = (all[i].crowd > crowd) ? all[i].crowd : crowd;
    }
    unsigned each = room / (KERNELS_OF_A_RANK * JOBS * (unsigned)crowd);
    xm->doubled = (most > 1) && !d->in_turns;
    d->shared = (crowd > 1);
    /* Where processes run at once, another job may be there even if these have devices each. */
    d->most_blocks = (room == 0) ? UINT_MAX : (each > 0) ? each : 1;
    bool first = (xm->rank == 0); /* all ranks know the same */
    if (d->in_turns && first) {
        xc_info(
            "ranks share a device that gives its processes turns: blocking collectives of %ld bytes "
            "and more go between their buffers (XCCL_DIRECT_TURNS), others through host memory; "
            "under MPS all would be fast",
            xc_params()->direct_turns);
    }
    if (d->shared) {
        xm_order_share();
        if (first && (room > 0)) {
            xc_info("up to %d ranks share a device that has room for %u blocks: kernels that wait "
                    "for others have at most %u",
                    crowd, room, d->most_blocks);
        } else if (first) {
            xc_info("up to %d ranks share a device", crowd);
        }
    }
}

static void settle(struct xm_comm *xm, const struct says *all)
{
    struct xm_direct *d = xm->direct;
    struct xk_ranks  *r = &d->words->ranks;
    uint32_t          first = 1, last = XK_LAST_NUMBER;

    for (int i = 0; i < xm->size; i++) {
        r->workspace[i] =
            (uint64_t)(uintptr_t)xm_arena_opened(d->arena, all[i].key) + all[i].offset;
        first = (all[i].first > first) ? all[i].first : first;
        last = (all[i].last < last) ? all[i].last : last;
    }
    let_go(d, all, xm->size);
    r->rank = (uint32_t)xm->rank;
    r->size = (uint32_t)xm->size;
    r->abort = (uint64_t)(uintptr_t)&d->words->abort;
    d->number = first - 1;
    d->last = last;
    d->words->done = first - 1;
    divide_device(xm, all);
}

static enum xm_joining judge(struct xm_comm *xm, const void *words)
{
    const struct says *all = words;
    enum xm_joining    res = verdict(xm, all);
    bool               all_see = true;

    xm->worth_us = 0;
    for (int i = 0; i < xm->size; i++) {
        all_see = all_see && (all[i].slots == SLOTS_ALL);
        xm->worth_us = (all[i].saving_us > xm->worth_us) ? all[i].saving_us : xm->worth_us;
    }
    xm_node_apply(xm, all_see);
    if (xm->direct == NULL) {
        return res;
    }
    if (res == XM_JOINED) {
        settle(xm, all);
        return res;
    }
    if (res == XM_JOIN_LATER) {
        let_go(xm->direct, all, xm->size); /* one that nobody uses may be in the way */
        open_others(xm->direct, all, xm->size);
    }
    give_back(xm->direct, (uint32_t)xm->size);
    xm->direct = NULL;
    return res;
}

/* Counted alike on all ranks. */
static bool spent(const struct xm_comm *xm)
{
    return (xm->direct != NULL) && (xm->direct->number >= xm->direct->last);
}

static void leave(struct xm_comm *xm)
{
    struct xm_direct *d = xm->direct;

    xm->direct = NULL;
    xm_direct_release(d);
}

void xm_direct_init(void)
{
    static const struct xm_join join = {sizeof(struct says), wanted, fill, judge, spent, leave};

    xm_comm_join = &join;
}

void xm_direct_keep(struct xm_direct *d)
{
    __atomic_add_fetch(&d->users, 1, __ATOMIC_RELAXED);
}

struct xm_direct *xm_direct_hold(struct xm_comm *xm)
{
    if (xm->direct != NULL) {
        xm_direct_keep(xm->direct);
    }
    return xm->direct;
}

void xm_direct_release(struct xm_direct *d)
{
    if (__atomic_sub_fetch(&d->users, 1, __ATOMIC_ACQ_REL) == 0) {
        give_back(d, d->size);
    }
}

bool xm_direct_lost(const struct xm_direct *d)
{
    return xm_arena_lost(d->arena);
}

void xm_direct_break(struct xm_direct *d)
{
    __atomic_store_n(&d->broken, true, __ATOMIC_RELEASE);
    if (!xm_direct_lost(d)) {
        __atomic_store_n(&d->words->abort, 1, __ATOMIC_RELEASE);
    }
}

bool xm_direct_is_broken(const struct xm_direct *d)
{
    return __atomic_load_n(&d->broken, __ATOMIC_ACQUIRE);
}

uint32_t xm_direct_next(struct xm_direct *d, uint32_t numbers)
{
    d->number += numbers;
    return d->number;
}

bool xm_direct_has_numbers(const struct xm_direct *d, uint32_t numbers)
{
    return d->last - d->number >= numbers;
}

void xm_direct_spend(struct xm_direct *d)
{
    d->number = d->last;
}

void xm_direct_unused(struct xm_direct *d)
{
    d->number--;
}

bool xm_direct_done(const struct xm_direct *d, uint32_t number)
{
    return (int32_t)(__atomic_load_n(&d->words->done, __ATOMIC_ACQUIRE) - number) >= 0;
}

bool xm_direct_in_trouble(const struct xm_direct *d, uint32_t number)
{
    return __atomic_load_n(&d->words->trouble, __ATOMIC_ACQUIRE) == number;
}

void xm_direct_set_done(struct xm_direct *d, uint32_t number)
{
    __atomic_store_n(&d->words->done, number, __ATOMIC_RELEASE);
}

bool xm_direct_alone(const struct xm_direct *d, uint32_t number)
{
    return xm_direct_done(d, number - 1);
}
