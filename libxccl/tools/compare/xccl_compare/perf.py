# SPDX-License-Identifier: BSD-3-Clause
"""xccl-perf as the measuring program: its options, and what it writes."""

import json
import os

# Bus bandwidth per bytes and time, as nccl-tests has it; n ranks.
TWICE = ("allreduce",)
PLAIN = ("bcast", "reduce")


class Broken(Exception):
    """A file that does not hold what it should."""


class Perf:
    """Every launch is verified: before its times are taken, so that they are not disturbed."""

    name = "xccl-perf"
    suffix = ".json"
    verifies_apart = False  # no launch is for verification alone

    def __init__(self, prefix, iters):
        self.program = os.path.join(prefix, "bin/xccl-perf")
        self.iters = iters

    @staticmethod
    def bus(coll, n):
        """Bytes on the bus for each byte of the size, on n ranks."""
        if coll in TWICE:
            return 2 * (n - 1) / n
        return 1.0 if coll in PLAIN else float(n - 1)  # a size is what one rank has, or each pair

    @staticmethod
    def validates(route):
        return True

    def why_not(self, route, colls):
        return None

    def programs(self, one, colls, target):
        """What a launch starts, one after the other, to leave target."""
        out = [self.program, "--coll", ",".join(colls)]
        out += ["--min", str(one.series.least), "--max", str(one.series.most)]
        iters = self.iters if one.round else 1
        out += ["--factor", f"{one.series.factor:g}", "--iters", str(iters)]
        if one.case.groups:
            out += ["--groups", one.case.groups]
        if one.variant.route == "vendor":
            out.append("--vendor")
        return [[*out, "--json", target]]

    def read(self, path):
        """(rows, facts) of a launch that ended well. Raises Broken."""
        try:
            with open(path, encoding="utf-8") as f:
                run = json.load(f)
            if run["schema"] != "xccl-perf-1" or not run["passed"]:
                raise Broken(f"{path}: no result of a run that passed")
            rows = [
                {
                    "coll": row["coll"],
                    "bytes": row["bytes"],
                    "us": row["avg_us"],
                    "path": row["path"],
                    "verified": row["verified"] is True,
                }
                for row in run["results"]
            ]
            facts = {
                key: run[key] for key in ("mpi", "mpi_family", "machine", "ranks", "simulated")
            }
            facts["ccl"], facts["type"] = run["ccl"], run["options"]["type"]
        except FileNotFoundError as error:
            raise Broken(
                f"{path}: no result of xccl-perf: it was not written; "
                "does the launcher start the program that follows it?"
            ) from error
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise Broken(
                f"{path}: no result of xccl-perf ({type(error).__name__}: {error})"
            ) from error
        return rows, facts
