! SPDX-License-Identifier: BSD-3-Clause
! MPI-4 sessions by mpi_f08, whose functions call MPI's by names of their own: messages of device
! memory, also by a type that MPI alone can take apart.
! Usage: mpi_fortran_session cuda|rocm|none
program mpi_fortran_session
    use, intrinsic :: iso_c_binding
    use device_memory
    use mpi_f08
    implicit none

    character(len=16) :: runtime
    type(MPI_Session) :: session
    type(MPI_Group) :: group
    type(MPI_Comm) :: comm

    call get_command_argument(1, runtime)
    call MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, session)
    call MPI_Group_from_session_pset(session, "mpi://WORLD", group)
    call MPI_Comm_create_from_group(group, "xccl", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, comm)
    call MPI_Group_free(group)
    call MPI_Comm_rank(comm, rank)
    call MPI_Comm_size(comm, nranks)
    call mt_memory_open(trim(runtime) // c_null_char, int(rank, c_int))
    next = modulo(rank + 1, nranks)
    last = modulo(rank - 1, nranks)
    call exchange(MPI_INTEGER, n, "MPI_Sendrecv")
    call exchange_blocks
    call summary
    call MPI_Comm_free(comm)
    call MPI_Session_finalize(session)
    if (failures /= 0) stop 1

contains

    ! `count` elements of the type are the first n integers.
    subroutine exchange(datatype, count, what)
        type(MPI_Datatype), intent(in) :: datatype
        integer, intent(in) :: count
        character(len=*), intent(in) :: what
        type(buffer) :: sent, received

        sent = make(n, 3)
        received = make(0, 0)
        call MPI_Sendrecv(sent%data, count, datatype, next, message_tag, received%data, count, datatype, last, &
                          message_tag, comm, MPI_STATUS_IGNORE)
        call expect(received, n, last, 3, what)
        call release(sent)
        call release(received)
    end subroutine

    subroutine exchange_blocks
        type(MPI_Datatype) :: blocks

        call MPI_Type_create_darray(2, 0, 1, [2 * n], [MPI_DISTRIBUTE_BLOCK], [n], [2], MPI_ORDER_C, MPI_INTEGER, &
                                    blocks)
        call MPI_Type_commit(blocks)
        call exchange(blocks, 1, "MPI_Sendrecv of MPI_Type_create_darray")
        call MPI_Type_free(blocks)
    end subroutine

    subroutine summary
        integer :: all_checks, all_failures

        call MPI_Reduce(checks, all_checks, 1, MPI_INTEGER, MPI_SUM, 0, comm)
        call MPI_Reduce(failures, all_failures, 1, MPI_INTEGER, MPI_SUM, 0, comm)
        if (rank == 0) print '(i0, a, i0, a)', all_checks, " checks, ", all_failures, " failures"
    end subroutine

end program
