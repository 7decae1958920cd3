# SPDX-License-Identifier: BSD-3-Clause
"""The easyconfigs under a real EasyBuild: checked, resolved against upstream's, installed, loaded, run."""

import re
import runpy
import subprocess
from pathlib import Path

import pytest

EASYCONFIGS = Path(__file__).resolve().parents[1]
ALL = sorted(EASYCONFIGS.glob("**/*.eb"))
# Names that are JSC's own (Stages/2023); upstream has neither.
JSC_ONLY = "CUDA,NCCL"
ROBOT = f"--robot-paths={EASYCONFIGS}:{EASYCONFIGS / 'cpe'}:{EASYCONFIGS / 'system'}:"
# What EasyBuild gives an easyconfig, as far as those of xccl use it.
KNOWN = {name: name for name in ("EXTERNAL_MODULE", "SOURCE_TAR_GZ", "SYSTEM")} | {
    "SHLIB_EXT": "so"
}
# The names of flat modules ask for no easyconfig of a dependency.
FLAT = "--module-naming-scheme=EasyBuildMNS"


def test_there_are_some():
    names = {path.name.split("-", 1)[0] for path in ALL}
    assert {"xccl", "aws", "UCC", "NCCL", "RCCL", "cpeGNU"} <= names, names


def test_contribution_checks(easybuild):
    """What upstream asks of a pull request: style, checksums, the name of the file."""
    output = easybuild.eb("--check-contrib", FLAT, *ALL)
    assert "All contribution checks PASSed" in output
    assert len(re.findall(r"^\[PASS\]", output, re.M)) == 2 * len(ALL), output


def test_style(easybuild):
    output = easybuild.eb("--check-style", FLAT, *ALL)
    assert "All style checks PASSed" in output


@pytest.mark.parametrize("tree", ["upstream", "jsc"])
def test_every_dependency_is_known(easybuild, tree):
    """-D -r finds an easyconfig for every dependency that is no external module."""
    jsc = [path for path in ALL if "jsc" in path.parts]
    files = jsc if tree == "jsc" else [path for path in ALL if path not in jsc]
    more = [f"--filter-deps={JSC_ONLY}"] if tree == "jsc" else []
    output = easybuild.eb("-D", "-r", ROBOT, *more, *files)
    for path in files:
        assert re.search(rf" \* \[.\] .*/{re.escape(path.name)} \(module: ", output), output


def test_installed_and_loaded_from_the_hierarchy(easybuild):
    """The module appears behind compiler and MPI only, and what it loads works."""
    core = easybuild.install()
    status, output = easybuild.shell(f"module use {core}; module is-avail xccl")
    assert status != 0, f"visible without its toolchain: {output}"
    status, output = easybuild.shell(
        f"module use {core}; module load gompi/system xccl && module list && "
        "mpirun --oversubscribe -n 2 xccl-run --sim cuda:2 -- xccl-perf --max 4k --iters 5"
    )
    assert status == 0, output
    for name in ("xccl/", "xccl-site/sim", "xccl-route/xccl"):
        assert name in output, f"{name} is not loaded:\n{output}"
    rows = re.findall(r"^ +(\d+) +\d+ (\S+) .* (\S+)$", output, re.M)
    assert len(rows) == 6, output
    assert {row[1:] for row in rows} == {("direct", "ok")}, output


def test_unload_leaves_nothing(easybuild):
    core = easybuild.install()
    script = (
        f"module use {core}; module load gompi/system; env | sort >before; module load xccl; "
        "module unload xccl; env | sort >after; grep -v -e ^_ before >b; "
        "grep -v -e ^_ after >a; diff b a"
    )
    status, output = easybuild.shell(script)
    assert status == 0, output


def test_other_route_and_auto(easybuild):
    """The settings modules of the installation are those of `make install`."""
    core = easybuild.install()
    status, output = easybuild.shell(
        f"module use {core}; module load gompi/system xccl xccl-route/ucc xccl-auto && "
        'echo "$XCCL_ROUTE|$OMPI_MCA_coll_ucc_enable|$LD_PRELOAD" && module unload xccl-auto && '
        'echo "preload:${LD_PRELOAD-}" && true'
    )
    assert status == 0, output
    assert re.search(r"^ucc\|1\|/.*/lib/libxccl-mpi\.so$", output, re.M), output
    assert "preload:\n" in output, output


def test_settings_leave_nothing(easybuild):
    """Site and route as EasyBuild's own modules: a value of the user's comes back."""
    folder = EASYCONFIGS / "settings"
    easybuild.eb(
        folder / "frontier/xccl-settings-xccl.eb", folder / "dgx-h100/xccl-settings-ucc-ccl.eb"
    )
    core = easybuild.folder() / "prefix" / "modules" / "all" / "Core"
    for route, shown in (("xccl", "frontier:PHB:"), ("ucc-ccl", "dgx-h100:LOC:=mlx5_0,")):
        status, output = easybuild.shell(
            f"module use {core}; export NCCL_NET_GDR_LEVEL=LOC; env | grep -v ^_ | sort >b; "
            f"module load xccl-settings/{route}; "
            "echo $XCCL_SITE:$NCCL_NET_GDR_LEVEL:$NCCL_IB_HCA; module purge; "
            "env | grep -v -e ^_ -e LMOD_FAMILY | sort >a; diff b a"
        )
        assert status == 0, output
        assert output.startswith(shown), output


def test_built_for_the_toolchain_only(easybuild):
    """The MPI of the toolchain is built for, and no other that the machine happens to have."""
    easybuild.install()
    found = sorted(easybuild.folder().glob("prefix/software/xccl/*/lib/xccl/libxccl-mpi-*.so"))
    assert [path.name for path in found] == ["libxccl-mpi-openmpi.so"]
    asked = easybuild.folder() / "asked"
    assert not asked.exists(), f"compilers of the machine: {asked.read_text()}"


@pytest.mark.parametrize(
    "path", [p for p in ALL if p.name.startswith("xccl-0")], ids=lambda p: p.stem
)
def test_kernels_by_dependencies_only(path):
    """Another CUDA in /usr/local/cuda may refuse the toolchain's GCC, and the build would fail."""
    text = path.read_text(encoding="utf-8")
    for option, wanted in (
        ("XCCL_NVCC", "('CUDA'," in text),
        ("XCCL_HIPCC", re.search(r"'(rocm/[\d.]+', EXTERNAL_MODULE|RCCL',)|cpeGNU", text)),
    ):
        assert bool(re.search(rf"-D{option}=[ ']", text)) != bool(wanted), option


def shared_object(file):
    file.parent.mkdir(parents=True)
    command = ["cc", "-shared", "-x", "c", "-", "-o", file]
    subprocess.run(command, input=b"int here;\n", check=True, timeout=60)


@pytest.mark.parametrize(
    "path", [p for p in ALL if p.name.startswith("xccl-0")], ids=lambda p: p.stem
)
def test_an_interposer_that_is_not_loaded_is_found(path, tmp_path):
    """The loader says that an object is missing, and runs the program all the same."""
    commands = runpy.run_path(path, KNOWN)["sanity_check_commands"]
    (command,) = [one for one in commands if "LD_PRELOAD" in one]
    command = command % {"installdir": tmp_path}
    assert subprocess.run(["bash", "-c", command], timeout=60, check=False).returncode != 0
    shared_object(tmp_path / "lib/libxccl-mpi.so")
    assert subprocess.run(["bash", "-c", command], timeout=60, check=False).returncode == 0


@pytest.mark.parametrize(
    "path", [p for p in ALL if p.name.startswith("xccl-0")], ids=lambda p: p.stem
)
def test_module_help_says_how_to_run(path):
    """`module help xccl` is where users look, by whichever way xccl was installed."""
    usage = re.search(r'^usage = """(.*?)"""$', path.read_text(encoding="utf-8"), re.S | re.M)
    assert usage and "xccl-run ./app" in usage[1] and "xccl-doctor" in usage[1]
