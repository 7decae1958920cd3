# SPDX-License-Identifier: BSD-3-Clause
"""Ranges for a profiler: by a stand-in with the interface of NVTX tools, and one with roctx's."""

import pytest
from mpi_harness import CCL


@pytest.fixture
def profiled(tmp_path):
    """Run a program with variables that attach a profiler; what that saw in each rank."""

    def run(mpi, ranks, command, env, sim=None, **options):
        log = tmp_path / "ranges"
        for old in tmp_path.iterdir():
            old.unlink()
        env = {"FAKE_PROFILER_LOG": str(log), **CCL, **env}
        result = mpi.run(ranks, command, env=env, sim=sim, timeout=60, **options)
        assert result.status == 0, result.out
        assert len(result.lines("rank .: over")) == ranks, result.out
        files = sorted(tmp_path.glob("ranges.*"))
        return result, [file.read_text().splitlines() for file in files]

    return run


def library(build, kind):
    (file,) = (build.programs / "profilers" / kind).iterdir()
    return file


def check_nesting(lines):
    """Every range has its end, and nothing else was said."""
    stack = []
    for line in lines:
        mark, _, text = line.partition(" ")
        if mark == ">":
            stack.append(text)
        else:
            assert mark == "<", line
            stack.pop()
            assert int(text) == len(stack), line
    assert not stack
    return [line[2:] for line in lines if line.startswith("> ")]


def test_nvtx(mpi, profiled):
    """A range round each call, in a domain of xccl's; nobody counts anything."""
    env = {"NVTX_INJECTION64_PATH": str(library(mpi.build, "nvtx"))}
    result, ranks = profiled(mpi, 2, "mpi_profile none known", env)
    assert len(ranks) == 2 and not result.lines("xccl")
    for lines in ranks:
        assert lines[0] == "domain xccl"
        names = check_nesting(lines[1:])
        assert names.count("MPI_Allreduce") == 10
        assert names.count("MPI_Bcast") == 2
        assert names.count("MPI_Barrier") == 1
    assert sorted(sum(line == "> MPI_Sendrecv" for line in lines) for lines in ranks) == [0, 7]


def test_nvtx_of_device_memory(family, profiled):
    """Inside of a call's range is one with the path that carries it."""
    env = {"NVTX_INJECTION64_PATH": str(library(family.build, "nvtx"))}
    _, ranks = profiled(family, 2, "mpi_profile cuda known", env, sim="cuda:2")
    for lines in ranks:
        names = check_nesting(lines[1:])
        assert names.count("ccl") == 5 + 3
        assert "> MPI_Allreduce\n> ccl\n< 1\n< 0" in "\n".join(lines)
        assert "> MPI_Iallreduce\n> ccl\n< 1\n< 0\n> MPI_Wait\n< 0" in "\n".join(lines)
        assert names.count("MPI_Start") == 2


def test_nvtx_without_domains(openmpi, profiled):
    env = {"NVTX_INJECTION64_PATH": str(library(openmpi.build, "nvtx")), "FAKE_NVTX_MODE": "core"}
    _, ranks = profiled(openmpi, 1, "mpi_profile none many", env)
    assert len(check_nesting(ranks[0])) == 2 * 19 * 12


@pytest.mark.parametrize(
    "env",
    [
        {"FAKE_NVTX_MODE": "refuse"},
        {"XCCL_RANGES": "off"},
        {"NVTX_INJECTION64_PATH": "/no/such/file.so"},
        {"NVTX_INJECTION64_PATH": ""},
    ],
)
def test_no_nvtx(openmpi, profiled, env):
    """Whatever keeps the tool away, the program runs, and nothing is pushed."""
    tool = {"NVTX_INJECTION64_PATH": str(library(openmpi.build, "nvtx"))}
    result, ranks = profiled(openmpi, 1, "mpi_profile none many", {**tool, **env})
    assert not [line for lines in ranks for line in lines if line[0] in "<>"]
    assert not result.lines("xccl"), result.out


@pytest.mark.parametrize("kind", ["sdk", "old"])
@pytest.mark.parametrize("variable", ["ROCP_TOOL_LIBRARIES", "HSA_TOOLS_LIB"])
def test_roctx(openmpi, profiled, kind, variable):
    """By the name of either library, from the search path."""
    env = {variable: "/opt/rocm/lib/tool.so"}
    folder = str(library(openmpi.build, kind).parent)
    _, ranks = profiled(openmpi, 1, "mpi_profile none many", env, library_path=folder)
    assert len(check_nesting(ranks[0])) == 2 * 19 * 12


def test_roctx_without_a_profiler(openmpi, profiled):
    """That the library is there is no reason to call it."""
    folder = str(library(openmpi.build, "sdk").parent)
    _, ranks = profiled(openmpi, 1, "mpi_profile none many", {}, library_path=folder)
    assert not ranks


def test_with_profile(openmpi, profiled):
    """Both at once."""
    env = {"NVTX_INJECTION64_PATH": str(library(openmpi.build, "nvtx")), "XCCL_PROFILE": "1"}
    result, ranks = profiled(openmpi, 2, "mpi_profile none known", env)
    assert result.lines("^xccl profile: ")
    assert len(ranks) == 2 and all(check_nesting(lines[1:]) for lines in ranks)
