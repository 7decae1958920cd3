# SPDX-License-Identifier: BSD-3-Clause
"""Two pretend nodes on one machine over libfabric's tcp provider, through NCCL's plugin aws-ofi-nccl.

plugin.py [--plugin FOLDER] [--interface NAME] [--xccl PREFIX] [--output FOLDER] -- mpirun -n 2

The modules of MPI, libfabric and the plugin are loaded; --plugin names the folder of libnccl-net-ofi.so otherwise.
Every rank is a node of its own to NCCL (NCCL_HOSTID), so that everything goes through the plugin.
NCCL's log must name plugin and provider, the results must be right, and xccl-doctor must find nothing
wrong but what is set on purpose. Then faults are planted one by one, and xccl-doctor must name each
from the log. Needs a C compiler. Leaves logs, reports and verdicts.txt in the folder, and packs it.
"""

import os
import re
import shutil
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

from wiring import Machine, Verdicts, Wrong, new_parser, read_arguments

LIBRARY = "libnccl-net-ofi.so"
PLANTED = Path(__file__).resolve().parent / "wiring"
SOURCES = (("pretend_host.c", "pretend_host.so"), ("old_plugin.c", "libnccl-net-old.so"))
# MPI's launcher numbers the ranks; each becomes a host of its own name.
NODE = (
    "rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-${SLURM_PROCID:?no rank}}}; "
    "export NCCL_HOSTID=node$rank PRETEND_HOST=node$rank; "
    'export LD_PRELOAD="$0${LD_PRELOAD:+:$LD_PRELOAD}"; exec "$@"'
)
# Said before NCCL_NVLS_ENABLE and the like, which one sets on some virtual machines.
ON_PURPOSE = {"net-leftover"}
VENDOR_ONLY = {"XCCL_TUNE": "*:*:*:*:ccl", "XCCL_COMM_CREATE": "first"}
PLUGIN = re.compile(r"NET/OFI Initializing (aws-ofi-nccl \S+)")
PROVIDER = re.compile(r"NET/OFI Selected provider is (\w+)")

# expected: findings that the log must give; plugin: the folder on the library path, if any.
Fault = namedtuple("Fault", "name says folder variables expected")
FAULTS = (
    Fault("absent", "the plugin is not there", None, {}, {"plugin-missing"}),
    Fault("wrong-abi", "a plugin of an old interface", "planted", {"NCCL_NET_PLUGIN": "old"}, {"plugin-abi"}),
    Fault("wrong-provider", "a provider that is not there", "plugin", {"FI_PROVIDER": "cxi"}, {"plugin-failed"}),
    Fault("net-name", "NCCL_NET names a network that is not there", "plugin", {"NCCL_NET": "AWS Libfabric"},
          {"net-name-unknown"}),
)  # fmt: skip


def first_interface():
    """The first network interface that is neither the loopback nor a container's bridge."""
    names = sorted(os.listdir("/sys/class/net"))
    return next((n for n in names if not n.startswith(("lo", "docker", "veth", "br-"))), "lo")


def compile_planted(folder):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        raise Wrong("no C compiler: two small libraries are compiled here")
    folder.mkdir(exist_ok=True)
    for source, name in SOURCES:
        command = [compiler, "-shared", "-fPIC", "-o", str(folder / name), str(PLANTED / source)]
        subprocess.run(command, check=True)


def library_path():
    return [f for f in os.environ.get("LD_LIBRARY_PATH", "").split(":") if f]


def find_plugin(named):
    """The folder of the plugin: the one named, else the first on the library path that has one."""
    for folder in [named] if named else library_path():
        if (Path(folder) / LIBRARY).exists():
            return folder
    where = named or "LD_LIBRARY_PATH"
    raise Wrong(f"{where} has no {LIBRARY}: load the plugin's module, or name it (--plugin)")


class Chain:
    """The jobs: which libraries they find, and what they run."""

    def __init__(self, machine, given):
        self.machine = machine
        self.planted = machine.out / "planted"
        self.folders = {"plugin": find_plugin(given.plugin), "planted": str(self.planted)}
        self.others = [f for f in library_path() if not (Path(f) / LIBRARY).exists()]
        compile_planted(self.planted)
        self.interface = given.interface or first_interface()

    def variables(self, folder, more):
        own = [self.folders[folder]] if folder else []
        return {
            "LD_LIBRARY_PATH": ":".join([*own, *self.others]),
            "NCCL_NET_PLUGIN": "ofi",
            "NCCL_SOCKET_IFNAME": f"={self.interface}",
            "FI_PROVIDER": "tcp",
            "FI_TCP_IFACE": self.interface,
            "OFI_NCCL_EXCLUDE_TCP_IF": "docker0",  # else the loopback is excluded
            **more,
        }

    def run(self, name, folder, more):
        """(status, log, findings) of a job, its results checked by xccl-perf."""
        variables = self.variables(folder, more)
        words = [*self.machine.xccl_run(), "sh", "-c", NODE, self.planted / "pretend_host.so",
                 self.machine.tool("xccl-perf"), "--coll", "all", "--min", "8", "--max", "1m",
                 "--iters", "5"]  # fmt: skip
        status, text, log = self.machine.job("xccl", words, name, {**VENDOR_ONLY, **variables})
        return status, text, set(self.machine.doctor("xccl", name, variables, log))


def judge_healthy(status, text, found, provider):
    """[(good, sentence)] of the job with the plugin in order."""
    plugins, providers = set(PLUGIN.findall(text)), set(PROVIDER.findall(text))
    named = ", ".join(sorted(plugins)) or "no plugin"
    unexpected = sorted(found - ON_PURPOSE)
    return [
        (status == 0, f"plugin: the job ended with status {status}; 0 says that the results are right"),
        (bool(plugins), f"plugin: NCCL's log names {named}"),
        (providers == {provider}, f"plugin: libfabric's provider is {', '.join(sorted(providers)) or 'not named'}"),
        (not unexpected, f"plugin: xccl-doctor finds {', '.join(unexpected) or 'nothing wrong'}"),
    ]  # fmt: skip


def judge_fault(fault, status, found):
    missing = sorted(fault.expected - found)
    named = ", ".join(sorted(found - ON_PURPOSE)) or "nothing"
    return not missing, f"{fault.name} ({fault.says}): xccl-doctor names {named}; status {status}"


def main():
    parser = new_parser(__doc__, "xccl-plugin")
    parser.add_argument("--plugin", metavar="FOLDER", help=f"where {LIBRARY} lies")
    parser.add_argument("--interface", help="the network interface (the first one)")
    given, launcher = read_arguments(parser)
    try:
        machine = Machine(given, launcher)
        chain = Chain(machine, given)
    except Wrong as wrong:
        parser.error(str(wrong))
    verdicts = Verdicts(machine.out)
    machine.describe()
    status, text, found = chain.run("plugin", "plugin", {})
    for verdict in judge_healthy(status, text, found, "tcp"):
        verdicts.say(*verdict)
    for fault in FAULTS:
        status, _, found = chain.run(fault.name, fault.folder, fault.variables)
        verdicts.say(*judge_fault(fault, status, found))
    print(f"packed: {machine.pack()}")
    return verdicts.status()


if __name__ == "__main__":
    sys.exit(main())
