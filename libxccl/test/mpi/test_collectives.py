# SPDX-License-Identifier: BSD-3-Clause
"""Results: every collective on every kind of memory is what PMPI gives on host copies."""

import subprocess

import pytest
from mpi_harness import CCL, PATHS, pick, share

MOST_TRIES = 5
# What is compared, and on how many ranks (see mpi_colls.c).
SECTIONS = {
    "types": (1, 2, 4),
    "counts": (1, 2, 3, 4),
    "derived": (2, 3),
    "user_ops": (2, 4),
    "comms": (2, 4),
    "intercomm": (2, 4),
    "odd": (2,),
    "large": (2, 4),
    "repeat": (2, 4),
}
# MPICH waits by polling: the long sections take much time with more ranks than cores.
EVERY = [
    pytest.param(
        *(name, section, ranks, path),
        marks=[pytest.mark.release_only] if section == "large" else [],
    )
    for section, counts in SECTIONS.items()
    for ranks in counts
    for name, path in (("openmpi", "ccl"), ("openmpi", "direct"), ("mpich", "ccl"))
    if name == "openmpi" or ranks <= 2 or section in ("comms", "repeat")
    if path == "ccl" or (ranks > 1 and section not in ("user_ops", "intercomm"))
]


def log_of(result, path):
    """Lines of XCCL_LOG=info that say a collective took a path."""
    return result.lines(rf"xccl\[0\] info: \w+ of .* ranks: {path} ")


@pytest.mark.each_value
@pytest.mark.parametrize(("name", "section", "ranks", "path"), EVERY)
def test_device(mpis, name, section, ranks, path):
    """Device memory, by the vendor's library or by kernels of our own."""
    env = {**PATHS[path], "XCCL_LOG": "info"}
    result = pick(mpis, name).run(ranks, f"mpi_colls cuda dd {section}", env=env)
    result.good()
    if ranks > 1 and section not in ("user_ops", "intercomm"):
        assert log_of(result, path), f"nothing took the path {path}:\n{result.out}"


@pytest.mark.each_value
@pytest.mark.parametrize("memory", ["hh", "hd", "dh", "mm", "md"])
@pytest.mark.parametrize("section", ["counts", "derived", "comms"])
@pytest.mark.parametrize("name", ["openmpi", pytest.param("mpich", marks=pytest.mark.thorough)])
def test_memory(mpis, name, section, memory):
    """Host, managed and mixed memory: the two buffers of a call need not be of one kind."""
    mpi = pick(mpis, name)
    mpi.run(2, f"mpi_colls cuda {memory} {section}", env=share(mpi)).good()


@pytest.mark.each_value
@pytest.mark.parametrize("section", ["types", "counts", "derived", "comms", "user_ops"])
def test_route_mpi(family, section):
    """The route mpi stages device memory through the host, and nothing goes to the vendor."""
    env = {"XCCL_ROUTE": "mpi", "XCCL_LOG": "info"}
    result = family.run(2, f"mpi_colls cuda dd {section}", env=env)
    result.good()
    assert log_of(result, "mpi-staged")
    assert not log_of(result, "(ccl|direct)")


@pytest.mark.each_value
@pytest.mark.parametrize("section", ["types", "counts", "comms", "odd"])
def test_rocm(family, section):
    env = {**share(family), "XCCL_LOG": "info"}
    result = family.run(2, f"mpi_colls rocm dd {section}", sim="rocm:4", env=env)
    result.good()
    assert log_of(result, "ccl" if share(family) is CCL else "direct")


def test_rocm_beside_its_runtime(openmpi, tmp_path):
    """UCX loads ROCm's runtime where it is installed. That does not make a HIP of others one without devices."""
    runtime = tmp_path / "libhsa-runtime64.so.1"
    command = ["cc", "-shared", "-x", "c", "-", "-o", runtime, f"-Wl,-soname={runtime.name}"]
    subprocess.run(command, input="int hsa_init(void) { return 1; }", text=True, check=True)
    preload = f"LD_PRELOAD={openmpi.build.preload(openmpi.build.interposer, runtime)}"
    words = ["/usr/bin/env", preload, openmpi.program("mpi_colls"), "rocm", "dd", "odd"]
    openmpi.run(2, words, sim="rocm:4", preload=False).good()


@pytest.mark.parametrize("library", ["msccl", "mscclpp"])
def test_forks(family, library):
    """Forks of NCCL: what they lack goes to MPI, before the library was asked for it.

    Not the counts under MPICH: 4.0.2 by itself crashes in some reductions in place when a program
    calls nothing else.
    """
    # What the direct path could carry is not said to lack anything.
    env = {**CCL, "XCCL_LOG": "info", "XCCL_DIRECT": "off"}
    sections = "types" if family.name == "mpich" else "types counts"
    result = family.run(2, f"mpi_colls cuda dd {sections}", sim=f"{library}:2", env=env)
    result.good()
    assert result.lines(f"using {library} "), result.out
    assert log_of(result, "ccl")
    lacks = "vendor's library lacks"
    assert bool(result.lines(lacks)) == (library == "mscclpp"), result.out


@pytest.mark.parametrize(
    ("name", "section"), [("openmpi", "types comms"), ("openmpi", "derived"), ("mpich", "types")]
)
def test_hpu(mpis, name, section):
    """Gaudi: what HCCL can, and blocks of whole words, by HCCL; all else by MPI."""
    env = {**CCL, "XCCL_LOG": "info"}
    result = pick(mpis, name).run(2, f"mpi_colls hpu dd {section}", sim="hpu:2", env=env)
    result.good()
    reduced = result.lines(r"reduce\w* of .* in hpu on 2 ranks: ccl ")
    assert bool(reduced) == ("types" in section), result.out
    for moved in ("bcast", "allgather", "alltoall"):
        assert result.lines(rf"{moved} of .* in hpu on 2 ranks: ccl "), result.out
    assert result.lines(r"gather of .* in hpu on 2 ranks: mpi-staged .*words of two bytes"), (
        result.out
    )


def test_oneccl_is_refused(openmpi):
    """Nothing serves device memory with it: all ranks use MPI, and rank 0 says why."""
    folder = openmpi.build.stage / "lib/xccl/sim/oneccl"
    env = {**CCL, "XCCL_CCL": "oneccl", "XCCL_CCL_LIBRARY": str(folder / "libccl.so.2")}
    env |= {"CCL_PLUGIN": "ONECCL_LEGACY_CPU", "XCCL_LOG": "info"}
    result = openmpi.run(2, "mpi_colls cuda dd counts", env=env)
    result.good()
    assert result.lines(r"oneccl .* is for memory of host, and the program uses cuda"), result.out
    assert log_of(result, "mpi-staged") and not log_of(result, "ccl")


@pytest.mark.each_value
@pytest.mark.parametrize("section", ["counts", "derived", "comms"])
def test_check(family, section):
    """XCCL_CHECK=1 finds nothing wrong with a right program."""
    env = {**share(family), "XCCL_CHECK": "1"}
    family.run(2, f"mpi_colls cuda dd {section}", env=env).good()


@pytest.mark.each_value
@pytest.mark.parametrize("section", ["types", "counts", "comms"])
def test_linked(family, section):
    """Linked in front of MPI instead of preloaded."""
    result = family.run(
        2, f"mpi_colls_linked cuda dd {section}", preload=False, env={"XCCL_LOG": "info"}
    )
    result.good()
    assert log_of(result, "direct")


@pytest.mark.parametrize("section", ["types", "counts", "derived", "comms", "intercomm"])
def test_openmpi5(mpis, section):
    """The programs built with Open MPI 4.1 run with 5.0, whose ABI is the same."""
    mpi = pick(mpis, "openmpi5")
    result = mpi.run(2, f"mpi_colls cuda dd {section}", env={"XCCL_LOG": "info"})
    result.good()
    assert section == "intercomm" or log_of(result, "direct")


@pytest.mark.parametrize("tune", ["*:*:*:*:mpi", "*:0-4k:*:*:mpi#*:4k-inf:*:*:ccl"])
def test_tune(openmpi, tune):
    """XCCL_TUNE decides, by collective and size."""
    result = openmpi.run(
        2, "mpi_colls cuda dd counts", env={"XCCL_TUNE": tune, "XCCL_LOG": "info"}
    )
    result.good()
    assert log_of(result, "mpi-staged")
    assert bool(log_of(result, "ccl")) == ("ccl" in tune)


@pytest.mark.release_only  # the kernel stays for a millisecond, which a slow build may take
def test_staged_by_a_kernel_that_stays(family):
    """Most copies of short staged collectives are that kernel's: the runtime's 200th fails."""
    env = {
        "XCCL_TUNE": "*:*:*:*:mpi",
        "XCCL_DIRECT_LINGER": "1000",
        "XCCL_SIM_FAIL": "copy=200",
    }
    good = 0
    for _ in range(MOST_TRIES):  # it leaves while the machine runs others for longer than it stays
        result = family.run(2, "mpi_loop cuda 200 return", env=env, timeout=60)
        good = len(result.lines("all rounds good"))
        if good == 2:
            break
    assert good == 2, result.out


def test_staged_copy_fails(openmpi):
    """A copy that the device refuses is an error of the call that needs it."""
    env = {"XCCL_TUNE": "*:*:*:*:mpi", "XCCL_DIRECT_LINGER": "off", "XCCL_SIM_FAIL": "copy=7"}
    result = openmpi.run(2, "mpi_loop cuda 20 return", env=env, timeout=60)
    assert len(result.lines("round 3: class")) == 2 and "cuMemcpyAsync" in result.out, result.out


@pytest.mark.each_value
@pytest.mark.parametrize("number", [9, 10, 15, 20])
@pytest.mark.parametrize("form", ["blocking", "nonblocking", "persistent"])
def test_staged_copy_fails_on_one_rank(family, form, number):
    """To host memory: an error on every rank. Back: on that one. All later calls are right."""
    env = {
        "XCCL_TUNE": "*:*:*:*:mpi",
        "XCCL_DIRECT": "off",
        "XCCL_SIM_FAIL": f"copy@1={number}",
    }
    family.run(3, f"mpi_missed cuda {form}", env=env, timeout=60).good()


@pytest.mark.each_value
@pytest.mark.parametrize("number", [5, 9, 10])
@pytest.mark.parametrize("form", ["nonblocking", "persistent"])
def test_staged_copy_fails_without_blocking_calls(family, form, number):
    """The ranks never agree that all can tell each other: once they know of each other, those that can do so."""
    env = {
        "XCCL_TUNE": "*:*:*:*:mpi",
        "XCCL_DIRECT": "off",
        "XCCL_SIM_FAIL": f"copy@1={number}",
    }
    family.run(3, f"mpi_missed cuda {form}_alone", env=env, timeout=60).good()


@pytest.mark.each_value
@pytest.mark.parametrize("number", [8, 9, 13, 18])
def test_staged_copy_fails_in_a_request_of_mpi(family, number):
    """Such requests may be started in any order: each start is told of its own misses alone."""
    env = {
        "XCCL_TUNE": "*:*:*:*:mpi",
        "XCCL_DIRECT": "off",
        "XCCL_SIM_FAIL": f"copy@1={number}",
    }
    family.run(3, "mpi_missed cuda persistent_crowded", env=env, timeout=60).good()


def test_staged_copy_fails_in_the_first_call(openmpi):
    """The ranks have not agreed yet that all can tell each other: those that can do so."""
    env = {"XCCL_TUNE": "*:*:*:*:mpi", "XCCL_DIRECT": "off", "XCCL_SIM_FAIL": "copy@1=1"}
    result = openmpi.run(3, "mpi_missed cuda blocking", env=env, timeout=60)
    result.good()
    assert len(result.lines("rank 1 could not copy its data")) == 2, result.out


@pytest.mark.each_value
@pytest.mark.parametrize("number", [1, 2, 4])
def test_staged_copy_fails_in_a_call_with_counts(family, number):
    """It counts as a call on that rank, too: all ranks ask each other in the same call."""
    env = {"XCCL_SIM_FAIL": f"copy@1={number}", "XCCL_DIRECT_LINGER": "off"}
    family.run(3, "mpi_missed cuda vectors", env=env, timeout=60).good()


@pytest.mark.each_value
@pytest.mark.parametrize(
    "case",
    [
        "kinds",
        "kinds_crowded",
        "kinds_apart",
        "kinds_far",
        pytest.param("short", marks=pytest.mark.release_only),
    ],
)
def test_staged_without_memory_on_one_rank(family, case):
    """MPI is called all the same: all ranks are told, and all later calls are right."""
    env = {"XCCL_TUNE": "*:*:*:*:mpi", "XCCL_DIRECT": "off", "XCCL_STAGING": "1"}
    family.run(3, f"mpi_missed cuda {case}", env=env, timeout=60).good()


def test_rendezvous(mpi):
    """A rank that waits in a collective still lets its earlier sends end."""
    mpi.run(2, "mpi_colls cuda dd rendezvous", timeout=60).good()


@pytest.mark.each_value
@pytest.mark.parametrize("path", ["ccl", "direct"])
@pytest.mark.parametrize("ranks", [pytest.param(2, marks=pytest.mark.tsan), 4])
@pytest.mark.parametrize("case", ["", "frees", "later"])
def test_threads(family, case, ranks, path):
    """MPI_THREAD_MULTIPLE: a communicator per thread, in no common order."""
    result = family.run(ranks, f"mpi_threads cuda {case}", env=PATHS[path], timeout=60)
    if "SKIP" in result.out:
        pytest.skip(result.out.strip())
    result.good()


@pytest.mark.release_only
def test_short_threads(openmpi):
    """A thread that ends leaves no memory behind."""
    openmpi.run(1, "mpi_short_threads cuda", timeout=60).good()


def test_without_neighbors(family):
    """Ranks without neighbours, whose arrays of types may be NULL."""
    family.run(3, "mpi_neighbors cuda nobody", timeout=60).good()


def test_without_neighbors_to_send_to(openmpi):
    """MPICH 4.0.2 itself reads the arrays of a rank without neighbours, where others have some."""
    openmpi.run(3, "mpi_neighbors cuda funnel", timeout=60).good()


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize(
    "case", ["grid", "border", "graph", "pending", "refused", "alltoallw", "in_place"]
)
def test_edges(mpi, case, ranks):
    """Neighbourhood collectives and alltoallw as messages, with other memory on each rank."""
    mpi.run(ranks, f"mpi_edges cuda {case}", sim="cuda:4", timeout=60).good()


@pytest.mark.parametrize("case", ["grid", "graph", "alltoallw", "pending"])
def test_edges_in_profile(family, case):
    """Their messages are no calls of the program: a profile counts the collectives."""
    env = {"XCCL_PROFILE": "1"}
    result = family.run(2, f"mpi_edges cuda {case}", sim="cuda:2", env=env, timeout=60)
    result.good()
    assert result.lines("messages"), result.out
    assert not result.lines("MPI_Isend"), result.out


def test_edges_expired(family):
    """Behind a time-out nothing is written to the program's buffers, and no later call is served."""
    env = {"XCCL_TIMEOUT": "1"}
    family.run(2, "mpi_edges cuda expired", sim="cuda:2", env=env, timeout=60).good()


@pytest.mark.parametrize("case", ["later", "duplicate", "crowd", "callback", "host_refused"])
def test_edges_of_mpi(family, case):
    """Neighbourhood collectives that MPI carries: at first, or since there are too many."""
    # With fewer ranks on a ring each MPI has its own idea of which block goes where.
    family.run(3, f"mpi_edges cuda {case}", sim="cuda:4", timeout=60).good()


def test_edges_among_threads(family):
    """Threads start requests of a communicator of one rank at the same time."""
    family.run(1, "mpi_edges cuda threads", timeout=60).good()


@pytest.mark.parametrize(
    ("mpi", "case"),
    [("openmpi5", "too_long"), ("openmpi5", "too_long_later"), ("openmpi", "too_long_later")],
    indirect=["mpi"],
)
def test_edges_too_long(mpi, case):
    """A block that does not fit: the program's communicator hears of it, from messages as well."""
    # MPI_Waitall of Open MPI 4.1 with threads never returns then, and MPICH ends the job.
    mpi.run(4, f"mpi_edges cuda {case}", sim="cuda:4", timeout=60).good()


@pytest.mark.parametrize("case", ["gather", "gatherv", "scatter", "scatterv"])
def test_root_out_of_reach(family, case):
    """In place, in pieces, with the root's buffer on another device than the communicator's."""
    env = {**CCL, "XCCL_SCRATCH": "1"}
    family.run(2, f"mpi_rooted cuda {case}", sim="cuda:4", env=env, timeout=60).good()
