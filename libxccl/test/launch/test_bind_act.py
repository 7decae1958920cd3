# SPDX-License-Identifier: BSD-3-Clause
"""What is really done to a process on this machine's own cores, asked from inside of it."""

import json
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

ALLOWED = sorted(os.sched_getaffinity(0))
SEE = 'grep -E "^(Cpus|Mems)_allowed_list" /proc/self/status; env | sort'
DEVICES = Path("/sys/fs/cgroup/devices")

needs_two = pytest.mark.skipif(len(ALLOWED) < 2, reason="needs two cores")


@pytest.fixture
def two_cores(tmp_path):
    """A map that gives two ranks a core each, the second GPU first."""
    (tmp_path / "ranks.map").write_text(
        f"0 1 0 {ALLOWED[0]} auto auto\n1 0 0 {ALLOWED[1]} auto mlx5_3\n"
    )
    return tmp_path / "ranks.map"


def rank(local, size=2, total=None):
    return {
        "OMPI_COMM_WORLD_LOCAL_RANK": str(local),
        "OMPI_COMM_WORLD_LOCAL_SIZE": str(size),
        "OMPI_COMM_WORLD_RANK": str(local),
        "OMPI_COMM_WORLD_SIZE": str(total or size),
    }


def seen(ended):
    """Variables and /proc's lines, by name."""
    assert ended.returncode == 0, ended.stderr
    pairs = (
        line.replace(":\t", "=", 1).split("=", 1) for line in ended.stdout.splitlines() if line
    )
    return dict(pair for pair in pairs if len(pair) == 2)


def inside(tools, *options, env=None, sim="cuda:2"):
    run = [tools.bin / "xccl-run", "--sim", sim, *options]
    return seen(tools.run(*run, "sh", "-c", SEE, env=env))


@needs_two
@pytest.mark.parametrize("local", [0, 1])
def test_map_binds_cores(tools, two_cores, local):
    found = inside(tools, "--map", two_cores, env=rank(local))
    assert found["Cpus_allowed_list"] == str(ALLOWED[local])
    assert found["XCCL_LOCAL_DEVICE"] == str(1 - local)
    assert found.get("UCX_NET_DEVICES") == ("mlx5_3:1" if local else None)
    assert "CUDA_VISIBLE_DEVICES" not in found


@needs_two
def test_never_outside_the_mask(tools, two_cores):
    """The launcher has bound the rank to the other core: it stays there."""
    other = ["taskset", "-c", str(ALLOWED[1])]
    run = [tools.bin / "xccl-run", "--sim", "cuda:2", "--map", two_cores, "sh", "-c", SEE]
    ended = tools.run(*other, *run, env=rank(0))
    assert seen(ended)["Cpus_allowed_list"] == str(ALLOWED[1])
    assert "[cores-outside]" in ended.stderr


@needs_two
def test_memory_follows(tools, two_cores):
    numa_maps = tools.good(
        tools.bin / "xccl-run", "--sim", "cuda:2", "--map", two_cores, "--explain",
        "grep", "-m1", "stack", "/proc/self/numa_maps", env=rank(0),
    )  # fmt: skip
    if "refused here" in numa_maps.stderr:
        pytest.skip("this container forbids set_mempolicy")
    assert "prefer:0" in numa_maps.stdout.replace("prefer=", "prefer:")


@pytest.mark.parametrize(
    ("gpus", "variable", "value", "device"),
    [("all", "CUDA_VISIBLE_DEVICES", None, "2"), ("first", "CUDA_VISIBLE_DEVICES", "2,0,1,3", "0"),
     ("only", "CUDA_VISIBLE_DEVICES", "2", "0")],
)  # fmt: skip
def test_gpu_modes(tools, gpus, variable, value, device):
    found = inside(tools, "--gpus", gpus, env=rank(2, 4), sim="cuda:4")
    assert found.get(variable) == value
    assert found["XCCL_LOCAL_DEVICE"] == device
    assert "ROCR_VISIBLE_DEVICES" not in found


def test_one_variable_on_amd(tools):
    slurm = {"ROCR_VISIBLE_DEVICES": "0,1,2,3", "CUDA_VISIBLE_DEVICES": "0,1,2,3"}
    found = inside(tools, "--gpus", "only", env={**rank(3, 4), **slurm}, sim="rocm:4")
    assert found["ROCR_VISIBLE_DEVICES"] == "3"
    assert not {"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"} & set(found)


def test_no_rank_is_left_alone(tools):
    found = inside(tools)
    assert "XCCL_LOCAL_DEVICE" not in found
    assert found["Cpus_allowed_list"]
    ended = tools.run(tools.bin / "xccl-run", "--report", "true")
    assert ended.returncode == 2
    assert "behind the launcher" in ended.stderr


def test_launcher_itself_is_not_bound(tools, tmp_path):
    """In front of a launcher, within a step, xccl-run is no rank although variables say so."""
    fake = tmp_path / "mpirun"
    fake.write_text("#!/bin/sh\nenv\n")
    fake.chmod(0o755)
    ended = tools.run(
        tools.bin / "xccl-run", fake, env={"SLURM_STEP_ID": "0", "SLURM_LOCALID": "0"}
    )
    assert "XCCL_LOCAL_DEVICE" not in ended.stdout
    assert "libxccl-mpi.so" in ended.stdout


def test_a_program_for_another_machine(tools, tmp_path):
    """It is not read as a shell script, as one without a first line #! is."""
    program = tmp_path / "app"
    program.write_bytes(b"\x7fELF\necho read by a shell\n")
    program.chmod(0o755)
    ended = tools.run(tools.bin / "xccl-run", "--sim", "cuda:2", program, env=rank(0))
    assert (ended.returncode, ended.stdout) == (126, "")
    assert f"'{program}': it is built for another machine" in ended.stderr
    program.write_text("echo read by a shell\n")
    ended = tools.good(tools.bin / "xccl-run", "--sim", "cuda:2", program, env=rank(0))
    assert ended.stdout == "read by a shell\n"


def test_no_bind(tools):
    assert "XCCL_LOCAL_DEVICE" not in inside(tools, "--no-bind", env=rank(1))


def test_nested_runs_bind_once(tools):
    run = [tools.bin / "xccl-run", "--sim", "cuda:2", "--gpus", "first"]
    again = [tools.bin / "xccl-run"]
    found = seen(tools.run(*run, *again, "sh", "-c", SEE, env=rank(1)))
    assert (found["CUDA_VISIBLE_DEVICES"], found["XCCL_LOCAL_DEVICE"]) == ("1,0", "0")
    assert found["LD_PRELOAD"].count("libxccl-mpi") == 1


@pytest.mark.parametrize(("total", "expected"), [(8, "OFI"), (4, "Socket")])
def test_network_follows_the_number_of_nodes(tools, total, expected):
    env = (
        {**rank(0, 4, total), "NCCL_NET": "AWS Libfabric"}
        if expected == "Socket"
        else rank(0, 4, total)
    )
    found = inside(tools, "--site", "frontier", env=env, sim="rocm:4")
    assert found["NCCL_NET"] == expected
    assert found["XCCL_SITE"] == "frontier"
    assert found["FI_MR_CACHE_MONITOR"] == "kdreg2"


def test_settings_are_the_users_and_the_modules(tools):
    own = {**rank(0, 4, 8), "NCCL_NET": "mine", "FI_MR_CACHE_MONITOR": "disabled"}
    found = inside(tools, "--site", "frontier", env=own, sim="rocm:4")
    assert (found["NCCL_NET"], found["FI_MR_CACHE_MONITOR"]) == ("mine", "disabled")
    module = {**rank(0, 4, 8), "LOADEDMODULES": "rocm/7.1.1:rccl-net-plugin/1.0"}
    assert "NCCL_NET" not in inside(tools, "--site", "frontier", env=module, sim="rocm:4")
    other = inside(tools, "--site", "frontier", "--route", "mpi", env=rank(0, 4, 8), sim="rocm:4")
    assert "NCCL_NET" not in other


def test_explain_gives_every_reason(tools):
    run = [tools.bin / "xccl-run", "--sim", "rocm:4", "--site", "frontier", "--explain", "true"]
    ended = tools.good(*run, env={**rank(0, 4, 8), "MPICH_GPU_SUPPORT_ENABLED": "1"})
    lines = ended.stderr.splitlines()
    for name in (
        "NCCL_NET",
        "FI_CXI_RDZV_PROTO",
        "MPICH_OFI_NIC_POLICY",
        "XCCL_LOCAL_DEVICE",
        "LD_PRELOAD",
    ):
        at = [i for i, line in enumerate(lines) if line.startswith(f"xccl-run: {name}=")]
        assert len(at) == 1, name
        assert len(lines[at[0] + 1].strip()) > 10, name
    assert "abort rather than fall back silently" in ended.stderr


def test_short_options(tools):
    for short, long in (("-h", "--help"), ("-V", "--version")):
        shown = tools.good(tools.bin / "xccl-bind", short).stdout
        assert shown == tools.good(tools.bin / "xccl-bind", long).stdout
        assert shown.startswith(("Usage: xccl-bind", "xccl-bind "))


def test_unknown_site(tools):
    ended = tools.run(tools.bin / "xccl-run", "--site", "nowhere", "true", env=rank(0))
    assert ended.returncode == 2
    assert "--site: unknown site 'nowhere'; sites of this installation: alps " in ended.stderr
    assert "did you mean" not in ended.stderr
    for typed in ("juwles", "juwels", "juwelsbooster", "juwles-booster"):
        ended = tools.run(tools.bin / "xccl-run", "--site", typed, "true", env=rank(0))
        assert ended.stderr.endswith("; did you mean 'juwels-booster'?\n"), typed


@pytest.mark.parametrize("words", [["--" + "a" * 5000], ["--route", "x" * 5000, "true"]])
def test_a_very_long_word(tools, words):
    """It is like no name; to look took minutes."""
    began = time.monotonic()
    ended = tools.run(tools.bin / "xccl-run", *words)
    assert ended.returncode == 2 and "did you mean" not in ended.stderr
    assert time.monotonic() - began < 10


@pytest.mark.parametrize("command", ["true", "mpirun"])
@pytest.mark.parametrize("local", [{}, rank(0)])
def test_unknown_site_of_the_environment(tools, tmp_path, command, local):
    """Said before the launcher has started anything, too."""
    (tmp_path / "mpirun").write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
    (tmp_path / "mpirun").chmod(0o755)
    env = {**local, "XCCL_SITE": "frontire", "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    ended = tools.run(tools.bin / "xccl-run", command, env=env)
    assert ended.returncode == 2 and not (tmp_path / "started").exists()
    assert "XCCL_SITE: unknown site 'frontire'; sites of" in ended.stderr
    assert ended.stderr.endswith("; did you mean 'frontier'?\n")


def test_installation_without_sites(tools, tmp_path):
    """A module has set XCCL_SITE, but the sites' files were not installed: the job runs all the same."""
    shutil.copytree(tools.bin, tmp_path / "bin")
    shutil.copytree(tools.folder / "lib", tmp_path / "lib", symlinks=True)
    run = [tmp_path / "bin/xccl-run", "--sim", "cuda:2", "--explain"]
    ended = tools.good(*run, "true", env={**rank(0), "XCCL_SITE": "frontier"})
    assert "no sites are installed" in ended.stderr
    ended = tools.run(*run, "--site", "frontier", "true", env=rank(0))
    assert ended.returncode == 2


def test_the_site_of_the_installation(tools, tmp_path):
    """As modules and scripts take it: without a module, and not where another is named, or on simulated devices."""
    shutil.copytree(tools.bin, tmp_path / "bin")
    shutil.copytree(tools.folder / "lib", tmp_path / "lib", symlinks=True)
    sites = tmp_path / "share/xccl/sites"
    for site in ("frontier", "sim"):
        shutil.copytree(tools.folder / "share/xccl/sites" / site, sites / site)
    (sites / "default").write_text("frontier\n")
    command = [tmp_path / "bin/xccl-run", "--no-bind", "--explain"]
    shown = ["sh", "-c", "echo $XCCL_SITE $FI_CXI_RX_MATCH_MODE"]
    ended = tools.good(*command, *shown, env=rank(0, 4, 8))
    assert ended.stdout == "frontier hybrid\n"
    assert "XCCL_SITE=frontier\n          this installation was made for it" in ended.stderr
    assert tools.good(*command, "--site", "sim", *shown, env=rank(0, 4, 8)).stdout == "sim\n"
    env = {**rank(0, 4, 8), "XCCL_SITE": "sim"}
    assert tools.good(*command, *shown, env=env).stdout == "sim\n"
    assert tools.good(*command, "--sim", "rocm:4", *shown, env=rank(0, 4, 8)).stdout == "\n"
    (sites / "default").write_text("nowhere\n")
    ended = tools.run(*command, "true", env=rank(0))
    assert ended.returncode == 2 and "sites/default: unknown site 'nowhere'" in ended.stderr


def test_report(tools, topology):
    run = [tools.bin / "xccl-run", "--sim", "cuda:4", "--site", "juwels-booster"]
    run += ["--topology", topology("juwels-booster"), "--report", "true"]
    ended = tools.good(*run, env=rank(0, 4))
    host = os.uname().nodename
    assert (
        f"host {host} rank 0 local 0 cores 18-23,66-71 numa 3 gpu 0 device 0 "
        "nic mlx5_0 distance near/PIX" in ended.stderr
    )
    picture = [line for line in ended.stderr.splitlines() if "--PIX" in line]
    assert len(picture) == 4
    assert f"node {host}: 4 ranks, 4 GPUs, site juwels-booster\n" in ended.stderr
    run = [tools.bin / "xccl-run", "--sim", "cuda:1", "--report", "true"]
    assert f"node {host}: 1 rank, 1 GPU, " in tools.good(*run, env=rank(0, 1)).stderr


@needs_two
@pytest.mark.parametrize("words", [["--bind", "auto"], ["--bind", "none"]])
def test_cores_of_other_ranks_are_not_made_up(tools, two_cores, words):
    """The launcher has bound each rank to a core of its own, and says so to that rank alone."""
    taskset = ["taskset", "-c", str(ALLOWED[0])]
    run = [tools.bin / "xccl-run", "--sim", "cuda:2", "--map", two_cores, *words, "--report"]
    picture = [
        line.split()[1:7]
        for line in tools.good(*taskset, *run, "true", env=rank(0)).stderr.splitlines()
        if "] --" in line
    ]
    assert [row[2] for row in picture] == [str(ALLOWED[0]), "?"]
    assert picture[1][:2] == ["-", "-"], "no domain either"
    plan = [tools.bin / "xccl-bind", "--plan", "--map", two_cores, *words]
    own, other = json.loads(
        tools.good(*taskset, *plan, env={**rank(0), "XCCL_SIM": "cuda:2"}).stdout
    )["ranks"]
    assert own["cores"] == str(ALLOWED[0])
    assert (other["cores"], other["numa"], other["core_distance"]) == (None, None, "-")
    assert ({own["gpu"], other["gpu"]}, other["bound"]) == ({0, 1}, False)
    assert "launcher has bound" in other["how"]


@needs_two
def test_ranks_that_nobody_has_bound_are_drawn(tools, two_cores):
    run = [tools.bin / "xccl-run", "--sim", "cuda:2", "--map", two_cores, "--report", "true"]
    everywhere = ["taskset", "-c", "0-4095"]
    ended = tools.good(*everywhere, *run, env=rank(0))
    picture = [line.split()[3] for line in ended.stderr.splitlines() if "] --" in line]
    assert picture == [str(core) for core in ALLOWED[:2]]


@pytest.fixture
def node_with_gpus(tmp_path):
    """A /proc and a /dev with four GPUs whose device files are real ones."""
    if os.geteuid() != 0:
        pytest.skip("needs root: device files and a device cgroup")
    if not (DEVICES / "cgroup.procs").exists():
        pytest.skip("needs the device controller of cgroup v1 to hide device files")
    (tmp_path / "dev").mkdir()
    minors = (3, 5, 8, 9)  # null, zero, random, urandom: harmless to open
    for gpu, minor in enumerate(minors):
        folder = tmp_path / f"proc/driver/nvidia/gpus/0000:{0x10 + gpu:02x}:00.0"
        folder.mkdir(parents=True)
        uuid = f"GPU-{gpu}1111111-0000-0000-0000-000000000000"
        (folder / "information").write_text(
            f"Model: \t\t NVIDIA A100-SXM4-40GB\nGPU UUID: \t {uuid}\nDevice Minor: \t {gpu}\n"
        )
        subprocess.run(["mknod", tmp_path / f"dev/nvidia{gpu}", "c", "1", str(minor)], check=True)
    group = DEVICES / f"xccl-test-{os.getpid()}"
    group.mkdir()
    yield tmp_path, group, minors
    group.rmdir()


def test_hidden_by_a_device_cgroup(tools, node_with_gpus):
    """What Slurm does for --gpu-bind=closest: the task sees one GPU, and calls it 0."""
    root, group, minors = node_with_gpus
    deny = "; ".join(
        f"echo 'c 1:{minor} rwm' >{group}/devices.deny" for minor in minors if minor != minors[2]
    )
    plan = f"{tools.bin}/xccl-bind --plan --root {root} --topology 'pack:1 core:4 pu:1'"
    # Leave the cgroup at the end, or it could not be removed.
    leave = f"echo $$ >{DEVICES}/cgroup.procs"
    script = f"echo $$ >{group}/cgroup.procs && {{ {deny}; }} && {plan}; {leave}"
    env = {**rank(1, 4), "CUDA_VISIBLE_DEVICES": "0", "SLURM_GPUS_ON_NODE": "4"}
    ended = tools.good(shutil.which("sh"), "-c", script, env=env)
    found = json.loads(ended.stdout)
    assert [gpu["hidden"] for gpu in found["gpus"]] == [True, True, False, True]
    assert found["visible"] == [2]
    assert (found["ranks"][1]["gpu"], found["ranks"][1]["device"]) == (2, 0)
    assert [note["id"] for note in found["notes"]] == ["gpu-hidden"]
    assert "--gres-flags=allow-task-sharing" in found["notes"][0]["text"]


def test_uuids_are_understood(tools, node_with_gpus):
    root, _, _ = node_with_gpus
    env = {"CUDA_VISIBLE_DEVICES": "GPU-3111,GPU-1111"}
    assert tools.plan("--local-size", 2, root=root, env=env)["visible"] == [3, 1]


def test_nic_of_a_site_that_names_none(tools, tmp_path, site_map):
    """JUWELS Booster: the HCA behind the GPU's own PCIe switch, found without reading the machine."""
    switches = {0: "0000:00", 1: "0000:40", 2: "0000:80", 3: "0000:c0"}
    hcas = {0: "mlx5_2", 1: "mlx5_3", 2: "mlx5_0", 3: "mlx5_1"}
    (tmp_path / "sys/bus/pci/devices").mkdir(parents=True)
    (tmp_path / "sys/class/infiniband").mkdir(parents=True)
    for gpu, bus in switches.items():
        host = tmp_path / f"sys/devices/pci{bus}/{bus}:01.1/{bus[:-1]}1:00.0"
        address = f"{bus[:-1]}3:00.0"
        for device in (host / f"{bus[:-1]}2:00.0" / address, host / f"{bus[:-1]}2:04.0/nic"):
            device.mkdir(parents=True)
            (device / "numa_node").write_text("0\n")
        (tmp_path / "sys/bus/pci/devices" / address).symlink_to(
            host / f"{bus[:-1]}2:00.0" / address
        )
        (tmp_path / "sys/class/infiniband" / hcas[gpu]).mkdir()
        (tmp_path / "sys/class/infiniband" / hcas[gpu] / "device").symlink_to(
            host / f"{bus[:-1]}2:04.0/nic"
        )
        information = tmp_path / f"proc/driver/nvidia/gpus/{address}/information"
        information.parent.mkdir(parents=True)
        information.write_text(f"Device Minor: \t {gpu}\n")
        (tmp_path / "dev").mkdir(exist_ok=True)
        (tmp_path / f"dev/nvidia{gpu}").write_text("")
    bind = [tools.bin / "xccl-bind", "--root", tmp_path, "--map", site_map("juwels-booster")]
    for local, nic in hcas.items():
        found = seen(tools.run(*bind, "sh", "-c", SEE, env=rank(local, 4)))
        assert found["UCX_NET_DEVICES"] == f"{nic}:1"
        assert found["XCCL_LOCAL_DEVICE"] == str(local)


@pytest.fixture(scope="module")
def without_hwloc(tmp_path_factory):
    """xccl-bind as it is built where pkg-config does not find hwloc."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    tools = Path(__file__).resolve().parents[2] / "tools"
    listed = re.search(
        r"set\(XCCL_BIND_SOURCES ([^)]*)\)", (tools / "bind/bind.cmake").read_text()
    )
    names = [f"bind/{name}.c" for name in [*listed.group(1).split(), "topology_none"]]
    names += ["common/json_text.c", "common/options.c", "common/output.c", "../src/base/nearest.c"]
    program = tmp_path_factory.mktemp("bind") / "xccl-bind"
    folders = [f"-I{tools / name}" for name in (".", "bind", "../src", "../include")]
    words = [compiler, "-D_GNU_SOURCE", '-DXCCL_BIND_VERSION="0"', *folders, "-o", program]
    subprocess.run([*words, *(tools / name for name in names)], check=True)
    return program


def test_without_hwloc(without_hwloc, two_cores):
    """It binds by a map; without one it says that it does not, and does not take the option."""

    def run(*words):
        return subprocess.run(
            [without_hwloc, *words, "sh", "-c", SEE],
            env={"PATH": os.environ["PATH"], "XCCL_SIM": "cuda:2", **rank(0)},
            capture_output=True,
            text=True,
            check=False,
        )

    ended = run()
    assert seen(ended) and "warning [not-bound]" in ended.stderr, ended.stderr
    assert "without hwloc" in ended.stderr
    ended = run("--map", two_cores)
    assert seen(ended) and "not-bound" not in ended.stderr, ended.stderr
    ended = run("--bind", "hwloc")
    assert ended.returncode == 2 and "hwloc was not there" in ended.stderr, ended.stderr
