# SPDX-License-Identifier: BSD-3-Clause
"""Debian's applications on two nodes, with their heap on devices: as without xccl."""

import json
import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hosts import HostsMpi

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "applications"))

from test_applications import APPLICATIONS, need, run  # noqa: E402


@pytest.fixture
def shared_folder(build):
    """One that all hosts see: each has a /tmp of its own."""
    folder = Path(tempfile.mkdtemp(dir=build.folder))
    yield folder
    shutil.rmtree(folder)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["lammps", "hpcc"])
def test_application_on_two_nodes(openmpi, nodes, shared_folder, name):
    """Messages of one node are fetched, those between nodes are staged, in one communicator."""
    app, file = replace(APPLICATIONS[name], ranks="2+2"), shared_folder / "profile.json"
    need(app, openmpi)
    heap = openmpi.build.programs / "libdevice_heap.so"
    across = HostsMpi(openmpi, nodes)
    expected, _ = run(app, across, shared_folder / "plain", None, sim=None, preload=False)
    env = {"XCCL_MEMORY": "mixed", "XCCL_PROFILE": str(file)}
    lines, result = run(app, across, shared_folder / "device", heap, env=env)
    assert sorted(lines) == sorted(expected)
    assert len(result.lines(r"^device heap: \d+ blocks")) == 4, result.out
    rows = json.loads(file.read_text())["rows"]
    assert {row["call"] for row in rows if row["memory"] == "cuda"} >= app.calls
    assert {"fetched", "mpi-staged"} <= {row["path"] for row in rows}, rows
