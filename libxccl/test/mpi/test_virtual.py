# SPDX-License-Identifier: BSD-3-Clause
"""Memory that programs map themselves or have of pools, devices that they reset, own contexts."""

import pytest
from mpi_harness import PATHS

STAGED = {"XCCL_TUNE": "*:*:*:*:mpi", "XCCL_DIRECT": "off"}
WAYS = {**PATHS, "staged": STAGED}
# A copy that has returned may still be on its way, and such memory says that it is not.
EARLY = {"XCCL_SIM_EARLY": "1"}
# Each pair of a path and a runtime at least once, and all paths with CUDA.
# The sanitizers need not see the simulation of each: they are one source.
ROCM = pytest.mark.release_only
SERVED = [
    *(("cuda", way) for way in ("direct", "ccl", "staged")),
    pytest.param("rocm", "direct", marks=ROCM),
]


def go(mpi, command, runtime, way, **settings):
    """Run one case on two ranks; the limit is what turns a hang into a failure."""
    program, case = command.split()
    command = f"{program} {runtime} {case}"
    env = {**WAYS[way], **EARLY, **settings}
    return mpi.run(2, command, sim=f"{runtime}:2", env=env, timeout=60)


@pytest.mark.each_value
@pytest.mark.parametrize(("runtime", "way"), SERVED)
@pytest.mark.parametrize("case", ["crossing", "remapped"])
def test_mapped(openmpi, case, runtime, way):
    """A buffer crosses mappings, whose memory changes; no other process can open it."""
    go(openmpi, f"mpi_virtual {case}", runtime, way).good()


@pytest.mark.parametrize("case", ["mixed", "grown", "persistent", "exported", "packed"])
def test_mapped_otherwise(openmpi, case):
    go(openmpi, f"mpi_virtual {case}", "cuda", "direct").good()


@pytest.mark.thorough
@pytest.mark.parametrize(("runtime", "way"), SERVED[1:])
@pytest.mark.parametrize("case", ["mixed", "grown", "persistent", "exported", "packed"])
def test_mapped_thorough(openmpi, case, runtime, way):
    go(openmpi, f"mpi_virtual {case}", runtime, way).good()


def test_mapped_mpich(mpich):
    go(mpich, "mpi_virtual remapped", "cuda", "direct").good()


def test_mapped_window(mpich):
    go(mpich, "mpi_virtual window", "cuda", "staged", XCCL_WINDOWS="separate").good()


# All device memory of the program is of the runtime's pools, which no other process can map.
POOLS = {"MT_POOLS": "1"}


@pytest.mark.parametrize(
    "command",
    [
        "mpi_messages cuda 5 60",
        "mpi_random cuda 5 100",
        "mpi_colls cuda dd counts derived",
        "mpi_rendezvous cuda reuse",
        "mpi_exchange cuda faces",
        "mpi_transfers cuda sends",
        "mpi_windows cuda requests",
        "mpi_streams cuda collectives",
        pytest.param("mpi_messages rocm 6 60", marks=ROCM),
        pytest.param("mpi_random rocm 6 100", marks=ROCM),
        pytest.param("mpi_rendezvous rocm reuse", marks=ROCM),
    ],
)
def test_pools(family, command):
    """Messages go from a copy that can be mapped, and collectives take what needs no mapping."""
    sim = command.split()[1] + ":2"
    family.run(2, command, sim=sim, env={**WAYS["direct"], **EARLY, **POOLS}, timeout=60).good()


def test_pools_without_scratch(family):
    """What is longer than XCCL_SCRATCH is not copied on the device."""
    env = {"XCCL_SCRATCH": "1", **EARLY, **POOLS}
    family.run(2, "mpi_single cuda scratch", sim="cuda:2", env=env, timeout=60).good()


def test_pools_in_pieces(openmpi):
    env = {"XCCL_THREADS": "multiple", "XCCL_PIPELINE": "4096", **POOLS}
    for more in ({}, {"XCCL_SIM_NODES": "2"}):
        command = "mpi_pipeline cuda tags pipelined"
        openmpi.run(2, command, sim="cuda:2", env={**env, **more}, timeout=60).good()


def test_pools_separate_window(mpich):
    go(mpich, "mpi_separate fence", "cuda", "direct", XCCL_WINDOWS="separate", **POOLS).good()


@pytest.mark.each_value
@pytest.mark.parametrize(("runtime", "way"), SERVED)
@pytest.mark.parametrize("case", ["end", "end_again", "messages", "collectives"])
def test_reset(openmpi, case, runtime, way):
    """What xccl kept on the device is gone with all the rest, and is made anew."""
    go(openmpi, f"mpi_reset {case}", runtime, way).good()


@pytest.mark.each_value
@pytest.mark.parametrize("runtime", ["cuda", pytest.param("rocm", marks=ROCM)])
@pytest.mark.parametrize("case", ["early", "messages_alone", "packing", "persistent"])
def test_reset_messages(openmpi, case, runtime):
    go(openmpi, f"mpi_reset {case}", runtime, "direct").good()


@pytest.mark.each_value
@pytest.mark.parametrize("runtime", ["cuda", pytest.param("rocm", marks=ROCM)])
@pytest.mark.parametrize("case", ["packing", "early"])
def test_reset_soon(openmpi, case, runtime):
    """Right after the first call, while a thread would load kernels."""
    go(openmpi, f"mpi_reset {case}", runtime, "direct", XCCL_SIM_LAUNCH_US="200000").good()


def test_reset_on_one_rank(openmpi):
    """The others unmap what they had mapped at its place, and the direct path goes on."""
    go(openmpi, "mpi_reset collectives_alone", "cuda", "direct", XCCL_CCL="none").good()


@pytest.mark.parametrize("case", ["end", "collectives"])
def test_reset_mpich(mpich, case):
    go(mpich, f"mpi_reset {case}", "cuda", "direct").good()


@pytest.mark.parametrize("runtime", ["cuda", pytest.param("rocm", marks=ROCM)])
def test_reset_alone(openmpi, runtime):
    """The others end as always; a vendor's library that waits for all ranks is left after 20 s."""
    go(openmpi, "mpi_reset end_alone", runtime, "ccl", XCCL_SIM_DESTROY="free").good()


@pytest.mark.parametrize("way", ["direct", "ccl", "staged"])
def test_reset_streams(openmpi, way):
    """A stream of the program's is gone, and with it what was attached to it."""
    go(openmpi, "mpi_streams reset", "cuda", way).good()


@pytest.mark.parametrize(
    ("case", "way"),
    [("context", "direct"), ("context", "ccl"), ("context", "staged"), ("thread", "direct")],
)
def test_contexts(openmpi, case, way):
    """A context of the program's own that ends before MPI does; a thread that has none."""
    go(openmpi, f"mpi_reset {case}", "cuda", way).good()


def test_contexts_mpich(mpich):
    go(mpich, "mpi_reset context", "cuda", "direct").good()
