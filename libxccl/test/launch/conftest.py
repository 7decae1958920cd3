# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of launching run: the staged installation, made-up machines, and a real Slurm."""

import json
import os
import re
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest
from running_clock import communicate
from slurm_cluster import Cluster, NoSlurm, check_possible
from topologies import NODES, write_xml

TOP = Path(__file__).resolve().parents[3]
SITES = TOP / "site-configs"
NO_DEVICES = Path(__file__).parent  # a root without /sys
# Of other launchers, should the tests themselves run in a job.
FOREIGN = ("XCCL_", "SLURM_", "OMPI_", "PMI", "PALS_", "FLUX_", "MPI_LOCAL", "HWLOC_", "MPICH_")
VISIBLE = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "LD_PRELOAD")


class Tools:
    def __init__(self, folder):
        self.folder = folder
        self.bin = folder / "bin"
        cache = (folder.parent / "CMakeCache.txt").read_text()
        self.sanitized = re.search(r"^XCCL_SANITIZE:[A-Z]+=(ON|1|TRUE)$", cache, re.M)

    def environment(self, extra=None):
        env = {
            k: v for k, v in os.environ.items() if not k.startswith(FOREIGN) and k not in VISIBLE
        }
        env.update(
            ASAN_OPTIONS="detect_leaks=0",
            OMPI_ALLOW_RUN_AS_ROOT="1",
            OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
            OMPI_MCA_mpi_yield_when_idle="1",
        )
        if self.sanitized:
            command = ["cc", "-print-file-name=libasan.so"]
            env["LD_PRELOAD"] = subprocess.check_output(command, text=True).strip()
        env.update(extra or {})
        return env

    def run(self, *command, env=None, timeout=60):
        process = subprocess.Popen(
            [str(word) for word in command],
            env=self.environment(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            out, err = communicate(process, timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            pytest.fail(f"no end after {timeout} s: {command}")
        return subprocess.CompletedProcess(command, process.returncode, out, err)

    def good(self, *command, **options):
        ended = self.run(*command, **options)
        assert ended.returncode == 0, (
            f"{command}: {ended.returncode}\n{ended.stdout}\n{ended.stderr}"
        )
        return ended

    def plan(self, *options, env=None, root=NO_DEVICES):
        """What xccl-bind would do; real GPUs of this machine are not looked for."""
        command = [self.bin / "xccl-bind", "--plan", "--root", root, *options]
        return json.loads(self.good(*command, env=env).stdout)


@pytest.fixture(scope="session")
def tools():
    build = Path(os.environ.get("XCCL_TEST_BUILD", TOP / "build/release"))
    folder = Path(os.environ["XCCL_STAGE"]) if "XCCL_STAGE" in os.environ else build / "stage"
    if not (folder / "bin/xccl-bind").exists():
        pytest.fail(f"{folder} holds no tools; build, or name the build in XCCL_TEST_BUILD")
    return Tools(folder.resolve())


@pytest.fixture(scope="session")
def topology(tmp_path_factory):
    """The XML of a site's node, by the site's name."""
    folder = tmp_path_factory.mktemp("topologies")
    files = {site: write_xml(site, folder) for site in NODES}
    return files.__getitem__


@pytest.fixture
def site_map():
    return lambda site: SITES / site / "ranks.map"


def start_cluster(**shape):
    try:
        check_possible()
    except NoSlurm as missing:
        if os.environ.get("XCCL_REQUIRE_SLURM") == "1":
            pytest.fail(f"XCCL_REQUIRE_SLURM=1, but there is no Slurm to test with: {missing}")
        pytest.skip(f"no Slurm to test with: {missing}")
    with tempfile.TemporaryDirectory(prefix="xccl-slurm-") as folder, Cluster(
        folder, **shape
    ) as it:
        yield it


@pytest.fixture(scope="module")
def slurm():
    """Two nodes as this machine is."""
    yield from start_cluster()


@pytest.fixture(scope="module")
def wide_slurm():
    """Two nodes that claim 8 cores and 8 GPUs each; Slurm binds nothing there."""
    yield from start_cluster(cpus=8, gpus=8)
