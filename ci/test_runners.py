# SPDX-License-Identifier: BSD-3-Clause
"""ci/test and ci/lint fail where something was not run: with stand-ins for what they call."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[1]
GOOD = '<testsuite><testcase name="one" time="1"/></testsuite>'
BAD = '<testsuite><testcase name="one"><failure/></testcase></testsuite>'
NOT_RUN = '<testsuite><testcase name="one" status="notrun"/></testsuite>'
EMPTY = "<testsuite/>"
# Writes the report that it is asked for, as $CTEST and $PYTEST say: exit status, then text.
STAND_IN = """#!/bin/sh
case $1 in *.py) exec "$PYTHON" "$@" ;; esac
case $0 in *ctest) how=$CTEST ;; *) how=$PYTEST ;; esac
case $* in
    *pytest-release-rest.xml*) how=${REST:-$how} ;;
    *pytest-release-again.xml*) how=${AGAIN:-$how} ;;
esac
while [ $# -gt 1 ]; do
    case $1 in --output-junit | --junitxml) echo "${how#* }" >"$2" ;; esac
    shift
done
exit "${how%% *}"
"""


def program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def copied(folder, *names):
    (folder / "ci").mkdir()
    for name in names:
        shutil.copy2(TOP / "ci" / name, folder / "ci")


def run(folder, *command, **env):
    env = {"PATH": f"{folder}/bin:{os.environ['PATH']}", "PYTHON": sys.executable, **env}
    done = subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, timeout=300, check=False
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def tree(tmp_path):
    """ci/test with nothing to build; its reports are as asked for."""
    copied(tmp_path, "test", "lib.sh", "summary.py")
    program(tmp_path / "ci/build", "#!/bin/sh\n")
    program(tmp_path / "bin/ctest", STAND_IN)
    program(tmp_path / ".venv/bin/python", STAND_IN)
    return tmp_path


@pytest.mark.parametrize(
    ("ctest", "pytest_", "rest", "told"),
    [
        (f"0 {GOOD}", f"0 {GOOD}", f"0 {GOOD}", "3 passed, 0 failed"),
        (f"0 {GOOD}", f"1 {BAD}", f"0 {GOOD}", "2 passed, 1 failed"),
        (f"8 {BAD}", f"0 {GOOD}", f"0 {GOOD}", "2 passed, 1 failed"),
        # nothing collected; interrupted, or an internal error, with what was done until then
        (f"0 {GOOD}", f"0 {GOOD}", f"5 {EMPTY}", "pytest-release-rest: no test was run"),
        (f"0 {GOOD}", f"0 {EMPTY}", f"0 {GOOD}", "pytest-release: no test was run"),
        (f"0 {GOOD}", f"2 {GOOD}", f"0 {GOOD}", "pytest-release: exit status 2, and no failure"),
        (f"0 {GOOD}", f"0 {GOOD}", f"3 {BAD}", "pytest-release-rest: exit status 3"),
        (f"0 {GOOD}", f"1 {GOOD}", f"0 {GOOD}", "pytest-release: exit status 1, and no failure"),
        (f"8 {NOT_RUN}", f"0 {GOOD}", f"0 {GOOD}", "ctest-release: exit status 8, and no failure"),
        (f"0 {EMPTY}", f"0 {GOOD}", f"0 {GOOD}", "ctest-release: no test was run"),
    ],
)
def test_statuses_and_empty_reports(tree, ctest, pytest_, rest, told):
    status, out = run(tree, "ci/test", "release", CTEST=ctest, PYTEST=pytest_, REST=rest)
    assert (status, told in out) == (0 if ", 0 failed" in told else 1, True), out


@pytest.mark.parametrize(
    ("failures", "again", "told"),
    [
        (1, f"0 {GOOD}", "2 passed, 0 failed, 0 skipped, 1 unsteady"),
        (1, f"1 {BAD}", "2 passed, 1 failed, 0 skipped\n"),
        (1, f"3 {GOOD}", "2 passed, 1 failed, 0 skipped\n"),  # an error inside pytest
        (1, f"5 {EMPTY}", "2 passed, 1 failed, 0 skipped\n"),
        (3, f"0 {GOOD}", "2 passed, 2 failed, 0 skipped, 1 unsteady"),  # the others were not run
        (4, f"0 {GOOD}", "2 passed, 4 failed, 0 skipped\n"),
    ],
)
def test_once_more(tree, failures, again, told):
    """A few that fail are run again, and told apart from those that pass at once."""
    names = ["one", "two", "three", "four"][:failures]
    cases = "".join(f'<testcase name="{name}"><failure/></testcase>' for name in names)
    bad, good = f"1 <testsuite>{cases}</testsuite>", f"0 {GOOD}"
    status, out = run(tree, "ci/test", "release", CTEST=good, PYTEST=bad, REST=good, AGAIN=again)
    assert (status, told in out) == (0 if ", 0 failed" in told else 1, True), out
    assert ("Unsteady" in out) == ("unsteady" in told), out


def test_status_of_what_runs_beside(tree):
    """Of release and asan, which run side by side, each has its own."""
    bad, good = f"2 {GOOD}", f"0 {GOOD}"
    status, out = run(tree, "ci/test", CTEST=good, PYTEST=bad, REST=good)
    assert status == 1, out
    for name in ("release", "asan"):
        assert f"  pytest-{name}: exit status 2, and no failure" in out, out
    assert "  pytest-release-rest: exit" not in out, out


def test_report_without_a_status(tmp_path):
    """What wrote it was ended before it could be asked."""
    (tmp_path / "pytest-some.xml").write_text(GOOD)
    status, out = run(tmp_path, sys.executable, TOP / "ci/summary.py", "pytest-some.xml")
    assert status == 1 and "pytest-some: no exit status" in out, out


def test_no_thread_sanitizer(tree):
    """What was asked for by name is not left out; the compiler's words say why."""
    program(tree / "bin/some-cc", "#!/bin/sh\necho cannot find -ltsan >&2\nexit 1\n")
    good = f"0 {GOOD}"
    env = {"CTEST": good, "PYTEST": good, "CC": "some-cc"}
    status, out = run(tree, "ci/test", "asan", "tsan", **env)
    assert status == 1 and "cannot find -ltsan" in out and "install libtsan" in out, out
    assert "building" not in out, out
    assert run(tree, "ci/test", "asan", **env)[0] == 0


@pytest.mark.parametrize("check", ["c_format", "c_analysis", "shell_check", "lua_check"])
def test_lint_without_git(tmp_path, check):
    """A check fails where git lists no files, as in a folder of another user's."""
    copied(tmp_path, "lint", "lib.sh")
    program(tmp_path / "bin/git", "#!/bin/sh\necho dubious ownership >&2\nexit 128\n")
    status, out = run(tmp_path, "ci/lint", check)
    assert status == 1 and f"{check}: FAILED" in out and "dubious ownership" in out, out
    program(tmp_path / "bin/git", "#!/bin/sh\n")
    status, out = run(tmp_path, "ci/lint", check)
    assert status == 1 and f"{check}: FAILED" in out and "no files like" in out, out
