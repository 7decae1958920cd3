/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI calls on device memory while a stream of the program's is captured into a graph, with which
 * they have nothing to do. They succeed, and so does the capture.
 * Usage: mpi_capture cuda|rocm CASE
 */
#include <pthread.h>
#include <string.h>

#include "streams_device.h"
#include "support.h"

enum { GLOBAL, THREAD_LOCAL, SIZES = 3, TAG = 5, CALLS = 3 };
static const int sizes[SIZES] = {1, 3000, 300000};

/* New for each capture: what is allocated and seen first is the hard part. */
struct work {
    struct mt_pair pair[SIZES];
    int           *in[SIZES], *out[SIZES];
};

static int next_rank(void)
{
    return (mt_rank() + 1) % mt_size();
}

static int last_rank(void)
{
    return (mt_rank() + mt_size() - 1) % mt_size();
}

static struct work work_make(void)
{
    struct work w;

    for (int i = 0; i < SIZES; i++) {
        w.pair[i] = mt_pair_make(MT_DEVICE, sizes[i]);
        mt_pair_fill(&w.pair[i], sizes[i], MPI_COMM_WORLD, i);
        w.in[i] = mt_ints_make(MT_DEVICE, sizes[i], sizes[i], i);
        w.out[i] = mt_ints_make(MT_DEVICE, sizes[i], 0, 0);
    }
    return w;
}

static void work_expect(struct work *w, const char *what)
{
    for (int i = 0; i < SIZES; i++) {
        mt_pair_expect_sum(&w->pair[i], sizes[i], mt_size(), i, what);
        mt_ints_expect(w->out[i], MT_DEVICE, sizes[i], sizes[i], last_rank(), i, what);
        mt_pair_free(&w->pair[i]);
        mt_free(MT_DEVICE, w->in[i]);
        mt_free(MT_DEVICE, w->out[i]);
    }
}

/* Say which call it was that spoilt the capture. */
static void look(void *stream, const char *call, int i)
{
    static bool lasted;

    if ((strcmp(call, "nothing") == 0) || lasted) {
        lasted = ms_capture_lasts(stream);
        mt_expect(lasted, "%s of %d values spoilt the capture", call, sizes[i]);
    }
}

static void work_do(const struct work *w, void *stream)
{
    MPI_Request requests[CALLS];

    look(stream, "nothing", 0);
    for (int i = 0; i < SIZES; i++) {
        const struct mt_pair *p = &w->pair[i];
        MPI_Allreduce(p->in, p->out, sizes[i], MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        look(stream, "MPI_Allreduce", i);
        MPI_Irecv(w->out[i], sizes[i], MPI_INT, last_rank(), TAG, MPI_COMM_WORLD, &requests[0]);
        look(stream, "MPI_Irecv", i);
        MPI_Isend(w->in[i], sizes[i], MPI_INT, next_rank(), TAG, MPI_COMM_WORLD, &requests[1]);
        look(stream, "MPI_Isend", i);
        MPI_Iallreduce(p->in, p->out, sizes[i], MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &requests[2]);
        look(stream, "MPI_Iallreduce", i);
        MPI_Waitall(CALLS, requests, MPI_STATUSES_IGNORE);
        look(stream, "MPI_Waitall", i);
    }
}

static void end(void *stream, const char *what)
{
    void *graph = ms_capture_end(stream);

    mt_expect(graph != NULL, "%s: the capture was spoilt", what);
    if (graph != NULL) {
        ms_graph_free(graph);
    }
    ms_stream_free(stream);
}

/* ---- another thread captures, and forbids all threads what might disturb it ---- */

static pthread_barrier_t both;
static void             *captured;

static void *capture(void *unused)
{
    mt_memory_enter();
    captured = ms_stream_make();
    ms_capture_begin(captured, GLOBAL);
    pthread_barrier_wait(&both);
    pthread_barrier_wait(&both);
    end(captured, "in another thread");
    return unused;
}

static void case_elsewhere(void)
{
    pthread_t   thread;
    struct work w = work_make();

    pthread_barrier_init(&both, NULL, 2);
    mt_expect(pthread_create(&thread, NULL, capture, NULL) == 0, "no thread");
    pthread_barrier_wait(&both);
    work_do(&w, captured);
    pthread_barrier_wait(&both);
    pthread_join(thread, NULL);
    work_expect(&w, "another thread captures");
}

/* ---- the thread that captures calls MPI ---- */

static void capture_here(void *stream, int mode, const char *what)
{
    struct work w = work_make();

    ms_capture_begin(stream, mode);
    work_do(&w, stream);
    end(stream, what);
    work_expect(&w, what);
}

static void case_own(void)
{
    capture_here(ms_stream_make(), GLOBAL, "this thread captures");
    capture_here(ms_stream_make(), THREAD_LOCAL, "this thread captures for itself");
}

/* Nobody may use the default stream meanwhile. */
static void case_blocking(void)
{
    capture_here(ms_blocking_stream_make(), GLOBAL, "a blocking stream captures");
}

int main(int argc, char **argv)
{
    static const struct mt_named_case cases[] = {
        {"elsewhere", case_elsewhere},
        {"own", case_own},
        {"blocking", case_blocking},
        {NULL, NULL},
    };

    mt_begin(&argc, &argv, true);
    ms_open();
    return mt_run_to_end(cases, argc, argv);
}
