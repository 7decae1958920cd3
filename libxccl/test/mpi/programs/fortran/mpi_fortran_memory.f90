! SPDX-License-Identifier: BSD-3-Clause
! The C helper of the other tests, and buffers of integers with values to expect in it.
module device_memory
    use, intrinsic :: iso_c_binding
    implicit none

    interface
        subroutine mt_memory_open(runtime, local_rank) bind(c)
            import
            character(kind=c_char), intent(in) :: runtime(*)
            integer(c_int), value :: local_rank
        end subroutine
        function mt_alloc(place, bytes) bind(c) result(ptr)
            import
            integer(c_int), value :: place
            integer(c_size_t), value :: bytes
            type(c_ptr) :: ptr
        end function
        subroutine mt_put(dst, place, src, bytes) bind(c)
            import
            type(c_ptr), value :: dst, src
            integer(c_int), value :: place
            integer(c_size_t), value :: bytes
        end subroutine
        subroutine mt_get(dst, src, place, bytes) bind(c)
            import
            type(c_ptr), value :: dst, src
            integer(c_int), value :: place
            integer(c_size_t), value :: bytes
        end subroutine
        subroutine mt_free(place, ptr) bind(c)
            import
            integer(c_int), value :: place
            type(c_ptr), value :: ptr
        end subroutine
    end interface

    integer, parameter :: n = 1000, room = n + 8, untouched = -77, message_tag = 5
    integer(c_int), parameter :: device = 1
    integer(c_size_t), parameter :: bytes = room * 4

    type buffer
        type(c_ptr) :: address
        integer(c_int), pointer, contiguous :: data(:)
    end type

    integer :: rank, nranks, next, last, checks = 0, failures = 0
    integer(c_int), target :: host(room)

contains

    subroutine check(good, what)
        logical, intent(in) :: good
        character(len=*), intent(in) :: what

        checks = checks + 1
        if (good) return
        failures = failures + 1
        if (failures <= 10) print '(a, i0, 2a)', "FAIL rank ", rank, ": ", what
    end subroutine

    integer function value_of(from, salt, i)
        integer, intent(in) :: from, salt, i

        value_of = from * 100000 + salt * 10007 + i
    end function

    ! The first `count` have values, the others not.
    subroutine fill(b, count, salt)
        type(buffer), intent(in) :: b
        integer, intent(in) :: count, salt
        integer :: i

        host = untouched
        do i = 1, count
            host(i) = value_of(rank, salt, i)
        end do
        call mt_put(b%address, device, c_loc(host), bytes)
    end subroutine

    function make(count, salt) result(b)
        integer, intent(in) :: count, salt
        type(buffer) :: b

        b%address = mt_alloc(device, bytes)
        call c_f_pointer(b%address, b%data, [room])
        call fill(b, count, salt)
    end function

    subroutine fetch(b)
        type(buffer), intent(in) :: b

        call mt_get(c_loc(host), b%address, device, bytes)
    end subroutine

    ! Are the first `count` values those of rank `from`, and the others untouched?
    subroutine expect(b, count, from, salt, what)
        type(buffer), intent(in) :: b
        integer, intent(in) :: count, from, salt
        character(len=*), intent(in) :: what
        integer :: i
        logical :: good

        call fetch(b)
        good = all(host(count + 1:) == untouched)
        do i = 1, count
            good = good .and. (host(i) == value_of(from, salt, i))
        end do
        call check(good, what)
    end subroutine

    subroutine release(b)
        type(buffer), intent(in) :: b

        call mt_free(device, b%address)
    end subroutine

end module
