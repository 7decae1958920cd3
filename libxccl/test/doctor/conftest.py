# SPDX-License-Identifier: BSD-3-Clause
"""A made-up machine below a folder, and xccl-doctor looking at it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[3]
SAMPLES = Path(__file__).resolve().parent / "samples"
TOOLS = TOP / "libxccl/tools"
sys.path[:0] = [str(TOOLS / name) for name in ("doctor", "common")]
sys.path.insert(0, str(Path(__file__).resolve().parent))

import hang_job  # noqa: E402
from xccl_common.tool import Tool  # noqa: E402
from xccl_doctor.main import main  # noqa: E402

VENDOR = {"nvidia": "0x10de", "amd": "0x1002"}
GPU_BUS = 0x10
EMPTY_ELF = "\x7fELF\x02\x01" + "\0" * 58
DAY = 1798761600  # 2027-01-01: the sites were checked within the year before
LIBRARIES = {
    "nccl": ("libnccl.so.2", "libnccl.so.2.28.3"),
    "rccl": ("librccl.so.1", "librccl.so.1.0"),
}


class World:
    """A node of a site on which all is well; tests break it."""

    def __init__(self, folder, site_name):
        self.root, self.prefix = folder / "root", folder / "prefix"
        self.site = json.loads((TOP / f"site-configs/{site_name}/site.json").read_text())
        self.options = []
        self.log = None
        self.env = {"XCCL_SITE": site_name, "HOME": "/home/user", "LD_LIBRARY_PATH": "/opt/lib"}
        self.env["SOURCE_DATE_EPOCH"] = str(DAY)
        (self.prefix / "share/xccl").mkdir(parents=True)
        (self.prefix / "share/xccl/sites").symlink_to(TOP / "site-configs")
        for family in ("openmpi", "mpich"):
            self.write(self.prefix / f"lib/xccl/libxccl-mpi-{family}.so", "")
        self.make_hardware()
        self.make_system()
        self.make_software()
        self.set_variables()

    def write(self, path, text):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def file(self, path, text=""):
        """A file below the root."""
        self.write(self.root / path.lstrip("/"), text)

    def link(self, path, target):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).symlink_to(target)

    def remove(self, path):
        target = self.root / path.lstrip("/")
        shutil.rmtree(target) if target.is_dir() else target.unlink()

    def gpu(self, number):
        return f"sys/bus/pci/devices/0000:{GPU_BUS + number:02x}:00.0"

    def make_hardware(self):
        hardware = self.site["hardware"]
        ranks = {rank["gpu"]: rank for rank in hardware["binding"]["ranks"]}
        for number in range(hardware["gpu"].get("count", 0)):
            numa = ranks.get(number, {}).get("numa", 0)
            self.file(
                self.gpu(number) + "/vendor", VENDOR.get(hardware["gpu"]["vendor"], "0x0") + "\n"
            )
            self.file(self.gpu(number) + "/class", "0x030200\n")
            self.file(self.gpu(number) + "/numa_node", f"{numa if isinstance(numa, int) else 0}\n")
        self.file(
            "sys/bus/pci/devices/0000:01:00.0/vendor", "0x1a03\n"
        )  # the service processor's VGA
        self.file("sys/bus/pci/devices/0000:01:00.0/class", "0x030000\n")
        names = {rank["nic"] for rank in ranks.values()} - {"auto"}
        for name in names | set(hardware["nic"].get("names", [])) | self.port_names():
            self.nic(name)
        for name in ("lo", "eth0", *(["ib0"] if self.kind().startswith("InfiniBand") else [])):
            self.file(f"sys/class/net/{name}/address")

    def kind(self):
        return self.site["hardware"]["nic"].get("kind", "")

    def port_names(self):
        """The kernel's names, where the site's file gives none."""
        nic = self.site["hardware"]["nic"]
        if "names" in nic:
            return set()
        stem = {"Slingshot": "hsn", "InfiniBand": "mlx5_"}.get(self.kind().split(" ")[0])
        return {f"{stem}{i}" for i in range(nic.get("count", 0))} if stem else set()

    def nic(self, name):
        kind = "net" if name.startswith("hsn") else "infiniband"
        self.file(f"sys/class/{kind}/{name}/device/numa_node", "0\n")
        if kind == "infiniband":
            self.port(name, "4: ACTIVE", "InfiniBand")

    def port(self, name, state, link):
        self.file(f"sys/class/infiniband/{name}/ports/1/state", f"{state}\n")
        self.file(f"sys/class/infiniband/{name}/ports/1/link_layer", f"{link}\n")

    def make_system(self):
        self.limits("unlimited")
        self.shm(1 << 24)
        self.file("proc/self/status", "Cpus_allowed_list:\t0-5\n")
        self.file("sys/devices/system/cpu/online", "0-95\n")
        self.file("proc/sys/kernel/hostname", "somewhere\n")

    def limits(self, memlock):
        self.file("proc/self/limits", f"Max locked memory         {memlock}   {memlock}   bytes\n")

    def open_files(self, most):
        self.file("proc/self/limits", f"Max open files            {most}   {most}   files\n")

    def shm(self, kib):
        self.file("proc/mounts", f"tmpfs /dev/shm tmpfs rw,nosuid,nodev,size={kib}k 0 0\n")

    def process(self, number, env):
        """Another process of the node, with its environment."""
        self.file(f"proc/{number}/environ", "".join(f"{k}={v}\0" for k, v in env.items()))

    def library(self, name, text="", folder="opt/lib"):
        """The header of an ELF file that needs nothing, and what it says of itself."""
        self.file(f"{folder}/{name}", EMPTY_ELF + text)

    def make_software(self):
        family = self.site["mpi"]["family"]
        self.library("libmpi_gnu_123.so.12" if family == "mpich" else "libmpi.so.40")
        self.write(self.prefix / "lib/libxccl-mpi.so", "")
        self.link("opt/lib/libxccl-mpi.so", self.prefix / "lib/libxccl-mpi.so")
        ccl = self.site["ccl"]["library"]
        soname, name = LIBRARIES[ccl]
        self.library(name, "RCCL version : 2.22.3-HEAD\n")
        (self.root / "opt/lib" / soname).symlink_to(name)
        if self.kind().startswith("Slingshot"):
            self.library(f"lib{ccl}-net.so")

    def set_variables(self):
        """What env/xccl.sh sets for a shell, and a job of two nodes."""
        for variable in self.site["variables"]:
            applied = variable.get("apply", "always") == "always"
            if applied and variable.get("scope", "shell") == "shell":
                self.env[variable["name"]] = variable["value"]
        self.env["OMPI_MCA_coll_ucc_enable"] = "0"
        self.env.update(SLURM_JOB_ID="1", SLURM_JOB_NUM_NODES="2")
        if self.kind().startswith("Slingshot"):
            self.env["SLURM_NETWORK"] = "disable_rdzv_get"

    def route_ucc_ccl(self):
        ccl = self.site["ccl"]["library"].upper()
        self.env.update(
            XCCL_ROUTE="ucc-ccl",
            OMPI_MCA_coll_ucc_enable="1",
            OMPI_MCA_coll_ucc_priority="100",
            OMPI_MCA_coll_hcoll_enable="0",
            UCC_CONFIG_FILE="",
        )
        self.env[f"UCC_TL_{ccl}_TUNE"] = "allreduce:cuda:inf"
        self.library("libucc.so.1")
        self.library("libucc_tl_nccl.so", folder="opt/lib/ucc")

    def sample(self, name):
        self.options += ["--log", str(SAMPLES / name)]


@pytest.fixture
def world(tmp_path):
    return lambda site, name="": World(tmp_path / name, site)


@pytest.fixture
def doctor(capsys, monkeypatch):
    """xccl-doctor on a world: its exit status, and its JSON."""

    def look(world, *options):
        for name in list(os.environ):
            monkeypatch.delenv(name)
        for name, value in world.env.items():
            monkeypatch.setenv(name, value)
        words = ["--sysroot", str(world.root), "--json", *world.options, *options]
        prefix = str(world.prefix)
        status = main(words, Tool("xccl-doctor", "0", "", prefix, f"{prefix}/lib"))
        return status, json.loads(capsys.readouterr().out)

    return look


@pytest.fixture(scope="session")
def stage():
    build = Path(os.environ.get("XCCL_TEST_BUILD", TOP / "build/release"))
    folder = Path(os.environ["XCCL_STAGE"]) if "XCCL_STAGE" in os.environ else build / "stage"
    if not (folder / "bin/xccl-doctor").exists():
        pytest.fail(f"{folder} holds no tools; build, or name the build in XCCL_TEST_BUILD")
    return folder.resolve()


@pytest.fixture
def compile_static(tmp_path):
    """A program that needs no shared object; more: options, as of one that moves in memory."""

    def build(target, *more):
        compiler = shutil.which("cc")
        if compiler is None:
            pytest.skip("no C compiler")
        source = tmp_path / "static.c"
        source.write_text("void _start(void)\n{\n}\n")
        subprocess.run([compiler, "-static", "-nostdlib", *more, "-o", target, source], check=True)

    return build


@pytest.fixture
def compile_program(tmp_path):
    """A program with a loader, and with these functions of its own."""

    def build(target, functions, *options):
        compiler = shutil.which("cc")
        if compiler is None:
            pytest.skip("no C compiler")
        library, source = tmp_path / "libnext.so", tmp_path / "program.c"
        source.write_text("int PMPI_Init(void)\n{\n    return 0;\n}\n")
        subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
        lines = [f"int {name}(void)\n{{\n    return 0;\n}}\n" for name in functions]
        lines += ["#ifdef MORE\nMORE\n#endif\n", "int main(void)\n{\n    return 0;\n}\n"]
        source.write_text("".join(lines))
        subprocess.run([compiler, *options, "-o", target, source, library], check=True)

    return build


@pytest.fixture
def compile_library(tmp_path):
    """A shared object that needs others."""

    def build(target, needed=()):
        compiler = shutil.which("cc")
        if compiler is None:
            pytest.skip("no C compiler")
        stubs = []
        for name in needed:
            stub = tmp_path / name
            empty = [compiler, "-shared", "-nostdlib", "-x", "c", "/dev/null"]
            subprocess.run([*empty, "-o", stub, f"-Wl,-soname,{name}"], check=True)
            stubs.append(stub)
        command = [compiler, "-shared", "-nostdlib", "-x", "c", "/dev/null", "-x", "none", *stubs]
        subprocess.run([*command, "-Wl,--no-as-needed", *stubs, "-o", target], check=True)

    return build


@pytest.fixture
def job(tmp_path):
    """Files of a job that tests break."""
    return hang_job.Run(tmp_path)


@pytest.fixture
def look(tmp_path, capsys):
    """xccl-doctor --hang: {identifier: causes}, with the exit status checked."""

    def ask(folder=tmp_path):
        status = main(["--hang", str(folder), "--json"], hang_job.NOWHERE)
        found = json.loads(capsys.readouterr().out)
        severities = [one["severity"] for one in found["findings"]]
        assert severities == sorted(severities)  # errors before warnings
        assert status == (1 if "error" in severities else 3 if severities else 0)
        assert status == found["status"]
        causes = {}
        for one in found["findings"]:
            assert "{" not in one["cause"] + one["remedy"]
            assert one["anchor"].endswith(one["id"])
            causes.setdefault(one["id"], []).append(one["cause"])
        causes["facts"] = found["facts"]
        return causes

    return ask
