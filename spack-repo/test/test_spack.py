# SPDX-License-Identifier: BSD-3-Clause
"""xccl under a real Spack, on this machine's compiler, CMake and Open MPI: installed, tested, loaded, detected."""

import re

LOAD = "xccl-perf --max 4k --iters 5"


def rows(output):
    return re.findall(r"^ +(\d+) +\d+ (\S+) .* (\S+)$", output, re.M)


def test_installs_and_passes_its_own_tests(spack):
    path = spack.install()
    output = spack.with_mpi("-e", path, "test", "run", "--alias", "own", "xccl")
    assert "1 passed of 1 spec" in output, output
    results = spack.with_mpi("-e", path, "test", "results", "-l", "own")
    for name in ("test_info", "test_harmless", "test_interposed"):
        assert f"Xccl::{name} .. PASSED" in results, results


def test_load(spack):
    """`spack load` gives programs that run; the interposer takes over."""
    path = spack.install()
    script = spack.with_mpi("-e", path, "load", "--sh", "xccl")
    status, output = spack.easybuild_sandbox.shell(
        f"{script}\nmpirun --oversubscribe -n 2 xccl-run --sim cuda:2 -- {LOAD}"
    )
    assert status == 0, output
    assert {row[1:] for row in rows(output)} == {("direct", "ok")}, output


def test_lmod_modules(spack):
    """The generated modules load from the hierarchy, by the names of modulefiles/."""
    path = spack.install()
    spack.with_mpi("-e", path, "module", "lmod", "refresh", "-y", "--delete-tree")
    found = sorted((spack.folder() / "lmod").glob("**/xccl/*.lua"))
    assert [file.name for file in found] == [f"{spack.easybuild_sandbox.version()}.lua"], found
    core = next((spack.folder() / "lmod").glob("*/Core"))
    mpi = sorted(core.glob("openmpi/*.lua"))
    assert mpi, "openmpi is not in Core"
    status, output = spack.easybuild_sandbox.shell(
        f"module use {core}; module is-avail xccl && echo early; "
        f"module load openmpi xccl && mpirun --oversubscribe -n 2 xccl-run --sim cuda:2 -- {LOAD}"
    )
    assert status == 0, output
    assert "early" not in output, "visible without an MPI"
    assert {row[1:] for row in rows(output)} == {("direct", "ok")}, output
    # xccl's own modules of routes and settings are there beside Spack's of the software.
    status, output = spack.easybuild_sandbox.shell(
        f"module use {core}; module load openmpi xccl && "
        "module load xccl-site/sim xccl-route/mpi xccl-settings/debug && echo route=$XCCL_ROUTE:$NCCL_DEBUG"
    )
    assert (status, "route=mpi:INFO" in output) == (0, True), output


def test_detected_as_external(spack):
    """`spack external find xccl` sees version and variants of an installation."""
    path = spack.install()
    prefix = spack.with_mpi("-e", path, "location", "-i", "xccl").split()[-1]
    scope = spack.folder() / "detected"
    scope.mkdir()
    for name in ("repos", "bootstrap", "config"):
        (scope / f"{name}.yaml").write_text((spack.folder() / "user" / f"{name}.yaml").read_text())
    spack.spack(
        "external", "find", "--path", f"{prefix}/bin", "xccl", SPACK_USER_CONFIG_PATH=str(scope)
    )
    text = (scope / "packages.yaml").read_text()
    assert f"spec: xccl@{spack.easybuild_sandbox.version()}~cuda+mpi~rocm+sim" in text, text
    assert f"prefix: {prefix}" in text


def test_audit(spack):
    """Nothing that Spack's own audit of packages and of configuration finds."""
    names = sorted(
        path.parent.name.replace("_", "-")
        for path in spack.REPOSITORY.glob("packages/*/package.py")
    )
    output = spack.here("audit", "packages", *names)
    assert re.findall(r"^PKG-\S+: (\S+)$", output, re.M) == ["passed"] * 4, output
    assert "CFG" in spack.here("audit", "configs")
