/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/record.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/files.h"
#include "base/launch.h"
#include "base/log.h"
#include "base/params.h"
#include "ops/inside.h"
#include "ops/ring.h"

enum { HISTORY = 8 };

/* Words are static texts: nothing is formatted until somebody reads them. */
struct record {
    const struct xm_comm *comm; /* only compared: it may be gone */
    int                   comm_rank, comm_size;
    uint64_t              sequence;
    enum xm_coll          coll;
    enum xm_form          form;
    int64_t               count, bytes;
    const char           *type;
    const char           *op;
    int                   root;
    const char           *memory;
    struct way {
        char        comm_id[32];
        const char *path;
    } way; /* what the ranks may have to agree on */
    struct timespec started;
    struct change {
        const char     *state;
        struct timespec ended; /* since the epoch; tv_sec 0: not yet */
    } last;                    /* what is changed later, at once */
};

union words {
    struct record r;
    uint64_t      word[XM_RING_WORDS];
};
_Static_assert(sizeof(union words) == sizeof(uint64_t) * XM_RING_WORDS, "a record fits");
_Static_assert(sizeof(struct change) % sizeof(uint64_t) == 0, "it is some words of it");
_Static_assert(sizeof(struct way) % sizeof(uint64_t) == 0, "and this");

const char xm_waiting[] = "waiting";

static struct xm_ring ring;
static char           host[64];
static int            world_rank = -1, world_size;
static char           spawned[16] = "null"; /* as JSON: the number of a world that was spawned */
static char           folder[PATH_MAX];
static const char    *cause = "null"; /* atomic: the first failure, as JSON */
static const char    *wanted;         /* atomic: the reason of a file that is still to be written */
static bool           dumping;        /* atomic: a thread writes one */
static bool           was_free;       /* SIGUSR1 had its default before MPI began */
static void (*of_mpi)(int number);    /* what MPI set instead, or NULL */

static struct way way_of(const struct xm_op *op)
{
    struct way way = {"none", (op->path != NULL) ? op->path->name : "agreement"};

    if (op->comm != NULL) {
        memcpy(way.comm_id, op->comm->id, sizeof(way.comm_id));
    }
    return way;
}

uint64_t xm_record_begin(const struct xm_op *op, enum xm_counted counted)
{
    const struct xm_call *call = &op->call;
    bool                  sends = (call->sendtype != 0);
    union words           w = {.r = {.comm = op->comm, .comm_size = 1}};
    struct record        *r = &w.r;

    if (op->comm != NULL) {
        r->comm_rank = op->comm->rank;
        r->comm_size = op->comm->size;
        r->sequence = op->comm->device_calls + (counted == XM_COUNTED_SOON);
        r->sequence = (counted == XM_COUNTED_NEVER) ? 0 : r->sequence;
    }
    r->coll = call->coll;
    r->form = call->form;
    r->count = sends ? call->sendcount : call->recvcount;
    r->bytes = (int64_t)op->facts.bytes;
    r->type = xm_type_name(sends ? call->sendtype : call->recvtype);
    const char *op_name = xm_op_name(call->op);
    r->op = ((op_name == NULL) && (call->op != 0)) ? "user-defined" : op_name;
    r->root = call->root;
    r->memory = xm_mem_name(op->facts.mem);
    r->way = way_of(op);
    r->last.state = "started";
    clock_gettime(CLOCK_REALTIME_COARSE, &r->started);
    return xm_ring_add(&ring, w.word);
}

void xm_record_state(uint64_t record, const char *state)
{
    struct change last = {.state = state};
    uint64_t      words[sizeof(last) / sizeof(uint64_t)];

    if (state != xm_waiting) {
        clock_gettime(CLOCK_REALTIME_COARSE, &last.ended);
    }
    memcpy(words, &last, sizeof(last));
    xm_ring_change(&ring, record, offsetof(struct record, last) / sizeof(uint64_t), words,
                   sizeof(words) / sizeof(words[0]));
}

void xm_record_agreed(const struct xm_op *op)
{
    struct way way = way_of(op);
    uint64_t   words[sizeof(way) / sizeof(uint64_t)];

    memcpy(words, &way, sizeof(way));
    xm_ring_change(&ring, op->record, offsetof(struct record, way) / sizeof(uint64_t), words,
                   sizeof(words) / sizeof(words[0]));
}

uint64_t xm_record_sequence(const struct xm_op *op)
{
    union words w;

    if ((op->record != 0) && xm_ring_read(&ring, op->record, w.word)) {
        return w.r.sequence;
    }
    return (op->comm != NULL) ? op->comm->device_calls : 0; /* later ones took its place */
}

bool xm_record_started(const struct xm_op *op, struct timespec *started_p)
{
    union words w;

    if ((op->record == 0) || !xm_ring_read(&ring, op->record, w.word)) {
        return false;
    }
    *started_p = w.r.started;
    return true;
}

void xm_record_place(const struct xm_op *op, char *buf, size_t len)
{
    int                size = (op->comm != NULL) ? op->comm->size : 1;
    unsigned long long sequence = xm_record_sequence(op);

    if (sequence == 0) {
        snprintf(buf, len, "on a communicator of %d ranks", size);
    } else {
        snprintf(buf, len, "number %llu of its communicator of %d ranks", sequence, size);
    }
}

void xm_record_describe(void *arg, char *buf, size_t len)
{
    const struct xm_op *op = arg;
    char                place[80];

    xm_record_place(op, place, sizeof(place));
    snprintf(buf, len, "%s of %llu bytes (%s), %s", xm_coll_name(op->call.coll),
             (unsigned long long)op->facts.bytes, op->path->name, place);
}

void xm_record_history(const struct xm_comm *xm, char *buf, size_t len)
{
    uint64_t    last = xm_ring_last(&ring);
    size_t      n = 0;
    int         told = 0;
    union words w;

    buf[0] = '\0';
    for (uint64_t i = 0; (i < XM_RING_RECORDS) && (i < last) && (told < HISTORY) && (n < len);
         i++) {
        if (!xm_ring_read(&ring, last - i, w.word) || (w.r.comm != xm)) {
            continue;
        }
        bool failed = (strcmp(w.r.last.state, "failed") == 0);
        bool ended = (w.r.last.ended.tv_sec != 0);
        char number[24] = "";
        if (w.r.sequence > 0) {
            snprintf(number, sizeof(number), "#%llu ", (unsigned long long)w.r.sequence);
        }
        n += (size_t)snprintf(buf + n, len - n, "%s%s%s of %lld bytes%s", (told > 0) ? ", " : "",
                              number, xm_coll_name(w.r.coll), (long long)w.r.bytes,
                              failed  ? " (failed)"
                              : ended ? ""
                                      : " (not completed)");
        told++;
    }
}

/* "MPI_Iallreduce": names begin with capitals but behind an I. */
static void call_name(const struct record *r, char *buf, size_t len)
{
    const char *name = xm_coll_name(r->coll);
    char        first = (char)(name[0] - 'a' + 'A');

    if (r->form == XM_NONBLOCKING) {
        snprintf(buf, len, "MPI_I%s", name);
    } else {
        snprintf(buf, len, "MPI_%c%s%s", first, name + 1,
                 (r->form == XM_PERSISTENT) ? "_init" : "");
    }
}

static int write_record(const struct record *r, bool first, char *buf, size_t len)
{
    char name[64], ended[40] = "null", op[40] = "null", type[40] = "null", sequence[24] = "null";

    call_name(r, name, sizeof(name));
    if (r->last.ended.tv_sec != 0) {
        snprintf(ended, sizeof(ended), "%lld.%06ld", (long long)r->last.ended.tv_sec,
                 r->last.ended.tv_nsec / 1000);
    }
    if (r->sequence > 0) {
        snprintf(sequence, sizeof(sequence), "%llu", (unsigned long long)r->sequence);
    }
    if (r->op != NULL) {
        snprintf(op, sizeof(op), "\"%s\"", r->op);
    }
    if (r->type != NULL) {
        snprintf(type, sizeof(type), "\"%s\"", r->type);
    }
    return snprintf(
        buf, len,
        "%s\n  {\"comm\": \"%s\", \"comm_rank\": %d, \"comm_size\": %d, \"sequence\": %s, "
        "\"call\": \"%s\", \"count\": %lld, \"type\": %s, \"op\": %s, \"root\": %d, "
        "\"memory\": \"%s\", \"bytes\": %lld, \"path\": \"%s\", \"state\": \"%s\", "
        "\"started\": %lld.%06ld, \"ended\": %s}",
        first ? "" : ",", r->way.comm_id, r->comm_rank, r->comm_size, sequence, name,
        (long long)r->count, type, op, r->root, r->memory, (long long)r->bytes,
        (strcmp(r->way.path, "mpi-staged") == 0) ? "staged" : r->way.path, r->last.state,
        (long long)r->started.tv_sec, r->started.tv_nsec / 1000, ended);
}

static bool put(int fd, const char *text, int length)
{
    while (length > 0) {
        ssize_t n = write(fd, text, (size_t)length);
        if (n > 0) {
            text += n;
            length -= (int)n;
        } else if ((n == 0) || (errno != EINTR)) { /* a signal that is no SIGUSR1 */
            return false;
        }
    }
    return true;
}

/* strerror() may take locks, and memory of the heap. */
static const char *cause_of(int error)
{
    switch (error) {
    case ENOENT:
    case ENOTDIR:
        return "there is no such folder";
    case EACCES:
    case EPERM:
        return "no permission";
    case EROFS:
        return "the file system is read-only";
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return "no space left";
    case EMFILE:
    case ENFILE:
        return "too many open files";
    default:
        return "an error of the system";
    }
}

/* Whoever sent the signal waits for the file. */
static void say_failed(const char *path, int error)
{
    static char text[PATH_MAX + 256]; /* one thread at a time, see dump() */
    int         n =
        snprintf(text, sizeof(text),
                 "xccl[%d] warning: cannot write %s: %s (errno %d); XCCL_DUMP_DIR names another "
                 "folder\n",
                 world_rank, path, cause_of(error), error);

    put(STDERR_FILENO, text, n);
}

/* What each thread is in, behind the operations, and the end of the file. */
static bool put_calls(int fd, char *text, size_t size)
{
    static const char begin[] = "],\n \"calls\": [", end[] = "]}\n";
    bool              good = put(fd, begin, sizeof(begin) - 1), first = true;

    for (int i = 0, n = 0; good && (n >= 0); i++) {
        n = xm_inside_write(i, text, size);
        if ((n > 0) && (n < (int)size)) {
            good = put(fd, first ? "\n  " : ",\n  ", first ? 3 : 4) && put(fd, text, n);
            first = false;
        }
    }
    return good && put(fd, end, sizeof(end) - 1);
}

/*
 * Also from a signal handler: open, write, rename and formatting of numbers and short texts, which
 * the C library does without locks or memory of the heap.
 */
static void write_dump(const char *reason)
{
    /* Static: one thread at a time is here, and a thread of the program may have a short stack. */
    static char     path[PATH_MAX + 208], whole[PATH_MAX + 200];
    char            text[1024];
    struct timespec now;
    bool            first = true;
    uint64_t        last = xm_ring_last(&ring);
    union words     w;

    snprintf(whole, sizeof(whole), "%s/xccl-ops.%s.%d.%d.json", folder, host, (int)getpid(),
             world_rank); /* containers may have one name, and the same process numbers */
    snprintf(path, sizeof(path), "%s.part", whole);
    int fd = xc_file_open(path, false);
    if (fd < 0) {
        say_failed(whole, errno);
        return;
    }
    clock_gettime(CLOCK_REALTIME, &now);
    int  n = snprintf(text, sizeof(text),
                      "{\"version\": 1, \"rank\": %d, \"size\": %d, \"spawned\": %s, \"host\": "
                       "\"%s\", \"pid\": %d, \"all_calls\": %s, "
                       "\"reason\": \"%s\", \"cause\": %s, \"time\": %lld.%06ld,\n \"operations\": [",
                      world_rank, world_size, spawned, host, (int)getpid(),
                     xm_inside_is_asked_for() ? "true" : "false", reason,
                      __atomic_load_n(&cause, __ATOMIC_ACQUIRE), (long long)now.tv_sec,
                      now.tv_nsec / 1000);
    bool good = put(fd, text, n);
    for (uint64_t i = (last > XM_RING_RECORDS) ? last - XM_RING_RECORDS + 1 : 1;
         good && (i <= last); i++) {
        if (xm_ring_read(&ring, i, w.word)) {
            n = write_record(&w.r, first, text, sizeof(text));
            good = put(fd, text, (n < (int)sizeof(text)) ? n : (int)sizeof(text) - 1);
            first = false;
        }
    }
    good = good && put_calls(fd, text, sizeof(text));
    int why = errno;
    if ((close(fd) != 0) && good) { /* some file systems say so only here */
        good = false;
        why = errno;
    }
    if (good) {
        rename(path, whole);
    } else {
        unlink(path);
        say_failed(whole, why);
    }
}

/*
 * Signals may come to several threads at once, and there is one file: a thread that comes while
 * another one writes leaves it the reason, and does not wait, since it may have interrupted it.
 */
static void dump(const char *reason)
{
    __atomic_store_n(&wanted, reason, __ATOMIC_SEQ_CST);
    while ((__atomic_load_n(&wanted, __ATOMIC_SEQ_CST) != NULL) &&
           !__atomic_exchange_n(&dumping, true, __ATOMIC_SEQ_CST)) {
        const char *why = __atomic_exchange_n(&wanted, NULL, __ATOMIC_SEQ_CST);
        if (why != NULL) {
            write_dump(why);
        }
        __atomic_store_n(&dumping, false, __ATOMIC_SEQ_CST);
    }
}

/* Or is about to. */
static bool is_dumping(void)
{
    return (__atomic_load_n(&wanted, __ATOMIC_SEQ_CST) != NULL) ||
           __atomic_load_n(&dumping, __ATOMIC_SEQ_CST);
}

void xm_records_dump(const char *reason)
{
    enum { MOST_NAPS = 1000 };
    const struct timespec nap = {0, 1000 * 1000};

    if (folder[0] != '\0') {
        dump(reason);
        /* The error may end the process. */
        for (int i = 0; is_dumping() && (i < MOST_NAPS); i++) {
            nanosleep(&nap, NULL);
        }
    }
}

/* The first failure's message, in quotes: later ones most often come of it. */
static void keep_cause(const char *message)
{
    static char text[400];
    static bool taken; /* atomic */
    size_t      n = 0;

    if (__atomic_exchange_n(&taken, true, __ATOMIC_ACQ_REL)) {
        return;
    }
    text[n++] = '"';
    for (; (*message != '\0') && (n < sizeof(text) - 2); message++) {
        bool plain = (*message >= ' ') && (*message <= '~') && (*message != '\\');
        text[n++] = (*message == '"') ? '\'' : plain ? *message : '?';
    }
    text[n] = '"';
    __atomic_store_n(&cause, text, __ATOMIC_RELEASE);
}

void xm_records_failed(xcclResult_t why, const char *message)
{
    keep_cause(message);
    if (xc_params()->dump_dir != NULL) {
        xm_records_dump((why == xcclTimeout) ? "time-out" : "error");
    }
}

/* What it interrupts may be about to look at errno. */
static void on_signal(int number)
{
    int before = errno;

    dump("SIGUSR1");
    if (of_mpi != NULL) {
        of_mpi(number);
    }
    errno = before;
}

void xm_records_before_mpi(void)
{
    static bool      asked; /* MPI begins once, by MPI_Init or with a session */
    struct sigaction now;

    if (__atomic_exchange_n(&asked, true, __ATOMIC_ACQ_REL)) {
        return;
    }
    was_free = (sigaction(SIGUSR1, NULL, &now) == 0) && (now.sa_handler == SIG_DFL);
}

void xm_records_mpi_began(void)
{
    struct sigaction now;

    if (was_free && (sigaction(SIGUSR1, NULL, &now) == 0) && ((now.sa_flags & SA_SIGINFO) == 0) &&
        (now.sa_handler != SIG_DFL) && (now.sa_handler != SIG_IGN)) {
        of_mpi = now.sa_handler;
    }
    was_free = false; /* one that is set from here on is the program's */
}

/*
 * Its default is to end the process; a handler of the program's stays. MPICH has one of its own,
 * by which Hydra tells it that a process has failed: it is called after ours.
 */
static void take_signal(void)
{
    struct sigaction before, ours = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

    if ((sigaction(SIGUSR1, NULL, &before) == 0) &&
        ((before.sa_handler == SIG_DFL) || ((of_mpi != NULL) && (before.sa_handler == of_mpi)))) {
        sigaction(SIGUSR1, &ours, NULL);
    }
}

void xm_records_init(void)
{
    struct xc_launch launch;
    const char      *dir = xc_params()->dump_dir;

    snprintf(folder, sizeof(folder), "%s", (dir != NULL) ? dir : ".");
    if (gethostname(host, sizeof(host) - 1) != 0) {
        snprintf(host, sizeof(host), "unknown");
    }
    host[strcspn(host, ".\"\\/")] = '\0';
    if (xm_mpi_has_world()) {
        xm_pmpi.Comm_rank(XM_HANDLE(MPI_COMM_WORLD), &world_rank);
        xm_pmpi.Comm_size(XM_HANDLE(MPI_COMM_WORLD), &world_size);
        if (xm_mpi_spawned() != 0) {
            snprintf(spawned, sizeof(spawned), "\"%08" PRIx32 "\"", xm_mpi_spawned());
        }
    } else if (xc_launch_read(&launch)) { /* the rank that it would have there */
        world_rank = launch.rank;
        world_size = launch.size;
    }
    take_signal();
}
