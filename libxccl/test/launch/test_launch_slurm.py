# SPDX-License-Identifier: BSD-3-Clause
"""srun … xccl-run xccl-perf on two nodes of a real Slurm, asked from inside the processes."""

import json
import os
import re
import time

import pytest
from running_clock import now
from slurm_cluster import NODES
from test_bind_plan import EXPECTED, cpus

# What is compiled here is tested without Slurm, too.
pytestmark = pytest.mark.release_only

SIM = {
    "juwels-booster": "cuda:4",
    "frontier": "rocm:8",
    "dgx-a100": "cuda:8",
    "dgx-h100": "cuda:8",
}
# Each rank says what it has, then becomes the benchmark; ranks outnumber the cores here.
SEE = """
{
    sed -n 's/^Cpus_allowed_list:\\t/Cpus_allowed_list=/p' /proc/self/status
    hostname | sed 's/^/HOST=/'
    env
} >"$SEEN/$SLURM_PROCID"
exec "$@"
"""
ENV = {"XCCL_SIM_NODES": "2", "OMPI_MCA_mpi_yield_when_idle": "1", "XCCL_LOG": "info"}
PERF = ["--min", "1k", "--max", "1k", "--iters", "2"]


# Open MPI 4.1.4: btl/tcp calls a callback that is not registered yet when a peer's first message
# comes while this rank is still in MPI_Init (about one start of forty here). Until Debian has 5.0.
BTL_TCP_RACE = re.compile(
    r"Failing at address: \(nil\)|SEGV on unknown address 0x0+ \(pc 0x0+ "
    r'|"run-failed",[^}]*(?:End of error message|AddressSanitizer)'  # as xccl-doctor tells it
)


def steady(cluster, *command, env):
    """Run on the cluster; again, at most twice, if Open MPI itself crashed while starting."""
    for _ in range(3):
        ended = cluster.run(*command, env=env, timeout=60)
        if ended.returncode == 0 or not BTL_TCP_RACE.search(ended.stdout + ended.stderr):
            break
    return ended


@pytest.fixture
def launch(tools, tmp_path):
    """srun with xccl-run in front of a program; what it printed, and every rank's variables."""

    def run(cluster, srun, options, program=None, env=None):
        folder = tmp_path / "seen"
        folder.mkdir(exist_ok=True)
        program = program or [tools.bin / "xccl-perf", *PERF]
        wrapper = ["sh", "-c", SEE, "sh", *program]
        variables = {**tools.environment(), **ENV, "SEEN": str(folder), **(env or {})}
        command = ["srun", "-l", *srun, tools.bin / "xccl-run", *options, *wrapper]
        ended = steady(cluster, *command, env=variables)
        assert ended.returncode == 0, f"{ended.stdout}\n{ended.stderr}\n{cluster.logs()}"
        ranks = {}
        for file in folder.iterdir():
            pairs = (line.split("=", 1) for line in file.read_text().splitlines() if "=" in line)
            ranks[int(file.name)] = dict(pairs)
        return ended, ranks

    return run


@pytest.mark.parametrize("site", EXPECTED)
def test_every_rank_lands_on_the_map(launch, wide_slurm, topology, site):
    """Two nodes of the site's shape, four ranks each, and the vendor library serves them."""
    options = ["--sim", SIM[site], "--site", site, "--topology", topology(site), "--report"]
    srun = ["-N2", "-n8", "--ntasks-per-node=4", f"--gpus-per-node={SIM[site].split(':')[1]}"]
    if site == "juwels-booster":
        srun[-1] = "--gpus-per-node=4"
    if site == "frontier":
        srun.append("--network=disable_rdzv_get")  # what its job scripts ask for
    ended, ranks = launch(wide_slurm, srun, options, env={"MPICH_GPU_SUPPORT_ENABLED": "1"})
    assert sorted(ranks) == list(range(8))
    for rank, env in ranks.items():
        gpu, numa, cores, nic = EXPECTED[site][rank % 4]
        assert env["HOST"] == NODES[rank // 4]
        assert env["XCCL_LOCAL_DEVICE"] == str(gpu)
        assert env["XCCL_SITE"] == site
        if nic.startswith("mlx5"):
            assert env["UCX_NET_DEVICES"] == f"{nic}:1"
        else:
            assert env["MPICH_OFI_NIC_POLICY"] == "GPU"
            assert env["NCCL_NET"] == "OFI"
        place = f"host {env['HOST']} rank {rank} local {rank % 4} cores {cores} numa {numa}"
        assert f"{place} gpu {gpu} device {gpu} nic {nic} distance near/" in ended.stderr
    assert re.search(r"\b(ccl|direct)\b.*\bok$", ended.stdout, re.M), ended.stdout
    # Eight ranks on two cores that others may use, too: how long they wait is not the question.
    warnings = [line for line in ended.stderr.splitlines() if "warning" in line]
    assert [line for line in warnings if "warning: waiting for" not in line] == []


@pytest.mark.parametrize("network", [None, "job_vni", "disable_rdzv_get"])
def test_an_option_that_only_slurm_knows(launch, wide_slurm, topology, network):
    """srun's --network is in no variable. One rank asks Slurm, and complains where it lacks."""
    options = ["--sim", SIM["frontier"], "--site", "frontier", "--topology", topology("frontier")]
    srun = ["-N2", "-n4", "--ntasks-per-node=2", "--gpus-per-node=8"]
    srun += [f"--network={network}"] if network else []
    ended, ranks = launch(wide_slurm, srun, options, program=["true"])
    assert [env.get("SLURM_NETWORK") for env in ranks.values()] == [None] * 4
    told = [line for line in ended.stderr.splitlines() if "[cxi-rendezvous]" in line]
    assert [line.split(":")[0] for line in told] == (
        [] if network == "disable_rdzv_get" else ["0"]
    )


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_real_cores_are_bound(launch, slurm, tmp_path):
    """Slurm leaves both cores to both ranks; the map gives each one."""
    (tmp_path / "map").write_text("0 1 0 1 auto auto\n1 0 0 0 auto auto\n")
    srun = ["-N2", "-n4", "--exclusive", "--cpu-bind=none", "--gpus-per-node=4"]
    _, ranks = launch(slurm, srun, ["--sim", "cuda:4", "--map", tmp_path / "map"])
    found = {
        r: (e["HOST"], e["Cpus_allowed_list"], e["XCCL_LOCAL_DEVICE"]) for r, e in ranks.items()
    }
    assert found == {
        0: (NODES[0], "1", "1"),
        1: (NODES[0], "0", "0"),
        2: (NODES[1], "1", "1"),
        3: (NODES[1], "0", "0"),
    }


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_slurms_own_binding_is_followed(launch, slurm, tmp_path):
    """Slurm binds rank r to core r against the map: each takes the GPU of its core."""
    (tmp_path / "map").write_text("0 1 0 1 auto auto\n1 0 0 0 auto auto\n")
    srun = ["-N2", "-n4", "--exclusive", "--cpu-bind=cores", "--gpus-per-node=4"]
    ended, ranks = launch(slurm, srun, ["--sim", "cuda:4", "--map", tmp_path / "map"])
    for rank, env in ranks.items():
        assert env["Cpus_allowed_list"] == str(rank % 2)
        assert env["XCCL_LOCAL_DEVICE"] == str(rank % 2)
    assert "cores-outside" not in ended.stderr


def test_hidden_gpus_are_found(launch, wide_slurm):
    """--gpus-per-task shows each task one of the four GPUs that the job has."""
    srun = ["-N1", "-n4", "--gpus-per-task=1"]
    env = {"XCCL_SIM_NODES": "1"}
    ended, ranks = launch(wide_slurm, srun, ["--sim", "cuda:8"], ["true"], env)
    assert ended.stderr.count("[gpu-hidden]") == 1, "one rank of all says it"
    assert "--gpu-bind=none" in ended.stderr
    assert [ranks[r]["CUDA_VISIBLE_DEVICES"] for r in range(4)] == list("0123")
    assert {env["XCCL_LOCAL_DEVICE"] for env in ranks.values()} == {"0"}


def test_gpus_of_the_whole_node_are_given_back(launch, wide_slurm):
    """The same where the step has all GPUs of the node and nothing but a variable hides them."""
    srun = ["-N1", "-n8", "--gpus-per-task=1"]
    ended, ranks = launch(wide_slurm, srun, ["--sim", "cuda:8"], env={"XCCL_SIM_NODES": "1"})
    assert "gpu-hidden" not in ended.stderr
    for rank, env in ranks.items():
        assert env["CUDA_VISIBLE_DEVICES"] == "0,1,2,3,4,5,6,7"
        assert env["XCCL_LOCAL_DEVICE"] == str(rank)
    assert re.search(r"\b(ccl|direct)\b.*\bok$", ended.stdout, re.M), ended.stdout


def test_more_ranks_than_gpus(launch, wide_slurm):
    srun = ["-N1", "-n4", "--gpus-per-node=2"]
    ended, _ = launch(wide_slurm, srun, ["--sim", "cuda:2"], ["true"])
    assert ended.stderr.count("[ranks-over-gpus]") == 1


def test_one_node_uses_no_fabric(launch, wide_slurm):
    options = ["--sim", "rocm:8", "--site", "frontier"]
    env = {"NCCL_NET": "AWS Libfabric"}  # as a module may set it for every job
    _, ranks = launch(wide_slurm, ["-N1", "-n2", "--gpus-per-node=8"], options, ["true"], env)
    assert {env["NCCL_NET"] for env in ranks.values()} == {"Socket"}


def test_mpirun_in_a_job(tools, wide_slurm, tmp_path):
    """SLURM_LOCALID is the daemon's there, and 0 for every rank."""
    script = tmp_path / "job.sh"
    script.write_text(
        "#!/bin/sh\n"
        f"{tools.bin}/xccl-run true || exit 1\n"  # the batch step is no rank
        f"mpirun -n 2 --bind-to none {tools.bin}/xccl-run --sim cuda:8 --site dgx-a100 "
        "sh -c 'echo rank $OMPI_COMM_WORLD_RANK local $SLURM_LOCALID device $XCCL_LOCAL_DEVICE'\n"
    )
    out, done = tmp_path / "out", tmp_path / "done"
    script.write_text(script.read_text() + f"echo $? >{done}\n")
    ended = wide_slurm.run("sbatch", "-N1", "-n2", "-o", out, script, env=tools.environment())
    assert ended.returncode == 0, ended.stderr
    end = now() + 30
    while not done.exists() and now() < end:
        time.sleep(0.05)
    assert done.exists(), f"{out.read_text()}\n{wide_slurm.logs()}"
    lines = sorted(line for line in out.read_text().splitlines() if line.startswith("rank"))
    assert [line.split()[-1] for line in lines] == ["0", "1"], lines


def test_slice_of_the_cores(launch, slurm):
    """Slurm gives the task one core of two: nothing widens that."""
    _, ranks = launch(
        slurm, ["-N1", "-n1", "-c1", "--gpus-per-node=4"], ["--sim", "cuda:4"], ["true"]
    )
    assert len(cpus(ranks[0]["Cpus_allowed_list"])) == 1


def test_doctor_runs_a_job(tools, wide_slurm):
    """A healthy one says nothing; one with hidden GPUs is told so."""
    env = {**tools.environment(), **ENV, "XCCL_SIM": "cuda:8"}
    doctor = [tools.bin / "xccl-doctor", "--json", "--timeout", "40", "--run", "--", "srun"]
    ended = steady(wide_slurm, *doctor, "-N2", "-n8", "--gpus-per-node=8", env=env)
    found = json.loads(ended.stdout)
    assert (ended.returncode, found["findings"]) == (0, []), ended.stdout
    served = ("allreduce is served by ccl", "allreduce is served by direct")
    assert any(fact in found["facts"] for fact in served), found["facts"]
    env["XCCL_SIM_NODES"] = "1"
    ended = steady(wide_slurm, *doctor, "-N1", "-n4", "--gpus-per-task=1", env=env)
    found = json.loads(ended.stdout)
    assert [f["id"] for f in found["findings"]] == ["gpu-hidden"], ended.stdout
    assert ended.returncode == 3, "warnings alone"


def test_ranks_that_do_not_know_of_each_other(tools, wide_slurm, tmp_path):
    """srun --mpi=none in front of an MPI that wants another interface: a warning for each node."""
    program = tools.folder.parent / "test/mpi/mpi_host-mpich"
    if not program.exists():
        pytest.skip("xccl was built without MPICH")
    env = {**tools.environment(), "LD_PRELOAD": str(tools.folder / "lib/libxccl-mpi.so")}
    if tools.sanitized:
        env["LD_PRELOAD"] = tools.environment()["LD_PRELOAD"] + ":" + env["LD_PRELOAD"]
    inner = ["env", f"LD_PRELOAD={env.pop('LD_PRELOAD')}", program]

    alone = wide_slurm.run("srun", "--mpi=none", "-N2", "-n4", *inner, env=env)
    said = [line for line in alone.stderr.splitlines() if "is alone in MPI_COMM_WORLD" in line]
    assert len(said) == 2, alone.stderr
    assert all("srun started 4 processes (SLURM_STEP_NUM_TASKS=4)" in line for line in said)
    assert all("srun --mpi=" in line for line in said)

    one = wide_slurm.run("srun", "--mpi=none", "-n1", *inner, env=env)
    assert one.returncode == 0 and "xccl" not in one.stderr, one.stderr

    # A singleton of a batch script, in an allocation of many tasks.
    out, done = tmp_path / "out", tmp_path / "done"
    script = tmp_path / "job.sh"
    words = " ".join(map(str, inner))
    script.write_text(f"#!/bin/sh\nenv | grep ^SLURM_NTASKS\n{words}\necho $? >{done}\n")
    wide_slurm.run("sbatch", "-N1", "-n4", "-o", out, script, env=env)
    end = now() + 30
    while not done.exists() and now() < end:
        time.sleep(0.05)
    assert done.exists() and done.read_text() == "0\n", wide_slurm.logs()
    assert "SLURM_NTASKS=4" in out.read_text() and "xccl" not in out.read_text(), out.read_text()


def test_compare(tools, wide_slurm, tmp_path):
    """xccl-compare with srun on two nodes: it sees both, and a suite's shapes that fit."""
    variables = {**tools.environment(), **ENV, "XCCL_LOG": "warn"}
    command = [
        tools.bin / "xccl-compare",
        "--sim",
        "cuda:4",
        "--output",
        tmp_path / "out",
        "--no-plot",
    ]
    command += ["--routes", "xccl", "--max", "8", "--rounds", "1", "--iters", "2"]
    plan = wide_slurm.run(
        *command, "--dry-run", "--suite", "juwels-2022", "--", "srun", env=variables
    )
    assert "srun --nodes=2 --ntasks=8 --ntasks-per-node=4 env " in plan.stdout
    srun = ["srun", "-N2", "-n4", "--gpus-per-node=2"]
    ended = steady(wide_slurm, *command, "--", *srun, env=variables)
    assert ended.returncode == 0, ended.stdout + ended.stderr + wide_slurm.logs()
    result = json.loads((tmp_path / "out/result.json").read_text())
    assert result["cases"] == [{"name": "job", "nodes": 2, "ranks": 4, "groups": None}]
    assert result["complete"] and all(row["verified"] for row in result["results"])
