# SPDX-License-Identifier: BSD-3-Clause
"""How many messages and bytes it takes ranks to agree: agreement.py [--json FILE] RANKS ...

Open MPI counts the messages of each collective that xccl posts (its monitoring component), in jobs of so many ranks
on this machine. What follows for 1,000 to 10,000 ranks comes of the algorithms, which have to give the counted numbers,
too. Counts, not times. Needs mpicc.openmpi (or mpicc) and mpirun of Open MPI 4 or 5.
"""

import argparse
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

# Bytes of a rank: sizeof in comms/peer_info.c, comms/digest.h and comms/creation.c.
PEER_INFO, DIGEST, WHERE, DEVICE, ID = 368, 4224, 20, 4, 4228
BEFORE = [("gather", PEER_INFO), ("id", ID), ("gather", WHERE)]
NOW = [("combine", DIGEST), ("id", ID), ("combine", DEVICE)]
COLLECTIVES = {"gather": "MPI_Iallgather", "combine": "MPI_Iallreduce", "id": "MPI_Ibcast"}
FAR = (65, 256, 1000, 4000, 10000)
LINE = re.compile(r"^[IE]\s+(\d+)\s+\d+\s+\d+ bytes\s+(\d+) msgs sent", re.M)


def expected(what, ranks):
    """Messages that one rank sends at most, and all together."""
    depth = math.ceil(math.log2(ranks))
    if what == "gather":  # each to each
        return ranks - 1, ranks * (ranks - 1)
    # A binomial tree; combining goes up it and down again.
    return depth, (ranks - 1) * (2 if what == "combine" else 1)


def count(program, what, size, ranks):
    mpirun = shutil.which("mpirun.openmpi") or "mpirun"
    # A file for each rank: on one stream their lines would be mixed.
    files = program.parent / f"{what}.{ranks}"
    monitor = {
        "pml_monitoring_enable": 1,
        "pml_monitoring_enable_output": 3,
        "pml_monitoring_filename": files,
    }
    counted = [word for name, value in monitor.items() for word in ("--mca", name, str(value))]
    command = [
        mpirun,
        "--oversubscribe",
        *counted,
        "-n",
        str(ranks),
        str(program),
        what,
        str(size),
    ]
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    job = subprocess.run(
        command, env={**os.environ, **root}, capture_output=True, text=True, check=False
    )
    if job.returncode != 0:
        sys.exit(f"agreement.py: {' '.join(command)} ended with {job.returncode}:\n{job.stderr}")
    sent = [0] * ranks
    for file in files.parent.glob(f"{files.name}.*.prof"):
        for rank, messages in LINE.findall(file.read_text()):
            sent[int(rank)] += int(messages)
    return max(sent), sum(sent)


def build(folder):
    program = folder / "agreement"
    mpicc = shutil.which("mpicc.openmpi") or "mpicc"
    subprocess.run(
        [mpicc, "-O2", "-o", str(program), str(Path(__file__).with_suffix(".c"))], check=True
    )
    return program


def measured(sizes):
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        program = build(Path(folder))
        for ranks in sizes:
            for what, size in (("gather", PEER_INFO), ("combine", DIGEST), ("id", ID)):
                most, total = count(program, what, size, ranks)
                like = (most, total) == expected(what, ranks)
                rows.append({"ranks": ranks, "collective": COLLECTIVES[what], "bytes": size})
                rows[-1].update({"most": most, "total": total, "as_expected": like})
                print(
                    f"{ranks:6} ranks, {COLLECTIVES[what]:15} of {size:5} B: a rank sends at most {most:4}, all {total}"
                )
    return rows


def far():
    rows = []
    for ranks in FAR:
        for name, agreements in (("before", BEFORE), ("now", NOW)):
            most = sum(expected(what, ranks)[0] for what, _ in agreements)
            sent = sum(expected(what, ranks)[0] * size for what, size in agreements)
            held = sum(size * (ranks if what == "gather" else 1) for what, size in agreements)
            rows.append(
                {"ranks": ranks, "which": name, "messages": most, "bytes": sent, "held": held}
            )
            print(
                f"{ranks:6} ranks, {name:6}: {most:6} messages and {sent:8} B sent by a rank at most, {held:8} B held"
            )
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ranks", nargs="+", type=int, metavar="RANKS")
    parser.add_argument("--json", metavar="FILE", help="write the counts there too")
    options = parser.parse_args()
    if min(options.ranks) < 5:
        parser.error("RANKS: 5 or more; among fewer, Open MPI sends along a line")
    result = {"counted": measured(options.ranks), "computed": far()}
    if options.json:
        Path(options.json).write_text(json.dumps(result, indent=1) + "\n")
    wrong = [r for r in result["counted"] if not r["as_expected"]]
    if wrong:
        sys.exit(
            f"agreement.py: {len(wrong)} counts are not what the algorithms give, so what was computed is not true here"
        )


if __name__ == "__main__":
    main()
