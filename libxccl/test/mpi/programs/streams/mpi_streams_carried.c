/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Enqueued calls for which one rank lacks something: nobody waits for it for ever, and all later
 * calls are right.
 *
 *   mpi_streams_carried RUNTIME device PATH
 * Rank 1 has no device memory for packed copies and scratch: all results are right.
 *
 *   mpi_streams_carried RUNTIME neither|left
 * Nor has it pinned memory, on the direct path: it has errors, and the others are told where they
 * have got other data than they should. left: the communicator is freed instead.
 *
 *   mpi_streams_carried RUNTIME object PATH
 * calloc() in xccl fails once in each of rank 1's calls.
 *
 *   mpi_streams_carried RUNTIME function
 * With XCCL_SIM_FAIL=call@1 the streams of rank 1 call no function of the host: results are right.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xccl/mpix.h>

#include "streams_device.h"
#include "streams_object.h"
#include "support.h"

enum { FEW = 100, MANY = 50000, STEP = 2 * MANY, SALT = 7, TIMES = 3, ALONE = 1 };

static const char *wanted_path;

static struct fixture {
    void        *stream;
    MPIX_Stream  object;
    MPI_Comm     comm;
    MPI_Datatype holes; /* every other of STEP integers */
    int         *in, *out, *host;
} s;

static bool is_alone(void)
{
    return mt_rank() == ALONE;
}

static void comm_make(void)
{
    MPIX_Stream_comm_create(MPI_COMM_WORLD, s.object, &s.comm);
    MPI_Comm_set_errhandler(s.comm, MPI_ERRORS_RETURN);
}

static void fixture_make(void)
{
    MPI_Datatype vector;

    s.stream = ms_stream_make();
    s.object = ms_object_of(s.stream);
    comm_make();
    MPI_Type_vector(MANY, 1, 2, MPI_INT, &vector);
    MPI_Type_create_resized(vector, 0, STEP * sizeof(int), &s.holes);
    MPI_Type_commit(&s.holes);
    MPI_Type_free(&vector);
    s.in = mt_ints_make(MT_DEVICE, mt_size() * STEP, mt_size() * STEP, SALT);
    s.out = mt_ints_make(MT_DEVICE, mt_size() * STEP, 0, SALT);
    s.host = malloc((size_t)mt_size() * STEP * sizeof(int));
}

static void fixture_free(void)
{
    MPI_Comm_free(&s.comm);
    MPIX_Stream_free(&s.object);
    MPI_Type_free(&s.holes);
    ms_stream_free(s.stream);
    mt_free(MT_DEVICE, s.in);
    mt_free(MT_DEVICE, s.out);
    free(s.host);
}

/* ---- memory that is not there ---- */

enum { MOST_HOGS = 4096 };
static struct hogs {
    void *at[MOST_HOGS];
    int   count;
} on_device, on_host;

static int (*device_alloc)(void **, size_t);
static int (*device_free)(void *);
static int (*host_alloc)(void **, size_t, unsigned);
static int (*host_free)(void *);

static void bind(void)
{
    *(void **)&device_alloc = mt_driver("cuMemAlloc_v2", "hipMalloc");
    *(void **)&device_free = mt_driver("cuMemFree_v2", "hipFree");
    *(void **)&host_alloc = mt_driver("cuMemHostAlloc", "hipHostMalloc");
    *(void **)&host_free = mt_driver("cuMemFreeHost", "hipHostFree");
}

static void exhaust(struct hogs *hogs)
{
    for (size_t bytes = (size_t)1 << 30; is_alone() && (bytes >= 4096); bytes /= 2) {
        for (void *at; (hogs->count < MOST_HOGS) &&
                       (((hogs == &on_device) ? device_alloc(&at, bytes)
                                              : host_alloc(&at, bytes, 0)) == 0);) {
            hogs->at[hogs->count++] = at;
        }
    }
    mt_expect(!is_alone() || ((hogs->count > 0) && (hogs->count < MOST_HOGS)), "%d blocks",
              hogs->count);
}

static void release(struct hogs *hogs)
{
    while (hogs->count > 0) {
        void *at = hogs->at[--hogs->count];
        (hogs == &on_device) ? device_free(at) : host_free(at);
    }
}

/* ---- calls, and what comes of them ---- */

static void clear(void)
{
    for (int i = 0; i < mt_size() * STEP; i++) {
        s.host[i] = MT_UNTOUCHED;
    }
    mt_put(s.out, MT_DEVICE, s.host, (size_t)mt_size() * STEP * sizeof(int));
}

/* Block i of the result has every step-th integer from `first` on of rank `from`. */
static void expect_block(int i, int from, int first, const char *what)
{
    int wrong = 0;

    for (int j = 0; j < STEP; j++) {
        int wanted = (j % 2 == 0) ? mt_value(from, SALT, first + j) : MT_UNTOUCHED;
        wrong += (s.host[i * STEP + j] != wanted);
    }
    mt_expect(wrong == 0, "%s: %d integers of block %d are wrong", what, wrong, i);
}

static void fetch(void)
{
    ms_sync(s.stream);
    mt_get(s.host, s.out, MT_DEVICE, (size_t)mt_size() * STEP * sizeof(int));
}

static int allgather(void)
{
    return MPIX_Allgather_enqueue(s.in, 1, s.holes, s.out, 1, s.holes, s.comm);
}

static void expect_allgather(const char *what)
{
    fetch();
    for (int rank = 0; rank < mt_size(); rank++) {
        expect_block(rank, rank, 0, what);
    }
}

static int broadcast(int root)
{
    return MPIX_Bcast_enqueue((mt_rank() == root) ? s.in : s.out, 1, s.holes, root, s.comm);
}

static void expect_broadcast(int root, const char *what)
{
    fetch();
    if (mt_rank() != root) {
        expect_block(0, root, 0, what);
    }
}

static void expect_good(int code, const char *what)
{
    mt_expect(code == MPI_SUCCESS, "%s: code %d", what, code);
    mt_expect_path(wanted_path, what);
}

static void alltoall(void)
{
    clear();
    expect_good(MPIX_Alltoall_enqueue(s.in, 1, s.holes, s.out, 1, s.holes, s.comm), "alltoall");
    fetch();
    for (int rank = 0; rank < mt_size(); rank++) {
        expect_block(rank, rank, mt_rank() * STEP, "alltoall");
    }
}

/* What the vendor's library has no form for goes through scratch. */
static void in_place(void)
{
    mt_get(s.host, s.in, MT_DEVICE, (size_t)mt_size() * MANY * sizeof(int));
    mt_put(s.out, MT_DEVICE, s.host, (size_t)mt_size() * MANY * sizeof(int));
    expect_good(MPIX_Alltoall_enqueue(MPI_IN_PLACE, 0, MPI_INT, s.out, MANY, MPI_INT, s.comm),
                "alltoall in place");
    fetch();
    for (int rank = 0, wrong = 0; rank < mt_size(); rank++, wrong = 0) {
        for (int j = 0; j < MANY; j++) {
            wrong += (s.host[rank * MANY + j] != mt_value(rank, SALT, mt_rank() * MANY + j));
        }
        mt_expect(wrong == 0, "alltoall in place: %d integers of rank %d", wrong, rank);
    }
    mt_get(s.host, s.in, MT_DEVICE, (size_t)mt_size() * MANY * sizeof(int));
    mt_put(s.out, MT_DEVICE, s.host, (size_t)mt_size() * MANY * sizeof(int));
    expect_good(
        MPIX_Reduce_scatter_block_enqueue(MPI_IN_PLACE, s.out, MANY, MPI_INT, MPI_SUM, s.comm),
        "reduce_scatter_block in place");
    fetch();
    int wrong = 0;
    for (int j = 0; j < MANY; j++) {
        unsigned sum = 0;
        for (int rank = 0; rank < mt_size(); rank++) {
            sum += (unsigned)mt_value(rank, SALT, mt_rank() * MANY + j);
        }
        wrong += (s.host[j] != (int)sum);
    }
    mt_expect(wrong == 0, "reduce_scatter_block in place: %d integers", wrong);
}

/* Calls on data that lies side by side, which need nothing more. */
static int sum_of(const int *in)
{
    return MPIX_Allreduce_enqueue(in, s.out, FEW, MPI_INT, MPI_SUM, s.comm);
}

static int sum(void)
{
    return sum_of(s.in);
}

static void expect_sum(const char *what)
{
    int wrong = 0;

    fetch();
    for (int j = 0; j < FEW; j++) {
        unsigned all = 0;
        for (int rank = 0; rank < mt_size(); rank++) {
            all += (unsigned)mt_value(rank, SALT, j);
        }
        wrong += (s.host[j] != (int)all);
    }
    mt_expect(wrong == 0, "%s: %d sums are wrong", what, wrong);
}

/* All that was enqueued is over. The next call tells those who have not heard; and is served. */
static void meet(bool told, const char *what)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int  length;

    ms_sync(s.stream);
    clear();
    int code = sum();
    mt_expect((code != MPI_SUCCESS) == (told && !is_alone()), "%s: code %d", what, code);
    if (code != MPI_SUCCESS) {
        MPI_Error_string(code, text, &length);
        mt_expect(strstr(text, "rank 1 took part without its data") != NULL, "%s: \"%s\"", what,
                  text);
    }
    expect_sum(what);
    expect_good(sum(), what);
    expect_sum(what);
}

static void expect_failed(int code, const char *what)
{
    mt_expect((code != MPI_SUCCESS) == is_alone(), "%s: code %d", what, code);
    mt_expect_path("direct", what);
}

static void all_calls(const char *what)
{
    clear();
    expect_good(allgather(), what);
    expect_allgather(what);
    alltoall();
    for (int root = 0; root < mt_size(); root++) {
        clear();
        expect_good(broadcast(root), what);
        expect_broadcast(root, what);
    }
    in_place();
    meet(false, what);
}

static void case_device(void)
{
    fixture_make();
    exhaust(&on_device);
    all_calls("without device memory");
    all_calls("again");
    release(&on_device);
    fixture_free();
}

/* ---- neither ---- */

static void in_a_graph(void)
{
    ms_capture_begin(s.stream, 0);
    expect_failed(allgather(), "a captured allgather");
    mt_expect(sum() == MPI_SUCCESS || !is_alone(), "the call behind it");
    void *graph = ms_capture_end(s.stream);
    mt_expect(graph != NULL, "a graph");
    for (int i = 0; (graph != NULL) && (i < TIMES); i++) {
        clear();
        ms_launch(graph, s.stream);
        expect_sum("in a graph");
    }
    if (graph != NULL) {
        ms_graph_free(graph);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    (void)sum(); /* which tells those that had not heard in the capture */
    meet(false, "after a graph");
}

/* Kernels do not reach memory of the host; the result has a place. */
static void from_the_host(const char *what)
{
    expect_failed(sum_of(is_alone() ? s.host : s.in), what);
    meet(true, what);
}

static void case_neither(void)
{
    fixture_make();
    exhaust(&on_device);
    exhaust(&on_host);
    expect_failed(allgather(), "allgather");
    meet(true, "after an allgather");
    clear();
    expect_failed(broadcast(0), "a broadcast from another");
    fetch();
    if (mt_rank() > ALONE) {
        expect_block(0, 0, 0, "a broadcast from another");
    }
    meet(false, "after a broadcast from another");
    expect_failed(broadcast(ALONE), "a broadcast from the rank");
    meet(true, "after a broadcast from the rank");
    for (int i = 0; i < TIMES; i++) {
        (void)allgather();
    }
    ms_sync(s.stream);
    (void)sum();
    MPI_Barrier(MPI_COMM_WORLD);
    meet(false, "after several");
    from_the_host("from the host, without memory");
    in_a_graph();
    release(&on_device);
    release(&on_host);
    from_the_host("from the host");
    all_calls("with memory");
    for (int i = 0; i < TIMES; i++) { /* in the same memory */
        MPI_Comm_free(&s.comm);
        comm_make();
        all_calls("on another communicator");
    }
    fixture_free();
}

static void case_left(void)
{
    fixture_make();
    exhaust(&on_device);
    exhaust(&on_host);
    expect_failed(allgather(), "allgather");
    release(&on_device);
    release(&on_host);
    fixture_free();
}

/* ---- an object ---- */

static bool failing;

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
/* In the place of the C library's; a compiler would make that of malloc() and memset(). */
static void *(*volatile clear_bytes)(void *, int, size_t) = memset;

__attribute__((visibility("default"))) void *calloc(size_t count, size_t bytes)
{
    Dl_info info;

    if (failing && (dladdr(__builtin_return_address(0), &info) != 0) &&
        (strstr(info.dli_fname, "libxccl-mpi") != NULL)) {
        failing = false;
        return NULL;
    }
    void *at = malloc(count * bytes);
    return (at != NULL) ? clear_bytes(at, 0, count * bytes) : NULL;
}
#endif

static void fail_next(void)
{
    mt_expect(!failing, "nothing has failed");
    failing = is_alone();
}

static void case_object(void)
{
    fixture_make();
    all_calls("with memory");
    for (int i = 0; i < TIMES; i++) {
        fail_next();
        expect_good(sum(), "a call without memory");
        fail_next();
        expect_good(sum(), "the call behind it");
        expect_sum("without memory");
        fail_next();
        mt_expect(MPIX_Barrier_enqueue(s.comm) == MPI_SUCCESS, "a barrier");
        ms_sync(s.stream);
    }
    mt_expect(!failing, "nothing has failed at last");
    fixture_free();
}

/* ---- a function of the host ---- */

static void ring(int tag)
{
    int         left = (mt_rank() + mt_size() - 1) % mt_size();
    int         right = (mt_rank() + 1) % mt_size();
    MPI_Request requests[2];

    clear();
    mt_expect(MPIX_Irecv_enqueue(s.out, 1, s.holes, left, tag, s.comm, &requests[0]) == MPI_SUCCESS,
              "a receive");
    mt_expect(MPIX_Isend_enqueue(s.in, 1, s.holes, right, tag, s.comm, &requests[1]) == MPI_SUCCESS,
              "a send");
    mt_expect(MPIX_Waitall_enqueue(2, requests, MPI_STATUSES_IGNORE) == MPI_SUCCESS, "the waits");
    fetch();
    expect_block(0, left, 0, "a message");
}

static void case_function(void)
{
    wanted_path = "mpi-staged";
    fixture_make();
    for (int i = 0; i < TIMES; i++) {
        all_calls("without functions of the host");
        ring(i);
    }
    for (int i = 0; i < 20 * TIMES; i++) { /* several under way */
        expect_good(sum(), "many calls");
    }
    expect_sum("many calls");
    fixture_free();
}

int main(int argc, char **argv)
{
    static const struct mt_named_case cases[] = {
        {"device", case_device}, {"neither", case_neither},   {"left", case_left},
        {"object", case_object}, {"function", case_function}, {NULL, NULL}};

    mt_begin(&argc, &argv, true);
    ms_open();
    bind();
    wanted_path = (argc > 3) ? argv[3] : NULL;
    return mt_run_to_end(cases, argc, argv);
}
