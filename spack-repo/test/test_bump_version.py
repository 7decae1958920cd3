# SPDX-License-Identifier: BSD-3-Clause
"""The version is one number: ci/bump-version changes it everywhere, and notices where it was not."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
NEXT = "9.8.7"
TOUCHED = (".gitignore", "CHANGELOG.md", "CITATION.cff", "README.md", "ci", "docs", "easyconfigs", "env",
           "libxccl/VERSION", "modulefiles", "site-configs", "spack-repo")  # fmt: skip


def bump(top, *arguments):
    done = subprocess.run(
        [sys.executable, top / "ci" / "bump-version", *arguments],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def git(top, *arguments):
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    return subprocess.run(
        ["git", *identity, *arguments], cwd=top, check=True, capture_output=True, text=True
    ).stdout


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A repository with everything that names the version, and one commit."""
    top = tmp_path_factory.mktemp("repository")
    skip = shutil.ignore_patterns("__pycache__", "benchmarks")
    for name in TOUCHED:
        source = TOP / name
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, top / name, symlinks=True, ignore=skip)
        else:
            shutil.copy(source, top / name)
    git(top, "init", "-q")
    git(top, "config", "user.name", "t")
    git(top, "config", "user.email", "t@example.org")
    git(top, "add", "-A")
    git(top, "commit", "-qm", "start")
    return top


def test_nothing_disagrees():
    """VERSION, recipes, checksums, modules and documents of this tree name one version."""
    status, output = bump(TOP, "--check")
    assert status == 0, output


def test_one_command(copy):
    """After it the tree is consistent, tagged, and the tarball of the tag is the one that recipes name."""
    status, output = bump(copy, NEXT)
    assert status == 0, output
    assert bump(copy, "--check") == (0, "")
    assert git(copy, "tag").split() == [f"v{NEXT}"]
    assert git(copy, "status", "--porcelain") == ""
    assert (copy / f"modulefiles/xccl/{NEXT}.lua").exists()
    assert f"\nversion: {NEXT}\n" in (copy / "CITATION.cff").read_text()
    names = {path.name for path in (copy / "easyconfigs" / "x" / "xccl").glob("*.eb")}
    assert names and all(name.startswith(f"xccl-{NEXT}-") for name in names), names
    recipe = (copy / "spack-repo/spack_repo/xccl/packages/xccl/package.py").read_text()
    versions = [line for line in recipe.splitlines() if line.startswith('    version("')]
    assert versions[1].startswith(f'    version("{NEXT}", sha256="'), versions
    assert len(versions) == 3, "the older release must stay"
    log = git(copy, "log", "--format=%s").splitlines()
    assert log[:2] == [f"release: Record the tarball of {NEXT}", f"release: Version {NEXT}"]


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("libxccl/VERSION", None, "9.9.9\n"),
        ("ci/release.json", '"sha256": "', '"sha256": "0'),
        ("spack-repo/spack_repo/xccl/packages/xccl/package.py", 'sha256="', 'sha256="f'),
        ("easyconfigs/x/xccl/*-gompi-2025b.eb", "version = '", "version = '1"),
        ("easyconfigs/x/xccl/*-gompi-2024a.eb", "checksums = ['", "checksums = ['f"),
        ("modulefiles/xccl/*.lua", 'whatis("Version: ', 'whatis("Version: 1'),
        ("docs/install/plain.md", "xccl-", "xccl-1"),
    ],
)
def test_a_difference_is_noticed(copy, path, old, new):
    """Each place is looked at: changed alone, it is named."""
    file = next(copy.glob(path))
    before = file.read_text()
    try:
        file.write_text(new if old is None else before.replace(old, new, 1))
        assert file.read_text() != before
        status, output = bump(copy, "--check")
        assert status == 1, "not noticed"
        place = "libxccl/VERSION" if old is None else str(file.relative_to(copy))
        assert place in output, output
    finally:
        file.write_text(before)


@pytest.mark.parametrize("wrong", ["0.0.1", "next", "1.2"])
def test_a_wrong_version_changes_nothing(copy, wrong):
    head = git(copy, "rev-parse", "HEAD")
    status, output = bump(copy, wrong)
    assert status == 1
    assert wrong in output
    assert (git(copy, "rev-parse", "HEAD"), git(copy, "status", "--porcelain")) == (head, "")
