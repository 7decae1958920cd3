# SPDX-License-Identifier: BSD-3-Clause
"""xccl-doctor --hang: files as ranks write them, one thing wrong, and exactly that is found."""

import json
import os
from pathlib import Path

import pytest
from hang_job import BCAST, NOW, NOWHERE, SIZE, Run, call, clock, message, only
from running_clock import now
from xccl_doctor import dumps, hang, registry, words
from xccl_doctor.main import main


def test_healthy_run(job, look):
    job.write()
    causes = look()
    assert set(causes) == {"facts"}
    assert causes["facts"][0] == "files of 4 of 4 ranks on 2 hosts, 20 operations"
    assert "ranks 0-3 wrote because of: SIGUSR1" in causes["facts"]


def test_wait_in_no_collective(job, look):
    """Nor for a message: the reader is sent to XCCL_DUMP_DIR, and to the stacks."""
    job.write()
    said = "no rank waits in a collective of these files, or for a message"
    assert look()["facts"][-1].startswith(said)
    assert "start the job with XCCL_DUMP_DIR" in look()["facts"][-1]
    for rank in range(SIZE):
        job.head[rank]["all_calls"] = True  # XCCL_DUMP_DIR was set
    job.write()
    assert look()["facts"][-1].startswith("no rank waits in a call that these files tell of")
    job.add(0, state="started")
    job.write()
    assert not [fact for fact in look()["facts"] if fact.startswith(said)]


def test_wait_inside_mpi(job, look):
    """The files have the calls on host memory: who is in none of them is said, not XCCL_DUMP_DIR."""
    for rank in (0, 2, 3):
        job.head[rank]["calls"] = [call("MPI_Barrier")]
    job.write()
    causes = look()
    assert only(causes, "hang-apart") == (
        f"ranks 0, 2 and 3 wait inside MPI in MPI_Barrier since {clock(NOW - 30)} (30 s); rank 1 is in no "
        "call of MPI that xccl followed (it may be in order: the call may be of some ranks only)"
    )
    facts = causes["facts"]
    assert facts[-2] == (
        "in calls of MPI: MPI_Barrier (ranks 0, 2 and 3); in none that xccl followed: rank 1"
    )
    assert "in another call than most ranks, or in none" in facts[-1]


@pytest.mark.parametrize("where", ["all of them", "not for long", "several requests"])
def test_no_wait_apart(job, look, where):
    """Ranks of a healthy job wait for each other, too; and requests may be of any call."""
    for rank in range(SIZE if where == "all of them" else 2):
        values = {"since": NOW - 9} if where == "not for long" else {}
        values |= {"requests": 2, "unknown": 2} if where == "several requests" else {}
        job.head[rank]["calls"] = [call("MPI_Barrier" if not values else "MPI_Waitall", **values)]
    job.write()
    assert set(look()) == {"facts"}


def test_ranks_in_calls_apart(look, tmp_path):
    """Both sides wait in a collective on host memory, each in another one; many are told in short."""
    job = Run(tmp_path, 8)
    for rank in range(8):
        job.head[rank]["calls"] = [call("MPI_Barrier" if rank < 2 else "MPI_Bcast")]
    job.write()
    first, second = look()["hang-apart"]
    assert first.startswith("ranks 0 and 1 wait inside MPI in MPI_Barrier since ")
    assert "rank 2 is in MPI_Bcast since" in first
    assert "; 3 more are not in it (it may be" in first
    assert second.startswith("ranks 2-7 wait inside MPI in MPI_Bcast since ")


def test_failure_needs_no_advice_on_waits(job, look):
    """Ranks that wrote because of an error wait for nobody any more."""
    for rank in range(SIZE):
        job.head[rank]["reason"] = "error"
        job.add(rank, state="failed")
    job.write()
    causes = look()
    assert "hang-failed" in causes
    assert not [fact for fact in causes["facts"] if fact.startswith("no rank waits")]


def test_operations_that_are_not_counted(job, look):
    """MPI carries them for each rank as it is, and ranks with host memory have none: they differ from nothing."""
    other = {
        "call": "MPI_Alltoallw",
        "op": None,
        "path": "staged",
        "sequence": None,
        "started": NOW - 9,
    }
    job.add(2, **other)
    job.all()
    job.write()
    assert set(look()) == {"facts"}
    job.add(1, **{**other, "state": "failed", "ended": NOW - 5})
    job.write()
    assert only(look(), "hang-failed").startswith(
        "rank 1 failed in MPI_Alltoallw of communicator world at "
    )
    job.operations[1][-1]["sequence"] = "7"
    job.write()
    assert "1 of its operations are not as xccl writes them" in only(look(), "hang-unreadable")


def test_a_rank_that_waits_in_one_that_is_not_counted(job, look):
    other = {"call": "MPI_Alltoallw", "op": None, "path": "staged", "sequence": None}
    job.all([0, 1, 2], state="waiting", started=NOW - 40)
    job.add(3, state="waiting", started=NOW - 50, **other)
    job.write()
    cause = only(look(), "hang-waiting")
    assert "it waits in MPI_Alltoallw of communicator world since" in cause


def test_other_call(job, look):
    job.all([0, 1, 3])
    job.add(2, call="MPI_Reduce", root=0)
    job.write()
    assert only(look(), "hang-call") == (
        "rank 2 called MPI_Reduce (count 10, root 0) as collective 6 of communicator world, "
        "ranks 0, 1 and 3 called MPI_Allreduce (count 10)"
    )


def test_ranks_out_of_step(job, look):
    """After the first difference all differ; one is told, and that there are more."""
    job.all([0, 1, 3], **BCAST)
    job.all()
    job.all(call="MPI_Barrier", count=0, bytes=0, type=None, op=None)
    for rank, count in ((0, 10), (1, 11), (2, 12)):
        job.add(rank, sequence=20, count=count)  # of different calls of the program
    job.write()
    cause = only(look(), "hang-call")
    assert cause.startswith("rank 2 called MPI_Allreduce (count 10) as collective 6 of")
    assert cause.endswith("(later ones there that differ: 1)")


def test_difference_at_the_end_of_the_ring(job, look):
    for rank in range(SIZE):
        job.operations[rank] = []
    job.all([0, 1, 2], sequence=700)
    job.add(3, sequence=700, call="MPI_Scan")
    job.write()
    assert only(look(), "hang-call").endswith("it may have begun before what the files still hold")


@pytest.mark.parametrize(
    ("name", "values", "cause"),
    [
        (
            "hang-root",
            {**BCAST, "root": 1},
            "rank 2 passed root 1 in MPI_Bcast, collective 6 of communicator world, "
            "ranks 0, 1 and 3 passed root 0",
        ),
        (
            "hang-count",
            {**BCAST, "count": 11, "bytes": 44},
            "rank 2 passed count 11 of MPI_FLOAT (44 bytes) in MPI_Bcast, collective 6 of "
            "communicator world, ranks 0, 1 and 3 passed count 10 of MPI_FLOAT (40 bytes)",
        ),
        (
            "hang-memory",
            {**BCAST, "memory": "host", "path": "host"},
            "rank 2 passed host memory in MPI_Bcast, collective 6 of communicator world, "
            "ranks 0, 1 and 3 passed cuda memory",
        ),
        (
            "hang-path",
            {**BCAST, "path": "mpi"},
            "rank 2 took path mpi in MPI_Bcast, collective 6 of communicator world, "
            "ranks 0, 1 and 3 took path ccl",
        ),
    ],
)
def test_other_argument(job, look, name, values, cause):
    job.all([0, 1, 3], **BCAST)
    job.add(2, **values)
    job.write()
    assert only(look(), name) == cause


def test_no_path_yet(job, look):
    """A rank that still agrees with the others on a path took no other one than they."""
    job.all([0, 1, 3], **BCAST)
    job.add(2, **{**BCAST, "path": "agreement"})
    job.write()
    assert "hang-path" not in look()


@pytest.mark.parametrize(
    ("name", "values", "said"),
    [
        ("hang-op", {"op": "MPI_MAX"}, "rank 2 passed MPI_MAX in MPI_Allreduce"),
        ("hang-type", {"type": "MPI_INT"}, "rank 2 passed MPI_INT in MPI_Allreduce"),
        # Equal bytes do not make a reduction equal.
        ("hang-count", {"type": "MPI_DOUBLE", "count": 5}, "count 5 of MPI_DOUBLE (40 bytes)"),
    ],
)
def test_other_argument_of_a_reduction(job, look, name, values, said):
    job.all([0, 1, 3])
    job.add(2, **values)
    job.write()
    assert said in only(look(), name)


@pytest.mark.parametrize(
    ("common", "other"),
    [
        ({**BCAST}, {"count": 40, "type": "MPI_BYTE"}),
        ({**BCAST}, {"type": None}),
        ({**BCAST}, {"call": "MPI_Bcast_c"}),
        ({"call": "MPI_Allgatherv", "op": None}, {"count": 0, "bytes": 0}),
        ({"call": "MPI_Ialltoallv", "op": None}, {"count": 3, "bytes": 12}),
        ({"call": "MPI_Alltoallw", "op": None, "type": None}, {"bytes": 1, "count": 1}),
        ({"call": "MPI_Ineighbor_allgather", "op": None}, {"bytes": 1, "count": 1}),
        ({**BCAST, "root": 0}, {"root": -4}),  # MPI_ROOT of an intercommunicator
        ({**BCAST, "count": 0, "bytes": 0}, {"memory": "host"}),  # no buffer
        ({**BCAST, "path": "mpi"}, {"path": "staged"}),
    ],
)
def test_what_may_differ(job, look, common, other):
    job.all([0, 1, 3], **common)
    job.add(2, **{**common, **other})
    job.write()
    assert set(look()) == {"facts"}


def test_many_ways(look, tmp_path):
    run = Run(tmp_path, size=12)
    for rank in range(12):
        run.add(rank, **{**BCAST, "root": min(rank, 6)})
    run.write()
    cause = only(look(), "hang-root")
    assert "3 more ranks otherwise, ranks 6-11 passed root 6" in cause


def test_rank_that_has_not_entered(job, look):
    """The example of the manual: the late rank waits elsewhere."""
    job.all([0, 1, 2], **BCAST, state="waiting", started=NOW - 73)
    job.add(3, comm="0.2", comm_size=2, call="MPI_Alltoall", state="waiting", started=NOW - 74)
    job.add(2, comm="0.2", comm_size=2, call="MPI_Alltoall", state="done", started=NOW - 75)
    job.operations[2].sort(key=lambda op: op["started"])
    job.write()
    cause = look()["hang-waiting"][0]
    assert cause == (
        "ranks 0-2 wait in collective 6 (MPI_Bcast, root 0) of communicator world since "
        f"{clock(NOW - 73)} (73 s); rank 3 has not entered it: its last operation there is 5 "
        "(done), and it waits in collective 1 (MPI_Alltoall) of communicator 0.2 since "
        f"{clock(NOW - 74)} (74 s)"
    )


def test_late_ranks_in_no_collective(job, look):
    job.all([0, 3], state="waiting", started=NOW - 20)
    job.add(2, comm="1.1", comm_size=2, started=NOW - 30, ended=NOW - 29)
    job.write()
    cause = only(look(), "hang-waiting")
    assert (
        "rank 1 has not entered it: its last operation there is 5 (done), and it is in no" in cause
    )
    assert "its last anywhere is collective 1 (MPI_Allreduce) of communicator 1.1, done" in cause
    assert f"done since {clock(NOW - 29)} (29 s)" in cause


def test_late_ranks_are_told_together(look, tmp_path):
    run = Run(tmp_path, size=64)
    run.add(0, state="waiting")
    run.write()
    cause = only(look(), "hang-waiting")
    assert "; ranks 1-63 have not entered it: their last operation there is 5 (done), and" in cause


def test_the_cause_of_a_chain_comes_first(job, look):
    """0 and 1 wait for 2, which waits for 3, which computes."""
    job.all([0, 1], state="waiting", started=NOW - 60)
    job.all([2, 3], comm="2.1", comm_size=2)
    job.add(2, comm="2.1", comm_size=2, state="waiting", started=NOW - 50)
    job.write()
    first, second = look()["hang-waiting"]
    assert "communicator 2.1 since" in first and "rank 3 has not entered" in first
    assert second.startswith("ranks 0 and 1 wait")


def test_nonblocking_is_no_wait(job, look):
    job.all([0, 1], call="MPI_Iallreduce", state="started")
    job.write()
    assert set(look()) == {"facts"}
    job.operations[0][-1]["state"] = "waiting"
    job.write()
    assert only(look(), "hang-waiting").startswith("rank 0 waits")
    for rank in (0, 1):
        job.operations[rank][-1].update(call="MPI_Allreduce", state="started")
    job.write()
    assert only(look(), "hang-waiting").startswith("ranks 0 and 1 wait")


@pytest.mark.parametrize("late_time", [NOW, NOW - 100])
def test_waits_that_may_be_in_order(job, look, late_time):
    """Short ones, and those that began after the late rank wrote."""
    waited = 0.2 if late_time == NOW else 50
    job.all([0, 1, 2], state="waiting", started=NOW - waited)
    job.head[3] = {"time": late_time}
    job.write()
    cause = only(look(), "hang-unsure")
    why = "the longest wait was 0.2 s" if late_time == NOW else "a file was written before"
    assert why in cause and "clocks" not in cause


def test_wait_for_a_host_with_another_clock(job, look):
    """Its file seems to be older than the wait: that may be so, or its clock is behind."""
    job.all([0, 1], state="waiting", started=NOW - 50)
    for rank in (2, 3):
        job.head[rank] = {"time": NOW - 100}
    job.write()
    assert "unless the clocks of their hosts differ" in only(look(), "hang-unsure")


def test_cycle(job, look):
    job.all([0], state="waiting", comm="0.1", comm_size=2)
    job.all([1], state="waiting", comm="0.2", comm_size=2)
    for rank, comm in ((0, "0.2"), (1, "0.1")):
        job.operations[rank].insert(0, {**job.operations[rank][-1], "comm": comm, "state": "done"})
    job.operations[0][-1]["sequence"] = job.operations[1][-1]["sequence"] = 2
    job.write()
    causes = look()
    assert causes["hang-cycle"] == [
        "ranks wait for each other: rank 0 waits in collective 2 (MPI_Allreduce) of communicator "
        "0.1 for rank 1, which waits in collective 2 (MPI_Allreduce) of communicator 0.2 for rank 0"
    ]
    assert next(iter(causes)) == "hang-cycle"


def test_cycle_of_three(job, look):
    for rank in range(3):
        mine, other = f"0.{rank}", f"0.{(rank + 1) % 3}"
        job.add(rank, comm=mine, comm_size=2)
        job.add(rank, comm=other, comm_size=2)
        job.add(rank, comm=mine, comm_size=2, state="waiting")
    job.write()
    (cause,) = look()["hang-cycle"]
    assert cause.count("waits in") == 3
    assert cause.count("rank 1") == 1


def test_wait_for_a_message(job, look):
    job.head[0]["calls"] = [call("MPI_Recv", message(2, 7))]
    job.head[2]["calls"] = [call("MPI_Barrier", since=NOW - 20)]
    job.write()
    causes = look()
    assert only(causes, "hang-message") == (
        f"rank 0 waits in MPI_Recv for a message from rank 2, tag 7, since {clock(NOW - 30)} (30 s); "
        f"rank 2 is in MPI_Barrier since {clock(NOW - 20)} (20 s)"
    )
    assert causes["facts"][-1] == (
        "in calls of MPI: MPI_Barrier (rank 2), MPI_Recv (rank 0); "
        "in none that xccl followed: ranks 1 and 3"
    )


def test_short_waits_for_messages(job, look):
    """Ranks of a healthy job wait for messages, too."""
    for rank in range(SIZE):
        job.head[rank]["calls"] = [
            call("MPI_Recv", message((rank + 1) % SIZE, 1), since=NOW - 0.1)
        ]
    job.write()
    causes = look()
    assert set(causes) == {"facts"}
    assert causes["facts"][-1].startswith("no rank has waited for long: have all ranks write")


def test_waits_of_many_for_one_message_each(job, look):
    """Those for the same rank and tag are one finding."""
    for rank in (1, 2, 3):
        job.head[rank]["calls"] = [call("MPI_Recv", message(0, 1))]
    job.write(skip=[0])
    causes = look()
    (cause,) = causes["hang-message"]
    assert cause.startswith("ranks 1-3 wait in MPI_Recv for a message from rank 0, tag 1, ")
    assert cause.endswith("; rank 0 left no file")


def test_any_of_several_is_enough(job, look):
    waits = [message(1, 1), message(2, 1)]
    job.head[0]["calls"] = [call("MPI_Waitany", *waits, requests=2)]
    job.head[1]["calls"] = [call("MPI_Recv", message(0, 2))]
    job.write()
    cause = only(look(), "hang-message")
    assert "rank 1 waits in MPI_Recv" in cause
    assert (
        "rank 0 is in MPI_Waitany of 2 requests (a message from rank 1, tag 1; a message from rank 2, "
        "tag 1)" in cause
    )


def test_cycle_of_messages_and_a_collective(job, look):
    job.add(0, state="waiting", started=NOW - 40)
    job.head[1]["calls"] = [call("MPI_Recv", message(0, 5))]
    job.all([2, 3], state="waiting", started=NOW - 40)
    job.write()
    causes = look()
    assert causes["hang-cycle"] == [
        "ranks wait for each other: rank 0 waits in collective 6 (MPI_Allreduce) of communicator "
        "world for rank 1, which waits in MPI_Recv (a message from rank 0, tag 5) for rank 0"
    ]
    assert "hang-message" not in causes
    (cause,) = causes["hang-waiting"]
    assert "and it is in MPI_Recv (a message from rank 0, tag 5) since" in cause


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (message(0, 8, sends=True), ": the tags differ"),
        (message(0, 7, sends=True, comm="self"), ": the communicators differ"),
        (message(0, 7, sends=True), ""),
        (message(0, -1, sends=True), ""),
        (message(3, 8, sends=True), ""),
    ],
)
def test_messages_that_do_not_match(job, look, other, said):
    job.head[0]["calls"] = [call("MPI_Recv", message(1, 7))]
    job.head[1]["calls"] = [call("MPI_Ssend", other)]
    job.write()
    causes = look()
    ours = [cause for cause in causes.get("hang-message", []) if cause.startswith("rank 0 waits")]
    assert bool(said) == any("differ" in cause for cause in ours), causes
    assert all(said in cause for cause in ours), causes


@pytest.mark.parametrize(
    "calls",
    [
        "none",
        [{"call": 3}],
        [{"call": "MPI_Recv", "messages": [{"sends": 1}]}],
        [{"call": "MPI_Recv", "since": "x", "messages": "y"}],
        [None] * 1000,
    ],
)
def test_calls_that_are_not_as_written(job, look, calls):
    job.head[0]["calls"] = calls
    job.write()
    assert set(look()) == {"facts"}


def test_all_have_entered(job, look):
    job.all(state="waiting", started=NOW - 30)
    job.write()
    cause = only(look(), "hang-stuck")
    assert cause.startswith("every rank has entered collective 6 (MPI_Allreduce) of")
    assert "ranks 0-3 wait in it on path ccl since" in cause
    for rank in range(SIZE):
        job.operations[rank][-1]["started"] = NOW - 2
    job.write()
    assert set(look()) == {"facts"}


def test_all_have_entered_and_differ(job, look):
    """That they differ is why it does not end."""
    job.all([0, 1, 2], **BCAST, state="waiting", started=NOW - 30)
    job.add(3, **{**BCAST, "root": 3}, state="waiting", started=NOW - 30)
    job.write()
    only(look(), "hang-root")


def test_error_after_a_warning(job, look):
    """A warning of the comparison stands behind an error of those that wait."""
    job.operations[1][2]["memory"] = "host"
    job.add(0, state="waiting")
    job.write()
    assert list(look()) == ["hang-waiting", "hang-memory", "facts"]


def test_longest_wait_comes_first(job, look):
    job.add(0, comm="0.1", comm_size=2, state="waiting", started=NOW - 20)
    job.add(1, comm="1.1", comm_size=2, state="waiting", started=NOW - 70)
    job.add(2, comm="2.1", comm_size=2, state="waiting", started=NOW - 40)
    job.write()
    assert [cause.split(" ")[1] for cause in look()["hang-waiting"]] == ["1", "2", "0"]


def test_failed_operation(job, look):
    job.all([0, 1, 3], state="waiting", started=NOW - 5)
    job.add(2, state="failed", started=NOW - 5, ended=NOW - 4)
    job.head[2] = {"reason": "error"}
    job.write()
    causes = look()
    assert only(causes, "hang-failed") == (
        f"rank 2 failed in collective 6 (MPI_Allreduce) of communicator world at {clock(NOW - 4)}"
    )
    assert "rank 2 wrote because of: error" in causes["facts"]
    job.head[2]["cause"] = "out of device memory"
    job.write()
    assert only(look(), "hang-failed").endswith(
        f" at {clock(NOW - 4)}; rank 2 said: out of device memory"
    )
    job.add(2, state="failed", started=NOW - 3, ended=NOW - 2)  # which has not that cause
    job.write()
    failed = look()["hang-failed"]
    assert [one.endswith("out of device memory") for one in failed] == [True, False], failed


def test_time_out(job, look):
    """Not the ranks that waited are at fault, but the one that did not come."""
    for rank in (0, 1, 3):
        job.add(rank, state="failed", started=NOW - 5, ended=NOW - 4)
        job.head[rank] = {"reason": "time-out"}
    job.write()
    causes = look()
    assert only(causes, "hang-timeout") == (
        "rank 2 has not entered it: its last operation there is 5 (done), and it is in no "
        f"collective since {clock(NOW - 74.5)} (74 s); ranks 0, 1 and 3 waited in collective 6 (MPI_Allreduce) of "
        f"communicator world for as long as XCCL_TIMEOUT says, until {clock(NOW - 4)}"
    )
    assert "hang-failed" not in causes


def test_time_out_without_a_file_of_the_late_rank(job, look):
    for rank in (0, 1, 3):
        job.add(rank, state="failed", started=NOW - 5, ended=NOW - 4)
        job.head[rank] = {"reason": "time-out"}
    job.write(skip=[2])
    (cause,) = look()["hang-timeout"]
    assert cause.startswith("rank 2 left no file; ranks 0, 1 and 3 waited")


def test_missing_files(job, look):
    job.write(skip=[1, 3])
    assert only(look(), "hang-missing").startswith("ranks 1 and 3 of 4 left no readable file in")


def test_wait_for_a_rank_without_a_file(job, look):
    job.all([0, 1, 2], state="waiting", started=NOW - 20)
    job.write(skip=[3])
    causes = look()
    assert causes["hang-waiting"][0].endswith("; rank 3 left no file")
    assert "hang-missing" in causes


def test_rank_whose_ring_dropped_the_communicator(job, look):
    job.all([0, 1, 2], state="waiting", started=NOW - 20)
    job.operations[3] = []
    job.add(3, comm="3.1", comm_size=1, sequence=900)
    job.write()
    cause = only(look(), "hang-waiting")
    assert "whether rank 3 entered it is unknown" in cause
    assert "has not entered" not in cause


def test_mixed_runs(job, look, tmp_path):
    job.write()
    old = Run(tmp_path, size=8)
    old.head[6] = {"time": NOW - 1000}
    old.path(6).write_text(json.dumps(old.dump(6)))
    cause = only(look(), "hang-mixed")
    assert "4 of a run of 4 ranks, 1 of a run of 8 ranks" in cause
    assert "the newest, of 4 ranks" in cause


def test_rank_twice(job, look, tmp_path):
    """The older file is of the last run, and says something else."""
    job.write()
    job.add(2, call="MPI_Scan", state="waiting")
    job.head[2] = {"time": NOW - 1000}
    (tmp_path / "xccl-ops.n9.1.json").write_text(json.dumps(job.dump(2)))
    assert "1 of a rank that has a newer one" in only(look(), "hang-mixed")


def test_truncated_file(job, look):
    job.add(0, call="MPI_Scan")
    job.add(1)
    job.write()
    whole = job.path(3).read_text()
    for length in (len(whole) // 2, len(whole) - 1, whole.index("MPI_Float".upper()) + 3):
        job.path(3).write_text(whole[:length])
        causes = look()
        (cause,) = causes["hang-unreadable"]
        expected = f"left out: it ends in the middle, after {length} bytes"
        assert cause == f"{job.path(3).name} was {expected}"
        assert "hang-call" in causes  # the others are read
        assert causes["hang-missing"][0].startswith("rank 3 of 4")


HEAD = '{"version": 1, "rank": 3, "size": 4, "host": "n", "pid": 1, "reason": "x", "time": 1, '
BROKEN = [
    (b"", "it is empty"),
    (b"{'a': 1}", "no JSON (line 1, column 2"),
    (b"\x00\xff\xfe" * 100, "no JSON"),
    (b"[]", "not written by xccl"),
    (b"null", "not written by xccl"),
    (b'{"version": 2}', "version 2, and this xccl-doctor reads 1"),
    (b'{"version": {}}', "version None"),
    (b'{"version": 1}', "missing or wrong"),
    (b'{"version": 1, "rank": 4, "size": 4, "operations": []}', "missing or wrong"),
    (b'{"version": 1, "rank": true, "size": 4, "operations": []}', "missing or wrong"),
    (b'{"version": 1, "rank": 0, "size": 1e9, "operations": []}', "missing or wrong"),
    (b"[" * 100000, "nested too deeply"),
    (b"1" * 3000000, "more than 20 digits"),
    (b'{"version": NaN}', "NaN is no number"),
    (b" " * (dumps.MAX_BYTES + 1), "larger than 4 MiB"),
    ((HEAD + '"operations": {}}').encode(), "missing or wrong"),
    ((HEAD + '"operations": [1, {}, null, {"comm": 3}]}').encode(), "4 of its operations"),
]


@pytest.mark.parametrize(("data", "why"), BROKEN, ids=range(len(BROKEN)))
def test_broken_file(job, look, data, why):
    job.write()
    job.path(3).write_bytes(data)
    (cause,) = look()["hang-unreadable"]
    assert why in cause


def test_files_that_are_none(job, look, tmp_path):
    """A pipe would wait for a writer; a folder, a dangling link and a device are no files."""
    job.write()
    os.mkfifo(tmp_path / "xccl-ops.a.1.json")
    (tmp_path / "xccl-ops.b.1.json").mkdir()
    (tmp_path / "xccl-ops.c.1.json").symlink_to("nowhere")
    (tmp_path / "xccl-ops.d.1.json").symlink_to("/dev/zero")
    (tmp_path / "xccl-ops.e.1.json.part").write_text("not taken")
    causes = look()
    for cause in (causes["hang-unreadable"][0], causes["hang-unreadable"][3]):
        assert cause.endswith("left out: it is no regular file")
    assert [cause.split(" ")[0][9] for cause in causes["hang-unreadable"]] == list("abcd")
    assert set(causes) == {"hang-unreadable", "facts"}


@pytest.mark.parametrize(
    "values",
    [
        {"started": 1e300, "ended": -5},
        {"started": "soon", "ended": []},
        {"count": -(10**19), "bytes": None, "root": None},
        {"call": "\x1b[2J" + "x" * 1000, "comm": "{0}\n{cause}"},
        {"state": "\ud800", "memory": {}, "op": 3, "type": "é"},
        {"sequence": 1 << 60},
        {"comm_size": 1 << 30},
        {"comm": "world", "comm_size": 2},
    ],
    ids=range(8),
)
def test_hostile_values(job, capsys, tmp_path, values):
    """No traceback, nothing that a terminal obeys, and nothing that takes long."""
    job.all([0, 2], **{"state": "waiting", **values})
    job.write()
    start = now()
    assert main(["--hang", str(tmp_path)], NOWHERE) in (0, 1, 3)
    printed = capsys.readouterr().out
    assert now() - start < 5
    assert printed.isascii() and "\x1b" not in printed
    assert max(map(len, printed.splitlines())) < 2000


def test_huge_size(job, look):
    for rank in range(SIZE):
        job.head[rank] = {"size": 1 << 31}
    job.write()
    cause = only(look(), "hang-missing")
    assert cause.startswith("ranks 4-2147483647 of 2147483648 left no readable file")


@pytest.mark.parametrize("more", [0, 1, 2])
def test_unreadable_files_are_bounded(more):
    files = [(f"file{number}", "no reason") for number in range(hang.MAX_FILES + more)]
    found = [str(one) for one in hang.check_files([], files, 0)]
    assert len(found) == hang.MAX_FILES + (more > 0)
    assert [f"{more} more" in text for text in found[hang.MAX_FILES :]] == [True] * (more > 0)


def test_findings_are_bounded(look, tmp_path):
    run = Run(tmp_path, size=2)
    for number in range(200):
        run.add(0, comm=f"0.{number}", **BCAST)
        run.add(1, comm=f"0.{number}", **{**BCAST, "root": 1})
        run.add(0, comm=f"1.{number}", state="waiting")
    run.write()
    causes = look()
    found = sum(len(texts) for name, texts in causes.items() if name != "facts")
    assert found == hang.MAX_FINDINGS
    assert causes["facts"][-1].endswith("more findings are left out")


def test_many_operations_are_bounded(job, look, monkeypatch):
    monkeypatch.setattr(dumps, "MAX_OPERATIONS", 16 * SIZE)
    for _ in range(30):
        job.all()
    job.write()
    assert look()["facts"][0].endswith("64 operations")


def test_wrong_folders(job, tmp_path, capsys):
    words_of = {
        "scancel --signal=USR1": ["--hang", str(tmp_path)],
        "No such file": ["--hang", str(tmp_path / "none")],
        "--hang needs a value": ["--hang"],
        "without --run and --log": ["--hang", str(tmp_path), "--log", "x"],
    }
    for said, options in words_of.items():
        assert main(options, NOWHERE) == 2
        printed = capsys.readouterr()
        assert said in printed.err and printed.out == ""


def test_text(job, tmp_path, capsys):
    """Errors first; nothing of this machine."""
    job.add(0, **BCAST)
    job.all([1, 2, 3])
    job.write(skip=[3])
    assert main(["--hang", str(tmp_path)], NOWHERE) == 1
    printed = capsys.readouterr().out
    assert printed.startswith("  files of 3 of 4 ranks")
    assert printed.index("ERROR [hang-call] rank 0 called") < printed.index(
        "WARNING [hang-missing]"
    )
    assert "site:" not in printed


def test_ranks_in_words():
    assert words.rank_text([2]) == "rank 2"
    assert words.rank_text([3, 1, 0]) == "ranks 0, 1 and 3"
    assert words.rank_text([0, 1, 2, 7]) == "ranks 0-2 and 7"
    assert words.rank_text(range(0, 100, 2)).endswith("12, 14 and 42 more")
    assert words.gaps([1, 2, 5], 8) == [(0, 0), (3, 4), (6, 7)]
    assert words.gaps(range(4), 4) == []


def test_every_finding_is_made_here():
    text = Path(__file__).read_text()
    for name in registry.TABLE:
        if name.startswith("hang-"):
            assert f'"{name}"' in text, name
