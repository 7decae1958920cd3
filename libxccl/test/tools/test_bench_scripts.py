# SPDX-License-Identifier: BSD-3-Clause
"""What turns measurements into pages, docs/benchmarks/render.py, and the Python of bench/."""

import argparse
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.release_only  # nothing in it is compiled

TOP = Path(__file__).resolve().parents[3]
RENDER = TOP / "docs/benchmarks/render.py"
BENCH = TOP / "libxccl/bench"
BAR = {"name": "start", "unit": "ms", "without": 1, "with": 1.5, "measured": 0.5, "limit": 1}


def python(*command, **variables):
    return subprocess.run(
        [sys.executable, *map(str, command)],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
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


# A launcher that runs nothing, and says what a job would: mpiexec ... PROGRAM RUNTIME SEED SIZE ...
LAUNCHER = """#!/bin/sh
case "$*" in *mpi_random-openmpi*) what=calls ;; *) what=messages ;; esac
for word; do
    case $before in cuda | rocm | hpu) [ -n "${seed:-}" ] || seed=$word ;; esac
    before=$word
done
echo "seed $seed"
case "$*" in
    *" LD_LIBRARY_PATH=/stage/lib/xccl/sim/"*) ;;
    *) echo "the launcher may put real drivers first"; exit 1 ;;
esac
case "$broken $*" in
    "asan "*/asan/*) echo "ERROR: libasan.so cannot be preloaded: ignored."; exit 1 ;;
esac
case $seed in
    102) echo "100 $what"; echo "9 checks, 2 failures"; exit 1 ;;
    103) echo "x.c:1:2: runtime error: bad"; echo "a rank died"; exit 139 ;;
    104) exec sleep 60 ;;
esac
echo "100 $what"
echo "9 checks, 0 failures"
"""


@pytest.fixture
def campaign(tmp_path):
    launcher = tmp_path / "mpiexec"
    launcher.write_text(LAUNCHER)
    launcher.chmod(0o755)
    for build in ("release", "asan"):
        folder = tmp_path / build / "test/mpi"
        folder.mkdir(parents=True)
        facts = {
            "families": {"openmpi": {"mpiexec": str(launcher)}},
            **{"stage": "/stage", "programs": f"/{build}/programs", "sanitizer": ""},
        }
        (folder / "mpi-tests.json").write_text(json.dumps(facts))

    def go(seed, *options, **variables):
        file = tmp_path / "campaign.json"
        ended = python(
            *(BENCH / "campaign.py", tmp_path, "--seed", seed, "--cores", 8, "--json", file),
            *options,
            **variables,
        )
        return ended, json.loads(file.read_text())

    return go


def test_campaign(campaign):
    options = ("--seconds", 60, "--calls", 1000, "--messages", 500)
    ended, summary = campaign(500, *options)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    totals = summary["totals"]
    assert summary["reached"] and totals["calls"] >= 1000 and totals["messages"] >= 500
    assert totals["checks"] == 9 * totals["jobs"] == (totals["calls"] + totals["messages"]) * 0.09
    assert {*summary["builds"]} == {"release", "asan"}
    assert summary["failed"] == summary["cut_off"] == []


def test_campaign_of_some_variants(campaign):
    options = ("--seconds", 60, "--calls", 200, "--messages", 0, "--variants", "crowd")
    ended, summary = campaign(500, *options)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert [name.split(" XCCL_")[0] for name in summary["variants"]] == ["mpi_random cuda --crowd"]


def test_campaign_that_finds_something(campaign):
    options = ("--seconds", 60, "--calls", 1000, "--messages", 0, "--timeout", 1)
    ended, summary = campaign(100, *options)
    assert ended.returncode == 1, ended.stdout
    found = {failed["seed"]: failed for failed in summary["failed"]}
    assert {seed: failed["why"] for seed, failed in found.items()} == {
        102: "2 checks failed",
        103: "exit status 139",
        104: "no end after 1.0 s",
    }
    assert found[103]["errors"] == ["x.c:1:2: runtime error: bad"]
    assert "a rank died" in found[103]["tail"] and " 103 " in found[103]["repeat"]
    assert summary["reached"] and summary["totals"]["failed_jobs"] == 3


def test_campaign_with_a_build_that_cannot_run(campaign):
    options = ("--seconds", 60, "--calls", 1000, "--messages", 500)
    ended, summary = campaign(500, *options, broken="asan")
    assert ended.returncode == 1 and summary["reached"]
    assert {*summary["builds"]} == {"release"} and summary["failed"] == []
    assert {*summary["unusable"]} == {"asan"}
    assert "UNUSABLE: asan: exit status 1: ERROR: libasan.so cannot be preloaded" in ended.stdout


@pytest.fixture
def campaign_module():
    spec = importlib.util.spec_from_file_location("campaign", BENCH / "campaign.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def sizes_of(module, length, seconds):
    """What a campaign makes of a job of 100 calls that took `seconds`."""
    arguments = module.read_arguments([".", "--seconds", "1000", "--length", str(length)])
    campaign = module.Campaign(arguments)
    job = argparse.Namespace(
        **{"kind": "calls", "build": "release", "place": 3, "why": None},
        **{"size": 100, "length": seconds},
    )
    campaign.learn(job)
    return campaign.next_size("calls", "release", 3), campaign.next_size("calls", "release", 4)


def test_campaign_makes_jobs_as_long_as_asked_for(campaign_module):
    assert sizes_of(campaign_module, 10, 5.0) == (200, 100)
    assert sizes_of(campaign_module, 10, 40.0) == (25, 12)
    assert sizes_of(campaign_module, 10, 0.1) == (800, 400)


def test_campaign_begins_with_few_large_calls(campaign_module):
    arguments = campaign_module.read_arguments([".", "--seconds", "1000"])
    places = [
        place
        for place, (_, options, _) in enumerate(arguments.chosen["calls"])
        if "--large" in options
    ]
    campaign = campaign_module.Campaign(arguments)
    first = campaign.next_size("calls", "release", 0)
    assert places and first > 100
    campaign.sizes["calls", "release", places[0]] = 30
    assert campaign.next_size("calls", "release", places[1]) == 15
    assert campaign.next_size("calls", "release", 0) == first


def test_campaign_out_of_time(campaign):
    ended, summary = campaign(104, "--seconds", 5, "--calls", 100000, "--messages", 0)
    assert not summary["reached"]
    assert [job["seed"] for job in summary["cut_off"]] == [104]
    assert ended.returncode == 0 and "1 cut off" in ended.stdout
