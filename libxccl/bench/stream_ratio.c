/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stream-ordered allreduce against the vendor's: as many calls of either captured into a graph, the
 * graphs replayed in turns on the same buffers; and the same calls enqueued without a graph. Every
 * size is checked on random data first.
 * Usage: mpirun -n N xccl-run stream_ratio [--calls N] [--least BYTES] [--most BYTES]
 *        [--launches N] [json]
 * --calls: in a graph, 100. --launches: of a graph in a row before the stream is synchronised, 5.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "device.h"

enum { ROUNDS = 21, SIZES = 32, NCCL_FLOAT32 = 7, NCCL_SUM = 0 };

struct options {
    int         calls, launches;
    size_t      least, most;
    const char *json;
};

struct row {
    size_t bytes;
    double vendor, ours, ratio;      /* us of a call in a graph */
    double vendor_eager, ours_eager; /* and without one */
    char   path[16];
};

typedef int (*info_set_hex_fn)(MPI_Info, const char *, const void *, int);
typedef int (*stream_create_fn)(MPI_Info, int *);
typedef int (*stream_comm_create_fn)(MPI_Comm, int, MPI_Comm *);
typedef int (*allreduce_fn)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);

static struct {
    info_set_hex_fn       info_set_hex;
    stream_create_fn      stream_create;
    stream_comm_create_fn comm_create;
    allreduce_fn          allreduce;
    int (*begin)(void *, int);
    int (*end)(void *, void **);
    int (*instantiate_cuda)(void **, void *, unsigned long long);
    int (*instantiate_hip)(void **, void *, void *, char *, size_t);
    int (*launch)(void *, void *);
    int (*graph_destroy)(void *);
    int (*exec_destroy)(void *);
} fns;

static MPI_Comm stream_comm;

static void *symbol(const struct bench *b, void *library, const char *name)
{
    void *found = dlsym(library, name);

    if (found == NULL) {
        fprintf(stderr, "stream_ratio: %s is missing\n", name);
        bench_die(b, name);
    }
    return found;
}

#define BIND(field, library, name) (*(void **)&fns.field = symbol(b, library, name))

static void bind(const struct bench *b)
{
    bool  cuda = (strcmp(b->dev->name, "cuda") == 0);
    void *library = dlopen(cuda ? "libcuda.so.1" : "libamdhip64.so", RTLD_LAZY);

    BIND(info_set_hex, RTLD_DEFAULT, "MPIX_Info_set_hex");
    BIND(stream_create, RTLD_DEFAULT, "MPIX_Stream_create");
    BIND(comm_create, RTLD_DEFAULT, "MPIX_Stream_comm_create");
    BIND(allreduce, RTLD_DEFAULT, "MPIX_Allreduce_enqueue");
    BIND(begin, library, cuda ? "cuStreamBeginCapture_v2" : "hipStreamBeginCapture");
    BIND(end, library, cuda ? "cuStreamEndCapture" : "hipStreamEndCapture");
    BIND(instantiate_cuda, library, cuda ? "cuGraphInstantiateWithFlags" : "hipGraphInstantiate");
    BIND(instantiate_hip, library, cuda ? "cuGraphInstantiateWithFlags" : "hipGraphInstantiate");
    BIND(launch, library, cuda ? "cuGraphLaunch" : "hipGraphLaunch");
    BIND(graph_destroy, library, cuda ? "cuGraphDestroy" : "hipGraphDestroy");
    BIND(exec_destroy, library, cuda ? "cuGraphExecDestroy" : "hipGraphExecDestroy");
}

static void attach(const struct bench *b)
{
    MPI_Info info;
    int      stream;

    MPI_Info_create(&info);
    MPI_Info_set(info, "type",
                 (strcmp(b->dev->name, "cuda") == 0) ? "cudaStream_t" : "hipStream_t");
    fns.info_set_hex(info, "value", &b->stream, (int)sizeof(b->stream));
    if ((fns.stream_create(info, &stream) != MPI_SUCCESS) ||
        (fns.comm_create(MPI_COMM_WORLD, stream, &stream_comm) != MPI_SUCCESS)) {
        bench_die(b, "a stream communicator");
    }
    MPI_Info_free(&info);
}

static void sync(const struct bench *b)
{
    if (b->dev->stream_sync(b->stream) != xcclSuccess) {
        bench_die(b, "synchronising the stream");
    }
}

static void vendor_call(const struct bench *b, size_t bytes)
{
    if (b->fns.all_reduce(b->send, b->recv, bytes / 4, NCCL_FLOAT32, NCCL_SUM, b->comm,
                          b->stream) != XC_NCCL_SUCCESS) {
        bench_die(b, "ncclAllReduce");
    }
}

static void our_call(const struct bench *b, size_t bytes)
{
    if (fns.allreduce(b->send, b->recv, (int)(bytes / 4), MPI_FLOAT, MPI_SUM, stream_comm) !=
        MPI_SUCCESS) {
        bench_die(b, "MPIX_Allreduce_enqueue");
    }
}

static void *capture(const struct bench *b, bench_call_fn *call, size_t bytes, int calls)
{
    void *graph = NULL, *exec = NULL;
    bool  cuda = (strcmp(b->dev->name, "cuda") == 0);

    call(b, bytes); /* libraries connect outside of a capture */
    sync(b);
    if (fns.begin(b->stream, 1) != 0) {
        bench_die(b, "beginning a capture");
    }
    for (int i = 0; i < calls; i++) {
        call(b, bytes);
    }
    if ((fns.end(b->stream, &graph) != 0) ||
        ((cuda ? fns.instantiate_cuda(&exec, graph, 0)
               : fns.instantiate_hip(&exec, graph, NULL, NULL, 0)) != 0)) {
        bench_die(b, "a graph");
    }
    fns.graph_destroy(graph);
    return exec;
}

static void copy(const struct bench *b, void *to, const void *from, size_t bytes)
{
    if (b->dev->copy_async(to, from, bytes, b->stream) != xcclSuccess) {
        bench_die(b, "copy");
    }
    sync(b);
}

/* Small whole numbers, whose sums are exact in any order. */
static void result_of(const struct bench *b, void *exec, size_t bytes, unsigned seed, float *host)
{
    uint64_t state = seed * 2654435761u + (unsigned)b->rank * 40503u + 1;

    for (size_t i = 0; i < bytes / sizeof(float); i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        host[i] = (float)((int)(state >> 50) - 8192);
    }
    copy(b, b->send, host, bytes);
    memset(host, 0xff, bytes);
    copy(b, b->recv, host, bytes);
    if (fns.launch(exec, b->stream) != 0) {
        bench_die(b, "launching a graph");
    }
    sync(b);
    copy(b, host, b->recv, bytes);
}

static void check(const struct bench *b, void *vendor, void *ours, size_t bytes)
{
    float *one = malloc(bytes), *other = malloc(bytes);
    int    wrong, any = 0;

    for (unsigned seed = 1; (one != NULL) && (other != NULL) && (seed < 6); seed++) {
        result_of(b, vendor, bytes, seed, one);
        result_of(b, ours, bytes, seed, other);
        wrong = (memcmp(one, other, bytes) != 0);
        PMPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        if (any) {
            fprintf(stderr, "stream_ratio: rank %d: %zu bytes are wrong (%d)\n", b->rank, bytes,
                    wrong);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
    free(one);
    free(other);
}

/* us of one call, the slowest rank's. */
static double slowest(double mine)
{
    double all = 0;

    PMPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return all;
}

static double time_graph(const struct bench *b, void *exec, const struct options *o)
{
    PMPI_Barrier(MPI_COMM_WORLD);
    double start = bench_now_ns();
    for (int i = 0; i < o->launches; i++) {
        if (fns.launch(exec, b->stream) != 0) {
            bench_die(b, "launching a graph");
        }
    }
    sync(b);
    return slowest((bench_now_ns() - start) / 1e3 / o->launches / o->calls);
}

static double time_eager(const struct bench *b, bench_call_fn *call, size_t bytes,
                         const struct options *o)
{
    PMPI_Barrier(MPI_COMM_WORLD);
    double start = bench_now_ns();
    for (int i = 0; i < o->calls; i++) {
        call(b, bytes);
    }
    sync(b);
    return slowest((bench_now_ns() - start) / 1e3 / o->calls);
}

static void measure(const struct bench *b, size_t bytes, const struct options *o, struct row *row)
{
    const char *(*last)(void) = (const char *(*)(void))dlsym(RTLD_DEFAULT, "xccl_mpi_last_path");
    double vendor[ROUNDS], ours[ROUNDS], ratio[ROUNDS], eager[2][ROUNDS];
    void  *vendor_graph = capture(b, vendor_call, bytes, o->calls);
    void  *our_graph = capture(b, our_call, bytes, o->calls);

    snprintf(row->path, sizeof(row->path), "%s", (last != NULL) ? last() : "no interposer");
    check(b, vendor_graph, our_graph, bytes);
    (void)time_graph(b, vendor_graph, o);
    (void)time_graph(b, our_graph, o);
    for (int i = 0; i < ROUNDS; i++) {
        if (i % 2 == 0) {
            vendor[i] = time_graph(b, vendor_graph, o);
        }
        ours[i] = time_graph(b, our_graph, o);
        if (i % 2 == 1) {
            vendor[i] = time_graph(b, vendor_graph, o);
        }
        ratio[i] = ours[i] / vendor[i];
        eager[0][i] = time_eager(b, vendor_call, bytes, o);
        eager[1][i] = time_eager(b, our_call, bytes, o);
    }
    fns.exec_destroy(vendor_graph);
    fns.exec_destroy(our_graph);
    row->bytes = bytes;
    row->vendor = bench_median(vendor, ROUNDS);
    row->ours = bench_median(ours, ROUNDS);
    row->ratio = bench_median(ratio, ROUNDS);
    row->vendor_eager = bench_median(eager[0], ROUNDS);
    row->ours_eager = bench_median(eager[1], ROUNDS);
}

static bool write_json(const struct bench *b, const struct options *o, const struct row *rows,
                       int count)
{
    FILE *f = fopen(o->json, "w");

    if (f == NULL) {
        fprintf(stderr, "stream_ratio: cannot write %s\n", o->json);
        return false;
    }
    fprintf(f,
            "{\"program\": \"stream_ratio\", \"where\": \"%s\", \"calls\": %d, \"launches\": %d, "
            "\"rows\": [\n",
            b->where, o->calls, o->launches);
    for (int i = 0; i < count; i++) {
        fprintf(f,
                "  {\"bytes\": %zu, \"path\": \"%s\", \"vendor_us\": %.3f, \"mpix_us\": %.3f, "
                "\"ratio\": %.3f, \"vendor_eager_us\": %.3f, \"mpix_eager_us\": %.3f}%s\n",
                rows[i].bytes, rows[i].path, rows[i].vendor, rows[i].ours, rows[i].ratio,
                rows[i].vendor_eager, rows[i].ours_eager, (i + 1 < count) ? "," : "");
    }
    fprintf(f, "]}\n");
    return fclose(f) == 0;
}

static void read_options(int argc, char **argv, struct options *o)
{
    for (int i = 1; i < argc; i++) {
        if ((strcmp(argv[i], "--calls") == 0) && (i + 1 < argc)) {
            o->calls = atoi(argv[++i]);
        } else if ((strcmp(argv[i], "--launches") == 0) && (i + 1 < argc)) {
            o->launches = atoi(argv[++i]);
        } else if ((strcmp(argv[i], "--least") == 0) && (i + 1 < argc)) {
            o->least = strtoull(argv[++i], NULL, 10);
        } else if ((strcmp(argv[i], "--most") == 0) && (i + 1 < argc)) {
            o->most = strtoull(argv[++i], NULL, 10);
        } else {
            o->json = argv[i];
        }
    }
}

int main(int argc, char **argv)
{
    struct bench   b = {0};
    struct options o = {.calls = 100, .launches = 5, .least = 8, .most = (size_t)64 << 10};
    struct row     rows[SIZES];
    int            count = 0;
    bool           good = true;
    void          *send = NULL, *recv = NULL;

    read_options(argc, argv, &o);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &b.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &b.nranks);
    bench_start_device(&b);
    bench_start_vendor(&b);
    bind(&b);
    attach(&b);
    if ((b.dev->mem_alloc(&send, o.most) != xcclSuccess) ||
        (b.dev->mem_alloc(&recv, o.most) != xcclSuccess)) {
        bench_die(&b, "device memory");
    }
    b.send = send;
    b.recv = recv;
    for (size_t bytes = o.least; (bytes <= o.most) && (count < SIZES);
         bytes *= (bytes < 1024) ? 4 : 2) {
        measure(&b, bytes, &o, &rows[count]);
        if (b.rank == 0) {
            printf("allreduce %8zu %-10s graph: vendor %7.2f us, mpix %7.2f us, ratio %.3f; "
                   "eager: vendor %7.2f us, mpix %7.2f us\n",
                   bytes, rows[count].path, rows[count].vendor, rows[count].ours, rows[count].ratio,
                   rows[count].vendor_eager, rows[count].ours_eager);
            fflush(stdout);
        }
        count++;
    }
    if ((b.rank == 0) && (o.json != NULL)) {
        good = write_json(&b, &o, rows, count);
    }
    MPI_Comm_free(&stream_comm);
    (void)b.fns.comm_destroy(b.comm);
    (void)b.dev->mem_free(b.send);
    (void)b.dev->mem_free(b.recv);
    MPI_Finalize();
    return good ? 0 : 1;
}
