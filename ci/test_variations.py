# SPDX-License-Identifier: BSD-3-Clause
"""What ci/test leaves out of tests with many variations: combinations of values, and no value."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[1]
# Prints each test that would be run: its name, and each parameter's value.
PLUGIN = """
import json, re

def pytest_collection_finish(session):
    for item in session.items:
        callspec = getattr(item, "callspec", None)
        params = callspec.params if callspec else {}
        params = {k: re.sub(" at 0x[0-9a-f]+", "", repr(v)) for k, v in params.items()}
        marks = [mark.name for mark in item.iter_markers()]
        print("item", json.dumps([item.nodeid.split("[")[0], params, marks]))
"""


def collect(tmp_path, expression, build, **settings):
    (tmp_path / "printing.py").write_text(PLUGIN)
    command = [sys.executable, "-m", "pytest", "-p", "printing", "--collect-only", "-q"]
    command += ["-m", expression, "libxccl/test"]
    env = {**os.environ, "PYTHONPATH": str(tmp_path), "XCCL_TEST_BUILD": str(build)}
    env.pop("XCCL_TEST_BESIDE", None)
    env.update(settings)
    env["PYTHONHASHSEED"] = "0"  # sets are printed alike
    done = subprocess.run(
        command, cwd=TOP, env=env, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return [
        json.loads(line.split(" ", 1)[1])
        for line in done.stdout.splitlines()
        if line.startswith("item ")
    ]


def values(items):
    return {(name, key, value) for name, params, _ in items for key, value in params.items()}


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    """Without what ci/test thorough alone has."""
    folder = tmp_path_factory.mktemp("everything")
    items = collect(folder, "", folder)
    return [item for item in items if "thorough" not in item[2]]


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    folder = tmp_path_factory.mktemp("released")
    return collect(folder, "not thorough", folder)


def test_release_has_every_value(everything, released):
    quick = released
    assert values(quick) == values(everything)
    assert {name for name, _, _ in quick} == {name for name, _, _ in everything}
    assert len(quick) < len(everything)
    unmarked = [item for item in everything if "each_value" not in item[2]]
    assert len([item for item in quick if "each_value" not in item[2]]) == len(unmarked)


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sanitized")
    (folder / "CMakeCache.txt").write_text("XCCL_SANITIZE:BOOL=ON\n")
    return collect(folder, "not thorough", folder)


def test_sanitizers_have_every_value(everything, sanitized):
    """Of all that such a build is to run."""
    quick = sanitized
    wanted = [
        (name, params, marks)
        for name, params, marks in everything
        if "release_only" not in marks and not {"'mpich'", "'openmpi5'"} & set(params.values())
    ]
    assert values(quick) == values(wanted)
    assert {name for name, _, _ in quick} == {name for name, _, _ in wanted}


def exactly(item):
    name, params, _ = item
    return name, frozenset(params.items())


def test_both_builds_together_miss_nothing(tmp_path, released, sanitized):
    """Beside the sanitizers' run, release's leaves out some of Open MPI's that run there, and keeps MPICH's."""
    beside = collect(tmp_path, "not thorough", tmp_path, XCCL_TEST_BESIDE="asan")
    left_out = {exactly(item) for item in released} - {exactly(item) for item in beside}
    assert len(left_out) > 100
    assert left_out <= {exactly(item) for item in sanitized}
    kept = {exactly(item) for item in beside}
    for name, params in left_out:
        twin = {(key, value.replace("'openmpi'", "'mpich'")) for key, value in params}
        assert twin != params and (name, frozenset(twin)) in kept
