# SPDX-License-Identifier: BSD-3-Clause
"""The four routes and the vendor's library under one MPI: who serves each call, what xccl-doctor says, the times.

routes.py [--osu FOLDER] [--coll LIST] [--rounds N] [--iters N] [--xccl PREFIX] [--output FOLDER] -- mpirun -n 4

1. A job for each route and collective, in the environment of env/xccl.sh, with all logs on and results verified.
   UCC's trace and xccl's log tell who served the calls (served.txt).
2. xccl-doctor reads the log of each job by itself, and must find nothing wrong. Then faults are planted, and it must
   name each.
3. xccl-compare measures the routes in turns (compare/).

The programs are OSU's below FOLDER, else xccl-perf. The modules of the MPI are loaded, and none of xccl's. Routes that
cannot run here are named and left out. Exit status 1 if anything was not as expected (verdicts.txt).
"""

import re
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

from wiring import Machine, Verdicts, Wrong, new_parser, read_arguments

ROUTES = ("mpi", "ucc", "ucc-ccl", "xccl")
COLLS = "allreduce,bcast,reduce,allgather,alltoall,reduce_scatter_block,reduce_scatter"
LARGEST_PROVED = 256 << 10
# coll_init: Allreduce sum: src={0x7f.., 1, float32, Cuda}, dst={..}; CL_BASIC {TL_NCCL}, team_id 32768
UCC = re.compile(r"coll_init: (\w+)[^:]*: .*\b(?:Cuda|Rocm).*; CL_\w+ \{([\w, ]+)\}")
XCCL = re.compile(r"xccl\[\d+\] info: (\w+) of .+? in (?:cuda|rocm|hpu) on \d+ ranks: ([\w-]+)")
WRONG = re.compile(r"^\d+ .*\bFail\b|DATA VALIDATION ERROR|\bWRONG\b", re.M)
OVER_VENDOR = {"TL_NCCL", "TL_RCCL"}
# UCC takes MPI_Reduce_scatter as reduce_scatterv, which its transport over NCCL does not have.
KNOWN = {("ucc-ccl", "reduce_scatter"): {"ucc-other-transport", "ucc-fallback"}}
ON_PURPOSE = {"net-leftover"}


def served(text):
    """{collective: Counter of what served it} from UCC's trace and xccl's log of one job."""
    out = defaultdict(Counter)
    for coll, transports in UCC.findall(text):
        out[coll.lower()].update(transports.replace(" ", "").split(","))
    for coll, path in XCCL.findall(text):
        out[coll][path] += 1
    return out


def as_expected(route, coll, by):
    """Whether a job of this collective was served as its route promises. by: set of names."""
    over_ucc = {name for name in by if name.startswith("TL_")}
    over_xccl = {name for name in by - over_ucc if not name.startswith("mpi")}
    if route == "mpi":
        return not over_ucc and not over_xccl
    if route == "xccl":
        return bool(over_xccl) and not over_ucc
    if route == "ucc":
        return bool(over_ucc) and not by & OVER_VENDOR
    return bool(by & OVER_VENDOR) or (bool(over_ucc) and (route, coll) in KNOWN)


def find_osu(folder, name):
    found = sorted(Path(folder).rglob(name))
    if not found:
        raise Wrong(f"{folder} has no {name}: --osu names the folder of OSU's programs")
    return found[0]


class Proof:
    """One job a route and collective, and what its log tells."""

    def __init__(self, machine, given, verdicts):
        self.machine, self.given, self.verdicts = machine, given, verdicts
        self.colls = given.coll.split(",")
        self.table = defaultdict(dict)
        if given.osu:
            self.osu = {coll: find_osu(given.osu, f"osu_{coll}") for coll in self.colls}

    def program(self, coll):
        if not self.given.osu:
            size = str(min(self.given.max, LARGEST_PROVED))
            return [self.machine.tool("xccl-perf"), "--coll", coll, "--max", size, "--iters", "3"]
        sizes = f"4:{min(self.given.max, LARGEST_PROVED)}"
        return [self.osu[coll], "-d", self.given.device, "-T", "mpi_float", "-c", "-i", "2", "-x", "1",
                "-m", sizes]  # fmt: skip

    def log(self, route, coll):
        return self.machine.out / f"{route}-{coll}.log"

    def prove(self, route):
        for coll in self.colls:
            words = [*self.machine.xccl_run(), *self.program(coll)]
            status, text, _ = self.machine.job(route, words, f"{route}-{coll}")
            by = Counter()
            for counted in served(text).values():
                by.update(counted)
            # Where UCC serves a call, xccl has left it to MPI.
            names = {name for name in by if name.startswith("TL_")} or set(by)
            self.table[coll][route] = ", ".join(sorted(names)) or "-"
            good = status == 0 and not WRONG.search(text) and as_expected(route, coll, set(by))
            ended = f"status {status}" + (", WRONG RESULTS" if WRONG.search(text) else "")
            self.verdicts.say(
                good, f"{route}, {coll}: served by {self.table[coll][route]}; {ended}"
            )

    def check_logs(self, route):
        """Each job's own log must be in order for xccl-doctor."""
        for coll in self.colls:
            found = set(self.machine.doctor(route, f"{route}-{coll}", log=self.log(route, coll)))
            unexpected = found - ON_PURPOSE - KNOWN.get((route, coll), set())
            named = ", ".join(sorted(found - ON_PURPOSE)) or "nothing wrong"
            self.verdicts.say(not unexpected, f"{route}, {coll}: xccl-doctor finds {named}")

    def write(self, routes):
        lines = ["| call | " + " | ".join(routes) + " |", "|---" * (len(routes) + 1) + "|"]
        for coll in self.colls:
            lines.append(f"| {coll} | " + " | ".join(self.table[coll][r] for r in routes) + " |")
        (self.machine.out / "served.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def faults(machine, proof, routes):
    """(name, route, variables, log or None, finding that must be named)."""
    conf = machine.out / "planted-ucc.conf"
    conf.write_text("UCC_CL_BASIC_TLS=^sharp,nccl\n", encoding="utf-8")
    if "ucc-ccl" in routes:
        yield "ucc-off", "ucc-ccl", {"OMPI_MCA_coll_ucc_enable": "0"}, None, "ucc-disabled"
        yield "ucc-conf", "ucc-ccl", {"UCC_CONFIG_FILE": str(conf)}, None, "ucc-conf-hides-ccl"
        yield "ucc-tls", "ucc-ccl", {"UCC_TLS": "^nccl"}, None, "ucc-tls-without-ccl"
    if {"ucc", "ucc-ccl"} <= set(routes):
        other = proof.log("ucc", proof.colls[0])
        yield "other-transport", "ucc-ccl", {}, other, "ucc-other-transport"
    yield "ucc-beside", "xccl", {"OMPI_MCA_coll_ucc_enable": "1"}, None, "ucc-beside-xccl"


def compare_command(machine, given):
    words = [machine.tool("xccl-compare"), "--output", str(machine.out / "compare"), "--site", machine.site,
             "--coll", given.coll, "--min", "4", "--max", str(given.max), "--rounds", str(max(1, given.rounds)),
             "--timeout", str(machine.limit)]  # fmt: skip
    words += ["--iters", str(given.iters)]
    if machine.sim:
        words += ["--sim", machine.sim]
    if given.osu:
        words += ["--with", "osu", "--osu", given.osu]
    return [*words, "--no-plot"]


def left_out(text):
    """{route: why it cannot run here} from what xccl-compare --dry-run prints."""
    out = {}
    for names, reason in re.findall(r"^left out: ([\w, -]+): (.*)$", text, re.M):
        out.update({name.strip(): reason for name in names.split(",")})
    return out


def usable_routes(machine, given, verdicts):
    command = [*compare_command(machine, given), "--dry-run", "--", *machine.launcher]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Wrong(f"xccl-compare refuses: {(done.stderr or done.stdout).strip()}")
    missing = left_out(done.stdout)
    for route, reason in missing.items():
        verdicts.note(f"{route} is left out: {reason}")
    return [route for route in ROUTES if route not in missing]


def work(machine, given, verdicts):
    routes = usable_routes(machine, given, verdicts)
    proof = Proof(machine, given, verdicts)
    machine.describe()
    for route in routes:
        proof.prove(route)
    proof.write(routes)
    for route in routes:
        proof.check_logs(route)
    for name, route, variables, log, expected in faults(machine, proof, routes):
        found = machine.doctor(route, f"planted-{name}", variables, log)
        named = ", ".join(found) or "nothing"
        verdicts.say(expected in found, f"planted {name}: xccl-doctor names {named}")
    if given.rounds > 0:
        status = subprocess.call([*compare_command(machine, given), "--", *machine.launcher])
        verdicts.say(status == 0, f"xccl-compare: status {status}")


def main():
    parser = new_parser(__doc__, "xccl-routes")
    option = parser.add_argument
    option("--osu", metavar="FOLDER", help="OSU's programs lie below; else xccl-perf is used")
    option("--device", choices=("cuda", "rocm"), default="cuda", help="OSU's -d (%(default)s)")
    option("--coll", default=COLLS, metavar="LIST", help="(%(default)s)")
    option("--max", type=int, default=64 << 20, metavar="BYTES", help="(%(default)d)")
    option("--iters", type=int, default=100, help="timed calls of a size (%(default)d)")
    option("--rounds", type=int, default=6, help="of xccl-compare; 0: none (%(default)d)")
    given, launcher = read_arguments(parser)
    try:
        machine = Machine(given, launcher)
        verdicts = Verdicts(machine.out)
        work(machine, given, verdicts)
    except Wrong as wrong:
        parser.error(str(wrong))
    print(f"packed: {machine.pack()}")
    return verdicts.status()


if __name__ == "__main__":
    sys.exit(main())
