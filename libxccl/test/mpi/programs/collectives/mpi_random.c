/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random collectives of all kinds and forms, compared byte for byte with the MPI library's own
 * functions on copies in host memory.
 *
 *   mpi_random cuda|rocm|none SEED CALLS [options]
 *     --mixed      each rank draws the kind of memory for itself
 *     --threads K  so many threads, each with communicators and calls of its own
 *     --blocking   only blocking calls        --only NAME  only this collective, as "Gatherv"
 *     --large      calls of megabytes
 *     --crowd      beside more persistent requests than have communicators of their own
 *     --without WORD  a part of what is drawn, see RX_FEATURES
 *     --from N     skip the calls before N    --verbose    print every call before it is made
 *
 * Calls come in batches: their references are made first, while nothing is pending, because the
 * references pass by what is tested, which could make no progress meanwhile.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "random.h"

enum {
    MOST_PRINTED = 10,
    MOST_THREADS = 8,
    ARENA = 24 << 20,
    NUM_WHERES = 3,
    RENEW = 60,
    CROWD = 64 /* MOST_APART of calls/persistent.c */
};

/* MPICH 4.0.2 copies a rank's own part when a persistent call is made, not when it is started. */
#ifdef MPICH_VERSION
enum { REPEATS = 0 };
#else
enum { REPEATS = 1 };
#endif

/* Memory handed out from its begin, and all given back at the end of a batch. */
struct arena {
    char  *memory;
    size_t used;
    char  *extra[2 * RX_BATCH]; /* what did not fit */
    int    num_extra;
};

struct worker {
    int            id;
    MPI_Comm       parent;
    struct rx_comm comms[RX_COMMS];
    struct arena   arenas[NUM_WHERES];
    struct rx_call batch[RX_BATCH];
    MPI_Request    requests[RX_BATCH];
    int            pending;
    uint64_t       own; /* decisions that differ by rank */
    char          *scratch;
    size_t         scratch_size;
};

struct rx_options    rx_options = {.runtime = "none", .threads = 1, .only = -1};
static int           world_rank;
static atomic_int    checks, failures;
static struct worker workers[MOST_THREADS];

/* Of a run that hangs, the launcher's SIGTERM makes known where. */
static void on_terminate(int number)
{
    char text[4096];

    for (int t = 0; t < rx_options.threads; t++) {
        for (int i = 0; i < RX_BATCH; i++) {
            const struct rx_call *c = &workers[t].batch[i];
            char                  what[2000];
            if (c->where.kind != NULL) {
                rx_describe(c, what, sizeof(what));
                int length = snprintf(
                    text, sizeof(text), "rank %d, thread %d, call %ld%s: %s\n", world_rank, t,
                    c->number, (workers[t].requests[i] != MPI_REQUEST_NULL) ? " (pending)" : "",
                    what);
                length = (write(1, text, (size_t)length) < 0) ? 0 : length;
            }
        }
    }
    _exit(128 + number);
}

static void *arena_take(struct worker *w, enum mt_where where, size_t bytes)
{
    struct arena *a = &w->arenas[where];
    size_t        begin = (a->used + 63) / 64 * 64;

    if (a->memory == NULL) {
        a->memory = mt_alloc(where, ARENA);
    }
    if (begin + bytes <= ARENA) {
        a->used = begin + bytes;
        return a->memory + begin;
    }
    a->extra[a->num_extra] = mt_alloc(where, bytes);
    return a->extra[a->num_extra++];
}

static void arenas_reset(struct worker *w)
{
    for (int where = 0; where < NUM_WHERES; where++) {
        struct arena *a = &w->arenas[where];
        for (int i = 0; i < a->num_extra; i++) {
            mt_free((enum mt_where)where, a->extra[i]);
        }
        a->used = 0;
        a->num_extra = 0;
    }
}

/* Values for one side. Open MPI adds short integers with saturation, others wrap: small ones. */
static void side_fill(struct worker *w, const struct rx_call *c, struct rx_side *side,
                      unsigned salt)
{
    size_t size = c->base->field[0].size;
    bool   adds = ((c->coll <= RX_EXSCAN) || (c->coll == RX_REDUCE_LOCAL)) && (size <= 2) &&
                ((c->op.op == MPI_SUM) || (c->op.op == MPI_PROD));

    side->before = malloc(2 * side->bytes + 1);
    side->expected = side->before + side->bytes;
    mt_fill(c->base, side->before, side->bytes,
            (unsigned)rx_hash(c->seed, (uint64_t)world_rank, salt));
    for (size_t i = 0; adds && (i < side->bytes); i++) {
        side->before[i] &= (i % size == 0) ? 3 : 0;
    }
    memcpy(side->expected, side->before, side->bytes);
    side->memory = arena_take(w, side->where, side->bytes);
    mt_put(side->memory, side->where, side->before, side->bytes);
}

static void *passed(const struct rx_side *side)
{
    return side->null ? NULL : (void *)((uintptr_t)side->memory + (uintptr_t)side->origin);
}

/*
 * Displacements may make the addresses that are passed equal although the data lies apart. The
 * non-blocking collectives of Open MPI 4.1 take that for MPI_IN_PLACE.
 */
static void move_apart(struct worker *w, struct rx_call *c)
{
    while ((passed(&c->send) == passed(&c->recv)) && (passed(&c->send) != NULL)) {
        c->recv.memory = (char *)arena_take(w, c->recv.where, c->recv.bytes + 64) + 64;
        mt_put(c->recv.memory, c->recv.where, c->recv.before, c->recv.bytes);
    }
}

static void report(const struct rx_call *c, const char *which, long at, const struct rx_side *side,
                   const char *got)
{
    char what[2000];

    if (atomic_fetch_add(&failures, 1) >= MOST_PRINTED) {
        return;
    }
    rx_describe(c, what, sizeof(what));
    printf("FAIL seed %llu, call %ld, rank %d: the %s buffer is wrong from byte %ld (of %zu, the "
           "pointer is at %ld): %02x instead of %02x\n  %s\n",
           (unsigned long long)rx_options.seed, c->number, world_rank, which, at, side->bytes,
           (long)side->origin, (unsigned char)got[at], (unsigned char)side->expected[at], what);
    fflush(stdout);
}

static void side_compare(struct worker *w, const struct rx_call *c, const char *which,
                         const struct rx_side *side)
{
    long at;

    if (side->bytes > w->scratch_size) {
        free(w->scratch);
        w->scratch_size = 2 * side->bytes;
        w->scratch = mt_alloc(MT_HOST, w->scratch_size);
    }
    mt_get(w->scratch, side->memory, side->where, side->bytes);
    at = mt_compare(c->base, side->expected, w->scratch, side->defined);
    atomic_fetch_add(&checks, 1);
    if (at >= 0) {
        report(c, which, at, side, w->scratch);
    }
}

static void compare(struct worker *w, struct rx_call *c)
{
    side_compare(w, c, "send", &c->send);
    if (!c->undefined) {
        side_compare(w, c, "receive", &c->recv);
    }
}

/* Complete some or all of what is pending, in one of MPI's ways and in an order of this rank. */
static void complete(struct worker *w)
{
    int which, count, flag, places[RX_BATCH];
    int way = rx_below(&w->own, 8);

    switch (way) {
    case 0:
        MPI_Wait(&w->requests[rx_below(&w->own, RX_BATCH)], MPI_STATUS_IGNORE);
        break;
    case 1:
        MPI_Waitall(RX_BATCH, w->requests, MPI_STATUSES_IGNORE);
        break;
    case 2:
        MPI_Waitany(RX_BATCH, w->requests, &which, MPI_STATUS_IGNORE);
        break;
    case 3:
        MPI_Waitsome(RX_BATCH, w->requests, &count, places, MPI_STATUSES_IGNORE);
        break;
    case 4:
        MPI_Test(&w->requests[rx_below(&w->own, RX_BATCH)], &flag, MPI_STATUS_IGNORE);
        break;
    case 5:
        MPI_Testall(RX_BATCH, w->requests, &flag, MPI_STATUSES_IGNORE);
        break;
    case 6:
        MPI_Testany(RX_BATCH, w->requests, &which, &flag, MPI_STATUS_IGNORE);
        break;
    default:
        MPI_Testsome(RX_BATCH, w->requests, &count, places, MPI_STATUSES_IGNORE);
        break;
    }
}

/* Persistent requests stay when they are done: wait for them by themselves, in any order. */
static void complete_persistent(struct worker *w, int calls)
{
    int first = rx_below(&w->own, RX_BATCH);

    for (int i = 0; i < RX_BATCH; i++) {
        struct rx_call *c = &w->batch[(first + i) % RX_BATCH];
        if (((first + i) % RX_BATCH < calls) && (c->mode == RX_PERSISTENT)) {
            MPI_Wait(&c->request, MPI_STATUS_IGNORE);
        }
    }
}

static bool any_pending(const struct worker *w)
{
    for (int i = 0; i < RX_BATCH; i++) {
        if (w->requests[i] != MPI_REQUEST_NULL) {
            return true;
        }
    }
    return false;
}

static void start(struct worker *w, int i)
{
    struct rx_call *c = &w->batch[i];
    MPI_Request     request = MPI_REQUEST_NULL;

    rx_make(c, c->mode, c->send.memory, c->recv.memory, &request);
    if (c->mode == RX_PERSISTENT) {
        MPI_Start(&request);
        c->request = request;
    } else if (c->mode == RX_NONBLOCKING) {
        w->requests[i] = request;
    }
    if (rx_below(&w->own, 3) == 0) {
        complete(w);
    }
}

/* Start the persistent calls of a batch a second time, with the first values in the buffers. */
static void repeat(struct worker *w, struct rx_call *c)
{
    mt_put(c->send.memory, c->send.where, c->send.before, c->send.bytes);
    mt_put(c->recv.memory, c->recv.where, c->recv.before, c->recv.bytes);
    MPI_Start(&c->request);
    MPI_Wait(&c->request, MPI_STATUS_IGNORE);
    compare(w, c);
}

static void prepare(struct worker *w, struct rx_call *c)
{
    if (rx_options.verbose) {
        char what[2000];
        rx_describe(c, what, sizeof(what));
        printf("rank %d, call %ld: %s\n", world_rank, c->number, what);
        fflush(stdout);
    }
    side_fill(w, c, &c->send, 1);
    side_fill(w, c, &c->recv, 2);
    move_apart(w, c);
    rx_make(c, RX_REFERENCE, c->send.expected, c->recv.expected, NULL);
}

static void finish(struct worker *w, struct rx_call *c, bool again)
{
    compare(w, c);
    if (c->mode == RX_PERSISTENT) {
        if (again) {
            repeat(w, c);
        }
        MPI_Request_free(&c->request);
    }
    free(c->send.before);
    free(c->recv.before);
}

static void renew(struct worker *w, int slot, uint64_t seed)
{
    rx_comm_make(&w->comms[slot], slot, w->parent, seed);
}

/* Some calls; behind them a communicator may be freed and made anew. */
static void run_batch(struct worker *w, long first, long last)
{
    uint64_t seed = rx_hash(rx_options.seed, (uint64_t)w->id, (uint64_t)first);
    int      calls = (int)(last - first);
    int      slot = 1 + rx_below(&seed, RX_COMMS - 1);
    bool     fresh = rx_below(&seed, RENEW) == 0;
    bool     again = (rx_below(&seed, 2) == 0) && REPEATS;
    bool     skipped = last <= rx_options.from;

    w->own = rx_hash(seed, 5, (uint64_t)world_rank);
    for (int i = 0; i < calls; i++) {
        struct rx_call *c = &w->batch[i];
        *c = (struct rx_call){.number = first + i, .request = MPI_REQUEST_NULL};
        c->seed = rx_hash(seed, 9, (uint64_t)i);
        if (!skipped) {
            rx_draw(c, w->comms, world_rank);
            prepare(w, c);
        }
    }
    for (int i = 0; (i < calls) && !skipped; i++) {
        start(w, i);
    }
    while (any_pending(w)) {
        complete(w);
    }
    if (!skipped) {
        complete_persistent(w, calls);
    }
    for (int i = 0; (i < calls) && !skipped; i++) {
        finish(w, &w->batch[i], again);
    }
    if (fresh) { /* nothing is pending: Open MPI 4.1.4 crashes where something is */
        rx_comm_free(&w->comms[slot]);
        renew(w, slot, seed);
    }
    arenas_reset(w);
}

static void *work(void *argument)
{
    struct worker *w = argument;
    uint64_t       sizes = rx_hash(rx_options.seed, 3, (uint64_t)w->id);
    long           calls = rx_options.calls / rx_options.threads;

    mt_memory_enter();
    for (int i = 0; i < RX_BATCH; i++) {
        w->requests[i] = MPI_REQUEST_NULL;
    }
    w->comms[0] = (struct rx_comm){.comm = w->parent, .kind = "all ranks"};
    MPI_Comm_rank(w->parent, &w->comms[0].rank);
    MPI_Comm_size(w->parent, &w->comms[0].size);
    for (int slot = 1; slot < RX_COMMS; slot++) {
        renew(w, slot, rx_hash(rx_options.seed, (uint64_t)w->id, 1000 + (uint64_t)slot));
    }
    for (long call = 0; call < calls;) {
        long last = call + 1 + rx_below(&sizes, RX_BATCH);
        last = (last < calls) ? last : calls;
        run_batch(w, call, last);
        call = last;
    }
    for (int slot = 1; slot < RX_COMMS; slot++) {
        rx_comm_free(&w->comms[slot]);
    }
    return NULL;
}

static void leave_out(const char *word)
{
#define WORD_OF(NAME, name) #name,
    static const char *const words[] = {RX_FEATURES(WORD_OF)};

    for (int i = 0; i < RX_NUM_FEATURES; i++) {
        if (strcmp(words[i], word) == 0) {
            rx_options.without[i] = true;
            return;
        }
    }
    fprintf(stderr, "mpi_random: '%s' is nothing to leave out\n", word);
    exit(64);
}

static void read_options(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: mpi_random cuda|rocm|none SEED CALLS [options]\n");
        exit(64);
    }
    rx_options.runtime = argv[1];
    rx_options.seed = strtoull(argv[2], NULL, 10);
    rx_options.calls = strtol(argv[3], NULL, 10);
    for (int i = 4; i < argc; i++) {
        const char *value = (i + 1 < argc) ? argv[i + 1] : "";
        if (strcmp(argv[i], "--threads") == 0) {
            rx_options.threads = (int)strtol(value, NULL, 10);
            i++;
        } else if (strcmp(argv[i], "--from") == 0) {
            rx_options.from = strtol(value, NULL, 10);
            i++;
        } else if (strcmp(argv[i], "--without") == 0) {
            leave_out(value);
            i++;
        } else if (strcmp(argv[i], "--only") == 0) {
            rx_options.only = rx_coll_find(value);
            i++;
        }
        rx_options.mixed = rx_options.mixed || (strcmp(argv[i], "--mixed") == 0);
        rx_options.blocking = rx_options.blocking || (strcmp(argv[i], "--blocking") == 0);
        rx_options.large = rx_options.large || (strcmp(argv[i], "--large") == 0);
        rx_options.crowd = rx_options.crowd || (strcmp(argv[i], "--crowd") == 0);
        rx_options.verbose = rx_options.verbose || (strcmp(argv[i], "--verbose") == 0);
    }
    rx_options.threads = (rx_options.threads < 1) ? 1 : rx_options.threads;
    rx_options.threads = (rx_options.threads > MOST_THREADS) ? MOST_THREADS : rx_options.threads;
}

/* Threads have no order among them, so each has a communicator; alone, the world itself. */
static void run_workers(void)
{
    if (rx_options.threads == 1) {
        workers[0].parent = MPI_COMM_WORLD;
        work(&workers[0]);
        return;
    }
    for (int i = 0; i < rx_options.threads; i++) {
        workers[i].id = i;
        MPI_Comm_dup(MPI_COMM_WORLD, &workers[i].parent);
    }
    mt_in_threads(rx_options.threads, work, workers, sizeof(workers[0]));
    for (int i = 0; i < rx_options.threads; i++) {
        MPI_Comm_free(&workers[i].parent);
    }
}

static void run_in_a_crowd(void)
{
    MPI_Request requests[CROWD];
    void       *memory = mt_alloc(MT_DEVICE, sizeof(int));

    rx_crowd_make(memory, CROWD, requests);
    run_workers();
    for (int i = 0; i < CROWD; i++) {
        MPI_Request_free(&requests[i]);
    }
    mt_free(MT_DEVICE, memory);
}

/* Open MPI 4.1 loads what it needs for topologies at the first one, and not safely for threads. */
static void make_first_topology(void)
{
    MPI_Comm comm;
    int      one = 1, no = 0;

    MPI_Cart_create(MPI_COMM_SELF, 1, &one, &no, 0, &comm);
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
    int provided;
    int mine[2], all[2];

    read_options(argc, argv);
    MPI_Init_thread(&argc, &argv,
                    (rx_options.threads > 1) ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    if ((rx_options.threads > 1) && (provided < MPI_THREAD_MULTIPLE)) {
        printf("SKIP: this MPI gives no MPI_THREAD_MULTIPLE\n");
        MPI_Finalize();
        return 0;
    }
    signal(SIGTERM, on_terminate);
    if (world_rank == 0) {
        printf("seed %llu\n", (unsigned long long)rx_options.seed);
        fflush(stdout);
    }
    mt_memory_open(rx_options.runtime, world_rank);
    make_first_topology();
    rx_types_make();
    if (!rx_has_persistent() && (world_rank == 0)) {
        printf("without persistent collectives: this MPI has not all of them\n");
    }
    if (rx_options.crowd) {
        run_in_a_crowd();
    } else {
        run_workers();
    }
    rx_types_free();
    mine[0] = checks;
    mine[1] = failures;
    PMPI_Reduce(mine, all, 2, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (world_rank == 0) {
        printf("%ld calls\n%d checks, %d failures\n", rx_options.calls, all[0], all[1]);
    }
    MPI_Finalize();
    return failures > 0;
}
