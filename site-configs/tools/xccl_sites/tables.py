# SPDX-License-Identifier: BSD-3-Clause
"""Check a site's tuning tables as libxccl reads them (libxccl/src/decide/): one that it cannot read serves nobody."""

import re
from pathlib import Path

from .load import Fault

BASE = Path(__file__).resolve().parents[3] / "libxccl/src/base"
COLLECTIVES = BASE / "collectives.h"
MEMORY = ("cuda", "rocm", "cuda_managed", "rocm_managed", "hpu")
PATHS = ("mpi", "ccl", "direct", "staged")
RANGE = "lo-hi, as 2-8 or 2-inf, one number, or *"
MOST = 2**30 // 10  # digits beyond are no number
# Bytes that a text may have.
TEXTS = {
    "title": 159,
    "where": 255,
    "gpu_model": 95,
    "driver": 63,
    "library": 63,
    "mpi_library": 127,
    "raw": 511,
    "gpu": 511,
}


def libraries():
    """Names of the vendors' libraries, from the list that the library is made of."""
    text = (BASE / "libraries.h").read_text(encoding="utf-8")
    return re.findall(r'"(\w+)"', re.search(r"names\[\] = \{([^}]*)\}", text)[1])


VERSION = r"\d{1,6}(\.\d{1,6}){0,2}"


def forms():
    """{setting: (pattern, what is allowed)}"""
    names = libraries()
    return {
        "measured": (
            r"nobody|\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])",
            "the day, as 2026-11-22, or nobody",
        ),
        "ccl": (
            rf"({'|'.join(names)})([ \t]+(\*|{VERSION}(-({VERSION}|inf))?))?",
            f"{', '.join(names)}, and versions if not all, as nccl 2.27-2.28.3",
        ),
        "network": (r"fabric|tcp|\*", "fabric, tcp, *"),
        "mpi": (r"gpu-aware|staged|\*", "gpu-aware, staged, *"),
    }


RANGES = ("ranks", "nodes", "ranks_per_node")


def collectives():
    """Names of the collectives, from the list that the library is made of."""
    text = COLLECTIVES.read_text(encoding="utf-8")
    return re.findall(r"\bX\(\w+, (\w+), [A-Z_]+, \d", text)


def _number(text, suffixes):
    """The number, infinity for inf, None for what is none."""
    if text == "inf":
        return float("inf")
    found = re.fullmatch(
        r"([0-9]+)(?:([kmg])(?:ib)?)?" if suffixes else r"([0-9]+)()", text.lower()
    )
    if not found or int(found[1]) // 10 > MOST:
        return None
    return int(found[1]) << {"k": 10, "m": 20, "g": 30}.get(found[2], 0)


def _is_range(text, suffixes):
    if text == "*":
        return True
    low, dash, high = text.partition("-")
    low = _number(low, suffixes)
    high = _number(high, suffixes) if dash else low
    if low is None or high is None or low == float("inf"):
        return False
    if suffixes:
        return low < high if dash else True
    return low <= high and high > 0


def _versions_run_forwards(value):
    low, dash, high = value.split()[-1].partition("-")
    if not dash or high == "inf":
        return True
    first, last = ([int(part) for part in text.split(".")] for text in (low, high))
    return first <= last or first[: len(last)] == last


def _setting_fault(key, value):
    """What is wrong with a setting; None if nothing is."""
    if key in TEXTS:
        if 0 < len(value.encode()) <= TEXTS[key]:
            return None
        return f"value '{value[:80]}' of {key}; allowed: a text of at most {TEXTS[key]} bytes"
    if key in RANGES:
        return None if _is_range(value, False) else f"value '{value}' of {key}; allowed: {RANGE}"
    known_forms = forms()
    if key in known_forms:
        pattern, allowed = known_forms[key]
        good = re.fullmatch(pattern, value) and (key != "ccl" or _versions_run_forwards(value))
        return None if good else f"value '{value}' of {key}; allowed: {allowed}"
    known = ", ".join(sorted([*TEXTS, *RANGES, *known_forms]))
    return f"key '{key}'; allowed: {known}"


def _row_fault(row, names):
    """What is wrong with coll:bytes:mem:ranks:path; None if nothing is."""
    fields = row.split(":")
    if len(fields) != 5:
        return (
            f"not five fields: '{row}'; allowed: coll:bytes:mem:ranks:path, "
            "as allreduce:64k-inf:cuda:2-inf:ccl"
        )
    coll, size, mem, ranks, path = fields
    checks = (
        ("collective", coll, coll in (*names, "*"), ", ".join([*names, "*"])),
        ("bytes", size, _is_range(size, True), "lo-hi with lo < hi, as 0-64k or 1m-inf, or *"),
        ("memory", mem, mem in (*MEMORY, "*"), ", ".join([*MEMORY, "*"])),
        ("ranks", ranks, _is_range(ranks, False), RANGE),
        ("path", path, path in PATHS, ", ".join(PATHS)),
    )
    for what, text, good, allowed in checks:
        if not good:
            return f"{what} '{text}' in '{row}'; allowed: {allowed}"
    return None


def _origin_fault(head):
    """What the settings do not say together."""
    if "measured" not in head:
        return "no line 'measured = ...'; allowed: the day, as 2026-11-22, or nobody"
    if head["measured"] != "nobody" and not {"where", "library"} <= set(head):
        return f"'measured = {head['measured']}' without 'where' and 'library'; a table that was measured says both"
    return None


def _line_faults(line, head, rows, names):
    """Faults of one line that is no comment; notes its setting in @p head, its rows in @p rows."""
    if line.startswith("#"):
        yield f"line '{line}'; allowed: a comment, which begins with '# '; rows without '#' in front"
    elif "=" in line:
        key, value = (part.strip() for part in line.split("=", 1))
        if rows:
            yield f"setting '{line}'; allowed: settings before the first row"
        elif key in head:
            yield f"second '{key}'; allowed: each key once"
        else:
            head[key] = value
            yield _setting_fault(key, value)
    else:
        for row in line.split("#"):
            rows.append(row)
            yield _row_fault(row, names)


def table_faults(file):
    """Faults of one table, each with its line."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        return [Fault(file, 0, "", f"cannot be read: {error}")]
    names, head, rows, faults = collectives(), {}, [], []
    number = 0
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.strip(" \t\r")
        if not line or line == "#" or line.startswith(("# ", "#\t", "##")):
            continue
        said = filter(None, _line_faults(line, head, rows, names))
        faults += [Fault(file, number, "", fault) for fault in said]
    if not faults and _origin_fault(head):
        faults.append(Fault(file, 1, "", _origin_fault(head)))
    if not faults and not rows:
        faults.append(Fault(file, number, "", "no row; allowed: one row or more"))
    return faults


def site_table_faults(folder):
    """Faults of the tables of the site in @p folder."""
    return [
        fault for file in sorted(folder.glob("tables/*.table")) for fault in table_faults(file)
    ]
