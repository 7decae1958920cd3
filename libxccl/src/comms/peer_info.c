/* SPDX-License-Identifier: BSD-3-Clause */
/* What each rank says of itself, and what all make of it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/backend.h"
#include "base/hash.h"
#include "base/launch.h"
#include "base/log.h"
#include "base/params.h"
#include "comms/board.h"
#include "comms/cause.h"
#include "comms/creation.h"
#include "comms/digest.h"
#include "comms/peer_info.h"
#include "comms/setting.h"
#include "comms/variables.h"
#include "device/device.h"

uint64_t (*xm_comm_arithmetic)(void);

static int numbered; /* atomic: communicators agreed on */

/* What comes without it is another call's: MPI gives a rank whatever stands in its place. */
static const uint64_t made_by_xccl = 0x7863636c70656572u;

struct xm_peer_info {
    struct xm_variables variables;  /* first: all that counts in a comparison of these */
    uint64_t            maker;      /* made_by_xccl, likewise */
    uint64_t            arithmetic; /* what MPI does with integers here */
    uint64_t idle; /* id of a vendor communicator of these ranks that could be used again */
    uint64_t cost_us;
    int      world_rank;
    int      number; /* a communicator's, on the rank that is its first */
    uint32_t spawned;
    struct xm_board_address board;
    struct xm_peer_setting  setting;
    int                     result; /* of this rank's look at the vendor's library */
    int                     version;
    char                    library[16];
};

size_t xm_peer_info_bytes(void)
{
    return sizeof(struct xm_peer_info);
}

/* The program may have done without it, or have taken another device instead. */
static void warn_of_local_device(const struct xc_device_ops *dev)
{
    static bool done; /* atomic */
    long        wanted = xc_params()->local_device;
    int         count = 0;

    if ((wanted < 0) || (dev == NULL) || __atomic_exchange_n(&done, true, __ATOMIC_RELAXED)) {
        return;
    }
    if ((dev->count(&count) == xcclSuccess) && (wanted >= count)) {
        xc_warn("XCCL_LOCAL_DEVICE=%ld is none of the %d device%s that this process sees; "
                "xccl-run --report shows them",
                wanted, count, (count == 1) ? "" : "s");
    }
}

/* All but where it is. */
static void fill(struct xm_comm *xm, const struct xc_device_ops *dev, int device,
                 struct xm_peer_info *mine)
{
    const struct xc_params *p = xc_params();
    const char             *name = "";
    struct xc_launch        launch;

    memset(mine, 0, sizeof(*mine));
    warn_of_local_device(dev);
    xm_peer_info_fill_variables(mine);
    mine->arithmetic = (xm_comm_arithmetic != NULL) ? xm_comm_arithmetic() : 0;
    mine->cost_us = xm_creation_measured_us();
    mine->number = __atomic_add_fetch(&numbered, 1, __ATOMIC_RELAXED);
    mine->spawned = xm_mpi_spawned();
    int *ranks = xm_world_ranks(xm->comm, xm->size);
    if (ranks != NULL) {
        mine->world_rank = ranks[xm->rank];
    } else { /* of a session, or with ranks of another world */
        mine->world_rank = xc_launch_read(&launch) ? launch.rank : -1;
    }
    mine->idle = xm_vendor_idle(dev, device, ranks, xm->size);
    free(ranks);
    xm_setting_fill(dev, device, &mine->setting);
    if ((p->route != XC_ROUTE_XCCL) || (p->ccl == XC_CCL_NONE)) {
        return;
    }
    mine->result = (int)xcclGetBackend(&name, &mine->version);
    const struct xc_device_ops *active = xc_device_active();
    if ((mine->result == xcclSuccess) && (active != NULL)) {
        mine->result = (int)xc_backend_serves(active->name);
    }
    snprintf(mine->library, sizeof(mine->library), "%s", (mine->result == 0) ? name : "");
    if (mine->result != xcclSuccess) {
        snprintf(xm->reason, sizeof(xm->reason), "%s", xc_last_detail());
    }
}

void xm_peer_info_fill_variables(struct xm_peer_info *mine)
{
    xm_variables_fill(&mine->variables);
    mine->maker = made_by_xccl;
}

/* A rank that sent something else, or -1. */
static int find_stranger(const struct xm_peer_info *all, int size)
{
    for (int i = 0; i < size; i++) {
        if (all[i].maker != made_by_xccl) {
            return i;
        }
    }
    return -1;
}

void xm_peer_info_fill(struct xm_comm *xm, const struct xc_device_ops *dev, int device,
                       struct xm_peer_info *mine)
{
    fill(xm, dev, device, mine);
    xm_board_take(&mine->board);
    xm->slot = mine->board.slot;
}

static const struct xm_variables *variables_of(const void *all, int rank)
{
    return &((const struct xm_peer_info *)all)[rank].variables;
}

/* An error on all ranks: a launcher that passes a variable to some of them makes the ranks choose
 * differently and wait for each other. */
static xcclResult_t judge_variables(const struct xm_peer_info *all, int size)
{
    return xm_variables_judge(variables_of, all, NULL, size);
}

static xcclResult_t judge_libraries(struct xm_comm *xm, const struct xm_peer_info *all,
                                    bool blocking)
{
    char text[sizeof(xm->reason)];

    for (int i = 0; i < xm->size; i++) {
        if (all[i].result != xcclSuccess) {
            xm_share_cause(xm, i, blocking, xm->reason, text, sizeof(text));
            xm_comm_fail(xm, (xcclResult_t)all[i].result, blocking ? 0 : i, text);
            return xcclSuccess;
        }
    }
    for (int i = 1; i < xm->size; i++) {
        if ((strcmp(all[i].library, all[0].library) != 0) || (all[i].version != all[0].version)) {
            snprintf(text, sizeof(text),
                     "rank 0 loaded %s %d and rank %d loaded %s %d; load one library on all ranks, "
                     "for instance with XCCL_CCL_LIBRARY",
                     all[0].library, all[0].version, i, all[i].library, all[i].version);
            xm_comm_fail(xm, xcclVersionMismatch, 0, text);
            return xcclSuccess;
        }
    }
    return xcclSuccess;
}

static void take_idle(struct xm_comm *xm, const struct xm_peer_info *all)
{
    for (int i = 0; i < xm->size; i++) {
        if ((all[i].idle == 0) || (all[i].idle != all[0].idle)) {
            return;
        }
    }
    xm_creation_reuse(xm, all[0].idle);
}

/* Of its first rank's process, and of which of its communicators. */
static uint64_t order_id(const struct xm_peer_info *first)
{
    uint64_t id = xc_hash_word(first->board.nonce, (uint64_t)first->number);

    return (id != 0) ? id : 1;
}

static const struct xm_peer_setting *setting_of(const void *all, int rank)
{
    return &((const struct xm_peer_info *)all)[rank].setting;
}

/* What cannot be found out on a rank that is out of memory must not differ from the others'. */
static xcclResult_t apply_setting(struct xm_comm *xm, const struct xm_peer_info *all)
{
    uint64_t *hosts = malloc((size_t)xm->size * sizeof(*hosts));

    if (hosts == NULL) {
        return xc_fail(xcclSystemError, "out of memory for %d ranks", xm->size);
    }
    for (int i = 0; i < xm->size; i++) {
        hosts[i] = all[i].board.node;
    }
    xm_setting_agree(xm, hosts, setting_of, all);
    if (all[0].result == xcclSuccess) {
        snprintf(xm->setting.ccl, sizeof(xm->setting.ccl), "%s", all[0].library);
        xm->setting.ccl_version = all[0].version;
    }
    free(hosts);
    return xcclSuccess;
}

/* Containers of one machine that do not see each other's processes are nodes of their own. */
static void tell_apart(const struct xm_comm *xm, const struct xm_peer_info *all)
{
    int other = 0;

    for (int i = 1; i < xm->size; i++) {
        if (all[i].board.machine != all[0].board.machine) {
            return;
        }
        other = ((other == 0) && (all[i].board.node != all[0].board.node)) ? i : other;
    }
    if ((other > 0) && (xm->rank == 0)) {
        xc_info("no direct path on %d ranks: rank %d is on the machine of rank 0, but in another "
                "container, whose processes rank 0 does not see; start all ranks of a machine in "
                "one container, or give its containers the host's PID namespace (hostPID, "
                "--pid=host)",
                xm->size, other);
    }
}

static bool all_on_one_node(const struct xm_comm *xm, const struct xm_peer_info *all)
{
    bool one = (xm->size > 1);

    for (int i = 0; i < xm->size; i++) {
        one = one && (all[i].board.node == all[0].board.node);
    }
    return one;
}

void xm_peer_info_place(struct xm_comm *xm, const struct xm_peer_info *all)
{
    if (xm->placed) {
        return;
    }
    xm->placed = true;
    if (find_stranger(all, xm->size) >= 0) {
        return;
    }
    struct xm_board_address *addresses = malloc((size_t)xm->size * sizeof(*addresses));
    xm->neighbours = all_on_one_node(xm, all);
    for (int i = 0; i < xm->size; i++) {
        xm->neighbours = xm->neighbours && (all[i].board.slot >= 0);
        if (addresses != NULL) {
            addresses[i] = all[i].board;
        }
    }
    if (xm->neighbours && (addresses != NULL)) {
        xm->slots = xm_slots_open(addresses, xm->size, xm->rank);
    }
    if (xm->neighbours && (xm->slots == NULL)) {
        struct xm_board *board = xm_board_open(&all[0].board); /* to say that this rank leaves it */
        xm->first = (board != NULL) ? xm_board_slot(board, all[0].board.slot) : NULL;
    }
    free(addresses);
}

/* Whether all are on one node every rank sees; whether it reached all of them, they agree later. */
static void find_node(struct xm_comm *xm, const struct xm_peer_info *all)
{
    xm_peer_info_place(xm, all);
    xm->one_node = all_on_one_node(xm, all);
}

xcclResult_t xm_peer_info_compare(struct xm_comm *xm, const struct xm_peer_info *all)
{
    int stranger = find_stranger(all, xm->size);

    if (stranger >= 0) {
        return xc_fail(xcclInvalidUsage,
                       "rank %d of the communicator answers with the data of another call: some "
                       "ranks pass host memory (which needs XCCL_MEMORY=mixed), run without xccl, "
                       "or make other calls",
                       stranger);
    }
    xcclResult_t res = judge_variables(all, xm->size);

    xm->compared = (res == xcclSuccess);
    return res;
}

/* By its first rank. */
static void name_it(struct xm_comm *xm, const struct xm_peer_info *first)
{
    if (xm->comm != XM_HANDLE(MPI_COMM_WORLD)) {
        int n = snprintf(xm->id, sizeof(xm->id), "%d.%d", first->world_rank, first->number);
        if (first->spawned != 0) {
            snprintf(xm->id + n, sizeof(xm->id) - (size_t)n, ".%08" PRIx32, first->spawned);
        }
    }
}

xcclResult_t xm_peer_info_apply(struct xm_comm *xm, const struct xm_peer_info *all, bool blocking)
{
    uint64_t     cost = 0;
    xcclResult_t res = xm_peer_info_compare(xm, all);

    if (res == xcclSuccess) {
        res = apply_setting(xm, all);
    }
    if (res != xcclSuccess) {
        xm_peer_info_place(xm, all);
        xm_comm_leave_slots(xm); /* the next operation asks anew */
        return res;
    }
    for (int i = 0; i < xm->size; i++) {
        cost = (all[i].cost_us > cost) ? all[i].cost_us : cost;
        xm->integers_differ = xm->integers_differ || (all[i].arithmetic != all[0].arithmetic);
    }
    name_it(xm, &all[0]);
    find_node(xm, all);
    tell_apart(xm, all);
    xm->order_id = order_id(&all[0]);
    if ((xm->identity == 0) && (all[0].board.nonce != 0)) {
        __atomic_store_n(&xm->identity, xm->order_id, __ATOMIC_RELAXED);
    }
    xm->saved_us = -((cost > 0) ? (double)cost : xm_creation_first_guess_us);
    xm_comm_enter(xm, XM_COMM_KNOWN, NULL);
    res = judge_libraries(xm, all, blocking);
    if (xm_comm_state_now(xm) == XM_COMM_KNOWN) {
        take_idle(xm, all);
    }
    return res;
}

/* ---- many ranks ---- */

struct digest {
    struct xm_digest    words; /* first */
    struct xm_peer_info info;
};

size_t xm_peer_digest_bytes(void)
{
    return sizeof(struct digest);
}

/* Of what has to be equal on all ranks, but the variables. */
static uint64_t like_of(const struct xm_peer_info *info)
{
    uint64_t hash = xc_hash_text(xm_setting_hash(&info->setting), info->library);

    return xc_hash_word(hash, (uint64_t)info->version);
}

void xm_peer_digest_fill(struct xm_comm *xm, const struct xc_device_ops *dev, int device,
                         void *mine)
{
    struct digest       *d = mine;
    struct xm_peer_info *info = &d->info;

    fill(xm, dev, device, info);
    xm_board_place(&info->board);
    struct xm_board *own = xm_board_own(); /* for what tells this process from others */
    if (own != NULL) {
        struct xm_board_address address;
        xm_board_address_of(own, &address);
        info->board.nonce = address.nonce;
    }
    struct xm_digest_facts facts = {.variables = xm_variables_hash(&info->variables),
                                    .like = like_of(info),
                                    .odd = (info->result != xcclSuccess),
                                    .idle = info->idle,
                                    .arithmetic = info->arithmetic,
                                    .machine = info->board.machine,
                                    .node = info->board.node,
                                    .cost_us = info->cost_us,
                                    .order_id = order_id(info),
                                    .world_rank = info->world_rank,
                                    .number = info->number,
                                    .spawned = info->spawned};
    xm_digest_fill(&d->words, &facts, xm->rank == 0);
}

void xm_peer_digest_fill_variables(void *mine)
{
    struct digest *d = mine;

    memset(&d->info, 0, sizeof(d->info));
    xm_variables_fill(&d->info.variables);
    xm_digest_fill_variables(&d->words, xm_variables_hash(&d->info.variables));
}

void xm_peer_digest_compare(struct xm_comm *xm, const void *all)
{
    struct xm_digest_said said;

    xm_digest_read(all, xm->size, &said);
    xm->asks_all = said.variables_differ;
    xm->compared = !said.variables_differ;
}

void xm_peer_digest_apply(struct xm_comm *xm, const void *mine, const void *all)
{
    const struct xm_peer_info *info = &((const struct digest *)mine)->info;
    struct xm_digest_said      said;

    xm_digest_read(all, xm->size, &said);
    xm->asks_all = !said.enough;
    xm->compared = xm->compared || !said.variables_differ;
    if (!said.enough) {
        return;
    }
    struct xm_peer_info first = {
        .world_rank = said.world_rank, .number = said.number, .spawned = said.spawned};
    xm_setting_alike(xm, &info->setting, said.nodes, said.per_node_least, said.per_node_most);
    snprintf(xm->setting.ccl, sizeof(xm->setting.ccl), "%s", info->library);
    xm->setting.ccl_version = info->version;
    xm->integers_differ = xm->integers_differ || said.arithmetic_differs;
    name_it(xm, &first);
    xm->placed = true;
    xm->order_id = said.order_id;
    xm->saved_us = -((said.cost_us > 0) ? (double)said.cost_us : xm_creation_first_guess_us);
    xm_comm_enter(xm, XM_COMM_KNOWN, NULL);
    if (said.idle != 0) {
        xm_creation_reuse(xm, said.idle);
    }
}
