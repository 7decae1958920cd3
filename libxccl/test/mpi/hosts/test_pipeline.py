# SPDX-License-Identifier: BSD-3-Clause
"""Messages from device memory to ranks of other nodes, in pieces."""

import json
import re

import pytest
from hosts import HostsMpi
from test_random import seed

pytestmark = pytest.mark.release_only
TIMEOUT = 60
WORLD = "MPI_COMM_WORLD"
THREADS = {"XCCL_THREADS": "multiple"}
PIECES = {**THREADS, "XCCL_PIPELINE": "65536", "XCCL_PIPELINE_PIECE": "16384"}
SMALL = {**THREADS, "XCCL_PIPELINE": "4096", "XCCL_PIPELINE_PIECE": "4096"}
TINY = {
    **THREADS,
    "XCCL_RENDEZVOUS": "240",
    "XCCL_PIPELINE": "240",
    "XCCL_PIPELINE_PIECE": "300",
}
CASES = ["sizes", "answer", "barrier", "freed", "truncated"]
CASES.append(pytest.param("both_ways", marks=pytest.mark.tsan))


def go(across, layout, command, env):
    result = across.run(layout, command, timeout=TIMEOUT, env=env)
    result.good()
    return result


@pytest.mark.each_value
@pytest.mark.parametrize("case", CASES)
def test_pipeline(across, case):
    go(across, "1+1", f"mpi_pipeline cuda {case} pipelined", PIECES)


@pytest.mark.parametrize("number", [1, 4, 30])
def test_piece_that_is_not_copied(across, number):
    """Its receiver would take what lay there before for the message."""
    env = {**PIECES, "XCCL_SIM_FAIL": f"copy@0={number}"}
    go(across, "1+1", "mpi_pipeline cuda uncopied pipelined", env)


@pytest.mark.parametrize("piece", [16384, 70000])
def test_size_of_pieces(across_openmpi, piece):
    env = {**PIECES, "XCCL_PIPELINE_PIECE": str(piece), "XCCL_LOG": "trace"}
    result = go(across_openmpi, "1+1", "mpi_pipeline cuda sizes pipelined", env)
    said = rf"(\d+) bytes from device memory go to rank \d of {WORLD} in (\d+) pieces"
    seen = [(int(size), int(pieces)) for size, pieces in re.findall(said, result.out)]
    assert max(pieces for _, pieces in seen) > 1, result.out
    assert all(pieces == -(-size // piece) for size, pieces in seen), seen


def test_tags_come_again(across_openmpi):
    """Pieces so small that MPI has them before their receiver asks for them."""
    env = {**PIECES, "XCCL_PIPELINE_PIECE": "4000"}
    go(across_openmpi, "1+1", "mpi_pipeline cuda tags pipelined", env)


def test_bounded_memory(across_openmpi):
    """A message has 1 MiB on each side while it is under way, and 200 are open."""
    env = {**PIECES, "XCCL_PIPELINE_PIECE": "262144"}
    go(across_openmpi, "1+1", "mpi_pipeline cuda memory pipelined", env)


@pytest.mark.each_value
@pytest.mark.parametrize(
    "case",
    [
        *("barrier pipelined", "late pipelined", "persistent pipelined", "started pipelined"),
        *("crossing", "probes", "matched", "elements", "behind", "many", "window", "truncated"),
    ],
)
def test_as_on_a_node(across, case):
    """The programs of messages that are fetched."""
    go(across, "1+1", f"mpi_rendezvous cuda {case}", SMALL)


@pytest.mark.each_value
@pytest.mark.parametrize("options", ["", pytest.param("--threads 2", marks=pytest.mark.tsan)])
def test_messages(across, options):
    """Those of one node are fetched, the others come in pieces."""
    go(across, "2+1", f"mpi_messages cuda {seed()} 20 {options}", TINY)


@pytest.mark.parametrize("case", ["before", "across"])
def test_session(mpich, nodes, case):
    """Sessions beside a world whose ranks have agreed on pieces."""
    go(HostsMpi(mpich, nodes), "1+1+1", f"mpi_session cuda {case}", SMALL)


def test_rocm(across_openmpi):
    words = "mpi_pipeline rocm sizes pipelined"
    across_openmpi.run("1+1", words, sim="rocm:2", env=PIECES).good()


@pytest.mark.each_value
@pytest.mark.parametrize(
    "env",
    [
        {},
        {**PIECES, "XCCL_THREADS": "program"},
        {**PIECES, "XCCL_PIPELINE": "off"},
        {**PIECES, "XCCL_P2P": "staged"},
    ],
)
def test_staged(across, env):
    """Without MPI_THREAD_MULTIPLE, or where the user does not want them."""
    go(across, "1+1", "mpi_pipeline cuda sizes mpi-staged", env)


def test_all_take_them(across_openmpi):
    """The program asks for fewer threads; the variable asks for all."""
    result = across_openmpi.run(
        "1+1", "mpi_pipeline cuda sizes", env={**PIECES, "XCCL_LOG": "info"}
    )
    result.good()
    assert not result.lines("cannot take messages in pieces"), result.out


ON_SECOND = "case ${OMPI_COMM_WORLD_RANK-}${PMI_RANK-} in 1) %s ;; esac; exec %s"


def on_second(mpi, change, command):
    """The command, on rank 1 after a change of its environment."""
    name, *words = command.split()
    return ["/bin/sh", "-c", ON_SECOND % (change, " ".join([str(mpi.program(name)), *words]))]


def test_rank_that_does_not_take_them(across_openmpi):
    command = on_second(across_openmpi, "export XCCL_P2P=staged", f"mpi_messages cuda {seed()} 20")
    go(across_openmpi, "1+1+1", command, TINY)


def test_rank_without_xccl(across_openmpi):
    """By default nobody asks the others for anything."""
    command = on_second(across_openmpi, "unset LD_PRELOAD", "mpi_pipeline none answer")
    go(across_openmpi, "1+1", command, {"XCCL_PIPELINE": "240"})


def test_rank_without_xccl_is_missed(across_openmpi):
    """The variable says that all have it: an error that names the cause."""
    command = on_second(across_openmpi, "unset LD_PRELOAD", "mpi_pipeline none answer")
    text = "not all ranks of MPI_COMM_WORLD run with xccl and XCCL_THREADS=multiple"
    env = {**PIECES, "XCCL_TIMEOUT": "2"}
    across_openmpi.run_heard(lambda r: r.lines(text), "1+1", command, env=env, timeout=TIMEOUT)


def test_little_pinned_memory(across_openmpi):
    go(
        across_openmpi,
        "1+1",
        "mpi_pipeline cuda both_ways pipelined",
        {**PIECES, "XCCL_STAGING": "0"},
    )


def test_time_out(across_openmpi):
    """Nobody receives the message: an error, and not a wait without end."""
    env = {**PIECES, "XCCL_TIMEOUT": "2"}
    result = across_openmpi.run("1+1", "mpi_pipeline cuda timeout", timeout=TIMEOUT, env=env)
    assert not result.timed_out, result.out
    assert result.lines("the receiver of a message from device memory did not fetch"), result.out


def test_profile(across_openmpi):
    file = across_openmpi.hosts.folder / "profile.json"
    go(across_openmpi, "1+1", "mpi_pipeline cuda answer", {**PIECES, "XCCL_PROFILE": str(file)})
    rows = json.loads(file.read_text())["rows"]
    assert "pipelined" in {row["path"] for row in rows}, rows
