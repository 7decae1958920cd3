# SPDX-License-Identifier: BSD-3-Clause
"""Settings of MPI itself for every test below: they leave out what is slow in MPI_Init and not used.

Hundreds of jobs start here, each on one host. What the caller has set stays.
"""

import atexit
import json
import os
import re
import shutil
import signal
import tempfile
from pathlib import Path

import pytest

# hwloc's look at PCI devices reads the list of all their names into a block that grows with each
# name. AddressSanitizer copies it every time: a second of every rank.
os.environ.setdefault("HWLOC_COMPONENTS", "-pci")
# Without an adapter of theirs, the libraries of Omni-Path measure the clock for 0.2 s (Open MPI
# 4.1), or wait 1 s for one to appear (the wheel of 5.0).
os.environ.setdefault("OMPI_MCA_mtl", "^ofi,psm,psm2")
os.environ.setdefault("OMPI_MCA_btl", "^ofi")
# PMIx's file in shared memory for what ranks ask each other is a tenth of a job's processor time,
# and that of Open MPI 5 wants to be where ThreadSanitizer has its own memory.
os.environ.setdefault("PMIX_MCA_gds", "hash")
# Open MPI 5.0.7 with IPv6, as in Debian 13, finds no way from one process to another by TCP where an
# interface has addresses of both kinds: it says so in every job, and spawned processes cannot talk.
os.environ.setdefault("OMPI_MCA_btl_tcp_disable_family", "6")

# Where a rank ends badly, mpirun waits up to two seconds for the others to end. What a failed job says is
# said before a rank ends. Open MPI 5 has the launcher of PRRTE.
os.environ.setdefault("OMPI_MCA_odls_base_sigkill_timeout", "0")
os.environ.setdefault("PRTE_MCA_odls_base_sigkill_timeout", "0")

# Open MPI 4.1 keeps the files of all jobs of a user in one folder, which the last job to end removes:
# often under the feet of one that begins. Jobs of two runs of pytest, side by side, have two folders.
JOBS = "OMPI_MCA_orte_tmpdir_base"
if JOBS not in os.environ:
    os.environ[JOBS] = tempfile.mkdtemp(prefix="xm-")
    atexit.register(shutil.rmtree, os.environ[JOBS], ignore_errors=True)

# A shell ignores these in what it starts in the background, as ci/test does, and every process below
# would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)

BUILD = Path(os.environ.get("XCCL_TEST_BUILD", Path(__file__).parents[2] / "build/release"))


@pytest.fixture
def heeds_hangups():
    """Under nohup the tests themselves go on when the terminal is gone; what they test must not."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


def needless(item):
    """Does the release build's run of it tell all that there is to tell?"""
    marks = {mark.name for mark in item.iter_markers()}
    callspec = getattr(item, "callspec", None)
    values = list(callspec.params.values()) if callspec else []
    # The parts of the library for the families are one source, and Open MPI 5 has that of 4.1.
    return "release_only" in marks or "mpich" in values or "openmpi5" in values


def crowded(item):
    """More ranks than an emulator has time for, a wheel of the host, or nothing that is compiled."""
    values = item.callspec.params if hasattr(item, "callspec") else {}
    ranks = values.get("ranks", 2)
    return item.get_closest_marker("release_only") or ranks > 2 or "openmpi5" in values.values()


def sanitized():
    cache = BUILD / "CMakeCache.txt"
    return cache.exists() and re.search(r"^XCCL_SANITIZE:[A-Z]+=ON$", cache.read_text(), re.M)


def left_out_by():
    """What decides on the tests that this build needs not; None for one that runs all."""
    programs = BUILD / "test/mpi/mpi-tests.json"
    if sanitized():
        return needless
    if programs.exists() and json.loads(programs.read_text()).get("emulator"):
        return crowded
    return None


def covering(variations):
    """Few variations of a test that have every value of each of its parameters among them."""
    left, seen, chosen = list(variations), set(), []
    while left:
        best = max(left, key=lambda item: len(values_of(item) - seen))
        if chosen and values_of(best) <= seen:
            break
        chosen.append(best)
        seen |= values_of(best)
        left.remove(best)
    return chosen


def values_of(item):
    callspec = getattr(item, "callspec", None)
    return {(name, repr(value)) for name, value in callspec.params.items()} if callspec else set()


def beyond_each_value(items, sampled):
    """Of the tests that sampled() tells, the variations beyond one of each value."""
    tests = {}
    for item in items:
        if sampled(item) and not item.get_closest_marker("thorough"):
            tests.setdefault(item.nodeid.split("[")[0], []).append(item)
    return {
        item
        for variations in tests.values()
        for item in set(variations) - set(covering(variations))
    }


def variation(item, **others):
    """Which test, with which values; others: what stands for a value that is named so."""
    values = item.callspec.params.items() if hasattr(item, "callspec") else ()
    named = frozenset((name, repr(others.get(str(value), value))) for name, value in values)
    return item.nodeid.split("[")[0], named


def run_elsewhere(items, chosen):
    """What the sanitizers' build runs with Open MPI at the same time, and `chosen` has with MPICH.

    Each behaviour is then seen with both families, and once by the sanitizers.
    """
    there = [
        item for item in items if not needless(item) and not item.get_closest_marker("thorough")
    ]
    there = set(there) - beyond_each_value(there, lambda item: True)
    here = {variation(item) for item in chosen}
    return {
        item
        for item in there & set(chosen)
        if variation(item, openmpi="mpich") != variation(item)
        and variation(item, openmpi="mpich") in here
    }


def pytest_collection_modifyitems(config, items):
    """Under AddressSanitizer and emulators a test takes ten times as long: not all are run.

    ci/test thorough leaves none out. XCCL_TEST_BESIDE=asan: that build's run is beside this one.
    """
    leave_out = left_out_by() or (lambda item: False)
    left_out = {item for item in items if leave_out(item)}
    if "not thorough" in config.option.markexpr:
        everywhere = sanitized()
        kept = [item for item in items if item not in left_out]
        left_out |= beyond_each_value(
            kept, lambda item: everywhere or item.get_closest_marker("each_value")
        )
        if os.environ.get("XCCL_TEST_BESIDE") == "asan":
            kept = [
                item
                for item in items
                if item not in left_out and not item.get_closest_marker("thorough")
            ]
            left_out |= run_elsewhere(items, kept)
    if left_out:
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
        items[:] = [item for item in items if item not in left_out]
