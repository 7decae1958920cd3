# SPDX-License-Identifier: BSD-3-Clause
"""An installed tree for the tests of scripts and modules, made by the installer itself."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(Path(__file__).parent), str(TOP / "site-configs" / "tools")]

BUILD = os.path.basename(os.environ.get("XCCL_TEST_BUILD", ""))


def pytest_ignore_collect(collection_path):
    """Nothing here depends on how the library was built: once, with the release, is enough."""
    return True if BUILD == "asan" else None


def fake_library(file):
    """A shared object that the loader accepts, for what only has to be there."""
    file.parent.mkdir(parents=True, exist_ok=True)
    source = file.with_suffix(".c")
    source.write_text("int xccl_fake;\n", encoding="utf-8")
    subprocess.run(["cc", "-shared", "-o", file, source], check=True, timeout=60)
    source.unlink()


def install(prefix, *options):
    """Install scripts and modules below @p prefix, beside stand-ins for the libraries."""
    prefix.mkdir(parents=True)
    fake_library(prefix / "lib/libxccl-mpi.so")
    for family in ("openmpi", "mpich"):
        target = prefix / f"lib/xccl/libxccl-mpi-{family}.so"
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(prefix / "lib/libxccl-mpi.so", target)
    (prefix / "bin").mkdir()
    subprocess.run([TOP / "ci/install-tree", *options, prefix], check=True, timeout=60)
    return prefix


@pytest.fixture(scope="session")
def prefix(tmp_path_factory):
    """The installed tree."""
    return install(tmp_path_factory.mktemp("tree") / "xccl")


@pytest.fixture(scope="session")
def sites():
    """{name: what site.json says}, for the expectations."""
    files = sorted((TOP / "site-configs").glob("*/site.json"))
    return {file.parent.name: json.loads(file.read_text(encoding="utf-8")) for file in files}
