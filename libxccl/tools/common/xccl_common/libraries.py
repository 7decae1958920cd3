# SPDX-License-Identifier: BSD-3-Clause
"""Which file of a library would be loaded, and whether all that it needs is there."""

import glob
import mmap
import os
import re
from types import SimpleNamespace

from . import elf

DEFAULT_FOLDERS = (
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
)
# Cray MPICH has a library for each compiler.
CRAY_COMPILERS = ("gnu_123", "gnu_112", "gnu_91", "cray", "amd", "nvidia", "intel")
# Of every system; not looked for below a --sysroot.
BASE = re.compile(r"^(ld-linux.*|lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+|util|resolv|numa|z)\.so.*)$")
VERSION = re.compile(rb"[NR]CCL version[ :]*(\d+\.\d+\.\d+)(?:\+cuda(\d+\.\d+))?")


class Search:
    """The loader's order: LD_LIBRARY_PATH, its cache, the system's folders."""

    def __init__(self, root, env, cache):
        self.root, self.cache = root, cache
        self.folders = [f for f in env.get("LD_LIBRARY_PATH", "").split(":") if f]

    def place(self, folder):
        return self.root + folder

    def find(self, name, first=()):
        """(path, why), or (None, ""). first: folders of the object that asks."""
        if "/" in name:
            path = self.place(name)
            return (path, "named with its path") if os.path.exists(path) else (None, "")
        for folders, why in (
            (first, "run path of the library that needs it"),
            (self.folders, "LD_LIBRARY_PATH"),
        ):
            for folder in folders:
                path = os.path.join(self.place(folder), name)
                if os.path.exists(path):
                    return path, why
        if name in self.cache:
            return self.cache[name], "the loader's cache"
        for folder in DEFAULT_FOLDERS:
            path = os.path.join(self.place(folder), name)
            if os.path.exists(path):
                return path, "a system folder"
        return None, ""

    def unloadable(self, path, seen=None):
        """Of path and what it needs: (names that are nowhere, files that are damaged)."""
        seen = set() if seen is None else seen
        try:
            needed, runpath = elf.read(path)
        except elf.Damaged:
            return [], [path]
        except elf.NotElf as error:
            # One for another machine is passed over by the loader, which searches on.
            return [], ([] if error.other_machine else [path])
        except OSError:
            return [], []
        here = os.path.dirname(os.path.realpath(path))
        own = [f.replace("${ORIGIN}", "$ORIGIN").replace("$ORIGIN", here) for f in runpath]
        own = [f[len(self.root) :] if self.root and f.startswith(self.root) else f for f in own]
        missing, damaged = [], []
        for name in needed:
            if name in seen or BASE.match(name):
                continue
            seen.add(name)
            found, _ = self.find(name, own)
            more = ([name], []) if found is None else self.unloadable(found, seen)
            missing += more[0]
            damaged += more[1]
        return missing, damaged

    def listed(self):
        return ":".join(self.folders) or "the system's folders"


def versions_of(path):
    """(version of a vendor's library by its text or its name, CUDA's that it was built with)."""
    own, cuda = None, None
    try:
        with elf.open_file(path) as f, mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ) as text:
            found = VERSION.search(text)
            own, cuda = [g and g.decode() for g in found.groups()] if found else (None, None)
    except (OSError, ValueError):
        pass
    name = os.path.basename(os.path.realpath(path))
    found = re.search(r"\.so\.(\d+\.\d+\.\d+)$", name)
    return (found.group(1) if found else own), cuda


def holds(path, text):
    """Does a file hold that text, in upper or lower case? False of one that cannot be read."""
    expression = re.compile(re.escape(text.encode("utf-8", "surrogateescape")), re.I)
    try:
        with elf.open_file(path) as f, mmap.mmap(
            f.fileno(), 0, access=mmap.ACCESS_READ
        ) as content:
            return expression.search(content) is not None
    except (OSError, ValueError):
        return False


def plugin_names(env, ccl):
    """File names that the vendor's library tries for its network plugin, in order; [] by "none".

    NCCL user guide, NCCL_NET_PLUGIN: from 2.27 on a list. One that names a plugin has no other.
    """
    plugin = env.get("NCCL_NET_PLUGIN", "")
    if not plugin:
        return [f"lib{ccl}-net.so"]
    if plugin.lower() == "none":
        return []
    entries = [entry for entry in plugin.split(",") if entry]
    return [e if e.endswith(".so") or "/" in e else f"lib{ccl}-net-{e}.so" for e in entries]


def collect_ucc(facts):
    path, _ = facts.search.find("libucc.so.1")
    if path is None:
        return None
    folder = os.path.dirname(os.path.realpath(path))
    folders = [os.path.join(folder, "ucc")]
    extra = facts.env.get("EB_UCC_EXTRA_COMPONENT_PATH", "")
    folders += [facts.root + f for f in extra.split(":") if f]
    components = [os.path.basename(p) for f in folders for p in glob.glob(f + "/libucc_tl_*.so")]
    config = ucc_config(facts, folder)
    settings = {}
    if config is not None:
        with open(config, errors="replace") as f:
            settings = dict(re.findall(r"^\s*(UCC_\w+)\s*=\s*(\S*)", f.read(), re.M))
    return SimpleNamespace(
        folder=folders[0], components=components, config=config, settings=settings
    )


def ucc_config(facts, folder):
    """The one file that UCC reads, as its ucc_constructor.c chooses it; None if there is none."""
    named = facts.env.get("UCC_CONFIG_FILE")
    files = [facts.root + named] if named else []
    if named is None:
        files = [
            facts.root + facts.env.get("HOME", "/root") + "/ucc.conf",
            os.path.join(os.path.dirname(folder), "share/ucc.conf"),
        ]
    return next((path for path in files if os.access(path, os.R_OK)), None)


def collect(facts, sonames):
    """Adds to facts: ccl_library, plugin, mpi, ucc, families."""
    search, env = facts.search, facts.env
    facts.ccl_file = env.get("XCCL_CCL_LIBRARY") or sonames.get(facts.ccl)
    facts.ccl_library = None
    if facts.ccl_file:
        path, why = search.find(facts.ccl_file)
        if path:
            own, cuda = versions_of(path)
            facts.ccl_library = SimpleNamespace(path=path, why=why, version=own, cuda=cuda)
    facts.plugin_names = plugin_names(env, facts.ccl) if facts.ccl in ("nccl", "rccl") else []
    facts.plugin = None
    for name in facts.plugin_names:
        path, why = search.find(name)
        if path:
            facts.plugin = SimpleNamespace(path=path, why=why)
            break
    facts.mpi = None
    known = (
        ("libmpi_abi.so.1", "mpiabi"),
        ("libmpi.so.40", "openmpi"),
        ("libmpi.so.12", "mpich"),
        ("libmpich.so.12", "mpich"),
        *((f"libmpi_{compiler}.so.12", "mpich") for compiler in CRAY_COMPILERS),
    )
    for name, family in known:
        path, why = search.find(name)
        # One that a module put on the path is meant, whatever the system has beside it. The standard ABI's
        # library lies beside another of the same MPI, which most programs use.
        beside = facts.mpi and facts.mpi.family == "mpiabi" and facts.mpi.why != "LD_LIBRARY_PATH"
        if path and (facts.mpi is None or beside or why == "LD_LIBRARY_PATH"):
            facts.mpi = SimpleNamespace(path=path, why=why, family=family)
    facts.ucc = collect_ucc(facts)
    found = glob.glob(os.path.join(facts.libdir, "xccl/libxccl-mpi-*.so"))
    facts.families = [re.sub(r".*libxccl-mpi-(.*)\.so", r"\1", path) for path in sorted(found)]
