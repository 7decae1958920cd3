# SPDX-License-Identifier: BSD-3-Clause
"""Files xccl-ops.<host>.<pid>.<rank>.json of the ranks of a job: read, checked, bounded.

Whoever wrote them may have died while writing, so nothing in them is trusted.
"""

import json
import math
import os
import re
import stat
import sys
from collections import namedtuple

VERSION = 1
PLAIN = re.compile(r"[ -~]*\Z")
NAME = re.compile(r"^xccl-ops\..*\.json$")
MAX_FILES = 1 << 16
MAX_BYTES = 4 << 20  # of a file; some hundred operations are 0.2 MiB
MAX_OPERATIONS = 1 << 20  # of all files together: some hundred MiB of memory
MAX_CALLS = 64  # threads that are told of
MAX_WORD = 64
MAX_CAUSE = 400
MAX_RANKS = 1 << 31
LAST_SECOND = 253402300799  # of the year 9999

# sequence: None for an operation that is not counted: other ranks may pass host memory to it, and have no record of it.
Operation = namedtuple(
    "Operation",
    "comm comm_size sequence call count type op root memory bytes path state started ended",
)
# The MPI call that a thread is in; messages: those that it waits for, requests: None if it waits for none.
Call = namedtuple("Call", "call since requests unknown messages")
# rank: of MPI_COMM_WORLD, or None; peer: of the communicator, or negative for any.
Message = namedtuple("Message", "sends peer rank tag comm")
Dump = namedtuple(
    "Dump", "name rank size host reason cause time operations skipped spawned calls all_calls"
)


class Unreadable(Exception):
    """Why a file is left out."""


def word(value, most=MAX_WORD):
    """Printable anywhere and short, or None."""
    if not isinstance(value, str):
        return None
    if len(value) <= most and PLAIN.match(value):
        return sys.intern(value)  # the same few names in each operation
    text = re.sub(r"[^ -~]", "?", value[:most])
    return text if len(value) <= most else text + "..."


def whole(value, low=-MAX_RANKS, high=1 << 63):
    """An integer within bounds, or None."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        return None
    return value


def second(value):
    """A time that can be printed, or None."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if not math.isfinite(value) or not 0 < value <= LAST_SECOND:
        return None
    return float(value)


def operation(entry):
    """One operation, or None if what lines it up with others is not there."""
    if not isinstance(entry, dict):
        return None
    made = Operation(
        comm=word(entry.get("comm")),
        comm_size=whole(entry.get("comm_size"), 1, MAX_RANKS),
        sequence=whole(entry.get("sequence"), 1),
        call=word(entry.get("call")),
        count=whole(entry.get("count")),
        type=word(entry.get("type")),
        op=word(entry.get("op")),
        root=whole(entry.get("root")),
        memory=word(entry.get("memory")),
        bytes=whole(entry.get("bytes")),
        path=word(entry.get("path")),
        state=word(entry.get("state")),
        started=second(entry.get("started")),
        ended=second(entry.get("ended")),
    )
    counted = made.sequence is not None or entry.get("sequence", 0) is None
    needed = (made.comm, made.comm_size, made.call, made.state)
    return made if counted and None not in needed else None


def message(entry):
    """One message, or None."""
    if not isinstance(entry, dict) or not isinstance(entry.get("sends"), bool):
        return None
    peer, tag = (whole(entry.get(name), -MAX_RANKS, MAX_RANKS) for name in ("peer", "tag"))
    rank = whole(entry.get("rank"), 0, MAX_RANKS)
    if peer is None or tag is None:
        return None
    return Message(entry["sends"], peer, rank, tag, word(entry.get("comm")) or "other")


def call(entry):
    """The call of a thread, or None if it is not as xccl writes them."""
    if not isinstance(entry, dict) or word(entry.get("call")) is None:
        return None
    entries = entry.get("messages")
    made = [message(one) for one in entries[:MAX_CALLS]] if isinstance(entries, list) else []
    return Call(
        call=word(entry["call"]),
        since=second(entry.get("since")),
        requests=whole(entry.get("requests"), 0, MAX_RANKS),
        unknown=whole(entry.get("unknown"), 0, MAX_RANKS) or 0,
        messages=tuple(one for one in made if one is not None),
    )


def calls(entries):
    """Files of before calls were followed have none."""
    made = [call(entry) for entry in entries[:MAX_CALLS]] if isinstance(entries, list) else []
    return [one for one in made if one is not None]


def short_integer(text):
    """Integers of a million digits take minutes, and no field has them."""
    if len(text) > 20:
        raise ValueError("a number of more than 20 digits")
    return int(text)


def no_constant(text):
    raise ValueError(f"{text} is no number")


def read_bytes(path):
    """The file's bytes; never waits for a pipe, never reads a device."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        with open(number, "rb") as f:
            status = os.fstat(number)
            if not stat.S_ISREG(status.st_mode):
                raise Unreadable("it is no regular file")
            data = f.read(MAX_BYTES + 1)
    except OSError as error:
        raise Unreadable(error.strerror or "it cannot be opened") from error
    if len(data) > MAX_BYTES:
        raise Unreadable(f"it is larger than {MAX_BYTES >> 20} MiB")
    return data


def decode(data):
    text = data.decode("utf-8", "replace").rstrip()
    if not text:
        raise Unreadable("it is empty")
    try:
        return json.loads(text, parse_int=short_integer, parse_constant=no_constant)
    except json.JSONDecodeError as error:
        if error.pos >= len(text) or error.msg.startswith("Unterminated"):
            why = f"it ends in the middle, after {len(data)} bytes"
            raise Unreadable(why) from error
        where = f"line {error.lineno}, column {error.colno}"
        raise Unreadable(f"it is no JSON ({where}: {error.msg})") from error
    except (ValueError, RecursionError) as error:
        why = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise Unreadable(f"it is no JSON of xccl ({why})") from error


def read(path, most):
    """The dump in a file, with its last operations, most of them at most."""
    found = decode(read_bytes(path))
    if not isinstance(found, dict) or "version" not in found:
        raise Unreadable("it was not written by xccl")
    version = whole(found["version"])
    if version != VERSION:
        raise Unreadable(f"it has version {version}, and this xccl-doctor reads {VERSION}")
    size = whole(found.get("size"), 1, MAX_RANKS)
    rank = whole(found.get("rank"), 0, (size or 1) - 1)
    entries = found.get("operations")
    if size is None or rank is None or not isinstance(entries, list):
        raise Unreadable("its rank, size or operations are missing or wrong")
    made = [operation(entry) for entry in entries[-most:]]
    return Dump(
        name=word(os.path.basename(path)),
        rank=rank,
        size=size,
        host=word(found.get("host")) or "unknown",
        reason=word(found.get("reason")) or "unknown",
        # What the rank's first failure said; files of before that was written have none.
        cause=word(found.get("cause"), MAX_CAUSE),
        time=second(found.get("time")),
        operations=[one for one in made if one is not None],
        skipped=made.count(None),
        # The number of a world that another has spawned, or None.
        spawned=word(found.get("spawned")),
        calls=calls(found.get("calls")),
        # Are calls on host memory among them? Files of before that was written do not say it.
        all_calls=found.get("all_calls") is True,
    )


def read_folder(folder):
    """(dumps, [(file, why it was left out)], names left unread because there are too many)."""
    names = sorted(name for name in os.listdir(folder) if NAME.match(name))
    taken, rest = names[:MAX_FILES], names[MAX_FILES:]
    most = max(MAX_OPERATIONS // max(len(taken), 1), 16)
    most = min(most, 1 << 14)
    found, unreadable = [], []
    for name in taken:
        try:
            found.append(read(os.path.join(folder, name), most))
        except Unreadable as why:
            unreadable.append((word(name), str(why)))
    return found, unreadable, len(rest)
