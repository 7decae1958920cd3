# SPDX-License-Identifier: BSD-3-Clause
"""What pages quote: variables, options of tools."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
DOCS = TOP / "docs"


@pytest.fixture(scope="module")
def variables():
    build = os.environ.get("XCCL_TEST_BUILD")
    if not build:
        pytest.skip("XCCL_TEST_BUILD names no build; ci/test sets it")
    done = subprocess.run(
        [f"{build}/stage/bin/xccl-info", "--json"], capture_output=True, text=True, check=False
    )
    return {row["name"] for row in json.loads(done.stdout)["configuration"]}


def test_variables_exist(variables):
    """Every XCCL_ variable that a hand-written page names is one, or belongs to another part."""
    others = re.compile(
        r"XCCL_(SIM|SITES|ENV|TEST|SPACK|MPICC|CCL_PATH|NVCC|HIPCC|CUDA_ARCHS|HIP_ARCHS|SANITIZE|TESTS|REQUIRE)"
        # What module systems set.
        r"|XCCL_(DIR|HOME|BASE|INC|INCLUDE|LIB|BIN)$"
        # Macros of the API.
        r"|XCCL_(CONFIG|UNIQUE_ID|COMM_NULL|SPLIT|VERSION|MAJOR|MINOR|PATCH|API|EXPORT|$)"
    )
    pages = [path for path in DOCS.rglob("*.md") if "reference" not in path.parts]
    unknown = {
        f"{path.relative_to(DOCS)}: {name}"
        for path in [*pages, TOP / "README.md"]
        for name in re.findall(r"\bXCCL_[A-Z0-9_]*[A-Z0-9]", path.read_text(encoding="utf-8"))
        if name not in variables and not others.match(name)
    }
    assert len(pages) > 30
    assert not unknown


def descriptions():
    """Every file that says what xccl is, where nothing stands beside it: in a list of packages, for instance."""
    yield from (
        TOP / name
        for name in ("README.md", "docs/index.md", "Makefile", "mkdocs.yml", "CITATION.cff")
    )
    yield from (TOP / "libxccl/tools/man").glob("xccl.7")
    yield from (TOP / "modulefiles/xccl").glob("*.lua")
    yield from (TOP / "easyconfigs").glob("**/xccl/xccl-*.eb")
    yield from (TOP / "spack-repo").glob("**/packages/xccl/package.py")


def test_xccl_is_described_alike():
    """By the first sentence of the README; what xccl is must not depend on where one reads of it."""
    sentence = re.search(r"^\*\*xccl (.*?)\.\*\*$", (TOP / "README.md").read_text(), re.M)[1]
    found = list(descriptions())
    assert len(found) > 20
    for path in found:
        text = " ".join(path.read_text(encoding="utf-8").split())
        assert sentence in text, f"{path.relative_to(TOP)} does not say: xccl {sentence}"


def commands():
    """(page, command) of every srun in a block of a hand-written page that starts ranks on GPUs."""
    pages = [*DOCS.rglob("*.md"), TOP / "README.md"]
    for page in (page for page in pages if page.parent != DOCS / "sites"):
        for block in re.findall(r"```sh\n(.*?)```", page.read_text(encoding="utf-8"), re.S):
            for line in block.splitlines():
                if re.search(r"\bsrun\b.*--gpus-per-node", line) and "xccl-doctor" not in line:
                    yield page.relative_to(TOP), line


def test_commands_ask_for_cores():
    """Where jobs share a node, Slurm gives a task one core unless it is asked for more."""
    found = list(commands())
    assert len(found) >= 6
    assert [one for one in found if "--cpus-per-task=" not in one[1]] == []


def test_signals_go_to_the_ranks():
    """scancel's --batch takes no value, and means the batch script instead of the ranks."""
    text = (DOCS / "use/troubleshooting.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"`scancel ([^`]*)`", text)
    assert command == "--signal=USR1 <jobid>"
