# SPDX-License-Identifier: BSD-3-Clause
"""Vendor communicators of freed communicators serve later ones of the same ranks: XCCL_COMM_POOL."""

import pytest
from mpi_harness import CCL


@pytest.mark.release_only
@pytest.mark.parametrize(
    ("most", "case", "made"),
    [
        ("0", "one", 2),
        ("1", "one", 1),
        ("1", "two", 3),  # one of two is kept
        (None, "nine", 10),  # by default eight are
        ("0", "nine", 18),
    ],
)
def test_kept(openmpi, most, case, made):
    """How many the simulation makes where so many are used, freed, and used again."""
    env = {**CCL, "XCCL_DIRECT": "off", "XCCL_SIM_LOG": "info"}
    env.update({"XCCL_COMM_POOL": most} if most else {})
    result = openmpi.run(2, f"mpi_pool cuda {case}", sim="cuda:2", env=env, timeout=60)
    result.good()
    assert len(result.lines("rank 0 nranks 2 .*Init COMPLETE")) == made, result.out
