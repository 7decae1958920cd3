/* SPDX-License-Identifier: BSD-3-Clause */
/* The control region of a communicator: joining it, barriers in it, waits that notice the dead. */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "ccl/ccl.h"

#define REGION_MAGIC 0x78636373696d3031ULL
#define LOOK_EVERY_MS 100
#define NAP_NS (20 * 1000 * 1000L)
#define SPINS 400

/* Files of the ids made here that are still open. */
struct made {
    struct made *next;
    uint64_t     nonce;
    int          fd;
};
static struct made    *made_ids;
static pthread_mutex_t made_lock = PTHREAD_MUTEX_INITIALIZER;

static void close_used(const struct xs_id *id);

static size_t slots_bytes(int nranks)
{
    return sizeof(struct xs_region) + (size_t)nranks * sizeof(struct xs_slot);
}

static size_t rings_bytes(int nranks)
{
    return (size_t)nranks * (size_t)nranks * XS_RING * sizeof(struct xs_message);
}

static size_t region_bytes(int nranks)
{
    return slots_bytes(nranks) + rings_bytes(nranks) +
           (size_t)nranks * (size_t)nranks * sizeof(uint32_t);
}

enum xs_result xs_region_make(struct xs_id *id)
{
    struct xs_region *head;
    struct made      *made = malloc(sizeof(*made));
    int               fd = xs_file_create("xccl-sim-comm", region_bytes(XS_MAX_RANKS));

    if ((fd < 0) || (made == NULL)) {
        free(made);
        return xs_problem(XS_SYSTEM_ERROR, "no shared file for a communicator: %s",
                          strerror(errno));
    }
    head = mmap(NULL, sizeof(*head), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (head == MAP_FAILED) {
        close(fd);
        free(made);
        return xs_problem(XS_SYSTEM_ERROR, "a communicator's file cannot be mapped: %s",
                          strerror(errno));
    }
    memset(id, 0, sizeof(*id));
    id->magic = REGION_MAGIC;
    if (getrandom(&id->nonce, sizeof(id->nonce), 0) != (ssize_t)sizeof(id->nonce)) {
        id->nonce = (uint64_t)(uintptr_t)head ^ (uint64_t)clock();
    }
    id->place =
        (struct xs_place){xs_process_number(), fd, xs_process_start(xs_process_number()), 0};
    head->nonce = id->nonce;
    __atomic_store_n(&head->magic, REGION_MAGIC, __ATOMIC_RELEASE);
    munmap(head, sizeof(*head));
    pthread_mutex_lock(&made_lock);
    close_used(NULL);
    *made = (struct made){made_ids, id->nonce, fd};
    made_ids = made;
    pthread_mutex_unlock(&made_lock);
    return XS_SUCCESS;
}

/*
 * The file has served once everyone has joined. Where the maker is no rank itself, the next id that
 * it makes finds that out.
 */
static void close_used(const struct xs_id *id)
{
    struct made **link = &made_ids;

    while (*link != NULL) {
        struct made     *made = *link;
        struct xs_region head = {0};
        bool             used = (id != NULL) && (id->nonce == made->nonce);

        if ((id == NULL) && (pread(made->fd, &head, sizeof(head), 0) == (ssize_t)sizeof(head))) {
            used = (head.nranks != 0) && (head.joined == head.nranks);
        }
        if (used) {
            close(made->fd);
            *link = made->next;
            free(made);
        } else {
            link = &made->next;
        }
    }
}

void xs_region_close(const struct xs_id *id)
{
    pthread_mutex_lock(&made_lock);
    close_used(id);
    pthread_mutex_unlock(&made_lock);
}

/* Is fd really the region of id? A number may have been given to another file since. */
static struct xs_region *map_region(int fd, const struct xs_id *id, size_t bytes)
{
    struct stat       status;
    struct xs_region *region;

    if ((fstat(fd, &status) != 0) || !S_ISREG(status.st_mode) ||
        ((size_t)status.st_size != region_bytes(XS_MAX_RANKS))) {
        return NULL;
    }
    region = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (region == MAP_FAILED) {
        return NULL;
    }
    if ((__atomic_load_n(&region->magic, __ATOMIC_ACQUIRE) != REGION_MAGIC) ||
        (region->nonce != id->nonce)) {
        munmap(region, bytes);
        return NULL;
    }
    return region;
}

static enum xs_result claim(struct xs_comm *comm)
{
    struct xs_region *region = comm->region;
    struct xs_slot   *slot = &region->slots[comm->rank];
    uint32_t          none = 0;
    uint32_t          absent = XS_ABSENT;

    if (!__atomic_compare_exchange_n(&region->nranks, &none, (uint32_t)comm->nranks, false,
                                     __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) &&
        (none != (uint32_t)comm->nranks)) {
        return xs_problem(XS_INVALID_USAGE,
                          "ncclCommInitRank: rank %d was called with %d ranks, another with %u",
                          comm->rank, comm->nranks, none);
    }
    if (!__atomic_compare_exchange_n(&slot->life, &absent, XS_CLAIMED, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE)) {
        return xs_problem(XS_INVALID_USAGE,
                          "unique id used twice: rank %d of it exists already; make one id for "
                          "each communicator",
                          comm->rank);
    }
    return XS_SUCCESS;
}

enum xs_result xs_region_join(struct xs_comm *comm, const struct xs_id *id)
{
    if (id->magic != REGION_MAGIC) {
        return xs_problem(XS_INVALID_ARGUMENT, "the unique id is not one of ncclGetUniqueId");
    }
    int fd = xs_file_open(id->place.pid, id->place.start, id->place.fd);
    if ((fd < 0) && (errno == EACCES)) {
        return xs_problem(
            XS_REMOTE_ERROR,
            "the memory of process %d cannot be reached: it is another user's, or in a "
            "container with a user namespace of its own",
            (int)id->place.pid);
    }
    if ((fd < 0) && (xs_process_start(id->place.pid) != id->place.start)) {
        return xs_problem(XS_REMOTE_ERROR, "the process that made the unique id is gone");
    }
    comm->region_bytes = region_bytes(comm->nranks);
    comm->region = (fd < 0) ? NULL : map_region(fd, id, comm->region_bytes);
    if (fd >= 0) {
        close(fd);
    }
    if (comm->region == NULL) {
        return xs_problem(XS_INVALID_USAGE, "unique id used twice: its communicator was made "
                                            "before; make one id for each communicator");
    }
    enum xs_result res = claim(comm);
    if (res != XS_SUCCESS) {
        munmap(comm->region, comm->region_bytes);
        comm->region = NULL;
    }
    return res;
}

struct xs_message *xs_region_ring(struct xs_comm *comm, int from, int to)
{
    unsigned char *rings = (unsigned char *)comm->region + slots_bytes(comm->nranks);

    return (struct xs_message *)(void *)rings +
           ((size_t)from * (size_t)comm->nranks + (size_t)to) * XS_RING;
}

uint32_t *xs_region_link(struct xs_comm *comm, int from, int to)
{
    unsigned char *links =
        (unsigned char *)comm->region + slots_bytes(comm->nranks) + rings_bytes(comm->nranks);

    return (uint32_t *)(void *)links + (size_t)from * (size_t)comm->nranks + (size_t)to;
}

uint64_t xs_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void xs_look_for_dead(struct xs_comm *comm)
{
    uint64_t now = xs_now_ms();

    if ((comm->region == NULL) ||
        (now - __atomic_load_n(&comm->looked, __ATOMIC_RELAXED) < LOOK_EVERY_MS)) {
        return;
    }
    __atomic_store_n(&comm->looked, now, __ATOMIC_RELAXED);
    /* Who died is the cause; who aborted may only have noticed. */
    for (int i = 0; i < comm->nranks; i++) {
        const struct xs_slot *slot = &comm->region->slots[i];

        if ((__atomic_load_n(&slot->life, __ATOMIC_ACQUIRE) == XS_JOINED) &&
            (xs_process_start(slot->pid) != slot->start)) {
            xs_comm_fail(comm, XS_REMOTE_ERROR, "rank %d (pid %d) is gone", i, slot->pid);
            return;
        }
    }
    /* Between nodes a connection breaks. */
    for (int i = 0; i < comm->nranks; i++) {
        bool told = xs_config()->abort_told ||
                    (comm->region->slots[i].node != comm->region->slots[comm->rank].node);
        if (told &&
            (__atomic_load_n(&comm->region->slots[i].life, __ATOMIC_ACQUIRE) == XS_ABORTED)) {
            xs_comm_fail(comm, XS_REMOTE_ERROR, "rank %d aborted the communicator", i);
            return;
        }
    }
}

void xs_wake(uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static bool is_aborted(struct xs_comm *comm)
{
    return __atomic_load_n(&comm->aborted, __ATOMIC_ACQUIRE) != 0;
}

/* Spinning helps only where every rank may have a core. */
static int spins(const struct xs_comm *comm)
{
    static int cores;
    int        seen = __atomic_load_n(&cores, __ATOMIC_RELAXED);

    if (seen == 0) {
        seen = (int)sysconf(_SC_NPROCESSORS_ONLN);
        __atomic_store_n(&cores, seen, __ATOMIC_RELAXED);
    }
    return (comm->nranks <= seen) ? SPINS : 1;
}

void xs_nap(struct xs_comm *comm, uint32_t *word, uint32_t old)
{
    const struct timespec nap = {0, NAP_NS};

    if ((syscall(SYS_futex, word, FUTEX_WAIT, old, &nap, NULL, 0) != 0) && (errno == ETIMEDOUT)) {
        xs_look_for_dead(comm);
    }
}

bool xs_wait(struct xs_comm *comm, uint32_t *word, uint32_t old)
{
    for (int i = spins(comm); i > 0; i--) {
        if (__atomic_load_n(word, __ATOMIC_ACQUIRE) != old) {
            return !is_aborted(comm);
        }
        sched_yield();
    }
    if (is_aborted(comm)) {
        return false;
    }
    xs_nap(comm, word, old);
    return !is_aborted(comm);
}

bool xs_barrier(struct xs_comm *comm, struct xs_barrier *barrier)
{
    uint32_t turn = __atomic_load_n(&barrier->turn, __ATOMIC_ACQUIRE);

    if (__atomic_add_fetch(&barrier->arrived, 1, __ATOMIC_ACQ_REL) == (uint32_t)comm->nranks) {
        __atomic_store_n(&barrier->arrived, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&barrier->turn, turn + 1, __ATOMIC_RELEASE);
        if (comm->nranks > 1) {
            xs_wake(&barrier->turn);
        }
        return !is_aborted(comm);
    }
    while (__atomic_load_n(&barrier->turn, __ATOMIC_ACQUIRE) == turn) {
        if (!xs_wait(comm, &barrier->turn, turn)) {
            return false;
        }
        if ((barrier == &comm->region->host) &&
            ((__atomic_load_n(&comm->region->failed, __ATOMIC_ACQUIRE) != 0) ||
             (__atomic_load_n(&comm->async, __ATOMIC_ACQUIRE) != XS_SUCCESS))) {
            return false; /* calls on the host end with an error; operations wait for an abort */
        }
    }
    return true;
}

void xs_ring_bell(struct xs_comm *comm, int rank)
{
    uint32_t *bell = &comm->region->slots[rank].bell;

    __atomic_add_fetch(bell, 1, __ATOMIC_ACQ_REL);
    xs_wake(bell);
}

void xs_park(struct xs_comm *comm)
{
    uint32_t *bell = &comm->region->slots[comm->rank].bell;

    while (xs_wait(comm, bell, __atomic_load_n(bell, __ATOMIC_ACQUIRE))) {}
}

void xs_tell_leaving(struct xs_comm *comm)
{
    __atomic_store_n(&comm->region->slots[comm->rank].going, 1, __ATOMIC_RELEASE);
    for (int i = 0; i < comm->nranks; i++) {
        if (i != comm->rank) {
            xs_ring_bell(comm, i);
        }
    }
}

/*
 * A dead rank will not come, and one that aborted waits for nobody. Ranks of one process are given
 * up one after the other by one thread: only the last of them waits.
 */
bool xs_node_left(const struct xs_comm *comm)
{
    const struct xs_slot *mine = &comm->region->slots[comm->rank];
    bool                  all = true;
    bool                  last = true;
    bool                  lost = false;

    for (int i = 0; i < comm->nranks; i++) {
        const struct xs_slot *slot = &comm->region->slots[i];
        uint32_t              life = __atomic_load_n(&slot->life, __ATOMIC_ACQUIRE);
        bool                  going = (__atomic_load_n(&slot->going, __ATOMIC_ACQUIRE) != 0);

        if ((slot == mine) || (slot->node != mine->node)) {
            continue;
        }
        all = all && going;
        last = last && (going || (slot->pid != mine->pid));
        lost = lost || (life == XS_ABORTED) ||
               (!going && (xs_process_start(slot->pid) != slot->start));
    }
    return all || !last || lost;
}
