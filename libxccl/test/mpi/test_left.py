# SPDX-License-Identifier: BSD-3-Clause
"""What is left of the driver's objects when a process ends, by the simulation's count."""

import re

import pytest
from mpi_harness import CCL, DIRECT

STAGED = {"XCCL_TUNE": "*:*:*:*:mpi", "XCCL_DIRECT": "off"}
PUSHED = {"XCCL_P2P_PUSH": "on"}
REFUSED = {"XCCL_SIM_FAIL": "ipc"}
COPIED = {**DIRECT, "XCCL_DIRECT_COPIES": "16"}
MAPPED = {**STAGED, "XCCL_RENDEZVOUS": "4096", "XCCL_GDRCOPY": "2", "XCCL_SIM_GDRCOPY": "1"}
NOTHING = dict.fromkeys(["events", "streams", "graphs", "allocations", "mappings", "pins"], 0)
# Communicators give it back, and it stays: memory and words, and two streams with three kernels each
# that are launched again and again, one of them by two graphs in turn.
WORKSPACE = {"events": 0, "streams": 2, "graphs": 8, "allocations": 2, "mappings": 1}


@pytest.mark.release_only
@pytest.mark.parametrize(
    ("command", "env", "most"),
    [
        ("mpi_rendezvous cuda many", {}, NOTHING),
        ("mpi_rendezvous cuda barrier", {}, NOTHING),
        ("mpi_rendezvous cuda started", {}, NOTHING),
        ("mpi_rendezvous cuda sizes", PUSHED, NOTHING),
        ("mpi_rendezvous cuda barrier", REFUSED, NOTHING),
        ("mpi_cancel cuda", {}, NOTHING),
        ("mpi_gdrcopy cuda sizes", MAPPED, NOTHING),
        ("mpi_requests cuda comms", CCL, WORKSPACE),
        ("mpi_requests cuda comms", STAGED, NOTHING),
        ("mpi_requests cuda comms", DIRECT, WORKSPACE),
        ("mpi_direct cuda moved", COPIED, WORKSPACE),
        ("mpi_direct cuda summed", COPIED, WORKSPACE),
    ],
)
def test_left(openmpi, command, env, most):
    env = {**env, "XCCL_SIM_LOG": "info"}
    result = openmpi.run(2, command, sim="cuda:2", env=env, timeout=60)
    result.good()
    left = result.lines("SIM INFO left: ")
    assert len(left) == 2, result.out
    for line in left:
        found = {name: int(number) for number, name in re.findall(r"(\d+) ([a-z]+)", line)}
        assert found.keys() >= NOTHING.keys(), line
        assert {name for name in NOTHING if found[name] > most.get(name, 0)} == set(), line
