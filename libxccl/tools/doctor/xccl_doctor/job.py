# SPDX-License-Identifier: BSD-3-Clause
"""The ranks of one run, lined up by communicator and sequence number."""

import re
from collections import namedtuple

LAST_BLOCKED = 4  # a rank waits in a few places at once, one a thread
NONBLOCKING = re.compile(r"^MPI_I(?!nit|nfo|ntercomm)[a-z]")

Key = namedtuple("Key", "comm size")


def blocks(op):
    """True if the rank cannot go on before the operation ends."""
    return op.state == "waiting" or (op.state == "started" and not NONBLOCKING.match(op.call))


class Job:
    """dumps: one of each rank, all of one run."""

    def __init__(self, dumps):
        self.size = dumps[0].size
        self.dumps = {dump.rank: dump for dump in dumps}
        self.table = {}  # communicator: sequence: rank: operation
        firsts = {}
        self.last = {}  # communicator: rank: its last sequence there
        for rank, dump in self.dumps.items():
            for op in dump.operations:
                if op.sequence is None:
                    continue
                key = Key(op.comm, op.comm_size)
                self.table.setdefault(key, {}).setdefault(op.sequence, {})[rank] = op
                last = self.last.setdefault(key, {})
                last[rank] = max(last.get(rank, 0), op.sequence)
                first = firsts.setdefault((key, rank), op.sequence)
                firsts[key, rank] = min(first, op.sequence)
        # Ranks whose files do not begin with the first collectives: they hold the last ones only.
        self.cut = {rank for (_, rank), sequence in firsts.items() if sequence > 1}

    def blocked(self, rank):
        return [op for op in self.dumps[rank].operations if blocks(op)][-LAST_BLOCKED:]

    def members(self, key):
        """(ranks known to belong to it, how many of its ranks no file tells of)."""
        if key.size == self.size or key.comm.split(".")[0] == "world":
            return set(self.dumps), max(self.size - len(self.dumps), 0)
        seen = set(self.last[key])
        return seen, max(key.size - len(seen), 0)

    def oldest(self, key, sequence):
        """True if no earlier collective of it is in two files."""
        return all(number >= sequence or len(row) < 2 for number, row in self.table[key].items())


def newest(dumps):
    """(dumps of the newest run, one a rank; runs as (size, files, ranks named twice)).

    What a program spawned is a run of its own.
    """
    runs = {}
    for dump in sorted(dumps, key=lambda one: one.time or 0):
        run = runs.setdefault(
            (dump.size, dump.spawned or ""), {"ranks": {}, "time": 0, "twice": 0}
        )
        run["twice"] += dump.rank in run["ranks"]
        run["ranks"][dump.rank] = dump
        run["time"] = dump.time or run["time"]
    chosen = max(runs.values(), key=lambda run: (run["time"], len(run["ranks"])))
    counts = [(size, len(run["ranks"]), run["twice"]) for (size, _), run in sorted(runs.items())]
    return list(chosen["ranks"].values()), counts
