# SPDX-License-Identifier: BSD-3-Clause
"""Every finding: a healthy node, one thing broken, and exactly that is found."""

import contextlib
import json
from pathlib import Path

import pytest
from planted import FAULTS
from xccl_common import elf
from xccl_doctor import registry

TOP = Path(__file__).resolve().parents[3]
SITES = sorted(
    file.parent.name
    for file in (TOP / "site-configs").glob("*/site.json")
    if not file.parent.name.startswith(("generic", "sim"))
)


def env(**values):
    """Set variables; None removes one."""

    def broken(world):
        for name, value in values.items():
            if value is None:
                world.env.pop(name, None)
            else:
                world.env[name] = value

    return broken


def ucc(**values):
    """On route ucc-ccl, set variables."""

    def broken(world):
        world.route_ucc_ccl()
        env(**values)(world)

    return broken


def log(name, route=None, **values):
    def broken(world):
        if route:
            world.route_ucc_ccl()
        env(**values)(world)
        world.sample(name)

    return broken


def says(line=None, why=None):
    """An installation whose xccl-info says that of the environment."""

    def broken(world):
        tool = world.prefix / "bin/xccl-info"
        told = f"echo 'xccl-info: {line}' >&2\n" if line else ""
        world.write(tool, f"#!/bin/sh\n{told}echo '{json.dumps({'in_use': {'why_not': why}})}'\n")
        tool.chmod(0o755)

    return broken


def hcoll(world):
    world.route_ucc_ccl()
    world.library("libhcoll.so.1")
    del world.env["OMPI_MCA_coll_hcoll_enable"]


def ucc_conf(world):
    world.route_ucc_ccl()
    del world.env["UCC_CONFIG_FILE"]
    world.file("opt/share/ucc.conf", "# installed\nUCC_CL_BASIC_TLS=^sharp,nccl\n")


def no_ucc_component(world):
    world.route_ucc_ccl()
    world.remove("opt/lib/ucc/libucc_tl_nccl.so")


def libfabric_only(world):
    """No site says it, the ports do."""
    world.env.update(XCCL_SITE="generic-nvidia", XCCL_ROUTE="ucc", OMPI_MCA_coll_ucc_enable="1")
    world.remove("sys/class/infiniband") if (
        world.root / "sys/class/infiniband"
    ).exists() else None
    world.nic("hsn0")


def ucc_under_mpich(world):
    world.route_ucc_ccl()
    world.file(world.gpu(0) + "/vendor", "0x10de\n")
    world.file(world.gpu(0) + "/class", "0x030200\n")
    world.remove("opt/lib/libmpi.so.40")
    world.library("libmpi.so.12")


def hpcx(world):
    world.env["HPCX_DIR"] = "/opt/hpcx"


def driver(world):
    world.file(
        "proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06\n"
    )
    world.env.update(CRAY_MPICH_VERSION="9.0.1", MPICH_GPU_SUPPORT_ENABLED="1")


def nccl_229(world):
    world.library("libnccl.so.2.29.7")
    (world.root / "opt/lib/libnccl.so.2").unlink()
    (world.root / "opt/lib/libnccl.so.2").symlink_to("libnccl.so.2.29.7")


def no_interposer(world):
    (world.prefix / "lib/xccl/libxccl-mpi-mpich.so").unlink()


def no_plugin(world):
    world.remove("opt/lib/librccl-net.so")


def plugin_name(world):
    world.remove("opt/lib/librccl-net.so")
    world.library("libnccl-net.so")


def gpu_numa(world):
    world.file(world.gpu(2) + "/numa_node", "1\n")


def other_ports(world):
    world.remove("sys/class/infiniband/mlx5_0")


def one_node(world):
    world.env.update(SLURM_JOB_NUM_NODES="1", XCCL_ROUTE="xccl", NCCL_NET="AWS Libfabric")
    world.env["XCCL_SITE"] = "generic-amd"


def slow_slingshot(world):
    del world.env["NCCL_PROTO"]
    world.nic("hsn0")
    world.library("libnccl-net.so")
    world.env.update(NCCL_SOCKET_IFNAME="hsn0", SLURM_NETWORK="disable_rdzv_get")


JOB = {"SLURM_NTASKS_PER_NODE": "4", "SLURM_GPUS_ON_NODE": "4"}
STEP = {"SLURM_STEP_ID": "0", "SLURM_NTASKS_PER_NODE": "4", "SLURM_NTASKS": "8", "PMIX_RANK": "0"}

# id, site, what is broken
CASES = [
    ("ucc-priority", "juwels-booster", ucc(OMPI_MCA_coll_ucc_priority="10")),
    ("ucc-priority", "juwels-booster", ucc(OMPI_MCA_coll_ucc_priority=None)),
    ("ucc-disabled", "juwels-booster", ucc(OMPI_MCA_coll_ucc_enable=None)),
    ("ucc-not-tuned", "juwels-booster", ucc(UCC_TL_NCCL_TUNE=None)),
    ("ucc-conf-hides-ccl", "juwels-booster", ucc_conf),
    ("ucc-no-ccl-transport", "juwels-booster", no_ucc_component),
    ("ucc-on-libfabric", "frontier", env(XCCL_ROUTE="ucc-ccl", OMPI_MCA_coll_ucc_enable="1")),
    ("ucc-on-libfabric", "juwels-booster", libfabric_only),
    ("ucc-beside-xccl", "juwels-booster", env(OMPI_MCA_coll_ucc_enable="1")),
    ("ucc-fallback", "juwels-booster", log("ucc-fallback.log", "ucc-ccl")),
    ("ucc-not-selected", "juwels-booster", log("ompi-ucc-handlers.log", "ucc-ccl")),
    ("ucc-mlx5", "juwels-booster", log("ucc-mlx5.log", "ucc-ccl")),
    ("ucc-other-transport", "juwels-booster", log("ucc-scores-ucp.log", "ucc-ccl")),
    ("ucc-other-mpi", "generic-nvidia", ucc_under_mpich),
    ("hcoll-enabled", "juwels-booster", hcoll),
    ("hpcx-mixed", "juwels-booster", hpcx),
    ("nonblocking-on-gpu", "juwels-booster", log("nbc-segfault.log")),
    ("gpu-hidden", "juwels-booster", env(**JOB, SLURM_GPUS_PER_TASK="1")),
    ("gpu-hidden", "juwels-booster", env(**JOB, SLURM_GPU_BIND="closest")),
    ("gpu-hidden", "juwels-booster", env(**JOB, CUDA_VISIBLE_DEVICES="0")),
    ("gpu-shared", "juwels-booster", env(SLURM_NTASKS_PER_NODE="4", CUDA_VISIBLE_DEVICES="0,1")),
    ("ranks-over-gpus", "juwels-booster", env(SLURM_NTASKS_PER_NODE="8")),
    (
        "ranks-over-gpus",
        "juwels-booster",
        env(SLURM_TASKS_PER_NODE="8(x2)", SLURM_NTASKS="16", CUDA_MPS_PIPE_DIRECTORY="/x"),
    ),
    ("gpu-duplicate", "juwels-booster", log("nccl-duplicate.log")),
    ("gpu-duplicate", "juwels-booster", log("nccl-multiple.log")),
    ("gpu-duplicate", "juwels-booster", log("nccl-same-bus.log")),
    ("gpu-duplicate", "juwels-booster", log("xccl-turns.log")),
    ("gpu-shared", "dgx-h100", log("nccl-2.28-one-gpu.log")),
    ("gpu-peer-lost", "dgx-h100", log("nccl-2.28-p2p-off.log")),
    ("gpu-peer-lost", "dgx-h100", log("nccl-2.28-sockets-on-a-node.log")),
    ("gpu-invisible", "dgx-h100", env(CUDA_VISIBLE_DEVICES="")),
    ("gpu-invisible", "frontier", env(ROCR_VISIBLE_DEVICES="-1")),
    ("visible-double", "frontier", env(ROCR_VISIBLE_DEVICES="4,5", HIP_VISIBLE_DEVICES="4,5")),
    ("visible-double", "frontier", env(ROCR_VISIBLE_DEVICES="3", CUDA_VISIBLE_DEVICES="3")),
    ("cores-outside", "frontier", log("xccl-run-notes.log")),
    ("cores-single", "juwels-booster", log("xccl-run-cores-single.log")),
    ("not-bound", "juwels-booster", log("xccl-run-unbound.log")),
    ("srun-cpus-per-task", "juwels-booster", env(SLURM_CPUS_PER_TASK="12")),
    ("nic-policy", "frontier", env(MPICH_OFI_NIC_POLICY="GPU", MPICH_GPU_SUPPORT_ENABLED="0")),
    ("nic-policy", "frontier", log("mpich-numa.log")),
    ("single-copy-none", "frontier", env(MPICH_SMP_SINGLE_COPY_MODE="NONE")),
    (
        "mpich-not-gpu-aware",
        "frontier",
        env(CRAY_MPICH_VERSION="9.1.0", MPICH_GPU_SUPPORT_ENABLED=None),
    ),
    ("gtl-missing", "frontier", log("mpich-gtl.log")),
    ("mpich-slow-pointers", "dgx-a100", driver),
    ("ccl-missing", "juwels-booster", env(LD_LIBRARY_PATH="/opt/other")),
    ("ccl-file-missing", "juwels-booster", env(XCCL_CCL_LIBRARY="/opt/none/libnccl.so.2")),
    ("ccl-version-slow", "juwels-booster", nccl_229),
    ("ccl-mismatch", "juwels-booster", log("nccl-mismatch.log")),
    ("interposer-missing", "frontier", no_interposer),
    ("plugin-missing", "frontier", no_plugin),
    ("plugin-missing", "dgx-a100", env(NCCL_NET_PLUGIN="ofi")),
    ("plugin-missing", "frontier", env(NCCL_NET_PLUGIN="None")),
    ("plugin-name", "frontier", plugin_name),
    ("cray-old-libraries", "frontier", env(CRAY_LD_LIBRARY_PATH="/opt/cray/pe/mpich/9.1.0/lib")),
    ("cuda-eager", "juwels-booster", env(CUDA_MODULE_LOADING="EAGER")),
    ("launch-blocking", "dgx-a100", env(CUDA_LAUNCH_BLOCKING="1")),
    ("launch-blocking", "frontier", env(AMD_SERIALIZE_KERNEL="3")),
    ("file-missing", "dgx-h100", env(NCCL_TOPO_FILE="/opt/none/topology.xml")),
    ("file-missing", "juwels-booster", env(NCCL_TUNER_PLUGIN="/opt/none/libtuner.so")),
    ("net-sockets", "frontier", log("rccl-sockets.log")),
    ("net-name-unknown", "juwels-booster", env(NCCL_NET="gIB")),
    ("net-name-unsure", "frontier", env(NCCL_NET="Slingshot")),
    ("net-name-unknown", "frontier", log("net-name.log")),
    ("net-name-unknown", "dgx-h100", log("nccl-2.28-net-unknown.log", NCCL_NET="AWS Libfabric")),
    ("net-on-one-node", "frontier", one_node),
    ("net-on-one-node", "frontier", log("rccl-one-node.log")),
    ("net-interface", "frontier", env(NCCL_SOCKET_IFNAME=None)),
    ("net-bootstrap", "juwels-booster", log("nccl-bootstrap-eth.log")),
    ("net-storage-port", "dgx-a100", env(NCCL_IB_HCA=None)),
    ("net-storage-port", "dgx-a100", log("nccl-ib-storage.log")),
    ("ib-timeout", "juwels-booster", log("nccl-ib-timeout.log")),
    ("init-slow", "juwels-booster", log("nccl-slow-init.log")),
    ("mr-cache", "frontier", env(FI_MR_CACHE_MONITOR="memhooks")),
    ("cxi-host-register", "frontier", env(FI_CXI_DISABLE_HOST_REGISTER="0")),
    ("cxi-queues", "frontier", env(FI_CXI_DEFAULT_CQ_SIZE="1024")),
    ("cxi-queues", "frontier", env(FI_CXI_RX_MATCH_MODE="hardware")),
    ("cxi-eager", "frontier", env(FI_CXI_RDZV_THRESHOLD="2048")),
    ("cxi-rendezvous", "frontier", env(SLURM_NETWORK=None)),
    ("cxi-exhausted", "frontier", log("cxi-full.log")),
    ("cxi-map", "frontier", log("mpich-cxil.log")),
    ("ll128", "alps", slow_slingshot),
    ("xccl-setting", "juwels-booster", says("XCCL_LOG=loud is not allowed; it takes none|warn")),
    ("xccl-unknown", "juwels-booster", says("warning: XCCL_TUN is not a variable of xccl")),
    ("xccl-table", "juwels-booster", says("/opt/share/xccl/sites/x/tables/10.table: line 1")),
    ("ccl-refused", "juwels-booster", says(why="/x (found by: XCCL_CCL_LIBRARY) has no symbol")),
    ("preload-missing", "juwels-booster", env(LD_PRELOAD="libfoo.so:/opt/gone.so /opt/none.so")),
    ("site-unknown", "juwels-booster", env(XCCL_SITE="juwels")),
    ("sim-unknown", "juwels-booster", env(XCCL_SIM="cude:4")),
    ("sim-unknown", "juwels-booster", env(XCCL_SIM="cuda:65")),
    ("site-gpus", "juwels-booster", lambda w: w.remove(w.gpu(3))),
    ("site-numa", "juwels-booster", gpu_numa),
    ("site-nic", "dgx-a100", other_ports),
    ("memlock", "dgx-a100", lambda w: w.limits(65536)),
    ("open-files", "dgx-a100", lambda w: w.open_files(64)),
    ("shm-small", "juwels-booster", lambda w: w.shm(65536)),
    ("ranks-apart", "juwels-booster", log("xccl-pods.log")),
    ("ran-by-mpi", "juwels-booster", log("xccl-gave-up.log")),
    ("ran-by-mpi", "juwels-booster", log("xccl-no-vendor.log")),
    ("crash-at-end", "juwels-booster", log("destroy-segfault.log")),
]


def prepare(world, site):
    made = world(site)
    if site == "dgx-a100":
        made.nic("mlx5_4")  # storage; NCCL_IB_HCA leaves it out
    return made


def ids(found):
    return [finding["id"] for finding in found["findings"]]


def variables_of(made, route, nodes):
    """What the site's own files set on that route, in a shell and for a launch of xccl-run."""
    of = made.site["resolved"]
    for name in [n for n in made.env if n in of["shell"]]:
        del made.env[name]
    made.env.update(of["shell"], **of["routes"][route]["variables"])
    made.env.update(XCCL_ROUTE=route, SLURM_JOB_NUM_NODES=str(nodes))
    made.env["SLURM_NTASKS_PER_NODE"] = str(made.site["hardware"]["gpu"]["count"])
    if route == "ucc-ccl":
        made.library("libucc.so.1")
        made.library("libucc_tl_{}.so".format(made.site["ccl"]["library"]), folder="opt/lib/ucc")


@pytest.mark.parametrize("nodes", [1, 2])
@pytest.mark.parametrize("site", SITES)
def test_healthy_node(doctor, world, site, nodes):
    """The environment of every site on every route that works there says nothing."""
    for route, of in prepare(world, site).site["resolved"]["routes"].items():
        if of["refused"]:
            continue
        made = world(site, route)
        if site == "dgx-a100":
            made.nic("mlx5_4")
        variables_of(made, route, nodes)
        status, found = doctor(made)
        assert (status, ids(found)) == (0, []), found["findings"]
        assert made.site["title"] in found["facts"][0]
        assert f"{made.site['hardware']['gpu']['count']} GPUs" in found["looked_at"]
        assert "a job's log (--run, --log)" in found["not_there"]


@pytest.mark.parametrize("vendor", ["nvidia", "amd"])
def test_a_healthy_machine_without_a_site_of_its_own(doctor, world, vendor):
    made = world(f"generic-{vendor}")
    made.file(made.gpu(0) + "/vendor", {"nvidia": "0x10de\n", "amd": "0x1002\n"}[vendor])
    made.file(made.gpu(0) + "/class", "0x030200\n")
    status, found = doctor(made)
    assert (status, ids(found)) == (0, []), found["findings"]


@pytest.mark.parametrize(
    ("name", "site", "broken"), CASES, ids=[f"{i}-{c[0]}" for i, c in enumerate(CASES)]
)
def test_exactly_that_is_found(doctor, world, name, site, broken):
    made = prepare(world, site)
    broken(made)
    status, found = doctor(made)
    assert ids(found) == [name], found["findings"]
    (finding,) = found["findings"]
    assert status == {"warning": 3, "error": 1}[finding["severity"]]
    assert finding["anchor"] == registry.anchor(name)
    assert "{" not in finding["cause"] + finding["remedy"]


def test_unknown_site_has_a_neighbour(doctor, world):
    made = world("juwels-booster")
    env(XCCL_SITE="juwels")(made)
    (finding,) = doctor(made)[1]["findings"]
    assert "XCCL_SITE=juwels" in finding["cause"]
    assert finding["remedy"].endswith("; did you mean 'juwels-booster'?")


def test_unbound_ranks_inside_a_step(doctor, world):
    made = world("juwels-booster")
    env(**STEP)(made)
    assert ids(doctor(made)[1]) == []  # bound to six cores
    made.file("proc/self/status", "Cpus_allowed_list:\t0-95\n")
    assert ids(doctor(made)[1]) == ["not-bound"]


def test_numa_policy_needs_a_bound_rank(doctor, world):
    made = world("frontier")
    env(SLURM_STEP_ID="0", MPICH_OFI_NIC_POLICY="NUMA")(made)
    assert ids(doctor(made)[1]) == []
    made.file("proc/self/status", "Cpus_allowed_list:\t0-95\n")
    assert ids(doctor(made)[1]) == ["nic-policy"]


def test_library_that_cannot_be_loaded(doctor, world, compile_library):
    made = world("frontier")
    plugin = made.root / "opt/lib/librccl-net.so"
    compile_library(plugin, ["libfabric.so.1", "libhwloc.so.15"])
    status, found = doctor(made)
    assert (status, ids(found)) == (1, ["library-broken"])
    assert "libfabric.so.1, libhwloc.so.15" in found["findings"][0]["cause"]
    made.library("libfabric.so.1")
    made.library("libhwloc.so.15", folder="usr/lib64")
    assert ids(doctor(made)[1]) == []


@pytest.mark.parametrize("library", ["librccl-net.so", "librccl.so.1.0"])
def test_library_that_is_damaged(doctor, world, compile_library, library):
    """Cut in its header, in its program headers, and in what they name."""
    made = world("frontier")
    path = made.root / "opt/lib" / library
    compile_library(path)
    assert ids(doctor(made)[1]) == []
    whole = path.read_bytes()
    for length in (6, 20, 63, 64, 100, 500):
        path.write_bytes(whole[:length])
        status, found = doctor(made)
        assert (status, ids(found)) == (1, ["library-damaged"]), length
        assert library[:8] in found["findings"][0]["cause"]


def test_damaged_library_that_another_needs(doctor, world, compile_library):
    made = world("frontier")
    compile_library(made.root / "opt/lib/librccl-net.so", ["libfabric.so.1"])
    made.library("libfabric.so.1")
    (made.root / "opt/lib/libfabric.so.1").write_bytes(b"\x7fELF\x02\x01")
    (finding,) = doctor(made)[1]["findings"]
    assert finding["id"] == "library-damaged"
    assert finding["cause"].startswith(str(made.root / "opt/lib/libfabric.so.1"))


def test_elf_with_any_byte_changed(compile_library, tmp_path):
    path = tmp_path / "library.so"
    compile_library(path, ["libfabric.so.1"])
    whole = path.read_bytes()
    for at in range(6, 700):
        path.write_bytes(whole[:at] + b"\xff" * 8 + whole[at + 8 :])
        with contextlib.suppress(elf.Damaged):
            elf.read(str(path))


def test_harmless_things_are_not_found(doctor, world):
    made = world("frontier")
    listed = ",".join(map(str, range(8)))
    env(ROCR_VISIBLE_DEVICES=listed, CUDA_VISIBLE_DEVICES=listed, SLURM_NTASKS_PER_NODE="8")(made)
    made.env["SLURM_GPUS_ON_NODE"] = "8"
    assert ids(doctor(made)[1]) == []  # Slurm sets both
    env(SLURM_JOB_NUM_NODES="1", NCCL_NET="AWS Libfabric")(made)
    assert ids(doctor(made)[1]) == []  # xccl-run decides by the number of nodes
    no_plugin(made)
    assert ids(doctor(made)[1]) == []  # not needed on one node


@pytest.mark.parametrize(
    ("sample", "site", "sentences"),
    [
        ("rccl-cxi.log", "frontier", ["RCCL uses aws-ofi-nccl 1.19.2 over cxi on 4 NICs"]),
        ("nccl-2.28-h200.log", "dgx-h100", ["NCCL connects GPUs via P2P", "NCCL 2.28.3 is used"]),
        ("nccl-two-comms.log", "dgx-h100", []),
    ],
)
def test_statements_of_a_good_log(doctor, world, sample, site, sentences):
    made = prepare(world, site)
    made.sample(sample)
    _, found = doctor(made)
    assert ids(found) == []
    for sentence in sentences:
        assert sentence in found["facts"]


def test_plugin_that_was_asked_for(doctor, world):
    made = world("dgx-h100")
    made.env["NCCL_NET_PLUGIN"] = "ofi"
    made.sample("nccl-2.28-plugin-unknown.log")
    assert ids(doctor(made)[1]) == ["plugin-missing"]


def test_list_of_plugins(doctor, world):
    """The first that is there is taken, and no other than those."""
    made = world("frontier")
    made.env["NCCL_NET_PLUGIN"] = "other,/opt/lib/librccl-net-mine.so"
    _, found = doctor(made)
    (missing,) = [f for f in found["findings"] if f["id"] == "plugin-missing"]
    assert "librccl-net-other.so, /opt/lib/librccl-net-mine.so" in str(missing)
    made.file("opt/lib/librccl-net-mine.so", "")
    assert "plugin-missing" not in ids(doctor(made)[1])


def test_ucc_over_nccl_is_stated(doctor, world):
    made = world("juwels-booster")
    made.route_ucc_ccl()
    made.sample("ucc-scores-nccl.log")
    _, found = doctor(made)
    assert ids(found) == []
    assert "UCC serves GPU memory by TL_NCCL" in found["facts"]


def test_sockets_say_what_to_do(doctor, world):
    made = world("frontier")
    made.sample("rccl-sockets.log")
    (finding,) = doctor(made)[1]["findings"]
    assert "librccl-net.so was not found in /opt/lib" in finding["cause"]
    assert "hsn0, hsn1, hsn2, hsn3" in finding["cause"]
    assert finding["remedy"] == "module load rccl-net-plugin"


def test_every_finding_has_a_case():
    elsewhere = {
        "library-broken",
        "library-damaged",
        "program-own-mpi",
        "program-static",
        "run-hung",
        "run-failed",
        "job-failed",
        "ucc-missing",
        "ucc-silent",
    }  # above, test_ucc.py, and test_doctor.py
    elsewhere |= {name for name in registry.TABLE if name.startswith("hang-")}  # test_hang.py
    elsewhere |= {fault.id for fault in FAULTS}  # test_planted.py
    assert {case[0] for case in CASES} | elsewhere == set(registry.TABLE)
