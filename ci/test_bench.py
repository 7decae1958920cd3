# SPDX-License-Identifier: BSD-3-Clause
"""The table of ci/bench says which bars were met, missed and not measured, and ends as it says."""

import subprocess
from pathlib import Path

import pytest

REPORT = Path(__file__).resolve().parent / "bench-report"
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
