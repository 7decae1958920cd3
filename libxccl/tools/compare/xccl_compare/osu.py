# SPDX-License-Identifier: BSD-3-Clause
"""OSU's micro-benchmarks as the measuring program: their options, and what they print."""

import os
import re

from xccl_common import launchers

from .perf import PLAIN, TWICE, Broken

FOLDERS = ("", "collective", "c/mpi/collective/blocking", "mpi/collective/blocking",
           "c/mpi/collective", "mpi/collective", "c/xccl/collective", "xccl/collective",
           "libexec/osu-micro-benchmarks/mpi/collective",
           "libexec/osu-micro-benchmarks/xccl/collective")  # fmt: skip
TOTAL = (
    "reduce_scatter",
    "reduce_scatter_block",
)  # OSU's size is what a rank sends, of all blocks
ROW = re.compile(r"^(\d+)\s+(\d+(?:\.\d+)?)\b(.*)$", re.M)
PATH = re.compile(r"xccl\[\d+\] info: (\w+) of (.+?) in \w+ on (\d+) ranks: ([\w-]+)")
BOUNDS = re.compile(r"^([\d.]+) (B|KiB|MiB|GiB)(?: to ([\d.]+) (B|KiB|MiB|GiB))?$")
SIZES = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def paths_of(log):
    """[(collective, least size, the size that is no more in it, path)] from xccl's own log.

    The sizes are OSU's; xccl counts of the collectives in TOTAL what a rank receives.
    """
    out = []
    for coll, text, ranks, path in PATH.findall(log):
        found = BOUNDS.match(text)
        if found:
            low, unit, high, high_unit = found.groups()
            times = int(ranks) if coll in TOTAL else 1
            least = float(low) * SIZES[unit]
            end = float(high) * SIZES[high_unit] if high else least + 1
            out.append((coll, least * times, end * times, path))
    return out


# Calls before those that are timed: what is set up by the first ones shall be done.
WARM_UP = 10


class Osu:
    """Validation copies buffers between the calls: a launch of its own does it, and is not timed.

    osu_xccl_* know neither -c nor -T (up to 7.5): they reduce floats, and validate nothing.
    """

    name = "osu"
    suffix = ".txt"
    verifies_apart = True

    def __init__(self, folder, env, vendor, iters, verify_to=None):
        self.folder, self.env, self.iters, self.verify_to = folder, env, iters, verify_to
        self.device = "rocm" if vendor == "amd" else "cuda"

    @staticmethod
    def bus(coll, n):
        """Bytes on the bus for each byte of the size, on n ranks."""
        if coll in TWICE:
            return 2 * (n - 1) / n
        if coll in TOTAL:
            return (n - 1) / n
        return 1.0 if coll in PLAIN else float(n - 1)

    def find(self, name):
        if self.folder is None:
            return launchers.find_program("", self.env, name)
        paths = (os.path.join(self.folder, below, name) for below in FOLDERS)
        return next((path for path in paths if os.access(path, os.X_OK)), None)

    def program(self, route, coll):
        """OSU's program for MPI, or the one that calls the vendor's library."""
        names = [f"osu_{coll}"]
        if route == "vendor":  # renamed in 7.3
            names = [f"osu_{kind}_{coll}" for kind in ("xccl", "nccl", "rccl")]
        return next(filter(None, map(self.find, names)), None)

    @staticmethod
    def validates(route):
        return route != "vendor"

    def why_not(self, route, colls):
        for coll in colls:
            if self.program(route, coll) is None:
                stem = "osu_xccl_" if route == "vendor" else "osu_"
                where = self.folder or "PATH"
                return f"OSU's {stem}{coll} was not found in {where}; --osu names the folder"
        return None

    def programs(self, one, colls, target):
        """One or two programs a collective; target gets what they print."""
        out = []
        for coll in colls:
            program = self.program(one.variant.route, coll)
            words = ["-M", str(max(1 << 30, 4 * one.series.most))]
            if one.variant.route != "vendor" and has_option(program, b"mpi_float"):
                words += ["-T", "mpi_float"]  # else chars, which MPIs add with saturation
            for least, most, how in self.spans(one):
                out.append([program, "-d", self.device, "-m", f"{least}:{most}", *words, *how])
        return out

    def spans(self, one):
        """[(least size, largest, options)]: sizes that are validated, and those that are not."""
        least, most = one.series.least, one.series.most
        if one.round > 0:
            warm = max(WARM_UP, self.iters // 10)
            return [(least, most, ("-i", str(self.iters), "-x", str(warm)))]
        last = most if self.verify_to is None else min(self.verify_to, most)
        size = max(least, 1)
        while size <= last:  # OSU's sizes double
            size *= 2
        # Those beyond are called, too: xccl and UCC say which way they take them.
        parts = [(least, last, ("-i", "3", "-x", "1", "-c")), (size, most, ("-i", "3", "-x", "1"))]
        return [(low, high, how) for low, high, how in parts if low <= high]

    def read(self, path):
        """(rows, facts) from what was printed. Raises Broken."""
        try:
            with open(path, encoding="utf-8", errors="replace") as f:
                text = f.read()
        except OSError as error:
            raise Broken(f"{path}: {error.strerror}") from error
        known, rows = paths_of(text), []
        for part in re.split(r"^(?=# OSU )", text, flags=re.M):
            title = re.match(r"# OSU .*?\b(Allreduce|Bcast|Broadcast|Reduce_scatter_block|Reduce_scatter"
                             r"|ReduceScatter|Reduce|Allgatherv|Allgather|All-?to-?allv|All-?to-?all"
                             r"|Gatherv|Gather|Scatterv|Scatter)\b", part, re.I)  # fmt: skip
            if part.startswith("# OSU ") and not title:
                raise Broken(f"{path}: an unknown test of OSU's: {part.splitlines()[0][2:]}")
            if title:
                coll = title.group(1).lower().replace("broadcast", "bcast").replace("-", "")
                coll = coll.replace("reducescatter", "reduce_scatter")
                rows += [row_of(coll, *found, known) for found in ROW.findall(part)]
        if not rows:
            raise Broken(f"{path}: no table of OSU's in it")
        wrong = next((row for row in rows if row["verified"] is False), None)
        if wrong:
            raise Broken(
                "WRONG RESULT: {coll} of {bytes} bytes failed OSU's validation".format(**wrong)
            )
        return rows, {}


def row_of(coll, size, us, rest, known):
    size = int(size)
    # The last that was logged: the first calls of a communicator may have gone another way.
    path = next((p for c, low, end, p in known[::-1] if c == coll and low <= size < end), None)
    verified = {"pass": True, "fail": False}.get((rest.split() or [""])[-1].lower())
    return {"coll": coll, "bytes": size, "us": float(us), "path": path, "verified": verified}


def has_option(program, word):
    try:
        with open(program, "rb") as f:
            return word in f.read()
    except OSError:
        return False
