# SPDX-License-Identifier: BSD-3-Clause
"""Tables in files: which are asked on a communicator, on all of its ranks alike."""

import pytest
from mpi_harness import PATHS

LOOP = "mpi_tuning cuda loop"
INFO = {"XCCL_LOG": "info"}


@pytest.fixture
def table(tmp_path):
    def write(rows, condition="", name="own.table"):
        path = tmp_path / name
        path.write_text(f"measured = nobody\n{condition}\n{rows}\n")
        return str(path)

    return write


def reasons(result):
    """What rank 0 says of the path of allreduces."""
    result.good()
    lines = result.lines(r"xccl\[0\] info: allreduce of ")
    assert lines, result.out
    return lines


def test_change(family):
    """xcclTuneMPI, on communicators that are in use and on new ones."""
    env = {"XCCL_TUNE": "*:*:*:*:mpi", "XCCL_DIRECT": "on"}
    assert family.run(2, "mpi_tuning cuda change", env=env).good() > 30


def test_obstacle_of_a_freed_communicator(family):
    """Why the vendor's library did not carry a call can be asked behind its communicator's end."""
    env = {**PATHS["ccl"], "XCCL_SIM_FAIL": "init", "XCCL_DIRECT": "off"}
    family.run(2, "mpi_tuning cuda obstacle", env=env).good()


@pytest.mark.parametrize(
    ("condition", "asked"),
    [
        # What the ranks have in common, all at once; then what they have not.
        (
            "ranks = 2\nnodes = 1\nranks_per_node = 2\ngpu = *imulat*\nccl = nccl 2.5-inf\n"
            "network = tcp\nmpi = staged",
            True,
        ),
        ("gpu = NVIDIA H200", False),
    ],
)
def test_conditions(openmpi, table, condition, asked):
    env = {"XCCL_TABLE": table("allreduce:*:*:*:mpi", condition), "NCCL_NET": "Socket", **INFO}
    lines = reasons(openmpi.run(2, LOOP, env=env))
    assert all(("(own.table:" in line) == asked for line in lines), lines


def test_order(openmpi, table, tmp_path):
    """XCCL_TUNE, then the files of a folder by their names."""
    table("allreduce:0-1k:*:*:mpi#allreduce:1k-inf:*:*:ccl", name="b.table")
    table("bcast:*:*:*:ccl", name="a.table")
    env = {"XCCL_TABLE": str(tmp_path), **INFO}
    assert "(b.table:3 allreduce:1k-inf:*:*:ccl)" in reasons(openmpi.run(2, LOOP, env=env))[0]
    env["XCCL_TUNE"] = "allreduce:*:*:*:mpi"
    assert "(XCCL_TUNE allreduce:*:*:*:mpi)" in reasons(openmpi.run(2, LOOP, env=env))[0]


def test_ranks_with_different_tables(family, table):
    """They take the built-in rows, and rank 0 names a rank."""
    one = table("allreduce:*:*:*:mpi", name="one.table")
    other = table("allreduce:*:*:*:ccl", name="other.table")
    rank = "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}"
    script = f'case "{rank}" in 1) XCCL_TABLE={other} ;; *) XCCL_TABLE={one} ;; esac; export XCCL_TABLE; '
    program = f"{family.program('mpi_tuning')} cuda loop"
    result = family.run(2, ["/bin/sh", "-c", script + f"exec {program}"], env=INFO)
    assert all("(built-in table " in line for line in reasons(result))
    warned = result.lines(r"xccl\[\d\] warning: tuning tables on rank 1 differ")
    assert len(warned) == 1 and warned[0].startswith("xccl[0] ")


def test_staged_where_mpi_is_aware(family):
    """A row asks for copies. MPI would touch the simulated device's memory, and crash."""
    env = {"XCCL_TUNE": "*:*:*:*:staged", "XCCL_MPI_GPU_AWARE": "yes", **INFO}
    lines = reasons(family.run(2, LOOP, env=env))
    assert all("mpi-staged (XCCL_TUNE *:*:*:*:staged)" in line for line in lines), lines


@pytest.mark.parametrize(
    ("rows", "words"),
    [("allreduce:*:*:*:warp", "line 3, column 17: path 'warp'")],
)
def test_mistake(openmpi, table, rows, words):
    """An error in MPI_Init, with file, line and column; rank 0 says it for all."""
    path = table(rows)
    result = openmpi.run_heard(
        lambda r: len(r.lines(r"^xccl\[0\] error: ")) == 1,
        2,
        LOOP,
        env={"XCCL_TABLE": path},
        timeout=30,
    )
    assert f"error: XCCL_TABLE: {path}: " in result.out and words in result.out
