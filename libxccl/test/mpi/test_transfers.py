# SPDX-License-Identifier: BSD-3-Clause
"""Messages, files and packing with buffers in device memory, under MPIs that know no devices."""

import pytest
from mpi_harness import PATHS

TIMEOUT = 60
CASES = [
    "sends",
    "attached",
    "receives",
    "partial",
    "order",
    "errors",
    "freed",
    "packing",
    "unpacking",
    "scattered",
]
WINDOWS = [
    *("fenced", "locked", "no-op", "no-op-on-device", "requests"),
    *("holes", "refused", "refused-on-one"),
    pytest.param("threads", marks=pytest.mark.tsan),
]
SEPARATE = ["fence", "post", "lock", "sync", "atomic", "end"]


def command(case, folder, runtime="cuda"):
    return f"mpi_transfers {runtime} {case} {folder}"


@pytest.mark.each_value
@pytest.mark.parametrize("case", [*CASES, "files"])
def test_transfers(mpi, case, tmp_path):
    mpi.run(2, command(case, tmp_path), timeout=TIMEOUT).good()


@pytest.mark.each_value
@pytest.mark.parametrize("case", WINDOWS)
def test_windows(mpi, case):
    mpi.run(2, f"mpi_windows cuda {case}", timeout=TIMEOUT).good()


@pytest.mark.parametrize("runtime", ["cuda", "rocm"])
def test_packing_on_the_device(family, runtime):
    family.run(1, f"mpi_packing {runtime} device", sim=f"{runtime}:1", timeout=TIMEOUT).good()


@pytest.mark.parametrize("program", ["mpi_packing", "mpi_reduce_local"])
def test_between_devices(family, program):
    """No kernel of one device reads or writes the memory of another one."""
    words = f"{program} cuda mpi-staged apart"
    family.run(1, words, sim="cuda:2", timeout=TIMEOUT).good()


@pytest.mark.parametrize("env", [{"XCCL_DIRECT": "off"}, {"XCCL_P2P": "staged"}])
def test_packing_without_kernels(openmpi, env):
    env = {**env, "XCCL_SIM_EARLY": "1"}
    openmpi.run(1, "mpi_packing cuda device", sim="cuda:1", timeout=TIMEOUT, env=env).good()


@pytest.mark.parametrize("runtime", ["cuda", "rocm"])
def test_reduce_local_on_the_device(mpi, runtime):
    words = f"mpi_reduce_local {runtime} device"
    mpi.run(1, words, sim=f"{runtime}:1", timeout=TIMEOUT).good()


def test_reduce_local_without_kernels(mpi):
    env = {"XCCL_DIRECT": "off", "XCCL_SIM_EARLY": "1"}
    words = "mpi_reduce_local cuda mpi-staged"
    mpi.run(1, words, sim="cuda:1", timeout=TIMEOUT, env=env).good()


@pytest.mark.parametrize("case", ["replace", "self", "holes"])
def test_borrowed_memory(family, case):
    """What calls take of the device for themselves is given back, or used again."""
    family.run(2, f"mpi_borrowed cuda {case}", sim="cuda:2", timeout=TIMEOUT).good()


@pytest.mark.parametrize("case", ["pack", "unpack", "reduce"])
def test_behind_the_default_stream(family, case):
    """What the program gave that stream for the buffer is over before the device reads it."""
    env = {"XCCL_DIRECT_LINGER": "1000"}
    command = f"mpi_calls_behind cuda {case} device"
    family.run(1, command, sim="cuda:1", timeout=TIMEOUT, env=env).good()


@pytest.mark.parametrize("case", ["replace fetched", "edges messages"])
def test_sent_behind_the_default_stream(mpi, case):
    env = {"XCCL_DIRECT_LINGER": "1000"}
    mpi.run(2, f"mpi_calls_behind cuda {case}", sim="cuda:2", timeout=TIMEOUT, env=env).good()


def test_windows_over_ucx(openmpi):
    """They read an origin that MPI_NO_OP ignores."""
    env = {"OMPI_MCA_osc": "ucx"}
    result = openmpi.run(2, "mpi_windows cuda no-op-on-device", env=env, timeout=TIMEOUT)
    if result.lines("OSC UCX component priority set inside component query failed"):
        pytest.skip("Open MPI 5.0 makes no windows over UCX on this machine")
    result.good()


def separate(mpi, case, runtime="cuda", ranks=2, env=None):
    """Windows on device memory, where the kernel may not copy between processes."""
    none = runtime == "none"
    settings = {} if none else {"XCCL_WINDOWS": "separate"}
    if mpi.name == "openmpi":
        settings.update(OMPI_MCA_osc="rdma", OMPI_MCA_btl="self,vader,tcp")
        settings["OMPI_MCA_btl_vader_single_copy_mechanism"] = "emulated"
    mpi.run(
        *(ranks, f"mpi_separate {runtime} {case}"),
        sim=None if none else f"{runtime}:4",
        preload=not none,
        env={**settings, **(env or {})},
        timeout=TIMEOUT,
    ).good()


@pytest.mark.parametrize("case", SEPARATE)
def test_separate_windows(mpich, case):
    separate(mpich, case)


@pytest.mark.release_only
def test_separate_windows_by_openmpi(openmpi):
    separate(openmpi, "fence")


@pytest.mark.parametrize(("number", "freeing"), [(3, 0), (8, 0), (10, 1)])
def test_error_of_a_separate_window(mpich, number, freeing):
    """The window's error handler has it, not that of MPI_COMM_WORLD."""
    env = {"XCCL_WINDOWS": "separate", "XCCL_SIM_FAIL": f"copy@1={number}"}
    result = mpich.run(2, "mpi_separate cuda errors", env=env, timeout=TIMEOUT)
    result.good()
    assert len(result.lines("rank 1: MPI_Win_free says so")) == freeing, result.out
    assert len(result.lines(r"xccl\[1\] error: cuMemcpyAsync failed")) == 1, result.out


def test_refused_windows(mpich):
    """Beyond XCCL_STAGING, and dynamic ones."""
    separate(mpich, "refused", env={"XCCL_STAGING": "3"})


@pytest.mark.thorough
@pytest.mark.parametrize("case", SEPARATE)
def test_separate_windows_thorough(mpi, case):
    separate(mpi, case, ranks=3 if mpi.is_mpich else 2)  # Open MPI takes a minute
    separate(mpi, case, runtime="rocm")
    separate(mpi, case, runtime="none")


@pytest.mark.release_only
@pytest.mark.each_value
@pytest.mark.parametrize("case", WINDOWS)
def test_windows_reference(family, case):
    """On host memory and without xccl the program itself is right."""
    command = f"mpi_windows none {case}"
    family.run(2, command, sim=None, preload=False, timeout=TIMEOUT).good()


def test_flushed_nobody(mpich):
    """Open MPI 4.1 ends accesses by that, even in host memory without xccl."""
    mpich.run(2, "mpi_windows cuda flushed-nobody", timeout=TIMEOUT).good()


@pytest.mark.parametrize("runtime", ["cuda", "none"])
def test_created_windows(mpich, runtime):
    """Open MPI 4.1 has none where the kernel does not copy between processes."""
    devices = {"sim": "cuda:4"} if runtime == "cuda" else {"sim": None, "preload": False}
    mpich.run(2, f"mpi_windows {runtime} created", timeout=TIMEOUT, **devices).good()


@pytest.mark.parametrize("runtime", ["cuda", "none"])
@pytest.mark.parametrize("case", ["ring", pytest.param("threads", marks=pytest.mark.tsan)])
def test_partitions(mpich, case, runtime):
    """Open MPI 4.1 has no such messages."""
    devices = {"sim": "cuda:4"} if runtime == "cuda" else {"sim": None, "preload": False}
    mpich.run(2, f"mpi_partitions {runtime} {case}", timeout=TIMEOUT, **devices).good()


@pytest.mark.parametrize("case", ["sends", "order", "files"])
def test_three_ranks(openmpi, case, tmp_path):
    openmpi.run(3, command(case, tmp_path), timeout=TIMEOUT).good()


@pytest.mark.parametrize("limit", ["0", "1"])
def test_staging_limit(openmpi, limit):
    """Without pinned memory, or with less than is wanted at a time, all goes on, and it is said."""
    env = {"XCCL_STAGING": limit, "XCCL_LOG": "info", "XCCL_P2P": "staged"}
    run = openmpi.run(2, "mpi_transfers cuda large", env=env, timeout=TIMEOUT)
    run.good()
    assert len(run.lines("XCCL_STAGING")) == 2, run.out


@pytest.mark.parametrize("case", ["sends", "partial", "files"])
def test_rocm(family, case, tmp_path):
    family.run(2, command(case, tmp_path, "rocm"), sim="rocm:4", timeout=TIMEOUT).good()


HANDLES = ["receive", "pairs", "persistent", "window", "file", "split", "collective"]


@pytest.mark.parametrize("case", HANDLES)
def test_handles(family, case, tmp_path):
    """A derived datatype may be freed while a call needs it."""
    family.run(1, f"mpi_handles cuda {case} {tmp_path}", timeout=TIMEOUT).good()


@pytest.mark.parametrize("p2p", ["auto", "staged"])
def test_freed_before_disconnect(mpi, p2p):
    """MPI_Comm_disconnect waits for messages whose requests were freed. MPICH's waits for requests."""
    env = {"XCCL_P2P": p2p}
    mpi.run(2, "mpi_handles cuda disconnected", sim="cuda:2", env=env, timeout=TIMEOUT).good()


@pytest.mark.release_only
@pytest.mark.each_value
@pytest.mark.parametrize("case", HANDLES)
def test_handles_reference(family, case, tmp_path):
    """On host memory and without xccl the program itself is right."""
    command = f"mpi_handles none {case} {tmp_path}"
    family.run(1, command, sim=None, preload=False, timeout=TIMEOUT).good()


@pytest.mark.parametrize("path", [*PATHS, "staged"])
def test_arrays_used_again(family, path):
    """Counts, displacements and types may be used again while a call needs them: MPI stands it."""
    env = PATHS.get(path, {"XCCL_TUNE": "*:*:*:*:staged"})
    family.run(3, "mpi_handles cuda arrays", env=env, timeout=TIMEOUT).good()


@pytest.mark.parametrize("path", PATHS)
def test_freed_before_mpi_unpacks(mpi, path):
    """A type that is freed while its data, not unpacked on the device, is still to come."""
    mpi.run(3, "mpi_handles cuda unpacked", env=PATHS[path], timeout=TIMEOUT).good()


def test_freed_type_of_an_empty_part(mpi):
    """A persistent collective in which a rank has no data, of a type that is freed."""
    mpi.run(3, "mpi_handles cuda empty", timeout=TIMEOUT).good()


@pytest.mark.release_only
def test_freed_before_mpi_unpacks_reference(openmpi):
    openmpi.run(3, "mpi_handles none unpacked", sim=None, preload=False, timeout=TIMEOUT).good()


@pytest.mark.release_only
def test_arrays_used_again_reference(openmpi):
    """On host memory and without xccl; MPICH itself would look at them later."""
    openmpi.run(3, "mpi_handles none arrays", sim=None, preload=False, timeout=TIMEOUT).good()


@pytest.mark.release_only
@pytest.mark.each_value
@pytest.mark.parametrize("case", [*CASES, "files"])
def test_reference(family, case, tmp_path):
    """On host memory and without xccl the program itself is right."""
    run = family.run(2, command(case, tmp_path, "none"), sim=None, preload=False, timeout=TIMEOUT)
    run.good()


def test_left_to_mpi(openmpi):
    """XCCL_P2P=mpi hands device buffers to MPI, which this one cannot take."""
    run = openmpi.run(2, command("receives", "."), env={"XCCL_P2P": "mpi"}, timeout=TIMEOUT)
    assert run.status != 0
