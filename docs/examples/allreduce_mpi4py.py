# SPDX-License-Identifier: BSD-3-Clause
"""MPI on device memory with mpi4py alone: no CuPy, and no GPU if the devices are simulated.

xccl-run --sim cuda:2 -- mpirun -n 2 python allreduce_mpi4py.py    # simulated devices
mpirun -n 4 xccl-run python allreduce_mpi4py.py                    # real ones
"""

import array
import ctypes
import os
import sys

from mpi4py import MPI

COUNT = 10000

cuda = ctypes.CDLL("libcuda.so.1")


def call(name, *arguments):
    """A function of the CUDA driver."""
    status = getattr(cuda, name)(*arguments)
    if status != 0:
        sys.exit(f"{name} failed with status {status}")


class DeviceArray:
    """Numbers in device memory; mpi4py asks for __cuda_array_interface__, as of a CuPy array."""

    def __init__(self, host):
        self.host, self.bytes = host, host.itemsize * len(host)
        self.pointer = ctypes.c_uint64()
        call("cuMemAlloc_v2", ctypes.byref(self.pointer), ctypes.c_size_t(self.bytes))
        address = ctypes.c_void_p(host.buffer_info()[0])
        call("cuMemcpyHtoD_v2", self.pointer, address, ctypes.c_size_t(self.bytes))

    @property
    def __cuda_array_interface__(self):
        kind = {"f": "<f4", "i": "<i4"}[self.host.typecode]
        data = (self.pointer.value, False)
        return {"version": 3, "shape": (len(self.host),), "typestr": kind, "data": data}

    def get(self):
        """The numbers, on the host."""
        address = ctypes.c_void_p(self.host.buffer_info()[0])
        call("cuMemcpyDtoH_v2", address, self.pointer, ctypes.c_size_t(self.bytes))
        return self.host.tolist()


comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
local = comm.Split_type(MPI.COMM_TYPE_SHARED).rank
device, count, context = ctypes.c_int(), ctypes.c_int(), ctypes.c_void_p()
call("cuInit", 0)
call("cuDeviceGetCount", ctypes.byref(count))
number = int(os.environ.get("XCCL_LOCAL_DEVICE", local % count.value))
call("cuDeviceGet", ctypes.byref(device), number)
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
call("cuCtxSetCurrent", context)

total = DeviceArray(array.array("f", [rank] * COUNT))
mine = DeviceArray(array.array("i", [rank] * COUNT * size))
theirs = DeviceArray(array.array("i", [-1] * COUNT * size))

comm.Allreduce(MPI.IN_PLACE, total)
comm.Alltoall(mine, theirs)

right = set(total.get()) == {size * (size - 1) / 2}
right &= theirs.get() == [block for block in range(size) for _ in range(COUNT)]
if rank == 0:
    print(f"{size} ranks: {'right' if right else 'WRONG'}")
sys.exit(not right)
