# SPDX-License-Identifier: BSD-3-Clause
"""A program of one MPI behind the launcher of another: xccl-run reads what the program is linked with."""

import json
import shutil
import struct
import subprocess

import pytest

OPEN_MPI = {
    "OMPI_COMM_WORLD_LOCAL_RANK": "0",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
    "OMPI_COMM_WORLD_RANK": "0",
    "OMPI_COMM_WORLD_SIZE": "2",
}
HYDRA = {"MPI_LOCALRANKID": "0", "MPI_LOCALNRANKS": "2", "PMI_RANK": "0", "PMI_SIZE": "2"}
SRUN = {
    "SLURM_LOCALID": "0",
    "SLURM_PROCID": "0",
    "SLURM_STEP_ID": "0",
    "SLURM_STEP_NUM_TASKS": "2",
}


@pytest.fixture
def program(tools):
    """The program of the tests that is linked with an MPI."""

    def find(family):
        file = tools.folder.parent / f"test/mpi/mpi_host-{family}"
        if not file.exists():
            pytest.skip(f"xccl was built without {family}")
        return file

    return find


def notes(tools, env, *command):
    bind = [tools.bin / "xccl-bind", "--plan", "--root", tools.bin, "--bind", "none", "--"]
    plan = json.loads(tools.good(*bind, *command, env=env).stdout)
    return {note["id"]: note["text"] for note in plan["notes"]}


@pytest.mark.parametrize(
    ("family", "env", "names"),
    [
        ("mpich", OPEN_MPI, ("linked with MPICH", "Open MPI's mpirun started it in 2 processes")),
        ("openmpi", HYDRA, ("linked with Open MPI", "Hydra) started it in 2 processes")),
    ],
)
def test_mismatch(tools, program, family, env, names):
    found = notes(tools, env, program(family))
    assert all(name in found["mpi-other-launcher"] for name in names), found


@pytest.mark.parametrize(
    ("family", "env"),
    [
        ("openmpi", OPEN_MPI),
        ("mpich", HYDRA),
        ("mpich", {**OPEN_MPI, "OMPI_COMM_WORLD_SIZE": "1"}),  # nobody is missed
        ("mpich", SRUN),  # it speaks to several MPIs
        ("openmpi", SRUN),
        ("mpiabi", OPEN_MPI),  # its library may be any MPI's
        ("mpiabi", HYDRA),
    ],
)
def test_match(tools, program, family, env):
    assert "mpi-other-launcher" not in notes(tools, env, program(family))


def test_what_has_no_mpi(tools):
    """A shell, a script and what is not there may start anything."""
    for command in ("sh", shutil.which("ldd") or "ldd", "/no/such/program"):
        assert "mpi-other-launcher" not in notes(tools, OPEN_MPI, command)


def test_static_program(tools, program, tmp_path):
    """No loader reads LD_PRELOAD for it."""
    source, file = tmp_path / "app.c", tmp_path / "app"
    source.write_text("int main(void) { return 0; }\n")
    made = subprocess.run(["cc", "-static", "-o", file, source], capture_output=True, check=False)
    if made.returncode != 0:
        pytest.skip(f"nothing can be linked statically here: {made.stderr.decode()[-200:]}")
    found = notes(tools, OPEN_MPI, file)
    assert f"{file} is linked statically, so xccl cannot serve it" in found["program-static"]
    for command in (program("openmpi"), "sh", "/no/such/program", source):
        assert "program-static" not in notes(tools, OPEN_MPI, command)


INSIDE = "int MPI_Init(void) { return 0; }\nint PMPI_Init(void) { return MPI_Init(); }\n"
THREADS = "int PMPI_Init_thread(void) { return 0; }\n"
# A program with a tool's wrapper inside; the address of what it calls is in its table of symbols.
WRAPPER = "extern int PMPI_Init(void);\nint (*volatile next)(void) = PMPI_Init;\n"
WRAPPER += "int MPI_Init(void) { return next(); }\n"


def compile_program(file, source, *options):
    text = f"{source}int main(void) {{ return 0; }}\n"
    command = ["cc", "-x", "c", "-", "-x", "none", *options, "-o", file]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("source", "options", "inside"),
    [
        (INSIDE, (), True),
        (INSIDE, ("-s", "-rdynamic"), True),
        (THREADS, (), True),
        (INSIDE, ("-s",), False),  # nothing of it is left to read
        (INSIDE.replace("PMPI_Init", "xPMPI_Init"), (), False),
        (INSIDE.replace("PMPI_Init", "PMPI_Initialized"), (), False),
        ("int PMPI_Init = 1;\n", (), False),
    ],
    ids=["init", "exported", "threads", "stripped", "longer", "other", "data"],
)
def test_mpi_inside(tools, tmp_path, source, options, inside):
    """A program with MPI's functions calls those, and not the ones that were preloaded."""
    file = tmp_path / "app"
    assert compile_program(file, source, *options).returncode == 0
    found = notes(tools, OPEN_MPI, file)
    assert ("program-own-mpi" in found) == inside
    assert "program-static" not in found
    assert not inside or f"{file} has an MPI library inside" in found["program-own-mpi"]


def test_mpi_inside_is_one_note(tools, tmp_path):
    """A static program has MPI inside, too: the first cause is named alone."""
    file = tmp_path / "app"
    made = compile_program(file, INSIDE, "-static")
    if made.returncode != 0:
        pytest.skip(f"nothing can be linked statically here: {made.stderr[-200:]}")
    found = notes(tools, OPEN_MPI, file)
    assert "program-static" in found
    assert "program-own-mpi" not in found


@pytest.mark.parametrize("options", [("-no-pie",), ("-no-pie", "-rdynamic")])
def test_wrapper_inside(tools, tmp_path, options):
    library, file = tmp_path / "libnext.so", tmp_path / "app"
    assert compile_program(library, INSIDE, "-shared", "-fPIC").returncode == 0
    made = compile_program(file, WRAPPER, *options, library)
    assert made.returncode == 0, made.stderr
    assert "program-own-mpi" not in notes(tools, OPEN_MPI, file)


def test_by_its_name(tools, program, tmp_path):
    """Found on PATH as the launcher would."""
    (tmp_path / "app").symlink_to(program("mpich"))
    found = notes(tools, {**OPEN_MPI, "PATH": f"{tmp_path}:/usr/bin:/bin"}, "app")
    assert "mpi-other-launcher" in found


def test_damaged_files(tools, program, tmp_path):
    """Truncated anywhere, or with a wrong byte in a header: an answer, or none, but no crash."""
    whole = program("mpich").read_bytes()
    file = tmp_path / "app"
    damaged = [whole[:size] for size in (0, 3, 40, 63, 64, 100, 500, 4096, len(whole) // 2)]
    damaged += [whole[:at] + b"\xff" * 8 + whole[at + 8 :] for at in range(16, 500, 40)]
    for content in damaged:
        file.write_bytes(content)
        notes(tools, OPEN_MPI, file)


def sections_of(whole):
    """Of an ELF file: where its table of sections is, and (kind, place, length) of each."""
    (table,) = struct.unpack_from("<Q", whole, 40)
    (count,) = struct.unpack_from("<H", whole, 60)
    return table, [struct.unpack_from("<4xI16xQQ", whole, table + 64 * i) for i in range(count)]


def test_damaged_symbols(tools, tmp_path):
    """The kernel starts a program whatever its sections say, so they may say anything."""
    file = tmp_path / "app"
    assert compile_program(file, INSIDE).returncode == 0
    whole = file.read_bytes()
    table, sections = sections_of(whole)
    (symbols,) = [(place, length) for kind, place, length in sections if kind == 2]
    names = bytearray(whole)
    for at in range(symbols[0], sum(symbols), 24):
        names[at : at + 4] = b"\xff" * 4
    damaged = [
        names,
        whole[:table],
        whole[:-1],
        whole.replace(b"\0PMPI_Init\0", b"\0PMPI_Init\xff"),
    ]
    damaged += [whole[:at] + b"\x77" * 8 + whole[at + 8 :] for at in range(table, len(whole), 8)]
    for content in damaged:
        file.write_bytes(content)
        notes(tools, OPEN_MPI, file)
