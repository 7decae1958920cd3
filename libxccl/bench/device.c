/* SPDX-License-Identifier: BSD-3-Clause */
#include "device.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "bench.h"

enum { NCCL_UINT8 = 1, NCCL_FLOAT32 = 7, NCCL_SUM = 0 };

void bench_die(const struct bench *b, const char *what)
{
    fprintf(stderr, "bench: rank %d: %s: %s\n", b->rank, what, xc_last_detail());
    MPI_Abort(MPI_COMM_WORLD, 1);
}

void bench_start_device(struct bench *b)
{
    MPI_Comm local;
    int      local_rank, count = 0;
    void    *saved;

    PMPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, b->rank, MPI_INFO_NULL, &local);
    PMPI_Comm_rank(local, &local_rank);
    PMPI_Comm_free(&local);
    if ((xc_device_start("auto", &b->dev) != xcclSuccess) ||
        (b->dev->count(&count) != xcclSuccess)) {
        bench_die(b, "no device");
    }
    b->device = local_rank % count;
    if ((b->dev->enter(b->device, &saved) != xcclSuccess) ||
        (b->dev->stream_create(&b->stream) != xcclSuccess)) {
        bench_die(b, "device");
    }
}

void bench_start_vendor(struct bench *b)
{
    const struct xc_vendor_row *rows = xc_vendor_rows(), *row = rows;
    struct xc_nccl_lib          lib;
    xc_nccl_id_t                id;
    char                        name[128] = "", text[16];

    while ((row < rows + XC_NUM_NCCL_ROWS) && (strcmp(row->device, b->dev->name) != 0)) {
        row++;
    }
    if ((row == rows + XC_NUM_NCCL_ROWS) || (xc_nccl_open(row, NULL, false, &lib) != xcclSuccess)) {
        bench_die(b, "no vendor library");
    }
    b->fns = lib.fns;
    memset(&id, 0, sizeof(id));
    if ((b->rank == 0) && (b->fns.get_unique_id(&id) != XC_NCCL_SUCCESS)) {
        bench_die(b, "ncclGetUniqueId");
    }
    PMPI_Bcast(&id, (int)sizeof(id), MPI_BYTE, 0, MPI_COMM_WORLD);
    if (b->fns.comm_init_rank(&b->comm, b->nranks, id, b->rank) != XC_NCCL_SUCCESS) {
        bench_die(b, "ncclCommInitRank");
    }
    (void)b->dev->name_of(b->device, name, sizeof(name));
    snprintf(b->where, sizeof(b->where), "%d x %s, %s %s", b->nranks, name, lib.row->name,
             xc_nccl_version_text(lib.version, text, sizeof(text)));
}

static void need(const struct bench *b, int result, const char *what)
{
    if ((result != XC_NCCL_SUCCESS) || (b->dev->stream_sync(b->stream) != xcclSuccess)) {
        bench_die(b, what);
    }
}

static void nccl_allreduce(const struct bench *b, size_t bytes)
{
    need(b,
         b->fns.all_reduce(b->send, b->recv, bytes / 4, NCCL_FLOAT32, NCCL_SUM, b->comm, b->stream),
         "ncclAllReduce");
}

static void mpi_allreduce(const struct bench *b, size_t bytes)
{
    MPI_Allreduce(b->send, b->recv, (int)(bytes / 4), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void nccl_bcast(const struct bench *b, size_t bytes)
{
    need(b, b->fns.broadcast(b->send, b->send, bytes, NCCL_UINT8, 0, b->comm, b->stream),
         "ncclBroadcast");
}

static void mpi_bcast(const struct bench *b, size_t bytes)
{
    MPI_Bcast(b->send, (int)(bytes / 4), MPI_FLOAT, 0, MPI_COMM_WORLD);
}

static void nccl_reduce(const struct bench *b, size_t bytes)
{
    need(b,
         b->fns.reduce(b->send, b->recv, bytes / 4, NCCL_FLOAT32, NCCL_SUM, 0, b->comm, b->stream),
         "ncclReduce");
}

static void mpi_reduce(const struct bench *b, size_t bytes)
{
    MPI_Reduce(b->send, b->recv, (int)(bytes / 4), MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
}

/* As nccl-tests does it: a group of sends and receives. */
static void nccl_gather(const struct bench *b, size_t bytes)
{
    (void)b->fns.group_start();
    (void)b->fns.send(b->send, bytes, NCCL_UINT8, 0, b->comm, b->stream);
    for (int i = 0; (b->rank == 0) && (i < b->nranks); i++) {
        (void)b->fns.recv((char *)b->recv + (size_t)i * bytes, bytes, NCCL_UINT8, i, b->comm,
                          b->stream);
    }
    need(b, b->fns.group_end(), "gather");
}

static void mpi_gather(const struct bench *b, size_t bytes)
{
    MPI_Gather(b->send, (int)(bytes / 4), MPI_FLOAT, b->recv, (int)(bytes / 4), MPI_FLOAT, 0,
               MPI_COMM_WORLD);
}

static void nccl_scatter(const struct bench *b, size_t bytes)
{
    (void)b->fns.group_start();
    for (int i = 0; (b->rank == 0) && (i < b->nranks); i++) {
        (void)b->fns.send((char *)b->send + (size_t)i * bytes, bytes, NCCL_UINT8, i, b->comm,
                          b->stream);
    }
    (void)b->fns.recv(b->recv, bytes, NCCL_UINT8, 0, b->comm, b->stream);
    need(b, b->fns.group_end(), "scatter");
}

static void mpi_scatter(const struct bench *b, size_t bytes)
{
    MPI_Scatter(b->send, (int)(bytes / 4), MPI_FLOAT, b->recv, (int)(bytes / 4), MPI_FLOAT, 0,
                MPI_COMM_WORLD);
}

static void mpi_alltoall(const struct bench *b, size_t bytes)
{
    MPI_Alltoall(b->send, (int)(bytes / 4), MPI_FLOAT, b->recv, (int)(bytes / 4), MPI_FLOAT,
                 MPI_COMM_WORLD);
}

static void nccl_allgather(const struct bench *b, size_t bytes)
{
    need(b, b->fns.all_gather(b->send, b->recv, bytes, NCCL_UINT8, b->comm, b->stream),
         "ncclAllGather");
}

static void mpi_allgather(const struct bench *b, size_t bytes)
{
    MPI_Allgather(b->send, (int)(bytes / 4), MPI_FLOAT, b->recv, (int)(bytes / 4), MPI_FLOAT,
                  MPI_COMM_WORLD);
}

static void nccl_reduce_scatter(const struct bench *b, size_t bytes)
{
    need(b,
         b->fns.reduce_scatter(b->send, b->recv, bytes / 4, NCCL_FLOAT32, NCCL_SUM, b->comm,
                               b->stream),
         "ncclReduceScatter");
}

static void mpi_reduce_scatter(const struct bench *b, size_t bytes)
{
    MPI_Reduce_scatter_block(b->send, b->recv, (int)(bytes / 4), MPI_FLOAT, MPI_SUM,
                             MPI_COMM_WORLD);
}

static void nccl_alltoall(const struct bench *b, size_t bytes)
{
    (void)b->fns.group_start();
    for (int i = 0; i < b->nranks; i++) {
        (void)b->fns.send((char *)b->send + (size_t)i * bytes, bytes, NCCL_UINT8, i, b->comm,
                          b->stream);
        (void)b->fns.recv((char *)b->recv + (size_t)i * bytes, bytes, NCCL_UINT8, i, b->comm,
                          b->stream);
    }
    need(b, b->fns.group_end(), "alltoall");
}

const struct bench_collective bench_collectives[BENCH_COLLECTIVES] = {
    {"allreduce", nccl_allreduce, mpi_allreduce, 1, 1, false},
    {"reduce", nccl_reduce, mpi_reduce, 1, 1, true},
    {"bcast", nccl_bcast, mpi_bcast, 1, 0, false},
    {"allgather", nccl_allgather, mpi_allgather, 1, 2, false},
    {"reduce_scatter_block", nccl_reduce_scatter, mpi_reduce_scatter, 2, 1, false},
    {"alltoall", nccl_alltoall, mpi_alltoall, 2, 2, false},
    {"gather", nccl_gather, mpi_gather, 1, 2, true},
    {"scatter", nccl_scatter, mpi_scatter, 2, 1, false},
};

double bench_time_calls(const struct bench *b, bench_call_fn *call, size_t bytes, int calls)
{
    double mine, all = 0;

    PMPI_Barrier(MPI_COMM_WORLD);
    double start = bench_now_ns();
    for (int i = 0; i < calls; i++) {
        call(b, bytes);
    }
    mine = (bench_now_ns() - start) / 1e3 / calls;
    PMPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return all;
}
