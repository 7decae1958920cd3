# SPDX-License-Identifier: BSD-3-Clause
"""Who waits for whom: collectives that some ranks wait in and others have not entered."""

from types import SimpleNamespace

from . import messages
from .job import Key
from .registry import finding
from .words import call_text, clock, count, gaps, place, rank_text, since, span_text, verb

SHORT = 1.0  # seconds; ranks of a healthy job wait for each other, too
LONG = 10.0  # seconds that a collective which all have entered may take
MAX_WAITS = 64
MAX_SITUATIONS = 4
STALE = "a file was written before the others waited"
APART = "unless the clocks of their hosts differ"


def longest(job, waiters):
    """Seconds of the rank that has waited longest; None if no time is known."""
    times = [
        job.dumps[rank].time - op.started
        for rank, op in waiters.items()
        if op.started is not None and job.dumps[rank].time is not None
    ]
    return max(times) if times else None


def first_waiter(job, waiters):
    """(start of the first to wait, time of its file)."""
    known = [(op.started, rank) for rank, op in waiters.items() if op.started is not None]
    started, rank = min(known) if known else (None, min(waiters))
    return started, job.dumps[rank].time


def add_late(job, wait):
    """Which ranks have not entered it: those known, those whose files no longer tell, and others."""
    members, wait.unknown = job.members(wait.key)
    last = job.last[wait.key]
    late = sorted(rank for rank in members if last.get(rank, 0) < wait.sequence)
    wait.lost = [rank for rank in late if rank not in last and rank in job.cut]
    wait.late = [rank for rank in late if rank in last or rank not in job.cut]
    wait.op = wait.waiters[min(wait.waiters)]


def collect(job):
    """Every collective that a rank waits in: waiters, late ranks; longest wait first."""
    table = {}
    for rank in job.dumps:
        for op in job.blocked(rank):
            table.setdefault((op.comm, op.comm_size, op.sequence), {})[rank] = op
    waits = []
    for (comm, size, sequence), waiters in table.items():
        if size > 1 and sequence is not None:  # else it is not known who has entered it
            wait = SimpleNamespace(key=Key(comm, size), sequence=sequence, waiters=waiters)
            waits.append(wait)
    waits.sort(key=lambda wait: -(longest(job, wait.waiters) or 0))
    for wait in waits[:MAX_WAITS]:
        add_late(job, wait)
    return waits[:MAX_WAITS]


def last_there(job, key, rank):
    """ "last operation there is 6 (done)"."""
    sequence = job.last[key].get(rank)
    if sequence is None:
        return "first operation there is still to come"
    op = job.table[key][sequence][rank]
    return f"last operation there is {sequence} ({op.state})"


def elsewhere(job, key, rank):
    """(what a late rank does instead, since when in words)."""
    blocked = job.blocked(rank)
    dump = job.dumps[rank]
    if blocked:
        op = blocked[-1]
        return f"waits in {place(op)}", since(op.started, dump.time)
    what, when = messages.doing(job, rank)
    if what:
        return what, when
    if not dump.operations:
        return "is in no collective", ""
    op = dump.operations[-1]
    same = (op.comm, op.comm_size) == key and op.sequence == job.last[key].get(rank)
    what = "is in no collective"
    if not same:
        what += f"; its last anywhere is {place(op)}, {op.state}"
    return what, since(op.ended or op.started, dump.time) if op.ended or op.started else ""


def late_text(job, wait):
    """ "rank 3 has not entered it: its last operation there is 6 (done), and it waits in ..."."""
    situations = {}
    for rank in wait.late:
        what, when = elsewhere(job, wait.key, rank)
        situation = (last_there(job, wait.key, rank), what)
        situations.setdefault(situation, ([], when))[0].append(rank)
    parts = []
    rows = sorted(situations.items(), key=lambda row: row[1][0])
    for (there, what), (ranks, when) in rows[:MAX_SITUATIONS]:
        has, its, it = ("has", "its", "it") if len(ranks) == 1 else ("have", "their", "each")
        doing = f"{its} {there}, and {it} {what} {when}".rstrip()
        parts.append(f"{rank_text(ranks)} {has} not entered it: {doing}")
    left = sum(len(ranks) for _, (ranks, _) in rows[MAX_SITUATIONS:])
    parts += [f"{left} more ranks have not entered it either"] if left else []
    if wait.lost:
        its = verb(wait.lost, "its file holds", "their files hold")
        whether = f"whether {rank_text(wait.lost)} entered it is unknown"
        parts.append(f"{whether}: {its} only later operations of other communicators")
    missing = gaps(job.dumps, job.size) if wait.key.size == job.size else []
    if wait.unknown and count(missing) == wait.unknown:
        parts.append(f"{span_text(missing)} left no file")
    elif wait.unknown:
        parts.append(f"no file tells of {wait.unknown} of its {wait.key.size} ranks")
    return "; ".join(parts)


def doubt(job, wait):
    """Why ranks that wait may be in order after all; None if they are not."""
    waited = longest(job, wait.waiters)
    starts = [op.started for op in wait.waiters.values() if op.started is not None]
    times = [job.dumps[rank].time for rank in wait.late]
    if starts and times and all(time is not None and time < min(starts) for time in times):
        here = {job.dumps[rank].host for rank in wait.waiters}
        there = {job.dumps[rank].host for rank in wait.late}
        return STALE if here & there else f"{STALE}, {APART}"
    if waited is not None and waited < SHORT:
        return f"the longest wait was {max(waited, 0):.1f} s"
    return None


def details(job, wait):
    ranks = sorted(wait.waiters)
    return {
        "waiting": f"{rank_text(ranks)} {verb(ranks, 'waits', 'wait')}",
        "sequence": wait.sequence,
        "call": call_text(wait.op),
        "comm": wait.key.comm,
        "since": since(*first_waiter(job, wait.waiters)),
    }


def root_causes_first(waits):
    """Those whose late ranks wait nowhere themselves."""
    waiting = {rank for wait in waits for rank in wait.waiters}
    return sorted(waits, key=lambda wait: any(rank in waiting for rank in wait.late))


def check_waiting(job, waits):
    for wait in root_causes_first(waits):
        if not (wait.late or wait.lost or wait.unknown):
            continue
        told = dict(details(job, wait), late=late_text(job, wait))
        why = doubt(job, wait)
        if why:
            yield finding("hang-unsure", why=why, **told)
        else:
            yield finding("hang-waiting", **told)


def check_stuck(job, waits, differing):
    """All have entered, all ask for the same, and still it does not end."""
    for wait in waits:
        waited = longest(job, wait.waiters)
        if wait.late or wait.lost or wait.unknown or (waited is not None and waited < LONG):
            continue
        if wait.key in differing or len(job.table[wait.key][wait.sequence]) < wait.key.size:
            continue
        paths = sorted({op.path for op in wait.waiters.values() if op.path})
        path = ", ".join(paths[:4]) or "unknown"
        yield finding("hang-stuck", path=path, **details(job, wait))


def shortest_cycle(waits, start):
    """[(wait, rank late in it that waits in the next)] back to start, or None."""
    queue, came = [start], {id(start): None}
    while queue:
        wait = queue.pop(0)
        late = set(wait.late)
        for other in waits:
            shared = late & set(other.waiters)
            if not shared:
                continue
            if other is start:
                steps = [(wait, min(shared))]
                while came[id(wait)]:
                    wait, rank = came[id(wait)]
                    steps.insert(0, (wait, rank))
                return steps
            if id(other) not in came:
                came[id(other)] = (wait, min(shared))
                queue.append(other)
    return None


def place_of(waiter):
    return messages.call_text(waiter) if hasattr(waiter, "messages") else place(waiter)


def cycle_text(steps):
    """ "rank 0 waits in ... for rank 1, which waits in ... for rank 0"."""
    rank = steps[-1][1]
    text = f"rank {rank}"
    for number, (wait, late) in enumerate(steps):
        text += ", which waits in " if number else " waits in "
        text += f"{place_of(wait.waiters[rank])} for rank {late}"
        rank = late
    return text


def check_cycles(waits, told):
    """told: to which the waiters of each cycle are added."""
    left = list(waits)
    while left:
        steps = shortest_cycle(left, left[0])
        if steps:
            told += [wait.waiters for wait, _ in steps]
            yield finding("hang-cycle", chain=cycle_text(steps))
        used = [wait for wait, _ in steps or []] or left[:1]
        left = [wait for wait in left if all(wait is not one for one in used)]


def cause_text(job, row):
    """What the first rank of a collective that failed said, if that was its first failure."""
    for rank in sorted(row):
        dump = job.dumps[rank]
        if dump.cause and row[rank] is next(op for op in dump.operations if op.state == "failed"):
            return f"; {rank_text([rank])} said: {dump.cause}"
    return ""


def check_failed(job):
    """The first failures; one of each collective."""
    failed = {}
    for rank, dump in job.dumps.items():
        for op in dump.operations:
            if op.state == "failed":
                key = (op.comm, op.comm_size, op.sequence)
                failed.setdefault(key, {})[rank] = op

    def at(row):
        return min(op.ended or op.started or 0 for op in row.values())

    ordered = sorted(failed.items(), key=lambda item: at(item[1]))
    for (comm, size, sequence), row in ordered[:MAX_SITUATIONS]:
        ranks = sorted(row)
        told = {
            "ranks": rank_text(ranks),
            "place": place(row[ranks[0]]),
            "time": clock(at(row)) if at(row) else "an unknown time",
        }
        cause = cause_text(job, row)
        if sequence is None:
            yield finding("hang-failed", cause=cause, **told)
            continue
        wait = SimpleNamespace(key=Key(comm, size), sequence=sequence, waiters=row)
        add_late(job, wait)
        timed_out = all(job.dumps[rank].reason == "time-out" for rank in ranks)
        if timed_out and (wait.late or wait.lost or wait.unknown):
            yield finding("hang-timeout", late=late_text(job, wait), **told)
        else:
            yield finding("hang-failed", cause=cause, **told)
