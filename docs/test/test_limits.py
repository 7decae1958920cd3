# SPDX-License-Identifier: BSD-3-Clause
"""Calls of which the documentation says that they go to MPI as they are."""

import re
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("page", "prefix", "calls"),
    [
        ("rules", "MPIX_Comm_", ["revoke", "shrink", "agree"]),
        ("messages", "MPIX_Stream_", ["send", "recv", "isend", "irecv"]),
    ],
)
def test_calls_that_are_not_served(page, prefix, calls):
    """Once the library has one of them, its line has to go."""
    text = (TOP / f"docs/use/{page}.md").read_text(encoding="utf-8")
    (said,) = re.findall(r"(?m)^- .*as they are.*$", text)
    assert re.findall(rf"`{prefix}(\w+)`", said) == calls
    served = (TOP / "libxccl/src/libxccl-mpi.symbols").read_text(encoding="utf-8").split()
    assert "MPIX_Stream_create" in served and not {prefix + call for call in calls} & set(served)
