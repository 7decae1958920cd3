# SPDX-License-Identifier: BSD-3-Clause
"""Which of UCC's transports served the calls of a route: what UCC's own trace says (UCC 1.2 and later)."""

import re
from collections import namedtuple
from math import log

from xccl_common.lines import Lines

from . import osu, words

ROUTES = ("ucc", "ucc-ccl")
TRACE = {"UCC_COLL_TRACE": "INFO"}
ELSEWHERE = (
    "UCC_LOG_FILE",
    "UCX_LOG_FILE",
)  # where the trace would go instead of to the job's log
OVER_VENDOR = ("TL_NCCL", "TL_RCCL")
NOT_UCC = "mpi"  # UCC traced other calls, but not this one: Open MPI served it
NO_TRACE = "UCC printed no trace: it is older than 1.2, or served no call"
NOT_RECORDED = "an older xccl-compare measured it, and did not ask"
# coll_init: Allreduce sum: src={0x7f.., 1, float32, Cuda}, dst={..}; CL_BASIC {TL_NCCL}, team_id 32768
HINT = "coll_init: "
LINE = re.compile(r"coll_init: (\w+)([^:]*): (.*); *\w+ \{([\w, ]+)\}")
BUFFER = re.compile(r"\b(src|dst)=\{\w+, (\d+), (\w+), (\w+)\}")
DEVICE = ("cuda", "rocm")
# Open MPI hands UCC its reduce_scatter as the one with a count for each rank.
OWN_NAMES = {"reduce_scatter": "reduce_scatter_block", "reduce_scatterv": "reduce_scatter"}
ONE_BLOCK = ("allreduce", "bcast", "reduce")
FAR = 2.0  # a call of so many times the size belongs to no row

Call = namedtuple("Call", "coll bytes transports")  # bytes: of one rank, or of each pair


def width(datatype):
    """Bytes of one element of UCC's type, as float32 or float32_complex."""
    bits = re.search(r"\d+", datatype)
    return int(bits.group()) // 8 * (2 if "complex" in datatype else 1) if bits else 1


def bytes_of(coll, buffers, n):
    """What one rank has, or each pair, of a call on n ranks."""
    sizes = {name: int(count) * width(datatype) for name, count, datatype, _ in buffers}
    if coll in ONE_BLOCK:
        return max(sizes.values())
    if coll in ("gather", "gatherv") and "src" in sizes:
        return sizes["src"]
    if coll in ("scatter", "scatterv") and "dst" in sizes:
        return sizes["dst"]
    return max(sizes.values()) / n  # the larger one holds the blocks of all ranks


def calls(text, n):
    """(calls on device memory, whether UCC traced any call at all) from the log of a job."""
    found, traced = [], False
    for _, line in Lines(text).having((HINT,)):
        traced = True
        match = LINE.search(line)
        buffers = BUFFER.findall(match.group(3)) if match else []
        if not any(memory.lower().startswith(DEVICE) for *_, memory in buffers):
            continue
        coll = match.group(1).lower()
        names = [name for name in match.group(4).replace(" ", "").split(",") if name != "NoOp"]
        if names:
            size = bytes_of(coll, buffers, n)
            found.append(Call(OWN_NAMES.get(coll, coll), size, names))
    return found, traced


def distance(size, other):
    """How many times one is the other."""
    return max(size, other, 1) / max(min(size, other), 1)


def served(text, n, rows, program):
    """{(collective, size): transports with a + between them} of these rows; None: not proved."""
    found, traced = calls(text, n)
    out = {}
    sizes = {}
    for coll, size in rows:
        sizes.setdefault(coll, []).append(size)
        out[coll, size] = NOT_UCC if traced else None
    names = {}
    for call in found:
        times = n if program == "osu" and call.coll in osu.TOTAL else 1
        near = min(
            sizes.get(call.coll, ()),
            key=lambda s: log(distance(s, call.bytes * times)),
            default=None,
        )
        if near is not None and distance(near, call.bytes * times) < FAR:
            names.setdefault((call.coll, near), set()).update(call.transports)
    out.update({key: "+".join(sorted(every)) for key, every in names.items()})
    return out


def as_named(route, transport):
    """Whether the calls went where the route's name says; None: not known."""
    if transport is None:
        return None
    names = transport.split("+")
    if route == "ucc-ccl":
        return all(name in OVER_VENDOR for name in names)
    return all(name.startswith("TL_") and name not in OVER_VENDOR for name in names)


def text(transport):
    """ "TL/CUDA", as UCC's users write it; "Open MPI itself"."""
    if transport == NOT_UCC:
        return "Open MPI itself"
    return transport.replace("TL_", "TL/").replace("+", " and ")


def spans(rows):
    """[(transport, first size, last size)] of neighbours that the same one served."""
    out = []
    for size in sorted(rows):
        name = rows[size].get("transport")
        if out and out[-1][0] == name:
            out[-1] = (name, out[-1][1], size)
        else:
            out.append((name, size, size))
    return out


def why_unproved(rows):
    known = any("transport" in row for row in rows.values())
    return NO_TRACE if known else NOT_RECORDED


def sentence(route, rows, vendor):
    """Who served a collective, size by size, and what of it is not as the route is named."""
    parts, wrong = [], False
    for name, first, last in spans(rows):
        where = words.human(first) + (f" to {words.human(last)}" if last > first else "")
        whole = (first, last) == (min(rows), max(rows))
        parts.append((text(name) if name else "not proved") + ("" if whole else f" ({where})"))
        wrong = wrong or as_named(route, name) is False
    if parts == ["not proved"]:
        return f"not proved: {why_unproved(rows)}"
    wanted = vendor if route == "ucc-ccl" else f"UCC without {vendor}"
    return ", ".join(parts) + (f"; NOT AS NAMED, which is {wanted}" if wrong else "")


def change(route, rows):
    """What a picture says behind the route's name; nothing where it was served as named."""
    states = {as_named(route, row.get("transport")) for row in rows.values()}
    if states == {True}:
        return ""
    if False not in states:
        return " (not proved)"
    others = sorted(
        {
            text(r["transport"])
            for r in rows.values()
            if as_named(route, r.get("transport")) is False
        }
    )
    part = "in part " if len(states) > 1 else ""
    return f": NOT AS NAMED, {part}by {', '.join(others)}"
