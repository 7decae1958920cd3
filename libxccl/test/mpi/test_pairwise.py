# SPDX-License-Identifier: BSD-3-Clause
"""Neighbourhood collectives and alltoallw: who carries them, and what becomes of those that fail."""

import pytest

TIMEOUT = 30


@pytest.mark.parametrize(
    "case", ["empty", "graph", "groups", "host", "idup", "many", "nowhere", "tested"]
)
def test_cases(family, case):
    """On graphs of MPI_Graph_create, between groups, in host memory, where MPI is to refuse them, by tests."""
    family.run(3, f"mpi_pairwise cuda {case}", timeout=TIMEOUT).good()


@pytest.mark.parametrize(
    ("path", "env"),
    [
        ("messages", {}),
        ("mpi-staged", {"XCCL_P2P": "staged"}),
        ("mpi-staged", {"XCCL_ROUTE": "mpi"}),
    ],
)
def test_path(mpi, path, env):
    """In each form, and with large counts: by messages where these go from GPU to GPU."""
    mpi.run(3, f"mpi_pairwise cuda path {path}", env=env, timeout=TIMEOUT).good()


@pytest.mark.parametrize("case", ["miss", "miss_later"])
@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_copy_fails(family, case, number):
    """A message that cannot be sent, or received, is an error of its call; all others are right."""
    env = {"XCCL_DIRECT_LINGER": "off", "XCCL_SIM_FAIL": f"copy={number}"}
    family.run(1, f"mpi_pairwise cuda {case}", env=env, timeout=TIMEOUT).good()
