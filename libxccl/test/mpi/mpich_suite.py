# SPDX-License-Identifier: BSD-3-Clause
"""Run MPICH's own tests with and without the interposer, and compare test by test.

    mpich_suite.py [--mpi openmpi,mpich] [--dirs coll,comm,...] [--modes plain,xccl] [--json FILE]

MPICH_TESTS names a checkout of MPICH, the folder that contains test/mpi. Its programs are compiled
one by one, without its configure; what one of them needs beyond that makes it "not built". The
modes are

    plain     host memory, without xccl: what the others are compared with
    xccl      host memory, with xccl
    device    tests that can be told which memory to use: device, managed, registered and ordinary
              memory, mixed. No window lies on device memory: that one is refused.
    managed   all tests, with every malloc of theirs from managed memory
    coherent  all tests, with every malloc of theirs from device memory that the host may touch, as
              on GPUs that share the host's page tables. Only on the simulated devices.

In the last three the ranks share the first device, unless a test chooses another: then xccl leaves
most collectives to MPI. With --own-devices each rank sees a device of its own, and they take xccl's
paths.

A test is "refused" that makes a window of device memory or has a datatype with addresses in both
host and device memory.

The exit status is 77 without a checkout, and 0 only if every test ended as it did in host memory
without xccl. What did not is run once more, alone and with four times the limit. After --seconds no
test is started any more; --json has what was done so far after every folder.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for running_clock
from mpi_harness import Build, known_mpis
from openmpi_goodbye import ENDED_BADLY, ours

HERE = Path(__file__).resolve().parent
FOLDERS = ["coll", "comm", "attr", "errors/coll", "errors/comm", "init", "topo", "threads/comm"]
FOLDERS += ["pt2pt", "part", "rma", "datatype", "io"]
FOLDERS += ["threads/pt2pt", "threads/part", "threads/rma"]
HEADERS = "STDLIB STRING UNISTD STDINT SYS_TIME PTHREAD ERRNO MEMORY INTTYPES STDARG"
COMMON = ["mtest.c", "mtest_common.c", "dtypes.c"]
MODES = {
    "plain": {"preload": False, "sim": None},
    "xccl": {"preload": True, "sim": None},
    # Its own list for GPUs has ranks of one call in different kinds of memory.
    "device": {"preload": True, "sim": "cuda:8", "env": {"XCCL_MEMORY": "mixed"}},
    "managed": {"preload": True, "sim": "cuda:8", "env": {"XCCL_MEMORY": "mixed"}},
    "coherent": {
        "preload": True,
        "sim": "cuda:8",
        "env": {"XCCL_MEMORY": "mixed", "SUITE_MALLOC": "device"},
    },
}
# Ranks that leave the choice of a device to the runtime share the first: with this each has its own.
LOCAL_RANK = "${OMPI_COMM_WORLD_LOCAL_RANK:-$MPI_LOCALRANKID}"
OWN_DEVICE = ["/bin/sh", "-c", f'CUDA_VISIBLE_DEVICES={LOCAL_RANK} exec "$0" "$@"']
TRIES = 4
# Open MPI 4.1.4 may crash in MPI_Finalize on a machine under load (mpi_harness.py).
GOODBYE_LOST = re.compile(rf"No Errors(?s:.*){ENDED_BADLY}")
SILENT = ("passed", "not built", "not run", "refused")
REFUSED = "the memory of a .*window.* is a device's|memory of several kinds"
# Debian's Open MPI 4.1 has windows only where the kernel copies between processes.
WINDOWS = {"OMPI_MCA_btl_vader_single_copy_mechanism": "cma"}
DTP_TYPES = ["MPI_INT", "MPI_INT:4+MPI_DOUBLE:8"]
DTP_COUNTS = "1 17 512 1018 65530"
# Kinds of memory of what is sent and of what is received.
PAIRS = [("device", "device"), ("device", "host"), ("host", "device"), ("shared", "device")]
PAIRS += [("device", "shared"), ("reg_host", "device"), ("shared", "host")]
# Kinds of origin, target and result. The target is the window's memory.
TRIPLES = [("device", "host", "device"), ("shared", "host", "device"), ("device", "host", "host")]
TRIPLES += [("device", "shared", "shared"), ("host", "shared", "device")]


def read_list(tests, folder, names, memory):
    """Rows (program, ranks, arguments, environment, may be strict) of a folder's testlist."""
    rows = []
    for name in names:
        file = tests / folder / name
        for line in file.read_text().splitlines() if file.exists() else ():
            words = line.split()
            if len(words) < 2 or words[0].startswith(("#", "@")) or not words[1].isdigit():
                continue
            args = [w[4:] for w in words[2:] if w.startswith("arg=")]
            env = dict(w[4:].split("=", 1) for w in words[2:] if w.startswith("env=") and "=" in w)
            fails = "resultTest=TestErrFatal" in words
            fails |= any(w.startswith("mem=") and float(w[4:]) > memory for w in words)
            if not any(w.startswith(("xfail", "strict=false")) for w in words) and not fails:
                rows.append((folder, words[0], int(words[1]), args, env))
    return rows


def dtp_rows(tests, folder):
    """Rows of the programs that draw datatypes, one for each type and count that MPICH tests."""
    rows = []
    file = tests / "maint/dtp-test-config.txt"
    for line in file.read_text().splitlines() if file.exists() else ():
        fields = line.split(":")
        if line.startswith("#") or fields[0].rpartition("/")[0] != folder:
            continue
        name, ranks, least, gacc = fields[0].rpartition("/")[2], *(fields[i] for i in (4, 5, 7))
        for count in set(fields[2].split()) & set(DTP_COUNTS.split()):
            for kind in DTP_TYPES if "acc" not in name and gacc == "0" else DTP_TYPES[:1]:
                rows.append((name, int(ranks), kind, int(count), int(least)))
    return sorted(rows)


def dtp_arguments(folder, row, number, device):
    """Arguments of one such row; its number draws the kinds of memory."""
    _, _, kind, count, least = row
    size = max(1, min(least, 32768 // count))
    args = [f"-type={kind}", f"-seed={number + 1}", f"-testsize={size}"]
    if folder == "rma":
        origin, target, result = TRIPLES[number % len(TRIPLES)]
        args += [f"-count={count}"]
        memory = [f"-origmem={origin}", f"-targetmem={target}", f"-resultmem={result}"]
    else:
        sender, receiver = PAIRS[number % len(PAIRS)]
        # The two sides of a partitioned message are of one size, by the standard.
        received = count * (1 + number % 2) if folder == "pt2pt" else count
        args += [f"-sendcnt={count}", f"-recvcnt={received}"]
        memory = [f"-sendmem={sender}", f"-recvmem={receiver}"]
    return args + (memory if device else [])


def window_rows(rows):
    """Rows for GPUs with the kinds of memory written out: random ones lie in windows as well."""
    found = []
    for folder, name, ranks, args, env in rows:
        if folder == "rma" and "-memtype=random" in args:
            rest = [a for a in args if a != "-memtype=random"]
            for origin, target, result in TRIPLES:
                kinds = [f"-origmem={origin}", f"-targetmem={target}", f"-resultmem={result}"]
                found.append((folder, name, ranks, rest + kinds, env))
        else:
            found.append((folder, name, ranks, args, env))
    return found


def in_host_memory(row):
    """The same row without its kinds of memory."""
    folder, name, ranks, args, env = row
    args = [re.sub(r"^(-\w*mem(type)?)=\w+$", r"\1=host", a) for a in args]
    return folder, name, ranks, args, env


def read_makefile(tests, folder):
    """Of each program that Makefile.am names: its sources, and what is to be defined for it."""
    file = tests / folder / "Makefile.am"
    text = file.read_text().replace("\\\n", " ") if file.exists() else ""
    sources, flags = {}, {}
    for name, what, value in re.findall(r"^(\w+)_(SOURCES|CPPFLAGS)\s*=(.*)$", text, re.M):
        words = [w for w in value.split() if w.startswith("-D") or w.endswith(".c")]
        (sources if what == "SOURCES" else flags)[name] = words
    return sources, flags


class Compiler:
    """Compiles programs of the suite for one MPI, for host or device memory."""

    def __init__(self, mpi, tests, folder, mode):
        facts = json.loads((mpi.build.folder / "test/mpi/mpi-tests.json").read_text())
        self.mpicc = facts["families"][mpi.family]["mpicc"]
        self.tests, self.folder = tests, folder
        folder.mkdir(parents=True)
        lines = [f"#define HAVE_{name}_H 1\n" for name in HEADERS.split()]
        lines += ["#define HAVE_GETTIMEOFDAY 1\n", "#define HAVE_LONG_DOUBLE 1\n"]
        lines += ["#define HAVE_LONG_LONG 1\n", "#define HAVE_MPI_WIN_CREATE 1\n"]
        lines += ["#define THREAD_PACKAGE_NAME THREAD_PACKAGE_POSIX\n"]
        (folder / "mpitestconf.h").write_text("".join(lines))
        (folder / "mtest_mpix.h").write_text("")
        # dtpools includes its own as ../dtpoolsconf.h, seen from a folder of includes.
        (folder / "include").mkdir()
        (folder / "dtpoolsconf.h").write_text("".join(lines))
        self.flags = ["-w", "-g", f"-I{folder}", f"-I{folder / 'include'}"]
        self.flags += [f"-I{tests / 'include'}", f"-I{tests / 'dtpools/include'}"]
        self.flags += ["-DDTP_MPI_DATATYPE=MPI_INT"]
        self.allocator = []
        if mode not in ("plain", "xccl"):
            self.flags += ["-DHAVE_CUDA", f"-I{HERE / 'cudart'}"]
        if mode in ("managed", "coherent"):
            self.allocator = ["-include", HERE / "cudart/suite_malloc.h"]
        self.objects, self.makefiles, self.programs = {}, {}, {}
        self.lock = threading.Lock()

    def call(self, *words):
        command = [self.mpicc, *self.flags, *map(str, words)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def common(self, threads):
        """Objects that every program needs; those that cannot be made are left out."""
        with self.lock:
            if threads not in self.objects:
                util = self.tests / "util"
                files = [util / name for name in COMMON]
                files.append(util / ("mtest_thread.c" if threads else "mtest_single.c"))
                files += sorted((self.tests / "dtpools/src").glob("*.c"))
                found = []
                for file in files:
                    target = self.folder / f"{file.stem}-{threads}.o"
                    if self.call("-c", file, "-o", target).returncode == 0:
                        found.append(target)
                self.objects[threads] = found
            return self.objects[threads]

    def program(self, folder, name):
        """Path of the program, or None. Each is compiled once."""
        if (folder, name) not in self.programs:
            self.programs[folder, name] = self.compile(folder, name)
        return self.programs[folder, name]

    def compile(self, folder, name):
        if folder not in self.makefiles:
            self.makefiles[folder] = read_makefile(self.tests, folder)
        sources, flags = self.makefiles[folder]
        files = [self.tests / folder / s for s in sources.get(name, [f"{name}.c"])]
        target = self.folder / f"{folder.replace('/', '-')}-{name}"
        if all(f.exists() for f in files):
            threads = folder.startswith("threads")
            words = [*self.allocator, *flags.get(name, []), *files, *self.common(threads)]
            if not any("int main" in f.read_text(errors="replace") for f in files):
                words.append(
                    self.tests / "util/run_mpitests.c"
                )  # a main for those that have run()
            self.call(*words, "-o", target, "-lm", "-lpthread", "-ldl")
        return target if target.exists() else None


def outcome(mpi, program, row, mode, chosen):
    """How one test ended: passed, failed, timed out or refused."""
    folder, _, ranks, args, env = row
    settings = WINDOWS if folder.endswith("rma") else {}
    options = {**MODES[mode], "env": {**env, **settings, **MODES[mode].get("env", {})}}
    front = OWN_DEVICE if chosen.own_devices and mode not in ("plain", "xccl") else []
    # Files that tests write have the same names.
    with tempfile.TemporaryDirectory() as cwd:
        command = ["/usr/bin/env", "-C", cwd, *front, str(program), *args]
        try:
            run = mpi.run(ranks, command, timeout=chosen.limit, **options)
            if run.status != 0 and GOODBYE_LOST.search(run.out) and not ours(run.out):
                run = mpi.run(ranks, command, timeout=chosen.limit, **options)
        except AssertionError as problem:
            return "failed", str(problem)
    if mode in ("managed", "coherent") and re.search(REFUSED, run.out):
        return "refused", run.out
    if run.timed_out:
        return "timed out", run.out
    good = run.status == 0 and "no errors" in run.out.lower()
    return ("passed" if good else "failed"), run.out


def compiler_for(mpi, mode, chosen):
    """One for all modes whose programs are the same."""
    kind = {"plain": "host", "xccl": "host", "device": "device"}.get(mode, "malloc")
    if (mpi.name, kind) not in chosen.compilers:
        folder = chosen.folder / f"{mpi.name}-{kind}"
        chosen.compilers[mpi.name, kind] = Compiler(mpi, chosen.tests, folder, mode)
    return chosen.compilers[mpi.name, kind]


def run_mode(mpi, rows, mode, chosen):
    """Outcomes by test."""
    compiler = compiler_for(mpi, mode, chosen)
    with ThreadPoolExecutor(chosen.jobs) as pool:
        list(pool.map(lambda key: compiler.program(*key), sorted({row[:2] for row in rows})))

    def one(row):
        program = compiler.program(*row[:2])
        if program is None:
            return "not built"
        if time.monotonic() > chosen.until:
            return "not run"
        result, out = outcome(mpi, program, row, mode, chosen)
        if chosen.logs and result != "passed":
            name = re.sub(r"[^\w.-]+", "_", f"{mpi.name} {mode} {title(row)}")[:200]
            (chosen.logs / f"{name}.log").write_text(f"{title(row)}: {result}\n{out}")
        return result

    with ThreadPoolExecutor(chosen.jobs) as pool:
        return list(pool.map(one, rows))


def title(row):
    folder, name, ranks, args, env = row
    settings = [f"{k}={v}" for k, v in env.items()]
    return " ".join([f"{folder}/{name}", f"({ranks})", *args, *settings])


def chosen_rows(chosen, folder, device=False):
    """What is to be run of a folder, each row once; more ranks than asked for are cut."""
    rows = {}
    names = ["testlist.gpu"] if device else ["testlist.in", "testlist"]
    listed = read_list(chosen.tests, folder, names, chosen.memory)
    drawn = dtp_rows(chosen.tests, folder) if folder in ("pt2pt", "part", "rma") else []
    for i, row in enumerate(drawn):
        listed.append((folder, row[0], row[1], dtp_arguments(folder, row, i, device), {}))
    for name, program, ranks, args, env in window_rows(listed) if device else listed:
        row = (name, program, min(ranks, chosen.ranks), args, env)
        if re.search(chosen.only, title(row)):
            rows.setdefault(title(row), row)
    return list(rows.values())


def modes_of(chosen):
    return chosen.modes.split(",")


def differ(before, now):
    silent = {"not built", "not run", "refused"} & {before, now}
    return before is not None and before != now and not silent


def without(mpi, rows, results, chosen):
    """How rows that did not pass in device memory end in host memory without xccl."""
    bad = [row for row in rows if results[title(row)] not in SILENT]
    found = run_mode(mpi, [in_host_memory(row) for row in bad], "plain", chosen)
    return dict.fromkeys(results, "passed") | dict(zip(map(title, bad), found, strict=True))


def repeat(mpi, mode, row, chosen):
    """How a test ends, and how it does without xccl, alone and with more time.

    What does not pass is tried without xccl as well a few times: some tests hang now and then.
    """
    slow = argparse.Namespace(**{**vars(chosen), "jobs": 1, "limit": 4 * chosen.limit})
    now, before = run_mode(mpi, [row], mode, slow)[0], "passed"
    for _ in range(1 if now == "passed" else TRIES):
        before = run_mode(mpi, [in_host_memory(row)], "plain", slow)[0]
        if before != "passed":
            break
    return before, now


def compare_folder(mpi, folder, found, chosen):
    """Run a folder in all modes; add what was counted to `found`, print and add what differs."""
    plain = {}
    for mode in modes_of(chosen):
        rows = chosen_rows(chosen, folder, mode == "device")
        results = dict(zip(map(title, rows), run_mode(mpi, rows, mode, chosen), strict=True))
        if mode == "plain":
            plain = results
        before = without(mpi, rows, results, chosen) if mode == "device" else plain
        for row in rows:
            test = title(row)
            if differ(before.get(test), results[test]) and time.monotonic() < chosen.until:
                before[test], results[test] = repeat(mpi, mode, row, chosen)
            one = {"test": test, "mode": mode, "plain": before.get(test), "now": results[test]}
            if differ(before.get(test), results[test]):
                found["differences"].append(one)
                print(f"{mpi.name:9} {mode:8} {test}: {one['now']}, {one['plain']} without")
            elif results[test] not in SILENT:
                found["same"].append(one)
        ends = list(results.values())
        counts = {end: ends.count(end) for end in sorted(set(ends))}
        if counts:
            found["counts"].setdefault(folder, {})[mode] = counts
            print(f"{mpi.name:9} {folder:14} {mode:8} {counts}", flush=True)


def compare(mpis, chosen):
    """Every folder with every MPI; what was found so far is written after each."""
    found = []
    for mpi in mpis:
        found.append({"mpi": mpi.name, "counts": {}, "differences": [], "same": []})
        for folder in chosen.dirs.split(","):
            compare_folder(mpi, folder, found[-1], chosen)
            if chosen.json:
                chosen.json.write_text(json.dumps(found, indent=1) + "\n")
    return found


def use_gpus(jobs):
    """As a job would on them: a vendor communicator takes a second, so few are made.

    Kernels that linger hold a device's time slices, of which several jobs on one device need theirs.
    """
    kept = {name: os.environ[name] for name in ("XCCL_CCL_LIBRARY",) if name in os.environ}
    if jobs > 1:
        kept["XCCL_DIRECT_LINGER"] = "off"
    for mode in MODES.values():
        mode["sim"] = None
        mode["env"] = {**mode.get("env", {}), **kept, "XCCL_COMM_CREATE": "auto"}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--mpi", default="openmpi,mpich", help="openmpi, openmpi5, mpich")
    parser.add_argument("--dirs", default=",".join(FOLDERS))
    parser.add_argument("--modes", default="plain,xccl", help=", ".join(MODES))
    parser.add_argument("--only", default="", help="a pattern of the rows to run, as coll/bcast")
    parser.add_argument("--ranks", type=int, default=5, help="most ranks; more are cut to it")
    parser.add_argument("--jobs", type=int, default=2, help="tests at a time")
    parser.add_argument("--limit", type=float, default=60, help="seconds for a test")
    parser.add_argument("--seconds", type=float, default=1e9, help="after which no test is begun")
    parser.add_argument("--memory", type=float, default=4, help="GB that a test may need")
    parser.add_argument("--logs", type=Path, help="folder for the output of tests that fail")
    parser.add_argument("--own-devices", action="store_true", help="each rank sees its own alone")
    parser.add_argument("--gpus", action="store_true", help="real ones, not the simulated devices")
    parser.add_argument("--json", type=Path, help="where to write the numbers")
    chosen = parser.parse_args()
    if chosen.gpus:
        use_gpus(chosen.jobs)
    if chosen.logs:
        chosen.logs.mkdir(parents=True, exist_ok=True)
    checkout = os.environ.get("MPICH_TESTS")
    if not checkout or not (Path(checkout) / "test/mpi/util/mtest.c").exists():
        print("mpich-suite: set MPICH_TESTS to a checkout of MPICH, with test/mpi in it")
        return 77
    chosen.tests = Path(checkout).resolve() / "test/mpi"
    chosen.until, chosen.compilers = time.monotonic() + chosen.seconds, {}
    build = Build(Path(os.environ["XCCL_TEST_BUILD"]))
    mpis = known_mpis(build)
    with tempfile.TemporaryDirectory() as folder:
        chosen.folder = Path(folder)
        found = compare([mpis[name] for name in chosen.mpi.split(",") if name in mpis], chosen)
    counts = [modes for f in found for modes in f["counts"].values()]
    if not counts:
        print("mpich-suite: nothing was run: no row of --dirs, with its folder, has --only in it")
    passed = all(
        any(c[mode].get("passed") for c in counts if mode in c) for mode in modes_of(chosen)
    )
    return 0 if counts and passed and not any(f["differences"] for f in found) else 1


if __name__ == "__main__":
    sys.exit(main())
