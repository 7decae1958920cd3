# SPDX-License-Identifier: BSD-3-Clause
"""Corners of messages, packing and windows, on device memory as on host memory."""

import pytest

CASES = ["nobody", "truncated", "much_too_long", "error_field", "packing", "positions"]
CASES += ["truncated_again", "gone", "probed_too_long", "refused", "jumping"]
CASES += ["no_memory", "cancelled"]
SETTINGS = {"auto": {}, "staged": {"XCCL_P2P": "staged"}, "little": {"XCCL_RENDEZVOUS": "240"}}


@pytest.mark.parametrize("case", CASES)
def test_case(family, case):
    family.run(2, f"mpi_corners cuda {case}", timeout=60).good()


@pytest.mark.release_only
@pytest.mark.parametrize("case", ["uncommitted", "outside", "freed"])
def test_wrong_arguments(family, case):
    """On host memory not every MPI says so: they are no part of CASES."""
    family.run(2, f"mpi_corners cuda {case}", timeout=60).good()


def test_not_copied(family):
    """A receive whose data does not get to the device ends with an error, said once."""
    env = {"XCCL_SIM_FAIL": "copy@1", "XCCL_DIRECT": "off"}
    family.run(2, "mpi_uncopied cuda received", env=env, timeout=60).good()


def test_not_started(family):
    """A persistent send whose data does not come from the device: its communicator's handler is called."""
    env = {"XCCL_SIM_FAIL": "copy@1", "XCCL_DIRECT": "off", "XCCL_P2P": "staged"}
    family.run(2, "mpi_uncopied cuda started", env=env, timeout=60).good()


@pytest.mark.release_only
def test_refused_collective(openmpi):
    """What MPI refuses gives its staging memory back."""
    env = {"XCCL_TUNE": "*:*:*:*:mpi", "XCCL_STAGING": "16", "XCCL_LOG": "info"}
    run = openmpi.run(2, "mpi_corners cuda refused_collective", env=env, timeout=60)
    run.good()
    assert not run.lines("XCCL_STAGING"), run.out


@pytest.mark.each_value
@pytest.mark.release_only
@pytest.mark.parametrize("setting", ["staged", "little"])
@pytest.mark.parametrize("case", [c for c in CASES if c != "refused"])
def test_settings(openmpi, case, setting):
    openmpi.run(2, f"mpi_corners cuda {case}", env=SETTINGS[setting], timeout=60).good()


@pytest.mark.release_only
@pytest.mark.each_value
@pytest.mark.parametrize("case", [c for c in CASES if c != "refused"])
def test_reference(family, case):
    """On host memory and without xccl the program itself is right."""
    family.run(2, f"mpi_corners none {case}", sim=None, preload=False, timeout=60).good()


@pytest.mark.release_only
@pytest.mark.parametrize("case", ["truncated", "packing"])
def test_pieces(openmpi, case):
    """To a rank of another node."""
    env = {"XCCL_THREADS": "multiple", "XCCL_SIM_NODES": "2", "XCCL_PIPELINE": "65536"}
    openmpi.run(2, f"mpi_corners cuda {case}", env=env, timeout=60).good()
