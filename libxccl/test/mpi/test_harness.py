# SPDX-License-Identifier: BSD-3-Clause
"""An MPI that does not start is no reason to leave its tests out in silence."""

import os
import re
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from mpi_harness import (
    GOODBYE_LOST,
    Mpi,
    Result,
    lost_by_launcher,
    pick,
    replacement,
    start_failure,
)
from openmpi_goodbye import crashed
from running_clock import RunningClock

pytestmark = pytest.mark.release_only


class Launcher:
    """Stands for an MPI: each start ends as the next one of these does."""

    mpiexec = "mpiexec.made-up"

    def __init__(self, *outputs):
        self.outputs = list(outputs)

    def run(self, *_, **__):
        out = self.outputs.pop(0)
        if out is None:
            raise AssertionError("processes [7] outlived the run")
        return Result(0 if "rank" in out else 1, out, 0.1, False)


def test_slow_once():
    assert start_failure(Launcher("no daemon answered", "rank 0\nrank 1\n")) == ""
    assert start_failure(Launcher(None, "rank 0\nrank 1\n")) == ""


def test_never_starts():
    """Two ranks 0 are two programs of one rank, under the launcher of another MPI."""
    singletons = "rank 0\nrank 0\n"
    why = start_failure(Launcher("", None, singletons))
    assert why.startswith("mpiexec.made-up starts no 2 ranks here, in 3 tries: rank 0")
    with pytest.raises(pytest.fail.Exception, match=r"openmpi is installed, but mpiexec\.made-up"):
        pick({"openmpi": why}, "openmpi")


@pytest.mark.parametrize(
    ("required", "end"), [("", "skip"), ("openmpi,mpich43", "skip"), ("openmpi,mpich", "fail")]
)
def test_not_installed(monkeypatch, required, end):
    monkeypatch.setenv("XCCL_REQUIRE_MPI", required)
    with pytest.raises((pytest.skip.Exception, pytest.fail.Exception)) as ended:
        pick({}, "mpich")
    assert ended.type is getattr(pytest, end).Exception and "not installed" in str(ended.value)


def test_another_library(tmp_path, monkeypatch):
    assert replacement(None, "mpich") is None
    monkeypatch.setenv("XCCL_TEST_MPICH", str(tmp_path))
    with pytest.raises(pytest.fail.Exception, match=r"no .*/lib/libmpich\.so\.12; make it a link"):
        replacement(None, "mpich")
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/libmpich.so.12").touch()
    mpi = replacement(None, "mpich")
    assert (mpi.family, mpi.mpiexec) == ("mpich", f"{tmp_path}/bin/mpiexec.hydra")
    assert mpi.library_path == f"{tmp_path}/lib"


def test_run_again_only_after_good_checks():
    crash = "mpirun noticed that process rank 0 with PID 0 on node n exited on signal 11"
    assert GOODBYE_LOST.search(f"312 checks, 0 failures\n{crash}")
    assert not GOODBYE_LOST.search(f"312 checks, 1 failures\n{crash}")
    assert not GOODBYE_LOST.search(f"{crash}\n")
    segv = "AddressSanitizer: SEGV on unknown address 0x7f23ced1bc5c (pc {} bp 0x61 sp 0x7f {})"
    jumped, read = (segv.format(pc, "T1") for pc in ("0x7f23ced1bc5c", "0x7f23ced1bc50"))
    assert GOODBYE_LOST.search(f"rank 0: sum right\n{jumped}")
    assert not GOODBYE_LOST.search(f"rank 0: sum right\n{read}")
    assert not GOODBYE_LOST.search(f"rank 0: sum right\n{jumped.replace('T1', 'T0')}")
    assert not GOODBYE_LOST.search(f"rank 0: sum wrong\n{jumped}")
    assert crashed(crash) and crashed(jumped) and not crashed(read)
    assert not crashed(f"{jumped}\n#1 0x7f23 (libxccl-mpi-openmpi.so+0x1f)")


GOOD = "312 checks, 0 failures\n"
CRASH = "mpirun noticed that process rank 0 with PID 0 on node n exited on signal 11"


@pytest.mark.parametrize(
    ("out", "lost"),
    [
        (f"{GOOD}{CRASH}", True),
        ("[h0:1] orte_session_dir failed", True),
        (f"xccl: info: /p/lib/libxccl-mpi.so\n{GOOD}[h0:7] [ 3] /p/lib/libopen-pal.so.40(+0x1f)\n{CRASH}", True),
        (f"{GOOD}[h0:7] [ 3] /p/lib/libxccl-mpi.so(+0x1f)[0x7f]\n{CRASH}", False),
        (f"{GOOD}[h0:7] [12] /p/lib/libxccl-mpi-openmpi.so(MPI_Finalize+0x1f)\n{CRASH}", False),
        (f"{GOOD}    #1 0x7f23 in xm_end /s/libxccl/src/end.c:7\n{CRASH}", False),
        (f"{GOOD}==7==ERROR: AddressSanitizer: heap-use-after-free on address 0x7f\n{CRASH}", False),
        (f"{GOOD}WARNING: ThreadSanitizer: data race (pid=7)\n{CRASH}", False),
        (f"{GOOD}end.c:7:3: runtime error: signed integer overflow\n{CRASH}", False),
        (f"{GOOD}==7==ERROR: AddressSanitizer: SEGV on unknown address 0x7f (pc 0x7f bp 0x6 T1)", True),
        (f"{GOOD}==7==ERROR: AddressSanitizer: SEGV on unknown address 0x7e (pc 0x7f bp 0x6 T1)\n{CRASH}", False),
    ],
)  # fmt: skip
def test_what_is_ours_is_not_run_again(out, lost):
    assert lost_by_launcher(out) == lost


class OneThatFails(Mpi):
    """Each of its jobs says the same, and fails."""

    def __init__(self, build, out):
        super().__init__(build, "openmpi", "openmpi", "mpiexec.made-up")
        self.out, self.runs = out, 0

    def execute(self, *_):
        self.runs += 1
        return Result(139, self.out, 0.1, False)


def test_how_often_it_is_run(build):
    lost, ours = (
        OneThatFails(build, f"{GOOD}{CRASH}"),
        OneThatFails(build, f"{GOOD}[h0:7] [ 3] libxccl-mpi.so(+0x1f)\n{CRASH}"),
    )
    with pytest.warns(UserWarning, match="by the launcher's fault"):
        lost.run(2, "mpi_local cuda")
    ours.run(2, "mpi_local cuda")
    assert (lost.runs, ours.runs) == (2, 1)


def test_files_of_jobs(openmpi):
    """Another run of pytest has another folder for them."""
    if openmpi.library_path:
        pytest.skip("another Open MPI may know no such variable")
    folder = dict(os.environ)["OMPI_MCA_orte_tmpdir_base"]
    assert folder != tempfile.gettempdir()
    result = openmpi.run(1, ["/usr/bin/env"], sim=None, preload=False)
    assert result.lines(f"^PMIX_SERVER_TMPDIR={re.escape(folder)}/ompi"), result.out


def test_a_machine_that_stands_still():
    """Steps of the clock's thread count as they are, half a minute between two as half a second."""
    times = iter([10.0, 10.1, 10.3, 40.3, 40.4])
    clock = RunningClock(clock=lambda: next(times), sleep=lambda _: None)
    with pytest.raises(StopIteration):
        clock._run()
    assert clock._seconds == pytest.approx(0.1 + 0.2 + 0.5 + 0.1)


def test_clock_of_several_threads(monkeypatch):
    """The first calls may come at once; one of them starts the clock."""
    clock = RunningClock()
    start, started = clock._thread.start, []

    def slow_start():
        started.append(1)
        time.sleep(0.2)  # before the thread has an identity
        start()

    monkeypatch.setattr(clock._thread, "start", slow_start)
    with ThreadPoolExecutor(4) as pool:
        assert all(seconds >= 0 for seconds in pool.map(lambda _: clock.now(), range(4)))
    assert len(started) == 1
