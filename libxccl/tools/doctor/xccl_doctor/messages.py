# SPDX-License-Identifier: BSD-3-Clause
"""Who waits for a message of whom: the calls of MPI that the ranks are in."""

from types import SimpleNamespace

from .registry import finding
from .words import place, rank_text, since, verb

SHORT = 1.0  # seconds; ranks of a healthy job wait for messages, too
LONG = 10.0
MAX_WAITS = 64
MAX_FINDINGS = 4
MAX_OTHERS = 3
ANY = ("MPI_Waitany", "MPI_Waitsome")
IN_NONE = "is in no call of MPI that xccl followed"


def peer_text(message):
    if message.rank is not None:
        return f"rank {message.rank}"
    if message.peer < 0:
        return "any rank"
    return f"rank {message.peer} of its communicator"


def message_text(message):
    """ "a message from rank 1, tag 7"."""
    tag = "any tag" if message.tag < 0 else f"tag {message.tag}"
    return f"a message {'to' if message.sends else 'from'} {peer_text(message)}, {tag}"


def call_text(call):
    """ "MPI_Waitall of 3 requests (a message from rank 1, tag 7; and 1 more)"."""
    text = call.call
    if call.requests is not None and call.requests != 1:
        text += f" of {call.requests} requests"
    parts = [message_text(message) for message in call.messages]
    parts += [f"and {call.unknown} more"] if parts and call.unknown else []
    return f"{text} ({'; '.join(parts)})" if parts else text


def waited(job, rank, call):
    """Seconds, or None if that is not known."""
    time = job.dumps[rank].time
    return None if time is None or call.since is None else time - call.since


def long_calls(job, rank):
    """The calls that a thread of the rank has been in for long."""
    for call in job.dumps[rank].calls:
        seconds = waited(job, rank, call)
        if seconds is None or seconds >= SHORT:
            yield call


def doing(job, rank):
    """(what a rank does that is in no collective of the files, since when); (None, "") if unknown."""
    dump = job.dumps[rank]
    found = sorted(dump.calls, key=lambda call: call.since or 0)
    if not found:
        return None, ""
    return f"is in {call_text(found[0])}", since(found[0].since, dump.time)


def collect(job):
    """Every message that a rank cannot go on without: waiters {rank: call}, late [the other rank]."""
    found = []
    for rank in job.dumps:
        for call in long_calls(job, rank):
            known = [message for message in call.messages if message.rank is not None]
            if call.call in ANY and (len(known) > 1 or call.unknown):
                continue  # one of several is enough
            for message in known:
                if message.rank != rank:
                    found.append(
                        SimpleNamespace(
                            waiters={rank: call},
                            late=[message.rank],
                            message=message,
                            seconds=waited(job, rank, call) or 0,
                        )
                    )
    found.sort(key=lambda wait: -wait.seconds)
    return found[:MAX_WAITS]


def other_side(job, rank):
    """What the rank does instead: "rank 1 waits in collective 3 (MPI_Bcast) ..."."""
    if rank not in job.dumps:
        return f"rank {rank} left no file"
    blocked = job.blocked(rank)
    if blocked:
        op = blocked[-1]
        return f"rank {rank} waits in {place(op)} {since(op.started, job.dumps[rank].time)}"
    what, when = doing(job, rank)
    return f"rank {rank} {what or IN_NONE} {when}".rstrip()


def mismatch(job, rank, message):
    """Why the call that the other side is in does not match this message; "" if that is not known."""
    dump = job.dumps.get(message.rank)
    others = [other for call in dump.calls for other in call.messages] if dump else []
    for other in others:
        if other.sends == message.sends or other.rank not in (rank, None):
            continue
        if "other" not in (other.comm, message.comm) and other.comm != message.comm:
            return ": the communicators differ"
        if other.rank == rank and other.tag != message.tag and min(other.tag, message.tag) >= 0:
            return ": the tags differ"
    return ""


def check_messages(job, found, collectives, told):
    """Root causes first: those whose other side waits nowhere itself. told: the waiters of a cycle."""
    busy = {rank for wait in [*found, *collectives] for rank in wait.waiters}
    groups = {}
    for wait in found:
        if wait.waiters in told and not mismatch(job, *wait.waiters, wait.message):
            continue
        ((rank, call),) = wait.waiters.items()
        groups.setdefault((call.call, wait.message), {})[rank] = call
    ordered = sorted(groups.items(), key=lambda row: row[0][1].rank in busy)
    for (name, message), waiters in ordered[:MAX_FINDINGS]:
        ranks = sorted(waiters)
        first = min(ranks, key=lambda rank: waiters[rank].since or 0)
        yield finding(
            "hang-message",
            waiting=f"{rank_text(ranks)} {verb(ranks, 'waits', 'wait')}",
            call=name,
            message=message_text(message),
            since=since(waiters[first].since, job.dumps[first].time),
            other=other_side(job, message.rank) + mismatch(job, first, message),
        )


def waits_in_mpi(job):
    """{call: {rank: call}} of those that wait for long inside MPI for nobody that is known."""
    found = {}
    for rank, dump in job.dumps.items():
        for call in dump.calls:
            seconds = waited(job, rank, call)
            if not call.messages and call.requests is None and (seconds or 0) >= LONG:
                found.setdefault(call.call, {})[rank] = call
    return found


def check_apart(job):
    """Collectives on host memory are MPI's: where ranks wait in one, and others are elsewhere."""
    for name, waiters in sorted(waits_in_mpi(job).items())[:MAX_FINDINGS]:
        ranks = sorted(waiters)
        others = [rank for rank in range(job.size) if rank not in waiters]
        if not others:
            continue
        first = min(ranks, key=lambda rank: waiters[rank].since)
        said = [other_side(job, rank) for rank in others[:MAX_OTHERS]]
        if len(others) > MAX_OTHERS:
            said.append(f"{len(others) - MAX_OTHERS} more are not in it")
        yield finding(
            "hang-apart",
            waiting=f"{rank_text(ranks)} {verb(ranks, 'waits', 'wait')}",
            call=name,
            since=since(waiters[first].since, job.dumps[first].time),
            others="; ".join(said),
        )


def statement(job):
    """ "in calls of MPI: MPI_Recv (ranks 0-2), MPI_Barrier (rank 3); in none ...", or None."""
    ranks = {}
    for rank, dump in job.dumps.items():
        for call in dump.calls:
            ranks.setdefault(call.call, set()).add(rank)
    idle = sorted(rank for rank, dump in job.dumps.items() if not dump.calls)
    rows = sorted(ranks.items(), key=lambda row: (-len(row[1]), row[0]))
    said = [f"{name} ({rank_text(sorted(row))})" for name, row in rows[:MAX_FINDINGS]]
    if len(rows) > MAX_FINDINGS:
        said.append(f"{len(rows) - MAX_FINDINGS} other calls")
    rest = f"; in none that xccl followed: {rank_text(idle)}" if idle else ""
    return f"in calls of MPI: {', '.join(said)}{rest}" if said else None
