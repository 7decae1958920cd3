# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of the tools run: the staged installation, and the MPIs it was built for.

XCCL_STAGE names the folder with bin/ and lib/; else it is that of XCCL_TEST_BUILD, which ci/test
sets.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from openmpi_goodbye import crashed
from running_clock import communicate

TOP = Path(__file__).resolve().parents[3]
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(TOP / "libxccl/tools/common"))


class Ended:
    """How a command ended."""

    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err

    def good(self):
        assert self.status == 0, f"status {self.status}\n{self.out}\n{self.err}"
        return self


class Stage:
    def __init__(self, folder):
        self.folder = folder
        self.bin, self.lib = folder / "bin", folder / "lib"
        self.interposer = self.lib / "libxccl-mpi.so"
        self.cache = (folder.parent / "CMakeCache.txt").read_text()
        self.sanitized = re.search(r"^XCCL_SANITIZE:[A-Z]+=(ON|1|TRUE)$", self.cache, re.M)

    def environment(self, extra=None, drop=()):
        """The caller's, without what would change the outcome."""
        env = {k: v for k, v in os.environ.items() if not k.startswith(("XCCL_", "LD_PRELOAD"))}
        env.update(
            ASAN_OPTIONS="detect_leaks=0",
            OMPI_ALLOW_RUN_AS_ROOT="1",
            OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
            OMPI_MCA_mpi_yield_when_idle="1",
            OMPI_MCA_btl_vader_single_copy_mechanism="none",
            MPIR_CVAR_POLLS_BEFORE_YIELD="1",
            # Each process of Open MPI starts what it finds; the sanitizer cannot have OpenCL, which
            # brings the library of C++.
            HWLOC_COMPONENTS="-cuda,-nvml,-opencl,-gl,-rsmi,-levelzero",
        )
        if self.sanitized:
            # The program has the sanitizer's runtime, which insists on being loaded first.
            command = ["cc", "-print-file-name=libasan.so"]
            env["LD_PRELOAD"] = subprocess.check_output(command, text=True).strip()
        env.update(extra or {})
        return {k: v for k, v in env.items() if k not in drop}

    def run(self, *command, env=None, drop=(), timeout=60, cwd=None):
        """Run to the end, or kill the whole group and fail."""
        process = subprocess.Popen(
            [str(word) for word in command],
            env=self.environment(env, drop),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            out, err = communicate(process, timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            pytest.fail(f"no end after {timeout} s: {command}\n{out}\n{err}")
        return Ended(process.returncode, out, err)

    def tool(self, name, *arguments, **options):
        return self.run(self.bin / name, *arguments, **options)


class Mpi:
    def __init__(self, stage, family, launcher):
        self.stage, self.family, self.launcher = stage, family, launcher

    def command(self, ranks, more=()):
        oversubscribe = ["--oversubscribe"] if self.family == "openmpi" else []
        return [self.launcher, *oversubscribe, *more, "-n", str(ranks)]

    def run(self, ranks, *command, launching=(), **options):
        if self.family == "mpich":  # see mpich_idle.c
            env = self.stage.environment(options.pop("env", None))
            idle = self.stage.folder.parent / "test/mpi/libmpich_idle.so"
            preload = ":".join(filter(None, [env.get("LD_PRELOAD"), str(idle)]))
            options["env"] = {**env, "LD_PRELOAD": preload}
        start = self.command(ranks, launching)
        ended = self.stage.run(*start, *command, **options)
        if self.family == "openmpi" and ended.status != 0 and crashed(ended.err):
            warnings.warn(f"a rank of {command} crashed: {ended.out}\n{ended.err}", stacklevel=2)
            ended = self.stage.run(*start, *command, **options)
        return ended

    def perf(self, ranks, *arguments, run=("--sim", "cuda:4"), **options):
        """xccl-perf behind xccl-run (run=None: without it)."""
        wrapper = [] if run is None else [self.stage.bin / "xccl-run", *run]
        return self.run(ranks, *wrapper, self.stage.bin / "xccl-perf", *arguments, **options)

    def compile(self, source, target, *flags):
        """Compile with this family's wrapper, or skip where only its library is installed."""
        wrapper = re.search(rf"^XCCL_MPICC_{self.family}:[A-Z]+=(.+)$", self.stage.cache, re.M)
        name = wrapper.group(1) if wrapper else shutil.which(f"mpicc.{self.family}")
        if name is None:
            pytest.skip(f"no compiler wrapper of {self.family}")
        command = [name, "-O1", "-o", str(target), str(source), *map(str, flags)]
        subprocess.run(command, check=True)
        return target


def stage_folder():
    if "XCCL_STAGE" in os.environ:
        return Path(os.environ["XCCL_STAGE"])
    return Path(os.environ.get("XCCL_TEST_BUILD", TOP / "build/release")) / "stage"


@pytest.fixture(scope="session")
def stage():
    folder = stage_folder()
    if not (folder / "bin/xccl-run").exists():
        pytest.fail(f"{folder} holds no tools; build, or name the folder in XCCL_STAGE")
    return Stage(folder.resolve())


def find_mpi(stage, family):
    found = re.search(rf"^XCCL_MPIEXEC_{family}:[A-Z]+=(.+)$", stage.cache, re.M)
    return Mpi(stage, family, found.group(1)) if found else None


@pytest.fixture(scope="session", params=["openmpi", "mpich"])
def mpi(request, stage):
    """Every MPI that xccl was built for, in turn."""
    found = find_mpi(stage, request.param)
    if found is None:
        pytest.skip(f"xccl was built without {request.param}, or it has no launcher")
    return found


@pytest.fixture(scope="session")
def any_mpi(stage):
    """One of them, for what does not depend on the MPI."""
    found = find_mpi(stage, "openmpi") or find_mpi(stage, "mpich")
    if found is None:
        pytest.skip("xccl was built without an MPI")
    return found


@pytest.fixture(scope="session")
def faulty_library(mpi, tmp_path_factory):
    target = tmp_path_factory.mktemp(mpi.family) / "faulty.so"
    return mpi.compile(HERE / "faulty.c", target, "-shared", "-fPIC", "-ldl")


@pytest.fixture
def faulty(mpi, faulty_library):
    """Run xccl-perf, or another tool, under an MPI that goes wrong in a given way; see faulty.c."""

    def run(fault, *arguments, **options):
        first = mpi.stage.environment().get("LD_PRELOAD")
        preload = ":".join(filter(None, [first, str(faulty_library)]))
        # Behind xccl-run and in front of the tool, so before the interposer.
        wrapper = [] if options.get("run") is None else options["run"]
        inner = ["sh", "-c", 'LD_PRELOAD="$0${LD_PRELOAD:+:$LD_PRELOAD}" exec "$@"', preload]
        return mpi.run(
            options.get("ranks", 2),
            *wrapper,
            *inner,
            mpi.stage.bin / options.get("tool", "xccl-perf"),
            *arguments,
            env={"FAULTY": fault},
            launching=options.get("launching", ()),
        )

    return run
