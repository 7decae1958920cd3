# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures of the tests of xccl-compare: a made-up installation, and Matplotlib where it is."""

import os
from pathlib import Path

import pytest
from compare_world import TOP, World


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


@pytest.fixture(scope="session")
def plots():
    """Matplotlib's folder, which is on nobody's path."""
    folder = Path(os.environ.get("XCCL_TEST_PLOTS", TOP / ".venv/plots"))
    if not (folder / "matplotlib").is_dir():
        pytest.skip(f"no Matplotlib in {folder}; ci/bootstrap test installs it")
    return str(folder)


@pytest.fixture(scope="session")
def fonts(tmp_path_factory):
    """Where Matplotlib notes, once, which fonts there are."""
    return str(tmp_path_factory.mktemp("fonts"))
