! SPDX-License-Identifier: BSD-3-Clause
! A communicator with an attribute is freed while a collective on device memory is under way on it,
! and a rank is late: its delete callback, in which the ranks meet, runs before mpi_comm_free ends.
! Usage: mpi_fortran_keys cuda|rocm, on two ranks
module counted
    implicit none
    integer :: deletes = 0
end module

program mpi_fortran_keys
    use, intrinsic :: iso_c_binding
    use counted, only: deletes
    use device_memory
    use mpi
    implicit none

    external :: on_delete
    type(buffer) :: message
    character(len=16) :: runtime
    integer :: key, twin, request, ignored, error, all_checks, all_failures
    integer(MPI_ADDRESS_KIND), parameter :: value = 42

    interface
        integer(c_int) function usleep(us) bind(c)
            import
            integer(c_int), value :: us
        end function
    end interface

    call get_command_argument(1, runtime)
    call mpi_init(error)
    call mpi_comm_rank(MPI_COMM_WORLD, rank, error)
    call mt_memory_open(trim(runtime) // c_null_char, int(rank, c_int))
    message = make(n, 1)
    call mpi_comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_delete, key, value, error)
    call mpi_comm_dup(MPI_COMM_WORLD, twin, error)
    call mpi_comm_set_attr(twin, key, value, error)
    call mpi_barrier(MPI_COMM_WORLD, error)
    if (rank == 1) ignored = usleep(300000)
    call mpi_ibcast(message%data, n, MPI_INTEGER, 0, twin, request, error)
    call mpi_comm_free(twin, error)
    call check(deletes == 1, "mpi_comm_free has not called the callback")
    call mpi_barrier(MPI_COMM_WORLD, error)
    call mpi_wait(request, MPI_STATUS_IGNORE, error)
    call expect(message, n, 0, 1, "the broadcast")
    call release(message)
    call mpi_allreduce(checks, all_checks, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
    call mpi_allreduce(failures, all_failures, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
    if (rank == 0) print '(i0, a, i0, a)', all_checks, " checks, ", all_failures, " failures"
    call mpi_finalize(error)
    if (failures /= 0) stop 1
end program

subroutine on_delete(comm, key, value, extra, error)
    use counted, only: deletes
    use mpi
    implicit none
    integer :: comm, key, error
    integer(MPI_ADDRESS_KIND) :: value, extra

    deletes = deletes + 1
    call mpi_barrier(MPI_COMM_WORLD, error)
    error = MPI_SUCCESS
end subroutine
