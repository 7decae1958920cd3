/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the ranks of a communicator agree on, without any of them ever waiting where MPI forbids it.
 *
 * Agreements are non-blocking collectives on the program's own communicator, posted inside
 * operations of the same number on every rank, so they stand in the same order everywhere. The
 * result of one counts from an operation on that is fixed when it is posted: at once if the
 * operation is a blocking one, which may wait for the others; else some operations later, because a
 * rank may run ahead of others by that many without waiting.
 *
 *   first operation on device memory      cards: environment, library, idle vendor communicators
 *   the saving has paid for a creation    creation begins: id and devices are exchanged, a thread
 *                                         joins; operations are staged meanwhile
 *   later, in growing distances           status: are all ranks done, or has one failed?
 *
 * So nobody waits for the vendor's library, and a rank whose join fails or never ends keeps no
 * other rank waiting.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "base/params.h"
#include "comms/comm.h"
#include "comms/wait.h"

/* NCCL_MULTI_RANK_GPU_ENABLE came with this one: it may share a device, so it decides itself. */
enum { NCCL_MULTI_RANK_VERSION = 23003 };

/* What MPI_Finalize waits for agreements under way, whose other ranks come to it as well. */
static const uint64_t finalize_ns = 20000000000u;

/* How many operations a rank may be ahead of an agreement. */
enum { RUN_AHEAD = 32 };

/*
 * What making a communicator costs until one was made: 4 H200s, NCCL 2.28.3: 1.0 s at the first
 * collective and 0.4 s to destroy.
 */
static const double first_guess_us = 1.4e6;
static int          numbered; /* atomic: communicators agreed on */
static uint64_t     measured_us; /* atomic: the longest making so far; 0: none */

uint64_t (*xm_comm_arithmetic)(void);

/* Between two looks for a rank that passes host memory. */
static const uint64_t look_ns = 300000000u;

struct suspicion {
    uint64_t begun, last;
    int      rank;
};

enum { ROUTE, CCL, TUNE, CHECK, MEMORY, CREATE, SCRATCH, NUM_VARIABLES };

struct card {
    uint64_t variables[NUM_VARIABLES];
    uint64_t arithmetic; /* what MPI does with integers here */
    uint64_t idle;       /* id of a vendor communicator of these ranks that could be used again */
    uint64_t cost_us;
    int      world_rank;
    int      number; /* a communicator's, on the rank that is its first */
    struct xm_board_address board;
    int      result; /* of this rank's look at the vendor's library */
    int      version;
    char     library[16];
    char     detail[120];
};

struct where {
    int           has_device;
    unsigned char uuid[XC_DEVICE_UUID_BYTES];
};

struct id_message {
    int          result;
    xcclUniqueId id;
};

/* Outcomes in the order in which they prevail: the least of all ranks' is everybody's. */
enum outcome { FAILED, RETRY, PENDING, DONE };

struct xm_creation {
    MPI_Request                 id_request, where_request;
    struct id_message           message;
    struct where                mine, *all;
    const struct xc_device_ops *dev;
    int                         device;
    struct xm_vendor_job       *job;
    enum outcome                outcome;
    struct xm_vendor           *vendor;
    char                        detail[200];
};

static bool have_seats; /* atomic */

bool xm_comms_have_seats(void)
{
    return __atomic_load_n(&have_seats, __ATOMIC_ACQUIRE);
}

static xcclResult_t mpi_failed(const char *what)
{
    return xc_fail(xcclInternalError, "%s failed while the ranks of a communicator agreed", what);
}

/* FNV-1a: equal texts give equal numbers, and that is all that is asked of it. */
static uint64_t hash_text(const char *text)
{
    uint64_t hash = 14695981039346656037u;

    for (; (text != NULL) && (*text != '\0'); text++) {
        hash = (hash ^ (unsigned char)*text) * 1099511628211u;
    }
    return hash;
}

static void fill_card(struct xm_comm *xm, struct card *card)
{
    const struct xc_params *p = xc_params();
    const char             *name = "";

    memset(card, 0, sizeof(*card));
    card->variables[ROUTE] = (uint64_t)p->route;
    card->variables[CCL] = (uint64_t)p->ccl;
    card->variables[TUNE] = hash_text(p->tune);
    card->variables[CHECK] = (uint64_t)p->check;
    card->variables[MEMORY] = (uint64_t)p->memory;
    card->variables[CREATE] = (uint64_t)p->comm_create;
    card->variables[SCRATCH] = (uint64_t)p->scratch;
    card->arithmetic = (xm_comm_arithmetic != NULL) ? xm_comm_arithmetic() : 0;
    card->cost_us = __atomic_load_n(&measured_us, __ATOMIC_RELAXED);
    card->number = __atomic_add_fetch(&numbered, 1, __ATOMIC_RELAXED);
    int *ranks = xm_world_ranks(xm->comm, xm->size);
    card->world_rank = (ranks != NULL) ? ranks[xm->rank] : -1;
    card->idle = xm_vendor_idle(ranks, xm->size);
    free(ranks);
    xm_board_take(&card->board);
    xm->slot = card->board.slot;
    if ((p->route != XC_ROUTE_XCCL) || (p->ccl == XC_CCL_NONE)) {
        return;
    }
    card->result = (int)xcclGetBackend(&name, &card->version);
    snprintf(card->library, sizeof(card->library), "%s", (card->result == 0) ? name : "");
    snprintf(card->detail, sizeof(card->detail), "%.119s",
             (card->result != xcclSuccess) ? xc_last_detail() : "");
}

static xcclResult_t fail_comm(struct xm_comm *xm, const char *text)
{
    static bool warned;

    snprintf(xm->reason, sizeof(xm->reason), "%s", text);
    xm->state = XM_COMM_FAILED;
    if (xm->rank == 0) {
        bool first = !__atomic_exchange_n(&warned, true, __ATOMIC_ACQ_REL);
        xc_log(first ? XC_LOG_WARN : XC_LOG_INFO,
               "all %d ranks leave collectives on device memory to MPI: %s", xm->size, xm->reason);
    }
    return xcclSuccess;
}

/* An error on all ranks: a launcher that passes a variable to some of them makes the ranks choose
 * differently and wait for each other. */
static xcclResult_t judge_variables(const struct card *cards, int size)
{
    static const char *const names[NUM_VARIABLES] = {"XCCL_ROUTE",  "XCCL_CCL",
                                                     "XCCL_TUNE",   "XCCL_CHECK",
                                                     "XCCL_MEMORY", "XCCL_COMM_CREATE",
                                                     "XCCL_SCRATCH"};

    for (int v = 0; v < NUM_VARIABLES; v++) {
        int like_first = 0, differs = -1;
        for (int r = 0; r < size; r++) {
            if (cards[r].variables[v] == cards[0].variables[v]) {
                like_first++;
            } else if (differs < 0) {
                differs = r;
            }
        }
        if (differs >= 0) {
            return xc_fail(xcclInvalidUsage,
                           "%s on rank %d differs from other ranks; pass it to all of them (mpirun "
                           "-x %s, srun --export=ALL)",
                           names[v], (2 * like_first < size) ? 0 : differs, names[v]);
        }
    }
    return xcclSuccess;
}

static xcclResult_t judge_libraries(struct xm_comm *xm, const struct card *cards)
{
    char text[256];

    for (int i = 0; i < xm->size; i++) {
        if (cards[i].result != xcclSuccess) {
            snprintf(text, sizeof(text), "rank %d: %s", i, cards[i].detail);
            return fail_comm(xm, text);
        }
    }
    for (int i = 1; i < xm->size; i++) {
        if ((strcmp(cards[i].library, cards[0].library) != 0) ||
            (cards[i].version != cards[0].version)) {
            snprintf(text, sizeof(text),
                     "rank 0 loaded %s %d and rank %d loaded %s %d; load one library on all ranks, "
                     "for instance with XCCL_CCL_LIBRARY",
                     cards[0].library, cards[0].version, i, cards[i].library, cards[i].version);
            return fail_comm(xm, text);
        }
    }
    return xcclSuccess;
}

static void take_idle(struct xm_comm *xm, const struct card *cards)
{
    for (int i = 0; i < xm->size; i++) {
        if ((cards[i].idle == 0) || (cards[i].idle != cards[0].idle)) {
            return;
        }
    }
    /* The program's threads may use two communicators of the same ranks at once; then the ranks
     * that lost the race say so in the status that follows. */
    struct xm_creation *c = calloc(1, sizeof(*c));
    if (c == NULL) {
        return;
    }
    c->vendor = xm_vendor_reuse(cards[0].idle);
    c->outcome = (c->vendor != NULL) ? DONE : RETRY;
    c->id_request = c->where_request = XM_HANDLE(MPI_REQUEST_NULL);
    xm->creation = c;
    xm->state = XM_COMM_CREATING;
    xm->create_begun = xm->device_calls;
    xm->next_checkin = xm->device_calls;
}

/* Whether all are on one node every rank sees; whether it reached all of them, they agree later. */
static void find_seats(struct xm_comm *xm, const struct card *cards)
{
    struct xm_board_address *addresses = malloc((size_t)xm->size * sizeof(*addresses));

    xm->one_node = (addresses != NULL) && (xm->size > 1);
    for (int i = 0; (i < xm->size) && (addresses != NULL); i++) {
        addresses[i] = cards[i].board;
        xm->one_node = xm->one_node && (cards[i].board.host == cards[0].board.host);
    }
    if (xm->one_node) {
        xm->seats = xm_seats_open(addresses, xm->size, xm->rank);
    }
    free(addresses);
}

/* In a blocking operation, once for a communicator. */
static xcclResult_t agree_on_seats(struct xm_comm *xm)
{
    int mine = (xm->seats != NULL), all = 0;

    xm->one_node = false; /* asked */
    if (xm_pmpi.Allreduce(&mine, &all, 1, XM_HANDLE(MPI_INT), XM_HANDLE(MPI_MIN), xm->comm) !=
        MPI_SUCCESS) {
        return mpi_failed("MPI_Allreduce");
    }
    xm->seats_agreed = (all != 0);
    if (xm->seats_agreed) {
        __atomic_store_n(&have_seats, true, __ATOMIC_RELEASE);
    }
    return xcclSuccess;
}

static xcclResult_t apply_cards(struct xm_comm *xm)
{
    const struct card *cards = xm->checkin.all;
    uint64_t           cost = 0;
    xcclResult_t       res = judge_variables(cards, xm->size);

    if (res != xcclSuccess) {
        return res;
    }
    for (int i = 0; i < xm->size; i++) {
        cost = (cards[i].cost_us > cost) ? cards[i].cost_us : cost;
        xm->integers_differ =
            xm->integers_differ || (cards[i].arithmetic != cards[0].arithmetic);
    }
    if (xm->comm != XM_HANDLE(MPI_COMM_WORLD)) {
        snprintf(xm->id, sizeof(xm->id), "%d.%d", cards[0].world_rank, cards[0].number);
    }
    find_seats(xm, cards);
    xm->saved_us = -((cost > 0) ? (double)cost : first_guess_us);
    xm->state = XM_COMM_KNOWN;
    res = judge_libraries(xm, cards);
    if (xm->state == XM_COMM_KNOWN) {
        take_idle(xm, cards);
    }
    return res;
}

static void end_checkin(struct xm_comm *xm)
{
    free(xm->checkin.mine);
    free(xm->checkin.all);
    xm->checkin = (struct xm_checkin){.kind = XM_CHECKIN_NONE};
}

static xcclResult_t make_room(struct xm_comm *xm, size_t mine, size_t all)
{
    xm->checkin.mine = calloc(1, mine);
    xm->checkin.all = calloc(1, all);
    if ((xm->checkin.mine == NULL) || (xm->checkin.all == NULL)) {
        end_checkin(xm);
        return xc_fail(xcclSystemError, "out of memory for %d ranks", xm->size);
    }
    return xcclSuccess;
}

static xcclResult_t post_cards(struct xm_comm *xm)
{
    int          bytes = (int)sizeof(struct card);
    xcclResult_t res = make_room(xm, sizeof(struct card), sizeof(struct card) * (size_t)xm->size);

    if (res != xcclSuccess) {
        return res;
    }
    fill_card(xm, xm->checkin.mine);
    if (xm_pmpi.Iallgather(xm->checkin.mine, bytes, XM_HANDLE(MPI_BYTE), xm->checkin.all, bytes,
                           XM_HANDLE(MPI_BYTE), xm->comm, &xm->checkin.request) != MPI_SUCCESS) {
        end_checkin(xm);
        return mpi_failed("MPI_Iallgather");
    }
    xm->checkin.kind = XM_CHECKIN_CARDS;
    xm->checkin.applies = xm->device_calls + RUN_AHEAD;
    return xcclSuccess;
}

/* {outcome and rank, negative cost}: the least of each is what counts. */
enum { STATUS_OUTCOME, STATUS_COST, STATUS_TERMS };

static xcclResult_t post_status(struct xm_comm *xm)
{
    xcclResult_t res =
        make_room(xm, STATUS_TERMS * sizeof(int64_t), STATUS_TERMS * sizeof(int64_t));

    if (res != xcclSuccess) {
        return res;
    }
    int64_t *mine = xm->checkin.mine;
    xm_comm_advance(xm);
    mine[STATUS_OUTCOME] = ((int64_t)xm->creation->outcome << 32) | xm->rank;
    mine[STATUS_COST] = -(int64_t)__atomic_load_n(&measured_us, __ATOMIC_RELAXED);
    if (xm_pmpi.Iallreduce(mine, xm->checkin.all, STATUS_TERMS, XM_HANDLE(MPI_INT64_T),
                           XM_HANDLE(MPI_MIN), xm->comm, &xm->checkin.request) != MPI_SUCCESS) {
        end_checkin(xm);
        return mpi_failed("MPI_Iallreduce");
    }
    uint64_t since = xm->device_calls - xm->create_begun;
    xm->checkin.kind = XM_CHECKIN_STATUS;
    xm->checkin.applies = xm->device_calls + RUN_AHEAD;
    xm->next_checkin = xm->device_calls + 1 + since / 4;
    return xcclSuccess;
}

/*
 * Agreements of communicators that are gone: the other ranks have posted their part, or will, so
 * they end; until then the memory is MPI's. At the latest in MPI_Finalize.
 */
struct orphan {
    MPI_Request    request;
    void          *memory[2];
    struct orphan *next;
};
static struct orphan  *orphans;
static pthread_mutex_t orphans_lock = PTHREAD_MUTEX_INITIALIZER;

static void free_orphan(struct orphan *o)
{
    free(o->memory[0]);
    free(o->memory[1]);
    free(o);
}

/* Leave a request and the memory that it uses to itself. */
static void leave(MPI_Request request, void *first, void *second)
{
    struct orphan *o = malloc(sizeof(*o));

    if (o == NULL) {
        return; /* the memory stays */
    }
    *o = (struct orphan){request, {first, second}, NULL};
    pthread_mutex_lock(&orphans_lock);
    o->next = orphans;
    orphans = o;
    pthread_mutex_unlock(&orphans_lock);
}

/* Free those that are over; true if none is left. */
static bool sweep_orphans(void)
{
    int over;

    pthread_mutex_lock(&orphans_lock);
    for (struct orphan **at = &orphans; *at != NULL;) {
        struct orphan *o = *at;
        over = 1;
        xm_pmpi.Test(&o->request, &over, MPI_STATUS_IGNORE);
        if (over) {
            *at = o->next;
            free_orphan(o);
        } else {
            at = &o->next;
        }
    }
    bool none = (orphans == NULL);
    pthread_mutex_unlock(&orphans_lock);
    return none;
}

void xm_agree_finalize(void)
{
    struct xm_wait wait = xm_wait_begin("for agreements of communicators that are gone");
    uint64_t       begun = xm_now_ns();

    wait.limit = 0;
    while (!sweep_orphans() && (xm_now_ns() - begun < finalize_ns)) {
        xm_wait_step(&wait);
    }
}

static void end_creation(struct xm_comm *xm)
{
    struct xm_creation *c = xm->creation;

    if (c == NULL) {
        return;
    }
    if (c->job != NULL) {
        xm_vendor_abandon(c->job);
    }
    if (c->vendor != NULL) {
        xm_vendor_release(c->vendor);
    }
    leave(c->id_request, NULL, NULL);
    leave(c->where_request, c->all, c); /* posted last: the other is over before it */
    sweep_orphans();
    xm->creation = NULL;
}

/* Why the rank failed, from the rank to all; only where waiting is allowed. */
static void share_detail(struct xm_comm *xm, int who, bool blocking, char *text, size_t len)
{
    char detail[200] = "its messages say why";

    if (who == xm->rank) {
        snprintf(detail, sizeof(detail), "%s", xm->creation->detail);
        xc_info("no vendor communicator: %s", detail);
    }
    if (blocking) {
        xm_pmpi.Bcast(detail, (int)sizeof(detail), XM_HANDLE(MPI_BYTE), who, xm->comm);
    }
    if (strncmp(detail, "rank", 4) == 0) {
        snprintf(text, len, "%s", detail); /* it names the ranks itself */
    } else {
        snprintf(text, len, "rank %d: %s", who, detail);
    }
}

static xcclResult_t apply_status(struct xm_comm *xm, bool blocking)
{
    const int64_t *all = xm->checkin.all;
    enum outcome   outcome = (enum outcome)(all[STATUS_OUTCOME] >> 32);
    int            who = (int)(all[STATUS_OUTCOME] & 0xffffffff);
    double         cost = (double)-all[STATUS_COST];
    char           text[240];

    switch (outcome) {
    case DONE:
        xm->vendor = xm->creation->vendor;
        xm->creation->vendor = NULL;
        if (xm->vendor->world_ranks == NULL) {
            xm->vendor->world_ranks = xm_world_ranks(xm->comm, xm->size);
        }
        xm->state = XM_COMM_READY;
        end_creation(xm);
        break;
    case RETRY:
        share_detail(xm, who, blocking, xm->reason, sizeof(xm->reason));
        xm->state = XM_COMM_KNOWN;
        xm->saved_us = -((cost > 0) ? cost : first_guess_us);
        end_creation(xm);
        break;
    case FAILED:
        share_detail(xm, who, blocking, text, sizeof(text));
        end_creation(xm);
        return fail_comm(xm, text);
    default:
        break;
    }
    return xcclSuccess;
}

/*
 * A rank that passes host memory never comes to an agreement: it is in MPI, in the collective of
 * the same number. Named when seen so twice, some time apart.
 */
static xcclResult_t look_for_mixed(const struct xm_comm *xm, struct suspicion *s)
{
    enum xm_coll coll;
    uint64_t     now = xm_now_ns();

    if (s->begun == 0) {
        s->begun = s->last = now;
    }
    if ((xm->group == 0) || (now - s->last < look_ns)) {
        return xcclSuccess;
    }
    s->last = now;
    int rank = xm_board_find_busy(xm->group, xm->calls, &coll);
    if ((rank < 0) || (rank != s->rank)) {
        s->rank = rank;
        return xcclSuccess;
    }
    int mine = -1;
    xm_pmpi.Comm_rank(XM_HANDLE(MPI_COMM_WORLD), &mine);
    return xc_fail(xcclInvalidUsage,
                   "rank %d of MPI_COMM_WORLD passes host memory to %s, and rank %d device memory in "
                   "the same call; pass the same kind of memory on all ranks, or set "
                   "XCCL_MEMORY=mixed on all of them",
                   rank, xm_coll_name(coll), mine);
}

static xcclResult_t wait_for(struct xm_comm *xm, MPI_Request *request)
{
    struct suspicion s = {0, 0, -1};
    xcclResult_t     res;
    struct xm_wait wait = xm_wait_begin("for the other ranks of a communicator to come to this "
                                        "collective");
    int            over = 0;

    for (;;) {
        if (xm_pmpi.Test(request, &over, MPI_STATUS_IGNORE) != MPI_SUCCESS) {
            return mpi_failed("an agreement");
        }
        if (over) {
            return xcclSuccess;
        }
        switch (xm_wait_step(&wait)) {
        case XM_WAIT_EXPIRED:
            return xc_fail(xcclTimeout,
                           "not completed within %ld s (XCCL_TIMEOUT): a rank may be missing, dead "
                           "or in another call",
                           xc_params()->timeout);
        case XM_WAIT_LOOK:
            res = look_for_mixed(xm, &s);
            if (res != xcclSuccess) {
                return res;
            }
            break;
        default:
            break;
        }
    }
}

static xcclResult_t finish_checkin(struct xm_comm *xm, bool blocking)
{
    xcclResult_t res = wait_for(xm, &xm->checkin.request);

    if (res != xcclSuccess) {
        return res; /* MPI may still write into it */
    }
    res = (xm->checkin.kind == XM_CHECKIN_CARDS) ? apply_cards(xm) : apply_status(xm, blocking);
    end_checkin(xm);
    return res;
}

/* Both ends of a pair hear of the same devices: the same verdict on every rank. */
static void judge_devices(struct xm_creation *c, int size)
{
    const char *name;
    int         version = 0;

    for (int i = 0; i < size; i++) {
        if (!c->all[i].has_device) {
            c->outcome = RETRY; /* its buffers were empty this time, and no device was current */
            snprintf(c->detail, sizeof(c->detail),
                     "rank %d: no device is in use; the buffers of this rank are empty and no device "
                     "was made current",
                     i);
            return;
        }
    }
    if ((xcclGetBackend(&name, &version) == xcclSuccess) && (version >= NCCL_MULTI_RANK_VERSION)) {
        return;
    }
    for (int i = 1; i < size; i++) {
        for (int j = 0; j < i; j++) {
            if (memcmp(c->all[i].uuid, c->all[j].uuid, XC_DEVICE_UUID_BYTES) == 0) {
                c->outcome = FAILED;
                snprintf(c->detail, sizeof(c->detail),
                         "ranks %d and %d use the same device; give each rank a device of its own "
                         "(cudaSetDevice or hipSetDevice with the local rank, or xccl-run)",
                         j, i);
                return;
            }
        }
    }
}

static void begin_join(struct xm_comm *xm)
{
    struct xm_creation *c = xm->creation;
    xcclResult_t        res = (xcclResult_t)c->message.result;

    judge_devices(c, xm->size);
    if (c->outcome != PENDING) {
        return;
    }
    if (res != xcclSuccess) {
        xc_fail(res, "rank 0 got no unique id from the vendor's library");
    } else {
        res = xm_vendor_begin(c->dev, c->device, xm->size, xm->rank, &c->message.id, &c->job);
    }
    if (res != xcclSuccess) {
        c->outcome = FAILED;
        snprintf(c->detail, sizeof(c->detail), "%s", xc_last_detail());
    }
}

void xm_comm_advance(struct xm_comm *xm)
{
    struct xm_creation *c = xm->creation;
    int                 over = 0;

    if ((c == NULL) || (c->outcome != PENDING)) {
        return;
    }
    if (c->job == NULL) {
        if ((xm_pmpi.Test(&c->id_request, &over, MPI_STATUS_IGNORE) == MPI_SUCCESS) && over &&
            (xm_pmpi.Test(&c->where_request, &over, MPI_STATUS_IGNORE) == MPI_SUCCESS) && over) {
            begin_join(xm);
        }
        return;
    }
    if (!xm_vendor_ended(c->job)) {
        return;
    }
    uint64_t     us = (c->job->ended - c->job->begun) / 1000;
    xcclResult_t res = xm_vendor_take(c->job, &c->vendor);
    c->job = NULL;
    c->outcome = (res == xcclSuccess) ? DONE : FAILED;
    snprintf(c->detail, sizeof(c->detail), "%s", xc_last_detail());
    if (us > __atomic_load_n(&measured_us, __ATOMIC_RELAXED)) {
        __atomic_store_n(&measured_us, us, __ATOMIC_RELAXED);
    }
}

/* The exchange is posted on every rank, or the communicator could not go on. */
static xcclResult_t begin_creation(struct xm_comm *xm, const struct xc_device_ops *dev, int device)
{
    struct xm_creation *c = calloc(1, sizeof(*c));
    int                 bytes = (int)sizeof(struct where);

    if (c != NULL) {
        c->all = calloc((size_t)xm->size, sizeof(*c->all));
    }
    if ((c == NULL) || (c->all == NULL)) {
        free(c);
        return xc_fail(xcclSystemError, "out of memory for %d ranks", xm->size);
    }
    c->dev = dev;
    c->device = device;
    c->outcome = PENDING;
    if (xm->rank == 0) {
        c->message.result = (int)xcclGetUniqueId(&c->message.id);
    }
    c->mine.has_device =
        (dev != NULL) && (device >= 0) && (dev->uuid_of(device, c->mine.uuid) == xcclSuccess);
    if ((xm_pmpi.Ibcast(&c->message, (int)sizeof(c->message), XM_HANDLE(MPI_BYTE), 0, xm->comm,
                        &c->id_request) != MPI_SUCCESS) ||
        (xm_pmpi.Iallgather(&c->mine, bytes, XM_HANDLE(MPI_BYTE), c->all, bytes,
                            XM_HANDLE(MPI_BYTE), xm->comm, &c->where_request) != MPI_SUCCESS)) {
        return mpi_failed("MPI_Ibcast or MPI_Iallgather"); /* c stays: MPI may write into it */
    }
    xm->creation = c;
    xm->state = XM_COMM_CREATING;
    xm->create_begun = xm->device_calls;
    xm->next_checkin = xm->device_calls + 1;
    return xcclSuccess;
}

void xm_comm_saved(struct xm_comm *xm, double us, const struct xc_device_ops *dev, int device)
{
    if (xm->state != XM_COMM_KNOWN) {
        return;
    }
    xm->saved_us += us;
    if ((xm->saved_us >= 0) && (begin_creation(xm, dev, device) != xcclSuccess)) {
        xc_warn("no vendor communicator: %s", xc_last_detail());
    }
}

static void nap(void)
{
    struct timespec t = {0, 200 * 1000};

    nanosleep(&t, NULL);
}

/* XCCL_COMM_CREATE=first: all ranks ask each other until all are done. */
static xcclResult_t create_now(struct xm_comm *xm, const struct xc_device_ops *dev, int device)
{
    struct xm_wait wait = xm_wait_begin("for the vendor's library to make a communicator");
    xcclResult_t   res = xcclSuccess;

    if (xm->state == XM_COMM_KNOWN) {
        res = begin_creation(xm, dev, device);
    }
    while ((res == xcclSuccess) && (xm->state == XM_COMM_CREATING)) {
        if ((xm_wait_step(&wait) == XM_WAIT_EXPIRED) && (xm->creation->outcome == PENDING)) {
            xm->creation->outcome = FAILED;
            snprintf(xm->creation->detail, sizeof(xm->creation->detail),
                     "the vendor's library did not make the communicator within XCCL_TIMEOUT");
        }
        xm_comm_advance(xm);
        if (xm->creation->outcome == PENDING) {
            nap();
        }
        res = post_status(xm);
        if (res == xcclSuccess) {
            res = finish_checkin(xm, true);
        }
    }
    return res;
}

static xcclResult_t agree(struct xm_comm *xm, bool blocking, bool create,
                          const struct xc_device_ops *dev, int device)
{
    xcclResult_t res = xcclSuccess;

    xm_comm_advance(xm);
    if ((xm->checkin.kind != XM_CHECKIN_NONE) &&
        (blocking || (xm->device_calls >= xm->checkin.applies))) {
        res = finish_checkin(xm, blocking);
    }
    if ((res == xcclSuccess) && (xm->state == XM_COMM_NEW) &&
        (xm->checkin.kind == XM_CHECKIN_NONE)) {
        res = post_cards(xm);
        if ((res == xcclSuccess) && blocking) {
            res = finish_checkin(xm, true);
        }
    }
    if ((res == xcclSuccess) && create && (xm->checkin.kind == XM_CHECKIN_NONE) &&
        ((xm->state == XM_COMM_KNOWN) || (xm->state == XM_COMM_CREATING))) {
        if (blocking) {
            return create_now(xm, dev, device);
        }
        if (xm->state == XM_COMM_KNOWN) {
            res = begin_creation(xm, dev, device);
        }
    }
    if ((res == xcclSuccess) && (xm->state == XM_COMM_CREATING) &&
        (xm->checkin.kind == XM_CHECKIN_NONE) && (xm->device_calls >= xm->next_checkin)) {
        res = post_status(xm);
        if ((res == xcclSuccess) && blocking) {
            res = finish_checkin(xm, true);
        }
    }
    return res;
}

xcclResult_t xm_comm_agree(struct xm_comm *xm, bool blocking, const struct xc_device_ops *dev,
                           int device)
{
    bool asks_seats = (xm->state != XM_COMM_NEW) && xm->one_node && blocking;
    bool offered = (xc_params()->route == XC_ROUTE_XCCL) && (xc_params()->ccl != XC_CCL_NONE);
    bool create = offered && (xc_params()->comm_create == XC_CREATE_FIRST);

    if (asks_seats) {
        xcclResult_t res = agree_on_seats(xm);
        if (res != xcclSuccess) {
            return res;
        }
    }
    if (xm->inter || (xm->state == XM_COMM_READY) || (xm->state == XM_COMM_FAILED) ||
        (xm->state == XM_COMM_BROKEN)) {
        return xcclSuccess;
    }
    return agree(xm, blocking, create, dev, device);
}

void xm_comm_forget(struct xm_comm *xm)
{
    if (xm->checkin.kind != XM_CHECKIN_NONE) {
        leave(xm->checkin.request, xm->checkin.mine, xm->checkin.all);
        xm->checkin = (struct xm_checkin){.kind = XM_CHECKIN_NONE};
        sweep_orphans();
    }
    end_creation(xm);
}

xcclResult_t xm_comm_create(MPI_Comm comm, const struct xc_device_ops *dev, int device,
                            xcclComm_t *xcomm_p)
{
    struct xm_comm xm = {.comm = comm, .users = 1, .device_calls = 1};
    void          *saved;

    xm_pmpi.Comm_rank(comm, &xm.rank);
    xm_pmpi.Comm_size(comm, &xm.size);
    xcclResult_t res = agree(&xm, true, true, dev, device);
    if (xm.state == XM_COMM_READY) {
        struct xm_vendor *vendor = xm.vendor;
        *xcomm_p = vendor->xcomm; /* from here on the program's */
        vendor->xcomm = NULL;
        vendor->broken = true;
        if (dev->enter(device, &saved) == xcclSuccess) {
            dev->stream_destroy(vendor->stream);
            vendor->stream = NULL;
            dev->leave(saved);
        }
        xm_vendor_release(vendor);
        return xcclSuccess;
    }
    if (res == xcclSuccess) {
        res = xc_fail((xm.state == XM_COMM_KNOWN) ? xcclInvalidUsage : xcclRemoteError, "%s",
                      xm.reason);
    }
    xm_comm_forget(&xm);
    return res;
}
