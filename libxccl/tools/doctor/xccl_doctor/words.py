# SPDX-License-Identifier: BSD-3-Clause
"""Ranks, times and operations in plain English."""

import time

MAX_PARTS = 8


def spans(ranks):
    """[(first, last)] of runs without a gap."""
    out = []
    for rank in sorted(ranks):
        if out and rank == out[-1][1] + 1:
            out[-1] = (out[-1][0], rank)
        else:
            out.append((rank, rank))
    return out


def gaps(ranks, size):
    """[(first, last)] of what is missing of 0 to size - 1."""
    out, expected = [], 0
    for first, last in [*spans(ranks), (size, size)]:
        if first > expected:
            out.append((expected, first - 1))
        expected = last + 1
    return out


def count(pairs):
    return sum(last - first + 1 for first, last in pairs)


def listed(parts):
    return " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))


def span_text(pairs):
    """ "rank 2", "ranks 0, 1 and 3", "ranks 0-2 and 7"; a long list is cut."""
    if count(pairs) == 1:
        return f"rank {pairs[0][0]}"
    parts, said = [], 0
    for first, last in pairs:
        pair = [str(first), str(last)] if last == first + 1 else [f"{first}-{last}"]
        parts += [str(first)] if first == last else pair
        said += last - first + 1
        if len(parts) >= MAX_PARTS:
            break
    left = count(pairs) - said
    return "ranks " + listed(parts + ([f"{left} more"] if left else []))


def rank_text(ranks):
    return span_text(spans(ranks))


def verb(ranks, one, many):
    return one if len(ranks) == 1 else many


def clock(seconds):
    return time.strftime("%H:%M:%S", time.localtime(seconds))


def since(started, now):
    """ "since 14:03:12 (73 s)"."""
    if started is None:
        return "since an unknown time"
    text = f"since {clock(started)}"
    if now is None or now < started:
        return text
    waited = now - started
    return text + (f" ({waited:.0f} s)" if waited >= 10 else f" ({waited:.1f} s)")


def call_text(op):
    """ "MPI_Bcast, root 0"."""
    return op.call if op.root is None or op.root < 0 else f"{op.call}, root {op.root}"


def arguments_text(op):
    """ "MPI_Reduce (count 10, root 0)"."""
    parts = [] if op.count is None else [f"count {op.count}"]
    parts += [] if op.root is None or op.root < 0 else [f"root {op.root}"]
    return f"{op.call} ({', '.join(parts)})" if parts else op.call


def amount_text(op):
    """ "count 10 of MPI_DOUBLE (80 bytes)"."""
    text = "an unknown count" if op.count is None else f"count {op.count}"
    text += f" of {op.type}" if op.type else ""
    return text if op.bytes is None else f"{text} ({op.bytes} bytes)"


def place(op):
    """ "collective 6 (MPI_Bcast, root 0) of communicator world"."""
    if op.sequence is None:
        return f"{call_text(op)} of communicator {op.comm}"
    return f"collective {op.sequence} ({call_text(op)}) of communicator {op.comm}"
