# SPDX-License-Identifier: BSD-3-Clause
"""Python programs: device arrays through mpi4py, and mpi4py's own tests with xccl in between."""

import sys
from pathlib import Path

import mpi4py_suite
import pytest
from mpi_harness import PATHS, pick

HERE = Path(__file__).resolve().parent
# The files of mpi4py's suite that call what xccl takes over; ci/mpi4py-suite runs all of it.
FAIR_PART = [
    "-i",
    "test_cco_buf.*|test_cco_vec.*|test_cco_ngh_buf|test_comm.*|test_errhandler|test_op|test_io",
]


@pytest.fixture(params=["openmpi", "openmpi5", "mpich"])
def python_mpi(request, mpis):
    """The MPIs that have an mpi4py."""
    mpi = pick(mpis, request.param)
    if not mpi4py_suite.is_installed(mpi):
        pytest.skip("no mpi4py for this ABI is installed; ci/bootstrap test does it for two")
    return mpi


@pytest.fixture
def suite_mpi(python_mpi):
    """The same, where mpi4py's own tests can be run."""
    if mpi4py_suite.sources() is None:
        pytest.skip("mpi4py's source distribution is not there; ci/bootstrap test unpacks it")
    if python_mpi.build.sanitized:
        pytest.skip("the release build runs it; Python under AddressSanitizer takes minutes")
    return python_mpi


@pytest.mark.each_value
@pytest.mark.parametrize(
    ("ranks", "path"),
    [(1, "ccl"), *((n, path) for n in (2, 4) for path in ("ccl", "direct", "mpi-staged"))],
)
def test_device_arrays(python_mpi, ranks, path):
    """Objects with __cuda_array_interface__ in thirteen collectives."""
    route = PATHS.get(path, {"XCCL_ROUTE": "mpi"})
    result = python_mpi.run(
        ranks,
        [sys.executable, str(HERE / "mpi4py_device.py")],
        env={**mpi4py_suite.python_env(python_mpi), **route, "XCCL_LOG": "info"},
        library_path=mpi4py_suite.library_path(python_mpi),
        timeout=120,
    )
    result.good()
    if ranks > 1:
        assert result.lines(rf"allreduce of .* in cuda on {ranks} ranks: {path} "), result.out


@pytest.mark.thorough
@pytest.mark.parametrize("ranks", [1, 2])
def test_own_suite(suite_mpi, ranks):
    """Every test of mpi4py's ends as it does without xccl."""
    without, plain = mpi4py_suite.run_suite(suite_mpi, ranks, FAIR_PART, preload=False)
    with_xccl, preloaded = mpi4py_suite.run_suite(suite_mpi, ranks, FAIR_PART, preload=True)
    assert sum(outcome == "passed" for outcome in without.values()) > 100 * ranks, plain.out
    assert not preloaded.timed_out
    assert not mpi4py_suite.differences(without, with_xccl), preloaded.out


@pytest.mark.each_value
@pytest.mark.parametrize(
    ("part", "names", "fewest"),
    [
        ("p2p_buf", "World.test", 8),
        ("pack", "World.test", 2),
        ("rma", "World.testPutGet", 4),
        ("io", "BasicWorld.test", 24),
    ],
)
def test_own_suite_on_device(suite_mpi, part, names, fewest):
    """mpi4py's own tests of messages, packing, windows and files, on arrays in device memory.

    Some of them; ci/mpi4py-suite --arrays device runs all, and compares.
    """
    # Not the partitioned ones: on Open MPI 5.0 one of some twenty runs waits for ever.
    options = ["-i", f"test_{part}", "-e", "test_p2p_buf_part", "-k", names]
    outcomes, run = mpi4py_suite.run_suite(suite_mpi, 2, options, device=True, sim="cuda:4")
    assert set(outcomes.values()) <= {"passed", "skipped", "expected failure"}, run.out
    assert run.on_device >= fewest, run.out
