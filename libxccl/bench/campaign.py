# SPDX-License-Identifier: BSD-3-Clause
"""Random calls and messages on simulated devices, as many as the time allows.

campaign.py BUILD --seconds N [--calls N] [--messages N] [--seed N] [--cores N] [--json FILE]

BUILD has the builds `release` and `asan` of campaign.sh. Jobs of mpi_random and mpi_messages, each
with a seed and a variant of its own, run side by side until the numbers of calls and messages are
reached or the time is over. The first jobs are small; later ones have as many calls as make them
take --length seconds, so that little time goes into starting them. A build that cannot run at all
is left out after one try. Exit status: 0 if nothing failed, 1 otherwise. What the time did not
suffice for is no failure; the summary says it.
"""

import argparse
import contextlib
import itertools
import json
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SCHEMA = "xccl-campaign-1"
CCL = {"XCCL_TUNE": "*:*:*:2-inf:ccl#*:*:*:*:mpi"}
DIRECT = {"XCCL_TUNE": "*:*:*:2-8:direct#*:*:*:2-inf:ccl#*:*:*:*:mpi", "XCCL_DIRECT": "on"}
MIXED = {"XCCL_MEMORY": "mixed"}
# Runtime, options of the program, and variables.
VARIANTS = {
    "calls": [
        ("cuda", "", CCL),
        ("cuda", "", DIRECT),
        ("cuda", "--blocking", CCL),
        ("cuda", "--blocking", DIRECT),
        ("cuda", "--blocking", {**DIRECT, "XCCL_DIRECT_COPIES": "16"}),
        ("cuda", "--mixed", {**DIRECT, **MIXED}),
        ("cuda", "--threads 2", CCL),
        ("cuda", "--threads 2", DIRECT),
        ("cuda", "", {**DIRECT, "XCCL_SIM_NODES": "2"}),
        ("cuda", "--crowd", DIRECT),
        ("cuda", "--large", CCL),
        ("cuda", "--large", {**DIRECT, "XCCL_CCL": "none"}),
        ("rocm", "", CCL),
        ("rocm", "", DIRECT),
        ("hpu", "", CCL),
    ],
    "messages": [
        ("cuda", "", {}),
        ("cuda", "", {"XCCL_RENDEZVOUS": "2000"}),
        ("cuda", "", {"XCCL_RENDEZVOUS": "240"}),
        ("cuda", "", {"XCCL_P2P_PUSH": "on"}),
        ("cuda", "--threads 2", {}),
        ("cuda", "--threads 2", {"XCCL_RENDEZVOUS": "240"}),
        ("cuda", "", {"XCCL_P2P": "staged"}),
        ("cuda", "", {"XCCL_SIM_NODES": "2"}),
        ("cuda", "", {"XCCL_DIRECT": "off"}),
        ("cuda", "", {"XCCL_DIRECT_LINGER": "1000", "XCCL_RENDEZVOUS": "2000"}),
        ("rocm", "", {"XCCL_DIRECT_LINGER": "500"}),
        ("hpu", "", {}),
    ],
}
PROGRAMS = {"calls": "mpi_random", "messages": "mpi_messages"}
BUILDS = ("release", "asan")
# Of first jobs: calls of mpi_random, and rounds of mpi_messages, which have ten messages each.
SIZES = {("calls", "release"): 600, ("calls", "asan"): 150}
SIZES.update({("messages", "release"): 200, ("messages", "asan"): 50})
GROWTH = 8  # the most by which a job is larger than one before: mostly that one was starting up
CAUTION = 2  # how much smaller than others' a variant's first job is: it may be slower
LARGE = 40  # times what others take: calls of megabytes
LONGEST = 20  # seconds that a job is made for
SHARE = 25  # and not more than this part of the campaign
RANKS = (2, 3, 4, 5, 6)
ASAN_EVERY = 4
DEVICES = 8
NO_PLUGINS = "-cuda,-nvml,-opencl,-gl,-rsmi,-levelzero,-pci"
SHARED_PER_CORE = 32 << 20  # bytes of shared memory that the jobs on a core need at most
SHARED = "/dev/shm"
TAIL = 4000
PATIENCE = 3  # seconds for jobs to end in
LAST = 6  # seconds before that in which no job is started any more
ROOM = 0.5  # of the time that is left, what a job may take
FIRST_LIMIT = 60  # seconds for the first job of a build
SAID = 500  # characters of the output of one that does not start
SHOWN = 5  # failures that are printed; all are in the file
COUNTED = re.compile(r"(\d+) checks, (\d+) failures")
MADE = {
    "calls": re.compile(r"^(\d+) calls$", re.M),
    "messages": re.compile(r"^(\d+) messages$", re.M),
}
# Lines that may stand long before the end: of sanitizers and of the library.
ERROR = re.compile(r"^.*(?:runtime error:|ERROR: AddressSanitizer|xccl.*error).*$", re.M)
# Of the loader and of a sanitizer that cannot run.
BROKEN = re.compile(r"^.*(?:cannot be preloaded|does not come first|cannot open shared).*$", re.M)
# Open MPI 4.1 may say so of a rank that ended well, on a machine under load.
GOODBYE_LOST = "exiting improperly"


def sanitizer(facts, program):
    """The library that has to be loaded first: the one that the loader takes for the program.

    What the compiler names may be a linker script, which cannot be preloaded.
    """
    if not facts["sanitizer"]:
        return ""
    listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=False)
    found = re.search(r"=> (\S*lib[at]san\S*)", listed.stdout)
    return os.path.realpath(found.group(1) if found else facts["sanitizer"])


class Job:
    """One run of a program on a few ranks."""

    def __init__(self, number, kind, build, size, arguments, *, seed=None):
        self.place = number % len(arguments.chosen[kind])
        runtime, options, variables = arguments.chosen[kind][self.place]
        self.kind, self.build, self.size = kind, build, size
        self.seed = arguments.seed + number if seed is None else seed
        self.ranks = RANKS[number % len(RANKS)]
        self.variant = " ".join(
            filter(None, [runtime, options, *(f"{k}={v}" for k, v in variables.items())])
        )
        self.facts = json.loads((arguments.build / build / "test/mpi/mpi-tests.json").read_text())
        self.settings = self.environment(runtime, variables)
        program = f"{self.facts['programs']}/{PROGRAMS[kind]}-openmpi"
        libraries = [sanitizer(self.facts, program), f"{self.facts['stage']}/lib/libxccl-mpi.so"]
        self.command = [
            self.facts["families"]["openmpi"]["mpiexec"],
            *("--oversubscribe", "--bind-to", "none", "-n", str(self.ranks), "env"),
            # mpirun, called by its path, puts its prefix's libraries first: a real driver may be there.
            f"LD_LIBRARY_PATH={self.settings['LD_LIBRARY_PATH']}",
            "LD_PRELOAD=" + ":".join(filter(None, libraries)),
            *(program, runtime, str(self.seed), str(size), *options.split()),
        ]
        self.weight = self.ranks * (2 if "--threads" in options else 1)
        self.timeout = arguments.timeout

    def environment(self, runtime, variables):
        """What differs from the caller's environment, so that a job can be repeated by hand."""
        folder = f"{self.facts['stage']}/lib/xccl/sim/{runtime}"
        path = ":".join(filter(None, [folder, os.environ.get("LD_LIBRARY_PATH")]))
        return {
            "LD_LIBRARY_PATH": path,
            "XCCL_SIM": f"{runtime}:{DEVICES}",
            "XCCL_COMM_CREATE": "first",
            "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0",
            "UBSAN_OPTIONS": "print_stacktrace=1",
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_mpi_yield_when_idle": "1",
            "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
            # Each process of Open MPI starts what it finds: real GPUs, UCX, the X server.
            "OMPI_MCA_pml": "ob1",
            "OMPI_MCA_btl": "self,vader",
            "HWLOC_COMPONENTS": NO_PLUGINS,
            "RES_OPTIONS": "timeout:1 attempts:1",  # where no name server answers
            **variables,
        }

    def start(self, folder):
        """Its output goes to a file, so that nobody has to read it meanwhile."""
        self.folder = tempfile.mkdtemp(prefix="job-", dir=folder)
        self.output = Path(self.folder, "output")
        inherited = {
            k: v for k, v in os.environ.items() if not k.startswith(("XCCL_", "LD_PRELOAD"))
        }
        # Open MPI's segments: /dev/shm of a container may be small.
        private = {
            "TMPDIR": self.folder,
            "OMPI_MCA_btl_vader_backing_directory": self.folder,
        }
        with self.output.open("wb") as target:
            self.process = subprocess.Popen(
                self.command,
                env={**inherited, **private, **self.settings},
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=target,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.begun = time.monotonic()

    def seconds(self):
        return time.monotonic() - self.begun

    def signal(self, number):
        """mpirun hands SIGTERM on to its ranks, which say what they were at."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def judge(self, why=None):
        """What came of it; `why`: it was ended by us."""
        text = self.output.read_text(errors="replace")
        shutil.rmtree(self.folder, ignore_errors=True)
        counted, made = COUNTED.search(text), MADE[self.kind].search(text)
        self.length = self.seconds()
        self.checks = int(counted.group(1)) if counted else 0
        self.failures = int(counted.group(2)) if counted else 0
        self.made = int(made.group(1)) if made else 0
        self.why = why
        if why is None and self.failures > 0:
            self.why = f"{self.failures} checks failed"
        elif why is None and self.process.returncode != 0:
            self.why = f"exit status {self.process.returncode}"
        elif why is None and (self.checks == 0 or self.made == 0):
            self.why = "nothing was checked"
        self.goodbye_lost = self.failures == 0 < self.checks and GOODBYE_LOST in text
        self.tail = text[-TAIL:]
        self.errors = (BROKEN.findall(text) + ERROR.findall(text))[:SHOWN]

    def described(self):
        settings = [f"{k}={v}" for k, v in self.settings.items()]
        return {
            "program": PROGRAMS[self.kind],
            "build": self.build,
            "variant": self.variant,
            "ranks": self.ranks,
            "seed": self.seed,
            "why": self.why,
            "errors": self.errors,
            "repeat": shlex.join(["env", *settings, *self.command]),
            "tail": self.tail,
        }


def end(jobs):
    """All at once, and a few seconds later by force."""
    for job in jobs:
        job.signal(signal.SIGTERM)
    until = time.monotonic() + PATIENCE
    while any(job.process.poll() is None for job in jobs) and time.monotonic() < until:
        time.sleep(0.05)
    for job in jobs:
        job.signal(signal.SIGKILL)
        job.process.wait()


class Campaign:
    """Jobs side by side, until enough is done or the time is over."""

    def __init__(self, arguments):
        self.arguments = arguments
        self.goals = {"calls": arguments.calls, "messages": arguments.messages}
        self.begun = time.monotonic()
        self.running, self.over, self.cut_off = [], [], []
        self.numbers = itertools.count()
        self.started = dict.fromkeys(SIZES, 0)
        self.sizes = {}  # of the next job, by kind, build and variant
        self.unusable = {}

    def left(self):
        return self.arguments.seconds - (time.monotonic() - self.begun)

    def made(self, kind):
        return sum(job.made for job in self.over if job.kind == kind)

    def try_builds(self):
        """A build whose programs cannot even start gets no jobs."""
        kind = "messages" if self.arguments.chosen["messages"] else "calls"
        for build in BUILDS:
            job = Job(0, kind, build, 1, self.arguments, seed=1)
            job.start(self.arguments.folder)
            try:
                job.process.wait(FIRST_LIMIT)
                job.judge()
            except subprocess.TimeoutExpired:
                end([job])
                job.judge(f"no end after {FIRST_LIMIT} s")
            print(f"{build}: a first job of {job.ranks} ranks took {job.length:.1f} s", flush=True)
            if job.why:
                self.unusable[build] = job.described()
                says = "; ".join(job.errors) or job.tail.strip()[-SAID:]
                print(f"UNUSABLE: {build}: {job.why}: {says}", flush=True)

    def is_large(self, kind, place):
        return "--large" in self.arguments.chosen[kind][place][1]

    def next_size(self, kind, build, place):
        """What takes as long as asked for, by the jobs so far, and ends before the campaign."""
        large = self.is_large(kind, place)
        known = [
            n // CAUTION
            for (k, b, p), n in self.sizes.items()
            if (k, b) == (kind, build) and self.is_large(k, p) == large
        ]
        first = min(known, default=SIZES[kind, build] // (LARGE if large else 1))
        size = self.sizes.get((kind, build, place), first)
        room = ROOM * (self.left() - PATIENCE) / self.arguments.length
        return max(1, int(size * min(1, room)))

    def learn(self, job):
        if job.why is None:
            factor = min(self.arguments.length / max(job.length, 0.01), GROWTH)
            self.sizes[job.kind, job.build, job.place] = max(1, int(job.size * factor))

    def turns(self, kind):
        return sum(n for (k, _), n in self.started.items() if k == kind)

    def next_kind(self):
        """The one that is furthest behind, with what its running jobs will most likely bring."""
        shares = {}
        for kind, goal in self.goals.items():
            ended = [job for job in self.over if job.kind == kind]
            under_way = sum(job.kind == kind for job in self.running)
            each = self.made(kind) / len(ended) if ended else SIZES[kind, "asan"]
            if goal > 0:
                shares[kind] = (self.made(kind) + under_way * each) / goal
        kind = min(shares, key=lambda k: (shares[k], self.turns(k)), default=None)
        return kind if kind and shares[kind] < 1 else None

    def next_build(self, kind):
        build = "asan" if self.turns(kind) % ASAN_EVERY == ASAN_EVERY - 1 else "release"
        return build if build not in self.unusable else next(b for b in BUILDS if b != build)

    def start_one(self, kind):
        build, number = self.next_build(kind), next(self.numbers)
        place = number % len(self.arguments.chosen[kind])
        size = self.next_size(kind, build, place)
        job = Job(number, kind, build, size, self.arguments)
        self.started[kind, build] += 1
        job.start(self.arguments.folder)
        self.running.append(job)

    def fill(self):
        while (kind := self.next_kind()) is not None:
            busy = sum(job.weight for job in self.running)
            last = PATIENCE + min(LAST, self.arguments.length)
            if (self.running and busy >= self.arguments.cores) or self.left() < last:
                break
            self.start_one(kind)

    def reap(self):
        for job in list(self.running):
            why = None
            if job.process.poll() is None:
                if job.seconds() < job.timeout:
                    continue
                why = f"no end after {job.timeout} s"
                end([job])
            self.running.remove(job)
            job.judge(why)
            self.learn(job)
            self.over.append(job)
            if job.why:
                print(
                    f"FAILED: {PROGRAMS[job.kind]}, {job.build}, {job.ranks} ranks, "
                    f"{job.variant}, seed {job.seed}: {job.why}",
                    flush=True,
                )

    def run(self):
        said = 0.0
        self.try_builds()
        while self.left() > PATIENCE and len(self.unusable) < len(BUILDS):
            self.fill()
            if not self.running:
                break
            time.sleep(0.05)
            self.reap()
            if time.monotonic() - said > 10:
                said = time.monotonic()
                print(
                    f"{self.left():.0f} s left: {self.made('calls')} calls, "
                    f"{self.made('messages')} messages, {len(self.over)} jobs",
                    flush=True,
                )
        end(self.running)
        for job in self.running:
            job.judge("the time of the campaign was over")
            self.cut_off.append(job)

    def sums(self, jobs):
        return {
            "jobs": len(jobs),
            "calls": sum(job.made for job in jobs if job.kind == "calls"),
            "messages": sum(job.made for job in jobs if job.kind == "messages"),
            "checks": sum(job.checks for job in jobs),
            "rank_seconds": round(sum(job.ranks * job.length for job in jobs), 1),
            "failed_jobs": sum(job.why is not None for job in jobs),
        }

    def grouped(self, key):
        names = sorted({key(job) for job in self.over})
        return {name: self.sums([j for j in self.over if key(j) == name]) for name in names}

    def summary(self):
        totals = self.sums(self.over)
        return {
            "schema": SCHEMA,
            "seed": self.arguments.seed,
            "seeds": f"{self.arguments.seed} to {self.arguments.seed + sum(self.started.values()) - 1}",
            "cores": self.arguments.cores,
            "seconds": round(time.monotonic() - self.begun, 1),
            "goals": self.goals,
            "reached": all(totals[kind] >= goal for kind, goal in self.goals.items()),
            "totals": totals,
            "builds": self.grouped(lambda job: job.build),
            "ranks": self.grouped(lambda job: str(job.ranks)),
            "variants": self.grouped(lambda job: f"{PROGRAMS[job.kind]} {job.variant}"),
            "unusable": self.unusable,
            "failed": [job.described() for job in self.over if job.why],
            "without_finalize": [job.seed for job in self.over if job.goodbye_lost],
            "cut_off": [job.described() for job in self.cut_off],
        }


def read_arguments(words):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=Path, metavar="BUILD")
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--calls", type=int, default=1000000)
    parser.add_argument("--messages", type=int, default=1000000)
    parser.add_argument("--seed", type=int, default=random.randrange(1, 1 << 30))
    parser.add_argument("--cores", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--timeout", type=float, default=180, help="seconds that one job may take")
    parser.add_argument("--length", type=float, help="seconds that a job is made for")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--variants", default="", help="only those with this word in them")
    arguments = parser.parse_args(words)
    arguments.build = arguments.build.resolve()
    arguments.length = arguments.length or min(LONGEST, arguments.seconds / SHARE)
    arguments.chosen = {
        kind: [v for v in variants if arguments.variants in f"{v[0]} {v[1]} {v[2]}"]
        for kind, variants in VARIANTS.items()
    }
    for kind, variants in arguments.chosen.items():
        if not variants and getattr(arguments, kind) > 0:
            parser.error(f"no variant of {kind} has '{arguments.variants}' in it: use --{kind} 0")
    return arguments


def folder_for_jobs(cores):
    """Shared memory where there is enough: a disk writes Open MPI's segments out again and again."""
    with contextlib.suppress(OSError):
        if shutil.disk_usage(SHARED).free >= cores * SHARED_PER_CORE:
            return SHARED
    return None


def main(words):
    arguments = read_arguments(words)
    shared = folder_for_jobs(arguments.cores)
    print(
        f"seed {arguments.seed}, {arguments.cores} cores, jobs of {arguments.length:.0f} s "
        f"in {shared or tempfile.gettempdir()}",
        flush=True,
    )
    with tempfile.TemporaryDirectory(prefix="xccl-campaign-", dir=shared) as folder:
        arguments.folder = folder
        campaign = Campaign(arguments)
        campaign.run()
    summary = campaign.summary()
    if arguments.json:
        arguments.json.write_text(json.dumps(summary, indent=1) + "\n")
    totals = summary["totals"]
    for failed in summary["failed"][:SHOWN]:
        print(f"--- seed {failed['seed']}: {failed['why']}\n{failed['repeat']}\n{failed['tail']}")
    print(
        f"{totals['calls']} of {arguments.calls} calls, {totals['messages']} of "
        f"{arguments.messages} messages, {totals['checks']} checks, {totals['jobs']} jobs, "
        f"{totals['failed_jobs']} failed, {len(summary['without_finalize'])} of them or others "
        f"without MPI_Finalize, {len(summary['cut_off'])} cut off"
        + "".join(f", build {build} is unusable" for build in summary["unusable"])
    )
    failed = totals["failed_jobs"] > 0 or totals["checks"] == 0 or summary["unusable"]
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
