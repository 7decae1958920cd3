# SPDX-License-Identifier: BSD-3-Clause
"""Stream-ordered calls: every one on every path, in order, in graphs."""

import pytest
from mpi_harness import CCL, DIRECT

STAGED = {"XCCL_TUNE": "*:*:*:*:mpi", "XCCL_DIRECT": "off", "XCCL_CCL": "none"}
PATHS = {"direct": DIRECT, "ccl": CCL, "mpi-staged": STAGED}


def run(mpi, ranks, case, path=None, runtime="cuda", **env):
    words = ["mpi_streams", runtime, case, *([path] if path else [])]
    env = {**PATHS.get(path, {}), "XCCL_LOG": "warn", **env}
    return mpi.run(ranks, words, sim=f"{runtime}:4", env=env, preload=False, timeout=100)


@pytest.mark.parametrize("path", ["direct", "mpi-staged"])
@pytest.mark.parametrize("case", ["collectives", "graphs"])
def test_collectives(openmpi, case, path):
    run(openmpi, 3, case, path).good()


@pytest.mark.parametrize("case", ["alone", "alone_graphs"])
def test_one_rank(family, case):
    """It gets its own data, without a thread that calls MPI."""
    run(family, 1, case).good()


@pytest.mark.release_only
@pytest.mark.parametrize(("case", "path"), [("collectives", "mpi-staged"), ("graphs", "direct")])
def test_collectives_mpich(mpich, case, path):
    run(mpich, 2, case, path).good()


@pytest.mark.parametrize("case", ["collectives", "graphs"])
def test_vendor(openmpi, case):
    """Scans are not in the vendors' libraries, nor is a barrier: they take another path."""
    run(openmpi, 2, case, None, **CCL, XCCL_DIRECT="off").good()


@pytest.mark.parametrize("path", ["direct", "ccl", "mpi-staged"])
def test_streams(openmpi, path):
    """Several streams, each with a communicator, in different orders on the ranks."""
    run(openmpi, 2, "streams", path).good()


def test_rocm(openmpi):
    run(openmpi, 2, "graphs", "direct", "rocm").good()


@pytest.mark.parametrize("ranks", [2, 3])
def test_numbers(openmpi, ranks):
    """Numbers begin anew, and old words are not taken for new ones."""
    run(openmpi, ranks, "numbers", "direct", XCCL_SIM_NUMBERS="20").good()


@pytest.mark.parametrize("env", [{}, CCL], ids=["default", "vendor"])
def test_longer_than_a_slot(family, env):
    """What does not fit the kernels' workspace takes another path."""
    run(family, 2, "longer", None, **env).good()


@pytest.mark.parametrize("path", PATHS)
def test_types_of_some_ranks(openmpi, path):
    """In managed memory, and one that cannot be packed: nobody waits for a rank that fails."""
    result = run(openmpi, 3, "types", None, **PATHS[path])
    if path == "mpi-staged":  # there MPI packs
        assert result.lines(r"rank 2 of 3: code 0 for a type"), result.out
        return
    result.good()


def test_freed_operation(family):
    """The program frees its operation while the stream has not come to the call."""
    run(family, 2, "freed_op", None).good()


def test_destroyed(family):
    """A vendor communicator is destroyed, which waits for the device, beside a kernel that waits for another rank."""
    env = {**CCL, "XCCL_COMM_POOL": "0", "XCCL_DIRECT": "off"}
    run(family, 2, "destroyed", None, **env).good()


def test_destroyed_before(family):
    """The same, where its destruction begins before there is a stream, and takes its time."""
    env = {**CCL, "XCCL_COMM_POOL": "0", "XCCL_DIRECT": "off", "XCCL_SIM_DESTROY_MS": "600"}
    run(family, 2, "destroyed_before", None, **env).good()


def test_mapped_anew(openmpi):
    """A kernel on the stream waits for another rank while memory is to be unmapped."""
    run(openmpi, 2, "mapped_anew", None, **DIRECT).good()


def test_leave(family):
    """Communicators are freed, and MPI is finalised, with work under way."""
    run(family, 2, "leave", "direct" if family.name == "openmpi" else "mpi-staged").good()


def missed(mpi, case, **env):
    words = ["mpi_streams_missed", "cuda", case]
    env = {**STAGED, "XCCL_LOG": "warn", **env}
    result = mpi.run(3, words, sim="cuda:4", env=env, preload=False, timeout=60)
    result.good()
    return result


@pytest.mark.each_value
@pytest.mark.parametrize("case", ["gather", "left", "graph"])
def test_no_memory_on_one_rank(family, case):
    """MPI is called all the same: nobody waits for the rank, and all are told."""
    result = missed(family, case, XCCL_STAGING="1")
    assert result.lines(r"\[0\].*staging needs more than 1 MiB"), result.out


@pytest.mark.each_value
@pytest.mark.parametrize(("case", "number"), [("copy_in", 3), ("copy_out", 4)])
def test_copy_fails_on_one_rank(family, case, number):
    missed(family, case, XCCL_SIM_FAIL=f"copy@1={number}")


def test_absolute_addresses_on_one_rank(family):
    missed(family, "absolute")


def carried(mpi, case, path, ranks=3, **env):
    words = ["mpi_streams_carried", "cuda", case, *([path] if path else [])]
    env = {**PATHS.get(path, STAGED), "XCCL_LOG": "info", **env}
    result = mpi.run(ranks, words, sim="cuda:4", env=env, preload=False, timeout=60)
    result.good()
    return result


SMALL = {"XCCL_SIM_MEMORY": "512m"}


@pytest.mark.each_value
@pytest.mark.parametrize("path", ["direct", "ccl"])
def test_no_device_memory_on_one_rank(family, path):
    """Pinned memory takes its place, and all results are right."""
    result = carried(family, "device", path, **SMALL)
    assert result.lines(r"\[1\].*pinned memory takes its place"), result.out


@pytest.mark.each_value
@pytest.mark.parametrize(("case", "ranks"), [("neither", 2), ("neither", 3), ("left", 3)])
def test_no_memory_at_all_on_one_rank(family, case, ranks):
    """It takes part without its data: nobody waits for it, and all are told."""
    result = carried(family, case, "direct", ranks, **SMALL)
    assert result.lines(r"\[1\].*no \d+ bytes of device memory, nor of pinned memory"), result.out
    if case == "left":
        assert result.lines(r"\[0\].*freed now.*rank 1 took part without its data"), result.out


@pytest.mark.release_only
@pytest.mark.each_value
@pytest.mark.parametrize("path", PATHS)
def test_no_object_on_one_rank(family, path):
    """calloc() is the program's own."""
    carried(family, "object", path)


def test_no_function_on_one_rank(family):
    """Its stream says by a word in host memory where it is."""
    result = carried(family, "function", None, XCCL_SIM_FAIL="call@1")
    assert result.lines(r"\[1\].*enqueueing a host function failed"), result.out


def test_neither_function_nor_memory(family):
    missed(family, "gather", XCCL_STAGING="1", XCCL_SIM_FAIL="call@0")


def left(mpi, case, **env):
    words = ["mpi_streams_left", "cuda", case]
    env = {"XCCL_LOG": "warn", **env}
    mpi.run(2, words, sim="cuda:4", env=env, preload=False, timeout=60).good()


def test_handler_leaves_wait(openmpi):
    """With threads MPICH takes no call behind a jump."""
    left(openmpi, "wait", **STAGED, XCCL_STAGING="1")


def test_handler_leaves_calls(family):
    left(family, "calls", **DIRECT)


def objects(mpi, case, runtime="cuda", **env):
    words = ["mpi_streams_objects", runtime, case]
    env = {"XCCL_LOG": "warn", **env}
    return mpi.run(2, words, sim=f"{runtime}:2", env=env, preload=False, timeout=60)


def test_equal_addresses(family):
    """Open MPI takes equal addresses of both buffers for MPI_IN_PLACE."""
    objects(family, "apart", **STAGED).good()


def test_refused_calls_keep_nothing(family):
    objects(family, "kept", XCCL_LOG="none").good()


@pytest.mark.parametrize("runtime", ["cuda", "rocm"])
def test_stream_of_each_thread(family, runtime):
    """In another thread, where NCCL's first call is, its handle names another stream."""
    result = objects(family, "per-thread", runtime)
    result.good()
    assert result.lines("StreamPerThread"), result.out


def messages(mpi, ranks, case, runtime="cuda", **env):
    return mpi.run(
        ranks,
        ["mpi_streams_messages", runtime, case],
        sim=f"{runtime}:4",
        env={"XCCL_LOG": "warn", **env},
        preload=False,
        timeout=60,
    )


@pytest.mark.parametrize(
    "case", ["order", "graphs", "mixed", "scattered", "probed", "left_open", "multiplex"]
)
def test_messages(family, case):
    messages(family, 2, case).good()


def test_freed_among_threads(family):
    """Several threads find what was freed and may be destroyed now: one of them destroys it."""
    messages(family, 1, "freed_among_threads").good()


def test_some_without_a_function(family):
    """Of the calls of a stream some come by a host function and others by a word: in its order."""
    fails = ",".join(f"call@0={n}" for n in (3, 5, 9, 11, 15, 17, 21, 23))
    messages(family, 2, "in_turn", XCCL_SIM_FAIL=fails).good()


def test_unlike_memory(family):
    messages(family, 2, "unlike", XCCL_MEMORY="mixed", XCCL_DIRECT="on").good()


def test_messages_rocm(openmpi):
    messages(openmpi, 2, "graphs", "rocm").good()


@pytest.mark.parametrize("case", ["wildcards", "truncation", "truncation_on_one"])
def test_matching(family, case):
    messages(family, 4 if case == "wildcards" else 2, case).good()


def test_refused(family):
    result = messages(family, 2, "refused")
    result.good()
    assert result.lines('the info has no "value"'), result.out
    assert result.lines("MPIX_Barrier_enqueue: rank 1 has attached no device stream"), result.out
    assert result.lines("MPIX_Waitall_enqueue: not a request of MPIX_Isend_enqueue"), result.out


def test_threads(family):
    result = messages(family, 2, "threads", **DIRECT)
    result.good()
    assert result.lines("MPI_THREAD_MULTIPLE"), result.out


def test_staging(openmpi):
    messages(openmpi, 2, "staging", **STAGED, XCCL_STAGING="4").good()
