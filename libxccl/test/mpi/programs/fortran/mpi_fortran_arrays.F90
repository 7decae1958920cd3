! SPDX-License-Identifier: BSD-3-Clause
! Collectives with arrays that give a request: from Open MPI 5 on its functions for Fortran write into
! that request what they have converted of the arrays. WITH_MPI4: the MPI has persistent ones.
! Usage: mpi_fortran_arrays cuda|rocm|none
program mpi_fortran_arrays
    use, intrinsic :: iso_c_binding
    use device_memory
    use mpi
    implicit none

    integer, parameter :: rounds = 20, block = 50, part = 10, salt = 3
    integer :: error, round, i, requests(12), ring, all_checks, all_failures
    integer, allocatable :: counts(:), displs(:), byte_displs(:), types(:)
    integer :: one(1) = part, one_displ(1) = block, one_type(1) = MPI_INTEGER
    integer(MPI_ADDRESS_KIND) :: one_address(1) = 4 * block
    character(len=16) :: runtime
    type(buffer) :: in, out(9)

    call get_command_argument(1, runtime)
    call mpi_init(error)
    call mpi_comm_rank(MPI_COMM_WORLD, rank, error)
    call mpi_comm_size(MPI_COMM_WORLD, nranks, error)
    next = mod(rank + 1, nranks)
    last = mod(rank + nranks - 1, nranks)
    call mt_memory_open(trim(runtime) // c_null_char, int(rank, c_int))
    allocate(counts(nranks), displs(nranks), byte_displs(nranks), types(nranks))
    counts = part
    displs = [(block * (i - 1), i = 1, nranks)]
    byte_displs = 4 * displs
    types = MPI_INTEGER
    call mpi_dist_graph_create_adjacent(MPI_COMM_WORLD, 1, [last], MPI_UNWEIGHTED, 1, [next], &
                                        MPI_UNWEIGHTED, MPI_INFO_NULL, .false., ring, error)
    in = make(block * nranks, salt)
    do i = 1, size(out)
        out(i) = make(0, 0)
    end do

    do round = 1, rounds
        call begin_all()
        call mpi_waitall(9, requests, MPI_STATUSES_IGNORE, error)
        call expect_all("non-blocking")
    end do
#ifdef WITH_MPI4
    do round = 1, rounds
        call make_all()
        do i = 1, 2
            call mpi_startall(9, requests, error)
            call mpi_waitall(9, requests, MPI_STATUSES_IGNORE, error)
            call expect_all("persistent")
        end do
        do i = 1, 9
            call mpi_request_free(requests(i), error)
        end do
    end do
#endif

    do i = 1, size(out)
        call release(out(i))
    end do
    call release(in)
    call mpi_comm_free(ring, error)
    call mpi_allreduce(checks, all_checks, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
    call mpi_allreduce(failures, all_failures, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
    if (rank == 0) print '(i0, a, i0, a)', all_checks, " checks, ", all_failures, " failures"
    call mpi_finalize(error)
    if (failures /= 0) stop 1

contains

    subroutine begin_all()
        call mpi_igatherv(in%data, part, MPI_INTEGER, out(1)%data, counts, displs, MPI_INTEGER, 0, &
                          MPI_COMM_WORLD, requests(1), error)
        call mpi_iscatterv(in%data, counts, displs, MPI_INTEGER, out(2)%data, part, MPI_INTEGER, &
                           0, MPI_COMM_WORLD, requests(2), error)
        call mpi_iallgatherv(in%data, part, MPI_INTEGER, out(3)%data, counts, displs, &
                             MPI_INTEGER, MPI_COMM_WORLD, requests(3), error)
        call mpi_ialltoallv(in%data, counts, displs, MPI_INTEGER, out(4)%data, counts, displs, &
                            MPI_INTEGER, MPI_COMM_WORLD, requests(4), error)
        call mpi_ialltoallw(in%data, counts, byte_displs, types, out(5)%data, counts, &
                            byte_displs, types, MPI_COMM_WORLD, requests(5), error)
        call mpi_ineighbor_allgatherv(in%data, part, MPI_INTEGER, out(6)%data, one, one_displ, &
                                      MPI_INTEGER, ring, requests(6), error)
        call mpi_ineighbor_alltoallv(in%data, one, one_displ, MPI_INTEGER, out(7)%data, one, &
                                     one_displ, MPI_INTEGER, ring, requests(7), error)
        call mpi_ineighbor_alltoallw(in%data, one, one_address, one_type, out(8)%data, one, &
                                     one_address, one_type, ring, requests(8), error)
        requests(9) = MPI_REQUEST_NULL
        ! Open MPI 5.0.7 frees the program's array in that for host memory.
        if (runtime /= "none") then
            call mpi_ireduce_scatter(in%data, out(9)%data, counts, MPI_INTEGER, MPI_SUM, &
                                     MPI_COMM_WORLD, requests(9), error)
        end if
    end subroutine

#ifdef WITH_MPI4
    subroutine make_all()
        integer, parameter :: info = MPI_INFO_NULL

        call mpi_gatherv_init(in%data, part, MPI_INTEGER, out(1)%data, counts, displs, &
                              MPI_INTEGER, 0, MPI_COMM_WORLD, info, requests(1), error)
        call mpi_scatterv_init(in%data, counts, displs, MPI_INTEGER, out(2)%data, part, &
                               MPI_INTEGER, 0, MPI_COMM_WORLD, info, requests(2), error)
        call mpi_allgatherv_init(in%data, part, MPI_INTEGER, out(3)%data, counts, displs, &
                                 MPI_INTEGER, MPI_COMM_WORLD, info, requests(3), error)
        call mpi_alltoallv_init(in%data, counts, displs, MPI_INTEGER, out(4)%data, counts, &
                                displs, MPI_INTEGER, MPI_COMM_WORLD, info, requests(4), error)
        call mpi_alltoallw_init(in%data, counts, byte_displs, types, out(5)%data, counts, &
                                byte_displs, types, MPI_COMM_WORLD, info, requests(5), error)
        call mpi_neighbor_allgatherv_init(in%data, part, MPI_INTEGER, out(6)%data, one, &
                                          one_displ, MPI_INTEGER, ring, info, requests(6), error)
        call mpi_neighbor_alltoallv_init(in%data, one, one_displ, MPI_INTEGER, out(7)%data, one, &
                                         one_displ, MPI_INTEGER, ring, info, requests(7), error)
        call mpi_neighbor_alltoallw_init(in%data, one, one_address, one_type, out(8)%data, &
                                         one, one_address, one_type, ring, info, requests(8), &
                                         error)
        call mpi_reduce_scatter_init(in%data, out(9)%data, counts, MPI_INTEGER, MPI_SUM, &
                                     MPI_COMM_WORLD, info, requests(9), error)
    end subroutine
#endif

    ! Has the result those of `from` from its first value on, behind `at` others?
    logical function has(at, from, first)
        integer, intent(in) :: at, from, first
        integer :: j

        has = all(host(at + 1:at + part) == [(value_of(from, salt, first + j), j = 1, part)])
    end function

    subroutine expect_all(form)
        character(len=*), intent(in) :: form
        integer :: which, from, j
        logical :: good

        do which = 1, 9
            call fetch(out(which))
            good = .true.
            select case (which)
            case (1, 3)
                do from = 0, nranks - 1
                    good = good .and. (has(block * from, from, 0) .or. &
                                       ((which == 1) .and. (rank /= 0)))
                end do
            case (2)
                good = has(0, 0, block * rank)
            case (4, 5)
                do from = 0, nranks - 1
                    good = good .and. has(block * from, from, block * rank)
                end do
            case (6)
                good = has(block, last, 0)
            case (7, 8)
                good = has(block, last, block)
            case (9)
                do j = 1, part
                    good = good .and. ((runtime == "none") .or. (host(j) == &
                        sum([(value_of(from, salt, part * rank + j), from = 0, nranks - 1)])))
                end do
            end select
            call check(good, form // " collective with arrays, number " // achar(48 + which))
            call fill(out(which), 0, 0)
        end do
    end subroutine

end program
