# SPDX-License-Identifier: BSD-3-Clause
"""How xccl and its settings come to the ranks of other hosts, and what is said where they do not."""

import json

import pytest
from hosts import HostsMpi

pytestmark = pytest.mark.release_only
THOROUGH = pytest.mark.thorough
TIMEOUT = 60
# Rank 1 has no xccl, or a variable that the others lack; the rest is the program.
WITHOUT = 'test "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 1 && unset LD_PRELOAD; exec "$@"'
WITH = 'test "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 1 && export "$0"; exec "$@"'


# Not with Hydra 4.0.2, which may not end the ranks of another host when one aborts.
@pytest.mark.parametrize(
    "mpi", [pytest.param("openmpi", marks=THOROUGH), "openmpi5"], indirect=True
)
def test_rank_without_xccl(across):
    """A launcher that hands LD_PRELOAD to its own host only: the job ends, and says why."""
    program = [across.program("mpi_loop"), "cuda", "5", "fatal", "unequal"]
    result = across.run_heard(
        lambda r: r.lines(r"error: .*\(XCCL_TIMEOUT\): a rank may be .* without xccl"),
        "1+1",
        ["/bin/sh", "-c", WITHOUT, "sh", *program],
        env={"XCCL_TIMEOUT": "1"},
        timeout=TIMEOUT,
    )
    assert not result.lines("all rounds good")


@pytest.mark.parametrize("mpi", ["openmpi"], indirect=True)
def test_host_memory_on_one_host(across):
    """No rank sees what one of another host passes: the error names it among what may be."""
    across.run_heard(
        lambda r: r.lines("error: .* in a call on host memory .which needs XCCL_MEMORY=mixed"),
        "1+1",
        "mpi_loop cuda 5 fatal unequal",
        env={"XCCL_TIMEOUT": "1"},
        timeout=TIMEOUT,
    )


@pytest.mark.parametrize("mpi", [pytest.param("openmpi", marks=THOROUGH), "mpich"], indirect=True)
def test_setting_on_one_host(across):
    program = [across.program("mpi_loop"), "cuda", "5", "fatal"]
    across.run_heard(
        lambda r: r.lines(r"error: XCCL_TUNE is .* on rank 1.*mpirun -x XCCL_TUNE"),
        "1+1",
        ["/bin/sh", "-c", WITH, "XCCL_TUNE=*:*:*:*:mpi", *program],
        timeout=TIMEOUT,
    )


def in_front(across, *given, env=None):
    """xccl-run before the launcher, with no other help for the ranks of the other host."""
    run = [across.build.stage / "bin/xccl-run", "--sim", "cuda:4"]
    front, settings = across.front("1+1")
    settings = {**settings, **(env or {})}
    for folder in filter(None, [across.library_path]):
        settings["LD_LIBRARY_PATH"] = folder
    program = [across.program("mpi_loop"), "cuda", "5", "return"]
    return across.hosts.run("h0", *run, *front, *given, *program, env=settings, timeout=TIMEOUT)


def good(result):
    assert result.status == 0 and len(result.lines("all rounds good")) == 2, result.out
    # Each rank says so: what xccl-run was told, and the user's own variables, are on both hosts.
    assert len(result.lines(r"xccl\[[01]\] info: using nccl")) == 2, result.out


@pytest.mark.parametrize(
    "mpi", ["openmpi", "openmpi5", pytest.param("mpich", marks=THOROUGH)], indirect=True
)
def test_xccl_run_in_front(across):
    env = {"XCCL_LOG": "info"}
    if across.is_mpich:  # whose waiting ranks have to sleep
        env["LD_PRELOAD"] = across.build.mpich_idle
    good(in_front(across, env=env))


@pytest.mark.thorough
def test_xccl_run_in_front_of_options(openmpi, nodes):
    """Open MPI 4.1 takes its list of variables, or options of the user for them, but not both."""
    across = HostsMpi(openmpi, nodes)
    good(in_front(across, "-x", "XCCL_LOG", env={"XCCL_LOG": "info"}))


TABLE = """title = nodes of a test
measured = nobody
nodes = 2
ranks_per_node = 1
*:*:*:*:mpi
"""


@pytest.mark.parametrize("mpi", ["openmpi"], indirect=True)
def test_nodes_are_counted(across):
    """A table for two nodes of one rank is taken there, and not on one node of two."""
    file = across.hosts.folder / "nodes.table"
    file.write_text(TABLE)
    for layout, path in (("1+1", r"mpi-staged \(nodes\.table"), ("2", r"direct \(")):
        env = {"XCCL_TABLE": file, "XCCL_LOG": "info"}
        result = across.run(layout, "mpi_loop cuda 5", env=env, timeout=TIMEOUT)
        assert result.status == 0 and result.lines(f"on 2 ranks: {path}"), result.out


@pytest.mark.thorough
def test_hosts_in_a_report(across):
    file = across.hosts.folder / f"perf-{across.name}.json"
    perf = [across.build.stage / "bin/xccl-perf", "--max", "1k", "--iters", "2", "--json", file]
    assert across.run("2+1", perf, timeout=TIMEOUT).status == 0
    ranks = json.loads(file.read_text())["ranks"]
    assert [rank["host"] for rank in ranks] == ["h0", "h0", "h1"]
    assert [rank["device"] for rank in ranks] == [0, 1, 0]


@pytest.mark.thorough
def test_binding_on_each_host(openmpi, nodes):
    """xccl-run behind the launcher: ranks of every host begin with its first device."""
    across = HostsMpi(openmpi, nodes)
    run = [openmpi.build.stage / "bin/xccl-run", "--report"]
    program = across.program("mpi_loop")
    result = across.run("2+1", [*run, program, "cuda", "5"], timeout=TIMEOUT, preload=False)
    assert result.status == 0 and len(result.lines("all rounds good")) == 3, result.out
    assert result.lines("h0") and result.lines("h1"), result.out


@pytest.mark.thorough
def test_tuning(openmpi, nodes):
    """xccl-tune writes a table for the number of nodes."""
    across = HostsMpi(openmpi, nodes)
    folder = across.hosts.folder / "tables"
    tune = [openmpi.build.stage / "bin/xccl-tune", "--output", folder, "--coll", "allreduce"]
    few = [
        "--max",
        "64",
        "--samples",
        "2",
        "--max-samples",
        "2",
        "--iters",
        "3",
        "--device",
        "cuda",
    ]
    result = across.run("1+1", [*tune, *few], timeout=TIMEOUT)
    assert result.status == 0 and "nodes = 2" in (folder / "nodes-2.table").read_text(), result.out


@pytest.mark.thorough
def test_comparison(openmpi, nodes):
    """xccl-compare hands each route's variables to all hosts, and counts them."""
    across = HostsMpi(openmpi, nodes)
    front, settings = across.front("1+1")
    compare = [openmpi.build.stage / "bin/xccl-compare", "--sim", "cuda:4", "--routes", "mpi,xccl"]
    few = ["--coll", "allreduce", "--min", "1k", "--max", "1k", "--rounds", "1", "--no-plot"]
    where = ["--output", across.hosts.folder / "comparison", "--nodes", "2", "--"]
    result = across.hosts.run("h0", *compare, *few, *where, *front, env=settings, timeout=TIMEOUT)
    assert result.status == 0, result.out
    assert result.lines("hosts: h0, h1") and result.lines("2 ranks on 2 nodes"), result.out
