# SPDX-License-Identifier: BSD-3-Clause
"""Run mpi4py's own test suite with and without the interposer, and compare test by test.

    mpi4py_suite.py [--mpi openmpi,mpich] [--arrays host,device] [--ranks 1,2,4] [--json FILE]
                    [-- options of test/main.py]

The suite is the one of the source distribution that ci/bootstrap built mpi4py from, without what
waits for ever with xccl or without: all that starts processes, by a second MPI_Comm_spawn in
Debian's Open MPI 4.1.4; and in its MPICH 4.0.2 what spins on windows of another rank. With
--arrays device the tests of messages, files, windows, packing and collectives run with xccl on
arrays in simulated device memory, and have to end as on host memory without xccl. The exit status
is 0 only if tests ran and each of them, on each rank, ended with xccl as it did without.
"""

import argparse
import importlib
import importlib.util
import json
import os
import re
import runpy
import sys
import tempfile
import unittest
from collections import Counter
from pathlib import Path

sys.path[:0] = [str(folder) for folder in Path(__file__).resolve().parents[:2]]
RECORD = "XCCL_TEST_RECORD"
DEVICE = "--arrays-on-device"
LEFT_OUT = ["-e", "test_spawn", "-e", "test_dynproc"]
LEFT_OUT_MPICH = ["-e", "test_util_sync"]
# The files of the suite that take their arrays from arrayimpl.
ON_DEVICE = "test_p2p_buf.*|test_msgspec|test_pack|test_rma.*|test_io|test_cco_.*(buf|vec).*"
# Of these, what cannot be on device memory, each with its reason.
COUNTS = "mpi4py 4.1.2 frees the array of counts before the call is complete"
NOT_ON_DEVICE = {
    "TestMessageDLPackCPUBuf.testByteOffset": "reads the array's elements itself",
    "TestMessageDLPackCPUBuf.testCapsule": "makes a capsule as for host memory",
    "*test_cco_nb_vec.*Allgatherv*": COUNTS,
    "*test_cco_pr_vec.*Allgatherv*": COUNTS,
    "*test_cco_nb_buf.*ReduceScatter": COUNTS,
    "*test_cco_pr_buf.*ReduceScatter": COUNTS,
}


def arrays_made():
    """How many arrays in device memory there were until now."""
    arrays = sys.modules.get("mpi4py_arrays")
    return arrays.DeviceArray.made if arrays else 0


class RecordingResult(unittest.TextTestResult):
    """Keeps how each test ended; a test with subtests is as bad as its worst."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.outcomes = {}
        self.on_device, self.made = [], 0

    def note(self, test, outcome):
        self.outcomes[test.id()] = outcome

    def startTest(self, test):
        super().startTest(test)
        self.outcomes.setdefault(test.id(), "unfinished")
        self.made = arrays_made()

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

    def stopTest(self, test):
        super().stopTest(test)
        if arrays_made() > self.made:
            self.on_device.append(test.id())

    def stopTestRun(self):
        super().stopTestRun()
        rank = os.environ.get("OMPI_COMM_WORLD_RANK", os.environ.get("PMI_RANK", "0"))
        outcome = {"outcomes": self.outcomes, "on_device": self.on_device}
        Path(os.environ[RECORD], f"{rank}.json").write_text(json.dumps(outcome))


def record(main, arguments):
    """Inside a rank: run mpi4py's runner with the recording result."""
    unittest.TextTestRunner.resultclass = RecordingResult
    sys.path.insert(0, str(Path(main).parent))
    sys.argv = [main, *(word for word in arguments if word != DEVICE)]
    if DEVICE not in arguments:
        runpy.run_path(main, run_name="__main__")
        return
    sys.dont_write_bytecode = True
    suite = importlib.import_module("main")
    set_up = suite.setup_unittest

    def set_up_device(options):
        importlib.import_module("mpi4py_arrays").put_into_suite()
        set_up(options)

    suite.setup_unittest = set_up_device
    suite.main(module=None)


# Open MPI 4.1 has none of these. mpi4py's wheel asks the loader and finds xccl's functions, which can only
# say so; without xccl it says so itself, and skips. Two files of the suite open a session as they are read, and one
# test that opens one leaves operations behind that others find no room beside.
LACKED = re.compile(
    "I[sS]endrecv|test_p2p_buf_part|TestErrhandlerSession|test_session|test_exceptions|"
    "testSafeFreeCreated|test_op.*(testCreateMany|testPickleUserDefined)"
)
# Persistent collectives, which this MPI has only with xccl, and which mpi4py takes the counts from.
NOT_PERSISTENT = {name: COUNTS for name in NOT_ON_DEVICE if "_pr_" in name}


def sources():
    """The unpacked source distribution of mpi4py."""
    from mpi_harness import TOP

    found = sorted((TOP / ".venv/src").glob("mpi4py-*/test/main.py"))
    return found[-1] if found else None


def python_env(mpi, windows=False):
    """Variables for Python programs on this MPI: which mpi4py it has; windows in Open MPI.

    Open MPI 4.1's windows on memory of the program are pt2pt's, which does without threads, unless
    that is left out: then they are UCX's, which crash in other tests of the suite.
    """
    env = {"PYTHONMALLOC": "malloc" if mpi.build.sanitized else "default"}
    env["MPI4PY_MPIABI"] = mpi.family
    if windows and mpi.family == "openmpi":
        env["OMPI_MCA_osc"] = "^pt2pt"
    return env


def library_path(mpi):
    """Where mpi4py finds MPICH under the name of the common ABI, which Debian does not use."""
    from mpi_harness import TOP

    return str(TOP / ".venv/mpich") if mpi.family == "mpich" else None


def is_installed(mpi):
    """Has this MPI an mpi4py? One wheel serves all that have the ABI of Open MPI or of MPICH.

    It has no module for the standard ABI.
    """
    folder = library_path(mpi)
    found = importlib.util.find_spec("mpi4py") is not None
    known = found and mpi.family != "mpiabi"
    return known and (folder is None or Path(folder, "libmpi.so.12").exists())


def run_suite(mpi, ranks, options, device=False, windows=False, **how):
    """Outcomes by (rank, test), and what was printed; result.on_device: tests with device arrays."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = [*LEFT_OUT, *options, *([DEVICE] if device else [])]
        arguments += LEFT_OUT_MPICH if mpi.family == "mpich" else []
        result = mpi.run(
            ranks,
            [sys.executable, __file__, "--record", str(sources()), *arguments],
            env={RECORD: folder, **python_env(mpi, windows or device)},
            library_path=library_path(mpi),
            **{"sim": None, "timeout": 1200, **how},
        )
        outcomes = {}
        result.on_device = 0
        for rank in range(ranks):
            file = Path(folder, f"{rank}.json")
            found = json.loads(file.read_text()) if file.exists() else {"outcomes": {}}
            result.on_device += len(found.get("on_device", []))
            for test, outcome in found["outcomes"].items():
                if mpi.name != "openmpi" or not LACKED.search(test):
                    outcomes[(rank, test)] = outcome
    return outcomes, result


def is_gain(before, after):
    """mpi4py skips what it does not find in MPI, such as persistent collectives in Open MPI 4.1: xccl has it."""
    return (before, after) == ("skipped", "passed")


def gained(without, with_xccl):
    """How many tests pass with xccl that were skipped without it."""
    return sum(is_gain(without[key], with_xccl.get(key)) for key in without)


def differences(without, with_xccl):
    """One line for each test of each rank that ended otherwise, and not better."""
    lines = []
    for rank, test in sorted({*without, *with_xccl}):
        before = without.get((rank, test), "did not run")
        after = with_xccl.get((rank, test), "did not run")
        if before != after and not is_gain(before, after):
            lines.append(f"rank {rank}: {test}: {before} without xccl, {after} with it")
    return lines


def counts(outcomes):
    return dict(sorted(Counter(outcomes.values()).items()))


def compare(mpi, ranks, chosen):
    """One row of the results; it is bad if its differences are not empty."""
    how, options = {"sim": chosen.sim}, list(chosen.options)
    left_out = {}
    if chosen.device:
        how = {"sim": chosen.sim or "cuda:4", "device": True}
        left_out = NOT_ON_DEVICE
        options += ["-i", ON_DEVICE, *(word for name in left_out for word in ("-x", name))]
    elif mpi.name == "openmpi":
        left_out = NOT_PERSISTENT
        options += [word for name in left_out for word in ("-x", name)]
    without, plain = run_suite(
        mpi, ranks, options, preload=False, sim=how["sim"], windows=chosen.device
    )
    with_xccl, preloaded = run_suite(mpi, ranks, options, preload=True, **how)
    lines = differences(without, with_xccl) or ([] if without else ["no test ran"])
    for name, run in (("without", plain), ("with", preloaded)):
        if run.timed_out or not re.search(r"Ran \d+ tests", run.out):
            lines.append(f"{name} xccl the suite did not come to its end: {run.out[-2000:]}")
    if chosen.device and not preloaded.on_device:
        lines.append("no test made an array in device memory")
    print(f"{ranks} rank(s): without xccl {counts(without)} in {plain.seconds:.0f} s")
    print(f"{ranks} rank(s): with xccl    {counts(with_xccl)} in {preloaded.seconds:.0f} s")
    print("\n".join(lines) or f"{ranks} rank(s): every test ended the same way", flush=True)
    row = {"ranks": ranks, "without": counts(without), "with": counts(with_xccl)}
    row["skipped without, passed with"] = gained(without, with_xccl)
    if chosen.device:
        row["with arrays in device memory"] = preloaded.on_device
    if left_out:
        row["left out"] = left_out
    return {**row, "differences": lines}


def main():
    from mpi_harness import TOP, Build, known_mpis

    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--ranks", default="1,2,4")
    parser.add_argument("--mpi", default="openmpi", help="of openmpi, openmpi5 and mpich")
    parser.add_argument("--arrays", default="host", help="of host and device")
    parser.add_argument("--sim", help="simulated devices beside it, as cuda:4")
    parser.add_argument("--json", type=Path, help="where to write the numbers")
    parser.add_argument("options", nargs="*", help="for mpi4py's test/main.py, after --")
    chosen = parser.parse_args()
    build = Build(Path(os.environ.get("XCCL_TEST_BUILD", TOP / "build/release")))
    if sources() is None:
        sys.exit("mpi4py's sources are missing: ci/bootstrap test")
    parts = []
    for name in chosen.mpi.split(","):
        mpi = known_mpis(build)[name]
        if not is_installed(mpi):
            sys.exit(f"there is no mpi4py for {name}: ci/bootstrap test")
        for arrays in chosen.arrays.split(","):
            print(f"{name}, arrays in {arrays} memory", flush=True)
            chosen.device = arrays == "device"
            rows = [compare(mpi, int(ranks), chosen) for ranks in chosen.ranks.split(",")]
            parts.append({"mpi": name, "arrays": arrays, "runs": rows})
    if chosen.json:
        chosen.json.write_text(json.dumps(parts, indent=1) + "\n")
    return int(any(row["differences"] for part in parts for row in part["runs"]))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--record"]:
        record(sys.argv[2], sys.argv[3:])
    else:
        sys.exit(main())
