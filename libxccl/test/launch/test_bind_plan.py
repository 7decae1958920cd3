# SPDX-License-Identifier: BSD-3-Clause
"""What each rank would get, on machines that are not here: xccl-bind --plan."""

import os
from pathlib import Path

import pytest
from topologies import NODES

NO_DEVICES = Path(__file__).parent  # a root without /sys

# (GPU, NUMA domain, cores, NIC) of local ranks 0, 1, ...: what the operators document.
EXPECTED = {
    "juwels-booster": [
        (0, 3, "18-23,66-71", "mlx5_0"),
        (1, 1, "6-11,54-59", "mlx5_1"),
        (2, 7, "42-47,90-95", "mlx5_2"),
        (3, 5, "30-35,78-83", "mlx5_3"),
    ],
    "frontier": [
        (4, 0, "1-7,65-71", "hsn2"),
        (5, 0, "9-15,73-79", "hsn2"),
        (2, 1, "17-23,81-87", "hsn1"),
        (3, 1, "25-31,89-95", "hsn1"),
        (6, 2, "33-39,97-103", "hsn3"),
        (7, 2, "41-47,105-111", "hsn3"),
        (0, 3, "49-55,113-119", "hsn0"),
        (1, 3, "57-63,121-127", "hsn0"),
    ],
    "dgx-a100": [
        (0, 3, "48-55,176-183", "mlx5_0"),
        (1, 3, "56-63,184-191", "mlx5_1"),
        (2, 1, "16-23,144-151", "mlx5_2"),
        (3, 1, "24-31,152-159", "mlx5_3"),
        (4, 7, "112-119,240-247", "mlx5_6"),
        (5, 7, "120-127,248-255", "mlx5_7"),
        (6, 5, "80-87,208-215", "mlx5_8"),
        (7, 5, "88-95,216-223", "mlx5_9"),
    ],
    "dgx-h100": [
        (0, 0, "0-13,112-125", "mlx5_0"),
        (1, 0, "14-27,126-139", "mlx5_3"),
        (2, 0, "28-41,140-153", "mlx5_4"),
        (3, 0, "42-55,154-167", "mlx5_5"),
        (4, 1, "56-69,168-181", "mlx5_6"),
        (5, 1, "70-83,182-195", "mlx5_9"),
        (6, 1, "84-97,196-209", "mlx5_10"),
        (7, 1, "98-111,210-223", "mlx5_11"),
    ],
}


def cpus(text):
    """The set that "0-3,8" means."""
    out = set()
    for part in text.split(","):
        low, _, high = part.partition("-")
        out.update(range(int(low), int(high or low) + 1))
    return out


def rows(plan):
    return [(r["gpu"], r["numa"], r["cores"], r["nic"]) for r in plan["ranks"]]


@pytest.fixture
def juwels(tools, topology, site_map):
    """A plan for JUWELS Booster by its map."""
    site = ["--map", site_map("juwels-booster"), "--topology", topology("juwels-booster")]
    return lambda *options, **more: tools.plan(*site, *options, **more)


def ids(plan):
    return [note["id"] for note in plan["notes"]]


def mask(text):
    return hex(sum(1 << cpu for cpu in cpus(text)))


def slurm_env(masks, local_rank=0, **more):
    """A task of a step on one node, with a mask for each."""
    env = {
        "SLURM_STEP_ID": "0",
        "SLURM_LOCALID": str(local_rank),
        "SLURM_PROCID": str(local_rank),
        "SLURM_NODEID": "0",
        "SLURM_STEP_TASKS_PER_NODE": str(len(masks)),
        "SLURM_CPU_BIND_TYPE": "mask_cpu:",
        "SLURM_CPU_BIND_LIST": ",".join(map(mask, masks)),
    }
    env.update(more)
    return env


@pytest.mark.parametrize("site", EXPECTED)
def test_site_map(tools, topology, site_map, site):
    ranks = len(EXPECTED[site])
    options = ["--map", site_map(site), "--topology", topology(site), "--local-size", ranks]
    plan = tools.plan(*options)
    assert rows(plan) == EXPECTED[site]
    ended = tools.good(tools.bin / "xccl-bind", "--plan", "--root", NO_DEVICES, *options)
    assert "this node has no" not in ended.stderr
    assert {r["core_distance"] for r in plan["ranks"]} == {"near"}
    assert {r["nic_distance"] for r in plan["ranks"]} <= {"PIX", "NODE"}
    assert [r["device"] for r in plan["ranks"]] == [r["gpu"] for r in plan["ranks"]]
    assert plan["notes"] == []


@pytest.mark.parametrize("site", EXPECTED)
def test_unknown_machine_is_read_by_hwloc(tools, topology, site):
    """Without a map: the same NUMA domain and NIC for each GPU, and cores that nobody shares."""
    ranks = len(EXPECTED[site])
    plan = tools.plan("--topology", topology(site), "--local-size", ranks)
    near = {gpu: (numa, nic) for gpu, numa, _, nic in EXPECTED[site]}
    used = set()
    for rank in plan["ranks"]:
        assert (rank["numa"], rank["nic"]) == near[rank["gpu"]]
        assert rank["gpu"] == rank["local_rank"]
        assert rank["how"] == "hwloc"
        assert not used & cpus(rank["cores"])
        used |= cpus(rank["cores"])
    sizes = {len(cpus(rank["cores"])) for rank in plan["ranks"]}
    assert len(sizes) == 1
    if site == "dgx-h100":  # half a processor's cores are too many for one of four ranks
        assert sizes == {28}


def test_lone_rank_keeps_the_node(tools, topology, site_map):
    plan = tools.plan(
        "--map", site_map("dgx-h100"), "--topology", topology("dgx-h100"), "--local-size", 1
    )
    (rank,) = plan["ranks"]
    assert not rank["bound"]
    assert "lone rank" in rank["how"]


def test_fewer_ranks_than_gpus_divide_less(tools, topology):
    plan = tools.plan("--topology", topology("dgx-h100"), "--local-size", 2)
    assert [r["cores"] for r in plan["ranks"]] == ["0-27,112-139", "28-55,140-167"]


def test_launcher_mask_is_kept(tools, topology, site_map):
    """Slurm allows a part of the cores wanted: only that part is used."""
    env = slurm_env(["18-20,66-68", "6-8,54-56", "42-44,90-92", "30-32,78-80"])
    plan = tools.plan(
        "--map", site_map("juwels-booster"), "--topology", topology("juwels-booster"), env=env
    )
    assert [r["cores"] for r in plan["ranks"]] == [
        "18-20,66-68",
        "6-8,54-56",
        "42-44,90-92",
        "30-32,78-80",
    ]
    assert all(r["bound"] for r in plan["ranks"])


def test_ranks_follow_their_masks(tools, topology, site_map):
    """Slurm dealt the domains in order: each rank takes the GPU next to it, not its number's."""
    masks = [f"{first}-{first + 5}" for first in (6, 18, 30, 42)]  # NUMA 1, 3, 5, 7
    for local_rank in range(4):
        env = slurm_env(masks, local_rank)
        plan = tools.plan(
            "--map", site_map("juwels-booster"), "--topology", topology("juwels-booster"), env=env
        )
        assert [r["gpu"] for r in plan["ranks"]] == [1, 0, 3, 2]
        assert [cpus(r["cores"]) for r in plan["ranks"]] == [cpus(m) for m in masks]
        assert plan["notes"] == []


def test_a_short_list_of_masks_begins_again(tools, topology, site_map):
    """srun --cpu-bind=mask_cpu:A,B -n4: the third task gets the first mask."""
    env = slurm_env(["6-11", "18-23"], SLURM_STEP_TASKS_PER_NODE="4")
    plan = tools.plan(
        "--map", site_map("juwels-booster"), "--topology", topology("juwels-booster"), env=env
    )
    cores = [cpus(rank["cores"]) for rank in plan["ranks"]]
    assert cores == [cpus(text) for text in ("6-11", "18-23", "6-11", "18-23")]


def test_far_masks_still_give_a_gpu_each(tools, topology, site_map):
    """All ranks on one domain: no two may share a GPU for being near the same."""
    masks = ["18-19", "20-21", "22-23", "66-71"]
    env = slurm_env(masks)
    plan = tools.plan(
        "--map", site_map("juwels-booster"), "--topology", topology("juwels-booster"), env=env
    )
    assert sorted(r["gpu"] for r in plan["ranks"]) == [0, 1, 2, 3]
    for rank, allowed in zip(plan["ranks"], masks):
        assert cpus(rank["cores"]) <= cpus(allowed), "never outside the mask"


@pytest.mark.parametrize(
    ("mask", "nodes", "told"),
    [("1,65", 2, True), ("1", 2, True), ("1,2", 2, False), ("1,65", 1, False)],
)
def test_a_rank_with_one_core_is_told(tools, topology, mask, nodes, told):
    """Its SMT sibling is no second core; on one node the library has no network thread."""
    env = {"OMPI_COMM_WORLD_LOCAL_RANK": "0", "OMPI_COMM_WORLD_RANK": "0"}
    env |= {"OMPI_COMM_WORLD_LOCAL_SIZE": "8", "OMPI_COMM_WORLD_SIZE": str(8 * nodes)}
    words = ["--bind", "hwloc", "--topology", topology("frontier"), "--mask", mask]
    assert ("cores-single" in ids(tools.plan(*words, env=env))) == told


def test_cores_outside_the_mask_are_told(tools, topology, site_map):
    plan = tools.plan(
        "--map",
        site_map("frontier"),
        "--topology",
        topology("frontier"),
        "--local-size",
        8,
        "--mask",
        "0,8",
    )
    assert "cores-outside" in ids(plan)
    assert not plan["ranks"][0]["bound"]
    assert plan["ranks"][0]["cores"] == "0,8"


@pytest.mark.parametrize(
    ("variable", "value", "visible"),
    [
        ("CUDA_VISIBLE_DEVICES", "2,3", [2, 3]),
        ("CUDA_VISIBLE_DEVICES", "3,9,1", [3]),  # as the driver: the list ends at what is no GPU
        ("CUDA_VISIBLE_DEVICES", "", []),
    ],
)
def test_visible_list(juwels, variable, value, visible):
    plan = juwels("--local-size", 2, env={variable: value})
    assert plan["visible"] == visible
    gpus = [r["gpu"] for r in plan["ranks"]]
    devices = [r["device"] for r in plan["ranks"]]
    if visible:
        assert gpus == [visible[i % len(visible)] for i in range(2)]
        assert [visible[d] for d in devices] == gpus
    else:
        assert gpus == [None, None]


def test_amd_filters_twice(tools, topology, site_map):
    common = ["--map", site_map("frontier"), "--topology", topology("frontier"), "--local-size", 4]
    harmless = {"ROCR_VISIBLE_DEVICES": "0,1,2,3", "CUDA_VISIBLE_DEVICES": "0,1,2,3"}
    plan = tools.plan(*common, env=harmless)
    assert "visible-double" not in ids(plan)
    assert sorted(r["gpu"] for r in plan["ranks"]) == [0, 1, 2, 3]
    plan = tools.plan(
        *common, env={"ROCR_VISIBLE_DEVICES": "4,5,6,7", "HIP_VISIBLE_DEVICES": "4,5,6,7"}
    )
    assert "visible-double" in ids(plan)


@pytest.mark.parametrize(
    ("size", "env", "found"),
    [
        (8, {}, ["ranks-over-gpus"]),
        (4, {"CUDA_VISIBLE_DEVICES": "0"}, ["gpu-shared"]),
        (4, {"CUDA_VISIBLE_DEVICES": "0", "SLURM_GPUS_ON_NODE": "1"}, ["gpu-shared"]),
        (4, {"CUDA_VISIBLE_DEVICES": ""}, ["gpu-invisible"]),
        (4, {"CUDA_VISIBLE_DEVICES": "9,0"}, ["gpu-invisible"]),
        (4, {"MPICH_SMP_SINGLE_COPY_MODE": "NONE"}, ["single-copy-none"]),
        (1, {"MPICH_OFI_NIC_POLICY": "NUMA"}, ["nic-policy"]),
        (4, {"MPICH_OFI_NIC_POLICY": "NUMA"}, []),
        (4, {"MPICH_OFI_NIC_POLICY": "GPU"}, ["nic-policy"]),
        (4, {"MPICH_OFI_NIC_POLICY": "GPU", "MPICH_GPU_SUPPORT_ENABLED": "1"}, []),
        (4, {}, []),
    ],
)
def test_notes(juwels, size, env, found):
    plan = juwels("--local-size", size, env=env)
    assert ids(plan) == found


@pytest.mark.parametrize(
    ("script", "found"),
    [
        ('export CUDA_VISIBLE_DEVICES=$SLURM_LOCALID\nexec "$@"\n', []),
        ('CUDA_VISIBLE_DEVICES=$SLURM_LOCALID exec "$@"\n', []),
        ("setenv CUDA_VISIBLE_DEVICES $SLURM_LOCALID\nexec $argv:q\n", []),
        ('echo "on $CUDA_VISIBLE_DEVICES"; MY_CUDA_VISIBLE_DEVICES=1 exec "$@"\n', ["gpu-shared"]),
        ('[ "$CUDA_VISIBLE_DEVICES" = 0 ] && exec "$@"\n', ["gpu-shared"]),
    ],
)
def test_list_of_a_script_below(juwels, tmp_path, script, found):
    """A script may give each rank a GPU of its own, whatever its list was before."""
    file = tmp_path / "wrapper"
    file.write_text("#!/bin/sh\n" + script)
    file.chmod(0o755)
    env = {"CUDA_VISIBLE_DEVICES": "0"}
    for command in ([file, "./app"], ["/bin/sh", file, "./app"]):
        assert ids(juwels("--local-size", 4, "--", *command, env=env)) == found
    inline = ["/bin/sh", "-c", "exec env CUDA_VISIBLE_DEVICES=$SLURM_LOCALID ./app"]
    assert ids(juwels("--local-size", 4, "--", *inline, env=env)) == []


RENDEZVOUS = {
    "SLURM_JOB_ID": "1",
    "SLURM_JOB_NUM_NODES": "2",
    "SLURM_STEP_NUM_NODES": "2",
    "SLURM_NTASKS": "8",
    "SLURM_STEP_NUM_TASKS": "8",
    "FI_CXI_RDZV_PROTO": "alt_read",
    "FI_CXI_RX_MATCH_MODE": "hybrid",
}
STEP = "StepId=1.0 UserId=0 State=RUNNING Nodes=2 Name=x Network={} TRES=cpu=1"


@pytest.fixture
def rendezvous(tools, topology, tmp_path):
    """The warnings of a rank of a job over Slingshot, where Slurm says this of its step."""

    def texts(env, says):
        if says is not None:
            scontrol = tmp_path / "scontrol"
            asked = "--oneliner show step 1.0"
            scontrol.write_text(f"#!/bin/sh\n[ \"$*\" = '{asked}' ] && echo '{says}'\n")
            scontrol.chmod(0o755)
        masks = ["18-23", "6-11", "42-47", "30-35"]
        more = {**RENDEZVOUS, "PATH": f"{tmp_path}:{os.environ['PATH']}", **env}
        variables = slurm_env(masks, int(env.get("SLURM_LOCALID", 0)), **more)
        plan = tools.plan("--topology", topology("juwels-booster"), env=variables)
        return [note["text"] for note in plan["notes"] if note["id"] == "cxi-rendezvous"]

    return texts


@pytest.mark.parametrize(
    ("env", "says", "told"),
    [
        ({}, STEP.format("(null)"), True),
        ({}, STEP.format("disable_rdzv_get"), False),
        ({}, STEP.format("job_vni,disable_rdzv_get"), False),
        ({}, "", False),
        ({}, None, False),
        ({"SLURM_NETWORK": "single_node_vni"}, STEP.format("single_node_vni"), True),
        ({"SLURM_NETWORK": "job_vni,disable_rdzv_get"}, STEP.format("(null)"), False),
        ({"FI_CXI_RX_MATCH_MODE": "software"}, STEP.format("(null)"), False),
        ({"FI_CXI_RDZV_PROTO": "default"}, STEP.format("(null)"), False),
        ({"SLURM_PROCID": "1", "SLURM_LOCALID": "1"}, STEP.format("(null)"), False),
        ({"SLURM_STEP_NUM_NODES": "1", "SLURM_JOB_NUM_NODES": "1", "SLURM_NTASKS": "4",
          "SLURM_STEP_NUM_TASKS": "4"}, STEP.format("(null)"), False),
    ],
)  # fmt: skip
def test_a_rendezvous_that_needs_an_option_of_the_job(rendezvous, env, says, told):
    """xccl-run itself sets the protocol at sites that want it, so it says what the job lacks."""
    texts = rendezvous(env, says)
    assert len(texts) == told
    assert all("--network=disable_rdzv_get; add it" in text for text in texts)


def test_mps_is_named(tools, topology):
    env = {"CUDA_MPS_PIPE_DIRECTORY": "/tmp/mps"}
    plan = tools.plan("--topology", topology("juwels-booster"), "--local-size", 8, env=env)
    assert "MPS" in plan["notes"][0]["text"]


@pytest.mark.parametrize(
    ("env", "launcher"),
    [
        (
            {"SLURM_STEP_ID": "0", "SLURM_LOCALID": "0", "OMPI_COMM_WORLD_LOCAL_RANK": "3"},
            "Open MPI",
        ),
        ({"SLURM_STEP_ID": "0", "SLURM_LOCALID": "0", "MPI_LOCALRANKID": "3"}, "Hydra"),
        ({"PALS_LOCAL_RANKID": "3"}, "PALS"),
        ({"FLUX_TASK_LOCAL_ID": "3"}, "Flux"),
        ({"SLURM_STEP_ID": "7", "SLURM_LOCALID": "3"}, "Slurm"),
        ({"PMIX_LOCAL_RANK": "3"}, "PMIx"),
        ({"SLURM_LOCALID": "0"}, None),  # a batch step
        ({"SLURM_STEP_ID": "4294967290", "SLURM_LOCALID": "0"}, None),  # an interactive step
    ],
)
def test_launchers(tools, env, launcher):
    plan = tools.plan("--topology", "pack:1 core:4 pu:1", env=env)
    assert plan["launcher"] == launcher
    assert len(plan["ranks"]) == (4 if launcher else 1)


@pytest.mark.parametrize(
    ("options", "status", "words"),
    [
        (["--bind", "near"], 2, ["near", "auto, site, hwloc, none"]),
        (["--gpus", "some"], 2, ["some", "all, first, only"]),
        (["--map", "/no/map"], 2, ["/no/map"]),
        (["--map", "/"], 2, ["cannot read the map '/': Is a directory"]),
        (["--bind", "site"], 2, ["no map", "--bind hwloc"]),
        (["--topology", "rubbish"], 2, ["rubbish", "lstopo"]),
        (["--topology", "/no/xml"], 2, ["cannot read '/no/xml': No such file"]),
        (["--mask", "x"], 2, ["'x'", "0-7"]),
        (["--local-size", "0"], 2, ["'0'"]),
        (["--local-size", "2", "--local-rank", "2"], 2, ["no local rank 2"]),
        (["--root", "/no/root"], 2, ["/no/root"]),
        (["--what"], 2, ["--what"]),
        (["--josn"], 2, ["unknown option '--josn'; there is no --json here: --plan prints JSON"]),
        (["--bind", "hwlco"], 2, ["auto, site, hwloc, none; did you mean 'hwloc'?"]),
    ],
)
def test_refusals(tools, options, status, words):
    ended = tools.run(tools.bin / "xccl-bind", "--plan", *options)
    assert ended.returncode == status
    assert ended.stdout == ""
    for word in words:
        assert word in ended.stderr


@pytest.mark.parametrize(
    "line",
    [
        "0 0 0",
        "1 0 0 0-3 - -",
        "0 x 0 0-3 - -",
        "0 0 0 3-0 - -",
        "0 0 0 0-3 ? -",
        "0 0 0 0-3 - - mlx5_1",
    ],
)
def test_broken_map(tools, tmp_path, line):
    (tmp_path / "map").write_text(f"# a comment\n{line}\n")
    ended = tools.run(tools.bin / "xccl-bind", "--plan", "--map", tmp_path / "map")
    assert ended.returncode == 2
    assert "line 2" in ended.stderr


def test_an_empty_map(tools, tmp_path):
    (tmp_path / "map").touch()
    ended = tools.run(tools.bin / "xccl-bind", "--plan", "--map", tmp_path / "map")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert (
        f"the map '{tmp_path}/map' is empty: expected a line for each local rank" in ended.stderr
    )
    (tmp_path / "map").write_text("# rank gpu numa cores siblings nic\n")
    assert tools.good(tools.bin / "xccl-bind", "--plan", "--map", tmp_path / "map").stderr == ""


def test_a_map_of_another_machine(tools, topology, tmp_path):
    """Named with its line; what the node has is used."""
    text = "# wrong\n0 0 0 0-3 - -\n1 9 8 46-50 94-99 -\n"
    (tmp_path / "map").write_text(text)
    bind = [tools.bin / "xccl-bind", "--plan", "--local-size", 2, "--map", tmp_path / "map"]
    bind += ["--root", NO_DEVICES]
    ended = tools.good(*bind, "--topology", topology("juwels-booster"))
    told = f"xccl-run: warning: {tmp_path}/map, line 3: this node has no"
    assert [line for line in ended.stderr.splitlines() if "warning: /" in line] == [
        f"{told} GPU 9; it has 0 to 3",
        f"{told} NUMA domain 8",
        f"{told} core 96-99",
    ]
    (tmp_path / "map").write_text("0 0 99 4000 - -\n")
    ended = tools.good(*bind)
    assert "line 1: this node has no NUMA domain 99" in ended.stderr
    assert "line 1: this node has no core 4000" in ended.stderr
    ended = tools.good(*bind, env={"XCCL_SIM": "cuda:4"})
    assert "this node has no" not in ended.stderr


def test_a_map_with_nics_of_another_machine(tools, tmp_path):
    """UCX_NET_DEVICES would name what is not there. A node without InfiniBand and GPUs is a login node."""
    text = "0 0 - - - mlx5_0\n1 1 - - - mlx5_7\n2 2 - - - hsn0\n3 3 - - - hsn9\n"
    (tmp_path / "map").write_text(text)
    for name in ("infiniband/mlx5_0", "net/hsn0"):
        (tmp_path / "sys/class" / name).mkdir(parents=True)
    bind = [tools.bin / "xccl-bind", "--plan", "--local-size", 4, "--map", tmp_path / "map"]
    ended = tools.good(*bind, "--root", tmp_path)
    told = f"xccl-run: warning: {tmp_path}/map, line"
    assert [line for line in ended.stderr.splitlines() if "no NIC" in line] == [
        f"{told} 2: this node has no NIC mlx5_7",
        f"{told} 4: this node has no NIC hsn9",
    ]
    assert "no NIC" not in tools.good(*bind, "--root", NO_DEVICES).stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--mask", "0,3900"], "--mask: this node has no processor 3900"),
        (["--mask", "x"], "--mask: invalid value 'x'"),
    ],
)
def test_what_a_plan_cannot_be_of(tools, words, message):
    ended = tools.run(tools.bin / "xccl-bind", "--plan", *words)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert message in ended.stderr


def test_every_site_has_a_node_here():
    assert set(EXPECTED) == set(NODES)
