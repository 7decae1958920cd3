/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random messages in every form. All ranks draw the same messages from one seed; how each end of
 * them is made and completed, and in what memory, every rank draws by itself. What has to be in the
 * buffers follows from the seed, for each byte.
 *
 *   mpi_messages cuda|rocm|none SEED ROUNDS [--threads K] [--from N] [--verbose]
 *
 * A round cannot deadlock: early receives are made before anything is sent, a blocking send goes
 * only to those, shifts come in one order on all ranks, and late receives wait for what is sent
 * before any rank waits for anything of this rank.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "messages.h"

enum { MOST_THREADS = 4, ATTACHED = 16 << 20 };

struct rx_options       rx_options = {.runtime = "none", .threads = 1, .only = -1};
static struct mg_worker workers[MOST_THREADS];
static long             made[MOST_THREADS]; /* messages of all ranks, as each rank counts them */

/* Of a run that hangs, the launcher's SIGTERM makes known where. */
static void on_terminate(int number)
{
    char text[1500], what[1000];

    for (int t = 0; t < rx_options.threads; t++) {
        const struct mg_worker *w = &workers[t];
        int length = snprintf(text, sizeof(text), "rank %d, thread %d, round %ld, pass %d: %s\n",
                              mt_rank(), t, w->round.number, w->pass, w->phase);
        length = (write(1, text, (size_t)length) < 0) ? 0 : length;
        for (int i = 0; i < w->num_sides; i++) {
            mg_describe(w, &w->sides[i], what, sizeof(what));
            length = snprintf(text, sizeof(text), "rank %d%s: %s\n", mt_rank(),
                              w->sides[i].active ? " (pending)" : "", what);
            length = (write(1, text, (size_t)length) < 0) ? 0 : length;
        }
    }
    _exit(128 + number);
}

static void show(const struct mg_worker *w)
{
    char what[1000];

    for (int i = 0; rx_options.verbose && (i < w->num_sides); i++) {
        mg_describe(w, &w->sides[i], what, sizeof(what));
        printf("rank %d, round %ld: %s\n", mt_rank(), w->round.number, what);
    }
    fflush(stdout);
}

static void receive_those(struct mg_worker *w, bool posted)
{
    w->phase = posted ? "early receives" : "late receives";
    for (int i = 0; i < w->num_sides; i++) {
        struct mg_side *side = &w->sides[i];
        if (!side->sends && (side->message.kind != MG_SHIFT) && (side->message.posted == posted)) {
            mg_receive(w, side);
            mg_try_some(w);
        }
    }
    if (posted) {
        mg_start_batched(w, false);
    }
}

static void send_all(struct mg_worker *w)
{
    w->phase = "sends";
    for (int i = 0; i < w->num_sides; i++) {
        if (w->sides[i].sends && (w->sides[i].message.kind != MG_SHIFT)) {
            mg_send(w, &w->sides[i]);
            mg_try_some(w);
        }
    }
    mg_start_batched(w, true);
}

static void exchange_all(struct mg_worker *w)
{
    w->phase = "shifts";
    for (int i = 0; i < w->num_sides; i++) {
        if (w->sides[i].pair != NULL) {
            mg_exchange(w, &w->sides[i]);
            mg_try_some(w);
        }
    }
}

/* With any source: the first message of the one that the status names which is not taken yet. */
static const struct mg_message *find_arrived(struct mg_worker *w, struct mg_side *side, bool *taken)
{
    for (int i = 0; side->known && (i < w->round.num_messages); i++) {
        const struct mg_message *m = &w->round.messages[i];
        if (!taken[i] && (m->source == side->status.MPI_SOURCE) &&
            mg_same_domain(m, &side->message)) {
            taken[i] = true;
            mg_status_check(w, side, &side->status, m);
            return m;
        }
    }
    mg_expect(w, side, false, "nothing was sent that could have come from %d",
              side->status.MPI_SOURCE);
    return NULL;
}

static void check_all(struct mg_worker *w)
{
    bool taken[MG_MESSAGES] = {false};

    w->phase = "the end";
    for (int i = 0; i < w->num_sides; i++) {
        struct mg_side *side = &w->sides[i];
        if (!side->sends && (side->message.wild == MG_ANY)) {
            mg_side_check(w, side, find_arrived(w, side, taken));
        } else if (!side->sends) {
            mg_side_check(w, side, mg_expected(side));
        } else if (!side->checked && (side->form != MG_REPLACED)) {
            mg_side_check(w, side, NULL);
        }
    }
}

static void run_pass(struct mg_worker *w)
{
    for (int i = 0; i < w->num_sides; i++) {
        mg_side_fill(w, &w->sides[i]);
    }
    receive_those(w, true);
    if (w->round.ready) {
        MPI_Barrier(w->parent);
    }
    send_all(w);
    exchange_all(w);
    receive_those(w, false);
    w->phase = "completion";
    mg_complete_all(w);
    check_all(w);
    if (!w->round.loose) {
        w->phase = "barrier";
        MPI_Barrier(w->parent);
    }
}

/* A shift is a message of each rank. */
static long messages_of(const struct mg_worker *w)
{
    const struct mg_round *r = &w->round;

    return (long)r->passes * (r->num_messages + (long)r->num_shifts * w->comms[MG_SHIFTED].size);
}

static void *work(void *argument)
{
    struct mg_worker *w = argument;
    long              rounds = rx_options.calls / rx_options.threads;

    mt_memory_enter();
    for (int i = 0; i < MG_SLOTS; i++) {
        w->requests[i] = MPI_REQUEST_NULL;
    }
    mg_comms_make(w);
    for (long round = rx_options.from; round < rounds; round++) {
        mg_draw(w, round);
        show(w);
        for (int i = 0; i < w->num_sides; i++) {
            mg_side_open(w, &w->sides[i]);
        }
        for (w->pass = 0; w->pass < w->round.passes; w->pass++) {
            run_pass(w);
        }
        made[w->id] += messages_of(w);
        mg_sides_close(w);
    }
    mg_comms_free(w);
    return NULL;
}

static void read_options(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: mpi_messages cuda|rocm|none SEED ROUNDS [options]\n");
        exit(64);
    }
    rx_options.runtime = argv[1];
    rx_options.seed = strtoull(argv[2], NULL, 10);
    rx_options.calls = strtol(argv[3], NULL, 10);
    for (int i = 4; i < argc; i++) {
        const char *value = (i + 1 < argc) ? argv[i + 1] : "";
        if (strcmp(argv[i], "--threads") == 0) {
            rx_options.threads = (int)strtol(value, NULL, 10);
        } else if (strcmp(argv[i], "--from") == 0) {
            rx_options.from = strtol(value, NULL, 10);
        }
        rx_options.verbose = rx_options.verbose || (strcmp(argv[i], "--verbose") == 0);
    }
    rx_options.threads = (rx_options.threads < 1) ? 1 : rx_options.threads;
    rx_options.threads = (rx_options.threads > MOST_THREADS) ? MOST_THREADS : rx_options.threads;
}

/* Threads have no order among them, so each has communicators of its own. */
static void run_workers(void)
{
    for (int i = 0; i < rx_options.threads; i++) {
        workers[i].id = i;
        workers[i].phase = "begin";
        workers[i].parent = MPI_COMM_WORLD;
        if (rx_options.threads > 1) {
            MPI_Comm_dup(MPI_COMM_WORLD, &workers[i].parent);
        }
    }
    if (rx_options.threads == 1) {
        work(&workers[0]);
        return;
    }
    mt_in_threads(rx_options.threads, work, workers, sizeof(workers[0]));
    for (int i = 0; i < rx_options.threads; i++) {
        MPI_Comm_free(&workers[i].parent);
    }
}

static void free_workers(void)
{
    for (int t = 0; t < rx_options.threads; t++) {
        for (int i = 0; i < MG_WHERES; i++) {
            if (workers[t].arenas[i] != NULL) {
                mt_free((enum mt_where)i, workers[t].arenas[i]);
            }
        }
        free(workers[t].scratch[0]);
        free(workers[t].scratch[1]);
    }
}

int main(int argc, char **argv)
{
    int   provided, size;
    void *attached = malloc(ATTACHED);

    read_options(argc, argv);
    mt_begin(&argc, &argv, true);
    MPI_Query_thread(&provided);
    if ((rx_options.threads > 1) && (provided < MPI_THREAD_MULTIPLE)) {
        printf("SKIP: this MPI gives no MPI_THREAD_MULTIPLE\n");
        MPI_Finalize();
        return 0;
    }
    signal(SIGTERM, on_terminate);
    if (mt_rank() == 0) {
        printf("seed %llu\n", (unsigned long long)rx_options.seed);
        fflush(stdout);
    }
    rx_types_make();
    MPI_Buffer_attach(attached, ATTACHED);
    run_workers();
    MPI_Buffer_detach(&attached, &size);
    free(attached);
    free_workers();
    rx_types_free();
    if (mt_rank() == 0) {
        printf("%ld messages\n", made[0] + made[1] + made[2] + made[3]);
    }
    mt_summary();
    MPI_Finalize();
    return mt_status();
}
