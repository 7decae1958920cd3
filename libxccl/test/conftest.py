# SPDX-License-Identifier: BSD-3-Clause
"""Settings of MPI itself for every test below: they leave out what is slow in MPI_Init and not used.

Hundreds of jobs start here, each on one host. What the caller has set stays.
"""

import json
import os
import re
import signal
from pathlib import Path

# hwloc's look at PCI devices reads the list of all their names into a block that grows with each
# name. AddressSanitizer copies it every time: a second of every rank.
os.environ.setdefault("HWLOC_COMPONENTS", "-pci")
# Without an adapter of theirs, the libraries of Omni-Path measure the clock for 0.2 s (Open MPI
# 4.1), or wait 1 s for one to appear (the wheel of 5.0).
os.environ.setdefault("OMPI_MCA_mtl", "^ofi,psm,psm2")
os.environ.setdefault("OMPI_MCA_btl", "^ofi")
# Open MPI 5.0.7 with IPv6, as in Debian 13, finds no way from one process to another by TCP where an
# interface has addresses of both kinds: it says so in every job, and spawned processes cannot talk.
os.environ.setdefault("OMPI_MCA_btl_tcp_disable_family", "6")

# A shell ignores these in what it starts in the background, as ci/test does, and every process below
# would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)

BUILD = Path(os.environ.get("XCCL_TEST_BUILD", Path(__file__).parents[2] / "build/release"))


def needless(item):
    """Does the release build's run of it tell all that there is to tell?"""
    marks = {mark.name for mark in item.iter_markers()}
    callspec = getattr(item, "callspec", None)
    values = list(callspec.params.values()) if callspec else []
    # The parts of the library for the two families are one source, and Open MPI 5 has that of 4.1.
    others = "mpich" in values or "openmpi5" in values
    return "release_only" in marks or (others and "both_families" not in marks)


def crowded(item):
    """More ranks than an emulator has time for, a wheel of the host, or nothing that is compiled."""
    values = item.callspec.params if hasattr(item, "callspec") else {}
    ranks = values.get("ranks", 2)
    return item.get_closest_marker("release_only") or ranks > 2 or "openmpi5" in values.values()


def left_out_by():
    """What decides on the tests that this build needs not; None for one that runs all."""
    cache, programs = BUILD / "CMakeCache.txt", BUILD / "test/mpi/mpi-tests.json"
    if cache.exists() and re.search(r"^XCCL_SANITIZE:[A-Z]+=ON$", cache.read_text(), re.M):
        return needless
    if programs.exists() and json.loads(programs.read_text()).get("emulator"):
        return crowded
    return None


def pytest_collection_modifyitems(config, items):
    """Under AddressSanitizer and emulators a test takes ten times as long: not all are run."""
    leave_out = left_out_by()
    if leave_out:
        left_out = [item for item in items if leave_out(item)]
        items[:] = [item for item in items if not leave_out(item)]
        config.hook.pytest_deselected(items=left_out)
