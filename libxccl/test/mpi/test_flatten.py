# SPDX-License-Identifier: BSD-3-Clause
"""Datatypes taken apart, against what the MPI library does with them.

The program holds that part of the interposer itself: nothing is preloaded, and one rank is enough.
The seed is printed; XCCL_TEST_SEED sets it as for the random collectives.
"""

import pytest
from test_random import seed

TYPES = 4000
TIMEOUT = 60


@pytest.mark.parametrize("program", ["mpi_flatten"])
def test_types(mpi, program):
    command = f"{program} none {seed()} {TYPES}"
    print(command)
    mpi.run(1, command, sim=None, preload=False, timeout=TIMEOUT).good()
