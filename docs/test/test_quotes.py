# SPDX-License-Identifier: BSD-3-Clause
"""Commands and tables that pages quote: the built-in table, scripts of the pages, options of tools."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
DOCS = TOP / "docs"


def test_builtin_table():
    """docs/use/index.md quotes the table that libxccl-mpi has."""
    source = (TOP / "libxccl/src/decide/decide.c").read_text(encoding="utf-8")
    literal = re.search(r"builtin\[\] =((?:\s*\"[^\"]*\")+);", source).group(1)
    table = "".join(re.findall(r'"([^"]*)"', literal))
    assert f"\n{table}\n" in (DOCS / "use/index.md").read_text(encoding="utf-8")


def test_comparison_of_paths(tmp_path):
    """The script of docs/use/tune.md names the fastest path of each size."""
    page = (DOCS / "use/tune.md").read_text(encoding="utf-8")
    script = re.search(r"<<'END'\n(.*?)^END$", page, re.DOTALL | re.MULTILINE).group(1)
    names = []
    for path, slow in (("direct", 1), ("ccl", 2), ("mpi", 3)):
        rows = [(64, slow * 10.0), (1 << 20, 100.0 / slow)]
        results = [
            {"coll": "bcast", "bytes": size, "avg_us": time, "path": path} for size, time in rows
        ]
        names.append(tmp_path / f"{path}.json")
        names[-1].write_text(json.dumps({"results": results}))
    done = subprocess.run(
        [sys.executable, "-", *names], input=script, capture_output=True, text=True, check=True
    )
    lines = done.stdout.splitlines()
    assert [line.split()[-1] for line in lines] == ["direct", "mpi"]


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
        r"XCCL_(SIM|ENV|TEST|SPACK|MPICC|CCL_PATH|NVCC|HIPCC|CUDA_ARCHS|HIP_ARCHS|SANITIZE|TESTS|REQUIRE)"
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
