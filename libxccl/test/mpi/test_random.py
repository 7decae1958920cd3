# SPDX-License-Identifier: BSD-3-Clause
"""Random collectives in every form: a small part of what mpi_random can run.

The seed is printed, and the same in every run unless XCCL_TEST_SEED says otherwise ("random" draws one):
a change is to be judged by what it breaks, not by what else might be found.
"""

import os
import random

import pytest
from mpi_harness import share

CALLS = 300
TIMEOUT = 60


def seed():
    wanted = os.environ.get("XCCL_TEST_SEED", "20261121")
    return str(random.randrange(1 << 31)) if wanted == "random" else wanted


def go(mpi, ranks, options="", runtime="cuda", *, env=None, devices=4):
    command = f"mpi_random {runtime} {seed()} {CALLS} {options}"
    print(command)
    none = runtime == "none"
    sim = None if none else f"{runtime}:{devices}"
    env = {**share(mpi), **(env or {})}
    return mpi.run(ranks, command, sim=sim, preload=not none, env=env, timeout=TIMEOUT).good()


@pytest.mark.each_value
@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_random(mpi, ranks):
    go(mpi, ranks)


def test_blocking(mpi):
    go(mpi, 2, "--blocking")


def test_mixed(mpi):
    """Each rank draws the kind of memory for itself."""
    go(mpi, 2, "--mixed", env={"XCCL_MEMORY": "mixed"})


def test_crowd(mpi):
    """So many persistent requests that those of the calls are MPI's, on copies."""
    go(mpi, 2, "--crowd")


@pytest.mark.tsan
def test_threads(mpi):
    go(mpi, 2, "--threads 2")


@pytest.mark.tsan
def test_mixed_threads(openmpi):
    go(openmpi, 2, "--mixed --threads 2", env={"XCCL_MEMORY": "mixed"})


def test_hpu(openmpi):
    go(openmpi, 2, runtime="hpu")


def test_rocm(openmpi):
    go(openmpi, 2, runtime="rocm")


@pytest.mark.release_only
def test_reference(mpi):
    """Without xccl, on host memory: the program itself, and the MPI library's own forms."""
    go(mpi, 2, runtime="none")
