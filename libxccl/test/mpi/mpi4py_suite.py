# SPDX-License-Identifier: BSD-3-Clause
"""Run mpi4py's own test suite with and without the interposer, and compare test by test.

    mpi4py_suite.py [--ranks 1,2,4] [--sim cuda:4] [--json FILE] [-- options of test/main.py]

The suite is the one of the source distribution that ci/bootstrap built mpi4py from, without what
starts processes: in Debian's Open MPI 4.1.4 a second MPI_Comm_spawn waits for ever, with xccl or
without. The exit status is 0 only if tests ran and each of them, on each rank, ended with xccl as
it did without.
"""

import argparse
import json
import os
import re
import runpy
import sys
import tempfile
import unittest
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
RECORD = "XCCL_TEST_RECORD"
LEFT_OUT = ["-e", "test_spawn", "-e", "test_dynproc"]


class RecordingResult(unittest.TextTestResult):
    """Keeps how each test ended; a test with subtests is as bad as its worst."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.outcomes = {}

    def note(self, test, outcome):
        self.outcomes[test.id()] = outcome

    def startTest(self, test):
        super().startTest(test)
        self.outcomes.setdefault(test.id(), "unfinished")

    def addSuccess(self, test):
        super().addSuccess(test)
        if self.outcomes.get(test.id()) == "unfinished":
            self.note(test, "passed")

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.note(test, "failed")

    def addError(self, test, err):
        super().addError(test, err)
        self.note(test, "failed")

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.note(test, "failed")

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.note(test, "skipped")

    def addExpectedFailure(self, test, err):
        super().addExpectedFailure(test, err)
        self.note(test, "expected failure")

    def stopTestRun(self):
        super().stopTestRun()
        rank = os.environ.get("OMPI_COMM_WORLD_RANK", "0")
        Path(os.environ[RECORD], f"{rank}.json").write_text(json.dumps(self.outcomes))


def record(main, arguments):
    """Inside a rank: run mpi4py's runner with the recording result."""
    unittest.TextTestRunner.resultclass = RecordingResult
    sys.argv = [main, *arguments]
    sys.path.insert(0, str(Path(main).parent))
    runpy.run_path(main, run_name="__main__")


def sources():
    """The unpacked source distribution of mpi4py."""
    from mpi_harness import TOP

    found = sorted((TOP / ".venv/src").glob("mpi4py-*/test/main.py"))
    return found[-1] if found else None


def run_suite(mpi, ranks, options, **how):
    """Outcomes by (rank, test), and what was printed."""
    with tempfile.TemporaryDirectory() as folder:
        result = mpi.run(
            ranks,
            [sys.executable, __file__, "--record", str(sources()), *LEFT_OUT, *options],
            env={RECORD: folder, "PYTHONMALLOC": "malloc" if mpi.build.sanitized else "default"},
            **{"sim": None, "timeout": 1200, **how},
        )
        outcomes = {}
        for rank in range(ranks):
            file = Path(folder, f"{rank}.json")
            for test, outcome in json.loads(file.read_text()).items() if file.exists() else ():
                outcomes[(rank, test)] = outcome
    return outcomes, result


def differences(without, with_xccl):
    """One line for each test of each rank that ended otherwise."""
    lines = []
    for rank, test in sorted({*without, *with_xccl}):
        before = without.get((rank, test), "did not run")
        after = with_xccl.get((rank, test), "did not run")
        if before != after:
            lines.append(f"rank {rank}: {test}: {before} without xccl, {after} with it")
    return lines


def counts(outcomes):
    return dict(sorted(Counter(outcomes.values()).items()))


def compare(mpi, ranks, options, sim):
    without, plain = run_suite(mpi, ranks, options, preload=False, sim=sim)
    with_xccl, preloaded = run_suite(mpi, ranks, options, preload=True, sim=sim)
    lines = differences(without, with_xccl)
    print(f"{ranks} rank(s): without xccl {counts(without)} in {plain.seconds:.0f} s")
    print(f"{ranks} rank(s): with xccl    {counts(with_xccl)} in {preloaded.seconds:.0f} s")
    print("\n".join(lines) or f"{ranks} rank(s): every test ended the same way", flush=True)
    for name, run in (("without", plain), ("with", preloaded)):
        if run.timed_out or not re.search(r"Ran \d+ tests", run.out):
            lines.append(f"{name} xccl the suite did not come to its end")
            print(lines[-1], run.out[-2000:], sep="\n")
    return {
        "ranks": ranks,
        "without": counts(without),
        "with": counts(with_xccl),
        "differences": lines,
    }, bool(lines) or not without


def main():
    from mpi_harness import TOP, Build, known_mpis

    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--ranks", default="1,2,4")
    parser.add_argument("--mpi", default="openmpi", help="openmpi or openmpi5")
    parser.add_argument("--sim", help="simulated devices beside it, as cuda:4")
    parser.add_argument("--json", type=Path, help="where to write the numbers")
    parser.add_argument("options", nargs="*", help="for mpi4py's test/main.py, after --")
    chosen = parser.parse_args()
    build = Build(Path(os.environ.get("XCCL_TEST_BUILD", TOP / "build/release")))
    mpi = known_mpis(build)[chosen.mpi]
    if sources() is None:
        sys.exit("mpi4py's sources are missing: ci/bootstrap test")
    rows, bad = [], False
    for ranks in map(int, chosen.ranks.split(",")):
        row, different = compare(mpi, ranks, chosen.options, chosen.sim)
        rows.append(row)
        bad = bad or different
    if chosen.json:
        chosen.json.write_text(json.dumps({"mpi": mpi.name, "runs": rows}, indent=1) + "\n")
    return 1 if bad else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--record"]:
        record(sys.argv[2], sys.argv[3:])
    else:
        sys.exit(main())
