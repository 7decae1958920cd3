# SPDX-License-Identifier: BSD-3-Clause
"""Preloaded where there is nothing to do: not a word, not a library, not a changed exit status."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from mpi_harness import DIRECT

COMMANDS = {
    "true": ["/bin/true"],
    "false": ["/bin/false"],
    "sh": ["/bin/sh", "-c", "echo out; echo err >&2; exit 7"],
    "bash": ["bash", "-c", "x=$(echo sub); echo $x | cat; exit 3"],
    "python": ["python3", "-c", "import os, ctypes, threading; print(os.getppid() > 0)"],
    "ls": ["/bin/ls", "/"],
    "mpirun": ["mpirun", "--version"],
}


def run(build, command, preload, **more):
    build.runs_here()
    env = {**build.environment(None), **more}
    if preload:
        env["LD_PRELOAD"] = build.preload()
    done = subprocess.run(
        command, env=env, capture_output=True, text=True, timeout=60, check=False
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.skipif(not shutil.which("nm"), reason="nm (binutils) is not installed")
def test_needs_no_symbol_of_mpi(build):
    """Python loads MPI where our libraries cannot see its symbols: they are looked up instead."""
    files = sorted((build.stage / "lib/xccl").glob("libxccl-mpi-*.so"))
    assert files
    for file in files:
        listed = subprocess.run(
            ["nm", "-D", "--undefined-only", file], capture_output=True, text=True, check=True
        ).stdout.split()
        assert [s for s in listed if s.startswith(("MPI", "PMPI", "ompi_", "MPIR"))] == [], file


@pytest.mark.parametrize("bind_now", [False, True])
@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_without_mpi(build, name, bind_now):
    """Output and exit status are those without xccl."""
    command = COMMANDS[name]
    if not shutil.which(command[0]):
        pytest.skip(f"{command[0]} is not installed")
    more = {"LD_BIND_NOW": "1"} if bind_now else {}
    assert run(build, command, True, **more) == run(build, command, False, **more)


@pytest.fixture
def in_front(family, tmp_path):
    """A library that has xccl's functions in front of MPI's, made as docs/use/launch.md says."""
    page = (Path(__file__).parents[3] / "docs/use/launch.md").read_text()
    (command,) = re.findall(r"^mpicc -shared .*$", page, re.MULTILINE)
    words = shlex.split(command.replace("$XCCL_ROOT", str(family.build.stage)))
    words[0] = family.build.families[family.family]["mpicc"]
    subprocess.run(words, cwd=tmp_path, check=True)
    return tmp_path / "libmpi_xccl.so"


@pytest.mark.release_only
def test_mpi_that_the_program_opens(family, in_front):
    """Its functions are asked of the library, past what is preloaded: so it is given another one."""
    run = ["mpi_opened", "cuda", in_front]
    result = family.run(2, run, sim="cuda:2", preload=False, env=DIRECT, timeout=60)
    assert result.status == 0, result.out
    assert len(result.lines("sum 1, path direct, GPU-aware 1")) == 2, result.out


@pytest.mark.release_only
def test_stays_when_it_is_closed(build):
    """A program may close a plugin that was linked with it; MPI's callbacks are still ours."""
    path = str(build.stage / "lib/libxccl-mpi.so")
    code = f"import _ctypes; _ctypes.dlclose(_ctypes.dlopen({path!r}, 2)); "
    code += "print(open('/proc/self/maps').read())"
    status, out, err = run(build, [shutil.which("python3"), "-c", code], False)
    assert (status, err) == (0, "") and "libxccl-mpi.so" in out


def test_nothing_is_loaded(build):
    """In a program without MPI neither libxccl nor a library of a vendor's nor MPI appears."""
    status, out, err = run(build, ["cat", "/proc/self/maps"], True)
    assert status == 0 and not err
    assert "libxccl-mpi.so" in out
    for name in ("libxccl.so", "libxccl-mpi-", "libcuda", "libamdhip", "libnccl", "libmpi"):
        assert name not in out


def test_exports_only_its_own(build):
    """What libxccl-mpi.so defines are MPI functions and its own: it can shadow nothing else."""
    out = subprocess.run(
        ["nm", "-D", "--defined-only", build.interposer],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    names = [line.split()[-1] for line in out.splitlines()]
    strange = [
        name
        for name in names
        if not name.lower().startswith(("mpi_", "pmpi_", "mpix_", "pmpix_", "xccl"))
        and name != "_init"
    ]
    assert names and not strange


def test_needs_no_mpi(build):
    """It is tied to no MPI and no vendor, so that one file serves all."""
    out = subprocess.run(
        ["readelf", "-d", build.interposer], capture_output=True, text=True, check=True
    ).stdout
    needed = [line.split("[")[1].rstrip("]") for line in out.splitlines() if "NEEDED" in line]
    allowed = ("libc.so", "libdl.so", "libpthread.so", "ld-linux", "libasan", "libubsan")
    assert needed and all(name.startswith(allowed) for name in needed), needed


@pytest.mark.parametrize("sim", [None, "cuda:4"])
def test_host_program(mpi, sim):
    """An MPI program without device memory has no driver loaded for it."""
    result = mpi.run(2, "mpi_host", sim=sim, timeout=60)
    assert result.status == 0, result.out
    assert len(result.lines("sum right, 0 vendor files mapped")) == 2


def test_preloaded_twice(openmpi):
    """Linked and preloaded at once: what a site's module and a user's flags do together."""
    openmpi.run(2, "mpi_colls_linked cuda dd comms").good()


def test_two_copies(mpi, tmp_path):
    """A site's and a user's own: the first one serves, and the other one is named."""
    copy = tmp_path / "libxccl-mpi.so"
    shutil.copy(mpi.build.interposer, copy)
    shutil.copytree(mpi.build.interposer.parent / "xccl", tmp_path / "xccl")
    preload = mpi.build.preload(mpi.build.interposer, copy)
    words = [shutil.which("env"), f"LD_PRELOAD={preload}", mpi.program("mpi_requests")]
    result = mpi.run(3, [*words, "cuda", "mixture"], preload=False, timeout=60)
    result.good()
    assert f"{copy} is loaded as well" in result.out


def test_one_process_of_a_node_says_it(mpi, tmp_path):
    """What all ranks find when the library of their MPI is missing is not said by each of them."""
    copy = tmp_path / "lib"
    shutil.copytree(mpi.build.stage / "lib", copy, symlinks=True)
    for file in (copy / "xccl").glob("libxccl-mpi-*.so"):
        file.unlink()
    words = [shutil.which("env"), f"LD_PRELOAD={mpi.build.preload(copy / 'libxccl-mpi.so')}"]
    result = mpi.run(3, [*words, mpi.program("mpi_host")], preload=False, timeout=60)
    assert len(result.lines("calls go to MPI alone")) == 1, result.out
    assert len(result.lines("sum right, 0 vendor files mapped")) == 3, result.out


@pytest.mark.parametrize(
    ("family", "version", "said"),
    [
        (
            "left out",
            "1",
            "the program uses MPI's standard ABI, and this xccl was built without it",
        ),
        ("built", "1", "the MPI library lacks PMPI_"),
        (
            "built",
            "2",
            "the MPI library has version 2.0 of MPI's standard ABI, and xccl was built",
        ),
    ],
)
def test_standard_abi(build, tmp_path, family, version, said):
    """Handles of MPI 5's standard ABI reach its library whole, and the user hears why xccl is idle."""
    files = "xccl/libxccl-mpi-mpiabi.so"
    if family == "built" and not (build.stage / "lib" / files).exists():
        pytest.skip("xccl was built without the standard ABI: there was no mpicc_abi")
    shutil.copytree(build.stage / "lib", tmp_path / "lib", symlinks=True)
    if family == "left out":
        (tmp_path / "lib" / files).unlink(missing_ok=True)
    preload = build.preload(tmp_path / "lib/libxccl-mpi.so")
    more = {"STANDARD_ABI_VERSION": version, "LD_PRELOAD": preload}
    status, out, err = run(build, [build.programs / "mpi_standard_abi"], False, **more)
    assert status == 0, err
    assert out.splitlines() == [
        "MPI_Barrier of 0x123456789abc",
        "MPI_Bcast of 1 of 0x248 from 0 in 0x123456789abc",
    ]
    (line,) = err.splitlines()
    assert f"calls go to MPI alone: {said}" in line


@pytest.mark.release_only
@pytest.mark.parametrize(
    "command",
    [
        ["mpi_colls-mpich", "cuda", "dd", "repeat"],
        ["xccl-perf", "--max", "64", "--max-time", "0.1"],
    ],
)
def test_mpich_3_4_is_not_asked_what_ends_it(own_abi, command):
    """Through the interposer, and by xccl-perf alone, which then refuses device memory."""
    build = own_abi.build
    perf = command[0] == "xccl-perf"
    libraries = [] if perf else [build.interposer]
    libraries += [build.programs / "libmpich_34.so", build.mpich_idle]
    program = (build.stage / "bin" if perf else build.programs) / command[0]
    words = ["/usr/bin/env", f"LD_PRELOAD={build.preload(*libraries)}", program, *command[1:]]
    result = own_abi.run(1, words, preload=False)
    assert result.lines("MPIX_GPU_query_support of type 0")
    if perf:
        assert "this MPI does not say that it takes cuda device memory" in result.out
    else:
        result.good()


@pytest.mark.release_only
def test_mpich_4_2_completes_what_is_looked_at(own_abi):
    """A persistent request whose look MPI completes is the program's to complete, with its status."""
    build = own_abi.build
    libraries = [build.interposer, build.programs / "libmpich_42.so", build.mpich_idle]
    words = ["/usr/bin/env", f"LD_PRELOAD={build.preload(*libraries)}"]
    words += [own_abi.program("mpi_legal"), "cuda", "kinds"]
    own_abi.run(3, words, preload=False).good()


@pytest.mark.release_only
@pytest.mark.parametrize("case, freed", [("anyhow", 0), ("freed_comm", 5)])
def test_tools_see_no_communicator_of_xccl(mpi, case, freed):
    """Persistent collectives have communicators of their own, which no tool saw being made."""
    build = mpi.build
    libraries = [build.interposer, build.programs / "libcounting_tool.so"]
    libraries += [build.mpich_idle] if mpi.is_mpich else []
    words = ["/usr/bin/env", f"LD_PRELOAD={build.preload(*libraries)}"]
    words += [mpi.program("mpi_persistent"), "cuda", case]
    result = mpi.run(2, words, sim="cuda:4", preload=False)
    result.good()
    told = result.lines("tool: .* communicators were freed")
    assert told == [f"tool: {freed} communicators were freed"] * (2 if freed else 0)


PIECES = {"XCCL_THREADS": "multiple", "XCCL_PIPELINE": "4096", "XCCL_SIM_NODES": "2"}


@pytest.mark.release_only
@pytest.mark.parametrize(
    ("command", "env"),
    [("mpi_ending cuda one", {}), ("mpi_pipeline cuda tags pipelined", PIECES)],
)
def test_tool_in_front(mpi, command, env):
    """A tool's MPI_Init calls PMPI_Init, which is xccl's, too: MPI begins there as without the tool."""
    build = mpi.build
    libraries = [build.programs / "libfront_tool.so", build.interposer]
    libraries += [build.mpich_idle] if mpi.is_mpich else []
    words = ["/usr/bin/env", f"LD_PRELOAD={build.preload(*libraries)}"]
    program, *arguments = command.split()
    words += [mpi.program(program), *arguments]
    mpi.run(2, words, sim="cuda:2", preload=False, env=env, timeout=60).good()


@pytest.mark.release_only
def test_mpich_5_is_not_asked_what_ends_it(own_abi):
    """What its reductions are to our kernels is tried out, but not with truth values of Fortran."""
    build = own_abi.build
    libraries = [build.interposer, build.programs / "libmpich_50.so", build.mpich_idle]
    words = ["/usr/bin/env", f"LD_PRELOAD={build.preload(*libraries)}"]
    words += [own_abi.program("mpi_integers"), "cuda"]
    own_abi.run(2, words, preload=False, env=DIRECT).good()


@pytest.mark.release_only
def test_ranks_whose_mpis_reduce_differently(own_abi):
    """The ranks take one path for integers, though each MPI alone would allow another."""
    build = own_abi.build
    preload = build.preload(build.interposer, build.programs / "libmpich_50.so", build.mpich_idle)
    other = build.preload(build.interposer, build.mpich_idle)
    choose = f'[ "$PMI_RANK" = 0 ] && export LD_PRELOAD={preload} || export LD_PRELOAD={other}'
    words = ["/bin/sh", "-c", f'{choose}; exec "$@"', "-", own_abi.program("mpi_integers"), "cuda"]
    result = own_abi.run(2, words, preload=False, env={**DIRECT, "XCCL_LOG": "info"})
    result.good()
    assert result.lines("the ranks' MPIs reduce integers differently"), result.out


@pytest.mark.release_only
def test_streams_beside_those_of_mpi(own_abi):
    """A rank without a stream may not take MPI's way to a communicator while the others take xccl's."""
    build = own_abi.build
    libraries = build.preload(build.programs / "libmpich_42.so", build.mpich_idle)
    words = ["/usr/bin/env", f"LD_PRELOAD={libraries}", own_abi.program("mpi_streams_messages")]
    own_abi.run(2, [*words, "cuda", "refused"], preload=False, timeout=30).good()
