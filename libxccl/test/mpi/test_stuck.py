# SPDX-License-Identifier: BSD-3-Clause
"""Ranks that wait for messages that never come: what their files, and xccl-doctor, say of it."""

import json
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest
from mpi_harness import pick

SINCE = r"since \d\d:\d\d:\d\d \(\d\.\d s\)"
SAID = {
    "recv": [
        rf"\[hang-message\] rank 0 waits in MPI_Recv for a message from rank 1, tag 7, {SINCE}; "
        rf"rank 1 is in MPI_Barrier {SINCE}"
    ],
    "mixed": [
        r"\[hang-cycle\] ranks wait for each other: rank 1 waits in collective 1 "
        r"\(MPI_Allreduce\) of communicator world for rank 0, which waits in MPI_Recv "
        r"\(a message from rank 1, tag 5\) for rank 1",
        r"\[hang-waiting\] .* and it is in MPI_Recv \(a message from rank 1, tag 5\)",
    ],
    "waits": [
        r"waits in MPI_Waitall of 4 requests \(a message from rank 1, tag 7; a message from "
        r"any rank, tag 8; a message from rank 1, any tag\)",
        r"waits in MPI_Probe \(a message from rank 0, tag 9\)",
    ],
    "send": [
        r"rank 1 waits in MPI_Recv for a message from rank 0, tag 6, .*: the tags differ",
        r"rank 0 waits in MPI_Ssend for a message to rank 1, tag 5, .*: the tags differ",
    ],
    "edges": [
        rf"waits in MPI_Neighbor_alltoall for a message {way} rank 1, tag {tag}, {SINCE}; "
        rf"rank 1 is in MPI_Barrier {SINCE}"
        for way in ("from", "to")
        for tag in (0, 1)
    ],
    "late": [r"\[hang-message\] rank 0 waits in MPI_Waitall for a message from rank 1, tag 2, "],
}


def go(family, case, folder, env):
    """(files of the ranks, what xccl-doctor says of them)."""
    command = f"mpi_stuck cuda {case} {folder}"
    result = family.run(2, command, sim="cuda:2", env=env, timeout=60)
    assert not result.timed_out, result.out
    files = [json.loads(path.read_text()) for path in sorted(folder.glob("xccl-ops.*.json"))]
    assert sorted(one["rank"] for one in files) == [0, 1], result.out
    doctor = family.build.stage / "bin/xccl-doctor"
    found = subprocess.run([doctor, "--hang", folder], capture_output=True, text=True, check=False)
    return sorted(files, key=lambda one: one["rank"]), found


@pytest.fixture(scope="module")
def stuck(mpis, tmp_path_factory):
    """What xccl-doctor says of each case; they wait most of the time, so all at once."""

    def one(case):
        folder = tmp_path_factory.getbasetemp() / f"stuck-{case}"
        folder.mkdir()
        return go(pick(mpis, "openmpi"), case, folder, {"XCCL_DUMP_DIR": str(folder)})[1]

    with ThreadPoolExecutor() as threads:
        return dict(zip(SAID, threads.map(one, SAID), strict=True))


@pytest.mark.release_only
@pytest.mark.parametrize("case", SAID)
def test_stuck(stuck, case):
    """With XCCL_DUMP_DIR every call is followed, those on host memory too."""
    found = stuck[case]
    assert found.returncode == 1, found.stdout + found.stderr
    text = " ".join(found.stdout.split())
    for said in SAID[case]:
        assert re.search(said, text), found.stdout
    assert case == "edges" or "tag 1," not in text, found.stdout  # that message has come


@pytest.mark.parametrize("case", ["late", "recv"])
def test_stuck_without_a_folder(mpich, tmp_path, case):
    """Then the calls on device memory are: where nothing is asked for, host memory pays nothing."""
    files, found = go(mpich, case, tmp_path, {})
    ((call,), others) = (one["calls"] for one in files)
    assert call["call"] == {"late": "MPI_Waitall", "recv": "MPI_Recv"}[case], files
    (message,) = call["messages"]
    assert (message["rank"], message["tag"]) == (1, {"late": 2, "recv": 7}[case]), files
    assert not others, files
    assert "rank 1 is in no call of MPI that xccl followed" in found.stdout, found.stdout


CALL = r"allreduce of 16384 bytes \([a-z-]+\), number \d+ of its communicator of 2 ranks, since \d\d:\d\d:\d\d; "
ABSENT = "rank 1 has not come to it; "
LONG = {
    "wait": f"MPI_Wait: {CALL}{ABSENT}XCCL",
    "all": f"MPI_Waitall of 3 requests: {CALL}{ABSENT}{CALL}{ABSENT}a message from rank 1 of "
    "MPI_COMM_WORLD, tag 7; XCCL",
    "any": f"MPI_Waitany of 2 requests: {CALL}{ABSENT}{CALL}{ABSENT}XCCL",
    "some": f"MPI_Waitsome of 2 requests: {CALL}{ABSENT}{CALL}{ABSENT}XCCL",
    "first": f"MPI_Wait: {CALL}a rank that runs without xccl never comes to it; nor does one that "
    "passes host memory: that needs XCCL_MEMORY=mixed; XCCL",
    "blocking": f"{CALL}{ABSENT}XCCL",
}


@pytest.mark.parametrize("case", LONG)
def test_warning_names_collectives(family, case):
    """Which they are, since when, and the ranks that have not come: by a clock that goes faster."""
    result = family.run(2, f"mpi_warned cuda {case}", sim="cuda:2", timeout=60)
    result.good()
    assert result.lines(rf"xccl.0. warning: waiting for \d+ s: .*{LONG[case]}"), result.out


def test_edges_without_a_folder(mpich, tmp_path):
    """A neighbourhood collective on device memory is known by its own name, and its messages."""
    ((call,), others) = (one["calls"] for one in go(mpich, "edges", tmp_path, {})[0])
    assert call["call"] == "MPI_Neighbor_alltoall" and not others, call
    assert {(message["rank"], message["tag"]) for message in call["messages"]} == {(1, 0), (1, 1)}


def test_asks(family, tmp_path):
    """What a rank was to agree on with others that never come."""
    family.run_heard(
        lambda result: result.lines("another call than neighbor_alltoall, number 1 of its"),
        *(2, f"mpi_stuck cuda asks {tmp_path}"),
        sim="cuda:2",
        env={"XCCL_TIMEOUT": "1"},
        timeout=60,
    )
