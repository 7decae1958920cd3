! SPDX-License-Identifier: BSD-3-Clause
! Fortran programs reach MPI by other names than C's: allreduce and bcast on device memory, in place
! too, through `use mpi`. Device memory comes from the C helper of the other tests.
! Usage: mpi_fortran cuda|rocm
program mpi_fortran
    use, intrinsic :: iso_c_binding
    use device_memory, only: mt_memory_open, mt_alloc, mt_put, mt_get, mt_free
    use mpi
    implicit none

    integer, parameter :: n = 1000
    integer(c_int), parameter :: device = 1
    integer(c_size_t), parameter :: bytes = n * 8
    real(c_double), target :: host(n)
    real(c_double), pointer :: send(:), recv(:)
    type(c_ptr) :: send_ptr, recv_ptr
    character(len=16) :: runtime
    integer :: rank, nranks, error, i, level, failures, all_failures
    real(c_double) :: ranks_sum

    failures = 0
    call get_command_argument(1, runtime)
    call mpi_init(error)
    call mpi_comm_rank(MPI_COMM_WORLD, rank, error)
    call mpi_comm_size(MPI_COMM_WORLD, nranks, error)
    call mpi_query_thread(level, error)
    if (level == MPI_THREAD_MULTIPLE) print '(a)', "MPI_THREAD_MULTIPLE"
    call mt_memory_open(trim(runtime) // c_null_char, int(rank, c_int))
    send_ptr = mt_alloc(device, bytes)
    recv_ptr = mt_alloc(device, bytes)
    call c_f_pointer(send_ptr, send, [n])
    call c_f_pointer(recv_ptr, recv, [n])
    ranks_sum = nranks * (nranks - 1) / 2

    do i = 1, n
        host(i) = rank + i
    end do
    call mt_put(send_ptr, device, c_loc(host), bytes)
    call mpi_allreduce(send, recv, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, error)
    call mt_get(c_loc(host), recv_ptr, device, bytes)
    do i = 1, n
        if (host(i) /= ranks_sum + nranks * i) failures = failures + 1
    end do

    call mpi_allreduce(MPI_IN_PLACE, recv, n, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD, error)
    call mpi_bcast(recv, n, MPI_DOUBLE_PRECISION, nranks - 1, MPI_COMM_WORLD, error)
    call mt_get(c_loc(host), recv_ptr, device, bytes)
    do i = 1, n
        if (host(i) /= ranks_sum + nranks * i) failures = failures + 1
    end do

    call mt_free(device, send_ptr)
    call mt_free(device, recv_ptr)
    call mpi_allreduce(failures, all_failures, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
    if (rank == 0) print '(i0, a, i0, a)', 2 * n * nranks, " checks, ", all_failures, " failures"
    call mpi_finalize(error)
    if (failures /= 0) stop 1
end program
