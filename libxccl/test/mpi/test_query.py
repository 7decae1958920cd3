# SPDX-License-Identifier: BSD-3-Clause
"""What programs are told that ask whether MPI is GPU-aware, as many do before they pass device memory."""

import pytest

NO = {"cuda": 0, "rocm": 0, "hip": 0, "gpu0": 0, "gpu2": 0}
CUDA = {**NO, "cuda": 1, "gpu0": 1}
ROCM = {**NO, "rocm": 1, "hip": 1, "gpu2": 1}


def answers(result, when="after"):
    assert result.status == 0, result.out
    (line,) = result.lines(f"{when}: ")
    words = line.split()[1:]
    return {name: int(value) for name, value in zip(words[::2], words[1::2], strict=True)}


@pytest.mark.parametrize(
    ("sim", "env", "expected"),
    [
        ("cuda:1", {}, CUDA),
        ("rocm:1", {}, ROCM),
        ("cuda:1", {"XCCL_P2P": "staged"}, CUDA),
        ("cuda:1", {"XCCL_ROUTE": "mpi"}, CUDA),
        ("cuda:1", {"XCCL_GPU_QUERY": "mpi"}, NO),
        ("cuda:1", {"XCCL_P2P": "mpi"}, NO),
        ("cuda:1", {"CUDA_VISIBLE_DEVICES": ""}, NO),
        ("cuda:1", {"CUDA_VISIBLE_DEVICES": "-1"}, NO),
        ("cuda:1", {"CUDA_VISIBLE_DEVICES": "0", "HIP_VISIBLE_DEVICES": ""}, CUDA),
        ("rocm:1", {"ROCR_VISIBLE_DEVICES": ""}, NO),
        ("cuda:1", {"XCCL_P2P": "mpi", "XCCL_MPI_GPU_AWARE": "yes"}, CUDA),
        (None, {}, NO),
    ],
)
def test_query(family, sim, env, expected):
    """Yes, where xccl makes it so for that kind of device; MPI's own answer otherwise."""
    assert answers(family.run(1, "mpi_query", sim=sim, env=env, timeout=30)) == expected


def test_an_mpi_that_denies(openmpi):
    """The user says that MPI is GPU-aware, and MPI says that it is not: it would crash."""
    env = {"XCCL_MPI_GPU_AWARE": "yes"}
    said = (
        r"warning: XCCL_MPI_GPU_AWARE=yes, but Open MPI .* says .* \(cuda\): what is left to MPI"
    )
    result = openmpi.run(2, "mpi_query", sim="cuda:2", env=env, timeout=30)
    assert len(result.lines(said)) == 1, result.out
    assert not openmpi.run(1, "mpi_query", sim=None, env=env, timeout=30).lines("XCCL_MPI_GPU_AW")
    assert not openmpi.run(1, "mpi_query", sim="cuda:1", timeout=30).lines("XCCL_MPI_GPU_AWARE")


def test_before_mpi_begins(openmpi):
    """Open MPI can be asked before MPI_Init."""
    result = openmpi.run(1, "mpi_query early", sim="cuda:1", timeout=30)
    assert answers(result, "before") == answers(result) == CUDA


def test_without_xccl(family):
    """What these tests compare with: neither MPI here is GPU-aware."""
    found = answers(family.run(1, "mpi_query", sim="cuda:1", preload=False, timeout=30))
    assert found["cuda"] == 0 and max(found.values()) == 0
