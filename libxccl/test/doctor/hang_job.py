# SPDX-License-Identifier: BSD-3-Clause
"""Files of a job that hangs, as its ranks write them."""

import json
import time

from xccl_common.tool import Tool

NOWHERE = Tool("xccl-doctor", "0", "", "/nowhere", "/nowhere/lib")
NOW = 1700000000.0
SIZE = 4
CALL = {
    "comm": "world",
    "comm_size": SIZE,
    "call": "MPI_Allreduce",
    "count": 10,
    "type": "MPI_FLOAT",
    "op": "MPI_SUM",
    "root": -1,
    "memory": "cuda",
    "bytes": 40,
    "path": "ccl",
    "state": "done",
}
BCAST = {"call": "MPI_Bcast", "op": None, "root": 0}


def clock(seconds):
    return time.strftime("%H:%M:%S", time.localtime(seconds))


class Run:
    """Files of a run in which every rank did five collectives of world; tests break it."""

    def __init__(self, folder, size=SIZE):
        self.folder, self.size = folder, size
        self.operations = {rank: [] for rank in range(size)}
        self.head = {rank: {} for rank in range(size)}
        for _ in range(5):
            self.all()

    def add(self, rank, **values):
        """One more operation of a rank; its number follows from those before."""
        op = {**CALL, "comm_rank": rank, "comm_size": self.size, **values}
        before = [
            one["sequence"] or 0 for one in self.operations[rank] if one["comm"] == op["comm"]
        ]
        op.setdefault("sequence", max(before, default=0) + 1)
        op.setdefault("started", NOW - 80 + (op["sequence"] or 0))
        op.setdefault("ended", op["started"] + 0.5 if op["state"] in ("done", "failed") else None)
        self.operations[rank].append(op)

    def all(self, ranks=None, **values):
        for rank in range(self.size) if ranks is None else ranks:
            self.add(rank, **values)

    def dump(self, rank):
        head = {"version": 1, "rank": rank, "size": self.size, "host": f"n{rank // 2}"}
        head.update(pid=100 + rank, reason="SIGUSR1", time=NOW)
        return {**head, "operations": self.operations[rank], **self.head[rank]}

    def path(self, rank):
        return self.folder / f"xccl-ops.n{rank // 2}.{100 + rank}.json"

    def write(self, skip=()):
        for rank in set(range(self.size)) - set(skip):
            self.path(rank).write_text(json.dumps(self.dump(rank)))


def call(name, *messages, **values):
    return {"call": name, "since": NOW - 30, "requests": -1, "unknown": 0, **values} | {
        "messages": list(messages)
    }


def message(rank, tag, **values):
    return {"sends": False, "peer": rank, "rank": rank, "tag": tag, "comm": "world", **values}


def only(causes, name):
    """The one cause, if nothing else was found."""
    assert set(causes) == {name, "facts"}, causes
    (cause,) = causes[name]
    return cause
