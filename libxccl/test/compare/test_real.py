# SPDX-License-Identifier: BSD-3-Clause
"""xccl-compare as it is built, with Open MPI on the simulated accelerator."""

import json
import os
import re
import subprocess
from pathlib import Path

import jsonschema
import pytest
from compare_world import SCHEMA, TOP

BUILD = Path(os.environ.get("XCCL_TEST_BUILD", TOP / "build/release"))


def find_mpirun():
    cache = BUILD / "CMakeCache.txt"
    if not cache.exists():
        pytest.fail(f"{BUILD} holds no build; name one in XCCL_TEST_BUILD")
    found = re.search(r"^XCCL_MPIEXEC_openmpi:[A-Z]+=(.+)$", cache.read_text(), re.M)
    if found is None:
        pytest.skip("xccl was built without Open MPI")
    return found.group(1)


@pytest.mark.release_only
def test_two_ranks(tmp_path):
    """Every route that there is, two sizes, two rounds: verified, and each by its own path."""
    words = ["--sim", "cuda:2", "--rounds", "2", "--iters", "2", "--max", "512", "--factor", "64"]
    program = (BUILD / "stage/bin/xccl-compare").resolve()
    env = {k: v for k, v in os.environ.items() if not k.startswith(("XCCL_", "SLURM_"))}
    env.update(
        OMPI_ALLOW_RUN_AS_ROOT="1",
        OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
        OMPI_MCA_mpi_yield_when_idle="1",
    )
    command = [program, *words, "--no-plot", "--", find_mpirun(), "-n", "2"]
    ended = subprocess.run(
        command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=180, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    result = json.loads((tmp_path / "xccl-compare/result.json").read_text())
    jsonschema.validate(result, SCHEMA)
    assert result["measured_with"]["simulated"] == "cuda:2" and result["complete"]
    assert all(e["verified"] and len(e["samples_us"]) == 2 for e in result["results"])
    paths = {e["variant"]: e["path"] for e in result["results"]}
    assert paths["vendor"] == "vendor" and paths["mpi"] == "mpi-staged"
    assert paths["xccl"] in ("direct", "ccl")
    assert "SIMULATED: these times mean nothing" in ended.stdout
