# SPDX-License-Identifier: BSD-3-Clause
"""What `make install` gives, for the tests: the build under test installed into a folder, without a packager."""

import functools
import os
import subprocess
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
SITE = "sim"


def build_folder():
    """The build under test: XCCL_TEST_BUILD, as ci/test sets it; None without one."""
    value = os.environ.get("XCCL_TEST_BUILD")
    folder = Path(value) if value else TOP / "build" / "release"
    return folder if (folder / "CMakeCache.txt").exists() else None


def missing():
    """Why there is nothing to install, as a sentence; empty if there is."""
    if not build_folder():
        return "nothing is built: run ci/build build/release, or set XCCL_TEST_BUILD to a build folder"
    return ""


@functools.lru_cache(maxsize=None)
def install(prefix):
    """Install into @p prefix and return it."""
    for command in (
        ["cmake", "--install", build_folder(), "--prefix", prefix],
        [TOP / "ci" / "install-packaged", "--site", SITE, prefix],
    ):
        subprocess.run(command, check=True, capture_output=True)
    return prefix
