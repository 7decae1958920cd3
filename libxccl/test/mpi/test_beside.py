# SPDX-License-Identifier: BSD-3-Clause
"""Large non-blocking collectives: on the ranks' own buffers where these can be mapped, and right
where they cannot, however many are under way."""

import re

import pytest
from mpi_harness import CCL, DIRECT, level
from test_direct import ONE_QUEUE

ENV = {**DIRECT, "XCCL_LOG": "trace", "XCCL_COMM_CREATE": "first"}
ALONE = {**ENV, "XCCL_CCL": "none"}
MAPPED = r"trace: \d+ bytes on the ranks' own buffers"
ROUNDS = r"trace: \d+ bytes in \d+ rounds"


def go(mpi, ranks, case, devices=4, **env):
    env = {**level(mpi, case), **env}
    result = mpi.run(ranks, f"mpi_beside cuda {case}", sim=f"cuda:{devices}", env=env, timeout=60)
    result.good()
    return len(re.findall(MAPPED, result.out)), len(re.findall(ROUNDS, result.out))


@pytest.mark.each_value
@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("case", ["many", "orders", "freed", "left", "forms"])
def test_mapped(family, case, ranks):
    mapped, rounds = go(family, ranks, case, **ALONE)
    assert mapped > 4 * ranks
    assert rounds == 0 or case == "orders"  # blocking calls amid those of another communicator


@pytest.mark.each_value
@pytest.mark.parametrize("ccl", ["none", "auto"])
def test_unusable(family, ccl):
    """All ranks do the same if one rank's memory cannot be used: the vendor's library, or rounds."""
    mapped, rounds = go(family, 2, "unusable", **{**ENV, "XCCL_CCL": ccl})
    assert mapped == 2 * 4
    assert rounds == (2 * 8 if ccl == "none" else 0)


def test_between(family):
    """Small ones before and after those that the vendor's library carries in the end."""
    assert go(family, 3, "between", **ENV) == (0, 0)


def test_at_once(family):
    """Enqueued in the call, they cannot wait for others' buffers."""
    mapped, rounds = go(family, 2, "many", XCCL_LAUNCH="now", **ALONE)
    assert mapped == 0 and rounds > 0


@pytest.mark.release_only
def test_one_queue(openmpi):
    assert go(openmpi, 2, "orders", **ALONE, **ONE_QUEUE)[0] > 0


@pytest.mark.release_only
def test_shared(openmpi, tmp_path):
    """Ranks that share a device: one of their kernels at a time."""
    assert go(openmpi, 2, "many", devices=1, **ALONE, XCCL_SIM_MPS=str(tmp_path))[0] > 0


@pytest.mark.each_value
@pytest.mark.parametrize("paths", [CCL, pytest.param(DIRECT, marks=pytest.mark.release_only)])
def test_brief(family, paths):
    """The vendor's library crashes if the process ends while it makes a communicator."""
    env = {**paths, "XCCL_COMM_CREATE": "first", "XCCL_SIM_CONNECT_MS": "1500"}
    family.run(2, "mpi_turns cuda 5 2", sim="cuda:2", env=env, timeout=60).good()


@pytest.mark.each_value
@pytest.mark.parametrize("ccl", ["none", "auto"])
@pytest.mark.parametrize(
    ("ranks", "seed"), [(2, 7), (3, 2), pytest.param(4, 11, marks=pytest.mark.release_only)]
)
def test_drawn_orders(family, ranks, seed, ccl):
    """Each rank begins and ends those of several communicators in an order of its own."""
    env = {**ENV, "XCCL_CCL": ccl, "XCCL_LOG": "info"}
    command = f"mpi_turns cuda {seed} 3"
    family.run(ranks, command, sim="cuda:4", env=env, timeout=90).good()
