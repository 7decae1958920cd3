# SPDX-License-Identifier: BSD-3-Clause
"""A throw-away Spack for the tests: real checkouts, this machine's externals, everything else in a scratch folder.

XCCL_SPACK_ROOT names a checkout of Spack (1.x), XCCL_SPACK_PACKAGES one of spack-packages. Neither is on
PyPI or in a Linux distribution. Nothing is written to either of them. The released tarball is a local file.
"""

import atexit
import functools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import easybuild_sandbox
import yaml

TOP = Path(__file__).resolve().parent.parent
REPOSITORY = TOP / "spack-repo" / "spack_repo" / "xccl"
# Found on this machine and never built; openmpi in a scope of its own, so that chains can build theirs.
TOOLS = ("autoconf", "automake", "cmake", "gmake", "m4", "ninja", "perl", "pkgconf", "python")
# The releases of spack-packages that docs/install/spack.md names; every site is concretized with each.
TAGS = ("v2026.03.0", "v2026.06.0")
# The last release of spack-packages with the compiler wrapper in its tree; later ones fetch it.
WRAPPER_TAG = "v2026.03.0"
WRAPPER = "repos/spack_repo/builtin/packages/compiler_wrapper"


def checkout(variable):
    """Folder that @p variable names, or None."""
    value = os.environ.get(variable)
    return Path(value) if value and Path(value).is_dir() else None


def python_with_clingo():
    """A Python that has the solver: PyPI's clingo; None if there is none."""
    own = Path(os.environ.get("BUILD_DIR", TOP / "build")) / "spack" / "bin" / "python"
    for python in (os.environ.get("SPACK_PYTHON"), str(own), sys.executable):
        if python and Path(python).exists():
            done = subprocess.run(
                [python, "-c", "import clingo"], capture_output=True, check=False
            )
            if done.returncode == 0:
                return python
    return None


def missing():
    """What stands in the way, as a sentence that says how to get it; empty if nothing does."""
    for variable, name in (
        ("XCCL_SPACK_ROOT", "spack"),
        ("XCCL_SPACK_PACKAGES", "spack-packages"),
    ):
        if not checkout(variable):
            return (
                f"Spack is not available: set {variable} to a checkout "
                f"(git clone https://github.com/spack/{name}), then run ci/spack"
            )
    if not python_with_clingo():
        return "no Python with clingo: run ci/spack, or pip install clingo and set SPACK_PYTHON"
    if not shutil.which("mpicc") or not shutil.which("cmake"):
        return "no mpicc or no cmake on PATH: apt-get install libopenmpi-dev openmpi-bin cmake"
    return easybuild_sandbox.missing_release()


@functools.lru_cache(maxsize=None)
def folder():
    """Scratch folder of this process, removed at its end."""
    path = Path(tempfile.mkdtemp(prefix="xccl-spack-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    for name in ("home", "tmp", "user", "cache", "empty", "machine", "mpi"):
        (path / name).mkdir()
    return path


def wrapper_repository():
    """A repository with the compiler wrapper where the checkout has none of its own, else None."""
    packages = checkout("XCCL_SPACK_PACKAGES")
    if "file://" in (packages / WRAPPER / "package.py").read_text(encoding="utf-8"):
        return None
    target = folder() / "wrapper" / "spack_repo" / "wrapper"
    (target / "packages").mkdir(parents=True)
    (target / "repo.yaml").write_text(
        "repo:\n  namespace: wrapper\n  api: v2.0\n", encoding="utf-8"
    )
    archive = subprocess.run(
        ["git", "-C", packages, "archive", WRAPPER_TAG, WRAPPER], capture_output=True, check=False
    )
    if archive.returncode != 0:
        return (
            None  # a checkout without that tag: Spack fetches the wrapper, which needs a network
        )
    strip = f"--strip-components={WRAPPER.count('/')}"
    subprocess.run(
        ["tar", "-x", strip, "-C", target / "packages"], input=archive.stdout, check=True
    )
    return target


def write_configuration():
    wrapper, user = wrapper_repository(), folder() / "user"
    builtin = checkout("XCCL_SPACK_PACKAGES") / "repos" / "spack_repo" / "builtin"
    lines = [f"  xccl: {REPOSITORY}", f"  builtin: {builtin}"]
    if wrapper:
        lines.insert(0, f"  wrapper: {wrapper}")
    (user / "repos.yaml").write_text("repos:\n" + "\n".join(lines) + "\n", encoding="utf-8")
    (user / "bootstrap.yaml").write_text("bootstrap:\n  enable: false\n", encoding="utf-8")
    (user / "config.yaml").write_text(
        f"config:\n  install_tree:\n    root: {folder()}/opt\n  build_stage: [{folder()}/stage]\n"
        f"  test_stage: {folder()}/test\n  source_cache: {folder()}/sources\n"
        f"  misc_cache: {folder()}/misc\n  build_jobs: 2\n",
        encoding="utf-8",
    )


def local_tarball():
    """The setting by which docs/install/spack.md takes a local tarball, for the released one."""
    page = (TOP / "docs/install/spack.md").read_text(encoding="utf-8")
    said = re.search(r"^spack config add '(.*)(/path/of/xccl-[\d.]+\.tar\.gz)(.*)'", page, re.M)
    return f"{said[1]}{easybuild_sandbox.tarball()}{said[3]}"


@functools.lru_cache(maxsize=None)
def prepare():
    """Configuration, compilers and externals of this machine."""
    write_configuration()
    found = folder() / "user" / "packages.yaml"
    spack("compiler", "find")
    spack("external", "find", "--not-buildable", *TOOLS, "openmpi")
    # A shim of a Python manager is no prefix.
    shim = r"    - spec: python@[^\n]*\n      prefix: [^\n]*/shims\n"
    spack("config", "add", local_tarball())
    packages = yaml.safe_load(re.sub(shim, "", found.read_text(encoding="utf-8")))["packages"]
    mpi = {name: packages.pop(name) for name in ("openmpi", "mpi")}
    mpi.update(hwloc())
    for name, content in (("machine", packages), ("mpi", mpi)):
        text = yaml.safe_dump({"packages": content})
        (folder() / name / "packages.yaml").write_text(text, encoding="utf-8")
    found.unlink()


def hwloc():
    """External of the machine's hwloc: Spack detects it only where its programs are installed too."""
    found = [
        subprocess.run(
            ["pkg-config", question, "hwloc"], capture_output=True, text=True, check=False
        ).stdout.strip()
        for question in ("--modversion", "--variable=prefix")
    ]
    if not all(found):
        return {}
    return {
        "hwloc": {
            "buildable": False,
            "externals": [{"spec": f"hwloc@{found[0]}", "prefix": found[1]}],
        }
    }


def environment():
    """Of a spack command: nothing of the caller's Spack, modules or xccl."""
    python = python_with_clingo()
    return {
        "HOME": str(folder() / "home"),
        "LANG": "C.UTF-8",
        "PATH": f"{checkout('XCCL_SPACK_ROOT')}/bin:/usr/local/bin:/usr/bin:/bin",
        "SPACK_PYTHON": python,
        "SPACK_SYSTEM_CONFIG_PATH": str(folder() / "empty"),
        "SPACK_USER_CACHE_PATH": str(folder() / "cache"),
        "SPACK_USER_CONFIG_PATH": str(folder() / "user"),
        "TMPDIR": str(folder() / "tmp"),
    }


def spack(*arguments, timeout=600, **more):
    """Run spack; its output. Raises AssertionError with the output if it fails."""
    done = subprocess.run(
        ["spack", *map(str, arguments)],
        env={**environment(), **more}, cwd=folder(),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"spack {' '.join(map(str, arguments))}\n{done.stdout}"
    return done.stdout


def here(*arguments, **more):
    """spack with the compilers and tools of this machine."""
    prepare()
    return spack("-C", folder() / "machine", *arguments, **more)


def with_mpi(*arguments, **more):
    """spack with the tools and the Open MPI of this machine."""
    prepare()
    return spack("-C", folder() / "machine", "-C", folder() / "mpi", *arguments, **more)


@functools.lru_cache(maxsize=None)
def install():
    """Install xccl ^openmpi in an environment; the environment's folder."""
    prepare()
    path = folder() / "environments" / "xccl"
    path.mkdir(parents=True)
    modules = (TOP / "site-configs" / "sim" / "spack" / "modules.yaml").read_text(encoding="utf-8")
    root = f"    roots:\n      lmod: {folder()}/lmod\n"
    (path / "modules.yaml").write_text(
        modules.replace("modules:\n  default:\n", f"modules:\n  default:\n{root}"),
        encoding="utf-8",
    )
    spec = "xccl site=sim ^openmpi" if hwloc() else "xccl~hwloc site=sim ^openmpi"
    (path / "spack.yaml").write_text(
        f"spack:\n  include: [modules.yaml]\n  specs:\n  - {spec}\n  view: false\n",
        encoding="utf-8",
    )
    with_mpi("-e", path, "install", "--fail-fast")
    return path


def environment_folder(name, source=None, specs=()):
    """A new folder with an environment, of a site's files or of given specs."""
    path = folder() / "environments" / name
    path.mkdir(parents=True)
    if source:
        for file in Path(source).glob("*.yaml"):
            shutil.copy(file, path)
        return path
    listed = "\n".join(f"  - {spec}" for spec in specs)
    (path / "spack.yaml").write_text(
        f"spack:\n  specs:\n{listed}\n  view: false\n", encoding="utf-8"
    )
    return path


def locked(path):
    """{name: node} of the lock file of an environment."""
    lock = json.loads((path / "spack.lock").read_text(encoding="utf-8"))
    return {node["name"]: node for node in lock["concrete_specs"].values()}


def concretize(name, source=None, specs=(), scope=None):
    """Concretize an environment once; {name: node of the lock file}."""
    path = environment_folder(name, source, specs)
    prepare()
    more = ("-C", scope) if scope else ()
    spack("-C", folder() / "machine", *more, "-e", path, "concretize")
    return locked(path)


def packages_of(tag):
    """A scope in which builtin is that of a release of spack-packages, or None where the checkout has no such tag."""
    packages = folder() / f"packages-{tag}"
    clone = ["git", "-c", "advice.detachedHead=false", "clone", "-q", "--shared", "-b", tag]
    command = [*clone, checkout("XCCL_SPACK_PACKAGES"), packages]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        return None
    scope = folder() / f"scope-{tag}"
    scope.mkdir()
    (scope / "repos.yaml").write_text(
        f"repos::\n  xccl: {REPOSITORY}\n  builtin: {packages}/repos/spack_repo/builtin\n",
        encoding="utf-8",
    )
    return scope


def concretize_sites(tag, sites, timeout=3600):
    """Concretize the environments of @p sites, {name: folder}, with the packages of @p tag: {name: nodes or the reason
    why not}; None where the checkout has no such tag."""
    prepare()
    scope = packages_of(tag)
    if scope is None:
        return None
    paths = {name: environment_folder(f"{name}-{tag}", source) for name, source in sites.items()}
    script = TOP / "ci" / "spack_concretize.py"
    scopes = ("-C", folder() / "machine", "-C", scope)
    spack(*scopes, "python", script, *paths.values(), timeout=timeout)
    return {
        name: locked(path) if (path / "spack.lock").exists() else (path / "error.txt").read_text()
        for name, path in paths.items()
    }
