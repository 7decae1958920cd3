# SPDX-License-Identifier: BSD-3-Clause
"""The programs of docs/examples, compiled as their heads say and run on the simulated accelerator."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
EXAMPLES = TOP / "docs/examples"
STANDINS = Path(__file__).with_name("standins")
sys.path.insert(0, str(TOP / "libxccl/test/mpi"))

import mpi4py_suite  # noqa: E402
from mpi_harness import Build, known_mpis  # noqa: E402

RANKS = 3
DRIVER = "-l:libcuda.so.1"
PROGRAMS = (".c", ".cpp", ".f90", ".py")


def test_page_shows_them():
    """Each program is on the page, from its file; a formatter may not touch these lines."""
    page = (EXAMPLES / "index.md").read_text(encoding="utf-8")
    programs = [path.name for path in EXAMPLES.iterdir() if path.suffix in PROGRAMS]
    assert len(programs) == 6
    assert not [name for name in programs if f'\n--8<-- "docs/examples/{name}"\n' not in page]


@pytest.fixture(scope="module")
def build():
    folder = os.environ.get("XCCL_TEST_BUILD")
    if not folder:
        pytest.skip("XCCL_TEST_BUILD names no build; ci/test sets it")
    return Build(Path(folder))


@pytest.fixture(scope="module", params=["openmpi", "mpich"])
def mpi(request, build):
    found = known_mpis(build).get(request.param)
    if found is None or not found.mpiexec:
        pytest.skip(f"{request.param} is not installed, or xccl was built without it")
    return found


def compiled(build, mpi, folder, compiler, source, *flags, runtime="cuda"):
    """Compile an example against the stand-in of the vendor's runtime."""
    wrapper = shutil.which(f"{compiler}.{mpi.family}") or shutil.which(compiler)
    if not wrapper:
        pytest.skip(f"{compiler} of {mpi.family} is not installed")
    program = folder / f"{Path(source).stem}-{mpi.family}"
    # Its libraries are found as they are at run time: first of all in this folder.
    search = build.stage / "lib/xccl/sim" / runtime
    command = [wrapper, EXAMPLES / source, "-o", program, f"-L{search}", *flags]
    command += [f"-Wl,-rpath-link,{search}:{build.stage / 'lib/xccl/sim'}"]
    done = subprocess.run(
        list(map(str, command)),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=folder,
    )  # Fortran's module files land in the folder, too
    assert done.returncode == 0, done.stderr
    return program


def check(result):
    assert not result.timed_out, result.out
    assert result.status == 0, result.out
    assert f"{RANKS} ranks: right" in result.out


def test_c(build, mpi, tmp_path):
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", DRIVER]
    # The real header where there is one, else the few declarations that are needed.
    flags += [] if Path("/usr/local/cuda/include/cuda.h").exists() else [f"-I{STANDINS}"]
    program = compiled(build, mpi, tmp_path, "mpicc", "allreduce_cuda.c", *flags)
    check(mpi.run(RANKS, [program], env={"XCCL_LOG": "info"}))


def test_fails_without_xccl(build, mpi, tmp_path):
    """The MPIs here are not GPU-aware: what makes the example work is xccl."""
    if build.sanitized:
        pytest.skip("the release build runs it")
    program = compiled(build, mpi, tmp_path, "mpicc", "allreduce_cuda.c", f"-I{STANDINS}", DRIVER)
    result = mpi.run(RANKS, [program], preload=False, timeout=60)
    assert result.status != 0
    assert "right" not in result.out


def test_fortran(build, mpi, tmp_path):
    program = compiled(build, mpi, tmp_path, "mpifort", "allreduce_fortran.f90", DRIVER)
    check(mpi.run(RANKS, [program]))


def test_hip(build, mpi, tmp_path):
    headers = Path(os.environ.get("ROCM_PATH", "/usr")) / "include"
    if not (headers / "hip/hip_runtime_api.h").exists():
        pytest.skip("no headers of HIP in /usr or ROCM_PATH (Debian: libamdhip64-dev)")
    flags = ["-D__HIP_PLATFORM_AMD__", "-Wall", "-Wextra", "-l:libamdhip64.so"]
    flags += [] if headers == Path("/usr/include") else [f"-I{headers}"]
    program = compiled(build, mpi, tmp_path, "mpicxx", "ring_hip.cpp", *flags, runtime="rocm")
    check(mpi.run(RANKS, [program], sim="rocm:4"))


def test_kokkos(build, mpi, tmp_path):
    """With Debian's Kokkos, which has no device: the program is right, and xccl leaves it alone."""
    root = Path(os.environ.get("XCCL_TEST_KOKKOS", "/usr"))
    libraries = sorted(root.glob("lib/*/libtrilinos_kokkoscore.so"))
    if not libraries or build.sanitized:
        pytest.skip("no Kokkos in /usr or XCCL_TEST_KOKKOS (Debian: libtrilinos-kokkos-dev)")
    folder = libraries[0].parent
    flags = ["-std=c++17", "-fopenmp", "-isystem", root / "include/trilinos", f"-L{folder}"]
    flags += ["-ltrilinos_kokkoscore", "-ltrilinos_kokkoscontainers", f"-Wl,-rpath,{folder}"]
    program = compiled(build, mpi, tmp_path, "mpicxx", "halo_kokkos.cpp", *flags)
    check(mpi.run(RANKS, [program], env={"OMP_NUM_THREADS": "1"}))


def python(mpi, name, *folders):
    """Run an example in Python: mpi4py and the example are as they are."""
    if not mpi4py_suite.is_installed(mpi):
        pytest.skip("mpi4py is not installed; ci/bootstrap test does it")
    env = mpi4py_suite.python_env(mpi)
    path = [*folders, env.get("PYTHONPATH")]
    env = {**env, "PYTHONPATH": ":".join(map(str, filter(None, path)))}
    return mpi.run(
        RANKS,
        [sys.executable, str(EXAMPLES / name)],
        env=env,
        library_path=mpi4py_suite.library_path(mpi),
    )


def test_cupy(mpi):
    """With a stand-in for CuPy."""
    check(python(mpi, "allreduce_cupy.py", STANDINS, TOP / "libxccl/test/mpi"))


def test_mpi4py(mpi):
    """With nothing but mpi4py and the simulated driver."""
    check(python(mpi, "allreduce_mpi4py.py"))
