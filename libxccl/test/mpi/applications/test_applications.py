# SPDX-License-Identifier: BSD-3-Clause
"""Applications and libraries of Debian that know nothing of GPUs, with their heap on devices.

What they allocate is simulated device memory that the host may touch (device_heap.c). So each of
their messages, collectives and file accesses on the heap is one on device memory, in patterns that
nobody of this project wrote; what lies on the stack and in static arrays stays host memory. They
must print what they print without xccl.
"""

import json
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from mpi_harness import PATHS

HERE = Path(__file__).resolve().parent
PYTHON = "/usr/bin/python3"  # for which Debian's modules are
PETSC = sorted(Path("/usr/lib/petscdir").glob("*/*-real/lib/python3/dist-packages"))
HPCC_INPUT = Path("/usr/share/doc/hpcc/examples/_hpccinf.txt")
MUMPS = Path("/usr/lib/mumps")
SCALAPACK = sorted(Path("/usr/lib").glob("*/scalapack/openmpi-tests"))
LEAST_SQUARES = Path(*SCALAPACK[:1], "LS.dat")


@dataclass
class Application:
    """How to run one, and what of its output tells whether it computed well."""

    package: str
    command: list
    telling: str  # lines that must be the same with and without xccl
    calls: set  # that must have been made on device memory
    ranks: int = 4
    output: str = ""  # a file with more of it
    copies: dict = field(default_factory=dict)  # files that it wants in its folder
    modules: str = ""  # of Python
    input: Path = Path("/dev/null")


APPLICATIONS = {
    # A halo exchange in six directions. Its messages are from 2 to 50 KiB.
    "lammps": Application(
        "lammps",
        ["lmp", "-in", HERE / "melt.lammps"],
        r"^ +\d+ +[-\d.]+ +[-\d.]+ |^Total # of neighbors|^Neighbor list builds",
        {"MPI_Send", "MPI_Irecv"},
    ),
    # Linpack, a transposition, random access, an FFT, and its own messages of up to 2 MB.
    "hpcc": Application(
        "hpcc",
        ["hpcc"],
        r"tests completed and|Found .* errors|_Errors=|Node\(s\) with error|^Success=",
        {"MPI_Send", "MPI_Recv", "MPI_Irecv", "MPI_Sendrecv", "MPI_Alltoall"},
        output="hpccoutf.txt",
        copies={"hpccinf.txt": HPCC_INPUT},
    ),
    # A sparse solver that packs its messages, and receives with wildcards.
    "mumps": Application(
        "mumps-test",
        [MUMPS / "dsimpletest"],
        r"^ +SOLUTION|Solution is|^ +[-\d.E+]+( +[-\d.E+]+)*$",
        {"MPI_Recv", "MPI_Pack", "MPI_Unpack", "MPI_Isend", "MPI_Bcast"},
        ranks=3,
        input=MUMPS / "input_simpletest_real",
    ),
    # Least squares on grids of processes: many communicators, types with strides, packed messages.
    "scalapack": Application(
        "scalapack-mpi-test",
        [LEAST_SQUARES.with_name("xdls")],
        r"tests completed and|tests skipped",
        {"MPI_Allreduce", "MPI_Reduce", "MPI_Bcast", "MPI_Isend", "MPI_Recv", "MPI_Pack"},
        copies={"LS.dat": LEAST_SQUARES},
    ),
    # Krylov methods with collectives that overlap, algebraic multigrid, scatters.
    "petsc": Application(
        "python3-petsc4py",
        [PYTHON, HERE / "solve_petsc.py"],
        r"close|wrong|norms|on rank 0",
        {"MPI_Allreduce", "MPI_Isend", "MPI_Irecv", "MPI_Iallreduce", "MPI_Allgather"},
        modules="petsc4py",
    ),
    # Finite elements: neighbourhood collectives whose counts are given up too early, and probes.
    "dolfinx": Application(
        "python3-dolfinx-real",
        [PYTHON, HERE / "solve_dolfinx.py"],
        r"norm .* integral",
        {"MPI_Neighbor_alltoallv", "MPI_Ineighbor_allgatherv", "MPI_Allgatherv"},
        modules="dolfinx",
    ),
    # Quantum chemistry: a million blocks, many communicators, matrices in blocks, FFTs.
    "cp2k": Application(
        "cp2k",
        ["cp2k.popt", HERE / "water.cp2k"],
        r"ENERGY\||Total energy|^ +SUM OF ATOMIC FORCES",
        {"MPI_Alltoall", "MPI_Alltoallv", "MPI_Allreduce", "MPI_Bcast", "MPI_Allgather"},
    ),
    # Files: collective and independent, with holes.
    "hdf5": Application(
        "python3-h5py-mpi python3-mpi4py",
        [PYTHON, HERE / "write_hdf5.py", "written.h5"],
        r"ranks that read",
        {"MPI_File_write_at_all", "MPI_File_read_at"},
        modules="h5py mpi4py",
    ),
}


def python_path():
    return {"PYTHONPATH": ":".join(map(str, PETSC))}


def need(app, mpi):
    """Skip if it is not installed, or was built for another MPI, and say what to install."""
    program = shutil.which(str(app.command[0]))
    files = [*app.copies.values(), app.input]
    if program is None or not all(file.exists() for file in files):
        pytest.skip(f"not installed (apt install {app.package})")
    if app.modules:
        # Not imported: some of them initialise MPI.
        check = "import sys, importlib.util as u; sys.exit(None in map(u.find_spec, sys.argv[1:]))"
        command = [program, "-c", check, *app.modules.split()]
        if subprocess.run(command, env=python_path(), check=False).returncode != 0:
            pytest.skip(f"Python has no {app.modules} (apt install {app.package})")
    if mpi.build.sanitized:
        pytest.skip("its allocator would be replaced twice; the release build runs it")


def run(app, mpi, folder, heap, **options):
    """What it said, as far as it is telling."""
    folder.mkdir()
    for name, source in app.copies.items():
        shutil.copy(source, folder / name)
    preload = [f"LD_PRELOAD={mpi.build.preload(heap, mpi.build.interposer)}"] if heap else []
    program = [*preload, *map(str, app.command)]
    # Only rank 0 reads what mpirun is given; each of its ranks may as well have the file.
    shell = f'exec "$@" < {app.input}'
    command = ["/usr/bin/env", "-C", folder, "sh", "-c", shell, "sh", "env", *program]
    env = {**python_path(), "OMP_NUM_THREADS": "1", **options.pop("env", {})}
    result = mpi.run(app.ranks, command, env=env, timeout=300, **options)
    assert result.status == 0, result.out
    said = result.out + ((folder / app.output).read_text() if app.output else "")
    lines = [line for line in said.splitlines() if re.search(app.telling, line)]
    assert lines, f"it said nothing of what it is known by:\n{said}"
    return lines, result


@pytest.mark.thorough
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("name", APPLICATIONS)
def test_application(openmpi, tmp_path, name, path):
    """As without xccl; and its calls were on device memory."""
    app, file = APPLICATIONS[name], tmp_path / "profile.json"
    need(app, openmpi)
    heap = openmpi.build.programs / "libdevice_heap.so"
    expected, _ = run(app, openmpi, tmp_path / "plain", None, sim=None, preload=False)
    # Stack and heap meet in one call.
    env = {"XCCL_MEMORY": "mixed", "XCCL_PROFILE": str(file), **PATHS[path]}
    lines, result = run(app, openmpi, tmp_path / "device", heap, env=env)
    assert sorted(lines) == sorted(expected)
    assert len(result.lines(r"^device heap: \d+ blocks")) == app.ranks, result.out
    rows = json.loads(file.read_text())["rows"]
    assert {row["call"] for row in rows if row["memory"] == "cuda"} >= app.calls
