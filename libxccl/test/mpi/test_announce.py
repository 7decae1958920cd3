# SPDX-License-Identifier: BSD-3-Clause
"""What MPI_Init says: that xccl is active, and that the launcher is another MPI's."""

import re
import subprocess

import pytest
from mpi_harness import CCL, execute, launcher, pick

ACTIVE = r"^xccl\[0\] info: xccl \d+\.\d+\.\d+ is active: "
ALONE = r"^xccl\[\d+\] warning: .* is alone in MPI_COMM_WORLD"


def test_active(mpi):
    """One line of the whole job, in a program on host memory too, for which nothing is loaded."""
    result = mpi.run(2, "mpi_host", env={"XCCL_LOG": "info"}, timeout=60)
    assert result.status == 0, result.out
    (line,) = result.lines(r"info: .* is active")
    name = r"(MPICH|Intel\(R\) MPI Library)" if mpi.is_mpich else "Open MPI"
    assert re.search(f"is active: {name} v?[0-9].*, 2 ranks; ", line)
    assert "paths for device memory: direct, ccl, mpi; a vendor library is looked for" in line
    assert len(result.lines("sum right, 0 vendor files mapped")) == 2


def test_silent_by_default(family):
    result = family.run(2, "mpi_host", timeout=60)
    assert not result.lines("xccl"), result.out


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"XCCL_CCL": "none"}, "direct, mpi; no vendor library (XCCL_CCL=none)"),
        ({"XCCL_DIRECT": "off"}, "paths for device memory: ccl, mpi;"),
        ({"XCCL_ROUTE": "mpi"}, "every collective goes to MPI (XCCL_ROUTE=mpi)"),
        ({"XCCL_CCL_LIBRARY": "/no/such.so"}, "XCCL_CCL_LIBRARY=/no/such.so cannot be read"),
    ],
)
def test_settings_are_said(openmpi, settings, said):
    result = openmpi.run(1, "mpi_host", env={"XCCL_LOG": "info", **settings}, timeout=60)
    (line,) = result.lines(ACTIVE)
    assert said in line


def test_first_use(family):
    """What could not be known in MPI_Init is said when device memory comes."""
    env = {"XCCL_LOG": "info", **CCL}
    result = family.run(2, "mpi_loop cuda 2 return", env=env, timeout=60)
    order = [result.out.index(word) for word in (" is active: ", "device memory is in use (cuda)")]
    assert order == sorted(order)
    assert len(result.lines(r"^xccl\[0\] info: device memory is in use \(cuda\); MPI is not")) == 1
    assert result.lines(r"^xccl\[0\] info: using nccl .* from /")


def test_first_calls_without_a_vendor_library(openmpi):
    """XCCL_CCL=none leaves the direct path: what the first calls wait for is named."""
    env = {"XCCL_LOG": "info", "XCCL_CCL": "none", "XCCL_DIRECT": "auto"}
    command = "mpi_loop cuda 5 return"
    result = openmpi.run(2, command, env={**env, "XCCL_COMM_CREATE": "auto"}, timeout=60)
    (line,) = result.lines(r"^xccl\[0\] info: allreduce of .* mpi-staged ")
    assert line.endswith("mpi-staged (the direct path is not joined yet)")
    result = openmpi.run(2, command, env={**env, "XCCL_COMM_CREATE": "first"}, timeout=60)
    assert not result.lines(r"^xccl\[0\] info: allreduce of .* mpi-staged "), result.out
    assert result.lines(r"^xccl\[0\] info: allreduce of .* direct"), result.out


NO_UCC = (
    r"^xccl\[\d+\] warning: XCCL_ROUTE=\S+, but libucc is not loaded: UCC serves no collective, "
)


@pytest.mark.parametrize("route", ["ucc", "ucc-ccl"])
def test_a_route_without_ucc(mpi, route):
    """MPI says nothing of it; rank 0 does."""
    result = mpi.run(3, "mpi_host", env={"XCCL_ROUTE": route}, timeout=60)
    assert result.status == 0, result.out
    lines = result.lines("xccl")
    if not lines and not mpi.is_mpich:
        pytest.skip("an Open MPI with UCC")
    assert len(lines) == len(result.lines(NO_UCC)) == 1, result.out
    assert f"xccl[0] warning: XCCL_ROUTE={route}, " in lines[0]


def test_a_route_with_ucc(openmpi, tmp_path):
    """Loaded libucc is enough; its name is looked at, not its folder's."""
    for name, warnings in (("libucc.so.1", 0), ("libucc.so/libother.so", 1)):
        library = tmp_path / name
        library.parent.mkdir(exist_ok=True)
        command = ["cc", "-shared", "-x", "c", "/dev/null", "-o", library]
        subprocess.run(command, check=True)
        preload = f"LD_PRELOAD={openmpi.build.preload(openmpi.build.interposer, library)}"
        words = ["/usr/bin/env", preload, openmpi.program("mpi_host")]
        env = {"XCCL_ROUTE": "ucc"}
        result = openmpi.run(2, words, env=env, preload=False, timeout=60)
        assert result.status == 0, result.out
        assert len(result.lines(NO_UCC)) == warnings, result.out


def run_under(program, other, ranks, preload=True):
    """A program of one MPI, started by another's launcher."""
    build = program.build
    front, settings = launcher(other.family, other.mpiexec, ranks)
    env = {**build.environment(None), **settings, **launcher(program.family, "", 1)[1]}
    inner = ["env", f"LD_PRELOAD={build.preload()}"] if preload else []
    return execute([*front, *inner, program.program("mpi_host")], env, 60)


@pytest.mark.parametrize(("program", "other"), [("openmpi", "mpich"), ("mpich", "openmpi")])
def test_launcher_of_another_mpi(mpis, request, program, other):
    """Every process is alone; one of the node says so, and names both sides."""
    mine, theirs = request.getfixturevalue(program), request.getfixturevalue(other)
    result = run_under(mine, theirs, 3)
    assert result.status == 0, result.out
    (line,) = result.lines(ALONE)
    names = {"openmpi": ("Open MPI v", "Open MPI's mpirun"), "mpich": ("MPICH ", "Hydra")}
    assert f"runs with {names[program][0]}" in line
    assert f"{names[other][1]}" in line.split(" started 3 processes (")[0]
    assert len(result.lines("rank 0: sum right")) == 3


@pytest.mark.parametrize(("program", "other"), [("openmpi", "mpich"), ("mpich", "openmpi")])
def test_one_rank_is_no_mistake(mpis, request, program, other):
    """Neither a single rank of the right launcher nor of another one: there is nobody to miss."""
    mine, theirs = request.getfixturevalue(program), request.getfixturevalue(other)
    mine.build.runs_here()
    assert not mine.run(1, "mpi_host", sim=None, timeout=60).lines("xccl")
    assert not run_under(mine, theirs, 1).lines("xccl")


def test_singleton_in_a_batch_script(mpich):
    """Slurm's variables of a job of many tasks, in a process that is none of them."""
    mpich.build.runs_here()
    env = {
        **mpich.build.environment(None),
        "LD_PRELOAD": mpich.build.preload(),
        **{"SLURM_JOB_ID": "7", "SLURM_NTASKS": "8", "SLURM_PROCID": "0", "SLURM_LOCALID": "0"},
    }
    done = subprocess.run(
        [mpich.program("mpi_host")],
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "xccl" not in done.stdout + done.stderr


def test_spawned(openmpi):
    """A spawned process has a world of its own. (MPICH 4.0.2 as Debian builds it cannot spawn.)"""
    result = openmpi.run(1, "mpi_spawn", sim=None, timeout=60)
    assert result.status == 0, result.out
    assert result.lines("child: world of 1, got 1") and result.lines("spawned one")
    assert not result.lines("warning"), result.out


def test_spawned_one_after_the_other(openmpi):
    """What spawned processes shared with their parent does not stay in its memory."""
    openmpi.run(1, "mpi_spawn cuda many", sim="cuda:2", timeout=60).good()


@pytest.mark.parametrize("several", ["", " several"])
@pytest.mark.parametrize("name", ["openmpi", "openmpi5"])
def test_spawned_on_device(mpis, name, several):
    """A spawned process has the xccl of its parent, though mpirun knows nothing of it."""
    mpi = pick(mpis, name)
    result = mpi.run(1, f"mpi_spawn cuda{several}", sim="cuda:2", timeout=60)
    result.good()
    assert len(result.lines("[1-9][0-9]* checks, 0 failures")) == 2, result.out
    assert not result.lines("warning"), result.out
