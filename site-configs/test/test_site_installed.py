# SPDX-License-Identifier: BSD-3-Clause
"""The library as it was built, installed with scripts and modules, and used through them."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from site_shells import BY_NAME, LMOD_INIT, read_env
from site_tree import TOP

BUILD = os.environ.get("XCCL_TEST_BUILD")
pytestmark = pytest.mark.skipif(
    not BUILD, reason="no build to install: set XCCL_TEST_BUILD (make test does)"
)


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """A prefix as `make install` fills it."""
    prefix = tmp_path_factory.mktemp("real") / "xccl"
    for command in (["cmake", "--install", BUILD, "--prefix"], [TOP / "ci/install-tree"]):
        subprocess.run([*command, prefix], check=True, timeout=120, capture_output=True)
    return prefix


@pytest.fixture
def bash():
    BY_NAME["bash"].need()
    return BY_NAME["bash"]


def test_the_library_knows_every_variable(real, sites, bash, tmp_path):
    """A mistyped XCCL_ variable is an error there: none that is set here may be one."""
    lines = ["set -e"]
    for site, facts in sites.items():
        for route, of in facts["resolved"]["routes"].items():
            if not of["refused"]:
                lines += [*bash.xccl(real, site, "--route", route), "xccl-info --config"]
    done = bash.run(lines, tmp_path)
    assert done.stderr == ""
    assert done.stdout.count("XCCL_SITE") >= len(sites)


def module_lines(bash, real, *words):
    return [*bash.start_lmod(real / "share/xccl/modulefiles"), f"module load {' '.join(words)}"]


@pytest.mark.skipif(not LMOD_INIT.is_dir(), reason="Lmod is not installed")
def test_a_program_runs_through_the_modules(real, bash, tmp_path):
    mpirun = shutil.which("mpirun.openmpi")
    if mpirun is None or not list(Path(real).glob("lib*/**/libxccl-mpi-openmpi.so")):
        pytest.skip("no Open MPI here, or none that xccl was built for")
    env = {
        "XCCL_SITE": "sim",
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_mpi_yield_when_idle": "1",
    }
    perf = "xccl-perf --coll allreduce --min 4k --max 4k --iters 2"
    run = f"{mpirun} --oversubscribe -n 2 xccl-run --sim cuda:2 {perf}"
    lines = [*module_lines(bash, real, "xccl"), f"XCCL_MPI=openmpi {run}"]
    done = bash.run(lines, tmp_path, env)
    assert re.search(r"^ +4096 +1024 direct .* ok$", done.stdout, re.M), done.stdout


@pytest.mark.skipif(not LMOD_INIT.is_dir(), reason="Lmod is not installed")
def test_preloading_harms_no_program(real, bash, tmp_path):
    lines = [*module_lines(bash, real, "xccl", "xccl-auto"), bash.dump(tmp_path / "on")]
    lines += ["ls / > /dev/null", "python3 -c 'print(40 + 2)'", "module purge", "true"]
    done = bash.run(lines, tmp_path, {"XCCL_SITE": "sim"})
    assert "libxccl-mpi.so" in read_env(tmp_path / "on")["LD_PRELOAD"]
    assert (done.stdout, done.stderr) == ("42\n", "")
