# SPDX-License-Identifier: BSD-3-Clause
"""Stream-ordered calls: every one on every path, in order, in graphs."""

import pytest
from mpi_harness import CCL, DIRECT

STAGED = {"XCCL_TUNE": "*:*:*:*:mpi", "XCCL_DIRECT": "off", "XCCL_CCL": "none"}
PATHS = {"direct": DIRECT, "ccl": CCL, "mpi-staged": STAGED}


def run(mpi, ranks, case, path=None, runtime="cuda", **env):
    words = ["mpi_streams", runtime, case, *([path] if path else [])]
    env = {**PATHS.get(path, {}), "XCCL_LOG": "warn", **env}
    return mpi.run(ranks, words, sim=f"{runtime}:4", env=env, preload=False, timeout=100)


@pytest.mark.parametrize("path", ["direct", "mpi-staged"])
@pytest.mark.parametrize("case", ["collectives", "graphs"])
def test_collectives(family, case, path):
    run(family, 3 if family.name == "openmpi" else 2, case, path).good()


@pytest.mark.parametrize("case", ["collectives", "graphs"])
def test_vendor(openmpi, case):
    """Scans are not in the vendors' libraries, nor is a barrier: they take another path."""
    run(openmpi, 2, case, None, **CCL, XCCL_DIRECT="off").good()


@pytest.mark.parametrize("path", ["direct", "ccl", "mpi-staged"])
def test_streams(openmpi, path):
    """Several streams, each with a communicator, in different orders on the ranks."""
    run(openmpi, 2, "streams", path).good()


@pytest.mark.parametrize("path", ["direct", "mpi-staged"])
def test_rocm(openmpi, path):
    run(openmpi, 2, "graphs", path, "rocm").good()


@pytest.mark.parametrize("ranks", [2, 3])
def test_numbers(openmpi, ranks):
    """Numbers begin anew, and old words are not taken for new ones."""
    run(openmpi, ranks, "numbers", "direct", XCCL_SIM_NUMBERS="20").good()


@pytest.mark.parametrize("path", ["direct", "mpi-staged"])
def test_leave(family, path):
    """Communicators are freed, and MPI is finalised, with work under way."""
    run(family, 2, "leave", path).good()
