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


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_closed_output(stage, words):
    """Where something is printed before MPI opens files of its own, one of which would be the output."""
    if "--mem" in words:
        pytest.skip("started with MPI")
    line = f'"$0" {" ".join(words[1:])} >&-'
    ended = stage.run("/bin/sh", "-c", line, stage.bin / words[0])
    assert (ended.status, ended.out) == (1, "")
    assert ended.err == f"{words[0]}: the output: Bad file descriptor\n"


def test_closed_output_of_a_measurement(stage, tmp_path):
    """Refused before anything is measured."""
    line = '"$0" --output out --dry-run -- mpirun -n 2 >&-'
    ended = stage.run("/bin/sh", "-c", line, stage.bin / "xccl-compare", cwd=tmp_path)
    assert (ended.status, ended.err.splitlines()[-1]) == (
        1,
        "xccl-compare: the output: Bad file descriptor",
    )


@pytest.mark.parametrize("to", ["/dev/full", "&-"])
@pytest.mark.parametrize("option", ["--help", "--version"])
def test_output_of_the_script(stage, option, to):
    """In the words of the other tools, not in those of the shell or of cat."""
    ended = stage.run("/bin/sh", "-c", f'"$0" {option} >{to}', stage.bin / "xccl-run")
    assert ended.status == 1
    assert ended.err == "xccl-run: the output: not all of it could be written\n"


def test_locale_without_utf8(stage):
    """Letters that the locale does not have are escaped. It is no traceback."""
    env = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    ended = stage.tool("xccl-doctor", "--explain", "gtl-missing", env=env).good()
    assert "load craype-accel-\\u2026 before" in ended.out
