# SPDX-License-Identifier: BSD-3-Clause
"""What the documentation takes from elsewhere is what it was taken from."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[1]


def test_rendering_without_an_environment_says_what_makes_it(tmp_path):
    """In a fresh clone."""
    (tmp_path / "ci").mkdir()
    for name in ("render-reference", "lib.sh"):
        shutil.copy(TOP / "ci" / name, tmp_path / "ci" / name)
    done = subprocess.run(
        [tmp_path / "ci/render-reference"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "no Python environment: ci/bootstrap test makes it" in done.stderr


def test_variables_page():
    """docs/reference/variables.md lists what the library says."""
    build = os.environ.get("XCCL_TEST_BUILD")
    if not build:
        pytest.skip("XCCL_TEST_BUILD names no build; ci/test sets it")
    done = subprocess.run(
        [TOP / "ci/render-reference", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
