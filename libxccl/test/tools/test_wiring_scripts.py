# SPDX-License-Identifier: BSD-3-Clause
"""bench/routes.py and bench/plugin.py: what they read from real logs, and a walk through on simulated devices."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[3]
BENCH = TOP / "libxccl/bench"
MEASURED = TOP / "docs/benchmarks/h200-x2"
sys.path.insert(0, str(BENCH))

import plugin  # noqa: E402 (found through the line above)
import routes  # noqa: E402

# Nothing here is compiled: the sanitizers have nothing to find.
pytestmark = pytest.mark.release_only


def parts(text):
    """{route-collective: lines} of the committed excerpts of logs."""
    found = re.split(r"^## (\S+)\n", text, flags=re.M)
    return dict(zip(found[1::2], found[2::2], strict=True))


EXCERPTS = parts((MEASURED / "routes/proof.txt").read_text())


@pytest.mark.parametrize(
    ("job", "library"),
    [
        ("ucc-allreduce", "TL_UCP"),
        ("ucc-bcast", "TL_CUDA"),
        ("ucc-ccl-allreduce", "TL_NCCL"),
        ("ucc-ccl-reduce_scatter", "TL_CUDA"),
        ("xccl-allgather", "direct"),
    ],
)
def test_who_served_a_call(job, library):
    by = set()
    for counted in routes.served(EXCERPTS[job]).values():
        by.update(counted)
    assert library in by
    route, _, coll = job.rpartition("-")
    assert routes.as_expected(route, coll, by)


@pytest.mark.parametrize(
    ("route", "coll", "by", "good"),
    [
        ("mpi", "bcast", {"mpi", "mpi-staged"}, True),
        ("mpi", "bcast", set(), True),  # nothing but MPI speaks of no call
        ("mpi", "bcast", {"mpi", "TL_UCP"}, False),
        ("mpi", "bcast", {"direct"}, False),
        ("ucc", "bcast", {"mpi", "TL_CUDA", "TL_UCP"}, True),
        ("ucc", "bcast", {"mpi"}, False),
        ("ucc", "bcast", {"TL_CUDA", "TL_NCCL"}, False),
        ("ucc-ccl", "bcast", {"TL_NCCL"}, True),
        ("ucc-ccl", "bcast", {"TL_CUDA"}, False),
        ("ucc-ccl", "reduce_scatter", {"TL_CUDA"}, True),
        ("ucc-ccl", "reduce_scatter", {"mpi"}, False),
        ("xccl", "bcast", {"mpi", "ccl"}, True),
        ("xccl", "bcast", {"mpi"}, False),
        ("xccl", "bcast", {"direct", "TL_NCCL"}, False),
    ],
)
def test_what_a_route_promises(route, coll, by, good):
    assert routes.as_expected(route, coll, by) is good


def test_what_compare_leaves_out():
    text = "job, mpi, sizes:\n  mpirun\nleft out: ucc, ucc-ccl: Open MPI has none (a: b)\nleft out: vendor: no GPU\n"
    none = "Open MPI has none (a: b)"
    assert routes.left_out(text) == {"ucc": none, "ucc-ccl": none, "vendor": "no GPU"}


def test_the_plugin_in_order():
    text = (MEASURED / "plugin/plugin.log").read_text()
    assert all(good for good, _ in plugin.judge_healthy(0, text, {"net-leftover"}, "tcp"))
    assert not all(good for good, _ in plugin.judge_healthy(0, text, set(), "cxi"))
    assert not all(good for good, _ in plugin.judge_healthy(0, text, {"net-sockets"}, "tcp"))
    absent = (MEASURED / "plugin/absent.log").read_text()
    verdicts = [good for good, _ in plugin.judge_healthy(0, absent, set(), "tcp")]
    assert verdicts == [True, False, False, True]


def test_a_fault_that_is_not_named():
    absent = plugin.FAULTS[0]
    assert plugin.judge_fault(absent, 0, {"plugin-missing", "net-sockets"})[0]
    good, sentence = plugin.judge_fault(absent, 0, {"net-leftover"})
    assert not good and "names nothing" in sentence


def run(script, *words, **environment):
    command = [sys.executable, str(BENCH / script), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **environment)


@pytest.mark.parametrize("script", ["routes.py", "plugin.py"])
def test_wrong_use(stage, tmp_path, script):
    """Each names what to do."""
    common = ("--xccl", stage.folder, "--output", tmp_path / "out")
    ended = run(script, *common)
    assert (ended.returncode, "behind --" in ended.stderr) == (2, True), ended.stderr
    ended = run(script, "--xccl", tmp_path, "--output", tmp_path / "out", "--", "mpirun")
    assert (ended.returncode, "has no bin/xccl-run" in ended.stderr) == (2, True), ended.stderr
    ended = run(script, *common, "--", "mpirun", env=stage.environment({"XCCL_ROUTE": "ucc"}))
    assert (ended.returncode, "unload xccl's modules" in ended.stderr) == (2, True), ended.stderr


def test_a_plugin_that_is_not_there(stage, tmp_path):
    words = f"--xccl {stage.folder} --plugin {tmp_path} --output {tmp_path}/out -- mpirun"
    ended = run("plugin.py", *words.split())
    assert ended.returncode == 2
    assert "has no libnccl-net-ofi.so" in ended.stderr


@pytest.mark.thorough
def test_routes_on_simulated_devices(any_mpi, stage, tmp_path):
    out = tmp_path / "routes"
    ended = run(
        "routes.py",
        *("--xccl", stage.folder, "--site", "sim", "--sim", "cuda:2", "--max", "4096"),
        *("--coll", "allreduce", "--rounds", "1", "--output", out, "--", *any_mpi.command(2)),
        env=stage.environment(),
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    verdicts = (out / "verdicts.txt").read_text()
    assert "xccl, allreduce: served by direct; status 0" in verdicts
    assert (out / "compare/result.json").exists() and (tmp_path / "routes.tar.gz").exists()
