# SPDX-License-Identifier: BSD-3-Clause
"""The interposer's programs on several nodes, each with a network, processes and /dev/shm of its own."""

import re

import pytest
from test_hang import skip_if_mpi_crashes, skip_if_mpi_hangs
from test_random import seed
from test_streams import STAGED

pytestmark = pytest.mark.release_only
TIMEOUT = 60
LAYOUTS = ["1+1", "2+2", "3+1", "1+1+1"]


def go(across, layout, command, **options):
    result = across.run(layout, command, timeout=TIMEOUT, **options)
    result.good()
    return result


def test_random(across):
    go(across, "2+1", f"mpi_random cuda {seed()} 60")


def test_messages(across):
    """Those of one node are fetched, the others are staged: both within one communicator."""
    go(across, "2+1", f"mpi_messages cuda {seed()} 20", env={"XCCL_RENDEZVOUS": "240"})


def test_path(across):
    """The vendor's library between nodes; nobody speaks of a direct path that lacks something."""
    result = across.run("2+1", "mpi_loop cuda 5", timeout=TIMEOUT, env={"XCCL_LOG": "info"})
    assert result.status == 0 and len(result.lines("all rounds good")) == 3, result.out
    assert result.lines(r"on 3 ranks: ccl \("), result.out
    assert not result.lines("no direct path|warning:"), result.out


@pytest.mark.thorough
@pytest.mark.parametrize("layout", LAYOUTS)
def test_random_layouts(across, layout):
    go(across, layout, f"mpi_random cuda {seed()} 300")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("options", "env"),
    [
        ("--mixed", {"XCCL_MEMORY": "mixed"}),
        ("--threads 2", {}),
        ("", {"XCCL_COMM_CREATE": "auto"}),
        ("", {"XCCL_CHECK": "1"}),
    ],
)
def test_random_forms(across, options, env):
    go(across, "2+1", f"mpi_random cuda {seed()} 300 {options}", env=env)


@pytest.mark.thorough
@pytest.mark.parametrize("layout", LAYOUTS)
def test_messages_layouts(across, layout):
    go(across, layout, f"mpi_messages cuda {seed()} 100")


@pytest.mark.thorough
@pytest.mark.parametrize(
    "env",
    [
        {"XCCL_P2P": "staged"},
        {"XCCL_RENDEZVOUS": "240", "XCCL_P2P_PUSH": "on"},
        {"XCCL_RENDEZVOUS": "2000", "XCCL_DIRECT_LINGER": "1000"},
    ],
)
def test_messages_forms(across, env):
    go(across, "2+1", f"mpi_messages cuda {seed()} 100 --threads 2", env=env)


@pytest.mark.thorough
@pytest.mark.parametrize("section", ["counts", "large", "types", "comms"])
def test_collectives(across, section):
    # MPICH 4.0.2 reduces wrongly on reversed communicators where nodes have unlike numbers of ranks.
    layout = "2+2" if across.is_mpich and section == "comms" else "3+1"
    go(across, layout, f"mpi_colls cuda dd {section}")


@pytest.mark.thorough
@pytest.mark.parametrize(
    "case",
    [
        *("barrier", "crossing", "probes", "matched", "late", "reuse", "elements", "behind"),
        *("persistent", "started", "many", "short"),
    ],
)
def test_rendezvous(across, case):
    """Nothing is fetched here; but a receiver cannot know, and looks."""
    go(across, "1+1", f"mpi_rendezvous cuda {case}")


@pytest.mark.thorough
@pytest.mark.parametrize(
    "case",
    [
        *("free", "connect", "allreduce", "send_finalize", "finalize", "iallreduce", "async"),
        *("splits", "threads", "ahead", "disconnect", "freed_early", "freed_first", "far_ahead"),
    ],
)
def test_hang(across, case):
    skip_if_mpi_hangs(across, case)
    skip_if_mpi_crashes(across, case)
    go(across, "1+1", f"mpi_hang cuda {case}")


@pytest.mark.parametrize("mpi", ["openmpi", "mpich"], indirect=True)
@pytest.mark.parametrize("case", ["barrier", pytest.param("receive", marks=pytest.mark.thorough)])
def test_drift(across, case):
    """Between nodes no rank changes over where it might have to wait for the others."""
    go(across, "1+1", f"mpi_drift cuda {case}")


@pytest.mark.thorough
@pytest.mark.parametrize("mpi", ["openmpi", "mpich"], indirect=True)
def test_persistent_changes(across):
    """Where a start tells that all ranks have come to the one before, it may wait for them."""
    env = {"XCCL_COMM_CREATE": "auto", "XCCL_TUNE": "*:*:*:*:ccl"}
    go(across, "1+1", "mpi_persistent cuda changes", env=env)


@pytest.mark.thorough
@pytest.mark.parametrize("case", ["scan", "idup"])
def test_hang_of_three(across, case):
    go(across, "2+1", f"mpi_hang cuda {case}")


@pytest.mark.thorough
@pytest.mark.parametrize(
    "case", ["dup_device", "dup_pending", "self_device", "nodevice", "rooterr_device"]
)
def test_attr(across, case):
    go(across, "2+1", f"mpi_attr cuda {case}")


@pytest.mark.thorough
@pytest.mark.parametrize("case", ["collectives", "graphs"])
def test_streams(across, case):
    # MPICH takes MPI_IN_PLACE for an address in a large MPI_Reduce of three ranks.
    layout = "1+1" if across.is_mpich else "2+1"
    command = f"mpi_streams cuda {case}"
    go(across, layout, command, preload=False)
    go(across, layout, f"{command} mpi-staged", preload=False, env=STAGED)


def test_streams_without_memory(across):
    """The ranks of other nodes cannot be told, but do not wait either."""
    env = {**STAGED, "XCCL_STAGING": "1", "XCCL_LOG": "warn"}
    result = go(across, "1+1+1", "mpi_streams_missed cuda left", preload=False, env=env)
    assert result.lines(r"\[0\].*the other ranks cannot be told"), result.out
    assert not result.lines("rank 0 could not copy"), result.out


@pytest.mark.thorough
@pytest.mark.parametrize(
    "case",
    ["sends", "receives", "partial", "order", "errors", "freed", "packing", "scattered", "files"],
)
def test_transfers(across, case):
    go(across, "1+1", f"mpi_transfers cuda {case} {across.hosts.folder}")


@pytest.mark.thorough
@pytest.mark.parametrize("case", ["fenced", "locked", "requests", "refused", "refused-on-one"])
def test_windows(across, case):
    if across.family == "openmpi" and not case.startswith("refused"):
        pytest.skip("neither version of Open MPI makes windows over TCP")
    go(across, "1+1", f"mpi_windows cuda {case}")


@pytest.mark.thorough
@pytest.mark.parametrize("memory", ["host", "device"])
def test_errors(across, memory):
    go(across, "1+1", f"mpi_errors cuda {memory}")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("fault", "cause"),
    [("init@1", "ncclCommInitRank failed"), ("load@2", "libnccl")],
)
def test_one_node_fails(across, fault, cause):
    """What a rank of one node lacks, all do without; one warning names it."""
    env = {"XCCL_SIM_FAIL": fault}
    result = across.run("2+1", "mpi_loop cuda 5", timeout=TIMEOUT, env=env)
    assert result.status == 0 and len(result.lines("all rounds good")) == 3, result.out
    (warning,) = result.lines("warning:")
    assert re.search(cause, warning), warning


@pytest.mark.thorough
def test_staged_copy_fails_on_one_node(across_openmpi):
    """Ranks of other nodes cannot be told: the error says so."""
    env = {"XCCL_TUNE": "*:*:*:*:mpi", "XCCL_SIM_FAIL": "copy@1=1"}
    result = across_openmpi.run("1+1", "mpi_missed cuda blocking", env=env, timeout=TIMEOUT)
    assert not result.timed_out and result.lines("other ranks cannot be told"), result.out


@pytest.mark.thorough
def test_rank_of_another_node_dies(across):
    env = {"XCCL_SIM_FAIL": "kill:allreduce@1=3", "XCCL_TIMEOUT": "10"}
    result = across.run("1+1", "mpi_loop cuda 100000 fatal", env=env, timeout=TIMEOUT)
    assert not result.timed_out and result.status != 0, result.out
