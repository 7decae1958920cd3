# SPDX-License-Identifier: BSD-3-Clause
import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "ci"))

import easybuild_sandbox  # noqa: E402 (found through the line above)


@pytest.fixture(scope="session")
def easybuild():
    """The sandbox; skips, or fails where XCCL_REQUIRE_EASYBUILD=1, when something is missing."""
    missing = easybuild_sandbox.missing()
    if missing and os.environ.get("XCCL_REQUIRE_EASYBUILD") == "1":
        pytest.fail(missing)
    if missing:
        pytest.skip(missing)
    return easybuild_sandbox
