! SPDX-License-Identifier: BSD-3-Clause
! Messages, packing, windows and files with buffers in device memory, from Fortran. Compiled once
! for each way to MPI, as these have names and handles of their own: mpif.h (FACE_mpifh), use mpi
! (FACE_mpi) and use mpi_f08 (FACE_f08). WITH_MPI4: the MPI has the functions of MPI-4.
! Usage: mpi_fortran_messages_FACE cuda|rocm|none FOLDER [bottom|sections]
#ifdef FACE_f08
#define HANDLE(kind) type(kind)
#define STATUS(s) type(MPI_Status) :: s
#define STATUSES(s, n) type(MPI_Status) :: s(n)
#define SOURCE_OF(s) s%MPI_SOURCE
#define TAG_OF(s) s%MPI_TAG
#define ONE_OF(s, i) s(i)
#define ADDRESS type(c_ptr)
#else
#define HANDLE(kind) integer
#define STATUS(s) integer :: s(MPI_STATUS_SIZE)
#define STATUSES(s, n) integer :: s(MPI_STATUS_SIZE, n)
#define SOURCE_OF(s) s(MPI_SOURCE)
#define TAG_OF(s) s(MPI_TAG)
#define ONE_OF(s, i) s(:, i)
#define ADDRESS integer(MPI_ADDRESS_KIND)
#endif

! Open MPI 5.0's functions of mpi_f08 for partitioned messages lack the argument `info`.
#if defined WITH_MPI4 && !(defined FACE_f08 && defined FAMILY_openmpi)
#define WITH_PARTITIONS
#endif

program mpi_fortran_messages
    use device_memory
#if defined FACE_f08
    use mpi_f08
#elif defined FACE_mpi
    use mpi
#endif
    implicit none
#ifdef FACE_mpifh
    include 'mpif.h'
#endif

    integer, parameter :: slots = 16
    integer(c_int), pointer, volatile :: memory(:)
    character(len=16) :: runtime, also
    character(len=1024) :: folder
    integer :: error, all_checks, all_failures

    call get_command_argument(1, runtime)
    call get_command_argument(2, folder)
    call get_command_argument(3, also)
    call mpi_init(error)
    call mpi_comm_rank(MPI_COMM_WORLD, rank, error)
    call mpi_comm_size(MPI_COMM_WORLD, nranks, error)
    next = mod(rank + 1, nranks)
    last = mod(rank + nranks - 1, nranks)
    call mt_memory_open(trim(runtime) // c_null_char, int(rank, c_int))

    call test_sends()
    call test_persistent()
    call test_receives()
    call test_both_ways()
    call test_nobody()
    call test_completion()
    call test_cancelled()
    call test_vector()
    if (also == "bottom") call test_bottom()
    call test_doubles()
    call test_sections(.false.)
    if (also == "sections") call test_sections(.true.)
    call test_packing()
    call test_reduction()
    call test_window()
    call test_refused()
    call test_files()
    call test_file_requests()

    call mpi_allreduce(checks, all_checks, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
    call mpi_allreduce(failures, all_failures, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
    if (rank == 0) print '(i0, a, i0, a)', all_checks, " checks, ", all_failures, " failures"
    call mpi_finalize(error)
    if (failures /= 0) stop 1

contains

    subroutine expect_status(s, from, count, what)
        STATUS(s)
        integer, intent(in) :: from, count
        character(len=*), intent(in) :: what
        integer :: got

        call mpi_get_count(s, MPI_INTEGER, got, error)
        call check((SOURCE_OF(s) == from) .and. (TAG_OF(s) == message_tag) .and. (got == count), &
                   what // ": the status")
    end subroutine

    ! ---- sends ----

    subroutine send(mode, b)
        character(len=*), intent(in) :: mode
        type(buffer), intent(in) :: b

        select case (mode)
        case ("mpi_send")
            call mpi_send(b%data, n, MPI_INTEGER, next, message_tag, MPI_COMM_WORLD, error)
        case ("mpi_bsend")
            call mpi_bsend(b%data, n, MPI_INTEGER, next, message_tag, MPI_COMM_WORLD, error)
        case ("mpi_ssend")
            call mpi_ssend(b%data, n, MPI_INTEGER, next, message_tag, MPI_COMM_WORLD, error)
        case ("mpi_rsend")
            call mpi_rsend(b%data, n, MPI_INTEGER, next, message_tag, MPI_COMM_WORLD, error)
        end select
    end subroutine

    subroutine send_request(mode, b, r)
        character(len=*), intent(in) :: mode
        type(buffer), intent(in) :: b
        HANDLE(MPI_Request), intent(out) :: r

        select case (mode)
        case ("mpi_isend")
            call mpi_isend(b%data, n, MPI_INTEGER, next, message_tag, MPI_COMM_WORLD, r, error)
        case ("mpi_ibsend")
            call mpi_ibsend(b%data, n, MPI_INTEGER, next, message_tag, MPI_COMM_WORLD, r, error)
        case ("mpi_issend")
            call mpi_issend(b%data, n, MPI_INTEGER, next, message_tag, MPI_COMM_WORLD, r, error)
        case ("mpi_irsend")
            call mpi_irsend(b%data, n, MPI_INTEGER, next, message_tag, MPI_COMM_WORLD, r, error)
        case ("mpi_send_init")
            call mpi_send_init(b%data, n, MPI_INTEGER, next, message_tag, MPI_COMM_WORLD, r, error)
        case ("mpi_bsend_init")
            call mpi_bsend_init(b%data, n, MPI_INTEGER, next, message_tag, MPI_COMM_WORLD, r, error)
        case ("mpi_ssend_init")
            call mpi_ssend_init(b%data, n, MPI_INTEGER, next, message_tag, MPI_COMM_WORLD, r, error)
        case ("mpi_rsend_init")
            call mpi_rsend_init(b%data, n, MPI_INTEGER, next, message_tag, MPI_COMM_WORLD, r, error)
        end select
    end subroutine

    ! One message around the ring, received by mpi_irecv before a ready send may come.
    subroutine ring(mode, salt)
        character(len=*), intent(in) :: mode
        integer, intent(in) :: salt
        type(buffer) :: in, out
        HANDLE(MPI_Request) :: requests(2)
        STATUSES(all_statuses, 2)

        in = make(n, salt)
        out = make(0, 0)
        call mpi_irecv(out%data, room, MPI_INTEGER, last, message_tag, MPI_COMM_WORLD, &
                       requests(1), error)
        call mpi_barrier(MPI_COMM_WORLD, error)
        if (index(mode, "mpi_i") == 1) then
            call send_request(mode, in, requests(2))
        else
            requests(2) = MPI_REQUEST_NULL
            call send(mode, in)
        end if
        call mpi_waitall(2, requests, all_statuses, error)
        call expect_status(ONE_OF(all_statuses, 1), last, n, mode)
        call expect(out, n, last, salt, mode)
        call check(requests(1) == MPI_REQUEST_NULL, mode // ": the request stays")
        call release(in)
        call release(out)
    end subroutine

    subroutine test_sends()
        integer, target, save :: attached(8 * room)
        integer :: attached_bytes
        ADDRESS :: detached

        call mpi_buffer_attach(attached, size(attached) * 4, error)
        call ring("mpi_send", 1)
        call ring("mpi_bsend", 2)
        call ring("mpi_ssend", 3)
        call ring("mpi_rsend", 4)
        call ring("mpi_isend", 5)
        call ring("mpi_ibsend", 6)
        call ring("mpi_issend", 7)
        call ring("mpi_irsend", 8)
#ifndef FAMILY_openmpi
        call ring_persistent("mpi_bsend_init", 10) ! Open MPI 4.1.4 sends the first values again
#endif
        call mpi_buffer_detach(detached, attached_bytes, error)
    end subroutine

    ! Three rounds, started together and one by one, with other values in each.
    subroutine ring_persistent(mode, salt)
        character(len=*), intent(in) :: mode
        integer, intent(in) :: salt
        type(buffer) :: in, out
        HANDLE(MPI_Request) :: requests(2)
        STATUSES(all_statuses, 2)
        integer :: round

        in = make(0, 0)
        out = make(0, 0)
        call mpi_recv_init(out%data, room, MPI_INTEGER, last, message_tag, MPI_COMM_WORLD, &
                           requests(1), error)
        call send_request(mode, in, requests(2))
        do round = 1, 3
            call fill(in, n, salt + round)
            if ((round == 2) .and. (mode /= "mpi_rsend_init")) then
                call mpi_startall(2, requests, error)
            else
                call mpi_start(requests(1), error)
                call mpi_barrier(MPI_COMM_WORLD, error)
                call mpi_start(requests(2), error)
            end if
            call mpi_waitall(2, requests, all_statuses, error)
            call expect_status(ONE_OF(all_statuses, 1), last, n, mode)
            call expect(out, n, last, salt + round, mode)
            call check(requests(1) /= MPI_REQUEST_NULL, mode // ": a persistent request is gone")
        end do
        call mpi_request_free(requests(1), error)
        call mpi_request_free(requests(2), error)
        call check(requests(2) == MPI_REQUEST_NULL, mode // ": mpi_request_free left the request")
        call release(in)
        call release(out)
    end subroutine

    subroutine test_persistent()
        call ring_persistent("mpi_send_init", 20)
        call ring_persistent("mpi_ssend_init", 30)
        call ring_persistent("mpi_rsend_init", 40)
    end subroutine

    ! ---- receives ----

    subroutine test_receives()
        type(buffer) :: in, out(4)
        HANDLE(MPI_Request) :: requests(5)
        HANDLE(MPI_Message) :: message
        STATUS(s)
        logical :: flag
        integer :: i

        in = make(n, 1)
        do i = 1, 4
            out(i) = make(0, 0)
            call mpi_isend(in%data, n, MPI_INTEGER, next, message_tag, MPI_COMM_WORLD, &
                           requests(i), error)
        end do
        call mpi_probe(MPI_ANY_SOURCE, message_tag, MPI_COMM_WORLD, s, error)
        call expect_status(s, last, n, "mpi_probe")
        call mpi_recv(out(1)%data, room, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, &
                      MPI_COMM_WORLD, s, error)
        call expect_status(s, last, n, "mpi_recv of any")
        call mpi_recv(out(2)%data, room, MPI_INTEGER, last, message_tag, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, error)
        call mpi_mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, message, s, error)
        call expect_status(s, last, n, "mpi_mprobe")
        call mpi_mrecv(out(3)%data, room, MPI_INTEGER, message, s, error)
        call expect_status(s, last, n, "mpi_mrecv")
        flag = .false.
        do while (.not. flag)
            call mpi_improbe(last, message_tag, MPI_COMM_WORLD, flag, message, s, error)
        end do
        call mpi_imrecv(out(4)%data, room, MPI_INTEGER, message, requests(5), error)
        call mpi_wait(requests(5), s, error)
        call expect_status(s, last, n, "mpi_imrecv")
        call mpi_waitall(4, requests, MPI_STATUSES_IGNORE, error)
        call expect(out(1), n, last, 1, "mpi_recv of any")
        call expect(out(2), n, last, 1, "mpi_recv")
        call expect(out(3), n, last, 1, "mpi_mrecv")
        call expect(out(4), n, last, 1, "mpi_imrecv")
        do i = 1, 4
            call release(out(i))
        end do
        call release(in)
    end subroutine

    subroutine test_both_ways()
        type(buffer) :: in, out
        HANDLE(MPI_Request) :: r
        STATUS(s)

        in = make(n, 1)
        out = make(0, 0)
        call mpi_sendrecv(in%data, n, MPI_INTEGER, next, message_tag, out%data, room, &
                          MPI_INTEGER, last, message_tag, MPI_COMM_WORLD, s, error)
        call expect_status(s, last, n, "mpi_sendrecv")
        call expect(out, n, last, 1, "mpi_sendrecv")
        call mpi_sendrecv_replace(in%data, n, MPI_INTEGER, next, message_tag, last, message_tag, &
                                  MPI_COMM_WORLD, s, error)
        call expect_status(s, last, n, "mpi_sendrecv_replace")
        call expect(in, n, last, 1, "mpi_sendrecv_replace")
#ifdef WITH_MPI4
        call fill(in, n, 2)
        call mpi_isendrecv(in%data, n, MPI_INTEGER, next, message_tag, out%data, room, &
                           MPI_INTEGER, last, message_tag, MPI_COMM_WORLD, r, error)
        call mpi_wait(r, MPI_STATUS_IGNORE, error)
        call expect(out, n, last, 2, "mpi_isendrecv")
        call mpi_isendrecv_replace(in%data, n, MPI_INTEGER, next, message_tag, last, &
                                   message_tag, MPI_COMM_WORLD, r, error)
        call mpi_wait(r, MPI_STATUS_IGNORE, error)
        call expect(in, n, last, 2, "mpi_isendrecv_replace")
#endif
#ifdef WITH_PARTITIONS
        call partitioned()
#endif
        call release(in)
        call release(out)
    end subroutine

#ifdef WITH_PARTITIONS
    subroutine partitioned()
        integer, parameter :: parts = 4
        integer(MPI_COUNT_KIND), parameter :: each = n / parts
        type(buffer) :: in, out
        HANDLE(MPI_Request) :: requests(2)
        logical :: flag
        integer :: round

        in = make(0, 0)
        out = make(0, 0)
        call mpi_psend_init(in%data, parts, each, MPI_INTEGER, next, message_tag, &
                            MPI_COMM_WORLD, MPI_INFO_NULL, requests(1), error)
        call mpi_precv_init(out%data, parts, each, MPI_INTEGER, last, message_tag, &
                            MPI_COMM_WORLD, MPI_INFO_NULL, requests(2), error)
        do round = 1, 2
            call fill(in, n, round)
            call mpi_startall(2, requests, error)
            call mpi_pready(3, requests(1), error)
            call mpi_pready_range(0, 1, requests(1), error)
            call mpi_pready_list(1, [2], requests(1), error)
#ifndef FACE_mpi
            ! MPICH 4.0.2's module mpi takes the flag for an integer.
            flag = .false.
            do while (.not. flag)
                call mpi_parrived(requests(2), 1, flag, error)
            end do
#endif
            call mpi_waitall(2, requests, MPI_STATUSES_IGNORE, error)
            call expect(out, n, last, round, "a partitioned message")
        end do
        call mpi_request_free(requests(1), error)
        call mpi_request_free(requests(2), error)
        call release(in)
        call release(out)
    end subroutine
#endif

    subroutine test_nobody()
        type(buffer) :: b
        HANDLE(MPI_Request) :: requests(2)
        STATUS(s)
        integer :: got

        b = make(n, 1)
        call mpi_send(b%data, n, MPI_INTEGER, MPI_PROC_NULL, message_tag, MPI_COMM_WORLD, error)
        call mpi_recv(b%data, n, MPI_INTEGER, MPI_PROC_NULL, message_tag, MPI_COMM_WORLD, s, error)
        call mpi_get_count(s, MPI_INTEGER, got, error)
        call check((SOURCE_OF(s) == MPI_PROC_NULL) .and. (got == 0), "mpi_recv from nobody")
        call mpi_isend(b%data, n, MPI_INTEGER, MPI_PROC_NULL, message_tag, MPI_COMM_WORLD, &
                       requests(1), error)
        call mpi_irecv(b%data, n, MPI_INTEGER, MPI_PROC_NULL, message_tag, MPI_COMM_WORLD, &
                       requests(2), error)
        call mpi_waitall(2, requests, MPI_STATUSES_IGNORE, error)
        call mpi_sendrecv_replace(b%data, n, MPI_INTEGER, MPI_PROC_NULL, message_tag, &
                                  MPI_PROC_NULL, message_tag, MPI_COMM_WORLD, s, error)
        call expect(b, n, rank, 1, "messages from nobody")
        call release(b)
    end subroutine

    ! ---- requests ----

    ! Each call that completes, on receives of its own.
    subroutine test_completion()
        character(len=*), parameter :: names(9) = [character(len=22) :: "mpi_wait", "mpi_waitany", &
            "mpi_waitsome", "mpi_waitall", "mpi_test", "mpi_testany", "mpi_testsome", &
            "mpi_testall", "mpi_request_get_status"]
        type(buffer) :: in(2), out(2)
        HANDLE(MPI_Request) :: requests(4)
        integer :: way, i

        do way = 1, size(names)
            do i = 1, 2
                in(i) = make(n, 10 * way + i)
                out(i) = make(0, 0)
                call mpi_irecv(out(i)%data, room, MPI_INTEGER, last, i, MPI_COMM_WORLD, &
                               requests(i), error)
            end do
            do i = 1, 2
                call mpi_isend(in(i)%data, n, MPI_INTEGER, next, i, MPI_COMM_WORLD, &
                               requests(2 + i), error)
            end do
            call complete(trim(names(way)), requests)
            do i = 1, 2
                call expect(out(i), n, last, 10 * way + i, trim(names(way)))
                call release(in(i))
                call release(out(i))
            end do
            call check(all([(requests(i) == MPI_REQUEST_NULL, i = 1, 4)]), &
                       trim(names(way)) // ": a request stays")
        end do
    end subroutine

    subroutine complete(name, requests)
        character(len=*), intent(in) :: name
        HANDLE(MPI_Request), intent(inout) :: requests(4)
        STATUS(s)
        STATUSES(some, 4)
        integer :: done, indices(4), got, which, i
        logical :: flag

        done = 0
        flag = .false.
        do while (done < 4)
            got = 0
            select case (name)
            case ("mpi_wait")
                call mpi_wait(requests(done + 1), s, error)
                got = 1
            case ("mpi_waitany")
                call mpi_waitany(4, requests, which, s, error)
#if !(defined FACE_f08 && defined FAMILY_mpich)
                ! MPICH 4.0.2's mpi_f08 counts from 0.
                call check((which >= 1) .and. (which <= 4), "mpi_waitany: the index")
#endif
                got = 1
            case ("mpi_waitsome")
                call mpi_waitsome(4, requests, got, indices, some, error)
            case ("mpi_waitall")
                call mpi_waitall(4, requests, some, error)
                got = 4
            case ("mpi_test")
                call mpi_test(requests(done + 1), flag, s, error)
                got = merge(1, 0, flag)
            case ("mpi_testany")
                call mpi_testany(4, requests, which, flag, s, error)
                got = merge(1, 0, flag)
            case ("mpi_testsome")
                call mpi_testsome(4, requests, got, indices, some, error)
            case ("mpi_testall")
                call mpi_testall(4, requests, flag, some, error)
                got = merge(4, 0, flag)
            case ("mpi_request_get_status")
                call mpi_request_get_status(requests(done + 1), flag, s, error)
                if (flag) call mpi_wait(requests(done + 1), MPI_STATUS_IGNORE, error)
                got = merge(1, 0, flag)
            end select
            done = done + got
        end do
    end subroutine

    subroutine test_cancelled()
        type(buffer) :: in, out
        HANDLE(MPI_Request) :: r
        STATUS(s)
        logical :: flag
        integer :: give(1), take(1), i

        out = make(0, 0)
        call mpi_irecv(out%data, n, MPI_INTEGER, last, message_tag + 1, MPI_COMM_WORLD, r, error)
        call mpi_cancel(r, error)
        call mpi_wait(r, s, error)
        call mpi_test_cancelled(s, flag, error)
        call check(flag, "a cancelled receive is not")
        call expect(out, 0, 0, 0, "a cancelled receive")
        ! A receive that nobody waits for is there when messages behind it are.
        in = make(n, 1)
        call mpi_irecv(out%data, room, MPI_INTEGER, last, message_tag, MPI_COMM_WORLD, r, error)
        call mpi_request_free(r, error)
        call mpi_isend(in%data, n, MPI_INTEGER, next, message_tag, MPI_COMM_WORLD, r, error)
        call mpi_request_free(r, error)
        give = rank
        do i = 1, 3
            call mpi_sendrecv(give, 1, MPI_INTEGER, next, 9, take, 1, MPI_INTEGER, last, 9, &
                              MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
            call mpi_sendrecv(give, 1, MPI_INTEGER, last, 9, take, 1, MPI_INTEGER, next, 9, &
                              MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
        end do
        call expect(out, n, last, 1, "a receive whose request was freed")
        call release(in)
        call release(out)
    end subroutine

    ! ---- datatypes ----

    ! Rows of a matrix, which have holes in Fortran; the message ends within an element.
    subroutine test_vector()
        integer, parameter :: rows = 10, columns = 20, sent = 2 * columns + 7
        HANDLE(MPI_Datatype) :: row, spread_row
        type(buffer) :: in, out
        STATUS(s)
        integer :: i, j, at, got
        logical :: good

        call mpi_type_vector(columns, 1, rows, MPI_INTEGER, row, error)
        call mpi_type_create_resized(row, 0_MPI_ADDRESS_KIND, 4_MPI_ADDRESS_KIND, spread_row, error)
        call mpi_type_commit(spread_row, error)
        in = make(sent, 1)
        out = make(0, 0)
        call mpi_sendrecv(in%data, sent, MPI_INTEGER, next, message_tag, out%data, 4, spread_row, &
                          last, message_tag, MPI_COMM_WORLD, s, error)
        call mpi_get_elements(s, spread_row, got, error)
        call check(got == sent, "a part of a vector type: the status")
        call fetch(out)
        good = all(host(rows * columns + 1:) == untouched)
        do i = 1, rows
            do j = 1, columns
                at = (i - 1) * columns + j
                if (at > sent) then
                    good = good .and. (host((j - 1) * rows + i) == untouched)
                else
                    good = good .and. (host((j - 1) * rows + i) == value_of(last, 1, at))
                end if
            end do
        end do
        call check(good, "a part of a vector type")
        call mpi_type_free(row, error)
        call mpi_type_free(spread_row, error)
        call release(in)
        call release(out)
    end subroutine

    ! Absolute addresses, which Fortran passes as MPI_BOTTOM, a variable of its own.
    subroutine test_bottom()
        HANDLE(MPI_Datatype) :: there(2)
        integer(MPI_ADDRESS_KIND) :: addresses(1)
        integer :: lengths(1), i
        type(buffer) :: in, out

        in = make(n, 1)
        out = make(0, 0)
        lengths = n
        call mpi_get_address(in%data, addresses(1), error)
        call mpi_type_create_hindexed(1, lengths, addresses, MPI_INTEGER, there(1), error)
        call mpi_get_address(out%data, addresses(1), error)
        call mpi_type_create_hindexed(1, lengths, addresses, MPI_INTEGER, there(2), error)
        call mpi_type_commit(there(1), error)
        call mpi_type_commit(there(2), error)
        call mpi_sendrecv(MPI_BOTTOM, 1, there(1), next, message_tag, MPI_BOTTOM, 1, there(2), &
                          last, message_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
        call expect(out, n, last, 1, "MPI_BOTTOM")
        do i = 1, 2
            call mpi_type_free(there(i), error)
        end do
        call release(in)
        call release(out)
    end subroutine

    ! Fortran's own types.
    subroutine test_doubles()
        type(buffer) :: in, out

        in = make(n, 1)
        out = make(0, 0)
        call mpi_sendrecv(in%data, n / 2, MPI_DOUBLE_PRECISION, next, message_tag, out%data, &
                          n / 2, MPI_DOUBLE_PRECISION, last, message_tag, MPI_COMM_WORLD, &
                          MPI_STATUS_IGNORE, error)
        call expect(out, n, last, 1, "MPI_DOUBLE_PRECISION")
        call fill(in, n, 2)
        call mpi_sendrecv(in%data, n / 4, MPI_DOUBLE_COMPLEX, next, message_tag, out%data, n / 4, &
                          MPI_DOUBLE_COMPLEX, last, message_tag, MPI_COMM_WORLD, &
                          MPI_STATUS_IGNORE, error)
        call expect(out, n, last, 2, "MPI_DOUBLE_COMPLEX")
        call fill(in, n, 3)
        call mpi_sendrecv(in%data, n, MPI_LOGICAL, next, message_tag, out%data, n, MPI_LOGICAL, &
                          last, message_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
        call expect(out, n, last, 3, "MPI_LOGICAL")
        call release(in)
        call release(out)
    end subroutine

    ! Sections of arrays with a stride, where the compiler does not copy them to host memory itself.
    ! MPI makes a datatype for them, and frees it before a pending message is there.
    subroutine test_sections(pending)
        logical, intent(in) :: pending
#ifdef FACE_f08
        type(buffer) :: in, out
        HANDLE(MPI_Request) :: r
        integer :: i

        if (.not. MPI_SUBARRAYS_SUPPORTED) return
        in = make(n, 1)
        out = make(0, 0)
        if (pending) then
            call mpi_irecv(out%data(2:n:2), n / 2, MPI_INTEGER, last, message_tag, &
                           MPI_COMM_WORLD, r, error)
            call mpi_send(in%data(1:n:2), n / 2, MPI_INTEGER, next, message_tag, &
                          MPI_COMM_WORLD, error)
            call mpi_wait(r, MPI_STATUS_IGNORE, error)
        else
            call mpi_sendrecv(in%data(1:n:2), n / 2, MPI_INTEGER, next, message_tag, &
                              out%data(2:n:2), n / 2, MPI_INTEGER, last, message_tag, &
                              MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
        end if
        call fetch(out)
        call check(all(host(1:n:2) == untouched) .and. all(host(n + 1:) == untouched) .and. &
                   all(host(2:n:2) == [(value_of(last, 1, i), i = 1, n, 2)]), "sections of arrays")
        call release(in)
        call release(out)
#endif
    end subroutine

#include "mpi_fortran_files.inc"

end program
