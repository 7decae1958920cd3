# SPDX-License-Identifier: BSD-3-Clause
"""An mpi4py program with CuPy arrays, as a user writes one; run it under xccl-run.

mpirun -n 4 xccl-run python3 cupy_allreduce.py [--expect ccl] [--json FILE]

Every result is compared with NumPy's. With --expect the path that the interposer took must be the
one named. Rank 0 prints a line a collective; the exit status is 1 if anything was wrong.
"""

import argparse
import ctypes
import json
import sys
import time

import cupy as cp
import numpy as np
from mpi4py import MPI

COMM = MPI.COMM_WORLD
RANK, SIZE = COMM.Get_rank(), COMM.Get_size()


def path_taken():
    """Path of the last collective, as libxccl-mpi says; None without it."""
    try:
        ask = ctypes.CDLL(None).xccl_mpi_last_path
    except AttributeError:
        return None
    ask.restype = ctypes.c_char_p
    return ask().decode()


def inputs(count, seed):
    """The host arrays of all ranks: each rank knows what every other has."""
    return [np.random.default_rng([seed, r]).random(count, dtype=np.float32) for r in range(SIZE)]


def allreduce(host, mine):
    out = cp.full(mine.size, -1, dtype=np.float32)
    COMM.Allreduce(mine, out, op=MPI.SUM)
    return out, np.sum(host, axis=0, dtype=np.float64)


def allreduce_in_place(host, mine):
    COMM.Allreduce(MPI.IN_PLACE, mine, op=MPI.MAX)
    return mine, np.max(host, axis=0)


def bcast(host, mine):
    COMM.Bcast(mine, root=SIZE - 1)
    return mine, host[SIZE - 1]


def allgather(host, mine):
    out = cp.full(SIZE * mine.size, -1, dtype=np.float32)
    COMM.Allgather(mine, out)
    return out, np.concatenate(host)


def alltoall(host, mine):
    out = cp.full(mine.size, -1, dtype=np.float32)
    COMM.Alltoall(mine, out)
    part = mine.size // SIZE
    return out, np.concatenate([h[RANK * part : (RANK + 1) * part] for h in host])


def reduce_scatter_block(host, mine):
    part = mine.size // SIZE
    out = cp.full(part, -1, dtype=np.float32)
    COMM.Reduce_scatter_block(mine, out, op=MPI.SUM)
    total = np.sum(host, axis=0, dtype=np.float64)
    return out, total[RANK * part : (RANK + 1) * part]


CASES = [allreduce, allreduce_in_place, bcast, allgather, alltoall, reduce_scatter_block]


def run(case, count, seed):
    """Seconds of one call, the path it took, and whether the result is right on every rank."""
    host = inputs(count, seed)
    mine = cp.asarray(host[RANK])
    cp.cuda.get_current_stream().synchronize()
    COMM.Barrier()
    start = time.perf_counter()
    out, expected = case(host, mine)
    seconds = time.perf_counter() - start
    path = path_taken()
    right = bool(np.allclose(cp.asnumpy(out), expected, rtol=1e-5, atol=1e-5))
    return seconds, path, COMM.allreduce(right, op=MPI.LAND)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--expect", help="path that every call must take")
    parser.add_argument("--json", help="file for the results")
    options = parser.parse_args()
    local = COMM.Split_type(MPI.COMM_TYPE_SHARED)
    cp.cuda.Device(local.Get_rank() % cp.cuda.runtime.getDeviceCount()).use()
    results, good = [], True
    for case in CASES:
        for count in (SIZE, 1 << 10, 1 << 20):
            run(case, count, 1)  # the first call of a kind makes communicators
            seconds, path, right = run(case, count, 2)
            as_expected = COMM.allreduce(options.expect in (None, path), op=MPI.LAND)
            good = good and right and as_expected
            results.append(
                {
                    "coll": case.__name__,
                    "bytes": 4 * count,
                    "us": round(seconds * 1e6, 1),
                    "path": path,
                    "right": right,
                }
            )
            if RANK == 0:
                verdict = "right" if right else "WRONG"
                verdict += "" if as_expected else f", expected path {options.expect}"
                print(f"{case.__name__:22} {4 * count:9} B {path or '-':11} {verdict}", flush=True)
    if RANK == 0 and options.json:
        name = cp.cuda.runtime.getDeviceProperties(0)["name"].decode()
        described = {
            "schema": "xccl-cupy-1",
            "ranks": SIZE,
            "device": name,
            "mpi": MPI.Get_library_version().split("\n")[0].strip("\0 "),
            "cupy": cp.__version__,
            "passed": good,
            "results": results,
        }
        with open(options.json, "w") as out:
            json.dump(described, out, indent=1)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
