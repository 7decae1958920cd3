# SPDX-License-Identifier: BSD-3-Clause
"""xccl-doctor --hang: what the ranks of a job did that hung or failed, from the files they wrote."""

import re
from collections import namedtuple

from . import dumps, messages, waits
from .job import Job, newest
from .registry import ERROR, TABLE, finding
from .words import amount_text, arguments_text, clock, gaps, rank_text, span_text

MAX_GROUPS = 4
MAX_FILES = 8
MAX_FINDINGS = 40
ELSEWHERE = (
    "no rank waits in a collective of these files, or for a message; start the job with "
    "XCCL_DUMP_DIR, so that the files have its calls on host memory, or look at the stacks of the "
    "ranks (gdb -p, py-spy)"
)
INSIDE_MPI = (
    "no rank waits in a collective of these files, or for a message; the calls above wait inside "
    "MPI: look first at a rank that is in another call than most ranks, or in none, then at the "
    "stacks of the ranks (gdb -p, py-spy)"
)
RECENT = (
    "no rank has waited for long: have all ranks write their files again some seconds later, and "
    "read those"
)
STACKS = (
    "no rank waits in a call that these files tell of; look at the stacks of the ranks (gdb -p, "
    "py-spy): calls that make communicators, as MPI_Comm_split, are in no file"
)
MAX_REASONS = 4

# Counts of these may differ between ranks.
UNEVEN = re.compile(r"^MPI_I?(\w*v|alltoallw|neighbor_\w+|reduce_scatter)(_init)?$", re.I)
REDUCTIONS = re.compile(r"^MPI_I?(allreduce|reduce\w*|scan|exscan)$", re.I)
# Both end in MPI's own collective.
BY_MPI = ("mpi", "staged", "host")


Difference = namedtuple("Difference", "name key sequence parts later")


class Empty(Exception):
    """No file of a job is in the folder."""


def call_name(op):
    """MPI_Bcast_c takes a larger count and matches MPI_Bcast."""
    return op.call[:-2] if op.call.endswith("_c") else op.call


def root(op):
    """Negative ones (none, MPI_ROOT, MPI_PROC_NULL) match any."""
    return None if op.root is None or op.root < 0 else op.root


def amount(op):
    """What must agree: elements of a reduction, bytes of what is moved; None where it need not."""
    name = call_name(op)
    if UNEVEN.match(name):
        return None
    return op.count if REDUCTIONS.match(name) and op.count is not None else op.bytes


def datatype(op):
    """Of a reduction; what is moved may be described differently."""
    return op.type if REDUCTIONS.match(call_name(op)) else None


def memory(op):
    """None if there is no buffer."""
    return op.memory if op.bytes or op.count else None


def path(op):
    if op.path == "agreement":
        return None  # it has none yet
    return "mpi" if op.path in BY_MPI else op.path


# Finding, what is compared (None matches anything), how a rank's own is said; most telling first.
COMPARED = (
    ("hang-call", call_name, lambda op: f"called {arguments_text(op)}"),
    ("hang-root", root, lambda op: f"passed root {op.root}"),
    ("hang-op", lambda op: op.op, lambda op: f"passed {op.op}"),
    ("hang-count", amount, lambda op: f"passed {amount_text(op)}"),
    ("hang-type", datatype, lambda op: f"passed {op.type}"),
    ("hang-memory", memory, lambda op: f"passed {op.memory} memory"),
    ("hang-path", path, lambda op: f"took path {op.path}"),
)


def groups(row, value):
    """[(ranks, operation)] that agree, the smallest group first."""
    found = {}
    for rank, op in row.items():
        own = value(op)
        if own is not None:
            found.setdefault(own, []).append(rank)
    ordered = sorted(found.values(), key=lambda ranks: (len(ranks), min(ranks)))
    return [(sorted(ranks), row[min(ranks)]) for ranks in ordered]


def differences(row):
    """Kinds in which the ranks of one collective differ, each with its groups."""
    found = {}
    for name, value, _ in COMPARED:
        parts = groups(row, value)
        if len(parts) > 1:
            found[name] = parts
        if name == "hang-call" and found:
            break  # arguments of different calls have nothing to do with each other
    if "hang-memory" in found or "hang-count" in found:
        found.pop("hang-path", None)  # a path is chosen by them
    if "hang-count" in found:
        found.pop("hang-type", None)  # is said with the count
    return found


def describe(job, one):
    """The finding of a Difference."""
    say = {row[0]: row[2] for row in COMPARED}[one.name]
    said = [f"{rank_text(ranks)} {say(op)}" for ranks, op in one.parts]
    if len(said) > MAX_GROUPS:
        rest = sum(len(ranks) for ranks, _ in one.parts[MAX_GROUPS - 1 : -1])
        said = [*said[: MAX_GROUPS - 1], f"{rest} more ranks otherwise", said[-1]]
    more = f" (later ones there that differ: {one.later})" if one.later else ""
    if one.sequence > 1 and job.oldest(one.key, one.sequence):
        more += "; it may have begun before what the files still hold"
    return finding(
        one.name,
        this=said[0] + (f" in {one.parts[0][1].call}" if one.name != "hang-call" else ""),
        sequence=one.sequence,
        comm=one.key.comm,
        others=", ".join(said[1:]),
        more=more,
    )


def started(one):
    return min(op.started or 0 for _, op in one.parts)


def compare(job):
    """(findings, communicators whose ranks differ). Of each kind the first in a communicator."""
    found, differing = [], set()
    for key, table in job.table.items():
        first, later = {}, {}
        for sequence in sorted(table):
            row = table[sequence]
            if len(row) < 2:
                continue
            for name, parts in differences(row).items():
                later[name] = later.get(name, -1) + 1
                if "hang-call" not in first:  # after that the ranks are out of step
                    first.setdefault(name, (sequence, parts))
        for name, (sequence, parts) in first.items():
            found.append(Difference(name, key, sequence, parts, later[name]))
            differing |= {key} if TABLE[name].severity == ERROR else set()
    order = [row[0] for row in COMPARED]
    found.sort(key=lambda one: (order.index(one.name), started(one)))
    return [describe(job, one) for one in found[:MAX_FINDINGS]], differing


def check_missing(job, folder):
    missing = gaps(job.dumps, job.size)
    if missing:
        yield finding(
            "hang-missing",
            ranks=span_text(missing),
            size=job.size,
            folder=dumps.word(folder, 4096),
        )


def check_files(read, unreadable, left):
    for name, why in unreadable[:MAX_FILES]:
        yield finding("hang-unreadable", file=name, why=why)
    rest = len(unreadable) - MAX_FILES
    if rest > 0:
        yield finding("hang-unreadable", file=f"{rest} more", why="for reasons like these")
    if left:
        why = f"more than {dumps.MAX_FILES} are in the folder"
        yield finding("hang-unreadable", file=f"{left} more", why=why)
    skipped = [(dump.name, dump.skipped) for dump in read if dump.skipped]
    for name, number in skipped[:MAX_FILES]:
        why = f"{number} of its operations are not as xccl writes them"
        yield finding("hang-unreadable", file=name, why=why)


def check_mixed(job, runs):
    twice = sum(one[2] for one in runs)
    if len(runs) == 1 and not twice:
        return
    parts = [f"{files} of a run of {size} ranks" for size, files, _ in runs[:MAX_GROUPS]]
    parts += [f"{twice} of a rank that has a newer one"] if twice else []
    yield finding("hang-mixed", runs=", ".join(parts), size=job.size)


def statements(job):
    """What was read, as sentences."""
    hosts = len({dump.host for dump in job.dumps.values()})
    total = sum(len(dump.operations) for dump in job.dumps.values())
    yield f"files of {len(job.dumps)} of {job.size} ranks on {hosts} host{'s' if hosts > 1 else ''}, {total} operations"
    times = [dump.time for dump in job.dumps.values() if dump.time is not None]
    if times:
        apart = max(times) - min(times)
        yield f"written from {clock(min(times))} to {clock(max(times))} ({apart:.1f} s apart)"
    reasons = {}
    for rank, dump in job.dumps.items():
        reasons.setdefault(dump.reason, []).append(rank)
    for reason, ranks in sorted(reasons.items(), key=lambda row: len(row[1]))[:MAX_REASONS]:
        yield f"{rank_text(ranks)} wrote because of: {reason}"
    calls = messages.statement(job)
    if calls:
        yield calls


def advice(job):
    """Where to look on, if nobody waits in what the files tell of."""
    if any(dump.calls for dump in job.dumps.values()):
        waited = any(any(messages.long_calls(job, rank)) for rank in job.dumps)
        return INSIDE_MPI if waited else RECENT
    return STACKS if all(dump.all_calls for dump in job.dumps.values()) else ELSEWHERE


def examine(folder):
    """(statements, findings), errors first and the most telling of them first of all."""
    read, unreadable, left = dumps.read_folder(folder)
    if not read and not unreadable:
        raise Empty(folder)
    about_files = list(check_files(read, unreadable, left))
    if not read:
        return ["no file of a rank could be read"], about_files
    chosen, runs = newest(read)
    job = Job(chosen)
    waiting = waits.collect(job)
    found, differing = compare(job)
    for_messages = messages.collect(job)
    told = []
    found += waits.check_cycles([*waiting, *for_messages], told)
    found += waits.check_failed(job)
    found += waits.check_waiting(job, waiting)
    found += messages.check_messages(job, for_messages, waiting, told)
    found += waits.check_stuck(job, waiting, differing)
    found += check_missing(job, folder)
    found += check_mixed(job, runs)
    found += about_files
    said = list(statements(job))
    if not waiting and not for_messages and not any(one.severity == ERROR for one in found):
        said.append(advice(job))
        found += messages.check_apart(job)
    if len(found) > MAX_FINDINGS:
        said.append(f"{len(found) - MAX_FINDINGS} more findings are left out")
    found.sort(key=lambda one: one.severity != ERROR)
    return said, found[:MAX_FINDINGS]
