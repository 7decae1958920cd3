# SPDX-License-Identifier: BSD-3-Clause
"""What a folder of results says, on one screen: summary.py FOLDER"""

import json
import sys
from pathlib import Path

SHOWN = (4, 1 << 10, 64 << 10, 1 << 20, 16 << 20, 256 << 20)


def load(path):
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError) as error:
        print(f"{path.name}: {error}")
        return None


def human(n):
    for unit, size in (("M", 1 << 20), ("K", 1 << 10)):
        if n >= size:
            return f"{n // size}{unit}"
    return str(n)


def times(run):
    return {(r["coll"], r["bytes"]): r for r in run["results"] if "avg_us" in r}


def print_ranks(ranks, runs):
    """One line a collective: µs through xccl, and how many times as long MPI alone takes."""
    xccl, mpi = times(runs["xccl"]), times(runs.get("mpi", {"results": []}))
    wrong = sum(r["verified"] is not True for run in runs.values() for r in run["results"])
    print(f"\n{ranks} GPUs: us through xccl (mpi/xccl); {wrong} not verified")
    print(f"{'':22}" + "".join(f"{human(b):>17}" for b in SHOWN))
    for coll in dict.fromkeys(coll for coll, _ in xccl):
        line = f"{coll:22}"
        for size in SHOWN:
            mine, other = xccl.get((coll, size)), mpi.get((coll, size))
            text = "-" if mine is None else f"{mine['avg_us']:.1f}"
            if mine and other:
                text += f" ({other['avg_us'] / mine['avg_us']:.1f}x)"
            line += f"{text:>17}"
        print(line)


def main(folder):
    found = {}
    for path in sorted(Path(folder).glob("perf-*.json")):
        run = load(path)
        if run is not None:
            found.setdefault(len(run["ranks"]), {})[run["route"]] = run
    for ranks, runs in sorted(found.items()):
        if "xccl" in runs:
            paths = sorted({r["path"] for r in runs["xccl"]["results"]})
            print(f"paths of route xccl on {ranks} GPUs: {', '.join(paths)}")
            print_ranks(ranks, runs)
    bars = load(Path(folder) / "overhead.json")
    for run in bars["runs"] if bars else []:
        for bar in run["bars"]:
            print(
                f"{bar['name']:58} {bar['without']:10.4g} {bar['with']:10.4g} "
                f"{bar['measured']:8.3g} {bar['unit']:3} {bar.get('limit', '-')!s:>5} "
                f"{bar['verdict']}"
            )


if __name__ == "__main__":
    main(sys.argv[1])
