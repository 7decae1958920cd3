# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures of the tests on several hosts."""

import os
from contextlib import ExitStack

import pytest
from hosts import Host, Hosts, HostsMpi, NoHosts, check_possible


@pytest.fixture(scope="session")
def start_hosts(build):
    """Start hosts of given kinds; the same kinds once for all tests."""
    try:
        check_possible(build)
    except NoHosts as missing:
        if os.environ.get("XCCL_REQUIRE_HOSTS") == "1":
            pytest.fail(f"XCCL_REQUIRE_HOSTS=1, but there are no test hosts: {missing}")
        pytest.skip(f"no test hosts: {missing}")
    with ExitStack() as stack:
        running = {}

        def start(*kinds):
            if kinds not in running:
                running[kinds] = stack.enter_context(Hosts(build.folder, kinds))
            return running[kinds]

        yield start


@pytest.fixture
def nodes(start_hosts):
    """Three nodes of a cluster."""
    return start_hosts(Host(), Host(), Host())


@pytest.fixture
def across(mpi, nodes):
    """Every MPI in turn, on three nodes."""
    return HostsMpi(mpi, nodes)


@pytest.fixture
def across_openmpi(openmpi, nodes):
    """Where one MPI tells all."""
    return HostsMpi(openmpi, nodes)


@pytest.fixture
def across_mpich(mpich, nodes):
    """The same, where that one takes less time."""
    return HostsMpi(mpich, nodes)
