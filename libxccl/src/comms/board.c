/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A board is a file without a name (memfd_create) that others of the same user open through
 * /proc/<pid>/fd. It vanishes with its process, and nothing is left of it anywhere.
 */
#include "comms/board.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/hash.h"
#include "base/launch.h"
#include "base/log.h"
#include "base/machine.h"
#include "comms/mailbox.h"
#include "comms/order.h"
#include "comms/relatives.h"
#include "comms/slots.h"
#include "comms/spare.h"
#include "comms/wait.h"
#include "mpi/mpi.h"

#define BOARD_NAME "xccl-board"
#define BOARD_MAGIC 0x7863636c62647237u

enum { SLOTS = 256 };
enum { HOST_CALLS = 64 };
enum { LOOKS = 4 }; /* for ended processes, when a board is opened */

struct header {
    uint64_t            magic, nonce, job;
    int32_t             world_rank, world_size, pid, fd;
    bool                threads; /* several may call MPI at once; like the next: set before magic */
    struct xm_variables variables;
    struct {
        uint64_t communicator; /* 0: not in a call, or being written */
        uint64_t number, coll;
    } busy;                                   /* atomic: read by other processes */
    uint64_t          host_calls[HOST_CALLS]; /* atomic: the last ones, or 0 */
    struct xm_queue   queue;                  /* order.h */
    struct xm_mailbox mailbox;                /* mailbox.h */
};

struct layout {
    struct header  header;
    struct xm_slot slots[SLOTS];
};

struct xm_board {
    struct layout   *at;
    uint64_t         nonce;
    int              pid;
    bool             emptied; /* its process has ended */
    struct xm_board *next;
};

static pthread_mutex_t  lock = PTHREAD_MUTEX_INITIALIZER;
static struct xm_board  own;
static int              own_fd = -1;
static bool             tried;
static bool             writing; /* atomic: a thread is at own's busy */
static bool             taken[SLOTS];
static int              read_by[SLOTS]; /* given back; free when so many ranks have left it */
static struct xm_board *boards;         /* of others, mapped once and kept */

/* Process numbers mean something within one PID namespace only. */
static uint64_t node_number(uint64_t machine)
{
    struct stat ns = {0};

    stat("/proc/self/ns/pid", &ns);
    return xc_hash_word(machine, (uint64_t)ns.st_ino);
}

/* This process in /proc, which may be that of another PID namespace. */
static int process_number(void)
{
    char    text[16];
    ssize_t n = readlink("/proc/self", text, sizeof(text) - 1);

    if (n <= 0) {
        return getpid();
    }
    text[n] = '\0';
    return atoi(text);
}

/*
 * Equal for the processes of one MPI_COMM_WORLD on a node, as good as different between jobs. Where
 * the launcher names no job, the process that made the launcher's socket stands for it, else the
 * parent.
 */
static uint64_t job_number(void)
{
    char         name[1024];
    struct ucred maker = {.pid = 0};
    socklen_t    len = sizeof(maker);
    bool         named = xc_job_name(name, sizeof(name));
    uint64_t     hash = xc_hash_text(XC_HASH_BEGIN, name);
    int          fd = xc_launcher_socket();

    if ((fd >= 0) && (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &maker, &len) == 0) &&
        (maker.pid > 0)) {
        return hash ^ ((uint64_t)maker.pid << 32);
    }
    return named ? hash : (hash ^ (uint64_t)getppid());
}

static struct layout *map(int fd)
{
    struct stat status;

    if (fstat(fd, &status) != 0) {
        return NULL;
    }
    if ((size_t)status.st_size != sizeof(struct layout)) {
        errno = ENOENT; /* another version's */
        return NULL;
    }
    void *at = mmap(NULL, sizeof(struct layout), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return (at == MAP_FAILED) ? NULL : at;
}

static bool without_board(const char *what)
{
    xc_warn(
        "no memory shared with the other ranks of this node: %s: %s; messages and collectives "
        "on device memory are staged or left to the vendor's library; raise the limits of the "
        "process (ulimit -n for open files, -f for their size, -v and the container's for memory)",
        what, strerror(errno));
    return false;
}

/* With the lock held. */
static bool open_own(void)
{
    if (tried) {
        return own.at != NULL;
    }
    tried = true;
    own_fd = xc_file_aside(memfd_create(BOARD_NAME, MFD_CLOEXEC));
    if (own_fd < 0) {
        return without_board("memfd_create");
    }
    xm_spare_keep(own_fd);
    if (xc_file_lengthen(own_fd, (off_t)sizeof(struct layout)) != 0) {
        return without_board("ftruncate");
    }
    struct layout *at = map(own_fd);
    if (at == NULL) {
        return without_board("mmap");
    }
    if (getrandom(&own.nonce, sizeof(own.nonce), 0) != (ssize_t)sizeof(own.nonce)) {
        own.nonce = xm_now_ns() ^ ((uint64_t)getpid() << 32);
    }
    own.pid = process_number();
    struct header *h = &at->header;
    h->nonce = own.nonce;
    h->job = job_number();
    h->world_rank = -1;
    h->pid = own.pid;
    h->fd = own_fd;
    xm_variables_fill(&h->variables);
    h->threads = true; /* what sessions ask for is not known */
    if (xm_mpi_has_world()) {
        int rank = -1, size = 0, level = MPI_THREAD_MULTIPLE;
        xm_pmpi.Query_thread(&level);
        h->threads = (level == MPI_THREAD_MULTIPLE);
        xm_pmpi.Comm_rank(XM_HANDLE(MPI_COMM_WORLD), &rank);
        xm_pmpi.Comm_size(XM_HANDLE(MPI_COMM_WORLD), &size);
        h->world_rank = rank;
        h->world_size = size;
    }
    xm_queue_init(&h->queue);
    __atomic_store_n(&h->magic, BOARD_MAGIC, __ATOMIC_RELEASE);
    __atomic_store_n(&own.at, at, __ATOMIC_RELEASE);
    return true;
}

static bool have_own(void)
{
    if (__atomic_load_n(&own.at, __ATOMIC_ACQUIRE) != NULL) {
        return true;
    }
    pthread_mutex_lock(&lock);
    bool have = open_own();
    pthread_mutex_unlock(&lock);
    return have;
}

/* With the lock held. One that was given back is of use to the ranks that are behind this one. */
static bool is_free(int slot)
{
    uint64_t left = __atomic_load_n(&own.at->slots[slot].left, __ATOMIC_ACQUIRE);

    return !taken[slot] || ((read_by[slot] > 0) && (left >= (uint64_t)read_by[slot]));
}

void xm_board_place(struct xm_board_address *address)
{
    memset(address, 0, sizeof(*address));
    address->slot = -1;
    address->machine = xc_machine_number();
    address->node = node_number(address->machine);
}

void xm_board_take(struct xm_board_address *address)
{
    xm_board_place(address);
    pthread_mutex_lock(&lock);
    for (int i = 0; open_own() && (i < SLOTS) && (address->slot < 0); i++) {
        if (is_free(i)) {
            taken[i] = true;
            read_by[i] = 0;
            memset(&own.at->slots[i], 0, sizeof(own.at->slots[i]));
            address->slot = i;
        }
    }
    address->nonce = own.nonce;
    address->pid = own.pid;
    address->fd = own_fd;
    pthread_mutex_unlock(&lock);
}

void xm_board_give(int slot, int readers)
{
    if (slot >= 0) {
        pthread_mutex_lock(&lock);
        taken[slot] = (readers > 0);
        read_by[slot] = readers;
        pthread_mutex_unlock(&lock);
    }
}

/*
 * Is a descriptor of a process its board? To open anything else of another program might disturb
 * it. NULL, with errno: ENOENT where there is none.
 */
static struct layout *open_board_of(const char *pid, const char *fd)
{
    char    path[300], target[64] = "";
    int     n = snprintf(path, sizeof(path), "/proc/%.16s/fd/%.16s", pid, fd);
    ssize_t length = (n > 0) ? readlink(path, target, sizeof(target) - 1) : -1;

    if (length < 0) {
        return NULL;
    }
    if (strncmp(target, "/memfd:" BOARD_NAME " ", strlen("/memfd:" BOARD_NAME " ")) != 0) {
        errno = ENOENT;
        return NULL;
    }
    int file = xm_spare_open(path, O_RDWR);
    if (file < 0) {
        return NULL;
    }
    struct layout *at = map(file);
    int            why = errno;
    xm_spare_close(file);
    errno = why;
    return at;
}

static bool has_ended(int pid)
{
    char path[32];

    snprintf(path, sizeof(path), "/proc/%d", pid);
    return (access(path, F_OK) != 0) && (errno == ENOENT);
}

/*
 * With the lock held. A process that spawns others meets ever more boards. Pointers to one may be
 * left, so that of a process that has ended stays mapped; but its memory is given back, and it
 * reads as zero.
 */
static void empty_ended(void)
{
    static struct xm_board *at; /* where the last call came to */

    for (int i = 0; (i < LOOKS) && (boards != NULL); i++) {
        at = (at != NULL) ? at : boards;
        if (!at->emptied && has_ended(at->pid)) {
            at->emptied = (madvise(at->at, sizeof(*at->at), MADV_REMOVE) == 0);
        }
        at = at->next;
    }
}

/* With the lock held: the board of a process, mapped now or before. */
static struct xm_board *find_board(const struct xm_board_address *address)
{
    char pid[16], fd[16];

    if (address->nonce == own.nonce) {
        return &own;
    }
    for (struct xm_board *b = boards; b != NULL; b = b->next) {
        if ((b->nonce == address->nonce) && (b->pid == address->pid)) {
            return b;
        }
    }
    snprintf(pid, sizeof(pid), "%d", address->pid);
    snprintf(fd, sizeof(fd), "%d", address->fd);
    struct layout *at = open_board_of(pid, fd);
    if (at == NULL) {
        return NULL;
    }
    struct xm_board *b = calloc(1, sizeof(*b));
    if ((b == NULL) || (at->header.nonce != address->nonce)) {
        munmap(at, sizeof(*at));
        errno = (b == NULL) ? ENOMEM : ENOENT;
        free(b);
        return NULL;
    }
    empty_ended();
    *b = (struct xm_board){at, address->nonce, address->pid, false, boards};
    boards = b;
    return b;
}

struct xm_queue *xm_board_queue(struct xm_board *board)
{
    return &board->at->header.queue;
}

bool xm_board_threads(const struct xm_board *board)
{
    return board->at->header.threads;
}

int xm_board_pid(const struct xm_board *board)
{
    return board->pid;
}

struct xm_mailbox *xm_board_mailbox(struct xm_board *board)
{
    return &board->at->header.mailbox;
}

struct xm_slot *xm_board_slot(struct xm_board *board, int slot)
{
    return ((slot >= 0) && (slot < SLOTS)) ? &board->at->slots[slot] : NULL;
}

struct xm_board *xm_board_own(void)
{
    return have_own() ? &own : NULL;
}

struct xm_board *xm_board_open(const struct xm_board_address *address)
{
    pthread_mutex_lock(&lock);
    struct xm_board *board = find_board(address);
    int              why = errno;
    pthread_mutex_unlock(&lock);
    errno = why;
    return board;
}

void xm_board_address_of(const struct xm_board *board, struct xm_board_address *address_p)
{
    const struct header *h = &board->at->header;

    *address_p =
        (struct xm_board_address){.nonce = board->nonce, .pid = h->pid, .fd = h->fd, .slot = -1};
}

void xm_board_busy(uint64_t communicator, uint64_t number, enum xm_coll coll)
{
    if (!have_own()) {
        return;
    }
    if (__atomic_exchange_n(&writing, true, __ATOMIC_ACQUIRE)) {
        return; /* there is room for the call of one thread */
    }
    struct header *h = &own.at->header;
    __atomic_store_n(&h->busy.communicator, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&h->busy.coll, (uint64_t)coll, __ATOMIC_RELEASE);
    __atomic_store_n(&h->busy.number, number, __ATOMIC_RELEASE);
    __atomic_store_n(&h->busy.communicator, communicator, __ATOMIC_RELEASE);
    __atomic_store_n(&writing, false, __ATOMIC_RELEASE);
}

void xm_board_idle(void)
{
    if (__builtin_expect(__atomic_load_n(&own.at, __ATOMIC_ACQUIRE) != NULL, 0)) {
        __atomic_store_n(&own.at->header.busy.communicator, 0, __ATOMIC_RELEASE);
    }
}

bool xm_board_is_made(void)
{
    return __atomic_load_n(&own.at, __ATOMIC_ACQUIRE) != NULL;
}

void xm_board_say_host(uint64_t call)
{
    static uint64_t said; /* atomic */

    if (have_own()) {
        uint64_t at = __atomic_fetch_add(&said, 1, __ATOMIC_RELAXED) % HOST_CALLS;
        __atomic_store_n(&own.at->header.host_calls[at], call, __ATOMIC_RELEASE);
    }
}

/* Something is asked of the boards of this job's other processes, until one answers. */
struct search {
    int (*ask)(const struct search *search, const struct header *h); /* world rank, or -1 */
    uint64_t       communicator, number;                             /* the call */
    enum xm_coll  *coll_p;
    xm_board_seen *seen;
    void          *arg;
};

static int look_at(const struct search *search, struct layout *at)
{
    const struct header *h = &at->header;
    bool                 ours = (__atomic_load_n(&h->magic, __ATOMIC_ACQUIRE) == BOARD_MAGIC) &&
                (h->job == own.at->header.job) && (h->nonce != own.nonce) &&
                (h->world_size == own.at->header.world_size);
    int found = ours ? search->ask(search, h) : -1;

    munmap(at, sizeof(*at));
    return found;
}

static int look_at_process(const struct search *search, const char *pid)
{
    char path[64];
    int  found = -1;

    snprintf(path, sizeof(path), "/proc/%.16s/fd", pid);
    DIR *fds = opendir(path);
    if (fds == NULL) {
        return -1; /* another user's, or gone */
    }
    for (struct dirent *fd = readdir(fds); (fd != NULL) && (found < 0); fd = readdir(fds)) {
        struct layout *at = open_board_of(pid, fd->d_name);
        if (at != NULL) {
            found = look_at(search, at);
        }
    }
    closedir(fds);
    return found;
}

static void look_at_relative(void *arg, const char *pid)
{
    look_at_process(arg, pid);
}

static int look_at_all(const struct search *search)
{
    int  found = -1;
    DIR *processes = have_own() ? opendir("/proc") : NULL;

    if (processes == NULL) {
        return -1;
    }
    for (struct dirent *p = readdir(processes); (p != NULL) && (found < 0);
         p = readdir(processes)) {
        if ((p->d_name[0] >= '0') && (p->d_name[0] <= '9')) {
            found = look_at_process(search, p->d_name);
        }
    }
    closedir(processes);
    return found;
}

static int ask_busy(const struct search *search, const struct header *h)
{
    uint64_t communicator = __atomic_load_n(&h->busy.communicator, __ATOMIC_ACQUIRE);
    uint64_t number = __atomic_load_n(&h->busy.number, __ATOMIC_ACQUIRE);
    uint64_t coll = __atomic_load_n(&h->busy.coll, __ATOMIC_ACQUIRE);

    /* The next call may be on the same one: then its number differs, once that is seen. */
    if ((communicator != search->communicator) || (number != search->number) ||
        (__atomic_load_n(&h->busy.communicator, __ATOMIC_ACQUIRE) != communicator) ||
        (__atomic_load_n(&h->busy.number, __ATOMIC_RELAXED) != number)) {
        return -1;
    }
    *search->coll_p = (enum xm_coll)coll;
    return h->world_rank;
}

/* Only a rank that has waited for long comes here. */
int xm_board_find_busy(uint64_t communicator, uint64_t number, enum xm_coll *coll_p)
{
    struct search search = {ask_busy, communicator, number, coll_p, NULL, NULL};

    return look_at_all(&search);
}

static int ask_host(const struct search *search, const struct header *h)
{
    for (int i = 0; i < HOST_CALLS; i++) {
        if (__atomic_load_n(&h->host_calls[i], __ATOMIC_ACQUIRE) == search->number) {
            return h->world_rank;
        }
    }
    return -1;
}

int xm_board_find_host(uint64_t call)
{
    struct search search = {ask_host, 0, call, NULL, NULL, NULL};

    return look_at_all(&search);
}

struct asked {
    const int           *ranks;
    int                  n;
    struct xm_variables *all;
};

static void note_variables(const struct asked *asked, const struct header *h)
{
    for (int i = 0; i < asked->n; i++) {
        if (asked->ranks[i] == h->world_rank) {
            asked->all[i] = h->variables;
        }
    }
}

static int ask_variables(const struct search *search, const struct header *h)
{
    note_variables(search->arg, h);
    return -1;
}

void xm_board_variables(const int *world_ranks, int n, struct xm_variables *all_p)
{
    struct asked  asked = {world_ranks, n, all_p};
    struct search search = {ask_variables, 0, 0, NULL, NULL, &asked};

    memset(all_p, 0, (size_t)n * sizeof(*all_p));
    if (have_own()) {
        note_variables(&asked, &own.at->header);
        look_at_all(&search);
    }
}

static int ask_nothing(const struct search *search, const struct header *h)
{
    struct xm_board_address address = {.nonce = h->nonce, .pid = h->pid, .fd = h->fd, .slot = -1};

    search->seen(search->arg, h->world_rank, &address);
    return -1;
}

void xm_board_each(xm_board_seen *seen, void *arg)
{
    struct search search = {ask_nothing, 0, 0, NULL, seen, arg};

    look_at_all(&search);
}

void xm_board_each_relative(int generations, xm_board_seen *seen, void *arg)
{
    struct search search = {ask_nothing, 0, 0, NULL, seen, arg};

    if (have_own()) {
        xm_relatives_each(generations, look_at_relative, &search);
    }
}
