# SPDX-License-Identifier: BSD-3-Clause
"""Types of thousands of stretches in no order: on the device a kernel goes by a list of them."""

import pytest

TIMEOUT = 60
LISTED = "a list of"
CASES = ["messages", "parts", "collectives", "freed", "many", "left"]


def go(mpi, case, ranks=2, sim="cuda:2", env=None):
    env = {"XCCL_LOG": "trace", **(env or {})}
    words = f"mpi_irregular {sim.split(':')[0]} {case}"
    result = mpi.run(ranks, words, sim=sim, timeout=TIMEOUT, env=env)
    result.good()
    return len(result.lines(LISTED))


@pytest.mark.parametrize("case", CASES)
def test_irregular(mpi, case):
    assert go(mpi, case) > 0


@pytest.mark.parametrize("case", ["messages", "parts", "freed"])
def test_staged(family, case):
    assert go(family, case, env={"XCCL_P2P": "staged"}) > 0


def test_on_the_other_runtime(family):
    assert go(family, "messages", sim="rocm:1") > 0


def test_by_threads(mpi):
    assert go(mpi, "threads", ranks=1) > 0


def test_without_kernels(openmpi):
    assert go(openmpi, "messages", env={"XCCL_DIRECT": "off"}) == 0


def test_listed_once(family):
    """A type's list stays with it, on each device."""
    assert go(family, "messages") == 2 * 4


def test_listed_anew(family):
    """Beyond XCCL_SCRATCH each call makes a list for itself, until types are freed."""
    rows, ranks, types, others = 2, 2, 60, 4
    listed = go(family, "many", env={"XCCL_SCRATCH": "1"})
    assert listed > ranks * (types + others)
    assert listed < ranks * (rows * types + others)
