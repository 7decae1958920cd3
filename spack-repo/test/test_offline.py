# SPDX-License-Identifier: BSD-3-Clause
"""The offline bundle installs where there is no network: in a network namespace of its own."""

import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
CUT_OFF = ["unshare", "--net", "--"]
# Making a bundle takes half a minute: ci/run package does it, and ci/test thorough.
pytestmark = pytest.mark.thorough


def run(command, timeout=400, **environment):
    kept = {
        k: v for k, v in os.environ.items() if not k.startswith(("XCCL_", "EASYBUILD_", "LD_"))
    }
    done = subprocess.run(
        [str(word) for word in command], env={**kept, **environment}, text=True, timeout=timeout,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{command}\n{done.stdout}"
    return done.stdout


@pytest.fixture(scope="module")
def namespace(need):
    """Skips, or fails where XCCL_REQUIRE_OFFLINE=1, when nothing can be cut off from the network."""
    missing = ""
    try:
        run([*CUT_OFF, "true"])
    except (AssertionError, OSError):
        missing = "no network namespace without root: run as root, or allow unshare --net"
    need(missing, "XCCL_REQUIRE_OFFLINE")


@pytest.fixture(scope="module")
def bundle(namespace, tarball, need, tmp_path_factory):
    """The unpacked bundle."""
    folder = tmp_path_factory.mktemp("offline")
    try:
        run([TOP / "ci" / "offline-bundle", folder / "bundle.tar"])
    except AssertionError as error:
        if "wheels" in str(error) and "ERROR: Could not find" in str(error):
            missing = (
                "no Python packages can be had here: a network, or a proxy for pip, is missing"
            )
            need(missing, "XCCL_REQUIRE_OFFLINE")
        raise
    with tarfile.open(folder / "bundle.tar") as tar:
        tar.extractall(folder)
    (folder / "bundle.tar").unlink()
    return next(folder.glob("xccl-*-offline"))


@pytest.fixture
def quick_compilers(tmp_path):
    """A PATH with one MPI, a hipcc that compiles nothing, a cc that does not optimise: in seconds."""
    folder = tmp_path / "compilers"
    folder.mkdir()
    scripts = dict.fromkeys(["hipcc", "nvcc", "mpicc.mpich", "mpicc_abi"], "exit 1")
    scripts["cc"] = f'exec {shutil.which("cc")} "$@" -O0'
    for name, command in scripts.items():
        (folder / name).write_text(f"#!/bin/sh\n{command}\n")
        (folder / name).chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def test_plain(bundle, tmp_path, quick_compilers):
    command = [bundle / "install", "plain", tmp_path / "p", "--site", "sim"]
    run([*CUT_OFF, *command], PATH=quick_compilers)
    assert run([tmp_path / "p/bin/xccl-info", "--version"]).startswith("xccl-info ")
    assert (tmp_path / "p/share/xccl/modulefiles/xccl").is_dir()


def test_easybuild(bundle, easybuild, tmp_path):
    """EasyBuild itself comes from the bundle's wheels, and the sources from its source path."""
    name = Path(easybuild.BUILT.format(version=easybuild.version())).name
    command = [*CUT_OFF, bundle / "install", "easybuild", tmp_path / "e", name]
    options = [f"--robot={TOP / 'easyconfigs/system'}", "--try-toolchain=gompi,system"]
    options += ["--disable-map-toolchains", "--filter-deps=CMake,hwloc,pkgconf"]
    script = f'. {easybuild.LMOD_INIT}; exec "$@"'
    run(
        ["bash", "-c", script, "bash", *command, *options],
        EASYBUILD_ALLOW_USE_AS_ROOT_AND_ACCEPT_CONSEQUENCES="1", EASYBUILD_MODULES_TOOL="Lmod",
        EASYBUILD_PARALLEL="2", XCCL_SITE="sim", HOME=str(tmp_path),
    )  # fmt: skip
    assert list(tmp_path.glob("e/software/xccl/*/bin/xccl-info"))


def test_spack(bundle, spack, tmp_path):
    """The solver comes from the wheels, xccl's source from the mirror; the site has the rest."""
    scope = spack.folder() / "offline-user"
    shutil.rmtree(scope, ignore_errors=True)
    scope.mkdir()
    spack.prepare()
    repositories = (spack.folder() / "user" / "repos.yaml").read_text().splitlines()
    kept = [line for line in repositories if not line.startswith("  xccl:")]
    (scope / "repos.yaml").write_text("\n".join(kept) + "\n")
    command = [
        *CUT_OFF,
        bundle / "install",
        "spack",
        tmp_path / "s",
        "xccl",
        "site=sim",
        "^openmpi",
    ]
    environment = spack.environment()
    environment.update(
        SPACK_USER_CONFIG_PATH=str(scope), XCCL_SPACK_ROOT=os.environ["XCCL_SPACK_ROOT"],
        SPACK_USER_CACHE_PATH=str(tmp_path / "cache"),
    )  # fmt: skip
    packages = [spack.folder() / name / "packages.yaml" for name in ("machine", "mpi")]
    texts = [file.read_text().replace("packages:\n", "", 1) for file in packages]
    (scope / "packages.yaml").write_text("packages:\n" + "".join(texts))
    run(command, **environment)
    assert list(tmp_path.glob("s/opt/**/bin/xccl-info"))


def test_help_and_mistakes(bundle, tmp_path):
    assert "Usage: ./install plain PREFIX" in run([bundle / "install", "--help"])
    for command in (["install"], ["install", "plain"], ["install", "wrong", tmp_path]):
        done = subprocess.run(
            [bundle / command[0], *command[1:]], capture_output=True, text=True, check=False
        )
        assert done.returncode != 0
        assert done.stderr


def test_a_changed_bundle_is_refused(bundle, tmp_path):
    """One file that differs from the list, and nothing is installed."""
    file = bundle / "repository/LICENSE"
    before = file.read_bytes()
    try:
        file.write_bytes(before + b"\n")
        done = subprocess.run(
            [bundle / "install", "plain", tmp_path / "p"],
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        file.write_bytes(before)
    assert done.returncode == 1
    assert "repository/LICENSE" in done.stdout and "was changed" in done.stderr
    assert not (tmp_path / "p").exists()
