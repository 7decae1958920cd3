# SPDX-License-Identifier: BSD-3-Clause
"""Write a file with HDF5 by all ranks, collectively and each alone, and read it back.

    write_hdf5.py FILE

Each rank reads what its neighbour wrote. Needs h5py that was built with MPI, and mpi4py.
"""

import sys

import h5py
import numpy as np
from mpi4py import MPI

ROWS, COLUMNS = 64, 1000


def numbers(rank):
    return np.random.default_rng(7).random((ROWS, COLUMNS)) + rank


def table(rank):
    return np.arange(50 * 333, dtype="i4").reshape(50, 333) + rank


def write(file, comm):
    rank, size = comm.rank, comm.size
    wide = file.create_dataset("wide", (ROWS, size * COLUMNS), dtype="f8")
    chunked = file.create_dataset("chunked", (size * 50, 333), dtype="i4", chunks=(10, 37))
    line = file.create_dataset("line", (size * 4000,), dtype="f4")
    with wide.collective:
        wide[:, rank * COLUMNS : (rank + 1) * COLUMNS] = numbers(rank)
    with chunked.collective:
        chunked[rank::size, :] = table(rank)
    line[rank * 4000 : (rank + 1) * 4000] = np.arange(4000, dtype="f4") * rank


def check(file, comm):
    other, size = (comm.rank + 1) % comm.size, comm.size
    with file["wide"].collective:
        wide = file["wide"][:, other * COLUMNS : (other + 1) * COLUMNS]
    with file["chunked"].collective:
        chunked = file["chunked"][other::size, :]
    line = file["line"][other * 4000 : (other + 1) * 4000]
    assert np.array_equal(wide, numbers(other))
    assert np.array_equal(chunked, table(other))
    assert np.array_equal(line, np.arange(4000, dtype="f4") * other)


def main():
    comm = MPI.COMM_WORLD
    with h5py.File(sys.argv[1], "w", driver="mpio", comm=comm) as file:
        write(file, comm)
    with h5py.File(sys.argv[1], "r", driver="mpio", comm=comm) as file:
        check(file, comm)
    right = comm.reduce(1, op=MPI.SUM, root=0)
    if comm.rank == 0:
        print("ranks that read what was written:", right)


if __name__ == "__main__":
    main()
