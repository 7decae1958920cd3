# SPDX-License-Identifier: BSD-3-Clause
"""Collectives on communicators of one rank: a copy on its device."""

import pytest
from mpi_harness import pick


@pytest.mark.each_value
@pytest.mark.parametrize("runtime", ["cuda", "rocm"])
@pytest.mark.parametrize("ranks", [1, 2])
def test_every_collective(family, runtime, ranks):
    """In each form, in place or not, with holes, displacements and memory of several kinds."""
    env = {"XCCL_SIM_EARLY": "1"}
    family.run(ranks, f"mpi_self {runtime} self", sim=f"{runtime}:2", env=env).good()


@pytest.mark.release_only
@pytest.mark.parametrize(
    ("env", "path"),
    [
        ({"XCCL_MEMORY": "mixed"}, "self"),
        ({"XCCL_CHECK": "1"}, "self"),
        ({"XCCL_DIRECT_LINGER": "500"}, "self"),
        ({"XCCL_CCL": "none", "XCCL_DIRECT": "off"}, "self"),
        ({"XCCL_TUNE": "*:*:*:*:direct"}, "self"),
        ({"XCCL_TUNE": "*:*:*:*:staged"}, "mpi-staged"),
        ({"XCCL_TUNE": "*:*:*:*:mpi", "XCCL_CCL": "none"}, "mpi-staged"),
        ({"XCCL_ROUTE": "mpi"}, "mpi-staged"),
    ],
    ids=lambda value: "-".join(value.values()) if isinstance(value, dict) else value,
)
def test_settings(openmpi, env, path):
    """Rows that ask for a path that is there are heard first."""
    openmpi.run(1, f"mpi_self cuda {path}", env=env).good()


@pytest.mark.release_only
@pytest.mark.parametrize(
    ("head", "path"), [("", "mpi-staged"), ("nodes = 1", "mpi-staged"), ("nodes = 2-inf", "self")]
)
def test_table(openmpi, tmp_path, head, path):
    """Rows of a file, too, if it is for such communicators."""
    table = tmp_path / "one.table"
    table.write_text(f"title = one\nmeasured = nobody\n{head}\n*:*:*:1:staged\n")
    openmpi.run(1, f"mpi_self cuda {path}", env={"XCCL_TABLE": str(table)}).good()


@pytest.mark.each_value
@pytest.mark.parametrize(("scratch", "path"), [("1", "mpi-staged"), ("2", "self")])
def test_scratch(family, scratch, path):
    """What has no room on the device goes through host memory."""
    family.run(1, f"mpi_self cuda {path} long", env={"XCCL_SCRATCH": scratch}).good()


@pytest.mark.each_value
@pytest.mark.parametrize(("aware", "path"), [("yes", "mpi"), ("no", "self")])
def test_aware(family, aware, path):
    """MPI keeps what it takes itself."""
    env = {"XCCL_MPI_GPU_AWARE": aware}
    family.run(1, f"mpi_self cuda {path} managed", env=env).good()


@pytest.mark.parametrize("tune", [None, "*:*:*:*:staged"])
def test_starts_by_threads(family, tune):
    """What is known of the communicator is made once, by whoever comes first."""
    env = {"XCCL_TUNE": tune} if tune else {}
    family.run(1, "mpi_self cuda mpi starts", env=env, timeout=60).good()


@pytest.mark.parametrize("name", ["openmpi", "openmpi5"])
def test_start_that_a_handler_leaves(mpis, name):
    """By longjmp(): starts of other threads do not wait for it. MPICH takes no call of threads behind a jump."""
    pick(mpis, name).run(1, "mpi_self cuda self left", timeout=40).good()
