# SPDX-License-Identifier: BSD-3-Clause
"""An mpi4py program with arrays in device memory, as CuPy's: __cuda_array_interface__ only.

Run by test_mpi4py.py on some ranks; ends with the number of checks, or with an assertion.
"""

from mpi4py import MPI
from mpi4py_arrays import DeviceArray

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
checks = []
TYPES = "fdiqh"  # array's names


def check(got, expected, what):
    checks.append(what)
    assert got == list(expected), f"rank {rank}: {what}: {got[:8]} instead of {expected[:8]}"


def reductions(code):
    total = size * (size - 1) // 2
    mine = DeviceArray(code, [rank + i for i in range(100)])
    result = DeviceArray(code, [0] * 100)
    expected = [total + size * i for i in range(100)]
    comm.Allreduce(mine, result)
    check(result.tolist(), expected, f"Allreduce of {code}")
    comm.Allreduce(MPI.IN_PLACE, mine, op=MPI.MAX)
    check(mine.tolist(), [size - 1 + i for i in range(100)], f"Allreduce in place of {code}")
    mine = DeviceArray(code, [rank + i for i in range(100)])
    comm.Reduce(mine, result, root=size - 1)
    if rank == size - 1:
        check(result.tolist(), expected, f"Reduce of {code}")
    block = DeviceArray(code, [0] * 7)
    comm.Reduce_scatter_block(DeviceArray(code, [rank] * 7 * size), block)
    check(block.tolist(), [total] * 7, f"Reduce_scatter_block of {code}")


def moves(code):
    buffer = DeviceArray(code, [rank * 10 + i for i in range(50)])
    comm.Bcast(buffer, root=size - 1)
    check(buffer.tolist(), [(size - 1) * 10 + i for i in range(50)], f"Bcast of {code}")
    everyone = DeviceArray(code, [0] * 3 * size)
    comm.Allgather(DeviceArray(code, [rank] * 3), everyone)
    check(everyone.tolist(), [r for r in range(size) for _ in range(3)], f"Allgather of {code}")
    comm.Alltoall(DeviceArray(code, [rank] * 3 * size), everyone)
    check(everyone.tolist(), [r for r in range(size) for _ in range(3)], f"Alltoall of {code}")
    counts = [r + 1 for r in range(size)]
    parts = DeviceArray(code, [0] * sum(counts))
    comm.Allgatherv(DeviceArray(code, [rank] * (rank + 1)), [parts, counts])
    check(parts.tolist(), [r for r in range(size) for _ in range(r + 1)], f"Allgatherv of {code}")
    comm.Gather(DeviceArray(code, [rank] * 3), everyone if rank == 0 else None)
    if rank == 0:
        check(everyone.tolist(), [r for r in range(size) for _ in range(3)], f"Gather of {code}")
    part = DeviceArray(code, [0] * 3)
    comm.Scatter(everyone if rank == 0 else None, part)
    check(part.tolist(), [rank] * 3, f"Scatter of {code}")


def refused():
    """MPI cannot have its window on device memory; that is an error, and no crash later."""
    try:
        MPI.Win.Create(DeviceArray("i", [0] * 4), comm=comm)
    except MPI.Exception as error:
        check([error.Get_error_class() != MPI.SUCCESS], [True], "Win.Create")
    else:
        raise AssertionError("a window on device memory was not refused")


refused()
for type_code in TYPES:
    reductions(type_code)
    moves(type_code)
total_checks = comm.allreduce(len(checks))
if rank == 0:
    print(f"{total_checks} checks, 0 failures")
