# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures of the interposer's tests: the build under test, and the MPIs to run with."""

import os
import re
from pathlib import Path

import pytest
from mpi_harness import TOP, Build, known_mpis, pick


@pytest.fixture(scope="session")
def build():
    folder = Path(os.environ.get("XCCL_TEST_BUILD", TOP / "build/release"))
    if not (folder / "test/mpi/mpi-tests.json").exists():
        pytest.fail(f"{folder} holds no build with tests; make it with ci/test", pytrace=False)
    return Build(folder)


@pytest.fixture(scope="session")
def mpis(build):
    """The MPIs whose launcher starts ranks that see each other; others with the reason."""
    usable = {}
    for name, mpi in known_mpis(build).items():
        result = mpi.run(2, "mpi_host", sim=None, preload=False, timeout=60)
        ranks = set(re.findall(r"rank (\d)", result.out))
        if not mpi.mpiexec:
            usable[name] = "no launcher was found"
        elif result.status != 0 or ranks != {"0", "1"}:
            usable[name] = f"its launcher starts no 2 ranks here: {result.out.strip()[-300:]}"
        else:
            usable[name] = mpi
    return usable


@pytest.fixture(params=["openmpi", "mpich", "openmpi5"])
def mpi(request, mpis):
    """Every MPI in turn."""
    return pick(mpis, request.param)


@pytest.fixture(params=["openmpi", "mpich"])
def family(request, mpis):
    """One MPI of each family."""
    return pick(mpis, request.param)


@pytest.fixture
def openmpi(mpis):
    return pick(mpis, "openmpi")


@pytest.fixture
def mpich(mpis):
    return pick(mpis, "mpich")
