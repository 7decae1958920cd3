# SPDX-License-Identifier: BSD-3-Clause
"""Sizes, times and names as text."""

import re

UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def parse_size(text):
    """Bytes of "64k"; None if it is none."""
    found = re.match(r"^(\d+)(?:([kmg])(?:ib)?)?$", text.lower())
    return int(found.group(1)) * UNITS[found.group(2) or ""] if found else None


def human(n):
    """4 B, 64 KiB, 256 MiB; and 1 GB, which is no whole number of these."""
    for unit, size in (("GB", 10**9), ("MB", 10**6)):
        if n >= size and n % size == 0:
            return f"{n // size} {unit}"
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if n >= size:
            return f"{n / size:g} {unit}"
    return f"{n} B"


def micros(t):
    """A time in µs, with three digits that count."""
    if t >= 1000:
        return f"{t:,.0f}"
    return f"{t:.1f}" if t >= 100 else f"{t:.2f}"


def shape(case):
    """ "8 ranks on 2 nodes"; less where less is known."""
    ranks = case.get("ranks")
    text = f"{ranks} ranks" if ranks else "ranks of the launcher"
    nodes = case.get("nodes")
    if nodes:
        text += f" on {nodes} node" + ("s" if nodes > 1 else "")
    if case.get("groups"):
        text += f", communicators {case['groups']}"
    return text


def count(n, thing):
    return f"{n} {thing}" if n == 1 else f"{n} {thing}{'es' if thing.endswith('ch') else 's'}"


def duration(seconds):
    seconds = int(seconds)
    if seconds < 90:
        return f"{seconds} s"
    minutes = (seconds + 30) // 60
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def ccl_version(code):
    """22803 is 2.28.3; NCCL before 2.9 counted otherwise."""
    unit = 10000 if code >= 10000 else 1000
    return f"{code // unit}.{code % unit // 100}.{code % 100}"


def changed(before, after):
    """Variables that have another value, in order: "NCCL_ALGO: was none, is Ring"."""
    for name in sorted({*before, *after}):
        if before.get(name) != after.get(name):
            was, now = (one.get(name, "none") or "empty" for one in (before, after))
            yield f"{name}: was {was}, is {now}"
