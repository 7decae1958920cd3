# SPDX-License-Identifier: BSD-3-Clause
"""MPI 5's standard ABI: what it has otherwise, and a little of everything.

The library is MPICH 5.0's, of which test_mpich43.py and the tests of MPICH say more.
"""

import sys
from pathlib import Path

import pytest
from mpi_harness import CUDA_KINDS, PATHS, pick

pytestmark = pytest.mark.release_only
SEED = 20261123
# The plugin's own MPI library is in no scope but its own, nor is the one that was looked into before.
PLUGIN = """
import ctypes, sys
first, plugin, *words = sys.argv[1:]
ctypes.CDLL(first, ctypes.RTLD_LOCAL) if first != "none" else None
words = [b"mpi_loop", *map(str.encode, words)]
sys.exit(ctypes.CDLL(plugin, ctypes.RTLD_LOCAL).main(len(words), (ctypes.c_char_p * 4)(*words)))
"""


@pytest.fixture
def standard(mpis):
    return pick(mpis, "mpiabi")


def run(mpi, ranks, command, **env):
    return mpi.run(ranks, command, env=env, timeout=60).good()


def test_host(standard):
    result = standard.run(2, "mpi_host", env={"XCCL_LOG": "info"}, timeout=60)
    assert len(result.lines("sum right, 0 vendor files mapped")) == 2, result.out
    assert result.lines(r"^xccl\[0\] info: xccl .* is active: .*MPI"), result.out


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("path", PATHS)
def test_abi(standard, ranks, path):
    """Handles, statuses, error classes and MPI_Abi_get_version."""
    run(standard, ranks, f"mpi_abi cuda {path if ranks > 1 else ''}", **PATHS[path])


@pytest.mark.parametrize("first", ["none", "libmpi.so.12"])
def test_private_library(standard, first):
    """As mpi4py loads it; also where a library with MPICH's ABI came before, which serves nobody."""
    build, folder = standard.build, Path(standard.mpiexec).parents[1] / "lib"
    build.runs_here()
    if first != "none" and not (folder / first).exists():
        pytest.skip(f"no {folder / first}")
    first = first if first == "none" else folder / first
    plugin = build.programs / "libmpi_plugin-mpiabi.so"
    words = [sys.executable, "-c", PLUGIN, first, plugin, "cuda", "3", "return"]
    result = standard.run(2, words, env={"XCCL_LOG": "info"}, timeout=60)
    assert result.status == 0, result.out
    assert len(result.lines("all rounds good")) == 2, result.out
    assert result.lines("device memory is in use"), result.out


def test_types_that_mpi_lacks(standard):
    """Optional types have their handles in any case; to look for them ends no program."""
    build = standard.build
    libraries = [build.interposer, build.programs / "libmpiabi_types.so", build.mpich_idle]
    words = ["/usr/bin/env", f"LD_PRELOAD={build.preload(*libraries)}"]
    words += [standard.program("mpi_loop"), "cuda", "3", "return"]
    result = standard.run(2, words, preload=False, env={"XCCL_LOG": "info"}, timeout=60)
    assert result.status == 0, result.out
    assert len(result.lines("all rounds good")) == 2, result.out
    assert result.lines("device memory is in use"), result.out


@pytest.mark.parametrize("path", PATHS)
def test_collectives(standard, path):
    run(standard, 3, "mpi_colls cuda dd types counts comms", **PATHS[path])


def test_linked(standard):
    standard.run(2, "mpi_colls_linked cuda dd comms", preload=False, timeout=60).good()


@pytest.mark.parametrize("case", ["kinds", "started"])
def test_persistent(standard, case):
    run(standard, 3, f"mpi_legal cuda {case}")


def test_persistent_on_a_part(standard):
    """MPICH 5.0 hangs in MPI_Comm_create on a grid that leaves ranks out: nobody is to call it."""
    run(standard, 3, "mpi_persistent cuda grid")


@pytest.mark.parametrize("case", ["alone", "before", "after", "across"])
def test_session(standard, case):
    run(standard, 3, f"mpi_session cuda {case}")


@pytest.mark.parametrize(
    "command",
    [
        f"mpi_random cuda {SEED} 100",
        f"mpi_messages cuda {SEED} 60",
        "mpi_large cuda",
        "mpi_rendezvous cuda sizes",
        "mpi_transfers cuda sends",
        "mpi_handles cuda disconnected",
        "mpi_partitions cuda ring",
        "mpi_windows cuda created",
        "mpi_errors cuda device",
        "mpi_world_errors none",
        "mpi_world_errors cuda",
        "mpi_hang cuda far_ahead",
        "mpi_streams cuda streams",
        "mpi_streams_messages cuda order",
    ],
)
def test_programs(standard, command):
    run(standard, 2, command)


@pytest.mark.parametrize("program", ["mpi_flatten none {} 1000", "mpi_arithmetic none {}"])
def test_from_inside(standard, program):
    """Types taken apart, and what kernels make of the operations, against this MPI's."""
    command = program.format(SEED)
    standard.run(1, command, sim=None, preload=False, timeout=60).good()


@pytest.mark.parametrize(("query", "ours"), [("auto", CUDA_KINDS), ("mpi", "")])
def test_kinds_of_memory(standard, query, ours):
    """MPI 4.1's answer to whether it takes device memory; both of these know no kind but their own."""
    result = standard.run(1, "mpi_query", sim="cuda:1", env={"XCCL_GPU_QUERY": query}, timeout=60)
    for what in ("kinds", "kinds of a window", "kinds of a file"):
        assert result.lines(f"^{what}: mpi,system{ours}$"), result.out
