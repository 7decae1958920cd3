# SPDX-License-Identifier: BSD-3-Clause
"""MPI on CuPy arrays, with mpi4py: a sum over all ranks, and a transposition of blocks.

mpirun -n 4 xccl-run python allreduce_cupy.py
"""

import os
import sys

import cupy
from mpi4py import MPI

COUNT = 10000

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
local = comm.Split_type(MPI.COMM_TYPE_SHARED).rank
devices = cupy.cuda.runtime.getDeviceCount()
cupy.cuda.Device(int(os.environ.get("XCCL_LOCAL_DEVICE", local % devices))).use()

total = cupy.full(COUNT, rank, dtype="float32")
mine = cupy.full(COUNT * size, rank, dtype="int32")
theirs = cupy.full(COUNT * size, -1, dtype="int32")
cupy.cuda.get_current_stream().synchronize()  # CuPy's kernels must be done before MPI reads

comm.Allreduce(MPI.IN_PLACE, total)
comm.Alltoall(mine, theirs)

right = set(cupy.asnumpy(total).tolist()) == {size * (size - 1) / 2}
right &= cupy.asnumpy(theirs).tolist() == [block for block in range(size) for _ in range(COUNT)]
if rank == 0:
    print(f"{size} ranks: {'right' if right else 'WRONG'}")
sys.exit(not right)
