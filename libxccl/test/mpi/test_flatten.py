# SPDX-License-Identifier: BSD-3-Clause
"""Datatypes taken apart, and the copies made of them, against what the MPI library does with them.

The programs hold that part of the interposer themselves: nothing is preloaded, and one rank is enough.
The seed is printed; XCCL_TEST_SEED sets it as for the random collectives.
"""

import pytest
from test_random import seed

TYPES = 4000
TIMEOUT = 60


@pytest.mark.each_value
@pytest.mark.parametrize("program", ["mpi_flatten", "mpi_copies"])
def test_types(mpi, program):
    command = f"{program} none {seed()} {TYPES}"
    print(command)
    mpi.run(1, command, sim=None, preload=False, timeout=TIMEOUT).good()
