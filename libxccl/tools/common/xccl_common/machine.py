# SPDX-License-Identifier: BSD-3-Clause

"""Facts of this machine, environment and installation. Reads only; starts nothing but ldconfig."""

import datetime
import fnmatch
import glob
import json
import os
import re
import subprocess
import time
from types import SimpleNamespace

from . import elf, launchers, libraries
from .launchers import number

VENDORS = {"0x10de": "nvidia", "0x1002": "amd"}
# PCI's: display controllers, and the processing accelerators that MI300A and MI300X are.
CLASSES = {"nvidia": ("0x03",), "amd": ("0x03", "0x12")}
AMAZON = "0x1d0f"
CCL = {"nvidia": "nccl", "amd": "rccl", "habana": "hccl"}
SONAMES = {
    "nccl": "libnccl.so.2",
    "rccl": "librccl.so.1",
    "msccl": "libnccl.so.2",
    "mscclpp": "libmscclpp_nccl.so.0",
    "oneccl": "libccl.so.2",
    "hccl": "libSynapse.so",
}
LEAST_TMP, LEAST_SHM = 1, 16  # MiB; NCCL takes about 10 MiB of /dev/shm for two ranks
SIMULATED = {"rocm": "amd", "hpu": "habana", "oneccl": None}


def read_text(path, default=""):
    try:
        with open(path, errors="replace") as f:
            return f.read().strip()
    except OSError:
        return default


def has_driver(root, vendor):
    """Is that vendor's driver loaded, and does it have GPUs to compute on?"""
    if vendor == "nvidia":
        return os.path.exists(root + "/proc/driver/nvidia/version")
    nodes = glob.glob(root + "/sys/class/kfd/kfd/topology/nodes/*/gpu_id")
    return any(read_text(path, "0") not in ("", "0") for path in nodes)


def collect_pci(root):
    """(vendor, GPUs in the order of their addresses); a GPU is (address, NUMA domain or None).

    Where there are two vendors, one has the graphics of the board or of the processor, which are no GPUs of
    a job's: the one with a driver counts, or with more of them.
    """
    found = {}
    for folder in sorted(glob.glob(root + "/sys/bus/pci/devices/*")):
        maker = VENDORS.get(read_text(folder + "/vendor"))
        if maker is None or not read_text(folder + "/class").startswith(CLASSES[maker]):
            continue
        numa = int(read_text(folder + "/numa_node", "-1") or -1)
        gpu = (os.path.basename(folder), numa if numa >= 0 else None)
        found.setdefault(maker, []).append(gpu)
    if not found:
        return None, []
    order = sorted(
        found, key=lambda one: one != "nvidia"
    )  # the first one, where all else is equal
    vendor = max(order, key=lambda one: (has_driver(root, one), len(found[one])))
    return vendor, found[vendor]


def collect_nics(root):
    """Names of ports by kind: ib (verbs), cxi (Slingshot, by its Ethernet name)."""
    names = {
        "ib": [os.path.basename(p) for p in sorted(glob.glob(root + "/sys/class/infiniband/*"))],
        "cxi": [os.path.basename(p) for p in sorted(glob.glob(root + "/sys/class/net/hsn*"))],
    }
    if not names["cxi"]:
        names["cxi"] = [os.path.basename(p) for p in sorted(glob.glob(root + "/sys/class/cxi/*"))]
    return names


def collect_ports(root):
    """(verbs devices that NCCL and RCCL take, those that are down), as xc_verbs_usable() has them.

    A device is taken for a port that is active, and InfiniBand or Ethernet; EFA's has neither link layer.
    """
    taken, down = [], []
    for folder in sorted(glob.glob(root + "/sys/class/infiniband/*")):
        ports = glob.glob(folder + "/ports/*")
        active = [port for port in ports if read_text(port + "/state") == "4: ACTIVE"]
        if not active:
            down.append(os.path.basename(folder))
        if any(read_text(port + "/link_layer") in ("InfiniBand", "Ethernet") for port in active):
            taken.append(os.path.basename(folder))
    return taken, down


def collect_efa(root):
    """Names of Amazon's network ports, which are among the verbs ports."""
    folders = sorted(glob.glob(root + "/sys/class/infiniband/*"))
    return [os.path.basename(p) for p in folders if read_text(p + "/device/vendor") == AMAZON]


def collect_network(facts):
    """Adds to facts: nics, ports, ports_down, efa, interfaces."""
    facts.nics = collect_nics(facts.root)
    facts.ports, facts.ports_down = collect_ports(facts.root)
    facts.efa = collect_efa(facts.root)
    found = glob.glob(facts.root + "/sys/class/net/*")
    facts.interfaces = sorted(os.path.basename(p) for p in found)


def collect_limits(root):
    """(KiB of lockable memory or None for no limit, MiB of /dev/shm or None)."""
    memlock = None
    found = re.search(r"^Max locked memory +(\S+)", read_text(root + "/proc/self/limits"), re.M)
    if found and found.group(1).isdigit():
        memlock = int(found.group(1)) // 1024
    # What was mounted last hides what was mounted there before.
    mounts = re.findall(r"^\S+ /dev/shm \S+ (\S*)", read_text(root + "/proc/mounts"), re.M)
    size = re.search(r"\bsize=(\d+)k", mounts[-1]) if mounts else None
    if size:
        return memlock, int(size.group(1)) // 1024
    if root:
        return memlock, None
    try:
        stat = os.statvfs("/dev/shm")
    except OSError:
        return memlock, None
    return memlock, stat.f_blocks * stat.f_frsize // (1 << 20)


def temporary_folder(env):
    """Where Open MPI makes the folder of a job."""
    return next((env[name] for name in ("TMPDIR", "TEMP", "TMP") if env.get(name)), "/tmp")


def is_read_only(root, folder):
    """As it is mounted: what was mounted last in a place hides what was mounted there before."""
    place, options = "", ""
    mounts = read_text(root + "/proc/mounts")
    for point, given in re.findall(r"^\S+ (\S+) \S+ (\S*)", mounts, re.M):
        inside = folder == point or folder.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(place):
            place, options = point, given
    return "ro" in options.split(",")


def free_space(path):
    """(MiB, files) that this user may still make there."""
    stat = os.statvfs(path)
    blocks = stat.f_bfree if os.geteuid() == 0 else stat.f_bavail
    files = stat.f_favail if stat.f_files else 1  # without a number there is no limit
    return blocks * stat.f_frsize / (1 << 20), files


def unusable(root, folder, least):
    """Why no files of so many MiB can be made in a folder; None if they can, or where nothing tells."""
    path = root + folder
    if is_read_only(root, folder):
        return "is on a read-only file system"
    if not os.path.isdir(path):
        return None if root else "is not there"
    if not os.access(path, os.W_OK | os.X_OK):
        return "cannot be written to by this user"
    free, files = free_space(path)
    if free < least:
        return f"is full ({free:.0f} MiB are free)"
    return None if files else "is full (no more files can be made)"


def collect_open_files(root):
    """How many files a process may have open; None where nothing says so, or for no limit."""
    found = re.search(r"^Max open files +(\d+)", read_text(root + "/proc/self/limits"), re.M)
    return int(found.group(1)) if found else None


def count_cpus(text):
    """Processors in a list like "0-3,8"."""
    count = 0
    for part in filter(None, text.split(",")):
        low, _, high = part.partition("-")
        count += int(high or low) - int(low) + 1
    return count


def collect_cores(root):
    """(list that this process may use, how many, how many there are)."""
    status = read_text(root + "/proc/self/status")
    found = re.search(r"^Cpus_allowed_list:\s*(\S+)", status, re.M)
    allowed = found.group(1) if found else ""
    online = read_text(root + "/sys/devices/system/cpu/online")
    return allowed, count_cpus(allowed), count_cpus(online)


def matches(detect, env, root):
    """True if a site's description fits this machine; what the environment says is enough."""
    for name, patterns in detect.get("environment", {}).items():
        if any(fnmatch.fnmatchcase(env.get(name, ""), p) for p in patterns):
            return True
    for path, patterns in detect.get("files", {}).items():
        if any(fnmatch.fnmatchcase(read_text(root + path), p) for p in patterns):
            return True
    host = read_text(root + "/proc/sys/kernel/hostname")
    names = [env.get("SLURMD_NODENAME", ""), host]
    if any(fnmatch.fnmatchcase(n, p) for n in names for p in detect.get("hostnames", [])):
        return True
    return any(os.path.exists(root + path) for path in detect.get("exists", []))


def load_sites(prefix):
    sites = {}
    for path in sorted(glob.glob(os.path.join(prefix, "share/xccl/sites/*/site.json"))):
        with open(path, encoding="utf-8") as f:
            site = json.load(f)
        sites[site["name"]] = site
    return sites


def default_site(prefix, env):
    """The site that the installation was made for (ci/install-tree --site); the simulation has one of its own."""
    return (
        "" if env.get("XCCL_SIM") else read_text(os.path.join(prefix, "share/xccl/sites/default"))
    )


def choose_site(sites, name, env, root):
    """The site named, or the first that fits; generic ones come last. None if there is none."""
    if name:
        return sites.get(name)
    order = sorted(sites, key=lambda site: (site.startswith("generic"), site))
    if env.get("XCCL_SIM"):
        order = ["sim"] if "sim" in sites else []
    for candidate in order:
        if matches(sites[candidate].get("detect", {}), env, root):
            return sites[candidate]
    return None


def is_loaded(env, module):
    loaded = env.get("LOADEDMODULES", "").split(":")
    return any(entry == module or entry.startswith(module + "/") for entry in loaded)


def launch_environment(env, prefix, site, nodes):
    """What a rank behind xccl-run has: launch.env, as libxccl/tools/run/launch.sh reads it."""
    out = dict(env)
    path = os.path.join(prefix, "share/xccl/sites", site["name"], "launch.env")
    for line in read_text(path).splitlines():
        words = line.split(None, 3)
        if len(words) < 4 or words[0] not in ("any", "one", "many"):
            continue
        when, module, name, value = words
        if (when == "one" and nodes != 1) or (when == "many" and (nodes or 2) == 1):
            continue
        if module != "-" and is_loaded(env, module):
            continue
        out.setdefault(name, value)
    return out


def collect_driver(root):
    found = re.search(r"\b(\d+)\.\d+", read_text(root + "/proc/driver/nvidia/version"))
    return int(found.group(1)) if found else None


def ldconfig():
    """soname: path, by the loader's cache."""
    try:
        out = subprocess.run(
            ["ldconfig", "-p"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            universal_newlines=True,  # noqa: UP021
            check=False,
            env={"PATH": "/usr/sbin:/sbin:/usr/bin:/bin"},
        ).stdout
    except OSError:
        return {}
    pairs = re.findall(r"^\s(\S+) \(.*\) => (\S+)$", out, re.M)
    return dict(reversed(pairs))


def read_parameter_files(facts):
    """Adds what Open MPI's files set to facts.env, where the environment does not set it."""
    facts.parameter_files = []
    for path in launchers.parameter_files(facts.root, facts.env, facts.mpi):
        found = launchers.parameters(read_text(path))
        if found:
            facts.parameter_files.append(path)
        for name, value in found.items():
            facts.env.setdefault("OMPI_MCA_" + name, value)


def read_ccl_files(facts):
    """Adds what NCCL's or RCCL's files set to facts.env, where the environment does not set it."""
    facts.ccl_files = []
    if facts.ccl not in ("nccl", "rccl") or facts.simulated:
        return
    own = facts.env.get("NCCL_CONF_FILE") or f"{facts.env.get('HOME', '')}/.{facts.ccl}.conf"
    for path in (own, f"/etc/{facts.ccl}.conf"):
        whole = facts.root + path
        lines = read_text(whole).splitlines() if os.path.isfile(whole) else []
        given = dict(reversed([line.split("=", 1) for line in lines if re.match(r"\w+=", line)]))
        new = {name: value for name, value in given.items() if name not in facts.env}
        if new:
            facts.ccl_files.append((path, sorted(new)))
            facts.env = {**facts.env, **new}


def collect(options):
    """Everything the checks ask for.

    options: env, sysroot, site, route, prefix, libdir, launcher (words), app (a program or None).
    """
    env, root = dict(options.env), options.sysroot
    facts = SimpleNamespace(env=env, root=root, prefix=options.prefix, libdir=options.libdir)
    facts.shell_env = env  # without what xccl-run sets at this site
    facts.sites = load_sites(options.prefix)
    seconds = int(number(env.get("SOURCE_DATE_EPOCH")) or time.time())
    facts.today = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=seconds)
    facts.site_name = options.site or env.get("XCCL_SITE") or default_site(options.prefix, env)
    facts.site = choose_site(facts.sites, facts.site_name, env, root)
    facts.route = options.route or env.get("XCCL_ROUTE") or "xccl"
    facts.nodes = launchers.nodes_of(env)
    facts.ranks_per_node = launchers.ranks_per_node(env)
    if facts.site and facts.route == "xccl":
        facts.env = launch_environment(env, options.prefix, facts.site, facts.nodes)
    facts.simulated = bool(env.get("XCCL_SIM"))
    facts.vendor, facts.gpus = collect_pci(root)
    if facts.simulated:
        flavour, _, count = env["XCCL_SIM"].partition(":")
        facts.vendor = SIMULATED.get(flavour, "nvidia")
        facts.gpus = [("", None)] * (number(count) or 0)
    if facts.vendor is None and facts.site:
        facts.vendor = facts.site["hardware"]["gpu"].get("vendor")
    facts.ccl = env.get("XCCL_CCL", "auto")
    if facts.ccl == "auto":
        facts.ccl = CCL.get(facts.vendor)
    collect_network(facts)
    facts.driver = collect_driver(root)
    facts.memlock, facts.shm = collect_limits(root)
    facts.open_files = collect_open_files(root)
    facts.tmp = temporary_folder(env)
    facts.tmp_unusable = unusable(root, facts.tmp, LEAST_TMP)
    facts.shm_unusable = unusable(root, "/dev/shm", LEAST_SHM)
    facts.cores, facts.cores_allowed, facts.cores_online = collect_cores(root)
    if facts.simulated:  # as xccl-run --sim does
        folder = os.path.join(options.libdir, "xccl/sim", env["XCCL_SIM"].partition(":")[0])
        env["LD_LIBRARY_PATH"] = ":".join(filter(None, [folder, env.get("LD_LIBRARY_PATH")]))
    read_ccl_files(facts)
    facts.search = libraries.Search(root, env, {} if root else ldconfig())
    libraries.collect(facts, SONAMES)
    read_parameter_files(facts)
    facts.app = options.app
    facts.app_family, facts.app_mpi, facts.app_static, facts.app_own_mpi = None, None, False, False
    if options.app:
        facts.app_static = elf.is_static(options.app)
        facts.app_own_mpi = not facts.app_static and launchers.holds_mpi(options.app)
        facts.app_family, facts.app_mpi = launchers.family_of_application(
            options.app, facts.search
        )
    facts.app_gtl = bool(options.app) and launchers.needs(options.app, facts.search, "libmpi_gtl_")
    facts.started_by = launchers.started_by(env)
    facts.neighbours = launchers.neighbours(root, env)
    facts.mpirun = launchers.collect_mpirun(root, env, options.launcher)
    return facts
