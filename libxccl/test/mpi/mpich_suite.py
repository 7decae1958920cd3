# SPDX-License-Identifier: BSD-3-Clause
"""Run MPICH's own tests with and without the interposer, and compare test by test.

    mpich_suite.py [--mpi openmpi,mpich] [--dirs coll,comm,...] [--ranks 4] [--json FILE]

MPICH_TESTS names a checkout of MPICH, the folder that contains test/mpi. Its programs are compiled
one by one, without its configure; what one of them needs beyond that makes it "not built". The
modes are "plain" (host memory, without xccl), "xccl" (host memory, with it) and "device" (with it,
MPICH's lists of tests for GPUs: device, managed, registered and ordinary memory, mixed).
The exit status is 77 without a checkout, and 0 only if every test ended with xccl as it did
without, and those for GPUs passed.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mpi_harness import Build, known_mpis

HERE = Path(__file__).resolve().parent
FOLDERS = ["coll", "comm", "attr", "errors/coll", "errors/comm", "init", "topo", "threads/comm"]
FOLDERS += ["pt2pt", "datatype", "io", "threads/pt2pt"]
HEADERS = "STDLIB STRING UNISTD STDINT SYS_TIME PTHREAD ERRNO MEMORY INTTYPES STDARG"
COMMON = ["mtest.c", "mtest_common.c", "dtypes.c"]
MODES = {
    "plain": {"preload": False, "sim": None},
    "xccl": {"preload": True, "sim": None},
    # Its own list for GPUs has ranks of one call in different kinds of memory.
    "device": {"preload": True, "sim": "cuda:4", "env": {"XCCL_MEMORY": "mixed"}},
}


def read_list(tests, folder, names=("testlist.in", "testlist")):
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
            if not any(w.startswith(("xfail", "strict=false")) for w in words) and not fails:
                rows.append((folder, words[0], int(words[1]), args, env))
    return rows


class Compiler:
    """Compiles programs of the suite for one MPI, for host or device memory."""

    def __init__(self, mpi, tests, folder, device):
        facts = json.loads((mpi.build.folder / "test/mpi/mpi-tests.json").read_text())
        self.mpicc = facts["families"][mpi.family]["mpicc"]
        self.tests, self.folder = tests, folder
        folder.mkdir(parents=True)
        lines = [f"#define HAVE_{name}_H 1\n" for name in HEADERS.split()]
        lines += ["#define HAVE_GETTIMEOFDAY 1\n", "#define HAVE_LONG_DOUBLE 1\n"]
        lines += ["#define HAVE_LONG_LONG 1\n", "#define THREAD_PACKAGE_NAME 1\n"]
        lines += ["#define THREAD_PACKAGE_POSIX 1\n", "#define HAVE_MPI_WIN_CREATE 1\n"]
        (folder / "mpitestconf.h").write_text("".join(lines))
        (folder / "mtest_mpix.h").write_text("")
        # dtpools includes its own as ../dtpoolsconf.h, seen from a folder of includes.
        (folder / "include").mkdir()
        (folder / "dtpoolsconf.h").write_text("".join(lines))
        self.flags = ["-w", "-g", f"-I{folder}", f"-I{folder / 'include'}"]
        self.flags += [f"-I{tests / 'include'}", f"-I{tests / 'dtpools/include'}"]
        self.flags += ["-DDTP_MPI_DATATYPE=MPI_INT"]
        if device:
            self.flags += ["-DHAVE_CUDA", f"-I{HERE / 'cudart'}"]
        self.objects = {}

    def call(self, *words):
        command = [self.mpicc, *self.flags, *map(str, words)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def common(self, threads):
        """Objects that every program needs; those that cannot be made are left out."""
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
        """Path of the program, or None."""
        source = self.tests / folder / f"{name}.c"
        target = self.folder / f"{folder.replace('/', '-')}-{name}"
        if not target.exists() and source.exists():
            threads = folder.startswith("threads")
            words = [source, *self.common(threads)]
            if "int main" not in source.read_text(errors="replace"):
                words.append(
                    self.tests / "util/run_mpitests.c"
                )  # a main for those that have run()
            self.call(*words, "-o", target, "-lm", "-lpthread", "-ldl")
        return target if target.exists() else None


def outcome(mpi, program, row, mode, limit):
    """How one test ended: passed, failed or timed out."""
    _, _, ranks, args, env = row
    options = {**MODES[mode], "env": {**env, **MODES[mode].get("env", {})}}
    try:
        run = mpi.run(ranks, [str(program), *args], timeout=limit, **options)
    except AssertionError as problem:
        return "failed", str(problem)
    if run.timed_out:
        return "timed out", run.out
    good = run.status == 0 and "No Errors" in run.out
    return ("passed" if good else "failed"), run.out


def run_mode(mpi, rows, mode, chosen, folder):
    """Outcomes by test."""
    compiler = Compiler(mpi, chosen.tests, folder / f"{mpi.name}-{mode}", mode == "device")
    programs = {(r[0], r[1]): compiler.program(r[0], r[1]) for r in rows}

    def one(row):
        program = programs[row[0], row[1]]
        if program is None:
            return "not built", ""
        return outcome(mpi, program, row, mode, chosen.limit)

    with ThreadPoolExecutor(chosen.jobs) as pool:
        return [name for name, _ in pool.map(one, rows)]


def title(row):
    folder, name, ranks, args, _ = row
    return " ".join([f"{folder}/{name}", f"({ranks})", *args])


def chosen_rows(chosen, folders, names=("testlist.in", "testlist")):
    """What is to be run, each row once; more ranks than asked for are cut."""
    rows = {}
    for folder in folders:
        for name, program, ranks, args, env in read_list(chosen.tests, folder, names):
            row = (name, program, min(ranks, chosen.ranks), args, env)
            if chosen.only in program:
                rows.setdefault(title(row), row)
    return list(rows.values())


def compare(mpi, rows, chosen, folder):
    """Run all modes of one MPI, print and return what differs."""
    modes = [m for m in MODES if m != "device" or chosen.device]
    results, tests = {}, {}
    for mode in modes:
        part = rows
        if mode == "device":
            part = chosen_rows(chosen, chosen.dirs.split(","), ["testlist.gpu"])
        results[mode] = dict(
            zip(map(title, part), run_mode(mpi, part, mode, chosen, folder), strict=True)
        )
        counted = {o: list(results[mode].values()).count(o) for o in set(results[mode].values())}
        tests[mode] = dict(sorted(counted.items()))
        print(f"{mpi.name:9} {mode:7} {tests[mode]}", flush=True)
    differences = []
    for mode in modes[1:]:
        for test, after in results[mode].items():
            before = "passed" if mode == "device" else results["plain"][test]
            if before != after and "not built" not in (before, after):
                differences.append({"test": test, "mode": mode, "plain": before, "now": after})
                print(f"{mpi.name:9} {mode:7} {test}: {after}, {before} without", flush=True)
    return {"mpi": mpi.name, "counts": tests, "differences": differences}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--mpi", default="openmpi,mpich", help="openmpi, openmpi5, mpich")
    parser.add_argument("--dirs", default=",".join(FOLDERS))
    parser.add_argument("--only", default="", help="part of the names of the programs to run")
    parser.add_argument("--ranks", type=int, default=4, help="most ranks; more are cut to it")
    parser.add_argument("--jobs", type=int, default=2, help="tests at a time")
    parser.add_argument("--limit", type=float, default=60, help="seconds for a test")
    parser.add_argument("--device", action="store_true", help="also in device memory")
    parser.add_argument("--gpus", action="store_true", help="real ones, not the simulated devices")
    parser.add_argument("--json", type=Path, help="where to write the numbers")
    chosen = parser.parse_args()
    if chosen.gpus:
        MODES["device"]["sim"] = None
    checkout = os.environ.get("MPICH_TESTS")
    if not checkout or not (Path(checkout) / "test/mpi/util/mtest.c").exists():
        print("mpich-suite: set MPICH_TESTS to a checkout of MPICH, with test/mpi in it")
        return 77
    chosen.tests = Path(checkout).resolve() / "test/mpi"
    rows = chosen_rows(chosen, chosen.dirs.split(","))
    build = Build(Path(os.environ["XCCL_TEST_BUILD"]))
    mpis = known_mpis(build)
    with tempfile.TemporaryDirectory() as folder:
        found = [
            compare(mpis[name], rows, chosen, Path(folder))
            for name in chosen.mpi.split(",")
            if name in mpis
        ]
    if chosen.json:
        chosen.json.write_text(json.dumps(found, indent=1) + "\n")
    passed = all(f["counts"]["plain"].get("passed") for f in found)
    return 0 if found and passed and not any(f["differences"] for f in found) else 1


if __name__ == "__main__":
    sys.exit(main())
