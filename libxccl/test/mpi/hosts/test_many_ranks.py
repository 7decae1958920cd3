# SPDX-License-Identifier: BSD-3-Clause
"""So many ranks that they say what they have by words of all together (comms/digest.h), on two nodes."""

import pytest

pytestmark = pytest.mark.release_only
LAYOUT = "33+33"
RANKS = 66
TOGETHER = "ranks say what they have by words of all together"
TIMEOUT = 240
# Each rank has a device of its own; short waits, as the ranks share the processors.
DEVICES = {"XCCL_SIM": "cuda:33", "XCCL_LOG": "trace"}


def alike(across):
    result = across.run(LAYOUT, "mpi_loop cuda 3", timeout=TIMEOUT, env=DEVICES)
    assert result.status == 0 and len(result.lines("all rounds good")) == RANKS, result.out
    assert result.lines(rf"on {RANKS} ranks: ccl \("), result.out
    assert not result.lines("no direct path|warning:"), result.out
    assert result.lines(f" {RANKS} {TOGETHER}"), result.out


def unlike(across):
    env = {**DEVICES, "XCCL_SIM_FAIL": "load@40"}
    result = across.run(LAYOUT, "mpi_loop cuda 3", timeout=TIMEOUT, env=env)
    assert result.status == 0 and len(result.lines("all rounds good")) == RANKS, result.out
    assert result.lines(
        rf"all {RANKS} ranks leave collectives on device memory to MPI: rank 40"
    ), result.out


def test_path(across_openmpi):
    """They are alike: so all know the setting, and the vendor's library carries the calls."""
    alike(across_openmpi)


def test_not_so_many(across_openmpi):
    """Up to 64 ranks each says all."""
    result = across_openmpi.run("32+32", "mpi_loop cuda 3", timeout=TIMEOUT, env=DEVICES)
    assert result.status == 0 and len(result.lines("all rounds good")) == 64, result.out
    assert not result.lines(TOGETHER), result.out


def test_unlike(across_mpich):
    """One of them has no library: each says all, and the reason names it."""
    unlike(across_mpich)


@pytest.mark.thorough
def test_every_mpi(across):
    alike(across)
    unlike(across)


@pytest.mark.thorough
def test_checked(across):
    """Before they say anything else, they compare their variables."""
    env = {**DEVICES, "XCCL_CHECK": "1"}
    result = across.run(LAYOUT, "mpi_loop cuda 3", timeout=TIMEOUT, env=env)
    assert result.status == 0 and len(result.lines("all rounds good")) == RANKS, result.out
