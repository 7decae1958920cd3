# SPDX-License-Identifier: BSD-3-Clause
"""Blocks that are too long for the workspaces of the direct path, in rounds: calls that do not block,
memory that cannot be mapped, blocks of different sizes. Right, and only until the vendor's library
can have them."""

import re

import pytest
from mpi_harness import DIRECT
from test_direct import ONE_QUEUE, SLOW
from test_random import seed

ALONE = {**DIRECT, "XCCL_CCL": "none", "XCCL_LOG": "trace"}
ROUNDS = r"trace: \d+ bytes in (\d+) rounds of \d+"


def go(mpi, ranks, calls, options="", devices=4, **env):
    command = f"mpi_random cuda {seed()} {calls} --large {options}"
    print(command)
    result = mpi.run(ranks, command, sim=f"cuda:{devices}", env=env, timeout=100)
    result.good()
    return [int(n) for n in re.findall(ROUNDS, result.out)]


@pytest.mark.each_value
@pytest.mark.parametrize(
    "ranks",
    [
        2,
        pytest.param(3, marks=pytest.mark.release_only),
        pytest.param(4, marks=[pytest.mark.release_only, pytest.mark.thorough]),
    ],
)
def test_random(family, ranks):
    """Every collective, form and place of buffers, with megabytes; by AddressSanitizer for minutes."""
    assert max(go(family, ranks, 25 if family.build.sanitized else 40, **ALONE)) > 2


@pytest.mark.release_only
@pytest.mark.each_value
@pytest.mark.parametrize("env", [ONE_QUEUE, {"XCCL_SIM_NUMBERS": "20"}], ids=["queue", "numbers"])
def test_conditions(openmpi, env):
    """One hardware queue; and numbers of operations that end amid the rounds of one."""
    assert go(openmpi, 2, 60, **ALONE, **env)


@pytest.mark.release_only
def test_threads(openmpi):
    """Communicators of several threads take turns."""
    assert go(openmpi, 2, 60, "--threads 2", **ALONE)


@pytest.mark.release_only
def test_shared(openmpi, tmp_path):
    """Ranks that share a device, with little room for each."""
    assert go(openmpi, 3, 60, devices=1, **ALONE, **SLOW, XCCL_SIM_MPS=str(tmp_path))


FIRST_CCL = "*:256k-inf:*:*:ccl#*:*:*:2-8:direct"


@pytest.mark.each_value
@pytest.mark.release_only
@pytest.mark.parametrize("tables", [DIRECT["XCCL_TUNE"], FIRST_CCL], ids=["direct", "ccl"])
@pytest.mark.parametrize(("create", "rounds"), [("auto", True), ("first", False)])
def test_vendor(openmpi, create, rounds, tables):
    """The vendor's library carries what it can, once it can; until then kernels of ours do."""
    env = {**DIRECT, "XCCL_LOG": "trace", "XCCL_COMM_CREATE": create, "XCCL_TUNE": tables}
    assert bool(go(openmpi, 2, 60, "--only Allgather", **env)) == rounds
