# SPDX-License-Identifier: BSD-3-Clause
"""Random messages in every form: a small part of what mpi_messages can run.

The seed is printed; XCCL_TEST_SEED sets it as for the random collectives.
"""

import pytest
from test_random import seed

ROUNDS = 60
TIMEOUT = 60


def go(mpi, ranks, options="", runtime="cuda", env=None):
    rounds = ROUNDS // 2 if mpi.build.sanitized else ROUNDS
    command = f"mpi_messages {runtime} {seed()} {rounds} {options}"
    print(command)
    none = runtime == "none"
    sim = None if none else f"{runtime}:4"
    return mpi.run(ranks, command, sim=sim, preload=not none, timeout=TIMEOUT, env=env).good()


@pytest.mark.each_value
@pytest.mark.parametrize("ranks", [1, 2, pytest.param(3, marks=pytest.mark.release_only)])
def test_messages(mpi, ranks):
    go(mpi, ranks)


def test_threads(mpi):
    go(mpi, 2, "--threads 2")


@pytest.mark.release_only
@pytest.mark.tsan
def test_threads_short_ones_fetched(family):
    go(family, 2, "--threads 2", env={"XCCL_RENDEZVOUS": "240"})


@pytest.mark.release_only
@pytest.mark.tsan
def test_threads_written_by_senders(family):
    """The senders write all that goes from device to device, where they come to it in time."""
    go(family, 2, "--threads 2", env={"XCCL_RENDEZVOUS": "240", "XCCL_P2P_PUSH": "on"})


@pytest.mark.release_only
@pytest.mark.each_value
@pytest.mark.parametrize("least", ["240", "2000"])
def test_short_ones_fetched(mpi, least):
    """Far more of the messages stay in device memory until they are fetched."""
    go(mpi, 2, env={"XCCL_RENDEZVOUS": least})


@pytest.mark.release_only
def test_interleaved_types(openmpi):
    """One of its types has stretches that are packed in another order than they are described."""
    env = {"XCCL_RENDEZVOUS": "240"}
    openmpi.run(3, "mpi_messages cuda 760225 100", env=env, timeout=TIMEOUT).good()


@pytest.mark.release_only
def test_staged(mpi):
    go(mpi, 2, env={"XCCL_P2P": "staged"})


@pytest.mark.release_only
def test_small_ones_by_a_kernel_that_stays(mpi):
    go(mpi, 2, env={"XCCL_DIRECT_LINGER": "1000", "XCCL_RENDEZVOUS": "2000"})


@pytest.mark.release_only
def test_between_nodes(openmpi):
    """Ranks 0 and 1 are on one pretended node, and rank 2 on another: memory cannot be mapped."""
    go(openmpi, 3, env={"XCCL_SIM_NODES": "2"})


def test_without_kernels(openmpi):
    go(openmpi, 2, env={"XCCL_DIRECT": "off"})


@pytest.mark.release_only
def test_hpu(openmpi):
    """Gaudi's memory cannot be mapped by another process: all messages are staged."""
    go(openmpi, 2, runtime="hpu")


@pytest.mark.release_only
def test_rocm(openmpi):
    go(openmpi, 2, runtime="rocm", env={"XCCL_DIRECT_LINGER": "500"})


@pytest.mark.release_only
def test_reference(mpi):
    """Without xccl, on host memory: the program itself is right."""
    go(mpi, 2, runtime="none")
