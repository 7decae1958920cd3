# SPDX-License-Identifier: BSD-3-Clause
"""What ci/test leaves out of tests with many variations: combinations of values, and no value."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[1]
# Collecting takes long: one collection, and what conftest.py leaves out of it for each kind of run.
# Prints each test that would be run: its name, and each parameter's value.
PLUGIN = """
import json, os, re
from pathlib import Path
from types import SimpleNamespace

def told(kind, items):
    for item in items:
        callspec = getattr(item, "callspec", None)
        params = callspec.params if callspec else {}
        params = {k: re.sub(" at 0x[0-9a-f]+", "", repr(v)) for k, v in params.items()}
        marks = [mark.name for mark in item.iter_markers()]
        print("item", json.dumps([kind, item.nodeid.split("[")[0], params, marks]))

def pytest_collection_finish(session):
    plugins = session.config.pluginmanager.get_plugins()
    chooser = next(plugin for plugin in plugins if hasattr(plugin, "beyond_each_value"))
    config = SimpleNamespace(
        option=SimpleNamespace(markexpr="not thorough"),
        hook=SimpleNamespace(pytest_deselected=lambda items: None),
    )
    everything = [item for item in session.items if not item.get_closest_marker("thorough")]
    told("everything", everything)
    for kind, build, beside in json.loads(os.environ["KINDS"]):
        items = list(everything)
        chooser.BUILD = Path(build)
        os.environ["XCCL_TEST_BESIDE"] = beside
        chooser.pytest_collection_modifyitems(config, items)
        told(kind, items)
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The tests of each kind of run; everything: without what ci/test thorough alone has."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "printing.py").write_text(PLUGIN)
    builds = {name: folder / name for name in ("release", "asan")}
    for build in builds.values():
        build.mkdir()
    (builds["asan"] / "CMakeCache.txt").write_text("XCCL_SANITIZE:BOOL=ON\n")
    kinds = [("released", "release", ""), ("sanitized", "asan", ""), ("beside", "release", "asan")]
    command = [sys.executable, "-m", "pytest", "-p", "printing", "--collect-only", "-q"]
    env = {
        **os.environ,
        "PYTHONPATH": str(folder),
        "XCCL_TEST_BUILD": str(builds["release"]),
        "KINDS": json.dumps([(kind, str(builds[build]), beside) for kind, build, beside in kinds]),
    }
    env.pop("XCCL_TEST_BESIDE", None)
    done = subprocess.run(
        [*command, "libxccl/test"],
        cwd=TOP,
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = {}
    for line in done.stdout.splitlines():
        if line.startswith("item "):
            kind, *item = json.loads(line.split(" ", 1)[1])
            found.setdefault(kind, []).append(item)
    return found


def values(items):
    return {(name, key, value) for name, params, _ in items for key, value in params.items()}


def test_release_has_every_value(runs):
    quick, everything = runs["released"], runs["everything"]
    assert values(quick) == values(everything)
    assert {name for name, _, _ in quick} == {name for name, _, _ in everything}
    assert len(quick) < len(everything)
    unmarked = [item for item in everything if "each_value" not in item[2]]
    assert len([item for item in quick if "each_value" not in item[2]]) == len(unmarked)


def test_sanitizers_have_every_value(runs):
    """Of all that such a build is to run."""
    quick = runs["sanitized"]
    wanted = [
        (name, params, marks)
        for name, params, marks in runs["everything"]
        if "release_only" not in marks and not {"'mpich'", "'openmpi5'"} & set(params.values())
    ]
    assert values(quick) == values(wanted)
    assert {name for name, _, _ in quick} == {name for name, _, _ in wanted}


def exactly(item):
    name, params, _ = item
    return name, frozenset(params.items())


def test_both_builds_together_miss_nothing(runs):
    """Beside the sanitizers' run, release's leaves out some of Open MPI's that run there, and keeps MPICH's."""
    beside = runs["beside"]
    left_out = {exactly(item) for item in runs["released"]} - {exactly(item) for item in beside}
    assert len(left_out) > 100
    assert left_out <= {exactly(item) for item in runs["sanitized"]}
    kept = {exactly(item) for item in beside}
    for name, params in left_out:
        twin = {(key, value.replace("'openmpi'", "'mpich'")) for key, value in params}
        assert twin != params and (name, frozenset(twin)) in kept
