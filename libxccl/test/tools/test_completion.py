# SPDX-License-Identifier: BSD-3-Clause
"""Completion for bash, zsh and fish: made from one table with the options of each tool, and working in its shell."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

# Nothing here is compiled: the sanitizers have nothing to find.
pytestmark = pytest.mark.release_only

COMPLETION = Path(__file__).resolve().parents[2] / "tools/completion"
TOOLS = yaml.safe_load((COMPLETION / "options.yaml").read_text())["tools"]
# A word to complete behind a tool, and what must be among the answers.
ASKED = [
    ("xccl-perf --coll allreduce,bc", "allreduce,bcast"),
    ("xccl-perf --faces c", "contiguous"),
    ("xccl-tune --mem ", "managed"),
    ("xccl-doctor --rou", "--route"),
    ("xccl-info --dev", "--devices"),
    ("xccl-run --bind ", "hwloc"),
]


def needs(shell):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_rendered():
    run(sys.executable, COMPLETION / "render.py", "--check")


@pytest.mark.parametrize("tool", sorted(TOOLS))
def test_the_table_has_the_options_of_help(stage, tool):
    text = re.sub(r" -- .*", "", stage.tool(tool, "--help").good().out)  # a launcher's own options
    shown = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text))
    assert set(TOOLS[tool]["options"]) == shown


def in_bash(tool, words, before=""):
    given = " ".join(f"'{word}'" for word in words)
    script = (
        f"{before}. {COMPLETION}/bash/{Path(tool).name}\nCOMP_WORDS=({tool} {given}) COMP_CWORD={len(words)}\n"
        f"_{Path(tool).name.replace('-', '_')}\nprintf '%s\\n' \"${{COMPREPLY[@]}}\""
    )
    return run("bash", "-c", script).split()


@pytest.mark.parametrize(("line", "wanted"), ASKED)
def test_bash(line, wanted):
    tool, *words = line.split(" ")
    assert wanted in in_bash(tool, words)


@pytest.mark.parametrize(
    ("words", "answers"),
    [
        (["--sim", "rocm"], ["rocm:4", "rocm:8"]),
        (["--sim", "rocm", ":"], ["4", "8"]),
        (["--sim", "rocm", ":", "4"], ["4"]),
        (["--sim", "=", "rocm", ":"], ["4", "8"]),
        (["--gpus", "="], ["all", "first", "only"]),
        (["--gpus", "=", "f"], ["first"]),
    ],
)
def test_words_that_bash_parts(words, answers):
    """At colons and equals signs; an answer takes the place of what stands behind them."""
    assert in_bash("xccl-run", words) == answers


@pytest.mark.parametrize(
    ("words", "at"), [(["--sim", "cuda", ":", "4"], 5), (["--sim", "=", "cuda", ":", "4"], 6)]
)
def test_a_command_behind_parted_words(words, at):
    """It is completed as if nothing stood in front of it."""
    offset = "_command_offset() { COMPREPLY=(at $1); }\n"
    assert in_bash("xccl-run", [*words, "mpirun", "--np"], offset) == ["at", str(at)]


def test_sites(stage):
    tool = str(stage.bin / "xccl-run")
    assert in_bash(tool, ["--site", "fron"]) == ["frontier"]
    if shutil.which("fish"):
        start = f"set -x PATH {stage.bin} $PATH; source {COMPLETION}/fish/xccl-run.fish; "
        answers = run("fish", "-N", "-c", start + "complete -C 'xccl-run --site fron'")
        assert answers.split("\t")[0] == "frontier"


@pytest.mark.parametrize(("line", "wanted"), ASKED)
def test_fish(line, wanted):
    needs("fish")
    tool = line.split(" ")[0]
    answers = run(
        "fish", "-N", "-c", f"source {COMPLETION}/fish/{tool}.fish; complete -C '{line}'"
    )
    assert wanted in [answer.split("\t")[0] for answer in answers.splitlines()]


@pytest.mark.parametrize("tool", sorted(TOOLS))
def test_zsh(tool):
    """zsh reads the file, and hands every option to _arguments."""
    needs("zsh")
    script = f'_arguments() {{ print -l -- "$@" }}; . {COMPLETION}/zsh/_{tool}'
    given = re.findall(r"(?m)^(--[a-z-]+)\[", run("zsh", "-f", "-c", script))
    assert set(given) == set(TOOLS[tool]["options"])
