# SPDX-License-Identifier: BSD-3-Clause
"""A program of one MPI behind the launcher of another: xccl-run reads what the program is linked with."""

import json
import shutil
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
