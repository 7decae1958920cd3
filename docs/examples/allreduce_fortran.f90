! SPDX-License-Identifier: BSD-3-Clause
! MPI on device memory from Fortran: the driver's calls by bind(C), the array by c_f_pointer.
! With CUDA Fortran (`device` arrays) or OpenACC (`host_data use_device`) only the MPI call remains.
!
!     mpifort allreduce_fortran.f90 -o allreduce_fortran -lcuda
!     mpirun -n 4 xccl-run ./allreduce_fortran
module driver
    use, intrinsic :: iso_c_binding
    implicit none

    interface
        integer(c_int) function cuInit(flags) bind(c, name='cuInit')
            import
            integer(c_int), value :: flags
        end function
        integer(c_int) function cuDeviceGetCount(devices) bind(c, name='cuDeviceGetCount')
            import
            integer(c_int), intent(out) :: devices
        end function
        integer(c_int) function cuDeviceGet(device, number) bind(c, name='cuDeviceGet')
            import
            integer(c_int), intent(out) :: device
            integer(c_int), value :: number
        end function
        integer(c_int) function cuDevicePrimaryCtxRetain(context, device) &
            bind(c, name='cuDevicePrimaryCtxRetain')
            import
            type(c_ptr), intent(out) :: context
            integer(c_int), value :: device
        end function
        integer(c_int) function cuCtxSetCurrent(context) bind(c, name='cuCtxSetCurrent')
            import
            type(c_ptr), value :: context
        end function
        integer(c_int) function cuMemAlloc(pointer, bytes) bind(c, name='cuMemAlloc_v2')
            import
            type(c_ptr), intent(out) :: pointer
            integer(c_size_t), value :: bytes
        end function
        integer(c_int) function cuMemcpyHtoD(to, from, bytes) bind(c, name='cuMemcpyHtoD_v2')
            import
            type(c_ptr), value :: to, from
            integer(c_size_t), value :: bytes
        end function
        integer(c_int) function cuMemcpyDtoH(to, from, bytes) bind(c, name='cuMemcpyDtoH_v2')
            import
            type(c_ptr), value :: to, from
            integer(c_size_t), value :: bytes
        end function
    end interface

contains

    subroutine must(result, what)
        integer(c_int), intent(in) :: result
        character(len=*), intent(in) :: what

        if (result == 0) return
        print '(2a, i0)', what, ' failed with CUDA error ', result
        error stop
    end subroutine
end module

program allreduce
    use driver
    use mpi
    implicit none

    integer, parameter :: n = 100000
    real(c_double), target :: host(n)
    real(c_double), pointer, contiguous :: data(:)
    type(c_ptr) :: pointer, context
    integer(c_int) :: device, devices
    integer(c_size_t) :: bytes
    integer :: rank, nranks, local, node, error

    call MPI_Init(error)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
    call MPI_Comm_size(MPI_COMM_WORLD, nranks, error)
    call MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, node, error)
    call MPI_Comm_rank(node, local, error)
    call MPI_Comm_free(node, error)

    call must(cuInit(0), 'cuInit')
    call must(cuDeviceGetCount(devices), 'cuDeviceGetCount')
    call must(cuDeviceGet(device, mod(local, devices)), 'cuDeviceGet')
    call must(cuDevicePrimaryCtxRetain(context, device), 'cuDevicePrimaryCtxRetain')
    call must(cuCtxSetCurrent(context), 'cuCtxSetCurrent')

    bytes = int(n, c_size_t) * c_sizeof(host(1))
    host = real(rank, c_double)
    call must(cuMemAlloc(pointer, bytes), 'cuMemAlloc')
    call must(cuMemcpyHtoD(pointer, c_loc(host), bytes), 'cuMemcpyHtoD')
    call c_f_pointer(pointer, data, [n]) ! its elements are the device's: for MPI alone

    call MPI_Allreduce(MPI_IN_PLACE, data, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, error)

    call must(cuMemcpyDtoH(c_loc(host), pointer, bytes), 'cuMemcpyDtoH')
    if (any(host /= nranks * (nranks - 1) / 2.0d0)) error stop 'WRONG'
    if (rank == 0) print '(i0, a)', nranks, ' ranks: right'
    call MPI_Finalize(error)
end program
