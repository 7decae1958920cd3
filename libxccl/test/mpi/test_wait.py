# SPDX-License-Identifier: BSD-3-Clause
"""How long a wait takes, by a clock that goes as fast as the program wants."""


def test_hours(family):
    """Warnings become rarer, and XCCL_TIMEOUT ends it."""
    family.run(1, "mpi_wait none", sim=None, preload=False, timeout=60).good()
