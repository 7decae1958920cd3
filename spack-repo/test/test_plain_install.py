# SPDX-License-Identifier: BSD-3-Clause
"""Without a packager: the installed tree, pkg-config, find_package, moving it, and the tarball without git."""

import os
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import plain_install  # in ci, which conftest.py adds to the path
import pytest
import yaml

TOP = Path(__file__).resolve().parents[2]
PROGRAM = """#include <stdio.h>
#include <xccl/xccl.h>
int main(void)
{
    int version = 0;
    if (xcclGetVersion(&version) != xcclSuccess) {
        return 1;
    }
    printf("%d\\n", version);
    return 0;
}
"""
PROJECT = """cmake_minimum_required(VERSION 3.20)
project(user LANGUAGES C)
find_package(Xccl {version} REQUIRED)
add_executable(program program.c)
target_link_libraries(program PRIVATE Xccl::xccl)
"""


def run(*command, fails=False, **more):
    """Output of a command that must work, or fail."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("XCCL_", "LD_"))}
    environment.update(more.pop("env", {}))
    done = subprocess.run(
        [str(word) for word in command], env=environment, text=True, timeout=300, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **more,
    )  # fmt: skip
    assert (done.returncode != 0) == fails, f"{command}: {done.returncode}\n{done.stdout}"
    return done.stdout


def version():
    return (TOP / "libxccl" / "VERSION").read_text().split()[0]


def number():
    """The version as xcclGetVersion() and NCCL's macros write it."""
    major, minor, patch = map(int, version().split("."))
    return major * 10000 + minor * 100 + patch


@pytest.fixture()
def program(tmp_path):
    (tmp_path / "program.c").write_text(PROGRAM)
    return tmp_path


def lib(prefix):
    return next(Path(prefix).glob("**/libxccl.so")).parent


def test_pkg_config(plain, program):
    environment = {"PKG_CONFIG_PATH": str(lib(plain) / "pkgconfig")}
    assert run("pkg-config", "--modversion", "xccl", env=environment).strip() == version()
    flags = run("pkg-config", "--cflags", "--libs", "xccl", env=environment).split()
    assert not [flag for flag in flags if flag.startswith(("-I", "-L")) and str(plain) not in flag]
    run("cc", program / "program.c", "-o", program / "program", *flags)
    output = run(program / "program", env={"LD_LIBRARY_PATH": str(lib(plain))})
    assert int(output) == number()


def test_find_package(plain, program):
    (program / "CMakeLists.txt").write_text(PROJECT.format(version=version()))
    run("cmake", "-S", program, "-B", program / "b", f"-DCMAKE_PREFIX_PATH={plain}")
    run("cmake", "--build", program / "b")
    assert int(run(program / "b" / "program")) == number()


def test_find_package_refuses_another_version(plain, program):
    major = int(version().split(".")[0]) + 1
    (program / "CMakeLists.txt").write_text(PROJECT.format(version=f"{major}.0"))
    output = run(
        "cmake", "-S", program, "-B", program / "b", f"-DCMAKE_PREFIX_PATH={plain}", fails=True
    )
    assert f"version: {version()}" in output, output


def test_the_tree_can_be_moved(plain, program):
    """Programs, libraries, pkg-config and CMake's package all work from another place."""
    moved = program / "elsewhere" / "xccl"
    shutil.copytree(plain, moved, symlinks=True)
    environment = {"PKG_CONFIG_PATH": str(lib(moved) / "pkgconfig")}
    flags = run("pkg-config", "--cflags", "--libs", "xccl", env=environment)
    assert str(moved) in flags and str(plain) not in flags
    (program / "CMakeLists.txt").write_text(PROJECT.format(version=version()))
    run("cmake", "-S", program, "-B", program / "b", f"-DCMAKE_PREFIX_PATH={moved}")
    run("cmake", "--build", program / "b")
    assert str(moved) in run("ldd", program / "b" / "program")
    information = run(moved / "bin" / "xccl-info", "--long")
    assert f"prefix         {moved}" in information
    family = next((lib(moved) / "xccl").glob("libxccl-mpi-*.so"))
    assert f"=> {lib(moved)}" in run("ldd", family), "the interposer finds the old libxccl"


def test_no_path_of_the_build_is_left(plain):
    """No run path, no script and no package file points into the build or the sources."""
    wanted = re.compile(rb"(?:RUNPATH|RPATH)[^\n]*")
    for file in plain.glob("**/*.so*"):
        if file.is_symlink() or not file.is_file():
            continue
        for found in wanted.findall(run("readelf", "-d", file).encode()):
            assert b"$ORIGIN" in found and str(TOP).encode() not in found, (file, found)
    for file in plain.glob("**/*"):
        if file.suffix in (".cmake", ".pc", ".sh", ".lua", ".csh", ".fish"):
            assert str(TOP) not in file.read_text(), file


def test_installed_modules_name_the_prefix(plain):
    for file in plain.glob("share/xccl/**/*.lua"):
        assert "@prefix@" not in file.read_text(), file
    wiring = plain / "share/xccl/packaged/xccl-wiring" / f".{version()}.lua"
    assert f'local root = "{plain}"' in wiring.read_text()


def test_manuals_completion_and_documents(plain):
    share = plain / "share"
    tools = yaml.safe_load((TOP / "libxccl/tools/completion/options.yaml").read_text())["tools"]
    for tool in tools:
        assert (plain / "bin" / tool).exists()
        assert f"xccl {version()}" in (share / f"man/man1/{tool}.1").read_text()
        for file in (
            "bash-completion/completions/{}",
            "zsh/site-functions/_{}",
            "fish/vendor_completions.d/{}.fish",
        ):
            assert tool in (share / file.format(tool)).read_text(), file
    for page in ("man7/xccl.7", "man3/xccl.3", "man3/xccl-mpix.3"):
        assert f"xccl {version()}" in (share / "man" / page).read_text(), page
    for page in ("LICENSE", "doctor.md", "docs/start.md", "docs/examples/ring_hip.cpp"):
        assert (share / "doc/xccl" / page).read_text(), page


def test_unknown_site_is_refused(tmp_path):
    output = run(TOP / "ci" / "install-packaged", "--site", "nowhere", tmp_path, fails=True)
    assert "unknown site 'nowhere'; sites: alps " in output
    assert not list(tmp_path.iterdir()), "something was installed all the same"


def test_all_users_can_use_what_root_installs(plain, tmp_path):
    """The step of `make install`, under an umask that lets nobody else read: CMake's folders and bytecode follow it."""
    build, prefix = tmp_path / "build", tmp_path / "deep/prefix"
    build.mkdir()
    (build / "install").symlink_to(plain_install.build_folder())
    command = ["make", "--dry-run", "install", f"PREFIX={prefix}", f"BUILD={build}"]
    lines = run(*command, cwd=TOP).splitlines()
    (step,) = [line for line in lines if "cmake --install" in line]
    run("sh", "-c", step, umask=0o077)
    there = list(prefix.parent.rglob("*"))
    assert [path for path in there if path.suffix == ".pyc"]
    modes = {path: path.stat().st_mode & (0o055 if path.is_dir() else 0o044) for path in there}
    assert [str(path) for path, mode in modes.items() if mode not in (0o055, 0o044)] == []


@pytest.mark.thorough  # EasyBuild's tests build the tarball as well
def test_tarball_builds_without_git(tarball, tmp_path):
    """The released tarball configures, builds and installs where git is neither used nor there."""
    with tarfile.open(tarball) as tar:
        tar.extractall(tmp_path)
    source = tmp_path / f"xccl-{version()}"
    assert not (source / ".git").exists()
    bare = tmp_path / "bin"
    bare.mkdir()
    (bare / "git").write_text("#!/bin/sh\necho 'git was called' >&2\nexit 1\n")
    (bare / "git").chmod(0o755)
    environment = {"PATH": f"{bare}:{os.environ['PATH']}"}
    build, prefix = tmp_path / "b", tmp_path / "prefix"
    run(
        "cmake",
        "-S",
        source / "libxccl",
        "-B",
        build,
        f"-DCMAKE_INSTALL_PREFIX={prefix}",
        # Kernels and all MPIs take minutes, and are compiled where the library is tested. Nor is it
        # of use to optimise here.
        "-DCMAKE_BUILD_TYPE=Debug",
        "-DXCCL_MPICC=mpicc",
        "-DXCCL_NVCC=",
        "-DXCCL_HIPCC=",
        env=environment,
    )
    output = run("cmake", "--build", build, "--parallel", "2", env=environment)
    assert "git was called" not in output
    run("cmake", "--install", build, env=environment)
    run(source / "ci" / "install-packaged", prefix, env=environment)
    assert run(prefix / "bin" / "xccl-info", "--version").strip() == f"xccl-info {version()}"
