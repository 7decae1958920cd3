# SPDX-License-Identifier: BSD-3-Clause
"""An mpi4py program with arrays in device memory, as CuPy's: __cuda_array_interface__ only.

Run by test_mpi4py.py on some ranks; ends with the number of checks, or with an assertion.
"""

import array
import ctypes

from mpi4py import MPI

CUDA = ctypes.CDLL("libcuda.so.1")
comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
checks = []
TYPES = {"f": "<f4", "d": "<f8", "i": "<i4", "q": "<i8", "h": "<i2"}  # array's and NumPy's names


def cuda(name, *arguments):
    status = getattr(CUDA, name)(*arguments)
    assert status == 0, f"{name} failed with status {status}"


def start():
    device, context, count = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_int()
    cuda("cuInit", 0)
    cuda("cuDeviceGetCount", ctypes.byref(count))
    cuda("cuDeviceGet", ctypes.byref(device), rank % count.value)
    cuda("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    cuda("cuCtxSetCurrent", context)


class DeviceArray:
    """A one-dimensional array of one of array's types in device memory."""

    def __init__(self, code, values):
        host = array.array(code, values)
        self.code, self.count = code, len(host)
        self.bytes = max(1, host.itemsize * len(host))
        pointer = ctypes.c_uint64()
        cuda("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(self.bytes))
        self.pointer = pointer.value
        address, count = host.buffer_info()
        cuda(
            "cuMemcpyHtoD_v2",
            ctypes.c_uint64(self.pointer),
            ctypes.c_void_p(address),
            ctypes.c_size_t(count * host.itemsize),
        )

    @property
    def __cuda_array_interface__(self):
        return {
            "version": 3,
            "shape": (self.count,),
            "typestr": TYPES[self.code],
            "data": (self.pointer, False),
            "strides": None,
        }

    def values(self):
        host = array.array(self.code, [0] * self.count)
        cuda(
            "cuMemcpyDtoH_v2",
            ctypes.c_void_p(host.buffer_info()[0]),
            ctypes.c_uint64(self.pointer),
            ctypes.c_size_t(self.count * host.itemsize),
        )
        return list(host)


def check(got, expected, what):
    checks.append(what)
    assert got == list(expected), f"rank {rank}: {what}: {got[:8]} instead of {expected[:8]}"


def reductions(code):
    total = size * (size - 1) // 2
    mine = DeviceArray(code, [rank + i for i in range(100)])
    result = DeviceArray(code, [0] * 100)
    expected = [total + size * i for i in range(100)]
    comm.Allreduce(mine, result)
    check(result.values(), expected, f"Allreduce of {code}")
    comm.Allreduce(MPI.IN_PLACE, mine, op=MPI.MAX)
    check(mine.values(), [size - 1 + i for i in range(100)], f"Allreduce in place of {code}")
    mine = DeviceArray(code, [rank + i for i in range(100)])
    comm.Reduce(mine, result, root=size - 1)
    if rank == size - 1:
        check(result.values(), expected, f"Reduce of {code}")
    block = DeviceArray(code, [0] * 7)
    comm.Reduce_scatter_block(DeviceArray(code, [rank] * 7 * size), block)
    check(block.values(), [total] * 7, f"Reduce_scatter_block of {code}")


def moves(code):
    buffer = DeviceArray(code, [rank * 10 + i for i in range(50)])
    comm.Bcast(buffer, root=size - 1)
    check(buffer.values(), [(size - 1) * 10 + i for i in range(50)], f"Bcast of {code}")
    everyone = DeviceArray(code, [0] * 3 * size)
    comm.Allgather(DeviceArray(code, [rank] * 3), everyone)
    check(everyone.values(), [r for r in range(size) for _ in range(3)], f"Allgather of {code}")
    comm.Alltoall(DeviceArray(code, [rank] * 3 * size), everyone)
    check(everyone.values(), [r for r in range(size) for _ in range(3)], f"Alltoall of {code}")
    counts = [r + 1 for r in range(size)]
    parts = DeviceArray(code, [0] * sum(counts))
    comm.Allgatherv(DeviceArray(code, [rank] * (rank + 1)), [parts, counts])
    check(parts.values(), [r for r in range(size) for _ in range(r + 1)], f"Allgatherv of {code}")
    comm.Gather(DeviceArray(code, [rank] * 3), everyone if rank == 0 else None)
    if rank == 0:
        check(everyone.values(), [r for r in range(size) for _ in range(3)], f"Gather of {code}")
    part = DeviceArray(code, [0] * 3)
    comm.Scatter(everyone if rank == 0 else None, part)
    check(part.values(), [rank] * 3, f"Scatter of {code}")


start()
for type_code in TYPES:
    reductions(type_code)
    moves(type_code)
total_checks = comm.allreduce(len(checks))
if rank == 0:
    print(f"{total_checks} checks, 0 failures")
