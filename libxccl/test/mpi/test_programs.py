# SPDX-License-Identifier: BSD-3-Clause
"""Programs of their own: the ways of allgatherv, libxccl's C API on MPI communicators, Fortran."""

import re
import shutil
import subprocess

import pytest
from mpi_harness import PATHS, share
from test_collectives import log_of
from test_random import seed


@pytest.mark.release_only
@pytest.mark.each_value
@pytest.mark.parametrize(
    ("runtime", "ranks"),
    [("cuda", 2), ("cuda", 5), pytest.param("rocm", 2, marks=pytest.mark.thorough)],
)
def test_allgatherv(family, ranks, runtime):
    env = {**share(family), "XCCL_LOG": "info"}
    result = family.run(ranks, f"mpi_allgatherv {runtime}", sim=f"{runtime}:{ranks}", env=env)
    assert result.good() == ranks * (74 if ranks == 2 else 72)
    assert log_of(result, "(ccl|direct)")


@pytest.mark.parametrize("ranks", [1, 3])
def test_face(family, ranks):
    """xccl_mpi.h, in a program that is linked with both libraries."""
    env = {**PATHS["direct"], "XCCL_LOG": "info"}
    result = family.run(ranks, "mpi_face cuda", sim="cuda:4", preload=False, env=env)
    result.good()
    assert bool(result.lines(f"allreduce .* on {ranks} ranks: direct")) == (ranks > 1), result.out


def test_face_threads(family):
    """Two threads make communicators where one is spare: neither is refused."""
    family.run(2, "mpi_face cuda threads", sim="cuda:2", preload=False, timeout=60).good()


@pytest.mark.parametrize("why", ["same", "none", "differ"])
def test_face_refused(openmpi, why):
    """No communicator: each cause has the code that xccl.h gives it, on every rank."""
    program = openmpi.program("mpi_face")
    old = "test $OMPI_COMM_WORLD_RANK = 1 && export XCCL_SIM_VERSION=22304; "
    command = f"{old if why == 'differ' else ''}exec {program} cuda {why}"
    env = {"XCCL_CCL": "none"} if why == "none" else {}
    openmpi.run(2, ["/bin/sh", "-c", command], env=env, preload=False, timeout=60).good()


def need_fortran(mpi, program):
    if mpi.name == "openmpi5":
        pytest.skip("the wheel of Open MPI 5 has no Fortran libraries")
    if not mpi.program(program).exists():
        pytest.skip("gfortran or this MPI's Fortran module is missing: apt install gfortran")


@pytest.mark.parametrize("ranks", [1, 3])
def test_fortran(family, ranks):
    """The same program without the interposer would hand device memory to MPI, and crash."""
    need_fortran(family, "mpi_fortran")
    result = family.run(ranks, "mpi_fortran cuda", sim="cuda:4", env={"XCCL_LOG": "info"})
    result.good()
    assert log_of(result, "(ccl|direct)" if ranks > 1 else "self")


@pytest.mark.parametrize("level", ["single", "multiple"])
def test_fortran_threads(family, level):
    """MPI_Init of Fortran is xccl's, too: it asks for the level of threads that messages in pieces need."""
    need_fortran(family, "mpi_fortran")
    env = {"XCCL_THREADS": "multiple"} if level == "multiple" else {}
    result = family.run(2, "mpi_fortran cuda", sim="cuda:2", env=env, timeout=60)
    result.good()
    ranks = len(result.lines("^MPI_THREAD_MULTIPLE$"))
    assert ranks == (2 if level == "multiple" else 0), result.out


def test_fortran_session(family):
    """MPI's functions for mpi_f08 call PMPI_Session_init: the session is known all the same."""
    need_fortran(family, "mpi_fortran_session")
    family.run(2, "mpi_fortran_session cuda", sim="cuda:2", timeout=60).good()


def test_fortran_session_reference(family):
    """On host memory and without xccl the program itself is right."""
    need_fortran(family, "mpi_fortran_session")
    family.run(2, "mpi_fortran_session none", sim=None, preload=False, timeout=60).good()


@pytest.mark.parametrize("case", ["alone", "before", "after", "across"])
def test_session_by_pmpi(mpich, case):
    """MPI and the session begin by PMPI_..., as from a tool in front of xccl."""
    mpich.run(2, f"mpi_session cuda {case} pmpi", sim="cuda:2", timeout=60).good()


def test_fortran_keys(family):
    """Attributes whose keys come from Fortran: MPI_Comm_free calls their callbacks before it ends."""
    need_fortran(family, "mpi_fortran_keys")
    family.run(2, "mpi_fortran_keys cuda", sim="cuda:2", timeout=60).good()


@pytest.mark.parametrize("runtime", ["cuda", "none"])
@pytest.mark.parametrize("ranks", [2, 3])
def test_fortran_arrays(family, ranks, runtime):
    """Open MPI 5 writes into the requests of collectives with arrays, which are smaller than its own.

    With "none" the program is on its own, on host memory: it does what MPI allows.
    """
    need_fortran(family, "mpi_fortran_arrays")
    devices = {"sim": f"{runtime}:4"} if runtime != "none" else {"sim": None, "preload": False}
    family.run(ranks, f"mpi_fortran_arrays {runtime}", timeout=60, **devices).good()


@pytest.mark.each_value
@pytest.mark.parametrize("face", ["mpifh", "mpi", "f08"])
@pytest.mark.parametrize(
    ("runtime", "ranks"), [("cuda", 1), ("cuda", 2), ("cuda", 3), ("rocm", 2), ("none", 2)]
)
def test_fortran_messages(mpi, face, runtime, ranks, tmp_path):
    """Messages, packing, windows and files by mpif.h, use mpi and use mpi_f08.

    With "none" the program is on its own, on host memory: it does what MPI allows. With 3 ranks
    all messages are fetched from the sender's memory, as large ones are.
    """
    program = f"mpi_fortran_messages_{face}"
    need_fortran(mpi, program)
    devices = {"sim": f"{runtime}:4"} if runtime != "none" else {"sim": None, "preload": False}
    env = {"XCCL_RENDEZVOUS": "240"} if ranks == 3 else {}
    command = f"{program} {runtime} {tmp_path} bottom"
    mpi.run(ranks, command, env=env, timeout=60, **devices).good()


def test_fortran_sections(mpich, tmp_path):
    """MPI frees the datatype of a section with a stride while the receive is pending."""
    need_fortran(mpich, "mpi_fortran_messages_f08")
    mpich.run(2, f"mpi_fortran_messages_f08 cuda {tmp_path} sections", timeout=60).good()


@pytest.mark.each_value
@pytest.mark.parametrize("runtime", ["cuda", "rocm"])
@pytest.mark.parametrize("ranks", [1, 4])
def test_large_counts(mpi, ranks, runtime):
    """The functions of MPI-4, with an MPI library that has them and with such that have not."""
    mpi.run(ranks, f"mpi_large {runtime}", sim=f"{runtime}:4").good()


@pytest.mark.each_value
@pytest.mark.parametrize("route", ["xccl", "mpi"])
@pytest.mark.parametrize("runtime", ["cuda", "rocm"])
def test_order(family, runtime, route):
    """A call reads what was copied before it, and writes after it, though the copy returned too early."""
    env = {"XCCL_ROUTE": route, "XCCL_SIM_EARLY": "1"}
    family.run(2, f"mpi_order {runtime}", sim=f"{runtime}:2", env=env).good()


def test_order_written(mpi):
    """Also where the sender writes the message into memory that is being filled."""
    env = {"XCCL_P2P_PUSH": "on", "XCCL_SIM_EARLY": "1"}
    mpi.run(2, "mpi_order cuda", sim="cuda:2", env=env).good()


@pytest.mark.release_only
@pytest.mark.parametrize("runtime", ["cuda", "rocm"])
def test_order_per_thread(openmpi, runtime):
    """Also where the program was compiled for a default stream of each thread."""
    env = {"XCCL_SIM_EARLY": "1"}
    openmpi.run(2, f"mpi_order {runtime} per-thread", sim=f"{runtime}:2", env=env).good()


@pytest.mark.parametrize("runtime", ["cuda", pytest.param("rocm", marks=pytest.mark.thorough)])
def test_order_served(openmpi, runtime):
    """Also where the sender has to put a message into a file."""
    env = {"XCCL_SIM_FAIL": "ipc", "XCCL_SIM_EARLY": "1"}
    openmpi.run(2, f"mpi_order {runtime}", sim=f"{runtime}:2", env=env).good()


@pytest.mark.parametrize(("ranks", "path"), [(2, "direct"), (3, "ccl")])
def test_integers(mpi, ranks, path):
    """Sums that leave the range, and values at its ends, as this MPI reduces them."""
    env = {**PATHS[path], "XCCL_LOG": "info"}
    result = mpi.run(ranks, "mpi_integers cuda", sim="cuda:4", env=env)
    result.good()
    assert log_of(result, path), f"some of them take the path {path}"


def test_arithmetic(mpi):
    """What the kernels make of each type and operation, against this MPI's own reduction.

    Sums of short integers are saturated by the AVX code of Open MPI, and are left to it; so is
    logic on Fortran's integers, which MPI does not define.
    """
    result = mpi.run(1, f"mpi_arithmetic none {seed()}", sim=None, preload=False)
    result.good()
    short = "(UN)?(SIGNED_)?(CHAR|SHORT)|U?INT(8|16)_T|INTEGER[12]"
    known = f"LONG_DOUBLE|MPI_SUM of MPI_({short}):|MPI_L(AND|OR|XOR) of MPI_INTEGER"
    if mpi.family == "mpiabi":  # MPICH 5.0's library: see mpich_50.c
        known += "|MPI_L(AND|OR|XOR) of MPI_LOGICAL"
    for line in result.lines("left to MPI"):
        assert re.search(known, line), line


@pytest.fixture
def tool(openmpi, tmp_path):
    """A profiling tool for Open MPI, which says in MPI_Finalize how many calls it saw."""
    source = tmp_path / "tool.c"
    source.write_text(
        "#include <mpi.h>\n#include <stdio.h>\nstatic int calls;\n"
        "int MPI_Allreduce(const void *s, void *r, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c)\n"
        "{ calls++; return PMPI_Allreduce(s, r, n, t, o, c); }\n"
        "int MPI_Comm_free(MPI_Comm *c) { return PMPI_Comm_free(c); }\n"
        'int MPI_Finalize(void) { printf("tool saw %d\\n", calls); return PMPI_Finalize(); }\n'
    )
    library = tmp_path / "libtool.so"
    mpicc = openmpi.build.families["openmpi"]["mpicc"]
    subprocess.run([mpicc, "-shared", "-fPIC", "-o", library, source], check=True)
    return library


def test_callbacks_behind_tools(openmpi, tool):
    """MPI calls a function of the program's while a tool behind xccl has the call."""
    preload = openmpi.build.preload(openmpi.build.interposer, tool)
    words = [shutil.which("env"), f"LD_PRELOAD={preload}", openmpi.program("mpi_attr")]
    openmpi.run(2, [*words, "cuda", "dup_device"], preload=False, timeout=60).good()


def test_tools_in_line(openmpi, tool):
    """A profiling tool sees every call once, preloaded in front of xccl or behind it."""
    program = openmpi.program("mpi_host")
    xccl = openmpi.build.interposer

    def seen(*libraries):
        preload = ":".join(map(str, filter(None, [openmpi.build.sanitizer, *libraries])))
        words = [shutil.which("env"), f"LD_PRELOAD={preload}", program]
        result = openmpi.run(2, words, sim=None, preload=False)
        assert result.status == 0, result.out
        return sorted(result.lines("tool saw"))

    expected = seen(tool)
    assert len(expected) == 2 and "saw 0" not in expected[0]
    assert seen(xccl, tool) == expected, "behind xccl"
    assert seen(tool, xccl) == expected, "in front of xccl"
