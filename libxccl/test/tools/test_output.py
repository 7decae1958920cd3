# SPDX-License-Identifier: BSD-3-Clause
"""A tool whose output cannot be written says so, and does not end as if all were well."""

import pytest

COMMANDS = [
    ["xccl-info"],
    ["xccl-info", "--help"],
    ["xccl-bind", "--plan"],
    ["xccl-perf", "--mem", "host", "--max", "4", "--iters", "1"],
    ["xccl-perf", "--version"],
    ["xccl-tune", "--help"],
    ["xccl-doctor", "--list"],
    ["xccl-compare", "--help"],
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_full_disk(stage, words):
    line = f'"$0" {" ".join(words[1:])} >/dev/full'
    ended = stage.run("/bin/sh", "-c", line, stage.bin / words[0])
    assert (ended.status, ended.out) == (1, "")
    assert f"{words[0]}: the output: " in ended.err


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_full_disk_of_the_script(stage, option):
    """The shell's own words, as nothing is forked for it; but no success."""
    ended = stage.run("/bin/sh", "-c", f'"$0" {option} >/dev/full', stage.bin / "xccl-run")
    assert ended.status == 1 and ended.err


def test_locale_without_utf8(stage):
    """Letters that the locale does not have are escaped. It is no traceback."""
    env = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    ended = stage.tool("xccl-doctor", "--explain", "gtl-missing", env=env).good()
    assert "load craype-accel-\\u2026 before" in ended.out
