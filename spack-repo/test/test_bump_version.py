# SPDX-License-Identifier: BSD-3-Clause
"""A release is one command, the version one number and the source URL one file: changed everywhere at once, and noticed
where they were not."""

import hashlib
import json
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
NEXT = "9.8.7"
TOUCHED = (".gitignore", "CHANGELOG.md", "CITATION.cff", "README.md", "ci", "docs", "easyconfigs", "env",
           "libxccl/VERSION", "libxccl/include", "libxccl/tools/man", "modulefiles", "site-configs",
           "spack-repo")  # fmt: skip


def ci(top, *command):
    done = subprocess.run(
        [sys.executable, top / "ci" / command[0], *command[1:]],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def bump(top, *arguments):
    return ci(top, "bump-version", *arguments)


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


def test_an_identity_is_needed_before_anything_is_written(copy, monkeypatch):
    for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"):
        monkeypatch.setenv(name, "/dev/null")
    git(copy, "config", "user.useConfigOnly", "true")
    git(copy, "config", "--unset", "user.email")
    for words in ((NEXT,), ("--seal",)):
        status, output = bump(copy, *words)
        assert status == 1
        assert "git does not know who commits: git config user.name NAME" in output
        assert git(copy, "status", "--porcelain") == ""
    git(copy, "config", "user.email", "t@example.org")


def test_an_unpacked_tarball_has_nothing_to_check(tmp_path):
    for name in ("bump-version", "tarball.py"):
        (tmp_path / "ci").mkdir(exist_ok=True)
        shutil.copy(TOP / "ci" / name, tmp_path / "ci" / name)
    status, output = bump(tmp_path, "--check")
    assert (status, len(output.splitlines())) == (1, 1)
    assert "ci/release.json is missing, as in an unpacked tarball" in output


@pytest.fixture(scope="module")
def released(copy):
    """The repository after ci/release; its dist/ has what is published."""
    status, output = ci(copy, "release", NEXT)
    assert status == 0, output
    return copy


def test_one_command(released):
    """After it the tree is consistent, tagged, and the tarball of the tag is the one that recipes name."""
    copy = released
    assert bump(copy, "--check") == (0, "")
    assert git(copy, "tag").split() == [f"v{NEXT}"]
    assert git(copy, "status", "--porcelain") == ""
    assert (copy / f"modulefiles/xccl/{NEXT}.lua").exists()
    day = re.search(rf"^## {NEXT} - (.*)$", (copy / "CHANGELOG.md").read_text(), re.M)[1]
    cited = f'\nversion: {NEXT}\ndate-released: "{day}"\n'
    assert cited in git(copy, "show", "HEAD~1:CITATION.cff"), "not in the tarball"
    numbers = zip(("MAJOR", "MINOR", "PATCH"), NEXT.split("."))
    macros = [f"#define XCCL_{name} {number}\n" for name, number in numbers]
    for page in ("libxccl/include/xccl/xccl.h", "docs/reference/xccl-h.md"):
        assert "".join(macros) in (copy / page).read_text()
    names = {path.name for path in (copy / "easyconfigs" / "x" / "xccl").glob("*.eb")}
    assert names and all(name.startswith(f"xccl-{NEXT}-") for name in names), names
    recipe = (copy / "spack-repo/spack_repo/xccl/packages/xccl/package.py").read_text()
    versions = [line for line in recipe.splitlines() if line.startswith('    version("')]
    assert versions[1].startswith(f'    version("{NEXT}", sha256="'), versions
    assert len(versions) == 3, "the older release must stay"
    log = git(copy, "log", "--format=%s").splitlines()
    assert log[:2] == [f"release: Record the tarball of {NEXT}", f"release: Version {NEXT}"]
    for page in ("install/plain.md", "install/easybuild.md", "sites/add-a-site.md"):
        assert f"xccl-{NEXT}" in git(copy, "show", f"HEAD~1:docs/{page}"), "not in the tarball"
    assert f"git checkout v{NEXT}`" in (copy / "docs/install/easybuild.md").read_text()


def test_the_command_that_it_names_publishes_the_tag(released, tmp_path):
    """--follow-tags pushes annotated tags only; a lightweight one would stay here, and with it the release."""
    status, output = ci(released, "release")
    assert status == 0, output
    (command,) = re.findall(r"^next: git (push [^,]*),", output, re.M)
    remote = tmp_path / "remote.git"
    git(tmp_path, "init", "-q", "--bare", str(remote))
    branch = git(released, "branch", "--show-current").strip()
    git(released, "remote", "add", "origin", str(remote))
    try:
        git(released, "config", f"branch.{branch}.remote", "origin")
        git(released, "config", f"branch.{branch}.merge", f"refs/heads/{branch}")
        git(released, *command.split())
        assert git(remote, "tag").split() == [f"v{NEXT}"]
        assert git(remote, "rev-parse", f"v{NEXT}^{{}}") == git(released, "rev-parse", "HEAD")
    finally:
        git(released, "remote", "remove", "origin")


def test_tag_and_tarball_agree(released):
    """The tarball of the tag, which has the checksum in its recipes, is that of the commit before it."""
    files = {file.name: file.read_bytes() for file in (released / "dist").iterdir()}
    name = f"xccl-{NEXT}.tar.gz"
    digest = hashlib.sha256(files[name]).hexdigest()
    assert json.loads(git(released, "show", f"v{NEXT}:ci/release.json"))["sha256"] == digest
    for commit in (f"v{NEXT}", f"v{NEXT}~1"):
        status, output = ci(released, "dist", commit, released / "again")
        assert (status, output) == (0, f"{digest}  {name}\n")
    shutil.rmtree(released / "again")
    with tarfile.open(released / "dist" / name) as tar:
        members = tar.getmembers()
    assert {(one.uid, one.gid, one.uname, one.mtime) for one in members} == {
        (0, 0, "", 1577836800)
    }
    names = {one.name for one in members}
    assert f"xccl-{NEXT}/ci/install-tree" in names
    assert not [one for one in names if "spack-repo" in one or one.endswith("release.json")]
    # Made again: the same bytes of everything.
    status, output = ci(released, "release")
    assert status == 0, output
    assert files == {file.name: file.read_bytes() for file in (released / "dist").iterdir()}
    sums = dict(line.split()[::-1] for line in files["SHA256SUMS"].decode().splitlines())
    assert sums == {
        file: hashlib.sha256(content).hexdigest()
        for file, content in files.items()
        if file != "SHA256SUMS"
    }


def test_sbom(released):
    """The rules of SPDX 2.3 that its validators check: what must be there, its form, and what refers to what."""
    text = (released / "dist" / f"xccl-{NEXT}.spdx.json").read_text()
    document = json.loads(text)
    assert document["spdxVersion"] == "SPDX-2.3" and document["dataLicense"] == "CC0-1.0"
    assert document["SPDXID"] == "SPDXRef-DOCUMENT"
    assert re.fullmatch(r"https://[^#\s]+", document["documentNamespace"])
    info = document["creationInfo"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", info["created"])
    assert all(re.match(r"(Tool|Person|Organization): ", one) for one in info["creators"])
    elements = [document, *document["packages"], *document["files"]]
    ids = [one["SPDXID"] for one in elements]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", one) for one in ids)
    for package in document["packages"]:
        assert package["name"] and package["downloadLocation"], package
        assert package["filesAnalyzed"] == ("packageVerificationCode" in package)
    for one in document["relationships"]:
        assert {one["spdxElementId"], one["relatedSpdxElement"]} <= set(ids), one
    licences = {one["licenseId"] for one in document["hasExtractedLicensingInfos"]}
    assert set(re.findall(r'"(LicenseRef-[^"]+)"', text)) == licences
    # It is about this tarball, file by file.
    tarball = released / "dist" / f"xccl-{NEXT}.tar.gz"
    mine = next(one for one in document["packages"] if one["name"] == "xccl")
    assert (
        mine["checksums"][0]["checksumValue"] == hashlib.sha256(tarball.read_bytes()).hexdigest()
    )
    with tarfile.open(tarball) as tar:
        sums = {
            "./" + one.name.split("/", 1)[1]: hashlib.sha1(tar.extractfile(one).read()).hexdigest()
            for one in tar.getmembers()
            if one.isfile()
        }
    assert sums == {
        one["fileName"]: one["checksums"][0]["checksumValue"] for one in document["files"]
    }
    code = hashlib.sha1("".join(sorted(sums.values())).encode()).hexdigest()
    assert mine["packageVerificationCode"]["packageVerificationCodeValue"] == code


def test_a_tag_elsewhere_is_refused(released):
    git(released, "tag", "-f", f"v{NEXT}", "HEAD~2")
    try:
        status, output = ci(released, "release")
        assert (status, "but its recipes name" in output) == (1, True), output
    finally:
        git(released, "tag", "-f", f"v{NEXT}", "HEAD")


def test_the_source_url_is_one_file(released):
    """ci/bump-version --url changes every recipe; each place is looked at."""
    url = "https://git.example.net/hpc/xccl"
    status, output = bump(released, "--url", url)
    try:
        assert status == 0, output
        changed = git(released, "diff", "--name-only").split()
        assert "ci/source-url" in changed
        assert {Path(one).suffix for one in changed} == {"", ".py", ".eb"}
        recipes = (
            *released.glob("easyconfigs/**/*.eb"),
            *released.glob("spack-repo/**/package.py"),
        )
        assert not [file for file in recipes if "xccl.example.org" in file.read_text()]
        assert bump(released, "--check") == (0, "")
        (released / "ci/source-url").write_text("https://elsewhere.example.net/xccl\n")
        status, output = bump(released, "--check")
        assert (status, "xccl_stack/package.py" in output, ".eb" in output) == (1, True, True)
    finally:
        git(released, "checkout", "--", ".")
    assert bump(released, "--url", "example")[0] == 1


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("libxccl/VERSION", None, "9.9.9\n"),
        ("libxccl/include/xccl/xccl.h", "#define XCCL_MINOR ", "#define XCCL_MINOR 1"),
        ("ci/release.json", '"sha256": "', '"sha256": "0'),
        ("spack-repo/spack_repo/xccl/packages/xccl/package.py", 'sha256="', 'sha256="f'),
        ("easyconfigs/x/xccl/*-gompi-2025b.eb", "version = '", "version = '1"),
        ("easyconfigs/x/xccl/*-gompi-2024a.eb", "checksums = ['", "checksums = ['f"),
        ("modulefiles/xccl/*.lua", 'whatis("Version: ', 'whatis("Version: 1'),
        ("docs/install/plain.md", "dist/xccl-", "dist/xccl-1"),
    ],
)
def test_a_difference_is_noticed(released, path, old, new):
    """Each place is looked at: changed alone, it is named."""
    copy = released
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
def test_a_wrong_version_changes_nothing(released, wrong):
    copy = released
    head = git(copy, "rev-parse", "HEAD")
    status, output = bump(copy, wrong)
    assert status == 1
    assert wrong in output
    assert (git(copy, "rev-parse", "HEAD"), git(copy, "status", "--porcelain")) == (head, "")
