# SPDX-License-Identifier: BSD-3-Clause
"""Each stage fails where one of its commands does, and together they run all tests: with stand-ins for those."""

import re
import shutil
from pathlib import Path

import pytest
from test_ci import stages
from test_runners import GOOD, STAND_IN, copied, program, run

TOP = Path(__file__).resolve().parents[1]
# Writes down its name and arguments; the call with the number $FAIL_AT fails.
NOTED = """#!/bin/sh
case $0 in *eb) exit 0 ;; esac
echo "${0##*/} $*" >>"$CALLED"
[ "$(wc -l <"$CALLED")" != "$FAIL_AT" ]
"""
STAGES = [stage for stage in stages() if stage not in ("gpu", "aarch64")]


@pytest.fixture
def tree(tmp_path):
    """ci/run, and the scripts of its stages that call pytest themselves."""
    copied(tmp_path, "run", "lib.sh", "spack", "easybuild", "docs")
    names = ["ci/build", "ci/lint", "ci/test", "ci/dist", "ci/bootstrap", "bin/ctest", "bin/eb"]
    for name in [*names, "bin/make", ".venv/bin/python", ".venv/bin/mkdocs"]:
        program(tmp_path / name, NOTED)
    return tmp_path


def calls(tree, *command, fail_at=0, bootstrap="no"):
    """The status, and what was called."""
    called = tree / "called"
    called.unlink(missing_ok=True)
    env = {"CALLED": str(called), "FAIL_AT": str(fail_at), "SPACK_PYTHON": "python3"}
    status, out = run(tree, *command, BOOTSTRAP=bootstrap, **env)
    return status, called.read_text().splitlines() if called.exists() else out


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_fails_with_each_command(tree, stage):
    status, called = calls(tree, "ci/run", stage)
    assert status == 0 and called, called
    for number, command in enumerate(called, 1):
        status, _ = calls(tree, "ci/run", stage, fail_at=number)
        assert status != 0, command


@pytest.mark.parametrize("stage", ["unit", "modules", "slurm", "spack", "easybuild"])
def test_shells_and_lmod_are_installed(tree, stage):
    """Where tests run in them; without them those skip."""
    assert calls(tree, "ci/run", stage, bootstrap="yes")[1][0] == "bootstrap build test sites"


def test_no_mpi_is_missing(tree):
    """In the stage of MPI, what is not there fails (mpi_harness.py)."""
    program(tree / ".venv/bin/python", '#!/bin/sh\necho "$XCCL_REQUIRE_MPI" >>"$CALLED"\n')
    required = calls(tree, "ci/run", "mpi")[1][-1]
    assert set(required.split(",")) == {"openmpi", "mpich", "openmpi5", "mpich43"}


def test_what_every_system_can_call(tree):
    """.ci/run is for those that know no stages."""
    (tree / ".ci").mkdir()
    shutil.copy2(TOP / ".ci/run", tree / ".ci")
    status, called = calls(tree, ".ci/run")
    assert (status, called) == (0, ["bootstrap ", "make lint", "make demo", "make test"])
    for number, command in enumerate(called, 1):
        assert calls(tree, ".ci/run", fail_at=number)[0] != 0, command


def test_both_sanitizers(tree):
    """One call of ci/test for each, and both run where the first fails."""
    for fail_at in (0, 1):
        assert calls(tree, "ci/run", "sanitizers", fail_at=fail_at)[1] == [
            "test asan",
            "test tsan",
        ]


def test_reports_of_both_sanitizers(tree):
    report = 'rm -rf build/reports; mkdir -p build/reports; echo "$1" >"build/reports/$1.xml"\n'
    program(tree / "ci/test", "#!/bin/sh\n" + report)
    assert calls(tree, "ci/run", "sanitizers")[0] == 0
    assert sorted(file.name for file in (tree / "build/reports").glob("*.xml")) == [
        "asan.xml",
        "tsan.xml",
    ]


def folders_of_tests():
    """testpaths, and those of libxccl/test one by one; but what real GPUs alone can run."""
    named = re.search(r"testpaths = \[(.*)\]", (TOP / "pyproject.toml").read_text())[1]
    found = [TOP / path for path in re.findall(r'"([^"]+)"', named) if path != "libxccl/test"]
    found += [path for path in (TOP / "libxccl/test").iterdir() if path.is_dir()]
    return {
        path.relative_to(TOP).as_posix()
        for path in found
        if path.name not in ("device", "__pycache__")
    }


def of_ctest(folder):
    return (TOP / folder / "CMakeLists.txt").exists() and not list(
        (TOP / folder).glob("test_*.py")
    )


def test_all_tests_are_run(tree):
    words, ctests = set(), []
    for stage in STAGES:
        for command in calls(tree, "ci/run", stage)[1]:
            words |= set(command.split()) if command.startswith("python -m pytest") else set()
            ctests += [command] if command.startswith("ctest ") else []
            assert " -k " not in command or stage == "easybuild", command
    by_ctest = {folder for folder in folders_of_tests() if of_ctest(folder)}
    assert len(ctests) == 1 and "--no-tests=error" in ctests[0]
    assert {"libxccl/test/unit", "libxccl/test/api", "libxccl/test/sim"} == by_ctest
    assert folders_of_tests() - by_ctest <= words


@pytest.fixture
def aarch64(tmp_path):
    """ci/aarch64 with its system root in place, and stand-ins for what it builds and runs with."""
    copied(tmp_path, "aarch64", "lib.sh", "summary.py")
    names = ["qemu-aarch64", "dpkg", "mpirun.openmpi", "mpirun.mpich"]
    names += ["aarch64-linux-gnu-gcc", "aarch64-linux-gnu-g++"]
    for name in [*(f"bin/{name}" for name in names), "ci/build", "build/aarch64/probe"]:
        program(tmp_path / name, "#!/bin/sh\n")
    for name in ("bin/ctest", ".venv/bin/python"):
        program(tmp_path / name, STAND_IN)
    packages = re.search(r"^packages='(.*)'$", (TOP / "ci/aarch64").read_text(), re.M)[1]
    (tmp_path / "build/aarch64/sysroot").mkdir()
    (tmp_path / "build/aarch64/sysroot/packages").write_text(f"{packages}\n")
    return tmp_path


@pytest.mark.parametrize(
    ("ctest", "pytest_", "status"),
    [("0", "0", 0), ("8", "0", 1), ("0", "1", 1), ("0", "5", 1)],
)
def test_aarch64(aarch64, ctest, pytest_, status):
    """Its status for "skipped" is for what is missing only."""
    env = {"CTEST": f"{ctest} {GOOD}", "PYTEST": f"{pytest_} {GOOD}"}
    ended, out = run(aarch64, "ci/aarch64", **env)
    assert ended == status, out
