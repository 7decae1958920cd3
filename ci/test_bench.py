# SPDX-License-Identifier: BSD-3-Clause
"""The table of ci/bench says which bars were met, missed and not measured, and ends as it says."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

CI = Path(__file__).resolve().parent
REPORT = CI / "bench-report"
MET = "bar|process start|2|2.1|0.1|1|ms|met"
MISSED = "bar|launch|1|13|12|10|ms|MISSED"
SKIPPED = "bar|device memory|||||no GPU here|not measured"
INFORMATION = "bar|read by hwloc|1|13|12|-|ms|-"


def report(tmp_path, *lines):
    file = tmp_path / "bars.txt"
    file.write_text("".join(f"{line}\n" for line in lines))
    return subprocess.run([REPORT, file], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("lines", "status", "summary"),
    [
        ([MET, INFORMATION], 0, "bars: 1 met, 0 missed, 0 not measured; figures without a bar: 1"),
        ([MET, SKIPPED], 0, "bars: 1 met, 0 missed, 1 not measured; figures without a bar: 0"),
        ([MISSED, MET], 1, "missed: launch"),
        ([SKIPPED], 0, "device memory" + " " * 46 + "not measured: no GPU here"),
    ],
)
def test_summary(tmp_path, lines, status, summary):
    done = report(tmp_path, *lines)
    assert done.returncode == status, done.stdout + done.stderr
    assert summary in done.stdout.splitlines()


@pytest.mark.parametrize("line", [MET.replace("met", "good"), MET + "|", "process start"])
def test_unknown_verdict(tmp_path, line):
    """A program that speaks another language than the table is not read as one that has met its bar."""
    done = report(tmp_path, MET, line)
    assert done.returncode == 2 and "line 2 is no bar" in done.stderr


@pytest.fixture
def tree(tmp_path):
    """ci/bench with programs that measure nothing: each prints the bar of $VERDICT, and ends with $STATUS."""
    (tmp_path / "ci").mkdir()
    for name in ("bench", "bench-report", "lib.sh"):
        shutil.copy(CI / name, tmp_path / "ci")
    programs = [tmp_path / "libxccl/bench/launch_overhead"]
    for name in ("start_overhead", "host_overhead-openmpi", "message_overhead-openmpi"):
        programs.append(tmp_path / "build/bench/build/bench" / name)
    for program in programs:
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text('#!/bin/sh\necho "bar|$0|1|2|1|5|us|$VERDICT"; exit $STATUS\n')
        program.chmod(0o755)
    (tmp_path / "ci/build").write_text("#!/bin/sh\n")
    (tmp_path / "ci/build").chmod(0o755)
    (tmp_path / "ci/mpi.sh").write_text(
        "choose_mpi() { family=openmpi; }\n"
        "count_devices() { devices=0; }\n"
        'ranks() { for word; do [ ! -x "$word" ] || program=$word; done; "$program"; }\n'
    )
    return tmp_path


def bench(tree, verdict, status):
    env = {**os.environ, "VERDICT": verdict, "STATUS": str(status)}
    env.pop("BUILD_DIR", None)
    return subprocess.run(
        [tree / "ci/bench"], env=env, capture_output=True, text=True, timeout=300, check=False
    )


def test_all_met(tree):
    done = bench(tree, "met", 0)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "bars: 6 met, 0 missed, 3 not measured" in done.stdout


def test_one_missed(tree):
    done = bench(tree, "MISSED", 1)
    assert done.returncode == 1 and "a bar is missed" in done.stderr
    assert "bars: 0 met, 6 missed, 3 not measured" in done.stdout


def test_a_program_that_fails_has_missed_nothing(tree):
    done = bench(tree, "met", 9)
    assert done.returncode == 1 and "exit status 9 of: " in done.stderr
    assert "a bar is missed" not in done.stderr
