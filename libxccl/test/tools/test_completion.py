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


@pytest.mark.parametrize(("line", "wanted"), ASKED)
def test_bash(line, wanted):
    tool, *words = line.split(" ")
    given = " ".join(f"'{word}'" for word in words)
    script = (
        f". {COMPLETION}/bash/{tool}\nCOMP_WORDS=({tool} {given}) COMP_CWORD={len(words)}\n"
        f"_{tool.replace('-', '_')}\nprintf '%s\\n' \"${{COMPREPLY[@]}}\""
    )
    assert wanted in run("bash", "-c", script).split()


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
