# SPDX-License-Identifier: BSD-3-Clause
"""Hundreds of requests in one array, completed in every way but all at once."""

import pytest

TIMEOUT = 60


def go(mpi, case, env=None, runtime="cuda"):
    none = runtime == "none"
    sim = None if none else f"{runtime}:4"
    words = f"mpi_many {runtime} {case}"
    mpi.run(2, words, sim=sim, preload=not none, timeout=TIMEOUT, env=env).good()


@pytest.mark.parametrize("case", ["any", "some", "each", "drawn"])
def test_orders(mpi, case):
    go(mpi, case)


def test_come(family):
    """A message that has come is seen without a look at hundreds of others."""
    go(family, "come")


def test_truncated(family):
    """Some are too long for MPI, others for xccl when it fetches them."""
    go(family, "truncated", {"XCCL_RENDEZVOUS": "240"})


@pytest.mark.tsan
def test_threads(family):
    """MPI gives a thread the handle of a request that another thread's call has completed."""
    go(family, "threads")


@pytest.mark.release_only
@pytest.mark.each_value
@pytest.mark.parametrize("case", ["any", "some", "each", "drawn", "threads", "come"])
def test_reference(family, case):
    """On host memory and without xccl the program itself is right."""
    go(family, case, runtime="none")
