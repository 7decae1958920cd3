# SPDX-License-Identifier: BSD-3-Clause
"""Machines of many kinds: what is seen of them, and what is not held against them."""

import pytest


def ids(found):
    return [one["id"] for one in found["findings"]]


def device(made, address, vendor, kind):
    made.file(f"sys/bus/pci/devices/{address}/vendor", f"{vendor}\n")
    made.file(f"sys/bus/pci/devices/{address}/class", f"{kind}\n")


def kfd(made, *identifiers):
    for number, identifier in enumerate(identifiers):
        made.file(f"sys/class/kfd/kfd/topology/nodes/{number}/gpu_id", f"{identifier}\n")


def nvidia_driver(made):
    made.file("proc/driver/nvidia/version", "NVRM version: NVIDIA x86_64  580.65.06\n")


def test_mi300(doctor, world):
    """They are no display controllers."""
    made = world("generic-amd")
    for number in range(4):
        device(made, f"0000:{0x20 + number:02x}:00.0", "0x1002", "0x120000")
    status, found = doctor(made)
    assert (status, ids(found)) == (0, []) and "4 amd GPUs; " in found["facts"][1]


@pytest.mark.parametrize(
    ("drivers", "nvidia", "amd", "seen"),
    [
        ([nvidia_driver], 4, 1, "4 nvidia GPUs; "),
        ([], 4, 1, "4 nvidia GPUs; "),
        ([nvidia_driver, lambda made: kfd(made, 0, 7)], 4, 1, "4 nvidia GPUs; "),
        ([nvidia_driver], 1, 2, "1 nvidia GPUs; "),
        ([lambda made: kfd(made, 0, 7, 8)], 1, 2, "2 amd GPUs; "),
        ([lambda made: kfd(made, 0)], 1, 1, "1 nvidia GPUs; "),
    ],
)
def test_two_vendors(doctor, world, drivers, nvidia, amd, seen):  # noqa: PLR0917
    """The graphics of a processor are no GPU of a job."""
    made = world("generic-nvidia" if "nvidia" in seen else "generic-amd")
    for number in range(nvidia):
        device(made, f"0000:{0x20 + number:02x}:00.0", "0x10de", "0x030200")
    for number in range(amd):
        device(made, f"0000:{0xC0 + number:02x}:00.0", "0x1002", "0x030000")
    for driver in drivers:
        driver(made)
    status, found = doctor(made)
    assert (status, ids(found)) == (0, []) and seen in found["facts"][1]


def login_node(made):
    """Without the job's modules, and with limits and interfaces of its own."""
    made.env.update(LD_LIBRARY_PATH="/opt/other", NCCL_SOCKET_IFNAME="ib7")
    made.shm(65536)
    made.file(
        "proc/self/limits",
        "Max locked memory         65536   65536   bytes\nMax open files            64   64   files\n",
    )


@pytest.mark.parametrize(
    ("text", "name", "cause"),
    [
        ("xccl[1] info: x\nsrun: error: node7: task 3: Out Of Memory\n", "job-failed", "task 3"),
        ("libibverbs: Warning: RLIMIT_MEMLOCK is 4096 bytes\nNCCL INFO x\n", "memlock", "4 KiB"),
    ],
)
def test_the_log_of_another_machine(doctor, world, text, name, cause):
    """What is wrong here is no reason for what went wrong there."""
    made = world("dgx-a100")
    login_node(made)
    missing = ["ccl-missing", "net-interface-wrong", "memlock", "shm-small", "open-files"]
    assert sorted(ids(doctor(made)[1])) == sorted(missing)
    made.file("job.log", text)
    (finding,) = doctor(made, "--log", str(made.root / "job.log"))[1]["findings"]
    assert finding["id"] == name and cause in finding["cause"]


def test_an_error_of_this_machine_beside_a_log(doctor, world):
    """It is said, and so is why the job failed."""
    made = world("dgx-a100")
    made.env["XCCL_SITE"] = "juwels"
    made.file("job.log", "xccl[1] info: x\nsrun: error: node7: task 3: Out Of Memory\n")
    found = doctor(made, "--log", str(made.root / "job.log"))[1]
    assert sorted(ids(found)) == ["job-failed", "site-unknown"]


@pytest.mark.parametrize("name", ["gIB", "IBext_v10", "UCX-RDMA", "GPUDirectTCPX_v7", "fastrak"])
def test_plugins_of_others(doctor, world, name):
    """Google's and HPC-X's have names of their own."""
    made = world("dgx-a100")
    made.env["NCCL_NET"] = name
    assert ids(doctor(made)[1]) == ["net-name-unknown"]
    made.library("libnccl-net.so")
    assert ids(doctor(made)[1]) == []


def test_a_plugin_that_names_itself(doctor, world):
    made = world("dgx-a100")
    made.env["NCCL_NET"] = "Ours"
    made.library("libnccl-net.so")
    status, found = doctor(made)
    assert (status, ids(found)) == (3, ["net-name-unsure"])
    assert "plugin /opt/lib/libnccl-net.so goes by that name" in found["findings"][0]["cause"]
    made.library("libnccl-net.so", "\0OURS\0")
    assert ids(doctor(made)[1]) == []


CRAY = "/opt/cray/pe/mpich/9.1.0/lib"


def test_the_default_modules_of_cray(doctor, world):
    """Their libraries are on the system's path: nothing older is taken."""
    made = world("lumi-g")
    made.library("libmpi_gnu_123.so.12", folder=CRAY.lstrip("/"))
    (made.root / "opt/lib/libmpi_gnu_123.so.12").unlink()
    made.link(
        "opt/lib/libmpi_gnu_123.so.12", made.root / CRAY.lstrip("/") / "libmpi_gnu_123.so.12"
    )
    made.env["CRAY_LD_LIBRARY_PATH"] = CRAY
    assert ids(doctor(made)[1]) == []
    made.remove("opt/lib/libmpi_gnu_123.so.12")
    made.library("libmpi_gnu_123.so.12", folder="usr/lib64")
    (finding,) = doctor(made)[1]["findings"]
    assert finding["id"] == "cray-old-libraries"
    assert "/usr/lib64/libmpi_gnu_123.so.12 is taken, not its libmpi" in finding["cause"]


@pytest.mark.parametrize(
    ("modules", "found"),
    [("PrgEnv-gnu/8.6.0:cray-mpich/9.0.1", []), ("cray-mpich/9.1.0", ["cray-old-libraries"])],
)
def test_software_that_is_not_the_default(doctor, world, modules, found):
    """Of which the site says that its folders come first."""
    made = world("frontier")
    made.env.update(CRAY_LD_LIBRARY_PATH=CRAY, LOADEDMODULES=modules)
    assert ids(doctor(made)[1]) == found


@pytest.mark.parametrize(
    ("folder", "file", "found"),
    [
        ("usr/lib64", "libcuda.so.535.129.03", ["driver-old"]),
        ("usr/lib64", "libcuda.so.580.65.06", ["driver-old"]),  # updated, and not loaded yet
        ("opt/cuda/compat", "libcuda.so.580.65.06", []),
        ("opt/cuda/compat", "libcuda.so.550.54.15", ["driver-old"]),
        ("opt/cuda/lib", "libcuda.so.580.65.06", []),
        ("opt/cuda/compat", "libcuda.so.1", []),
        ("opt/cuda/lib", "libcuda.so.1", ["driver-old"]),
    ],
)
def test_a_newer_cuda_over_an_older_driver(doctor, world, folder, file, found):  # noqa: PLR0917
    """CUDA's forward compatibility: a libcuda of its own in front of the driver's."""
    made = world("dgx-a100")
    made.file("proc/driver/nvidia/version", "NVRM version: NVIDIA x86_64  535.129.03\n")
    made.library("libnccl.so.2.28.3", "NCCL version 2.28.3+cuda13.0\n")
    made.library(file, folder=folder)
    if file != "libcuda.so.1":
        (made.root / folder / "libcuda.so.1").symlink_to(file)
    made.env["LD_LIBRARY_PATH"] += f":/{folder}"
    assert ids(doctor(made)[1]) == found


def test_ports_that_are_down(doctor, world):
    """NCCL takes those that are active, and so does what is said of them."""
    made = world("juwels-booster")
    for name in ("mlx5_1", "mlx5_2", "mlx5_3"):
        made.port(name, "1: DOWN", "InfiniBand")
    _, found = doctor(made)
    assert any("ports: mlx5_0, mlx5_1 (down), mlx5_2 (down)" in fact for fact in found["facts"])
    made.env["NCCL_IB_HCA"] = "mlx5_2,mlx5_3"
    (one,) = [f for f in doctor(made)[1]["findings"] if f["id"] == "net-hca-unknown"]
    assert "mlx5_0" in one["cause"] and "mlx5_1" not in one["cause"], one["cause"]


@pytest.mark.parametrize(
    ("site", "file", "variable"),
    [
        ("juwels-booster", ".nccl.conf", {}),
        ("juwels-booster", "/etc/nccl.conf", {}),
        ("juwels-booster", "/opt/of/mine", {"NCCL_CONF_FILE": "/opt/of/mine"}),
        ("frontier", "/etc/rccl.conf", {}),
    ],
)
def test_files_of_the_library(doctor, world, site, file, variable):
    """They set what the environment leaves out."""
    made = world(site)
    made.env.update(variable)
    file = file if file.startswith("/") else f"{made.env['HOME']}/{file}"
    made.file(file, "# NCCL_IB_DISABLE=0\nNCCL_P2P_DISABLE=1\nNCCL_P2P_DISABLE=0\n")
    _, found = doctor(made)
    assert "net-leftover" in [one["id"] for one in found["findings"]]
    assert any(fact.endswith(f"CCL takes NCCL_P2P_DISABLE from {file}") for fact in found["facts"])
    made.env["NCCL_P2P_DISABLE"] = "0"
    _, found = doctor(made)
    assert "net-leftover" not in [one["id"] for one in found["findings"]]
    assert not any("CCL takes" in fact for fact in found["facts"])
