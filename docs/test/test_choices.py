# SPDX-License-Identifier: BSD-3-Clause
"""Shipped tuning tables say who measured them, and docs/use/tuning.md how near they are to the fastest path."""

import json
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "docs/tools"))

import choices  # noqa: E402

SHIPPED = choices.measured_tables()
HEAD = "title = planted\nmeasured = 2026-11-30\nranks = 2\nraw = {raw}\n"


def plant(top, rows, **files):
    """A table in a tree of its own, with raw files beside each other in docs/benchmarks/planted."""
    folder = top / "docs/benchmarks/planted"
    folder.mkdir(parents=True)
    for name, data in files.items():
        (folder / f"{name}.json").write_text(json.dumps(data), encoding="utf-8")
    first, *others = [f"{name}.json" for name in files]
    path = top / "10-planted.table"
    head = HEAD.format(raw=", ".join([f"docs/benchmarks/planted/{first}", *others]))
    path.write_text(head + "# a comment\n" + rows + "\n", encoding="utf-8")
    return choices.read_table(path)


def tuned(*points, coll="bcast", ranks=2):
    """What xccl-tune writes, of points (bytes, {path: median or None})."""
    made = [
        {
            "bytes": count,
            "paths": {name: us and {"median": us, "noise": 0} for name, us in times.items()},
        }
        for count, times in points
    ]
    return {
        "schema": "xccl-tune-1",
        "series": [{"collective": coll, "nodes": 1, "ranks_per_node": ranks, "points": made}],
    }


def ratios(table, top):
    return [
        (one.measured.bytes, one.path, one.best, one.ratio) for one in choices.choices(table, top)
    ]


@pytest.mark.parametrize("table", SHIPPED, ids=lambda table: table.name)
def test_head_names_the_program(table):
    """Nothing is said to come from xccl-tune that does not."""
    for program in choices.programs(table):
        assert f", by {program}" in table.head["where"]
    tune = any(part.strip().startswith("by xccl-tune") for part in table.head["where"].split(","))
    assert tune == (choices.programs(table) == ["xccl-tune"])


@pytest.mark.parametrize("table", SHIPPED, ids=lambda table: table.name)
def test_raw_is_of_this_table(table):
    """Day, model and library are those of the data, and the path of every call was measured."""
    for path in choices.raw_files(table):
        data = json.loads(path.read_text(encoding="utf-8"))
        if choices.program_of(data) == "xccl-tune":
            said = [table.head[key] for key in ("measured", "gpu_model", "library")]
            assert said == [data["date"], data["gpu_model"], data["library"]]
        else:
            assert data["where"].endswith(f"{table.head['gpu_model']}, {table.head['library']}")
            assert data["where"].startswith(f"{table.head['ranks']} x ")
    made = list(choices.choices(table))
    assert len(made) > 100 and all(one.ratio is not None for one in made)


def test_page_names_every_exception():
    """docs/use/tuning.md is rendered; this is what has to stand there."""
    page = (TOP / "docs/use/tuning.md").read_text(encoding="utf-8")
    slower = [
        (table, one)
        for table in SHIPPED
        for one in choices.choices(table)
        if one.ratio > choices.LIMIT
    ]
    assert {(table.name, one.measured.coll) for table, one in slower} == {
        ("10-nvidia-h200-x4", "reduce")
    }
    for table, one in slower:
        assert choices.exception(table, one) in page


def test_slower_path_is_found(tmp_path):
    data = tuned(
        (8, {"ccl": 20, "direct": 10}), (65536, {"ccl": 10, "direct": 11, "staged": None})
    )
    table = plant(
        tmp_path, "bcast:0-64k:cuda:2:direct#bcast:64k-inf:cuda:*:ccl\n*:*:*:*:mpi", raw=data
    )
    assert ratios(table, tmp_path) == [(8, "direct", "direct", 1), (65536, "ccl", "ccl", 1)]
    other = table._replace(rows=[["*", "*", "cuda", "2", "direct"]])
    assert ratios(other, tmp_path)[1] == (65536, "direct", "ccl", 1.1)
    assert choices.exception(other, list(choices.choices(other, tmp_path))[1]) == (
        "| `10-planted` | bcast | 64 KiB | direct, 11 µs | ccl, 10 µs | 1.100 | `planted/raw.json` |"
    )


def test_path_that_was_not_measured(tmp_path):
    """A row for other ranks, memory or collectives is not taken, and no time is made up."""
    rows = "*:*:cuda:4:ccl\n*:*:rocm:2:ccl\nreduce:*:cuda:2:ccl\n*:*:*:2:direct"
    table = plant(tmp_path, rows, raw=tuned((8, {"ccl": 20, "direct": None})))
    assert ratios(table, tmp_path) == [(8, "direct", "ccl", None)]


def test_direct_ratio(tmp_path):
    """A second file lies beside the first; xccl's call of the vendor's library is compared with that library."""
    row = {"collective": "reduce", "bytes": 1 << 20, "vendor_us": 10, "mpi_us": 12, "ratio": 1.2}
    by_kernels, by_vendor = (
        {"program": "direct_ratio", "rows": [{**row, "path": path}]} for path in ("direct", "ccl")
    )
    table = plant(tmp_path, "*:*:*:*:ccl", one=by_kernels, two=by_vendor)
    assert ratios(table, tmp_path) == [
        (1 << 20, "ccl", "ccl", 1),
        (1 << 20, "ccl", "ccl itself", 1.2),
    ]
