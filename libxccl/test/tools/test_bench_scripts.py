# SPDX-License-Identifier: BSD-3-Clause
"""What turns measurements into pages: docs/benchmarks/render.py and the summary of bench/."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[3]
RENDER = TOP / "docs/benchmarks/render.py"
BENCH = TOP / "libxccl/bench"
BAR = {"name": "start", "unit": "ms", "without": 1, "with": 1.5, "measured": 0.5, "limit": 1}


def python(*command):
    return subprocess.run(
        [sys.executable, *map(str, command)], capture_output=True, text=True, check=False
    )


@pytest.fixture
def results(any_mpi, tmp_path):
    """A set as gpu_run.sh leaves it, from real runs."""
    folder = tmp_path / "set"
    folder.mkdir()
    for route in ("mpi", "xccl"):
        any_mpi.perf(
            2,
            *("--coll", "allreduce,bcast", "--max", "1k", "--iters", "2"),
            *("--json", folder / f"perf-2-{route}.json"),
            run=("--sim", "cuda:2", "--route", route),
        ).good()
    for i in (1, 2):
        described = {"program": f"p{i}", "bars": [{**BAR, "verdict": "met"}]}
        (tmp_path / f"bars-{i}.json").write_text(json.dumps(described))
    merged = python(BENCH / "merge.py", folder / "overhead.json", *tmp_path.glob("bars-*.json"))
    assert merged.returncode == 0, merged.stderr
    return folder


def test_render(results):
    page = results.with_suffix(".md")
    file = results / "perf-2-xccl.json"
    run = json.loads(file.read_text())
    run["results"][0]["avg_us"] = 2742.9  # a busy machine may take as long
    file.write_text(json.dumps(run))
    check = ["--folder", results.parent, "--check"]
    assert python(RENDER, *check).returncode == 1
    assert not page.exists()
    assert python(RENDER, "--folder", results.parent).returncode == 0
    text = page.read_text()
    assert "### allreduce, 2 ranks" in text and "### bcast, 2 ranks" in text
    assert "verified: yes" in text and "simulated (cuda:2)" in text
    assert "| 2,743 | direct |" in text
    for us in (r["avg_us"] for r in run["results"]):
        assert (f"| {us:.1f} | direct |" if us < 1000 else f"| {us:,.0f} | direct |") in text
    assert text.count("| start | 1 | 1.5 | 0.5 ms | 1 ms | met |") == 2
    assert python(RENDER, *check).returncode == 0
    page.write_text(text + "edited\n")
    ended = python(RENDER, *check)
    assert (ended.returncode, "set.md" in ended.stdout) == (1, True)


def test_failed_runs_are_not_rendered(results):
    file = results / "perf-2-mpi.json"
    run = json.loads(file.read_text())
    run["passed"] = False
    file.write_text(json.dumps(run))
    ended = python(RENDER, "--folder", results.parent)
    assert ended.returncode == 1
    assert "perf-2-mpi.json" in ended.stderr and "failed" in ended.stderr


def test_summary(results):
    ended = python(BENCH / "summary.py", results)
    assert ended.returncode == 0, ended.stderr
    assert "paths of route xccl on 2 GPUs: direct" in ended.stdout
    assert "0 not verified" in ended.stdout
    assert ended.stdout.count("start ") == 2


def test_committed_pages_are_up_to_date():
    ended = python(RENDER, "--check")
    assert ended.returncode == 0, ended.stdout + ended.stderr
