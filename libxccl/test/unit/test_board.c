/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Boards of processes: who belongs to the job is found, with what it does, and nothing but a board
 * is ever opened. Each rank here is a process; the first one makes no calls.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "comms/board.h"
#include "comms/mailbox.h"
#include "comms/order.h"
#include "comms/slots.h"
#include "comms/wait.h"
#include "mpi/mpi.h"

enum { SIZE = 4, GROUP = 77, NUMBER = 5, SLOTS = 256, HOST_CALL = 1234, HOST_CALLS = 64 };

static int        own_rank, own_size = SIZE;
struct xm_pmpi    xm_pmpi;
struct xm_handles xm_handles;

uint64_t xm_now_ns(void)
{
    return 1;
}

void xm_queue_init(struct xm_queue *queue)
{
    queue->end = 0;
}

bool xm_mpi_has_world(void)
{
    return true;
}

static int comm_rank(MPI_Comm comm, int *rank)
{
    (void)comm;
    *rank = own_rank;
    return MPI_SUCCESS;
}

static int comm_size(MPI_Comm comm, int *size)
{
    (void)comm;
    *size = own_size;
    return MPI_SUCCESS;
}

static int query_thread(int *level)
{
    *level = (own_rank == 0) ? MPI_THREAD_SERIALIZED : MPI_THREAD_MULTIPLE;
    return MPI_SUCCESS;
}

/* Another rank, and how it is told what to do: its answer is its address. */
struct rank {
    pid_t                   pid;
    int                     to, from;
    struct xm_board_address address;
};

static void be_rank(int in, int out)
{
    struct xm_board_address address;
    char                    what;

    xm_board_take(&address);
    xm_board_slot(xm_board_own(), address.slot)->arrived = 4711;
    while ((write(out, &address, sizeof(address)) == sizeof(address)) &&
           (read(in, &what, 1) == 1)) {
        if (what == 'b') {
            xm_board_busy(GROUP, NUMBER, XM_BCAST);
        } else if (what == 'h') {
            xm_board_say_host(HOST_CALL);
        } else if (what == 'm') {
            for (uint64_t call = 1; call <= HOST_CALLS; call++) {
                xm_board_say_host(HOST_CALL + call);
            }
        } else {
            xm_board_idle();
        }
    }
    _exit(0);
}

static void hear(struct rank *r)
{
    CHECK(read(r->from, &r->address, sizeof(r->address)) == sizeof(r->address), "its address");
}

static void tell(struct rank *r, char what)
{
    CHECK(write(r->to, &what, 1) == 1, "it hears");
    hear(r);
}

static struct rank start(int rank, int size, const char *job)
{
    struct rank r;
    int         to[2], from[2];

    if ((pipe2(to, O_CLOEXEC) != 0) || (pipe2(from, O_CLOEXEC) != 0)) {
        exit(1);
    }
    r = (struct rank){.to = to[1], .from = from[0], .pid = fork()};
    if (r.pid == 0) {
        close(to[1]);
        close(from[0]);
        setenv("PMIX_NAMESPACE", job, 1);
        own_rank = rank;
        own_size = size;
        be_rank(to[0], from[1]);
    }
    close(to[0]);
    close(from[1]);
    hear(&r);
    return r;
}

static void stop(struct rank *r)
{
    close(r->to);
    close(r->from);
    kill(r->pid, SIGKILL);
    waitpid(r->pid, NULL, 0);
}

static int seen_ranks; /* a bit for each */

static void seen(void *arg, int world_rank, const struct xm_board_address *address)
{
    const struct rank *r = arg;

    CHECK((r == NULL) || (address->pid == r->address.pid), "rank %d's process", world_rank);
    seen_ranks |= 1 << world_rank;
}

/* Of boards, in this process. */
static int count_maps(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char  line[512];
    int   n = 0;

    while ((maps != NULL) && (fgets(line, sizeof(line), maps) != NULL)) {
        n += (strstr(line, "xccl-board") != NULL);
    }
    fclose(maps);
    return n;
}

static void test_job(struct rank *peer)
{
    int before = count_maps();

    xm_board_each(seen, peer);
    CHECK(seen_ranks == 1 << 1, "rank 1 alone is of this job, and not this process: %#x",
          seen_ranks);
    CHECK((before == 1) && (count_maps() == 1), "%d boards stay mapped", count_maps());
}

static void test_opened(const struct rank *peer)
{
    struct xm_board_address address = peer->address;
    struct xm_board        *board = xm_board_open(&address);

    CHECK((board != NULL) && (xm_board_pid(board) == address.pid), "it is mapped");
    CHECK(xm_board_threads(board) && !xm_board_threads(xm_board_own()), "each says its level");
    CHECK(xm_board_open(&address) == board, "once");
    CHECK(xm_board_slot(board, address.slot)->arrived == 4711, "what is written there is read");
    CHECK((xm_board_slot(board, -1) == NULL) && (xm_board_slot(board, SLOTS) == NULL), "no slots");
    address.nonce++;
    CHECK(xm_board_open(&address) == NULL, "another process had this number");
    CHECK(count_maps() == 2, "%d boards are mapped", count_maps());
    address.nonce--;
    address.fd = 1 << 20;
    CHECK(xm_board_open(&address) == board, "it is known by its own number");
    xm_board_address_of(xm_board_own(), &address);
    CHECK(xm_board_open(&address) == xm_board_own(), "its own is no other");
}

static void test_busy(struct rank *peer)
{
    enum xm_coll coll = XM_ALLREDUCE;

    CHECK(xm_board_find_busy(GROUP, NUMBER, &coll) == -1, "nobody is");
    tell(peer, 'b');
    CHECK((xm_board_find_busy(GROUP, NUMBER, &coll) == 1) && (coll == XM_BCAST), "rank 1 is");
    CHECK(xm_board_find_busy(GROUP, NUMBER + 1, &coll) == -1, "not with another call");
    CHECK(xm_board_find_busy(GROUP + 1, NUMBER, &coll) == -1, "nor with others");
    tell(peer, 'i');
    CHECK(xm_board_find_busy(GROUP, NUMBER, &coll) == -1, "nobody any more");
}

/* What was said stays, until there were many more. */
static void test_host(struct rank *peer)
{
    CHECK(xm_board_find_host(HOST_CALL) == -1, "nobody has said so");
    tell(peer, 'h');
    CHECK(xm_board_find_host(HOST_CALL) == 1, "rank 1 has");
    CHECK(xm_board_find_host(HOST_CALL + 1) == -1, "not of another call");
    xm_board_say_host(HOST_CALL + 1);
    CHECK(xm_board_find_host(HOST_CALL + 1) == -1, "and its own say is not looked at");
    tell(peer, 'm');
    CHECK(xm_board_find_host(HOST_CALL) == -1, "it is gone");
    CHECK(xm_board_find_host(HOST_CALL + 1) == 1, "the last ones are not");
    CHECK(xm_board_find_host(HOST_CALL + HOST_CALLS) == 1, "nor is the last");
}

static bool was_opened(int watch)
{
    char          events[512];
    struct pollfd p = {.fd = watch, .events = POLLIN};

    return (poll(&p, 1, 0) > 0) && (read(watch, events, sizeof(events)) > 0);
}

/* One that is being made has no bytes yet; that of another xccl may have fewer. */
static void test_short(void)
{
    struct xm_board_address address;
    int                     fd = memfd_create("xccl-board", MFD_CLOEXEC);

    xm_board_address_of(xm_board_own(), &address);
    address.nonce++;
    address.fd = fd;
    CHECK(fd >= 0, "an empty one");
    CHECK(xm_board_open(&address) == NULL, "it is not read");
    close(fd);
}

/* To open a file of another program might disturb it: a tape, a lock, a file that is written. */
static void test_other_files(void)
{
    struct xm_board_address address;
    char                    name[] = "xccl-board-XXXXXX";
    int                     watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC), fd = mkstemp(name);

    CHECK((fd >= 0) && (inotify_add_watch(watch, name, IN_OPEN) >= 0), "%s", strerror(errno));
    xm_board_address_of(xm_board_own(), &address);
    address.nonce++;
    address.fd = fd;
    CHECK(xm_board_open(&address) == NULL, "it is no board");
    xm_board_each(seen, NULL);
    CHECK(!was_opened(watch), "it was opened");
    int again = open(name, O_RDONLY | O_CLOEXEC);
    CHECK((again >= 0) && was_opened(watch), "that would have been seen");
    close(again);
    close(fd);
    close(watch);
    unlink(name);
}

static void test_slots(void)
{
    struct xm_board_address address;
    static bool             taken[SLOTS];
    int                     n = 0;

    for (xm_board_take(&address); address.slot >= 0; xm_board_take(&address)) {
        struct xm_slot *slot = xm_board_slot(xm_board_own(), address.slot);
        CHECK((slot != NULL) && !taken[address.slot] && (slot->arrived == 0), "%d", address.slot);
        taken[address.slot] = true;
        slot->arrived = 1;
        n++;
    }
    CHECK(n == SLOTS, "%d slots", n);
    xm_board_give(-1, 0);
    xm_board_give(9, 0);
    xm_board_take(&address);
    CHECK(address.slot == 9, "slot %d", address.slot);
    CHECK(xm_board_slot(xm_board_own(), 9)->arrived == 0, "emptied");
}

/* What other ranks still look at is not taken again before they have left it. With all taken. */
static void test_left_slots(void)
{
    struct xm_board_address address;
    struct xm_slot         *slot = xm_board_slot(xm_board_own(), 7);

    for (int round = 0; round < 2; round++) {
        slot->left = 1;
        xm_board_give(7, 2);
        xm_board_take(&address);
        CHECK(address.slot == -1, "slot %d, which another rank looks at", address.slot);
        slot->left++;
        xm_board_take(&address);
        CHECK((address.slot == 7) && (slot->left == 0), "slot %d, which nobody does", address.slot);
    }
    xm_board_take(&address);
    CHECK(address.slot == -1, "slot %d is taken", address.slot);
}

/* In a process of its own: what it says comes to its standard error. Returns how that begins. */
static void run_with_files(int most, char *said, size_t len)
{
    int pipes[2];

    CHECK(pipe(pipes) == 0, "a pipe");
    pid_t child = fork();
    if (child == 0) {
        struct rlimit limit = {(rlim_t)most, (rlim_t)most};
        dup2(pipes[1], STDERR_FILENO);
        setrlimit(RLIMIT_NOFILE, &limit);
        while ((most < 64) && (open("/dev/null", O_RDONLY) >= 0)) {}
        _exit((xm_board_own() != NULL) ? 0 : 3 + (xm_board_own() != NULL));
    }
    close(pipes[1]);
    ssize_t n = read(pipes[0], said, len - 1);
    said[(n > 0) ? n : 0] = '\0';
    close(pipes[0]);
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(WEXITSTATUS(status) == ((most < 64) ? 3 : 0), "%d files: status %d", most,
          WEXITSTATUS(status));
}

/* Few files are enough; where there is none left, it says so once, and how to mend it. */
static void test_few_files(void)
{
    char said[1024];

    run_with_files(64, said, sizeof(said));
    CHECK(said[0] == '\0', "a board within 64 files: %s", said);
    run_with_files(20, said, sizeof(said));
    char *first = strstr(said, "no memory shared with the other ranks of this node: memfd_create");
    CHECK((first != NULL) && (strstr(first + 1, "no memory") == NULL), "it is said once: %s", said);
    CHECK(strstr(said, "ulimit -n") != NULL, "and what to do: %s", said);
}

int main(void)
{
    xm_pmpi.Comm_rank = comm_rank;
    xm_pmpi.Comm_size = comm_size;
    xm_pmpi.Query_thread = query_thread;
    setenv("PMIX_NAMESPACE", "job", 1);
    unsetenv("PMI_FD");
    /* Before this process has a board. */
    struct rank  ranks[] = {start(1, SIZE, "job"), start(2, SIZE, "another"),
                            start(3, SIZE - 1, "job")};
    struct rank *peer = &ranks[0];

    test_few_files();
    CHECK(xm_board_own() != NULL, "a board");
    test_job(peer);
    test_opened(peer);
    test_busy(peer);
    test_host(peer);
    test_short();
    test_other_files();
    test_slots();
    test_left_slots();
    for (int i = 0; i < 3; i++) {
        stop(&ranks[i]);
    }
    return xt_done("boards");
}
