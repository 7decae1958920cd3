/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives of MPI and of the vendor's library, side by side on the same device memory. */
#ifndef XCCL_BENCH_DEVICE_H
#define XCCL_BENCH_DEVICE_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

#include "device/device.h"
#include "vendor/vendor.h"

struct bench {
    int                         rank, nranks, device;
    const struct xc_device_ops *dev;
    xcclStream_t                stream;
    struct xc_nccl_fns          fns;
    xc_nccl_comm_t              comm;
    char                        where[256];
    float                      *send, *recv;
};

/* Say what failed, and end the job. */
void bench_die(const struct bench *b, const char *what);
/* Rank, size and device, by the rank on the node. */
void bench_start_device(struct bench *b);
/* The vendor's library called directly, past everything of xccl but its search for the file. */
void bench_start_vendor(struct bench *b);

/* One side of a comparison: bytes as OSU's benchmarks count them. */
typedef void bench_call_fn(const struct bench *b, size_t bytes);

struct bench_collective {
    const char    *name;
    bench_call_fn *vendor, *mpi;
    int            sent, received; /* 1: bytes, 2: bytes for each rank, 0: what was sent */
    bool           at_root;        /* rank 0 alone receives */
};
enum bench_which {
    BENCH_ALLREDUCE,
    BENCH_REDUCE,
    BENCH_BCAST,
    BENCH_ALLGATHER,
    BENCH_REDUCE_SCATTER,
    BENCH_ALLTOALL,
    BENCH_GATHER,
    BENCH_SCATTER,
    BENCH_COLLECTIVES
};
extern const struct bench_collective bench_collectives[BENCH_COLLECTIVES];

/* us per call, the slowest rank's. */
double bench_time_calls(const struct bench *b, bench_call_fn *call, size_t bytes, int calls);

#endif
