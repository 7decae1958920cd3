# SPDX-License-Identifier: BSD-3-Clause
"""A throw-away EasyBuild for the tests: its own prefix, home and temporary folder, the machine's GCC and Open MPI.

The toolchain gompi/system stands for any gompi, so that the shipped easyconfigs are built as they are
(--try-toolchain).
"""

import atexit
import functools
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import tarball as tarball_of

TOP = Path(__file__).resolve().parent.parent
EASYCONFIGS = TOP / "easyconfigs"
BUILT = "x/xccl/xccl-{version}-gompi-2025b.eb"
LMOD_INIT = Path("/usr/share/lmod/lmod/init/bash")
SITE = "sim"


def version():
    return (TOP / "libxccl" / "VERSION").read_text(encoding="utf-8").split()[0]


def release():
    """What ci/bump-version recorded: version, commit, sha256."""
    return json.loads((TOP / "ci" / "release.json").read_text(encoding="utf-8"))


def find_eb():
    """The program eb: on PATH, or where ci/easybuild installs it; None if there is none."""
    own = Path(os.environ.get("BUILD_DIR", TOP / "build")) / "easybuild" / "bin" / "eb"
    return shutil.which("eb") or (str(own) if own.exists() else None)


def missing_release():
    """Why the released tarball cannot be made here, as a sentence; empty if it can."""
    if not (TOP / ".git").exists():
        return "not a git checkout: the released tarball cannot be made"
    known = subprocess.run(
        ["git", "cat-file", "-e", release()["commit"] + "^{commit}"],
        cwd=TOP, capture_output=True, check=False,
    )  # fmt: skip
    if known.returncode != 0:
        return "a shallow clone without the commit of the release: git fetch --unshallow"
    return ""


def missing():
    """What stands in the way of a real installation, as a sentence; empty if nothing does."""
    if not find_eb():
        return "EasyBuild is not installed: run ci/easybuild, or pip install easybuild"
    if not LMOD_INIT.exists():
        return "Lmod is not installed: apt-get install lmod"
    if not shutil.which("mpicc") or not shutil.which("gcc"):
        return "no mpicc or no gcc on PATH: apt-get install gcc libopenmpi-dev openmpi-bin"
    return missing_release()


@functools.lru_cache(maxsize=None)
def folder():
    """Scratch folder of this process, removed at its end."""
    path = Path(tempfile.mkdtemp(prefix="xccl-easybuild-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    for name in ("home", "tmp", "sources/x/xccl", "compilers"):
        (path / name).mkdir(parents=True)
    for name in ("nvcc", "hipcc"):  # the machine's; they note that they were asked
        (path / "compilers" / name).write_text(f"#!/bin/sh\necho {name} >>{path}/asked\nexit 1\n")
        (path / "compilers" / name).chmod(0o755)
    return path


def clean_environment(**more):
    """An environment that holds nothing of the caller's modules or of xccl."""
    keep = {
        "LANG": "C.UTF-8",
        "PATH": f"{folder()}/compilers:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(folder() / "home"),
    }
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return {**keep, **root, "TMPDIR": str(folder() / "tmp"), **more}


def eb(*arguments, site=SITE, timeout=300):
    """Run eb; its output. Raises AssertionError with the output if it fails."""
    environment = clean_environment(
        EASYBUILD_ALLOW_USE_AS_ROOT_AND_ACCEPT_CONSEQUENCES="1",
        EASYBUILD_MODULES_TOOL="Lmod",
        EASYBUILD_MODULE_NAMING_SCHEME="HierarchicalMNS",
        EASYBUILD_PREFIX=str(folder() / "prefix"),
        EASYBUILD_OUTPUT_STYLE="basic",
        EASYBUILD_PARALLEL="2",
        EASYBUILD_INCLUDE_TOOLCHAINS=str(EASYCONFIGS / "toolchains" / "*.py"),
        COLUMNS="300",
        XCCL_SITE=site,
    )
    python = Path(find_eb()).with_name("python3")
    environment["EB_PYTHON"] = str(python) if python.exists() else "python3"
    script = f'. {LMOD_INIT} && exec "$0" "$@"'
    done = subprocess.run(
        ["bash", "-c", script, find_eb(), *map(str, arguments)],
        env=environment, cwd=folder(), capture_output=True, text=True, timeout=timeout, check=False,
    )  # fmt: skip
    assert done.returncode == 0, (
        f"eb {' '.join(map(str, arguments))}\n{done.stdout}\n{done.stderr}"
    )
    return done.stdout


@functools.lru_cache(maxsize=None)
def tarball():
    """The released tarball, made again from the recorded commit."""
    name, packed = tarball_of.tarball(release()["commit"])
    target = folder() / "sources" / "x" / "xccl" / name
    target.write_bytes(packed)
    return target


@functools.lru_cache(maxsize=None)
def install():
    """Install a shipped easyconfig with the system's compiler and MPI; the top of the module tree."""
    tarball()
    eb(
        EASYCONFIGS / BUILT.format(version=version()),
        f"--robot={EASYCONFIGS / 'system'}",
        "--try-toolchain=gompi,system",
        "--disable-map-toolchains",
        "--filter-deps=CMake,hwloc,pkgconf",
        f"--sourcepath={folder() / 'sources'}",
    )
    return folder() / "prefix" / "modules" / "all" / "Core"


def shell(script, timeout=120, **environment):
    """Run bash with Lmod in a clean environment: (exit status, output and errors)."""
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-c", f". {LMOD_INIT}; {script}"],
        env=clean_environment(**environment), cwd=folder(),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout
