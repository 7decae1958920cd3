# SPDX-License-Identifier: BSD-3-Clause
"""xccl-perf and xccl-tune have Cray MPICH's GPU transport layer, without which MPI_Init ends them on some sites."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

LIBXCCL = Path(__file__).resolve().parents[2]
PAIR = {
    "PE_MPICH_GTL_DIR_nvidia80": "-L/opt/gtl/lib",
    "PE_MPICH_GTL_LIBS_nvidia80": "-lmpi_gtl_cuda",
}
OTHER = {
    "PE_MPICH_GTL_DIR_amd_gfx90a": "-L/opt/gtl/lib",
    "PE_MPICH_GTL_LIBS_amd_gfx90a": "-lmpi_gtl_hsa",
}


def links(build, **env):
    """{program: how it is linked} where Cray's modules have set @p env."""
    if not shutil.which("mpicc.mpich"):
        pytest.skip("no MPICH: apt-get install libmpich-dev")
    command = ["cmake", "-G", "Unix Makefiles", "-S", LIBXCCL, "-B", build, "-DXCCL_MPICC=mpicc.mpich",
               "-DXCCL_SIM=OFF", "-DXCCL_NVCC=", "-DXCCL_HIPCC="]  # fmt: skip
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("PE_", "CRAY_"))
    }
    subprocess.run(command, env=kept | env, capture_output=True, timeout=120, check=True)
    files = build.glob("*/CMakeFiles/xccl-*.dir/link.txt")
    return {file.parent.stem: file.read_text(encoding="utf-8") for file in files}


def test_the_layer_of_the_loaded_accelerator(tmp_path):
    made = links(tmp_path, CRAY_ACCEL_TARGET="nvidia80", **PAIR, **OTHER)
    for program in ("xccl-perf-mpich", "xccl-tune-mpich"):
        assert (
            "--no-as-needed -L/opt/gtl/lib -Wl,-rpath,/opt/gtl/lib -lmpi_gtl_cuda" in made[program]
        )
        assert "mpi_gtl_hsa" not in made[program]
    assert "gtl" not in made["xccl-info"], "it starts no MPI"


@pytest.mark.parametrize("env", [PAIR, {"CRAY_ACCEL_TARGET": "host"}], ids=["none", "host"])
def test_without_an_accelerator_there_is_none(tmp_path, env):
    assert "gtl" not in links(tmp_path, **env)["xccl-perf-mpich"]
