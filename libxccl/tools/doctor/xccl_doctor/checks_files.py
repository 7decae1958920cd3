# SPDX-License-Identifier: BSD-3-Clause
"""Findings that libraries, sysfs and limits show. Every check: facts to findings."""

import datetime
import glob
import os
import re

from xccl_common.launchers import NAMES
from xccl_common.libraries import DEFAULT_FOLDERS
from xccl_common.machine import is_loaded

from .checks_env import UCC_LISTS, ccl_name, hides, on, over_cxi, uses_ccl, version
from .checks_net import LIBFABRIC_NAMES, given, is_named
from .checks_settings import missing_library, refusal_of_library
from .registry import finding

SMALL_SHM = 256  # MiB
FEW_FILES = 256  # for ranks of one node, each with a few files of the others


def check_library(facts, path):
    missing, damaged = facts.search.unloadable(path)
    if damaged:
        yield finding("library-damaged", file=", ".join(damaged))
    if missing:
        yield finding("library-broken", file=path, missing=", ".join(missing))


def check_ccl(facts):
    library = facts.ccl_library
    if not uses_ccl(facts):
        return
    if library is None and missing_library(facts) and facts.route == "xccl":
        return  # which is said already
    if library is None:
        yield finding(
            "ccl-missing",
            file=facts.ccl_file,
            wanted=os.path.basename(facts.ccl_file),
            ccl=ccl_name(facts),
            folders=facts.search.listed(),
        )
        return
    if refusal_of_library(facts) is not None:
        return  # which is said already
    yield from check_library(facts, library.path)
    if facts.ccl == "nccl" and version(library.version) == (2, 29):
        yield finding("ccl-version-slow", version=library.version)
    yield from check_driver(facts, library)
    proto = given(facts, "NCCL_PROTO", "")
    if proto is None:  # the site is known to do without
        return
    ll128 = "LL128" not in proto if proto.startswith("^") else (not proto or "LL128" in proto)
    if facts.ccl == "nccl" and over_cxi(facts) and ll128 and version(library.version) >= (2, 27):
        yield finding("ll128", version=library.version)


# NVIDIA's oldest driver for every release of that CUDA (minor version compatibility).
OLDEST_DRIVER = {11: 450, 12: 525, 13: 580}


def serves_forward(facts, least):
    """CUDA's forward compatibility: a newer libcuda of the user's over the older driver of the kernel."""
    path, _ = facts.search.find("libcuda.so.1")
    if path is None:
        return False
    real = os.path.realpath(path)[len(os.path.realpath(facts.root or "/").rstrip("/")) :]
    release = re.search(r"\.so\.(\d{3,})\.", real + ".")
    if os.path.dirname(real) in DEFAULT_FOLDERS:
        return False
    return int(release.group(1)) >= least if release else "compat" in real


def check_driver(facts, library):
    least = OLDEST_DRIVER.get(version(library.cuda)[0]) if library.cuda else None
    if facts.driver and least and facts.driver < least and not serves_forward(facts, least):
        yield finding(
            "driver-old",
            ccl=f"{ccl_name(facts)} {library.version}",
            cuda=library.cuda,
            least=least,
            driver=facts.driver,
        )


def check_plugin(facts):
    """Slingshot needs one; InfiniBand is served without."""
    if facts.plugin is not None:
        yield from check_library(facts, facts.plugin.path)
        return
    none = facts.env.get("NCCL_NET_PLUGIN", "").lower() == "none"
    asked = bool(facts.env.get("NCCL_NET_PLUGIN")) and not none and uses_ccl(facts)
    if not asked and (not over_cxi(facts) or is_named(facts.env.get("NCCL_NET", ""), ("Socket",))):
        return
    other = "libnccl-net.so" if facts.ccl == "rccl" else "librccl-net.so"
    path, _ = facts.search.find(other)
    wanted = ", ".join(facts.plugin_names)
    if path is not None and not none:
        found = path[len(facts.root) :]
        yield finding("plugin-name", found=found, ccl=ccl_name(facts), file=wanted)
        return
    net = facts.env.get("NCCL_NET", "")
    effect = "fall back to TCP sockets, 8 to 22 times slower"
    if facts.ports and not over_cxi(facts):
        effect = "use InfiniBand without one"
    if is_named(net, LIBFABRIC_NAMES):
        effect = f"not start, because NCCL_NET={net} asks for it: xccl leaves collectives to MPI"
    why = f"{wanted} was not found in: {facts.search.listed()}"
    if "/" in wanted:
        why = f"NCCL_NET_PLUGIN names {wanted}, which is not there"
    if none:
        why = "NCCL_NET_PLUGIN=none switches it off"
    yield finding(
        "plugin-missing",
        ccl=ccl_name(facts),
        why=why,
        effect=effect,
        **plugin_remedy(facts, wanted),
    )


def plugin_remedy(facts, wanted):
    """What to do where this plugin was not found, and the names in it."""
    module = (facts.site or {}).get("plugin", {}).get("module")
    key = "path" if "/" in wanted else "module" if module else "folder"
    key = "none" if not wanted else key
    return {"remedy": key, "module": module, "wanted": wanted}


def check_mpi(facts):
    family = facts.app_family or (facts.mpi and facts.mpi.family)
    if facts.route == "xccl" and family and family not in facts.families:
        folder = os.path.join(facts.libdir, "xccl")
        yield finding("interposer-missing", family=family, folder=folder)
    hpcx = facts.env.get("HPCX_DIR")
    if hpcx and facts.mpi and not facts.mpi.path.startswith(facts.root + hpcx):
        yield finding("hpcx-mixed", hpcx=hpcx, mpi=os.path.dirname(facts.mpi.path))


def check_ucc_files(facts):
    env, ucc = facts.env, facts.ucc
    if facts.route not in ("ucc", "ucc-ccl") or not on(facts, "OMPI_MCA_coll_ucc_enable"):
        return
    path, _ = facts.search.find("libhcoll.so.1")
    if path and env.get("OMPI_MCA_coll_hcoll_enable") != "0":
        yield finding("hcoll-enabled", file=path)
    if facts.route != "ucc-ccl" or ucc is None or facts.ccl not in ("nccl", "rccl"):
        return
    component = f"libucc_tl_{facts.ccl}.so"
    if component not in ucc.components:
        yield finding(
            "ucc-no-ccl-transport", folder=ucc.folder, component=component, ccl=ccl_name(facts)
        )
    for variable in UCC_LISTS:
        value = ucc.settings.get(variable)
        if value and variable not in env and hides(value, facts.ccl):
            yield finding(
                "ucc-conf-hides-ccl",
                file=ucc.config,
                variable=variable,
                value=value,
                ccl=ccl_name(facts),
            )


def site_ranks(facts):
    return ((facts.site or {}).get("hardware", {}).get("binding") or {}).get("ranks", [])


def check_site(facts):
    """The site's description against sysfs."""
    site = facts.site
    if site is None or facts.simulated or not facts.gpus:
        return
    wanted = site["hardware"]["gpu"].get("count")
    if wanted and wanted != len(facts.gpus):
        yield finding("site-gpus", site=site["name"], wanted=wanted, found=len(facts.gpus))
        return
    names = facts.nics["ib"] + facts.nics["cxi"]
    for rank in site_ranks(facts):
        gpu, numa, nic = rank["gpu"], rank["numa"], rank["nic"]
        found = facts.gpus[gpu][1] if gpu < len(facts.gpus) else None
        if isinstance(numa, int) and found is not None and found != numa:
            yield finding("site-numa", site=site["name"], gpu=gpu, wanted=numa, found=found)
        if nic != "auto" and names and nic not in names:
            yield finding("site-nic", site=site["name"], gpu=gpu, nic=nic, found=", ".join(names))


MAX_AGE = 365  # days


def check_site_age(facts):
    """What nobody has looked at for a year may be wrong by now."""
    checked = (facts.site or {}).get("checked")
    if checked is None:
        return
    days = (facts.today - datetime.datetime.strptime(checked, "%Y-%m-%d")).days
    if days > MAX_AGE:
        maintainer = facts.site.get("maintainer", "nobody")
        yield finding(
            "site-old", site=facts.site["name"], date=checked, days=days, maintainer=maintainer
        )


def check_site_mpi(facts):
    site, mpi = facts.site, facts.mpi
    if site is None or mpi is None or mpi.family == "mpiabi":  # which any MPI may have
        return
    if site["mpi"]["family"] in ("any", mpi.family):
        return
    yield finding(
        "site-mpi",
        site=site["name"],
        wanted=NAMES[site["mpi"]["family"]],
        found=NAMES[mpi.family],
        path=mpi.path,
    )


def check_no_gpu(facts):
    if facts.gpus or facts.log_given:
        return
    wanted = facts.site["hardware"]["gpu"].get("count") if facts.site else None
    site = " (site {} has {} on a node)".format(facts.site["name"], wanted) if wanted else ""
    yield finding("no-gpu", site=site, options=gpu_options(facts.site))


GPU_OPTIONS = ("--gpus", "--gres", "-G")


def gpu_options(site):
    """The words by which srun gets all GPUs of a node here; of a job, where srun takes them from it."""
    launch = (site or {}).get("launch", {})
    for words in (launch.get("srun", []), launch.get("sbatch", [])):
        found = [word for word in words if word.startswith(GPU_OPTIONS)]
        if found:
            return " ".join(found)
    count = site["hardware"]["gpu"].get("count") if site else None
    return f"--gpus-per-node={count or 1}"


def check_ports(facts):
    """Ports that the site's map leaves out carry storage or management."""
    used = [rank["nic"] for rank in site_ranks(facts)]
    if not uses_ccl(facts) or not used or "auto" in used or "NCCL_IB_HCA" in facts.env:
        return
    others = [name for name in facts.ports if name not in used]
    if others and set(used) <= set(facts.nics["ib"]):
        yield finding(
            "net-storage-port", ports=", ".join(others), ccl=ccl_name(facts), value=",".join(used)
        )


def check_limits(facts):
    if (facts.ports or facts.efa) and facts.memlock is not None and facts.memlock < 1 << 20:
        yield finding("memlock", limit=facts.memlock)
    if facts.shm is not None and facts.shm < SMALL_SHM and not facts.shm_unusable:
        yield finding("shm-small", size=facts.shm, ranks=facts.ranks_per_node or "several")
    if facts.open_files is not None and facts.open_files < FEW_FILES:
        yield finding("open-files", limit=facts.open_files)


def check_folders(facts):
    """That ranks write to. The log of another machine's job says nothing of those here."""
    if facts.log_given:
        return
    if facts.shm_unusable:
        yield finding("shm-unusable", why=facts.shm_unusable)
    family = facts.app_family or (facts.mpi and facts.mpi.family)
    if facts.tmp_unusable and family != "mpich":  # which makes no files
        yield finding("tmp-unusable", folder=facts.tmp, why=facts.tmp_unusable)


CRAY_LIBRARIES = ("libmpi*.so.12", "librccl.so.1", "libnccl.so.2")


def taken_instead(facts, folder):
    """(a library of that folder, the other file that the loader takes), of MPI or the vendor's; or None."""
    for pattern in CRAY_LIBRARIES:
        for own in sorted(glob.glob(os.path.join(facts.search.place(folder), pattern))):
            name = os.path.basename(own)
            found, _ = facts.search.find(name)
            if found is not None and os.path.realpath(found) != os.path.realpath(own):
                return name, found[len(facts.root) :]
    return None


def wants_own_libraries(facts):
    """Is software loaded whose folders the site says come first, as it is not the machine's default?"""
    for software in (facts.site or {}).get("software", []):
        if software.get("libraries_first") != "CRAY_LD_LIBRARY_PATH":
            continue
        mpi = [name for name in software["modules"] if name.startswith("cray-mpich/")]
        if "LOADEDMODULES" not in facts.env or any(is_loaded(facts.env, name) for name in mpi):
            return True
    return False


def check_cray(facts):
    """With the default modules those folders are on no path, and their libraries are the system's."""
    listed = facts.env.get("LD_LIBRARY_PATH", "").split(":")
    folders = facts.env.get("CRAY_LD_LIBRARY_PATH", "").split(":")
    lost = [folder for folder in folders if folder and folder not in listed]
    for folder in lost:
        other = taken_instead(facts, folder)
        if other is not None:
            instead = "{1} is taken, not its {0}".format(*other)
            yield finding("cray-old-libraries", folder=folder, instead=instead)
            return
    if lost and wants_own_libraries(facts):
        instead = "the system's older ones are taken"
        yield finding("cray-old-libraries", folder=lost[0], instead=instead)


CHECKS = (
    check_cray,
    check_ccl,
    check_plugin,
    check_mpi,
    check_ucc_files,
    check_site,
    check_site_mpi,
    check_site_age,
    check_no_gpu,
    check_ports,
    check_limits,
    check_folders,
)
