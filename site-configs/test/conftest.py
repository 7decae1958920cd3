# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of site files, scripts and modules share."""

import json
import os
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tools")]

from site_lmod import lmod, stack  # noqa: E402, F401 (fixtures)
from site_tree import TOP, install  # noqa: E402

BUILD = os.path.basename(os.environ.get("XCCL_TEST_BUILD", ""))


def pytest_ignore_collect(collection_path):
    """Nothing here depends on how the library was built: once, with the release, is enough."""
    return True if BUILD == "asan" else None


@pytest.fixture(scope="session")
def prefix(tmp_path_factory):
    """The installed tree."""
    return install(tmp_path_factory.mktemp("tree") / "xccl")


@pytest.fixture(scope="session")
def sites():
    """{name: what site.json says}, for the expectations."""
    files = sorted((TOP / "site-configs").glob("*/site.json"))
    return {file.parent.name: json.loads(file.read_text(encoding="utf-8")) for file in files}
