# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures of the interposer's tests: the build under test, and the MPIs to run with."""

import os
from pathlib import Path

import pytest
from mpi_harness import BY_THE_LAUNCHER, TOP, Build, known_mpis, pick, start_failure


def pytest_terminal_summary(terminalreporter):
    """A job that is run again is no failure; how many were tells whether it stays rare."""
    said = [warning.message for warning in terminalreporter.stats.get("warnings", [])]
    again = sum(BY_THE_LAUNCHER in message for message in said)
    if again:
        terminalreporter.write_line(f"{again} jobs were run again: they failed {BY_THE_LAUNCHER}")


@pytest.fixture(scope="session")
def build():
    folder = Path(os.environ.get("XCCL_TEST_BUILD", TOP / "build/release"))
    if not (folder / "test/mpi/mpi-tests.json").exists():
        pytest.fail(f"{folder} holds no build with tests; make it with ci/test", pytrace=False)
    return Build(folder)


@pytest.fixture(scope="session")
def mpis(build):
    """Every MPI that is installed, or the reason why it does not start."""
    return {name: start_failure(mpi) or mpi for name, mpi in known_mpis(build).items()}


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


@pytest.fixture
def own_abi(mpich):
    """MPICH by its own ABI, for what stands in for other versions of that."""
    if mpich.family != "mpich":
        pytest.skip("the stand-ins have MPICH's own ABI")
    return mpich
