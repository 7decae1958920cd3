# SPDX-License-Identifier: BSD-3-Clause
"""Tables of measurements that are written by hand say what the committed raw output says."""

import json
import re
import statistics
from collections import defaultdict
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
ROUTES = {"NCCL": "nccl"}  # a column's name, where it is not that of the raw output


def size_of(text):
    number, unit = text.split()
    return int(number) * UNITS[unit]


def shows(text, value):
    """Whether `text` is `value`, rounded to the digits that it has. The raw output is rounded, too."""
    text = text.replace(",", "")
    unit = 10.0 ** -len(text.partition(".")[2])
    return abs(float(text) - value) <= unit * 0.51


def cells(line):
    return [cell.strip(" `") for cell in line.strip().strip("|").split("|")]


def tables(page):
    """(text in front of it, rows) of each table; the first row is the head."""
    before, rows = [], []
    for line in [*(BENCHMARKS / page).read_text(encoding="utf-8").splitlines(), ""]:
        if line.startswith("|"):
            if not set(line) <= set("|-: "):
                rows.append(cells(line))
        elif rows:
            yield "\n".join(before), rows
            before, rows = [line], []
        else:
            before.append(line)


def osu(coll):
    """{route: {bytes: median of the rounds}} of OSU's output."""
    times, route = defaultdict(lambda: defaultdict(list)), None
    for line in (BENCHMARKS / f"h200-x2/routes/osu-{coll}.txt").read_text().splitlines():
        if found := re.match(r"## \w+ (\S+) round", line):
            route = found.group(1)
        elif found := re.match(r"(\d+)\s+([\d.]+)", line):
            times[route][int(found.group(1))].append(float(found.group(2)))
    return {
        name: {size: statistics.median(all_) for size, all_ in of.items()}
        for name, of in times.items()
    }


def compared(coll):
    """The same of a result of xccl-compare."""
    times = defaultdict(dict)
    result = json.loads((BENCHMARKS / f"h200-x2/compare/{coll}/result.json").read_text())
    for entry in result["results"]:
        name = "nccl" if entry["variant"] == "vendor" else entry["variant"]
        times[name][entry["bytes"]] = entry["us"]["value"]
    return times


def printed(coll):
    """The same of a table that xccl-compare printed, of one launch each."""
    times, routes = defaultdict(dict), None
    text = (BENCHMARKS / f"h100-x4/compare/{coll}.txt").read_text()
    for line in text.partition(f"\n{coll}, 4 ranks")[2].splitlines():
        if line.strip().startswith("size "):
            routes = re.findall(r"([\w-]+), \N{MICRO SIGN}s", line)
        elif found := re.match(r"\s*(\d+ (?:B|KiB|MiB)) +(.*)", line):
            for route, time in zip(routes, found.group(2).split()):
                name = "nccl" if route == "vendor" else route
                times[name][size_of(found.group(1))] = float(time.strip("?").replace(",", ""))
    return times


def test_routes():
    """Every time, and the ratio to the best other of the row."""
    seen = set()
    for before, (head, *rows) in tables("routes.md"):
        if head[0] != "size":
            continue
        of_two, of_four = (
            re.findall(pattern, before, re.M) for pattern in (r"^### (\w+)", r"^\*\*(\w+)\*\*$")
        )
        coll = (of_four or of_two)[-1]
        times = printed(coll) if of_four else compared(coll) if coll == "bcast" else osu(coll)
        seen.add((coll, bool(of_four)))
        for size, *shown in rows:
            real = {
                name: times[ROUTES.get(name, name)][size_of(size)]
                for name, text in zip(head[1:-1], shown)
                if text != "-"
            }
            for name, text in zip(head[1:-1], shown):
                assert text == "-" or shows(text, real[name]), (coll, size, name, real[name])
            best = min(time for name, time in real.items() if name != "xccl")
            assert shows(shown[-1], real["xccl"] / best), (coll, size, real["xccl"] / best)
    assert len(seen) == 7 + 3


# What stands in front of the table, and the files of a row: those of "before", and the others.
BACK_TO_BACK = [
    (
        "`h200-x4/direct/back-to-back-now-4.json`",
        "h200-x4",
        "back-to-back-now-4",
        "back-to-back-now-4",
    ),
    (
        "`h200-x2/direct/back-to-back-now-2.json`",
        "h200-x2",
        "back-to-back-now-2",
        "back-to-back-now-2",
    ),
    (
        "`back-to-back-engines-2.json`",
        "h200-x2",
        "back-to-back-before-2",
        "back-to-back-engines-2",
    ),
    (
        "`h100-x4/direct/back-to-back-4.json`",
        "h100-x4",
        "back-to-back-4",
        "back-to-back-4",
    ),
    (
        "Two H100s (`h100-x2/direct/back-to-back-2.json`)",
        "h100-x2",
        "back-to-back-2",
        "back-to-back-2",
    ),
]


# A row of the summary, and the file that it is from.
NOW = {
    "4 x H200": "h200-x4/direct/allreduce-all-4.json",
    "4 x H100": "h100-x4/direct/back-to-back-4.json",
    "2 x H200": "h200-x2/direct/back-to-back-now-2.json",
    "2 x H100": "h100-x2/direct/back-to-back-2.json",
}


def test_now():
    """The summary of allreduce says what the files say that it is from."""
    table = next(rows for text, rows in tables("direct.md") if "## Now" in text)
    sizes = [size_of(text) for text in table[0][1:]]
    rows_of = {row[0].replace("\N{MULTIPLICATION SIGN}", "x"): row[1:] for row in table[1:]}
    assert list(rows_of) == list(NOW)
    for what, shown in rows_of.items():
        rows = json.loads((BENCHMARKS / NOW[what]).read_text())["rows"]
        real = {row["bytes"]: row for row in rows if row["collective"] == "allreduce"}
        for size, text in zip(sizes, shown):
            if text == "-":
                assert size not in real, (what, size)
                continue
            time, ratio = re.match(r"([\d.,]+) \(([\d.]+)\)", text).groups()
            row = real[size]
            assert shows(time, row["mpi_us"]) and shows(ratio, row["ratio"]), (what, size, row)
            assert text.endswith("*") == (row["path"] == "ccl"), (what, size, row)


@pytest.mark.parametrize(("words", "folder", "before", "after"), BACK_TO_BACK)
def test_back_to_back(words, folder, before, after):
    """Time and ratio; a star where another path than xccl's own served."""
    (table,) = [rows for text, rows in tables("direct.md") if words in text[-400:]]
    sizes = [size_of(text) for text in table[0][1:]]
    for what, *shown in table[1:]:
        coll, _, when = what.partition(", ")
        name = f"{folder}/direct/{before if when else after}.json"
        rows = json.loads((BENCHMARKS / name).read_text())["rows"]
        real = {row["bytes"]: row for row in rows if row["collective"] == coll}
        for size, text in zip(sizes, shown):
            time, ratio = re.match(r"([\d.,]+) \(([\d.]+)\)", text).groups()
            row = real[size]
            assert shows(time, row["mpi_us"]) and shows(ratio, row["ratio"]), (what, size, row)
            if before == after:
                assert text.endswith("*") == (row["path"] == "ccl"), (what, size, row)


WHEN = {"": "after", "before": "before", "NCCL": "ccl"}


def test_vectors():
    """Medians of the runs, of collectives with counts of each rank's own."""
    (table,) = [
        rows for text, rows in tables("direct.md") if "`h100-x2/direct/vectors.txt`" in text[-300:]
    ]
    times = {}
    for line in (BENCHMARKS / "h100-x2/direct/vectors.txt").read_text().splitlines():
        if not line.startswith("#"):
            coll, size, when, _, *runs = line.split()
            times[coll, int(size), when] = statistics.median(float(run) for run in runs)
    sizes = [size_of(text) for text in table[0][1:]]
    for what, *shown in table[1:]:
        coll, _, when = what.partition(", ")
        for size, text in zip(sizes, shown):
            real = times[coll, size, WHEN[when]]
            assert shows(text, real), (what, size, real)


STREAMS = {
    "4 GPUs: graph": ("4", "mpix_us"),
    "NCCL in a graph": (None, "vendor_us"),
    "4 GPUs: enqueued": ("4", "mpix_eager_us"),
    "NCCL enqueued": (None, "vendor_eager_us"),
    "2 GPUs: graph": ("2", "mpix_us"),
}


def test_streams():
    """A row of NCCL's belongs to the one above it."""
    (table,) = [rows for text, rows in tables("direct.md") if "`streams-4.json`" in text[-300:]]
    sizes, gpus = [size_of(text) for text in table[0][1:]], None
    for what, *shown in table[1:]:
        named, key = STREAMS[what]
        gpus = named or gpus
        path = BENCHMARKS / f"h200-x4/direct/streams-{gpus}.json"
        real = {row["bytes"]: row[key] for row in json.loads(path.read_text())["rows"]}
        for size, text in zip(sizes, shown):
            assert shows(text, real[size]), (what, size, real[size])


def test_rounding():
    assert shows("7.8", 7.849) and not shows("7.8", 7.86)
    assert shows("1,130.9", 1130.93) and shows("33", 33.4) and not shows("33", 34)
