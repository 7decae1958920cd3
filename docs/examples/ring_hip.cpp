/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI on device memory, in C++ with HIP: blocks go round a ring and are gathered, on AMD GPUs.
 *
 *     mpicxx -D__HIP_PLATFORM_AMD__ -I$ROCM_PATH/include ring_hip.cpp -o ring_hip \
 *         -L$ROCM_PATH/lib -lamdhip64
 *     mpirun -n 4 xccl-run ./ring_hip
 */
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <hip/hip_runtime_api.h>
#include <mpi.h>

namespace {

constexpr int count = 50000, tag = 3;

void must(hipError_t result, const char *what)
{
    if (result != hipSuccess) {
        std::fprintf(stderr, "%s failed with HIP error %d\n", what, static_cast<int>(result));
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

int *device_ints(size_t n, int value)
{
    const std::vector<int> host(n, value);
    int                   *device = nullptr;

    must(hipMalloc(reinterpret_cast<void **>(&device), n * sizeof(int)), "hipMalloc");
    must(hipMemcpy(device, host.data(), n * sizeof(int), hipMemcpyHostToDevice), "hipMemcpy");
    return device;
}

void choose_device()
{
    const char *published = std::getenv("XCCL_LOCAL_DEVICE");
    int         local = 0, devices = 1;
    MPI_Comm    node;

    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &local);
    MPI_Comm_free(&node);
    must(hipGetDeviceCount(&devices), "hipGetDeviceCount");
    must(hipSetDevice(published ? std::atoi(published) : local % devices), "hipSetDevice");
}

} // namespace

int main(int argc, char **argv)
{
    int rank = 0, size = 1, bad = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    choose_device();
    int *mine = device_ints(count, rank), *got = device_ints(count, -1);
    int *all = device_ints(static_cast<size_t>(count) * size, -1);

    MPI_Request requests[2];
    MPI_Irecv(got, count, MPI_INT, (rank + size - 1) % size, tag, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(mine, count, MPI_INT, (rank + 1) % size, tag, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Allgather(got, count, MPI_INT, all, count, MPI_INT, MPI_COMM_WORLD);

    std::vector<int> host(static_cast<size_t>(count) * size);
    must(hipMemcpy(host.data(), all, host.size() * sizeof(int), hipMemcpyDeviceToHost),
         "hipMemcpy");
    for (size_t i = 0; i < host.size(); i++) {
        bad += (host[i] != (static_cast<int>(i / count) + size - 1) % size);
    }
    MPI_Allreduce(MPI_IN_PLACE, &bad, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) {
        std::printf("%d ranks: %s\n", size, bad ? "WRONG" : "right");
    }
    for (int *pointer : {mine, got, all}) {
        must(hipFree(pointer), "hipFree");
    }
    MPI_Finalize();
    return bad != 0;
}
