#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What a user waits for: module load xccl, and sourcing env/xccl.*: bench_env.py [out.json]

Each figure is the difference between two scripts that differ in one line, run in turns; of the
repetitions the median counts. Lines "bar|..." are for ci/bench; exit status 1: a bar is missed.
"""

import json
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

from site_shells import LMOD_INIT, SHELLS
from site_tree import install

REPEAT = 15
SOURCE_BAR_MS = 50
MODULE_BAR_MS = 60


def one(shell, lines, folder, env):
    start = time.perf_counter()
    shell.run(lines, folder, env)
    return (time.perf_counter() - start) * 1e3


def compare(shell, without, lines, folder, env):
    """Median milliseconds of the two scripts."""
    pairs = [
        (one(shell, without, folder, env), one(shell, lines, folder, env)) for _ in range(REPEAT)
    ]
    return tuple(statistics.median(column) for column in zip(*pairs))


def rows(prefix, folder):
    """(what, without, with, bar) of everything this machine can measure."""
    for shell in SHELLS:
        if shutil.which(shell.program) is None:
            continue
        env = {"XCCL_SITE": "", "SLURM_CLUSTER_NAME": "juwelsbooster", "LD_LIBRARY_PATH": "/x"}
        lines = shell.xccl(prefix)
        what = f"source env/xccl in {shell.name}"
        yield (what, *compare(shell, ["true"], lines, folder, env), SOURCE_BAR_MS)
    if LMOD_INIT.is_dir():
        (folder / "stack/empty").mkdir(parents=True)
        (folder / "stack/empty/1.0.lua").write_text("-- sets nothing\n")
        bash = next(shell for shell in SHELLS if shell.name == "bash")
        start = bash.start_lmod(folder / "stack", prefix / "share/xccl/modulefiles")
        env = {"XCCL_SITE": "sim"}
        pair = compare(
            bash, [*start, "module load empty"], [*start, "module load xccl"], folder, env
        )
        yield ("module load xccl, against an empty module", *pair, MODULE_BAR_MS)


def main(arguments):
    missed, report = False, []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prefix = install(folder / "tree")
        for what, without, with_it, bar in rows(prefix, folder):
            met = with_it - without <= bar
            missed |= not met
            times = "|".join(f"{ms:.1f}" for ms in (without, with_it, with_it - without))
            print(f"bar|{what}|{times}|{bar}|ms|{'met' if met else 'MISSED'}")
            report.append({"what": what, "without_ms": without, "with_ms": with_it, "bar_ms": bar})
    if arguments:
        Path(arguments[0]).write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
