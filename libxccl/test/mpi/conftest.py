# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures of the interposer's tests: the build under test, and the MPIs to run with."""

import os
import re
from pathlib import Path

import pytest
from mpi_harness import TOP, Build, known_mpis, pick


def pytest_configure(config):
    config.addinivalue_line("markers", "reference: without xccl; sanitizers have nothing to see")
    config.addinivalue_line("markers", "one_family: sanitizers see the same with either MPI")


@pytest.fixture(autouse=True)
def spare_sanitizers(request):
    """The release build runs everything; the others take ten times as long for each test."""
    marks = {mark.name for mark in request.node.iter_markers()} & {"reference", "one_family"}
    if not marks or not request.getfixturevalue("build").sanitized:
        return
    callspec = getattr(request.node, "callspec", None)
    if "reference" in marks or (callspec and "mpich" in callspec.params.values()):
        pytest.skip("the release build runs it")


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
