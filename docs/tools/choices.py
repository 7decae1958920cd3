# SPDX-License-Identifier: BSD-3-Clause
"""Shipped tuning tables against what was measured: is the path of each collective and size among the fastest?

A table names its measurements in `raw`: files of xccl-tune (all paths), or of libxccl/bench/direct_ratio.c (what
xccl took, and the vendor's call).
"""

import json
from collections import namedtuple
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
TABLES = "libxccl/tables"
LIMIT = 1.05  # of the time of the fastest path
UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
# What xccl-tune measures: a table that says "all" is about these.
COLLECTIVES = (
    *(
        "allreduce",
        "bcast",
        "reduce",
        "reduce_scatter",
        "reduce_scatter_block",
        "allgather",
        "allgatherv",
        "alltoall",
    ),
    *("alltoallv", "gather", "gatherv", "scatter", "scatterv", "scan", "exscan"),
)

Table = namedtuple("Table", "name head rows")
# times: {path: microseconds}; file: below docs/benchmarks
Measured = namedtuple("Measured", "file coll bytes times")
# best: the fastest path; ratio: time of the path that the table takes to that of the best, None: not measured
Choice = namedtuple("Choice", "measured path best ratio")


def read_table(path):
    """The settings and the rows of a table; rows are lists of five words."""
    head, rows = {}, []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("# ") or not line.strip():
            continue
        if " = " in line:
            key, _, value = line.partition(" = ")
            head[key] = value
        else:
            rows += [row.split(":") for row in line.split("#")]
    return Table(path.stem, head, rows)


def measured_tables(folder=None):
    tables = map(read_table, sorted((folder or TOP / TABLES).glob("*.table")))
    return [table for table in tables if table.head["measured"] != "nobody"]


def size(text):
    if text == "inf":
        return float("inf")
    unit = text[-1] if text[-1] in UNITS else ""
    return int(text.removesuffix(unit)) * UNITS[unit]


def within(number, text, last=0):
    """Is the number in `lo-hi`, `lo` or `*`? last: 1 where the end is no part of the range."""
    if text == "*":
        return True
    low, _, high = text.partition("-")
    return size(low) <= number <= size(high or low) - (last if high else 0)


def path_of(table, coll, count):
    """The path of the first row that matches a call on CUDA memory."""
    ranks = int(table.head["ranks"])
    for colls, sizes, memory, of_ranks, path in table.rows:
        if (
            colls in {coll, "*"}
            and memory in {"cuda", "*"}
            and within(count, sizes, 1)
            and within(ranks, of_ranks)
        ):
            return path
    return None


def raw_files(table, top=TOP):
    """Those of `raw`; the second and later ones lie beside the first."""
    first, *others = [top / name for name in table.head["raw"].split(", ")]
    return [first, *(first.parent / other.relative_to(top) for other in others)]


def program_of(data):
    return "xccl-tune" if data.get("schema") == "xccl-tune-1" else data["program"]


def of_tune(data, file, ranks):
    for series in data["series"]:
        if series["nodes"] * series["ranks_per_node"] == ranks:
            for point in series["points"]:
                times = {name: of["median"] for name, of in point["paths"].items() if of}
                yield Measured(file, series["collective"], point["bytes"], times)


def of_direct_ratio(data, file):
    """A call that xccl handed to the vendor's library has that one's path, and the call itself beside it."""
    for row in data["rows"]:
        itself = "ccl itself" if row["path"] == "ccl" else "ccl"
        times = {itself: row["vendor_us"], row["path"]: row["mpi_us"]}
        yield Measured(file, row["collective"], row["bytes"], times)


def measurements(table, top=TOP):
    for path in raw_files(table, top):
        data = json.loads(path.read_text(encoding="utf-8"))
        file = path.relative_to(top / "docs/benchmarks").as_posix()
        ranks = int(table.head["ranks"])
        yield from (
            of_tune(data, file, ranks)
            if program_of(data) == "xccl-tune"
            else of_direct_ratio(data, file)
        )


def choices(table, top=TOP):
    for m in measurements(table, top):
        path = path_of(table, m.coll, m.bytes)
        best = min(m.times, key=m.times.get)
        yield Choice(m, path, best, m.times[path] / m.times[best] if path in m.times else None)


def size_text(count):
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= unit:
            return f"{count / unit:g} {name}"
    return f"{count} B"


def programs(table, top=TOP):
    return sorted(
        {
            program_of(json.loads(path.read_text(encoding="utf-8")))
            for path in raw_files(table, top)
        }
    )


def summary(table):
    made = list(choices(table))
    known = [one.ratio for one in made if one.ratio is not None]
    missing = [coll for coll in COLLECTIVES if coll not in {one.measured.coll for one in made}]
    slower = sum(ratio > LIMIT for ratio in known)
    cells = [
        f"`{table.name}`",
        ", ".join(programs(table)),
        len(made),
        size_text(max(one.measured.bytes for one in made)),
    ]
    cells += [f"{max(known):.3f}", slower, len(made) - len(known), ", ".join(missing) or "none"]
    return "| " + " | ".join(map(str, cells)) + " |"


def exception(table, one):
    m = one.measured
    cells = [
        f"`{table.name}`",
        m.coll,
        size_text(m.bytes),
        f"{one.path}, {m.times[one.path]:g} µs",
    ]
    cells += [f"{one.best}, {m.times[one.best]:g} µs", f"{one.ratio:.3f}", f"`{m.file}`"]
    return "| " + " | ".join(cells) + " |"


def lines():
    """What docs/use/tuning.md says of the measured tables."""
    tables = measured_tables()
    text = [
        "| table | measured by | calls | up to | largest ratio | above 1.05 | path not measured | without data |"
    ]
    text += ["|---|---|---:|---:|---:|---:|---:|---|", *map(summary, tables)]
    slower = [
        (table, one) for table in tables for one in choices(table) if (one.ratio or 0) > LIMIT
    ]
    if slower:
        text += [
            "",
            "Above 1.05 are:",
            "",
            "| table | collective | size | it takes | fastest | ratio | file |",
        ]
        text += ["|---|---|---:|---|---|---:|---|", *(exception(*one) for one in slower)]
    return text
