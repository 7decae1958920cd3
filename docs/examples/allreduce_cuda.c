/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI on device memory, in C with the CUDA driver API: a sum over all ranks, started without
 * waiting for it, and a ring of messages meanwhile. Nothing in it knows of xccl.
 *
 *     mpicc allreduce_cuda.c -o allreduce_cuda -lcuda
 *     mpirun -n 4 xccl-run ./allreduce_cuda
 */
#include <cuda.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 100000, TAG = 7 };

static void must(CUresult result, const char *what)
{
    if (result != CUDA_SUCCESS) {
        fprintf(stderr, "%s failed with CUDA error %d\n", what, (int)result);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

/* The device of this rank: what xccl-run says, else by the rank's number on its node. */
static void choose_device(void)
{
    const char *published = getenv("XCCL_LOCAL_DEVICE");
    int         local, devices;
    CUdevice    device;
    CUcontext   context;
    MPI_Comm    node;

    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &local);
    MPI_Comm_free(&node);
    must(cuInit(0), "cuInit");
    must(cuDeviceGetCount(&devices), "cuDeviceGetCount");
    must(cuDeviceGet(&device, published ? atoi(published) : local % devices), "cuDeviceGet");
    must(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
    must(cuCtxSetCurrent(context), "cuCtxSetCurrent");
}

static CUdeviceptr device_copy(const float *host)
{
    CUdeviceptr pointer;

    must(cuMemAlloc(&pointer, COUNT * sizeof(float)), "cuMemAlloc");
    must(cuMemcpyHtoD(pointer, host, COUNT * sizeof(float)), "cuMemcpyHtoD");
    return pointer;
}

static int wrong(CUdeviceptr pointer, float expected)
{
    static float host[COUNT];
    int          count = 0;

    must(cuMemcpyDtoH(host, pointer, sizeof(host)), "cuMemcpyDtoH");
    for (int i = 0; i < COUNT; i++) {
        count += (host[i] != expected);
    }
    return count;
}

int main(int argc, char **argv)
{
    static float host[COUNT];
    int          rank, size, bad;
    MPI_Request  request;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    choose_device();
    for (int i = 0; i < COUNT; i++) {
        host[i] = (float)rank;
    }
    CUdeviceptr sum = device_copy(host), mine = device_copy(host), from = device_copy(host);

    MPI_Iallreduce(MPI_IN_PLACE, (void *)sum, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request);
    int next = (rank + 1) % size, previous = (rank + size - 1) % size;
    MPI_Sendrecv((void *)mine, COUNT, MPI_FLOAT, next, TAG, (void *)from, COUNT, MPI_FLOAT,
                 previous, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);

    bad = wrong(sum, (float)(size * (size - 1)) / 2) + wrong(from, (float)previous);
    MPI_Allreduce(MPI_IN_PLACE, &bad, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%d ranks: %s\n", size, bad ? "WRONG" : "right");
    }
    cuMemFree(sum);
    cuMemFree(mine);
    cuMemFree(from);
    MPI_Finalize();
    return bad != 0;
}
