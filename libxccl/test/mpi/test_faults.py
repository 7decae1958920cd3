# SPDX-License-Identifier: BSD-3-Clause
"""Faults that the simulation is told to make: right results or an MPI error, and never a hang."""

import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from mpi_harness import CCL, DIRECT, PATHS
from running_clock import now

GOOD = r"rank \d: all rounds good"
# What the simulation says on a rank that a fault is planted for.
HEARD = {"XCCL_SIM_LOG": "info"}
STRUCK = r"\[1\] SIM INFO XCCL_SIM_FAIL strikes"
FAULTS = Path(__file__).parents[2] / "sim/core/fault.c"


def warnings_of(result):
    return result.lines(r"xccl(\[\d\])? warning:")


def falls_back(result, ranks, cause):
    """All ranks went on with MPI, the results are right, and there was exactly one warning."""
    assert not result.timed_out and result.status == 0, result.out
    assert len(result.lines(GOOD)) == ranks, result.out
    assert len(warnings_of(result)) == 1, result.out
    assert re.search(cause, warnings_of(result)[0]), result.out


@pytest.mark.each_value
@pytest.mark.parametrize("fault", ["init@1", "init", "init@0"])
def test_init_fails(family, fault):
    """One rank, or all, cannot make a communicator: all use MPI."""
    env = {**CCL, "XCCL_SIM_FAIL": fault}
    falls_back(family.run(3, "mpi_loop cuda 5", env=env, timeout=60), 3, "ncclCommInitRank failed")


@pytest.mark.parametrize("rank", ["@0", "@1", ""])
def test_library_cannot_be_loaded(family, rank):
    env = {**CCL, "XCCL_SIM_FAIL": f"load{rank}"}
    falls_back(family.run(2, "mpi_loop cuda 5", env=env, timeout=60), 2, "libnccl")


@pytest.mark.each_value
@pytest.mark.parametrize("rank", ["@0", "@1", ""])
def test_symbol_missing(family, rank):
    env = {**CCL, "XCCL_SIM_FAIL": f"symbol:ncclAllReduce{rank}"}
    falls_back(family.run(2, "mpi_loop cuda 5", env=env, timeout=60), 2, "ncclAllReduce")


def test_symbol_missing_non_blocking(family):
    """No rank may wait for another here: the rank that knows the cause says it."""
    env = {**CCL, "XCCL_SIM_FAIL": "symbol:ncclAllReduce@1"}
    result = family.run(2, "mpi_requests cuda rounds", env=env, timeout=60)
    assert result.status == 0, result.out
    assert len(warnings_of(result)) == 1, result.out
    assert re.search(r"\[1\].* rank 1: .*no symbol ncclAllReduce", warnings_of(result)[0]), (
        result.out
    )


def test_cause_with_a_long_path(family, tmp_path):
    """Sites' prefixes are long: the cause and the remedy behind a path are still there."""
    folder = tmp_path / ("prefix" * 20) / ("hash" * 20)
    shutil.copytree(family.build.stage / "lib/xccl/sim", folder, symlinks=True)
    env = {
        **CCL,
        "XCCL_SIM_FAIL": "symbol:ncclAllReduce@1",
        "LD_LIBRARY_PATH": str(folder / "cuda"),
    }
    cause = "no symbol ncclAllReduce.*point XCCL_CCL_LIBRARY to one"
    falls_back(family.run(2, "mpi_loop cuda 5", env=env, timeout=60), 2, cause)


def without_nccl(mpi, folder):
    """The simulated driver alone, in a folder of its own."""
    source = mpi.build.stage / "lib/xccl/sim"
    (folder / "cuda").mkdir()
    for file in (source / "cuda").glob("libcuda*"):
        shutil.copy2(file, folder / "cuda", follow_symlinks=False)
    for file in source.glob("*.so*"):
        shutil.copy2(file, folder)
    return folder / "cuda"


def test_library_missing(openmpi, tmp_path):
    env = {"LD_LIBRARY_PATH": str(without_nccl(openmpi, tmp_path))}
    falls_back(openmpi.run(2, "mpi_loop cuda 5", env=env, timeout=60), 2, "libnccl")


def test_none_is_no_fault(openmpi):
    """XCCL_CCL=none asks for it: the same results, and no warning."""
    result = openmpi.run(2, "mpi_loop cuda 5", env={"XCCL_CCL": "none"}, timeout=60)
    assert result.status == 0 and len(result.lines(GOOD)) == 2, result.out
    assert not warnings_of(result), result.out


def test_versions_differ(openmpi):
    """Ranks with different versions of the library: one warning names both, and MPI is used."""
    program = str(openmpi.program("mpi_loop"))
    old = f"test $OMPI_COMM_WORLD_RANK = 1 && export XCCL_SIM_VERSION=22304; exec {program} cuda 5"
    result = openmpi.run(2, ["/bin/sh", "-c", old], timeout=60)
    falls_back(result, 2, "22304")
    assert "22803" in warnings_of(result)[0], result.out


@pytest.mark.parametrize(("devices", "same"), [(2, False), (1, True)])
def test_devices_without_uuid(openmpi, devices, same):
    """They are told apart by their places in the machine."""
    env = {**CCL, "XCCL_SIM_UUID": "0"}
    result = openmpi.run(2, "mpi_loop rocm 5", sim=f"rocm:{devices}", env=env, timeout=60)
    assert result.status == 0 and len(result.lines(GOOD)) == 2, result.out
    assert bool(result.lines("ranks 0 and 1 use the same device")) == same, result.out


@pytest.mark.each_value
@pytest.mark.parametrize("number", [46, 59, 72])
def test_error_with_threads(family, number):
    """One thread's communicator breaks while both look after all operations; the other's goes on."""
    env = {**CCL, "XCCL_SIM_FAIL": f"async:allreduce@1={number}", "XCCL_TIMEOUT": "10"}
    family.run(2, "mpi_requests cuda broken", env=env, timeout=60).good()


@pytest.mark.each_value
@pytest.mark.parametrize("kind", ["async", "op"])
def test_error_in_an_operation(mpi, kind):
    """An error of the library in mid-flight is an MPI error on every rank, with its history."""
    env = {**CCL, "XCCL_SIM_FAIL": f"{kind}:allreduce@1=3", "XCCL_TIMEOUT": "10"}

    def both_told(result):
        ends = result.lines(r"rank \d: round \d+: class \d+: ")
        return {line[:6] for line in ends} == {"rank 0", "rank 1"}

    result = mpi.run_heard(both_told, 2, "mpi_loop cuda 6 return", env=env, timeout=60)
    assert "last operations of rank" in result.out
    # The library does not tell rank 0 of it, as NCCL on one node.
    assert "rank 1 has given up the communicator: " in result.out, result.out


# The vendor's library is not to wait in its end for ranks that are stuck in it.
SOON = {"XCCL_SIM_ABORT_MS": "300"}


@pytest.mark.each_value
@pytest.mark.parametrize("launch", ["now", "met"])
@pytest.mark.parametrize("form", ["blocking", "nonblocking", "persistent"])
@pytest.mark.parametrize("path", ["ccl", "direct"])
def test_copy_fails_before_an_operation(openmpi, path, form, launch):
    """One rank never comes to it: the others are told, and do not wait for it."""
    env = {**PATHS[path], "XCCL_SIM_FAIL": "copy@1=1", "XCCL_LAUNCH": launch, **SOON}
    openmpi.run(3, f"mpi_missed cuda {form}_up", env=env, timeout=60).good()


@pytest.mark.parametrize("case", ["asked", "asked_blocking", "asked_late"])
def test_rank_gives_up_while_the_ranks_agree(family, case):
    """It goes on to answer what the others ask, and they get an error and do not wait for it."""
    env = {**DIRECT, "XCCL_SIM_FAIL": "init:hang", **SOON}
    family.run(3, f"mpi_reset cuda {case}", env=env, timeout=60).good()


@pytest.mark.parametrize(
    ("path", "case"),
    [
        ("direct", "unlike"),
        ("direct", "unlike_blocking"),
        ("ccl", "unlike"),
        ("ccl", "alike_blocking"),
        ("ccl", "block"),
    ],
)
def test_no_memory_for_a_copy_in_place(openmpi, path, case):
    """One rank cannot keep its inputs apart: none goes on as if it had."""
    env = {**PATHS[path], "XCCL_COMM_CREATE": "first", "XCCL_SIM_MEMORY": "512m", **SOON}
    if path == "direct":
        env["XCCL_CCL"] = "none"
    result = openmpi.run(
        3, f"mpi_spare cuda {case}", env={**env, "XCCL_TIMEOUT": "10"}, timeout=60
    )
    result.good()
    assert len(result.lines(r"xccl\[\d\] error: ")) == 3, result.out
    assert result.lines(r"xccl\[1\] error: .*out of memory"), result.out


def test_idle_memory_makes_room(mpi):
    """What the library keeps of the device for later calls is given back to a call that needs it."""
    env = {**CCL, "XCCL_SIM_MEMORY": "512m"}
    mpi.run(2, "mpi_spare cuda idle", env=env, timeout=60).good()


def test_error_is_fatal_by_default(mpi):
    env = {**CCL, **HEARD, "XCCL_SIM_FAIL": "async:allreduce@1=3", "XCCL_TIMEOUT": "10"}
    result = mpi.run_heard(
        lambda r: r.lines(STRUCK), 2, "mpi_loop cuda 6 fatal", env=env, timeout=60
    )
    assert not result.lines(GOOD), result.out


def test_hang(mpi):
    """A rank that never comes is a time-out that names the last operations."""
    env = {**CCL, "XCCL_SIM_FAIL": "hang:allreduce@1=3", "XCCL_TIMEOUT": "2"}
    history = r"last operations of rank \d: #3 allreduce of 20000 bytes"
    result = mpi.run_heard(
        lambda r: r.lines(history), 2, "mpi_loop cuda 6 return", env=env, timeout=60
    )
    assert re.search(r"XCCL_TIMEOUT|2 s", result.out), result.out


@pytest.mark.release_only
@pytest.mark.each_value
@pytest.mark.parametrize(
    ("rounds", "env"),
    [
        # In the second call the ranks of a node agree on what they share.
        (2, {"XCCL_CCL": "none", "XCCL_DIRECT": "off"}),
        (3, {**CCL, "XCCL_CHECK": "1"}),
        (1, {"XCCL_MEMORY": "mixed"}),
    ],
)
def test_rank_that_does_not_come_to_an_agreement(family, rounds, env):
    """What the ranks ask each other before an operation has an end, too."""
    env = {**env, "XCCL_TIMEOUT": "1"}
    number = rf"allreduce, number {rounds} of its communicator of 2 ranks"
    family.run_heard(
        lambda r: r.lines(rf"rank 0: .* class \d+: .*XCCL_TIMEOUT.* {number}"),
        2,
        f"mpi_loop cuda {rounds} return absent",
        env=env,
        timeout=30,
    )


@pytest.mark.release_only
@pytest.mark.parametrize(
    ("env", "said"),
    [
        (
            {},
            r"rank 1 has not come to allreduce, number 6 of .*: #6 allreduce of 20000 bytes \(failed\)",
        ),
        ({"XCCL_MEMORY": "mixed"}, r"rank 1 has not come to allreduce, number 6 of"),
    ],
)
def test_time_out_names_rank_and_number(openmpi, tmp_path, env, said):
    """The message, the history in it, and the file: the same number; and xccl-doctor the same rank."""
    env = {**env, "XCCL_TIMEOUT": "1", "XCCL_DUMP_DIR": str(tmp_path)}
    openmpi.run_heard(
        lambda r: r.lines(f"^xccl.0. error: .*{said}"),
        3,
        "mpi_loop cuda 6 return absent",
        env=env,
        timeout=30,
    )
    dump = next(dump for dump in dumps_of(tmp_path) if dump["rank"] == 0)
    last = dump["operations"][-1]
    assert (last["sequence"], last["state"]) == (6, "failed"), dump
    doctor = openmpi.build.stage / "bin/xccl-doctor"
    found = subprocess.run(
        [doctor, "--hang", tmp_path], capture_output=True, text=True, check=False
    )
    assert "[hang-timeout] rank 1 left no file" in found.stdout, found.stdout


def dumps_of(folder):
    return [json.loads(path.read_text()) for path in sorted(folder.glob("xccl-ops.*.json"))]


def test_dump_of_a_time_out(openmpi, tmp_path):
    """Every rank writes what it did last, and xccl-doctor makes sense of it."""
    env = {
        **CCL,
        "XCCL_SIM_FAIL": "hang:allreduce@1=3",
        "XCCL_TIMEOUT": "2",
        "XCCL_DUMP_DIR": str(tmp_path),
    }
    result = openmpi.run(2, "mpi_loop cuda 6 return", env=env, timeout=60)
    dumps = dumps_of(tmp_path)
    assert sorted(dump["rank"] for dump in dumps) == [0, 1], result.out
    for dump in dumps:
        states = {
            op["sequence"]: op["state"] for op in dump["operations"] if op["comm"] == "world"
        }
        assert (states[1], states[2], states[3]) == ("done", "done", "failed"), dump
        third = next(op for op in dump["operations"] if op["sequence"] == 3)
        assert (third["call"], third["type"]) == ("MPI_Allreduce", "MPI_FLOAT"), third
        assert (third["path"], third["bytes"]) == ("ccl", 20000), third
    doctor = openmpi.build.stage / "bin/xccl-doctor"
    said = subprocess.run(
        [doctor, "--hang", tmp_path], capture_output=True, text=True, check=False
    )
    assert said.returncode in (1, 3) and "MPI_Allreduce" in said.stdout, said.stdout + said.stderr


def test_dump_of_a_healthy_job_with_calls_on_host_memory(mpi, tmp_path):
    """They are no operations of the files, or have no number: the others of that rank are compared as they are."""
    env = {"XCCL_DUMP_DIR": str(tmp_path)}
    mpi.run(3, "mpi_host_calls cuda", env=env, timeout=60).good()
    dumps = dumps_of(tmp_path)
    assert sorted(dump["rank"] for dump in dumps) == [0, 1, 2]
    for dump in dumps:
        calls = [(op["sequence"], op["call"]) for op in dump["operations"]]
        assert [call for call in calls if call[0]] == [(n, "MPI_Allreduce") for n in range(1, 8)]
        rest = {call for call in calls if not call[0]}
        assert dump["cause"] is None
        assert rest == {(None, "MPI_Alltoallw")}, dump  # messages, whatever memory a rank passes
    said = subprocess.run(
        [mpi.build.stage / "bin/xccl-doctor", "--hang", tmp_path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode == 0, said.stdout + said.stderr


@pytest.mark.each_value
@pytest.mark.parametrize("rounds", [1, 2])
def test_dump_before_the_ranks_have_agreed(mpi, tmp_path, rounds):
    """A rank that waits in the first calls of a communicator, for one that never comes, says so, too."""
    env = {"XCCL_TIMEOUT": "1", "XCCL_DUMP_DIR": str(tmp_path)}
    result = mpi.run(2, f"mpi_loop cuda {rounds} return absent", env=env, timeout=60)
    (dump,) = dumps_of(tmp_path)
    assert (dump["rank"], dump["reason"]) == (0, "time-out"), result.out
    assert dump["cause"].startswith("not completed within 1 s (XCCL_TIMEOUT)"), dump
    last = dump["operations"][-1]
    assert (last["sequence"], last["call"]) == (rounds, "MPI_Allreduce"), dump
    assert last["state"] == "failed", dump
    assert (last["path"] == "agreement") or (rounds > 1), dump


def test_dumps_of_two_worlds(openmpi, tmp_path):
    """What a program spawned has a world of its own, of the same size and ranks: they are told apart."""
    env = {"XCCL_DUMP_DIR": str(tmp_path), "XCCL_COMM_CREATE": "first"}
    result = openmpi.run(1, "mpi_spawn cuda dump", sim="cuda:2", env=env, timeout=60)
    assert result.status == 0, result.out
    own, spawned = sorted(dumps_of(tmp_path), key=lambda dump: dump["spawned"] or "")
    worlds = [{op["comm"] for op in one["operations"]} for one in (own, spawned)]
    assert own["spawned"] is None and "world" in worlds[0], worlds
    assert f"world.{spawned['spawned']}" in worlds[1] and "world" not in worlds[1], worlds
    both = worlds[0] & worlds[1]  # the communicator of both of them has one name
    assert len(both) == 1 and not both.pop().startswith("world"), worlds
    doctor = openmpi.build.stage / "bin/xccl-doctor"
    said = subprocess.run(
        [doctor, "--hang", tmp_path], capture_output=True, text=True, check=False
    )
    assert "of a rank that has a newer one" not in said.stdout, said.stdout + said.stderr


def hear_pid(process):
    """Wait until rank 1 says its number: all that was heard, and the number."""
    heard = ""
    while not (found := re.search(r"rank 1: pid (\d+)\n", heard)):
        line = process.stdout.readline()
        assert line, f"it ended before rank 1 said its pid:\n{heard}"
        heard += line
    return heard, int(found.group(1))


@pytest.mark.release_only
def test_dump_on_a_signal(family, tmp_path):
    """SIGUSR1 writes the file, and the job goes on to its end; MPICH has a handler for it, too."""

    def signal_rank_1(process):
        heard, pid = hear_pid(process)
        end = now() + 20
        while not dumps_of(tmp_path) and now() < end:
            os.kill(pid, signal.SIGUSR1)
            time.sleep(0.2)
        return heard

    env = {"XCCL_DUMP_DIR": str(tmp_path)}
    result = family.run(
        2, "mpi_loop cuda 4000 return", env=env, timeout=60, while_running=signal_rank_1
    )
    assert result.status == 0 and not result.timed_out, result.out
    (dump,) = dumps_of(tmp_path)
    assert (dump["rank"], dump["reason"]) == (1, "SIGUSR1")


def test_signal_keeps_errno(openmpi, tmp_path):
    """Whatever the program was doing, also where the file cannot be written: then that is said."""
    env = {"XCCL_DUMP_DIR": str(tmp_path / "missing")}
    result = openmpi.run(1, "mpi_signal none", env=env, timeout=60)
    result.good()
    assert result.lines(
        r"xccl\[0\] warning: cannot write .*/xccl-ops\..*: there is no such folder"
    )


def test_signals_to_several_threads(family, tmp_path):
    """As where mpirun passes on the signal that the user sends to all processes: one whole file."""
    env = {"XCCL_DUMP_DIR": str(tmp_path)}
    result = family.run(1, "mpi_signal none threads", env=env, timeout=60)
    result.good()
    assert not result.lines("cannot write"), result.out
    assert [dump["reason"] for dump in dumps_of(tmp_path)] == ["SIGUSR1"]
    assert len(list(tmp_path.iterdir())) == 1


def test_files_in_a_deep_folder(openmpi, tmp_path):
    """Names may be as long as the system allows."""
    folder = tmp_path.joinpath(*[letter * 240 for letter in "abcde"])
    folder.mkdir(parents=True)
    env = {
        "XCCL_DUMP_DIR": str(folder),
        "XCCL_LOG": "info",
        "XCCL_LOG_FILE": str(folder / "log"),
        "XCCL_PROFILE": str(folder / "profile.json"),
    }
    result = openmpi.run(1, "mpi_signal none", env=env, timeout=60)
    result.good()
    assert not result.lines("xccl.*warning"), result.out
    assert len(dumps_of(folder)) == 1
    assert {"log", "profile.json"} < set(os.listdir(folder))


def test_signal_on_a_full_disk(openmpi, tmp_path):
    """No file may have a byte: none is left that ends in the middle."""
    shell = ["/bin/sh", "-c", 'trap "" XFSZ; ulimit -f 0; exec "$@"', "sh"]
    command = [*shell, openmpi.program("mpi_signal"), "none"]
    result = openmpi.run(1, command, env={"XCCL_DUMP_DIR": str(tmp_path)}, timeout=60)
    result.good()
    assert result.lines(r"xccl\[0\] warning: cannot write .*/xccl-ops\..*: no space left")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("case", ["alone", "before"])
@pytest.mark.parametrize("mpi", ["mpich"], indirect=True)
def test_signal_with_sessions(mpi, tmp_path, case):
    """Without MPI_Init, and where that comes after calls on a session."""
    env = {"XCCL_DUMP_DIR": str(tmp_path)}
    mpi.run(2, f"mpi_session cuda {case} raise", env=env, timeout=60).good()
    dumps = dumps_of(tmp_path)
    assert sorted((dump["rank"], dump["size"]) for dump in dumps) == [(0, 2), (1, 2)]
    assert {dump["operations"][-1]["comm"].split(".")[0] for dump in dumps} == {"0"}, dumps


def test_signal_of_the_programs_own(family, tmp_path):
    """A program that handles the signal itself goes on doing that."""
    env = {"XCCL_DUMP_DIR": str(tmp_path)}
    family.run(1, "mpi_signal none own", env=env, timeout=60).good()
    assert not dumps_of(tmp_path)


@pytest.mark.release_only
def test_hang_in_init(openmpi):
    """A communicator that is never made does not hold the job for ever either: all use MPI."""
    env = {**CCL, **HEARD, "XCCL_SIM_FAIL": "init:hang@1", "XCCL_TIMEOUT": "1"}
    result = openmpi.run(2, "mpi_loop cuda 2 return", env=env, timeout=60)
    falls_back(result, 2, "XCCL_TIMEOUT")
    assert result.lines(STRUCK), result.out


def ends_badly(mpi, said, command, **options):
    """The job ends in time, and not well, by what its output holds. Hydra of MPICH 4.2.1 says nothing of a rank
    that was killed in one of seven jobs, also without xccl, and launchers may lose a rank's last words: status
    and words are then those of another of four runs."""
    for _ in range(4):
        result = mpi.run(2, command, timeout=60, **options)
        assert not result.timed_out, result.out
        assert result.seconds < 20, result.out
        assert mpi.is_mpich or result.status != 0, result.out
        if result.status != 0 and result.lines(said):
            return
    pytest.fail(f"status {result.status} in the last of four runs, or no '{said}':\n{result.out}")


def test_kill_in_an_operation(mpi):
    """A rank dies in mid-collective: the job ends within XCCL_TIMEOUT and leaves nothing."""
    env = {**CCL, **HEARD, "XCCL_SIM_FAIL": "kill:allreduce@1=3", "XCCL_TIMEOUT": "10"}
    ends_badly(mpi, STRUCK, "mpi_loop cuda 100000 fatal", env=env)


def kill_rank_1(process):
    """Wait until rank 1 says its number, let it run a moment, and kill it."""
    heard, pid = hear_pid(process)
    time.sleep(0.5)
    os.kill(pid, signal.SIGKILL)
    return heard


def kill_from_outside(mpi, path):
    env = {**path, "XCCL_TIMEOUT": "10"}
    ends_badly(
        mpi, "rank 1: pid", "mpi_loop cuda 1000000 fatal", env=env, while_running=kill_rank_1
    )


@pytest.mark.release_only
def test_kill_from_outside(mpi):
    """The same at any moment."""
    kill_from_outside(mpi, CCL)


@pytest.mark.release_only
@pytest.mark.each_value
@pytest.mark.parametrize("linger", ["500", "off"])
def test_kill_from_outside_direct(family, linger):
    """And while kernels of our own wait for each other."""
    kill_from_outside(family, {**DIRECT, "XCCL_DIRECT_LINGER": linger})


@pytest.mark.each_value
@pytest.mark.parametrize(
    ("command", "first"),
    [
        ("mpi_random cuda 3 60", 40),
        ("mpi_random cuda 7 80 --threads 3", 160),
        ("mpi_messages cuda 4 60", 50),
        ("mpi_loop cuda 12 return", 20),
    ],
)
@pytest.mark.parametrize("path", [None, "ccl"])
def test_crash(family, command, first, path):
    """A kernel of the program spoils rank 1's device, early or late: the job ends, and says why."""
    for number in (first, 2 * first, 3 * first):
        env = {**PATHS.get(path, {}), "XCCL_SIM_FAIL": f"crash@1={number}", **SOON}
        result = family.run_heard(
            lambda r: re.search("illegal memory access|(error|status) 700", r.out),
            2,
            command,
            env=env,
            timeout=60,
        )
        assert "egmentation" not in result.out, result.out
        bare = result.lines(r"CUDA error 700\)(?!; a kernel has crashed before)")
        assert not bare, bare  # whose kernel it was


def test_unknown_fault(mpich):
    """What is refused is told with all that there is, and no device is offered."""
    result = mpich.run(1, "mpi_loop cuda 2", env={"XCCL_SIM_FAIL": "pin,nowhere"}, timeout=60)
    words = re.findall(r'{"(\w+)", XS_FAULT_', FAULTS.read_text())
    told = f"it begins with {', '.join(words[:-1])} or {words[-1]};"
    assert "pin" in words and told in result.out, result.out
    assert result.status != 0 and not result.lines(GOOD), result.out
