# SPDX-License-Identifier: BSD-3-Clause
"""MPICH 4.3, by the ABI that it shares with 4.0: what it does otherwise, and a little of everything."""

import pytest
from mpi_harness import CUDA_KINDS, pick

pytestmark = pytest.mark.release_only
SEED = 20261123


@pytest.fixture
def newer(mpis):
    return pick(mpis, "mpich43")


def run(mpi, ranks, command, **env):
    mpi.run(ranks, command, env=env, timeout=60).good()


def test_session_again(newer):
    """MPI ends with its last session, and begins anew. MPICH 4.0 by itself crashes there."""
    run(newer, 3, "mpi_session cuda again")


@pytest.mark.parametrize("comms", ["first", "auto"])
def test_session_by_pmpi(newer, comms):
    """As a tool in front of xccl opens it, or MPICH's functions for mpi_f08: it is counted, too."""
    run(newer, 3, "mpi_session cuda again pmpi", XCCL_COMM_CREATE=comms)


def test_session_within_a_session(newer):
    """An MPI library may do one function by another, which then comes to us: it counts once."""
    build = newer.build
    if newer.family != "mpich":
        pytest.skip("the stand-in has MPICH's own ABI")
    libraries = [build.interposer, build.programs / "libmpich_nested.so", build.mpich_idle]
    words = ["/usr/bin/env", f"LD_PRELOAD={build.preload(*libraries)}"]
    words += [newer.program("mpi_session"), "cuda", "again", "plain"]
    newer.run(3, words, preload=False, timeout=60).good()


def test_session_with_streams(newer):
    """A communicator with a stream ends with MPI: the next one with its handle has none."""
    run(newer, 2, "mpi_session cuda streams")


@pytest.mark.parametrize("case", ["kinds", "started"])
def test_persistent(newer, case):
    """Whoever looks at a persistent request has completed it; mpich_42.c plays that on MPICH 4.0."""
    run(newer, 3, f"mpi_legal cuda {case}")


def test_too_long_for_a_persistent_receive(newer):
    """The look that completed it is the one that has the error: it is said all the same."""
    run(newer, 2, "mpi_corners cuda truncated_again")


@pytest.mark.parametrize(
    "command",
    ["mpi_streams cuda streams", "mpi_streams_messages cuda order", "mpi_hang cuda group"],
)
def test_streams(newer, command):
    """MPICH has streams of its own, whose MPIX_Info_set_hex() compresses bytes that are zero."""
    run(newer, 2, command)


@pytest.mark.parametrize(
    "command",
    [
        f"mpi_random cuda {SEED} 100",
        "mpi_rendezvous cuda sizes",
        "mpi_transfers cuda sends",
        "mpi_requests cuda mixture",
        "mpi_requests cuda ended",
        "mpi_statuses cuda failed",
        "mpi_statuses cuda complete",
        "mpi_handlers cuda looks",
        "mpi_hang cuda far_ahead",
        "mpi_world_errors cuda",
    ],
)
def test_programs(newer, command):
    run(newer, 3 if "mixture" in command else 2, command)


@pytest.mark.parametrize("case", ["host", "device"])
def test_communicators_of_threads(newer, case):
    """MPICH ends the job of whoever asks the group, which has its processes alone, for such a rank."""
    run(newer, 2, f"mpi_threadcomm cuda {case}")


@pytest.mark.parametrize(("query", "ours"), [("auto", CUDA_KINDS), ("mpi", "")])
def test_kinds_of_memory(newer, query, ours):
    """MPI 4.1's answer to whether it takes device memory; both of these know no kind but their own."""
    result = newer.run(1, "mpi_query", sim="cuda:1", env={"XCCL_GPU_QUERY": query}, timeout=60)
    for what in ("kinds", "kinds of a window", "kinds of a file"):
        assert result.lines(f"^{what}: mpi,system{ours}$"), result.out
