#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Turn committed results into pages: docs/benchmarks/<set>/*.json becomes docs/benchmarks/<set>.md

render.py          write every page
render.py --check  write nothing; exit status 1 if a page is not what its results give

A set is what one run of libxccl/bench/gpu_run.sh left: perf-<ranks>-<route>.json of xccl-perf, and
if they are there overhead.json (the bars) and cupy.json (mpi4py with CuPy arrays).
"""

import argparse
import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "libxccl/tools/compare"))
from xccl_compare.words import ccl_version, human  # noqa: E402

ROUTE_ORDER = ("mpi", "xccl")


def micros(t):
    return f"{t:,.0f}" if t >= 1000 else f"{t:.1f}"


def version(ccl):
    if ccl is None:
        return "none"
    return f"{ccl['name'].upper()} {ccl_version(ccl['version'])}"


def load_runs(folder):
    """{ranks: {route: run}}; a set that holds two runs of one kind is refused."""
    runs = {}
    for path in sorted(folder.glob("perf-*.json")):
        run = json.loads(path.read_text())
        if run.get("schema") != "xccl-perf-1":
            raise SystemExit(f"{path}: this is no result of xccl-perf")
        if not run["passed"]:
            raise SystemExit(f"{path}: this run failed; results that were not verified stay out")
        routes = runs.setdefault(len(run["ranks"]), {})
        if run["route"] in routes:
            raise SystemExit(f"{path}: there are two runs of route {run['route']}")
        routes[run["route"]] = run
    return runs


def head(name, runs):
    """What was measured, on what, when and with what."""
    every = [run for routes in runs.values() for run in routes.values()]
    first = every[0]
    devices = sorted({r.get("device_name", "none") for run in every for r in run["ranks"]})
    libraries = sorted({version(run["ccl"]) for run in every if run["ccl"]})
    dates = sorted({run["date"][:10] for run in every})
    kind = f", simulated ({first['simulated']})" if first["simulated"] else ""
    options = first["options"]
    checked = all(r["verified"] for run in every for r in run["results"])
    ranks = max(len(run["ranks"]) for run in every)
    yield f"<!-- Made by render.py from the JSON in {name}/; do not edit. -->"
    yield f"# The vendor's library on {ranks} \N{MULTIPLICATION SIGN} {', '.join(devices)}"
    yield ""
    yield (
        f"[How to read this page](index.md#how-to-read-{name}). It has the vendor's library and MPI. "
        "Kernels of xccl's own, which carry most of these calls now: [Now](direct.md#now)."
    )
    yield ""
    yield f"- devices: {', '.join(devices)}{kind}; {first['machine']['cpu']}"
    mpi = first["mpi"].split(",")[0]
    yield f"- software: xccl {first['version']}, {', '.join(libraries)}, {mpi}"
    yield f"- date: {' to '.join(dict.fromkeys((dates[0], dates[-1])))}"
    yield (
        f"- {options['memory']} memory, {options['type']}, {options['op']}; times are averages "
        "over the calls and the ranks, from a barrier"
    )
    yield f"- every element of every size verified: {'yes' if checked else 'NO'}"


def table(coll, routes):
    """One collective on one number of ranks: a line a size."""
    order = [route for route in ROUTE_ORDER if route in routes]
    order += [route for route in sorted(routes) if route not in order]
    times = {
        route: {r["bytes"]: r for r in routes[route]["results"] if r.get("coll") == coll}
        for route in order
    }
    columns = ["size"]
    for route in order:
        columns += [f"{route}, µs", "path"]
    compare = "mpi" in times and "xccl" in times
    columns += ["mpi / xccl"] if compare else []
    columns += ["bus, GB/s"]
    yield "| " + " | ".join(columns) + " |"
    yield "|" + "---:|" * len(columns)
    best = "xccl" if "xccl" in times else order[-1]
    for size in sorted({size for route in order for size in times[route]}):
        cells = [human(size)]
        for route in order:
            r = times[route].get(size)
            cells += [micros(r["avg_us"]), r["path"]] if r else ["-", "-"]
        mine, other = times.get("xccl", {}).get(size), times.get("mpi", {}).get(size)
        if compare:
            both = mine and other and mine["avg_us"] > 0
            cells += [f"{other['avg_us'] / mine['avg_us']:.2f}" if both else "-"]
        shown = times[best].get(size)
        cells += [f"{shown['busbw_gbs']:.1f}" if shown else "-"]
        yield "| " + " | ".join(cells) + " |"


def collectives(runs):
    for ranks, routes in sorted(runs.items()):
        yield ""
        yield f"## {ranks} ranks"
        colls = dict.fromkeys(
            r["coll"] for run in routes.values() for r in run["results"] if "coll" in r
        )
        for coll in colls:
            yield ""
            yield f"### {coll}, {ranks} ranks"
            yield ""
            yield from table(coll, routes)


def bars(path):
    """What the library costs, against what it may."""
    if not path.exists():
        return
    yield ""
    yield "## What the library costs"
    yield ""
    yield "| | without | with | extra | limit | |"
    yield "|---|---:|---:|---:|---:|---|"
    for run in json.loads(path.read_text())["runs"]:
        for bar in run["bars"]:
            limit = f"{bar['limit']:g} {bar['unit']}" if "limit" in bar else "-"
            yield (
                f"| {bar['name']} | {bar['without']:.4g} | {bar['with']:.4g} | "
                f"{bar['measured']:.3g} {bar['unit']} | {limit} | {bar['verdict']} |"
            )


def cupy(path):
    if not path.exists():
        return
    run = json.loads(path.read_text())
    yield ""
    yield f"## mpi4py with CuPy arrays, {run['ranks']} ranks"
    yield ""
    yield f"{run['mpi']}; CuPy {run['cupy']}; one call each, not averaged."
    yield ""
    yield "| | bytes | path | µs | |"
    yield "|---|---:|---|---:|---|"
    for r in run["results"]:
        right = "right" if r["right"] else "WRONG"
        yield f"| {r['coll']} | {r['bytes']} | {r['path']} | {micros(r['us'])} | {right} |"


def page(folder):
    runs = load_runs(folder)
    if not runs:
        raise SystemExit(f"{folder}: there is no perf-*.json")
    lines = [
        *head(folder.name, runs),
        *bars(folder / "overhead.json"),
        *collectives(runs),
        *cupy(folder / "cupy.json"),
    ]
    return "\n".join(lines) + "\n"


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Render the pages of docs/benchmarks.")
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    parser.add_argument("--folder", type=Path, default=HERE, help="where the sets are")
    options = parser.parse_args(arguments)
    stale = []
    for folder in sorted(path for path in options.folder.iterdir() if path.is_dir()):
        if not any(folder.glob("*.json")):
            continue
        target, text = folder.with_suffix(".md"), page(folder)
        if not target.exists() or target.read_text() != text:
            stale.append(target.name)
            if not options.check:
                target.write_text(text)
    if options.check and stale:
        print(
            f"render.py: not what their results give: {', '.join(stale)}; run it without --check"
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
