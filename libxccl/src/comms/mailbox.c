/* SPDX-License-Identifier: BSD-3-Clause */
#include "comms/mailbox.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "comms/wait.h"
#include "mpi/mpi.h"

/* The first search for a rank that is not known; each later one after twice the time. */
static const uint64_t first_pause_ns = 1000000;

/* A kernel that waits for a send of another rank may hold up the driver, and with it a mapping. */
static const int64_t most_mapping_ns = 50000000;

/* What is known of each rank of MPI_COMM_WORLD. */
struct peer {
    struct xm_board *board;   /* atomic; NULL: not found */
    bool             refuses; /* atomic */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Of those who look for other processes, for milliseconds: the rest goes on meanwhile. */
static pthread_mutex_t searching = PTHREAD_MUTEX_INITIALIZER;
static bool            announced; /* atomic */
static struct peer    *peers;     /* atomic */
static int             num_peers;
static uint64_t        next_search, pause_ns;
static uint64_t        last_number;
/* Those that were given back, the last of them first: its memory is still in a cache. */
static int free_slots[XM_OFFERS], num_free, num_used; /* and of all, how many ever were taken */
static int num_long;                                  /* atomic: taken, of long messages */

static struct xm_mailbox *own_mailbox(void)
{
    struct xm_board *board = xm_board_own();

    return (board != NULL) ? xm_board_mailbox(board) : NULL;
}

void xm_mailbox_announce(const struct xc_device_ops *dev, uint64_t looks_from)
{
    int count = 0;

    if (__atomic_load_n(&announced, __ATOMIC_ACQUIRE)) {
        return;
    }
    pthread_mutex_lock(&lock);
    struct xm_mailbox *m = own_mailbox();
    if (!announced && (m != NULL) && (dev->count(&count) == xcclSuccess)) {
        for (int i = 0; (i < count) && (m->num_devices < XM_OFFER_DEVICES); i++) {
            if (dev->uuid_of(i, m->devices[m->num_devices]) == xcclSuccess) {
                m->num_devices++;
            }
        }
        m->maps_unseen = dev->ipc_opens_unseen;
        __atomic_store_n(&m->looks_from, looks_from, __ATOMIC_RELEASE);
    }
    __atomic_store_n(&announced, true, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
}

void xm_mailbox_take_no_more(void)
{
    pthread_mutex_lock(&lock);
    if (__atomic_exchange_n(&announced, true, __ATOMIC_ACQ_REL) && (own_mailbox() != NULL)) {
        __atomic_store_n(&own_mailbox()->num_devices, 0, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
}

bool xm_mailbox_is_announced(void)
{
    const struct xm_mailbox *m = own_mailbox();

    return (m != NULL) && (__atomic_load_n(&m->looks_from, __ATOMIC_ACQUIRE) != 0);
}

void xm_mailbox_close(void)
{
    struct xm_mailbox *m = own_mailbox();

    if (m != NULL) {
        __atomic_store_n(&m->looks_from, 0, __ATOMIC_RELEASE);
    }
}

int xm_offer_take(const struct xm_sent *source, uint64_t *number_p)
{
    struct xm_mailbox *m = own_mailbox();
    int                slot = -1;

    pthread_mutex_lock(&lock);
    if ((m != NULL) && (num_free > 0)) {
        slot = free_slots[--num_free];
    } else if ((m != NULL) && (num_used < XM_OFFERS)) {
        slot = num_used++;
    }
    if (slot >= 0) {
        *number_p = ++last_number;
        m->offers[slot].fd = -1;
        m->offers[slot].at_in_file = 0;
        m->offers[slot].source = *source;
        __atomic_store_n(&m->offers[slot].state, xm_offer_word(*number_p, XM_OFFER_OPEN),
                         __ATOMIC_RELEASE);
        __atomic_add_fetch(&num_long, source->bytes >= XM_LONG_BYTES, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&lock);
    return slot;
}

uint64_t xm_mailbox_looked(void)
{
    struct xm_mailbox *m = own_mailbox();

    if (m == NULL) {
        return 0;
    }
    __atomic_store_n(&m->looked_ns, xm_now_ns(), __ATOMIC_RELAXED);
    return __atomic_load_n(&m->asks, __ATOMIC_ACQUIRE);
}

void xm_mailbox_looks_for(uint64_t ns)
{
    struct xm_mailbox *m = own_mailbox();

    if (m != NULL) {
        __atomic_store_n(&m->looked_ns, xm_now_ns() + ns, __ATOMIC_RELAXED);
    }
}

void xm_offer_give(int slot)
{
    pthread_mutex_lock(&lock);
    struct xm_offer *offer = &own_mailbox()->offers[slot];
    __atomic_sub_fetch(&num_long, offer->source.bytes >= XM_LONG_BYTES, __ATOMIC_RELAXED);
    __atomic_store_n(&offer->state, 0, __ATOMIC_RELEASE);
    free_slots[num_free++] = slot;
    pthread_mutex_unlock(&lock);
}

bool xm_offers_any_long(void)
{
    return __atomic_load_n(&num_long, __ATOMIC_RELAXED) > 0;
}

struct xm_offer *xm_offer_own(int slot)
{
    return &own_mailbox()->offers[slot];
}

struct xm_offer *xm_offer_of(struct xm_board *board, int slot)
{
    return ((slot >= 0) && (slot < XM_OFFERS)) ? &xm_board_mailbox(board)->offers[slot] : NULL;
}

bool xm_offer_move(struct xm_offer *offer, uint64_t number, enum xm_offer_state from,
                   enum xm_offer_state to)
{
    uint64_t expected = xm_offer_word(number, from);

    return __atomic_compare_exchange_n(&offer->state, &expected, xm_offer_word(number, to), false,
                                       __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* ---- the other processes ---- */

static void seen(void *arg, int world_rank, const struct xm_board_address *address)
{
    struct peer *p = arg;

    if ((world_rank >= 0) && (world_rank < num_peers) && (p[world_rank].board == NULL)) {
        __atomic_store_n(&p[world_rank].board, xm_board_open(address), __ATOMIC_RELEASE);
    }
}

/* A rank sends to itself where a periodic grid is one rank wide. */
static void add_own(void)
{
    int rank = 0;

    if ((peers != NULL) && (xm_pmpi.Comm_rank(XM_HANDLE(MPI_COMM_WORLD), &rank) == MPI_SUCCESS)) {
        __atomic_store_n(&peers[rank].board, xm_board_own(), __ATOMIC_RELEASE);
    }
}

/* A launcher has started all ranks of the node, most often; or the shells that have. */
static bool is_relative(int world_rank)
{
    for (int generations = 1; generations <= 2; generations++) {
        xm_board_each_relative(generations, seen, peers);
        if (peers[world_rank].board != NULL) {
            return true;
        }
    }
    return false;
}

/* With `searching` held. */
static void search(int world_rank)
{
    int size = 0;

    if (peers == NULL) {
        if ((xm_pmpi.Comm_size(XM_HANDLE(MPI_COMM_WORLD), &size) != MPI_SUCCESS) || (size == 0)) {
            return;
        }
        num_peers = size;
        __atomic_store_n(&peers, calloc((size_t)size, sizeof(struct peer)), __ATOMIC_RELEASE);
        add_own();
        pause_ns = first_pause_ns;
    }
    uint64_t now = xm_now_ns();
    if ((peers != NULL) && (now >= next_search) && !is_relative(world_rank)) {
        xm_board_each(seen, peers);
        next_search = xm_now_ns() + pause_ns;
        pause_ns *= 2;
    }
}

static struct peer *peer_of(int world_rank)
{
    struct peer *p = __atomic_load_n(&peers, __ATOMIC_ACQUIRE);

    if ((p == NULL) || (__atomic_load_n(&p[world_rank].board, __ATOMIC_ACQUIRE) == NULL)) {
        pthread_mutex_lock(&searching);
        search(world_rank);
        p = peers;
        pthread_mutex_unlock(&searching);
    }
    return (p != NULL) ? &p[world_rank] : NULL;
}

static bool is_rank(int world_rank)
{
    int size = 0;

    return (world_rank >= 0) &&
           (xm_pmpi.Comm_size(XM_HANDLE(MPI_COMM_WORLD), &size) == MPI_SUCCESS) &&
           (world_rank < size);
}

struct xm_board *xm_mailbox_find(int world_rank, uint64_t bytes,
                                 const unsigned char uuid[XC_DEVICE_UUID_BYTES])
{
    /* What is no rank MPI has to refuse. */
    struct peer     *p = is_rank(world_rank) ? peer_of(world_rank) : NULL;
    struct xm_board *board = (p != NULL) ? __atomic_load_n(&p->board, __ATOMIC_ACQUIRE) : NULL;

    if ((board == NULL) || __atomic_load_n(&p->refuses, __ATOMIC_RELAXED)) {
        return NULL;
    }
    const struct xm_mailbox *m = xm_board_mailbox(board);
    uint64_t                 from = __atomic_load_n(&m->looks_from, __ATOMIC_ACQUIRE);
    if ((from == 0) || (bytes < from)) {
        return NULL;
    }
    uint32_t count = __atomic_load_n(&m->num_devices, __ATOMIC_RELAXED);
    if ((count > 0) && (m->maps_unseen != 0)) {
        return board;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (memcmp(m->devices[i], uuid, XC_DEVICE_UUID_BYTES) == 0) {
            return board;
        }
    }
    return NULL;
}

void xm_mailbox_maps(bool begins)
{
    struct xm_mailbox *m = own_mailbox();

    if (m != NULL) {
        __atomic_store_n(&m->mapping_ns, begins ? xm_now_ns() : 0, __ATOMIC_RELAXED);
    }
}

bool xm_mailbox_is_mapping(int world_rank)
{
    struct peer     *p = peer_of(world_rank);
    struct xm_board *board = (p != NULL) ? __atomic_load_n(&p->board, __ATOMIC_ACQUIRE) : NULL;

    if (board == NULL) {
        return false;
    }
    uint64_t begun = __atomic_load_n(&xm_board_mailbox(board)->mapping_ns, __ATOMIC_RELAXED);
    return (begun != 0) && ((int64_t)(xm_now_ns() - begun) < most_mapping_ns);
}

static uint64_t lost_word(uint64_t nonce, uint64_t number)
{
    return xc_hash_word(xc_hash_word(XC_HASH_BEGIN, nonce), number);
}

void xm_mailbox_lose(uint64_t nonce, uint64_t number)
{
    pthread_mutex_lock(&lock);
    struct xm_mailbox *m = own_mailbox();
    if (m != NULL) {
        uint64_t n = m->num_lost;
        __atomic_store_n(&m->lost[n % XM_OFFERS], lost_word(nonce, number), __ATOMIC_RELAXED);
        __atomic_store_n(&m->num_lost, n + 1, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
}

bool xm_mailbox_has_lost(int world_rank, uint64_t number)
{
    struct peer     *p = peer_of(world_rank);
    struct xm_board *board = (p != NULL) ? __atomic_load_n(&p->board, __ATOMIC_ACQUIRE) : NULL;
    const struct xm_mailbox *m = (board != NULL) ? xm_board_mailbox(board) : NULL;
    uint64_t                 n = (m != NULL) ? __atomic_load_n(&m->num_lost, __ATOMIC_ACQUIRE) : 0;
    struct xm_board_address  own;

    if (n == 0) {
        return false;
    }
    xm_board_address_of(xm_board_own(), &own);
    uint64_t word = lost_word(own.nonce, number);
    for (uint64_t i = 0; (i < n) && (i < XM_OFFERS); i++) {
        if (__atomic_load_n(&m->lost[i], __ATOMIC_RELAXED) == word) {
            return true;
        }
    }
    return false;
}

void xm_mailbox_refused(int world_rank)
{
    struct peer *p = peer_of(world_rank);

    if (p != NULL) {
        __atomic_store_n(&p->refuses, true, __ATOMIC_RELAXED);
    }
}

bool xm_mailbox_is_closed(int world_rank)
{
    struct peer     *p = peer_of(world_rank);
    struct xm_board *board = (p != NULL) ? __atomic_load_n(&p->board, __ATOMIC_ACQUIRE) : NULL;

    return (board == NULL) ||
           (__atomic_load_n(&xm_board_mailbox(board)->looks_from, __ATOMIC_ACQUIRE) == 0);
}
