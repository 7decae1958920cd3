/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI on Kokkos views: one layer of ghost cells of a 1-D field, and its sum over all ranks.
 *
 *     mpicxx -std=c++17 -I$Kokkos_ROOT/include halo_kokkos.cpp -o halo_kokkos \
 *         -L$Kokkos_ROOT/lib -lkokkoscontainers -lkokkoscore -ldl
 *     mpirun -n 4 xccl-run ./halo_kokkos --kokkos-map-device-id-by=mpi_rank
 *
 * That is for a Kokkos without a device. For one with CUDA or HIP let CMake's
 * find_package(Kokkos) choose the compiler.
 */
#include <cstdio>

#include <Kokkos_Core.hpp>
#include <mpi.h>

int main(int argc, char **argv)
{
    constexpr int inner = 100000, tag = 5;
    int           rank = 0, size = 1;
    double        local = 0, total = 0;

    MPI_Init(&argc, &argv);
    Kokkos::initialize(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    {
        Kokkos::View<double *> field("field", inner + 2); // device memory, where there is a device
        Kokkos::parallel_for(inner, KOKKOS_LAMBDA(int i) { field(i + 1) = rank; });
        Kokkos::fence(); // the kernel must be done before MPI reads

        int left = (rank + size - 1) % size, right = (rank + 1) % size;
        MPI_Sendrecv(field.data() + inner, 1, MPI_DOUBLE, right, tag, field.data(), 1, MPI_DOUBLE,
                     left, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Sendrecv(field.data() + 1, 1, MPI_DOUBLE, left, tag, field.data() + inner + 1, 1,
                     MPI_DOUBLE, right, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        Kokkos::parallel_reduce(
            inner + 2, KOKKOS_LAMBDA(int i, double &sum) { sum += field(i); }, local);
        MPI_Allreduce(&local, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    double expected = (inner + 2.0) * size * (size - 1) / 2;
    if (rank == 0) {
        std::printf("%d ranks: %s\n", size, (total == expected) ? "right" : "WRONG");
    }
    Kokkos::finalize();
    MPI_Finalize();
    return total != expected;
}
